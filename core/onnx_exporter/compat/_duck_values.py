"""Values that code written for torch.onnx takes for those of TorchScript."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnx_exporter._values import Dim, Value
from onnx_exporter.helpers import dtypes

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph
    from onnx_exporter.compat._duck_nodes import DuckNode
    from onnx_exporter.compat._duck_types import Type


class DuckValue(Value):
    """A value that also answers what a ``torch._C.Value`` does; ``isinstance(value, torch._C.Value)`` holds.

    Args:
        graph: The graph that it belongs to.
        value: What it stands for.
        node: What made it, if that is no node of the ONNX graph: a constant, a list, None.
        kind: Its type, if that is not what the ONNX graph says.
    """

    __slots__ = ("_alias", "_fixed", "_graph", "_node")

    # Python's isinstance believes this; a subclass of PyTorch's class cannot be made, since it has no constructor.
    __class__ = property(lambda self: torch._C.Value)

    def __init__(self, graph: DuckGraph, value: Value, node: DuckNode | None = None, kind: Type = None) -> None:
        Value.__init__(self, value.ir, elements=value._elements, is_number=value.is_number)
        self._graph = graph
        self._node = node
        self._fixed = kind
        self._alias = ""

    @property
    def is_typed(self) -> bool:
        """Whether a symbolic function has set the type."""
        return self._fixed is not None

    @property
    def is_pseudo(self) -> bool:
        """Whether there is no such value in the ONNX graph: a list, a string, None."""
        return self._node is not None

    @property
    def is_quantized(self) -> bool:
        """Whether it stands for a quantized tensor: a tuple of levels, scale and zero point, and perhaps an axis."""
        if not self.is_pseudo or self.node().kind() != "prim::TupleConstruct":
            return False
        parts = self.node().inputs()
        return len(parts) in (3, 4) and dtypes.is_integral(parts[0].dtype) and dtypes.is_floating(parts[1].dtype)

    # What a torch._C.Value has

    def node(self) -> DuckNode:
        return self._node if self._node is not None else self._graph.producer(self)

    def type(self) -> Type:
        return self._fixed if self._fixed is not None else self._graph.types.of(self)

    def setType(self, kind: Type) -> DuckValue:  # noqa: N802 - the names are PyTorch's, here and below
        self._graph.types.put(kind, self.ir)
        self._fixed = kind
        return self

    def setTypeAs(self, other: DuckValue) -> DuckValue:  # noqa: N802
        return self.setType(other.type())

    def inferTypeFrom(self, tensor: torch.Tensor) -> None:  # noqa: N802
        self.setType(torch._C.TensorType.create_from_tensor(tensor))

    def copyMetadata(self, other: DuckValue) -> DuckValue:  # noqa: N802
        return self.setType(other.type())

    def isCompleteTensor(self) -> bool:  # noqa: N802
        return self.dtype is not None and self.static_shape is not None

    def debugName(self) -> str:  # noqa: N802
        return self._alias or self.name

    def setDebugName(self, name: str) -> DuckValue:  # noqa: N802
        self._alias = name
        return self

    def unique(self) -> int:
        return id(self.ir)

    def offset(self) -> int:
        return self.ir.index() or 0

    def requires_grad(self) -> bool:
        return self._graph.requires_grad(self)

    def requiresGrad(self) -> bool:  # noqa: N802
        return self.requires_grad()

    def toIValue(self) -> Any:  # noqa: N802
        node = self.node()
        return node.value_of("value") if node.hasAttribute("value") else None

    def uses(self) -> list[Use]:
        return [Use(self._graph.node_of(use.node), use.idx) for use in self.ir.uses()]

    def replaceAllUsesWith(self, other: DuckValue) -> None:  # noqa: N802
        for use in self.uses():
            use.user.replaceInput(use.offset, other)
        self._graph.replace_result(self, other)

    def __repr__(self) -> str:
        return f"%{self.debugName() or hex(id(self.ir))}"


@dataclasses.dataclass(frozen=True)
class Use:
    """A place where a value is an input."""

    user: DuckNode
    offset: int


def nothing(elements: tuple[Dim, ...] | None = None) -> Value:
    """Returns what a value that is not in the ONNX graph stands for."""
    return Value(ir.Value(name=""), elements=elements)
