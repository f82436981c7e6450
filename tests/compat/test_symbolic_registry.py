"""The registry of PyTorch 1.8 to 1.12, and functions that were registered with the decorator of torch.onnx's own."""

from __future__ import annotations

import functools
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import onnx_exporter
from clients import exported, op_types
from onnx_exporter import compat, symbolic_registry
from onnx_exporter.compat import _torch_onnx

X = torch.randn(2)


@pytest.fixture(autouse=True)
def routes() -> Iterator[None]:
    with compat.install():
        yield


def relu(g: Any, x: Any) -> Any:
    return g.op("mine::Relu", x)


def exports(opset: int = 13) -> list[str]:
    return op_types(exported(nn.ReLU(), X, opset_version=opset))


def test_what_torch_registered_is_seen_and_taken_back() -> None:
    torch.onnx.register_custom_op_symbolic("::relu", relu, 11)
    registry = symbolic_registry._registry
    assert symbolic_registry.is_registered_op("relu", "", 13)
    assert symbolic_registry.get_registered_op("relu", "", 13) is relu
    assert registry["", 11]["relu"] is relu and "relu" in set(registry["", 11]) and exports() == ["mine::Relu"]
    symbolic_registry.unregister_op("relu", "", 11)
    assert exports() == ["Relu"] and registry["", 11].get("relu") is not relu
    with pytest.warns(UserWarning, match="relu"):
        symbolic_registry.unregister_op("relu", "", 11)


def test_assigning_and_deleting() -> None:
    registry = symbolic_registry._registry
    registry["", 13]["relu"] = relu
    assert exports() == ["mine::Relu"] and symbolic_registry.is_registered_op("relu", "", 13)
    del registry["", 13]["relu"]
    assert exports() == ["Relu"]
    with pytest.raises(KeyError):
        del registry["", 13]["relu"]
    registry["mine", 9] = {}
    assert ("mine", 9) in registry and symbolic_registry.is_registered_version("mine", 9)
    registry["mine", 9]["frob"] = relu
    assert symbolic_registry.get_op_supported_version("frob", "mine", 7) == 9
    del registry["mine", 9]
    assert ("mine", 9) not in registry and not symbolic_registry.is_registered_op("frob", "mine", 11)
    with pytest.raises(KeyError):
        registry["mine", 9]


def test_unknown_names() -> None:
    with pytest.warns(UserWarning, match="The opname nope is not registered"):
        symbolic_registry.unregister_op("nope", "", 11)
    with pytest.raises(symbolic_registry.UnsupportedOperatorError, match="aten::nope"):
        symbolic_registry.get_registered_op("nope", "", 11)
    assert symbolic_registry.get_op_supported_version("nope", "", 9) is None


def test_pytorchs_own() -> None:
    builtin = symbolic_registry._registry["", 13]["relu"]
    assert builtin.__module__.startswith("torch.")
    assert ("", "hardswish") in {(domain, name) for domain, name, _ in symbolic_registry.get_ops_in_version(14)}
    assert symbolic_registry._symbolic_versions[9].relu.__name__ == "relu" and 13 in symbolic_registry._symbolic_versions
    with pytest.raises(KeyError):
        symbolic_registry._symbolic_versions[99]
    symbolic_registry.register_ops_in_version("", 13)
    symbolic_registry.register_ops_helper("", 13, 9)
    assert symbolic_registry.is_registered_version("", 13)


def test_names_of_old() -> None:
    code = (
        "from torch.onnx.symbolic_registry import (register_op, unregister_op, is_registered_op, get_registered_op,"
        " register_version, is_registered_version, register_ops_in_version, get_ops_in_version, get_op_supported_version,"
        " register_ops_helper, UnsupportedOperatorError, _registry, _symbolic_versions)"
    )
    exec(code, {})


@pytest.mark.parametrize("decorated", ["plain", "partial", "parse_args"])
def test_the_decorator_of_torchs_own(decorated: str) -> None:
    """It leaves the function among PyTorch's; in a process of its own, since it cannot be taken back."""
    made = {
        "plain": "relu",
        "partial": "functools.partial(relu)",
        "parse_args": "torch.onnx.symbolic_helper.parse_args('v')(relu)",
    }[decorated]
    code = f"""
import functools, torch, torch.onnx, onnx_exporter
from onnx_exporter.compat import _torch_onnx
internal = "torch.onnx._internal"
registration = _torch_onnx.find_module(internal + ".torchscript_exporter.registration", internal + ".registration")
def relu(g, x): return g.op("mine::Relu", x)
registration.onnx_symbolic("aten::relu", opset=14)({made})
registration.onnx_symbolic("mine::frob", opset=9)({made})
for opset in (13, 14, 18):
    model = onnx_exporter.export(torch.nn.ReLU(), torch.randn(2), opset_version=opset).model
    print([node.domain for node in model.graph])
"""
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.split("\n")[:3] == ["['']", "['mine']", "['mine']"], result.stdout + result.stderr


def test_pytorchs_own_are_not_taken_for_others() -> None:
    from onnx_exporter.compat import _symbolics

    _torch_onnx.load_builtins()
    others = {name for name, _, function in _symbolics.registered_with_torch() if _module(function).startswith("torch.")}
    assert not others


def _module(function: Any) -> str:
    return str(getattr(function.func if isinstance(function, functools.partial) else function, "__module__", ""))


def test_private_functions_of_old() -> None:
    import torch.onnx.symbolic_opset9 as opset9
    from torch.onnx import ExportTypes
    from torch.onnx.utils import _add_attribute, _graph_op, _newNode, _node_getitem

    assert "file" in ExportTypes.PROTOBUF_FILE

    def symbolic(g: Any, x: Any) -> Any:
        made = _newNode(g, "mine::Frob", 1, x, axes_i=[0, 1], name_s="n")
        _add_attribute(made, "alpha_f", 0.5, False)
        g.graph.insertNode(made)
        assert _node_getitem(made, "alpha") == 0.5 and made.owningBlock() is g.graph.block
        made.output().setType(x.type())
        whole = opset9._cast_Long(g, _graph_op(g, "Relu", made.output()), False)
        assert whole.node().prev().kind() == "onnx::Relu" and whole.node().prev().prev() is made
        assert made.next().kind() == "onnx::Relu" and whole.node().next() is None
        return whole

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.long()

    Called.symbolic = staticmethod(symbolic)  # type: ignore[attr-defined]
    with warnings.catch_warnings():
        warnings.simplefilter("error", onnx_exporter.ExportWarning)
        result = exported(lambda x: Called.apply(x), X)
    assert op_types(result) == ["mine::Frob", "Relu", "Cast"]
    with pytest.raises(AttributeError):
        opset9._cast_Nonsense  # noqa: B018
