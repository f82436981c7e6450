"""Einsum by matrix products, for opsets that have no Einsum."""

from __future__ import annotations

import string

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, emit, shapes

table = OpTable(opset=7)


def parse(g: GraphContext, equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Returns the letters of each operand and of the result; an ellipsis is spelled out, right-aligned."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    letters = [term.replace("...", "") for term in terms]
    spare = [letter for letter in string.ascii_letters if letter not in left]
    hidden = [rank - len(own) if "..." in term else 0 for rank, own, term in zip(ranks, letters, terms, strict=True)]
    ellipsis = "".join(spare[: max(hidden)])
    operands = [term.replace("...", ellipsis[len(ellipsis) - count :]) for term, count in zip(terms, hidden, strict=True)]
    if arrow:
        return operands, right.replace("...", ellipsis)
    joined = "".join(letters)
    return operands, ellipsis + "".join(sorted(letter for letter in set(joined) if joined.count(letter) == 1))


def _permuted(g: GraphContext, x: Value, letters: str, wanted: str) -> Value:
    return emit.transpose(g, x, [letters.index(letter) for letter in wanted])


def _sum_unused(g: GraphContext, x: Value, letters: str, needed: str) -> tuple[Value, str]:
    unused = [axis for axis, letter in enumerate(letters) if letter not in needed]
    if not unused:
        return x, letters
    return emit.reduce(g, "ReduceSum", x, unused, keepdims=False), "".join(letter for letter in letters if letter in needed)


def _contract(g: GraphContext, x: Value, x_letters: str, y: Value, y_letters: str, needed: str) -> tuple[Value, str]:
    """One matrix product: shared letters that are still needed are its batch, those that are not are summed over."""
    x, x_letters = _sum_unused(g, x, x_letters, needed + y_letters)
    y, y_letters = _sum_unused(g, y, y_letters, needed + x_letters)
    batch = [letter for letter in x_letters if letter in y_letters and letter in needed]
    summed = [letter for letter in x_letters if letter in y_letters and letter not in needed]
    rows = [letter for letter in x_letters if letter not in y_letters]
    columns = [letter for letter in y_letters if letter not in x_letters]
    if len(summed) > 1:  # joined, axes are not broadcast any more
        x, y = _spread(g, x, x_letters, y, y_letters, summed), _spread(g, y, y_letters, x, x_letters, summed)
    sizes = {letter: shapes.size(g, x, axis) for axis, letter in enumerate(x_letters) if letter not in batch}
    sizes |= {letter: shapes.size(g, y, axis) for axis, letter in enumerate(y_letters) if letter not in batch}
    count = len(batch)
    first = _permuted(g, x, x_letters, "".join([*batch, *rows, *summed]))
    second = _permuted(g, y, y_letters, "".join([*batch, *summed, *columns]))
    first = _joined(g, _joined(g, first, count + len(rows), len(summed)), count, len(rows))
    second = _joined(g, _joined(g, second, count + len(summed), len(columns)), count, len(summed))
    product = g.op("MatMul", first, second)
    lead = [shapes.size(g, product, axis) for axis in range(count)]
    if len(rows) != 1 or len(columns) != 1:
        product = emit.reshape(g, product, [*lead, *(sizes[letter] for letter in [*rows, *columns])])
    return product, "".join([*batch, *rows, *columns])


def _spread(g: GraphContext, x: Value, x_letters: str, y: Value, y_letters: str, shared: list[str]) -> Value:
    """Broadcasts the shared axes of one operand to the other's sizes, where these may differ."""
    pairs = [(x_letters.index(letter), y_letters.index(letter)) for letter in shared]
    unlike = {own: shapes.size(g, y, axis) for own, axis in pairs if not shapes.same_size(x, own, y, axis)}
    return emit.expand(g, x, [unlike.get(axis, 1) for axis in range(len(x_letters))]) if unlike else x


def _joined(g: GraphContext, x: Value, start: int, count: int) -> Value:
    """Joins `count` axes into one; none gives a new axis of size 1."""
    if count == 0:
        return emit.unsqueeze(g, x, [start])
    return emit.flatten_to(g, x, start, start + count - 1)


@table.op("aten::einsum")
def einsum(g: GraphContext, equation: str, tensors: list[Value], path: list[int] | None = None) -> Value:
    """``aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None)``: Transpose, MatMul and ReduceSum, by twos.

    The order of contraction (`path`) changes nothing but rounding.
    """
    operands, result = parse(g, equation, [shapes.rank_of(g, tensor) for tensor in tensors])
    dtype = g.result_dtype or tensors[0].dtype
    wide = compute.wide_dtype(dtype)
    if dtype is not None and wide is not None and not dtype.is_floating_point:
        # the sum of integers is int64, their product has their own type; runtimes multiply matrices of wide ones
        tensors = [emit.cast(g, emit.cast(g, tensor, dtype), wide) for tensor in tensors]
    for position, letters in enumerate(operands):
        tensors[position], operands[position] = _without_repeats(g, tensors[position], letters)
    x, x_letters = tensors[0], operands[0]
    for position in range(1, len(tensors)):
        needed = result + "".join(operands[position + 1 :])
        x, x_letters = _contract(g, x, x_letters, tensors[position], operands[position], needed)
    x, x_letters = _sum_unused(g, x, x_letters, result)
    made = _permuted(g, x, x_letters, result)
    return made if dtype is None else emit.cast(g, made, dtype)


def _without_repeats(g: GraphContext, x: Value, letters: str) -> tuple[Value, str]:
    """Takes the diagonal of two axes that have one letter, which becomes the last axis."""
    for letter in letters:
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            x = g.call("aten::diagonal", x, 0, first, second)
            letters = "".join(own for axis, own in enumerate(letters) if axis not in (first, second)) + letter
    return x, letters
