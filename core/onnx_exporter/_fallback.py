"""What becomes of an operator that nobody converts: it stays as it is, in a domain that is not ONNX's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from onnx_exporter._context import GraphContext
from onnx_exporter._source.graph import SourceNode
from onnx_exporter._source.schema import to_enum
from onnx_exporter._values import Value
from onnx_exporter.helpers import dtypes, emit, shapes

ATEN_DOMAIN = "org.pytorch.aten"
"""Domain of PyTorch's own operators, as runtimes that have them know it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fallback:
    """A way to convert any operator of a kind.

    Attributes:
        name: What the file's nodes name as their origin.
        accepts: Whether an operator is of this kind.
        convert: Like the hook ``onnx_exporter_fallback``.
        goes_first: It is asked before every symbolic function, not after all of them.
    """

    name: str
    accepts: Callable[[SourceNode], bool]
    convert: Callable[[GraphContext, SourceNode], Any]
    goes_first: bool = False


def pass_through(g: GraphContext, op_type: str, **more: Any) -> list[Value]:
    """Appends the captured call as one node: tensors become inputs, constants attributes named by the schema.

    Inputs stand in the schema's order. A tensor that is not given is an empty input, a list of tensors as many
    inputs as it has elements, a number that is only known when the model runs an input of rank 0, a list of such a
    vector. An element type is an attribute with ONNX's number for it. Devices, layouts, generators and None are left
    out.

    Args:
        g: Where the call is being converted.
        op_type: ``"domain::name"`` of the node.
        more: Further attributes.

    Raises:
        Unsupported: If no attribute can hold an argument.
    """
    kinds = _kinds(g.node)
    inputs: list[Any] = []
    attributes: dict[str, Any] = {}
    for name, argument in g.arguments.items():
        kind, argument = kinds.get(name, ""), _known(argument)
        if isinstance(argument, Value):
            inputs.append(argument)
        elif isinstance(argument, list | tuple) and any(isinstance(item, Value) for item in argument):
            inputs += list(argument) if "Tensor" in kind or not kind else [shapes.vector(g, argument)]
        elif argument is None or isinstance(argument, _PLACES):
            inputs += [None] if "Tensor" in kind else []
        else:
            letter, value = _attribute(g, name, argument, kind)
            attributes[f"{name}_{letter}"] = value
    count = len(g.node.outputs)
    made: Value | tuple[Value, ...] = g.op(op_type, *inputs, outputs=count, **attributes, **more)
    return [made] if isinstance(made, Value) else list(made)


def _known(argument: Any) -> Any:
    """Puts Python numbers in the place of values that stand for one which is known now."""
    if isinstance(argument, list | tuple):
        return [_known(item) for item in argument]
    return argument.item() if isinstance(argument, Value) and argument.is_number and argument.is_constant else argument


_PLACES = (torch.device, torch.layout, torch.memory_format, torch.Generator)
"""Arguments that say where a result goes, not what it is."""


def _kinds(node: SourceNode) -> dict[str, str]:
    """The type of each argument as the schema writes it."""
    return {} if node.schema is None else {argument.name: str(argument.type) for argument in node.schema.arguments}


def _attribute(g: GraphContext, name: str, value: Any, kind: str) -> tuple[str, Any]:
    """Returns the letter of an attribute's type, and what it holds."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    if isinstance(value, torch.dtype):
        return "i", _onnx_dtype(g, name, value)
    if all(isinstance(item, bool | int) for item in items) and "float" not in kind:
        return "i", value
    if all(isinstance(item, bool | int | float) for item in items):
        return "f", value
    if all(isinstance(item, str) for item in items):
        return "s", value
    raise g.unsupported(f"no ONNX attribute can hold {name}={value!r}")


def _onnx_dtype(g: GraphContext, name: str, dtype: torch.dtype) -> int:
    try:
        return int(dtypes.to_onnx(dtype))
    except ValueError as error:
        raise g.unsupported(f"{name}: {error}") from None


def fall_through(g: GraphContext, node: SourceNode) -> Any:
    """Keeps a call under its own name, in a domain named after its namespace. See `pass_through`.

    ``aten`` has the domain ``org.pytorch.aten``. An overload's name is the attribute ``overload_name``. An
    ``autograd.Function`` becomes ``prim::PythonOp`` with the class's name as the attribute ``name``.
    """
    if node.op == "prim::PythonOp":
        return pass_through(g, "prim::PythonOp", name_s=node.attributes["function"].__name__)
    namespace, _, name = node.op.partition("::")
    domain = ATEN_DOMAIN if namespace == "aten" else namespace
    return pass_through(g, f"{domain}::{name}", overload_name_s=node.overload or None)


def as_aten(g: GraphContext, node: SourceNode) -> Any:
    """Keeps a call as the node ``ATen`` with the attributes ``operator`` and ``overload_name``.

    Each argument of the schema is one input, in order, and left empty for None: a number is a tensor of rank 0 (int64,
    double or bool), a list of numbers a vector, a list of tensors a sequence. An element type, a layout and a memory
    format are the number that TorchScript has for it.

    Raises:
        Unsupported: If an input cannot hold an argument.
    """
    kinds = _kinds(node)
    inputs = [_aten_input(g, name, argument, kinds.get(name, "")) for name, argument in g.arguments.items()]
    attributes = {"operator_s": node.op.partition("::")[2], "overload_name_s": node.overload}
    return list(g._add("ATen", inputs, attributes, outputs=len(node.outputs), domain=ATEN_DOMAIN, keep_empty=True))


def _aten_input(g: GraphContext, name: str, argument: Any, kind: str) -> Value | None:
    argument = _known(argument)
    if argument is None or isinstance(argument, torch.device | torch.Generator):
        return None
    if isinstance(argument, Value):
        return argument if not argument.is_number else emit.cast(g, argument, _number_dtype(g, _like(argument), kind))
    if isinstance(argument, torch.dtype | torch.layout | torch.memory_format):
        argument = to_enum(argument)
    if isinstance(argument, str):
        return g._builder.text(argument)
    if isinstance(argument, bool | int | float):
        return g.constant(argument, dtype=_number_dtype(g, argument, kind))
    if isinstance(argument, list | tuple):
        if "Tensor" in kind:
            return _sequence(g, name, argument)
        if all(isinstance(item, bool | int | float) for item in argument):
            wide = torch.float64 if "float" in kind else torch.bool if "bool" in kind else torch.int64
            return g.constant(list(argument), dtype=wide)
        return shapes.vector(g, argument)
    raise g.unsupported(f"ATen has no form for {name}={argument!r}")


def _like(number: Value) -> float:
    """Some Python number of the type of one that is only known when the model runs."""
    assert number.dtype is not None
    return torch.ones((), dtype=number.dtype).item()


def _number_dtype(g: GraphContext, number: float, kind: str) -> torch.dtype:
    """A number is as wide as Python's; one in the place of a tensor is weaker than the tensors beside it."""
    beside = next((value.dtype for value in g.arguments.values() if isinstance(value, Value) and not value.is_number), None)
    if "Tensor" in kind and beside is not None:
        return torch.result_type(torch.empty((1,), dtype=beside), number)
    return torch.bool if isinstance(number, bool) else torch.int64 if isinstance(number, int) else torch.float64


def _sequence(g: GraphContext, name: str, items: list[Any] | tuple[Any, ...]) -> Value:
    if not items or any(not isinstance(item, Value) for item in items):
        raise g.unsupported(f"{name} is a list with tensors left out, which no ONNX sequence can hold")
    if not g.has_op("SequenceConstruct"):
        raise g.unsupported(f"{name} is a list of tensors, which needs SequenceConstruct: export at opset 11 or later")
    return g.op("SequenceConstruct", *items)


def _is_aten(node: SourceNode) -> bool:
    return node.op.startswith("aten::") and not node.blocks


def _can_stay(node: SourceNode) -> bool:
    """Control flow has blocks, and higher-order operators take graphs: neither is one node."""
    return node.op == "prim::PythonOp" or not (node.blocks or node.op.startswith("higher_order::"))


FALLBACKS = {
    "ONNX": None,
    "ONNX_FALLTHROUGH": Fallback("ONNX_FALLTHROUGH", _can_stay, fall_through),
    "ONNX_ATEN": Fallback("ONNX_ATEN", _is_aten, as_aten, goes_first=True),
    "ONNX_ATEN_FALLBACK": Fallback("ONNX_ATEN_FALLBACK", _is_aten, as_aten),
}
"""For each member of `OperatorExportTypes`, by name, what becomes of operators."""
