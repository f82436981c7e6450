"""Quantized tensors, which are a tuple to code written for torch.onnx: levels, scale and zero point, perhaps an axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from onnx_exporter._context import GraphContext, Unsupported
from onnx_exporter.compat._calling import call_symbolic
from onnx_exporter.compat._duck_context import DuckContext
from onnx_exporter.compat._duck_values import DuckValue
from onnx_exporter.helpers import emit

_FIRST_WITH_AXIS = 13
_LEVELS = {torch.quint8: torch.uint8, torch.qint8: torch.int8}
"""What ONNX's QuantizeLinear gives, by what PyTorch calls it."""

_KEEPS_LEVELS = frozenset(
    ("relu", "max_pool1d", "max_pool2d", "upsample_nearest2d", "reshape", "view", "flatten", "unflatten", "squeeze", "unsqueeze",
     "transpose", "permute", "t", "slice", "select", "expand", "contiguous", "clone", "chunk", "split", "unbind", "dropout",
     "detach", "alias")
)  # fmt: skip
"""Operators of ATen that give levels of their first argument, with its scale and zero point."""


def is_quantized(value: Any) -> bool:
    """Whether a value stands for a quantized tensor."""
    return isinstance(value, DuckValue) and value.is_quantized


def is_about_quantized(operator: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call makes a quantized tensor, or takes one."""
    return operator in _FUNCTIONS or any(
        is_quantized(item)
        for argument in arguments.values()
        for item in (argument if isinstance(argument, list | tuple) else (argument,))
    )


def convert_quantized(g: GraphContext) -> Any:
    """Converts such a call if none of the functions that know quantized tensors does.

    What only moves or selects elements is done by functions that know other tensors, between DequantizeLinear and
    QuantizeLinear.

    Raises:
        Unsupported: If the scale of the result is not known here.
    """
    return call_symbolic(_FUNCTIONS.get(g.node.op, _on_numbers), g, list(g.arguments.values()), {})


def _quantize(g: DuckContext, x: DuckValue, scale: DuckValue, zero: DuckValue, dtype: Any) -> DuckValue:
    return _quantized(g, x, [scale, zero], g.context.result_dtype)


def _quantize_per_channel(
    g: DuckContext, x: DuckValue, scales: DuckValue, zeros: DuckValue, axis: DuckValue, dtype: Any
) -> DuckValue:
    return _quantized(g, x, [scales, zeros, axis], g.context.result_dtype)


def _dequantize(g: DuckContext, x: DuckValue) -> DuckValue:
    return _numbers(g, x) if x.is_quantized else x


def _levels(g: DuckContext, x: DuckValue) -> DuckValue:
    return x.node().inputsAt(0)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aten::quantize_per_tensor": _quantize,
    "aten::quantize_per_channel": _quantize_per_channel,
    "aten::dequantize": _dequantize,
    "aten::int_repr": _levels,
}


def _on_numbers(g: DuckContext, *arguments: DuckValue) -> Any:
    node = g.context.node
    makes_levels = [output.type.dtype in _LEVELS for output in node.outputs]
    if any(makes_levels) and node.op.removeprefix("aten::") not in _KEEPS_LEVELS:
        raise Unsupported(
            "it gives a quantized tensor whose scale is known to PyTorch's kernel only; register a symbolic function that "
            "returns torch.onnx.symbolic_helper.quantize_helper(g, ...)"
        )
    given = {name: _with_numbers(g, argument) for name, argument in g.context.arguments.items()}
    made = g.call(node.qualified_name, **given)
    values = list(made) if isinstance(made, list | tuple) else [made]
    if not any(makes_levels):
        return values
    parts = next(value for value in arguments if value.is_quantized).node().inputs()
    return [_quantized(g, value, parts[1:], node.outputs[0].type.dtype) for value in values]


def _with_numbers(g: DuckContext, argument: Any) -> Any:
    if isinstance(argument, list | tuple):
        return [_with_numbers(g, item) for item in argument]
    return _numbers(g, argument) if is_quantized(argument) else argument


def _numbers(g: DuckContext, value: DuckValue) -> DuckValue:
    levels, scale, zero, *axis = value.node().inputs()
    made: DuckValue = g.op("DequantizeLinear", levels, scale, zero, axis_i=_known_axis(axis))
    return made


def _quantized(g: DuckContext, x: DuckValue, how: list[DuckValue], dtype: torch.dtype | None) -> DuckValue:
    levels = _LEVELS.get(dtype) if dtype is not None else None
    scale, zero, *axis = how
    if levels is None:
        raise Unsupported(f"QuantizeLinear makes 8-bit levels, not {dtype}")
    if axis and g.opset < _FIRST_WITH_AXIS:
        raise Unsupported(f"QuantizeLinear has an axis from opset {_FIRST_WITH_AXIS} on, the target is {g.opset}")
    scale, zero = (g.graph.value(emit.cast(g.context, item, kind)) for item, kind in ((scale, torch.float32), (zero, levels)))
    made = g.op("QuantizeLinear", x, scale, zero, axis_i=_known_axis(axis))
    return g.graph.tuple_of([made, scale, zero, *axis])


def _known_axis(axis: list[DuckValue]) -> int | None:
    return int(axis[0].item()) if axis else None
