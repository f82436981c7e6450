"""What the attributes of a case may be: one that can be misread, or under which no test could fail, is an error."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import onnx
import torch
import torch.utils._pytree as pytree

if TYPE_CHECKING:
    from onnx_exporter.testing._cases import OpCase

_CAPTURES = ("trace", "export")


def check_case(case: OpCase) -> None:
    """Checks the attributes of a case.

    Raises:
        ValueError: If one is malformed, or says nothing.
    """
    try:
        _check_arguments(case)
        _check_places(case)
        _check_operators(case)
        _check_judgement(case)
    except ValueError as error:
        raise ValueError(f"OpCase({case.op!r}): {error}") from None


def tensors_of(args: Any) -> list[torch.Tensor]:
    """Returns the tensors among arguments, which become inputs, in order."""
    return [leaf for leaf in pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]


def _check_arguments(case: OpCase) -> None:
    if not isinstance(case.op, str):
        raise ValueError("op must be the name of an operator, or '' for a module that is about none in particular")
    for name, given in (("args", [case.args]), ("others", case.others)):
        if not isinstance(given, list | tuple) or not all(isinstance(args, list | tuple) for args in given):
            raise ValueError(f"{name} must be a {'tuple of arguments' if name == 'args' else 'list of such tuples as args is'}")
    tensors = tensors_of(case.args)
    _check_dynamic(case.dynamic, tensors)
    every = [*tensors, *tensors_of(list(case.others))]
    if any(tensor.numel() for tensor in every) and all(map(_is_nan, every)):
        raise ValueError("args hold nothing but NaN, of which most operators make NaN, right or wrong; give numbers beside it")


def _is_nan(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool(tensor.double().isnan().all())


def _check_dynamic(dynamic: Any, tensors: Sequence[torch.Tensor]) -> None:
    if not isinstance(dynamic, Mapping) or not all(isinstance(axes, Mapping) for axes in dynamic.values()):
        raise ValueError(f"dynamic is {dynamic!r}; it is like {{0: {{1: 'length'}}}}: of the first tensor the second axis")
    for position, axes in dynamic.items():
        if position not in range(len(tensors)):
            raise ValueError(f"dynamic names tensor {position!r}, but args hold {len(tensors)} (they are counted from 0)")
        rank = tensors[position].dim()
        for axis in axes:
            if axis not in range(-rank, rank):
                raise ValueError(f"dynamic names axis {axis!r} of tensor {position}, which has {rank} axes")


def _check_places(case: OpCase) -> None:
    opsets: Any = case.opsets
    if isinstance(opsets, str) or not isinstance(opsets, Sequence):
        raise ValueError(f"opsets is {opsets!r}; give a tuple of opsets: (13,)")
    if not case.opsets and not (isinstance(case.refuses, Mapping) and case.refuses):
        raise ValueError("opsets is empty, so that nothing would be tested")
    if isinstance(case.captures, str) or not case.captures or not set(case.captures) <= set(_CAPTURES):
        raise ValueError(f"captures is {case.captures!r}; give ('trace',), ('export',) or both")


def _check_operators(case: OpCase) -> None:
    by_opset: Mapping[int, Any] = case.emits if isinstance(case.emits, Mapping) else {0: case.emits}
    for name, given in (("avoids", case.avoids), *(("emits", each) for each in by_opset.values())):
        if isinstance(given, str) or not isinstance(given, AbstractSet | Sequence):
            raise ValueError(f"{name} has {given!r}; give a set of ONNX operators: {{{given!r}}}")
    for operator in case.avoids:
        domain, _, op_type = operator.rpartition("::")
        if op_type not in _operators().get(domain, {op_type}):
            kin = f"of the domain {domain}" if domain else "of ai.onnx; one of another domain is named with it, 'com.acme::Frob'"
            raise ValueError(f"avoids has {operator!r}, which is no operator {kin}")


@functools.cache
def _operators() -> Mapping[str, AbstractSet[str]]:
    """The operators of every domain that ONNX defines."""
    found: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        found.setdefault(schema.domain, set()).add(schema.name)
    return found


def _check_judgement(case: OpCase) -> None:
    for name, tolerance in (("rtol", case.rtol), ("atol", case.atol)):
        if tolerance is not None and (not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf):
            raise ValueError(f"{name} is {tolerance!r}; it must be a finite number that is not negative")
    reasons = case.refuses.values() if isinstance(case.refuses, Mapping) else [case.refuses]
    for reason in reasons:
        check_reason("refuses", reason)
    if isinstance(case.custom_ops, str) or not isinstance(case.custom_ops, Sequence):
        raise ValueError(f"custom_ops is {case.custom_ops!r}; give a list of classes and paths")
    names: set[str] = set()
    for item in case.custom_ops:
        if not isinstance(item, type | str | os.PathLike):
            raise ValueError(f"custom_ops has {item!r}; it takes classes derived from OpRun, and paths of libraries")
        name = f"{getattr(item, 'op_domain', '')}::{item.__name__}" if isinstance(item, type) else str(item)
        if name in names:
            raise ValueError(f"custom_ops has two for {name}, of which one would be passed over")
        names.add(name)


def check_reason(name: str, reason: Any) -> None:
    """Checks that a reason for which something is refused is a regular expression.

    Raises:
        ValueError: If it is not.
    """
    if not isinstance(reason, str):
        raise ValueError(f"{name} has {reason!r}; give a regular expression, or one by opset: {{8: 'opset 9 has it'}}")
    try:
        re.compile(reason)
    except re.error as error:
        raise ValueError(f"{name} is {reason!r}, which is no regular expression: {error}") from None
