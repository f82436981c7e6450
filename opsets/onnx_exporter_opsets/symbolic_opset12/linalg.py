"""Matrix products that opset 12 adds."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import shapes

table = OpTable(opset=12)


@table.op("aten::einsum")
def einsum(g: GraphContext, equation: str, tensors: list[Value], path: list[int] | None = None) -> Value:
    """``aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None)``: Einsum.

    The order of contraction (`path`) changes nothing but rounding. The result's letters are always
    written: without them PyTorch and ONNX Runtime may sort capital letters differently.
    """
    if tensors[0].dtype is None or not tensors[0].dtype.is_floating_point:
        return g.previous(equation, tensors, path)  # type: ignore[no-any-return]
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    hidden = {shapes.rank_of(g, x) - len(term) + 3 for x, term in zip(tensors, terms, strict=True) if "..." in term}
    left, arrow, right = equation.replace(" ", "").partition("->")
    if len(hidden) > 1 or (hidden and arrow and "..." not in right):
        # ONNX wants every ellipsis to stand for as many axes, and sums over none
        return g.previous(equation, tensors, path)  # type: ignore[no-any-return]
    if not arrow:
        letters = left.replace("...", "").replace(",", "")
        right = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
        right = ("..." if "..." in left else "") + right
    return g.op("Einsum", *tensors, equation=f"{left}->{right}")
