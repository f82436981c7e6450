"""The sizes for which a torch.export capture holds: what is found, what is told, and where verification looks."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from onnx_exporter._frontends._inputs import ModelInputs, model_inputs
from onnx_exporter._frontends.captured import Captured, Range
from onnx_exporter._frontends.exported_program import capture_export, inputs_of_program
from onnx_exporter._verify_inputs import Symbols
from onnx_exporter.errors import CaptureError
from source_tools import run_captured


class Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def inputs_of(size: int = 6, name: str = "n") -> ModelInputs:
    return model_inputs(Model(abs).forward, (torch.randn(size, 3),), {}, None, {"x": {0: name}})


def captured(function: Callable[..., Any], size: int = 6) -> Captured:
    return capture_export(Model(function), inputs_of(size))


def zeroed(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.view(-1)[2:5].zero_()
    return y


def guarded(x: torch.Tensor) -> torch.Tensor:
    assert x.shape[0] % 2 == 0
    if x.shape[0] > 50:
        raise ValueError("too long")
    torch._check(x.shape[0] > 3)
    return x * 2


# Branches and numbers that capture fixed, with the sizes for which it took the right ones
BAKED: dict[str, tuple[Callable[..., Any], Range, str]] = {
    "branch": (lambda x: x * 2 if x.shape[0] > 2 else x * 3, (3, None), "n >= 3"),
    "branch-below": (lambda x: x * 2 if x.shape[0] < 20 else x * 3, (0, 19), "n <= 19"),
    "two-branches": (lambda x: x * 2 if 4 < x.shape[0] < 200 else x, (5, 199), "5 <= n <= 199"),
    "int-of-float": (lambda x: x[: int(x.shape[0] * 0.5)], (6, 7), "6 <= n <= 7"),
    "loop": (lambda x: sum(x[i] for i in range(x.shape[0] // 2)), (6, 7), "6 <= n <= 7"),
    "count-of-split": (lambda x: torch.stack([part.sum() for part in x.split(2)]), (5, 6), "5 <= n <= 6"),
    "slice": (lambda x: x[2:5] * 1, (5, None), "n >= 5"),
    "slice-from-end": (lambda x: x[-3:] * 1, (3, None), "n >= 3"),
    "slice-of-view": (zeroed, (2, None), "n >= 2"),
    "diagonal": (lambda x: torch.diagonal(x[:2]), (2, None), "n >= 2"),
}


@pytest.mark.parametrize("name", BAKED)
def test_what_capture_fixed_is_told_with_its_range(name: str) -> None:
    function, limits, words = BAKED[name]
    found = captured(function)
    assert found.ranges == {"n": limits}
    (note,) = found.notes
    assert note.startswith(f"torch.export holds for {words} only")
    if name != "count-of-split":  # PyTorch does not say where that was
        assert __file__ in note


def test_the_range_is_exact() -> None:
    function, (least, most), _ = BAKED["int-of-float"]
    graph = captured(function).graph
    assert most is not None
    for size in range(2, 12):
        x = torch.randn(size, 3)
        (result,) = run_captured(graph, [x])
        assert (result.shape == function(x).shape) == (least <= size <= most)


def test_the_line_of_a_condition_is_named() -> None:
    found = captured(lambda x: x + 1 if x.shape[0] > 4 else x)  # this line
    line = int(found.notes[0].rpartition(":")[2].rstrip(")"))
    assert "# this line" in Path(__file__).read_text().splitlines()[line - 1]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x * 2 if x.shape[0] % 2 == 0 else x, "Mod(n, 2) == 0"),
        (lambda x: x * 2 if x.shape[0] != 9 else x, "n != 9"),
    ],
    ids=["even", "unequal"],
)
def test_a_condition_that_is_no_range_is_told(function: Callable[..., Any], text: str) -> None:
    found = captured(function)
    assert found.ranges == {}
    assert [note.partition(" (/")[0] for note in found.notes] == [f"torch.export holds only where {text}"]


def test_a_condition_on_two_axes_is_told() -> None:
    class Longer(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.sum() if x.shape[0] > y.shape[0] else y.sum()

    model = Longer()
    args = (torch.randn(5), torch.randn(4))
    found = capture_export(model, model_inputs(model.forward, args, {}, None, {"x": {0: "first"}, "y": {0: "second"}}))
    (note,) = found.notes
    assert note.startswith("torch.export holds only where ")
    assert "first" in note and "second" in note


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(x.shape[1], x.shape[0]),
        lambda x: x.t().reshape(x.shape[0], x.shape[1]),
        lambda x: x.diagonal(x.shape[0] - x.shape[1]),
    ],
)
def test_two_axes_that_an_operator_takes_for_equal_are_told(function: Callable[..., Any]) -> None:
    model = Model(function)
    inputs = model_inputs(model.forward, (torch.randn(4, 4),), {}, None, {"x": {0: "n", 1: "m"}})
    (note,) = capture_export(model, inputs).notes
    assert note.startswith("torch.export holds only where ") and "==" in note


@pytest.mark.parametrize("function", [lambda x: x.squeeze(0), lambda x: x.squeeze((0, 1)), lambda x: x.squeeze()])
def test_an_axis_that_squeeze_would_remove_is_told_or_refused(function: Callable[..., Any]) -> None:
    found = captured(function)
    assert found.ranges == {"n": (2, None)}
    assert re.fullmatch(r"torch.export holds for n >= 2 only \(.*test_exported_program_ranges.py:\d+\)", found.notes[0])
    with pytest.raises(CaptureError, match=r"squeeze\(\) removes .*size 1[\s\S]*test_exported_program_ranges.py:\d+"):
        captured(function, 1)


def test_an_axis_that_an_operator_takes_for_one_to_broadcast_is_told() -> None:
    def broadcast(x: torch.Tensor) -> torch.Tensor:
        diagonal = x.unfold(0, 2, 2).diagonal()
        return torch.einsum("...i,...i->...", diagonal, diagonal)

    model = Model(broadcast)
    inputs = model_inputs(model.forward, (torch.randn(2, 4),), {}, None, {"x": {0: "n", 1: "m"}})
    (note,) = capture_export(model, inputs).notes
    assert note.startswith("torch.export holds only where Min(m, ") and note.endswith(" == 1")


@pytest.mark.parametrize(
    ("function", "ranges"),
    [
        (lambda x: x * 2, {}),
        (lambda x: torch.cat([x, x[1:]]), {}),
        (lambda x: x[: x.shape[0] // 2], {}),
        (lambda x: x.view(2, -1), {}),
        (lambda x: x[:1] + x, {}),
        (lambda x: x.narrow(0, 0, 3), {"n": (3, None)}),
        (lambda x: x + torch.ones(10, 3)[: x.shape[0]], {"n": (0, 10)}),
        (guarded, {"n": (4, 50)}),
    ],
    ids=["elementwise", "cat", "half", "view", "first", "narrow", "table", "checks"],
)
def test_what_eager_pytorch_refuses_too_is_not_told(function: Callable[..., Any], ranges: dict[str, Range]) -> None:
    found = captured(function)
    assert found.notes == []
    assert found.ranges == ranges


def test_an_exported_program_states_its_ranges() -> None:
    x = torch.export.Dim("x", min=3, max=9)
    program = torch.export.export(Model(torch.relu), (torch.randn(6, 3),), dynamic_shapes={"x": {0: x}}, strict=False)
    found = capture_export(program, inputs_of_program(program, None, None, None, {"x": {0: "n"}}))
    assert found.ranges == {"n": (3, 9)}
    assert found.notes == []


@pytest.mark.parametrize("limits", [(5, None), (0, 6), (5, 7), (6, 6)])
def test_verification_stays_in_range(limits: Range) -> None:
    symbols = Symbols(inputs_of(), {"n": limits})
    chosen = [sizes["n"] for smaller in (False, True) for sizes in symbols.candidates(smaller)]
    chosen += [sizes["n"] for sizes in symbols.candidates_for("n")]
    least, most = limits
    assert all(least <= size and (most is None or size <= most) and size != 6 for size in chosen)
    assert bool(chosen) == (limits != (6, 6))


def test_verification_changes_axes_without_a_range() -> None:
    args = (torch.randn(4), torch.randn(6))
    model = torch.add
    inputs = model_inputs(lambda x, y: model(x, y), args, {}, None, {"x": {0: "free"}, "y": {0: "fixed"}})
    chosen = list(Symbols(inputs, {"fixed": (6, 6)}).candidates(smaller=False))
    assert {sizes["fixed"] for sizes in chosen} == {6}
    assert 4 not in {sizes["free"] for sizes in chosen}
