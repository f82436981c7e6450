"""The graph that code written for torch.onnx sees: our values and nodes, seen as those of TorchScript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

from onnx_exporter._builder import Builder, NodeError
from onnx_exporter._source.schema import to_enum
from onnx_exporter._values import Value
from onnx_exporter.compat._duck_blocks import OPEN_KINDS, close_node, input_type
from onnx_exporter.compat._duck_nodes import DuckBlock, DuckNode, EmittedNode, to_torch
from onnx_exporter.compat._duck_types import Type, TypeTable, list_type
from onnx_exporter.compat._duck_values import DuckValue, nothing

if TYPE_CHECKING:
    from onnx_exporter._engine import Engine
    from onnx_exporter.compat._duck_context import DuckContext


class DuckGraph:
    """One conversion, as code written for torch.onnx sees it. Values and nodes are made when they are asked for.

    Args:
        engine: Who converts.
    """

    __class__ = property(lambda self: torch._C.Graph)

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.builder: Builder = engine.builder
        self.types = TypeTable(self.builder.symbols.fresh)
        self.block = DuckBlock(self)
        named = {source: value for source, value in engine.env.items() if source.constant is not None and source.name}
        self.weights: dict[str, Any] = {source.name: source.constant for source in named}
        self._parameters = {id(value.ir) for value in named.values()}
        self._with_grad = {id(value.ir) for source, value in engine.env.items() if source.type.requires_grad}
        self._values: dict[int, DuckValue] = {}
        self._nodes: dict[int, EmittedNode] = {}
        self._open: list[EmittedNode] = []
        self._contexts: list[DuckContext] = []

    # The functions that run

    @contextmanager
    def running(self, context: DuckContext) -> Iterator[None]:
        """While active, `context` is the ``g`` of the symbolic function that runs; at its end no node is left unfinished."""
        self._contexts.append(context)
        outer, self._open = self._open, []
        try:
            yield
            self._close(self._open)
        finally:
            self._open = outer
            self._contexts.pop()

    def current(self) -> DuckContext:
        """Returns the ``g`` of the function that runs."""
        return self._contexts[-1]

    @contextmanager
    def inside(self, block: DuckBlock) -> Iterator[None]:
        """While active, nodes go into a block."""
        if block.is_outermost:
            yield
            return
        with self.builder.block(block.emitted):
            yield

    # Values

    def value(self, value: Value | ir.Value) -> DuckValue:
        """Returns a value of the ONNX graph as these functions see it, always the same one."""
        if isinstance(value, DuckValue):
            return value
        plain = Value(value) if isinstance(value, ir.Value) else value
        found = self._values.get(id(plain.ir))
        if found is None:
            found = self._values[id(plain.ir)] = DuckValue(self, plain)
        elif isinstance(value, Value):  # the engine may have learnt since that it stands for a number
            found.is_number = value.is_number
        return found

    def constant(self, tensor: torch.Tensor, *, is_number: bool = False) -> DuckValue:
        """Returns a constant tensor."""
        return self.value(self.engine.tensor(tensor.detach(), is_number=is_number))

    def text(self, text: str) -> DuckValue:
        """Returns a constant string."""
        return self.pseudo("onnx::Constant", torch._C.StringType.get(), attributes={"value": ("s", text)})

    def none(self) -> DuckValue:
        """Returns the value of an argument that is None."""
        return self.pseudo("prim::Constant", torch._C.NoneType.get())

    def list_of(self, items: Sequence[DuckValue]) -> DuckValue:
        """Returns a list of values."""
        return self.pseudo("prim::ListConstruct", list_type(items), items)

    def tuple_of(self, items: Sequence[DuckValue]) -> DuckValue:
        """Returns a tuple of values."""
        return self.pseudo("prim::TupleConstruct", torch._C.TupleType([item.type() for item in items]), items)

    def pseudo(
        self, kind: str, type_: Type, inputs: Sequence[DuckValue] = (), attributes: dict[str, tuple[str, Any]] | None = None
    ) -> DuckValue:
        """Returns a value that is not in the ONNX graph."""
        node = DuckNode(self, kind, inputs, attributes)
        value = DuckValue(self, nothing(), node, type_)
        node._outputs.append(value)
        return value

    def argument(self, argument: Any) -> DuckValue:
        """Returns an argument of an operator in the form that torch.onnx gives it: always a value.

        A number or a list of numbers is a constant tensor, a string a constant, None a value of its own; a list that holds
        other values is one whose node has them as inputs.
        """
        if isinstance(argument, Value):
            return self.value(argument)
        if argument is None:
            return self.none()
        if isinstance(argument, torch.dtype | torch.layout | torch.memory_format):
            argument = to_enum(argument)
        if isinstance(argument, bool | int | float | complex):
            return self.value(self.builder.constant(np.asarray(argument), is_number=True))
        if isinstance(argument, torch.Tensor):
            return self.constant(argument)
        if isinstance(argument, str):
            return self.text(argument)
        if isinstance(argument, list | tuple):
            return self._list(argument)
        kind = torch._C.DeviceObjType.get() if isinstance(argument, torch.device) else torch._C.AnyType.get()
        return self.pseudo("prim::Constant", kind, attributes={"value": ("ival", argument)})

    def _list(self, items: Sequence[Any]) -> DuckValue:
        known = [item.item() if isinstance(item, Value) and item.is_number and item.is_constant else item for item in items]
        if all(isinstance(item, bool | int | float) for item in known):
            return self.constant(torch.tensor(known, dtype=None if known else torch.int64))
        return self.list_of([self.argument(item) for item in items])

    # Nodes

    def node_of(self, node: ir.Node) -> EmittedNode:
        """Returns a node of the ONNX graph as these functions see it, always the same one."""
        found = self._nodes.get(id(node))
        if found is None:
            location = self._contexts[-1].context.node.location if self._contexts else None
            found = self._nodes[id(node)] = EmittedNode(self, node, location)
        return found

    def producer(self, value: DuckValue) -> DuckNode:
        """Returns the node that makes a value; a weight or an input is a parameter."""
        producer = value.ir.producer()
        if producer is not None:
            return self.node_of(producer)
        tensor = value.ir.const_value
        if tensor is None or id(value.ir) in self._parameters:
            node = DuckNode(self, "prim::Param")
        else:
            node = DuckNode(self, "onnx::Constant", attributes={"value": ("t", to_torch(tensor))})
        node._outputs.append(value)
        return node

    def nodes(self) -> list[DuckNode]:
        """The nodes so far."""
        return self.block.nodes()

    def op(self, name: str, *inputs: Any, **attributes: Any) -> Any:
        """See `DuckContext.op`; once this graph was itself the ``g`` of symbolic functions."""
        return self.current().op(name, *inputs, **attributes)

    def at(self, operator: str, *inputs: Any, **attributes: Any) -> Any:
        """See `DuckContext.aten_op`."""
        return self.current().aten_op(operator, *inputs, **attributes)

    def requires_grad(self, value: DuckValue) -> bool:
        """Whether PyTorch would differentiate with respect to it, or to something that it is computed from."""
        if value.is_pseudo:
            return any(self.requires_grad(item) for item in value.node().inputs())
        pending, seen = [value.ir], set()
        while pending:
            item = pending.pop()
            if id(item) in self._with_grad:
                return True
            producer = item.producer()
            if producer is not None and id(producer) not in seen:
                seen.add(id(producer))
                pending += [source for source in producer.inputs if source is not None]
        return False

    # Nodes with blocks, which these functions fill after they have made the node

    def open(self, node: ir.Node) -> EmittedNode:
        """Notes a node whose blocks are still to come."""
        found = self.node_of(node)
        self._open.append(found)
        return found

    def block_input(self, owner: DuckNode | None, index: int) -> DuckValue:
        """Returns a new input of a block of a node."""
        if owner is None or owner.kind() not in OPEN_KINDS:
            raise NodeError(f"a block of {owner.kind() if owner else 'the graph'} takes no inputs")
        dtype, rank = input_type(owner, index)
        shape = None if rank is None else [self.builder.symbols.fresh() for _ in range(rank)]
        kind = None if dtype is None else ir.TensorType(dtype)
        value = ir.Value(name=self.builder.unique("arg"), type=kind, shape=None if shape is None else ir.Shape(shape))
        return self.value(value)

    def finish_producers(self, values: Sequence[Value]) -> None:
        """Closes those nodes that make one of `values` and are still open."""
        producers = {id(value.ir.producer()) for value in values if not (isinstance(value, DuckValue) and value.is_pseudo)}
        positions = [position for position, node in enumerate(self._open) if id(node.ir) in producers]
        if positions:
            self._close(self._open[positions[0] :])

    def _close(self, nodes: Sequence[EmittedNode]) -> None:
        for node in reversed(nodes):  # a node in a block was made after the one around it
            self._open.remove(node)
            close_node(self, node)
