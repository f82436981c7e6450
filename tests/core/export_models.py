"""Small models for tests of the torch.export front end."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._frontends.exported_program import capture_export
from onnx_exporter._source.graph import SourceGraph, SourceNode


def capture(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **dynamic: Any) -> SourceGraph:
    return capture_export(model, model_inputs(model.forward, args, kwargs or {}, None, dynamic)).graph


def nodes(graph: SourceGraph, name: str) -> list[SourceNode]:
    return [node for node in graph.nodes if node.qualified_name == name]


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 0] = 7.0
        y.view(-1)[1:].add_(1)
        return y


class NoGrad(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        with torch.enable_grad():
            z = y.sigmoid() * x
            with torch.no_grad():
                z = z + self.linear(z)
        return z - y


class Parts(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b = x.split([1, 2], dim=1)
        c, d, e = x.chunk(3, dim=1)
        values, indices = x.max(dim=1)
        return a + d, b, c * e, values, indices, torch.stack(x.unbind(1), 0)


class Sizes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, width = x.shape
        half = (batch + 1) // 2
        odd = batch % 2
        longest = max(batch * 3 - 1, width)
        scale = batch / 4
        x = x.reshape(width, -1).reshape(batch, width)
        return torch.cat([x[:half].flatten(), torch.full((odd + longest + batch**2,), scale)])


class Nested(nn.Module):
    def forward(self, pair: tuple[torch.Tensor, list[torch.Tensor]], *, extra: dict[str, torch.Tensor], times: int = 1) -> Any:
        first, (second, third) = pair
        return {"sum": first + second * times, "rest": [third - extra["b"], extra["a"]]}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.offset = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * self.count + self.offset


class Unused(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a - c


class Same(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        y = x + 1
        return x, y, None, y, 5, x.shape[0]


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            y = y + 1
            with torch.autocast("cpu", enabled=False):
                y = y.float() @ torch.ones(4, 3)
            y = self.linear(y).relu()
        return self.norm(y.float())


class Choice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[: torch.sym_ite(x.shape[0] > 3, 2, 1)] + torch.sym_sum([x.shape[0], x.shape[1], 4])


def nested(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of `Nested`."""
    a, b, c, d, e = (torch.randn(size, 3) for _ in range(5))
    return ((a, [b, c]),), {"times": 3, "extra": {"b": d, "a": e}}
