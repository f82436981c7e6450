"""Scripted programs of branches and loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FirstOfThree(nn.Module):
    """if, elif, else on the data."""

    def forward(self, x: Tensor) -> Tensor:
        total = x.sum()
        if bool(total > 10.0):
            return x * 2
        if bool(total > 0.0):
            return x + 1
        return -x


class OtherShapes(nn.Module):
    """Branches that give other sizes."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x[0, 0] > 0):
            y = x[:1]
        else:
            y = torch.cat([x, x])
        return y * 3


class OtherRanks(nn.Module):
    """Branches that give other ranks, and what follows is right for both."""

    def forward(self, x: Tensor, flag: Tensor) -> Tensor:
        if bool(flag > 0):
            y = x.unsqueeze(0) * 2
        else:
            y = x + 1
        return y.sum(-1)


class OtherTypes(nn.Module):
    """Branches that give integers or floats, which are floats after what follows."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = x.to(torch.int64)
        else:
            y = x
        return y * 0.5


class OnSizes(nn.Module):
    """A branch on a size that varies."""

    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) > 3:
            return x[:3].sum(0)
        return x.sum(0) * 10


class EarlyReturn(nn.Module):
    """Returns out of a loop and of branches."""

    def forward(self, x: Tensor, limit: int) -> Tensor:
        for i in range(limit):
            x = x * 2
            if bool(x.max() > 100):
                return x - i
        return x


class FixedRange(nn.Module):
    """A long loop of known length."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for i in range(200):
            x = torch.tanh(self.linear(x)) + i * 0.01
        return x


class DynamicRange(nn.Module):
    """A loop whose length is an argument."""

    def forward(self, x: Tensor, n: int, step: int) -> Tensor:
        total = x
        for i in range(1, n, 2):
            total = total + x * i - step
        return total


class While(nn.Module):
    """A loop that the data end."""

    def forward(self, x: Tensor) -> Tensor:
        count = 0
        while bool(x.norm() > 1):
            x = x / 2
            count += 1
        return x + count


class BreakContinue(nn.Module):
    """break and continue."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(x.size(1))
        for i in range(x.size(0)):
            row = x[i]
            if bool(row[0] < 0):
                continue
            if bool(row[0] > 5):
                break
            total = total + row
        return total


class Nested(nn.Module):
    """A loop in a loop in a branch."""

    def forward(self, x: Tensor, n: int, m: int) -> Tensor:
        if n > 1:
            for i in range(n):
                for j in range(m):
                    x = x + i * j
                x = x * 0.5
        return x


class Grows(nn.Module):
    """A loop-carried tensor that gets longer."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        y = x
        for _ in range(n):
            y = torch.cat([y, x.sum(0, keepdim=True)])
        return y


class CumulativeSum(nn.Module):
    """A cumulative sum as a loop that writes rows."""

    def forward(self, x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        total = torch.zeros(x.size(1))
        for i in range(x.size(0)):
            total = total + x[i]
            out[i] = total
        return out


class OuterValues(nn.Module):
    """Values from around a loop and a branch, numbers among them."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        scale = x.size(1) * 0.5
        bias = x.mean()
        y = x
        for i in range(n):
            if i % 2 == 0:
                y = y * scale
            else:
                y = y + bias - i // 2
        return y


class InPlaceInBlocks(nn.Module):
    """In-place writes in a branch and in a loop, through views."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        y = x.clone()
        view = y[:, 0]
        if bool(x.sum() > 0):
            y[:, 1] = 7.0
        else:
            view.add_(1.0)
        for i in range(n):
            y[i % 2] += i
            y.mul_(1.5)
        return y + view.sum()


class StateMachine(nn.Module):
    """Several flags and a counter."""

    def forward(self, x: Tensor) -> Tensor:
        started = False
        done = False
        count = 0
        total = torch.zeros(())
        for i in range(x.size(0)):
            value = x[i]
            if not started:
                if bool(value > 0):
                    started = True
            elif not done:
                if bool(value < 0):
                    done = True
                else:
                    total = total + value
                    count += 1
        if not started:
            return total - 1
        return total / max(count, 1)


class AdaptiveDepth(nn.Module):
    """Leaves the layers when it is sure."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])
        self.gate = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        done = False
        for layer in self.layers:
            if not done:
                x = torch.relu(layer(x)) + x
                if bool(torch.sigmoid(self.gate(x)).mean() > 0.55):
                    done = True
        return x


class PyramidOfModules(nn.Module):
    """A feature pyramid over a ModuleList, from the last level to the first."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([nn.Conv2d(2, 4, 1) for _ in range(3)])

    def forward(self, x: Tensor) -> list[Tensor]:
        features = [x, x[:, :, ::2, ::2], x[:, :, ::4, ::4]]
        results: list[Tensor] = []
        last = torch.zeros(1)
        for i, module in enumerate(self.inner):
            level = module(features[i])
            if i == 0:
                last = level
            else:
                size = level.shape[-2:]
                last = level + nn.functional.interpolate(last, size=[size[0], size[1]], mode="nearest")
            results.append(last)
        return results


class NewtonRoot(nn.Module):
    """Iterates until it converges, at most a number of times."""

    def forward(self, x: Tensor, most: int) -> tuple[Tensor, Tensor]:
        guess = torch.ones_like(x)
        steps = 0
        error = torch.ones(())
        while steps < most and bool(error > 1e-3):
            better = 0.5 * (guess + x / guess)
            error = (better - guess).abs().max()
            guess = better
            steps += 1
        return guess, torch.tensor(steps)


class TupleCarried(nn.Module):
    """A tuple as the state of a loop."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, Tensor]:
        state = (x, x)
        for i in range(n):
            a, b = state
            state = (b, a + b * i)
        return state


class OptionalCarried(nn.Module):
    """A state that starts as None."""

    def forward(self, x: Tensor) -> Tensor:
        state: Tensor | None = None
        for i in range(x.size(0)):
            row = x[i]
            if state is None:
                state = row * 2
            else:
                state = state * 0.5 + row
        assert state is not None
        return state


class ScalarArithmetic(nn.Module):
    """Numbers that depend on the input."""

    def forward(self, x: Tensor, n: int, f: float, b: bool) -> Tensor:
        k = int(x.sum().item())
        y = x * (k // 3) + k % 5 - abs(k) + max(k, n) + min(n, 4)
        g = float(x.max()) * f
        if b and n > 2:
            y = y + round(g) + n**2
        return y / (len(x) + 1) + g


class Greedy(nn.Module):
    """Greedy decoding with an early stop."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.cell = nn.GRUCell(8, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, start: Tensor, h: Tensor, most: int) -> Tensor:
        tokens = [start]
        token = start
        for _ in range(most):
            h = self.cell(self.embed(token), h)
            token = self.head(h).argmax(-1)
            tokens.append(token)
            if bool((token == 3).all()):
                break
        return torch.stack(tokens, 1)


class StepByData(nn.Module):
    """A range up or down, as the data decide."""

    def forward(self, x: Tensor, first: int, last: int, step: int) -> Tensor:
        for i in range(first, last, step):
            x = x * 0.5 + i
        return x


class SeveralRanks(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        total = x.sum()
        if bool(total > 100):
            y = x * 2
        elif bool(total > 10):
            y = total
        elif bool(total > 0):
            y = x.t()
        else:
            y = x[0]
        return y
