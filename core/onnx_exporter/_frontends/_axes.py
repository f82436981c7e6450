"""Which axes of a result keep a size that does not vary, for the operators that mostly move axes about.

It serves only to tell whether a number that Python read may vary. What is missing here makes a warning more, never
a wrong file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from onnx_exporter._source.graph import SourceNode, SourceValue

Steady = tuple[bool, ...]
"""For each axis, whether its size is the same for all inputs."""

_SIZED_BY_LIST = frozenset(
    f"aten::{name}"
    for name in (
        "view",
        "reshape",
        "_unsafe_view",
        "expand",
        "zeros",
        "ones",
        "full",
        "empty",
        "new_zeros",
        "new_ones",
        "new_full",
    )
)
_SAME = frozenset(
    f"aten::{name}"
    for name in (
        *("layer_norm", "softmax", "log_softmax", "dropout", "feature_dropout", "contiguous", "clone", "detach", "to", "type_as"),
        *("group_norm", "batch_norm", "instance_norm", "rms_norm", "roll", "flip", "cumsum", "scaled_dot_product_attention"),
        *("masked_fill", "float", "half", "bfloat16", "alias"),
    )
)
_PARTS = frozenset({"aten::split", "aten::chunk", "aten::split_with_sizes", "aten::unsafe_split", "aten::unsafe_chunk"})
_CONVOLUTIONS = frozenset(f"aten::{name}{count}d" for name in ("conv", "conv_transpose") for count in (1, 2, 3))
_RESIZED = re.compile(r"aten::\w*(?:pool|upsample_\w+?)([123])d\w*")
"""Operators that change the size of as many axes at the end as their name says."""


def steady_axes(
    node: SourceNode, rank: int, of: Callable[[SourceValue], Steady], is_steady: Callable[[Any], bool], pointwise: bool
) -> Steady | None:
    """Returns which axes of a result do not vary; None if nothing is known about the operator.

    Args:
        node: The call.
        rank: Rank of the result.
        of: Returns the same for a value.
        is_steady: Whether a number among the arguments does not vary.
        pointwise: The result has the size that its arguments broadcast to.
    """
    arguments = node.arguments
    first = next(iter(arguments.values()), None)
    if node.op in _SIZED_BY_LIST:
        return _from_list(arguments.get("size", arguments.get("shape")), first, rank, of, is_steady)
    if node.op == "aten::cat" and isinstance(first, Sequence):
        joined = [of(item) for item in first]
        return tuple(map(all, zip(*joined, strict=True))) if len({*map(len, joined)}) == 1 else None
    if not isinstance(first, SourceValue):
        return None
    own = of(first)
    dim = arguments.get("dim", 0)
    if pointwise:
        tensors = [item for item in arguments.values() if isinstance(item, SourceValue) and item.type.rank]
        return tuple(all(_from_end(of(item), rank - axis) for item in tensors) for axis in range(rank))
    if first.type.shape is None:
        return None  # what a scripted function returns, say: its axes are not known
    if node.op in _SAME:
        return own
    if node.op in _CONVOLUTIONS or node.op == "aten::_convolution":
        weight = of(arguments["weight"])
        at = len(own) - len(weight) + 1  # the channels, which are an axis of the weights
        return (*own[:at], all(weight), *_at_end(own, len(weight) - 2, arguments, is_steady))
    if resized := _RESIZED.fullmatch(node.op):
        count = int(resized[1])
        return (*own[:-count], *_at_end(own, count, arguments, is_steady))
    if node.op == "aten::linear":
        return (*own[:-1], True)
    if node.op == "aten::t":
        return own[::-1]
    if node.op == "aten::transpose":
        order = list(range(len(own)))
        one, two = arguments["dim0"], arguments["dim1"]
        if own and isinstance(one, int) and isinstance(two, int):
            order[one], order[two] = order[two], order[one]
        return tuple(own[axis] for axis in order)
    if node.op == "aten::permute":
        return tuple(own[axis] for axis in arguments["dims"])
    if not isinstance(dim, int):
        return None
    if node.op == "aten::unsqueeze":
        at = dim % rank
        return (*own[:at], True, *own[at:])
    if node.op in ("aten::select", "aten::unbind"):
        return tuple(steady for axis, steady in enumerate(own) if axis != dim % len(own))
    if node.op == "aten::slice" or node.op in _PARTS:
        at = dim % len(own)
        bounds = all(is_steady(value) for name, value in arguments.items() if name not in ("self", "dim"))
        return tuple(steady and (axis != at or bounds) for axis, steady in enumerate(own))
    return None


def _from_list(
    sizes: Any, first: Any, rank: int, of: Callable[[SourceValue], Steady], is_steady: Callable[[Any], bool]
) -> Steady | None:
    if not isinstance(sizes, Sequence) or len(sizes) != rank:
        return None
    rest = isinstance(first, SourceValue) and all(of(first)) and all(map(is_steady, sizes))
    return tuple(rest if size == -1 else is_steady(size) for size in sizes)


def _at_end(own: Steady, count: int, arguments: dict[str, Any], is_steady: Callable[[Any], bool]) -> Steady:
    """The last axes of a result, whose sizes follow from the argument's own by numbers."""
    steady = all(map(is_steady, list(arguments.values())[1:]))
    return tuple(axis and steady for axis in own[-count:])


def _from_end(axes: Steady, distance: int) -> bool:
    return distance > len(axes) or axes[len(axes) - distance]
