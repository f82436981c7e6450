"""Nodes and blocks that code written for torch.onnx takes for those of TorchScript."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnx_exporter._attributes import make_attributes
from onnx_exporter._source.graph import Location
from onnx_exporter.helpers import dtypes

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph
    from onnx_exporter.compat._duck_values import DuckValue

ATTRIBUTE_KINDS = {
    ir.AttributeType.INT: "i",
    ir.AttributeType.INTS: "is",
    ir.AttributeType.FLOAT: "f",
    ir.AttributeType.FLOATS: "fs",
    ir.AttributeType.STRING: "s",
    ir.AttributeType.STRINGS: "ss",
    ir.AttributeType.TENSOR: "t",
    ir.AttributeType.TENSORS: "ts",
    ir.AttributeType.GRAPH: "g",
    ir.AttributeType.GRAPHS: "gs",
}
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

    def removeInput(self, index: int) -> None:  # noqa: N802
        rest = [value for position, value in enumerate(self.ir.inputs) if position != index]
        self.ir.resize_inputs(len(rest))
        for position, value in enumerate(rest):
            self.ir.replace_input_with(position, value)

    def addOutput(self) -> DuckValue:  # noqa: N802
        self.ir.resize_outputs(len(self.ir.outputs) + 1)
        added = self.ir.outputs[-1]
        added.name = self._graph.builder.unique(f"{self.ir.name}.{len(self.ir.outputs) - 1}")
        return self._graph.value(added)

    def _attributes(self) -> Attributes:
        found = {name: (ATTRIBUTE_KINDS[attribute.type], attribute) for name, attribute in self.ir.attributes.items()}
        return {name: (letters, _plain(attribute)) for name, (letters, attribute) in found.items()}

    def _set(self, letters: str, name: str, value: Any) -> DuckNode:
        made = make_attributes(None, {f"{name}_{letters[0].replace('z', 't')}": value})
        self.ir.attributes[name] = made[name]
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

    def op(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        return self._graph.current().in_block(self).op(name, *inputs, **attributes)


def _plain(attribute: ir.Attr) -> Any:
    """What an attribute holds, as PyTorch gives it."""
    if attribute.type is ir.AttributeType.TENSOR:
        return to_torch(attribute.as_tensor())
    if attribute.type is ir.AttributeType.TENSORS:
        return [to_torch(tensor) for tensor in attribute.as_tensors()]
    value = attribute.value
    return list(value) if isinstance(value, tuple) else value


def to_torch(tensor: ir.TensorProtocol) -> Any:
    """Returns an ONNX tensor as a torch tensor."""
    raw = getattr(tensor, "raw", None)
    if isinstance(raw, torch.Tensor):
        return raw
    dtype = dtypes.from_onnx(tensor.dtype)
    if dtype is None:
        return tensor.numpy()
    shape = tuple(int(dim) for dim in tensor.shape)  # type: ignore[arg-type]
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(tensor.tobytes()), dtype=dtype).reshape(shape)
