"""Keeps LSTM, GRU and RNN whole while ``torch.export`` captures them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

Kernel = Callable[..., tuple[torch.Tensor, ...]]


def _lstm(input: torch.Tensor, hx: list[torch.Tensor], *rest: Any, **named: Any) -> tuple[torch.Tensor, ...]:
    hidden, cell = hx
    return _sequence(input, hidden, *rest, **named), torch.empty_like(hidden), torch.empty_like(cell)


def _one_state(input: torch.Tensor, hx: torch.Tensor, *rest: Any, **named: Any) -> tuple[torch.Tensor, ...]:
    return _sequence(input, hx, *rest, **named), torch.empty_like(hx)


def _sequence(
    input: torch.Tensor,
    hidden: torch.Tensor,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> torch.Tensor:
    width = hidden.shape[2] * (2 if bidirectional else 1)
    return input.new_empty((input.shape[0], input.shape[1], width))


@contextlib.contextmanager
def whole_rnns() -> Iterator[None]:
    """While active, the shape of an RNN's results is computed without running its steps.

    PyTorch finds the shape by running the steps one after the other, which makes the number of steps a constant.
    """
    kernels: dict[torch._ops.OpOverload, Kernel] = {
        torch.ops.aten.lstm.input: _lstm,
        torch.ops.aten.gru.input: _one_state,
        torch.ops.aten.rnn_tanh.input: _one_state,
        torch.ops.aten.rnn_relu.input: _one_state,
    }
    saved = {operator: dict(operator.py_kernels) for operator in kernels}
    for operator, kernel in kernels.items():
        _replace(operator, dict.fromkeys(saved[operator], kernel))
    try:
        yield
    finally:
        for operator, previous in saved.items():
            _replace(operator, previous)


def _replace(operator: torch._ops.OpOverload, kernels: dict[Any, Any]) -> None:
    operator.py_kernels.update(kernels)
    operator._dispatch_cache.clear()
