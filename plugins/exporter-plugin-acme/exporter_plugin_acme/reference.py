"""What the accelerator's operators compute, in Python: for verification, where there is no accelerator."""

from collections.abc import Sequence
from typing import Any

from onnx.reference.op_run import OpRun


class Frob(OpRun):
    """``com.acme::Frob``: the scaled sum; the taps only say how the accelerator computes it."""

    op_domain = "com.acme"

    def _run(self, x: Any, y: Any, taps: Sequence[int] = (), gain: float = 1.0) -> tuple[Any]:
        return (((x + y) * gain).astype(x.dtype),)
