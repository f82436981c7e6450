"""Python functions through which a trace would lose a number: while a model is traced they answer with tensors.

``len(x)`` must be a Python integer, ``min(6, n)`` compares and ``torch.tensor([n, 1])`` copies: each would fix the
example's number in the file. What they return here is what ``x.shape[0]`` is in a trace, a tensor of rank 0.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from onnx_exporter._frontends._patching import patched
from onnx_exporter._frontends.captured import is_library_file

_SEQUENCES = (list, tuple, torch.Size)


@contextmanager
def followed() -> Iterator[None]:
    """While active, ``len``, ``min``, ``max``, ``torch.tensor`` and PyTorch's checks keep hold of traced tensors.

    Its caller holds `CAPTURE_LOCK`; threads that do not trace notice nothing.
    """
    replacements: list[tuple[Any, str, Any]] = [
        (builtins, "len", _len(len)),
        (builtins, "min", _extreme(min, torch.minimum)),
        (builtins, "max", _extreme(max, torch.maximum)),
        (torch, "tensor", _tensor(torch.tensor)),
        (torch, "as_tensor", _tensor(torch.as_tensor)),
        (torch.Tensor, "new_tensor", _new_tensor(torch.Tensor.new_tensor)),
        (torch, "_check_with", _check(torch._check_with)),
    ]
    with patched(replacements):
        yield


def _is_tracing() -> bool:
    return torch._C._get_tracing_state() is not None


def _len(original: Callable[[Any], int]) -> Callable[[Any], Any]:
    @functools.wraps(original)
    def len_(value: Any, /) -> Any:
        if not isinstance(value, torch.Tensor) or not value.dim() or not _is_tracing():
            return original(value)
        # PyTorch's own code counts on an integer
        return original(value) if is_library_file(sys._getframe(1).f_code.co_filename) else value.shape[0]

    return len_


def _extreme(original: Callable[..., Any], combine: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    """``min`` or ``max``: of integers among which are tensors, a tensor."""

    @functools.wraps(original)
    def extreme(*args: Any, **options: Any) -> Any:
        values = args[0] if args and not args[1:] else args
        if options or type(values) not in _SEQUENCES or not _is_tracing() or not _are_sizes(values):
            return original(*args, **options)
        # The tracer takes a Python integer in a tensor for a constant, which it is
        return functools.reduce(combine, [_as_tensor(value) for value in values])

    return extreme


def _are_sizes(values: Sequence[Any]) -> bool:
    """Whether all are integers, and a tensor is among them."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    integers = sum(type(value) is int for value in values) + sum(not t.dim() and t.dtype == torch.int64 for t in tensors)
    return bool(tensors) and integers == len(values)


def _as_tensor(number: Any) -> torch.Tensor:
    return number if isinstance(number, torch.Tensor) else torch.full((), number)


def _tensor(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def tensor(data: Any, *args: Any, **options: Any) -> torch.Tensor:
        if not args and type(data) in _SEQUENCES and _is_tracing() and _is_stackable(data):
            return _stack(data, options.get("dtype"), options.get("device"))
        return original(data, *args, **options)

    return tensor


def _new_tensor(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(original)
    def new_tensor(self: torch.Tensor, data: Any, *args: Any, **options: Any) -> torch.Tensor:
        if not args and type(data) in _SEQUENCES and _is_tracing() and _is_stackable(data):
            return _stack(data, options.get("dtype") or self.dtype, options.get("device") or self.device)
        return original(self, data, *args, **options)

    return new_tensor


def _check(original: Callable[..., None]) -> Callable[..., None]:
    """PyTorch's check of a condition, which must be a Python boolean, for a comparison of sizes as well."""

    @functools.wraps(original)
    def check(error_type: type[Exception], cond: Any, message: Callable[[], str]) -> None:
        original(error_type, bool(cond) if isinstance(cond, torch.Tensor) and _is_tracing() else cond, message)

    return check


def _is_stackable(data: Sequence[Any]) -> bool:
    """Whether there are tensors among the numbers of a nested list, all of rank 0."""
    tensors = [leaf for leaf in _leaves(data) if isinstance(leaf, torch.Tensor)]
    return bool(tensors) and all(tensor.dim() == 0 for tensor in tensors)


def _stack(data: Sequence[Any], dtype: torch.dtype | None, device: Any) -> torch.Tensor:
    """What ``torch.tensor`` makes of a nested list of numbers and tensors of rank 0."""
    common = dtype or functools.reduce(torch.promote_types, [_as_tensor(leaf).dtype for leaf in _leaves(data)])

    def build(item: Any) -> torch.Tensor:
        if type(item) in _SEQUENCES:
            return torch.stack([build(part) for part in item])
        return _as_tensor(item).to(common)

    return build(data).to(device=device) if device is not None else build(data)


def _leaves(data: Any) -> Iterator[Any]:
    if type(data) in _SEQUENCES:
        for item in data:
            yield from _leaves(item)
    else:
        yield data
