"""Numerical integrals and derivatives of samples."""

from __future__ import annotations

from collections.abc import Sequence

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes

table = OpTable(opset=7)

_END = 2**63 - 1


def _floating(g: GraphContext, x: Value) -> Value:
    return x if dtypes.is_floating(x.dtype) else emit.cast(g, x, g.result_dtype or dtypes.default_float())


def _areas(g: GraphContext, y: Value, x: Value | None, axis: int) -> Value:
    """The sum of the ends of each piece, times its length where `x` tells it; integers stay such, and wrap, as in PyTorch."""
    rank = shapes.rank_of(g, y)
    pairs: Value = g.call("aten::add", emit.slice_(g, y, axis, 1, _END), emit.slice_(g, y, axis, 0, -1))
    if x is None:
        return pairs
    # sample points of lower rank lie along the axis of integration if they are a vector, else count from the last axis
    if shapes.rank_of(g, x) == 1:
        x = emit.unsqueeze(g, x, [own for own in range(rank) if own != axis])
    elif shapes.rank_of(g, x) < rank:
        x = emit.unsqueeze(g, x, range(rank - shapes.rank_of(g, x)))
    if shapes.known_size(x, axis) == 1:
        raise g.unsupported("one sample point for several samples")
    steps = g.call("aten::sub", emit.slice_(g, x, axis, 1, _END), emit.slice_(g, x, axis, 0, -1))
    return g.call("aten::mul", steps, pairs)  # type: ignore[no-any-return]


def _integral(g: GraphContext, y: Value, x: Value | None, dx: float, dim: int, sum_op: str) -> Value:
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, y))
    if x is not None and shapes.rank_of(g, x) > shapes.rank_of(g, y):
        raise g.unsupported("sample points of a higher rank than the samples")
    total = _floating(g, g.call(sum_op, _areas(g, y, x, axis), axis if sum_op == "aten::cumsum" else [axis]))
    if x is not None:
        return g.op("Div", total, g.constant(2, like=total))
    return g.op("Mul", total, g.constant(dx / 2, like=total))


@table.op("aten::trapezoid", "aten::trapz")
def trapezoid(g: GraphContext, y: Value, x: Value | None = None, dx: float = 1, dim: int = -1) -> Value:
    """``aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1)`` and ``.dx``: half the sum of neighbours times their distance.

    Samples that are equally far apart are summed, less half of the first and the last, as in PyTorch.
    """
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, y))
    if x is not None or shapes.known_size(y, axis) == 0:
        return _integral(g, y, x, dx, dim, "aten::sum")
    ends = _floating(g, g.call("aten::add", *[g.call("aten::select", y, axis, index) for index in (0, -1)]))
    total = emit.cast(g, g.call("aten::sum", y, [axis]), ends.dtype or dtypes.default_float())
    total = g.op("Sub", total, g.op("Mul", ends, g.constant(0.5, like=ends)))
    return total if dx == 1 else g.op("Mul", total, g.constant(dx, like=total))


@table.op("aten::cumulative_trapezoid")
def cumulative_trapezoid(g: GraphContext, y: Value, x: Value | None = None, dx: float = 1, dim: int = -1) -> Value:
    """``aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1)`` and ``.dx``: as trapezoid, with running sums."""
    return _integral(g, y, x, dx, dim, "aten::cumsum")


@table.op("aten::gradient.scalarint", "aten::gradient.scalararray", "aten::gradient.array")
def gradient(
    g: GraphContext, self: Value, spacing: float | None = None, dim: list[int] | None = None, edge_order: int = 1
) -> list[Value]:
    """``aten::gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1)``: differences."""
    axes = _axes(g, self, dim)
    return [_derived(g, self, axis, 1.0 if spacing is None else spacing, edge_order) for axis in axes]


@table.op("aten::gradient.scalarrayint", "aten::gradient.scalarrayarray")
def gradient_scalars(
    g: GraphContext, self: Value, spacing: list[float], dim: list[int] | None = None, edge_order: int = 1
) -> list[Value]:
    """``aten::gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1)``: differences."""
    axes = _axes(g, self, dim)
    return [_derived(g, self, axis, step, edge_order) for axis, step in zip(axes, spacing, strict=True)]


@table.op("aten::gradient.tensorarrayint", "aten::gradient.tensorarray")
def gradient_tensors(
    g: GraphContext, self: Value, spacing: list[Value], dim: list[int] | None = None, edge_order: int = 1
) -> list[Value]:
    """``aten::gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1)``: differences."""
    axes = _axes(g, self, dim)
    return [_derived_at(g, self, axis, place, edge_order) for axis, place in zip(axes, spacing, strict=True)]


def _axes(g: GraphContext, x: Value, dim: Sequence[int] | None) -> list[int]:
    rank = shapes.rank_of(g, x)
    return list(range(rank)) if dim is None else shapes.normalize_axes(dim, rank)


def _ends(g: GraphContext, x: Value, axis: int, count: int) -> tuple[list[Value], list[Value]]:
    """The first and the last `count` samples; the last one comes first in the second list."""
    first = [emit.slice_(g, x, axis, index, index + 1) for index in range(count)]
    last = [emit.slice_(g, x, axis, -1 - index, _END if index == 0 else -index) for index in range(count)]
    return first, last


def _between(g: GraphContext, op: str, a: Value, b: Value | float) -> Value:
    result: Value = g.call(f"aten::{op}", a, b if isinstance(b, Value) else g.constant(b, like=a))
    return result


def _derived(g: GraphContext, x: Value, axis: int, step: float, edge_order: int) -> Value:
    """The derivative of samples that are equally far apart."""
    x = _floating(g, x)
    after, before = emit.slice_(g, x, axis, 2, _END), emit.slice_(g, x, axis, 0, -2)
    middle = _between(g, "div", _between(g, "sub", after, before), 2 * step)
    first, last = _ends(g, x, axis, edge_order + 1)
    if edge_order == 1:
        edges = [_between(g, "div", _between(g, "sub", b, a), step) for a, b in (first, reversed(last))]
        return g.op("Concat", edges[0], middle, edges[1], axis=axis)
    edges = []
    for (near, next_, far), sign in ((first, 1.0), (last, -1.0)):
        weighted = [_between(g, "mul", item, sign * weight / step) for item, weight in ((near, -1.5), (next_, 2.0), (far, -0.5))]
        edges.append(_between(g, "add", _between(g, "add", weighted[0], weighted[1]), weighted[2]))
    return g.op("Concat", edges[0], middle, edges[1], axis=axis)


def _derived_at(g: GraphContext, x: Value, axis: int, places: Value, edge_order: int) -> Value:
    """The derivative of samples taken at `places`, a vector."""
    x = _floating(g, x)
    rank = shapes.rank_of(g, x)
    places = emit.cast(g, places, x.dtype) if x.dtype is not None else places
    gaps = _between(g, "sub", emit.slice_(g, places, 0, 1, _END), emit.slice_(g, places, 0, 0, -1))
    gaps = emit.unsqueeze(g, gaps, [own for own in range(rank) if own != axis])
    left, right = emit.slice_(g, gaps, axis, 0, -1), emit.slice_(g, gaps, axis, 1, _END)
    both = _between(g, "add", left, right)
    weights = (
        _between(g, "div", g.op("Neg", right), _between(g, "mul", left, both)),
        _between(g, "div", _between(g, "sub", right, left), _between(g, "mul", left, right)),
        _between(g, "div", left, _between(g, "mul", right, both)),
    )
    parts = (emit.slice_(g, x, axis, 0, -2), emit.slice_(g, x, axis, 1, -1), emit.slice_(g, x, axis, 2, _END))
    terms = [_between(g, "mul", part, weight) for part, weight in zip(parts, weights, strict=True)]
    middle = _between(g, "add", _between(g, "add", terms[0], terms[1]), terms[2])
    first, last = _ends(g, x, axis, edge_order + 1)
    near_gaps, far_gaps = _ends(g, gaps, axis, edge_order)
    if edge_order == 1:
        edges = [
            _between(g, "div", _between(g, "sub", first[1], first[0]), near_gaps[0]),
            _between(g, "div", _between(g, "sub", last[0], last[1]), far_gaps[0]),
        ]
        return g.op("Concat", edges[0], middle, edges[1], axis=axis)
    edges = []
    for points, (a, b), backwards in ((first, near_gaps, False), (last, far_gaps, True)):
        whole = _between(g, "add", a, b)
        weights = (
            g.op("Neg", _between(g, "div", _between(g, "add", _between(g, "add", a, a), b), _between(g, "mul", a, whole))),
            _between(g, "div", whole, _between(g, "mul", a, b)),
            g.op("Neg", _between(g, "div", a, _between(g, "mul", b, whole))),
        )
        signed = [g.op("Neg", weight) if backwards else weight for weight in weights]
        terms = [_between(g, "mul", point, weight) for point, weight in zip(points, signed, strict=True)]
        edges.append(_between(g, "add", _between(g, "add", terms[0], terms[1]), terms[2]))
    return g.op("Concat", edges[0], middle, edges[1], axis=axis)
