"""Nodes and blocks that code written for torch.onnx takes for those of TorchScript."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnx_exporter._builder import NodeError
from onnx_exporter._source.graph import Location
from onnx_exporter.compat._duck_attributes import ATTRIBUTE_KINDS, attribute, content
from onnx_exporter.compat._duck_places import add_to, beside, block_around, place, take_out

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph
    from onnx_exporter.compat._duck_values import DuckValue

_GETTERS = frozenset([*ATTRIBUTE_KINDS.values(), "ival", "z", "zs", "c"])
_SETTERS = frozenset(f"{kind}_" for kind in _GETTERS)

Attributes = Mapping[str, tuple[str, Any]]
"""Kind, in TorchScript's letters, and value of each attribute."""


class DuckNode:
    """A node that answers what a ``torch._C.Node`` does. This one is not in the ONNX graph: a list, a constant, None.

    Args:
        graph: The graph that it belongs to.
        kind: ``"prim::ListConstruct"``.
        inputs: Its inputs.
        attributes: Its attributes.
        location: Where it comes from in the user's model.
    """

    __class__ = property(lambda self: torch._C.Node)

    def __init__(
        self,
        graph: DuckGraph,
        kind: str,
        inputs: Sequence[DuckValue] = (),
        attributes: Attributes | None = None,
        location: Location | None = None,
    ) -> None:
        self._graph = graph
        self._kind = kind
        self._inputs = list(inputs)
        self._own = dict(attributes or {})
        self._location = location or Location()
        self._outputs: list[DuckValue] = []
        self._blocks: list[DuckBlock] = []

    def kind(self) -> str:
        return self._kind

    # Inputs and outputs

    def inputs(self) -> list[DuckValue]:
        return list(self._inputs)

    def input(self) -> DuckValue:
        (only,) = self.inputs()
        return only

    def inputsAt(self, index: int) -> DuckValue:  # noqa: N802 - the names are PyTorch's, here and below
        return self.inputs()[index]

    def inputsSize(self) -> int:  # noqa: N802
        return len(self.inputs())

    def outputs(self) -> list[DuckValue]:
        return list(self._outputs)

    def output(self) -> DuckValue:
        (only,) = self.outputs()
        return only

    def outputsAt(self, index: int) -> DuckValue:  # noqa: N802
        return self.outputs()[index]

    def outputsSize(self) -> int:  # noqa: N802
        return len(self.outputs())

    def hasMultipleOutputs(self) -> bool:  # noqa: N802
        return self.outputsSize() > 1

    def addInput(self, value: DuckValue) -> DuckValue:  # noqa: N802
        self._inputs.append(value)
        return value

    def replaceInput(self, index: int, value: DuckValue) -> None:  # noqa: N802
        self._inputs[index] = value

    def removeInput(self, index: int) -> None:  # noqa: N802
        del self._inputs[index]

    def removeAllInputs(self) -> None:  # noqa: N802
        while self.inputsSize():
            self.removeInput(self.inputsSize() - 1)

    def replaceInputWith(self, old: DuckValue, new: DuckValue) -> None:  # noqa: N802
        for index, value in enumerate(self.inputs()):
            if value is old:
                self.replaceInput(index, new)

    def replaceAllUsesWith(self, other: DuckNode) -> None:  # noqa: N802
        for mine, theirs in zip(self.outputs(), other.outputs(), strict=True):
            mine.replaceAllUsesWith(theirs)

    def hasUses(self) -> bool:  # noqa: N802
        return any(value.uses() for value in self.outputs())

    # Its place among other nodes, of which one that is not in the ONNX graph has none

    def insertBefore(self, other: DuckNode) -> DuckNode:  # noqa: N802
        return self

    def insertAfter(self, other: DuckNode) -> DuckNode:  # noqa: N802
        return self

    def moveBefore(self, other: DuckNode) -> None:  # noqa: N802
        self.insertBefore(other)

    def moveAfter(self, other: DuckNode) -> None:  # noqa: N802
        self.insertAfter(other)

    def prev(self) -> DuckNode | None:
        return None

    def next(self) -> DuckNode | None:
        return None

    def owningBlock(self) -> DuckBlock:  # noqa: N802
        block: DuckBlock = self._graph.block
        return block

    def destroy(self) -> None:
        """Takes the node out of the graph."""

    def mustBeNone(self) -> bool:  # noqa: N802
        return self.kind() == "prim::Constant" and not self._own

    # Attributes

    def _attributes(self) -> Attributes:
        return self._own

    def _set(self, letters: str, name: str, value: Any) -> DuckNode:
        self._own[name] = (letters, value)
        return self

    def removeAttribute(self, name: str) -> DuckNode:  # noqa: N802
        del self._own[name]
        return self

    def copyAttributes(self, other: DuckNode) -> DuckNode:  # noqa: N802
        for name, (letters, value) in other._attributes().items():
            self._set(letters, name, value)
        return self

    def attributeNames(self) -> list[str]:  # noqa: N802
        return list(self._attributes())

    def hasAttribute(self, name: str) -> bool:  # noqa: N802
        return name in self._attributes()

    def hasAttributes(self) -> bool:  # noqa: N802
        return bool(self._attributes())

    def kindOf(self, name: str) -> str:  # noqa: N802
        return self._attribute(name)[0]

    def value_of(self, name: str) -> Any:
        """Returns an attribute, whatever its kind."""
        return self._attribute(name)[1]

    def _attribute(self, name: str) -> tuple[str, Any]:
        try:
            return self._attributes()[name]
        except KeyError:
            raise RuntimeError(f"{self.kind()} has no attribute {name!r}") from None

    def __getitem__(self, name: str) -> Any:
        return self.value_of(name)

    def __getattr__(self, name: str) -> Any:
        """The getters and setters of attributes: ``i("axis")``, ``fs("scales")``, ``t_("value", tensor)``."""
        if name in _GETTERS:
            return self.value_of
        if name in _SETTERS:
            return functools.partial(self._set, name.removesuffix("_"))
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    # Blocks, places

    def addBlock(self) -> DuckBlock:  # noqa: N802
        block = DuckBlock(self._graph, self)
        self._blocks.append(block)
        return block

    def blocks(self) -> list[DuckBlock]:
        return list(self._blocks)

    def sourceRange(self) -> str:  # noqa: N802
        return f"{self._location.file}:{self._location.line}" if self._location.file else ""

    def scopeName(self) -> str:  # noqa: N802
        return self._location.module

    def getModuleHierarchy(self) -> str:  # noqa: N802
        return self._location.module

    @property
    def location(self) -> Location:
        """Where it comes from in the user's model."""
        return self._location

    def schema(self) -> str:
        return "(no schema)"

    def __repr__(self) -> str:
        outputs, inputs = (", ".join(map(repr, values)) for values in (self.outputs(), self.inputs()))
        attributes = ", ".join(f"{name}={value!r}" for name, (_, value) in self._attributes().items())
        return f"{outputs} = {self.kind()}{f'[{attributes}]' if attributes else ''}({inputs})"


class EmittedNode(DuckNode):
    """A node of the ONNX graph.

    Args:
        graph: The graph that it belongs to.
        node: The node.
        location: Where it comes from in the user's model.
    """

    def __init__(self, graph: DuckGraph, node: ir.Node, location: Location | None = None) -> None:
        super_kind = f"{node.domain or 'onnx'}::{node.op_type}"
        DuckNode.__init__(self, graph, super_kind, location=location)
        self.ir = node

    def inputs(self) -> list[DuckValue]:
        return [self._graph.none() if value is None else self._graph.value(value) for value in self.ir.inputs]

    def outputs(self) -> list[DuckValue]:
        return [self._graph.value(value) for value in self.ir.outputs]

    def addInput(self, value: DuckValue) -> DuckValue:  # noqa: N802
        self.ir.resize_inputs(len(self.ir.inputs) + 1)
        self.replaceInput(len(self.ir.inputs) - 1, value)
        return value

    def replaceInput(self, index: int, value: DuckValue) -> None:  # noqa: N802
        self.ir.replace_input_with(index, value.ir)
        self._graph.changed(self)

    def removeInput(self, index: int) -> None:  # noqa: N802
        rest = [value for position, value in enumerate(self.ir.inputs) if position != index]
        self.ir.resize_inputs(len(rest))
        for position, value in enumerate(rest):
            self.ir.replace_input_with(position, value)
        self._graph.changed(self)

    def addOutput(self) -> DuckValue:  # noqa: N802
        self.ir.resize_outputs(len(self.ir.outputs) + 1)
        added = self.ir.outputs[-1]
        added.name = self._graph.builder.unique(f"{self.ir.name}.{len(self.ir.outputs) - 1}")
        self._graph.changed(self)  # of Split, how many outputs there are says what each holds
        return self._graph.value(added)

    def insertBefore(self, other: DuckNode) -> DuckNode:  # noqa: N802
        place(self._graph, self, other)
        return self

    def insertAfter(self, other: DuckNode) -> DuckNode:  # noqa: N802
        place(self._graph, self, other, behind=True)
        return self

    def prev(self) -> DuckNode | None:
        return self._beside(-1)

    def next(self) -> DuckNode | None:
        return self._beside(1)

    def _beside(self, step: int) -> DuckNode | None:
        found = beside(self._graph, self, step)
        return None if found is None else self._graph.node_of(found)

    def owningBlock(self) -> DuckBlock:  # noqa: N802
        return block_around(self._graph, self)

    def destroy(self) -> None:
        if self.hasUses():
            raise NodeError(f"{self.kind()} cannot be taken out of the graph: its outputs are used")
        take_out(self._graph, self)
        self.removeAllInputs()
        self._graph.forget(self)

    def blocks(self) -> list[DuckBlock]:
        if not self._blocks:
            graphs = [item.value for item in self.ir.attributes.values() if item.type is ir.AttributeType.GRAPH]
            return [DuckBlock.of(self._graph, graph, self) for graph in graphs]
        return list(self._blocks)

    def _attributes(self) -> Attributes:
        return {name: (ATTRIBUTE_KINDS[item.type], content(item)) for name, item in self.ir.attributes.items()}

    def _set(self, letters: str, name: str, value: Any) -> DuckNode:
        self.ir.attributes[name] = attribute(name, letters, value)
        self._graph.changed(self)
        return self

    def removeAttribute(self, name: str) -> DuckNode:  # noqa: N802
        del self.ir.attributes[name]
        return self


class DuckBlock:
    """A sub-graph that is being built, which answers what a ``torch._C.Block`` does.

    Args:
        graph: The graph around it.
        owner: The node that it belongs to, None for the outermost.
    """

    __class__ = property(lambda self: torch._C.Block)

    def __init__(self, graph: DuckGraph, owner: DuckNode | None = None) -> None:
        self._graph = graph
        self._owner = owner
        self.emitted: list[ir.Node] = []
        self.parameters: list[DuckValue] = []
        self.results: list[DuckValue] = []

    @classmethod
    def of(cls, graph: DuckGraph, made: ir.Graph, owner: DuckNode) -> DuckBlock:
        """Returns a finished sub-graph of a node as such a block."""
        block = cls(graph, owner)
        block.emitted = list(made)
        block.parameters = [graph.value(value) for value in made.inputs]
        block.results = [graph.value(value) for value in made.outputs]
        return block

    @property
    def is_outermost(self) -> bool:
        """Whether it is the graph itself, not part of a node."""
        return self._owner is None

    def inputs(self) -> list[DuckValue]:
        return list(self.parameters)

    def outputs(self) -> list[DuckValue]:
        return list(self.results)

    def nodes(self) -> list[DuckNode]:
        nodes = self._graph.builder.nodes if self.is_outermost else self.emitted
        return [self._graph.node_of(node) for node in nodes]

    def owningNode(self) -> DuckNode | None:  # noqa: N802
        return self._owner

    def addInputToBlock(self) -> DuckValue:  # noqa: N802
        value = self._graph.block_input(self._owner, len(self.parameters))
        self.parameters.append(value)
        return value

    def registerOutput(self, value: DuckValue) -> int:  # noqa: N802
        self.results.append(value)
        return len(self.results) - 1

    def addNode(self, kind: str, inputs: Sequence[DuckValue]) -> DuckNode:  # noqa: N802
        value: DuckValue = self._graph.current().in_block(self).op(kind, *inputs)
        return value.node()

    def insertNode(self, node: DuckNode) -> DuckNode:  # noqa: N802
        if isinstance(node, EmittedNode):
            add_to(self._graph, node, self.emitted if not self.is_outermost else None)
        return node

    appendNode = insertNode  # noqa: N815

    def op(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        return self._graph.current().in_block(self).op(name, *inputs, **attributes)
