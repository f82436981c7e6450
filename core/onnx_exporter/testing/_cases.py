"""One row of a test table: an operator, a function that uses it, and arguments."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._optable import NEWEST_OPSET

NEWEST = NEWEST_OPSET
"""The newest opset that can be targeted."""


@dataclasses.dataclass(frozen=True)
class OpCase:
    """An operator with arguments, exported at some opsets and compared with eager PyTorch. Added in 0.1.

    Attributes:
        op: The operator that the case is about, ``"aten::elu"``.
        call: A module or a function of tensors that uses it.
        args: Example arguments; tensors become inputs, everything else is baked in.
        opsets: Opsets to export at: the first, each that changes it, the newest.
        dynamic: Dynamic axes of each tensor among `args`, by position: ``{0: {0: "batch"}}``.
        others: Further arguments that the same file must be right for.
        emits: ONNX operators that the file must contain.
        avoids: ONNX operators that the file must not contain (``"If"`` and ``"Shape"``, say).
        reference: ONNX Runtime has no kernel for it, so onnx's reference evaluator runs the file.
        captures: ``"trace"``, ``"export"`` or both.
        rtol: Relative tolerance, by element type unless given.
        atol: Absolute tolerance, by element type unless given.
        label: Tells cases of one operator apart.
    """

    op: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    opsets: Sequence[int] = (NEWEST,)
    dynamic: Mapping[int, Mapping[int, str]] = dataclasses.field(default_factory=dict)
    others: Sequence[tuple[Any, ...]] = ()
    emits: frozenset[str] | set[str] = frozenset()
    avoids: frozenset[str] | set[str] = frozenset({"If", "Loop"})
    reference: bool = False
    captures: Sequence[str] = ("trace", "export")
    rtol: float | None = None
    atol: float | None = None
    label: str = ""

    def __str__(self) -> str:
        return f"{self.op}{'-' + self.label if self.label else ''}"

    def module(self) -> torch.nn.Module:
        """Returns what the case calls, as a module in eval mode."""
        if isinstance(self.call, torch.nn.Module):
            return self.call.eval()
        return _Call(self.call).eval()

    def each(self) -> Iterator[tuple[OpCase, int, str]]:
        """Yields the case with every opset and capture."""
        for opset in self.opsets:
            for capture in self.captures:
                yield self, opset, capture


class _Call(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def expand(cases: Sequence[OpCase]) -> tuple[list[tuple[OpCase, int, str]], list[str]]:
    """Returns every case at every opset in every capture, and an id for each: ``aten::elu@13-trace``."""
    rows = [row for case in cases for row in case.each()]
    names = [f"{case}@{opset}-{capture}" for case, opset, capture in rows]
    return rows, [name if names.count(name) == 1 else f"{name}#{names[:index].count(name)}" for index, name in enumerate(names)]
