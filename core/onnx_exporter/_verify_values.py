"""Other values for an example's tensors, that a model which takes the example accepts as well.

Nobody states a model's domain, so it is read from the example. Integers and booleans are values that occur. The positions
of a tensor's last axis may mean different things (a box's image, and its corners), so values stay in their column. Whole
numbers among others number something, and stay whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

Result = TypeVar("Result")


# Of the same sizes


def fresh_values(
    tensors: Sequence[torch.Tensor], attempt: Callable[[list[torch.Tensor]], Result | None], seed: int = 0
) -> tuple[list[torch.Tensor], Result] | None:
    """Returns tensors of other values and what comes of them; None if none that were tried are accepted.

    A file with a value of the example baked in gives another result on them. Several ways are tried, the boldest first.

    Args:
        tensors: The example.
        attempt: Returns what comes of tensors, or None if they are not accepted.
        seed: The same seed gives the same values.
    """
    for way in (_shuffled_and_scaled, _shuffled, _mirrored_and_shrunk, _shrunk, _moved):
        fresh = list(way(tensors, seed))
        if all(_same(one, two) for one, two in zip(fresh, tensors, strict=True)):
            continue
        if (result := attempt(fresh)) is not None:
            return fresh, result
    return None


def are_as_finite(results: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    """Whether no result has a share of NaN and infinities that the example's has not: then values left the domain."""
    return len(results) == len(expected) and all(map(_is_as_finite, results, expected))


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
        is_square = tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] and not bool(_numbering(tensor).any())
        axes = range(tensor.dim()) if is_square or not _has_columns(tensor) else range(tensor.dim() - 1)
        yield in_order_of(tensor, _times(_wide(tensor).flip(tuple(axes)).to(tensor.dtype), 0.96875))


def _shrunk(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    for tensor in tensors:
        yield _times(tensor, 0.96875)


def _moved(tensors: Sequence[torch.Tensor], seed: int) -> Iterator[torch.Tensor]:
    """For tensors of one element, or of equal ones: integers move towards zero, where indices are valid."""
    for tensor in tensors:
        if tensor.dtype == torch.bool:
            yield ~tensor
        elif tensor.is_floating_point() or tensor.is_complex():
            yield (_wide(tensor) + 0.5).to(tensor.dtype)
        else:
            wide = tensor.to(torch.int64)
            yield (wide - wide.sign()).to(tensor.dtype)


def _permuted(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Reorders each axis as a whole, so that positions that were unique along an axis stay so; columns stay where they are."""
    for axis, size in enumerate(tensor.shape):
        if size > 1 and not (axis == tensor.dim() - 1 and _has_columns(tensor)):
            order = torch.randperm(size, generator=generator)
            if bool((order == torch.arange(size)).all()):
                order = order.roll(1)
            tensor = tensor[(slice(None),) * axis + (order.to(tensor.device),)]
    return tensor


def _has_columns(tensor: torch.Tensor) -> bool:
    """Whether the positions of the last axis may mean different things; integers in a single row are taken for a list."""
    rows = 1 if tensor.is_floating_point() else 2
    return tensor.dim() > 1 and tensor.shape[-1] > 1 and tensor.numel() >= rows * tensor.shape[-1]


def _scaled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Makes floats smaller by up to 10 %, whole rows by the same, so that what is in order in a row stays so.

    Zeros, infinities and NaN stay. One in eight booleans turns where both occur.
    """
    if tensor.dtype == torch.bool:
        turned = torch.rand(tensor.shape, generator=generator).to(tensor.device) < 0.125
        return tensor ^ turned if tensor.any() and not tensor.all() else tensor
    if not tensor.is_floating_point():
        return tensor
    has_rows = tensor.dim() > 1 and tensor.numel() > tensor.shape[-1]
    shape = (*tensor.shape[:-1], 1) if has_rows else tensor.shape
    factor = 0.9 + 0.1 * torch.rand(shape, generator=generator, dtype=torch.float64)
    scaled = _times(tensor, factor.to(tensor.device))
    return _keep(_numbering(tensor), tensor, scaled)


def _times(tensor: torch.Tensor, factor: float | torch.Tensor) -> torch.Tensor:
    return (tensor.double() * factor).to(tensor.dtype) if tensor.is_floating_point() else tensor


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    one, two = _wide(one), _wide(two)
    return bool(((one == two) | (one != one) & (two != two)).all())


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in a type that can be compared and computed with, which not every type can on a CPU."""
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor.to(torch.int64)


def _is_as_finite(result: torch.Tensor, expected: torch.Tensor) -> bool:
    if not result.is_floating_point() or result.numel() == 0:
        return True
    if expected.numel() == 0:
        return bool(result.double().isfinite().all())
    share = float(result.double().isfinite().double().mean())
    return share >= float(expected.double().isfinite().double().mean()) - 1e-9


# Of other sizes


def resized_values(
    example: torch.Tensor, shape: Sequence[int], generator: torch.Generator, *, keeps_columns: bool
) -> torch.Tensor:
    """Returns a tensor like the example of another shape.

    Integers, booleans and floats of two distinct values (masks) are drawn from those that occur, other floats lie between.

    Args:
        example: The example.
        shape: The shape.
        generator: Where chance comes from.
        keeps_columns: Whether the last axis is that of the example, and what stands in a column stays in it.
    """
    values = example.detach().cpu()
    if values.numel() == 0:
        is_number = example.is_floating_point() or example.is_complex()
        fresh = torch.randn(shape, generator=generator) if is_number else torch.zeros(shape)
    elif keeps_columns and values.dim() > 1 and (values.is_floating_point() or values.numel() > values.shape[-1]):
        fresh = in_order_of(values, _rows(values, math.prod(shape[:-1]), generator).reshape(shape))
    else:
        fresh = in_order_of(values, _elements(values.reshape(-1), shape, generator))
    return fresh.to(device=example.device, dtype=example.dtype)


def _elements(values: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    indices = torch.randint(values.numel(), list(shape), generator=generator)
    if not _lies_between(values):
        return values[indices]
    # Two different elements, lest equal numbers make the order of a sort or topk a matter of chance.
    steps = torch.randint(1, values.numel(), list(shape), generator=generator)
    wide = values.double()
    weight = torch.rand(list(shape), generator=generator, dtype=torch.float64)
    return torch.lerp(wide[indices], wide[(indices + steps) % values.numel()], weight)


def _rows(values: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Rows that lie between two rows of the example, or are rows of it: what is in order in all rows stays so."""
    table = values.reshape(-1, values.shape[-1])
    indices = torch.randint(len(table), (count,), generator=generator)
    first = table[indices]
    if not _lies_between(values):
        return first
    if len(table) == 1:
        factor = 0.75 + 0.25 * torch.rand(first.shape, generator=generator, dtype=torch.float64)
        return _keep(_numbering(table), first.double(), first.double() * factor)
    steps = torch.randint(1, len(table), (count,), generator=generator)
    second = table[(indices + steps) % len(table)]
    weight = torch.rand((count, 1), generator=generator, dtype=torch.float64)
    between = torch.lerp(first.double(), second.double(), weight)
    return _keep(_numbering(table), first.double(), between)


def _lies_between(values: torch.Tensor) -> bool:
    """Whether numbers between the values of a tensor are in its domain; not for a mask."""
    if not values.is_floating_point():
        return False
    wide = values.double().reshape(-1)
    return bool(wide.isfinite().all()) and len(set(wide[:1000].tolist())) > 2


# What a tensor's elements are


def _numbering(tensor: torch.Tensor) -> torch.Tensor:
    """Which columns of a tensor of floats number something: they are whole where others are not, or some are equal."""
    if not tensor.is_floating_point() or tensor.numel() == 0 or tensor.dim() < 2:
        return torch.zeros((), dtype=torch.bool)
    table = tensor.double().reshape(-1, tensor.shape[-1])
    whole = (table == table.trunc()).all(0)
    if bool(whole.all()):
        ordered = table.sort(dim=0).values
        return (ordered.diff(dim=0) == 0).any(0) & (ordered[0] != ordered[-1]) if len(table) > 1 else torch.zeros_like(whole)
    return whole


def _keep(kept: torch.Tensor, old: torch.Tensor, fresh: torch.Tensor) -> torch.Tensor:
    return torch.where(kept.to(fresh.device), old, fresh)


def in_order_of(example: torch.Tensor, fresh: torch.Tensor) -> torch.Tensor:
    """Returns the rows sorted if all of the example's are sorted, as positions, boundaries, offsets and lengths are."""
    if example.dim() == 0 or example.shape[-1] < 2 or example.dtype == torch.bool or example.is_complex():
        return fresh
    # Unsigned integers above 8 bits cannot be compared or sorted; int64 holds all but the largest uint64.
    wide = _wide(example)
    before, after = wide[..., :-1], wide[..., 1:]
    rising, falling = bool((before <= after).all()), bool((before >= after).all())
    if rising == falling:
        return fresh
    return _wide(fresh).sort(dim=-1, descending=falling).values.to(fresh.dtype)
