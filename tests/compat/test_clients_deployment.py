"""Functions in the manner of deployment tools: weights of 4 bits, vendors' engines, sparse convolutions, recurrent quantizers.

Written from memory in each project's own way; none of their code is here. What has a kernel runs in ONNX Runtime.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function
from torch.onnx import register_custom_op_symbolic, symbolic_helper, unregister_custom_op_symbolic
from torch.onnx.symbolic_helper import parse_args

pytest.importorskip("onnxruntime", reason="the files are run")
import onnx_exporter
from clients import attributes, exported, op_types, output_types, registered, verified

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
X = torch.randn(2, 3, 4)


# Olive, AutoGPTQ, neural-compressor: a linear layer whose weights are of 4 bits, in blocks


class QuantLinearFunction(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, weight: Any, scales: Any, zeros: Any, g_idx: Any, bits: int, block: int, k: int, n: int) -> Any:
        more = [g_idx] if g_idx is not None else []
        return g.op(
            "com.microsoft::MatMulNBits",
            *(x, weight, scales, zeros, *more),
            outputs=1,
            K_i=k,
            N_i=n,
            bits_i=bits,
            block_size_i=block,
        )

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, scales: Any, zeros: Any, g_idx: Any, bits: int, block: int, k: int, n: int) -> Any:
        if torch.onnx.is_in_onnx_export():
            low, high = weight & 15, weight >> 4
            levels = torch.stack([low, high], -1).reshape(n, k // block, block).float()
            zero = torch.stack([zeros & 15, zeros >> 4], -1).reshape(n, -1)[:, : k // block].float()
            dense = (levels - zero[..., None]) * scales.reshape(n, k // block)[..., None]
            return x @ dense.reshape(n, k).T
        raise NotImplementedError("only while exporting")


class QuantLinear(nn.Module):
    def __init__(self, k: int = 64, n: int = 8, block: int = 32) -> None:
        super().__init__()
        self.sizes = (k, n, block)
        blocks = k // block
        self.register_buffer("weight", torch.randint(0, 256, (n, blocks, block // 2), dtype=torch.uint8))
        self.register_buffer("scales", torch.rand(n * blocks) / 10)
        self.register_buffer("zeros", torch.randint(0, 256, (n * ((blocks + 1) // 2),), dtype=torch.uint8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k, n, block = self.sizes
        return QuantLinearFunction.apply(x, self.weight, self.scales, self.zeros, None, 4, block, k, n)


@BOTH
def test_weights_of_four_bits(capture: str) -> None:
    result = verified(QuantLinear(), torch.randn(2, 3, 64), opsets=[17, 21], capture=capture)
    assert op_types(result) == ["com.microsoft::MatMulNBits"]
    found = attributes(result, "MatMulNBits")
    assert found == {"K": 64, "N": 8, "bits": 4, "block_size": 32}


# brevitas: quantized at run time, with three results; recurrent layers as one node of its own domain


class DynamicQuantizeLinearFn(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, output_dtype: Any) -> Any:
        x, scale, zero_point = g.op("DynamicQuantizeLinear", x, outputs=3)
        return x, scale, zero_point

    @staticmethod
    def forward(ctx: Any, x: Any, output_dtype: Any) -> Any:
        low, high = torch.clamp(x.min(), max=0.0), torch.clamp(x.max(), min=0.0)
        scale = (high - low) / 255
        zero = torch.clamp(torch.round(-low / scale), 0, 255)
        levels = torch.clamp(torch.round(x / scale) + zero, 0, 255)
        return levels.to(output_dtype), scale, zero.to(output_dtype)


class DequantizeLinearFn(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, scale: Any, zero_point: Any, axis: Any) -> Any:
        return g.op("DequantizeLinear", x, scale, zero_point, axis_i=axis)

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, zero_point: Any, axis: Any) -> Any:
        return (x.float() - zero_point.float()) * scale


class QuantLSTMCellFn(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, hidden: Any, cell: Any, weights: Any, bits: int, reverse: bool, activation: str) -> Any:
        made = g.op(
            "onnx.brevitas::QuantLSTMCell", x, hidden, cell, weights, outputs=3, bit_width_i=bits, reverse_i=int(reverse),
            activation_s=activation,
        )  # fmt: skip
        outputs, last_hidden, last_cell = made
        outputs.setType(x.type().with_sizes([x.type().sizes()[0], None, hidden.type().sizes()[-1]]))
        for value, like in ((last_hidden, hidden), (last_cell, cell)):
            value.setTypeAs(like)
        return outputs, last_hidden, last_cell

    @staticmethod
    def forward(ctx: Any, x: Any, hidden: Any, cell: Any, weights: Any, bits: int, reverse: bool, activation: str) -> Any:
        return torch.empty(*x.shape[:2], hidden.shape[-1]), torch.empty_like(hidden), torch.empty_like(cell)


@BOTH
def test_quantized_while_it_runs(capture: str) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        levels, scale, zero = DynamicQuantizeLinearFn.apply(x, torch.uint8)
        return DequantizeLinearFn.apply(levels, scale, zero, None)

    result = verified(forward, X, opsets=[11, 18], capture=capture)
    assert op_types(result) == ["DynamicQuantizeLinear", "DequantizeLinear"]
    state, weights = torch.zeros(2, 5), torch.randn(20, 9)
    made = exported(lambda x: QuantLSTMCellFn.apply(x, state, state + 1, weights, 8, False, "tanh"), X, capture=capture)
    assert output_types(made) == [("FLOAT", [2, 3, 5]), ("FLOAT", [2, 5]), ("FLOAT", [2, 5])]
    assert attributes(made, "QuantLSTMCell") == {"bit_width": 8, "reverse": 0, "activation": "tanh"}


# InternImage: deformable convolution as a node of mmdeploy's domain


class DCNv3Function(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, offset: Any, mask: Any, kernel: int, stride: int, pad: int, group: int, scale: float) -> Any:
        return torch.empty_like(x)

    @staticmethod
    def symbolic(g: Any, x: Any, offset: Any, mask: Any, kernel: int, stride: int, pad: int, group: int, scale: float) -> Any:
        return g.op(
            "mmdeploy::TRTDCNv3",
            *(x, offset, mask),
            kernel_h_i=int(kernel),
            kernel_w_i=int(kernel),
            stride_h_i=int(stride),
            stride_w_i=int(stride),
            pad_h_i=int(pad),
            pad_w_i=int(pad),
            group_i=int(group),
            offset_scale_f=float(scale),
        )


# Lidar_AI_Solution: sparse convolutions whose sizes are attributes; Vitis AI: positions of the binary point


class SparseConvolution(Function):
    @staticmethod
    def symbolic(g: Any, features: Any, weight: Any, bias: Any, sizes: dict[str, list[int]], key: str, dtype: str) -> Any:
        lists = {f"{name}_i": value for name, value in sizes.items()}
        more = [bias] if bias is not None else []
        return g.op(
            *("spconv::SparseConvolution", features, weight, *more),
            **lists,
            rulebook_s=key,
            precision_s=dtype,
            output_bound_i=200000,
            ndim_i=len(sizes["ksize"]),
            activation_s="None",
        )

    @staticmethod
    def forward(ctx: Any, features: Any, weight: Any, bias: Any, sizes: dict[str, list[int]], key: str, dtype: str) -> Any:
        return torch.empty(features.shape[0], weight.shape[0])


class FixNeuron(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, bits: int, point: int) -> Any:
        step = 2.0**-point
        return torch.clamp(torch.round(x / step), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * step

    @staticmethod
    def symbolic(g: Any, x: Any, bits: int, point: int) -> Any:
        scale = g.op("Constant", value_t=torch.tensor(2.0**-point, dtype=torch.float))
        zero = g.op("Constant", value_t=torch.tensor(0, dtype=torch.int8))
        return g.op("DequantizeLinear", g.op("QuantizeLinear", x, scale, zero), scale, zero)


@BOTH
def test_vendors_nodes(capture: str) -> None:
    image = torch.randn(1, 6, 6, 8)
    offset, mask = torch.randn(1, 6, 6, 36), torch.rand(1, 6, 6, 18)
    result = exported(lambda *given: DCNv3Function.apply(*given, 3, 1, 1, 2, 1.0), image, offset, mask, capture=capture)
    assert attributes(result, "TRTDCNv3")["offset_scale"] == 1.0 and output_types(result) == [("FLOAT", [1, 6, 6, 8])]
    weight, sizes = torch.randn(16, 8), {"ksize": [3, 3, 3], "stride": [1, 1, 1], "padding": [0, 1, 1], "dilation": [1, 1, 1]}
    call = lambda x: SparseConvolution.apply(x, weight, None, sizes, "subm1", "fp16")  # noqa: E731
    result = exported(call, torch.randn(50, 8), input_names=["x"], dynamic_axes={"x": {0: "voxels"}}, capture=capture)
    assert [(kind, len(dims)) for kind, dims in output_types(result)] == [("FLOAT", 2)]
    assert list(attributes(result, "SparseConvolution")["padding"]) == [0, 1, 1]
    assert op_types(verified(lambda x: FixNeuron.apply(x, 8, 5), X, opsets=[10, 18], capture=capture)) == [
        "QuantizeLinear",
        "DequantizeLinear",
    ]


# Super-resolution and language models: operators that the opset of the day had not


def pixel_shuffle(g: Any, x: Any, factor: Any) -> Any:
    factor = symbolic_helper._maybe_get_const(factor, "i")
    sizes = symbolic_helper._get_tensor_sizes(x)
    assert len(sizes) == 4 and None not in sizes[1:], "pixel_shuffle: only 4d input of known channels"
    channels = sizes[1] // factor**2
    apart = symbolic_helper._reshape_helper(g, x, [-1, channels, factor, factor, sizes[2], sizes[3]])
    moved = g.op("Transpose", apart, perm_i=[0, 1, 4, 2, 5, 3])
    return symbolic_helper._reshape_helper(g, moved, [-1, channels, sizes[2] * factor, sizes[3] * factor])


def lower_triangle(g: Any, x: Any, diagonal: Any) -> Any:
    """ChatGLM's and others' way before opset 14: a mask made of Range and comparison."""
    shape = g.op("Shape", x)
    sizes = [g.op("Gather", shape, g.op("Constant", value_t=torch.tensor(axis))) for axis in (0, 1)]
    zero, one = (g.op("Constant", value_t=torch.tensor(number)) for number in (0, 1))
    rows, columns = (g.op("Range", zero, size, one) for size in sizes)
    rows = g.op("Add", symbolic_helper._unsqueeze_helper(g, rows, [1]), diagonal)
    keeps = g.op("Not", g.op("Less", rows, symbolic_helper._unsqueeze_helper(g, columns, [0])))
    return g.op("Where", keeps, x, g.op("CastLike", zero, x) if g.opset >= 15 else g.op("Cast", zero, to_i=1))


@parse_args("v", "v", "v", "v", "f", "b", "v", "b")
def attention(g: Any, q: Any, k: Any, v: Any, mask: Any, dropout: float, is_causal: bool, scale: Any, enable_gqa: bool) -> Any:
    """diffusers' recipe: the formula, written out."""
    assert not is_causal and symbolic_helper._is_none(mask) and not enable_gqa
    size = symbolic_helper._get_tensor_dim_size(q, -1)
    keys = g.op("Transpose", k, perm_i=[0, 1, 3, 2])
    factor = 1 / math.sqrt(size) if symbolic_helper._is_none(scale) else symbolic_helper._get_const(scale, "f", "scale")
    scores = g.op("Mul", g.op("MatMul", q, keys), g.op("Constant", value_t=torch.tensor(factor, dtype=torch.float32)))
    return g.op("MatMul", g.op("Softmax", scores, axis_i=-1), v)


@BOTH
def test_operators_of_their_time(capture: str) -> None:
    with registered({"::pixel_shuffle": pixel_shuffle}, 9, onnx_exporter):
        result = verified(nn.PixelShuffle(2), torch.randn(2, 8, 3, 5), opsets=[9, 13, 18], capture=capture)
    assert op_types(result) == ["Reshape", "Transpose", "Reshape"]
    with registered({"::tril": lower_triangle}, 13):
        assert "Not" in op_types(verified(lambda x: x.tril(1), X[0], opsets=[13], capture=capture))
    q = torch.randn(2, 3, 5, 4)
    register_custom_op_symbolic("aten::scaled_dot_product_attention", attention, 14)
    try:
        for scale in (None, 0.3):
            result = verified(
                lambda q, scale=scale: nn.functional.scaled_dot_product_attention(q, q, q * 2, scale=scale),
                q,
                opsets=[14, 18],
                capture=capture,
            )
            assert op_types(result).count("Softmax") == 1 and "Transpose" in op_types(result)
    finally:
        unregister_custom_op_symbolic("aten::scaled_dot_product_attention", 14)


# ORTModule: losses as nodes of its own, several results of which some are left out


@parse_args("v", "v", "v", "i", "i")
def nll_loss(g: Any, x: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    name = ["none", "mean", "sum"][reduction]
    given = [] if symbolic_helper._is_none(weight) else [weight]
    return g.op("NegativeLogLikelihoodLoss", x, target, *given, reduction_s=name, ignore_index_i=ignore_index)


@parse_args("v", "is", "v", "v", "f", "b")
def layer_norm(g: Any, x: Any, shape: list[int], weight: Any, bias: Any, eps: float, cudnn: bool) -> Any:
    """apex's and ORTModule's: one node where it fits, with results that nobody uses."""
    axis = -len(shape)
    if g.opset < 17:
        raise torch.onnx.errors.SymbolicValueError("LayerNormalization is of opset 17", x)
    made, _, _ = g.op("LayerNormalization", x, weight, bias, axis_i=axis, epsilon_f=eps, outputs=3)
    return made


@BOTH
def test_losses_and_norms(capture: str) -> None:
    target, weight = torch.tensor([1, 2]), torch.tensor([0.5, 1.0, 2.0])
    with registered({"::nll_loss_nd": nll_loss, "::nll_loss": nll_loss}, 12):
        for reduction in ("mean", "sum", "none"):
            result = verified(
                lambda x, how=reduction: nn.functional.nll_loss(x, target, weight, reduction=how),
                torch.randn(2, 3),
                opsets=[13],
                dynamic=False,
                capture=capture,
            )
            assert op_types(result) == ["NegativeLogLikelihoodLoss"]
    with registered({"aten::layer_norm": layer_norm}, 12):
        assert op_types(verified(nn.LayerNorm(4, eps=1e-3), X, opsets=[17, 18], capture=capture)) == ["LayerNormalization"]
        assert "LayerNormalization" not in op_types(verified(nn.LayerNorm(4), X, opsets=[13], capture=capture))


# Samples of TensorRT: a plugin with fields of every kind, and one that is told the precision of the engine


class PillarScatter(Function):
    @staticmethod
    def symbolic(g: Any, features: Any, coords: Any, params: Any, dense_shape: Any) -> Any:
        made = g.op("TRT::PPScatterPlugin", features, coords, params, dense_shape_i=dense_shape, plugin_version_s="1")
        kind = features.type()
        return made.setType(kind.with_sizes([1, kind.sizes()[1], *dense_shape]))

    @staticmethod
    def forward(ctx: Any, features: Any, coords: Any, params: Any, dense_shape: Any) -> Any:
        return torch.empty(1, features.shape[1], *dense_shape)


@BOTH
def test_pillars(capture: str) -> None:
    coords, count = torch.zeros(7, 4, dtype=torch.int32), torch.tensor([7], dtype=torch.int32)
    result = exported(lambda x: PillarScatter.apply(x, coords, count, (16, 8)), torch.randn(7, 64), capture=capture)
    assert output_types(result) == [("FLOAT", [1, 64, 16, 8])]
    assert list(attributes(result, "PPScatterPlugin")["dense_shape"]) == [16, 8]
