"""Other values for a sample's tensors, of the same shapes and types, that the operator accepts as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from onnx_exporter import _verify_values

Eager = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]


def fresh_values(
    tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], eager: Eager, seed: int = 0
) -> tuple[list[torch.Tensor], list[torch.Tensor]] | None:
    """Returns other tensors and what PyTorch computes from them; None if PyTorch accepts none that were tried.

    Args:
        tensors: The example.
        expected: What PyTorch computes from the example.
        eager: The operator.
        seed: The same seed gives the same values.
    """

    def attempt(fresh: list[torch.Tensor]) -> list[torch.Tensor] | None:
        try:
            results = eager(fresh)
        except (RuntimeError, ValueError, IndexError):
            return None  # out of the operator's domain: not positive definite, an index too large, ...
        return results if _verify_values.are_as_finite(results, expected) else None

    return _verify_values.fresh_values(tensors, attempt, seed)
