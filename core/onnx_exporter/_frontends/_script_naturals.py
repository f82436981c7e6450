"""Numbers of a scripted program that are never negative, whatever the data: places counted from the beginning of a list."""

from __future__ import annotations

from onnx_exporter._frontends._script_values import Abstract
from onnx_exporter._source.graph import SourceNode, SourceValue

_COUNTS = frozenset({"aten::size", "aten::len", "aten::numel", "aten::dim", "prim::ListLength"})
_OF_NATURALS = frozenset({"aten::add", "aten::mul", "aten::floordiv", "prim::min"})


class Naturals:
    """The numbers of which that is known."""

    def __init__(self) -> None:
        self._found: set[SourceValue] = set()

    def add(self, value: SourceValue) -> None:
        """Notes a number, such as the counter of a loop."""
        self._found.add(value)

    def note(self, source: SourceNode, result: SourceValue) -> None:
        """Notes the result of an operator if it cannot be negative, given its arguments."""
        arguments = list(source.arguments.values())
        if (
            source.op in _COUNTS
            or (source.op in _OF_NATURALS and all(item in self for item in arguments))
            or (source.op == "aten::remainder" and arguments[1] in self)  # which has the sign of the divisor
            or (source.op == "prim::max" and any(item in self for item in arguments))
        ):
            self._found.add(result)

    def __contains__(self, value: Abstract) -> bool:
        if isinstance(value, SourceValue):
            return value in self._found
        return isinstance(value, int) and value >= 0
