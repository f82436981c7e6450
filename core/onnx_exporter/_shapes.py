"""Output shapes that ONNX's own inference leaves open and that symbolic sizes can tell.

Each rule gets the inputs and attributes of a node and returns the shape of its first output, with None for a
dimension that it cannot tell either, or None if it can tell nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx_exporter import _dims
from onnx_exporter._elements import Attributes, Inputs
from onnx_exporter._values import Dim

Shape = Sequence[Dim | None]


def output_shape(op_type: str, inputs: Inputs, attributes: Attributes) -> Shape | None:
    """Returns the shape of the first output of an ai.onnx node as far as it is proven, or None."""
    rule = _RULES.get(op_type)
    return rule(inputs, attributes) if rule else None


def _elements_of(inputs: Inputs, index: int) -> tuple[Dim, ...] | None:
    value = inputs[index] if index < len(inputs) else None
    return None if value is None else value.elements


def _reshape(inputs: Inputs, attributes: Attributes) -> Shape | None:
    asked = _elements_of(inputs, 1)
    if asked is None:
        length = None if inputs[1] is None or not inputs[1].shape else inputs[1].shape[0]
        return [None] * length if isinstance(length, int) else None
    source = None if inputs[0] is None else inputs[0].shape
    result: list[Dim | None] = []
    for axis, item in enumerate(asked):
        if item == 0 and not attributes.get("allowzero"):
            result.append(source[axis] if source is not None and axis < len(source) else None)
        else:
            result.append(None if item == -1 else item)
    if result.count(None) == 1 and -1 in asked and source is not None:
        position = asked.index(-1)
        known = [item for index, item in enumerate(result) if index != position]
        rest = list(source)
        divisors = []
        for dim in known:  # cancel equal sizes first: it needs no algebra and holds for unknown symbols too
            if dim in rest:
                rest.remove(dim)
            elif dim is not None:
                divisors.append(dim)
        result[position] = _dims.divide_exactly(_dims.product(rest), _dims.product(divisors))
    return result


def _expand(inputs: Inputs, attributes: Attributes) -> Shape | None:
    source, asked = None if inputs[0] is None else inputs[0].shape, _elements_of(inputs, 1)
    return None if source is None or asked is None else _broadcast(source, asked)


def _broadcast(first: Sequence[Dim], second: Sequence[Dim]) -> Shape:
    rank = max(len(first), len(second))
    pairs = zip((1,) * (rank - len(first)) + tuple(first), (1,) * (rank - len(second)) + tuple(second), strict=True)
    return [_broadcast_one(a, b) for a, b in pairs]


def _broadcast_one(first: Dim, second: Dim) -> Dim | None:
    if first == second or second == 1:
        return first
    if first == 1:
        return second
    # One of two unequal sizes must be 1; an int other than 1 tells which
    if isinstance(first, int):
        return first
    return second if isinstance(second, int) else None


def _elementwise(inputs: Inputs, attributes: Attributes) -> Shape | None:
    result: Sequence[Dim | None] = ()
    for value in inputs:
        if value is None or value.shape is None or None in result:
            return None
        result = _broadcast([dim for dim in result if dim is not None], value.shape)
    return result


def _of_elements(inputs: Inputs, attributes: Attributes) -> Shape | None:
    return _elements_of(inputs, 0)


def _concat(inputs: Inputs, attributes: Attributes) -> Shape | None:
    shapes = [value.shape for value in inputs if value is not None and value.shape is not None]
    if len(shapes) != len(inputs):
        return None
    axis = attributes["axis"] % len(shapes[0])
    result: list[Dim | None] = []
    for position, dims in enumerate(zip(*shapes, strict=True)):
        if position == axis:
            total: Dim = 0
            for dim in dims:
                total = _dims.add(total, dim)
            result.append(total)
        else:  # all must be equal, so any proven size is the size of all
            result.append(next((dim for dim in dims if isinstance(dim, int)), dims[0]))
    return result


def _tile(inputs: Inputs, attributes: Attributes) -> Shape | None:
    repeats = _elements_of(inputs, 1)
    shape = None if inputs[0] is None else inputs[0].shape
    if repeats is None or shape is None:
        return None
    return [_dims.multiply(dim, count) for dim, count in zip(shape, repeats, strict=True)]


def _range(inputs: Inputs, attributes: Attributes) -> Shape | None:
    start, limit, delta = (_elements_of(inputs, index) for index in range(3))
    if start is None or limit is None or delta != (1,):
        return None
    # a size is never negative, so counting from 0 up to one gives just as many
    return list(limit) if start == (0,) else None


def _slice(inputs: Inputs, attributes: Attributes) -> Shape | None:
    shape = None if inputs[0] is None else inputs[0].shape
    if shape is None:
        return None
    bounds = _bounds(inputs, attributes)
    if bounds is None:
        return None
    result: list[Dim | None] = list(shape)
    for axis, start, end, step in bounds:
        # an axis that is cut at unknown bounds has an unknown size, the others keep theirs
        result[axis] = None if start is None or end is None or step is None else _slice_size(shape[axis], start, end, step)
    return result


def _compress(inputs: Inputs, attributes: Attributes) -> Shape | None:
    shape = None if inputs[0] is None else inputs[0].shape
    axis = attributes.get("axis")
    if axis is None or shape is None:
        return [None] if axis is None else None
    return [None if position == axis % len(shape) else dim for position, dim in enumerate(shape)]


def _bounds(inputs: Inputs, attributes: Attributes) -> list[tuple[int, Dim | None, Dim | None, Dim | None]] | None:
    """Axis, start, end and step of each axis that a Slice cuts; None if the axes are unknown."""
    if "starts" in attributes:  # before opset 10
        count = len(attributes["starts"])
        axes: Sequence[Dim] = tuple(attributes.get("axes") or range(count))
        steps: Sequence[Dim | None] = (1,) * count
        starts, ends = attributes["starts"], attributes["ends"]
    else:
        given, starts, ends = _elements_of(inputs, 3), _elements_of(inputs, 1), _elements_of(inputs, 2)
        if given is None and starts is None:
            return None
        axes = given if given is not None else tuple(range(len(starts or ())))
        unknown = (None,) * len(axes)
        starts, ends = starts or unknown, ends or unknown
        steps = _elements_of(inputs, 4) or ((1,) * len(axes) if len(inputs) < 5 or inputs[4] is None else unknown)
    if not all(isinstance(axis, int) for axis in axes):
        return None
    return [(axis, *rest) for axis, *rest in zip(axes, starts, ends, steps, strict=True)]


def _slice_size(size: Dim, start: Dim, end: Dim, step: Dim) -> Dim | None:
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        return len(range(size)[start:end:step]) if step > 0 or end >= -size else len(range(size)[start::step])
    if step == 1 and start == 0 and (end == size or (isinstance(end, int) and end >= 2**31 - 1)):
        return size
    return None


_RULES: dict[str, Callable[[Inputs, Attributes], Shape | None]] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "ConstantOfShape": _of_elements,
    "Concat": _concat,
    "Tile": _tile,
    "Range": _range,
    "Slice": _slice,
    "Compress": _compress,
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Div", "Pow", "Where", "And", "Or", "Xor", "Equal", "Less", "Greater", "LessOrEqual",
         "GreaterOrEqual", "Min", "Max", "Mod", "PRelu", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Sum", "Mean"),
        _elementwise,
    ),
}  # fmt: skip
