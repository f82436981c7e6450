"""Replaces functions of PyTorch and Python for the time of a capture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch.jit import _builtins


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
