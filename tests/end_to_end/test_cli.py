"""The command line, run as a user runs it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
import torch

from onnx_exporter._cli import main

MODEL = """
import time
import torch

class Net(torch.nn.Module):
    def __init__(self, width=4, bias=True):
        super().__init__()
        self.layer = torch.nn.Linear(3, width, bias=bias)

    def forward(self, x):
        return self.layer(x)

ready = Net(2)
number = 3

def broken():
    return 5

def unready():
    raise ValueError("not ready")

class Baked(torch.nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] > 2 else x - 1

class Slow(Net):
    def forward(self, x):
        time.sleep(1.5)
        return super().forward(x)

class Missing(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x).real

class Fails(torch.nn.Module):
    def forward(self, x):
        raise RuntimeError("out of luck")
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Returns ``run(*arguments)``, which gives exit code, standard output and standard error."""
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "wrong.py").write_text("import a_module_that_is_not_there")
    (tmp_path / "syntax.py").write_text("def broken(:")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["onnx-exporter", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return run


def test_the_readmes_command(run):
    torchvision = pytest.importorskip("torchvision", reason="the README's model is torchvision's")
    code, out, err = run(
        "export", "torchvision.models:resnet18", "--args", "torch.randn(1,3,224,224)", "--dynamic", "input:0=batch",
        "--opset", "17", "--verify", "-o", "resnet18.onnx",
    )  # fmt: skip
    assert code == 0, err
    assert "verified against PyTorch with onnxruntime: ok" in out
    assert "batch=2" in out
    proto = onnx.load("resnet18.onnx")
    assert proto.opset_import[0].version == 17
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert torchvision.__version__


def test_factory_with_keywords_and_names(run):
    code, out, _ = run(
        "export", "net.py:Net", "--args", "torch.randn(2,3)", "--kwarg", "width=7", "--kwarg", "bias=False",
        "--input-names", "a", "--output-names", "b", "--dynamic", "a:0=batch", "-o", "out.onnx",
    )  # fmt: skip
    assert code == 0
    graph = onnx.load("out.onnx").graph
    assert [item.name for item in graph.input] == ["a"]
    assert [item.name for item in graph.output] == ["b"]
    assert graph.output[0].type.tensor_type.shape.dim[1].dim_value == 7
    assert [item.name for item in graph.initializer] == ["layer.weight"]
    assert "ok" in out


def test_an_instance_and_the_default_file_name(run):
    assert run("export", "net.py:ready", "--args", "torch.randn(2,3)")[0] == 0
    assert Path("ready.onnx").exists()


def test_weights(run):
    from onnx import numpy_helper

    state = {"layer.weight": torch.full((4, 3), 2.0), "layer.bias": torch.zeros(4)}
    torch.save(state, "weights.pt")
    assert run("export", "net.py:Net", "--args", "torch.randn(2,3)", "--weights", "weights.pt", "-o", "w.onnx")[0] == 0
    weights = {item.name: numpy_helper.to_array(item) for item in onnx.load("w.onnx").graph.initializer}
    assert (weights["layer.weight"] == 2).all()


class Evil:
    def __reduce__(self):
        return (os.system, ("touch was-run",))


def test_weights_are_loaded_safely(run):
    torch.save({"layer.weight": Evil()}, "evil.pt")
    code, _, err = run("export", "net.py:Net", "--args", "torch.randn(2,3)", "--weights", "evil.pt")
    assert code == 2
    assert "weights_only" in err
    assert not Path("was-run").exists()


def test_no_verify(run):
    code, out, _ = run("export", "net.py:Net", "--args", "torch.randn(2,3)", "--no-verify", "-o", "m.onnx")
    assert code == 0
    assert "verified" not in out


def test_what_becomes_of_modes_operators_and_modules(run, tmp_path):
    options = ("--training", "training", "--functions", "--report", str(tmp_path / "report.md"), "--verbose")
    code, out, _ = run("export", "net.py:ready", "--args", "torch.randn(2, 3)", *options, "-o", "m.onnx")
    assert code == 0
    assert "graph main_graph (ai.onnx 18" in out
    assert onnx.load("m.onnx").functions
    assert "Net: done" in (tmp_path / "report.md").read_text()
    options = ("--operator-export-type", "onnx_fallthrough", "--custom-opset", "org.pytorch.aten=3", "--no-verify")
    code, _, _ = run("export", "net.py:Missing", "--args", "torch.randn(2, 2)", *options, "-o", "m.onnx")
    assert code == 0
    assert {item.domain: item.version for item in onnx.load("m.onnx").opset_import}["org.pytorch.aten"] == 3


def test_capture_export_and_external_data(run):
    code, out, _ = run(
        "export",
        "net.py:Net",
        "--args",
        "torch.randn(2,3)",
        "--kwarg",
        "width=500",
        "--capture",
        "export",
        "--external-data",
        "-o",
        "m.onnx",
    )
    assert code == 0
    assert "m.onnx.data" in out
    assert Path("m.onnx.data").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["export", "net.py:Nothing", "--args", "1"], 2, "no attribute 'Nothing'"),
        (["export", "none.py:Net"], 2, "no file 'none.py'"),
        (["export", "no_such_module_here:Net"], 2, "no module 'no_such_module_here'"),
        (["export", "net.py"], 2, "module:attribute or file.py:attribute"),
        (["export", "net.py:number"], 2, "is int; it must be a module"),
        (["export", "net.py:broken"], 2, "made int, not a torch.nn.Module"),
        (["export", "net.py:Net", "--kwarg", "depth=3"], 2, "unexpected keyword argument 'depth'"),
        (["export", "net.py:Net", "--kwarg", "depth"], 2, "must be name=value"),
        (["export", "net.py:ready", "--kwarg", "width=3"], 2, "is a model already"),
        (["export", "net.py:Net", "--args", "torch.nothing(3)"], 2, "AttributeError"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--dynamic", "x"], 2, "NAME:AXIS=SYMBOL"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--dynamic", "x:a=b"], 2, "is no axis"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--dynamic", "y:0=b"], 2, "dynamic_axes names 'y'"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--weights", "none.pt"], 2, "none.pt"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--opset", "6"], 2, "7<=x<=28"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--custom-opset", "acme"], 2, "DOMAIN=VERSION"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "-o", "no/folder/m.onnx"], 1, "no/folder"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "-p", "absent"], 1, "no plugin named 'absent'"),
        (["export", "net.py:Fails", "--args", "torch.randn(2,3)"], 1, "out of luck"),
        (["export", "net.py:Missing", "--args", "torch.randn(3,3)"], 4, "aten::linalg_eigvals"),
        (
            ["export", "net.py:Baked", "--args", "torch.randn(2,3)", "--dynamic", "x:0=b", "-o", "baked.onnx"],
            3,
            "differs from PyTorch",
        ),
        (["export", "net.py:unready", "--args", "torch.randn(2,3)"], 2, "ValueError: not ready at "),
        (["export", "wrong.py:Net"], 2, "cannot load wrong.py: ModuleNotFoundError"),
        (["export", "syntax.py:Net"], 2, "cannot load syntax.py: SyntaxError"),
        (["export", "net.py:Net", "--args", "torch.randn(2,3)", "--weights", "net.py"], 2, "no state dict"),
        (["nothing"], 2, "No such command"),
    ],
)
@pytest.mark.filterwarnings("ignore::onnx_exporter.ExportWarning")
def test_mistakes(run, arguments, code, message):
    actual, out, err = run(*arguments)
    assert actual == code, out + err
    assert message in err
    assert "Traceback" not in err


def test_plugins(run):
    code, out, _ = run("plugins")
    assert code == 0
    assert "22 opset packages are built in" in out
    assert "symbolic_opset7" in run("plugins", "--verbose")[1]


def test_ops(run):
    code, out, _ = run("ops", "aten::relu")
    assert code == 0
    assert "1 operator" in out
    assert "symbolic_opset7" in out
    assert "0 operators at opset 8" in run("ops", "erf", "--opset", "8")[1]
    assert "1 operator at opset 9" in run("ops", "erf", "--opset", "9")[1]


def test_explain_tells_who(run):
    code, out, _ = run("explain", "aten::relu", "--opset", "13")
    assert code == 0
    assert "converted by" in out
    assert "symbolic_opset7" in out
    assert "activation.py" in out


def test_explain_an_operator_that_writes_in_place(run):
    out = run("explain", "aten::add_")[1]
    assert "it is converted as aten::add" in out
    assert "converted by" in out


def test_explain_tells_the_opset_that_has_it(run):
    assert "opset 9 has it" in run("explain", "aten::erf", "--opset", "8")[1]


def test_explain_tells_where_it_belongs(run):
    out = run("explain", "aten::fractional_max_pool2d")[1]
    assert "nobody converts" in out
    assert "belongs in pool" in out
    assert "schema" in out
    assert "exporter-plugin-foo" in run("explain", "foo::bar")[1]


def test_explain_shows_what_was_not_asked(run):
    out = run("explain", "aten::relu", "-p", "no:symbolic_opset7")[1]
    assert "nobody converts aten::relu" in out


SLOW = [
    sys.executable,
    "-m",
    "onnx_exporter",
    "export",
    "net.py:Slow",
    "--args",
    "torch.randn(2,3)",
    "--no-verify",
    "-o",
    "m.onnx",
]
"""An export that takes over a second."""


def test_quiet_when_not_a_terminal(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    result = subprocess.run(
        SLOW,
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert result.returncode == 0
    assert result.stderr == ""


def test_progress_on_a_terminal(tmp_path):
    (tmp_path / "net.py").write_text(MODEL)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        SLOW,
        stdout=subprocess.DEVNULL, stderr=slave, cwd=tmp_path, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    assert process.wait() == 0
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(master)
    assert b"capturing" in shown
