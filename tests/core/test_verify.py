"""Verification: small ONNX files, right and wrong ones, against functions in PyTorch."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper
from onnx.reference.op_run import OpRun

from onnx_exporter import _verify_runtime
from onnx_exporter._comparison import compare_output
from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._verify import flatten_outputs, verify_file
from onnx_exporter._verify_inputs import Symbols, resized
from onnx_exporter.errors import ArgumentError, VerificationError

FLOAT, INT64, BFLOAT16 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BFLOAT16


@pytest.fixture
def write(tmp_path):
    """Writes a file from nodes, inputs and outputs as (name, type, shape)."""

    def build(nodes, inputs, outputs, initializers=(), opset=17, domains=()):
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info(*item) for item in inputs],
            [helper.make_tensor_value_info(*item) for item in outputs],
            initializer=list(initializers),
        )
        imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
        path = tmp_path / "m.onnx"
        onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=10), path)
        return path

    return build


def unary(write, op, type_=FLOAT, out_type=None, **kwargs):
    nodes = [helper.make_node(op, ["x"], ["y"], **kwargs)]
    return write(nodes, [("x", type_, None)], [("y", out_type or type_, None)])


def inputs_of(forward, *args, names=None, dynamic=None, kwargs=None):
    return model_inputs(forward, args, kwargs or {}, names, dynamic)


def verify(path, model, *args, names=("x",), dynamic=None, outputs=("y",), **options):
    forward = model.forward if isinstance(model, torch.nn.Module) else model
    return verify_file(path, model, inputs_of(forward, *args, names=names, dynamic=dynamic), outputs, **options)


def constant(name, values, type_=INT64):
    return helper.make_tensor(name, type_, [len(values)], values)


BATCH = {"x": {0: "batch"}}


def test_a_right_file_passes(write):
    comparison = verify(unary(write, "Relu"), lambda x: x.relu(), torch.randn(2, 3))
    assert comparison.ok
    assert comparison.runtime == "onnxruntime"
    (run,) = comparison.runs
    assert run.label == "as traced"
    assert run.outputs[0].max_abs_diff == 0
    assert "ok   y: float32[2, 3]" in str(comparison)


def test_a_wrong_value_is_told_with_output_and_run(write):
    result = object()
    with pytest.raises(VerificationError, match=r"output 'y' of the file differs from PyTorch at 'as traced'") as caught:
        verify(unary(write, "Abs"), lambda x: x.relu(), torch.tensor([1.0, -2.0, 3.0]), result=result)
    assert caught.value.result is result
    (output,) = caught.value.comparison.runs[0].outputs
    assert (output.mismatched, output.max_abs_diff) == (1, 2)
    assert "FAIL y: float32[3]  max abs diff 2" in str(caught.value)


def test_the_first_of_several_outputs_that_differs_is_named(write):
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Abs", ["x"], ["b"])]
    path = write(nodes, [("x", FLOAT, None)], [("a", FLOAT, None), ("b", FLOAT, None)])
    with pytest.raises(VerificationError, match="output 'b'"):
        verify(path, lambda x: (x.relu(), {"second": x.neg()}), torch.ones(3), outputs=("a", "b"))


def test_a_wrong_dtype(write):
    with pytest.raises(VerificationError, match="dtype float32, PyTorch has int64"):
        verify(unary(write, "Relu"), lambda x: x.relu().long(), torch.ones(3))


def test_a_wrong_shape(write):
    with pytest.raises(VerificationError, match=r"shape \[3\], PyTorch has \[3, 1\]"):
        verify(unary(write, "Relu"), lambda x: x.relu().unsqueeze(1), torch.ones(3))


def test_an_integer_that_is_off_by_one_in_a_large_number(write):
    x = torch.tensor([2**60, 5])
    assert verify(unary(write, "Abs", INT64), lambda x: x.abs(), x).ok
    with pytest.raises(VerificationError, match="1 elements differ"):
        verify(unary(write, "Abs", INT64), lambda x: x + torch.tensor([1, 0]), x)


def test_nan_equals_nan_and_nothing_else(write):
    x = torch.tensor([-1.0, 4.0, float("inf")])
    assert verify(unary(write, "Sqrt"), lambda x: x.sqrt(), x).ok
    with pytest.raises(VerificationError, match="1 elements differ"):
        verify(unary(write, "Sqrt"), lambda x: x.clamp(min=0).sqrt(), x)


@pytest.mark.parametrize(
    ("expected", "actual", "passed"),
    [
        ([1e-6, 2e-6], [1e-6, 3e-6], False),  # tiny outputs are not all equal
        ([1e6, 0.0], [1e6, 1.0], True),  # cancellation beside large elements
        ([1.0, 1.0, -3e38], [1.0, 2.0, -3e38], False),  # one huge element hides nothing
        ([1.0, float("inf")], [1.0, -float("inf")], False),
        ([1.0, float("inf")], [1.0, 3e38], False),
        ([0.0, 0.0], [0.0, 1e-3], False),
        ([], [], True),
    ],
)
def test_tolerance_follows_the_magnitude(expected, actual, passed):
    assert compare_output("y", torch.tensor(expected), torch.tensor(actual)).passed == passed


def test_given_tolerances_are_used_as_they_are():
    one, two = torch.tensor([100.0, 0.0]), torch.tensor([100.5, 0.01])
    assert not compare_output("y", one, two).passed
    assert compare_output("y", one, two, rtol=0.01, atol=0.02).passed
    assert not compare_output("y", one, two, rtol=0.01, atol=0.005).passed


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.float8_e5m2])
def test_tolerance_follows_the_dtype(dtype):
    x = torch.tensor([1.0, 2.0, 4.0]).to(dtype)
    assert compare_output("y", x, x.clone()).passed
    assert not compare_output("y", x, (x.to(torch.complex64) * 1.5).to(dtype)).passed if dtype.is_complex else True
    if not dtype.is_complex:
        assert not compare_output("y", x, (x.float() * 1.5).to(dtype)).passed
    if dtype == torch.float64:
        assert not compare_output("y", x, x * (1 + 1e-6)).passed


def reshape_model(write, shape):
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    return write(nodes, [("x", FLOAT, ["batch", 3, 4])], [("y", FLOAT, None)], [constant("shape", shape)])


def test_a_right_file_passes_at_three_sizes(write):
    path = reshape_model(write, [-1, 12])
    comparison = verify(path, lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH)
    assert [run.label for run in comparison.runs] == ["as traced", "batch=3", "batch=1"]
    assert [run.sizes for run in comparison.runs] == [{"batch": 2}, {"batch": 3}, {"batch": 1}]
    assert comparison.warnings == ()
    assert len(verify(path, lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH, other_sizes=False).runs) == 1


def test_a_baked_size_that_does_not_run_elsewhere_fails(write):
    with pytest.raises(VerificationError, match=r"does not run at 'batch=3', which PyTorch accepts") as caught:
        verify(reshape_model(write, [2, 12]), lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH)
    assert [run.ok for run in caught.value.comparison.runs] == [True, False, False]


def test_a_baked_size_that_runs_but_gives_another_shape_fails(write):
    with pytest.raises(VerificationError, match="batch=3"):
        verify(reshape_model(write, [2, -1]), lambda x: x.flatten(1), torch.randn(2, 3, 4), dynamic=BATCH)


def test_a_baked_number_fails_at_another_size(write):
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Div", ["s", "n"], ["y"])]
    path = write(nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, [])], [helper.make_tensor("n", FLOAT, [], [4.0])])
    x = torch.tensor([1.0, 2.0, 4.0, 8.0])
    assert verify(path, lambda x: x.mean(), x).ok
    with pytest.raises(VerificationError, match="output 'y'"):
        verify(path, lambda x: x.mean(), x, dynamic={"x": [0]})


def test_sizes_that_pytorch_refuses_are_passed_over(write):
    def even_only(x):
        if x.shape[0] % 2:
            raise ValueError("only pairs")
        return x.relu()

    comparison = verify(unary(write, "Relu"), even_only, torch.randn(4, 3), dynamic=BATCH)
    assert [run.label for run in comparison.runs] == ["as traced", "batch=8", "batch=2"]
    assert comparison.notes == ("PyTorch refuses batch=5: ValueError: only pairs",)


def test_a_model_of_one_size_gives_a_warning_and_passes(write):
    def four_only(x):
        assert x.shape[0] == 4
        return x.relu()

    comparison = verify(unary(write, "Relu"), four_only, torch.randn(4, 3), dynamic=BATCH)
    assert comparison.ok
    assert len(comparison.runs) == 1
    assert "not verified at another size: batch" in comparison.warnings[0]
    assert "AssertionError" in str(comparison)


def test_an_axis_that_pytorch_fixes_does_not_keep_the_others_from_being_verified(write):
    def fixed_width(x):
        assert x.shape[1] == 3
        return x.relu()

    comparison = verify(unary(write, "Relu"), fixed_width, torch.randn(4, 3), dynamic={"x": {0: "batch", 1: "width"}})
    assert [run.sizes for run in comparison.runs[1:]] == [{"batch": 5, "width": 3}]
    assert "size: width;" in comparison.warnings[0]


def add_model(write):
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    return write(nodes, [("a", FLOAT, None), ("b", FLOAT, None)], [("y", FLOAT, None)])


def test_one_symbol_has_one_size_everywhere_and_two_have_two():
    inputs = inputs_of(
        lambda a, b: a,
        torch.ones(4, 4),
        torch.ones(4, 4),
        dynamic={"a": {0: "batch", 1: "seq"}, "b": {0: "seq", 1: "batch"}},
    )
    for smaller in (False, True):
        for number, sizes in enumerate(Symbols(inputs).candidates(smaller)):
            a, b = resized(inputs, sizes, seed=0)
            assert a.shape == (sizes["batch"], sizes["seq"])
            assert b.shape == (sizes["seq"], sizes["batch"])
            if number < 4:
                assert len({4, *a.shape}) == 3


def test_axes_of_several_names_that_must_be_equal_are_found(write):
    comparison = verify(
        add_model(write),
        lambda a, b: a + b,
        torch.randn(4, 2),
        torch.randn(4, 2),
        names=("a", "b"),
        dynamic={"a": [0], "b": [0]},
    )
    assert comparison.ok
    assert [tuple(run.sizes.values()) for run in comparison.runs] == [(4, 4), (5, 5), (2, 2)]
    assert comparison.warnings == ()


@pytest.mark.parametrize("name", ["past + new", "total"])
def test_a_size_that_is_the_sum_of_two_others(write, name):
    nodes = [helper.make_node("Concat", ["a", "b"], ["c"], axis=0), helper.make_node("Mul", ["c", "m"], ["y"])]
    path = write(nodes, [(item, FLOAT, None) for item in "abm"], [("y", FLOAT, None)])
    comparison = verify(
        path,
        lambda a, b, m: torch.cat([a, b]) * m,
        *(torch.randn(size, 2) for size in (5, 3, 8)),
        names=("a", "b", "m"),
        dynamic={"a": {0: "past"}, "b": {0: "new"}, "m": {0: name}},
    )
    assert len(comparison.runs) == 3
    assert all(run.sizes[name] == run.sizes["past"] + run.sizes["new"] for run in comparison.runs)
    assert comparison.warnings == ()


def test_an_expression_that_the_traced_sizes_contradict_is_only_a_name():
    inputs = inputs_of(lambda a, b: a, torch.ones(4), torch.ones(9), dynamic={"a": {0: "n"}, "b": {0: "n + 1"}})
    assert Symbols(inputs).free == ["n", "n + 1"]
    inputs = inputs_of(lambda a, b: a, torch.ones(4), torch.ones(9), dynamic={"a": {0: "n"}, "b": {0: "n * 2 + 1"}})
    assert Symbols(inputs).free == ["n"]


def test_an_empty_axis_grows(write):
    comparison = verify(
        add_model(write),
        lambda a, b: a + b,
        torch.randn(0, 2),
        torch.randn(1, 2),
        names=("a", "b"),
        dynamic={"a": {0: "past"}},
    )
    assert [run.sizes["past"] for run in comparison.runs] == [0, 1, 2]


def test_other_arguments_take_the_place_of_generated_sizes(write):
    inputs = (torch.randn(4, 2), torch.randn(4, 2))
    dynamic = {"a": {0: "batch"}, "b": {0: "batch"}}
    options = {"names": ("a", "b"), "dynamic": dynamic}
    other = (torch.randn(9, 2), torch.randn(9, 2))
    comparison = verify(add_model(write), lambda a, b: a + b, *inputs, alt_args=[other], **options)
    assert [run.label for run in comparison.runs] == ["as traced", "alternative 1 (batch=9)"]
    for wrong, message in [
        ((torch.randn(9, 3), torch.randn(9, 2)), r"'a' must be a torch.float32 tensor of shape \['any', 2\]"),
        ((torch.ones(9, 2).long(), torch.randn(9, 2)), "torch.int64"),
        ((torch.randn(9, 2),), "given like args"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            verify(add_model(write), lambda a, b: a + b, *inputs, alt_args=[wrong], **options)


def test_generated_tensors_stay_in_the_domain_of_the_example():
    mask = torch.tensor([0.0, -float("inf"), 0.0, 0.0])
    examples = {
        "ids": torch.tensor([3, 900, 17, 5]),
        "lengths": torch.tensor([7, 5, 5, 2]),
        "mask": mask,
        "flags": torch.tensor([True, True, True, True]),
        "probability": torch.tensor([0.1, 0.2, 0.9, 0.4]),
        "half": torch.tensor([1.0, 2.0, 3.0, 4.0]).to(torch.bfloat16),
        "wide": torch.tensor([7, 9, 11, 5]).to(torch.uint16),
    }
    inputs = inputs_of(
        lambda ids, lengths, mask, flags, probability, half, wide: ids,
        *examples.values(),
        dynamic={name: {0: "n"} for name in examples},
    )
    first, second = (resized(inputs, {"n": 50}, seed=1) for _ in range(2))
    assert all(torch.equal(one, two) for one, two in zip(first, second, strict=True))
    fresh = dict(zip(examples, first, strict=True))
    for name, example in examples.items():
        assert fresh[name].dtype == example.dtype
        assert fresh[name].shape == (50,)
    assert set(fresh["ids"].tolist()) <= {3, 900, 17, 5}
    assert fresh["lengths"].tolist() == sorted(fresh["lengths"].tolist(), reverse=True)
    assert set(fresh["mask"].tolist()) == {0.0, -float("inf")}
    assert fresh["flags"].all()
    assert 0.1 <= fresh["probability"].min() < fresh["probability"].max() <= 0.9
    assert fresh["probability"].unique().numel() == 50
    assert set(fresh["wide"].tolist()) <= {5, 7, 9, 11}


class Counting(torch.nn.Module):
    """Writes its buffers in place and by assignment, and its input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("last", torch.zeros(1))
        self.register_buffer("wide", torch.zeros(1, 2).expand(3, 2))
        self.register_buffer("grown", torch.zeros(2))
        self.norm = torch.nn.BatchNorm1d(3, affine=False)

    def forward(self, x):
        self.count += 1
        self.last = x.sum().reshape(1)
        self.grown.resize_(5)
        self.norm(x)
        x.relu_()
        return x + self.count - 1


@pytest.mark.parametrize("bound", [False, True])
def test_buffers_inputs_and_random_state_are_left_as_they_were(write, bound):
    model = Counting().train()
    buffers = {name: (buffer, buffer.clone()) for name, buffer in model.named_buffers()}
    x = torch.randn(4, 3)
    before, state = x.clone(), torch.get_rng_state()
    comparison = verify(unary(write, "Relu"), model.forward if bound else model, x, dynamic=BATCH)
    assert comparison.ok
    assert len(comparison.runs) == 3
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)
    for name, buffer in model.named_buffers():
        assert buffer is buffers[name][0]
        assert torch.equal(buffer, buffers[name][1])


def test_buffers_are_restored_when_pytorch_refuses(write):
    class Refusing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x):
            self.count += 1
            if x.shape[0] != 4:
                raise RuntimeError("four")
            return x.relu()

    model = Refusing()
    verify(unary(write, "Relu"), model, torch.randn(4), dynamic=BATCH)
    assert model.count == 0


def test_an_output_that_is_a_buffer_has_its_value_of_the_run(write):
    model = Counting()
    model.forward = lambda x: model.count.add_(x.sum())
    nodes = [helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0), helper.make_node("Reshape", ["s", "one"], ["y"])]
    path = write(nodes, [("x", FLOAT, None)], [("y", FLOAT, None)], [constant("one", [1])])
    assert verify(path, model, torch.ones(3)).ok
    assert model.count == 0


def test_a_script_module(write):
    model = torch.jit.script(torch.nn.BatchNorm1d(3, affine=False).train())
    path = unary(write, "Identity")
    with pytest.raises(VerificationError, match="output 'y'"):
        verify_file(path, model, inputs_of(lambda x: x, torch.randn(4, 3), names=["x"]), ["y"])
    assert torch.equal(model.running_mean, torch.zeros(3))


def test_a_model_that_draws_numbers_is_said_to(write):
    with pytest.raises(VerificationError, match="is dropout on"):
        verify(unary(write, "Relu"), lambda x: torch.nn.functional.dropout(x.relu(), 0.5), torch.ones(50))
    with pytest.raises(VerificationError) as caught:
        verify(unary(write, "Relu"), lambda x: x - 1, torch.ones(50))
    assert "dropout" not in str(caught.value)


def test_bfloat16_runs_in_onnx_runtime(write):
    x = torch.randn(4, 3, dtype=torch.bfloat16)
    comparison = verify(unary(write, "Identity", BFLOAT16), lambda x: x.clone(), x, dynamic=BATCH)
    assert (comparison.runtime, len(comparison.runs)) == ("onnxruntime", 3)
    with pytest.raises(VerificationError, match="output 'y'"):
        verify(unary(write, "Identity", BFLOAT16), lambda x: x * 2, x)


def test_bfloat16_without_a_kernel_runs_in_the_reference(write):
    x = torch.randn(4, 3, dtype=torch.bfloat16)
    comparison = verify(unary(write, "Abs", BFLOAT16), lambda x: x.abs(), x, dynamic=BATCH)
    assert (comparison.runtime, len(comparison.runs)) == ("onnx.reference", 3)
    with pytest.raises(VerificationError, match=r"with onnx\.reference: FAILED"):
        verify(unary(write, "Abs", BFLOAT16), lambda x: x * 2, x)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64,
        torch.float16,
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.uint16,
        torch.int16,
        torch.uint32,
        torch.int32,
        torch.uint64,
        torch.complex64,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(3,), (), (0, 2)], ids=str)
def test_every_dtype_travels(write, dtype, shape):
    import onnx_ir as ir

    type_ = int(ir.tensor_adapters.from_torch_dtype(dtype))
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    path = write(nodes, [("x", type_, shape)], [("y", type_, shape)], opset=21)
    x = (torch.randn(shape) * 3).abs().to(dtype)
    assert verify(path, lambda x: x.clone(), x).ok


def test_a_domain_that_onnx_runtime_lacks(write, tmp_path):
    nodes = [helper.make_node("Frob", ["x"], ["y"], domain="com.acme")]
    path = write(nodes, [("x", FLOAT, None)], [("y", FLOAT, None)], domains=["com.acme"])
    with pytest.raises(VerificationError, match=r"no operator com.acme::Frob.*custom_op_libraries.*verify=False"):
        verify(path, lambda x: x, torch.ones(3))
    with pytest.raises(VerificationError, match="does not exist"):
        verify(path, lambda x: x, torch.ones(3), custom_op_libraries=[tmp_path / "libacme.so"])
    (tmp_path / "libacme.so").write_bytes(b"not a library")
    with pytest.raises(VerificationError, match="cannot load the custom operator library"):
        verify(path, lambda x: x, torch.ones(3), custom_op_libraries=[tmp_path / "libacme.so"])


class Frob(OpRun):
    op_domain = "com.acme"

    def _run(self, x, gain=2.0):
        return (x * np.float32(gain),)


def test_a_class_computes_what_onnx_runtime_lacks(write):
    nodes = [helper.make_node("Frob", ["x"], ["h"], domain="com.acme", gain=3.0), helper.make_node("Relu", ["h"], ["y"])]
    path = write(nodes, [("x", FLOAT, None)], [("y", FLOAT, None)], domains=["com.acme"])
    comparison = verify(path, lambda x: (x * 3).relu(), torch.randn(9), custom_op_libraries=[Frob])
    assert comparison.ok
    assert comparison.runtime == "onnx.reference"
    with pytest.raises(VerificationError, match="differs"):
        verify(path, lambda x: (x * 4).relu(), torch.randn(9), custom_op_libraries=[Frob])
    with pytest.raises(VerificationError, match="custom_op_libraries has dict, which computes no operator"):
        verify(path, lambda x: x, torch.randn(9), custom_op_libraries=[dict])


def test_a_class_is_not_asked_where_onnx_runtime_has_the_operators(write):
    path = write([helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, None)], [("y", FLOAT, None)])
    assert verify(path, torch.relu, torch.randn(9), custom_op_libraries=[Frob]).runtime == "onnxruntime"


def test_microsofts_own_operators_run(write):
    nodes = [helper.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft")]
    path = write(nodes, [("x", FLOAT, None)], [("y", FLOAT, None)], domains=["com.microsoft"])
    assert verify(path, lambda x: torch.nn.functional.gelu(x, approximate="tanh"), torch.randn(9)).ok


def test_a_file_that_onnx_runtime_cannot_load(write):
    nodes = [helper.make_node("NoSuchOp", ["x"], ["y"])]
    path = write(nodes, [("x", FLOAT, None)], [("y", FLOAT, None)])
    with pytest.raises(VerificationError, match="ONNX Runtime cannot load the file"):
        verify(path, lambda x: x, torch.ones(3))


def test_verification_without_onnx_runtime(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime", None)
    with pytest.raises(VerificationError, match="pip install onnxruntime"):
        _verify_runtime.load(unary(write, "Relu"))


def test_names_of_inputs_and_outputs_are_part_of_the_contract(write):
    with pytest.raises(VerificationError, match=r"has the inputs \(x\), but they should be \(image\)"):
        verify(unary(write, "Relu"), lambda image: image.relu(), torch.ones(3), names=("image",))
    with pytest.raises(VerificationError, match=r"has the outputs \(y\), but they should be \(z\)"):
        verify(unary(write, "Relu"), lambda x: x.relu(), torch.ones(3), outputs=("z",))
    with pytest.raises(VerificationError, match="PyTorch gives 2 outputs, and the file 1"):
        verify(unary(write, "Relu"), lambda x: (x.relu(), x), torch.ones(3))


def test_outputs_are_flattened_in_order():
    a, b = torch.ones(1), torch.zeros(2, requires_grad=True)
    flat = flatten_outputs({"a": (a, None, "text"), "n": [3, 2.5, True], "b": b})
    assert flat[0] is not None
    assert [(item.dtype, tuple(item.shape)) for item in flat] == [
        (torch.float32, (1,)),
        (torch.int64, ()),
        (torch.float32, ()),
        (torch.bool, ()),
        (torch.float32, (2,)),
    ]
    assert not flat[-1].requires_grad
    with pytest.raises(VerificationError, match="returns a object"):
        flatten_outputs([a, object()])


def test_external_data_is_found(write, tmp_path):
    import onnx_ir as ir

    from onnx_exporter._protobuf import lay_out
    from onnx_exporter._write import write_model

    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    weight = torch.randn(2000)
    path = write(nodes, [("x", FLOAT, None)], [("y", FLOAT, None)], [constant("w", weight.tolist(), FLOAT)])
    written = write_model(lay_out(ir.load(path)), tmp_path / "external.onnx", external_data=True)
    assert written.external_path is not None
    assert verify(written.path, lambda x: x + weight, torch.randn(1)).ok


def test_keyword_arguments_and_nested_inputs(write):
    inputs = inputs_of(
        lambda pair, scale: pair["a"] + scale, {"a": torch.ones(2)}, kwargs={"scale": torch.ones(2)}, names=["a", "b"]
    )
    assert verify_file(add_model(write), lambda pair, scale: pair["a"] + scale, inputs, ["y"]).ok
