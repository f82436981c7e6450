"""Code written for torch.onnx of PyTorch 1.8 to 2.8 imports, and sees the running export."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.onnx
from torch import nn

import onnx_exporter
from onnx_exporter import compat
from onnx_exporter.compat import exporting

CODE = """
import torch.onnx.symbolic_registry as sym_registry
from torch.onnx.symbolic_registry import register_op, is_registered_op
from torch.onnx import symbolic_helper as sym_help
from torch.onnx.symbolic_helper import _default_onnx_opset_version, parse_args, _get_tensor_sizes
from torch.onnx.symbolic_opset9 import _convolution
from torch.onnx.symbolic_opset14 import _attention_scale
from torch.onnx import _type_utils
from torch.onnx._globals import GLOBALS
from torch.onnx._internal import jit_utils, registration, _beartype
from torch.onnx import SymbolicContext, CheckerError
from torch.onnx.utils import ONNXCheckerError, get_ns_op_name_from_custom_op
from torch.onnx import ExportOptions, dynamo_export, _patch_torch

@_beartype.beartype
def checked(x: int) -> int:
    return x
"""


@pytest.fixture
def old_names() -> Iterator[dict[str, Any]]:
    names: dict[str, Any] = {}
    with compat.install():
        exec(CODE, names)
        yield names


def test_what_old_code_imports(old_names: dict[str, Any]) -> None:
    assert old_names["checked"]("unchecked") == "unchecked"
    assert old_names["_default_onnx_opset_version"] == 9
    assert old_names["SymbolicContext"] is onnx_exporter.SymbolicContext
    assert old_names["CheckerError"] is old_names["ONNXCheckerError"] is onnx_exporter.CheckerError
    assert old_names["jit_utils"].GraphContext and old_names["registration"].registry and old_names["_type_utils"].JitScalarType
    assert callable(old_names["_convolution"])
    assert old_names["get_ns_op_name_from_custom_op"]("mine::frob") == ("mine", "frob")


def test_dynamo_export(old_names: dict[str, Any]) -> None:
    if hasattr(torch.onnx, "dynamo_export") and torch.__version__ < "2.9":
        pytest.skip("this PyTorch has its own, which stays")
    options = old_names["ExportOptions"](dynamic_shapes=True, op_level_debug=False)
    program = old_names["dynamo_export"](nn.Linear(3, 2), torch.randn(2, 3), export_options=options)
    assert program.model.producer_name == "onnx-exporter"
    assert program(torch.ones(5, 3))[0].shape == (5, 2)


def test_state_follows_the_running_export(old_names: dict[str, Any]) -> None:
    sym_help, state = old_names["sym_help"], old_names["GLOBALS"]
    before = sym_help._export_onnx_opset_version
    with exporting(11, onnx_exporter.TrainingMode.TRAINING):
        assert sym_help._export_onnx_opset_version == state.export_onnx_opset_version == 11
        assert sym_help._training_mode == onnx_exporter.TrainingMode.TRAINING
        facade = importlib.import_module("torch.onnx.symbolic_helper")
        assert facade._export_onnx_opset_version == 11
        sym_help._set_opset_version(12)
        assert state.export_onnx_opset_version == 12
    assert sym_help._export_onnx_opset_version == before
    assert not sym_help.is_caffe2_aten_fallback() and 9 in sym_help._onnx_stable_opsets
    assert not hasattr(sym_help, "_no_such_thing")


def test_operators_registered_in_the_old_way(old_names: dict[str, Any]) -> None:
    class Elu(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.elu(x)

    old_names["register_op"]("elu", lambda g, x, *rest: g.op("mmcv::Elu", x), "", 11)
    try:
        assert old_names["is_registered_op"]("elu", "", 11)
        assert old_names["sym_registry"]._registry["", 11]["elu"]
        (node,) = onnx_exporter.export(Elu(), torch.randn(2), opset_version=11).model.graph
        assert node.domain == "mmcv"
    finally:
        old_names["sym_registry"].unregister_op("elu", "", 11)


def test_all_of_it_is_taken_back() -> None:
    with compat.install():
        pass  # it has imported the modules of torch.onnx that it extends
    before = set(vars(torch.onnx)), {name for name in sys.modules if name.startswith("torch.onnx")}
    installed = compat.install()
    assert hasattr(torch.onnx, "SymbolicContext") and "torch.onnx.symbolic_registry" in sys.modules
    installed.uninstall()
    assert before == (set(vars(torch.onnx)), {name for name in sys.modules if name.startswith("torch.onnx")})
    assert not hasattr(torch.onnx, "symbolic_registry")
    assert not hasattr(torch.onnx.symbolic_helper, "_export_onnx_opset_version")
    with pytest.raises(ImportError):
        importlib.import_module("torch.onnx.symbolic_registry")


def test_twice() -> None:
    with compat.install():
        with compat.install():
            assert hasattr(torch.onnx, "SymbolicContext")
        assert hasattr(torch.onnx, "SymbolicContext"), "the outer one still stands"
    assert not hasattr(torch.onnx, "SymbolicContext")


def test_names_that_are_there_stay() -> None:
    before = torch.onnx.symbolic_helper.parse_args, torch.onnx.symbolic_helper, torch.onnx.utils
    with compat.install():
        assert before == (torch.onnx.symbolic_helper.parse_args, torch.onnx.symbolic_helper, torch.onnx.utils)


def test_routing_brings_them_too() -> None:
    had_a_log = hasattr(torch.onnx, "is_onnx_log_enabled")
    with onnx_exporter.patch_torch_onnx():
        assert importlib.import_module("torch.onnx.symbolic_registry").register_op
        assert torch.onnx.is_onnx_log_enabled() is False
        assert torch.onnx.utils.is_in_onnx_export() is False
        assert "Relu" in torch.onnx.export_to_pretty_string(torch.nn.ReLU(), torch.ones(2))
        assert "Relu" in torch.onnx.utils.export_to_pretty_string(torch.nn.ReLU(), (torch.ones(2),), google_printer=True)
    assert hasattr(torch.onnx, "is_onnx_log_enabled") is had_a_log
