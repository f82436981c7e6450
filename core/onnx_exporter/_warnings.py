"""Warnings that point at the user's line, wherever in the exporter they arise."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

_OWN = (f"{Path(__file__).parent}{os.sep}", contextlib.__file__)
"""Files whose frames are no place of the user's: ours, and the context managers between."""


class ExportWarning(UserWarning):
    """Something in the export that the user should look at. Added in 0.1."""


def warn(message: str, category: type[Warning] = ExportWarning) -> None:
    """Warns, as if the innermost line outside the exporter did."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
