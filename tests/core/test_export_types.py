"""What becomes of operators that nobody converts: operator_export_type, custom_opsets, and the hook for it."""

import onnx
import pytest
import torch

from onnx_exporter import (
    ArgumentError,
    ExportWarning,
    OperatorExportTypes,
    OpTable,
    SymbolicError,
    UnsupportedOpError,
    VerificationError,
    export,
    hookimpl,
)

X = torch.randn(3, 4)
CAPTURES = ["trace", "export"]
ATEN = "org.pytorch.aten"


def airy(x):
    return torch.special.airy_ai(x) + 1


@pytest.fixture(autouse=True, scope="module")
def vendor():
    """Operators of a library that no plugin knows."""
    with torch.library._scoped_library("vendor", "DEF") as library:
        library.define(
            "frob(Tensor x, Tensor? y, Tensor[] more, int[] taps, float[] gains, float gain=1.0, bool fast=False, "
            "str mode='a', ScalarType? dtype=None, Device? device=None) -> Tensor"
        )
        library.impl(
            "frob", lambda x, y, more, taps, gains, gain=1.0, fast=False, mode="a", dtype=None, device=None: x + 1, "CPU"
        )
        library.impl("frob", lambda x, *args, **kwargs: torch.empty_like(x), "Meta")
        library.define("pair.both(Tensor x, SymInt size, SymInt[] sizes) -> (Tensor, Tensor)")
        library.impl("pair.both", lambda x, size, sizes: (x + 1, x + 2), "CompositeExplicitAutograd")
        yield


def node_of(result, op_type):
    (node,) = [node for node in result.model.graph if node.op_type == op_type]
    return node


def contents(node):
    return {name: attribute.value for name, attribute in node.attributes.items()}


def fall_through(model, *args, **options):
    return export(model, args, operator_export_type=OperatorExportTypes.ONNX_FALLTHROUGH, **options)


def test_onnx_refuses_what_nobody_converts():
    with pytest.raises(UnsupportedOpError, match="special_airy_ai"):
        export(airy, (X,), operator_export_type=OperatorExportTypes.ONNX)


# Fall through


@pytest.mark.parametrize("capture", CAPTURES)
def test_fallthrough_keeps_only_what_nobody_converts(capture):
    result = fall_through(airy, X, capture=capture)
    assert [(node.domain, node.op_type) for node in result.model.graph] == [(ATEN, "special_airy_ai"), ("", "Add")]
    assert result.model.opset_imports == {"": 18, ATEN: 1}
    assert result.origins["special_airy_ai"].plugin == "ONNX_FALLTHROUGH"


@pytest.mark.parametrize("capture", CAPTURES)
def test_fallthrough_into_the_domain_of_the_namespace(capture):
    call = lambda x, y: torch.ops.vendor.frob(x, y, [y, x], [1, 2], [1, 0.5], gain=2.0, dtype=torch.float16)  # noqa: E731
    result = fall_through(call, X, X + 1, capture=capture, input_names=["x", "y"], output_names=["z"])
    (node,) = result.model.graph
    assert (node.domain, node.op_type) == ("vendor", "frob")
    assert [value.name for value in node.inputs] == ["x", "y", "y", "x"]
    assert contents(node) == {
        "taps": (1, 2),
        "gains": (1.0, 0.5),
        "gain": 2.0,
        "fast": 0,
        "mode": "a",
        "dtype": onnx.TensorProto.FLOAT16,
    }
    assert node.attributes["gains"].type.name == "FLOATS"
    (output,) = result.model.graph.outputs
    assert (output.dtype.name, list(output.shape)) == ("FLOAT", [3, 4])


def test_a_tensor_that_is_not_given_is_an_empty_input():
    call = lambda x, y: torch.ops.vendor.frob(x, None, [y], [], [])  # noqa: E731
    node = node_of(fall_through(call, X, X + 1), "frob")
    assert [None if value is None else value.name for value in node.inputs] == ["x", None, "y"]


def test_overloads_several_results_and_sizes_known_at_run_time():
    def call(x):
        first, second = torch.ops.vendor.pair.both(x, x.shape[0] + 1, [x.shape[0], 2])
        return first * second

    result = fall_through(call, X, dynamic_axes={"x": {0: "batch"}}, capture="export")  # tracing cannot record such a list
    node = node_of(result, "pair")
    assert len(node.outputs) == 2
    assert contents(node) == {"overload_name": "both"}
    x, size, sizes = node.inputs
    assert (x.name, size.dtype.name, list(size.shape)) == ("x", "INT64", [])
    assert (sizes.dtype.name, list(sizes.shape)) == ("INT64", [2])
    assert str(result.model.graph.outputs[0].shape[0]) != "3"


def test_what_no_attribute_can_hold_is_refused():
    with torch.library._scoped_library("vendor_complex", "DEF") as library:
        library.define("turn(Tensor x, Scalar by) -> Tensor")
        library.impl("turn", lambda x, by: x + 1, "CompositeExplicitAutograd")
        with pytest.raises(UnsupportedOpError, match="no ONNX attribute can hold by="):
            fall_through(lambda x: torch.ops.vendor_complex.turn(x, 1j), X)


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low):
        return x.clamp(min=low)


def test_an_autograd_function_falls_through_where_it_is_not_inlined():
    result = fall_through(lambda x: Clip.apply(x, 0.5), X, autograd_inlining=False)
    (node,) = result.model.graph
    assert (node.domain, node.op_type) == ("prim", "PythonOp")
    assert contents(node) == {"name": "Clip", "low": 0.5}


# ATen


@pytest.mark.parametrize("capture", CAPTURES)
def test_aten_fallback_keeps_only_what_nobody_converts(capture):
    result = export(airy, (X,), operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK, capture=capture)
    kept, added = result.model.graph
    assert (kept.domain, kept.op_type, contents(kept)) == (
        ATEN,
        "ATen",
        {"operator": "special_airy_ai", "overload_name": ""},
    )
    assert added.op_type == "Add"


def test_aten_fallback_is_for_aten_only():
    with pytest.raises(UnsupportedOpError, match="vendor::frob"):
        export(
            lambda x: torch.ops.vendor.frob(x, None, [], [], []),
            (X,),
            operator_export_type=OperatorExportTypes.ONNX_ATEN_FALLBACK,
        )


def aten(model, *args, **options):
    return export(model, args, operator_export_type=OperatorExportTypes.ONNX_ATEN, **options)


@pytest.mark.parametrize("capture", CAPTURES)
def test_aten_keeps_every_operator(capture):
    result = aten(lambda x: torch.relu(x) * 2.5, X, capture=capture)
    relu, times = result.model.graph
    assert contents(relu) == {"operator": "relu", "overload_name": ""}
    assert contents(times) == {"operator": "mul", "overload_name": "Tensor"}
    factor = times.inputs[1].const_value.numpy()
    assert (factor, factor.dtype, factor.shape) == (2.5, "float32", ())  # a number is weaker than the tensor beside it


def test_aten_arguments_are_inputs_in_the_order_of_the_schema():
    node = node_of(aten(lambda x: x.quantile(0.3, None, True), X), "ATen")
    x, q, dim, keepdim, mode = node.inputs
    assert (x.name, dim) == ("x", None)
    assert (q.const_value.numpy(), q.dtype.name) == (0.3, "DOUBLE")
    assert (keepdim.const_value.numpy(), keepdim.dtype.name) == (True, "BOOL")
    assert mode.const_value.numpy().item() == b"linear"


def test_aten_arguments_that_are_left_out_at_the_end_stay_as_empty_inputs():
    node = node_of(aten(lambda x: torch.zeros_like(x, dtype=torch.float64), X), "ATen")
    assert len(node.inputs) == len(torch.ops.aten.zeros_like.default._schema.arguments)
    assert node.inputs[1].const_value.numpy() == 7  # TorchScript's number of float64
    assert node.inputs[-1] is None
    assert node.outputs[0].dtype.name == "DOUBLE"


@pytest.mark.parametrize("capture", CAPTURES)
def test_aten_takes_sizes_as_a_vector_and_tensors_as_a_sequence(capture):
    model = lambda x: torch.cat([x, x]).view(x.shape[0] * 2, 2, 2)  # noqa: E731
    result = aten(model, X, dynamic_axes={"x": {0: "batch"}}, capture=capture)
    cat, view = (node for node in result.model.graph if node.op_type == "ATen" and contents(node)["operator"] in ("cat", "view"))
    assert cat.inputs[0].producer().op_type == "SequenceConstruct"
    assert list(view.inputs[1].shape) == [3]
    assert view.outputs[0].shape.rank() == 3


def test_aten_without_sequences_converts_what_takes_a_list_of_tensors():
    result = aten(lambda x: torch.cat([x, torch.relu(x)]), X, opset_version=9)
    assert [node.op_type for node in result.model.graph] == ["ATen", "Concat"]


# The file


@pytest.mark.parametrize("kind", [OperatorExportTypes.ONNX_FALLTHROUGH, OperatorExportTypes.ONNX_ATEN])
@pytest.mark.parametrize("opset", [7, 9, 13, 28])
def test_the_checker_takes_the_file(kind, opset, tmp_path):
    export(airy, (X,), tmp_path / "m.onnx", operator_export_type=kind, opset_version=opset)
    onnx.checker.check_model(tmp_path / "m.onnx", full_check=True)


def test_verification_names_the_operators_that_have_no_kernel():
    with pytest.raises(VerificationError, match=f"no operator {ATEN}::special_airy_ai, so the file cannot be verified"):
        fall_through(airy, X, verify=True)


# Versions of domains


def test_custom_opsets():
    call = lambda x: torch.ops.vendor.frob(x, None, [], [1], [])  # noqa: E731
    assert fall_through(call, X).model.opset_imports == {"": 18, "vendor": 1}
    assert fall_through(call, X, custom_opsets={"vendor": 3}).model.opset_imports == {"": 18, "vendor": 3}


def test_custom_opsets_overrule_what_a_plugin_declares():
    table = OpTable()
    table.passthrough("vendor::*", domain="com.vendor", version=2)
    call = lambda x: torch.ops.vendor.frob(x, None, [], [1], [])  # noqa: E731
    assert export(call, (X,), plugins=[table]).model.opset_imports["com.vendor"] == 2
    result = export(call, (X,), plugins=[table], custom_opsets={"com.vendor": 5})
    assert result.model.opset_imports["com.vendor"] == 5


def test_a_domain_that_the_model_does_not_use_is_left_out_with_a_warning():
    with pytest.warns(ExportWarning, match="custom_opsets names 'com.other'"):
        result = export(torch.relu, (X,), custom_opsets={"com.other": 2})
    assert result.model.opset_imports == {"": 18}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"": 18}, "custom_opsets names ai.onnx"),
        ({"ai.onnx": 18}, "its version is opset_version"),
        ({"com.acme": 0}, "a version from 1 on"),
        ({"com.acme": "2"}, "a version from 1 on"),
        ({3: 1}, "a domain's name"),
        (["com.acme"], "give a dict of domains"),
    ],
)
def test_wrong_custom_opsets(given, message):
    with pytest.raises(ArgumentError, match=message):
        export(torch.relu, (X,), custom_opsets=given)


# The hook


class Vendor:
    """A plugin that leaves everything it is asked for to its own runtime."""

    def __init__(self, convert):
        self.convert = convert

    @hookimpl
    def onnx_exporter_fallback(self, g, node):
        return self.convert(g, node)


def test_a_plugin_passes_operators_through():
    plugin = Vendor(lambda g, node: g.pass_through(f"com.vendor::{node.op.partition('::')[2]}", level=3))
    call = lambda x, y: torch.ops.vendor.frob(x, y, [], [4], []) + 1  # noqa: E731
    result = export(call, (X, X), plugins=[plugin])
    frob, _ = result.model.graph
    assert (frob.domain, frob.op_type) == ("com.vendor", "frob")
    assert frob.attributes["level"].value == 3
    assert frob.attributes["taps"].value == (4,)


def test_a_hook_goes_before_the_export_type_and_may_decline():
    asked = []

    def convert(g, node):
        asked.append(node.op)
        if node.op == "vendor::frob":
            return g.op("Relu", g.arguments["x"])
        raise g.unsupported("not mine")

    call = lambda x: torch.special.airy_ai(torch.ops.vendor.frob(x, None, [], [], []))  # noqa: E731
    result = fall_through(call, X, plugins=[Vendor(convert)])
    assert [node.op_type for node in result.model.graph] == ["Relu", "special_airy_ai"]
    assert asked == ["vendor::frob", "aten::special_airy_ai"]
    with pytest.raises(UnsupportedOpError, match="not mine"):
        export(call, (X,), plugins=[Vendor(convert)])


def test_a_bug_in_a_hook_is_not_taken_for_unsupported():
    plugin = Vendor(lambda g, node: g.op("Relu", g.arguments["no such argument"]))
    with pytest.raises(SymbolicError, match="KeyError.*no such argument"):
        export(airy, (X,), plugins=[plugin])


def test_a_bug_in_a_function_of_the_model_is_not_taken_for_unsupported():
    class Faulty(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def symbolic(g, x):
            return g.op("Relu", x, no_such_attribute_i=1)

    with pytest.raises(SymbolicError, match=r"Faulty.symbolic"):
        export(Faulty.apply, (X,))
