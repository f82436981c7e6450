"""Algorithms as users write them in scripted programs: sorting, decoding, dynamic programming, ragged batches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BubbleSort(nn.Module):
    """Swaps in place, in nested loops of which one's length depends on the other."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        n = y.size(0)
        for i in range(n):
            for j in range(n - 1 - i):
                if bool(y[j] > y[j + 1]):
                    swapped = y[j].clone()
                    y[j] = y[j + 1]
                    y[j + 1] = swapped
        return y


class SortedList(nn.Module):
    """The same of a list, which is returned too."""

    def forward(self, x: Tensor) -> tuple[Tensor, list[int]]:
        items = [int(item) for item in x]
        for i in range(len(items)):
            for j in range(len(items) - 1 - i):
                if items[j] > items[j + 1]:
                    items[j], items[j + 1] = items[j + 1], items[j]
        return torch.tensor(items), items


class PrefixSums(nn.Module):
    """A list of which each round reads the element that the last one made, and every second one is returned."""

    def forward(self, x: Tensor, n: int) -> list[Tensor]:
        sums: list[Tensor] = [x.sum(0)]
        for i in range(n):
            sums.append(sums[i] + x[i % 3])
        return sums[::2]


class Histogram(nn.Module):
    """Counters in a list of known length, and the first of the largest."""

    def forward(self, x: Tensor) -> tuple[list[int], int]:
        counts = [0] * 5
        for i in range(x.size(0)):
            counts[int(x[i])] += 1
        return counts, counts.index(max(counts))


class WaysToPay(nn.Module):
    """Dynamic programming over a list whose length is an input."""

    def forward(self, coins: Tensor, n: int) -> int:
        ways = [0] * (n + 1)
        ways[0] = 1
        for k in range(coins.size(0)):
            coin = int(coins[k])
            for j in range(coin, n + 1):
                ways[j] = ways[j] + ways[j - coin]
        return ways[n]


class StepSizeControl(nn.Module):
    """An adaptive integrator: step sizes are Python floats that branches choose."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Linear(4, 4)

    def forward(self, x: Tensor, tolerance: float) -> tuple[Tensor, int]:
        time = 0.0
        step = 0.5
        steps = 0
        while time < 1.0 and steps < 50:
            first = torch.tanh(self.slope(x))
            second = torch.tanh(self.slope(x + step * first))
            error = float((first - second).abs().max()) * step
            if error < tolerance:
                x = x + step * (first + second) / 2
                time += step
                step = min(step * 1.5, 1.0 - time) if 1.0 - time > 1e-6 else step
            else:
                step = step / 2
            steps += 1
        return x, steps


class Viterbi(nn.Module):
    """The best path through a table, read backwards out of a list and reversed."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = nn.Parameter(torch.randn(5, 5))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores = x[0]
        back: list[Tensor] = []
        for t in range(1, x.size(0)):
            best, index = (scores.unsqueeze(1) + self.moves).max(0)
            back.append(index)
            scores = best + x[t]
        score, last = scores.max(0)
        path: list[Tensor] = [last]
        for i in range(len(back)):
            last = back[len(back) - 1 - i][last]
            path.append(last)
        path.reverse()
        return score, torch.stack(path)


class CollapsesRepeats(nn.Module):
    """What a CTC decoder does with its best labels."""

    def forward(self, x: Tensor) -> list[int]:
        out: list[int] = []
        previous = -1
        for i in range(x.size(0)):
            label = int(x[i])
            if label != previous and label != 0:
                out.append(label)
            previous = label
        return out


class RaggedLstm(nn.Module):
    """A list of sequences, each of which a loop fills."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 4)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        finals: list[Tensor] = []
        sequences: list[Tensor] = []
        for b in range(x.size(0)):
            h = torch.zeros(1, 4)
            c = torch.zeros(1, 4)
            states: list[Tensor] = []
            for t in range(int(lengths[b])):
                h, c = self.cell(x[b, t].unsqueeze(0), (h, c))
                states.append(h)
            finals.append(h)
            sequences.append(torch.cat(states))
        return torch.cat(finals), sequences


class UnionFind(nn.Module):
    """Sets that edges join, in a list of parents."""

    def forward(self, edges: Tensor, n: int) -> tuple[Tensor, int]:
        parents = list(range(n))
        for e in range(edges.size(0)):
            a = int(edges[e, 0])
            b = int(edges[e, 1])
            while parents[a] != a:
                a = parents[a]
            while parents[b] != b:
                b = parents[b]
            if a != b:
                parents[b] = a
        roots = 0
        for i in range(n):
            if parents[i] == i:
                roots += 1
        return torch.tensor(parents), roots


class Unpads(nn.Module):
    """Rows of a padded batch without their padding, as a list and pooled."""

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, list[Tensor]]:
        rows: list[Tensor] = []
        for i in range(x.size(0)):
            rows.append(x[i, : int(lengths[i])])
        return torch.stack([row.mean(0) for row in rows]), rows


class PadsAgain(nn.Module):
    """The same rows, padded to the longest."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        rows: list[Tensor] = []
        for i in range(x.size(0)):
            rows.append(x[i, : int(lengths[i])] * 2)
        return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)


class CrossCorrelation(nn.Module):
    """A convolution of which image and kernel vary in size: no size of the result is one of the example's."""

    def forward(self, x: Tensor, kernel: Tensor) -> Tensor:
        y = F.conv2d(x * 2, kernel + 1)
        if y.size(2) > 7:
            y = y[:, :, 1:]
        return y * y.size(2)


class Decodes(nn.Module):
    """Greedy decoding into a preallocated tensor, until every row has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.cell = nn.GRUCell(4, 4)
        self.out = nn.Linear(4, 10)

    def forward(self, h: Tensor, steps: int) -> Tensor:
        token = torch.zeros(h.size(0), dtype=torch.long)
        result = torch.full((h.size(0), steps), -1, dtype=torch.long)
        done = torch.zeros(h.size(0), dtype=torch.bool)
        for step in range(steps):
            h = self.cell(self.embedding(token), h)
            token = self.out(h).argmax(-1)
            result[:, step] = torch.where(done, result[:, step], token)
            done = done | (token == 3)
            if bool(done.all()):
                break
        return result
