"""Tables check what is registered when it is registered."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from onnx_exporter import GraphContext, OpTable, RegistrationError, Value
from onnx_exporter._arguments import NotConstantError, parse_signature


def test_registers_a_function_under_its_names():
    table = OpTable(opset=9)

    @table.op("foo::a", "foo::b.Tensor")
    def function(g: GraphContext, x: Value) -> Value:
        """Does nothing."""
        return x

    assert set(table.entries) == {"foo::a", "foo::b.Tensor"}
    assert table.entries["foo::a"].function is function
    assert table.entries["foo::a"].opset == 9
    assert table.entries["foo::a"].place.startswith(__file__)


@pytest.mark.parametrize("opset", [6, 29, "9", None])
def test_opset_out_of_range(opset):
    with pytest.raises(RegistrationError, match="from 7 to 28"):
        OpTable(opset=opset)


@pytest.mark.parametrize("name", ["elu", "aten.elu", "aten::elu::x", "aten::", "::elu", 3])
def test_malformed_names(name):
    with pytest.raises(RegistrationError, match="name of an operator"):
        OpTable().op(name)


def test_no_name():
    with pytest.raises(RegistrationError, match="at least one"):
        OpTable().op()


def test_a_name_twice_names_the_first_place():
    table = OpTable()

    @table.op("foo::a")
    def first(g: GraphContext, x: Value) -> Value:
        return x

    with pytest.raises(RegistrationError, match=f"already in this table, at {__file__}"):
        table.op("foo::a")(first)


def test_the_context_comes_first():
    with pytest.raises(RegistrationError, match="first parameter"):
        OpTable().op("foo::a")(lambda: None)


def test_parameters_need_annotations():
    def function(g, x):
        return x

    with pytest.raises(RegistrationError, match="'x' has no annotation"):
        OpTable().op("foo::a")(function)


def test_annotations_must_be_converters():
    def function(g: GraphContext, x: dict[str, int]) -> Value: ...

    with pytest.raises(RegistrationError, match="no converter"):
        OpTable().op("foo::a")(function)


def test_variadic_parameters_are_refused():
    def function(g: GraphContext, *xs: Value) -> Value: ...

    with pytest.raises(RegistrationError, match="bound by name"):
        OpTable().op("foo::a")(function)


def test_promote_names_parameters():
    def function(g: GraphContext, x: Value) -> Value: ...

    with pytest.raises(RegistrationError, match="no parameter"):
        OpTable().op("foo::a", promote=("y",))(function)


@pytest.mark.parametrize(
    ("pattern", "domain", "message"),
    [("acme", "com.acme", "namespace"), ("acme::*", "", "of its own"), ("acme::*", "ai.onnx", "of its own")],
)
def test_passthrough_is_checked(pattern, domain, message):
    with pytest.raises(RegistrationError, match=message):
        OpTable().passthrough(pattern, domain=domain)


def test_entries_are_a_copy():
    table = OpTable()
    table.entries["foo::x"] = 1  # type: ignore[index]
    assert not table.entries


def converted(hint: Any, argument: Any) -> Any:
    def function(g: GraphContext, x: int) -> None: ...

    function.__annotations__["x"] = hint
    return parse_signature(function)["x"].convert(argument, lambda item: ("value", item))


@pytest.mark.parametrize(
    ("hint", "argument", "expected"),
    [
        (int, 3, 3),
        (int, True, 1),
        (int, 2.0, 2),
        (float, 3, 3.0),
        (bool, 1, True),
        (str, "none", "none"),
        (list[int], (1, 2), [1, 2]),
        (list[int], 3, [3]),
        (int | None, None, None),
        (torch.dtype | None, torch.float32, torch.float32),
        (Value, 3, ("value", 3)),
        (int | Value, 3, 3),
        (list[float] | None, [1, 2.5], [1.0, 2.5]),
        (Any, {"a": 1}, {"a": 1}),
    ],
)
def test_conversion(hint, argument, expected):
    result = converted(hint, argument)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(("hint", "argument"), [(int, "a"), (int, 1.5), (int, None), (list[int], ["a"]), (bool, 2), (str, 1)])
def test_wrong_types(hint, argument):
    with pytest.raises(TypeError, match="x is"):
        converted(hint, argument)


def test_a_run_time_value_is_no_constant():
    import onnx_ir as ir

    value = Value(ir.Value(name="v", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([])))
    with pytest.raises(NotConstantError, match="must be a constant"):
        converted(int, value)
    assert converted(int | Value, value) is value


def test_a_trailing_underscore_avoids_a_keyword():
    def function(g: GraphContext, from_: float) -> None: ...

    (parameter,) = parse_signature(function).values()
    assert (parameter.name, parameter.keyword) == ("from", "from_")
