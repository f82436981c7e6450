"""`dynamic_shapes` in every form, and arguments and results that hold tensors inside objects."""

from __future__ import annotations

import dataclasses
import warnings

import pytest
import torch
from torch import nn
from torch.export import Dim

from onnx_exporter import ArgumentError, ExportWarning, export

CAPTURES = ["trace", "export"]
pytestmark = pytest.mark.parametrize("capture", CAPTURES)


def dims(value):
    return [dim if isinstance(dim, int) else str(dim) for dim in value.shape]


class Two(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y], 1) @ torch.ones(y.shape[1] + x.shape[1], 3)


ARGS = (torch.randn(4, 5), torch.randn(4, 6))


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: Dim("batch"), 1: Dim("left")}, "y": {0: Dim("batch")}},
        ({0: Dim("batch"), 1: Dim("left")}, {0: Dim("batch")}),
        [(Dim("batch"), Dim("left")), (Dim("batch"), None)],
        {"x": {0: "batch", 1: "left"}, "y": ("batch", 6)},
        {"x": ("batch", "left"), "y": {0: "batch", 1: Dim.STATIC}},
    ],
)
def test_dims_and_names_by_parameter_or_in_order(capture, shapes):
    result = export(Two(), ARGS, dynamic_shapes=shapes, capture=capture, verify=True)
    assert [dims(value) for value in result.model.graph.inputs] == [["batch", "left"], ["batch", 6]]
    assert dims(result.model.graph.outputs[0]) == ["batch", 3]
    assert len(result.comparison.runs) == 3


def test_limits_are_kept_as_metadata_and_by_verification(capture):
    batch = Dim("batch", min=2, max=6)
    shapes = {"x": {0: batch}, "y": {0: batch}}
    result = export(Two(), ARGS, dynamic_shapes=shapes, capture=capture, verify=True)
    assert result.model.metadata_props["onnx_exporter.dim.batch"] == "2..6"
    assert all(2 <= run.sizes["batch"] <= 6 for run in result.comparison.runs)
    least = export(Two(), ARGS, dynamic_shapes={"x": {0: Dim("n", min=3)}, "y": {0: Dim("n", min=3)}}, capture=capture)
    assert least.model.metadata_props["onnx_exporter.dim.n"] == "3.."


def test_hints(capture):
    result = export(Two(), ARGS, dynamic_shapes={"x": (Dim.DYNAMIC, Dim.AUTO), "y": (Dim.AUTO, Dim.STATIC)}, capture=capture)
    (x, y) = result.model.graph.inputs
    assert not any(isinstance(dim, int) for dim in x.shape)
    assert dims(y)[1] == 6


def test_an_automatic_axis_that_the_model_fixes_is_fixed(capture):
    class Fixed(nn.Module):
        def forward(self, x):
            return x + torch.ones(4, 5)

    result = export(Fixed(), torch.randn(4, 5), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},), capture=capture)
    if capture == "export":
        assert dims(result.model.graph.inputs[0]) == [4, 5]
    else:  # tracing learns nothing of the sizes that a model works for
        assert dims(result.model.graph.inputs[0]) == ["x_dim_0", "x_dim_1"]


def test_derived_dims(capture):
    half = Dim("half", min=1, max=64)

    class Halves(nn.Module):
        def forward(self, x, y):
            return x + y.reshape(2, -1).sum(0)

    args = (torch.randn(3), torch.randn(6))
    result = export(Halves(), args, dynamic_shapes=({0: half}, {0: 2 * half}), capture=capture, verify=True)
    assert [dims(value) for value in result.model.graph.inputs] == [["half"], ["2*half"]]
    assert all(run.ok for run in result.comparison.runs)


class Nested(nn.Module):
    def forward(self, pair, named, *more):
        return pair[0] + pair[1][0] + named["a"] + sum(more)


def test_nested_structures(capture):
    x = torch.randn(4, 2)
    args = ((x, [x.clone()]), {"a": x.clone()}, x.clone(), x.clone())
    rows = {0: "rows"}
    shapes = {"pair": (rows, [rows]), "named": {"a": rows}, "more": (rows, rows)}
    result = export(Nested(), (*args, {}), dynamic_shapes=shapes, capture=capture, verify=True)
    assert [dims(value) for value in result.model.graph.inputs] == [["rows", 2]] * 5


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": {0: "a"}}, "names 'z'; the arguments are x, y"),
        (({0: "a"},), "1 entries, but there are 2 arguments"),
        ({"x": {2: "a"}}, "axis 2, but the tensor has 2 dimensions"),
        ({"x": ("a",)}, "2 entries"),
        ({"x": {0: 3}}, "is 3, but the example has size 4"),
        ({"x": {0: 1.5}}, "is 1.5"),
        ({"x": {0: Dim("a", min=5)}}, "allows sizes 5 to any"),
        ({"x": {0: Dim("a", max=3)}}, "allows sizes 0 to 3"),
        ({"x": {0: "a"}, "y": {1: "a"}}, "both 'a'"),
        ("batch", "give a dict"),
    ],
)
def test_mistakes(capture, shapes, message):
    with pytest.raises(ArgumentError, match=message):
        export(Two(), ARGS, dynamic_shapes=shapes, capture=capture)


def test_dynamic_axes_name_outputs_beside_dynamic_shapes(capture):
    axes = {"output_0": {0: "rows"}}
    result = export(Two(), ARGS, dynamic_shapes=({0: "n"}, {0: "n"}), dynamic_axes=axes, capture=capture)
    assert dims(result.model.graph.outputs[0]) == ["rows", 3]
    with pytest.raises(ArgumentError, match="both speak of 'x'"):
        export(Two(), ARGS, dynamic_shapes=({0: "n"}, {0: "n"}), dynamic_axes={"x": {0: "n"}}, capture=capture)


# Objects that hold tensors


@dataclasses.dataclass
class State:
    hidden: torch.Tensor
    scale: float = 2.0
    inner: State | None = None


def test_dataclasses_are_taken_apart(capture):
    class Model(nn.Module):
        def forward(self, state):
            return state.hidden * state.scale + state.inner.hidden

    state = State(torch.randn(3, 2), 3.0, State(torch.randn(3, 2)))
    shapes = ({"hidden": {0: "n"}, "inner": {"hidden": {0: "n"}}},)
    result = export(Model(), (state,), dynamic_shapes=shapes, capture=capture, verify=True)
    assert [value.name for value in result.model.graph.inputs] == ["state_hidden", "state_inner_hidden"]


def test_dataclass_results_under_tracing(capture):
    @dataclasses.dataclass
    class Result:
        first: torch.Tensor
        second: dict

    class Model(nn.Module):
        def forward(self, x):
            return Result(x + 1, {"z": x * 2, "a": x * 3})

    if capture == "export":
        torch.export.register_dataclass(Result, serialized_type_name=f"{__name__}.{capture}")
    result = export(Model(), torch.randn(3), capture=capture, verify=True)
    assert len(result.model.graph.outputs) == 3


def test_model_outputs_of_transformers(capture):
    outputs = pytest.importorskip("transformers.modeling_outputs")

    class Model(nn.Module):
        def forward(self, given):
            return outputs.BaseModelOutputWithPooling(given.last_hidden_state * 2, given.last_hidden_state.sum(1))

    given = outputs.BaseModelOutput(last_hidden_state=torch.randn(2, 3))
    result = export(Model(), (given,), output_names=["states", "pooled"], capture=capture, verify=True)
    assert [value.name for value in result.model.graph.inputs] == ["given_last_hidden_state"]


def test_dynamic_caches_of_transformers(capture):
    cache_utils = pytest.importorskip("transformers.cache_utils")

    class Model(nn.Module):
        def forward(self, x, past):
            keys, values = past.update(x, x + 1, 0)
            return keys.sum(-1) + values.mean(-1), past

    past = cache_utils.DynamicCache()
    past.update(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), 0)
    result = export(Model(), (torch.randn(1, 2, 1, 4), past), capture=capture, verify=True)
    assert len(result.model.graph.inputs) == 3
    assert len(result.model.graph.outputs) == 3


def test_results_are_flattened_in_order_without_text(capture):
    class Model(nn.Module):
        def forward(self, x):
            return {"z": x + 1, "text": "no tensor", "none": None, "a": (x + 2, [x + 3])}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # torch.export's capture says that the text is left out
        result = export(Model(), torch.zeros(1), output_names=["z", "first", "second"], capture=capture, verify=True)
    assert [value.name for value in result.model.graph.outputs] == ["z", "first", "second"]


def test_an_object_of_unknown_kind_with_tensors_is_told(capture):
    class Holder:
        def __init__(self):
            self.tensor = torch.ones(2)

    class Model(nn.Module):
        def forward(self, x, holder):
            return x + holder.tensor

    if capture == "export":
        pytest.skip("torch.export refuses arguments of unknown kinds itself")
    with pytest.warns(ExportWarning, match="Holder, whose tensors are baked"):
        export(Model(), (torch.randn(2), Holder()), capture=capture)
