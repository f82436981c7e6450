"""Symbolic functions registered for the process, with us and with torch.onnx."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.onnx
from torch import nn
from torch.onnx import symbolic_helper

import onnx_exporter
from onnx_exporter import GraphContext, OpTable, RegistrationError, SymbolicContext, SymbolicError, Value, symbolic_registry
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._symbolics import REGISTERED


class Elu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.elu(x, 0.5)


def op_types(model: nn.Module | None = None, **options: Any) -> list[str]:
    result = onnx_exporter.export(model or Elu(), torch.randn(2, 3), **options)
    return [f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in result.model.graph]


def named(name: str) -> Callable[..., Any]:
    """A symbolic function for elu that emits one node, by which the file tells who converted."""

    def symbolic(g: Any, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
        return g.op(f"here::{name}", x)

    return symbolic


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    yield
    for name, opset, _ in list(REGISTERED):
        onnx_exporter.unregister_custom_op_symbolic(name, opset)
    group = _torch_onnx.find_registry().get_function_group("aten::elu")
    for opset in list(group._functions):
        group._functions.remove_override(opset)


# With us


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("name", ["aten::elu", "::elu"])
def test_registered_and_unregistered(name: str, capture: str) -> None:
    assert op_types(capture=capture) == ["Elu"]
    onnx_exporter.register_custom_op_symbolic(name, named("Mine"), 9)
    assert op_types(capture=capture) == ["here::Mine"]
    onnx_exporter.unregister_custom_op_symbolic(name, 9)
    assert op_types(capture=capture) == ["Elu"]


def test_right_from_its_opset_on() -> None:
    for opset in (1, 11, 16):
        onnx_exporter.register_custom_op_symbolic("aten::elu", named(f"From{opset}"), opset)
    found = {opset: op_types(opset_version=opset)[0] for opset in (7, 10, 11, 15, 16, 28)}
    assert found == {
        7: "here::From1",
        10: "here::From1",
        11: "here::From11",
        15: "here::From11",
        16: "here::From16",
        28: "here::From16",
    }


def test_not_below_its_opset() -> None:
    onnx_exporter.register_custom_op_symbolic("aten::elu", named("Mine"), 13)
    assert op_types(opset_version=12) == ["Elu"]
    assert op_types(opset_version=13) == ["here::Mine"]


def test_registering_again_replaces() -> None:
    onnx_exporter.register_custom_op_symbolic("aten::elu", named("First"), 9)
    onnx_exporter.register_custom_op_symbolic("aten::elu", named("Second"), 9)
    assert op_types() == ["here::Second"]


def test_order_of_precedence() -> None:
    table = OpTable(opset=9)

    @table.op("aten::elu")
    def of_the_call(g: GraphContext, self: Value, alpha: float) -> Value:
        return g.op("here::Call", self)

    onnx_exporter.register_custom_op_symbolic("aten::elu", named("Process"), 9)
    torch.onnx.register_custom_op_symbolic("aten::elu", named("Torch"), 28)
    assert op_types(plugins=[table], opset_version=28) == ["here::Call"]
    assert op_types(opset_version=28) == ["here::Process"]
    onnx_exporter.unregister_custom_op_symbolic("aten::elu", 9)
    assert op_types(opset_version=28) == ["here::Torch"]


def test_an_overload_of_its_own() -> None:
    class Sums(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum() + x.sum(1)

    onnx_exporter.register_custom_op_symbolic("aten::sum.dim_IntList", lambda g, x, *rest: g.op("here::Along", x), 9)
    assert op_types(Sums(), opset_version=13)[:2] == ["ReduceSum", "here::Along"]


def test_arguments_come_by_position_and_complete() -> None:
    seen: list[Any] = []

    def softmax(g: Any, *args: Any) -> Any:
        seen.extend(args)
        return g.op("Softmax", args[0], axis_i=args[1])

    onnx_exporter.register_custom_op_symbolic("aten::softmax", softmax, 13)
    assert op_types(nn.Softmax(1)) == ["Softmax"]
    assert len(seen) == 3 and symbolic_helper._get_const(seen[1], "i", "dim") == 1 and symbolic_helper._is_none(seen[2])


def test_element_types_are_numbers_as_in_torchscript() -> None:
    seen: list[Any] = []

    def to(g: Any, x: Any, dtype: Any, *rest: Any) -> Any:
        seen.append(symbolic_helper._get_const(dtype, "i", "dtype"))
        return g.op("Cast", x, to_i=symbolic_helper.scalar_type_to_onnx[seen[0]])

    class ToDouble(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.to(torch.float64)

    onnx_exporter.register_custom_op_symbolic("aten::to", to, 9)
    assert op_types(ToDouble()) == ["Cast"]
    assert seen == [7]


def test_parse_args_of_torch() -> None:
    @symbolic_helper.parse_args("v", "f", "f", "f")
    def elu(g: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
        return g.op("Elu", x, alpha_f=alpha * 2)

    onnx_exporter.register_custom_op_symbolic("aten::elu", elu, 9)
    (node,) = onnx_exporter.export(Elu(), torch.randn(2)).model.graph
    assert node.attributes["alpha"].value == 1.0


def test_another_function_may_build_on_it() -> None:
    """An operator that is converted by way of a registered one gets what was registered, with PyTorch's defaults."""
    seen: list[Any] = []

    def clamp(g: Any, x: Any, low: Any, high: Any) -> Any:
        seen.append((symbolic_helper._get_const(low, "f", "min"), symbolic_helper._is_none(high)))
        return g.op("here::Clamp", x)

    table = OpTable(opset=9)

    @table.op("aten::elu")
    def elu(g: GraphContext, self: Value, alpha: float) -> Value:
        return g.call("aten::clamp", self, min=0)

    onnx_exporter.register_custom_op_symbolic("aten::clamp", clamp, 9)
    assert op_types(plugins=[table]) == ["here::Clamp"]
    assert seen == [(0, True)]


@pytest.mark.parametrize("annotation", [SymbolicContext, "SymbolicContext", "torch.onnx.SymbolicContext"])
def test_symbolic_context_comes_first_where_it_is_annotated(annotation: Any) -> None:
    seen: list[SymbolicContext] = []

    def linear(ctx: Any, g: Any, x: Any, weight: Any, bias: Any) -> Any:
        seen.append(ctx)
        return g.op("here::Linear", x, weight, bias)

    linear.__annotations__["ctx"] = annotation
    onnx_exporter.register_custom_op_symbolic("aten::linear", linear, 9)
    assert op_types(nn.Linear(3, 2)) == ["here::Linear"]
    (context,) = seen
    assert context.cur_node.kind() == "aten::linear"
    assert set(context.params_dict) == {"weight", "bias"}
    assert list(context.env) and context.onnx_block is not None


def test_symbolic_context_of_an_autograd_function() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, factor: int) -> torch.Tensor:
            return x * factor

        @staticmethod
        def symbolic(ctx: SymbolicContext, g: Any, x: Any, factor: int) -> Any:
            return g.op("here::Double", x, factor_i=factor, seen_s=ctx.cur_node.kind())

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Double.apply(x, 2)

    assert op_types(Model()) == ["here::Double"]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, power: int) -> torch.Tensor:
        return x**power


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x / 2


class Functions(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Halve.apply(Cube.apply(x, 3))


@pytest.mark.parametrize("name", ["prim::PythonOp", "::prim_PythonOp"])
def test_a_handler_for_any_autograd_function(name: str) -> None:
    def python_op(g: Any, *args: Any, **kwargs: Any) -> Any:
        assert kwargs.keys() == {"name", "module", "inplace"} and kwargs["module"] == __name__ and not kwargs["inplace"]
        return g.op("here::Cube", args[0], power_i=args[1]) if kwargs["name"] == "Cube" else None

    onnx_exporter.register_custom_op_symbolic(name, python_op, 1)
    assert op_types(Functions()) == ["here::Cube", "Div"], "what the handler declines is inlined"
    onnx_exporter.unregister_custom_op_symbolic(name, 1)
    assert op_types(Functions()) == ["Mul", "Mul", "Div"]


def test_a_callable_without_a_name() -> None:
    onnx_exporter.register_custom_op_symbolic("aten::elu", functools.partial(lambda g, x, *rest, to: g.op(to, x), to="Selu"), 9)
    assert op_types() == ["Selu"]


def test_a_function_that_fails_is_named_with_its_place() -> None:
    def elu(g: Any, x: Any, *rest: Any) -> Any:
        raise IndexError("list index out of range")

    onnx_exporter.register_custom_op_symbolic("aten::elu", elu, 9)
    message = r"aten::elu failed: IndexError(.|\n)*by register_custom_op_symbolic: elu at .*test_registering"
    with pytest.raises(SymbolicError, match=message) as caught:
        op_types()
    assert isinstance(caught.value.__cause__, IndexError)


def test_the_file_says_who_converted() -> None:
    onnx_exporter.register_custom_op_symbolic("aten::elu", named("Mine"), 9)
    result = onnx_exporter.export(Elu(), torch.randn(2))
    (origin,) = result.origins.values()
    assert origin.plugin == "register_custom_op_symbolic" and "test_registering.py" in origin.line


@pytest.mark.parametrize(
    ("name", "function", "opset", "message"),
    [
        ("elu", named("x"), 9, "'elu' is not the name of an operator"),
        ("aten::e lu", named("x"), 9, "not the name of an operator"),
        ("onnx::Elu", named("x"), 9, "needs no conversion"),
        (3, named("x"), 9, "not the name"),
        ("aten::elu", "elu", 9, "symbolic_fn is 'elu'; give a function"),
        ("aten::elu", named("x"), 0, "opset_version is 0"),
        ("aten::elu", named("x"), "9", "opset_version is '9'"),
    ],
)
def test_wrong_registrations_are_told(name: Any, function: Any, opset: Any, message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        onnx_exporter.register_custom_op_symbolic(name, function, opset)


def test_unregistering_what_is_not_registered_warns() -> None:
    with pytest.warns(UserWarning, match="no symbolic function is registered for 'aten::elu' at opset 9"):
        onnx_exporter.unregister_custom_op_symbolic("aten::elu", 9)


# With torch.onnx


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_torchs_registry_is_read_at_each_export(capture: str) -> None:
    torch.onnx.register_custom_op_symbolic("aten::elu", named("Torch"), 9)
    assert op_types(capture=capture) == ["here::Torch"]
    torch.onnx.unregister_custom_op_symbolic("aten::elu", 9)
    assert op_types(capture=capture) == ["Elu"]


def test_torchs_rule_built_ins_count() -> None:
    """aten::elu is built into torch.onnx at opset 9: one registered for 1 loses to it from there on, one for 11 wins."""
    torch.onnx.register_custom_op_symbolic("aten::elu", named("From1"), 1)
    assert {opset: op_types(opset_version=opset)[0] for opset in (7, 8, 9, 18)} == dict.fromkeys((7, 8, 9, 18), "Elu")
    torch.onnx.register_custom_op_symbolic("aten::elu", named("From11"), 11)
    assert {opset: op_types(opset_version=opset)[0] for opset in (9, 10, 11, 18)} == {
        9: "Elu",
        10: "Elu",
        11: "here::From11",
        18: "here::From11",
    }


def test_torchs_rule_below_its_base() -> None:
    """Below opset 9 torch.onnx takes what is registered for the next opset up to 9."""
    torch.onnx.register_custom_op_symbolic("aten::elu", named("From9"), 9)
    assert [op_types(opset_version=opset)[0] for opset in (7, 8, 9, 13)] == ["here::From9"] * 4


def test_torchs_rule_for_a_later_built_in() -> None:
    """torch.onnx has tril built in at opset 14: what is registered for 1 is used below, and not from there on."""

    class Tril(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.tril()

    torch.onnx.register_custom_op_symbolic("aten::tril", lambda g, x, k: g.op("here::Tril", x), 1)
    try:
        found = {opset: "here::Tril" in op_types(Tril(), opset_version=opset) for opset in (9, 13, 14, 20)}
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::tril", 1)
    assert found == {9: True, 13: True, 14: False, 20: False}


def test_torchs_own_functions_convert_nothing() -> None:
    """An operator that torch.onnx has and we have not stays unsupported."""
    with pytest.raises(onnx_exporter.UnsupportedOpError):
        op_types(plugins=["no:symbolic_opset7"], opset_version=13)


def test_unconvertible_for_torchs_registered_function(tmp_path: Any) -> None:
    """What another library registered for its own operators is found, whenever that was."""
    library = torch.library.Library("compat_tests", "FRAGMENT")
    library.define("frob(Tensor x, int n) -> Tensor")
    library.impl("frob", lambda x, n: x + n, "CompositeExplicitAutograd")

    class Frob(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.compat_tests.frob(x, 3)

    with pytest.raises(onnx_exporter.UnsupportedOpError, match="compat_tests::frob"):
        op_types(Frob())
    torch.onnx.register_custom_op_symbolic("compat_tests::frob", lambda g, x, n: g.op("here::Frob", x, n_i=n), 1)
    try:
        (node,) = onnx_exporter.export(Frob(), torch.randn(2), opset_version=22).model.graph
        assert node.op_type == "Frob" and node.attributes["n"].value == 3
        graph, unknown = onnx_exporter.utils.unconvertible_ops(Frob(), torch.randn(2))
        assert unknown == []
    finally:
        torch.onnx.unregister_custom_op_symbolic("compat_tests::frob", 1)
    graph, unknown = onnx_exporter.utils.unconvertible_ops(Frob(), torch.randn(2))
    assert unknown == ["compat_tests::frob"] and [node.op for node in graph.nodes] == ["compat_tests::frob"]


def test_unconvertible_ops_lists_each_once_in_order() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            q, r = torch.linalg.qr(x)
            return torch.linalg.eigvalsh(q @ q.mT) + torch.linalg.qr(r)[1].sum()

    model = Model()
    _, unknown = onnx_exporter.utils.unconvertible_ops(model, torch.randn(3, 3), onnx_exporter.TrainingMode.EVAL, 18)
    assert unknown == ["aten::linalg_qr", "aten::linalg_eigvalsh"]
    assert model.training


# The module of old


def test_symbolic_registry() -> None:
    function = named("Old")
    assert not symbolic_registry.is_registered_op("frob", "mine", 11)
    symbolic_registry.register_op("frob", function, "mine", 9)
    assert symbolic_registry.is_registered_op("frob", "mine", 11)
    assert symbolic_registry.get_registered_op("frob", "mine", 11) is function
    assert symbolic_registry._registry["mine", 9] == {"frob": function}
    symbolic_registry.unregister_op("frob", "mine", 9)
    assert ("mine", 9) not in symbolic_registry._registry
    with pytest.raises(onnx_exporter.UnsupportedOpError, match="mine::frob(.|\n)*register_op"):
        symbolic_registry.get_registered_op("frob", "mine", 11)


def test_symbolic_registry_names_aten_and_prim() -> None:
    symbolic_registry.register_op("elu", named("Old"), "", 9)
    symbolic_registry.register_op("prim_PythonOp", named("Old"), "", 9)
    assert op_types() == ["here::Old"]
    assert set(symbolic_registry._registry["", 9]) == {"elu", "prim_PythonOp"}
    symbolic_registry.register_version("", 9)


def test_symbolic_registry_knows_what_torch_has() -> None:
    """Old code asks for a built-in to build on."""
    assert symbolic_registry.is_registered_op("relu", "", 13)
    assert symbolic_registry.get_registered_op("relu", "", 13).__name__ == "relu"
