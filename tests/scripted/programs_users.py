"""Scripted programs as users write them, each of which once went wrong or nearly did."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ReturnsFromNestedLoops(nn.Module):
    """Returns from an inner loop, and from the outer one."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            for _ in range(3):
                x = x + 1
                if bool(x.sum() > 20):
                    return x * 2
            if bool(x.max() > 3.5):
                return x - i
        return x


class Shadowed(nn.Module):
    """A loop variable that shadows an outer value, and is read after the loop."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        i = 100
        for i in range(n):
            x = x * i
        y = x
        for x in [y, y + 1]:
            y = y + x
        return x + y + i


class Forever(nn.Module):
    """while True with two ways out."""

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        k = 0
        while True:
            x = x.abs() * 1.5 + 0.1
            k += 1
            if bool(x.max() > 50):
                break
            if k > 6:
                x = x * 0
                break
        return x, k


class SliceWrites(nn.Module):
    """In-place writes into slices on the sides of a branch in a loop."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        y = x.clone()
        for i in range(n):
            if bool(y[i].sum() > 0):
                y[i, :2] = 0
                y[:, 1] += 1
            else:
                y[i] = y[i] * 2
        return y


class WritesThenBranches(nn.Module):
    """A tensor of one round, written in place, which a branch reads."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        out = x
        for i in range(n):
            y = x * i
            y[0] += 1
            if bool(y.sum() > 1):
                out = out + y
        return out


class MaskedWrites(nn.Module):
    """Writes under masks that each round changes."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        out = torch.zeros_like(x)
        mask = x > 0
        for i in range(n):
            out[mask] += x[mask] * i
            out[~mask] = -1.0 * i
            mask = mask & (x < i)
        return out


class LengthConditions(nn.Module):
    """Branches on the length of a tensor, with other shapes on their sides."""

    def forward(self, x: Tensor) -> Tensor:
        if len(x) > 4:
            x = x[:4]
        elif len(x) == 1:
            return x.sum(0)
        return x.sum(0) * len(x)


class Steps(nn.Module):
    """Ranges with steps, also backwards, and continue."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros(4)
        for i in range(x.size(0) - 1, -1, -1):
            out = out * 0.9 + x[i]
        for i in range(0, x.size(0), 2):
            out = out + x[i] * i
        for i in range(1, len(x)):
            if i == 3:
                continue
            out = out - x[i - 1]
        return out


class Together(nn.Module):
    """Tuples assigned together, of tensors and numbers of all kinds."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int, float, bool]:
        a, b, c, d = x, 0, 1.0, False
        for i in range(n):
            if i % 2 == 0:
                a, b, c, d = a + b, b + 1, c * 1.5, not d
            elif c > 2.0:
                a, b = a * c, -b
            else:
                d = True
        return a, b, c, d


class ListOfATensor(nn.Module):
    """tolist() of a tensor of varying size."""

    def forward(self, x: Tensor) -> Tensor:
        items: list[int] = x.tolist()
        total = 0
        for item in items:
            total += item * len(items)
        return x + total


class ReturnsListsEarly(nn.Module):
    """A list that is returned from within a loop, or goes on to be changed after it."""

    def forward(self, x: Tensor, n: int) -> list[Tensor]:
        outs: list[Tensor] = []
        if bool(x.sum() > 1e6):
            return outs
        for i in range(n):
            outs.append(x[:i])
            if bool(x.sum() > 0) and i == 2:
                return outs
        outs.append(x)
        return outs


class ChosenThenChanged(nn.Module):
    """A list that is made on either side of a branch, and changed after it."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            items = [x]
        else:
            items = [x + 1]
        items.append(x * 2)
        return torch.stack(items)


class TwoNames(nn.Module):
    """One list under two names, changed under both."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        first: list[Tensor] = []
        second = first
        for i in range(n):
            second.append(x * i)
            if len(first) > 2:
                second.pop(0)
        first.append(x)
        return torch.stack(second)


class ResizesToFit(nn.Module):
    """A factor that is computed in tensors of sizes and read as a number, as torchvision's detectors have it."""

    def forward(self, x: Tensor) -> tuple[Tensor, float]:
        sizes = torch.tensor(x.shape[-2:])
        smallest = torch.min(sizes).to(dtype=torch.float32)
        largest = torch.max(sizes).to(dtype=torch.float32)
        scale = torch.min(24.0 / smallest, 30.0 / largest)
        factor: float | None = None
        factor = scale.item()
        y = F.interpolate(
            x[None], size=None, scale_factor=factor, mode="bilinear", recompute_scale_factor=True, align_corners=False
        )[0]
        return y, scale.item()


class TensorsOfNumbers(nn.Module):
    """Tensors of numbers and of nested lists of them, and numbers of these again."""

    def forward(self, x: Tensor, n: int, f: float) -> tuple[Tensor, Tensor, Tensor, Tensor, int, float]:
        a = torch.tensor(n)
        b = torch.tensor([n, n + 1])
        c = torch.tensor([[f, 1.0], [2.0, f]])
        d = torch.tensor([n > 2, True])
        e = torch.tensor(f, dtype=torch.float64)
        return a * x, b.float() / 2, c @ c, d.to(torch.int32), int(b.sum()), float(e.item()) + c.max().item()


class IntegerOperators(nn.Module):
    """Shifts, bits and powers of numbers that are inputs."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int, float, int]:
        shifted = (n << 2) + (n >> 1) + (1 << n)
        bits = (n & 3) | 8
        return x * shifted, bits ^ 1, n**0.5, -n


class DictOfLists(nn.Module):
    """Lists in a dict, each of which only some rounds append to."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        groups: dict[str, list[Tensor]] = {"positive": [], "negative": []}
        for i in range(n):
            row = x[i % 3]
            if bool(row.sum() > 0):
                groups["positive"].append(row)
            else:
                groups["negative"].append(row)
        total = torch.zeros(4)
        for row in groups["positive"]:
            total = total + row
        return total, len(groups["negative"])


class TypeChangesInside(nn.Module):
    """An inner sum that is an integer before its first round, and an outer list of sums."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs: list[Tensor] = []
        for i in range(n):
            total = torch.zeros(1, dtype=torch.int64)
            for j in range(i):
                total = total + x[j % 3].sum()
            outs.append(total.float())
        return torch.cat(outs)


class OptionalPair(nn.Module):
    """A tuple and a number, either of which may stay None."""

    def forward(self, x: Tensor, n: int) -> tuple[tuple[Tensor, int] | None, int | None]:
        best: tuple[Tensor, int] | None = None
        last: int | None = None
        for i in range(n):
            if bool(x[i % 3].sum() > 0):
                best = (x[i % 3], i)
            else:
                last = i
        return best, last


class SlicesOfNothing(nn.Module):
    """Slices that are shorter where there is nothing to slice."""

    def forward(self, x: Tensor) -> tuple[Tensor, int, int]:
        a = (x * 2)[:1]
        b = (x + 1)[1:3]
        return a.sum() * a.size(0) + b.sum(), a.size(0), b.size(0) + len(a)


@torch.jit.script_if_tracing
def positive_rows(x: Tensor) -> Tensor:
    rows: list[Tensor] = []
    for i in range(x.size(0)):
        if bool(x[i].sum() > 0):
            rows.append(x[i])
    rows.append(x[0])
    count = len(rows)
    return torch.stack(rows) * count


@torch.jit.script_if_tracing
def three_parts(x: Tensor) -> Tensor:
    parts: list[Tensor] = []
    for i in range(3):
        if bool(x.sum() > i):
            parts.append(x * i)
        else:
            parts.append(x)
    a, b, c = parts
    return a + b * 2 + c * 3


class TracedWithLists(nn.Module):
    """A traced model that calls scripted functions with lists."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return positive_rows(x) + 1, three_parts(x)
