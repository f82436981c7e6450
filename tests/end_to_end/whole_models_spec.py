"""What is said about a whole model: how it is made, its inputs, and where it runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

OPSETS = (11, 16, 20)


@dataclasses.dataclass(frozen=True)
class WholeModel:
    """A model to export.

    Attributes:
        make: Builds it; called after the random seed is set.
        inputs: Its arguments; called with the sizes of `others`, and without any for the example.
        axes: The dynamic axes.
        others: Sizes of further arguments to verify with.
        opsets: Where it is exported by tracing.
        exports: Whether it is also captured with torch.export.
    """

    make: Callable[[], torch.nn.Module]
    inputs: Callable[..., tuple[Any, ...]]
    axes: Mapping[str, Mapping[int, str]]
    others: Sequence[Mapping[str, int]]
    opsets: Sequence[int] = OPSETS
    exports: bool = False

    def build(self) -> torch.nn.Module:
        """The model in eval mode, always with the same weights."""
        torch.manual_seed(0)
        return self.make().eval()

    def arguments(self, **sizes: int) -> tuple[Any, ...]:
        """Arguments of the given sizes, always with the same contents."""
        torch.manual_seed(1)
        return self.inputs(**sizes)


class Call(torch.nn.Module):
    """Calls a model with keyword arguments of the given names and returns the given parts of its result."""

    def __init__(self, model: torch.nn.Module, *parts: str) -> None:
        super().__init__()
        self.model = model
        self.parts = parts

    def result(self, **arguments: Any) -> Any:
        result = self.model(**arguments)
        return tuple(getattr(result, part) for part in self.parts)
