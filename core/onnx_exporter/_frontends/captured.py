"""What every front end returns."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from onnx_exporter._source.graph import SourceGraph

# With the separator at the end, or torchvision would pass for a part of torch.
_LIBRARIES = (
    f"{Path(torch.__file__).parent}{os.sep}",
    f"{Path(__file__).parent.parent}{os.sep}",
    f"{Path(concurrent.futures.__file__).parent}{os.sep}",  # in whose thread a trace may run
)

CAPTURE_LOCK = threading.RLock()
"""Held by every capture: PyTorch's tracers, and what we patch of PyTorch for them, are state of the whole process."""

Range = tuple[int, int | None]
"""The least and the greatest size of an axis; None means no limit."""


@dataclasses.dataclass
class Captured:
    """A captured model.

    Attributes:
        graph: The source graph, still with in-place writes.
        baked_sizes: For each value that capture had to fix at the example's and that depends on sizes which vary,
            ``"file:line: what"``.
        ranges: For axes whose size is limited, by name, the sizes for which the capture holds.
        notes: What the user must know about the sizes for which the capture holds, a sentence each.
        baked_data: The like of `baked_sizes` for values that depend on an input's data: the file is wrong even at
            the same sizes.
        flatten: Takes what the model returns apart into the outputs, where that is not one tensor after the other: an output
            may be a list, or None.
    """

    graph: SourceGraph
    baked_sizes: list[str] = dataclasses.field(default_factory=list)
    ranges: dict[str, Range] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    baked_data: list[str] = dataclasses.field(default_factory=list)
    flatten: Callable[[Any], list[Any]] | None = None

    @property
    def baked(self) -> list[str]:
        """All that capture had to fix at the example's."""
        return [*self.baked_data, *self.baked_sizes]


@functools.cache
def is_library_file(filename: str) -> bool:
    """Whether a source file is PyTorch's or ours, and so no place in the user's model."""
    return filename.startswith(_LIBRARIES)
