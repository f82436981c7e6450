"""Verification: small ONNX files, right and wrong ones, against functions in PyTorch."""

import numpy as np
import pytest
import torch
from onnx import helper
from onnx.reference.op_run import OpRun

from onnx_exporter import _verify_runtime
from onnx_exporter._comparison import compare_output
from onnx_exporter._verify import flatten_outputs, verify_file
from onnx_exporter.errors import VerificationError
from verify_kit import BATCH, BFLOAT16, FLOAT, INT64, add_model, constant, inputs_of, unary, verify


def test_a_right_file_passes(write):
    comparison = verify(unary(write, "Relu"), lambda x: x.relu(), torch.randn(2, 3))
    assert comparison.ok
    assert comparison.runtime == "onnxruntime"
    run, _ = comparison.runs
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
