"""What every front end returns."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from onnx_exporter._source.graph import SourceGraph

# With the separator at the end, or torchvision would pass for a part of torch.
_LIBRARIES = (f"{Path(torch.__file__).parent}{os.sep}", f"{Path(__file__).parent.parent}{os.sep}")


@dataclasses.dataclass
class Captured:
    """A captured model.

    Attributes:
        graph: The source graph, still with in-place writes.
        baked: For each value that capture had to fix at the example's, ``"file:line: what"``.
    """

    graph: SourceGraph
    baked: list[str] = dataclasses.field(default_factory=list)


@functools.cache
def is_library_file(filename: str) -> bool:
    """Whether a source file is PyTorch's or ours, and so no place in the user's model."""
    return filename.startswith(_LIBRARIES)


@contextmanager
def no_fast_path() -> Iterator[None]:
    """While active, attention modules do not take their fused kernels, which are for inference in eager mode only."""
    previous = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(previous)
