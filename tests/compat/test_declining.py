"""What it means that a symbolic function returns None, raises one of torch.onnx's errors, or fails."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import pytest
import torch
import torch.onnx
import torch.onnx.errors
from torch import nn
from torch.onnx import symbolic_helper

import onnx_exporter
from clients import exported, inside, op_types, registered
from onnx_exporter import OperatorExportTypes, SymbolicError, UnsupportedOpError

X = torch.randn(2, 3)
OWNERS = pytest.mark.parametrize("owner", [torch.onnx, onnx_exporter])


def line_of(function: Any, offset: int) -> str:
    return f"test_declining.py:{inspect.getsourcelines(function)[1] + offset}"


# None: to torch.onnx the captured call stays as it is


@OWNERS
def test_a_forgotten_return_is_no_declining(owner: Any) -> None:
    """It would go unnoticed if our own function for the operator stepped in."""

    def relu(g: Any, x: Any) -> None:
        g.op("vendor::Relu", x)

    with (
        registered({"aten::relu": relu}, 18, owner),
        pytest.raises(SymbolicError, match="returned None(.|\n)*ONNX_FALLTHROUGH") as caught,
    ):
        exported(nn.ReLU(), X, opset_version=18)
    assert line_of(relu, 0) in str(caught.value) and "aten::relu" in str(caught.value)


def test_none_of_an_autograd_functions_own_symbolic() -> None:
    with pytest.raises(SymbolicError, match="Called(.|\n)*returned None"):
        inside(lambda g, x: None)


@pytest.mark.parametrize("kind", ["ONNX_FALLTHROUGH", "ONNX_ATEN_FALLBACK"])
def test_a_call_may_stay_as_it_is(kind: str) -> None:
    """Where the export allows it, None is how a function says that this call should."""

    def relu(g: Any, x: Any) -> Any:
        return g.op("Relu", x) if x.type().sizes() == [2, 3] else None

    with registered({"aten::relu": relu}, 18):
        result = exported(
            lambda x: x.relu().sum() + x.reshape(6).relu().sum(),
            X,
            opset_version=18,
            operator_export_type=getattr(OperatorExportTypes, kind),
        )
    name = "org.pytorch.aten::relu" if kind == "ONNX_FALLTHROUGH" else "org.pytorch.aten::ATen"
    assert op_types(result).count("Relu") == 1 and op_types(result).count(name) == 1


def test_a_call_without_results_is_left_out() -> None:
    library = torch.library.Library("compat_declining", "FRAGMENT")
    library.define("note(Tensor x) -> ()")
    library.impl("note", lambda x: None, "CompositeExplicitAutograd")

    def model(x: torch.Tensor) -> torch.Tensor:
        torch.ops.compat_declining.note(x)
        return x + 1

    with registered({"compat_declining::note": lambda g, x: None}, 9):
        assert op_types(exported(model, X)) == ["Add"]


def test_one_that_is_built_on_gets_no_none() -> None:
    def outer(g: Any, x: Any) -> Any:
        return g.call("aten::relu", x)

    with (
        registered({"aten::relu": lambda g, x: None, "aten::elu": lambda g, x, *rest: outer(g, x)}, 18, onnx_exporter),
        pytest.raises(SymbolicError, match="aten::elu failed(.|\n)*returned None"),
    ):
        exported(nn.ELU(), X, opset_version=18)


def test_some_results_may_be_none() -> None:
    def topk(g: Any, x: Any, k: Any, *rest: Any) -> Any:
        return g.op("TopK", x, g.op("Unsqueeze", k, torch.tensor([0])), outputs=2)[0], None

    with registered({"aten::topk": topk}, 13):
        assert op_types(exported(lambda x: x.topk(2)[0], X, verify=True)) == ["TopK"]


# An error of torch.onnx's: the function does not convert these arguments


@OWNERS
@pytest.mark.parametrize(
    "refuse",
    [
        lambda x: symbolic_helper._unimplemented("relu", "only for other sizes", x),
        lambda x: symbolic_helper._onnx_unsupported("relu, only for other sizes", x),
        lambda x: symbolic_helper._onnx_opset_unsupported_detailed("relu", 9, 11, "only for other sizes", x),
    ],
)
def test_another_function_is_asked(refuse: Any, owner: Any) -> None:
    def relu(g: Any, x: Any) -> Any:
        return refuse(x) if x.type().sizes() == [2, 3] else g.op("vendor::Relu", x)

    with registered({"aten::relu": relu}, 18, owner):
        result = exported(lambda x: x.relu().sum() + x.reshape(6).relu().sum(), X, opset_version=18)
    assert op_types(result).count("Relu") == 1 and op_types(result).count("vendor::Relu") == 1


def test_what_it_made_before_it_declined_is_taken_back() -> None:
    def relu(g: Any, x: Any) -> Any:
        node = g.graph.create("vendor::Half", [g.op("vendor::Other", x)])
        g.graph.insertNode(node)
        symbolic_helper._unimplemented("relu", "after all")

    with registered({"aten::relu": relu}, 18):
        assert op_types(exported(nn.ReLU(), X, opset_version=18, verify=True)) == ["Relu"]


def test_what_it_put_among_earlier_nodes_too() -> None:
    def relu(g: Any, x: Any) -> Any:
        g.graph.create("vendor::Before", [g.graph.inputs()[0]]).insertBefore(x.node())
        symbolic_helper._unimplemented("relu", "after all")

    with registered({"aten::relu": relu}, 18):
        assert op_types(exported(lambda x: (-x).relu().exp(), X, opset_version=18, verify=True)) == ["Neg", "Relu", "Exp"]


def test_if_nobody_converts_the_reason_is_told() -> None:
    def qr(g: Any, x: Any, mode: Any) -> Any:
        symbolic_helper._unimplemented("linalg_qr", "not in this test")

    with (
        registered({"aten::linalg_qr": qr}, 9),
        pytest.raises(UnsupportedOpError, match=r"torch\.onnx \(qr\)(.|\n)*not in this test") as caught,
    ):
        exported(lambda x: torch.linalg.qr(x)[0], X)
    assert line_of(qr, 0) in str(caught.value)


# Any other error: the function's own, with its line, the operator and the arguments


class Odd(Exception):
    """An error of the client's own."""


@OWNERS
@pytest.mark.parametrize("error", [RuntimeError, NotImplementedError, TypeError, AssertionError, KeyError, RecursionError, Odd])
@pytest.mark.parametrize("kind", ["ONNX", "ONNX_FALLTHROUGH"])
def test_a_fault_is_never_taken_for_unsupported(owner: Any, error: type[Exception], kind: str) -> None:
    """torch.onnx itself takes a RuntimeError for a reason to fall back."""

    def relu(g: Any, x: Any) -> Any:
        g.op("Relu", x)
        raise error("it broke")

    with (
        registered({"aten::relu": relu}, 18, owner),
        pytest.raises(SymbolicError, match=f"aten::relu failed: {error.__name__}(.|\n)*it broke") as caught,
    ):
        exported(nn.ReLU(), X, opset_version=18, operator_export_type=getattr(OperatorExportTypes, kind))
    message = str(caught.value)
    assert line_of(relu, 2) in message and "float32[2, 3]" in message and isinstance(caught.value.__cause__, error)


def test_a_fault_beneath_decorators() -> None:
    @symbolic_helper.parse_args("v", "f", "f", "f")
    def elu(g: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
        return g.op("Elu", x, alpha_f=[][0])

    with registered({"aten::elu": elu}, 18), pytest.raises(SymbolicError, match="IndexError(.|\n)*alpha=0.5") as caught:
        exported(nn.ELU(0.5), X, opset_version=18)
    assert line_of(elu, 2) in str(caught.value)


def test_a_wrong_number_of_arguments_names_the_operator() -> None:
    with (
        registered({"aten::elu": lambda g, x: g.op("Elu", x)}, 18),
        pytest.raises(SymbolicError, match=r"aten::elu failed: TypeError(.|\n)*takes 2 positional arguments"),
    ):
        exported(nn.ELU(), X, opset_version=18)


def test_a_wrong_number_of_results() -> None:
    with (
        registered({"aten::topk": lambda g, x, *rest: g.op("Identity", x)}, 18),
        pytest.raises(SymbolicError, match="aten::topk failed: .*test_declining.py.* returned 1 values, but the call has 2"),
    ):
        exported(lambda x: x.topk(2), X, opset_version=18)


def test_warnings_of_a_client_are_its_own() -> None:
    def relu(g: Any, x: Any) -> Any:
        warnings.warn("as the client says", FutureWarning, stacklevel=1)
        return g.op("Relu", x)

    with registered({"aten::relu": relu}, 18), pytest.warns(FutureWarning, match="as the client says"):
        exported(nn.ReLU(), X, opset_version=18)
