"""Calls of modules become calls of ONNX local functions, one function for each structure of a module."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._builder import own_origin
from onnx_exporter._function_forms import PLAIN, annotated_attributes, contents_of, form_of, value_attribute
from onnx_exporter._module_calls import Call, Item, calls_of
from onnx_exporter._nodes import captured_by, graphs_of, with_inner
from onnx_exporter._warnings import warn
from onnx_exporter.errors import ArgumentError

INFERRED = "inferred::"
"""What the names of attributes begin with that stand for a constant in a function's body."""


def select_modules(model: Any, given: bool | Collection[type[torch.nn.Module]]) -> dict[str, torch.nn.Module]:
    """Returns the modules that the argument `export_modules_as_functions` means, by path ("" for the model itself).

    Args:
        model: The model.
        given: False for none, True for all, or module classes.

    Raises:
        ArgumentError: If the model is no module.
    """
    if given is False:
        return {}
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError(f"export_modules_as_functions needs a torch.nn.Module as the model, not {type(model).__name__}")
    modules = model.named_modules(remove_duplicate=False)
    return {path: module for path, module in modules if given is True or type(module) in given}


def extract_functions(
    model: ir.Model,
    modules: Mapping[str, torch.nn.Module],
    constants: Collection[ir.Value] = (),
    versions: Mapping[str, int] | None = None,
) -> None:
    """Makes a local function of each call of `modules`, in place.

    The function's domain is the Python module of the class and its name that of the class. A call of the same class with
    another structure (other operators, connections or element types in it) has a function ``Name.1``, ``Name.2``, ...
    Inputs are the values that the call uses, in order, then the weights. Public attributes with an annotation in the class,
    if they hold numbers, strings or lists of these, are attributes of the function and of its calls; constants of the body
    that differ between calls are attributes ``inferred::NAME``.

    Args:
        model: The finished model. Its nodes carry the calls around them.
        modules: The modules by path.
        constants: Its small constants, which a body repeats; other initializers are inputs of functions.
        versions: Versions of the functions' domains; 1 for those that are not named.
    """
    small = set(constants)
    items, inline = calls_of(model.graph, modules.keys(), small.__contains__)
    if inline:
        warn(
            f"export_modules_as_functions leaves {', '.join(map(repr, inline))} as they are: something outside of the call "
            "stands between its parts, so that it cannot be one node",
        )
    _Extraction(model, modules, small, versions or {}).rebuild(items)


@dataclasses.dataclass(eq=False)
class _Structure:
    """Calls that one function can stand for.

    Attributes:
        domain: The function's domain.
        name: Its name.
        calls: The calls.
        names: For each place of a constant that differs between calls, the attribute that gives it.
    """

    domain: str
    name: str
    calls: list[Call] = dataclasses.field(default_factory=list)
    names: dict[Any, str] | None = None


_Slot = tuple[str, ir.Attr]
"""A constant in a body: a name for it, and what a call has there."""


class _Extraction:
    def __init__(
        self, model: ir.Model, modules: Mapping[str, torch.nn.Module], small: set[ir.Value], versions: Mapping[str, int]
    ) -> None:
        self._model = model
        self._versions = versions
        self._modules = modules
        self._small = small
        self._structures: dict[Any, _Structure] = {}
        self._structure_of: dict[Call, _Structure] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._node_names = {node.name or "" for node in model.graph.all_nodes()}

    def rebuild(self, items: Sequence[Item]) -> None:
        """Writes the items as the model's graph, and their functions."""
        for call in _innermost_first(items):
            self._classify(call)
        graph = self._model.graph
        for structure in self._structures.values():
            function = self._function(structure)
            self._model.functions[function.identifier()] = function
            graph.opset_imports.setdefault(structure.domain, self._versions.get(structure.domain, 1))
        body = _Body(self, {})
        nodes = body.emit(items, None)
        graph.remove(list(graph))
        graph.extend(nodes)
        for position, output in enumerate(graph.outputs):
            graph.outputs[position] = body.env.get(output, output)
        used = {value for node in nodes for value in [*node.inputs, *captured_by(node)]} | set(graph.outputs)
        for value in self._small - used:
            graph.initializers.pop(value.name or "", None)

    def _classify(self, call: Call) -> None:
        """Finds the structure of a call; those of the calls inside it are known."""
        kind = type(self._modules[call.path])
        key = (kind.__module__, kind.__name__, *self._key(call))
        structure = self._structures.get(key)
        if structure is None:
            count = self._counts.get(key[:2], 0)
            self._counts[key[:2]] = count + 1
            name = f"{kind.__name__}.{count}" if count else kind.__name__
            structure = self._structures[key] = _Structure(kind.__module__, name)
        structure.calls.append(call)
        self._structure_of[call] = structure

    def _key(self, call: Call) -> tuple[Any, ...]:
        """What calls have in common that one function can stand for: all but the contents of constants."""
        numbers: dict[ir.Value, Any] = {value: ("input", position) for position, value in enumerate(call.inputs)}

        def place(value: ir.Value | None) -> Any:
            return None if value is None else numbers.get(value, ("constant", value.dtype))

        parts: list[Any] = [len(call.inputs)]
        for index, item in enumerate(call.items):
            if isinstance(item, Call):
                annotated = tuple(self._annotated(item))
                parts.append((self._structure_of[item], annotated, *map(place, item.inputs)))
            else:
                attributes = tuple(sorted((name, form_of(attr, place)) for name, attr in item.attributes.items()))
                parts.append((item.domain, item.op_type, attributes, *map(place, item.inputs)))
            numbers |= {value: (index, position) for position, value in enumerate(item.outputs)}
        return (*parts, tuple(map(place, call.outputs)))

    # Constants of a body

    def _annotated(self, call: Call) -> dict[str, ir.Attr]:
        return annotated_attributes(self._modules[call.path])

    def attributes(self, call: Call) -> dict[str, ir.Attr]:
        """The attributes of the node that calls a function."""
        names = self.names(self._structure_of[call])
        slots = self._slots(call)
        inferred = {name: _renamed(slots[place][1], name) for place, name in names.items()}
        return self._annotated(call) | inferred

    def names(self, structure: _Structure) -> dict[Any, str]:
        """For each place of a constant that differs between the calls of a structure, the attribute that gives it."""
        if structure.names is None:
            structure.names = {}
            rows = [self._slots(call) for call in structure.calls]
            known: dict[tuple[Any, ...], str] = {}
            for place, (hint, _) in rows[0].items():
                contents = tuple(contents_of(row[place][1]) for row in rows)
                if len(set(contents)) > 1:
                    if contents not in known:
                        known[contents] = _unique(f"{INFERRED}{hint}", set(known.values()))
                    structure.names[place] = known[contents]
        return structure.names

    def _slots(self, call: Call) -> dict[Any, _Slot]:
        """The constants of a body that may differ between calls, by their place."""
        slots: dict[Any, _Slot] = {}
        for index, item in enumerate(call.items):
            if isinstance(item, Call):
                name = self._structure_of[item].name
                for key, attribute in self.attributes(item).items():
                    slots[index, key] = (f"{name}_{key.removeprefix(INFERRED)}", attribute)
                continue
            for key, attribute in item.attributes.items():
                if attribute.type in PLAIN:
                    slots[index, key] = (f"{item.op_type}_{key}", attribute)
            for position, value in enumerate(item.inputs):
                if value is not None and value in self._small:
                    slots[index, position] = ("Constant_value", value_attribute(value))
        return slots

    # Writing

    def _function(self, structure: _Structure) -> ir.Function:
        call = structure.calls[0]
        inputs = [ir.Value(name=value.name) for value in call.inputs]
        body = _Body(self, dict(zip(call.inputs, inputs, strict=True)))
        nodes = body.emit(call.items, self.names(structure))
        imports = self._model.graph.opset_imports
        domains = {node.domain: imports.get(node.domain, 1) for node in with_inner(nodes)}
        graph = ir.Graph(
            inputs,
            [body.env[value] for value in call.outputs],
            nodes=nodes,
            opset_imports={"": imports[""]} | domains,
            name=structure.name,
        )
        names = {name: attr.type for call in structure.calls for name, attr in self.attributes(call).items()}
        return ir.Function(
            structure.domain, structure.name, graph=graph, attributes=[ir.Attr(name, kind, None) for name, kind in names.items()]
        )

    def call_node(self, call: Call, inputs: Sequence[ir.Value | None], outputs: Sequence[ir.Value], attributes: Any) -> ir.Node:
        """The node that calls a function."""
        structure = self._structure_of[call]
        name = _unique(f"{call.path}/{structure.name}" if call.path else structure.name, self._node_names)
        self._node_names.add(name)
        metadata = own_origin(module=call.path).metadata()
        return ir.Node(structure.domain, structure.name, inputs, attributes, outputs=outputs, name=name, metadata_props=metadata)

    def is_small(self, value: ir.Value) -> bool:
        """Whether a value is a constant that a body repeats."""
        return value in self._small


class _Body:
    """Writes items as nodes, for the graph or for a function.

    Attributes:
        env: For each value of the original graph the one that stands for it.
    """

    def __init__(self, extraction: _Extraction, env: dict[ir.Value, ir.Value]) -> None:
        self._extraction = extraction
        self.env = env
        self._constants: dict[Any, ir.Value] = {}
        self._constant_nodes: list[ir.Node] = []

    def emit(self, items: Sequence[Item], names: Mapping[Any, str] | None) -> list[ir.Node]:
        """Returns the nodes. `names` has the attributes that give constants; None is for the graph, which has its own."""
        nodes = []
        for index, item in enumerate(items):
            inputs = [self._input(value, (index, position), names) for position, value in enumerate(item.inputs)]
            typed = names is None
            outputs = [
                ir.Value(name=value.name, type=value.type if typed else None, shape=value.shape if typed else None)
                for value in item.outputs
            ]
            attributes = self._extraction.attributes(item) if isinstance(item, Call) else item.attributes
            given = [_reference(attr, names, (index, key)) for key, attr in attributes.items()]
            if isinstance(item, Call):
                nodes.append(self._extraction.call_node(item, inputs, outputs, given))
            else:
                nodes.append(_copy(item, inputs, outputs, [self._with_own_graphs(attr, names) for attr in given]))
            self.env |= zip(item.outputs, outputs, strict=True)
        return [*self._constant_nodes, *nodes]

    def _input(self, value: ir.Value | None, place: Any, names: Mapping[Any, str] | None) -> ir.Value | None:
        if value is None or value in self.env:
            return None if value is None else self.env[value]
        if names is None or not self._extraction.is_small(value):
            return value
        attribute = _reference(value_attribute(value), names, place)
        key = attribute.ref_attr_name if attribute.is_ref() else value
        if key not in self._constants:
            made = ir.Value(name=value.name if key is value else f"{value.name}/{key}")
            metadata = own_origin().metadata()
            node = ir.Node("", "Constant", [], [attribute], outputs=[made], name=made.name, metadata_props=metadata)
            self._constant_nodes.append(node)
            self._constants[key] = made
        return self._constants[key]

    def _with_own_graphs(self, attribute: ir.Attr, names: Mapping[Any, str] | None) -> ir.Attr:
        graphs = [self._graph(graph, names) for graph in graphs_of(attribute)]
        if not graphs:
            return attribute
        is_one = attribute.type is ir.AttributeType.GRAPH
        return ir.AttrGraph(attribute.name, graphs[0]) if is_one else ir.AttrGraphs(attribute.name, graphs)

    def _graph(self, graph: ir.Graph, names: Mapping[Any, str] | None) -> ir.Graph:
        """A copy of a sub-graph that uses the new values."""
        copy = graph.clone(allow_outer_scope_values=True)
        for node in copy.all_nodes():
            for position, value in enumerate(node.inputs):
                if value is not None and (new := self._input(value, None, names)) is not value:
                    node.replace_input_with(position, new)
            for output in node.outputs if names is not None else ():
                output.shape = None  # it may be another one in another call
        return copy


def _unique(stem: str, taken: Collection[str]) -> str:
    """A name that is not taken."""
    name, number = stem, 0
    while name in taken:
        number += 1
        name = f"{stem}_{number}"
    return name


def _innermost_first(items: Sequence[Item]) -> Iterator[Call]:
    for item in items:
        if isinstance(item, Call):
            yield from _innermost_first(item.items)
            yield item


def _copy(node: ir.Node, inputs: Sequence[Any], outputs: Sequence[ir.Value], attributes: Sequence[ir.Attr]) -> ir.Node:
    return ir.Node(
        node.domain,
        node.op_type,
        inputs,
        attributes,
        outputs=outputs,
        name=node.name,
        doc_string=node.doc_string,
        metadata_props=dict(node.metadata_props),
    )


def _renamed(attribute: ir.Attr, name: str) -> ir.Attr:
    return ir.Attr(name, attribute.type, attribute.value)


def _reference(attribute: ir.Attr, names: Mapping[Any, str] | None, place: Any) -> ir.Attr:
    """The attribute itself or, if it differs between calls, a reference to the function's."""
    if names is None or place not in names:
        return attribute
    return ir.RefAttr(attribute.name, names[place], attribute.type)
