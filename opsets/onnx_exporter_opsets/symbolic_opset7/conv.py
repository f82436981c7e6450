"""Convolutions of every rank, transposed ones included."""

from __future__ import annotations

from typing import Any

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)


def _per_axis(values: list[int], rank: int) -> list[int]:
    return values * rank if len(values) == 1 else values


@table.op("aten::_convolution", "aten::convolution")
def convolution(
    g: GraphContext,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Value:
    """``aten::convolution(Tensor input, Tensor weight, Tensor? bias, ...)``: Conv or ConvTranspose.

    An input without batch axis gets one for the time being.
    """
    if transposed and input.dtype is torch.bfloat16:  # runtimes have no kernel for it
        wide = [emit.cast(g, item, torch.float32) if item is not None else None for item in (input, weight, bias)]
        made = g.call("aten::convolution", *wide, stride, padding, dilation, True, output_padding, groups)
        return emit.cast(g, made, torch.bfloat16)
    spatial = shapes.rank_of(g, weight) - 2
    batched = shapes.rank_of(g, input) == spatial + 2
    x = input if batched else emit.unsqueeze(g, input, [0])
    pads = _per_axis(padding, spatial)
    kernel = [shapes.known_size(weight, axis + 2) for axis in range(spatial)]
    common: dict[str, Any] = {
        "strides": _per_axis(stride, spatial),
        "pads": pads if len(pads) == 2 * spatial else pads + pads,
        "dilations": _per_axis(dilation, spatial),
        "group": groups,
        # Conv takes it from the weight, but a weight computed when the model runs may have no known sizes
        "kernel_shape": None if None in kernel else kernel,
    }
    if transposed:
        extra = _per_axis(output_padding, spatial)
        if any(more >= step for more, step in zip(extra, common["strides"], strict=True)):
            result = _transposed_further(g, x, weight, bias, extra, common)
        else:
            result = g.op("ConvTranspose", x, weight, bias, output_padding=extra if any(extra) else None, **common)
    else:
        result = g.op("Conv", x, weight, bias, **common)
    return result if batched else emit.squeeze(g, result, [0])


def _transposed_further(
    g: GraphContext, x: Value, weight: Value, bias: Value | None, extra: list[int], common: dict[str, Any]
) -> Value:
    """ConvTranspose whose `output_padding` is as large as a stride, which PyTorch takes with a dilation and runtimes do not.

    At the end as much less is cut off; what is wanted beyond the end of all windows is padded, before the bias is added.
    """
    spatial = len(extra)
    begin, end = common["pads"][:spatial], common["pads"][spatial:]
    result = g.op("ConvTranspose", x, weight, **{**common, "pads": [0] * (2 * spatial)})
    for axis, (first, cut, more) in enumerate(zip(begin, end, extra, strict=True)):
        last = more - cut if more < cut else 2**63 - 1
        result = emit.slice_(g, result, axis + 2, first, last) if first or more < cut else result
    beyond = [max(more - cut, 0) for cut, more in zip(end, extra, strict=True)]
    if any(beyond):
        result = emit.pad(g, result, [0] * (spatial + 2), [0, 0, *beyond])
    return result if bias is None else g.op("Add", result, emit.unsqueeze(g, bias, range(1, spatial + 1)))


@table.op("aten::conv1d", "aten::conv2d", "aten::conv3d")
def conv(
    g: GraphContext,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: list[int] = [1],  # noqa: B006 - never written to
    padding: list[int] = [0],  # noqa: B006
    dilation: list[int] = [1],  # noqa: B006
    groups: int = 1,
) -> Value:
    """``aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=1, ...)``: Conv."""
    return g.call("aten::convolution", input, weight, bias, stride, padding, dilation, False, [0], groups)  # type: ignore[no-any-return]


@table.op("aten::_convolution_mode", "aten::conv1d.padding", "aten::conv2d.padding", "aten::conv3d.padding")
def conv_padding(
    g: GraphContext,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: list[int],
    padding: str,
    dilation: list[int],
    groups: int,
) -> Value:
    """``aten::conv2d.padding(..., str padding="valid")``: Conv with the pads that the word stands for.

    For ``"same"`` a kernel whose size is only known when the model runs leaves the pads to the runtime.
    """
    spatial = shapes.rank_of(g, weight) - 2
    steps = _per_axis(dilation, spatial)
    pads = [0] * spatial
    if padding == "same":
        before, after = [], []
        for axis, step in enumerate(steps):
            kernel = shapes.known_size(weight, axis + 2)
            if kernel is None:
                if any(step != 1 for step in steps):  # ONNX Runtime dilates only where the pads are given
                    raise g.unsupported("padding='same' and dilation with a kernel whose size is only known when the model runs")
                batched = shapes.rank_of(g, input) == spatial + 2
                x = input if batched else emit.unsqueeze(g, input, [0])
                result = g.op("Conv", x, weight, bias, auto_pad="SAME_UPPER", dilations=steps, group=groups)
                return result if batched else emit.squeeze(g, result, [0])
            both = step * (kernel - 1)
            before.append(both // 2)
            after.append(both - both // 2)
        pads = before + after
    return g.call("aten::convolution", input, weight, bias, stride, pads, dilation, False, [0], groups)  # type: ignore[no-any-return]


@table.op("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d")
def conv_transpose(
    g: GraphContext,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: list[int] = [1],  # noqa: B006 - never written to
    padding: list[int] = [0],  # noqa: B006
    output_padding: list[int] = [0],  # noqa: B006
    groups: int = 1,
    dilation: list[int] = [1],  # noqa: B006
) -> Value:
    """``aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, ...)``: ConvTranspose."""
    return g.call("aten::convolution", input, weight, bias, stride, padding, dilation, True, output_padding, groups)  # type: ignore[no-any-return]


@table.op("aten::conv_tbc")
def conv_tbc(g: GraphContext, self: Value, weight: Value, bias: Value, pad: int = 0) -> Value:
    """``aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0)``: Conv of time-major sequences."""
    x, kernel = emit.transpose(g, self, [1, 2, 0]), emit.transpose(g, weight, [2, 1, 0])
    result = g.call("aten::convolution", x, kernel, bias, [1], [pad], [1], False, [0], 1)
    return emit.transpose(g, result, [2, 0, 1])
