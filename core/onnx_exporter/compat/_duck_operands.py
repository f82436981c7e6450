"""Inputs of unequal element types, which torch.onnx brings to one type as PyTorch does."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence

import onnx
import torch

from onnx_exporter._values import Value
from onnx_exporter.helpers import dtypes

_PROMOTING = frozenset(
    ("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "Mean", "Sum", "MatMul", "Gemm", "Equal", "Greater", "Less",
     "GreaterOrEqual", "LessOrEqual", "Where", "PRelu", "Concat")
)  # fmt: skip
"""Operators that compute in a type that all of their operands decide."""


@dataclasses.dataclass(frozen=True)
class _Operand:
    dtype: torch.dtype | None
    rank: int | None
    is_number: bool


def with_equal_types(
    schema: onnx.defs.OpSchema, inputs: Sequence[Value | None], cast: Callable[[Value, torch.dtype], Value]
) -> list[Value | None]:
    """Returns inputs of which those that must have one element type have it.

    Constants of rank 0 count as Python numbers. For operators other than arithmetic and comparison only constants are
    cast, to the type of what is none.

    Args:
        schema: The operator.
        inputs: What it was given.
        cast: Casts a value.
    """
    result = list(inputs)
    last = len(schema.inputs) - 1
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for index, value in enumerate(inputs):
        if value is not None and value.dtype is not None and last >= 0:
            groups[schema.inputs[min(index, last)].type_str].append(index)
    for members in groups.values():
        values = [value for value in (inputs[index] for index in members) if value is not None]
        if len({value.dtype for value in values}) < 2:
            continue
        target = _common(schema.name, values)
        for index, value in zip(members, values, strict=True):
            if value.dtype != target and (schema.name in _PROMOTING or value.is_constant):
                result[index] = cast(value, target)
    return result


def _common(op_type: str, values: Sequence[Value]) -> torch.dtype:
    first = next((value for value in values if not value.is_constant), values[0])
    follows_first = op_type == "Pow" and dtypes.is_floating(values[0].dtype)
    if op_type not in _PROMOTING or follows_first:
        chosen = values[0] if follows_first else first
        assert chosen.dtype is not None
        return chosen.dtype
    return dtypes.promote(_Operand(value.dtype, value.rank, value.is_constant and value.rank == 0) for value in values)
