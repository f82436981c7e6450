"""The graph that code written for torch.onnx sees: our values and nodes, seen as those of TorchScript."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

from onnx_exporter._builder import CALLS, Builder, NodeError, schema_of
from onnx_exporter._inference import infer
from onnx_exporter._source.graph import map_leaves
from onnx_exporter._source.schema import to_enum
from onnx_exporter._values import Value
from onnx_exporter.compat._duck_attributes import to_torch
from onnx_exporter.compat._duck_blocks import OPEN_KINDS, close_node, input_type
from onnx_exporter.compat._duck_nodes import DuckBlock, DuckNode, EmittedNode
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
        self.block = DuckBlock(self)
        named = {source: value for source, value in engine.env.items() if source.constant is not None and source.name}
        self.weights: dict[str, Any] = {source.name: source.constant for source in named}
        device = next((weight.device for weight in self.weights.values()), torch.device("cpu"))
        self.types = TypeTable(self.builder.symbols.fresh, device)
        self._parameters = {id(value.ir) for value in named.values()}
        self._with_grad = {id(value.ir) for source, value in engine.env.items() if source.type.requires_grad}
        self._values: dict[int, DuckValue] = {}
        self._nodes: dict[int, EmittedNode] = {}
        self._open: list[EmittedNode] = []
        self._changed: list[EmittedNode] = []
        self._before: list[ir.Node] | None = None
        self._contexts: list[DuckContext] = []
        self.examples: dict[int, int] = {}
        """By the id of a value of the ONNX graph: what a size is in the example, for where it must be fixed."""

    # The functions that run

    @contextmanager
    def running(self, context: DuckContext) -> Iterator[None]:
        """While active, `context` is the ``g`` of the symbolic function that runs; at its end no node is left unfinished."""
        self._contexts.append(context)
        outer, self._open, self._before = (self._open, self._before), [], None
        try:
            yield
            self._infer_changed()
            self._close(self._open)
        except Exception:
            self._put_back()
            raise
        finally:
            self._open, self._before = outer
            self._contexts.pop()

    def _put_back(self) -> None:
        """Has nodes stand where they stood when the function began: one that declines leaves no trace."""
        if self._before is not None:
            self.builder.nodes[:] = self._before
        self._changed = []

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
        if isinstance(argument, np.ndarray | np.generic):
            return self.constant(torch.from_numpy(np.array(argument)))
        if isinstance(argument, str):
            return self.text(argument)
        if isinstance(argument, list | tuple):
            return self._list(argument)
        kind = torch._C.DeviceObjType.get() if isinstance(argument, torch.device) else torch._C.AnyType.get()
        return self.pseudo("prim::Constant", kind, attributes={"value": ("ival", argument)})

    def kept(self, argument: Any) -> Any:
        """Returns an argument of an ``autograd.Function`` as it came, but for the values in it.

        Inside lists, tuples and dicts a number that is known stays a number.
        """
        if isinstance(argument, Value):
            return self.value(argument)

        def leaf(item: Any) -> Any:
            if not isinstance(item, Value):
                return item
            return item.item() if item.is_number and item.is_constant else self.value(item)

        return map_leaves(argument, leaf)

    def example_of(self, value: Value) -> int | None:
        """Returns what a size in a list, tuple or dict that an ``autograd.Function`` was given is in the example."""
        return self.examples.get(id(value.ir))

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

    def nodes_in_place(self) -> list[ir.Node] | ir.Graph:
        """Returns what nodes are put into or taken out of, anywhere in it."""
        if self._before is None:
            self._before = list(self.builder.nodes)
        return self.builder.nodes

    def open_nodes(self) -> list[EmittedNode]:
        """Returns the nodes whose blocks are still being filled."""
        return list(self._open)

    def inputs(self) -> list[DuckValue]:
        """The model's inputs, and then its weights."""
        made = {id(value.ir): value for value in self.engine.env.values() if value.name and value.ir.producer() is None}
        return [self.value(value) for value in made.values() if not value.is_constant or id(value.ir) in self._parameters]

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[DuckNode]:  # noqa: N802 - the names are PyTorch's
        """Returns the nodes of a kind, also those in blocks if `recurse`."""
        found, pending = [], self.nodes()
        while pending:
            node = pending.pop(0)
            found += [node] if node.kind() == kind else []
            pending[:0] = [inner for block in node.blocks() for inner in block.nodes()] if recurse else []
        return found

    def findNode(self, kind: str, recurse: bool = True) -> DuckNode | None:  # noqa: N802
        """Returns the first node of a kind, or None."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    # Nodes that are made first and put into the graph afterwards

    def create(self, kind: str, *more: Sequence[DuckValue] | int) -> DuckNode:
        """Returns a new node, with inputs and a number of outputs if they are given. It is not in the graph yet.

        What `DuckNode.insertBefore`, `insertNode` and their like do with it. Its outputs get types when the symbolic function
        ends, unless that sets them.
        """
        inputs = [value for item in more if not isinstance(item, int) for value in item]
        count = next((item for item in more if isinstance(item, int)), 1)
        domain, _, name = kind.rpartition("::")
        if domain == "prim":
            node = DuckNode(self, kind, inputs)
            type_ = list_type(inputs) if name == "ListConstruct" else torch._C.AnyType.get()
            node._outputs = [DuckValue(self, nothing(), node, type_) for _ in range(count)]
            return node
        domain = "" if domain == "onnx" else domain
        if domain not in self.builder.domains:
            self.builder.declare_domain(domain, 1)
        unique = [self.builder.unique(name if count == 1 else f"{name}.{index}") for index in range(count)]
        values = [None if value.is_pseudo and value.node().mustBeNone() else value.ir for value in inputs]
        made = ir.Node(domain, name, values, outputs=[ir.Value(name=item) for item in unique], name=unique[0])
        if self._contexts:
            context = self._contexts[-1].context
            made.metadata_props.update(context._origin().metadata())
            made.meta[CALLS] = context.node.location.calls
        node = self.node_of(made)
        self.changed(node)
        return node

    def insertNode(self, node: DuckNode) -> DuckNode:  # noqa: N802
        """Puts a node at the end of the graph."""
        return self.block.insertNode(node)

    appendNode = insertNode  # noqa: N815

    def insertConstant(self, value: Any) -> DuckValue:  # noqa: N802
        """Returns a constant."""
        return self.argument(value)

    def lint(self) -> None:
        """Nothing is to be checked: each node is when it is made, and the file at the end."""

    def changed(self, node: EmittedNode) -> None:
        """Notes a node whose outputs may have other types than before."""
        self._changed.append(node)

    def replace_result(self, old: DuckValue, new: DuckValue) -> None:
        """Does nothing: what the model returns is not decided before all of it is converted."""

    def forget(self, node: EmittedNode) -> None:
        """Notes that a node is no more."""
        self._changed = [item for item in self._changed if item is not node]

    def _infer_changed(self) -> None:
        """Gives types to the outputs of nodes that were made without or changed since, and of what is computed from them."""
        nodes, self._changed = {id(node.ir): node.ir for node in self._changed}, []
        pending = list(nodes.values())
        while pending:
            users = [use.node for output in pending.pop().outputs for use in output.uses()]
            pending += [user for user in users if id(user) not in nodes]
            nodes.update({id(user): user for user in users})
        if nodes:
            places = {id(node): index for index, node in enumerate(self.builder.nodes)}
            for node in sorted(nodes.values(), key=lambda node: places.get(id(node), -1)):
                self._infer(node)

    def _infer(self, node: ir.Node) -> None:
        schema = schema_of(node.op_type, node.domain, self.builder.domains[node.domain])
        outputs = [self.value(output) for output in node.outputs]
        if schema is None or f"onnx::{node.op_type}" in OPEN_KINDS or any(output.is_typed for output in outputs):
            return
        for output in outputs:
            output.ir.shape = None
            output._elements = None
        try:
            infer(schema, node, [None if value is None else self.value(value) for value in node.inputs], outputs, self.builder)
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError) as error:
            raise NodeError(f"{node.op_type}: {error}") from None

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
