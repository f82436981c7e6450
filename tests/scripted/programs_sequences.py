"""Scripted programs with lists whose length the data decide: ONNX sequences from opset 11, in loops and branches from 13."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AppendsSometimes(nn.Module):
    """A list to which only some rounds append."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs: list[Tensor] = []
        for i in range(n):
            if bool(x.sum() > i):
                outs.append(x * i)
        return torch.stack(outs)


class ReadsWhatItAppends(nn.Module):
    """A list that is read in the loop which builds it."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs = [x]
        for i in range(n):
            outs.append(outs[-1] * 0.5 + i)
        return torch.stack(outs)


class OtherSizes(nn.Module):
    """A list of tensors of other sizes in each round, joined."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs: list[Tensor] = []
        for i in range(n):
            outs.append(x[: i + 1])
        return torch.cat(outs)


class SegmentSums(nn.Module):
    """Slices of other sizes in each round, of which only sums are kept: no sequence is needed."""

    def forward(self, lengths: Tensor, x: Tensor) -> Tensor:
        outs: list[Tensor] = []
        start = 0
        for i in range(lengths.size(0)):
            count = int(lengths[i])
            outs.append(x[start : start + count].sum(0))
            start += count
        return torch.stack(outs)


class Queue(nn.Module):
    """A queue with insertions at its front, until it is empty."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        queue = [x]
        total = torch.zeros_like(x)
        steps = 0
        while len(queue) > 0 and steps < n:
            item = queue.pop(0)
            total = total + item
            if bool(item.sum() < 10):
                queue.append(item * 2)
                queue.insert(0, item + 1)
            steps += 1
        return total, len(queue)


class StackOfTuples(nn.Module):
    """A stack of tensors and numbers: a tree that is walked in depth."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        todo: list[tuple[Tensor, int]] = [(x, n)]
        total = torch.zeros(4)
        visits = 0
        while len(todo) > 0:
            part, depth = todo.pop()
            total = total + part.mean(0)
            visits += 1
            if depth > 0 and part.size(0) > 1:
                half = part.size(0) // 2
                todo.append((part[:half], depth - 1))
                todo.append((part[half:], depth - 1))
        return total, visits


class ListResults(nn.Module):
    """Lists as results: of tensors, numbers and tuples."""

    def forward(self, x: Tensor, n: int) -> tuple[list[Tensor], list[int], list[tuple[Tensor, float]]]:
        rows: list[Tensor] = []
        numbers: list[int] = []
        pairs: list[tuple[Tensor, float]] = []
        for i in range(n):
            row = x[i % 3]
            if bool(row.sum() > 0):
                rows.append(row)
                numbers.append(i)
            else:
                pairs.append((row, i * 0.5))
        return rows, numbers, pairs


class CollectedResult(nn.Module):
    """A list of tensors of one size as a result, to which each round appends."""

    def forward(self, x: Tensor, n: int) -> list[Tensor]:
        outs: list[Tensor] = []
        for i in range(n):
            outs.append(x * i)
        return outs


class SlicedList(nn.Module):
    """Slices, reversal, deletion and assignment in a list of unknown length."""

    def forward(self, x: Tensor, n: int, first: int, last: int) -> Tensor:
        items: list[Tensor] = []
        for i in range(n):
            items.append(x[i % x.size(0)] * i)
            if len(items) > 3:
                items.pop(0)
        other = items[first:last] + items[::-1] + [x[0]]
        other.extend(items[1:])
        other.reverse()
        del other[0]
        other[0] = x[1]
        out = torch.zeros(4)
        for i, item in enumerate(other):
            out = out + item * (i + 1)
        return out + len(other)


class AtRuntimePlaces(nn.Module):
    """Reads, inserts, removes and replaces at places that the data decide."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        items = [x, x[:2], x[:1]]
        place = n % 3
        read = items[place]
        items.insert(place, x + 1)
        removed = items.pop(n % 4)
        items[place] = removed * 2
        return torch.cat(items) + read.sum()


class ShortState(nn.Module):
    """A state of two tensors and counters, of which the data choose one to change: branches, at any opset."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, list[int]]:
        state = [x, x + 1]
        counts = [0, 0]
        for i in range(n):
            state[i % 2] = state[1 - i % 2] * 0.5
            counts[i % 2] += 1
        return state[0] + state[1], counts


class ListsInBranches(nn.Module):
    """Branches that give lists of other lengths, then a rotation in a loop."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        items: list[Tensor] = [x]
        if bool(x.sum() > 0):
            items = [x, x + 1]
        else:
            items.append(x - 1)
            items.append(x - 2)
        for i in range(n):
            if i % 2 == 0:
                items = items[1:] + [items[0]]  # noqa: RUF005 - TorchScript has no stars in lists
        return torch.stack(items), len(items)


class Generations(nn.Module):
    """A list that each round makes anew out of the one before."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        current: list[Tensor] = [x]
        previous: list[Tensor] = []
        for i in range(n):
            following: list[Tensor] = []
            for item in current:
                following.append(item * 0.5)
                if i < 2:
                    following.append(item + 1)
            previous = current
            current = following
        total = torch.zeros_like(x)
        for item in current:
            total = total + item
        for item in previous:
            total = total - item
        return total * len(current) + len(previous)


class BracketDepth(nn.Module):
    """A stack of numbers."""

    def forward(self, x: Tensor) -> Tensor:
        stack: list[int] = []
        for i in range(x.size(0)):
            if bool(x[i] > 0):
                stack.append(i)
            elif len(stack) > 0:
                stack.pop()
        return torch.tensor(stack) + sum(stack) + (3 if 1 in stack else 0)


class NumberLists(nn.Module):
    """sort, sum, min, max, count and reverse of numbers that a loop collects."""

    def forward(self, x: Tensor, n: int) -> tuple[list[int], Tensor]:
        series = [1, 1]
        for _ in range(n):
            series.append(series[-1] + series[-2])
        weights: list[float] = []
        for i in range(n):
            weights.append(float(x[i % 3, 0]) * i)
        weights.sort()
        weights.reverse()
        total = max(series) + min(series) + sum(series) + series.count(1)
        out = x * total
        for i, weight in enumerate(weights):
            out = out + weight * i
        return series, out


class FirstSeen(nn.Module):
    """A count of each number that occurs, kept in two lists."""

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, Tensor]:
        seen: list[int] = []
        counts: list[int] = []
        for i in range(n * 2):
            value = int(x[i % 3, i % 4] * 2)
            if value in seen:
                place = 0
                for j in range(len(seen)):
                    if seen[j] == value:
                        place = j
                counts[place] += 1
            else:
                seen.append(value)
                counts.append(1)
        return torch.tensor(seen), torch.tensor(counts)


class BeamLists(nn.Module):
    """Beam search as users write it: a list of token lists with their scores."""

    def forward(self, table: Tensor, steps: int) -> tuple[Tensor, float]:
        beams: list[tuple[list[int], float]] = [([0], 0.0)]
        for _ in range(steps):
            candidates: list[tuple[list[int], float]] = []
            for tokens, score in beams:
                top = torch.log_softmax(table[tokens[-1]], 0).topk(2)
                for j in range(2):
                    candidates.append((tokens + [int(top.indices[j])], score + float(top.values[j])))  # noqa: RUF005
            kept: list[tuple[list[int], float]] = []
            while len(kept) < 2 and len(candidates) > 0:
                best = 0
                for j in range(len(candidates)):
                    if candidates[j][1] > candidates[best][1]:
                        best = j
                kept.append(candidates.pop(best))
            beams = kept
        return torch.tensor(beams[0][0]), beams[0][1]


class KeepsBoxes(nn.Module):
    """Box suppression that keeps a list of indices, with a loop over it that ends early."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        order = scores.argsort(descending=True)
        kept: list[int] = []
        for k in range(order.size(0)):
            i = int(order[k])
            alone = True
            for j in kept:
                low = torch.max(boxes[i, :2], boxes[j, :2])
                high = torch.min(boxes[i, 2:], boxes[j, 2:])
                if bool((high - low).clamp(min=0).prod() > 0.3):
                    alone = False
                    break
            if alone:
                kept.append(i)
        return torch.tensor(kept)


class SplitParts(nn.Module):
    """split and chunk of an axis of varying size: iterated, indexed, and returned."""

    def forward(self, x: Tensor, size: int) -> tuple[Tensor, list[Tensor], int]:
        total = torch.zeros(4)
        for part in x.split(2):
            total = total + part.sum(0) * part.size(0)
        parts = x.split(size)
        return total + parts[0].sum(), list(x.chunk(3)), len(parts)


class SoftmaxOfParts(nn.Module):
    """Maps over parts, of which the last may be smaller, and joins them again."""

    def forward(self, x: Tensor) -> Tensor:
        outs: list[Tensor] = []
        for part in x.split(2):
            outs.append(part.softmax(0))
        return torch.cat(outs)


class OptionalSlots(nn.Module):
    """A list of tensors and Nones."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        slots: list[Tensor | None] = []
        for i in range(n):
            if i % 2 == 0:
                slots.append(x * i)
            else:
                slots.append(None)
        total = torch.zeros_like(x)
        for slot in slots:
            if slot is not None:
                total = total + slot
            else:
                total = total + 1
        return total


class MaybeNone(nn.Module):
    """Results that the data decide to be None."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        y: Tensor | None = None
        if bool(x.sum() > 0):
            y = x + 1
        return x - 1, y


class LastPositive(nn.Module):
    """A result that is None unless some round sets it."""

    def forward(self, x: Tensor) -> Tensor | None:
        last: Tensor | None = None
        for i in range(x.size(0)):
            if bool(x[i].sum() > 0):
                last = x[i] * (i + 1)
        return last


class WritesBeforeItKeeps(nn.Module):
    """Tensors that are written in place before a list gets them."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        outs: list[Tensor] = []
        for i in range(n):
            y = x * i
            y[0] += 1
            if bool(y.sum() > -100):
                outs.append(y)
        return torch.stack(outs)


class IntegerThenFloat(nn.Module):
    """A sum that is an integer before the first round and a float after it."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        total = torch.zeros(1, dtype=torch.int64)
        for i in range(n):
            total = total + x.sum() * i
        return total.float() * 2


class ScalarThenVector(nn.Module):
    """A sum that is a scalar before the first round and a vector after it, with a break."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        total = torch.zeros(())
        k = 0
        while k < n:
            total = total + x.mean(0) * 2
            if bool(total.sum() > 100):
                break
            k += 1
        return total.sum() * 2 + k


class ListOfChangingType(nn.Module):
    """A first round before the loop, and a list of the file in it."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        total = torch.zeros((), dtype=torch.int64)
        outs: list[Tensor] = []
        for i in range(n):
            total = total + x.sum()
            outs.append(x[: i + 1] * total)
        return torch.cat(outs) if len(outs) > 0 else x
