"""Which tensors of a loop's body may have other sizes in each round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._frontends._script_carried import Collected
from onnx_exporter._frontends._script_types import ALONG_ONE_AXIS, ENDS_OF_RANGES, run
from onnx_exporter._frontends._script_values import CannotJoin
from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, map_values, values_in

_BY_CONTENTS = frozenset(
    f"aten::{name}"
    for name in (
        *("nonzero", "nonzero_numpy", "argwhere", "masked_select", "unique_dim", "_unique", "_unique2", "unique_consecutive"),
        *("bincount", "repeat_interleave", "one_hot", "combinations"),
    )
)
"""Operators of whose results the contents of tensors decide the sizes."""

_OF_LISTS = frozenset({"prim::ListAt", "prim::ListJoin"})
"""What lists hold whose elements need not have one size."""

_INDEXED = frozenset({"aten::index", "aten::index_put", "aten::index_put_"})
_NOT_SIZES = frozenset({"dim", "index", "shifts", "dims", "value", "fill_value", "p", "alpha", "beta", "storage_offset"})
"""Arguments that are integers, but decide no size."""


def check_sizes(collected: Collected, index: SourceValue, nodes: Sequence[SourceNode]) -> None:
    """Checks that what each round of a loop adds to lists has the same sizes in each.

    Args:
        collected: What the loop carries and collects.
        index: The number of the round.
        nodes: The nodes of the body.

    Raises:
        CannotJoin: If it may not have.
    """
    varying: set[SourceValue] = set()
    while True:
        sizes = _Sizes(nodes, [index, *collected.inputs], varying)
        grown = {
            inner
            for start, inner, end in zip(collected.initial, collected.inputs, collected.ends, strict=True)
            if inner not in varying and (end in sizes.varying or _differ([start, end]))
        }
        if not grown:
            break
        varying |= grown
    if any(value in sizes.varying for value in collected.scanned):
        raise CannotJoin("a list gets tensors of other sizes in each round")


Axes = frozenset[int]

_PROBES = (1, 7)
"""Sizes that are tried for those which vary: 1, which a slice of the first elements cuts to 1 too, and a larger one."""


class _Sizes:
    """Follows, through the nodes of a body, sizes that differ from round to round.

    Args:
        nodes: The nodes of the body.
        changing: What differs in each round.
        varying: That of it which has other sizes.

    Attributes:
        varying: What may have other sizes in each round, with the axes along which it may.
    """

    def __init__(self, nodes: Sequence[SourceNode], changing: Iterable[SourceValue], varying: Iterable[SourceValue]) -> None:
        self._contents = set(changing)
        self._numbers = {value for value in changing if value.type.is_number}
        self.varying = {value: _all_axes(value) for value in varying}
        self._follow(nodes)

    def _follow(self, nodes: Sequence[SourceNode]) -> None:
        for node in nodes:
            for block in node.blocks:
                self._enter(node, block)
            if node.blocks:
                self._leave(node)
                continue
            for output, axes in zip(node.outputs, self._axes(node), strict=True):
                if axes and not output.type.is_number:
                    self.varying[output] = axes
            if any(value in self._contents or value in self.varying for value in node.input_values()):
                self._note_contents(node.outputs)

    def _axes(self, node: SourceNode) -> list[Axes]:
        """The axes along which the sizes of each result may differ from round to round."""
        everything = [_all_axes(output) for output in node.outputs]
        if self._decides_sizes(node):
            dim, tensor = node.arguments.get("dim"), node.arguments.get("self")
            if node.op not in ALONG_ONE_AXIS or not isinstance(dim, int) or tensor is None or tensor.type.rank is None:
                return everything
            return [frozenset({dim % tensor.type.rank}) | self.varying.get(tensor, frozenset())]
        if not any(value in self.varying for value in node.input_values()):
            return [frozenset()] * len(node.outputs)
        one, other = (self._shapes(node, size) for size in _PROBES)
        if one is None or other is None or [len(shape) for shape in one] != [len(shape) for shape in other]:
            return everything
        if len(one) != len(node.outputs):
            return everything
        return [frozenset(axis for axis, size in enumerate(shape) if size != other[i][axis]) for i, shape in enumerate(one)]

    def _shapes(self, node: SourceNode, size: int) -> list[torch.Size] | None:
        """The shapes of the results where all sizes that vary are one size; None if that cannot be told."""

        def example(value: SourceValue) -> Any:
            kind = value.type
            if kind.is_number:
                return 0.0 if kind.dtype is torch.float64 else False if kind.dtype is torch.bool else 0
            if kind.dtype is None or kind.shape is None:
                return None
            known = kind.example_shape or tuple(dim if isinstance(dim, int) else 1 for dim in kind.shape)
            varying = self.varying.get(value, ())
            return torch.empty(
                [size if axis in varying else dim for axis, dim in enumerate(known)], dtype=kind.dtype, device="meta"
            )

        operator = find_operator(node.op, node.overload)
        if operator is None:
            return None
        made = run(operator, {name: map_values(argument, example) for name, argument in node.arguments.items()}, "meta")
        results = made if isinstance(made, tuple | list) else (made,)
        return [item.shape for item in results] if all(isinstance(item, torch.Tensor) for item in results) else None

    def _note_contents(self, values: Sequence[SourceValue]) -> None:
        """Notes what differs in each round, of which the sizes need not."""
        self._contents.update(values)
        self._numbers.update(value for value in values if value.type.is_number)

    def _decides_sizes(self, node: SourceNode) -> bool:
        arguments = node.arguments
        if node.op in _BY_CONTENTS or node.op in _OF_LISTS:
            return True
        if node.op in _INDEXED:
            return any(value.type.dtype in (torch.bool, torch.uint8) for value in values_in(arguments.get("indices")))
        return any(self._is_size(node, name, argument) for name, argument in arguments.items())

    def _is_size(self, node: SourceNode, name: str, argument: Any) -> bool:
        if not any(value in self._numbers for value in values_in(argument)):
            return False
        if node.op in ENDS_OF_RANGES:
            return True
        return name not in _NOT_SIZES and "int" in _types(node).get(name, "int")

    def _enter(self, node: SourceNode, block: SourceGraph) -> None:
        if node.op == "prim::Loop":
            self._note_contents(block.inputs)
            for start, inner in zip(node.arguments["carried"], block.inputs[1:], strict=False):
                if start in self.varying:
                    self.varying[inner] = self.varying[start]
        self._follow(block.nodes)

    def _leave(self, node: SourceNode) -> None:
        """The results of a branch vary where a side's do, or the sides differ; those of a loop where they grow in it."""
        skipped = 1 if node.op == "prim::Loop" else 0
        count = len(node.outputs)
        self._note_contents(node.outputs)
        starts = [node.arguments.get("carried", [])] if skipped else []
        columns = [*(block.outputs[skipped:] for block in node.blocks), *starts]
        for position, output in enumerate(node.outputs):
            row = [column[position] for column in columns if position < len(column)]
            collected = bool(skipped) and position >= count - node.attributes.get("scans", 0)
            if collected or any(value in self.varying for value in row) or _differ(row):
                self.varying[output] = _all_axes(output)


def _all_axes(value: SourceValue) -> Axes:
    return frozenset(range(1 if value.type.rank is None else value.type.rank))


def _differ(values: Sequence[SourceValue]) -> bool:
    """Whether tensors have other sizes, in the example or by what is known of them."""
    shapes = {value.type.example_shape or value.type.shape for value in values if not value.type.is_number}
    return len(shapes) > 1


def _types(node: SourceNode) -> Mapping[str, str]:
    """The types of a node's arguments by name."""
    if node.schema is None:
        return {}
    return {argument.name: str(argument.type) for argument in node.schema.arguments}
