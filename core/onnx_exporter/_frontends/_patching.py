"""Replaces functions of PyTorch and Python for the time of a capture."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

Replacement = tuple[Any, str, Any]
"""Owner, attribute and what to put there."""


class StandIn(functools.partial[Any]):
    """A function in the place of another one, to which it is equal: models look for PyTorch's functions in tables.

    What it calls names the other one as ``__wrapped__``.
    """

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.func.__wrapped__  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.func.__wrapped__)  # type: ignore[attr-defined]


@contextmanager
def patched(replacements: Sequence[Replacement]) -> Iterator[None]:
    """While active, attributes are replaced; what an owner inherited it inherits again afterwards.

    TorchScript, which a model may call while it is traced, compiles the originals.
    """
    compile_: Any = torch._C._jit_script_compile

    @functools.wraps(compile_)
    def compile_originals(*args: Any, **options: Any) -> Any:
        _put(originals)
        try:
            return compile_(*args, **options)
        finally:
            _put(stand_ins)

    stand_ins = [*replacements, (torch._C, "_jit_script_compile", compile_originals)]
    originals = [(owner, name, vars(owner).get(name)) for owner, name, _ in stand_ins]
    try:
        _put(stand_ins)
        yield
    finally:
        _put(originals)


def _put(replacements: Sequence[Replacement]) -> None:
    for owner, name, value in replacements:
        if value is None:
            delattr(owner, name)
        else:
            setattr(owner, name, value)
