"""`GraphContext`: the `g` that symbolic functions get."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import onnx_ir as ir
import torch

from onnx_exporter._builder import STEP, Builder, NodeError, Origin, TypeNotSupported, own_origin, place_in_package, schema_of
from onnx_exporter._registry import Candidate, Via
from onnx_exporter._source.graph import SourceNode
from onnx_exporter._values import Value
from onnx_exporter.helpers import dtypes

if TYPE_CHECKING:
    from onnx_exporter._engine import Engine


_NARROW = (torch.float16, torch.bfloat16)


class Unsupported(Exception):  # noqa: N818 - it passes the operator on to the next provider; it is no error yet
    """A symbolic function cannot be right with the arguments that it was given."""


class GraphContext:
    """Where a symbolic function writes, and what it may ask. Added in 0.1.

    Attributes:
        node: The captured call that is being converted.
        arguments: Its arguments by schema name, values already converted.
    """

    def __init__(
        self,
        engine: Engine,
        builder: Builder,
        node: SourceNode,
        arguments: Mapping[str, Any],
        candidates: Sequence[Candidate],
        *,
        delegated: bool = False,
        steps: str = "",
    ) -> None:
        self._engine = engine
        self._builder = builder
        self._candidates = candidates
        self._position = 0
        self._delegated = delegated
        self._steps = steps  # the functions of plugins that asked for this conversion: see `Origin.via`
        self._via: Via | None = None  # who converts the node once no table does
        self.node = node
        self.arguments = arguments

    @property
    def opset(self) -> int:
        """Target version of ai.onnx."""
        return self._builder.opset

    @property
    def result_dtype(self) -> torch.dtype | None:
        """Element type that PyTorch gave the (first) result, or None if this is a delegated call."""
        if self._delegated or not self.node.outputs:
            return None
        return self.node.outputs[0].type.dtype

    @property
    def result_rank(self) -> int | None:
        """Rank that PyTorch gave the (first) result, or None if this is a delegated call."""
        if self._delegated or not self.node.outputs:
            return None
        return self.node.outputs[0].type.rank

    @property
    def result_count(self) -> int | None:
        """Number of results that are expected (of an operator that returns a list: its length), None if delegated."""
        return None if self._delegated else len(self.node.outputs)

    @overload
    def op(self, op_type: str, *inputs: Any, outputs: Literal[1] = 1, **attributes: Any) -> Value: ...

    @overload
    def op(self, op_type: str, *inputs: Any, outputs: int, **attributes: Any) -> tuple[Value, ...]: ...

    def op(self, op_type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Value | tuple[Value, ...]:
        """Appends an ONNX node and returns its output, or a tuple of them where `outputs` is more than 1.

        Type and shape of the outputs are inferred at once. Operators on small integer tensors whose
        result is proven become constants.

        Args:
            op_type: ``"Relu"``, or ``"com.vendor::Frob"`` for a domain of its own.
            inputs: `Value`, None for one left out, or a constant: a list of ints becomes an int64 vector, an
                array or torch tensor a constant, a number a constant of the first value's type.
            outputs: Number of outputs.
            attributes: By their ONNX names; None drops one. The ``alpha_f=`` style of torch.onnx works too.

        16-bit floats that the operator does not take at the target opset are computed in float32, which holds them all.

        Raises:
            SymbolicError: If the node does not fit the ONNX schema at the target opset.
        """
        domain, _, name = op_type.rpartition("::")
        if domain == "ai.onnx":
            domain = ""
        like = next((item for item in inputs if isinstance(item, Value)), None)
        values = [self._input(item, like) for item in inputs]
        options = {"outputs": outputs, "domain": domain}
        try:
            made = self._add(name, values, attributes, **options)
        except TypeNotSupported:
            narrow = next((value.dtype for value in values if value is not None and value.dtype in _NARROW), None)
            if narrow is None:
                raise
            wide = [value if value is None or value.dtype != narrow else self._cast(value, torch.float32) for value in values]
            made = self._add(name, wide, attributes, **options)
            made = tuple(value if value.dtype != torch.float32 else self._cast(value, narrow) for value in made)
        return made[0] if outputs == 1 else made

    def _cast(self, x: Value, dtype: torch.dtype) -> Value:
        return self._add("Cast", [x], {"to": int(dtypes.to_onnx(dtype))})[0]

    def _add(self, name: str, inputs: Sequence[Value | None], attributes: Mapping[str, Any], **options: Any) -> tuple[Value, ...]:
        """Appends a node that comes from the call which is being converted."""
        return self._builder.add(name, inputs, attributes, origin=self._origin(), calls=self.node.location.calls, **options)

    def _input(self, item: Any, like: Value | None) -> Value | None:
        if item is None or isinstance(item, Value):
            return item
        if isinstance(item, bool | int | float | complex):
            return self.constant(item, like=like)
        if isinstance(item, list | tuple) and not item:
            return self.constant(item, dtype=torch.int64)
        return self.constant(item)

    def constant(self, value: Any, *, dtype: torch.dtype | None = None, like: Value | None = None) -> Value:
        """Returns a constant: a number (rank 0), a list of numbers, an array or a torch tensor.

        Args:
            value: The contents.
            dtype: Element type; else that of `like`, else the contents' own (Python ints are int64, floats float32).
            like: A value whose element type is taken.
        """
        target = dtype or (like.dtype if like is not None else None)
        if isinstance(value, torch.Tensor):
            return self._engine.tensor(value.detach().to(target) if target is not None else value.detach())
        if isinstance(value, np.ndarray) and target is None:
            return self._builder.constant(value)
        if target is None and not isinstance(value, np.ndarray):
            target = torch.as_tensor(value).dtype
            target = torch.float32 if target is torch.float64 else target
        assert target is not None
        array = np.asarray(value)
        return self._builder.constant(array.astype(dtypes.to_onnx(target).numpy()))

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Converts another operator by name, so that overrides and newer forms of it are honoured.

        Args:
            name: ``"aten::mul"`` or, with overload, ``"aten::max.dim"``.
            args: Its arguments in the order of the symbolic function's parameters.
            kwargs: Its arguments by name.

        Raises:
            SymbolicError: If nobody converts it.
        """
        return self._engine.call(self, name, args, kwargs)

    def previous(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the version of this operator that the running function refines (an older opset's, or the built-in)."""
        return self._engine.previous(self, args, kwargs)

    def pass_through(self, op_type: str, **attributes: Any) -> list[Value]:
        """Appends the call that is being converted as one node: tensors become inputs, constants attributes.

        For ``onnx_exporter_fallback``, or where a vendor's operator is PyTorch's. Inputs stand in the schema's order;
        a tensor that is not given is an empty input. Attributes are named by the schema.

        Args:
            op_type: The node's domain and name, ``"com.vendor::Frob"``.
            attributes: Further attributes.

        Returns:
            The results, as many as the call has.
        """
        return self._engine.pass_through(self, op_type, attributes)

    def unsupported(self, reason: str) -> Exception:
        """Returns the exception to raise where the operator cannot be right with its arguments.

        The next provider is asked; if there is none, the reason stands in the error that the user sees.
        """
        return Unsupported(reason)

    def has_op(self, op_type: str) -> bool:
        """Whether ai.onnx has an operator at the target opset."""
        schema = schema_of(op_type, "", self.opset)
        return schema is not None and not schema.deprecated

    def domain_version(self, domain: str, version: int) -> None:
        """Declares the version of a custom domain in the file: 1 unless declared; the user's ``custom_opsets`` overrule it."""
        self._builder.declare_domain(domain, version)

    @contextmanager
    def subgraph(self, *inputs: tuple[str, torch.dtype, Sequence[Any] | None]) -> Iterator[Subgraph]:
        """While active, nodes go into a sub-graph (a branch of If, the body of Loop or Scan).

        Args:
            inputs: Name, dtype and shape (or None) of each input of the sub-graph.
        """
        sub = Subgraph(self._builder, inputs, self._origin())
        with self._builder.block() as nodes:
            yield sub
            sub.finish(nodes)

    def _origin(self) -> Origin:
        location, via = self.node.location, self._via
        source = f"{location.file}:{location.line}" if location.file else ""
        op = self.node.qualified_name
        if via is not None:
            plugin, version, module, title, code, line = via.plugin, via.version, via.module, via.title, via.code, via.place
        elif not self._candidates:
            return own_origin(location.module, source, op)
        else:
            candidate = self._candidates[self._position]
            plugin, version, code, line = candidate.provider.name, candidate.provider.version, candidate.entry.code, ""
            module, title = candidate.entry.function.__module__, candidate.entry.title
        if code is not None:
            line = f"{place_in_package(module, code.co_filename)}:{self._line_in(code)}"
        function = f"{module}.{title}" if module else title
        return Origin(plugin, function, line, location.module, source, op, version, self._steps)

    def _next_steps(self) -> str:
        """The functions of plugins that ask for what the running one delegates, itself included; built-in ones are not noted."""
        if self._via is not None:
            step = f"{self._via.plugin}:{self._via.module}.{self._via.title}"
        elif self._candidates and not self._candidates[self._position].provider.is_builtin:
            candidate = self._candidates[self._position]
            step = f"{candidate.provider.name}:{candidate.entry.function.__module__}.{candidate.entry.title}"
        else:
            step = ""
        return STEP.join(filter(None, (self._steps, step)))

    @staticmethod
    def _line_in(code: Any) -> int:
        frame = sys._getframe(2)
        for _ in range(12):
            if frame.f_code is code:
                return frame.f_lineno
            if frame.f_back is None:
                break
            frame = frame.f_back
        return int(code.co_firstlineno)


class Subgraph:
    """A sub-graph that is being built; set `outputs` before leaving. Added in 0.1.

    Attributes:
        inputs: Its inputs.
        outputs: Its results, to be set.
        graph: The finished graph, an attribute of the node that runs it.
    """

    def __init__(
        self, builder: Builder, inputs: Sequence[tuple[str, torch.dtype, Sequence[Any] | None]], origin: Origin | None = None
    ) -> None:
        self._builder = builder
        self._origin = origin
        self.inputs = tuple(
            builder.input(builder.unique(name), ir.TensorType(dtypes.to_onnx(dtype)), shape) for name, dtype, shape in inputs
        )
        self.outputs: Sequence[Value] = ()
        self.graph: ir.Graph | None = None

    def finish(self, nodes: list[ir.Node]) -> None:
        """Makes the graph of the nodes; an output from outside gets an Identity."""
        if not self.outputs:
            raise NodeError("a sub-graph needs outputs; set them before the end of the with block")
        made = {id(output) for node in nodes for output in node.outputs}
        finals = []
        for value in self.outputs:
            if id(value.ir) not in made:
                (value,) = self._builder.add("Identity", [value], {}, origin=self._origin, fold=False)
            made.discard(id(value.ir))
            finals.append(value.ir)
        self.graph = ir.Graph([value.ir for value in self.inputs], finals, nodes=list(nodes), name=self._builder.unique("body"))
