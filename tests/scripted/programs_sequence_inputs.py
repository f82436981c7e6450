"""Scripted programs whose parameters are lists of tensors."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence


class Sums(nn.Module):
    """Iterates, and asks for the length."""

    def forward(self, xs: list[Tensor]) -> tuple[Tensor, int]:
        total = torch.zeros(3)
        for x in xs:
            total = total + x.sum(0)
        return total, len(xs)


class Stacks(nn.Module):
    def forward(self, xs: list[Tensor], scale: Tensor) -> tuple[Tensor, Tensor]:
        return torch.stack(xs) * scale, torch.cat(xs, 1)


class Indexes(nn.Module):
    """Reads at constant places and at one that is given."""

    def forward(self, xs: list[Tensor], i: int) -> tuple[Tensor, Tensor, Tensor]:
        return xs[0] + 1, xs[-1] * 2, xs[i].sum(0)


class IndexesByData(nn.Module):
    """Reads where another input says."""

    def forward(self, xs: list[Tensor], index: Tensor) -> Tensor:
        total = torch.zeros(3)
        for i in range(index.size(0)):
            total = total + xs[int(index[i])].mean(0)
        return total


class SlicesOf(nn.Module):
    def forward(self, xs: list[Tensor], n: int) -> tuple[int, Tensor]:
        first, rest, even, back = xs[:n], xs[n:], xs[::2], xs[::-1]
        total = torch.zeros(3)
        for x in first:
            total = total + x.sum(0)
        for x in rest:
            total = total - x.sum(0)
        for x in even:
            total = total * 0.5 + x.sum(0)
        for x in back:
            total = total * 0.25 + x.sum(0)
        return len(first) + 10 * len(even), total


class Changes(nn.Module):
    """Appends, inserts, extends, pops, deletes, sets, reverses and copies."""

    def forward(self, xs: list[Tensor], y: Tensor) -> tuple[Tensor, int]:
        before = len(xs)
        copy = xs.copy()
        xs.append(y)
        xs.insert(0, y * 2)
        xs.extend(copy)
        last = xs.pop()
        del xs[1]
        xs[0] = last + 1
        xs.reverse()
        both = xs + copy
        copy.clear()
        return torch.cat(both), before + 10 * len(copy) + len(both)


class ReadInBlocks(nn.Module):
    """Reads the list from inside branches and loops; it is not carried."""

    def forward(self, xs: list[Tensor], n: int) -> Tensor:
        total = torch.zeros(3)
        for i in range(n):
            if bool(total.sum() > 3):
                total = total - xs[0].sum(0)
            else:
                j = 0
                while j < len(xs):
                    total = total + xs[j].abs().sum(0) * i
                    j += 1
        return total


class Chosen(nn.Module):
    """A branch chooses a list."""

    def forward(self, xs: list[Tensor], ys: list[Tensor], flag: Tensor) -> tuple[Tensor, int]:
        chosen = xs
        if bool(flag.sum() > 0):
            chosen = ys
        return torch.cat(chosen), len(chosen)


class Grows(nn.Module):
    """A loop carries the list and changes it."""

    def forward(self, xs: list[Tensor], n: int) -> tuple[Tensor, int]:
        for i in range(n):
            xs.append(xs[-1] * 2 + i)
            if i % 3 == 2:
                xs.pop(0)
        return torch.cat(xs), len(xs)


class Back(nn.Module):
    """Returns the list as it is, twice."""

    def forward(self, xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return xs, xs


class Encodes(nn.Module):
    """Returns it as it is, and a list made of it."""

    def forward(self, xs: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        return xs, [x * 2 for x in xs]


class EarlyList(nn.Module):
    """Returns it, a part of it, or another list."""

    def forward(self, xs: list[Tensor], k: int) -> list[Tensor]:
        if k > 2:
            return xs
        if k > 1:
            return xs[:1]
        ys: list[Tensor] = []
        for i in range(k):
            ys.append(xs[i] * 2)
        return ys


class Pairs(nn.Module):
    """Two lists of one length, side by side."""

    def forward(self, xs: list[Tensor], ys: list[Tensor]) -> list[Tensor]:
        outs: list[Tensor] = []
        for x, y in zip(xs, ys):  # noqa: B905 - TorchScript's zip has no strict
            outs.append(x @ y)
        return outs


class Enumerated(nn.Module):
    def forward(self, xs: list[Tensor]) -> Tensor:
        total = torch.zeros(3)
        for i, x in enumerate(xs):
            total = total + i * x.amax(0)
        return total


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, xs: list[Tensor]) -> list[Tensor]:
        return [self.linear(x).relu() for x in xs]


class Pools(nn.Module):
    """Passes it to a submodule, and pools each element of what comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder()

    def forward(self, xs: list[Tensor]) -> Tensor:
        return torch.stack([x.mean(0) for x in self.encoder(xs)])


class Pads(nn.Module):
    """Pads elements to the longest, with a mask."""

    def forward(self, xs: list[Tensor]) -> tuple[Tensor, Tensor]:
        lengths = torch.tensor([x.size(0) for x in xs])
        padded = pad_sequence(xs, batch_first=True)
        mask = torch.arange(padded.size(1)).unsqueeze(0) < lengths.unsqueeze(1)
        return padded, mask


class Batches(nn.Module):
    """Writes images of several sizes into one tensor, as detectors do."""

    def forward(self, images: list[Tensor]) -> tuple[Tensor, list[tuple[int, int]]]:
        height, width = 0, 0
        sizes: list[tuple[int, int]] = []
        for image in images:
            height, width = max(height, image.size(1)), max(width, image.size(2))
            sizes.append((image.size(1), image.size(2)))
        batch = images[0].new_full((len(images), 3, height, width), 0.5)
        for i in range(len(images)):
            image = images[i]
            batch[i, :, : image.size(1), : image.size(2)] = image
        return batch, sizes


class Unpacks(nn.Module):
    def forward(self, xs: list[Tensor]) -> Tensor:
        a, b = xs
        return a - b


class MaybeList(nn.Module):
    """A list that is declared optional, and is given."""

    def forward(self, x: Tensor, xs: Optional[list[Tensor]] = None) -> Tensor:  # noqa: UP045 - as users write it
        if xs is not None:
            for item in xs:
                x = x + item
        return x


class EarlyOut(nn.Module):
    """Leaves the loop over the list early."""

    def forward(self, xs: list[Tensor]) -> tuple[Tensor, int]:
        total = torch.zeros(())
        count = 0
        for x in xs:
            if bool(x.sum() < 0):
                continue
            total = total + x.sum()
            count += 1
            if bool(total > 20):
                break
        return total, count


class OfIndices(nn.Module):
    """Lists of integers and of booleans."""

    def forward(self, table: Tensor, rows: list[Tensor], masks: list[Tensor]) -> Tensor:
        total = torch.zeros(3)
        for i in range(len(rows)):
            total = total + table[rows[i]].sum(0) + masks[i].sum()
        return total


class Broadcasts(nn.Module):
    """Elements whose sizes need not be equal."""

    def forward(self, xs: list[Tensor]) -> Tensor:
        return xs[0] + xs[1]


class Joins(nn.Module):
    """All that joins lists, of matrices and of vectors."""

    def forward(self, xs: list[Tensor], vs: list[Tensor]) -> list[Tensor]:
        pictures = [torch.hstack(xs), torch.vstack(xs), torch.dstack(xs), torch.column_stack(xs), torch.cat(xs, -1)]
        vectors = [torch.hstack(vs), torch.vstack(vs), torch.column_stack(vs), torch.stack(xs, 1), torch.stack(vs, -1)]
        return pictures + vectors


class Fills(nn.Module):
    """Writes what it computes of the elements into a tensor."""

    def forward(self, xs: list[Tensor]) -> Tensor:
        out = torch.zeros(len(xs), 3)
        for i in range(len(xs)):
            out[i] = xs[i].sum(0)
        return out


class Layers(nn.Module):
    """A layer for each of the first elements."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, xs: list[Tensor]) -> Tensor:
        total = torch.zeros(3)
        for i, layer in enumerate(self.layers):
            total = total + layer(xs[i]).sum(0)
        return total


class Best(nn.Module):
    """Keeps one of the elements."""

    def forward(self, xs: list[Tensor]) -> Tensor:
        best = xs[0]
        for x in xs:
            if bool(x.sum() > best.sum()):
                best = x
        return best


class Numbers(nn.Module):
    """Numbers of the elements."""

    def forward(self, xs: list[Tensor]) -> tuple[int, int, int, Tensor]:
        sizes = [x.size(0) for x in xs]
        total, most = sum(sizes), max(sizes)
        sizes.sort()
        return total, most, sizes[0], torch.tensor(sizes)


class Last(nn.Module):
    def forward(self, xs: list[Tensor]) -> Tensor:
        return xs[-1]


class Plus(nn.Module):
    """A list whose elements have the size of another input."""

    def forward(self, xs: list[Tensor], y: Tensor) -> Tensor:
        return torch.stack(xs) + y


class Counts(nn.Module):
    """Takes a list of any type, also without elements."""

    def forward(self, x: Tensor, xs: list[Tensor]) -> Tensor:
        for item in xs:
            x = x + item.float().sum()
        return x * len(xs)


class Nested(nn.Module):
    """Lists inside of others, and others inside of lists."""

    def forward(
        self,
        a: list[list[Tensor]],
        b: dict[str, Tensor],
        c: tuple[list[Tensor], Tensor],
        d: list[tuple[Tensor, Tensor]],
    ) -> Tensor:
        total = a[0][0] + a[1][1] + b["k"] + c[0][0] + c[1]
        for first, second in d:
            total = total + first * second
        return total


class Keeps(nn.Module):
    """Adds an element whose size only the data tell to others of a fixed size."""

    def forward(self, xs: list[Tensor], y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        xs.append(y[y[:, 0] > 0])
        last = xs[-1]
        scaled = torch.relu(last * 2 + 1)
        return torch.sigmoid(scaled - 3) * scaled + last.exp(), torch.cat(xs), xs[0] - 1


class Recurs(nn.Module):
    """Pads elements for a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(3, 4, batch_first=True)

    def forward(self, xs: list[Tensor]) -> tuple[Tensor, Tensor]:
        return self.layer(pad_sequence(xs, batch_first=True))


class Convolves(nn.Module):
    """A network for each picture."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, pictures: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        maps = [self.layers(picture.unsqueeze(0))[0] for picture in pictures]
        return torch.stack([item.mean((1, 2)) for item in maps]), maps


class Finds(nn.Module):
    """Goes through the list until it finds an element."""

    def forward(self, xs: list[Tensor], least: float) -> tuple[int, Tensor]:
        i = 0
        while i < len(xs) and bool(xs[i].sum() < least):
            i += 1
        return i, xs[i] if i < len(xs) else torch.zeros(1, 3)
