"""Functionalization: rewrites a graph so that no operator writes in place.

PyTorch writes through tensors that share memory; the pure graph has values only. So for every
tensor whose memory is written somewhere, the pass remembers how it came from its base (a chain of
view operators) and what its current value is. A write computes the new value out of place and
carries it up the chain to the base. Other views of the base become stale and are derived again
when they are next read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from onnx_exporter._source.aliasing import Effects, EffectsCache, writes_anything
from onnx_exporter._source.control_flow import ControlFlow
from onnx_exporter._source.emit import Emitter, without_strides
from onnx_exporter._source.graph import (
    Argument,
    Location,
    SourceGraph,
    SourceNode,
    SourceType,
    SourceValue,
    map_values,
    values_in,
)
from onnx_exporter._source.sinking import sink_writes
from onnx_exporter._source.views import Inverse, is_partition, relation
from onnx_exporter._source.writes import rebinding_view, written_values


def functionalize(graph: SourceGraph) -> SourceGraph:
    """Rewrites `graph` in place so that no node writes, and returns it.

    Raises:
        UnsupportedOpError: If a write cannot be expressed out of place.
    """
    cache = EffectsCache()
    if writes_anything(graph, cache):
        _Functionalizer(graph, cache).run()
    return graph


class _Storage:
    """Memory that several tensors share.

    Attributes:
        writes: How many times it was written so far.
        origin: The tensor that it was first met as.
    """

    __slots__ = ("origin", "writes")

    def __init__(self, origin: SourceValue) -> None:
        self.writes = 0
        self.origin = origin


class _Alias:
    """One view of a storage, or the whole of it.

    Attributes:
        storage: The memory.
        value: Its value when `seen` writes had been made.
        seen: See `value`.
        type: Type of every value it takes.
        view: The view that it is an output of; None for the whole storage.
        index: Which output of the view.
    """

    __slots__ = ("index", "seen", "storage", "type", "value", "view")

    def __init__(self, value: SourceValue, storage: _Storage, view: _View | None = None, index: int = 0) -> None:
        self.value = value
        self.storage = storage
        self.seen = storage.writes
        self.type = value.type
        self.view = view
        self.index = index


@dataclasses.dataclass(eq=False, slots=True)
class _View:
    """A call of a view operator.

    Attributes:
        node: The call, with its arguments as they were then.
        argument: Name of the argument that is viewed.
        parent: The viewed alias.
        source: Type of the viewed tensor.
        is_same: The view is the whole parent in the parent's shape.
        aliases: The outputs.
    """

    node: SourceNode
    argument: str
    parent: _Alias
    source: SourceType
    is_same: bool
    aliases: list[_Alias] = dataclasses.field(default_factory=list)


class _Tensor:
    """A tensor object of the program. What it views may change: ``x.unsqueeze_(0)``."""

    __slots__ = ("alias",)

    def __init__(self, alias: _Alias) -> None:
        self.alias = alias


class _Functionalizer:
    """Rewrites one graph.

    Attributes:
        emitter: Where the nodes of the block that is being rewritten go.
        tensors: The tensors whose memory is written somewhere.
        aliases: All that is known of their memory.
        written: The values whose memory is written somewhere, in blocks too.
        control_flow: What rewrites nodes with blocks.
    """

    def __init__(self, graph: SourceGraph, cache: EffectsCache) -> None:
        self._graph = graph
        self._cache = cache
        self.emitter = Emitter()
        self.written = sink_writes(graph, cache).written()
        self.tensors: dict[SourceValue, _Tensor] = {}
        self.aliases: list[_Alias] = []
        self.control_flow = ControlFlow(self)

    def run(self) -> None:
        self._graph.nodes = self.rewrite(self._graph, lambda: [self._output(value) for value in self._graph.outputs])

    def rewrite(self, block: SourceGraph, outputs: Callable[[], list[SourceValue]]) -> list[SourceNode]:
        """Returns the nodes of a graph or block without writes, and gives it the outputs that are there then."""
        outer, self.emitter = self.emitter, Emitter()
        for node in block.nodes:
            self.control_flow.note_lists(node)
            self.forget(node.outputs)
            effects = self._cache.of(node)
            if effects.rebinds:
                self._rebind(node, effects)
            elif effects.writes:
                self._write_node(node, effects)
            else:
                self._read_arguments(node)
                self.emitter.nodes.append(node)
        block.outputs = outputs()
        nodes = self.emitter.nodes
        self.emitter = outer
        return nodes

    def alias(self, value: SourceValue, storage: _Storage, view: _View | None = None, index: int = 0) -> _Alias:
        """Notes what views memory."""
        made = _Alias(value, storage, view, index)
        self.aliases.append(made)
        return made

    def forget(self, values: Iterable[SourceValue]) -> None:
        """Drops what is known of values that come to be: of an earlier pass over the body of a loop."""
        for value in values:
            self.tensors.pop(value, None)

    # Reading.

    def read(self, value: SourceValue) -> SourceValue:
        tensor = self.tensors.get(value)
        return value if tensor is None else self._current(tensor.alias)

    def _current(self, alias: _Alias) -> SourceValue:
        view = alias.view
        if view is not None and alias.seen != alias.storage.writes:
            base = self._current(view.parent)
            if view.is_same:
                alias.value, alias.seen = base, alias.storage.writes
            else:
                self._derive(view, base)
        return alias.value

    def _derive(self, view: _View, base: SourceValue) -> None:
        """Takes the view of its base's new value."""
        node = view.node
        fresh = [SourceValue(type=without_strides(alias.type)) for alias in view.aliases]
        arguments = {**node.arguments, view.argument: base}
        self.emitter.nodes.append(dataclasses.replace(node, arguments=arguments, outputs=fresh))
        for alias, value in zip(view.aliases, fresh, strict=True):
            alias.value, alias.seen = value, alias.storage.writes

    def _output(self, value: SourceValue) -> SourceValue:
        current = self.read(value)
        if current is not value and not current.name and value not in self._graph.inputs and value.constant is None:
            current.name = value.name
        return current

    def tensor(self, value: SourceValue) -> _Tensor:
        tensor = self.tensors.get(value)
        if tensor is None:
            tensor = self.tensors[value] = _Tensor(self.alias(value, _Storage(value)))
        return tensor

    def _read_arguments(self, node: SourceNode) -> None:
        """Replaces what a pure node reads by current values; notes its results if they are views."""
        effects = self._cache.of(node)
        viewed: dict[str, tuple[_Alias, SourceValue]] = {}
        for output, name in effects.aliased_outputs(node):
            argument = node.arguments[name]
            if name not in viewed and output in self.written and isinstance(argument, SourceValue):
                viewed[name] = (self.tensor(argument).alias, argument)
        tensors = self.tensors
        for name, argument in node.arguments.items():
            if any(value in tensors for value in values_in(argument)):
                node.arguments[name] = map_values(argument, self.read)
        for name, (parent, source) in viewed.items():
            self._note_view(node, effects, name, parent, source)
        if node.blocks:
            self.control_flow.rewrite(node)

    def _note_view(self, node: SourceNode, effects: Effects, name: str, parent: _Alias, source: SourceValue) -> None:
        outputs = [output for output, argument in effects.aliased_outputs(node) if argument == name]
        how = relation(node, source, outputs[0])
        if how == "copy":
            return
        view = _View(node, name, parent, source.type, how == "same")
        view.aliases = [self.alias(output, parent.storage, view, index) for index, output in enumerate(outputs)]
        for output, alias in zip(outputs, view.aliases, strict=True):
            self.tensors[output] = _Tensor(alias)

    # Writing.

    def _write_node(self, node: SourceNode, effects: Effects) -> None:
        targets = [(name, value) for name in effects.writes for value in values_in(node.arguments[name])]
        arguments: dict[str, Argument] = {name: map_values(value, self.read) for name, value in node.arguments.items()}
        results = written_values(self.emitter, node, effects, arguments, targets)
        if all(target.type.is_number for _, target in targets):
            # A Python number is never shared: `n += 1` makes another number and leaves the old one.
            for output, result in zip(node.outputs, results, strict=False):
                self.tensors[output] = _Tensor(self.alias(result, _Storage(result)))
            return
        tensors = [self.tensor(target) for _, target in targets]
        for tensor, result in zip(tensors, results, strict=True):
            self._write(tensor.alias, result, node.location)
        for output, name in effects.aliased_outputs(node):
            self.tensors[output] = self.tensor(next(values_in(node.arguments[name])))

    def _write(self, alias: _Alias, value: SourceValue, location: Location) -> None:
        """Makes `value` the value of `alias` and of everything it views."""
        path = [alias]
        while (view := path[-1].view) is not None:
            path.append(view.parent)
        self.control_flow.check_write(path[-1].storage, location)
        # What is not written keeps its value, so bring everything on the way up to date first.
        self._current(alias)
        storage = alias.storage
        storage.writes += 1
        for below in path:
            if below.view is not None and is_partition(below.view.node):
                for sibling in below.view.aliases:
                    sibling.seen = storage.writes  # disjoint from what is written, and up to date as `below` was
        for below in path:
            below.value, below.seen = value, storage.writes
            if below.view is None:
                break
            if not below.view.is_same:
                value = self._inverse(below, below.view, value, location)

    def _inverse(self, alias: _Alias, view: _View, value: SourceValue, location: Location) -> SourceValue:
        siblings = [sibling.value for sibling in view.aliases]
        base = view.parent.value
        return Inverse(self.emitter, view.node, view.source, base, value, siblings, alias.index, location).value()

    def _rebind(self, node: SourceNode, effects: Effects) -> None:
        """A tensor takes other sizes and strides in place: from now on it is a view of what it was."""
        (name,) = effects.writes
        argument = node.arguments[name]
        tensor = self.tensor(argument)
        source = SourceValue(type=tensor.alias.type)
        view_node = rebinding_view(node, {key: map_values(value, self.read) for key, value in node.arguments.items()})
        if view_node is not None:
            how = relation(view_node, source, view_node.outputs[0])
            view = _View(view_node, name, tensor.alias, source.type, how == "same")
            view.aliases = [self.alias(view_node.outputs[0], tensor.alias.storage, view)]
            self.emitter.nodes.append(view_node)
            tensor.alias = view.aliases[0]
        for output in node.outputs:
            self.tensors[output] = tensor
