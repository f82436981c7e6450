"""In a PyTorch without torch.onnx, code written for it gets the modules of that name from us."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys, torch
sys.modules["torch._C._onnx"] = None
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "torch.onnx" or name.startswith("torch.onnx."):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import onnx, onnxruntime
import onnx_exporter
from onnx_exporter import compat
"""

CLIENT = """
import torch
import torch.onnx
import torch.onnx.operators
import torch._C._onnx as _C_onnx
import torch.onnx.symbolic_helper as sym_help
from torch.onnx import OperatorExportTypes, TrainingMode, register_custom_op_symbolic, symbolic_opset9, utils
from torch.onnx.symbolic_helper import parse_args, _get_tensor_sizes, _is_none, _unimplemented
from torch.onnx.symbolic_registry import register_op
from torch.onnx._type_utils import JitScalarType
from torch.onnx._globals import GLOBALS
from torch.onnx._internal import jit_utils, registration, _beartype
from torch.onnx import SymbolicContext, errors, _patch_torch

assert _C_onnx.TensorProtoDataType.FLOAT == torch.onnx.TensorProtoDataType.FLOAT == 1


class Roll(torch.nn.Module):
    def forward(self, x):
        return torch.roll(x, 2, 1)


@parse_args("v", "is", "is")
def roll(g, x, shifts, dims):
    assert isinstance(g, jit_utils.GraphContext) and sym_help._export_onnx_opset_version == g.opset
    for shift, dim in zip(shifts, dims):
        size = _get_tensor_sizes(x)[dim]
        tail = sym_help._slice_helper(g, x, axes=[dim], starts=[size - shift], ends=[size])
        head = sym_help._slice_helper(g, x, axes=[dim], starts=[0], ends=[size - shift])
        x = g.op("Concat", tail, head, axis_i=dim)
    return x


class Norm(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.layer_norm(x, (4,), eps=1e-3)


@parse_args("v", "is", "v", "v", "f", "b")
def layer_norm(g, x, shape, weight, bias, eps, cudnn):
    assert _is_none(weight) and _is_none(bias) and shape == [4]
    mean = g.op("ReduceMean", x, axes_i=[-1]) if g.opset < 18 else g.op("ReduceMean", x, torch.tensor([-1]))
    centred = symbolic_opset9.sub(g, x, mean)
    squares = symbolic_opset9.mul(g, centred, centred)
    count = sym_help._get_tensor_dim_size(x, -1)
    total = sym_help._reducesum_helper(g, squares, axes_i=[-1])
    variance = symbolic_opset9.div(g, total, g.op("Constant", value_t=torch.tensor(float(count))))
    return symbolic_opset9.div(g, centred, g.op("Sqrt", g.op("Add", variance, g.op("Constant", value_t=torch.tensor(eps)))))


class Threshold(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        return (x > limit).to(x.dtype)

    @staticmethod
    def symbolic(g, x, limit):
        over = g.op("Greater", x, g.op("Constant", value_t=torch.tensor(limit)))
        return g.op("Cast", over, to_i=JitScalarType.from_value(x).onnx_type())


class Thresholds(torch.nn.Module):
    def forward(self, x):
        assert torch.onnx.is_in_onnx_export() and GLOBALS.in_onnx_export
        return Threshold.apply(x, 0.5)


class Refused(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.qr(x)[0]
"""

USE = """
def check(model, *args, opset):
    torch.onnx.export(model, args, "model.onnx", opset_version=opset, dynamo=False, training=TrainingMode.EVAL,
                      operator_export_type=OperatorExportTypes.ONNX)
    session = onnxruntime.InferenceSession("model.onnx")
    (result,) = session.run(None, {item.name: arg.numpy() for item, arg in zip(session.get_inputs(), args)})
    with compat.exporting(opset):
        torch.testing.assert_close(torch.from_numpy(result), model(*args), rtol=1e-5, atol=1e-5)

register_custom_op_symbolic("::roll", roll, 9)
register_op("layer_norm", layer_norm, "", 9)
for opset in (9, 11, 13, 18):
    check(Roll(), torch.randn(2, 5), opset=opset)
    check(Norm(), torch.randn(3, 4), opset=opset)
    check(Thresholds(), torch.randn(6), opset=opset)

def qr(g, x, mode):
    _unimplemented("linalg_qr", "it is only for this test")

registration.onnx_symbolic("aten::linalg_qr", [9])(qr)
try:
    torch.onnx.export(Refused(), (torch.randn(3, 3),), "refused.onnx", dynamo=False)
except errors.UnsupportedOperatorError as error:
    assert "linalg_qr: it is only for this test" in str(error), error
else:
    raise AssertionError
class Shapes(torch.nn.Module):
    def forward(self, x, y):
        return torch.onnx.operators.reshape_from_tensor_shape(x, torch.onnx.operators.shape_as_tensor(y))

check(Shapes(), torch.randn(6), torch.randn(2, 3), opset=13)
assert utils.unconvertible_ops(Refused(), (torch.randn(3, 3),))[1] == ["aten::linalg_qr"]
program = torch.onnx.export(torch.nn.Linear(3, 2), (torch.randn(1, 3),))
assert len(program(torch.randn(1, 3))) == 1
assert not torch.onnx.is_in_onnx_export() and not GLOBALS.in_onnx_export
"""


def run(code: str, folder: Path) -> None:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert result.returncode == 0, result.stderr


def test_a_client(tmp_path: Path) -> None:
    run(f"{WITHOUT}\nwith compat.install():\n    exec({CLIENT!r})\n    exec({USE!r})\n", tmp_path)


def test_routing_gives_them_and_takes_them_away(tmp_path: Path) -> None:
    code = """
with onnx_exporter.patch_torch_onnx():
    import torch.onnx
    torch.onnx.export(torch.nn.Linear(3, 2), (torch.randn(1, 3),), "model.onnx", dynamo=False)
assert onnx.load("model.onnx").producer_name == "onnx-exporter"
assert not [name for name in sys.modules if name.startswith("torch.onnx")] and "onnx" not in vars(torch)
"""
    run(WITHOUT + code, tmp_path)


LIBRARIES = """
import torch.onnx.ops, torch.onnx.verification, torchvision
from torch.onnx import ExportTypes
from torch.onnx._internal.torchscript_exporter import jit_utils, registration, symbolic_helper
from torch.onnx.utils import _graph_op, _add_attribute

def check(function, args, others, opset, capture="trace", expected=None):
    class Model(torch.nn.Module):
        def forward(self, *inputs):
            return function(*inputs)
    names = [f"x{index}" for index in range(len(args))]
    axes = {
        name: {axis: f"{name}_{axis}" for axis in range(arg.dim()) if arg.shape[axis] != other.shape[axis]}
        for name, arg, other in zip(names, args, others)
    }
    onnx_exporter.export(Model(), args, "model.onnx", opset_version=opset, input_names=names, dynamic_axes=axes, capture=capture)
    session = onnxruntime.InferenceSession("model.onnx")
    for given in (args, others):
        (result,) = session.run(None, {name: arg.numpy() for name, arg in zip(names, given)})
        torch.testing.assert_close(torch.from_numpy(result), (expected or function)(*given), rtol=1e-4, atol=1e-4)

def boxes(count):
    corner = torch.rand(count, 2) * 10
    return torch.cat([corner, corner + torch.rand(count, 2) * 5 + 1], 1)

def rois(count):
    return torch.cat([torch.zeros(count, 1), boxes(count)], 1)

images = torch.randn(1, 2, 16, 16), torch.randn(1, 2, 20, 18)
check(lambda b, s: torchvision.ops.nms(b, s, 0.5), (boxes(20), torch.rand(20)), (boxes(33), torch.rand(33)), 11)
for opset, aligned in ((11, False), (16, True)):
    align = lambda x, r: torchvision.ops.roi_align(x, r, (3, 3), 0.5, 2, aligned)
    check(align, (images[0], rois(3)), (images[1], rois(5)), opset)
check(lambda x, r: torchvision.ops.roi_pool(x, r, (3, 3), 0.5), (images[0], rois(3)), (images[1], rois(5)), 11)

def named(x):
    return torch.onnx.ops.symbolic("Relu", [x], dtype=torch.float32, shape=x.shape) + 1
def leaky(x):
    outputs = torch.onnx.ops.symbolic_multi_out("LeakyRelu", [x], {"alpha": 0.5}, dtypes=[1], shapes=[x.shape])
    return outputs[0]
for capture in ("trace", "export"):
    x, other = torch.randn(2, 3), torch.randn(5, 3)
    check(named, (x,), (other,), 17, capture, lambda x: x.relu() + 1)
    check(leaky, (x,), (other,), 17, capture, lambda x: torch.nn.functional.leaky_relu(x, 0.5))
torch.onnx.verification.verify(torch.nn.ReLU(), (torch.randn(2),), opset_version=12)
"""


def test_torchvision_and_nodes_by_name(tmp_path: Path) -> None:
    run(f"{WITHOUT}\nwith compat.install():\n    exec({LIBRARIES!r}, globals())\n", tmp_path)


@pytest.fixture
def helper() -> object:
    from onnx_exporter.compat.stand_in import _helper

    return _helper


def test_tables_are_torchs(helper: object) -> None:
    """What clients index and compare with means the same as in torch.onnx, where that is there to compare with."""
    theirs = pytest.importorskip("torch.onnx", reason="the tables are compared with torch.onnx's").symbolic_helper
    for name, onnx_type in helper.cast_pytorch_to_onnx.items():  # type: ignore[attr-defined]
        if name in theirs.cast_pytorch_to_onnx:
            assert int(theirs.cast_pytorch_to_onnx[name]) == onnx_type, name
    assert {"Float", "Half", "Long", "Bool", "BFloat16"} <= set(helper.cast_pytorch_to_onnx)  # type: ignore[attr-defined]
    assert helper.scalar_type_to_pytorch_type == theirs.scalar_type_to_pytorch_type[:16]  # type: ignore[attr-defined]
    for number in (0, 1, 2, 3, 4, 5, 6, 7, 11, 15):
        assert helper.scalar_type_to_onnx[number] == int(theirs.scalar_type_to_onnx[number])  # type: ignore[attr-defined]


def test_element_types_are_torchs(helper: object) -> None:
    import torch

    theirs = pytest.importorskip("torch.onnx", reason="the names are compared with torch.onnx's").JitScalarType
    ours = helper.JitScalarType  # type: ignore[attr-defined]
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64):
        mine, other = ours.from_dtype(dtype), theirs.from_dtype(dtype)
        assert (mine.name, int(mine), mine.scalar_name(), mine.torch_name(), mine.dtype()) == (
            *(other.name, int(other), other.scalar_name(), other.torch_name(), other.dtype()),
        )
        assert (
            mine.onnx_type() == int(other.onnx_type())
            and mine.onnx_compatible()
            and ours.from_onnx_type(mine.onnx_type()) is mine
        )
        assert ours.from_name(mine.scalar_name()) is mine and ours.from_value(torch.zeros(1, dtype=dtype)) is mine
    assert ours.from_value(None, ours.UNDEFINED) is ours.UNDEFINED
