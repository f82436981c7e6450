"""Cases made of PyTorch's own samples of an operator."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import torch

from onnx_exporter.testing._cases import NEWEST, OpCase
from onnx_exporter.testing._opinfo import LEFT_OUT, NotASampleError, check_inputs, operators, samples


def opinfo_cases(
    name: str,
    *,
    dtype: torch.dtype = torch.float32,
    count: int = 6,
    opsets: Sequence[int] = (NEWEST,),
    captures: Sequence[str] = ("trace",),
    **fields: Any,
) -> list[OpCase]:
    """Returns a case for each of PyTorch's own samples of an operator (``op_db``). Added in 0.1.

    Samples whose tensors cannot be inputs of an ONNX model (sparse or complex ones) are left out. PyTorch's samples need
    the package ``expecttest``.

    Args:
        name: Name in ``op_db``: ``"nn.functional.gelu"``, or ``"linalg.norm/subgradients_at_zero"`` for a variant.
        dtype: Element type to ask for.
        count: How many samples to look at.
        opsets: As in `OpCase`.
        captures: As in `OpCase`.
        fields: Other attributes of each `OpCase`; a `label` goes before the number of the sample.

    Raises:
        ImportError: If ``expecttest`` is not installed.
        ValueError: If there is no such operator, no sample of it that can be used, or one of `fields` is not for samples.
    """
    if count < 1:
        raise ValueError(f"count is {count}; look at one sample at least")
    if taken := sorted({"op", "call", "args"} & fields.keys()):
        raise ValueError(f"{', '.join(taken)} of each case comes from PyTorch's samples; make an OpCase to choose it")
    label = fields.pop("label", "")
    try:
        known = operators()
    except ImportError as error:
        raise ImportError(f"PyTorch's own samples need a package that is missing (pip install expecttest): {error}") from error
    if name not in known:
        close = ", ".join(difflib.get_close_matches(name, known, n=3)) or "none"
        why = f"is left out, since {LEFT_OUT[name]}" if name in LEFT_OUT else f"is not in op_db (similar names: {close})"
        raise ValueError(f"{name!r} {why}")
    cases = []
    for sample in samples(name, dtype, count):
        try:
            check_inputs(sample)
        except NotASampleError:
            continue
        case = OpCase(
            name,
            sample.module(),
            sample.tensors,
            opsets,
            captures=captures,
            label=f"{label}-sample{sample.index}" if label else f"sample{sample.index}",
            **{"avoids": frozenset(), **fields},
        )
        cases.append(case)
    if not cases:
        raise ValueError(f"none of the first {count} samples of {name!r} in {dtype} can be used")
    return cases
