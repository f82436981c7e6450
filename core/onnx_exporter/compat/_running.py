"""The export that runs in a thread, as models and torch.onnx's globals see it."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from onnx_exporter._enums import OperatorExportTypes, TrainingMode, as_operator_export_type, as_training_mode
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._errors import adopt_torch_errors
from onnx_exporter.compat._onnx_nodes import make_traceable


@dataclasses.dataclass
class RunningExport:
    """What code that runs during an export may ask about it. The names are those of torch.onnx's globals."""

    export_onnx_opset_version: int
    training_mode: Any
    operator_export_type: Any
    in_onnx_export: bool = True


_RUNNING: ContextVar[RunningExport | None] = ContextVar("onnx_exporter_running", default=None)


def running_export() -> RunningExport | None:
    """Returns the export that runs in this thread, or None."""
    return _RUNNING.get()


def is_in_onnx_export() -> bool:
    """Whether this thread is exporting a model. Added in 0.1.

    Models ask it to behave differently in the file. ``torch.onnx.is_in_onnx_export()`` answers the same meanwhile.
    """
    running = _RUNNING.get()
    return running is not None and running.in_onnx_export


@contextmanager
def exporting(
    opset: int,
    training: Any = TrainingMode.EVAL,
    operator_export_type: Any = OperatorExportTypes.ONNX,
) -> Iterator[None]:
    """While active, this thread is exporting: `is_in_onnx_export` is true, and torch.onnx's globals show this export.

    Args:
        opset: The target opset.
        training: A `TrainingMode`.
        operator_export_type: One of `OperatorExportTypes`.
    """
    adopt_torch_errors()
    make_traceable()
    running = RunningExport(opset, as_training_mode(training), as_operator_export_type(operator_export_type))
    token = _RUNNING.set(running)
    try:
        with _FOLLOWING:
            yield
    finally:
        _RUNNING.reset(token)


class _Following:
    """While at least one export runs, torch.onnx's globals answer each thread with what its own export says.

    They are one object for the process. A subclass takes the place of its class meanwhile: in a thread that exports,
    its attributes are the export's; in any other they are what they always were.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._globals: Any = None
        self._class: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                self._globals = _torch_onnx.find_globals()
                if self._globals is not None:
                    self._class = type(self._globals)
                    self._globals.__class__ = _following_class(self._class)
            self._count += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and self._globals is not None:
                self._globals.__class__ = self._class


_FOLLOWING = _Following()


@dataclasses.dataclass
class _OwnGlobals:
    """What torch.onnx's globals say while nothing is exported, for where there are none."""

    export_onnx_opset_version: int = 18
    training_mode: Any = TrainingMode.EVAL
    operator_export_type: Any = OperatorExportTypes.ONNX
    in_onnx_export: bool = False
    export_training: bool = False
    onnx_shape_inference: bool = True
    autograd_inlining: bool = True


def _following_class(base: Any) -> Any:
    names = {field.name for field in dataclasses.fields(RunningExport)}

    def get(instance: Any, name: str) -> Any:
        running = _RUNNING.get()
        if running is not None and name in names:
            return getattr(running, name)
        return base.__getattribute__(instance, name)

    def set_(instance: Any, name: str, value: Any) -> None:
        running = _RUNNING.get()
        if running is not None and name in names:
            setattr(running, name, value)
        else:
            base.__setattr__(instance, name, value)

    return type(base.__name__, (base,), {"__getattribute__": get, "__setattr__": set_})


FALLBACK_GLOBALS: Any = _following_class(_OwnGlobals)()
"""Stands in for torch.onnx's globals in a PyTorch that has no torch.onnx."""
