"""Quantized tensors: to functions written for torch.onnx they are tuples of levels, scale, zero point and perhaps an axis."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.onnx import symbolic_helper as helper

import onnx_exporter
from onnx_exporter import CaptureError, UnsupportedOpError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import exported, op_types, registered

X = torch.randn(2, 3, 4)


@pytest.fixture(autouse=True)
def _no_deprecation() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
        yield


def per_tensor(x: torch.Tensor, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    return torch.quantize_per_tensor(x, 0.05, 3 if dtype is torch.qint8 else 100, dtype)


def quantized_add(g: Any, x: Any, y: Any, scale: Any, zero: Any) -> Any:
    """The way of torch.onnx's own quantized::add, and of those that replace it."""
    assert x.node().kind() == "prim::TupleConstruct" and isinstance(x.type(), torch._C.TupleType)
    levels, x_scale, x_zero = helper._unpack_quantized_tensor(x)
    assert levels.type().scalarType() == "Byte" and x_scale.type().scalarType() == "Float" and x_zero.type().dim() == 0
    numbers, *_ = helper.dequantize_helper(g, x)
    other, *_ = helper.dequantize_helper(g, y)
    return helper.quantize_helper(g, g.op("Add", numbers, other), scale, zero)


@pytest.mark.parametrize("opset", [10, 13, 18, 21])
def test_clients_of_quantized_tensors(opset: int) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        q = per_tensor(x)
        return torch.ops.quantized.add(q, per_tensor(x * 2), 0.13, 60).dequantize()

    with registered({"quantized::add": quantized_add}, 10):
        result = exported(model, X, opset_version=opset, verify=True)
    assert op_types(result).count("QuantizeLinear") == 3 and op_types(result).count("DequantizeLinear") == 3


def test_clients_own_quantization() -> None:
    """What is registered for quantize_per_tensor and dequantize goes before ours."""
    seen = []

    def quantize(g: Any, x: Any, scale: Any, zero: Any, dtype: Any) -> Any:
        seen.append(helper._get_const(dtype, "i", "dtype"))
        return helper.quantize_helper(g, x, scale, g.op("Cast", zero, to_i=torch._C._onnx.TensorProtoDataType.INT8))

    def dequantize(g: Any, x: Any) -> Any:
        seen.append(len(helper._unpack_quantized_tensor(x)))
        return helper.dequantize_helper(g, x)[0]

    with registered({"aten::quantize_per_tensor": quantize, "aten::dequantize": dequantize}, 11):
        exported(lambda x: per_tensor(x, torch.qint8).dequantize(), X, verify=True)
    assert seen == [12, 3]


def test_with_an_axis() -> None:
    scales, zeros = torch.tensor([0.1, 0.05, 0.2]), torch.tensor([10, 0, -3])

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8).dequantize()

    def dequantize(g: Any, x: Any) -> Any:
        *_, axis = helper._unpack_quantized_tensor(x)
        assert helper._get_const(axis, "i", "axis") == 1
        return helper.dequantize_helper(g, x)[0]

    exported(model, X, opset_version=13, verify=True)
    with registered({"aten::dequantize": dequantize}, 13):
        exported(model, X, opset_version=13, verify=True)
    with pytest.raises(UnsupportedOpError, match="has an axis from opset 13 on, the target is 12"):
        exported(model, X, opset_version=12)


@pytest.mark.parametrize("dtype", [torch.quint8, torch.qint8])
def test_what_only_moves_elements_keeps_the_levels(dtype: torch.dtype) -> None:
    def model(x: torch.Tensor) -> Any:
        q = torch.nn.functional.relu(per_tensor(x, dtype))
        first, second = q.reshape(2, 12).chunk(2, 1)
        return first.t().dequantize(), second[:, 1:].dequantize(), q.int_repr()

    exported(model, X, verify=True)


def test_what_pytorch_computes_on_levels_is_refused() -> None:
    with pytest.raises(
        UnsupportedOpError, match="aten::sigmoid(.|\n)*scale is known to PyTorch's kernel only(.|\n)*quantize_helper"
    ):
        exported(lambda x: per_tensor(x).sigmoid().dequantize(), X)
    with pytest.raises(UnsupportedOpError, match="quantized::add"):
        exported(lambda x: torch.ops.quantized.add(per_tensor(x), per_tensor(x), 0.1, 0).dequantize(), X)
    with pytest.raises(UnsupportedOpError, match="8-bit levels, not torch.qint32"):
        exported(lambda x: per_tensor(x, torch.qint32).dequantize(), X)


def test_a_model_cannot_return_one() -> None:
    with pytest.raises(CaptureError, match="returns a quantized tensor"):
        exported(per_tensor, X)


def test_a_tuple_of_several_results_is_no_quantized_tensor() -> None:
    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.to(torch.int32), x + 1, x

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.op("prim::TupleConstruct", g.op("Cast", x, to_i=6), g.op("Add", x, torch.tensor(1.0)), x)

    exported(lambda x: Parts.apply(x), X, verify=True)


def test_beside_a_registered_function_for_tensors() -> None:
    """A function that is registered for an operator gets quantized tensors too, and may leave them to us."""

    def relu(g: Any, x: Any) -> Any:
        if x.node().kind() == "prim::TupleConstruct":
            raise torch.onnx.errors.SymbolicValueError("only for tensors", x)
        return g.op("vendor::Relu", x)

    with registered({"aten::relu": relu}, 9, onnx_exporter):
        result = exported(lambda x: per_tensor(x).relu().dequantize() + x.relu(), X)
    assert "vendor::Relu" in op_types(result) and op_types(result).count("QuantizeLinear") >= 1
