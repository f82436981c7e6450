"""Bad input gets a clear error and loses nothing."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from onnx_exporter import (
    ArgumentError,
    CaptureError,
    ExportError,
    GraphContext,
    OpTable,
    PluginError,
    SymbolicError,
    UnsupportedOpError,
    Value,
    VerificationError,
    WriteError,
    export,
)

X = torch.randn(2, 3)


class Custom(nn.Module):
    """Uses two operators that nobody converts, one of them twice."""

    def __init__(self):
        super().__init__()
        self.block = nn.ModuleDict({"inner": Unconvertible()})

    def forward(self, x):
        y = self.block["inner"](x)
        return torch.ops.nowhere.first(y) + torch.ops.nowhere.second(x)


class Unconvertible(nn.Module):
    def forward(self, x):
        return torch.ops.nowhere.first(x)


@pytest.fixture(scope="module", autouse=True)
def operators():
    with torch.library._scoped_library("nowhere", "DEF") as library:
        for name in ("first", "second"):
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, lambda x: x + 1, "CompositeExplicitAutograd")
        yield


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_unsupported_operators_are_listed_all_at_once(capture, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"what was there")
    with pytest.raises(UnsupportedOpError) as caught:
        export(Custom(), (X,), path, capture=capture, opset_version=13)
    error = caught.value
    assert [op.name.removesuffix(".default") for op in error.ops] == ["nowhere::first", "nowhere::second"]
    assert len(error.ops[0].places) == 2
    text = str(error)
    assert "2 operators cannot be converted at opset 13" in text
    assert "module 'block.inner'" in text
    assert f"{__file__}:" in text
    assert "exporter-plugin-nowhere" in text
    assert "@table.op('nowhere::first')" in text
    assert path.read_bytes() == b"what was there"


def test_the_opset_that_has_an_operator_is_named():
    with pytest.raises(
        UnsupportedOpError, match=r"aten::erf.*\n.*opset 9 has it: export with opset_version=9|opset 9 has it"
    ) as caught:
        export(lambda x: torch.erf(x), (X,), opset_version=8)
    assert caught.value.ops[0].available_from == 9


@pytest.mark.parametrize("opset", [6, 29, 0, "18", 18.0, True])
def test_opset_out_of_range(opset):
    with pytest.raises(ArgumentError, match="opset_version is .* from 7 to 28"):
        export(nn.ReLU(), (X,), opset_version=opset)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dynamic_axes": {"inptu": {0: "batch"}}},
            r"dynamic_axes names 'inptu', which is neither an input \(input\) nor an output",
        ),
        ({"dynamic_axes": {"input": {2: "time"}}}, r"axis 2, but 'input' has 2 dimensions"),
        ({"dynamic_axes": {"input": {-3: "time"}}}, "axis -3"),
        ({"dynamic_axes": {"input": {"0": "time"}}}, "axis '0'"),
        ({"dynamic_axes": {"input": {0: 3}}}, "must be the name of the axis"),
        ({"dynamic_axes": {"input": "batch"}}, "dict of axis to name"),
        ({"dynamic_axes": ["input"]}, "dynamic_axes must be a dict"),
        ({"dynamic_axes": {"output_0": {7: "x"}}}, "axis 7"),
        ({"input_names": ["a", "b"]}, "2 names, but the model has 1 input"),
        ({"input_names": [""]}, "non-empty strings"),
        ({"output_names": ["a", "b"]}, "2 names, but the model returns 1"),
        ({"output_names": ["input"]}, "given twice, or is an input's"),
        ({"capture": "magic"}, "'trace' or 'export'"),
        ({"kwargs": {"nothing": 1}}, "do not fit the model's forward"),
    ],
)
def test_wrong_arguments(options, message, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"what was there")
    with pytest.raises(ArgumentError, match=message):
        export(nn.ReLU(), (X,), path, **options)
    assert path.read_bytes() == b"what was there"


def test_two_inputs_with_one_name():
    with pytest.raises(ArgumentError, match="'a' stands for two inputs"):
        export(lambda x, y: x + y, (X, X), input_names=["a", "a"])


def test_too_many_arguments():
    with pytest.raises(ArgumentError, match="do not fit the model's forward: too many"):
        export(nn.ReLU(), (X, X))


def test_no_model():
    with pytest.raises(ArgumentError, match="model is int"):
        export(3, (X,))


def test_no_target():
    with pytest.raises(ArgumentError, match="f is int"):
        export(nn.ReLU(), (X,), 3)


class Raises(nn.Module):
    def forward(self, x):
        raise ValueError("the model is not ready")


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_model_that_raises(capture, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"what was there")
    model = Raises().train()
    with pytest.raises(CaptureError, match="the model is not ready") as caught:
        export(model, (X,), path, capture=capture)
    assert __file__ in str(caught.value)
    assert isinstance(caught.value.__cause__, ValueError) or capture == "export"
    assert path.read_bytes() == b"what was there"
    assert model.training


def test_a_failed_trace_does_not_spoil_the_next():
    """PyTorch's tracer remembers the sizes that a failed call left unread."""

    def broken(x):
        return x.new_zeros(x.shape[0], "not a size")

    def working(x):
        return x.view(x.shape[0], 1, -1) + torch.zeros(x.shape[0], 1, 1)

    for _ in range(2):
        with pytest.raises(CaptureError, match="not a size|must be tuple of ints"):
            export(broken, (X,))
        assert export(working, (X,), dynamic_axes={"x": {0: "rows"}}, verify=True).comparison.ok


@pytest.mark.parametrize("target", ["no/such/folder/m.onnx", "."])
def test_unwritable_paths(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WriteError, match="folder|directory"):
        export(nn.ReLU(), (X,), target)


def limited(path: str) -> None:
    """Runs in a process that cannot write files beyond 64 KiB, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        export(nn.Linear(256, 256), (torch.randn(1, 256),), path)
    except WriteError as error:
        print("WriteError", error)


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits are POSIX")
def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"what was there")
    folder = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {folder!r}); import test_bad_input; test_bad_input.limited({str(path)!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.startswith("WriteError"), result.stdout + result.stderr
    assert str(path) in result.stdout
    assert path.read_bytes() == b"what was there"
    assert [item.name for item in tmp_path.iterdir()] == ["m.onnx"]


class Boolean(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            return x + 1
        return x - 1


def test_a_baked_branch_is_found_by_verification(tmp_path):
    """The size that decided the branch while tracing is no fact; the other size shows it."""
    path = tmp_path / "m.onnx"
    with pytest.warns(UserWarning, match=f"(?s)tracing fixed values.*{__file__}:"), pytest.raises(VerificationError) as caught:
        export(Boolean(), (X,), path, dynamic_axes={"x": {0: "batch"}}, verify=True)
    assert not caught.value.comparison.ok
    assert caught.value.result.file.path == str(path)


def test_a_bug_in_a_symbolic_function_is_no_missing_operator():
    table = OpTable(replaces=True)

    @table.op("aten::relu")
    def relu(g: GraphContext, self: Value) -> Value:
        return self.no_such_attribute

    with pytest.raises(SymbolicError, match="converting aten::relu") as caught:
        export(nn.ReLU(), (X,), plugins=[table])
    text = str(caught.value)
    assert "no_such_attribute" in text
    assert f"relu at {__file__}:" in text
    assert isinstance(caught.value.__cause__, AttributeError)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g, x: g.op("Relu", x, slope=1.0), "no attribute 'slope'"),
        (lambda g, x: g.op("Relu", x, x), "takes 1 inputs, got 2"),
        (lambda g, x: g.op("NoSuchOperator", x), "no operator 'NoSuchOperator'"),
        (lambda g, x: g.op("Gelu", x), "not in opset 18 .it came in 20."),
        (lambda g, x: g.op("Flatten", x, axis="one"), "expected int"),
        (lambda g, x: g.op("Add", x, g.constant([1, 2, 3])), "must be float like the one before"),
        (lambda g, x: g.op("Cast", x), "'to' is required"),
        (lambda g, x: g.op("Cast", x, to=7), "gave torch.int64, PyTorch gives torch.float32"),
        (lambda g, x: g.op("Flatten", x, axis=0), "PyTorch gives"),
        (lambda g, x: (), "has 1 results, its symbolic function gave 0"),
        (lambda g, x: g.call("aten::size", x, 1), r"aten::size is called with 2 arguments.*takes 1: name the overload"),
    ],
)
def test_nodes_that_onnx_does_not_allow(make, message):
    table = OpTable(replaces=True)

    @table.op("aten::relu")
    def relu(g: GraphContext, self: Value) -> Value:
        return make(g, self)

    with pytest.raises(SymbolicError, match=message):
        export(nn.ReLU(), (X,), plugins=[table], opset_version=18)


def test_every_error_is_one_family():
    for kind in (ArgumentError, CaptureError, SymbolicError, UnsupportedOpError, VerificationError, WriteError):
        assert issubclass(kind, ExportError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": "no"}, "verify is 'no'"),
        ({"verify_args": torch.ones(2)}, "verify_args is Tensor"),
        ({"atol": "a"}, "atol is 'a'"),
        ({"rtol": -1}, "rtol is -1"),
        ({"input_names": "x"}, r"input_names is the string 'x'; give a list"),
        ({"output_names": "y"}, r"output_names is the string 'y'; give a list"),
        ({"dynamic_axes": {"input": {0: "n", 1: "n"}}}, "sizes 2 and 3 there; axes of one name have one size"),
    ],
)
@pytest.mark.parametrize("capture", ["trace", "export"])
def test_more_wrong_arguments(options, message, capture):
    with pytest.raises(ArgumentError, match=message):
        export(nn.ReLU(), (X,), capture=capture, **options)


def test_a_text_file_is_no_target():
    with pytest.raises(ArgumentError, match="binary mode"):
        export(nn.ReLU(), (X,), io.StringIO())


def test_one_plugin_need_not_be_a_list():
    with pytest.raises(PluginError, match="no plugin named 'absent'"):
        export(nn.ReLU(), (X,), plugins="absent")


def test_a_class_is_no_model():
    with pytest.raises(ArgumentError, match="model is the class Linear"):
        export(nn.Linear, (X,))


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_model_without_tensors(capture):
    with pytest.raises(CaptureError, match="no tensor"):
        export(lambda x: None, (X,), capture=capture)


def test_a_scripted_module_without_forward():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scripting itself is deprecated
        scripted = torch.jit.script(nn.LSTM(3, 4))
    with pytest.raises(ArgumentError, match="has no forward of its own"):
        export(scripted, (X,))


def test_the_mode_of_a_file_is_kept(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"what was there")
    path.chmod(0o600)
    export(nn.ReLU(), (X,), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_small_results_of_large_values_verify():
    """A mean of normalised values is zero but for rounding."""
    model = lambda x: nn.functional.layer_norm(x, (64,)).mean()  # noqa: E731
    assert export(model, (torch.randn(8, 64),), verify=True).comparison.ok


def test_a_result_in_bfloat16_is_named_at_an_opset_that_has_none():
    with pytest.raises(ArgumentError, match=r"output 'output_0' is bfloat16.*opset_version=13"):
        export(lambda x: x.bfloat16(), (torch.randn(2),), opset_version=12)


@pytest.mark.parametrize("args", [X.numpy(), (X.numpy(),), ([X, X.numpy()],)])
def test_numpy_arrays_are_no_inputs(args):
    with pytest.raises(ArgumentError, match=r"argument 'input\w*' is a NumPy array.*torch.from_numpy"):
        export(nn.Linear(3, 3), args, None)
