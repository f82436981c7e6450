"""Replaces functions of PyTorch and Python for the time of a capture."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.jit import _builtins


class StandIn(functools.partial[Any]):
    """A function in the place of another one, to which it is equal: models look for PyTorch's functions in tables.

    What it calls names the other one as ``__wrapped__``.
    """

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.func.__wrapped__  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self.func.__wrapped__)  # type: ignore[attr-defined]


@contextmanager
def patched(replacements: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """While active, attributes are replaced; what a module or class inherited it inherits again afterwards.

    TorchScript, which a model may call while it is traced, takes a replacement for the operator it stands for.

    Args:
        replacements: Owner, attribute and what to put there.
    """
    before = [(owner, name, vars(owner).get(name)) for owner, name, _ in replacements]
    table: Any = _builtins
    operators: dict[int, str] = table._get_builtin_table()
    known = [(id(new), table._find_builtin(getattr(owner, name, None))) for owner, name, new in replacements]
    added = {key: operator for key, operator in known if operator is not None}
    try:
        operators.update(added)
        for owner, name, replacement in replacements:
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, original in before:
            if original is None:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        for key in added:
            del operators[key]
