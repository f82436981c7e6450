"""Training and quantization: functions in the manner of ORTModule, TransformerEngine, MQBench, aimet, QEfficient and others.

Each is written here as the projects named write theirs. Those of which ONNX Runtime has the operators are run.
"""

from __future__ import annotations

import functools
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function
from torch.onnx import symbolic_helper, symbolic_opset9
from torch.onnx.symbolic_helper import parse_args

import onnx_exporter
from onnx_exporter.compat import install

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, op_types, output_types, registered, verified

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])
X = torch.randn(2, 3, 4)
IMAGE = torch.randn(2, 3, 8, 8)


# ORTModule: names such as "::x", nodes of org.pytorch.aten


@parse_args("v", "v", "v", "i", "v", "v")
def cross_entropy_loss(g: Any, self: Any, target: Any, weight: Any, reduction: int, ignore_index: Any, smoothing: Any) -> Any:
    assert symbolic_helper._get_const(smoothing, "f", "label_smoothing") == 0.0
    name = {0: "none", 1: "mean", 2: "sum"}[reduction]
    output, log_prob = g.op(
        "com.microsoft::SoftmaxCrossEntropyLossInternal", self, target, weight, ignore_index, reduction_s=name, outputs=2
    )
    output.setType(self.type().with_sizes([]))
    log_prob.setType(self.type())
    return output


def embedding(g: Any, weight: Any, indices: Any, padding: Any, scale: Any, sparse: Any) -> Any:
    made = g.op("org.pytorch.aten::ATen", weight, indices, padding, scale, sparse, operator_s="embedding")
    sizes = symbolic_helper._get_tensor_sizes(indices)
    width = symbolic_helper._get_tensor_sizes(weight)[1]
    return made.setType(weight.type().with_sizes([*sizes, width]) if sizes is not None else weight.type())


def max_pool2d(g: Any, self: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: Any) -> Any:
    return g.op(
        "MaxPool", self, kernel_shape_i=symbolic_helper._maybe_get_const(kernel, "is"),
        strides_i=symbolic_helper._maybe_get_const(stride, "is"), pads_i=symbolic_helper._maybe_get_const(padding, "is") * 2,
        ceil_mode_i=symbolic_helper._maybe_get_const(ceil_mode, "i"),
    )  # fmt: skip


def largest(g: Any, self: Any, dim_or_other: Any = None, keepdim: Any = None) -> Any:
    if dim_or_other is None and keepdim is None:
        return g.op("org.pytorch.aten::ATen", self, operator_s="max").setType(self.type().with_sizes([]))
    if keepdim is None:
        return symbolic_opset9.max(g, self, dim_or_other)
    return g.op("org.pytorch.aten::ATen", self, dim_or_other, keepdim, operator_s="max", overload_name_s="dim", outputs=2)


@parse_args("s", "v", "v")
def einsum(g: Any, equation: str, tensor_list: Any, path: Any = None) -> Any:
    return g.op("Einsum", *symbolic_helper._unpack_list(tensor_list), equation_s=equation)


@parse_args("v", "i", "none")
def softmax(g: Any, input: Any, dim: int, dtype: Any = None) -> Any:
    return g.op("Softmax", input, axis_i=dim)


@BOTH
def test_ortmodule(capture: str) -> None:
    functions = {
        "::cross_entropy_loss": cross_entropy_loss,
        "::embedding": embedding,
        "::max_pool2d": max_pool2d,
        "::max": largest,
        "::einsum": einsum,
        "::softmax": softmax,
    }
    with registered(functions, 14):
        result = exported(lambda x, t: F.cross_entropy(x, t), X[0], torch.tensor([0, 1, 2]), capture=capture)
        assert output_types(result) == [("FLOAT", [])]
        assert len(next(iter(result.model.graph)).inputs) == 4 and next(iter(result.model.graph)).inputs[2] is None
        result = exported(nn.Embedding(5, 4), torch.randint(5, (2, 3)), capture=capture)
        assert attributes(result, "ATen") == {"operator": "embedding"} and output_types(result) == [("FLOAT", [2, 3, 4])]
        assert op_types(verified(nn.MaxPool2d(2, 2, 1), IMAGE, capture=capture)) == ["MaxPool"]
        assert op_types(verified(lambda x: torch.max(x, -x), X, capture=capture)) == ["Neg", "Max"]
        assert output_types(exported(lambda x: x.max(), X, capture=capture)) == [("FLOAT", [])]
        result = exported(lambda x: x.max(1), X, capture=capture)
        assert output_types(result) == [("FLOAT", [2, 4]), ("INT64", [2, 4])]
        assert op_types(verified(lambda x: torch.einsum("bij,bkj->bik", x, x), X, capture=capture)) == ["Einsum"]
        assert op_types(verified(lambda x: x.softmax(1), X, capture=capture)) == ["Softmax"]


def python_op(g: Any, *args: Any, **kwargs: Any) -> Any:
    """A node that calls the class itself when the model runs; it reads the captured call."""
    node = g.original_node
    function = node.pyobj().__self__
    kinds = {"d": "tensor", "c": "object"}
    tensors = [value for value, kind in zip(args, node.cconv(), strict=True) if kind == "d"]
    types = [int(symbolic_helper.cast_pytorch_to_onnx[output.type().scalarType()]) for output in node.outputs()]
    ranks = [output.type().dim() for output in node.outputs()]
    made = g.op(
        "com.microsoft::PythonOp", *tensors, func_name_s=f"{function.__module__}.{kwargs['name']}",
        input_convention_s=node.cconv(), input_tensor_ranks_i=[value.type().dim() for value in tensors],
        output_tensor_types_i=types,
        output_tensor_ranks_i=ranks, kinds_s=[kinds[kind] for kind in node.cconv()], outputs=node.outputsSize() + 1,
    )  # fmt: skip
    _, *results = made
    for result, output in zip(results, node.outputs(), strict=True):
        result.setType(output.type())
    return results


class ScaleAndShift(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, shift: Any) -> Any:
        return x * factor, x + shift


@BOTH
def test_ortmodules_handler(capture: str) -> None:
    with registered({"prim::PythonOp": python_op}, 1):
        result = exported(lambda x: ScaleAndShift.apply(x, 2.0, x[0, 0]), X, capture=capture)
    found = attributes(result, "PythonOp")
    assert found["input_convention"] == "dcd" and list(found["input_tensor_ranks"]) == [3, 1]
    assert output_types(result) == [("FLOAT", [2, 3, 4])] * 2


# TransformerEngine: registered under its own namespace, 8-bit floats kept in bytes


def cast_to_fp8(g: Any, inputs: Any, scale: Any, index: Any, kind: Any) -> Any:
    index = symbolic_helper._maybe_get_const(index, "i")
    shape = symbolic_helper._get_tensor_sizes(inputs)
    if inputs.type().scalarType() != "Float":
        inputs = g.op("Cast", inputs, to_i=torch.onnx.TensorProtoDataType.FLOAT)
    picked = g.op("Gather", scale, g.op("Constant", value_t=torch.tensor(index)))
    made = g.op("trt::TRT_FP8QuantizeLinear", inputs, picked)
    made.setType(inputs.type().with_dtype(torch.uint8).with_sizes(shape))
    return made


def cast_from_fp8(g: Any, inputs: Any, scale: Any, index: Any, kind: Any) -> Any:
    shape = symbolic_helper._get_tensor_sizes(inputs)
    made = g.op("trt::TRT_FP8DequantizeLinear", inputs, scale)
    return made.setType(inputs.type().with_dtype(torch.float32).with_sizes(shape))


@parse_args("v", "v", "i", "v")
def gemm(g: Any, a: Any, b: Any, transposed: int, bias: Any) -> Any:
    made = g.op("Gemm", a, b, transA_i=0, transB_i=transposed)
    if not symbolic_helper._is_none(bias):
        made = g.op("Add", made, bias)
    return made


@functools.cache
def transformer_engine() -> torch.library.Library:
    """Defines its operators, once: to define them again after they were deleted confuses older versions of PyTorch."""
    library = torch.library.Library("tex_ts", "DEF")
    library.define("cast_to_fp8(Tensor x, Tensor scale, int index, int kind) -> Tensor")
    library.define("cast_from_fp8(Tensor x, Tensor scale, int index, int kind) -> Tensor")
    library.define("te_gemm(Tensor a, Tensor b, int transposed, Tensor? bias=None) -> Tensor")
    library.impl("cast_to_fp8", lambda x, scale, index, kind: x.to(torch.uint8), "CompositeExplicitAutograd")
    library.impl("cast_from_fp8", lambda x, scale, index, kind: x.float(), "CompositeExplicitAutograd")
    multiply = lambda a, b, transposed, bias=None: torch.addmm(torch.zeros(()) if bias is None else bias, a, b.T)  # noqa: E731
    library.impl("te_gemm", multiply, "CompositeExplicitAutograd")
    return library


@BOTH
def test_transformer_engine(capture: str) -> None:
    transformer_engine()
    functions = {"tex_ts::cast_to_fp8": cast_to_fp8, "tex_ts::cast_from_fp8": cast_from_fp8, "tex_ts::te_gemm": gemm}
    ops, weight, bias = torch.ops.tex_ts, torch.randn(5, 4), torch.randn(5)
    with registered(functions, 1):
        scale = torch.ones(3)
        result = exported(lambda x: ops.cast_from_fp8(ops.cast_to_fp8(x, scale, 1, 0), scale, 1, 0), X, capture=capture)
        assert op_types(result)[-2:] == ["trt::TRT_FP8QuantizeLinear", "trt::TRT_FP8DequantizeLinear"]
        assert output_types(result) == [("FLOAT", [2, 3, 4])]
        result = verified(lambda x: ops.te_gemm(x, weight, 1), X[0], capture=capture)
        assert op_types(result) == ["Gemm"]
        assert op_types(verified(lambda x: ops.te_gemm(x, weight, 1, bias), X[0], capture=capture)) == ["Gemm", "Add"]


# pytorch-quantization, brevitas, AMD Quark, TI: quantized and restored


class FakeTensorQuantFunction(Function):
    @staticmethod
    def forward(ctx: Any, inputs: Any, amax: Any, bits: int = 8, unsigned: bool = False) -> Any:
        bound = 2.0 ** (bits - 1 + int(unsigned)) - 1
        scale = amax / bound
        return torch.clamp(torch.round(inputs / scale), -bound - 1, bound) * scale

    @staticmethod
    def symbolic(g: Any, inputs: Any, amax: Any, bits: int = 8, unsigned: bool = False) -> Any:
        bound = 2.0 ** (bits - 1 + int(unsigned)) - 1
        scale = g.op("Div", amax, g.op("Constant", value_t=torch.tensor(bound)))
        zero = g.op("Constant", value_t=torch.tensor(0, dtype=torch.int8))
        return g.op("DequantizeLinear", g.op("QuantizeLinear", inputs, scale, zero), scale, zero)


class BinaryQuant(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, scale: Any, *others: Any) -> Any:
        made = g.op("qonnx.custom_op.general::BipolarQuant", x, scale)
        made.setType(x.type())
        return made

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, *others: Any) -> Any:
        return torch.sign(x) * scale


class RoundSte(Function):
    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        return g.op("Round", x)

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.round(x)


@parse_args("v", "t", "t", "i", "i")
def fake_quantize(g: Any, inputs: Any, scale: Any, zero: Any, least: int, greatest: int) -> Any:
    scale = scale.item() if isinstance(scale, torch.Tensor) else scale
    kind = torch.uint8 if least == 0 else torch.int8
    tensors = [
        g.op("Constant", value_t=torch.tensor(float(scale))),
        g.op("Constant", value_t=torch.tensor(int(zero), dtype=kind)),
    ]
    quantized = g.op("QuantizeLinear", inputs, *tensors)
    return g.op("DequantizeLinear", quantized, *tensors)


@BOTH
def test_quantizers(capture: str) -> None:
    amax = torch.tensor(3.0)
    result = verified(lambda x: FakeTensorQuantFunction.apply(x, amax), X, opsets=[13, 18], capture=capture)
    assert op_types(result)[-2:] == ["QuantizeLinear", "DequantizeLinear"]
    result = exported(lambda x: BinaryQuant.apply(x, torch.tensor(0.5), "a", None), X, capture=capture)
    assert op_types(result) == ["qonnx.custom_op.general::BipolarQuant"] and output_types(result) == [("FLOAT", [2, 3, 4])]
    assert op_types(verified(RoundSte.apply, X, opsets=[11, 18], capture=capture)) == ["Round"]
    if capture == "export":
        return  # PyTorch itself does not capture the operator that comes next
    with registered({"aten::fake_quantize_per_tensor_affine": fake_quantize}, 13):
        result = verified(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127), X, capture=capture)
    assert op_types(result) == ["QuantizeLinear", "DequantizeLinear"]


# MQBench: nodes without a domain, modules of torch 1.13 to 2.8


class LearnableQuantization(Function):
    @staticmethod
    def symbolic(g: Any, x: Any, scale: Any, zero: Any, least: int, greatest: int, factor: float) -> Any:
        return g.op("::FakeQuantizeLearnablePerTensorAffine", x, scale, zero, quant_min_i=least, quant_max_i=greatest)

    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, zero: Any, least: int, greatest: int, factor: float) -> Any:
        return torch.fake_quantize_per_tensor_affine(x, scale, zero.int(), least, greatest)


def test_mqbench() -> None:
    scale, zero = torch.tensor([0.1]), torch.tensor([0.0])
    with pytest.warns(onnx_exporter.ExportWarning, match="no operator of ONNX"), pytest.raises(onnx_exporter.CheckerError):
        exported(lambda x: LearnableQuantization.apply(x, scale, zero, -128, 127, 1.0), X)
    with install():
        from torch.onnx._internal import jit_utils, registration

        assert jit_utils.GraphContext and registration.onnx_symbolic


# QEfficient, aimet: functions of onnxscript


class CustomRMSNorm(Function):
    @staticmethod
    def forward(ctx: Any, hidden: Any, weight: Any, epsilon: float) -> Any:
        return hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + epsilon) * weight

    @staticmethod
    def symbolic(g: Any, hidden: Any, weight: Any, epsilon: float) -> Any:
        return g.onnxscript_op(_functions()[0], hidden, weight, epsilon_f=epsilon).setTypeAs(hidden)


class CtxScatter(Function):
    @staticmethod
    def forward(ctx: Any, data: Any, position: Any, updates: Any) -> Any:
        data = data.clone()
        data[torch.arange(2).view(-1, 1), position] = updates
        return data

    @staticmethod
    def symbolic(g: Any, data: Any, position: Any, updates: Any) -> Any:
        return g.onnxscript_op(_functions()[1], data, position, updates).setTypeAs(data)


class QuantizeDequantize(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any, bits: int) -> Any:
        return torch.clamp(torch.round(x / scale), -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) * scale

    @staticmethod
    def symbolic(g: Any, x: Any, scale: Any, bits: int) -> Any:
        shape = symbolic_helper._get_tensor_sizes(x)
        limits = {"low_f": -(2.0 ** (bits - 1)), "high_f": 2.0 ** (bits - 1) - 1}
        return g.onnxscript_op(_functions()[2], x, scale, **limits).setType(x.type().with_sizes(shape))


def _functions() -> Any:
    if not _MADE:
        onnxscript = pytest.importorskip("onnxscript", reason="its functions are what is called")
        from onnxscript import opset15 as op

        own = onnxscript.values.Opset("com.qti.aisw.onnx", 1)

        @onnxscript.script(own)
        def Norm(hidden, weight, epsilon: float):
            mean = op.ReduceMean(op.Mul(hidden, hidden), axes=[-1])
            return op.Mul(op.Div(hidden, op.Sqrt(op.Add(mean, op.Constant(value_float=epsilon)))), weight)

        @onnxscript.script(own)
        def Scatter(data, position, updates):
            rows = op.Expand(op.Unsqueeze(op.Range(0, 2, 1), [1]), op.Shape(position))
            return op.ScatterND(data, op.Concat(op.Unsqueeze(rows, [2]), op.Unsqueeze(position, [2]), axis=2), updates)

        @onnxscript.script(own)
        def Quantize(x, scale, low: float, high: float):
            least, greatest = op.Constant(value_float=low), op.Constant(value_float=high)
            return op.Mul(op.Clip(op.Round(op.Div(x, scale)), least, greatest), scale)

        _MADE.extend([Norm, Scatter, Quantize])
    return _MADE


_MADE: list[Any] = []


@BOTH
def test_functions_of_onnxscript(capture: str) -> None:
    weight = torch.rand(4)
    result = verified(
        lambda x: CustomRMSNorm.apply(CustomRMSNorm.apply(x, weight, 1e-5), weight, 1e-6), X, opsets=[15, 17], capture=capture
    )
    assert op_types(result) == ["com.qti.aisw.onnx::Norm"] * 2 and len(result.model_proto.functions) == 1
    data, position, updates = torch.zeros(2, 5, 4), torch.tensor([[1], [3]]), torch.randn(2, 1, 4)
    result = verified(CtxScatter.apply, data, position, updates, dynamic=False, opsets=[15], capture=capture)
    assert op_types(result) == ["com.qti.aisw.onnx::Scatter"]
    result = verified(lambda x: QuantizeDequantize.apply(x, torch.tensor(0.1), 4), X, opsets=[15, 17], capture=capture)
    assert attributes(result, "Quantize") == {"low": -8.0, "high": 7.0}


# onnxruntime-extensions: classes that are made while the model runs, and outputs that are added to a node


def _operator(name: str, compute: Any, count: int) -> type[Function]:
    class OnnxOpFunction(Function):
        @classmethod
        def get_next_id_name(cls, name_base: str) -> str:
            return f"{name_base}_1"

        @classmethod
        def symbolic(cls, g: Any, *args: Any) -> Any:
            made = g.op(f"ai.onnx.contrib::{name}", *args)
            outputs = [made.setDebugName(cls.get_next_id_name(name))]
            outputs += [made.node().addOutput().setDebugName(f"{name}_{index}") for index in range(1, count)]
            return tuple(outputs) if count > 1 else made

        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            return compute(*args)

    return OnnxOpFunction


@BOTH
def test_onnxruntime_extensions(capture: str) -> None:
    def forward(x: Any) -> Any:
        first, second = _operator("Tokenizer", lambda x: (x.long(), x.long() > 0), 2).apply(x)
        return _operator("Reverse", lambda x: x.flip(0), 1).apply(first), second

    result = exported(forward, X, capture=capture)
    assert op_types(result) == ["ai.onnx.contrib::Tokenizer", "ai.onnx.contrib::Reverse"]
    assert output_types(result) == [("INT64", [2, 3, 4]), ("BOOL", [2, 3, 4])]
    assert result.model_proto.graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.INT64
