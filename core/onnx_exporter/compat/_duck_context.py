"""The ``g`` that code written for torch.onnx gets."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnx_exporter._attributes import make_attributes
from onnx_exporter._builder import CALLS, NodeError, TypeNotSupported, first_opset, schema_of
from onnx_exporter._context import GraphContext
from onnx_exporter._fallback import ATEN_DOMAIN
from onnx_exporter._values import Value
from onnx_exporter._warnings import warn
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._duck_blocks import OPEN_KINDS
from onnx_exporter.compat._duck_given import attributes_of, plain
from onnx_exporter.compat._duck_nodes import DuckBlock, DuckNode
from onnx_exporter.compat._duck_operands import with_equal_types
from onnx_exporter.compat._duck_values import DuckValue
from onnx_exporter.helpers import emit

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph

_FIRST_WITH_FUNCTIONS = 15


@dataclasses.dataclass(eq=False)
class DuckContext:
    """What ``torch.onnx``'s own ``GraphContext`` is; `context` is ours, whose methods it has too.

    Attributes:
        graph: The graph that is being built.
        block: The part of it that nodes go into.
        opset: Target version of ai.onnx.
        original_node: The captured call.
        params_dict: The model's weights by name.
        env: ONNX value by captured value.
        values_in_env: The values of `env`.
        new_nodes: The nodes made so far.
        context: Our own context of the call.
    """

    graph: DuckGraph
    block: DuckBlock
    opset: int
    original_node: DuckNode
    params_dict: Mapping[str, Any]
    env: Mapping[Any, Any]
    values_in_env: Any
    new_nodes: list[DuckNode] = dataclasses.field(default_factory=list)
    context: GraphContext = None  # type: ignore[assignment]  # always given, but must follow torch.onnx's fields

    def op(self, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Appends a node and returns its output, or a tuple of them where `outputs` is more than 1.

        Args:
            opname: ``"Relu"``, ``"com.vendor::Frob"``, or one of TorchScript's own such as ``"prim::ListConstruct"``.
            raw_args: Values, tensors, or None for an input that is left out.
            outputs: Number of outputs.
            kwargs: Attributes with the letter of their kind: ``axis_i=1``; None drops one.

        Raises:
            NodeError: If the node does not fit the ONNX schema at the target opset.
            ValueError: If the name of an attribute does not say of which kind it is.
        """
        domain, _, name = opname.rpartition("::")
        if domain == "onnx":
            domain = ""
        schema = None if domain else schema_of(name, "", self.opset)
        known = () if schema is None else schema.attributes
        attributes = attributes_of(kwargs, known, self.graph.example_of, self.original_node.location)
        inputs = [None if item is None else self.graph.argument(item) for item in raw_args]
        if domain == "prim" and name in _PRIMITIVES:
            return _PRIMITIVES[name](self, [item or self.graph.none() for item in inputs], outputs, attributes)
        if not domain and name == "Constant" and not inputs:
            return self._constant(attributes)
        if (domain, name) == ("aten", "ATen"):
            domain = ATEN_DOMAIN
        values = [None if item is None else self.materialised(item, self.block) for item in inputs]
        self.graph.finish_producers([value for value in values if value is not None])
        with self.graph.inside(self.block):
            made = self._add(domain, name, values, outputs, attributes)
        results = tuple(self.graph.value(value) for value in made)
        if results[0].ir.producer() is not None:
            self.new_nodes.append(results[0].node())
        return results[0] if outputs == 1 else results

    def aten_op(self, operator: str, *args: Any, overload_name: str = "", **kwargs: Any) -> Any:
        """Appends a node for an operator of ATen, which only a runtime with PyTorch inside can run."""
        return self.op("aten::ATen", *args, operator_s=operator, overload_name_s=overload_name, **kwargs)

    at = aten_op

    def onnxscript_op(self, onnx_fn: Any, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
        """Appends a call of a function of onnxscript, which the file then holds, once.

        Raises:
            NodeError: If the file cannot hold functions at the target opset.
        """
        if self.opset < _FIRST_WITH_FUNCTIONS:
            raise NodeError(f"{onnx_fn.name} is a function, which a file holds from opset {_FIRST_WITH_FUNCTIONS} on")
        for function in (onnx_fn, *onnx_fn.function_ir.get_called_functions().values()):
            self.graph.builder.add_function(ir.serde.deserialize_function(function.to_function_proto()))
        self.graph.builder.declare_domain(onnx_fn.opset.domain, onnx_fn.opset.version)
        return self.op(f"{onnx_fn.opset.domain}::{onnx_fn.name}", *raw_args, outputs=outputs, **kwargs)

    # What our own context has, in terms of these values

    def constant(self, value: Any, **options: Any) -> DuckValue:
        """See `GraphContext.constant`."""
        return self.graph.value(self.context.constant(value, **options))

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """See `GraphContext.call`."""
        return self._delegated(self.context.call, (name, *args), kwargs)

    def previous(self, *args: Any, **kwargs: Any) -> Any:
        """See `GraphContext.previous`."""
        return self._delegated(self.context.previous, args, kwargs)

    def _delegated(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        with self.graph.inside(self.block):
            made = function(*map(plain, args), **{name: plain(value) for name, value in kwargs.items()})
        if isinstance(made, list | tuple):
            return tuple(self.graph.argument(item) for item in made)
        return self.graph.argument(made)

    def in_block(self, block: DuckBlock) -> DuckContext:
        """Returns a context whose nodes go into a block."""
        return dataclasses.replace(self, block=block)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.context if hasattr(self.context, name) else self.graph, name)

    # Nodes

    def materialised(self, value: DuckValue, block: DuckBlock) -> Value | None:
        """Returns what stands for a value in the ONNX graph: for a list of numbers a vector, for one of tensors a sequence.

        None stands for None.

        Raises:
            NodeError: If nothing does.
        """
        node = value.node() if value.is_pseudo else None
        if node is None:
            return value
        if node.mustBeNone():
            return None
        if node.kind() == "prim::ListConstruct":
            items = node.inputs()
            numbers = not isinstance(value.type().getElementType(), torch._C.TensorType)
            context = self.in_block(block)
            if numbers or not items:
                ones = [context.op("Reshape", item, torch.tensor([1])) for item in items]
                made = context.op("Concat", *ones, axis_i=0) if ones else self.graph.constant(torch.empty(0, dtype=torch.int64))
            else:
                made = context.op("SequenceConstruct", *items)
            return self.graph.value(made)
        if node.kind() == "onnx::Constant":
            return self.graph.builder.text(node["value"])
        raise NodeError(f"a value of {node.kind()} cannot be an input of an ONNX node")

    def _add(
        self, domain: str, name: str, values: list[Value | None], outputs: int, attributes: dict[str, Any]
    ) -> Sequence[Value]:
        kind = f"{domain or 'onnx'}::{name}"
        schema = None if domain else schema_of(name, "", self.opset)
        if kind in OPEN_KINDS and not any(given.startswith(OPEN_KINDS[kind]) for given in attributes):
            made = self._unchecked("", name, values, outputs, attributes)
            producer = made[0].ir.producer()
            assert producer is not None
            self.graph.open(producer)
            return made
        if not domain and schema is None and first_opset(name) is None:
            warn(
                f"{name} is no operator of ONNX; only a runtime that was extended by it runs the file. A symbolic function "
                f"had better name a domain: g.op('com.vendor::{name}', ...)"
            )
            return self._unchecked("", name, values, outputs, attributes)
        try:
            if schema is not None:
                values = with_equal_types(schema, values, lambda value, dtype: emit.cast(self.context, value, dtype))
            added: Any = self.context.op(f"{domain}::{name}" if domain else name, *values, outputs=outputs, **attributes)
        except TypeNotSupported as error:
            raise NodeError(str(error)) from None
        return [added] if isinstance(added, Value) else list(added)

    def _unchecked(
        self, domain: str, name: str, values: list[Value | None], outputs: int, attributes: dict[str, Any]
    ) -> list[Value]:
        """Appends a node that no schema describes, or not yet."""
        builder, origin = self.graph.builder, self.context._origin()
        unique = builder.unique(f"{origin.module}/{name}" if origin.module else name)
        results = [ir.Value(name=unique if outputs == 1 else builder.unique(f"{unique}.{index}")) for index in range(outputs)]
        try:
            attrs = make_attributes(None, attributes)
        except ValueError as error:
            raise NodeError(f"{name}: {error}") from None
        inputs = [None if value is None else value.ir for value in values]
        node = ir.Node(domain, name, inputs, list(attrs.values()), outputs=results, name=unique, metadata_props=origin.metadata())
        node.meta[CALLS] = self.context.node.location.calls
        builder.nodes.append(node)
        return [Value(result) for result in results]

    def _constant(self, attributes: Mapping[str, Any]) -> DuckValue:
        ((name, given),) = attributes.items()
        if isinstance(given, str):
            return self.graph.text(given)
        dtype = {"value_float": torch.float32, "value_floats": torch.float32}.get(name.removesuffix("_f"))
        tensor = given if isinstance(given, torch.Tensor) else torch.as_tensor(given)
        return self.graph.constant(tensor.detach() if dtype is None else tensor.to(dtype))


@functools.cache
def context_class() -> type[DuckContext]:
    """Returns the class of ``g``: also a subclass of torch.onnx's, if this PyTorch has that."""
    module = _torch_onnx.find_module("torch.onnx._internal.torchscript_exporter.jit_utils", "torch.onnx._internal.jit_utils")
    theirs = getattr(module, "GraphContext", None)
    if theirs in (None, DuckContext):  # the latter where torch.onnx is our stand-in
        return DuckContext
    return type("GraphContext", (DuckContext, theirs), {})


# TorchScript's own operators, none of which becomes a node

_Primitive = Callable[[DuckContext, Sequence[DuckValue], int, Mapping[str, Any]], Any]


def _pack_list(g: DuckContext, inputs: Sequence[DuckValue], outputs: int, attributes: Mapping[str, Any]) -> Any:
    return g.graph.list_of(inputs)


def _pack_tuple(g: DuckContext, inputs: Sequence[DuckValue], outputs: int, attributes: Mapping[str, Any]) -> Any:
    return g.graph.tuple_of(inputs)


def _unpack(g: DuckContext, inputs: Sequence[DuckValue], outputs: int, attributes: Mapping[str, Any]) -> Any:
    parts = parts_of(g, inputs[0], outputs)
    return parts[0] if outputs == 1 else tuple(parts)


def _any_constant(g: DuckContext, inputs: Sequence[DuckValue], outputs: int, attributes: Mapping[str, Any]) -> Any:
    return g._constant(attributes) if attributes else g.graph.none()


def _same(g: DuckContext, inputs: Sequence[DuckValue], outputs: int, attributes: Mapping[str, Any]) -> Any:
    return inputs[0]


_PRIMITIVES: dict[str, _Primitive] = {
    "ListConstruct": _pack_list,
    "TupleConstruct": _pack_tuple,
    "ListUnpack": _unpack,
    "TupleUnpack": _unpack,
    "Constant": _any_constant,
    "NumToTensor": _same,
}


def parts_of(g: DuckContext, value: DuckValue, count: int) -> list[DuckValue]:
    """Returns the elements of a list, a tuple or a sequence."""
    if value.is_pseudo:
        return value.node().inputs()
    return [g.op("SequenceAt", value, torch.tensor(index)) for index in range(count)]
