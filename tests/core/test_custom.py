"""Operators of other domains: what a schema says of them is checked, and what they give is known."""

import pytest
import torch

from onnx_exporter import GraphContext, OpTable, SymbolicError, UnsupportedOpError, Value, export
from onnx_exporter.helpers import custom

FROB = custom.schema(
    "com.acme::Frob",
    inputs={"x": "T", "y": "T", "index?": torch.int32},
    outputs={"z": "T"},
    type_sets={"T": (torch.float32, torch.float16)},
    attributes={"gain": float, "taps": [1, 2], "mode": "same", "name_s": 3},
    version=4,
)
X = torch.randn(2, 3)


@pytest.fixture(autouse=True)
def library():
    with torch.library._scoped_library("custom", "DEF") as custom_library:
        custom_library.define("frob(Tensor x, Tensor y) -> Tensor")
        custom_library.impl("frob", lambda x, y: x + y.to(x.dtype), "CompositeExplicitAutograd")
        yield


def exported(emit, *args, **options):
    table = OpTable()

    @table.op("custom::frob")
    def frob(g: GraphContext, x: Value, y: Value) -> Value:
        return emit(g, x, y)

    return export(lambda x, y: torch.ops.custom.frob(x, y), args or (X, X), opset_version=13, plugins=[table], **options)


def test_a_node_has_all_attributes_and_its_result_a_shape():
    def emit(g, x, y):
        (z,) = custom.op(g, FROB, x, y, results=[(x.dtype, [x.shape[0], 7])], gain=2)
        assert z.shape == (x.shape[0], 7)
        return g.op("Slice", z, [0], [3], [1])

    result = exported(emit, input_names=["x", "y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}})
    node = result.model.graph[0]
    assert (node.domain, node.op_type, len(node.inputs)) == ("com.acme", "Frob", 2)
    assert {name: attribute.value for name, attribute in node.attributes.items()} == {
        "gain": 2.0,
        "taps": (1, 2),
        "mode": "same",
        "name_s": 3,
    }
    assert node.attributes["gain"].type.name == "FLOAT"
    assert result.model.opset_imports["com.acme"] == 4
    assert str(result.model.graph.outputs[0].shape) == "[batch,3]"


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        (2, {}, "attribute 'gain' is required"),
        (2, {"gain": "much"}, "attribute 'gain' is 'much', expected float"),
        (2, {"gain": 1.0, "pain": 1}, "there is no attribute 'pain'; it has gain, mode, name_s, taps"),
        (1, {"gain": 1.0}, "Frob takes 2 to 3 inputs, got 1"),
    ],
)
def test_what_does_not_fit_the_schema_is_an_error(inputs, attributes, message):
    with pytest.raises(SymbolicError, match=message):
        exported(lambda g, *given: custom.op(g, FROB, *given[:inputs], results=[(torch.float32, None)], **attributes)[0])


def test_other_element_types_are_refused():
    with pytest.raises(UnsupportedOpError, match=r"Frob \(com.acme 4\) takes no double as input 0"):
        exported(lambda g, x, y: custom.op(g, FROB, x, y, results=[(x.dtype, None)], gain=1.0)[0], X.double(), X.double())
    with pytest.raises(SymbolicError, match="input 1 is float16, but must be float like the one before"):
        exported(lambda g, x, y: custom.op(g, FROB, x, y, results=[(x.dtype, None)], gain=1.0)[0], X, X.half())


def test_results_have_the_types_of_the_schema():
    with pytest.raises(SymbolicError, match="Frob gives float as 'z', not int32"):
        exported(lambda g, x, y: custom.op(g, FROB, x, y, results=[(torch.int32, None)], gain=1.0)[0])


def test_a_result_of_the_call_is_held_against_pytorch():
    with pytest.raises(SymbolicError, match=r"gave torch.int32, PyTorch gives torch.float32"):
        exported(lambda g, x, y: custom.typed(g, g.op("com.acme::Frob", x, y), torch.int32, [2, 3]))
    with pytest.raises(SymbolicError, match=r"gave shape \(2, 7\), PyTorch gives \(2, 3\)"):
        exported(lambda g, x, y: custom.typed(g, g.op("com.acme::Frob", x, y), torch.float32, [2, 7]))


def test_sizes_that_are_not_known_are_told_apart():
    def emit(g, x, y):
        z = custom.typed(g, g.op("com.acme::Frob", x, y), torch.float32, [None, None, 3])
        assert z.shape[0] != z.shape[1]
        return g.op("ReduceMean", z, axes=[0], keepdims=0)

    assert exported(emit).model.graph.outputs[0].shape.dims[1] == 3


def test_schemas_need_a_domain_and_types():
    with pytest.raises(ValueError, match="'Frob' has no domain; write it like 'com.acme::Frob'"):
        custom.schema("Frob", inputs={}, outputs={})
    with pytest.raises(ValueError, match=r"attribute 'x' is \[\]; give a default, or its type"):
        custom.schema("com.acme::Frob", inputs={}, outputs={}, attributes={"x": []})
