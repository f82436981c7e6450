"""What users write, in ONNX Runtime against PyTorch; and what they are told where a trace is not enough."""

from __future__ import annotations

import programs_algorithms as algorithms
import programs_users as users
import pytest
import torch
from program_kit import OPSETS, Program, check, row
from torch import Tensor, nn

from onnx_exporter import CaptureError, export

torch.manual_seed(0)
ONES, MIXED, ROWS, LONG = torch.ones(3, 4), torch.randn(3, 4), torch.randn(5, 4), torch.randn(7, 4)
N, B = {0: "n"}, {0: "b"}
NUMBERS = torch.tensor([5, 3, 8, 1])
PADDED = (torch.randn(2, 6, 4), torch.tensor([6, 4]))
OTHER_PADDED = (torch.randn(3, 9, 4), torch.tensor([2, 9, 1]))
PADDED_AXES = {"x": {0: "b", 1: "t"}, "lengths": B}

PROGRAMS = [
    row(users.ReturnsFromNestedLoops(), (MIXED, 2), (MIXED, 0), (-MIXED, 9), emits="Loop If"),
    row(users.Shadowed(), (ONES, 2), (ONES, 0), (MIXED, 3), emits="Loop"),
    row(users.Forever(), (ONES,), (ONES * 100,), (ONES * 0.01,), emits="Loop If"),
    row(users.SliceWrites(), (MIXED, 2), (-MIXED, 1), (MIXED, 0), (-MIXED, 3), emits="Loop If"),
    row(users.WritesThenBranches(), (MIXED, 3), (MIXED, 0), (ONES, 4), emits="Loop If"),
    row(users.MaskedWrites(), (MIXED, 3), (MIXED, 0), (-MIXED, 4), emits="Loop"),
    row(users.LengthConditions(), (ROWS,), (ROWS[:1],), (LONG,), (ROWS[:2],), dynamic={"x": N}, emits="If"),
    row(users.Steps(), (ROWS,), (ROWS[:1],), (LONG,), dynamic={"x": N}, emits="Loop"),
    row(users.Together(), (MIXED, 3), (MIXED, 0), (MIXED, 6), emits="Loop If"),
    row(algorithms.BubbleSort(), (NUMBERS,), (NUMBERS[:2],), (torch.arange(6).flip(0),), dynamic={"x": N}, emits="Loop"),
    row(algorithms.SortedList(), (NUMBERS,), (NUMBERS[:2],), (torch.arange(6).flip(0),), dynamic={"x": N}, emits="SequenceInsert",
        first_opset=13),
    row(users.ListOfATensor(), (NUMBERS,), (NUMBERS[:1],), dynamic={"x": N}, emits="Loop"),
    row(users.ReturnsListsEarly(), (ROWS, 3), (ROWS[:1], 0), (LONG.abs(), 5), (-LONG.abs(), 5), dynamic={"x": N},
        emits="SequenceInsert", first_opset=13),
    row(users.ChosenThenChanged(), (ONES,), (-ONES,), emits="If"),
    row(users.TwoNames(), (MIXED, 3), (MIXED, 0), (-MIXED, 5), emits="SequenceErase", first_opset=13),
    row(algorithms.PrefixSums(), (MIXED, 3), (MIXED, 0), (-MIXED, 6), emits="SequenceAt", first_opset=13),
    row(algorithms.Histogram(), (torch.tensor([3, 1, 2, 2]),), (torch.tensor([0]),), dynamic={"x": N}, emits="Loop If"),
    row(algorithms.WaysToPay(), (torch.tensor([3, 1, 2]), 4), (torch.tensor([1]), 2), (torch.tensor([5, 2]), 9),
        dynamic={"coins": N},
        emits="SequenceErase", first_opset=13),
    row(users.ResizesToFit(), (torch.rand(3, 20, 18),), (torch.rand(3, 15, 30),), dynamic={"x": {1: "h", 2: "w"}},
        first_opset=11),
    row(users.TensorsOfNumbers(), (MIXED, 2, 1.5), (MIXED, 5, -2.5)),
    row(algorithms.StepSizeControl(), (MIXED[:1], 0.1), (MIXED[:1] * 5, 0.5), emits="Loop If"),
    row(algorithms.Viterbi(), (torch.randn(3, 5),), (torch.randn(6, 5),), dynamic={"x": N}, emits="Loop"),
    row(algorithms.CollapsesRepeats(), (torch.tensor([1, 1, 0, 1, 2, 2, 3]),), (torch.tensor([0, 4]),), dynamic={"x": N},
        emits="SequenceInsert", first_opset=13),
    row(algorithms.RaggedLstm(), PADDED, OTHER_PADDED, dynamic=PADDED_AXES, emits="SequenceInsert", first_opset=13),
    row(algorithms.UnionFind(), (torch.tensor([[0, 1], [1, 2], [3, 4]]), 5), (torch.tensor([[0, 1]]), 4), dynamic={"edges": N},
        emits="Loop SequenceErase", first_opset=13),
    row(users.IntegerOperators(), (MIXED, 2), (MIXED, 0), (MIXED, 7)),
    row(users.DictOfLists(), (MIXED, 3), (MIXED, 0), (-MIXED, 5), emits="SequenceInsert", first_opset=13),
    row(users.TypeChangesInside(), (MIXED, 3), (MIXED, 1), (-MIXED, 5), emits="Loop If"),
    row(users.OptionalPair(), (MIXED, 3), (MIXED, 0), (-MIXED, 5), emits="Optional", first_opset=16),
    row(algorithms.Unpads(), PADDED, OTHER_PADDED, dynamic=PADDED_AXES, emits="SequenceInsert", first_opset=13),
    row(algorithms.PadsAgain(), PADDED, OTHER_PADDED, dynamic=PADDED_AXES, emits="ConcatFromSequence", first_opset=13),
    row(algorithms.CrossCorrelation(), (torch.randn(1, 2, 9, 9), torch.randn(1, 2, 3, 3)),
        (torch.randn(1, 2, 12, 10), torch.randn(1, 2, 5, 2)), dynamic={"x": {2: "h", 3: "w"}, "kernel": {2: "p", 3: "q"}},
        emits="Conv"),
    row(users.SlicesOfNothing(), (ROWS,), (ROWS[:1],), (ROWS[:0],), (ROWS[:2],), dynamic={"x": N}),
    row(algorithms.Decodes(), (torch.randn(2, 4), 3), (torch.randn(3, 4), 1), (torch.randn(1, 4) * 4, 9), dynamic={"h": N},
        emits="Loop"),
    row(users.TracedWithLists(), (MIXED.abs(),), (MIXED,), (-MIXED.abs(),), emits="If", is_traced=True, first_opset=13),
]  # fmt: skip


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_matches_pytorch(program: Program, opset: int) -> None:
    check(program, opset)


class Positive(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        rows: list[Tensor] = []
        for i in range(x.size(0)):
            if bool(x[i].sum() > 0):
                rows.append(x[i])
        return rows


class Maybe(nn.Module):
    def forward(self, x: Tensor) -> Tensor | None:
        if bool(x.sum() > 0):
            return x
        return None


@torch.jit.script_if_tracing
def positive(x: Tensor) -> list[Tensor]:
    rows: list[Tensor] = []
    for i in range(x.size(0)):
        if bool(x[i].sum() > 0):
            rows.append(x[i])
    return rows


class CallsPositive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.jit.script(Positive())

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(self.part(x))


class CallsFunction(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(positive(x))


class CallsMaybe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.jit.script(Maybe())

    def forward(self, x: Tensor) -> Tensor:
        y = self.part(x)
        return x if y is None else y


@pytest.mark.parametrize("model", [CallsPositive(), CallsFunction(), CallsMaybe()], ids=lambda model: type(model).__name__)
def test_a_scripted_part_whose_results_vary_in_number_is_refused(model: nn.Module) -> None:
    with pytest.raises(CaptureError, match="the data decide[\\s\\S]*script the whole model"):
        export(model, (ONES,), None)


def test_torch_export_of_a_scripted_part_is_refused() -> None:
    with pytest.raises(CaptureError, match="torch.export takes no TorchScript, but 'part' is scripted[\\s\\S]*capture='trace'"):
        export(CallsPositive(), (ONES,), None, capture="export")
