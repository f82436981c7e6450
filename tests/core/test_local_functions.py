"""Calls of modules as ONNX local functions."""

import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

from onnx_exporter import ArgumentError, ExportWarning, OperatorExportTypes, TrainingMode, export
from onnx_exporter._builder import CALLS
from onnx_exporter._local_functions import extract_functions

X = torch.randn(3, 4)
HERE = __name__
CAPTURES = ["trace", "export"]


class Scaled(nn.Module):
    """Attributes of every kind, and a constant that differs between instances."""

    factor: float
    label: str = "none"
    sizes: list[int]
    on: bool = True
    weight: torch.Tensor
    maybe: int | None = None
    _hidden: int = 3

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor
        self.sizes = [4, 4]
        self.weight = nn.Parameter(torch.randn(4))
        self.not_annotated = 5
        self.norm = nn.LayerNorm(4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(x) * self.weight) * self.factor


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Scaled(2.0)
        self.second = Scaled(3.0)

    def forward(self, x):
        return torch.relu(self.second(self.first(x)))


def checked(model, args, chosen=True, opset=18, **options):
    """Exports, compares under ONNX Runtime, and checks the file."""
    result = export(model, args, opset_version=opset, export_modules_as_functions=chosen, verify=True, **options)
    assert result.comparison.runtime == "onnxruntime"
    onnx.checker.check_model(result.model_proto, full_check=True)
    return result


def names(result):
    return [f"{domain}::{name}" for domain, name, _ in result.model.functions]


def functions(result):
    return {function.name: function for function in result.model.functions.values()}


def contents(node):
    return {name: attribute.value for name, attribute in node.attributes.items()}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [15, 17, 18, 21, 23])
def test_all_modules(opset, capture):
    result = checked(Two(), (X,), opset=opset, capture=capture, dynamic_axes={"x": {0: "batch"}})
    assert names(result) == ["torch.nn.modules.normalization::LayerNorm", f"{HERE}::Scaled", f"{HERE}::Two"]
    (call,) = result.model.graph
    assert (call.domain, call.op_type) == (HERE, "Two")
    assert result.model.opset_imports == {"": opset, HERE: 1, "torch.nn.modules.normalization": 1}
    assert [node.op_type for node in functions(result)["Two"]] == ["Scaled", "Scaled", "Relu"]
    assert str(result.model.graph.outputs[0].shape) == "[batch,4]"


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_set_of_classes(capture):
    result = checked(Two(), (X,), {nn.LayerNorm}, capture=capture)
    assert names(result) == ["torch.nn.modules.normalization::LayerNorm"]
    assert [node.op_type for node in result.model.graph].count("LayerNorm") == 2
    result = checked(Two(), (X,), {Scaled}, capture=capture)
    assert names(result) == [f"{HERE}::Scaled"]
    assert "LayerNormalization" in [node.op_type for node in functions(result)["Scaled"]]


def test_weights_and_inputs_are_inputs():
    result = checked(Two(), (X,), {Scaled})
    call = next(iter(result.model.graph))
    expected = ["x", "first.norm.weight", "first.norm.bias", "first.weight"]
    assert [value.name for value in call.inputs] == expected
    assert all(name in result.model.graph.initializers for name in expected[1:])


def test_annotated_and_inferred_attributes():
    result = checked(Two(), (X,), {Scaled})
    first, second = (node for node in result.model.graph if node.op_type == "Scaled")
    assert contents(first).keys() == {"factor", "label", "sizes", "on", "inferred::Constant_value"}
    assert [first.attributes[name].value for name in ("factor", "label", "sizes", "on")] == [2.0, "none", (4, 4), 1]
    assert first.attributes["inferred::Constant_value"].value.numpy() == 2.0
    assert second.attributes["inferred::Constant_value"].value.numpy() == 3.0
    function = functions(result)["Scaled"]
    assert set(function.attributes) == contents(first).keys()
    references = [attr.ref_attr_name for node in function for attr in node.attributes.values() if attr.is_ref()]
    assert references == ["inferred::Constant_value"]


def test_attributes_of_operators_are_inferred_where_they_differ():
    result = checked(nn.Sequential(nn.CELU(1.0), nn.CELU(2.0), nn.CELU(2.0)), (X,), {nn.CELU})
    calls = list(result.model.graph)
    assert [node.attributes["inferred::Celu_alpha"].value for node in calls] == [1.0, 2.0, 2.0]
    assert names(result) == ["torch.nn.modules.activation::CELU"]


def test_inferred_attributes_reach_through_functions_in_functions():
    class Outer(nn.Module):
        def __init__(self, alpha):
            super().__init__()
            self.act = nn.Sequential(nn.CELU(alpha), nn.CELU(5.0))

        def forward(self, x):
            return self.act(x)

    result = checked(nn.Sequential(Outer(1.0), Outer(2.0)), (X,), {Outer, nn.Sequential, nn.CELU})
    outer, inner = functions(result)["Outer"], functions(result)["Sequential"]
    (given,) = outer.attributes
    assert given.startswith("inferred::Sequential_")
    assert [node.attributes["inferred::Celu_alpha"].is_ref() for node in inner] == [True, False]
    assert [node.attributes[given].value for node in functions(result)["Sequential.1"]] == [1.0, 2.0]


def test_inferred_attributes_have_different_names():
    """Constants of an inner function come twice, and are numbered, in each of two calls."""

    class Inner(nn.Module):
        def __init__(self, low, high):
            super().__init__()
            self.low, self.high = low, high

        def forward(self, x):
            return (x * self.low + 1) * self.high

    class Outer(nn.Module):
        def __init__(self, *numbers):
            super().__init__()
            self.first, self.second = Inner(*numbers[:2]), Inner(*numbers[2:])

        def forward(self, x):
            return self.second(self.first(x))

    result = checked(nn.Sequential(Outer(2.0, 3.0, 4.0, 5.0), Outer(6.0, 7.0, 8.0, 9.0)), (X,), {Inner, Outer})
    assert len(functions(result)["Inner"].attributes) == 2
    assert len(functions(result)["Outer"].attributes) == 4


def test_other_structures_have_functions_of_their_own():
    class Maybe(nn.Module):
        def __init__(self, extra):
            super().__init__()
            self.extra = extra

        def forward(self, x):
            return torch.relu(x) if self.extra else torch.sigmoid(x) * 2

    result = checked(nn.Sequential(Maybe(True), Maybe(False), Maybe(True), Maybe(False)), (X,), {Maybe})
    assert names(result) == [f"{HERE}::Maybe", f"{HERE}::Maybe.1"]
    assert [node.op_type for node in result.model.graph] == ["Maybe", "Maybe.1", "Maybe", "Maybe.1"]


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.list = nn.ModuleList([self.block, nn.Sequential(nn.Linear(4, 4), nn.Tanh())])

    def forward(self, x):
        x = self.block(torch.relu(self.block(x)))
        for block in self.list:
            x = block(x) + 1
        return x


@pytest.mark.parametrize("capture", CAPTURES)
def test_each_call_of_a_shared_module_is_a_call(capture):
    result = checked(Shared(), (X,), {nn.Sequential}, capture=capture)
    calls = [node.op_type for node in result.model.graph]
    assert calls == ["Sequential", "Relu", "Sequential", "Sequential", "Add", "Sequential", "Add"]
    assert names(result) == ["torch.nn.modules.container::Sequential"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_several_inputs_and_outputs(capture):
    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5, batch_first=True)

        def forward(self, x, scale):
            output, (hidden, cell) = self.lstm(x * scale)
            return output, hidden, cell

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = Cell()

        def forward(self, x, scale):
            output, hidden, cell = self.cell(x, scale)
            return output + hidden[0][:, None], cell, x

    args = (torch.randn(2, 3, 4), torch.tensor(2.0))
    result = checked(Model(), args, capture=capture, dynamic_axes={"x": {0: "batch", 1: "time"}})
    assert len(functions(result)["Cell"].outputs) == 3
    assert len(functions(result)["LSTM"].outputs) == 3


@torch.jit.script_if_tracing
def _branch(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x * 2.5 + weight
    else:
        y = x - 1.5
    return y


def test_branches_use_what_is_around_them():
    class Branch(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4))

        def forward(self, x):
            return _branch(x + 1, self.weight)

    model = nn.Sequential(Branch())
    result = checked(model, (abs(X),), opset=16, verify_args=[(-5 * abs(X),)], input_names=["x"])
    assert names(result) == [f"{HERE}::Branch", "torch.nn.modules.container::Sequential"]
    function = functions(result)["Sequential"]  # a scripted function does not say which module called it
    assert [node.op_type for node in function][-1] == "If"
    assert [value.name for value in function.inputs] == ["x", "0.weight"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_transformer_layers_are_one_function(capture):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    result = checked(
        model, (torch.randn(2, 5, 8),), {nn.TransformerEncoderLayer}, capture=capture, dynamic_axes={"src": {0: "b", 1: "t"}}
    )
    assert [node.op_type for node in result.model.graph].count("TransformerEncoderLayer") == 3
    assert names(result) == ["torch.nn.modules.transformer::TransformerEncoderLayer"]


def test_convolutions_of_every_size_are_one_function():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 1, stride=2), nn.Conv2d(2, 5, 2, padding=1))
    result = checked(model, (torch.randn(1, 3, 9, 9),), {nn.Conv2d})
    assert names(result) == ["torch.nn.modules.conv::Conv2d"]
    assert {"inferred::Conv_strides", "inferred::Conv_pads"} <= set(functions(result)["Conv2d"].attributes)


def test_what_verification_and_origins_know(tmp_path):
    result = checked(Two(), (X,), f=tmp_path / "m.onnx")
    assert {"symbolic_opset7", "symbolic_opset17"} <= set(result.plugins)
    assert result.origins["first.norm/LayerNormalization"].module == "first.norm"
    assert result.origins["first/Scaled"].module == "first"
    onnx.checker.check_model(tmp_path / "m.onnx", full_check=True)


def test_the_same_model_gives_the_same_bytes():
    torch.manual_seed(0)
    model = Two()
    first, second = (checked(model, (X,)).model_proto.SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_versions_of_the_domains():
    result = checked(Two(), (X,), custom_opsets={HERE: 4})
    assert result.model.opset_imports == {"": 18, HERE: 4, "torch.nn.modules.normalization": 1}
    assert functions(result)["Two"].opset_imports[HERE] == 4


@pytest.mark.parametrize("options", [{"export_params": False}, {"keep_initializers_as_inputs": True}, {"external_data": True}])
def test_weights_stored_otherwise(options, tmp_path):
    checked(Two(), (X,), f=tmp_path / "m.onnx", **options)


def test_in_training_mode_dropout_is_a_function():
    result = export(Two(), (X,), training=TrainingMode.TRAINING, export_modules_as_functions=True)
    assert "torch.nn.modules.dropout::Dropout" in names(result)


def test_operators_that_fall_through_stand_in_functions():
    class Airy(nn.Module):
        def forward(self, x):
            return torch.special.airy_ai(x) + 1

    result = export(
        nn.Sequential(Airy(), Airy()),
        (X,),
        operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH,
        export_modules_as_functions={Airy},
    )
    (function,) = result.model.functions.values()
    assert [node.op_type for node in function] == ["Constant", "special_airy_ai", "Add"]
    assert function.opset_imports == {"": 18, "org.pytorch.aten": 1}
    assert result.model.opset_imports == {"": 18, "org.pytorch.aten": 1, HERE: 1}


def test_false_and_an_empty_set_are_none():
    for chosen in (False, set()):
        assert not export(Two(), (X,), export_modules_as_functions=chosen).model.functions


def test_below_opset_15_there_are_no_functions():
    with pytest.raises(ArgumentError, match="15"):
        export(Two(), (X,), export_modules_as_functions=True, opset_version=14)


@pytest.mark.parametrize("given", ["LayerNorm", {"LayerNorm"}, {int}, 3, [nn.Linear(2, 2)]])
def test_wrong_arguments(given):
    with pytest.raises(ArgumentError, match="export_modules_as_functions"):
        export(Two(), (X,), export_modules_as_functions=given)


@pytest.mark.parametrize("model", [torch.relu, torch.export.export(Two(), (X,))], ids=["function", "program"])
def test_only_modules_have_calls(model):
    with pytest.raises(ArgumentError, match=r"export_modules_as_functions needs a torch.nn.Module"):
        export(model, (X,), export_modules_as_functions=True)


# What capture does not give on its own: calls whose nodes stand apart


def chain(*calls):
    """A model of Relu after Relu; `calls` says in which call each one is."""
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(len(calls))]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", f"v{len(calls)}")]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10))
    for node, call in zip(model.graph, calls, strict=True):
        node.meta[CALLS] = call
    return model


def test_a_call_around_something_else_stays_as_it_is():
    model = chain(("a@0",), ("b@0",), ("a@0",))
    with pytest.warns(ExportWarning, match="leaves 'a' as they are"):
        extract_functions(model, {"a": nn.ReLU(), "b": nn.Tanh()})
    assert [node.op_type for node in model.graph] == ["Relu", "Tanh", "Relu"]
    onnx.checker.check_model(ir.to_proto(model), full_check=True)


def test_calls_inside_one_that_stays_are_still_made():
    model = chain(("a@0", "a.x@0"), ("b@0",), ("a@0", "a.y@0"))
    with pytest.warns(ExportWarning, match="leaves 'a' as they are"):
        extract_functions(model, {"a": nn.Sequential(), "a.x": nn.ReLU(), "a.y": nn.ReLU(), "b": nn.Tanh()})
    assert [node.op_type for node in model.graph] == ["ReLU", "Tanh", "ReLU"]


def test_what_only_happens_to_stand_between_the_parts_moves_before_them():
    model = chain(("a@0",), (), ("a@0",))
    first, between, _ = model.graph
    between.replace_input_with(0, model.graph.inputs[0])
    last = ir.Node("", "Add", [first.outputs[0], between.outputs[0]], name="n2")
    last.meta[CALLS] = ("a@0",)
    old = model.graph[-1]
    last.outputs[0].name, last.outputs[0].type = old.outputs[0].name, old.outputs[0].type
    last.outputs[0].shape = old.outputs[0].shape
    model.graph.outputs[0] = last.outputs[0]
    model.graph.remove(old)
    model.graph.append(last)
    extract_functions(model, {"a": nn.Sequential()})
    assert [node.op_type for node in model.graph] == ["Relu", "Sequential"]
    onnx.checker.check_model(ir.to_proto(model), full_check=True)
