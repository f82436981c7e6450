"""Lists of tensors among a scripted model's parameters: inputs of the file that are sequences, of any length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from onnx_exporter._frontends._inputs import InputTensor, ModelInputs
from onnx_exporter._frontends._script_optionals import COMMON
from onnx_exporter._warnings import warn
from onnx_exporter.errors import CaptureError, UnsupportedOpError

_FIRST_OPSET = 11


def sequences_in(lists: Sequence[str], opset: int) -> list[str]:
    """Returns those parameters that are lists of tensors which a file of an opset has as sequences."""
    return list(lists) if opset >= _FIRST_OPSET else []


def can_be_sequence(item: InputTensor) -> bool:
    """Whether there is a sequence of what the example has in a list: it needs an element type that ONNX's sequences have."""
    return bool(item.elements) and item.tensor.dtype in COMMON


def warn_of_fixed_lengths(lists: Sequence[str], inputs: ModelInputs, opset: int) -> None:
    """Warns of the lists that have the example's length in the file.

    Args:
        lists: The parameters that are lists of tensors, and are given.
        inputs: The example, with the lists that are sequences.
        opset: The version of ONNX.
    """
    sequences = {item.parameter for item in inputs.tensors if item.elements is not None}
    fixed = [name for name in lists if name not in sequences]
    if fixed:
        why = (
            f"from opset {_FIRST_OPSET} on they are sequences, of any length"
            if opset < _FIRST_OPSET
            else "a sequence has elements of one type, which the example must show, and which is not bfloat16 or float8"
        )
        warn(
            f"the file takes lists of tensors with the example's length only: {', '.join(map(repr, fixed))}; {why} "
            "(sequence_inputs=False says that this is wanted)"
        )


@contextmanager
def hints_about_lengths(inputs: ModelInputs) -> Iterator[None]:
    """Adds the way out to the errors for what a file cannot do with lists of any length."""
    names = ", ".join(item.name for item in inputs.tensors if item.elements is not None)
    hint = f"if it is for lists of any length ({names}): sequence_inputs=False fixes their length to the example's"
    try:
        yield
    except CaptureError as error:
        if not names:
            raise
        raise CaptureError(f"{error}\n  {hint}") from error
    except UnsupportedOpError as error:
        if not names:
            raise
        ops = [dataclasses.replace(op, hint="\n    ".join(filter(None, (op.hint, hint)))) for op in error.ops]
        raise UnsupportedOpError(ops, error.opset) from error
