"""Plugins of one's own: what is declared, and what becomes of calls."""

import re

import pytest
import torch

from exporter_plugin_tensorrt import plugin, table_for
from onnx_exporter import RegistrationError, SymbolicError, UnsupportedOpError, export
from onnx_exporter.testing import NEWEST


class Blur(torch.autograd.Function):
    @staticmethod
    def forward(ctx, sigma, image, taps, mask=None):
        return (image * sigma * sum(taps)).to(image.dtype), image.sum((1, 2)).int()


BLUR = plugin(
    "Blur_TRT",
    inputs={"image": "T", "mask?": "T"},
    outputs={"blurred": "T", "total": torch.int32},
    type_sets={"T": (torch.float32, torch.float16)},
    attributes={"sigma": float, "taps": [1, 1], "mode": "same"},
    version="2",
    namespace="acme",
)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("opset", [7, NEWEST])
def test_a_plugin_of_ones_own(capture, opset):
    image = torch.randn(2, 3, 4)
    axes = {"image": {0: "batch"}}
    result = export(
        lambda image: Blur.apply(0.5, image * 2, [5, 3]),
        (image,),
        opset_version=opset,
        capture=capture,
        input_names=["image"],
        dynamic_axes=axes,
        plugins=[table_for(Blur, BLUR, sizes=lambda image, **others: [image.shape, image.shape[:1]])],
    )
    node = result.model.graph[-1]
    assert (node.domain, node.op_type, len(node.inputs)) == ("TRT", "Blur_TRT", 1)
    assert {name: attribute.value for name, attribute in node.attributes.items()} == {
        "sigma": 0.5, "taps": (5, 3), "mode": "same", "plugin_version": "2", "plugin_namespace": "acme",
    }  # fmt: skip
    blurred, total = result.model.graph.outputs
    assert (blurred.dtype.name, str(blurred.shape)) == ("FLOAT", "[batch,3,4]")
    assert (total.dtype.name, str(total.shape)) == ("INT32", "[batch]")


def test_sizes_of_the_results_are_what_is_known():
    """A size of the example is none of the file's where an axis is dynamic."""
    image, tables = torch.randn(2, 3, 4), [table_for(Blur, BLUR)]
    static = export(lambda image: Blur.apply(0.5, image, [1]), (image,), plugins=tables)
    assert [str(output.shape) for output in static.model.graph.outputs] == ["[2,3,4]", "[2]"]
    axes = {"image": {0: "batch"}}
    dynamic = export(lambda image: Blur.apply(0.5, image, [1]), (image,), plugins=tables, dynamic_axes=axes)
    assert [len(output.shape) for output in dynamic.model.graph.outputs] == [3, 1]
    assert not isinstance(dynamic.model.graph.outputs[0].shape[0], int)


def call(sigma, image, taps, mask=None):
    return Blur.apply(sigma, image, taps, mask)


def test_a_mask_is_given_and_types_are_checked():
    image = torch.randn(2, 3, 4)
    tables = {"plugins": [table_for(Blur, BLUR)]}
    result = export(lambda image, mask: call(0.5, image, [1], mask), (image, image), **tables)
    assert len(result.model.graph[-1].inputs) == 2
    with pytest.raises(SymbolicError, match=r"attribute 'taps' is 0.5|it is no integer"):
        export(lambda image: call(0.5, image, [0.5]), (image,), **tables)
    with pytest.raises(SymbolicError, match="input 1 is half, but must be float like the one before|float16"):
        export(lambda image, mask: call(0.5, image, [1], mask), (image, image.half()), **tables)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, image, sigma):
        return image * (0.5 if sigma is None else sigma)


def scale_table(sizes=None, **changes):
    declared = {"inputs": IMAGE, "outputs": {"y": torch.float32}, "attributes": {"sigma": float}, **changes}
    return table_for(Scale, plugin("Scale", **declared), sizes=sizes)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(
    ("args", "table", "error", "message"),
    [
        (
            (torch.randn(3), torch.tensor(2.0)),
            {},
            UnsupportedOpError,
            "sigma is an attribute of Scale, so that it cannot depend on the model's inputs",
        ),
        ((torch.randn(3).double(), 2.0), {}, UnsupportedOpError, "takes no double as input 0"),
        ((torch.randn(3), 2.0), {"outputs": {"y": torch.float16}}, SymbolicError, "Scale gives float16 as 'y', not float"),
        (
            (torch.randn(3), 2.0),
            {"outputs": {"y": torch.float32, "z": torch.float32}},
            UnsupportedOpError,
            "Scale has 2 outputs, Scale.forward gives 1",
        ),
        (
            (torch.randn(3), 2.0),
            {"sizes": lambda image, sigma: [image.shape] * 2},
            UnsupportedOpError,
            "sizes must give one shape for each output of Scale: 1, not 2",
        ),
    ],
)
def test_a_call_that_does_not_fit_is_an_error(args, table, error, message, capture):
    """What forward computes does not stand in for the plugin."""
    with pytest.raises(error, match=re.escape(message)):
        export(lambda image, sigma: Scale.apply(image, sigma), args, plugins=[scale_table(**table)], capture=capture)


def test_another_class_of_the_name_is_left_to_others():
    def make():
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, image, sigma):
                return image - sigma

        return Scale

    other = make()
    result = export(lambda x: (Scale.apply(x, 2.0), other.apply(x, 2.0)), (torch.randn(3),), plugins=[scale_table()])
    assert {node.op_type for node in result.model.graph} == {"Scale", "Sub"}


def test_none_is_an_attributes_default():
    table = scale_table(attributes={"sigma": 0.5})
    result = export(lambda x: Scale.apply(x, None), (torch.randn(3),), plugins=[table])
    assert result.model.graph[0].attributes["sigma"].value == 0.5


IMAGE, MASK = {"image": torch.float32}, {"mask?": torch.float32}
GIVEN = {"sigma": float, "taps": [1]}


@pytest.mark.parametrize(
    ("inputs", "attributes", "message"),
    [
        (IMAGE, GIVEN, "'mask' is no input and no attribute of Blur"),
        (IMAGE | MASK, GIVEN | {"gain": float}, "Blur.forward has no parameter 'gain', which Blur must be given"),
    ],
)
def test_what_does_not_fit_a_plugin_is_an_error_at_once(inputs, attributes, message):
    outputs = {"blurred": torch.float32, "total": torch.int32}
    with pytest.raises(RegistrationError, match=re.escape(message)):
        table_for(Blur, plugin("Blur", inputs=inputs, outputs=outputs, attributes=attributes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attributes": {"taps": None}}, "attribute 'taps' is None; give a default, or its type"),
        ({"attributes": {"taps": {}}}, "attribute 'taps' is {}; give a default, or its type"),
        ({"attributes": {"taps": [1, "x"]}}, "attribute 'taps' is [1, 'x']; give a default, or its type"),
        ({"attributes": {"image": float}}, "'image' is an input and an attribute"),
        ({"attributes": {"mask": float}, "inputs": MASK}, "'mask?' is an input and an attribute"),
        ({"attributes": {"plugin_version": "7"}}, "'plugin_version' is written for every plugin; give it as version=..."),
        ({"version": 2}, "version must be text, which TensorRT reads, not 2"),
        ({"namespace": None}, "namespace must be text, which TensorRT reads, not None"),
        (
            {"inputs": {"image": "float"}},
            "the type of 'image' is 'float'; give an element type, or the name of one of type_sets (none)",
        ),
        (
            {"outputs": {"y": "Q"}, "type_sets": {"T": [torch.float32]}},
            "the type of 'y' is 'Q'; give an element type, or the name of one of type_sets ('T')",
        ),
        ({"inputs": {"image": [torch.float32]}}, "the type of 'image' is [torch.float32]"),
        ({"name": ""}, "'TRT::' has no name"),
    ],
)
def test_a_plugin_that_cannot_be_is_an_error_at_once(changes, message):
    declared = {"name": "Blur", "inputs": IMAGE, "outputs": {"y": torch.float32}, **changes}
    with pytest.raises(ValueError, match=re.escape(message)):
        plugin(declared.pop("name"), **declared)
