"""Operators that PyTorch itself writes in terms of others: capture may have recorded these in their place."""

from __future__ import annotations

from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.autograd import profiler_legacy

from onnx_exporter._registry import functional_name
from onnx_exporter.testing._cases import OpCase


def parts_of(case: OpCase) -> frozenset[str]:
    """Returns the operators that PyTorch calls inside the one that a case is about; none if that is no composite."""
    op, _, overload = functional_name(case.op).partition(".")
    if not _is_composite(op, overload):
        return frozenset()
    args = pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, case.args)
    profile = profiler_legacy.profile()  # type: ignore[no-untyped-call]
    with torch.no_grad(), torch.random.fork_rng(devices=[]), profile:
        case.module()(*args)
    return frozenset(event.name for event in profile.function_events or () if _is_inside(op, event))


def _is_composite(op: str, overload: str) -> bool:
    if "::" not in op:
        return False
    names = [
        f"{op}.{schema.overload_name}" if schema.overload_name else op
        for schema in torch._C._jit_get_schemas_for_operator(op)
        if overload in ("", schema.overload_name)
    ]
    return any(
        torch._C._dispatch_has_kernel(name)  # TorchScript alone has those of numbers
        and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd")
        for name in names
    )


def _is_inside(op: str, event: Any) -> bool:
    parent = event.cpu_parent
    return parent is not None and (functional_name(parent.name) == op or _is_inside(op, parent))
