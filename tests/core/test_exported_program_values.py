"""torch.export captures, run as source graphs at several sizes, against the models in eager mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from torch import nn

from export_models import (
    Autocast,
    Choice,
    Counter,
    InPlace,
    Nested,
    NoGrad,
    Parts,
    Same,
    Sizes,
    Tied,
    Unused,
    capture,
    nested,
)
from source_tools import run_captured


@dataclasses.dataclass(frozen=True)
class Case:
    model: Callable[[], nn.Module]
    make: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]
    dynamic: dict[str, Any]
    sizes: tuple[int, ...] = (1, 2, 5)


def one(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (torch.randn(size, 3),), {}


def three(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(torch.randn(size, 3) for _ in range(3)), {}


BATCH = {"x": {0: "batch"}}
CASES = {
    "in-place": Case(InPlace, one, BATCH),
    "no_grad": Case(NoGrad, one, BATCH),
    "split and getitem": Case(Parts, one, BATCH),
    "sizes": Case(Sizes, one, BATCH, sizes=(4, 2, 7)),
    "nested": Case(
        Nested,
        nested,
        {name: {0: "batch"} for name in ("pair_0", "pair_1_0", "pair_1_1", "extra_a", "extra_b")},
    ),
    "tied weights": Case(Tied, one, BATCH),
    "buffers": Case(Counter, one, BATCH),
    "unused input": Case(Unused, three, {"a": {0: "batch"}, "c": {0: "batch"}, "b": {0: "other"}}),
    "same value": Case(Same, one, BATCH),
    "autocast": Case(Autocast, one, BATCH),
    "choice": Case(Choice, one, BATCH, sizes=(5, 2, 7)),
    "lstm": Case(
        lambda: nn.LSTM(3, 4, 2, bidirectional=True), lambda n: ((torch.randn(6, n, 3),), {}), {"input": {1: "batch", 0: "time"}}
    ),
    "gru": Case(
        lambda: nn.GRU(3, 4, batch_first=True),
        lambda n: ((torch.randn(n, 6 + n, 3), torch.randn(1, n, 4)), {}),
        {"input": {0: "batch", 1: "time"}, "hx": {1: "batch"}},
    ),
    "rnn": Case(lambda: nn.RNN(3, 4), lambda n: ((torch.randn(n, 2, 3),), {}), {"input": {0: "time"}}),
    "conv": Case(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        ),
        lambda n: ((torch.randn(n, 3, 6 + n, 9),), {}),
        {"input": {0: "batch", 2: "height"}},
    ),
    "attention": Case(
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda n: ((torch.randn(n, n + 2, 8),), {}),
        {"src": {0: "batch", 1: "time"}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_runs_as_in_eager_at_other_sizes(name: str) -> None:
    case = CASES[name]
    torch.manual_seed(0)
    model = case.model().eval()
    args, kwargs = case.make(case.sizes[0])
    graph = capture(model, args, kwargs, **case.dynamic)
    names = [item.name for item in graph.inputs]
    state = {key: value.clone() for key, value in model.state_dict().items()}
    for size in case.sizes:
        args, kwargs = case.make(size)
        tensors = [leaf.clone() for leaf in pytree.tree_leaves((list(args), kwargs)) if isinstance(leaf, torch.Tensor)]
        model.load_state_dict(state)
        with torch.no_grad():
            actual = run_captured(graph, tensors)
            expected = [leaf for leaf in pytree.tree_leaves(model(*args, **kwargs)) if leaf is not None]
        assert len(tensors) == len(names)
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("name", CASES)
def test_shapes_hold_at_other_sizes(name: str) -> None:
    """A size that is an int, in any type, is a fact: no dynamic size of the example is among them."""
    case = CASES[name]
    model = case.model().eval()
    args, kwargs = case.make(case.sizes[0])
    other_args, other_kwargs = case.make(case.sizes[-1])
    graph = capture(model, args, kwargs, **case.dynamic)
    other = capture(model, other_args, other_kwargs, **case.dynamic)
    facts = [[output.type.shape for node in found.nodes for output in node.outputs] for found in (graph, other)]
    assert facts[0] == facts[1]
