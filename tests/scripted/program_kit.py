"""A scripted program, with arguments on which its file is compared with PyTorch."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import pytest
import torch
from torch import nn

from onnx_exporter import ExportResult, ExportWarning, export
from onnx_exporter.testing import NEWEST

OPSETS = (9, 11, 13, 16, 19, NEWEST)
_FIRST_WITH_OPTIONAL_INPUTS = 15


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


def check(program: Program, opset: int) -> ExportResult:
    """Exports a program, compares the file with PyTorch on all its arguments, and returns it."""
    if opset < program.first_opset:
        pytest.skip(f"ONNX can express it from opset {program.first_opset} on")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        warnings.filterwarnings("ignore", "a file neither checks", ExportWarning)
        if opset < _FIRST_WITH_OPTIONAL_INPUTS:
            warnings.filterwarnings("ignore", "the scripted model asks whether arguments are None", ExportWarning)
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
    return result


def kinds(result: ExportResult) -> dict[str, str]:
    """The kind of type that each input has, by name: ``"tensor_type"``, ``"sequence_type"``, ``"optional_type"``."""
    return {item.name: item.type.WhichOneof("value") for item in result.model_proto.graph.input}


def scripted(model: nn.Module) -> Any:
    return torch.jit.script(model.eval())


def rows(*counts: int) -> list[torch.Tensor]:
    """Tensors of so many rows each, of three columns."""
    return [torch.randn(count, 3) for count in counts]
