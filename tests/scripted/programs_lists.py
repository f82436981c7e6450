"""Scripted programs of lists, dicts, and whole models."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn


class CollectStack(nn.Module):
    """A list filled in a loop of unknown length, with a loop inside."""

    def forward(self, x: Tensor) -> Tensor:
        outs: list[Tensor] = []
        for r in range(x.size(0)):
            v = x[r]
            while bool(v.sum() < 10.0):
                v = v * 2 + 1
            outs.append(v)
        return torch.stack(outs)


class CollectCat(nn.Module):
    """A list that begins with an element, joined along the last axis."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs = [x * 0.5]
        for i in range(n):
            outs.append(x + i)
        return torch.cat(outs, -1)


class IterateCollected(nn.Module):
    """Iterates over a list of unknown length, and asks for its length."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs: list[Tensor] = []
        for i in range(n):
            outs.append(x * i)
        total = torch.zeros_like(x)
        for item in outs:
            total = total * 0.5 + item
        return total + len(outs) + outs[-1]


class ListMethods(nn.Module):
    """insert, pop, extend, slices and reverse of a list of known length."""

    def forward(self, x: Tensor) -> Tensor:
        items = [x, x + 1, x + 2]
        items.insert(1, x * 5)
        last = items.pop()
        items.extend([last * 2, x])
        items.reverse()
        return torch.cat(items[1:4]) + len(items)


class Rows(nn.Module):
    """Iterates over a tensor."""

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(x.size(1))
        for row in x:
            total = total.maximum(row) + 0.1
        return total


class Unbound(nn.Module):
    """Unbinds along an axis of varying size."""

    def forward(self, x: Tensor) -> Tensor:
        outs: list[Tensor] = []
        for piece in x.unbind(1):
            outs.append(torch.tanh(piece).sum())
        return torch.stack(outs)


class ListOfNumbers(nn.Module):
    """Numbers collected in a loop."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        sizes: list[int] = []
        for i in range(n):
            sizes.append(i * i + x.size(0))
        return torch.tensor(sizes) + 1


class AppendInBranch(nn.Module):
    """A list to which both sides of a branch append."""

    def forward(self, x: Tensor) -> Tensor:
        items = [x]
        if bool(x.sum() > 0):
            items.append(x * 2)
        else:
            items.append(x - 1)
        return torch.stack(items)


class DictState(nn.Module):
    """A dict with constant keys."""

    def forward(self, x: Tensor, n: int) -> dict[str, Tensor]:
        state = {"a": x, "b": x * 2}
        for _ in range(n):
            state["a"] = state["a"] + state["b"]
        if "c" in state:
            state["a"] = x
        state["c"] = state["a"] - 1
        return state


class Box(NamedTuple):
    low: Tensor
    high: Tensor


class NamedTuples(nn.Module):
    """A named tuple through a branch."""

    def forward(self, x: Tensor) -> Tensor:
        box = Box(x, x + 1)
        if bool(x.mean() > 0):
            box = Box(x * 2, box.high)
        return box.high - box.low


class OptionalArgument(nn.Module):
    """An optional argument that is given, and one that is not."""

    def forward(self, x: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        if mask is not None:
            x = x * mask
        if bias is not None:
            x = x + bias
        return x


class Checks(nn.Module):
    """Assertions and prints."""

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 2, "a matrix"
        if bool(x.max() > 1000):
            raise ValueError(f"too large: {x.max()}")
        print(x.shape)
        return x + 1


class ImplicitScalars(nn.Module):
    """Scalars that are floats because the tensor is."""

    def forward(self, x: Tensor) -> Tensor:
        y = x + 2
        y = y + 3
        return y / 2 + torch.zeros(x.size(0), 1, dtype=torch.int32)


class LstmOverSteps(nn.Module):
    """An LSTM cell over a sequence of varying length."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros(x.size(1), 5)
        c = torch.zeros(x.size(1), 5)
        outs: list[Tensor] = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            outs.append(h)
        return torch.stack(outs), c


class BeamSearch(nn.Module):
    """Beam search over a table of scores."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 7))

    def forward(self, start: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        scores = torch.zeros(1)
        beams = start.reshape(1, 1)
        for _ in range(steps):
            last = beams[:, -1]
            every = scores.unsqueeze(1) * 0.9 + torch.log_softmax(self.table[last], -1)
            best, index = every.flatten().topk(3)
            beams = torch.cat([beams[index // 7], (index % 7).unsqueeze(1)], 1)
            scores = best
            if bool((beams[:, -1] == 0).all()):
                break
        return beams, scores


class SuppressBoxes(nn.Module):
    """Iterative box suppression: takes the best, drops what overlaps."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        alive = torch.ones_like(scores, dtype=torch.bool)
        kept: list[Tensor] = []
        while bool(alive.any()):
            best = torch.where(alive, scores, torch.full_like(scores, -1.0)).argmax()
            kept.append(best)
            box = boxes[best]
            low = torch.max(boxes[:, :2], box[:2])
            high = torch.min(boxes[:, 2:], box[2:])
            both = (high - low).clamp(min=0).prod(1)
            areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
            overlap = both / (areas + areas[best] - both)
            alive = alive & (overlap < 0.5)
        return torch.stack(kept)


class PackedLstm(nn.Module):
    """An LSTM over packed sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        out, (h, _) = self.lstm(packed)
        padded, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True)
        return padded, h


@torch.jit.script
class Counter:
    def __init__(self, start: int) -> None:
        self.count = start
        self.seen = [start]

    def step(self, by: int) -> int:
        self.count += by
        return self.count


class OwnClass(nn.Module):
    """An object of a class of its own, which a branch and a loop change."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        counter = Counter(3)
        if bool(x.sum() > 0):
            counter.step(2)
        for i in range(n):
            x = x + counter.step(i)
        return x * counter.count


class Attention(nn.Module):
    """A scripted nn.Transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.model(x, y)


class Recurrent(nn.Module):
    """A scripted nn.LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, 2, bidirectional=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


@torch.jit.script
def clip_rows(x: Tensor, low: float, high: float) -> Tensor:
    rows: list[Tensor] = []
    for i in range(x.size(0)):
        rows.append(x[i].clamp(low, high))
    return torch.stack(rows)


@torch.jit.script_if_tracing
def halve_until_small(x: Tensor) -> Tensor:
    while bool(x.abs().max() > 1.0):
        x = x * 0.5
    return x


class TracedWithScripted(nn.Module):
    """A traced model that calls a scripted function with a loop."""

    def forward(self, x: Tensor) -> Tensor:
        return halve_until_small(x * 3) + 1


class ScriptedGate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.mean() > 0):
            return x * 2
        return -x


class TracedWithModule(nn.Module):
    """A traced model with a scripted submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.gate = torch.jit.script(ScriptedGate())

    def forward(self, x: Tensor) -> Tensor:
        return self.gate(self.linear(x)) + self.gate(x)


class ScriptedWithTraced(nn.Module):
    """A scripted model with a traced submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.jit.trace(nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.randn(2, 3))

    def forward(self, x: Tensor, n: int) -> Tensor:
        for _ in range(n):
            x = self.inner(x) - 0.1
        return x


class Repeated(nn.Module):
    """Lists of unknown length that are repeated."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, Tensor, int]:
        rows: list[Tensor] = []
        numbers: list[int] = []
        for i in range(n):
            rows.append(x * i)
            numbers.append(i * i)
        twice = numbers * 2
        return torch.stack(rows * 2), torch.tensor(twice), twice[-1] + sum(twice)
