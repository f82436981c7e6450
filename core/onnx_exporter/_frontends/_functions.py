"""What every capture asks of a ``torch.autograd.Function``."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from onnx_exporter._frontends._patching import patched
from onnx_exporter._source.graph import map_leaves


def forward_parameters(function: type[torch.autograd.Function], count: int) -> list[str]:
    """Returns a name for each of `count` arguments of ``apply``: those of the parameters of ``forward``, without ``ctx``."""
    parameters = list(inspect.signature(function.forward).parameters.values())[leading(function) :]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[index] if index < len(names) else f"arg_{index}" for index in range(count)]


def leading(function: Any) -> int:
    """Returns how many parameters of ``forward`` come before the arguments: ``ctx``, unless there is a ``setup_context``."""
    return int(function.setup_context is torch.autograd.Function.setup_context)


@dataclasses.dataclass(frozen=True)
class Slot:
    """The place of a tensor (or else of a size) among those of a call."""

    index: int
    is_tensor: bool


@dataclasses.dataclass(frozen=True)
class Nested:
    """An argument of a traced call that holds tensors, with a `Slot` for each.

    Attributes:
        argument: The list, tuple or dict.
        tensors: The tensors that were in it.
    """

    argument: Any
    tensors: tuple[torch.Tensor, ...]

    def filled(self, values: Sequence[Any]) -> Any:
        """Returns the argument with the values that belong into its slots."""
        return map_leaves(self.argument, lambda leaf: values[leaf.index] if isinstance(leaf, Slot) else leaf)

    def examples(self) -> list[int | None]:
        """Returns what each number among the tensors is in the example, None for another tensor; only after tracing."""
        return [int(tensor.item()) if _is_size(tensor) else None for tensor in self.tensors]


@contextmanager
def spread_arguments() -> Iterator[None]:
    """While active, tensors in lists, tuples and dicts among the arguments of an ``autograd.Function`` are seen by the tracer.

    It takes such an argument for a Python object: what ``forward`` does with the tensors in it would fail, and what
    ``symbolic`` does with them would be fixed. So a class in the place of the function takes them as arguments of their own.
    """
    base: Any = torch.autograd.Function
    if isinstance(vars(base)["apply"], classmethod):  # written in Python up to PyTorch 2.13, and calls the one in C
        base = torch.autograd.function._SingleLevelFunction

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        original = super(base, cls).apply
        if kwargs or torch._C._get_tracing_state() is None:
            return original(*args, **kwargs)
        tensors: list[torch.Tensor] = []
        given = [argument if isinstance(argument, torch.Tensor) else _spread(argument, tensors) for argument in args]
        if not tensors and not any(_is_size(argument) and _is_followed(argument) for argument in args):
            return original(*args)
        return super(base, _taking_apart(cls, len(args))).apply(*given, *tensors)

    with patched([(base, "apply", classmethod(apply))]):
        yield


def _spread(argument: Any, tensors: list[torch.Tensor]) -> Any:
    """Returns an argument with its tensors taken out, if it holds any that the tracer follows."""
    first = len(tensors)

    def slot(leaf: Any) -> Any:
        if not (isinstance(leaf, torch.Tensor) and _is_followed(leaf)):
            return leaf
        tensors.append(leaf)
        return Slot(len(tensors) - 1, True)

    changed = map_leaves(argument, slot)
    return argument if len(tensors) == first else Nested(changed, tuple(tensors[first:]))


def _is_followed(tensor: torch.Tensor) -> bool:
    """Whether the tracer knows where a tensor comes from; what the model made without it is a constant."""
    tracer: Any = torch._C
    try:
        return bool(tracer._get_value_trace(tensor).node().kind() != "prim::Constant")
    except RuntimeError:  # a tensor that the tracer does not know and cannot hold as a constant
        return False


def _is_size(leaf: Any) -> bool:
    """Whether it is a tensor such as a size is in a trace."""
    return isinstance(leaf, torch.Tensor) and leaf.dim() == 0 and leaf.dtype == torch.int64


_STANDS_FOR = "onnx_exporter_stands_for"


def _taking_apart(cls: Any, count: int) -> Any:
    """Returns a class that does what `cls` does; what follows `count` arguments are the tensors in them."""
    before = leading(cls)

    def whole(args: Sequence[Any]) -> list[Any]:
        # Where a size goes into a list of sizes, the tracer notes so beside what made it, which must be within the body
        inside = [item.clone() if _is_size(item) else item for item in args]
        return [item.filled(inside[count:]) if isinstance(item, Nested) else item for item in inside[:count]]

    def forward(*args: Any) -> Any:
        return cls.forward(*args[:before], *whole(args[before:]))

    def setup_context(ctx: Any, inputs: Sequence[Any], output: Any) -> Any:
        return cls.setup_context(ctx, tuple(whole(inputs)), output)

    methods = {"forward": staticmethod(forward), _STANDS_FOR: cls}
    if not before:
        methods["setup_context"] = staticmethod(setup_context)
    return type(cls)(cls.__name__, (cls,), methods)


def holds_sizes(args: Sequence[Any]) -> bool:
    """Whether lists, tuples or dicts among the arguments of a traced call hold sizes, as in a call by a name for ``apply``."""
    found: list[Any] = []

    def note(leaf: Any) -> Any:
        if _is_size(leaf):
            found.append(leaf)
        return leaf

    map_leaves([item for item in args if isinstance(item, list | tuple | dict)], note)
    return bool(found)


def whole_call(function: Any, args: Sequence[Any]) -> tuple[Any, list[Any], list[int | None]]:
    """Returns the function behind a traced call, its arguments, and the examples of the numbers nested in them."""
    original = vars(function).get(_STANDS_FOR)
    if original is None:
        return function, list(args), []
    nested = [item for item in args if isinstance(item, Nested)]
    count = len(args) - sum(len(item.tensors) for item in nested)
    whole = [item.filled(args[count:]) if isinstance(item, Nested) else item for item in args[:count]]
    return original, whole, [example for item in nested for example in item.examples()]
