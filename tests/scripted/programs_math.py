"""Programs that compute with numbers of Python; as results they are double where a tensor is."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class Angles(nn.Module):
    def forward(self, x: Tensor, a: float, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        one = x.to(torch.float64)
        b = a / (1.0 + math.fabs(a))
        turned = math.radians(math.degrees(math.atan2(a, n)))
        first = one * math.sin(a), one * math.cos(n), one * math.tan(a), one * math.asin(b)
        return first[0], first[1], first[2], first[3], one * math.acos(b), one * math.atan(a), one * turned


class Hyperbolas(nn.Module):
    def forward(self, x: Tensor, a: float, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        one = x.to(torch.float64)
        b = a / (1.0 + math.fabs(a))
        inverse = one * math.asinh(a), one * math.acosh(1.0 + math.fabs(a)), one * math.atanh(b)
        return one * math.sinh(a), one * math.cosh(a), one * math.tanh(n), inverse[0], inverse[1], inverse[2]


class Logarithms(nn.Module):
    def forward(self, x: Tensor, a: float, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor, int]:
        one = x.to(torch.float64)
        size = math.fabs(a) + 1e-12
        whole = math.floor(math.log10(10**n))
        return one * math.log10(size), one * math.log1p(size), one * math.expm1(a / 9), one * math.log(n + 2, size), whole


class Signs(nn.Module):
    def forward(self, x: Tensor, a: float, n: int) -> tuple[Tensor, Tensor, Tensor, bool, bool, bool]:
        one = x.to(torch.float64)
        infinite = math.exp(1000.0 * a)
        nothing = infinite - infinite
        flags = math.isinf(infinite), math.isnan(nothing), math.isfinite(a)
        return one * math.fmod(a, 0.7), one * math.copysign(n, a), one * math.fabs(n), flags[0], flags[1], flags[2]


class QuotientAndRest(nn.Module):
    def forward(self, x: Tensor, n: int, by: int) -> tuple[Tensor, int, int]:
        quotient, rest = divmod(n, by)
        return x * quotient + rest, quotient, rest


class OfItems(nn.Module):
    """What a tensor's element gives is an integer or a float, as the tensor is."""

    def forward(self, x: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        exact = x.to(torch.float64)
        return exact * math.exp(counts[0].item()), exact * math.sin(x[0, 0].item()), counts * math.ceil(x[0, 0].item())


class FiltersNumbers(nn.Module):
    """Numbers that the data choose, repeated, and one of them removed."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        kept: list[int] = [0]
        for i in range(1, n):
            if bool(x[0, 0] > i):
                kept.append(i)
        repeated = torch.tensor(kept * 3)
        kept.remove(0)
        few = [4, 5, 6]
        few.remove(5)
        return repeated, len(kept) * 10 + few[1]
