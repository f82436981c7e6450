"""torch.onnx's switchable log."""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from onnx_exporter.errors import ArgumentError


@dataclasses.dataclass
class _Log:
    enabled: bool = False
    stream: str = "stdout"


_LOG = _Log()


def is_onnx_log_enabled() -> bool:
    """Whether `log` prints. It does not until `enable_log` is called. Added in 0.1."""
    return _LOG.enabled


def enable_log() -> None:
    """Has `log` print. Added in 0.1."""
    _LOG.enabled = True


def disable_log() -> None:
    """Keeps `log` from printing. Added in 0.1."""
    _LOG.enabled = False


def set_log_stream(stream_name: str = "stdout") -> None:
    """Sets where `log` prints. Added in 0.1.

    Args:
        stream_name: ``"stdout"`` or ``"stderr"``: what `sys` calls so when `log` prints.

    Raises:
        ArgumentError: If it is neither.
    """
    if stream_name not in ("stdout", "stderr"):
        raise ArgumentError(f"stream_name is {stream_name!r}; it must be 'stdout' or 'stderr'")
    _LOG.stream = stream_name


def log(*args: Any) -> None:
    """Prints its arguments, one after the other, and a line break, if the log is enabled. Added in 0.1."""
    if _LOG.enabled:
        print(*args, sep="", file=getattr(sys, _LOG.stream), flush=True)
