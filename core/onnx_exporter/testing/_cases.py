"""One row of a test table: an operator, a function that uses it, and arguments."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import onnx
import torch

from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter.testing._fields import check_case

NEWEST = NEWEST_OPSET
"""The newest opset that can be targeted."""


@dataclasses.dataclass(frozen=True)
class OpCase:
    """An operator with arguments, exported at some opsets and compared with eager PyTorch. Added in 0.1.

    Attributes:
        op: The operator that the case is about, ``"aten::elu"``, or one overload of it, ``"aten::add.Scalar"``; or the class
            of an ``autograd.Function``, ``"MyClip"`` or ``"module:MyClip"``. What the case returns must depend on it. "" for a
            module that is about no operator in particular; then `label` names the case.
        call: A module or a function of tensors that uses it.
        args: Example arguments; tensors become inputs, everything else is baked in.
        opsets: Opsets to export at: the first, each that changes it, the newest. See `opset_range`.
        dynamic: Dynamic axes of each tensor among `args`, by position: ``{0: {0: "batch"}}``.
        others: Further arguments that the same file must be right for; values and sizes are made up where there are none.
        emits: ONNX operators that the file must contain (``"Erf"``, ``"com.acme::Frob"``); by the first opset at which
            it must, where that differs: ``{9: {"Erf"}, 20: {"Gelu"}}``.
        avoids: ONNX operators that the file must not contain (``"If"`` and ``"Shape"``, say); those of other domains with the
            domain.
        reference: ONNX Runtime has no kernel for it, so onnx's reference evaluator runs the file.
        captures: ``"trace"``, ``"export"`` or both.
        rtol: Relative tolerance, by element type unless given; what plugins state does not count.
        atol: Absolute tolerance, likewise.
        label: Tells cases of one operator apart.
        refuses: Why the operator must be refused, as a regular expression that one of the error's reasons for it matches:
            one for all `opsets`, or by opset, for further ones: ``{8: "opset 9 has it"}``. See `Exporter.refuse`.
        custom_ops: What computes operators that ONNX Runtime does not have: paths of libraries for ONNX Runtime, or classes
            (``onnx.reference.op_run.OpRun``), with which onnx's reference evaluator runs the file.
        also_static: The case is exported without its dynamic axes too.

    Raises:
        ValueError: If an attribute is malformed, or says nothing, such as an empty `captures`.
    """

    op: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    opsets: Sequence[int] = (NEWEST,)
    dynamic: Mapping[int, Mapping[int, str]] = dataclasses.field(default_factory=dict)
    others: Sequence[tuple[Any, ...]] = ()
    emits: AbstractSet[str] | Mapping[int, AbstractSet[str]] = frozenset()
    avoids: AbstractSet[str] = frozenset({"If", "Loop"})
    reference: bool = False
    captures: Sequence[str] = ("trace", "export")
    rtol: float | None = None
    atol: float | None = None
    label: str = ""
    refuses: str | Mapping[int, str] = ""
    custom_ops: Sequence[type[Any] | str | os.PathLike[str]] = ()
    also_static: bool = False

    def __post_init__(self) -> None:
        check_case(self)

    def __str__(self) -> str:
        return "-".join(filter(None, (self.op, self.label))) or "model"

    def module(self) -> torch.nn.Module:
        """Returns what the case calls, as a module in eval mode."""
        if isinstance(self.call, torch.nn.Module):
            return self.call.eval()
        return _Call(self.call).eval()

    def emitted_at(self, opset: int) -> AbstractSet[str]:
        """Returns the ONNX operators that the file must contain at an opset."""
        if isinstance(self.emits, Mapping):
            return self.emits.get(max((first for first in self.emits if first <= opset), default=0), frozenset())
        return self.emits

    def refused_at(self, opset: int) -> str:
        """Returns what the error must say at an opset, "" if the operator must be converted there."""
        return self.refuses if isinstance(self.refuses, str) else self.refuses.get(opset, "")

    def each(self) -> Iterator[tuple[OpCase, int, str]]:
        """Yields the case with every opset and capture."""
        refused = () if isinstance(self.refuses, str) else self.refuses
        for opset in sorted({*self.opsets, *refused}):
            for capture in self.captures:
                yield self, opset, capture
                if self.also_static and self.dynamic and not self.refused_at(opset):
                    label = f"{self.label}-static" if self.label else "static"
                    yield dataclasses.replace(self, dynamic={}, others=(), label=label), opset, capture


class _Call(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def expand(cases: Sequence[OpCase]) -> tuple[list[tuple[OpCase, int, str]], list[str]]:
    """Returns every case at every opset in every capture, and an id for each: ``aten::elu@13-trace``. Added in 0.1."""
    rows = [row for case in cases for row in case.each()]
    names = [f"{case}@{opset}-{capture}" for case, opset, capture in rows]
    return rows, [name if names.count(name) == 1 else f"{name}#{names[:index].count(name)}" for index, name in enumerate(names)]


def opset_range(*op_types: str, first: int = OLDEST_OPSET, last: int = NEWEST) -> tuple[int, ...]:
    """Returns the opsets at which an operator should be tested. Added in 0.1.

    These are the first, the last, and each between them that changes one of the ONNX operators that are emitted.

    Args:
        op_types: ONNX operators, of ai.onnx.
        first: The first opset.
        last: The last opset.

    Raises:
        ValueError: If ONNX has no such operator, or there are no such opsets.
    """
    if not OLDEST_OPSET <= first <= last <= NEWEST:
        raise ValueError(f"opsets from {first} to {last} are no range within {OLDEST_OPSET} to {NEWEST}")
    changes = _changes()
    for op_type in op_types:
        if op_type not in changes:
            raise ValueError(f"ONNX has no operator {op_type!r}")
    between = {opset for op_type in op_types for opset in changes[op_type] if first <= opset <= last}
    return tuple(sorted({first, last, *between}))


@functools.cache
def _changes() -> Mapping[str, AbstractSet[int]]:
    """The opsets at which each operator of ai.onnx came or changed."""
    found: dict[str, set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, set()).add(schema.since_version)
    return found
