"""Matrix products."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=7)


@table.op("aten::linear")
def linear(g: GraphContext, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """``aten::linear(Tensor input, Tensor weight, Tensor? bias=None)``: Gemm for matrices, else MatMul and Add."""
    if input.rank == 2 and weight.rank == 2 and bias is not None and bias.rank == 1:
        return g.op("Gemm", input, weight, bias, transB=1)
    transposed = weight if weight.rank == 1 else emit.transpose(g, weight, [1, 0])
    result = g.op("MatMul", input, transposed)
    return result if bias is None else g.op("Add", result, bias)
