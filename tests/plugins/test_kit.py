"""The test kit that plugin authors get: what each part does, and that wrong operators fail."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from onnx.reference.op_run import OpRun

from onnx_exporter import ExportError, GraphContext, OpTable, PluginError, Value, VerificationError
from onnx_exporter.testing import NEWEST, OpCase, expand, opinfo_cases, opset_range

pytest_plugins = "pytester"

X = torch.tensor([[-2.0, -0.5, 0.0], [0.5, 1.0, 3.0]])
BATCH = {0: {0: "batch"}}

right = OpTable(opset=9)  # Erf is new in opset 9
wrong = OpTable()
baked = OpTable()
vendor = OpTable()
vendor.passthrough("kit::frob", domain="com.kit", rename={"frob": "Frob"})


@right.op("kit::gate")
def gate(g: GraphContext, x: Value) -> Value:
    if x.dtype is torch.float64:
        raise g.unsupported("the gate has no doubles")
    return g.op("Mul", x, g.op("Erf", x))


@wrong.op("kit::gate")
def gate_without_erf(g: GraphContext, x: Value) -> Value:
    return g.op("Mul", x, g.op("Tanh", x))


@baked.op("kit::gate")
def gate_of_the_example(g: GraphContext, x: Value) -> Value:
    """Right for the example, and for nothing else."""
    return g.op("Add", g.op("Mul", x, g.constant(0.0, like=x)), g.constant(X * X.erf()))


class Frob(OpRun):
    op_domain = "com.kit"

    def _run(self, x, gain=1.0):
        return ((x * gain).astype(x.dtype),)


@pytest.fixture(autouse=True)
def library():
    with torch.library._scoped_library("kit", "DEF") as kit:
        kit.define("gate(Tensor x) -> Tensor")
        kit.impl("gate", lambda x: x * x.erf(), "CompositeExplicitAutograd")
        kit.define("frob(Tensor x, float gain) -> Tensor")
        kit.impl("frob", lambda x, gain: x * gain, "CompositeExplicitAutograd")
        yield


def with_table(exporter, table):
    return dataclasses.replace(exporter, plugins=[table])


CASE = OpCase(
    "kit::gate", lambda x: torch.ops.kit.gate(x), (X,), (9, NEWEST), BATCH, emits={"Erf"}, refuses={8: "opset 9 has it"}
)
ROWS, IDS = expand([CASE, dataclasses.replace(CASE, also_static=True, captures=("trace",), label="sizes")])


def test_rows_have_every_opset_capture_and_size():
    assert [
        *(f"kit::gate@{opset}-{capture}" for opset in (8, 9, NEWEST) for capture in ("trace", "export")),
        "kit::gate-sizes@8-trace",
        *("kit::gate-sizes@9-trace", "kit::gate-sizes-static@9-trace"),
        *(f"kit::gate-sizes@{NEWEST}-trace", f"kit::gate-sizes-static@{NEWEST}-trace"),
    ] == IDS


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_a_right_operator_passes(case, opset, capture, exporter):
    result = with_table(exporter, right).check(case, opset, capture)
    assert (result is None) == (opset == 8)
    if result is not None:
        assert len(result.comparison.runs) == (3 if case.dynamic else 2)
        assert all(isinstance(size, int) for size in result.model.graph.inputs[0].shape) == (not case.dynamic)


def test_a_wrong_operator_fails(exporter):
    with pytest.raises(VerificationError, match="differs from PyTorch at 'as traced'"):
        with_table(exporter, wrong).check(CASE, 9)


def test_an_operator_that_is_right_for_the_example_only_fails(exporter):
    with pytest.raises(VerificationError, match=r"differs from PyTorch at 'alternative 1"):
        with_table(exporter, baked).check(dataclasses.replace(CASE, emits=(), dynamic={}, others=[(X + 1,)]), 9)
    with pytest.raises(VerificationError, match=r"batch=\d"):
        with_table(exporter, baked).check(dataclasses.replace(CASE, emits=()), 9)


def test_sizes_that_could_not_be_tried_fail(exporter):
    case = OpCase("aten::view", lambda x: x.view(2, 3) * 1, (X,), dynamic=BATCH)
    with pytest.raises(AssertionError, match="not verified at another size: batch"):
        exporter.check(case, 13)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"emits": {"Gelu"}}, r"the file has no \{'Gelu'\}; it has \['Erf', 'Mul'\]"),
        ({"emits": {9: {"Erf"}, 20: {"Gelu"}}}, r"gate@28-trace: the file has no \{'Gelu'\}"),
        ({"avoids": {"Erf"}}, r"the file has \{'Erf'\}"),
        ({"reference": True}, "ran with onnxruntime"),
        ({"refuses": "for a reason"}, r"kit::gate@28-trace is not refused; the file has \['Erf', 'Mul'\]"),
    ],
)
def test_what_a_case_claims_must_hold(fields, message, exporter):
    with pytest.raises(AssertionError, match=message):
        with_table(exporter, right).check(dataclasses.replace(CASE, **fields), NEWEST)


def test_emitted_operators_by_opset(exporter):
    case = OpCase("aten::gelu", torch.nn.functional.gelu, (X,), emits={9: {"Erf"}, 20: {"Gelu"}})
    assert [sorted(case.emitted_at(opset)) for opset in (8, 9, 19, 20, 28)] == [[], ["Erf"], ["Erf"], ["Gelu"], ["Gelu"]]
    for opset in (9, 19, 20, NEWEST):
        exporter.check(case, opset)


def test_a_refusal_needs_its_reason(exporter):
    case = OpCase("kit::gate", lambda x: torch.ops.kit.gate(x), (X.double(),), (9,), refuses="has no doubles")
    assert with_table(exporter, right).check(case, 9) is None
    assert "kit::gate" in str(with_table(exporter, right).refuse(case, 9))
    assert with_table(exporter, right).refuse(dataclasses.replace(case, refuses="^the gate"), 9).args
    with pytest.raises(AssertionError, match="is refused, but the error does not say 'too many axes': (?s:.*)has no doubles"):
        with_table(exporter, right).check(dataclasses.replace(case, refuses="too many axes"), 9)


def test_a_refusal_must_be_told_why(exporter):
    case = OpCase("kit::gate", lambda x: torch.ops.kit.gate(x), (X.double(),))
    assert with_table(exporter, right).refuse(case, 9, reason="no doubles").args
    with pytest.raises(ValueError, match="kit::gate@9-trace: say why it is refused"):
        with_table(exporter, right).refuse(case, 9)


def test_a_bug_is_no_refusal(exporter):
    table = OpTable()

    @table.op("kit::gate")
    def gate_with_a_bug(g: GraphContext, x: Value) -> Value:
        raise KeyError("has no doubles")

    with pytest.raises(ExportError, match="KeyError"):
        with_table(exporter, table).check(dataclasses.replace(CASE, refuses="has no doubles"), 9)


def test_operators_of_a_vendor_are_computed_by_a_class(exporter):
    case = OpCase("kit::frob", lambda x: torch.ops.kit.frob(x, 3.0).relu(), (X,), (9, NEWEST), BATCH, emits={"com.kit::Frob"})
    exporter = with_table(exporter, vendor)
    for opset in case.opsets:
        exporter.check(dataclasses.replace(case, custom_ops=[Frob]), opset)
    with pytest.raises(VerificationError, match="no operator com.kit::Frob"):
        exporter.check(case, 9)

    class Other(Frob):
        def _run(self, x, gain=1.0):
            return (x + gain,)

    Other.__name__ = "Frob"
    with pytest.raises(VerificationError, match="differs"):
        exporter.check(dataclasses.replace(case, custom_ops=[Other]), 9)


def test_opset_ranges():
    assert opset_range("Erf", first=9) == (9, 13, NEWEST)
    assert opset_range("Softmax", "Reshape", first=9, last=14) == (9, 11, 13, 14)
    assert opset_range() == (7, NEWEST)
    with pytest.raises(ValueError, match="ONNX has no operator 'Elf'"):
        opset_range("Elf")


OPINFO = [
    *opinfo_cases("nn.functional.gelu", opsets=(9, 20), count=1, emits={9: {"Erf"}, 20: {"Gelu"}}),
    *opinfo_cases("bitwise_and", count=1, opsets=(18,), captures=("trace", "export")),
]
OPINFO_ROWS, OPINFO_IDS = expand(OPINFO)


@pytest.mark.parametrize(("case", "opset", "capture"), OPINFO_ROWS, ids=OPINFO_IDS)
def test_samples_of_pytorch(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_samples_are_named_and_chosen():
    assert OPINFO_IDS[0] == "nn.functional.gelu-sample0@9-trace"
    assert {case.args[0].dtype for case in opinfo_cases("nn.functional.gelu", dtype=torch.float64)} == {torch.float64}
    with pytest.raises(ValueError, match=r"'nn.functional.gellu' is not in op_db \(similar names: nn.functional.gelu"):
        opinfo_cases("nn.functional.gellu")
    with pytest.raises(ValueError, match="'empty' is left out, since its result is uninitialised memory"):
        opinfo_cases("empty")
    with pytest.raises(ValueError, match="none of the first 1 samples of 'view_as_complex'|can be used"):
        opinfo_cases("view_as_real", dtype=torch.complex64, count=1)


BUILTIN = """
import torch
from onnx_exporter import GraphContext, OpTable, Value, hookimpl

table = OpTable()

@table.op("kit::gate")
def gate(g: GraphContext, x: Value) -> Value:
    return g.op("Mul", x, g.op("Erf", x))

@hookimpl
def onnx_exporter_tables():
    return [table]
"""


def test_only_the_plugins_that_are_named_are_loaded(install, exporter):
    install("one", BUILTIN)
    install("broken", "raise RuntimeError('was loaded')")
    case = dataclasses.replace(CASE, refuses="")
    result = exporter.only("one").check(case, 13)  # a warning about the broken plugin would be an error
    assert [name for name in result.plugins if not name.startswith("symbolic_opset")] == ["one"]
    exporter.only().check(dataclasses.replace(case, refuses="nobody converts it"), 13)
    with pytest.raises(PluginError, match="no plugin named 'two' is installed"):
        exporter.only("two")


def test_preferring_a_plugin(install, exporter):
    code = BUILTIN.replace("kit::gate", "aten::gelu").replace("OpTable()", "OpTable(replaces=True)")
    install("one", code.replace("x: Value", "self: Value, approximate: str").replace('"Mul", x, g.op("Erf", x)', '"Relu", self'))
    case = OpCase("aten::gelu", torch.nn.functional.gelu, (X,), emits={"Gelu"})
    exporter.check(case, NEWEST)
    with pytest.raises(VerificationError, match="differs"):
        exporter.preferring("one").check(case, NEWEST)


SUITE = """
import pytest
import torch
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.testing import OpCase, expand

table = OpTable()

@table.op("aten::gelu")
def gelu(g: GraphContext, self: Value, approximate: str = "none") -> Value:
    return FORM

CASES = [OpCase("aten::gelu", torch.nn.functional.gelu, (torch.linspace(-3, 3, 7),), opsets=(20,), captures=("trace",))]
ROWS, IDS = expand(CASES)

@pytest.mark.isolated_plugins()
@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    assert exporter.plugins
    type(exporter)(exporter.folder, [*exporter.plugins, table]).check(case, opset, capture)

@pytest.mark.isolated_plugins("nobody")
def test_isolated(exporter):
    pass
"""


@pytest.mark.parametrize(("form", "passed"), [('g.op("Gelu", self)', 1), ('g.op("Relu", self)', 0)], ids=["right", "wrong"])
def test_the_plugin_is_there_in_an_authors_suite(form, passed, pytester):
    """As an author has it: nothing is configured, the fixture and the marker come with the package."""
    pytester.makepyfile(SUITE.replace("FORM", form))
    result = pytester.runpytest("--strict-markers", "-W", "error::pytest.PytestUnknownMarkWarning")
    result.assert_outcomes(passed=passed, failed=1 - passed, errors=1)
    result.stdout.fnmatch_lines(["*no plugin named 'nobody' is installed*"])
    if not passed:
        result.stdout.fnmatch_lines(["*output 'output_0' of the file differs from PyTorch*"])


def test_the_guides_code_passes(pytester):
    """All blocks of docs/testing.md are one suite; tests are counted, lest nothing was found."""
    text = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    pytester.makepyfile("\n\n".join(blocks))
    result = pytester.runpytest("--strict-markers", "-W", "error::pytest.PytestUnknownMarkWarning")
    outcomes = result.parseoutcomes()
    assert set(outcomes) <= {"passed", "warnings", "warning"}
    assert outcomes["passed"] >= 20


def test_the_kit_needs_nothing_but_pytest():
    """What only developers of this project have is not needed to import it, and samples say what they need."""
    code = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"expecttest", "hypothesis", "hatchling", "onnxscript", "timm", "torchvision", "transformers"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import onnx_exporter_pytest
assert "torch" not in sys.modules, "pytest imports PyTorch when it starts"
from onnx_exporter.testing import OpCase, opinfo_cases
try:
    opinfo_cases("add")
except ImportError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install expecttest" in result.stdout, result.stderr
