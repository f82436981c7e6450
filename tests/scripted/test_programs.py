"""Each scripted program computes in ONNX Runtime what it computes in PyTorch, on inputs that take other ways through it."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import programs_flow as flow
import programs_lists as lists
import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import ExportWarning, export
from onnx_exporter.testing import NEWEST

OPSETS = (9, 11, 13, 16, 19, NEWEST)

torch.manual_seed(0)
ONES, ROWS, LONG = torch.ones(3, 4), torch.randn(5, 4), torch.randn(7, 4)
N = {0: "n"}


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, arguments, and others that the same file must be right for.

    Attributes:
        call: A module, which is scripted unless it is traced, or a scripted function.
        args: Example arguments.
        others: Other arguments.
        dynamic: Dynamic axes by input.
        emits: ONNX operators that the file must contain.
        is_traced: The module is traced, and calls something scripted.
        first_opset: The first opset that can express it.
    """

    call: Any
    args: tuple[Any, ...]
    others: tuple[tuple[Any, ...], ...]
    dynamic: dict[str, dict[int, str]] = dataclasses.field(default_factory=dict)
    emits: frozenset[str] = frozenset()
    is_traced: bool = False
    first_opset: int = 9

    def __str__(self) -> str:
        return type(self.call).__name__ if isinstance(self.call, nn.Module) else str(self.call.name)

    def model(self) -> Any:
        if self.is_traced or not isinstance(self.call, nn.Module):
            return self.call
        return torch.jit.script(self.call.eval())


def row(call: Any, args: tuple[Any, ...], *others: tuple[Any, ...], emits: str = "", **options: Any) -> Program:
    return Program(call, args, others, emits=frozenset(emits.split()), **options)


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
]  # fmt: skip


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_matches_pytorch(program: Program, opset: int) -> None:
    if opset < program.first_opset:
        pytest.skip(f"ONNX can express it from opset {program.first_opset} on")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        warnings.filterwarnings("ignore", "a file neither checks", ExportWarning)
        result = export(
            program.model(),
            program.args,
            None,
            opset_version=opset,
            dynamic_axes=program.dynamic or None,
            verify=True,
            verify_args=program.others,
        )
    missing = program.emits - {node.op_type for node in result.model.graph.all_nodes()}
    assert not missing, f"the file has no {missing}"
