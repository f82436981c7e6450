"""Other values for a sample's tensors, of the same shapes and types, that the operator accepts as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

Eager = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]


def fresh_values(
    tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], eager: Eager, seed: int = 0
) -> tuple[list[torch.Tensor], list[torch.Tensor]] | None:
    """Returns other tensors and what PyTorch computes from them; None if PyTorch accepts none that were tried.

    A file with a value of the example baked in gives another result on them. They must stay in the operator's
    domain, which nobody states, so several ways are tried, the boldest first, until PyTorch accepts the values
    and gives results that are finite where the example's are.

    Args:
        tensors: The example.
        expected: What PyTorch computes from the example.
        eager: The operator.
        seed: The same seed gives the same values.
    """
    for way in (_shuffled_and_scaled, _shuffled, _mirrored_and_shrunk, _shrunk, _moved):
        fresh = list(way(tensors, seed))
        if all(_same(one, two) for one, two in zip(fresh, tensors, strict=True)):
            continue
        try:
            results = eager(fresh)
        except (RuntimeError, ValueError, IndexError):
            continue  # out of the operator's domain: not positive definite, an index too large, ...
        if len(results) == len(expected) and all(map(_as_finite, results, expected)):
            return fresh, results
    return None


def _shuffled_and_scaled(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for tensor in tensors:
        yield in_order_of(tensor, _scaled(_permuted(tensor, generator), generator))


def _shuffled(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    for tensor in tensors:
        yield in_order_of(tensor, _permuted(tensor, generator))


def _mirrored_and_shrunk(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    """Keeps symmetric and positive definite matrices what they are."""
    for tensor in tensors:
        yield in_order_of(tensor, _times(tensor.flip(tuple(range(tensor.dim()))), 0.96875))


def _shrunk(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    for tensor in tensors:
        yield _times(tensor, 0.96875)


def _moved(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    """For tensors of one element, or of equal ones: integers move towards zero, where indices are valid."""
    for tensor in tensors:
        if tensor.dtype == torch.bool:
            yield ~tensor
        else:
            yield tensor + 0.5 if tensor.is_floating_point() else tensor - tensor.sign()


def _permuted(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Reorders each axis as a whole, so that positions that were unique along an axis stay so."""
    for axis, size in enumerate(tensor.shape):
        if size > 1:
            tensor = tensor.index_select(axis, torch.randperm(size, generator=generator))
    return tensor


def _scaled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Makes floats smaller by up to 10 % each; zeros, infinities and NaN stay. One in eight booleans turns."""
    if tensor.dtype == torch.bool:
        return tensor ^ (torch.rand(tensor.shape, generator=generator) < 0.125)
    if not tensor.is_floating_point():
        return tensor
    return _times(tensor, 0.9 + 0.1 * torch.rand(tensor.shape, generator=generator, dtype=torch.float64))


def _times(tensor: torch.Tensor, factor: float | torch.Tensor) -> torch.Tensor:
    return (tensor.double() * factor).to(tensor.dtype) if tensor.is_floating_point() else tensor


def in_order_of(example: torch.Tensor, fresh: torch.Tensor) -> torch.Tensor:
    """Returns the rows sorted if all of the example's are sorted, as boundaries, offsets and positions are."""
    if example.dim() == 0 or example.shape[-1] < 2 or example.dtype == torch.bool or example.numel() == 0:
        return fresh
    wide = example.double()
    if bool((wide.diff(dim=-1) >= 0).all()):
        return fresh.double().sort(dim=-1).values.to(fresh.dtype) if fresh.is_floating_point() else fresh.sort(dim=-1).values
    return fresh


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    return torch.equal(torch.nan_to_num(one), torch.nan_to_num(two)) if one.is_floating_point() else torch.equal(one, two)


def _as_finite(result: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether a result has no share of NaN and infinities that the example's has not."""
    if not result.is_floating_point() or result.numel() == 0:
        return True
    if expected.numel() == 0:
        return bool(result.isfinite().all())
    share = float(result.isfinite().double().mean())
    return share >= float(expected.isfinite().double().mean()) - 1e-9
