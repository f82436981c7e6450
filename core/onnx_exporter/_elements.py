"""Follows small integer tensors element by element, so that a size is a constant exactly where that is proven.

Each rule gets the inputs and attributes of an ONNX node and returns the elements of its output (of rank 0 or
1), or None where they cannot be told. What is an int is a fact; what is a symbol equals that symbol.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_exporter import _dims
from onnx_exporter._values import MAX_ELEMENTS, Dim, Value

Inputs = Sequence[Value | None]
Elements = tuple[Dim, ...]
Attributes = Mapping[str, Any]


_LEAST, _GREATEST = -(2**63), 2**63 - 1


def output_elements(op_type: str, inputs: Inputs, attributes: Attributes) -> Elements | None:
    """Returns the elements of the (single) output of an ai.onnx node, or None if they are not known."""
    rule = RULES.get(op_type)
    elements = rule(inputs, attributes) if rule else None
    if elements is None or len(elements) > MAX_ELEMENTS:
        return None
    # The file wraps around, as PyTorch does; what is followed here is sizes, which do not.
    return None if any(isinstance(item, int) and not _LEAST <= item <= _GREATEST for item in elements) else elements


def _of(inputs: Inputs, index: int) -> Elements | None:
    value = inputs[index] if index < len(inputs) else None
    return None if value is None else value.elements


def _ints(inputs: Inputs, index: int) -> tuple[int, ...] | None:
    elements = _of(inputs, index)
    if elements is None or not all(isinstance(item, int) for item in elements):
        return None
    return elements  # type: ignore[return-value]


def _shape(inputs: Inputs, attributes: Attributes) -> Elements | None:
    value = inputs[0]
    if value is None or value.shape is None:
        return None
    return value.shape[slice(attributes.get("start"), attributes.get("end"))]


def _size(inputs: Inputs, attributes: Attributes) -> Elements | None:
    value = inputs[0]
    return None if value is None or value.shape is None else (_dims.product(value.shape),)


def _gather(inputs: Inputs, attributes: Attributes) -> Elements | None:
    data, indices = _of(inputs, 0), _ints(inputs, 1)
    if data is None or indices is None or inputs[0].rank != 1 or inputs[1].rank > 1:  # type: ignore[union-attr, operator]
        return None
    if any(not -len(data) <= index < len(data) for index in indices):
        return None
    return tuple(data[index] for index in indices)


def _slice(inputs: Inputs, attributes: Attributes) -> Elements | None:
    data = _of(inputs, 0)
    if data is None:
        return None
    if "starts" in attributes:
        starts, ends, steps = tuple(attributes["starts"]), tuple(attributes["ends"]), (1,)
    else:
        found = (_ints(inputs, 1), _ints(inputs, 2), _ints(inputs, 4) if len(inputs) > 4 and inputs[4] else (1,))
        if None in found:
            return None
        starts, ends, steps = found  # type: ignore[assignment]
    step = steps[0]
    end = None if step < 0 and ends[0] < -len(data) else ends[0]
    return data[starts[0] : end : step]


def _concat(inputs: Inputs, attributes: Attributes) -> Elements | None:
    parts = [_of(inputs, index) for index in range(len(inputs))]
    if any(part is None for part in parts):
        return None
    return tuple(item for part in parts if part is not None for item in part)


def _same(inputs: Inputs, attributes: Attributes) -> Elements | None:
    return _of(inputs, 0)


def _elementwise(function: Callable[[Dim, Dim], Dim | None]) -> Callable[[Inputs, Attributes], Elements | None]:
    def rule(inputs: Inputs, attributes: Attributes) -> Elements | None:
        first, second = _of(inputs, 0), _of(inputs, 1)
        if first is None or second is None or 1 not in (len(first), len(second), int(len(first) == len(second))):
            return None
        length = max(len(first), len(second)) if first and second else 0
        pairs = zip(first * (length // max(len(first), 1)), second * (length // max(len(second), 1)), strict=False)
        results = [function(a, b) for a, b in pairs]
        return None if any(item is None for item in results) else tuple(item for item in results if item is not None)

    return rule


def _divide(first: Dim, second: Dim) -> Dim | None:
    if isinstance(first, int) and isinstance(second, int):
        return None if second == 0 else abs(first) // abs(second) * (1 if (first < 0) == (second < 0) else -1)
    return _dims.divide_exactly(first, second)


def _on_ints(function: Callable[[int, int], int | None]) -> Callable[[Dim, Dim], Dim | None]:
    return lambda first, second: function(first, second) if isinstance(first, int) and isinstance(second, int) else None


def _expand(inputs: Inputs, attributes: Attributes) -> Elements | None:
    data, shape = _of(inputs, 0), _ints(inputs, 1)
    if data is None or shape is None or len(shape) > 1:
        return None
    if len(data) == 1:
        return data * (shape[0] if shape else 1)
    return data if shape in ((), (1,), (len(data),)) else None


def _cast(inputs: Inputs, attributes: Attributes) -> Elements | None:
    from_int = inputs[0] is not None and not (inputs[0].dtype is None or inputs[0].dtype.is_floating_point)
    return _of(inputs, 0) if from_int and int(attributes["to"]) in (6, 7) else None


def _range(inputs: Inputs, attributes: Attributes) -> Elements | None:
    bounds = [_ints(inputs, index) for index in range(3)]
    if any(bound is None for bound in bounds):
        return None
    start, limit, delta = (bound[0] for bound in bounds if bound)
    count = max(0, -((start - limit) // delta))
    return tuple(start + index * delta for index in range(count)) if count <= MAX_ELEMENTS else None


def _reduce_product(inputs: Inputs, attributes: Attributes) -> Elements | None:
    data = _of(inputs, 0)
    return None if data is None or inputs[0].rank != 1 else (_dims.product(data),)  # type: ignore[union-attr]


RULES: dict[str, Callable[[Inputs, Attributes], Elements | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Identity": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Reshape": _same,
    "Cast": _cast,
    "Add": _elementwise(_dims.add),
    "Sub": _elementwise(_dims.subtract),
    "Mul": _elementwise(_dims.multiply),
    "Div": _elementwise(_divide),
    "Mod": _elementwise(_on_ints(lambda first, second: operator.mod(first, second) if second > 0 <= first else None)),
    "Min": _elementwise(_on_ints(min)),
    "Max": _elementwise(_on_ints(max)),
    "Expand": _expand,
    "Range": _range,
    "ReduceProd": _reduce_product,
}
