"""`TrainingMode` and `OperatorExportTypes`: PyTorch's own where it has them, so that either name can be used for the other.

PyTorch's are made in C++ and compare equal to nothing but themselves, so an enum of our own could never be interchangeable
with them. Where a PyTorch has them no more, enums with the same names and numbers stand in.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from onnx_exporter.errors import ArgumentError


class _TrainingMode(enum.IntEnum):
    """The mode in which a model is exported. Added in 0.1."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class _OperatorExportTypes(enum.IntEnum):
    """What becomes of operators. Added in 0.1."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


if TYPE_CHECKING:
    TrainingMode = _TrainingMode
    OperatorExportTypes = _OperatorExportTypes
else:
    try:
        from torch._C._onnx import OperatorExportTypes, TrainingMode
    except ImportError:
        TrainingMode, OperatorExportTypes = _TrainingMode, _OperatorExportTypes


def as_training_mode(given: Any) -> TrainingMode:
    """Returns the member of `TrainingMode` that the argument `training` means.

    Args:
        given: A member, its number, or None for ``EVAL``.

    Raises:
        ArgumentError: If it is none.
    """
    return getattr(TrainingMode, _name(_TrainingMode, "training", given))  # type: ignore[no-any-return]


def as_operator_export_type(given: Any) -> OperatorExportTypes:
    """Returns the member of `OperatorExportTypes` that the argument `operator_export_type` means.

    Args:
        given: A member, its number, or None for ``ONNX``.

    Raises:
        ArgumentError: If it is none.
    """
    return getattr(OperatorExportTypes, _name(_OperatorExportTypes, "operator_export_type", given))  # type: ignore[no-any-return]


def _name(kind: type[enum.IntEnum], argument: str, given: Any) -> str:
    """The name of the member that `given` is, of whichever enum, or that it is the number of; of the first one for None."""
    numbers = {member.value: member.name for member in kind}
    number = 0 if given is None else given
    name = getattr(number, "name", None)
    if name in kind.__members__ or (type(number) is int and number in numbers):
        return numbers[int(number)]
    public = kind.__name__.lstrip("_")
    members = ", ".join(f"{public}.{name}" for name in kind.__members__)
    raise ArgumentError(f"{argument} is {given!r}; it must be one of {members}")
