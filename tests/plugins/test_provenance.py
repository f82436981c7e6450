"""Every node says what made it, and `onnx-exporter show` tells."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch

from onnx_exporter import (
    ArgumentError,
    GraphContext,
    OperatorExportTypes,
    OpTable,
    Value,
    export,
    register_custom_op_symbolic,
)
from onnx_exporter import unregister_custom_op_symbolic as unregister
from onnx_exporter._nodes import nodes_of
from onnx_exporter._version import core_version

X = torch.randn(2, 3)


class Layers(torch.nn.Module):
    """Modules in modules, with weights, constants and a result that is an input."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU(), torch.nn.Linear(3, 3))
        self.norm = torch.nn.LayerNorm(3)

    def forward(self, x):
        return self.norm(self.body(x)), x, x


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(3, 4, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.lstm(x[None])[0]


@torch.jit.script
def loops(x: torch.Tensor) -> torch.Tensor:
    total = x
    for i in range(int(x[0, 0] > 0) + 2):
        if bool(total.sum() > 100):
            total = total - float(i)
        else:
            total = x
    while bool(total.sum() > 0.5):
        total = total / 2
    return total


def cond(x):
    return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


class Branch(torch.nn.Module):
    """Branches whose results have other sizes."""

    def forward(self, x):
        return branch(x)


@torch.jit.script
def branch(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        y = x[:1]
    else:
        y = x
    return y


class Mine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def symbolic(g, x):
        return g.op("Add", x, x)


class Inlined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.relu(x) + 1


def writes(x):
    """A write into a slice, an index, folded and quantized parts."""
    y = x.clone()
    y[:, 0] = 1
    y[y > 0] += 2
    y = y.reshape(x.shape[0] * x.shape[1]) + torch.arange(3).repeat(2).float()
    return torch.fake_quantize_per_tensor_affine(y, 0.1, 0, -128, 127), y.topk(2)[1], torch.nn.functional.dropout(y, 0.5, True)


def vendor_table():
    table = OpTable(replaces=True)
    table.passthrough("aten::relu", domain="com.vendor", rename={"relu": "Relu"})
    return table


MODELS = {
    "layers": (Layers(), {}),
    "functions": (Layers(), {"export_modules_as_functions": True}),
    "below 9": (torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ELU(2.0)), {"opset_version": 8}),
    "export": (Layers(), {"capture": "export"}),
    "dynamic": (Layers(), {"dynamic_axes": {"x": {0: "batch"}}, "opset_version": 11}),
    "recurrent": (Recurrent(), {"dynamic_axes": {"x": {0: "time"}}}),
    "loops": (loops, {}),
    "cond": (cond, {"capture": "export"}),
    "branch": (Branch(), {"opset_version": 9}),
    "writes": (writes, {}),
    "symbolic": (lambda x: Mine.apply(x), {}),
    "inlined": (lambda x: Inlined.apply(x), {}),
    "passthrough": (torch.relu, {"plugins": [vendor_table()]}),
    "fall through": (lambda x: torch.special.bessel_j0(x), {"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH}),
    "aten": (lambda x: x.relu().sum(1), {"operator_export_type": OperatorExportTypes.ONNX_ATEN}),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::onnx_exporter.ExportWarning")
def test_every_node_says_what_made_it(name):
    model, options = MODELS[name]
    result = export(model, (X,), **options)
    nodes = list(nodes_of(result.model))
    assert nodes
    for node in nodes:
        props = node.metadata_props
        for fact in ("plugin", "function", "line"):
            assert props.get(f"onnx_exporter.{fact}"), f"{node.op_type} {node.name!r} has no {fact}: {props}"
        plugin = props["onnx_exporter.plugin"]
        line = props["onnx_exporter.line"]
        assert line.rpartition(":")[2].isdigit(), line
        assert not line.startswith("/") or "tests" in line, f"{line} tells where a package is installed"
        if plugin not in ("autograd.Function", "call-0"):
            assert props["onnx_exporter.plugin_version"] == result.plugins.get(plugin, core_version())


def test_registered_functions_say_so():
    register_custom_op_symbolic("aten::relu", lambda g, x: g.op("Max", x, g.op("Constant", value_t=torch.zeros(()))), 9)
    try:
        origins = export(torch.relu, (X,)).origins.values()
    finally:
        unregister("aten::relu", 9)
    assert {(origin.plugin, Path(origin.line.rpartition(":")[0]).name) for origin in origins} == {
        ("register_custom_op_symbolic", "test_provenance.py")
    }


def test_the_line_is_that_of_the_rule_or_the_function():
    table = vendor_table()
    (origin,) = export(torch.relu, (X,), plugins=[table]).origins.values()
    assert origin.function.endswith("test_provenance.passthrough aten::relu")
    lines = Path(__file__).read_text().splitlines()
    assert "table.passthrough(" in lines[int(origin.line.rpartition(":")[2]) - 1]
    (origin,) = export(lambda x: Mine.apply(x), (X,)).origins.values()
    assert origin.function.endswith("test_provenance.Mine.symbolic")
    assert 'g.op("Add", x, x)' in lines[int(origin.line.rpartition(":")[2]) - 1]
    assert (origin.plugin, origin.op) == ("autograd.Function", "prim::PythonOp")


def test_the_file_says_how_to_make_it_again(tmp_path):
    export(Layers(), (X,), tmp_path / "m.onnx", opset_version=17, metadata_props={"author": "me"})
    facts = {item.key: item.value for item in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert facts["onnx_exporter.version"] == core_version()
    assert facts["onnx_exporter.torch"] == torch.__version__
    assert facts["onnx_exporter.opset"] == "17"
    assert not any(key.startswith("onnx_exporter.plugin.") for key in facts)  # those that are installed have made nothing
    assert facts["author"] == "me"
    named = export(Layers(), (X,), plugins=["horizon"]).model.metadata_props  # its passes and option defaults have acted
    assert named["onnx_exporter.plugin.horizon"] == "exporter-plugin-horizon 0.1.0 (named)"


def test_whatever_made_a_node_is_in_the_metadata(tmp_path):
    (tmp_path / "relus_of_mine.py").write_text(
        "from onnx_exporter import GraphContext, OpTable, Value\ntable = OpTable()\n@table.op('aten::relu')\n"
        "def relu(g: GraphContext, self: Value) -> Value: return g.op('Neg', self)"
    )
    result = export(torch.relu, (X,), plugins=[tmp_path / "relus_of_mine.py"])
    said = result.model.metadata_props["onnx_exporter.plugin.relus_of_mine"]
    (node,) = result.model.graph
    assert said == f"relus_of_mine.py {node.metadata_props['onnx_exporter.plugin_version']}"
    assert re.fullmatch(r"relus_of_mine.py sha256:[0-9a-f]{16}", said)
    said = export(torch.relu, (X,), plugins=[vendor_table()]).model.metadata_props["onnx_exporter.plugin.call-0"]
    assert re.fullmatch(r"table made at .*test_provenance.py:\d+", said)


def test_who_asked_for_a_node_that_another_made():
    table = OpTable()

    @table.op("aten::relu")
    def relu(g: GraphContext, self: Value) -> Value:
        return g.call("aten::mul", self, g.call("aten::sigmoid", self))

    @table.op("aten::sigmoid")
    def sigmoid(g: GraphContext, self: Value) -> Value:
        return g.previous(self)

    result = export(torch.relu, (X,), plugins=[table])
    outer = f"call-0:{relu.__module__}.relu"
    origins = {node.op_type: result.origins[node.name] for node in result.model.graph}
    assert origins["Mul"].plugin == "symbolic_opset7"
    assert origins["Mul"].via == outer
    assert origins["Sigmoid"].via == f"{outer} > call-0:{relu.__module__}.sigmoid"
    assert set(result.plugins) == {"symbolic_opset7", "call-0"}
    assert "onnx_exporter.plugin.call-0" in result.model.metadata_props


@pytest.mark.parametrize("key", ["onnx_exporter.version", "onnx_exporter.plugin.mine"])
def test_what_the_file_says_of_itself_cannot_be_overwritten(key):
    with pytest.raises(ArgumentError, match=f"metadata_props has '{key}'; keys that start with 'onnx_exporter.'"):
        export(Layers(), (X,), metadata_props={key: "9.9"})


# The command


@pytest.fixture
def show(run):
    """Returns ``show(*arguments)``, which gives the exit code and what is printed."""
    return lambda *arguments: run("show", *map(str, arguments))


def rows(text: str, header: str) -> dict[str, str]:
    """The lines of a table by their first cell."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"{header} "))
    found = {}
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        found[line.split("  ")[0].strip()] = line
    return found


def test_show(show, tmp_path):
    export(Layers(), (X,), tmp_path / "m.onnx", opset_version=17, dynamic_axes={"x": {0: "batch"}}, prefer=["acme"])
    status, text = show(tmp_path / "m.onnx")
    assert status == 0
    assert f"onnx-exporter {core_version()}, main_graph, IR version 8" in text
    for line in (
        f"torch                {torch.__version__}",
        "opsets               ai.onnx 17",
        "plugin acme          exporter-plugin-acme 0.1.0 (preferred)",
    ):
        assert line in text
    plugins, modules = rows(text, "plugin"), rows(text, "module")
    assert "LayerNormalization" in plugins["symbolic_opset17"]
    assert core_version() in plugins["symbolic_opset17"]
    assert "Identity 2" in plugins["onnx-exporter"]
    assert list(modules) == ["body.0", "body.1", "body.2", "norm", "(the model itself)"]
    assert list(rows(show(tmp_path / "m.onnx", "--depth", "1")[1], "module")) == ["body", "norm", "(the model itself)"]


def test_show_goes_into_branches_and_functions(show, tmp_path):
    export(loops, (X,), tmp_path / "m.onnx")
    assert "Loop" in show(tmp_path / "m.onnx")[1]
    assert "Sub" in show(tmp_path / "m.onnx")[1]
    export(Layers(), (X,), tmp_path / "f.onnx", export_modules_as_functions=True)
    assert "LayerNormalization" in show(tmp_path / "f.onnx")[1]


def test_show_without_the_weights(show, tmp_path):
    export(torch.nn.Linear(100, 100), (torch.randn(1, 100),), tmp_path / "m.onnx", external_data=True)
    (tmp_path / "m.onnx.data").unlink()
    status, text = show(tmp_path / "m.onnx")
    assert status == 0
    assert "Gemm" in text or "MatMul" in text


def test_show_of_what_is_not_ours(show, tmp_path):
    graph = ir.Graph([], [], nodes=[], opset_imports={"": 18}, name="g")
    ir.save(ir.Model(graph, ir_version=8, producer_name="pytorch", producer_version="2.9"), tmp_path / "theirs.onnx")
    for path, message in (
        (tmp_path / "theirs.onnx", "was written by pytorch 2.9, not by onnx-exporter; its nodes do not say where they come from"),
        (tmp_path / "absent.onnx", "cannot read"),
        (Path(__file__), "is no ONNX model"),
    ):
        status, text = show(path)
        assert status == 2
        assert message in text
        assert "Traceback" not in text
