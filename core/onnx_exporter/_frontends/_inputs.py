"""The tensors among a model's arguments, their names in the file, and which of their axes are dynamic."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree

from onnx_exporter._frontends._dynamic import Axis, DynamicAxes, axes_by_path, chosen_axes, common_range, key_of
from onnx_exporter._frontends._structures import opaque_with_tensors, register_structures
from onnx_exporter._frontends.captured import Range
from onnx_exporter.errors import ArgumentError

Given = torch.Tensor | list[torch.Tensor]
"""What is given for an input: a tensor, or for a sequence a list of tensors."""


@dataclasses.dataclass(frozen=True)
class InputTensor:
    """One tensor among the arguments, or a list of tensors that is one input of the file: a sequence.

    Attributes:
        name: Its name in the file.
        tensor: The example; of a sequence its first element.
        parameter: The parameter of ``forward`` that it came in by.
        dynamic: Name of the symbol for each dynamic axis; axes are not negative.
        automatic: The dynamic axes that may as well turn out to be fixed.
        is_optional: It need not be given: the file takes nothing in its place, and PyTorch None.
        elements: All elements of the example of a sequence. Each may have a size of its own along a dynamic axis.
    """

    name: str
    tensor: torch.Tensor
    parameter: str
    dynamic: Mapping[int, str]
    automatic: frozenset[int] = frozenset()
    is_optional: bool = False
    elements: tuple[torch.Tensor, ...] | None = None

    @property
    def example(self) -> Given:
        """What the example has for it."""
        return self.tensor if self.elements is None else list(self.elements)

    @property
    def sizes(self) -> tuple[int | str | None, ...] | None:
        """Its size along each axis, or the name of it; None where the elements of a sequence need not have one size.

        None in place of all: elements of the example have different ranks.
        """
        if self.elements is None:
            return tuple(self.dynamic.get(axis, size) for axis, size in enumerate(self.tensor.shape))
        if len({item.dim() for item in self.elements}) > 1:
            return None
        common = [set(sizes) for sizes in zip(*(item.shape for item in self.elements), strict=True)]
        return tuple(None if axis in self.dynamic or len(sizes) > 1 else min(sizes) for axis, sizes in enumerate(common))


@dataclasses.dataclass(frozen=True)
class ModelInputs:
    """Arguments of a model, taken apart into tensors and sequences (inputs of the file) and everything else (baked in).

    Attributes:
        args: Positional arguments as the caller gave them.
        kwargs: Keyword arguments as the caller gave them.
        tensors: The tensors and sequences, in order of appearance.
        ranges: The sizes that the caller allows for dynamic axes, by name.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: tuple[InputTensor, ...]
    _leaves: tuple[Any, ...]
    _spec: pytree.TreeSpec
    ranges: Mapping[str, Range] = dataclasses.field(default_factory=dict)
    _whole: frozenset[Any] = frozenset()
    """The positions and keywords of the arguments that are sequences."""

    def rebuild(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns ``args, kwargs`` with other objects, or None (one for each of `tensors`), in the tensors' places."""
        fresh = iter(tensors)
        leaves = [next(fresh) if _is_input(leaf) else leaf for leaf in self._leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        return tuple(args), kwargs

    def with_optional(self, are_optional: Sequence[bool]) -> ModelInputs:
        """Returns the inputs with the knowledge, for each tensor, whether it need not be given."""
        tensors = [
            dataclasses.replace(item, is_optional=is_optional)
            for item, is_optional in zip(self.tensors, are_optional, strict=True)
        ]
        return dataclasses.replace(self, tensors=tuple(tensors))

    def in_their_places(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Given | None] | None:
        """Returns the tensors and lists of other arguments, and None where these have None and the example has one.

        The result is None if they have one elsewhere, or something else in the place of one.
        """
        leaves = self._leaves_of(args, kwargs)
        if len(leaves) != len(self._leaves):
            return None
        pairs = list(zip(self._leaves, leaves, strict=True))
        return [new for old, new in pairs if _is_input(old)] if all(_fits(*pair) for pair in pairs) else None

    def found_in(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Given]:
        """Returns the tensors and lists of other arguments, wherever they stand."""
        return [leaf for leaf in self._leaves_of(args, kwargs) if _is_input(leaf)]

    def _leaves_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        return [leaf for _, leaf in _flattened(args, {key: kwargs[key] for key in self.kwargs}, self._whole)[0]]

    @property
    def tensors_and_gaps(self) -> list[Given | None]:
        """The tensors and lists among the arguments, and None where there is None."""
        return [leaf for leaf in self._leaves if leaf is None or _is_input(leaf)]

    @property
    def opaque(self) -> list[str]:
        """The classes of those arguments that hold tensors which cannot become inputs."""
        return opaque_with_tensors(self._leaves)

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
    dynamic_shapes: Any = None,
    sequences: Collection[str] = (),
) -> ModelInputs:
    """Takes the arguments of `forward` apart, names the tensors and checks the names.

    Dataclasses among the arguments become known to PyTorch's pytree, so that the tensors in them are found.

    Args:
        forward: What will be called.
        args: Positional arguments.
        kwargs: Keyword arguments.
        input_names: Names for the first tensors.
        dynamic_axes: Dynamic axes by input name.
        dynamic_shapes: Dynamic axes in a structure like the arguments', as ``torch.export.export`` takes it.
        sequences: The parameters whose argument is one input, if it is a list of tensors of one element type.

    Raises:
        ArgumentError: If the arguments do not fit `forward` or hold NumPy arrays, a name is given twice or is too
            many, or an axis does not exist.
    """
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs)
    except TypeError as error:
        raise ArgumentError(f"args do not fit the model's forward: {error}") from error
    except ValueError:
        bound = None  # a built-in callable has no signature; number its arguments
    register_structures((args, kwargs))
    parameters = _parameters_by_path(bound, args, kwargs)
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    whole = frozenset(key for key, name in parameters.items() if name in sequences and _is_of_one_type(given[key]))
    paths, spec = _flattened(args, kwargs, whole)
    for path, leaf in paths:
        if isinstance(leaf, np.ndarray):
            raise ArgumentError(
                f"argument {_default_name(path, parameters)!r} is a NumPy array, which would be a constant of the file; "
                "give a tensor: torch.from_numpy(array)"
            )
    found = [(path, leaf) for path, leaf in paths if _is_input(leaf)]
    own_names = [_default_name(path, parameters) for path, _ in found]
    names = chosen_names(own_names, input_names)
    shapes = axes_by_path(dynamic_shapes, found, parameters)
    tensors = []
    for (path, leaf), name, shape in zip(found, names, shapes, strict=True):
        elements = tuple(leaf) if isinstance(leaf, list) else None
        tensor = leaf if elements is None else elements[0] if elements else torch.empty(0)
        axes = chosen_axes(name, tensor, dynamic_axes, shape)
        item = InputTensor(name, tensor, parameters[_root(path)], *axes, elements=elements)
        if item.sizes is None and item.dynamic:
            raise ArgumentError(f"dynamic_axes names axes of {name!r}, whose elements have several ranks; leave it out")
        tensors.append(item)
    _check_symbols(tensors)
    leaves = tuple(leaf for _, leaf in paths)
    return ModelInputs(args, kwargs, tuple(tensors), leaves, spec, _ranges(tensors, shapes), whole)


def _flattened(
    args: Sequence[Any], kwargs: Mapping[str, Any], whole: Collection[Any]
) -> tuple[list[tuple[tuple[Any, ...], Any]], pytree.TreeSpec]:
    """What arguments hold, each with its path, and their structure; an argument of `whole` that is a list stays one."""

    def copied(key: Any, value: Any) -> Any:
        return list(value) if key in whole and isinstance(value, list | tuple) else value

    # Copies, so that a list is told from the same one in another place.
    positional = [copied(index, value) for index, value in enumerate(args)]
    named = {key: copied(key, value) for key, value in kwargs.items()}
    kept = {id(value) for key, value in [*enumerate(positional), *named.items()] if key in whole}
    return pytree.tree_flatten_with_path((positional, named), is_leaf=lambda value: id(value) in kept)


def _is_input(leaf: Any) -> bool:
    """Whether a leaf of the arguments is an input: lists are leaves only where they are one."""
    return isinstance(leaf, torch.Tensor | list)


def _fits(example: Any, other: Any) -> bool:
    """Whether a leaf of other arguments is of the kind that the example has in its place, or None for an input."""
    if not _is_input(example):
        return not _is_input(other)
    return other is None or isinstance(other, list if isinstance(example, list) else torch.Tensor)


def _is_of_one_type(argument: Any) -> bool:
    """Whether an argument is a list of tensors of one element type."""
    if not isinstance(argument, list | tuple) or not all(isinstance(item, torch.Tensor) for item in argument):
        return False
    return len({item.dtype for item in argument}) <= 1


def _ranges(tensors: Sequence[InputTensor], shapes: Sequence[Mapping[int, Axis]]) -> dict[str, Range]:
    """The range of each name; one that is given several has what all of them allow."""
    ranges: dict[str, Range] = {}
    for item, axes in zip(tensors, shapes, strict=True):
        for axis, wanted in axes.items():
            if axis not in item.dynamic or item.elements is not None or wanted.range == (0, None):
                continue
            name, size = item.dynamic[axis], item.tensor.shape[axis]
            if size < wanted.range[0] or (wanted.range[1] is not None and size > wanted.range[1]):
                raise ArgumentError(
                    f"dynamic_shapes allows sizes {wanted.range[0]} to {wanted.range[1] or 'any'} for axis {axis} of "
                    f"{item.name!r} ({name}), but the example has {size}; give another example or wider limits"
                )
            ranges[name] = common_range(ranges.get(name, (0, None)), wanted.range)
    return ranges


def _check_symbols(tensors: Sequence[InputTensor]) -> None:
    """Axes of one name have one size, also in the example."""
    seen: dict[str, tuple[str, int, int]] = {}
    for item in (item for item in tensors if item.elements is None):
        for axis, symbol in item.dynamic.items():
            size = item.tensor.shape[axis]
            name, other_axis, other_size = seen.setdefault(symbol, (item.name, axis, size))
            if size != other_size:
                raise ArgumentError(
                    f"dynamic_axes calls axis {other_axis} of {name!r} and axis {axis} of {item.name!r} both {symbol!r}, "
                    f"but the example has sizes {other_size} and {size} there; axes of one name have one size, "
                    "so give them two names"
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
    return key_of(path[1])


def _default_name(path: tuple[Any, ...], parameters: dict[Any, str]) -> str:
    return "_".join([parameters[_root(path)], *(str(key_of(entry)) for entry in path[2:])])


def chosen_names(own: list[str], given: Sequence[str] | None) -> list[str]:
    """Given names first, then the parameters' own; all different."""
    if isinstance(given, str):
        raise ArgumentError(f"input_names is the string {given!r}; give a list of names: [{given!r}]")
    given = list(given or ())
    if any(not isinstance(name, str) or not name for name in given):
        raise ArgumentError(f"input_names must be a list of non-empty strings, got {given!r}")
    names = given[: len(own)] + own[len(given) :]  # those left over are for weights
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ArgumentError(
            f"input name {', '.join(map(repr, repeated))} stands for two inputs; give each its own in input_names"
        )
    return names
