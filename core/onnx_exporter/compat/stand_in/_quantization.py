"""What ``torch.onnx.symbolic_helper`` has for quantized tensors: tuples of levels, scale and zero point, perhaps an axis."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from onnx_exporter._context import Unsupported
from onnx_exporter._values import Value
from onnx_exporter.compat.stand_in._values import _get_const, _is_none, _unpack_quantized_tensor
from onnx_exporter.helpers import dtypes, emit

_FIRST_WITH_AXIS = 13


def quantize_helper(g: Any, tensor: Any, scale: Any, zero_point: Any, axis: Any = None) -> Any:
    """Quantizes a tensor; the result is the tuple that stands for a quantized one."""
    scale = emit.cast(g, scale, torch.float32)
    zero = zero_point if zero_point.dtype in (torch.uint8, torch.int8) else emit.cast(g, zero_point, torch.uint8)
    levels = g.op("QuantizeLinear", tensor, scale, zero, axis_i=_axis(g, axis))
    return g.op("prim::TupleConstruct", levels, scale, zero, *([] if axis is None or _is_none(axis) else [axis]))


def dequantize_helper(g: Any, qtensor: Any, qdtype: Any = None) -> tuple[Any, Any, Any, Any]:
    """Returns the numbers of a quantized tensor, and its scale, zero point and axis (None without one)."""
    levels, scale, zero, *more = _unpack_quantized_tensor(qtensor)
    axis = more[0] if more else None
    kind = levels.dtype if qdtype is None else dtypes.from_onnx(qdtype)
    scale = emit.cast(g, scale, torch.float32)
    levels, zero = (emit.cast(g, value, kind or torch.uint8) for value in (levels, zero))
    return g.op("DequantizeLinear", levels, scale, zero, axis_i=_axis(g, axis)), scale, zero, axis


def requantize_bias_helper(g: Any, bias: Any, input_scale: Any, weight_scale: Any, axis: Any = None) -> Any:
    """Quantizes a bias as PyTorch's kernels do inside: to 32 bits, by the product of both scales, around 0."""
    scale = g.op("Mul", weight_scale, input_scale)
    zero = g.op("ConstantOfShape", g.op("Shape", scale), value_t=torch.zeros(1, dtype=torch.int32))
    levels = emit.cast(g, g.op("Round", g.op("Div", bias, scale)), torch.int32)
    return g.op("prim::TupleConstruct", levels, scale, zero, *([] if axis is None or _is_none(axis) else [axis]))


def quantized_args(
    *arg_q_descriptors: bool, scale: float | None = None, zero_point: int | None = None, quantize_output: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Has a function for numbers take quantized tensors where its parameters are marked.

    Where it is given one, its result is quantized too: by the given scale and zero point, else by those of the first.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def converted(g: Any, *args: Any, **kwargs: Any) -> Any:
            marks = (*arg_q_descriptors, *[False] * len(args))
            found: list[tuple[Any, ...]] = []
            given = []
            for argument, is_marked in zip(args, marks, strict=False):
                if is_marked and isinstance(argument, Value) and getattr(argument, "is_quantized", False):
                    found.append(dequantize_helper(g, argument))
                    argument = found[-1][0]
                given.append(argument)
            made = function(g, *given, **kwargs)
            if not found or not quantize_output:
                return made
            _, first_scale, first_zero, _ = found[0]
            by = first_scale if scale is None else g.op("Constant", value_t=torch.tensor(scale))
            around = first_zero
            if zero_point is not None:
                around = g.op("Constant", value_t=torch.tensor(zero_point, dtype=first_zero.dtype))
            return quantize_helper(g, made, by, around)

        return converted

    return decorate


def _axis(g: Any, axis: Any) -> int | None:
    if axis is None or _is_none(axis):
        return None
    if g.opset < _FIRST_WITH_AXIS:
        raise Unsupported(f"QuantizeLinear has an axis from opset {_FIRST_WITH_AXIS} on, the target is {g.opset}")
    return int(_get_const(axis, "i", "axis"))
