"""Keeps LSTM, GRU and RNN whole while ``torch.export`` captures them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

Kernel = Callable[..., tuple[torch.Tensor, ...]]


# Position of `bidirectional` among the arguments; the dispatcher passes all of them by position.
_BIDIRECTIONAL = 7


def _lstm(*args: Any) -> tuple[torch.Tensor, ...]:
    hidden, cell = args[1]
    return _sequence(args[0], hidden, args), torch.empty_like(hidden), torch.empty_like(cell)


def _one_state(*args: Any) -> tuple[torch.Tensor, ...]:
    return _sequence(args[0], args[1], args), torch.empty_like(args[1])


def _sequence(steps: torch.Tensor, hidden: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
    """The results of all steps: as many as there are inputs, in the order of axes that they have."""
    width = hidden.shape[2] * (2 if args[_BIDIRECTIONAL] else 1)
    return steps.new_empty((steps.shape[0], steps.shape[1], width))


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
