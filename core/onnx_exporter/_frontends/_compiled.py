"""What torch.compile is to a capture: compiled code runs as it is written, and control flow of torch.export is not traced."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import HigherOrderOperator

from onnx_exporter._frontends._patching import Replacement, patched

_CONTROL_FLOW = {
    "cond": "torch.cond",
    "while_loop": "while_loop",
    "scan": "scan",
    "map_impl": "map",
    "associative_scan": "associative_scan",
}
"""Operators that are branches and loops, by name, and what the user calls."""


class ControlFlowError(RuntimeError):
    """The model calls an operator of torch.export's control flow, of which a trace would record one run."""


def original_of(model: Any) -> Any:
    """Returns the module that ``torch.compile`` was given if `model` is what it returned, else `model`."""
    dynamo = sys.modules.get("torch._dynamo")
    while dynamo is not None and isinstance(model, dynamo.OptimizedModule):
        model = model._orig_mod
    return model


@contextmanager
def as_written(model: torch.nn.Module) -> Iterator[None]:
    """While active, compiled submodules run as they are written, and torch.export's control flow raises.

    The tracer refuses compiled code; where compiling is switched off it would record one run of a branch or loop.

    Raises:
        ControlFlowError: If a branch or loop of torch.export is called.
    """
    call: Any = HigherOrderOperator.__call__

    def refuse(operator: HigherOrderOperator, /, *args: Any, **kwargs: Any) -> Any:
        name = operator.name()  # type: ignore[no-untyped-call]
        if name in _CONTROL_FLOW:
            raise ControlFlowError(_CONTROL_FLOW[name])
        return call(operator, *args, **kwargs)

    replacements: list[Replacement] = [(HigherOrderOperator, "__call__", refuse)]
    for module in model.modules():
        original = original_of(module)
        if original is not module:
            replacements.append((module, "forward", original.__call__))
        elif vars(module).get("_compiled_call_impl") is not None:  # of Module.compile()
            replacements.append((module, "_compiled_call_impl", None))
    with patched(replacements):
        yield
