"""Scripted programs with parameters that may be None."""

from __future__ import annotations

from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Scales(nn.Module):
    """Asks, and returns early."""

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        if m is not None:
            return x * m
        return x


class DefaultNone(nn.Module):
    """Gives the parameter another value where it is None."""

    def forward(self, x: Tensor, m: Tensor | None = None) -> Tensor:
        if m is None:
            m = torch.zeros_like(x)
        return x * m + m


class Dependent(nn.Module):
    """Asks for the second only where the first is given."""

    def forward(self, x: Tensor, m: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        if m is not None:
            x = x * m
            if bias is not None:
                x = x + bias * m.size(0)
        return x.relu()


class EitherOrBoth(nn.Module):
    """Conditions on both at once."""

    def forward(self, x: Tensor, a: Tensor | None, b: Tensor | None) -> Tensor:
        if a is not None and b is not None:
            x = x + a * b
        if a is None or b is None:
            x = x * 3
        else:
            x = x - a + b
        if a is not None or b is not None:
            x = -x
        return x


class Fills(nn.Module):
    """A mask, with the other one where there is none."""

    def forward(self, x: Tensor, mask: Tensor | None, other: Tensor | None) -> Tensor:
        chosen = other if mask is None else mask
        if chosen is not None:
            x = x.masked_fill(chosen, -1.0)
        return x.softmax(-1)


class InLoop(nn.Module):
    """Asks in every round, and carries what may be None."""

    def forward(self, x: Tensor, n: int, m: Tensor | None = None) -> Tensor:
        last = m
        for i in range(n):
            if m is not None:
                x = x + m * i
            if last is None:
                last = x * 2
            else:
                last = last + x
        return x if last is None else x + last


class WhileNone(nn.Module):
    """A loop that runs until it has made one."""

    def forward(self, x: Tensor, m: Tensor | None = None) -> Tensor:
        while m is None:
            x = x + 1
            if bool(x.sum() > 20):
                m = x
        assert m is not None
        return x + m


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, gate: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        y = self.linear(x)
        if gate is None:
            return y, None
        return y * gate.sigmoid(), gate + 1


class PassesOn(nn.Module):
    """Gives it to submodules, which ask."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Gate(), Gate()

    def forward(self, x: Tensor, gate: Tensor | None = None) -> Tensor:
        x, gate = self.first(x, gate)
        x, gate = self.second(x, gate)
        return x if gate is None else x + gate


class GivesBack(nn.Module):
    """Returns it as it is."""

    def forward(self, x: Tensor, m: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return x + 1, m


class InTuples(nn.Module):
    """Puts it into a tuple, and returns what a branch makes of that."""

    def forward(self, x: Tensor, m: Tensor | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
        pair: tuple[Tensor | None, Tensor | None] = (m, x)
        if bool(x.sum() > 0):
            pair = (None, m)
        first, second = pair
        y = x
        if second is not None:
            y = y + second
        return y, first, second


class InLists(nn.Module):
    """Keeps it in a list of what may be None."""

    def forward(self, x: Tensor, m: Tensor | None, k: Tensor | None) -> Tensor:
        values = [m, k, x, None]
        for value in values:
            if value is not None:
                x = x * 2 + value
        return x


class WritesInto(nn.Module):
    """Writes into it, and reads it again."""

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        if m is not None:
            m[0] = 5.0
            m.mul_(2)
        if m is not None:
            x = x + m
        return x


class OfSizes(nn.Module):
    """Its sizes decide what is computed."""

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        if m is not None:
            for i in range(m.size(0)):
                x = x + m[i]
            return x.expand(m.size(0), -1).reshape(-1)
        return x.reshape(-1)


class Biased(nn.Module):
    """An operator that takes None itself."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(x, self.weight, bias)


class Numbers(nn.Module):
    """Numbers that may be None."""

    def forward(self, x: Tensor, times: int | None = None, more: float | None = None, turns: bool | None = None) -> Tensor:
        if times is not None:
            for _ in range(times):
                x = x * 2
        y = x if more is None else x + more
        return -y if turns is not None and turns else y


class OtherRank(nn.Module):
    """Its absence makes the result another rank."""

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        if m is None:
            return x.sum()
        return x * m


class Remembers(nn.Module):
    """Sets it on the module."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.jit.Attribute(None, Optional[Tensor])  # noqa: UP045 - TorchScript reads it at run time

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        self.last = m
        return self.read(x)

    def read(self, x: Tensor) -> Tensor:
        last = self.last
        return x - 1 if last is None else x + last


@torch.jit.script
def add_where_given(x: Tensor, m: Tensor | None = None, twice: bool = False) -> Tensor:
    if m is not None and twice:
        x = x + m
    return x if m is None else x + m


@torch.jit.script
def scaled(x: Tensor, m: Tensor | None) -> Tensor:
    if m is None:
        return x
    if bool(m.sum() > 0):
        return x * m
    return x - m


class TracedCall(nn.Module):
    """A trace, which has the parameter as the example does, with scripted parts that ask."""

    def forward(self, x: Tensor, m: Tensor) -> Tensor:
        return scaled(x, m) + scaled(x, None)


class Attends(nn.Module):
    """Masks of attention, which PyTorch's own code asks for again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor, mask: Tensor | None = None, padding: Tensor | None = None) -> Tensor:
        return self.attention(x, x, x, attn_mask=mask, key_padding_mask=padding, need_weights=False)[0]
