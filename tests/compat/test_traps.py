"""What functions written for torch.onnx rely on without saying so: types, node kinds of arguments, results of odd forms."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper as helper

import onnx_exporter
from onnx_exporter import SymbolicError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, function_of, inside, op_types, output_types, registered, registered_for, verified

X = torch.randn(2, 3, 4)
FLOATS = torch._C.TensorType.get().with_dtype(torch.float32)


# Values


def test_values_pass_for_torchscripts_wherever_python_asks() -> None:
    @functools.singledispatch
    def kind(value: Any) -> str:
        return "other"

    kind.register(torch._C.Value, lambda value: "value")
    kept: list[Any] = []

    def symbolic(g: Any, x: Any) -> Any:
        match x:
            case torch._C.Value():
                matched = True
            case _:
                matched = False
        assert matched and kind(x) == "value" and kind(3) == "other"
        assert {x: 1}[x] == 1 and x != g.op("Identity", x) and x.type() is not None
        kept.append(x)
        return g.op("Identity", x)

    inside(symbolic)
    assert kept[0].type().sizes() == [2, 3, 4] and "%" in repr(kept[0]), "it may be kept beyond the export"


def test_what_pytorch_does_in_c_plus_plus_refuses_cleanly() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        torch._C._jit_pass_dce(g.graph)
        return x

    with pytest.raises(SymbolicError, match="TypeError"):
        inside(symbolic)


def test_numbers_of_the_model_are_no_python_numbers() -> None:
    """As in torch.onnx; the file would be wrong."""
    for misuse in (lambda x: int(x), lambda x: float(x), lambda x: [0][x]):
        with pytest.raises(SymbolicError, match="TypeError"):
            inside(lambda g, x, misuse=misuse: misuse(x))


# Types


def test_forgetting_what_is_known() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        any_tensor = torch._C.TensorType.get()
        made = g.op("vendor::Frob", x).setType(any_tensor)
        assert made.type().dtype() is None and made.type().sizes() is None and made.type().dim() is None
        made.setType(any_tensor.with_sizes([2, None, 4]))
        assert made.type().scalarType() is None and made.type().dim() == 3 and made.type().varyingSizes() == [2, None, 4]
        sizes = x.type().sizes()
        sizes.extend([1])
        assert sizes[-1] == 1 and x.type().sizes() == [2, 3, 4], "clients change the list they get"
        return made.setType(x.type().with_sizes([2, 3, 4]))

    assert output_types(inside(symbolic)) == [("FLOAT", [2, 3, 4])]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16", "uint8", "bool"])
def test_types_that_are_set(dtype: str) -> None:
    kind = getattr(torch, dtype)

    def symbolic(g: Any, x: Any) -> Any:
        low = g.op("vendor::Down", x)
        low.setType(x.type().with_dtype(kind))
        assert low.type().dtype() is kind and low.type().sizes() == [2, 3, 4] and low.type().scalarType() is not None
        return g.op("vendor::Up", low).setType(x.type())

    assert op_types(inside(symbolic, opset=19)) == ["vendor::Down", "vendor::Up"]


def test_types_of_lists_optionals_and_none() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        items = g.op("prim::ListConstruct", x, x)
        assert items.type().isSubtypeOf(torch._C.ListType.ofTensors()) and helper._is_tensor_list(items)
        sequence = g.op("SequenceConstruct", x, x)
        assert isinstance(sequence.type(), torch._C.ListType)
        assert isinstance(g.op("prim::Constant").type(), torch._C.NoneType)
        optional = g.op("Optional", x)
        assert isinstance(optional.type(), torch._C.OptionalType)
        assert optional.type().getElementType().scalarType() == "Float"
        return g.op("OptionalGetElement", optional)

    result = inside(symbolic, opset=18, verify=True)
    assert output_types(result) == [("FLOAT", [2, 3, 4])]


# Attributes that are types


def test_types_as_attributes() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        made = g.op("vendor::Typed", x, like_ty=FLOATS.with_sizes([2, None]), many_ty=[FLOATS, torch._C.ListType(FLOATS)])
        node = made.node()
        assert (node.kindOf("like"), node.kindOf("many")) == ("ty", "tys")
        assert node.ty("like").dtype() is torch.float32 and node.ty("like").varyingSizes() == [2, None]
        assert [type(item) for item in node.tys("many")] == [torch._C.TensorType, torch._C.ListType]
        node.ty_("like", torch._C.OptionalType(FLOATS))
        assert isinstance(node["like"], torch._C.OptionalType)
        return made

    (node,) = inside(symbolic).model_proto.graph.node
    found = {attribute.name: attribute for attribute in node.attribute}
    assert found["like"].tp.optional_type.elem_type.tensor_type.elem_type == 1
    assert [kind.WhichOneof("value") for kind in found["many"].type_protos] == ["tensor_type", "sequence_type"]


def test_an_optional_without_a_value() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        nothing = g.op("Optional", type_ty=FLOATS)
        given = g.op("Optional", x)
        both = [g.op("Cast", g.op("OptionalHasElement", item), to_i=1) for item in (nothing, given)]
        return g.op("Concat", *[g.op("Reshape", item, torch.tensor([1])) for item in both], axis_i=0)

    exported(function_of(symbolic, lambda x: torch.tensor([0.0, 1.0])), X, opset_version=18, verify=True)


def test_a_type_that_onnx_has_not() -> None:
    for kind in (torch._C.TensorType.get(), torch._C.StringType.get()):
        with pytest.raises(SymbolicError, match="none of ONNX"):
            inside(lambda g, x, kind=kind: g.op("vendor::Typed", x, like_ty=kind))


def test_an_attribute_of_a_kind_that_there_is_not() -> None:
    with pytest.raises(SymbolicError, match="the attribute 'axis_q' does not say of which kind it is"):
        inside(lambda g, x: g.op("Softmax", x, axis_q=1))


# Results of vendors' nodes, of whose types nothing is known, go on into nodes of ONNX


@pytest.mark.parametrize(
    ("name", "more", "attrs", "dtype"),
    [
        ("Concat", 1, {"axis_i": 1}, torch.float32),
        ("Add", 1, {}, torch.float32),
        ("MatMul", 1, {}, torch.float32),
        ("Where", 2, {}, torch.float32),
        ("Greater", 1, {}, torch.bool),
        ("Cast", 0, {"to_i": 7}, torch.int64),
        ("Shape", 0, {}, torch.int64),
        ("Relu", 0, {}, None),
        ("SequenceConstruct", 1, {}, None),
        ("TopK", 1, {"outputs": 2}, None),
    ],
)
def test_after_a_vendors_node(name: str, more: int, attrs: dict[str, Any], dtype: torch.dtype | None) -> None:
    def symbolic(g: Any, x: Any) -> Any:
        unknown = g.op("vendor::Frob", x)
        others = [g.op("Constant", value_t=torch.tensor([2]))] if name == "TopK" else [x] * more
        made = g.op(name, unknown, *others, **attrs)
        first = made[0] if isinstance(made, tuple) else made
        if dtype is not None:
            assert first.type().dtype() is dtype
        return g.op("vendor::Last", first)

    assert op_types(inside(symbolic, opset=18)) == ["vendor::Frob", name, "vendor::Last"]


# Arguments


def test_devices_names_and_lists_of_names() -> None:
    seen: list[str] = []

    def zeros_like(g: Any, x: Any, dtype: Any, layout: Any, device: Any, pin: Any, memory_format: Any) -> Any:
        assert device.node().kind() == "prim::Constant" and not device.node().mustBeNone()
        assert isinstance(device.type(), torch._C.DeviceObjType) and helper._is_none(memory_format)
        assert helper._get_const(dtype, "i", "dtype") == 6 and layout.node().mustBeNone()
        seen.append(str(device.toIValue()))
        return g.op("Mul", x, g.op("Constant", value_t=torch.tensor(0.0)))

    model = lambda x: torch.zeros_like(x, dtype=torch.float32, device="cpu")  # noqa: E731
    registered_for("aten::zeros_like", zeros_like, model, X)
    assert seen == ["cpu"]

    def reads(g: Any, x: Any) -> Any:
        names = g.graph.argument(["a", "b"])
        assert names.node().kind() == "prim::ListConstruct"
        assert [helper._get_const(item, "s", "name") for item in helper._unpack_list(names)] == ["a", "b"]
        empty = g.graph.argument([])
        assert empty.node().kind() == "onnx::Constant" and empty.node().t("value").numel() == 0
        flags = g.graph.argument([True, False])
        assert flags.node().t("value").dtype is torch.bool
        return g.op("Identity", x)

    inside(reads)


@pytest.mark.parametrize("operator", ["unbind", "split", "split_with_sizes"])
def test_how_many_results_a_list_has(operator: str) -> None:
    models = {"unbind": lambda x: x.unbind(1), "split": lambda x: x.split(1, 1), "split_with_sizes": lambda x: x.split([1, 2], 1)}
    counts = {"unbind": 3, "split": 3, "split_with_sizes": 2}
    seen: list[Any] = []

    def symbolic(g: Any, x: Any, *rest: Any, _outputs: Any = None) -> Any:
        seen.append(_outputs)
        return list(g.op("here::Parts", x, outputs=_outputs))

    def simple(g: Any, x: Any, *rest: Any) -> Any:
        return list(g.op("here::Parts", x, outputs=counts[operator]))

    for function in (symbolic, simple):
        names = {f"aten::{operator}": function, "aten::split": function}
        with registered(names, 9, onnx_exporter):
            assert op_types(exported(models[operator], X))[0] == "here::Parts"
    assert seen == [counts[operator]], "only who takes it is told"


def test_an_operators_numbers_may_be_sizes_that_vary() -> None:
    def expand(g: Any, x: Any, sizes: Any, implicit: Any) -> Any:
        assert sizes.node().kind() == "prim::ListConstruct" and not helper._is_constant(sizes)
        assert helper._maybe_get_const(sizes, "is") is sizes
        return g.op(
            "Expand", x, g.op("Concat", *[helper._unsqueeze_helper(g, v, [0]) for v in helper._unpack_list(sizes)], axis_i=0)
        )

    with registered({"aten::expand": expand}, 11):
        result = exported(
            lambda x, y: x.expand(y.shape[0], 4),
            *(torch.randn(1, 4), torch.randn(3, 2)),
            opset_version=13,
            input_names=["x", "y"],
            dynamic_axes={"y": {0: "n"}},
            verify=True,
        )
    assert "Expand" in op_types(result)


def test_operands_of_unequal_types_and_bare_numbers() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        scaled = g.op("Mul", x, g.op("Constant", value_t=torch.tensor(2.0, dtype=torch.float64)))
        shifted = g.op("Add", scaled, g.op("Constant", value_t=torch.tensor(3)))
        return g.op("Pow", shifted, torch.tensor(2))

    verified(function_of(symbolic, lambda x: (x * 2 + 3) ** 2), X, opsets=[11, 13, 18])


def test_inputs_that_torch_takes_too() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        made = g.op("Mul", x, nn.Parameter(torch.tensor(2.0)))
        made = g.op("Add", made, np.float32(1.0))
        return g.op("Slice", made, [0], [2], [1])

    verified(function_of(symbolic, lambda x: (x * 2 + 1)[:, :2].clone()), X, opsets=[13], dynamic=False)


# Results


@pytest.mark.parametrize(
    "result",
    [lambda g, x: x, lambda g, x: (x,), lambda g, x: [x], lambda g, x: g.op("prim::NumToTensor", x)],
    ids=["input", "tuple", "list", "identity"],
)
def test_one_result_in_any_form(result: Any) -> None:
    called = function_of(result, lambda x: x.clone())
    verified(called, X)
    verified(lambda x: (called(x), x + 1, called(x)), X)


def test_the_same_value_as_several_results() -> None:
    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.relu(), x.relu(), x.clone()

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            made = g.op("Relu", x)
            return made, made, x

    verified(lambda x: Called.apply(x), X)


def test_python_on_values_runs_as_it_stands() -> None:
    """Megatron's and DeepSpeed's symbolic functions call plain Python; other code returns numbers."""

    def scale(g: Any, x: Any) -> Any:
        return g.op("Mul", x, 2.0 * 1)

    verified(function_of(scale, lambda x: x * 2), X)


def test_attributes_may_be_values_that_are_known() -> None:
    def elu(g: Any, x: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
        return g.op("Elu", x, alpha_f=alpha)

    assert attributes(registered_for("aten::elu", elu, nn.ELU(0.25), X), "Elu") == {"alpha": 0.25}


def test_a_vector_in_the_place_of_a_list() -> None:
    """What is built on an operator may give its list of numbers as a value."""
    cases: list[tuple[Any, Any]] = [
        (
            lambda g, x: g.call("aten::reshape", x, g.op("Constant", value_t=torch.tensor([6, -1]))),
            lambda x: x.reshape(6, -1).clone(),
        ),
        (lambda g, x: g.call("aten::permute", x, g.graph.argument([2, 0, 1])), lambda x: x.permute(2, 0, 1).clone()),
        (lambda g, x: g.call("aten::sum", x, g.op("Constant", value_t=torch.tensor([0, 2]))), lambda x: x.sum((0, 2))),
    ]
    for symbolic, forward in cases:
        exported(function_of(symbolic, forward), X, verify=True)
