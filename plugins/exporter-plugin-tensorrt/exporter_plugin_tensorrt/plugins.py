"""How a TensorRT plugin is declared, and how a call of an ``autograd.Function`` becomes its node."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx
import torch

from onnx_exporter import GraphContext, OpTable, RegistrationError, Value
from onnx_exporter.helpers import custom

DOMAIN = "TRT"
"""Domain of the nodes; TensorRT's parser looks only at their names."""


def plugin(
    name: str,
    *,
    inputs: Mapping[str, str | torch.dtype],
    outputs: Mapping[str, str | torch.dtype],
    type_sets: Mapping[str, Sequence[torch.dtype]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    version: str = "1",
    namespace: str = "",
) -> onnx.defs.OpSchema:
    """Returns what a plugin takes and gives. Added in 0.1.

    Args:
        name: Name in TensorRT's registry, ``"EfficientNMS_TRT"``.
        inputs: By name, the element type or the name of one of `type_sets`; a name that ends in ``?`` may be left out. TensorRT
            goes by their order, so that the names are yours to choose.
        outputs: Likewise.
        type_sets: Sets of element types by name; all inputs that share a name have one type.
        attributes: By name, the default, or its type for one that must be given.
        version: Version in TensorRT's registry.
        namespace: Namespace in TensorRT's registry.

    Raises:
        ValueError: If `name` is empty, an element type or the type of an attribute is unknown, version or namespace is no text or
            is among the attributes, or an attribute is named like an input.
    """
    own = {"plugin_version": version, "plugin_namespace": namespace}
    for key, value in own.items():
        short = key.removeprefix("plugin_")
        if not isinstance(value, str):
            raise ValueError(f"plugin {name!r}: {short} must be text, which TensorRT reads, not {value!r}")
        if key in (attributes or {}):
            raise ValueError(f"plugin {name!r}: {key!r} is written for every plugin; give it as {short}=...")
    for key in inputs:
        if key.rstrip("?") in (attributes or {}):
            raise ValueError(
                f"plugin {name!r}: {key!r} is an input and an attribute; TensorRT has no names of inputs, so rename that"
            )
    every = {**(attributes or {}), **own}
    return custom.schema(f"{DOMAIN}::{name}", inputs=inputs, outputs=outputs, type_sets=type_sets, attributes=every)


def table_for(
    function: type[torch.autograd.Function],
    schema: onnx.defs.OpSchema,
    *,
    sizes: Callable[..., Sequence[Sequence[custom.Dim | None]]] | None = None,
) -> OpTable:
    """Returns a table in which calls of `function` become nodes of a plugin. Added in 0.1.

    Parameters of ``forward`` (without ``ctx``) are inputs and attributes of the plugin by their names, in any order; None as an
    attribute means its default. Element types and ranks of the results are those that ``forward`` gives. A call that does not fit
    the plugin is an error of the export.

    Args:
        function: The class.
        schema: The plugin, as `plugin` returns it.
        sizes: Returns the sizes of each result, None for one that is not known; it gets the arguments of ``forward`` by name,
            tensors as `Value`, whose ``shape`` has symbols for dynamic axes. Without it sizes are what capture knows: all of a
            static model, and with ``capture="export"`` those that do not change.

    Raises:
        RegistrationError: If a parameter is neither an input nor an attribute, or one that must be given is no parameter.
    """
    names = list(inspect.signature(function.forward).parameters)[1:]
    tensors = [item.name for item in schema.inputs]
    _check_names(function, schema, names, tensors)
    table = OpTable()

    @table.python_op(function.__name__)
    def convert(g: GraphContext) -> tuple[Value, ...] | None:
        if g.node.attributes["function"] is not function:
            return None  # another class of that name
        attributes = {name: value for name, value in g.arguments.items() if name not in tensors}
        for name, value in attributes.items():
            if isinstance(value, Value):
                raise g.unsupported(f"{name} is an attribute of {schema.name}, so that it cannot depend on the model's inputs")
        captured = [output.type for output in g.node.outputs]
        if len(captured) != len(schema.outputs):
            raise g.unsupported(
                f"{schema.name} has {len(schema.outputs)} outputs, {function.__name__}.forward gives {len(captured)}"
            )
        dims = [_known(type_.shape) for type_ in captured] if sizes is None else sizes(**g.arguments)
        if len(dims) != len(captured):
            raise g.unsupported(f"sizes must give one shape for each output of {schema.name}: {len(captured)}, not {len(dims)}")
        results = [(type_.dtype, known) for type_, known in zip(captured, dims, strict=True)]
        return custom.op(g, schema, *(g.arguments.get(name) for name in tensors), results=results, **attributes)

    return table


def _known(shape: Sequence[int | str | None] | None) -> Sequence[int | None] | None:
    return None if shape is None else [size if isinstance(size, int) else None for size in shape]


def _check_names(function: type, schema: onnx.defs.OpSchema, names: Sequence[str], tensors: Sequence[str]) -> None:
    place = f"{function.__name__}.forward"
    for name in names:
        if name not in tensors and name not in schema.attributes:
            known = ", ".join([*tensors, *schema.attributes])
            raise RegistrationError(f"{place}: {name!r} is no input and no attribute of {schema.name}; it has {known}")
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    needed = [item.name for item in schema.inputs if item.option != optional]
    needed += [name for name, attribute in schema.attributes.items() if attribute.required]
    for name in needed:
        if name not in names:
            raise RegistrationError(f"{place} has no parameter {name!r}, which {schema.name} must be given")
