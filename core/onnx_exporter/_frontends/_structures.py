"""Arguments and results that hold tensors inside objects: which kinds are taken apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.utils._pytree as pytree


def register_structures(value: Any) -> None:
    """Makes dataclasses, and the caches of transformers, known to PyTorch's pytree, wherever they stand in `value`."""
    for leaf in _leaves(value):
        kind = type(leaf)
        if kind in pytree.SUPPORTED_NODES:
            continue  # another of the same kind has just been registered
        if dataclasses.is_dataclass(leaf):
            _register_dataclass(kind)
        elif kind.__name__ == "DynamicCache" and kind.__module__ == "transformers.cache_utils":
            _register_cache()
        else:
            continue
        register_structures(leaf)


def opaque_with_tensors(leaves: Iterable[Any]) -> list[str]:
    """Returns the classes of the objects that hold tensors and cannot be taken apart; modules hold theirs rightly."""
    kinds: dict[str, None] = {}
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor | torch.nn.Module | type):
            continue
        held = [*leaf.values()] if isinstance(leaf, Mapping) else [*getattr(leaf, "__dict__", {}).values()]
        if any(isinstance(item, torch.Tensor) for item in pytree.tree_leaves(held)):
            kinds[f"{type(leaf).__module__}.{type(leaf).__qualname__}"] = None
    return list(kinds)


def _leaves(value: Any) -> list[Any]:
    return [leaf for leaf in pytree.tree_leaves(value) if not isinstance(leaf, torch.Tensor)]


def _register_dataclass(kind: type) -> None:
    fields = [field for field in dataclasses.fields(kind) if field.init]
    names = [field.name for field in fields]

    def flatten(value: Any) -> tuple[list[Any], Any]:
        return [getattr(value, name) for name in names], None

    def flatten_with_keys(value: Any) -> tuple[list[Any], Any]:
        return [(pytree.GetAttrKey(name), getattr(value, name)) for name in names], None

    def unflatten(parts: Iterable[Any], context: Any) -> Any:
        return kind(**dict(zip(names, parts, strict=True)))

    pytree.register_pytree_node(
        kind,
        flatten,
        unflatten,
        flatten_with_keys_fn=flatten_with_keys,
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
    )


def _register_cache() -> None:
    """Newer versions of transformers leave this to those who export; older ones do it themselves."""
    from transformers.integrations import executorch

    register = getattr(executorch, "register_dynamic_cache_export_support", None)
    if register is not None:
        register()
