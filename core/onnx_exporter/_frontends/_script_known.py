"""What the branches around tell about conditions, and so about values that may be None."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from onnx_exporter._frontends._script_values import Abstract, Maybe
from onnx_exporter._source.graph import SourceNode, SourceValue
from onnx_exporter._source.optionals import AND, NOT, OR, Origins, implied


class Known:
    """The conditions of which it is known whether they hold.

    Args:
        origins: The node that gives a number or condition, and its place among the results; it may get more.
        facts: The conditions.
    """

    def __init__(self, origins: Origins, facts: Mapping[SourceValue, bool]) -> None:
        self._origins = origins
        self._facts = facts

    def where(self, condition: SourceValue, holds: bool) -> Known:
        """Returns what is known where a condition holds, or does not."""
        return Known(self._origins, {**self._facts, **implied(condition, holds, self._origins)})

    def fact(self, condition: Abstract) -> Abstract:
        """Returns whether a condition holds; itself, if that is not known."""
        if not isinstance(condition, SourceValue) or not condition.type.is_number or condition.type.dtype is not torch.bool:
            return condition
        if condition.constant is not None:
            return bool(condition.constant)
        if condition in self._facts or condition not in self._origins:
            return self._facts.get(condition, condition)
        node, _ = self._origins[condition]
        return self._computed(node, condition) if node.op in NOT | AND | OR else condition

    def _computed(self, node: SourceNode, condition: SourceValue) -> Abstract:
        inner = list(map(self.fact, node.arguments.values()))
        if node.op in NOT:
            return not inner[0] if isinstance(inner[0], bool) else condition
        decides = node.op in OR
        if any(item is decides for item in inner):
            return decides
        return not decides if all(isinstance(item, bool) for item in inner) else condition

    def settled(self, value: Abstract) -> Abstract:
        """Returns a value that may be None as what it is, where that is known."""
        is_set = self.fact(value.is_set) if isinstance(value, Maybe) else None
        return (value.value if is_set else None) if isinstance(is_set, bool) else value
