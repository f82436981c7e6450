"""Constant propagation: what depends on constants only is computed once, by the ATen operator itself."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import torch

from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import Argument, SourceGraph, SourceNode, SourceType, SourceValue, map_values, values_in
from onnx_exporter.errors import ExportError

DEFAULT_LIMIT = 64 * 1024
"""Bytes that a result may have though its inputs are smaller."""

_FOLDED = "_folded"

_UNINITIALISED = frozenset(
    f"aten::{name}"
    for name in (
        *("empty", "empty_like", "empty_strided", "empty_permuted", "empty_quantized"),
        *("new_empty", "new_empty_strided"),
    )
)
_DTYPE_ONLY = frozenset({"aten::new_zeros", "aten::new_ones", "aten::new_full"})
"""Factories that ask the tensor they are called on for nothing but its dtype and device."""

_QUANTIZED = "quant"
"""Part of the names of operators that quantize, or pretend to: what they say of a weight must stay to be seen in the file."""

_DIVISIONS = frozenset({"aten::div", "aten::true_divide", "aten::divide"})


def fold_constants(graph: SourceGraph, limit: int = DEFAULT_LIMIT, weights: Container[SourceValue] | None = None) -> SourceGraph:
    """Replaces what depends on constants only by its value, in place, and returns the graph.

    The graph must not write in place. Operators outside ATen are left: their plugins may want to see them. So is quantization.

    Args:
        graph: The graph.
        limit: Largest result in bytes that may be larger than its inputs.
        weights: Constants that stay as they are, with what is computed from them. By default those
            that have a name, which are the parameters and buffers of the model.

    Raises:
        ExportError: If an operator fails on the constants.
    """
    _Folder(limit, weights).fold(graph)
    return graph


class _Folder:
    def __init__(self, limit: int, weights: Container[SourceValue] | None) -> None:
        self._limit = limit
        self._weights = weights

    def fold(self, graph: SourceGraph) -> None:
        kept = []
        for node in graph.nodes:
            for block in node.blocks:
                self.fold(block)
            if not (self._is_constant(node) and self._replace(node)):
                kept.append(node)
        graph.nodes = kept

    def _is_constant(self, node: SourceNode) -> bool:
        """Whether a node depends on constants only and always computes the same."""
        if node.op in _DTYPE_ONLY and node.arguments["self"].type.dtype is not None:
            values = list(values_in([value for name, value in node.arguments.items() if name != "self"]))
        else:
            values = list(node.input_values())
        return not any(value.constant is None or self._is_weight(value) for value in values)

    def _is_weight(self, value: SourceValue) -> bool:
        return bool(value.name) if self._weights is None else value in self._weights

    def _replace(self, node: SourceNode) -> bool:
        """Computes a node and makes its outputs constants; returns False if it should stay."""
        allowed = max(self._limit, sum(_bytes(value.constant) for value in node.input_values()))
        if any(_expected_bytes(output.type) > allowed for output in node.outputs):
            return False
        tensors = compute(node)
        weight = next((value.name for value in node.input_values() if value.name), "")
        if tensors is None or any(_bytes(tensor) > allowed for tensor in tensors):
            return False
        for output, tensor in zip(node.outputs, tensors, strict=True):
            shape = tuple(tensor.shape)
            output.type = SourceType(tensor.dtype, shape, output.type.is_number, tensor.stride(), shape)
            output.constant = tensor
            # What a weight becomes is known by the weight's name; other constants have none of their own.
            output.name = f"{weight.removesuffix(_FOLDED)}{_FOLDED}" if weight and tensor.numel() > 1 else ""
        return True


def _bytes(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else tensor.numel() * tensor.element_size()


def _expected_bytes(type: SourceType) -> int:
    """Size of a result as far as it is known before it is computed."""
    if type.dtype is None or type.example_shape is None:
        return 0
    return torch.Size(type.example_shape).numel() * type.dtype.itemsize


def _can_be_held(result: Any) -> bool:
    if isinstance(result, torch.Tensor):
        return result.layout is torch.strided and not result.is_quantized and not result.is_meta
    return isinstance(result, bool | int | float)


def compute(node: SourceNode, constants: Mapping[SourceValue, torch.Tensor] | None = None) -> list[torch.Tensor] | None:
    """Returns what a node computes from constants, or None if it is not to be computed beforehand.

    Args:
        node: The call.
        constants: Constants that stand for those arguments that are none.

    Raises:
        ExportError: If the operator fails.
    """
    if node.schema is None or node.blocks or not node.outputs or not node.op.startswith("aten::"):
        return None
    operator = find_operator(node.op, node.overload)
    if operator is None or torch.Tag.nondeterministic_seeded in operator.tags:
        return None
    if node.op in _UNINITIALISED or _QUANTIZED in node.op or node.schema.is_mutable:
        return None
    results = _run(operator, node, constants or {})
    if len(results) != len(node.outputs) or not all(_can_be_held(result) for result in results):
        return None
    return [_as_tensor(result, output.type) for result, output in zip(results, node.outputs, strict=True)]


def _run(operator: torch._ops.OpOverload, node: SourceNode, constants: Mapping[SourceValue, torch.Tensor]) -> list[Any]:
    def held(value: SourceValue) -> Argument:
        constant = constants.get(value, value.constant)
        assert constant is not None  # checked before
        return constant.item() if value.type.is_number else constant

    given = dict(node.arguments)
    if node.op in _DTYPE_ONLY:
        given["self"] = torch.empty((), dtype=given["self"].type.dtype)
    arguments = {name: map_values(argument, held) for name, argument in given.items()}
    like = next((value.constant for value in node.input_values() if not value.type.is_number), None)
    if node.op in _DIVISIONS and node.arguments.get("rounding_mode") is None and node.outputs[0].type.is_number:
        # PyTorch divides integers in its default dtype, Python divides numbers in double precision.
        like = torch.zeros((), dtype=torch.float64)
    arguments = {
        argument.name: _wrap(arguments[argument.name], like) if "Tensor" in str(argument.type) else arguments[argument.name]
        for argument in operator._schema.arguments
    }
    try:
        with torch.no_grad():
            result = operator(**arguments)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        place = f"{node.qualified_name} ({node.location})"
        raise ExportError(f"{place} fails on the constants it is given: {error}") from error
    return list(result) if isinstance(result, list | tuple) else [result]


def _wrap(argument: Argument, like: torch.Tensor | None) -> Argument:
    """Makes a tensor of a number that stands in the place of one; beside a tensor, it is weaker in type promotion."""
    if isinstance(argument, list):
        return [_wrap(item, like) for item in argument]
    if not isinstance(argument, bool | int | float):
        return argument
    return torch.tensor(argument, dtype=_dtype_of(argument) if like is None else torch.result_type(like, argument))


def _dtype_of(number: object) -> torch.dtype:
    return torch.bool if isinstance(number, bool) else torch.int64 if isinstance(number, int) else torch.float64


def _as_tensor(result: Any, type: SourceType) -> torch.Tensor:
    if isinstance(result, torch.Tensor):
        if type.is_number and result.dtype not in (torch.int64, torch.float64, torch.bool):
            return result.to(_dtype_of(result.item()))
        tensor: torch.Tensor = result.detach()
        # Left as it is, a view of a large weight costs no memory.
        return tensor if _bytes(tensor) > DEFAULT_LIMIT else tensor.contiguous()
    return torch.tensor(result, dtype=_dtype_of(result))
