"""What the caller says about sizes that vary: `dynamic_axes` by name, `dynamic_shapes` in a structure like the arguments'."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._frontends.captured import Range
from onnx_exporter.errors import ArgumentError

DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]]
"""For each input or output name, its dynamic axes with names or without."""


@dataclasses.dataclass(frozen=True)
class Axis:
    """What `dynamic_shapes` says of one axis.

    Attributes:
        name: Its name, "" if it has none.
        range: The sizes that are allowed.
        automatic: Whether it may as well be fixed.
    """

    name: str = ""
    range: Range = (0, None)
    automatic: bool = False


def common_range(one: Range, other: Range) -> Range:
    """Returns the sizes that both allow."""
    limits = [limit for limit in (one[1], other[1]) if limit is not None]
    return max(one[0], other[0]), min(limits, default=None)


# dynamic_axes


def check_dynamic_names(dynamic_axes: DynamicAxes | None, inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Checks that `dynamic_axes` names only inputs and outputs that exist.

    Raises:
        ArgumentError: If it names another.
    """
    unknown = [name for name in dynamic_axes or {} if name not in inputs and name not in outputs]
    if unknown:
        raise ArgumentError(
            f"dynamic_axes names {', '.join(map(repr, unknown))}, which is neither an input ({', '.join(inputs) or 'none'}) "
            f"nor an output ({', '.join(outputs) or 'none'}); correct it, or name inputs with input_names"
        )


def unnamed(dynamic_axes: DynamicAxes | None) -> list[str]:
    """Returns the inputs and outputs whose dynamic axes are a list, so that their names are made up."""
    return [name for name, axes in (dynamic_axes or {}).items() if isinstance(axes, list | tuple)]


def normalise_axes(name: str, rank: int, axes: Any) -> dict[int, str]:
    """Returns `axes` with axes counted from 0 and every axis named; the first of a list is ``<name>_dynamic_axes_1``.

    Raises:
        ArgumentError: If an axis does not exist or its name is not a string.
    """
    if isinstance(axes, str) or not isinstance(axes, Mapping | Sequence):
        raise ArgumentError(f"dynamic_axes[{name!r}] must be a dict of axis to name or a list of axes, got {axes!r}")
    named = axes if isinstance(axes, Mapping) else {axis: f"{name}_dynamic_axes_{n}" for n, axis in enumerate(axes, 1)}
    result = {}
    for axis, symbol in named.items():
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise ArgumentError(f"dynamic_axes[{name!r}] names axis {axis!r}; an axis is an int")
        if not -rank <= axis < rank:
            raise ArgumentError(
                f"dynamic_axes[{name!r}] names axis {axis!r}, but {name!r} has {rank} dimensions (axes 0 to {rank - 1})"
            )
        if not isinstance(symbol, str) or not symbol:
            raise ArgumentError(f"dynamic_axes[{name!r}][{axis}] must be the name of the axis, got {symbol!r}")
        result[axis % rank] = symbol
    return result


def chosen_axes(
    name: str, tensor: torch.Tensor, dynamic_axes: DynamicAxes | None, shape: Mapping[int, Axis]
) -> tuple[dict[int, str], frozenset[int]]:
    """Returns the dynamic axes of one input, each with its name, and those of them that may turn out fixed.

    Args:
        name: The input.
        tensor: Its example.
        dynamic_axes: What `dynamic_axes` says of all inputs.
        shape: What `dynamic_shapes` says of this one.

    Raises:
        ArgumentError: If both say something of it.
    """
    if not shape:
        return normalise_axes(name, tensor.dim(), (dynamic_axes or {}).get(name, ())), frozenset()
    if name in (dynamic_axes or {}):
        raise ArgumentError(f"dynamic_axes and dynamic_shapes both speak of {name!r}; use one of them")
    named = {axis: wanted.name or f"{name}_dim_{axis}" for axis, wanted in shape.items()}
    return named, frozenset(axis for axis, wanted in shape.items() if wanted.automatic)


# dynamic_shapes


def key_of(entry: Any) -> Any:
    """Returns the index, key or attribute that an entry of a pytree path stands for."""
    for attribute in ("idx", "key", "name"):
        if hasattr(entry, attribute):
            return getattr(entry, attribute)
    return str(entry)


def axes_by_path(
    dynamic_shapes: Any, found: Sequence[tuple[tuple[Any, ...], torch.Tensor | list[torch.Tensor]]], parameters: Mapping[Any, str]
) -> list[dict[int, Axis]]:
    """Returns what `dynamic_shapes` says of each tensor; an axis that is not in it is static.

    Args:
        dynamic_shapes: A dict by the parameters of ``forward``, or a tuple or list with one entry an argument. Nested
            arguments have nested entries. For a tensor there is None, a dict of axes, or one entry an axis. An axis is a
            ``Dim``, ``Dim.AUTO``, ``Dim.DYNAMIC``, a name, or, where it is static, None, ``Dim.STATIC`` or its size.
            For a sequence there is a dict of axes, or one entry an element.
        found: The path of each tensor or sequence in ``(args, kwargs)``, and the tensor or its elements.
        parameters: The parameter of ``forward`` behind each positional index and keyword.

    Raises:
        ArgumentError: If it does not fit the arguments.
    """
    if dynamic_shapes is None:
        return [{} for _ in found]
    if not isinstance(dynamic_shapes, Mapping | list | tuple):
        raise ArgumentError(f"dynamic_shapes is {dynamic_shapes!r}; give a dict by forward's parameters, or a tuple")
    roots = list(parameters)
    if isinstance(dynamic_shapes, Mapping):
        variadic = {name.rsplit("_", 1)[0] for name in parameters.values()}
        unknown = [name for name in dynamic_shapes if name not in parameters.values() and name not in variadic]
        if unknown:
            names = ", ".join(parameters.values())
            raise ArgumentError(f"dynamic_shapes names {', '.join(map(repr, unknown))}; the arguments are {names}")
    elif len(dynamic_shapes) != len(roots):
        raise ArgumentError(f"dynamic_shapes has {len(dynamic_shapes)} entries, but there are {len(roots)} arguments")
    result = []
    for path, tensor in found:
        root = key_of(path[1])
        place = f"dynamic_shapes[{parameters[root]!r}]"
        spec = _of_argument(dynamic_shapes, roots, root, parameters[root])
        for entry in path[2:]:
            key = key_of(entry)
            spec = _entry(spec, key, place)
            place += f"[{key!r}]"
        if isinstance(tensor, torch.Tensor):
            result.append(_axes_of_tensor(spec, tensor, place))
        else:
            result.append(_axes_of_sequence(spec, tensor, place))
    return result


def _axes_of_sequence(spec: Any, elements: Sequence[torch.Tensor], place: str) -> dict[int, Axis]:
    """The axes along which each element may have a size of its own: those that are dynamic in one of them."""
    is_each = isinstance(spec, list | tuple)
    specs = spec if is_each else [spec] * len(elements)
    if len(specs) != len(elements):
        raise ArgumentError(
            f"{place} has {len(specs)} entries for {len(elements)} elements; give each one, or a dict of axes for all"
        )
    axes: dict[int, Axis] = {}
    for index, (item, tensor) in enumerate(zip(specs, elements, strict=True)):
        axes |= _axes_of_tensor(item, tensor, f"{place}[{index}]" if is_each else place)
    return {axis: Axis(wanted.name) for axis, wanted in axes.items()}


def _of_argument(shapes: Any, roots: list[Any], root: Any, name: str) -> Any:
    if not isinstance(shapes, Mapping):
        return shapes[roots.index(root)]
    if name in shapes:
        return shapes[name]
    base, _, number = name.rpartition("_")  # one of *args is named args_0
    return shapes[base][int(number)] if base in shapes and number.isdigit() else None


def _entry(spec: Any, key: Any, place: str) -> Any:
    """The part of `spec` under one key of a nested argument."""
    if spec is None:
        return None
    try:
        if isinstance(spec, Mapping | list | tuple):
            return spec[key]
        return getattr(spec, key)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ArgumentError(f"{place} is {spec!r}, which has no entry {key!r} for the tensor there") from None


def _axes_of_tensor(spec: Any, tensor: torch.Tensor, place: str) -> dict[int, Axis]:
    rank = tensor.dim()
    if spec is None:
        return {}
    if isinstance(spec, Mapping):
        wrong = [axis for axis in spec if not isinstance(axis, int) or not -rank <= axis < rank]
        if wrong:
            raise ArgumentError(f"{place} names axis {wrong[0]!r}, but the tensor has {rank} dimensions (axes 0 to {rank - 1})")
        entries = {axis % rank: entry for axis, entry in spec.items()}
    elif isinstance(spec, list | tuple) and len(spec) == rank:
        entries = dict(enumerate(spec))
    else:
        raise ArgumentError(f"{place} is {spec!r}; for a tensor of {rank} dimensions give a dict of axes or {rank} entries")
    axes = {axis: _axis_of(entry, tensor.shape[axis], f"{place}[{axis}]") for axis, entry in entries.items()}
    return {axis: wanted for axis, wanted in axes.items() if wanted is not None}


def _axis_of(entry: Any, size: int, place: str) -> Axis | None:
    """What one entry says; None for a static axis."""
    if entry is None:
        return None
    if isinstance(entry, str) and entry:
        return Axis(entry)
    if isinstance(entry, int) and not isinstance(entry, bool):
        if entry != size:
            raise ArgumentError(f"{place} is {entry}, but the example has size {size} there")
        return None
    # A hint is an enum in older versions of PyTorch and a class with limits in newer ones; both are told by a name.
    hint = getattr(getattr(entry, "type", entry), "name", None)
    if hint in ("AUTO", "DYNAMIC", "STATIC"):
        return None if hint == "STATIC" else Axis("", _limits(entry), hint == "AUTO")
    if isinstance(getattr(entry, "__name__", None), str) and hasattr(entry, "min"):
        return Axis(entry.__name__, _limits(entry))
    raise ArgumentError(f"{place} is {entry!r}; an axis is a Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC, a name, a size or None")


def _limits(entry: Any) -> Range:
    least, greatest = getattr(entry, "min", None), getattr(entry, "max", None)
    # No limit is infinity or the largest integer, by the version of PyTorch.
    return int(least or 0), greatest if isinstance(greatest, int) and greatest < 2**62 else None
