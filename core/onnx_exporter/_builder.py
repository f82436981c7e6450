"""Grows an ONNX graph: checks each node against the schema at once and infers its outputs."""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onnx_exporter import _dims, _elements, _inference
from onnx_exporter._attributes import make_attributes
from onnx_exporter._values import Dim, Value
from onnx_exporter._version import OWN_DISTRIBUTION, core_version


class NodeError(Exception):
    """A node does not fit its schema: a mistake in the symbolic function."""


class TypeNotSupported(Exception):  # noqa: N818 - not an error of the program: the next provider may do better
    """The operator does not take an input's element type at the target opset."""


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """What a node came from. Added in 0.1.

    Attributes:
        plugin: Entry-point name of the plugin.
        function: The symbolic function, ``module.name``.
        line: ``file:line`` in it.
        module: Path of the module in the user's model.
        source: ``file:line`` in the user's model.
        op: The torch operator.
        plugin_version: Version of the plugin's distribution (of a file: what tells its contents), "" where it has none.
        via: The functions of plugins, outermost first, that asked for it by ``g.call`` or ``g.previous``, each
            ``plugin:module.name`` and joined by " > ".
        edited: The passes that have changed it, in the same form.
    """

    plugin: str = ""
    function: str = ""
    line: str = ""
    module: str = ""
    source: str = ""
    op: str = ""
    plugin_version: str = ""
    via: str = ""
    edited: str = ""

    @property
    def plugins(self) -> set[str]:
        """The plugins that had a part in it."""
        asked = (step.partition(":")[0] for steps in (self.via, self.edited) for step in steps.split(STEP))
        return {self.plugin, *asked} - {""}

    def metadata(self) -> dict[str, str]:
        """The non-empty facts, as the file's ``metadata_props`` carry them."""
        facts = ((key, getattr(self, name)) for name, key in _METADATA_KEYS)
        return {key: value for key, value in facts if value}

    @staticmethod
    def key(name: str) -> str:
        """The key of a fact in a node's ``metadata_props``."""
        return f"onnx_exporter.{name}"


STEP = " > "
"""Between the functions of `Origin.via`."""

CALLS = "onnx_exporter.calls"
"""Key of a node's `meta`, which no file holds: the calls of modules around what it came from."""

_PASSED_OVER = ("onnx_exporter._builder", "onnx_exporter._context", "contextlib")
"""Modules through which nodes are made, but which ask for none themselves."""


@functools.cache
def place_in_package(module: str, filename: str) -> str:
    """The path of a source file from its top package on, so that a file does not tell where plugins are installed."""
    inside = module.replace(".", "/")
    plain = filename.replace("\\", "/")
    for ending in (f"{inside}.py", f"{inside}/__init__.py"):
        if plain.endswith(f"/{ending}"):
            return ending
    return filename


def own_origin(module: str = "", source: str = "", op: str = "") -> Origin:
    """Returns the origin of a node that the exporter itself makes, in the function that asks for it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "") in _PASSED_OVER:
        frame = frame.f_back
    name, code = frame.f_globals.get("__name__", ""), frame.f_code
    line = f"{place_in_package(name, code.co_filename)}:{frame.f_lineno}"
    return Origin(OWN_DISTRIBUTION, f"{name}.{code.co_name}", line, module, source, op, core_version())


_METADATA_KEYS = tuple((field.name, Origin.key(field.name)) for field in dataclasses.fields(Origin))


@functools.cache
def schema_of(op_type: str, domain: str, opset: int) -> onnx.defs.OpSchema | None:
    """The schema of an operator at an opset, or None if it has none there."""
    try:
        return onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None


@functools.cache
def first_opset(op_type: str) -> int | None:
    """The opset in which ai.onnx got an operator, or None if it never did."""
    versions = [
        schema.since_version
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name == op_type and not schema.domain
    ]
    return min(versions, default=None)


class Builder:
    """The ONNX graph that is being built.

    Args:
        opset: Target version of ai.onnx.
        domain_versions: Versions of other domains, whatever symbolic functions declare.
        shares_sizes: Whether a call of a module uses what another one has computed of a size.
    """

    def __init__(self, opset: int, domain_versions: Mapping[str, int] | None = None, *, shares_sizes: bool = True) -> None:
        self.opset = opset
        self.shares_sizes = shares_sizes
        self.domains: dict[str, int] = {"": opset}
        self._domain_versions = dict(domain_versions or {})
        self.initializers: dict[str, Value] = {}
        self.symbols = _dims.Symbols()
        self.symbol_names: dict[str, str] = {}
        self.nodes: list[ir.Node] = []
        self.functions: dict[ir.OperatorIdentifier, ir.Function] = {}
        self._names: set[str] = set()
        self._counters: dict[str, int] = defaultdict(int)
        self._constants: dict[tuple[Any, ...], Value] = {}
        self._weights: dict[tuple[Any, ...], Value] = {}
        self._made: list[dict[tuple[Any, ...], Value]] = [{}]

    # Names

    def reserve(self, name: str) -> None:
        """Keeps a name for an input, an output or a weight."""
        self._names.add(name)

    def unique(self, name: str) -> str:
        """Returns `name`, with a number where it is taken already, and takes it."""
        candidate = name
        while candidate in self._names:
            self._counters[name] += 1
            candidate = f"{name}_{self._counters[name]}"
        self._names.add(candidate)
        return candidate

    def symbol(self, name: str) -> ir.SymbolicDim:
        """Returns the symbol of an axis that the user named, usable in expressions whatever the name is."""
        safe = name if name.isidentifier() else "dim_" + "".join(c if c.isalnum() else "_" for c in name)
        while self.symbol_names.setdefault(safe, name) != name:
            safe += "_"
        return ir.SymbolicDim(safe)

    def declare_domain(self, domain: str, version: int) -> None:
        """Sets the version of a custom domain, unless the user did."""
        self.domains[domain] = self._domain_versions.get(domain, version)

    # Values

    def input(self, name: str, kind: ir.TypeProtocol, shape: Sequence[Dim] | None) -> Value:
        """Adds a graph input of a type; the shape is that of a tensor in it."""
        self.reserve(name)
        return Value(ir.Value(name=name, type=kind, shape=None if shape is None else ir.Shape(shape)))

    def constant(self, array: np.ndarray[Any, Any], *, is_number: bool = False) -> Value:
        """Returns a small constant; equal ones are stored once."""
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes(), is_number)
        value = self._constants.get(key)
        if value is None:
            value = self._constants[key] = self.weight("constant", ir.tensor(array), key, is_number=is_number)
        return value

    def text(self, text: str) -> Value:
        """Returns a constant string of rank 0."""
        return self.weight("constant", ir.StringTensor([text.encode()], shape=ir.Shape([])), ("string", text))

    @property
    def constants(self) -> list[ir.Value]:
        """The small constants, as opposed to the model's weights."""
        return [value.ir for value in self._constants.values()]

    def weight(self, name: str, tensor: ir.TensorProtocol, key: tuple[Any, ...], *, is_number: bool = False) -> Value:
        """Returns an initializer; the same `key` (tied weights) is stored once."""
        value = self._weights.get(key)
        if value is None:
            name = self.unique(name)
            inner = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(_sizes(tensor)), const_value=tensor)
            value = self._weights[key] = self.initializers[name] = Value(inner, is_number=is_number)
        return value

    # Nodes

    def add(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any],
        *,
        outputs: int = 1,
        domain: str = "",
        origin: Origin | None = None,
        calls: tuple[str, ...] = (),
        fold: bool = True,
        keep_empty: bool = False,
    ) -> tuple[Value, ...]:
        """Appends a node or, if `fold`, returns what is known without one.

        Without an `origin` it comes from the function that asks for it. Inputs that are left out at the end are dropped
        unless `keep_empty`. `calls` are those of modules around what the node comes from.

        Raises:
            NodeError: If the node does not fit its schema.
            TypeNotSupported: If the operator does not take an input's type, or make the output's, at the target opset.
        """
        origin = origin or own_origin()
        while inputs and inputs[-1] is None and not keep_empty:
            inputs = inputs[:-1]
        schema = self._schema(op_type, domain)
        try:
            attrs = make_attributes(schema, attributes)
        except ValueError as error:
            raise NodeError(f"{op_type}: {error}") from None
        if schema is not None:
            check_node(schema, inputs, outputs)
            _check_target(schema, attrs)
        elements = key = None
        if fold and outputs == 1 and not domain and op_type in _elements.RULES:
            elements = _elements.output_elements(op_type, inputs, {name: attr.value for name, attr in attrs.items()})
            if elements is not None:
                key = (
                    op_type,
                    tuple(None if value is None else id(value.ir) for value in inputs),
                    repr(sorted((k, v.value) for k, v in attrs.items())),
                    () if self.shares_sizes else calls,
                )
                for made in self._made:
                    if key in made:
                        return (made[key],)
        scope = f"{origin.module}/" if origin.module else ""
        name = self.unique(scope + op_type)
        results = [ir.Value(name=name if outputs == 1 else self.unique(f"{name}.{index}")) for index in range(outputs)]
        node = ir.Node(
            domain,
            op_type,
            [None if value is None else value.ir for value in inputs],
            list(attrs.values()),
            outputs=results,
            name=name,
            metadata_props=origin.metadata(),
        )
        node.meta[CALLS] = calls
        values = tuple(Value(result) for result in results)
        if schema is not None:
            try:
                _inference.infer(schema, node, inputs, values, self)
            except onnx.shape_inference.InferenceError as error:
                raise NodeError(f"{op_type}: {error}") from None
        if elements is not None and (values[0].rank or 0) <= 1 and values[0].rank is not None:
            if all(isinstance(item, int) for item in elements):
                self._names.discard(name)
                return (self.constant(_as_array(elements, values[0])),)
            values[0]._elements = elements
            assert key is not None
            self._made[-1][key] = values[0]
        self.nodes.append(node)
        return values

    def rollback(self, count: int) -> None:
        """Drops the nodes after the first `count`, and what is remembered of their results."""
        dropped = {id(output) for node in self.nodes[count:] for output in node.outputs}
        del self.nodes[count:]
        made = self._made[-1]
        for key in [key for key, value in made.items() if id(value.ir) in dropped]:
            del made[key]

    def _schema(self, op_type: str, domain: str) -> onnx.defs.OpSchema | None:
        if domain:
            if domain not in self.domains:
                self.declare_domain(domain, 1)
            return schema_of(op_type, domain, self.domains[domain])
        schema = schema_of(op_type, "", self.opset)
        if schema is None or schema.deprecated:
            since = first_opset(op_type)
            if since is None:
                raise NodeError(f"ONNX has no operator {op_type!r}")
            raise NodeError(
                f"{op_type} is not in opset {self.opset} (it came in {since}); the table's opset is too low, or use g.opset"
            )
        return schema

    def add_function(self, function: ir.Function) -> None:
        """Has the file hold a function, if nodes call it, and declares the domains that it uses.

        Raises:
            NodeError: If it holds another one by that name.
        """
        known = self.functions.setdefault(function.identifier(), function)
        if known is not function and ir.serde.serialize_function(known) != ir.serde.serialize_function(function):
            raise NodeError(f"there are two different functions {function.domain}::{function.name}")
        for domain, version in function.opset_imports.items():
            if domain not in self.domains:
                self.declare_domain(domain, version)

    @contextmanager
    def block(self, nodes: list[ir.Node] | None = None) -> Iterator[list[ir.Node]]:
        """While active, nodes go into a sub-graph; yields the list that they go into.

        Args:
            nodes: A list to go on with. What is around it may have grown since, behind its node, so nothing of that is shared.
        """
        outer, self.nodes = self.nodes, [] if nodes is None else nodes
        made, self._made = self._made, [*self._made, {}] if nodes is None else [{}]
        try:
            yield self.nodes
        finally:
            self._made = made
            self.nodes = outer


def _sizes(tensor: ir.TensorProtocol) -> list[int]:
    return [dim for dim in tensor.shape if isinstance(dim, int)]


def _as_array(elements: Sequence[Any], like: Value) -> np.ndarray[Any, Any]:
    dtype = np.int32 if like.ir.dtype == ir.DataType.INT32 else np.int64
    array = np.asarray(elements, dtype)
    return array.reshape(()) if like.rank == 0 else array


@functools.cache
def _allowed_types(schema: onnx.defs.OpSchema) -> tuple[tuple[str, frozenset[str]], ...]:
    """Each formal input's type variable and the types it may have."""
    return tuple((item.type_str, frozenset(item.types)) for item in schema.inputs)


def check_node(schema: onnx.defs.OpSchema, inputs: Sequence[Value | None], outputs: int) -> None:
    """Checks counts and element types against the schema."""
    if not schema.min_input <= len(inputs) <= schema.max_input:
        raise NodeError(f"{schema.name} takes {_counted(schema.min_input, schema.max_input)} inputs, got {len(inputs)}")
    if not schema.min_output <= outputs <= schema.max_output:
        raise NodeError(f"{schema.name} has {_counted(schema.min_output, schema.max_output)} outputs, asked for {outputs}")
    formal = _allowed_types(schema)
    bound: dict[str, str] = {}
    last = len(formal) - 1
    heterogeneous = last >= 0 and not schema.inputs[last].is_homogeneous
    for index, value in enumerate(inputs):
        if value is None or value.ir.dtype is None or not isinstance(value.ir.type, ir.TensorType):
            continue
        variable, allowed = formal[min(index, last)]
        kind = f"tensor({_TYPE_NAMES[value.ir.dtype]})"
        if kind not in allowed:
            operator = f"{schema.name} ({schema.domain or 'ai.onnx'} {schema.since_version})"
            raise TypeNotSupported(f"{operator} takes no {kind[7:-1]} as input {index}")
        if index >= last and heterogeneous:
            continue
        if bound.setdefault(variable, kind) != kind:
            raise NodeError(
                f"{schema.name}: input {index} is {kind[7:-1]}, but must be {bound[variable][7:-1]} like the one before"
            )


def _counted(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _check_target(schema: onnx.defs.OpSchema, attributes: Mapping[str, ir.Attr]) -> None:
    """Checks an element type that an attribute asks for (Cast, RandomNormal, ...) against the schema."""
    for name in ("to", "dtype"):
        if name in attributes and attributes[name].type == ir.AttributeType.INT:
            kind = _TYPE_NAMES[ir.DataType(attributes[name].as_int())]
            if not any(f"tensor({kind})" in allowed for allowed in schema.outputs[0].types):
                raise TypeNotSupported(f"{schema.name} (ai.onnx {schema.since_version}) makes no {kind}")


_TYPE_NAMES = {dtype: dtype.name.lower() for dtype in ir.DataType}
