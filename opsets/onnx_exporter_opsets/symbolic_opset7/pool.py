"""Pooling by windows of a given size."""

from __future__ import annotations

import math
from typing import Any

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


def _per_axis(values: list[int], rank: int) -> list[int]:
    return values * rank if len(values) == 1 else values


def _is_nothing(kernel: list[int], stride: list[int], padding: list[int]) -> bool:
    """Whether each window is one element, and each element has one."""
    return {*kernel, *stride} == {1} and not any(padding)


def _own_axes(x: Value, kernel: list[Size], spatial: int) -> list[int]:
    """The axes, counted from the end, along which the window is as long as `x` itself, as only the running model tells."""
    assert x.shape is not None
    sizes = zip(range(-spatial, 0), kernel * spatial if len(kernel) == 1 else kernel, strict=True)
    return [axis for axis, item in sizes if not isinstance(item, int) and shapes.element(item) == x.shape[axis]]


def _whole_axes(
    g: GraphContext,
    op: str,
    x: Value,
    spatial: int,
    kernel_size: list[Size],
    stride: list[Size],
    padding: list[int],
    dilation: list[int],
) -> tuple[Value, list[int], list[int]]:
    """Pools the axes along which the window is the whole input; returns what is left to do with windows of known sizes.

    There is one such window, whatever the stride.
    """
    kernel = [shapes.simplify(item) for item in kernel_size]
    steps = [shapes.simplify(item) for item in stride]
    if not all(isinstance(item, int) for item in [*kernel, *steps]):
        axes = _own_axes(x, kernel, spatial)
        kernel, steps = (values * spatial if len(values) == 1 else values for values in (kernel, steps or kernel))
        pads, reach = _per_axis(padding, spatial), _per_axis(dilation, spatial)
        for axis in axes:
            if pads[axis] or reach[axis] != 1:
                raise g.unsupported("padding or dilation of a window whose size is only known when the model runs")
            kernel[axis] = steps[axis] = 1
        if axes:
            count = [1 if axis in axes else shapes.size(g, x, axis) for axis in range(-spatial, 0)]
            pooled = g.call(f"aten::adaptive_{op}_pool{spatial}d", x, count)
            x = pooled[0] if isinstance(pooled, tuple | list) else pooled
    known = [[item for item in values if isinstance(item, int)] for values in (kernel, steps)]
    if known != [kernel, steps]:
        raise g.unsupported("kernel_size and stride must be constants, or kernel_size the input's own size along an axis")
    return x, known[0], known[1]


def _end_pads(
    g: GraphContext, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil_mode: bool
) -> list[int]:
    """Padding at the end of each axis with which windows rounded down are those that PyTorch takes.

    Rounding up is rounding down with ``stride - 1`` more. PyTorch then drops a last window that starts in the
    padding at the end; such a window exists only where that padding is at least a window long, so the
    padding is held below that. The sizes of the input play no part.
    """
    if not ceil_mode:
        return list(padding)
    windows = [step * (size - 1) + 1 for size, step in zip(kernel, dilation, strict=True)]
    return [min(pad + step - 1, window - 1) for pad, step, window in zip(padding, stride, windows, strict=True)]


def _lowest(dtype: torch.dtype | None) -> float | int:
    """What never wins against a number."""
    if dtype is not None and not dtype.is_floating_point:
        return int(torch.iinfo(dtype).min)
    return -math.inf


def _with_batch(g: GraphContext, x: Value, spatial: int) -> tuple[Value, bool]:
    batched = shapes.rank_of(g, x) == spatial + 2
    return (x if batched else emit.unsqueeze(g, x, [0])), batched


def _max_pool(
    g: GraphContext,
    spatial: int,
    x: Value,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
    with_indices: bool,
) -> tuple[Value, Value | None]:
    kernel = _per_axis(kernel_size, spatial)
    strides = _per_axis(stride, spatial) if stride else kernel
    begin, steps = _per_axis(padding, spatial), _per_axis(dilation, spatial)
    if not with_indices and _is_nothing(kernel, strides, begin):
        return x, None
    end = _end_pads(g, kernel, strides, begin, steps, ceil_mode)
    x, batched = _with_batch(g, x, spatial)
    dtype = x.dtype
    if dtype is not None and not dtype.is_floating_point and (g.opset < 12 or dtype not in (torch.int8, torch.uint8)):
        # float32 holds all small integers
        wide = dtype if dtype in (torch.int32, torch.int64) else torch.float32
        result, indices = _largest_of_windows(g, emit.cast(g, x, wide), kernel, strides, begin, end, steps, with_indices)
        result = emit.cast(g, result, dtype)
        if batched:
            return result, indices
        return emit.squeeze(g, result, [0]), None if indices is None else emit.squeeze(g, indices, [0])
    planes = x
    # runtimes want padding shorter than the kernel, which PyTorch's dilated windows may exceed
    far = any(pad >= size for pad, size in zip(end, kernel, strict=True))
    if (any(step != 1 for step in steps) and g.opset < 10) or (with_indices and (far or g.opset < 8)):
        result, indices = _largest_of_windows(g, x, kernel, strides, begin, end, steps, with_indices)
        if batched:
            return result, indices
        return emit.squeeze(g, result, [0]), None if indices is None else emit.squeeze(g, indices, [0])
    if far:
        x = emit.pad(g, x, [0, 0, *begin], [0, 0, *end], value=_lowest(x.dtype))
        begin, end = [0] * spatial, [0] * spatial
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": strides,
        "pads": [*begin, *end],
        "dilations": steps if any(step != 1 for step in steps) else None,
    }
    if not with_indices:
        result = g.op("MaxPool", x, **attributes)
        return (result if batched else emit.squeeze(g, result, [0])), None
    result, positions = g.op("MaxPool", x, outputs=2, **attributes)
    # ONNX counts from the start of the tensor, PyTorch from the start of each plane
    plane = shapes.scalar(g, shapes.total(g, [shapes.size(g, planes, axis + 2) for axis in range(spatial)]))
    indices = g.op("Sub", positions, g.op("Mul", g.op("Div", positions, plane), plane))
    if not batched:
        result, indices = emit.squeeze(g, result, [0]), emit.squeeze(g, indices, [0])
    return result, indices


def _largest_of_windows(
    g: GraphContext,
    x: Value,
    kernel: list[int],
    stride: list[int],
    begin: list[int],
    end: list[int],
    dilation: list[int],
    with_indices: bool,
) -> tuple[Value, Value | None]:
    """Max pooling by gathering every window, for what MaxPool cannot do; it takes the memory of all windows."""
    spatial = len(kernel)
    amounts: list[int | Value] = [item for pair in zip(reversed(begin), reversed(end), strict=True) for item in pair]
    padded = g.call("aten::constant_pad_nd", x, amounts, _lowest(x.dtype))
    windows = _windows(g, padded, kernel, stride, dilation)
    result = emit.reduce(g, "ReduceMax", windows, [-1], keepdims=False)
    if not with_indices:
        return result, None
    # Among equals the first element of the window wins, as in PyTorch
    best = g.op("ArgMax", windows, axis=-1, keepdims=0)
    planes = [shapes.size(g, x, axis + 2) for axis in range(spatial)]
    position: Value | None = None
    tap = best
    for axis in reversed(range(spatial)):
        size = g.constant(kernel[axis], dtype=torch.int64)
        rest = g.op("Div", tap, size)
        within = g.op("Sub", tap, g.op("Mul", rest, size))
        tap = rest
        count = shapes.size(g, result, axis + 2)
        starts = emit.unsqueeze(g, emit.arange(g, 0, count), range(1, spatial - axis))
        starts = g.op("Mul", starts, g.constant(stride[axis], dtype=torch.int64))
        place = g.op("Add", starts, g.op("Mul", within, g.constant(dilation[axis], dtype=torch.int64)))
        place = g.op("Sub", place, g.constant(begin[axis], dtype=torch.int64))
        weight = shapes.total(g, planes[axis + 1 :])
        place = place if weight == 1 else g.op("Mul", place, shapes.scalar(g, weight))
        position = place if position is None else g.op("Add", position, place)
    return result, position


def _windows(g: GraphContext, x: Value, kernel: list[int], stride: list[int], dilation: list[int]) -> Value:
    """The elements of every window on a last axis; the other spatial axes count windows."""
    spatial = len(kernel)
    for axis, (size, step, reach) in enumerate(zip(kernel, stride, dilation, strict=True)):
        place = 2 + 2 * axis
        length = shapes.size(g, x, place)
        starts = emit.arange(g, 0, shapes.subtract(g, length, (size - 1) * reach), step)
        offsets = g.constant([index * reach for index in range(size)], dtype=torch.int64)
        x = g.op("Gather", x, g.op("Add", emit.unsqueeze(g, starts, [1]), offsets), axis=place)
    counts, taps = range(2, 2 + 2 * spatial, 2), range(3, 3 + 2 * spatial, 2)
    x = emit.transpose(g, x, [0, 1, *counts, *taps])
    return emit.flatten_to(g, x, 2 + spatial, 1 + 2 * spatial) if spatial > 1 else x


def _register_max_pool(spatial: int) -> None:
    @table.op(f"aten::max_pool{spatial}d")
    def max_pool(
        g: GraphContext,
        self: Value,
        kernel_size: list[int | Value],
        stride: list[int | Value] = [],  # noqa: B006 - never written to
        padding: list[int] = [0],  # noqa: B006
        dilation: list[int] = [1],  # noqa: B006
        ceil_mode: bool = False,
    ) -> Value:
        """``aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], ...)``: MaxPool."""
        x, kernel, steps = _whole_axes(g, "max", self, spatial, kernel_size, stride, padding, dilation)
        return _max_pool(g, spatial, x, kernel, steps, padding, dilation, ceil_mode, False)[0]

    @table.op(f"aten::max_pool{spatial}d_with_indices")
    def max_pool_with_indices(
        g: GraphContext,
        self: Value,
        kernel_size: list[int | Value],
        stride: list[int | Value] = [],  # noqa: B006 - never written to
        padding: list[int] = [0],  # noqa: B006
        dilation: list[int] = [1],  # noqa: B006
        ceil_mode: bool = False,
    ) -> tuple[Value, Value | None]:
        """``aten::max_pool2d_with_indices(Tensor self, ...) -> (Tensor, Tensor)``: MaxPool with both outputs."""
        x, kernel, steps = _whole_axes(g, "max", self, spatial, kernel_size, stride, padding, dilation)
        if x is self:
            return _max_pool(g, spatial, x, kernel, steps, padding, dilation, ceil_mode, True)
        if {*kernel, *steps} != {1}:
            raise g.unsupported("positions of the largest of windows that are the whole input along some axes only")
        return g.call(f"aten::adaptive_max_pool{spatial}d", self, [1] * spatial)  # type: ignore[no-any-return]


def _avg_pool(
    g: GraphContext,
    spatial: int,
    x: Value,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Value:
    kernel = _per_axis(kernel_size, spatial)
    strides = _per_axis(stride, spatial) if stride else kernel
    begin = _per_axis(padding, spatial)
    counts_all = divisor_override is not None
    if not counts_all and _is_nothing(kernel, strides, begin):
        return x
    end = _end_pads(g, kernel, strides, begin, [1] * spatial, ceil_mode)
    x, batched = _with_batch(g, x, spatial)
    if not dtypes.is_floating(x.dtype):
        raise g.unsupported("averages of integers")
    if counts_all:
        x = emit.pad(g, x, [0, 0, *begin], [0, 0, *end])
        begin, end = [0] * spatial, [0] * spatial
    elif count_include_pad and any(begin) and begin != end:
        # The padding counts, what rounding up adds behind it does not; so the former is made part of the data.
        x = emit.pad(g, x, [0, 0, *begin], [0, 0, *begin])
        begin, end = [0] * spatial, [max(0, after - before) for before, after in zip(begin, end, strict=True)]
        count_include_pad = False
    include = count_include_pad and begin == end and any(begin)
    result = g.op(
        "AveragePool", x, kernel_shape=kernel, strides=strides, pads=[*begin, *end], count_include_pad=1 if include else None
    )
    if divisor_override is not None:
        result = g.op("Mul", result, g.constant(math.prod(kernel) / divisor_override, like=result))
    return result if batched else emit.squeeze(g, result, [0])


def _register_avg_pool(spatial: int) -> None:
    @table.op(f"aten::avg_pool{spatial}d")
    def avg_pool(
        g: GraphContext,
        self: Value,
        kernel_size: list[int | Value],
        stride: list[int | Value] = [],  # noqa: B006 - never written to
        padding: list[int] = [0],  # noqa: B006
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Value:
        """``aten::avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], ...)``: AveragePool."""
        x, kernel, steps = _whole_axes(g, "avg", self, spatial, kernel_size, stride, padding, [1])
        if x is not self and divisor_override is not None:
            raise g.unsupported("a divisor for a window whose size is only known when the model runs")
        return _avg_pool(g, spatial, x, kernel, steps, padding, ceil_mode, count_include_pad, divisor_override)


for _spatial in (1, 2, 3):
    _register_max_pool(_spatial)
    _register_avg_pool(_spatial)
