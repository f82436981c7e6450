"""Arithmetic on sizes: Python's operators on symbolic numbers, as the operators that TorchScript has for them.

So an expression such as ``x.shape[0] // 2`` reaches symbolic functions in one form, whichever capture recorded it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import torch

_NAMES: dict[Any, str] = {
    operator.add: "aten::add",
    operator.sub: "aten::sub",
    operator.mul: "aten::mul",
    operator.truediv: "aten::div",
    operator.floordiv: "aten::floordiv",
    operator.mod: "aten::remainder",
    operator.pow: "aten::pow",
    operator.neg: "aten::neg",
    operator.abs: "prim::abs",
    abs: "prim::abs",
    operator.lt: "aten::lt",
    operator.le: "aten::le",
    operator.gt: "aten::gt",
    operator.ge: "aten::ge",
    operator.eq: "aten::eq",
    operator.ne: "aten::ne",
    operator.and_: "aten::__and__",
    operator.or_: "aten::__or__",
    operator.xor: "aten::__xor__",
    operator.not_: "aten::__not__",
    operator.lshift: "aten::__lshift__",
    operator.rshift: "aten::__rshift__",
    math.ceil: "aten::ceil",
    math.floor: "aten::floor",
    math.trunc: "aten::Int",
    round: "aten::round",
}
_SYMBOLIC = {
    "sym_max": "prim::max",
    "sym_min": "prim::min",
    "sym_float": "aten::Float",
    "sym_int": "aten::Int",
    "sym_not": "aten::__not__",
}
_SYMBOLIC_MATH = ("sqrt", "cos", "cosh", "sin", "sinh", "tan", "tanh", "asin", "acos", "atan", "exp", "log", "log2")


def number_operator(target: Any, arguments: Sequence[type], result: type | None) -> torch.FunctionSchema | None:
    """Returns the TorchScript operator that computes a Python function of numbers, None if there is none.

    Args:
        target: The Python function: ``operator.add``, ``math.floor``, ``torch.sym_max``.
        arguments: ``int``, ``float`` or ``bool`` for each argument.
        result: The same for the result, or None if unknown.
    """
    name = _names().get(target)
    return None if name is None else _best_schema(name, tuple(arguments), result)


@functools.cache
def _names() -> dict[Any, str]:
    """Operator names by Python function, those that this PyTorch has of ``torch.sym_*`` included."""
    names = dict(_NAMES)
    for attribute, name in _SYMBOLIC.items():
        if hasattr(torch, attribute):
            names[getattr(torch, attribute)] = name
    for function in _SYMBOLIC_MATH:
        for attribute in (f"_sym_{function}", f"sym_{function}"):
            if hasattr(torch, attribute):
                names[getattr(torch, attribute)] = f"aten::{function}"
    return names


@functools.cache
def _best_schema(name: str, arguments: tuple[type, ...], result: type | None) -> torch.FunctionSchema | None:
    """The overload whose types fit closest: the exact one, else one that takes any number or widens."""
    best: tuple[int, torch.FunctionSchema] | None = None
    for schema in torch._C._jit_get_schemas_for_operator(name):
        if len(schema.arguments) != len(arguments) or len(schema.returns) != 1:
            continue
        declared = [_kind(argument.type) for argument in schema.arguments]
        costs = [_cost(have, want) for have, want in zip(arguments, declared, strict=True)]
        # Python's int ** int is an int, TorchScript's default is a float: the result chooses the overload.
        costs.append(0 if result is None else _cost(_kind(schema.returns[0].type), result.__name__))
        if None in costs:
            continue
        total = sum(cost for cost in costs if cost is not None)
        if best is None or total < best[0]:
            best = total, schema
    return None if best is None else best[1]


def _kind(declared: Any) -> str:
    """``int``, ``float``, ``bool``, ``number`` (any of them) or the name of another type."""
    return {"Scalar": "number"}.get(str(declared), str(declared))


def _cost(have: type | str, want: str) -> int | None:
    """How far a value of one kind is from another; None if it does not fit."""
    name = have if isinstance(have, str) else have.__name__
    if name == want:
        return 0
    if "number" in (name, want):
        return 1 if {name, want} <= {"number", "int", "float", "bool"} else None
    widening = {("bool", "int"): 2, ("int", "float"): 3, ("bool", "float"): 4}
    return widening.get((name, want))
