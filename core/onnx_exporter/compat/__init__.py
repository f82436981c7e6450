"""What lets code written for torch.onnx run here. The only folder that may import torch.onnx."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def exporting(opset: int) -> Iterator[None]:
    """While active, ``torch.onnx.is_in_onnx_export()`` is true, since models ask that.

    Args:
        opset: The target opset, which torch.onnx's globals show meanwhile.
    """
    with ExitStack() as stack:
        flags = _torch_globals()
        if flags is not None:
            for name, value in (("in_onnx_export", True), ("export_onnx_opset_version", opset)):
                stack.callback(_set_flag, flags, name, _set_flag(flags, name, value))
        yield


def _torch_globals() -> Any:
    """torch.onnx's global state, or None where this PyTorch has none (any more)."""
    for name in ("torch.onnx._internal.torchscript_exporter._globals", "torch.onnx._globals"):
        try:
            __import__(name)
        except ImportError:
            continue
        return getattr(sys.modules[name], "GLOBALS", None)
    return None


def _set_flag(flags: Any, name: str, value: Any) -> Any:
    """Sets one flag past its checks (they know fewer opsets than we do) and returns what it was."""
    attribute = f"_{name}" if hasattr(flags, f"_{name}") else name
    before = getattr(flags, attribute)
    setattr(flags, attribute, value)
    return before
