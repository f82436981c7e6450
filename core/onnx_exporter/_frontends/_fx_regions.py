"""Regions of an FX graph that only change a mode of PyTorch (``no_grad``, ``autocast``) and are opened into their parent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from onnx_exporter._source.graph import Argument, SourceNode, SourceType, SourceValue, map_values

# Position of the sub-module among the arguments; its operands follow it.
_BODY_POSITION = {
    "wrap": 0,
    "wrap_with_set_grad_enabled": 1,
    "wrap_with_autocast": 4,
    "wrap_activation_checkpoint": 0,
    "tag_activation_checkpoint": 0,
    "strict_mode": 0,
}


@dataclasses.dataclass(frozen=True)
class Region:
    """A call of a sub-graph that computes what its body computes.

    Attributes:
        body: The sub-graph.
        operands: Its inputs.
        autocast: Whether autocast chooses the precision of the operators in it; None if that is as around it.
    """

    body: torch.fx.GraphModule
    operands: Sequence[Any]
    autocast: bool | None


def region_of(node: torch.fx.Node, owner: torch.nn.Module) -> Region | None:
    """Returns the region that `node` of the module `owner` calls, None if it is anything else."""
    if not isinstance(node.target, torch._ops.HigherOrderOperator):
        return None
    name = node.target.name()  # type: ignore[no-untyped-call]
    args: Sequence[Any] = node.args
    if name == "strict_mode" and len(args) == 2 and isinstance(args[1], tuple | list):
        args = (args[0], *args[1])
    position = _BODY_POSITION.get(name)
    if position is None or len(args) <= position:
        return None
    body = args[position]
    if not isinstance(body, torch.fx.Node) or body.op != "get_attr":
        return None
    module = owner.get_submodule(str(body.target))
    if not isinstance(module, torch.fx.GraphModule):
        return None
    return Region(module, args[position + 1 :], bool(args[2]) if name == "wrap_with_autocast" else None)


def autocast_casts(node: SourceNode) -> list[SourceNode]:
    """Makes the casts of autocast explicit: rewrites `node` and returns the casts that go before it.

    ``torch.export`` records an operator under autocast with its arguments as they were written, and
    only the type of its result tells which precision it ran in.
    """
    wanted = node.outputs[0].type.dtype if node.outputs else None
    if wanted is None or not wanted.is_floating_point or _states_its_dtype(node):
        return []
    casts: dict[SourceValue, SourceNode] = {}

    def cast(value: SourceValue) -> Argument:
        dtype = value.type.dtype
        if dtype is None or dtype is wanted or not dtype.is_floating_point or value.type.is_number:
            return value
        if value not in casts:
            casts[value] = _to_dtype(value, wanted, node)
        return casts[value].outputs[0]

    node.arguments = {name: map_values(argument, cast) for name, argument in node.arguments.items()}
    return list(casts.values())


def _states_its_dtype(node: SourceNode) -> bool:
    """Whether the operator itself, and not autocast, decides the type of its result."""
    # Normalisation keeps statistics and weights in float32 beside half-precision data.
    if node.schema is None or node.schema.is_mutable or "norm" in node.op:
        return True
    return any(
        argument.name in ("dtype", "out_dtype") and node.arguments[argument.name] is not None
        for argument in node.schema.arguments
    ) or (node.op in ("aten::to", "aten::type_as"))


def _to_dtype(value: SourceValue, dtype: torch.dtype, before: SourceNode) -> SourceNode:
    overload = torch.ops.aten.to.dtype
    kind = SourceType(dtype, value.type.shape, False, value.type.strides, value.type.example_shape)
    arguments = {"self": value, "dtype": dtype, "non_blocking": False, "copy": False, "memory_format": None}
    output = SourceValue(f"{value.name}_{str(dtype).removeprefix('torch.')}", kind)
    return SourceNode("aten::to", "dtype", arguments, [output], before.location, schema=overload._schema)
