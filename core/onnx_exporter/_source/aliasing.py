"""Which arguments an operator writes, and which of its results share memory with which argument.

The operator's own schema says so. A few operators alias without saying it in their schema; they
are listed here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, values_in

_UNANNOTATED = {
    "aten::alpha_dropout": "input",
    "aten::atleast_1d": "self",
    "aten::atleast_2d": "self",
    "aten::atleast_3d": "self",
    "aten::conj_physical": "self",
    "aten::dropout": "input",
    "aten::feature_alpha_dropout": "input",
    "aten::feature_dropout": "input",
    "aten::type_as": "self",
    "aten::unsafe_chunk": "self",
    "aten::unsafe_split": "self",
    "aten::unsafe_split_with_sizes": "self",
}
"""Operators whose result may share memory with an argument although their schema is silent."""

_METADATA_ONLY = frozenset({"aten::requires_grad_", "aten::retain_grad", "aten::record_stream"})
"""Operators whose schema claims a write that changes no element."""

_WHILE_OBSERVING = frozenset({"aten::fused_moving_avg_obs_fake_quant", "aten::_fused_moving_avg_obs_fq_helper"})
"""Operators that write only while their observer is switched on, in which state nothing converts them."""


@dataclasses.dataclass(frozen=True, slots=True)
class Effects:
    """What one operator does to the memory of its arguments.

    Attributes:
        writes: Names of the arguments that are written.
        aliases: For each return that shares memory with an argument: its index and the argument's
            name. A return that is a list stands for every output of the node.
        rebinds: The write changes the tensor's sizes and strides, not its elements (``squeeze_``).
        returns_list: The only return is a list.
    """

    writes: tuple[str, ...] = ()
    aliases: tuple[tuple[int, str], ...] = ()
    rebinds: bool = False
    returns_list: bool = False

    def aliased_outputs(self, node: SourceNode) -> Iterator[tuple[SourceValue, str]]:
        """Yields each output of `node` that may share memory with an argument, and the argument's name."""
        for index, argument in self.aliases:
            if self.returns_list:
                yield from ((output, argument) for output in node.outputs)
            elif index < len(node.outputs):
                yield node.outputs[index], argument


_PURE = Effects()


class EffectsCache:
    """Effects by schema. Graphs have thousands of nodes but few distinct operators."""

    def __init__(self) -> None:
        # Keyed by identity, which is cheaper than hashing a schema; the schema is kept so that the id stays taken.
        self._known: dict[int, tuple[torch.FunctionSchema, Effects]] = {}

    def of(self, node: SourceNode) -> Effects:
        """Returns the effects of one node."""
        schema = node.schema
        if schema is None:
            return _PURE
        known = self._known.get(id(schema))
        if known is None:
            known = self._known[id(schema)] = (schema, _effects_of_schema(schema))
        return known[1]


def _effects_of_schema(schema: torch.FunctionSchema) -> Effects:
    annotated = [(argument.name, argument.alias_info) for argument in schema.arguments if argument.alias_info is not None]
    writes = tuple(name for name, info in annotated if info.is_write)
    if schema.name in _METADATA_ONLY or schema.name in _WHILE_OBSERVING:
        writes = ()
    aliases: list[tuple[int, str]] = []
    for index, returned in enumerate(schema.returns):
        if returned.alias_info is None:
            continue
        # The set of a list's elements ("Tensor(a)[]") is not visible from Python; there is only one such argument.
        tags = returned.alias_info.before_set
        owner = next((name for name, info in annotated if tags and info.before_set == tags), None)
        if owner is None and len(annotated) == 1:
            owner = annotated[0][0]
        if owner is not None:
            aliases.append((index, owner))
    unannotated = _UNANNOTATED.get(schema.name)
    if unannotated and not aliases and any(argument.name == unannotated for argument in schema.arguments):
        aliases.append((0, unannotated))
    returns_list = len(schema.returns) == 1 and str(schema.returns[0].type).startswith("List[")
    if not writes and not aliases:
        return _PURE
    return Effects(writes, tuple(aliases), bool(writes) and _is_inplace_view(schema), returns_list)


def _is_inplace_view(schema: torch.FunctionSchema) -> bool:
    operator = find_operator(schema.name, schema.overload_name)
    return operator is not None and torch.Tag.inplace_view in operator.tags


def find_operator(name: str, overload: str) -> torch._ops.OpOverload | None:
    """Returns the PyTorch operator behind a qualified name, or None if there is none."""
    namespace, _, base = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    return getattr(packet, overload or "default", None)


class AliasSets:
    """The values of a graph, grouped by the memory they may share (union-find)."""

    def __init__(self) -> None:
        self._parent: dict[SourceValue, SourceValue] = {}
        self._written: set[SourceValue] = set()

    @classmethod
    def of_graph(cls, graph: SourceGraph, cache: EffectsCache) -> AliasSets:
        """Collects the sets of a graph and its blocks; what goes in and out of a block is kept apart from what it is then."""
        sets = cls()
        sets._collect(graph, cache)
        return sets

    def _collect(self, graph: SourceGraph, cache: EffectsCache) -> None:
        for node in graph.nodes:
            for block in node.blocks:
                self._collect(block, cache)
            effects = cache.of(node)
            if effects is _PURE:
                continue
            for output, argument in effects.aliased_outputs(node):
                for value in values_in(node.arguments.get(argument)):
                    self._join(output, value)
            for argument in effects.writes:
                for value in values_in(node.arguments.get(argument)):
                    self._written.add(value)

    def root(self, value: SourceValue) -> SourceValue:
        """Returns the value that stands for those that may share memory with one."""
        parent = self._parent
        while (above := parent.get(value, value)) is not value:
            parent[value] = parent.get(above, above)
            value = above
        return value

    def _join(self, first: SourceValue, second: SourceValue) -> None:
        first, second = self.root(first), self.root(second)
        if first is not second:
            self._parent[first] = second

    def written(self) -> set[SourceValue]:
        """Returns every value whose memory is written somewhere in the graph."""
        roots = {self.root(value) for value in self._written}
        return {value for value in self._parent if self.root(value) in roots} | roots


def writes_anything(graph: SourceGraph, cache: EffectsCache) -> bool:
    """Tells whether any node of the graph or of its blocks writes."""
    return any(cache.of(node).writes or any(writes_anything(block, cache) for block in node.blocks) for node in graph.nodes)
