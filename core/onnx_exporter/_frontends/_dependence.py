"""What values and sizes in a trace depend on: nothing that varies, the sizes of inputs, or their data.

A size that tracing recorded is a fact only where it depends on nothing that varies.
"""

from __future__ import annotations

import dataclasses
import enum
import warnings
from collections.abc import Iterable

import torch

from onnx_exporter._frontends._axes import Steady, steady_axes
from onnx_exporter._source.aliasing import EffectsCache, find_operator
from onnx_exporter._source.graph import Argument, SourceNode, SourceValue, map_values, values_in


class Dependence(enum.IntEnum):
    """What something depends on; each level includes the ones before it."""

    NOTHING = 0
    SIZES = 1
    DATA = 2


_SIZE_ONLY = frozenset(
    f"aten::{name}"
    for name in (
        *("size", "sym_size", "numel", "sym_numel", "len", "_shape_as_tensor"),
        *("zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_empty"),
    )
)
"""Operators that look at nothing of their first argument but its sizes."""

_RANK_OR_DTYPE_ONLY = frozenset({"aten::dim", "aten::is_floating_point", "aten::is_complex", "aten::is_signed", "prim::dtype"})

_SIZED_BY_DATA = frozenset(
    {
        *("aten::nonzero_numpy", "aten::where", "aten::repeat_interleave.self_Tensor", "aten::_pack_padded_sequence"),
        *("aten::tensor_split.tensor_indices_or_sections", "aten::_reshape_from_tensor", "aten::combinations"),
        *("aten::histogram.bins_tensor", "aten::unique_consecutive", "aten::to_sparse", "aten::_pad_packed_sequence"),
    }
)
"""Operators whose results have sizes that depend on data without a tag that says so."""

_KEEPS_SIZE_OF_SELF = frozenset(
    {"aten::index_put", "aten::masked_scatter", "aten::scatter", "aten::scatter_add", "aten::scatter_reduce", "aten::index_copy"}
    | {"aten::index_add", "aten::index_fill", "aten::slice_scatter", "aten::select_scatter"}
)


@dataclasses.dataclass(frozen=True, slots=True)
class _Facts:
    """What the operator itself says about the sizes of its results."""

    sized_by_data: bool
    random: bool
    pointwise: bool
    tensor_arguments: frozenset[str]


class Dependences:
    """Follows what each value of a graph, and its sizes, depend on, in execution order."""

    def __init__(self) -> None:
        self._contents: dict[SourceValue, Dependence] = {}
        self._sizes: dict[SourceValue, Dependence] = {}
        self._base: dict[SourceValue, SourceValue] = {}
        self._facts: dict[int, tuple[object, _Facts]] = {}
        self._effects = EffectsCache()
        self._steady: dict[SourceValue, Steady] = {}

    def contents(self, value: SourceValue) -> Dependence:
        """What the elements depend on; a write through a view counts for all that share the memory."""
        own = self._contents.get(value, Dependence.NOTHING)
        base = self._base.get(value)
        return own if base is None else max(own, self._contents.get(base, Dependence.NOTHING))

    def sizes(self, value: SourceValue) -> Dependence:
        """What the sizes depend on."""
        return self._sizes.get(value, Dependence.NOTHING)

    def size(self, value: SourceValue, axis: int) -> Dependence:
        """What the size of one axis depends on."""
        shape = value.type.shape
        sizes = self.sizes(value)
        if sizes is Dependence.NOTHING or shape is None or not -len(shape) <= axis < len(shape):
            return sizes
        return Dependence.NOTHING if self._steady_axes(value)[axis] else sizes

    def _steady_axes(self, value: SourceValue) -> Steady:
        """Which axes do not vary, as far as that is known."""
        known = self._steady.get(value)
        if known is None:
            fact = self.sizes(value) is Dependence.NOTHING
            known = tuple(fact or isinstance(dim, int) for dim in value.type.shape or ())
        return known

    def _steady_axes_of_result(self, node: SourceNode, output: SourceValue) -> Steady:
        pointwise = node.schema is not None and self._facts_of(node).pointwise
        known = self._steady_axes(output)
        found = steady_axes(node, len(known), self._steady_axes, self._is_steady, pointwise)
        return found if found is not None and len(found) == len(known) else known

    def _is_steady(self, number: object) -> bool:
        return all(self.contents(value) is Dependence.NOTHING for value in values_in(number))

    def set(self, value: SourceValue, contents: Dependence, sizes: Dependence) -> None:
        """Says what a value depends on that is no result of a call."""
        self._contents[value] = contents
        self._sizes[value] = sizes

    def sizes_of_results(self, node: SourceNode) -> Dependence:
        """What the sizes of the results of a call depend on."""
        if node.schema is None:
            return self._sizes_of_foreign_results(node)
        facts = self._facts_of(node)
        effects = self._effects.of(node)
        first = next(iter(node.arguments.values()), None)
        if isinstance(first, SourceValue) and (
            (effects.writes and not effects.rebinds and node.arguments[effects.writes[0]] is first)
            or node.op in _KEEPS_SIZE_OF_SELF
        ):
            return self.sizes(first)
        level = Dependence.NOTHING
        for name, value in _named_values(node):
            if name in facts.tensor_arguments:
                level = max(level, self._sizes.get(value, level))
            elif not facts.pointwise:  # a number, which may well be a size
                level = max(level, self.contents(value))
        if facts.sized_by_data:
            level = max(level, self._data_that_sizes(node))
        return level

    def _sizes_of_foreign_results(self, node: SourceNode) -> Dependence:
        """Of a call of Python code, or of a branch."""
        if node.blocks:
            outputs = [output for block in node.blocks for output in block.outputs]
            condition = node.arguments.get("condition")
            decides = [self.contents(condition)] if isinstance(condition, SourceValue) else []
            return max([*map(self.sizes, outputs), *decides], default=Dependence.NOTHING)
        return self._most(node.input_values())

    def _data_that_sizes(self, node: SourceNode) -> Dependence:
        if node.op != "aten::index":
            return self._most(node.input_values())
        masks = [index for index in values_in(node.arguments["indices"]) if index.type.dtype in (torch.bool, torch.uint8)]
        return self._most(masks)

    def bind(self, node: SourceNode, outputs: Iterable[SourceValue], sizes: Dependence) -> None:
        """Notes what the results of a call depend on, given what their sizes do."""
        level = self._contents_of_results(node)
        effects = self._effects.of(node)
        for argument in effects.writes:
            for value in values_in(node.arguments[argument]):
                base = self._base.get(value, value)
                self._contents[base] = max(self._contents.get(base, level), level)
        for output, argument in effects.aliased_outputs(node):
            for value in values_in(node.arguments[argument]):
                self._base[output] = self._base.get(value, value)
        for output in outputs:
            self._contents[output] = level
            # a value of rank 0 has no size
            self._sizes[output] = Dependence.NOTHING if output.type.shape == () else sizes
            if sizes is not Dependence.NOTHING and output.type.shape:
                self._steady[output] = self._steady_axes_of_result(node, output)

    def _contents_of_results(self, node: SourceNode) -> Dependence:
        if node.op in _RANK_OR_DTYPE_ONLY:
            return Dependence.NOTHING
        if node.op in _SIZE_ONLY:
            arguments = list(node.arguments.values())
            first, axis = arguments[0], node.arguments.get("dim")
            if not isinstance(first, SourceValue):
                return Dependence.NOTHING
            own = self.size(first, axis) if isinstance(axis, int) else self.sizes(first)
            return max([own, *map(self.contents, values_in(arguments[1:]))])
        if node.schema is not None and self._facts_of(node).random:
            return Dependence.DATA
        inner = [value for block in node.blocks for value in block.outputs]
        return self._most([*(value for _, value in _named_values(node)), *inner])

    def _most(self, values: Iterable[SourceValue]) -> Dependence:
        level = Dependence.NOTHING
        for value in values:
            level = max(level, self.contents(value), self.sizes(value))
            if level is Dependence.DATA:
                break
        return level

    def _facts_of(self, node: SourceNode) -> _Facts:
        schema = node.schema
        assert schema is not None
        known = self._facts.get(id(schema))
        if known is None:
            operator = find_operator(node.op, node.overload)
            tags = () if operator is None else operator.tags
            names = frozenset(argument.name for argument in schema.arguments if "Tensor" in str(argument.type))
            facts = _Facts(
                torch.Tag.dynamic_output_shape in tags
                or node.qualified_name in _SIZED_BY_DATA
                or _may_be_sized_by_data(operator, node),
                torch.Tag.nondeterministic_seeded in tags,
                torch.Tag.pointwise in tags,
                names,
            )
            known = self._facts[id(schema)] = (schema, facts)
        return known[1]


def _named_values(node: SourceNode) -> list[tuple[str, SourceValue]]:
    """Every value among the arguments with the argument's name; most arguments hold none."""
    found = []
    for name, argument in node.arguments.items():
        if isinstance(argument, SourceValue):
            found.append((name, argument))
        elif isinstance(argument, list | tuple):
            found += [(name, value) for value in values_in(argument)]
    return found


def _may_be_sized_by_data(operator: torch._ops.OpOverload | None, node: SourceNode) -> bool:
    """Whether sizes of a custom operator's results depend on data: its fake implementation tells, if it has one."""
    if node.op.startswith(("aten::", "prim::", "prims::")):
        return False
    if operator is None:
        return True
    # Importing them takes a while, and few models have operators of their own.
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    mode = FakeTensorMode(shape_env=ShapeEnv())

    def fake(value: SourceValue) -> Argument:
        kind = value.type
        if kind.example_shape is None or kind.dtype is None:
            raise TypeError(f"the type of {value!r} is not known")
        return torch.empty(kind.example_shape, dtype=kind.dtype)

    try:
        with mode, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = operator(**{name: map_values(argument, fake) for name, argument in node.arguments.items()})
    except Exception:  # the operator has no fake implementation, or one that does not take these arguments: nothing is known
        return True
    leaves = list(results) if isinstance(results, list | tuple) else [results]
    return any(isinstance(size, torch.SymInt) for leaf in leaves if isinstance(leaf, torch.Tensor) for size in leaf.shape)
