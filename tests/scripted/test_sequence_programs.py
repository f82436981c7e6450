"""Each scripted program that takes lists of tensors computes in ONNX Runtime what it computes in PyTorch, at several lengths."""

from __future__ import annotations

import programs_sequence_inputs as programs
import pytest
import torch
from program_kit import Program, check, kinds, row, rows
from torch import Tensor

from onnx_exporter.testing import NEWEST

OPSETS = (11, 13, 16, 19, NEWEST)
torch.manual_seed(0)


def wide(*counts: int) -> list[Tensor]:
    return [torch.randn(3, count) for count in counts]


X, ONES = rows(2, 4), torch.ones(3)
N = {0: "n"}

PROGRAMS = [
    row(programs.Sums(), (X,), (rows(),), (rows(1),), (rows(5, 1, 3, 2),), emits="SequenceAt SequenceLength", first_opset=11),
    row(programs.Stacks(), (rows(2, 2), ONES), (rows(2), ONES), (rows(5, 5, 5), -ONES), (rows(1, 1, 1, 1), ONES),
        dynamic={"xs": N}, emits="ConcatFromSequence", first_opset=11),
    row(programs.Indexes(), (X, 1), (rows(1), 0), (rows(5, 1, 3), -2), (rows(0, 1), 1), emits="SequenceAt", first_opset=11),
    row(programs.IndexesByData(), (X, torch.tensor([0, 1, 1])), (rows(2), torch.tensor([0, -1])),
        (rows(4, 1, 1, 5), torch.tensor([3, 2, -2, 0])), dynamic={"index": N}, emits="Loop", first_opset=11),
    row(programs.Broadcasts(), (rows(1, 4),), (rows(5, 1),), (rows(1, 1),), (rows(1, 4, 7),), first_opset=11),
    row(programs.ReadInBlocks(), (X, 3), (rows(2), 5), (rows(3, 1, 1), 0), (rows(3, 1, 1), 7), emits="Loop If", first_opset=11),
    row(programs.Enumerated(), (X,), (rows(),), (rows(1),), (rows(5, 1, 3, 2),), emits="Loop", first_opset=11),
    row(programs.Joins(), (rows(2, 2), [torch.ones(2), ONES[:2]]), (rows(1), [ONES[:2]]),
        (rows(2, 2, 2), [torch.ones(2)] * 5), dynamic={"xs": N}, first_opset=11),
    row(programs.Fills(), (X,), (rows(),), (rows(1),), (rows(5, 1, 3, 2),), first_opset=11),
    row(programs.Layers(), (X,), (rows(1, 1),), (rows(3, 2, 5),), first_opset=11),
    row(programs.Unpacks(), (rows(3, 3),), (rows(5, 5),), dynamic={"xs": N}, first_opset=11),
    row(programs.MaybeList(), (ONES, [ONES, -ONES]), (ONES, []), (ONES, [ONES]), (-ONES, [ONES] * 4), first_opset=11),
    row(programs.EarlyOut(), (X,), (rows(),), (rows(1),), ([x + 5 for x in rows(5, 1, 3, 2)],), first_opset=11),
    row(programs.OfIndices(), (torch.randn(6, 3), [torch.tensor([0, 2]), torch.tensor([5])], [ONES > 0, ONES[:1] > 2]),
        (torch.randn(6, 3), [], []), (torch.randn(6, 3), [torch.tensor([1, 2, 5])] * 3, [torch.tensor([True, False])] * 3),
        first_opset=11),
    row(programs.Best(), (X,), (rows(1),), (rows(5, 1, 3, 2),), emits="Loop If", first_opset=11),
    row(programs.Keeps(), (rows(2, 2), torch.randn(6, 3)), (rows(2), torch.ones(6, 3)), (rows(2, 2, 2), -torch.ones(6, 3)),
        (rows(2, 2, 2), torch.rand(6, 3)), emits="SequenceInsert", first_opset=11),
    row(programs.Finds(), (X, 0.0), (rows(1), 3.0), (rows(3, 2), -100.0), ([], 1.0), (rows(3, 2), 100.0), emits="Loop",
        first_opset=11),
    row(programs.Numbers(), (X,), (rows(1),), (rows(5, 1, 3, 2),), first_opset=13),
    row(programs.SlicesOf(), (X, 1), (rows(), 0), (rows(1), 3), (rows(5, 1, 2, 2, 6), -2), (rows(5, 1, 2, 2), 9), first_opset=13),
    row(programs.Changes(), (X, torch.randn(1, 3)), (rows(1), torch.randn(1, 3)), (rows(3, 1, 6), torch.randn(1, 3)),
        emits="SequenceInsert SequenceErase", first_opset=13),
    row(programs.Chosen(), (X, rows(1, 2, 3), ONES), (X, rows(1), -ONES), (rows(5), X, ONES), (rows(4, 5), X * 2, -ONES),
        emits="If", first_opset=13),
    row(programs.Grows(), (X, 3), (rows(1), 0), (rows(1), 1), (rows(1, 2, 3), 7), emits="Loop", first_opset=13),
    row(programs.Back(), (X,), (rows(1),), (rows(),), (rows(3, 2, 1),), first_opset=11),
    row(programs.Encodes(), (X,), (rows(1),), (rows(),), (rows(3, 2, 1),), emits="Loop", first_opset=13),
    row(programs.Pairs(), (X, wide(2, 5)), (rows(1), wide(1)), ([], []), (rows(1, 2, 3), wide(4, 2, 2)), emits="Loop",
        first_opset=13),
    row(programs.Pools(), (X,), (rows(1),), (rows(5, 1, 3, 2),), emits="Loop ConcatFromSequence", first_opset=13),
    row(programs.Pads(), (X,), (rows(1),), (rows(5, 1, 3, 2),), first_opset=13),
    row(programs.Batches(), ([torch.rand(3, 4, 5), torch.rand(3, 6, 3)],), ([torch.rand(3, 2, 2)],),
        ([torch.rand(3, size, 9 - size) for size in (2, 5, 7)],), emits="Loop", first_opset=13),
    row(programs.Recurs(), (X,), (rows(3),), (rows(3, 1, 6),), emits="GRU", first_opset=13),
    row(programs.Convolves(), ([torch.rand(3, 8, 8), torch.rand(3, 10, 6)],), ([torch.rand(3, 8, 8)],),
        ([torch.rand(3, 4 + 2 * index, 12) for index in range(4)],), emits="Loop Conv", first_opset=13),
    row(programs.EarlyList(), (X, 3), *((rows(1, 2, 3), count) for count in (0, 1, 2, 3)), emits="If Loop", first_opset=13),
]  # fmt: skip


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_matches_pytorch(program: Program, opset: int) -> None:
    result = check(program, opset)
    assert "sequence_type" in kinds(result).values()
    assert result.comparison is not None
    assert result.comparison.runtime == "onnxruntime"
