"""Inputs of other sizes, for a model whose axes are dynamic."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._frontends._inputs import Given, InputTensor, ModelInputs, split_args
from onnx_exporter._verify_values import resized_values
from onnx_exporter.errors import ArgumentError

Sizes = Mapping[str, int]
"""Size of each symbol."""
Tensors = Sequence[Given | None]
"""A tensor for each input, a list of them for a sequence, or None for one that is not given."""
Ranges = Mapping[str, tuple[int, int | None]]
"""Least and greatest size of the symbols that are limited; None means no limit."""

# Ways to leave the traced size, in the order in which real models are likely to accept them. One more than
# traced is cheap, and the step of 32 suits models that halve an image five times.
_LARGER: tuple[Callable[[int, int], int], ...] = (
    lambda size, step: size + step,
    lambda size, step: size * (1 + step),
    lambda size, step: size + 2 * step,
    lambda size, step: size + 32 * step,
)
_SMALLER: tuple[Callable[[int, int], int], ...] = (
    lambda size, step: size // (1 + step),
    lambda size, step: 1 if step == 1 else size - step,
    lambda size, step: size - step,
    lambda size, step: size - 32 * step,
)
_STEPS = 8


class Symbols:
    """The names of the dynamic axes, their traced sizes, and which of them follow from others.

    A name such as ``"past + new"`` is read as a sum of the axes ``past`` and ``new`` where those exist
    and the traced sizes agree.

    Args:
        inputs: The traced arguments.
        ranges: Limits of the sizes to choose.
    """

    def __init__(self, inputs: ModelInputs, ranges: Ranges | None = None) -> None:
        self._ranges = ranges or {}
        self.traced: dict[str, int] = {}
        for item in sorted(inputs.tensors, key=lambda item: item.elements is not None):
            for axis, symbol in sorted(item.dynamic.items()):
                if len({tensor.shape[axis] for tensor in tensors_in(item.example)}) == 1:
                    self.traced.setdefault(symbol, item.tensor.shape[axis])
        self._derived = {}
        for symbol in self.traced:
            expression = _expression(symbol, self.traced)
            if expression is not None and expression(self.traced) == self.traced[symbol]:
                self._derived[symbol] = expression
        self.free = [symbol for symbol in self.traced if symbol not in self._derived]

    def complete(self, sizes: Sizes) -> dict[str, int]:
        """Returns a size for every symbol: as given, else derived, else as traced."""
        free = {symbol: sizes.get(symbol, self.traced[symbol]) for symbol in self.free}
        derived = {symbol: expression(free) for symbol, expression in self._derived.items()}
        return {symbol: derived.get(symbol, free.get(symbol, 0)) for symbol in self.traced}

    def candidates(self, smaller: bool) -> Iterator[dict[str, int]]:
        """Yields sizes that differ from the traced ones in every symbol, the likeliest first.

        Different symbols get different sizes. Only after those come guesses for axes that hang together
        without saying so: one size for symbols traced at one size, and a sum where the traced size was one.
        """
        # A symbol that cannot shrink grows in the smaller run, by another rule than in the larger.
        families = [*_SMALLER, *_LARGER[1:], _LARGER[0]] if smaller else list(_LARGER)
        seen = [self.traced]
        for guess in (self._distinct, self._shared, self._summed):
            for family in families:
                sizes = self.complete(guess(family))
                if sizes not in seen and min(sizes.values(), default=0) >= 1 and self._allows(sizes):
                    seen.append(sizes)
                    yield sizes

    def candidates_for(self, symbol: str) -> Iterator[dict[str, int]]:
        """Yields sizes that differ from the traced ones in one free symbol and what follows from it."""
        traced = self.traced[symbol]
        seen = {traced}
        for family in (*_LARGER, *_SMALLER):
            size = family(traced, 1)
            if size >= 1 and size not in seen:
                seen.add(size)
                sizes = self.complete({symbol: size})
                if min(sizes.values()) >= 0 and self._allows(sizes):
                    yield sizes

    def _allows(self, sizes: Sizes) -> bool:
        """Whether every size is within its range, or the traced one, which some range may not hold."""
        return all(size == self.traced[symbol] or _within(size, self._range(symbol)) for symbol, size in sizes.items())

    def _range(self, symbol: str) -> tuple[int, int | None]:
        return self._ranges.get(symbol, (0, None))

    def _distinct(self, family: Callable[[int, int], int]) -> dict[str, int]:
        sizes: dict[str, int] = {}
        traced = [self.traced[symbol] for symbol in self.free]
        for symbol, size in zip(self.free, traced, strict=True):
            # Axes traced at one size may meet, and 1 would then broadcast where they should have been equal.
            least = 1 if traced.count(size) == 1 else 2
            sizes[symbol] = _fresh(family, size, set(sizes.values()), self._range(symbol), least)
        return sizes

    def _shared(self, family: Callable[[int, int], int]) -> dict[str, int]:
        by_traced: dict[int, int] = {}
        for symbol in self.free:
            traced = self.traced[symbol]
            if traced not in by_traced:
                by_traced[traced] = _fresh(family, traced, set(by_traced.values()), self._range(symbol))
        return {symbol: by_traced[self.traced[symbol]] for symbol in self.free}

    def _summed(self, family: Callable[[int, int], int]) -> dict[str, int]:
        sizes = self._shared(family)
        for symbol in self.free:
            others = [other for other in self.free if other != symbol]
            for first, second in itertools.combinations(others, 2):
                if self.traced[first] + self.traced[second] == self.traced[symbol]:
                    sizes[symbol] = sizes[first] + sizes[second]
        return sizes


def _within(size: int, limits: tuple[int, int | None]) -> bool:
    return limits[0] <= size and (limits[1] is None or size <= limits[1])


def _fresh(
    family: Callable[[int, int], int], traced: int, taken: set[int], limits: tuple[int, int | None], least: int = 1
) -> int:
    """The first size of the family that is new and within limits; where it has none, the next one above or below.

    The traced size is all that is left where the limits allow no other.
    """

    def is_new(size: int) -> bool:
        return size >= least and size != traced and size not in taken and _within(size, limits)

    for step in range(1, _STEPS):
        if is_new(size := family(traced, step)):
            return size
    start = max(traced + 1, least)
    above = itertools.count(start) if limits[1] is None else range(start, limits[1] + 1)
    return next((size for size in itertools.chain(above, range(traced - 1, 0, -1)) if is_new(size)), traced)


def _expression(symbol: str, known: Sizes) -> Callable[[Sizes], int] | None:
    """Reads sums, differences and products of known symbols; None if the name is just a name."""
    try:
        tree = ast.parse(symbol, mode="eval").body
    except SyntaxError:
        return None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if isinstance(tree, ast.Name) or not names or symbol in names or not names <= set(known):
        return None
    operators = (ast.BinOp, ast.Name, ast.Load, ast.Constant, ast.Add, ast.Sub, ast.Mult)
    if not all(isinstance(node, operators) for node in ast.walk(tree)):
        return None
    if any(isinstance(node, ast.Constant) and not isinstance(node.value, int) for node in ast.walk(tree)):
        return None
    return functools.partial(_evaluate, tree)


def _evaluate(node: ast.AST, sizes: Sizes) -> int:
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]  # _expression let integers through only
    assert isinstance(node, ast.BinOp)
    left, right = _evaluate(node.left, sizes), _evaluate(node.right, sizes)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    return left * right


def resized(inputs: ModelInputs, sizes: Sizes, seed: int) -> list[Given]:
    """Returns tensors like the examples, with other sizes along the dynamic axes. The same seed gives the same.

    Their elements stay in the example's domain, as `_verify_values` understands it.
    """
    generator = torch.Generator().manual_seed(seed)

    def of_other_size(item: InputTensor, tensor: torch.Tensor) -> torch.Tensor:
        shape = [sizes.get(item.dynamic.get(axis, ""), size) for axis, size in enumerate(tensor.shape)]
        return resized_values(tensor, shape, generator, keeps_columns=tensor.dim() - 1 not in item.dynamic)

    return [
        mapped(functools.partial(of_other_size, item), item.example) if item.dynamic else item.example for item in inputs.tensors
    ]


def mapped(function: Callable[[torch.Tensor], torch.Tensor], given: Given) -> Given:
    """Returns what a function gives for a tensor, or for each in a list."""
    return [function(tensor) for tensor in given] if isinstance(given, list) else function(given)


def tensors_in(given: Given | None) -> list[torch.Tensor]:
    """Returns the tensors in what is given for an input, or comes of an output."""
    return given if isinstance(given, list) else [] if given is None else [given]


def flat(values: Iterable[Given | None]) -> list[torch.Tensor]:
    """Returns the tensors in what is given for inputs, or comes of outputs, in order."""
    return [tensor for given in values for tensor in tensors_in(given)]


def regrouped(tensors: Iterable[torch.Tensor], like: Sequence[Given]) -> list[Given]:
    """Returns tensors as lists where others are in lists."""
    fresh = iter(tensors)
    return [mapped(lambda _: next(fresh), given) for given in like]


def alternative_tensors(inputs: ModelInputs, args: Any) -> list[Given | None]:
    """Returns the tensors and lists of other arguments that the caller gives, checked against the traced ones.

    Raises:
        ArgumentError: If they are not like the traced arguments but for sizes of dynamic axes, and None for optional inputs.
    """
    positional, named = split_args(args, None)
    if set(named) != set(inputs.kwargs) or len(positional) != len(inputs.args):
        raise ArgumentError(
            f"alternative arguments must be given like args: {len(inputs.args)} positional and the keywords "
            f"{sorted(inputs.kwargs)}; got {len(positional)} and {sorted(named)}"
        )
    tensors = inputs.in_their_places(positional, named)
    if tensors is None:
        tensors = list(inputs.found_in(positional, named))
        if len(tensors) != len(inputs.tensors):
            raise ArgumentError(f"alternative arguments hold {len(tensors)} tensors, but args hold {len(inputs.tensors)}")
    for item, given in zip(inputs.tensors, tensors, strict=True):
        if given is None:
            _check_optional(item)
        elif isinstance(given, list) is (item.elements is None):
            raise ArgumentError(f"alternative argument {item.name!r} must be a {_kind(item.example)}, got a {_kind(given)}")
        for index, tensor in enumerate(tensors_in(given)):
            _check_like(item, tensor, f"{item.name}[{index}]" if isinstance(given, list) else item.name)
    return tensors


def _kind(given: Given) -> str:
    return "list" if isinstance(given, list) else "tensor"


def _check_like(item: InputTensor, tensor: torch.Tensor, name: str) -> None:
    """Checks a tensor that is given for an input, or as an element of a sequence."""
    if not isinstance(tensor, torch.Tensor):
        raise ArgumentError(f"alternative argument {name!r} must be a tensor, got {type(tensor).__name__}")
    sizes = item.sizes
    fits = sizes is None or len(sizes) == tensor.dim()
    fits = fits and all(got == size or not isinstance(size, int) for size, got in zip(sizes or (), tensor.shape, strict=False))
    if tensor.dtype != item.tensor.dtype or not fits:
        shape = "any" if sizes is None else [size if isinstance(size, int) else "any" for size in sizes]
        raise ArgumentError(
            f"alternative argument {name!r} must be a {item.tensor.dtype} tensor of shape {shape}, "
            f"got {tensor.dtype} of shape {list(tensor.shape)}"
        )


def _check_optional(item: InputTensor) -> None:
    if not item.is_optional:
        raise ArgumentError(
            f"alternative argument {item.name!r} is None, but the file must be given it: what may be left out are parameters of "
            "a scripted model that are declared Optional, where the model asks whether they are None, from opset 15 on"
        )


def without_optional(inputs: ModelInputs) -> list[tuple[str, list[Given | None]]]:
    """Returns the examples without each of the optional inputs, and without all of them, each with a label."""
    optional = [item.name for item in inputs.tensors if item.is_optional]
    choices = [[name] for name in optional] + ([optional] if len(optional) > 1 else [])
    return [
        (f"without {', '.join(names)}", [None if item.name in names else item.example for item in inputs.tensors])
        for names in choices
    ]


def label_of(sizes: Sizes) -> str:
    """Returns sizes in words: ``batch=3, height=48``."""
    return ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())


def sizes_of(inputs: ModelInputs, tensors: Tensors) -> dict[str, int]:
    """Returns the size that each symbol has in these tensors, and the length of each sequence."""
    sizes: dict[str, int] = {}
    for item, given in zip(inputs.tensors, tensors, strict=True):
        if isinstance(given, list):
            sizes[f"len({item.name})"] = len(given)
        elif given is not None:
            for axis, symbol in sorted(item.dynamic.items()):
                sizes.setdefault(symbol, given.shape[axis])
    return sizes
