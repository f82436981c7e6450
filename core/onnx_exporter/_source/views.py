"""View operators: when their result shares memory with their input, and how a write through one reaches the base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch

from onnx_exporter._source.emit import Emitter, unsupported, without_strides
from onnx_exporter._source.graph import Location, SourceNode, SourceType, SourceValue

Relation = Literal["same", "view", "copy"]
"""How a result relates to its input: the same elements in the same shape, another view of them, or new memory."""

_aten = torch.ops.aten
_END = 2**63 - 1

_DROPOUTS = frozenset({"aten::dropout", "aten::alpha_dropout", "aten::feature_dropout", "aten::feature_alpha_dropout"})
_SAME = frozenset({"aten::detach", "aten::detach_", "aten::alias", "aten::lift_fresh", "aten::positive", "prim::data"})
_CONVERSIONS = frozenset(
    {"aten::to", "aten::type_as", "aten::cpu", "aten::cuda"}
    | {"aten::_autocast_to_full_precision", "aten::_autocast_to_reduced_precision"}
)
_CONJUGATIONS = frozenset(
    f"aten::{name}" for name in ("conj", "_conj", "conj_physical", "real", "resolve_conj", "resolve_neg", "_neg_view")
)
_MAY_COPY = frozenset(f"aten::{name}" for name in ("reshape", "reshape_as", "flatten", "ravel"))
_INVOLUTIONS = frozenset(
    f"aten::{name}"
    for name in ("transpose", "t", "swapaxes", "swapdims", "numpy_T", "mT", "mH", "matrix_H", "adjoint", "conj", "_conj")
)
_SAME_ELEMENTS = frozenset(
    f"aten::{name}"
    for name in (
        *("view", "reshape", "flatten", "ravel", "unflatten", "view_as", "reshape_as", "squeeze", "unsqueeze"),
        *("_reshape_alias", "atleast_1d", "atleast_2d", "atleast_3d", "expand", "expand_as", "broadcast_to"),
    )
)
_SPLIT_DIMS = {"aten::vsplit": 0, "aten::dsplit": 2}
_PARTITIONS = frozenset(
    f"aten::{name}"
    for name in (
        *("split", "split_with_sizes", "chunk", "tensor_split", "hsplit", "vsplit", "dsplit", "unbind"),
        *("unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"),
    )
)


def is_partition(node: SourceNode) -> bool:
    """Tells whether the outputs of `node` cover its input and do not overlap."""
    return node.op in _PARTITIONS


def relation(node: SourceNode, source: SourceValue, output: SourceValue) -> Relation:
    """Tells how an output of a node relates to the input that its schema says it may share memory with.

    What depends on the memory layout (``reshape`` returns a view where it can) is decided by the
    strides of the example; where they are unknown the input is taken to be contiguous.
    """
    if node.op in _SAME:
        return "same"
    if node.op in _DROPOUTS:
        return "copy" if node.arguments["train"] and node.arguments["p"] != 0 else "same"
    if node.op == "aten::contiguous":
        return "same" if _is_contiguous(source.type, node.arguments["memory_format"]) else "copy"
    if node.op in _CONVERSIONS:
        return _conversion(node, source.type, output.type)
    if node.op in _CONJUGATIONS and not (source.type.dtype is not None and source.type.dtype.is_complex):
        return "same"
    if node.op in ("aten::resolve_conj", "aten::resolve_neg", "aten::conj_physical"):
        return "copy"
    if node.op == "aten::view" and node.overload == "dtype" and source.type.dtype == node.arguments["dtype"]:
        return "same"
    if node.op in _MAY_COPY:
        return "view" if _viewable(source.type, output.type) else "copy"
    return "view"


def _example(type: SourceType) -> torch.Tensor | None:
    """A tensor without data, laid out like the example."""
    if type.example_shape is None or type.strides is None:
        return None
    return torch.empty_strided(type.example_shape, type.strides, device="meta")


def _is_contiguous(type: SourceType, memory_format: torch.memory_format) -> bool:
    example = _example(type)
    return example is None or example.is_contiguous(memory_format=memory_format)


def _viewable(source: SourceType, result: SourceType) -> bool:
    example = _example(source)
    if example is None or result.example_shape is None:
        return True
    reshaped = example.reshape(result.example_shape)
    return reshaped is example or reshaped._is_view()


def _conversion(node: SourceNode, source: SourceType, result: SourceType) -> Relation:
    if node.arguments.get("copy"):
        return "copy"
    if None in (source.dtype, result.dtype):
        return "copy" if node.arguments.get("dtype") is not None else "same"
    if source.dtype != result.dtype:
        return "copy"
    memory_format = node.arguments.get("memory_format")
    if memory_format not in (None, torch.preserve_format) and not _is_contiguous(source, memory_format):
        return "copy"
    return "same"


class Inverse:
    """One write through a view: from the view's new value to the new value of what it is a view of.

    Attributes:
        emitter: Where new nodes go.
        view: The call of the view operator.
        source: Type of what is viewed, as the view operator met it.
        base: Value of the viewed tensor before the write.
        new: Value of the view after the write.
        siblings: Current values of all outputs of the view operator, if it is a partition.
        index: Which of them is written.
        location: Where the write stands in the user's model.
    """

    def __init__(
        self,
        emitter: Emitter,
        view: SourceNode,
        source: SourceType,
        base: SourceValue,
        new: SourceValue,
        siblings: Sequence[SourceValue],
        index: int,
        location: Location,
    ) -> None:
        self.emitter = emitter
        self.view = view
        self.source = source
        self.arguments = view.arguments
        self.base = base
        self.new = new
        self.siblings = siblings
        self.index = index
        self.location = location

    def value(self) -> SourceValue:
        """Emits what is needed and returns the new value of the base.

        Raises:
            UnsupportedOpError: If the view cannot be inverted.
        """
        op = self.view.op
        if op in _SCATTERS:
            return _SCATTERS[op](self)
        if op in _PARTITIONS:
            return self._join()
        if op in _INVOLUTIONS:
            return self._again()
        if op in _SAME_ELEMENTS and self.view.overload != "dtype":
            return self._reshape()
        raise unsupported(
            self.view,
            "a tensor is written in place through this view, which cannot be undone",
            "write into the tensor itself, or write the result to a new tensor",
        )

    def _call(self, operator: torch._ops.OpOverload, *args: object) -> SourceValue:
        return self.emitter.call(operator, *args, type=without_strides(self.base.type), location=self.location)

    def _number(self, operator: torch._ops.OpOverload, *args: object) -> SourceValue:
        return self.emitter.call(operator, *args, type=SourceType(torch.int64, (), True), location=self.location)

    def _again(self) -> SourceValue:
        """Transposing twice gives what was there."""
        result = self._call(_aten.t.default, self.new)
        node = self.emitter.nodes[-1]
        node.op, node.overload, node.schema = self.view.op, self.view.overload, self.view.schema
        node.arguments = {**self.arguments, next(iter(self.arguments)): self.new}
        return result

    def _reshape(self) -> SourceValue:
        base, view = self.base.type, self.view.outputs[self.index].type
        if self.view.op in ("aten::expand", "aten::expand_as", "aten::broadcast_to") and _expands(base, view):
            raise unsupported(
                self.view,
                "a tensor is written in place through this view, in which elements share memory",
                "write into a clone() of it",
            )
        if base.rank is not None and base.rank == view.rank and self.view.op in ("aten::squeeze", "aten::expand"):
            return self.new
        if self.view.op == "aten::unsqueeze":
            return self._call(_aten.squeeze.dim, self.new, self.arguments["dim"])
        if self.view.op == "aten::squeeze" and self.view.overload == "dim" and base.rank is not None and view.rank is not None:
            # Removing a dimension that has several elements does nothing, so the ranks tell that it was removed.
            return self._call(_aten.unsqueeze.default, self.new, self.arguments["dim"])
        if base.shape is not None and all(isinstance(size, int) for size in base.shape):
            return self._call(_aten.reshape.default, self.new, list(base.shape))
        return self._call(_aten.reshape_as.default, self.new, self.base)

    def _select(self) -> SourceValue:
        return self._call(_aten.select_scatter.default, self.base, self.new, self.arguments["dim"], self.arguments["index"])

    def _slice(self) -> SourceValue:
        dim, start, end, step = (self.arguments[name] for name in ("dim", "start", "end", "step"))
        if is_whole(start, end, step):
            return self.new
        return self._call(_aten.slice_scatter.default, self.base, self.new, dim, start, end, step)

    def _narrow(self) -> SourceValue:
        dim, start, length = (self.arguments[name] for name in ("dim", "start", "length"))
        if isinstance(start, int) and isinstance(length, int):
            end: object = start + length
            if start < 0 <= start + length:
                end = _END  # a range that starts from the end and reaches it
        else:
            end = self._number(_aten.add.Tensor, start, length)
        return self._call(_aten.slice_scatter.default, self.base, self.new, dim, start, end, 1)

    def _diagonal(self) -> SourceValue:
        offset, dim1, dim2 = (self.arguments[name] for name in ("offset", "dim1", "dim2"))
        return self._call(_aten.diagonal_scatter.default, self.base, self.new, offset, dim1, dim2)

    def _as_strided(self) -> SourceValue:
        size, stride, offset = (self.arguments[name] for name in ("size", "stride", "storage_offset"))
        if not _is_contiguous(self.source, torch.contiguous_format):
            raise unsupported(
                self.view,
                "a tensor is written in place through as_strided on a tensor that is not contiguous",
                "call contiguous() before as_strided",
            )
        return self._call(_aten.as_strided_scatter.default, self.base, self.new, size, stride, offset)

    def _permute(self) -> SourceValue:
        dims = [dim % len(self.arguments["dims"]) for dim in self.arguments["dims"]]
        return self._call(_aten.permute.default, self.new, [dims.index(dim) for dim in range(len(dims))])

    def _move_dims(self) -> SourceValue:
        source, destination = self.arguments["source"], self.arguments["destination"]
        operator = _aten.movedim.int if isinstance(source, int) else _aten.movedim.intlist
        return self._call(operator, self.new, destination, source)

    def _as_real(self) -> SourceValue:
        return self._call(_aten.view_as_complex.default, self.new)

    def _as_complex(self) -> SourceValue:
        return self._call(_aten.view_as_real.default, self.new)

    def _join(self) -> SourceValue:
        """The parts joined again; right for every size of the split dimension."""
        parts = [self.new if index == self.index else part for index, part in enumerate(self.siblings)]
        if self.view.op == "aten::hsplit":
            dim = 0 if self.base.type.rank == 1 else 1
        else:
            dim = self.arguments.get("dim", _SPLIT_DIMS.get(self.view.op, 0))
        if self.view.op == "aten::unbind":
            return self._call(_aten.stack.default, parts, dim)
        return parts[0] if len(parts) == 1 else self._call(_aten.cat.default, parts, dim)


_SCATTERS: dict[str, Callable[[Inverse], SourceValue]] = {
    "aten::select": Inverse._select,
    "aten::slice": Inverse._slice,
    "aten::narrow": Inverse._narrow,
    "aten::diagonal": Inverse._diagonal,
    "aten::linalg_diagonal": Inverse._diagonal,
    "aten::as_strided": Inverse._as_strided,
    "aten::permute": Inverse._permute,
    "aten::movedim": Inverse._move_dims,
    "aten::moveaxis": Inverse._move_dims,
    "aten::view_as_real": Inverse._as_real,
    "aten::view_as_complex": Inverse._as_complex,
}


def is_whole(start: object, end: object, step: object) -> bool:
    """Tells whether a slice takes everything, whatever the size."""
    return start in (0, None) and (end is None or end == _END) and step == 1


def _expands(base: SourceType, view: SourceType) -> bool:
    """Whether an expanded view has more elements than its base, as far as the example tells."""
    if base.example_shape is None or view.example_shape is None:
        return False
    return torch.Size(base.example_shape).numel() != torch.Size(view.example_shape).numel()
