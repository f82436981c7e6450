"""Scripted programs whose annotations TorchScript looks up where they are defined."""

import enum
from typing import Final

import torch
from torch import Tensor, nn


@torch.jit.interface
class Part(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * self.weight
        return x - self.weight


class UsesInterface(nn.Module):
    part: Part

    def __init__(self) -> None:
        super().__init__()
        self.part = Weighted()

    def forward(self, x: Tensor) -> Tensor:
        return self.part.forward(x) + 1


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Constants(nn.Module):
    rounds: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.color = Color.GREEN
        self.rounds = 3
        self.names = ["a", "b"]
        self.table = {"a": 1, "b": 2}

    def forward(self, x: Tensor) -> Tensor:
        if self.color == Color.RED:
            return x
        for name in self.names:
            x = x + self.table[name]
        for _ in range(self.rounds):
            x = x * self.color.value
        return x


class CallsPython(nn.Module):
    @torch.jit.ignore
    def python_part(self, x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy())

    def forward(self, x: Tensor) -> Tensor:
        return self.python_part(x) + 1
