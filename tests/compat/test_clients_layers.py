"""Layers with symbolic functions in the manner of many projects: registered for PyTorch's operators, or in an autograd.Function.

Each is written here as the projects named write theirs.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.onnx import symbolic_helper, symbolic_opset9, symbolic_opset11
from torch.onnx.symbolic_helper import parse_args

from onnx_exporter.compat import install

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, op_types, output_types, registered, verified

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
X = torch.randn(2, 4, 6, 6)


# mmdeploy and mmcv: functions registered for PyTorch's operators


@parse_args("v", "is", "is")
def roll(g: Any, rolled: Any, shifts: Any, dims: Any) -> Any:
    for shift, dim in zip(shifts, dims, strict=True):
        parts = []
        for start, end in ((-shift, 2**31), (0, -shift)):
            parts.append(symbolic_helper._slice_helper(g, rolled, axes=[dim], starts=[start], ends=[end]))
        rolled = g.op("Concat", *parts, axis_i=dim)
    return rolled


@BOTH
def test_roll(capture: str) -> None:
    with registered({"aten::roll": roll}):
        result = verified(lambda x: x.roll([1, 2], [2, 3]), X, opsets=[9, 13, 18], capture=capture)
    assert op_types(result) == ["Slice", "Slice", "Concat"] * 2


@parse_args("v", "is", "v", "v", "f", "i")
def layer_norm(g: Any, input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, cudnn_enable: int) -> Any:
    axes = [-i for i in range(len(normalized_shape), 0, -1)]
    two = symbolic_helper._generate_wrapped_number(g, 2.0)
    epsilon = symbolic_helper._generate_wrapped_number(g, eps)
    mean = g.op("ReduceMean", input, axes_i=axes)
    numerator = symbolic_opset9.sub(g, input, mean)
    variance = g.op("ReduceMean", symbolic_opset9.pow(g, numerator, two), axes_i=axes)
    denominator = symbolic_opset9.sqrt(g, symbolic_opset9.add(g, variance, epsilon))
    layer = g.op("Div", numerator, denominator)
    if not (weight is None or symbolic_helper._is_none(weight)):
        layer = symbolic_opset9.mul(g, layer, weight)
    if not (bias is None or symbolic_helper._is_none(bias)):
        layer = symbolic_opset9.add(g, layer, bias)
    return layer


@BOTH
@pytest.mark.parametrize("affine", [True, False])
def test_layer_norm(capture: str, affine: bool) -> None:
    with registered({"aten::layer_norm": layer_norm}):
        result = verified(nn.LayerNorm(6, elementwise_affine=affine), X, opsets=[9, 16], capture=capture)
    assert op_types(result)[:3] == ["ReduceMean", "Sub", "Pow"] and len(op_types(result)) == (9 if affine else 7)


def squeeze(g: Any, self: Any, dim: Any = None) -> Any:
    if dim is None:
        dims = [i for i, size in enumerate(symbolic_helper._get_tensor_sizes(self)) if size == 1]
    else:
        dims = [symbolic_helper._get_const(dim, "i", "dim")]
    return symbolic_helper._squeeze_helper(g, self, dims)


def test_squeeze() -> None:
    with registered({"aten::squeeze": squeeze}):
        verified(lambda x: x[:, :1].squeeze(1), X, opsets=[9, 13])
        verified(lambda x: x[:, :1].squeeze(), X, opsets=[9, 13], dynamic=False)


def hardsigmoid(g: Any, self: Any) -> Any:
    return g.op("HardSigmoid", self, alpha_f=1 / 6)


def gelu(g: Any, self: Any, *approximate: Any) -> Any:
    return g.op("mmdeploy::Gelu", self)


@parse_args("v", "i", "v", "v", "f", "i")
def group_norm(g: Any, input: Any, num_groups: int, weight: Any, bias: Any, eps: float, cudnn_enabled: int) -> Any:
    channels = symbolic_helper._get_tensor_dim_size(input, 1)
    assert channels is not None and channels % num_groups == 0
    rank = symbolic_helper._get_tensor_rank(input)
    shape = g.op("Constant", value_t=torch.LongTensor([0, num_groups, -1]))
    flat = symbolic_opset9.reshape(g, input, shape)
    ones = g.op("Constant", value_t=torch.tensor([1.0] * num_groups, dtype=torch.float))
    zeros = g.op("Constant", value_t=torch.tensor([0.0] * num_groups, dtype=torch.float))
    normed = g.op("InstanceNormalization", flat, ones, zeros, epsilon_f=eps)
    back = symbolic_opset9.reshape(g, normed, g.op("Shape", input))
    axes = list(range(1, rank - 1))
    scaled = symbolic_opset9.mul(g, back, symbolic_helper._unsqueeze_helper(g, weight, axes))
    return symbolic_opset9.add(g, scaled, symbolic_helper._unsqueeze_helper(g, bias, axes))


@BOTH
def test_activations_and_norms(capture: str) -> None:
    with registered({"aten::hardsigmoid": hardsigmoid, "aten::group_norm": group_norm, "aten::gelu": gelu}, 13):
        assert op_types(verified(F.hardsigmoid, X, opsets=[13], capture=capture)) == ["HardSigmoid"]
        assert "InstanceNormalization" in op_types(verified(nn.GroupNorm(2, 4), X, opsets=[13, 18], capture=capture))
        result = exported(F.gelu, X, opset_version=13, capture=capture)
    assert op_types(result) == ["mmdeploy::Gelu"] and output_types(result) == [("FLOAT", [2, 4, 6, 6])]


@parse_args("v", "v", "i", "i", "i")
def grid_sampler(g: Any, input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Any:
    return g.op(
        "mmdeploy::grid_sampler",
        input,
        grid,
        interpolation_mode_i=interpolation_mode,
        padding_mode_i=padding_mode,
        align_corners_i=align_corners,
    )


def adaptive_avg_pool2d(g: Any, input: Any, output_size: Any) -> Any:
    sizes = symbolic_helper._maybe_get_const(output_size, "is")
    if sizes == [1, 1]:
        return g.op("GlobalAveragePool", input)
    return g.op("mmdeploy::AdaptiveAvgPool2d", input, output_size_i=sizes)


def topk(g: Any, self: Any, k: Any, dim: Any, largest: Any, sorted: Any, out: Any = None) -> Any:
    k = symbolic_helper._get_const(k, "i", "topk")
    dim, largest = (symbolic_helper._get_const(value, kind, "x") for value, kind in ((dim, "i"), (largest, "b")))
    count = g.op("Constant", value_t=torch.tensor([k], dtype=torch.int64))
    return g.op("TopK", self, count, axis_i=dim, largest_i=int(largest), sorted_i=1, outputs=2)


@parse_args("v", "i")
def cummax(g: Any, input: Any, dim: int) -> Any:
    return g.op("mmcv::cummax", input, dim_i=dim, outputs=2)


def interpolate(g: Any, input: Any, output_size: Any, *args: Any) -> Any:
    sizes = symbolic_helper._get_tensor_sizes(input)
    scales = symbolic_helper._get_const(args[-1], "fs", "scales")
    assert len(scales) == len(sizes) - 2
    empty = g.op("Constant", value_t=torch.tensor([], dtype=torch.float32))
    factors = g.op("Constant", value_t=torch.tensor([1.0, 1.0, *scales]))
    return g.op(
        "Resize", input, empty, factors, coordinate_transformation_mode_s="asymmetric", mode_s="nearest", nearest_mode_s="floor"
    )


@BOTH
def test_vision_operators(capture: str) -> None:
    functions = {
        "aten::grid_sampler": grid_sampler,
        "aten::adaptive_avg_pool2d": adaptive_avg_pool2d,
        "aten::topk": topk,
        "aten::cummax": cummax,
        "aten::upsample_nearest2d": interpolate,
    }
    with registered(functions, 16):
        result = exported(lambda x, y: F.grid_sample(x, y, align_corners=True), X, torch.rand(2, 3, 3, 2), capture=capture)
        assert attributes(result, "grid_sampler") == {"interpolation_mode": 0, "padding_mode": 0, "align_corners": 1}
        assert op_types(verified(nn.AdaptiveAvgPool2d(1), X, capture=capture)) == ["GlobalAveragePool"]
        result = exported(nn.AdaptiveAvgPool2d((3, 2)), X, capture=capture)
        assert list(attributes(result, "AdaptiveAvgPool2d")["output_size"]) == [3, 2]
        assert op_types(verified(lambda x: x.topk(3, 1, False), X, capture=capture)) == ["TopK"]
        result = exported(lambda x: x.cummax(1), X, capture=capture)
        assert output_types(result) == [("FLOAT", [2, 4, 6, 6]), ("INT64", [2, 4, 6, 6])]
        assert op_types(verified(lambda x: F.interpolate(x, scale_factor=2), X, capture=capture)) == ["Resize"]


# TI's models: functions that are registered for the time of one export


def unsafe_view(g: Any, self: Any, size: Any) -> Any:
    return symbolic_opset9.view(g, self, size)


def linear(g: Any, input: Any, weight: Any, bias: Any) -> Any:
    made = g.op("MatMul", input, symbolic_opset9.t(g, weight))
    return made if symbolic_helper._is_none(bias) else g.op("Add", made, bias)


@BOTH
def test_views_of_sizes_that_vary(capture: str) -> None:
    """A list of sizes, some of them known when the file runs, is one input."""
    with registered({"aten::view": unsafe_view, "aten::reshape": unsafe_view, "aten::linear": linear}):
        result = verified(lambda x: x.view(x.shape[0], x.shape[1] * 3, -1), X, opsets=[9, 18], capture=capture)
        assert op_types(result)[-1] == "Reshape"
        assert op_types(verified(nn.Linear(6, 2, bias=False), X, capture=capture)) == ["Transpose", "MatMul"]


# transformers (DeBERTa, SEW-D)


class XSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Any, mask: Any, dim: int) -> Any:
        hidden = ~mask.to(torch.bool)
        output = torch.softmax(input.masked_fill(hidden, torch.tensor(torch.finfo(input.dtype).min)), dim)
        return output.masked_fill(hidden, 0)

    @staticmethod
    def symbolic(g: Any, self: Any, mask: Any, dim: int) -> Any:
        cast_mask = g.op("Cast", mask, to_i=symbolic_helper.cast_pytorch_to_onnx["Long"])
        one = g.op("Constant", value_t=torch.tensor(1, dtype=torch.int64))
        r_mask = g.op("Cast", g.op("Sub", one, cast_mask), to_i=symbolic_helper.cast_pytorch_to_onnx["Bool"])
        low = g.op("Constant", value_t=torch.tensor(torch.finfo(self.type().dtype()).min))
        output = symbolic_opset9.masked_fill(g, self, r_mask, low)
        output = symbolic_opset9.softmax(g, output, dim)
        return symbolic_opset9.masked_fill(g, output, r_mask, g.op("Constant", value_t=torch.tensor(0, dtype=torch.uint8)))


@BOTH
def test_xsoftmax(capture: str) -> None:
    mask = torch.randint(0, 2, (2, 4, 6, 6))
    result = verified(lambda x, m: XSoftmax.apply(x, m, -1), X, mask, opsets=[11, 13, 18], capture=capture)
    assert op_types(result).count("Where") == 2


# timm, NeMo


class SwishJit(torch.autograd.Function):
    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        return g.op("Mul", x, g.op("Sigmoid", x))

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.mul(torch.sigmoid(x))


class HardSwishJit(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * F.relu6(x + 3) / 6

    @staticmethod
    def symbolic(g: Any, self: Any) -> Any:
        moved = g.op("Add", self, g.op("Constant", value_t=torch.tensor(3, dtype=torch.float)))
        low = g.op("Constant", value_t=torch.tensor(0, dtype=torch.float))
        high = g.op("Constant", value_t=torch.tensor(6, dtype=torch.float))
        clipped = g.op("Clip", moved, low, high)
        return g.op("Mul", self, g.op("Div", clipped, g.op("Constant", value_t=torch.tensor(6, dtype=torch.float))))


class GeLUFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: Any, bias: Any) -> Any:
        return F.gelu(input + bias)

    @staticmethod
    def symbolic(g: Any, input: Any, bias: Any) -> Any:
        x = symbolic_opset9.add(g, input, bias)
        inner = g.op("Erf", g.op("Div", x, torch.tensor(math.sqrt(2.0))))
        return g.op("Mul", g.op("Mul", x, torch.tensor(0.5)), symbolic_opset9.add(g, inner, torch.tensor(1.0)))


@BOTH
def test_activations(capture: str) -> None:
    assert op_types(verified(SwishJit.apply, X, opsets=[7, 18], capture=capture)) == ["Sigmoid", "Mul"]
    assert op_types(verified(HardSwishJit.apply, X, opsets=[11, 18], capture=capture)) == ["Add", "Clip", "Div", "Mul"]
    bias = torch.randn(6)
    assert "Erf" in op_types(verified(lambda x: GeLUFunction.apply(x, bias), X, opsets=[9, 18], capture=capture))


# Megatron-LM, DeepSpeed: the symbolic function runs plain Python, and mostly returns its input


class CopyToModelParallelRegion(torch.autograd.Function):
    @staticmethod
    def symbolic(graph: Any, input_: Any, group: Any = None) -> Any:
        return input_

    @staticmethod
    def forward(ctx: Any, input_: Any, group: Any = None) -> Any:
        ctx.group = group
        return input_


class GatherTokens(torch.autograd.Function):
    @staticmethod
    def symbolic(graph: Any, input_: Any, world: int) -> Any:
        return input_ if world == 1 else graph.op("Concat", *[input_] * world, axis_i=-1)

    @staticmethod
    def forward(ctx: Any, input_: Any, world: int) -> Any:
        return torch.cat([input_] * world, -1)


@BOTH
def test_parallel_regions(capture: str) -> None:
    class Group:
        """What is no tensor reaches the symbolic function as it is."""

    def forward(x: Any) -> Any:
        return GatherTokens.apply(CopyToModelParallelRegion.apply(x, Group()), 2).relu()

    assert op_types(verified(forward, X, capture=capture)) == ["Concat", "Relu"]
    assert op_types(verified(lambda x: CopyToModelParallelRegion.apply(x), X, capture=capture)) == ["Identity"]


# onnx2torch: any ONNX operator, named by an argument


class DefaultExportToOnnx(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, run: Any, onnx_op_type: str, onnx_attrs: dict[str, Any], *args: Any) -> Any:
        return run(*args)

    @staticmethod
    def symbolic(g: Any, run: Any, onnx_op_type: str, onnx_attrs: dict[str, Any], *args: Any) -> Any:
        return g.op(onnx_op_type, *args, **onnx_attrs)


@BOTH
def test_any_operator(capture: str) -> None:
    def pad(x: Any) -> Any:
        return DefaultExportToOnnx.apply(lambda x: F.leaky_relu(x, 0.3), "LeakyRelu", {"alpha_f": 0.3}, x)

    assert op_types(verified(pad, X, capture=capture)) == ["LeakyRelu"]

    def concat(x: Any) -> Any:
        return DefaultExportToOnnx.apply(lambda *xs: torch.cat(xs, 1), "Concat", {"axis_i": 1}, x, x * 2)

    assert op_types(verified(concat, X, capture=capture)) == ["Mul", "Concat"]


# TinyNN: repeat_interleave; detectron2: a cast


def repeat_interleave(g: Any, self: Any, repeats: Any, dim: Any = None, output_size: Any = None) -> Any:
    count = symbolic_helper._get_const(repeats, "i", "repeats")
    axis = symbolic_helper._get_const(dim, "i", "dim")
    sizes = symbolic_helper._get_tensor_sizes(self)
    rank = len(sizes)
    widened = symbolic_helper._unsqueeze_helper(g, self, [axis + 1])
    factors = [count if position == axis + 1 else 1 for position in range(rank + 1)]
    tiled = g.op("Tile", widened, g.op("Constant", value_t=torch.tensor(factors)))
    shape = [-1 if position == axis else size for position, size in enumerate(sizes)]
    assert None not in shape
    return symbolic_helper._reshape_helper(g, tiled, g.op("Constant", value_t=torch.tensor(shape)))


def to(g: Any, self: Any, *args: Any) -> Any:
    dtype = args[0]
    if isinstance(dtype, torch._C.Value) and dtype.node().kind() == "onnx::Constant":
        number = dtype.node()["value"].item()
        return g.op("Cast", self, to_i=symbolic_helper.scalar_type_to_onnx[number])
    raise AssertionError("not a constant")


def test_reshaping_and_casting() -> None:
    with registered({"aten::repeat_interleave": repeat_interleave, "aten::to": to}):
        verified(lambda x: x.repeat_interleave(2, 0), X, opsets=[9, 13])
        assert op_types(verified(lambda x: x.to(torch.float64), X)) == ["Cast"]


# Functions of torch.onnx's later opsets, and private ones that today's torch.onnx hides


def select_last(g: Any, self: Any) -> Any:
    last = symbolic_opset11.select(g, self, g.op("Constant", value_t=torch.tensor(1)), g.op("Constant", value_t=torch.tensor(-1)))
    return symbolic_opset11.squeeze(g, symbolic_opset11.unsqueeze(g, last, 1), 1)


class Last(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x[:, -1]

    symbolic = staticmethod(select_last)


def convolution(g: Any, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
    from torch.onnx.symbolic_opset9 import _convolution

    transposed = g.op("Constant", value_t=torch.tensor(0))
    output_padding = g.op("Constant", value_t=torch.tensor([0, 0]))
    return _convolution(
        g, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, None, None, None, None
    )


def test_torchs_own_functions() -> None:
    verified(Last.apply, X, opsets=[11, 13, 18])
    with install(), registered({"aten::conv2d": convolution}):
        assert op_types(verified(nn.Conv2d(4, 4, 3, stride=2, groups=2), X)) == ["Conv"]
