"""What functions of ``torch.onnx.symbolic_helper`` make of a call: mostly, whatever converts an operator of ATen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from onnx_exporter._context import Unsupported
from onnx_exporter._values import Value
from onnx_exporter.compat.stand_in._types import JitScalarType
from onnx_exporter.compat.stand_in._values import _get_const, _get_tensor_sizes, _is_none, _known
from onnx_exporter.helpers import dtypes, emit, shapes

# Types


def _if_scalar_type_as(self: Any, tensor: Any) -> Any:
    return self


def _maybe_cast_to_type(g: Any, value: Any, jit_type: Any) -> Any:
    return emit.cast(g, value, jit_type.dtype())


def _maybe_cast_reduce_op_input(g: Any, self: Any) -> Any:
    return emit.cast(g, self, torch.int64) if dtypes.is_integral(self.dtype, include_bool=True) else self


def _op_with_optional_float_cast(g: Any, op_name: str, *args: Any, **kwargs: Any) -> Any:
    """A node that may know floats only: integers are cast before it, and back."""
    kwargs.pop("opset_before", None)
    kwargs.pop("target_float_t", None)
    first = args[0].dtype
    if first is None or dtypes.is_floating(first):
        return g.op(op_name, *args, **kwargs)
    floats = [item if item is None or _is_none(item) else emit.cast(g, item, torch.float32) for item in args]
    return emit.cast(g, g.op(op_name, *floats, **kwargs), first)


def _generate_wrapped_number(g: Any, scalar: Any) -> Any:
    return g.op("Constant", value_t=torch.tensor(scalar, dtype=torch.float64 if isinstance(scalar, float) else None))


def _optional_input_placeholder_tensor(g: Any) -> Any:
    return g.op("prim::Constant")


# Sizes and places


def _size_helper(g: Any, self: Any, dim: Any) -> Any:
    return g.call("aten::size.int", self, _get_const(dim, "i", "dim"))


def _numel_helper(g: Any, self: Any) -> Any:
    return g.op("Size", self)


def _select_helper(g: Any, self: Any, dim: Any, index: Any, apply_reshape: bool = True) -> Any:
    """The elements at a place, or at several; the axis is kept unless `apply_reshape` is False and there is one place."""
    places = index if isinstance(index, Value) else g.constant(index)
    if apply_reshape and places.rank in (0, None):
        places = emit.reshape(g, places, [-1])
    return g.op("Gather", self, places, axis_i=_get_const(dim, "i", "dim"))


def _scatter_helper(g: Any, self: Any, dim: Any, index: Any, src: Any) -> Any:
    return g.call("aten::scatter.src", self, dim, index, src)


def _unbind_helper(g: Any, self: Any, dim: Any, _outputs: int | None) -> Any:
    parts = g.call("aten::unbind.int", self, dim)
    return parts[0] if _outputs == 1 else parts


def _flatten_helper(g: Any, input: Any, start_dim: int, end_dim: int, dim: int) -> Any:
    return emit.flatten_to(g, input, start_dim, end_dim)


def _repeat_interleave_split_helper(g: Any, self: Any, reps: int, dim: int) -> list[Any]:
    return list(emit.split(g, self, dim, [1] * reps))


def _repeat_interleave_single_value_repeat_helper(g: Any, self: Any, repeats: Any, dim: Any) -> Any:
    return g.call("aten::repeat_interleave.self_int", self, repeats, dim)


def _sort_helper(g: Any, input: Any, dim: Any, descending: bool = True, out: Any = None) -> Any:
    return g.call("aten::sort", input, dim=dim, descending=descending)


# Comparison and reduction


def _lt_helper(g: Any, input: Any, other: Any) -> Any:
    return g.call("aten::lt", input, other)


def _extremum(name: str) -> Callable[..., Any]:
    """The smallest or largest element; of a whole tensor, of two tensors, or along an axis, with its place."""

    def helper(g: Any, self: Any, dim_or_y: Any = None, keepdim: Any = None) -> Any:
        if _is_none(dim_or_y):
            return g.call(f"aten::{name}", self)
        if _is_none(keepdim):
            return g.call(f"aten::{name}.other", self, dim_or_y)
        return g.call(f"aten::{name}.dim", self, dim_or_y, keepdim)

    return helper


_max_helper, _min_helper = _extremum("max"), _extremum("min")


def _argmin_argmax_helper(g: Any, input: Any, dim: Any, keepdim: Any, op_name: str) -> Any:
    return g.call(f"aten::{op_name.lower()}", input, dim, keepdim)


def _var_mean_helper(g: Any, input: Any, dim: Any, correction: Any, keepdim: Any) -> Any:
    return g.call("aten::var_mean.correction", input, dim, correction=correction, keepdim=keepdim)


def _linalg_vector_norm_helper(g: Any, self: Any, ord: float, dim: Any, keepdim: Any, dtype: Any) -> Any:
    return g.call("aten::linalg_vector_norm", self, ord, dim, keepdim, dtype)


def _handle_reduce_dim_none(g: Any, self: Any, op_name: str) -> Any:
    return emit.reduce(g, op_name, self, None, False)


def _reduce_op_symbolic_helper(onnx_op_name: str, allow_multi_dim_support: bool = True) -> Callable[..., Any]:
    def symbolic(g: Any, self: Any, dim: Any = None, keepdim: Any = None) -> Any:
        reduced = _maybe_cast_reduce_op_input(g, self)
        if _is_none(dim):
            return _handle_reduce_dim_none(g, reduced, onnx_op_name)
        axes = _get_const(dim, "is" if allow_multi_dim_support else "i", "dim")
        axes = axes if isinstance(axes, list) else [axes]
        return emit.reduce(g, onnx_op_name, reduced, axes, bool(_get_const(keepdim, "i", "keepdim")))

    return symbolic


def _reduce_with_dtype_helper(onnx_op: str, name: str, allow_multi_dim_support: bool = True) -> Callable[..., Any]:
    def symbolic(g: Any, self: Any, *rest: Any) -> Any:
        *how, dtype = rest
        made = _reduce_op_symbolic_helper(onnx_op, allow_multi_dim_support)
        wanted = _get_const(dtype, "i", "dtype")
        given = self if wanted is None else emit.cast(g, self, JitScalarType(wanted).dtype())
        return made(g, given, *how)

    return symbolic


# Layers


def _batchnorm_helper(g: Any, input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any) -> tuple[Any, ...]:
    """Scale, bias and statistics, those that are left out being those that change nothing."""
    defaults = {0: 1.0, 1: 0.0, 2: 0.0, 3: 1.0}
    given = (weight, bias, running_mean, running_var)
    if not any(_is_none(item) for item in given):
        return given
    sizes = _get_tensor_sizes(input)
    channels = sizes[1] if sizes is not None and len(sizes) > 1 else None
    if channels is None:
        raise Unsupported("batch_norm: the number of channels is unknown")
    dtype = input.dtype or torch.float32
    return tuple(
        g.op("Constant", value_t=torch.full((channels,), defaults[index], dtype=dtype)) if _is_none(item) else item
        for index, item in enumerate(given)
    )


def _avgpool_helper(
    tuple_fn: Callable[[Any], Sequence[int]], padding: Any, kernel_size: Any, stride: Any, divisor_override: Any, name: str
) -> tuple[int, ...]:
    if divisor_override is not None and not _is_none(divisor_override):
        raise Unsupported(f"{name}: divisor_override")
    return tuple(tuple_fn(padding))


# Resizing


def _interpolate_warning(interpolate_mode: str) -> None:
    warnings.warn(f"{interpolate_mode}: sizes are rounded by ONNX's rules, not PyTorch's", stacklevel=2)


def _interpolate_get_scales_if_available(g: Any, scales: Any) -> Any:
    """The scales of all axes, if those of the last ones are numbers; None else."""
    first = scales[0] if scales else None
    if first is None or _is_none(first) or not isinstance(_known(first), list | torch.Tensor):
        return None
    numbers = _get_const(first, "fs", "scale_factors")
    return g.op("Constant", value_t=torch.tensor([1.0, 1.0, *numbers], dtype=torch.float32))


def _get_interpolate_attributes(g: Any, mode: str, args: Sequence[Any]) -> tuple[Any, Any]:
    """Scales, and whether corners are aligned: what follows the size in the arguments of ``aten::upsample_...``."""
    align_corners, scales = (None, args) if mode == "nearest" else (args[0], args[1:])
    return _interpolate_get_scales_if_available(g, scales), align_corners


def _interpolate_get_scales(g: Any, scale_factor: Any, dim: int) -> Any:
    ones = g.op("Constant", value_t=torch.ones(2))
    if (isinstance(scale_factor, Value) and (scale_factor.rank or 0) > 0) or isinstance(_known(scale_factor), list):
        return g.op("Concat", ones, emit.cast(g, g.graph.argument(scale_factor), torch.float32), axis_i=0)
    number = emit.cast(g, emit.reshape(g, g.graph.argument(scale_factor), [1]), torch.float32)
    return g.op("Concat", ones, *[number] * (dim - 2), axis_i=0)


def _interpolate_size_to_scales(g: Any, input: Any, output_size: Any, dim: int) -> Any:
    sizes = shapes.vector(g, _known(output_size)) if isinstance(_known(output_size), list) else output_size
    if sizes.rank == 0:
        sizes = g.op("Concat", *[emit.reshape(g, sizes, [1])] * (dim - 2), axis_i=0)
    before = shapes.vector(g, shapes.sizes(g, input)[2:])
    ratio = g.op("Div", emit.cast(g, sizes, torch.float32), emit.cast(g, before, torch.float32))
    return g.op("Concat", g.op("Constant", value_t=torch.ones(2)), ratio, axis_i=0)


def _interpolate_get_scales_and_mode(
    g: Any, input: Any, size: Any, scale_factor: Any, mode: Any, align_corners: Any
) -> tuple[Any, str]:
    name = str(_get_const(mode, "s", "mode"))
    name = "linear" if "linear" in name else "cubic" if "cubic" in name else name
    dim = shapes.rank_of(g, input)
    if not _is_none(size):
        return _interpolate_size_to_scales(g, input, size, dim), name
    if _is_none(scale_factor):
        raise Unsupported("interpolate: neither a size nor a scale is given")
    return _interpolate_get_scales(g, scale_factor, dim), name


def _interpolate_helper(name: str, dim: int, interpolate_mode: str) -> Callable[..., Any]:
    def symbolic(g: Any, input: Any, output_size: Any, *args: Any) -> Any:
        return g.call(f"aten::{name}", input, output_size, *args)

    return symbolic


# Refusals


def _block_list_in_opset(name: str) -> Callable[..., NoReturn]:
    def symbolic(*args: Any, **kwargs: Any) -> NoReturn:
        raise Unsupported(f"{name} cannot be expressed at this opset")

    return symbolic


def _apply_params(*args: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Any]:
    return lambda function: function(*args, **kwargs)
