"""Each scripted program computes in ONNX Runtime what it computes in PyTorch, on inputs that take other ways through it."""

from __future__ import annotations

import programs_flow as flow
import programs_lists as lists
import programs_math as numbers
import programs_sequences as sequences
import pytest
import torch
from program_kit import OPSETS, Program, check, row
from torch import Tensor

torch.manual_seed(0)
ONES, ROWS, LONG = torch.ones(3, 4), torch.randn(5, 4), torch.randn(7, 4)
UP, MIXED, BOXES = torch.rand(3, 4), torch.randn(3, 4), torch.rand(7, 4) * 3
N, B = {0: "n"}, {0: "b"}


def ramp(*sizes: int) -> Tensor:
    return torch.arange(float(torch.Size(sizes).numel())).reshape(sizes)


PROGRAMS = [
    row(flow.FirstOfThree(), (ONES,), (ONES * 0.1,), (-ONES,), emits="If"),
    row(flow.OtherShapes(), (ROWS,), (-ROWS,), (LONG,), dynamic={"x": N}, emits="If"),
    row(flow.OtherRanks(), (ONES, torch.tensor(1)), (ONES, torch.tensor(-1)), emits="If", first_opset=11),
    row(flow.OtherTypes(), (ONES * 1.7,), (ONES * -1.7,), emits="If"),
    row(flow.OnSizes(), (ROWS,), (ROWS[:2],), (LONG,), dynamic={"x": N}, emits="If"),
    row(flow.EarlyReturn(), (ONES, 3), (ONES, 20), (ONES * 60, 3), (ONES, 0), emits="Loop If"),
    row(flow.FixedRange(), (ONES,), (-ONES,), emits="Loop"),
    row(flow.DynamicRange(), (ONES, 5, 1), (ONES, 1, 2), (ONES, 10, 0), emits="Loop"),
    row(flow.While(), (ONES * 100,), (ONES * 0.01,), (ONES * 3,), emits="Loop"),
    row(flow.BreakContinue(), (ramp(3, 4) - 4,), (ramp(5, 4),), (-ramp(2, 4) - 1,), dynamic={"x": N}, emits="Loop If"),
    row(flow.Nested(), (ONES, 2, 3), (ONES, 1, 3), (ONES, 4, 0), emits="Loop"),
    row(flow.Grows(), (ROWS, 2), (ROWS, 0), (LONG, 5), dynamic={"x": N}, emits="Loop"),
    row(flow.CumulativeSum(), (ROWS,), (LONG,), dynamic={"x": N}, emits="Loop"),
    row(flow.OuterValues(), (ROWS, 3), (ROWS, 0), (LONG, 6), dynamic={"x": N}, emits="Loop If"),
    row(flow.InPlaceInBlocks(), (ROWS, 3), (-ROWS, 0), (ROWS.abs(), 5), (-ROWS.abs(), 2), emits="Loop If"),
    row(flow.StateMachine(), (torch.tensor([-1.0, 2, 3, 4, -1, 9]),), (torch.tensor([-1.0, -2]),), (torch.tensor([1.0, 5, 6]),),
        dynamic={"x": N}, emits="Loop If"),
    row(flow.AdaptiveDepth(), (ONES,), (-ONES * 3,), (ONES * 9,), (ONES * 0,), emits="If"),
    row(flow.PyramidOfModules(), (torch.randn(1, 2, 16, 16),), (torch.randn(1, 2, 16, 16),)),
    row(flow.NewtonRoot(), (ONES * 9, 20), (ONES * 2, 1), (ONES * 1e4, 0), (ONES * 1e4, 50), emits="Loop"),
    row(flow.TupleCarried(), (ONES, 3), (ONES, 0), (ROWS[:3], 9), emits="Loop"),
    row(flow.OptionalCarried(), (ROWS,), (ROWS[:1],), (LONG,), dynamic={"x": N}, emits="Loop"),
    row(flow.ScalarArithmetic(), (ROWS * 5, 3, 0.5, True), (ROWS * -5, 2, 2.5, True), (ONES * 7, 8, -1.5, False),
        dynamic={"x": N}),
    row(flow.Greedy(), (torch.tensor([1, 2]), torch.randn(2, 8), 5), (torch.tensor([4]), torch.randn(1, 8), 0),
        (torch.tensor([4, 0, 3]), torch.randn(3, 8) * 4, 30), dynamic={"start": N, "h": N}, emits="Loop"),
    row(lists.CollectStack(), (torch.tensor([[0.5, 1], [9, 2]]),), (torch.tensor([[3.0, 1], [0, 0], [11, 0]]),), dynamic={"x": N},
        emits="Loop"),
    row(lists.CollectCat(), (ROWS, 3), (ROWS, 0), (LONG, 5), dynamic={"x": N}, emits="Loop"),
    row(lists.IterateCollected(), (ROWS, 3), (LONG, 1), (LONG, 5), dynamic={"x": N}, emits="Loop"),
    row(lists.ListMethods(), (ROWS,), (LONG,), dynamic={"x": N}),
    row(lists.Rows(), (ROWS,), (LONG,), (ROWS[:1],), dynamic={"x": N}, emits="Loop"),
    row(lists.Unbound(), (ROWS,), (torch.randn(5, 9),), dynamic={"x": {1: "n"}}, emits="Loop"),
    row(lists.ListOfNumbers(), (ROWS, 3), (LONG, 6), dynamic={"x": N}, emits="Loop"),
    row(lists.AppendInBranch(), (ONES,), (-ONES,), emits="If"),
    row(lists.DictState(), (ONES, 3), (ONES, 0), emits="Loop"),
    row(lists.NamedTuples(), (ONES,), (-ONES,), emits="If"),
    row(lists.OptionalArgument(), (ROWS, ROWS > 0), (LONG, LONG > 1), dynamic={"x": N, "mask": N}),
    row(lists.ImplicitScalars(), (ROWS,), (LONG,), dynamic={"x": N}),
    row(lists.LstmOverSteps(), (torch.randn(4, 2, 3),), (torch.randn(1, 5, 3),), (torch.randn(9, 1, 3),),
        dynamic={"x": {0: "t", 1: "b"}}, emits="Loop"),
    row(lists.BeamSearch(), (torch.tensor(2), 3), (torch.tensor(5), 1), (torch.tensor(0), 9), emits="Loop", first_opset=11),
    row(lists.SuppressBoxes(), (torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]]), torch.tensor([0.3, 0.9, 0.5])),
        (torch.tensor([[0.0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [4, 4, 5, 5]]), torch.tensor([0.3, 0.9, 0.5, 0.6])),
        dynamic={"boxes": N, "scores": N}, emits="Loop"),
    row(lists.PackedLstm(), (torch.randn(2, 5, 3), torch.tensor([5, 3])), (torch.randn(3, 6, 3), torch.tensor([6, 6, 1])),
        dynamic={"x": {0: "b", 1: "t"}, "lengths": {0: "b"}}, first_opset=11),
    row(lists.OwnClass(), (ROWS.abs(), 3), (-ROWS.abs(), 0), (LONG, 5), dynamic={"x": N}, emits="Loop If"),
    row(lists.Attention(), (torch.randn(2, 5, 8), torch.randn(2, 4, 8)), (torch.randn(3, 7, 8), torch.randn(3, 2, 8)),
        dynamic={"x": {0: "b", 1: "t"}, "y": {0: "b", 1: "u"}}),
    row(lists.Recurrent(), (torch.randn(5, 2, 3),), (torch.randn(7, 3, 3),), dynamic={"x": {0: "t", 1: "b"}}),
    row(lists.clip_rows, (ROWS, -0.5, 0.5), (LONG, 0.0, 1.0), dynamic={"x": N}, emits="Loop"),
    row(lists.TracedWithScripted(), (ROWS,), (LONG * 10,), (ROWS * 0,), dynamic={"x": N}, emits="Loop", is_traced=True),
    row(lists.TracedWithModule(), (torch.ones(2, 3) * 2,), (torch.ones(4, 3) * -2,), dynamic={"x": N}, emits="If",
        is_traced=True),
    row(lists.ScriptedWithTraced(), (torch.randn(2, 3), 3), (torch.randn(4, 3), 0), dynamic={"x": N}, emits="Loop"),
    row(sequences.AppendsSometimes(), (UP, 3), (UP, 1), (UP * 5, 6), emits="SequenceInsert", first_opset=13),
    row(sequences.ReadsWhatItAppends(), (ONES, 3), (ONES, 0), (-ONES, 6), emits="SequenceAt", first_opset=13),
    row(sequences.OtherSizes(), (ROWS, 3), (ROWS, 1), (LONG, 9), dynamic={"x": N}, emits="ConcatFromSequence", first_opset=13),
    row(sequences.SegmentSums(), (torch.tensor([3, 1, 1]), ROWS), (torch.tensor([6, 1]), LONG), dynamic={"lengths": B, "x": N},
        emits="Loop"),
    row(sequences.Queue(), (UP, 5), (UP, 1), (UP * 5, 9), (UP * 99, 9), emits="SequenceErase", first_opset=13),
    row(sequences.StackOfTuples(), (ROWS, 3), (ROWS, 0), (LONG, 9), dynamic={"x": N}, emits="SequenceErase", first_opset=13),
    row(sequences.ListResults(), (MIXED, 4), (MIXED, 0), (-MIXED, 7), emits="SequenceInsert", first_opset=13),
    row(sequences.CollectedResult(), (ONES, 4), (ONES, 1), (-ONES, 7), emits="SplitToSequence", first_opset=11),
    row(sequences.SlicedList(), (ROWS, 3, 0, 1), (ROWS, 6, -2, 9), (LONG, 2, 1, 0), dynamic={"x": N}, emits="SequenceLength",
        first_opset=13),
    row(sequences.AtRuntimePlaces(), (ROWS, 1), (ROWS, 0), (LONG, 5), dynamic={"x": N}, emits="SequenceErase", first_opset=11),
    row(sequences.ShortState(), (ONES, 3), (ONES, 0), (-ONES, 6), emits="Loop If"),
    row(sequences.ListsInBranches(), (ONES, 3), (-ONES, 1), (ONES, 0), emits="If Loop"),
    row(sequences.Generations(), (ONES, 2), (ONES, 0), (MIXED, 4), emits="SequenceInsert", first_opset=13),
    row(sequences.BracketDepth(), (torch.tensor([1.0, 1, -1, 2, 3]),), (torch.tensor([1.0, 1, -1]),), (torch.tensor([1.0, -1]),),
        dynamic={"x": N}, emits="SequenceErase", first_opset=13),
    row(sequences.NumberLists(), (MIXED, 3), (MIXED, 1), (-MIXED, 6), emits="ConcatFromSequence", first_opset=13),
    row(sequences.FirstSeen(), (MIXED, 3), (MIXED, 1), (MIXED * 3, 6), emits="ConcatFromSequence", first_opset=13),
    row(sequences.BeamLists(), (torch.randn(6, 6), 3), (torch.randn(6, 6), 0), (torch.randn(6, 6), 5), emits="SequenceAt",
        first_opset=13),
    row(sequences.KeepsBoxes(), (BOXES[:4], BOXES[:4, 0]), (BOXES, BOXES[:, 1]), dynamic={"boxes": N, "scores": N},
        emits="SequenceInsert", first_opset=13),
    row(sequences.SplitParts(), (ROWS, 2), (LONG, 3), (LONG[:1], 4), dynamic={"x": N}, emits="SplitToSequence", first_opset=11),
    row(sequences.SoftmaxOfParts(), (ROWS,), (LONG,), (LONG[:1],), dynamic={"x": N}, emits="SplitToSequence", first_opset=13),
    row(sequences.OptionalSlots(), (ONES, 3), (ONES, 0), (MIXED, 6), emits="SequenceInsert", first_opset=13),
    row(sequences.MaybeNone(), (ONES,), (-ONES,), emits="If Optional", first_opset=16),
    row(sequences.LastPositive(), (ROWS,), (-ONES,), (LONG,), dynamic={"x": N}, emits="Loop If Optional", first_opset=16),
    row(sequences.WritesBeforeItKeeps(), (ONES, 3), (-ONES, 1), (-ONES * 9, 5), emits="SequenceInsert", first_opset=13),
    row(sequences.IntegerThenFloat(), (ONES, 3), (ONES, 0), (MIXED, 1), emits="If Loop"),
    row(sequences.ScalarThenVector(), (MIXED, 3), (MIXED, 0), (ONES * 1000, 5), emits="If Loop"),
    row(flow.StepByData(), (ONES, 0, 7, 2), (ONES, 7, 0, -2), (ONES, 0, 7, -1), (ONES, -5, 5, 3), (ONES, 8, 0, -4), emits="Loop"),
    row(flow.SeveralRanks(), (ONES * 20,), (ONES * 2,), (ONES * 0.1,), (-ONES,), emits="If", first_opset=11),
    row(lists.Repeated(), (ONES, 3), (MIXED, 1), (MIXED, 6), emits="Loop"),
    row(numbers.FiltersNumbers(), (ONES * 2.5, 5), (ONES, 1), (ONES * 9, 6), emits="SequenceInsert", first_opset=13),
    row(sequences.ListOfChangingType(), (ROWS, 3), (ROWS, 0), (LONG, 5), dynamic={"x": N}, emits="If Loop", first_opset=13),
]  # fmt: skip


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_matches_pytorch(program: Program, opset: int) -> None:
    check(program, opset)
