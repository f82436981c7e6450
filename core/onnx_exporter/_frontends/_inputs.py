"""The tensors among a model's arguments, their names in the file, and which of their axes are dynamic."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter.errors import ArgumentError

DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]]
"""What the caller says: for each input or output name, its dynamic axes with names or without."""


@dataclasses.dataclass(frozen=True)
class InputTensor:
    """One tensor among the arguments.

    Attributes:
        name: Its name in the file.
        tensor: The example.
        parameter: The parameter of ``forward`` that it came in by.
        dynamic: Name of the symbol for each dynamic axis; axes are not negative.
    """

    name: str
    tensor: torch.Tensor
    parameter: str
    dynamic: Mapping[int, str]


@dataclasses.dataclass(frozen=True)
class ModelInputs:
    """Arguments of a model, taken apart into tensors (inputs of the file) and everything else (baked in).

    Attributes:
        args: Positional arguments as the caller gave them.
        kwargs: Keyword arguments as the caller gave them.
        tensors: The tensors, in order of appearance.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: tuple[InputTensor, ...]
    _leaves: tuple[Any, ...]
    _spec: pytree.TreeSpec

    def rebuild(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns ``args, kwargs`` with other objects (one for each of `tensors`) in the tensors' places."""
        fresh = iter(tensors)
        leaves = [next(fresh) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return tuple(args), kwargs

    @property
    def is_dynamic(self) -> bool:
        """Whether the caller named any dynamic axis."""
        return any(item.dynamic for item in self.tensors)


def split_args(args: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns positional and keyword arguments from what the caller of export() gave as `args`.

    A tuple that ends in a dict of strings holds keyword arguments there, as in torch.onnx; an empty
    dict at the end makes the dict before it positional.
    """
    if isinstance(args, list):
        args = tuple(args)
    if not isinstance(args, tuple):
        args = (args,)
    named: dict[str, Any] = {}
    if args and isinstance(args[-1], dict) and all(isinstance(key, str) for key in args[-1]) and len(args) > 1:
        args, named = args[:-1], dict(args[-1])
    elif len(args) == 1 and isinstance(args[0], dict) and not args[0]:
        args = ()
    for key, value in (kwargs or {}).items():
        if key in named:
            raise ArgumentError(f"argument {key!r} is given in args and in kwargs; give it once")
        named[key] = value
    return args, named


def model_inputs(
    forward: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    input_names: Sequence[str] | None,
    dynamic_axes: DynamicAxes | None,
) -> ModelInputs:
    """Takes the arguments of `forward` apart, names the tensors and checks the names.

    Raises:
        ArgumentError: If the arguments do not fit `forward`, a name is given twice or is too many,
            or an axis does not exist.
    """
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"args do not fit the model's forward: {error}") from error
    except ValueError:
        bound = None  # a built-in callable has no signature; number its arguments
    paths, spec = pytree.tree_flatten_with_path((list(args), kwargs))
    parameters = _parameters_by_path(bound, args, kwargs)
    found = [(path, leaf) for path, leaf in paths if isinstance(leaf, torch.Tensor)]
    own_names = [_default_name(path, parameters) for path, _ in found]
    names = chosen_names(own_names, input_names)
    tensors = []
    for (path, leaf), name in zip(found, names, strict=True):
        axes = _axes_of(name, leaf, dynamic_axes)
        tensors.append(InputTensor(name, leaf, parameters[_root(path)], axes))
    _check_symbols(tensors)
    return ModelInputs(args, kwargs, tuple(tensors), tuple(leaf for _, leaf in paths), spec)


def _check_symbols(tensors: Sequence[InputTensor]) -> None:
    """Axes of one name have one size, also in the example."""
    seen: dict[str, tuple[str, int, int]] = {}
    for item in tensors:
        for axis, symbol in item.dynamic.items():
            size = item.tensor.shape[axis]
            name, other_axis, other_size = seen.setdefault(symbol, (item.name, axis, size))
            if size != other_size:
                raise ArgumentError(
                    f"dynamic_axes calls axis {other_axis} of {name!r} and axis {axis} of {item.name!r} both {symbol!r}, "
                    f"but the example has sizes {other_size} and {size} there; axes of one name have one size, "
                    "so give them two names"
                )


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


def _parameters_by_path(bound: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[Any, str]:
    """The parameter of ``forward`` behind each positional index and each keyword."""
    names: dict[Any, str] = {key: key for key in kwargs}
    if bound is None:
        return names | {index: f"input_{index}" for index in range(len(args))}
    index = 0
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            count = len(bound.arguments.get(name, ()))
            names |= {index + offset: f"{name}_{offset}" for offset in range(count)}
            index += count
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) and index < len(args):
            names[index] = name
            index += 1
    return names


def _root(path: tuple[Any, ...]) -> Any:
    return _key(path[1])


def _key(entry: Any) -> Any:
    for attribute in ("idx", "key", "name"):
        if hasattr(entry, attribute):
            return getattr(entry, attribute)
    return str(entry)


def _default_name(path: tuple[Any, ...], parameters: dict[Any, str]) -> str:
    return "_".join([parameters[_root(path)], *(str(_key(entry)) for entry in path[2:])])


def chosen_names(own: list[str], given: Sequence[str] | None) -> list[str]:
    """Given names first, then the parameters' own; all different."""
    if isinstance(given, str):
        raise ArgumentError(f"input_names is the string {given!r}; give a list of names: [{given!r}]")
    given = list(given or ())
    if any(not isinstance(name, str) or not name for name in given):
        raise ArgumentError(f"input_names must be a list of non-empty strings, got {given!r}")
    if len(given) > len(own):
        raise ArgumentError(
            f"input_names has {len(given)} names, but the model takes {len(own)} tensors ({', '.join(own) or 'none'})"
        )
    names = given + own[len(given) :]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ArgumentError(
            f"input name {', '.join(map(repr, repeated))} stands for two inputs; give each its own in input_names"
        )
    return names


def _axes_of(name: str, tensor: torch.Tensor, dynamic_axes: DynamicAxes | None) -> dict[int, str]:
    """The dynamic axes of one input, counted from 0, each with the name of its symbol."""
    return normalise_axes(name, tensor.dim(), (dynamic_axes or {}).get(name, ()))


def normalise_axes(name: str, rank: int, axes: Any) -> dict[int, str]:
    """Returns `axes` with axes counted from 0 and every axis named.

    Raises:
        ArgumentError: If an axis does not exist or its name is not a string.
    """
    if isinstance(axes, str) or not isinstance(axes, Mapping | Sequence):
        raise ArgumentError(f"dynamic_axes[{name!r}] must be a dict of axis to name or a list of axes, got {axes!r}")
    named = dict(axes) if isinstance(axes, Mapping) else dict.fromkeys(axes, "")
    result = {}
    for axis, symbol in named.items():
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise ArgumentError(f"dynamic_axes[{name!r}] names axis {axis!r}; an axis is an int")
        if not -rank <= axis < rank:
            raise ArgumentError(
                f"dynamic_axes[{name!r}] names axis {axis!r}, but {name!r} has {rank} dimensions (axes 0 to {rank - 1})"
            )
        if not isinstance(symbol, str):
            raise ArgumentError(f"dynamic_axes[{name!r}][{axis}] must be the name of the axis, got {symbol!r}")
        result[axis % rank] = symbol or f"{name}_dynamic_axes_{axis % rank}"
    return result
