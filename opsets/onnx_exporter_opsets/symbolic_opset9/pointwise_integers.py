"""Common divisors and multiples of integers."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, emit, indexing

table = OpTable(opset=9)


@table.op("aten::gcd", promote=("self", "other"))
def gcd(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::gcd(Tensor self, Tensor other)``: Euclid's algorithm in a Loop, until every remainder is 0."""
    assert self.dtype is not None
    a, b = (g.op("Abs", emit.cast(g, value, torch.int64)) for value in indexing.broadcast(g, [other, self]))
    zero, one = g.constant(0, dtype=torch.int64), g.constant(1, dtype=torch.int64)

    def goes_on(divisor: Value) -> Value:
        return g.call("aten::any", g.call("aten::ne", divisor, zero), None, False)  # type: ignore[no-any-return]

    start = goes_on(b)
    shape = [dim if isinstance(dim, int) else None for dim in a.shape or ()]
    with g.subgraph(
        ("step", torch.int64, []), ("going", torch.bool, []), ("a", torch.int64, shape), ("b", torch.int64, shape)
    ) as body:
        _, _, first, second = body.inputs
        done = g.call("aten::eq", second, zero)
        rest = g.call("aten::fmod", first, emit.where(g, done, one, second))
        divided, divisor = emit.where(g, done, first, second), emit.where(g, done, zero, rest)
        body.outputs = (goes_on(divisor), divided, divisor)
    result, _ = g.op("Loop", None, start, a, b, body=body.graph, outputs=2)
    return emit.cast(g, result, self.dtype)


@table.op("aten::lcm", promote=("self", "other"))
def lcm(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::lcm(Tensor self, Tensor other)``: the product, by the greatest common divisor; 0 where both are 0."""
    assert self.dtype is not None
    divisor = emit.cast(g, g.call("aten::gcd", self, other), torch.int64)
    a, b = emit.cast(g, self, torch.int64), emit.cast(g, other, torch.int64)
    divisor = emit.where(g, g.call("aten::eq", divisor, 0), g.constant(1, dtype=torch.int64), divisor)
    wide = compute.wide_dtype(self.dtype) or torch.int64
    product = emit.cast(g, g.op("Mul", g.op("Div", a, divisor), b), wide)
    return emit.cast(g, g.op("Abs", product), self.dtype)
