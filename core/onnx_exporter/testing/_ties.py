"""Positions among equal elements: operators that do not say which of them they return."""

from __future__ import annotations

import torch

UNSTABLE = frozenset({"argsort", "kthvalue", "median", "mode", "nanmedian", "sort", "topk"})
"""Operators that PyTorch documents to return any of the positions that hold the value."""


def same_up_to_ties(values: torch.Tensor, expected: torch.Tensor, actual: torch.Tensor) -> bool:
    """Whether positions along some axis of `values` lead to the same elements, each at most as often as expected.

    Args:
        values: What was searched.
        expected: Positions that PyTorch gives.
        actual: Positions that the file gives.
    """
    if expected.dtype != torch.int64 or actual.dtype != torch.int64 or expected.shape != actual.shape or values.numel() == 0:
        return False
    for axis in range(values.dim()):
        size = values.shape[axis]
        if int(actual.min()) < 0 or int(actual.max()) >= size or int(expected.max()) >= size:
            continue
        one, two = (item if item.dim() == values.dim() else item.unsqueeze(axis) for item in (expected, actual))
        if any(length != values.shape[other] for other, length in enumerate(one.shape) if other != axis):
            continue
        repeated = [bool((item.sort(axis).values.diff(dim=axis) == 0).any()) for item in (one, two)]
        found = [torch.nan_to_num(values.gather(axis, item).double()) for item in (one, two)]
        if torch.equal(*found) and repeated[1] <= repeated[0]:
            return True
    return False
