"""Random programs of views and writes: the pure graph equals eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from source_tools import check

VIEWS: list[Callable[[torch.Tensor, int], torch.Tensor]] = [
    lambda t, n: t.select(n % t.dim(), n % t.shape[n % t.dim()]) if t.dim() else t.view(1),
    lambda t, n: t.select(n % t.dim(), -1) if t.dim() else t.unsqueeze(0),
    lambda t, n: t.narrow(n % t.dim(), 0, max(1, t.shape[n % t.dim()] // 2)) if t.dim() else t.alias(),
    lambda t, n: t[n % 2 :: 2] if t.dim() and t.shape[0] > 2 else t[None],
    lambda t, n: t.transpose(0, n % t.dim()) if t.dim() else t.detach(),
    lambda t, n: t.permute([(d + n) % t.dim() for d in range(t.dim())]) if t.dim() else t.view(1, 1),
    lambda t, n: t.reshape(-1),
    lambda t, n: t.contiguous(),
    lambda t, n: t.flatten(),
    lambda t, n: t.unsqueeze(n % (t.dim() + 1)) if t.dim() < 4 else t.squeeze(),
    lambda t, n: t.squeeze(n % t.dim()) if t.dim() else t.view(()),
    lambda t, n: t.squeeze(),
    lambda t, n: t.diagonal(0, 0, 1) if t.dim() > 1 else t.view_as(t),
    lambda t, n: t.chunk(2, n % t.dim())[-1] if t.dim() else t.expand(1),
    lambda t, n: t.unbind(n % t.dim())[0] if t.dim() else t.detach(),
    lambda t, n: t.split(2, n % t.dim())[0] if t.dim() else t.alias(),
    lambda t, n: t.movedim(0, -1) if t.dim() else t.reshape(1),
    lambda t, n: t.mT if t.dim() > 1 else t[..., None],
]
WRITES: list[Callable[[torch.Tensor, torch.Tensor, int], object]] = [
    lambda t, s, n: t.add_(n),
    lambda t, s, n: t.mul_(2),
    lambda t, s, n: t.fill_(n),
    lambda t, s, n: t.zero_(),
    lambda t, s, n: t.copy_(s) if s.shape == t.shape else t.copy_(s.sum()),
    lambda t, s, n: t.add_(s.sum()),
    lambda t, s, n: t.masked_fill_(t > n, -n),
    lambda t, s, n: t.unsqueeze_(0) if t.dim() < 4 else t.squeeze_(),
    lambda t, s, n: t.sub_(t.mean(-1, keepdim=True)) if t.dim() else t.neg_(),
]

STEP = st.tuples(st.booleans(), st.integers(0, 100), st.integers(0, 100), st.integers(0, 100), st.integers(0, 3))


@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.lists(STEP, min_size=2, max_size=10))
def test_random_programs(steps: list[tuple[bool, int, int, int, int]]) -> None:
    def random_program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pool = [x * 1]
        for is_write, operation, first, second, number in steps:
            target, source = pool[first % len(pool)], pool[second % len(pool)]
            if is_write:
                WRITES[operation % len(WRITES)](target, source, number)
            else:
                pool.append(VIEWS[operation % len(VIEWS)](target, number))
        return tuple(pool)

    check(random_program, torch.arange(24.0).reshape(2, 3, 4) - 7)
