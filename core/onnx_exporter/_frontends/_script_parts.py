"""Operators that give lists: ``split``, ``chunk``, ``unbind`` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends import _script_chains as chains
from onnx_exporter._frontends._script_values import Abstract, Chain, ListValue, Run, refuse
from onnx_exporter._source.graph import UNKNOWN, SourceNode

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter

_SPLITS_BY_SIZES = frozenset({"aten::split", "aten::split_with_sizes", "aten::unsafe_split_with_sizes"})
_VARIABLE_COUNT = frozenset({"aten::split", "aten::unsafe_split", "aten::chunk", "aten::unsafe_chunk"})


def parts_of(interpreter: Interpreter, source: SourceNode, types: list[Any] | None, node: Any) -> Abstract:
    """Returns the list that an operator gives, and gives its node a result for each element.

    Args:
        interpreter: The interpreter.
        source: The operator, the last node so far.
        types: The types of its results, where they can be told.
        node: The TorchScript node, where it is one.

    Raises:
        CaptureError: If nothing tells how long the list is, and it cannot be one of the file.
    """
    found = types[0] if types else None
    unpacked = [use.user for use in node.output().uses() if use.user.kind() == "prim::ListUnpack"] if node is not None else []
    if source.op in ("aten::unbind", *_VARIABLE_COUNT) and not _has_fixed_count(source):
        count = unpacked[0].outputsSize() if unpacked else None
        if count is None and source.op == "aten::unbind":
            interpreter.nodes.pop()
            rows = interpreter.call(
                "aten::movedim.int", source.arguments["self"], source.arguments["dim"], 0, place=source.location
            )
            return interpreter.adopt(ListValue([Run(rows)]))
        if count is None:
            interpreter.nodes.pop()
            return interpreter.adopt(ListValue([_split(interpreter, source)]))
        found = [found[0] if found else UNKNOWN] * count
    if found is None and source.op in _SPLITS_BY_SIZES:
        found = [UNKNOWN] * len(source.arguments["split_size" if "split_size" in source.arguments else "split_sizes"])
    if found is None:
        if not unpacked:
            raise refuse(f"the length of the list that {source.op[6:]} gives is not known", source.location, "unpack it")
        found = [UNKNOWN] * unpacked[0].outputsSize()
    return interpreter.adopt(ListValue([interpreter.add_output(source, kind) for kind in found]))


def _has_fixed_count(source: SourceNode) -> bool:
    if source.overload == "sizes":
        return True  # as many parts as sizes are given
    tensor, dim = source.arguments["self"], source.arguments["dim"]
    shape = tensor.type.shape
    return shape is not None and isinstance(dim, int) and isinstance(shape[dim], int)


def _split(interpreter: Interpreter, source: SourceNode) -> Chain:
    """The parts that ``split`` or ``chunk`` gives where it is not known how many there are."""
    tensor, axis, place = source.arguments["self"], source.arguments["dim"], source.location
    size = source.arguments.get("split_size")
    if size is None:
        count = source.arguments["chunks"]
        total = interpreter.call("aten::size.int", tensor, axis, place=place)
        size = chains.arithmetic(interpreter, "add", total, count - 1, place)
        size = chains.arithmetic(interpreter, "floordiv", size, count, place)
    return chains.split(interpreter, tensor, size, axis, place)
