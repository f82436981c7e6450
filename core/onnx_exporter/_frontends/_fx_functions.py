"""Keeps calls of ``autograd.Function`` in sight while ``torch.export`` captures them, which traces through them.

Around what the ``forward`` of a function does, two operators are recorded: one that takes its inputs, and one that takes its
results. What lies between them is the body of the call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import torch

from onnx_exporter._frontends._functions import Slot, forward_parameters, leading
from onnx_exporter._source.graph import Argument, Location, SourceGraph, SourceNode, SourceValue, map_leaves, values_in

_NAMESPACE = "onnx_exporter"
_BEGINS, _ENDS = "onnx_exporter_begins", "onnx_exporter_ends"
"""Keys of the call that a node begins, or ends, in its `meta`."""


@dataclasses.dataclass(frozen=True)
class FunctionCall:
    """A call of an ``autograd.Function``.

    Attributes:
        function: The class.
        arguments: What ``apply`` was given, with a `Slot` for each tensor or symbolic size.
        examples: What each nested size is in the example, None for each nested tensor.
        returned: For each of its results whether that is a tensor; filled when it returns.
    """

    function: type[torch.autograd.Function]
    arguments: list[Any]
    examples: list[int | None]
    returned: list[bool] = dataclasses.field(default_factory=list)


@functools.cache
def _operators() -> torch.library.Library:
    """Defines the two operators, for as long as the process lives."""
    library = torch.library.Library(_NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
    library.define("function_begins(Tensor[] inputs, SymInt[] sizes, str call) -> Tensor")  # type: ignore[no-untyped-call]
    library.define("function_ends(Tensor[] results, Tensor token, str call) -> Tensor[]")  # type: ignore[no-untyped-call]

    def begins(inputs: Sequence[torch.Tensor], sizes: Sequence[int], call: str) -> torch.Tensor:
        return torch.empty(0)  # it ties the end to the beginning

    def ends(results: Sequence[torch.Tensor], token: torch.Tensor, call: str) -> list[torch.Tensor]:
        return list(map(torch.clone, results))

    for name, kernel in (("function_begins", begins), ("function_ends", ends)):
        library.impl(name, kernel, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"{_NAMESPACE}::{name}", kernel, lib=library)
    return library


@contextlib.contextmanager
def marked_functions() -> Iterator[list[FunctionCall]]:
    """While active, calls of an ``autograd.Function`` are marked in what is captured; yields the calls, in order.

    It is ``forward`` that is replaced, since models like to bind ``apply`` to a name. PyTorch's own classes are left alone.
    """
    _operators()
    calls: list[FunctionCall] = []
    thread = threading.get_ident()
    create: Any = torch.autograd.function.FunctionMeta.__init__

    def mark(cls: Any) -> None:
        if not cls.__module__.startswith("torch."):
            marked.enter_context(mock.patch.object(cls, "forward", staticmethod(_marked(cls, cls.forward, calls, thread))))

    def created(cls: Any, *args: Any) -> None:
        create(cls, *args)
        mark(cls)

    with contextlib.ExitStack() as marked:
        for cls in _subclasses(torch.autograd.Function):
            mark(cls)
        marked.enter_context(mock.patch.object(torch.autograd.function.FunctionMeta, "__init__", created))
        yield calls


def _subclasses(cls: Any) -> list[Any]:
    """All subclasses; those of a class before itself, since what is replaced must not be inherited meanwhile."""
    return [inner for child in type.__subclasses__(cls) for inner in (*_subclasses(child), child)]


def _marked(cls: Any, forward: Any, calls: list[FunctionCall], thread: int) -> Any:
    """Returns `forward` between the marks of a call."""
    context = leading(cls)

    @functools.wraps(forward)
    def marked(*everything: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():  # in a branch of torch.cond, which goes through another compiler
            return forward(*everything)
        args = everything[context:]
        slots = _Slots(args)
        if threading.get_ident() != thread or slots.are_unheard:
            return forward(*everything)
        operators = getattr(torch.ops, _NAMESPACE)
        key = str(len(calls))
        calls.append(FunctionCall(cls, slots.arguments, slots.examples))
        tensors = slots.tensors
        token = operators.function_begins(tensors, slots.sizes, key)
        versions = [tensor._version for tensor in tensors]
        result = forward(*everything)
        results = list(result) if isinstance(result, tuple | list) else [result]
        is_dirty = context == 1 and bool(getattr(everything[0], "dirty_tensors", None))
        if is_dirty or versions != [tensor._version for tensor in tensors]:
            return result  # it writes to its inputs, which the rest of the model is to see
        calls[int(key)].returned.extend(isinstance(item, torch.Tensor) for item in results)
        ended = iter(operators.function_ends([item for item in results if isinstance(item, torch.Tensor)], token, key))
        results = [next(ended) if isinstance(item, torch.Tensor) else item for item in results]
        return tuple(results) if isinstance(result, tuple | list) else results[0]

    return marked


_UNHEARD = (torch.SymFloat, torch.SymBool)
"""Symbolic numbers that no operator takes in a list."""


class _Slots:
    """The arguments of a call, with a `Slot` for each tensor or symbolic size, also inside lists, tuples and dicts.

    Attributes:
        tensors: The tensors, in order.
        sizes: The sizes, in order.
        examples: What each nested size is in the example, None for each nested tensor.
        are_unheard: Whether there is among them what no operator takes in a list.
        arguments: The arguments with the slots.
    """

    def __init__(self, args: Sequence[Any]) -> None:
        self.tensors: list[torch.Tensor] = []
        self.sizes: list[Any] = []
        self.examples: list[int | None] = []
        self.are_unheard = False
        self.arguments = [self._slot(arg) if _is_symbolic(arg) else map_leaves(arg, self._nested) for arg in args]

    def _nested(self, leaf: Any) -> Any:
        if _is_symbolic(leaf):
            hint: Any = leaf.node.hint if isinstance(leaf, torch.SymInt) else None
            self.examples.append(hint)
        return self._slot(leaf)

    def _slot(self, leaf: Any) -> Any:
        self.are_unheard = self.are_unheard or isinstance(leaf, _UNHEARD)
        if not _is_symbolic(leaf):
            return leaf
        is_tensor = isinstance(leaf, torch.Tensor)
        place = self.tensors if is_tensor else self.sizes
        place.append(leaf)
        return Slot(len(place) - 1, is_tensor)


def _is_symbolic(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor | torch.SymInt)


def note_calls(program: torch.export.ExportedProgram, calls: Sequence[FunctionCall]) -> None:
    """Notes the call at each node that begins or ends one."""
    _operators()
    operators = getattr(torch.ops, _NAMESPACE)
    targets = {operators.function_begins.default: _BEGINS, operators.function_ends.default: _ENDS}
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.target in targets:
                node.meta[targets[node.target]] = calls[int(node.args[2])]


class OpenCalls:
    """Makes one node of each call that has a beginning and an end in what was captured.

    Args:
        graph: Where nodes are appended.
    """

    def __init__(self, graph: SourceGraph) -> None:
        self._graph = graph
        self._open: list[tuple[FunctionCall, int, list[Argument]]] = []

    def begins(self, node: torch.fx.Node) -> bool:
        """Whether a call begins at a node."""
        return _BEGINS in node.meta

    def ends(self, node: torch.fx.Node) -> bool:
        """Whether a call ends at a node."""
        return _ENDS in node.meta

    def begin(self, node: torch.fx.Node, inputs: list[Argument], sizes: list[Argument]) -> None:
        """Notes where a call begins. Of one that never ends nothing remains but what it does."""
        call = node.meta[_BEGINS]

        def filled(leaf: Any) -> Any:
            return (inputs if leaf.is_tensor else sizes)[leaf.index] if isinstance(leaf, Slot) else leaf

        self._open.append((call, len(self._graph.nodes), map_leaves(call.arguments, filled)))

    def end(self, node: torch.fx.Node, results: list[SourceValue], outputs: list[SourceValue], location: Location) -> SourceNode:
        """Returns the node of a call, into which its body goes."""
        while self._open[-1][0] is not node.meta[_ENDS]:
            self._open.pop()
        call, start, arguments = self._open.pop()
        named = dict(zip(forward_parameters(call.function, len(arguments)), arguments, strict=True))
        attributes = {"function": call.function, "examples": call.examples, "returned": call.returned}
        made = SourceNode("prim::PythonOp", "", named, outputs, location, attributes=attributes)
        body, self._graph.nodes[start:] = self._graph.nodes[start:], []
        inner = {output for inner in body for output in inner.outputs}
        for inner_node in list(body):
            if _counts(inner_node) and not inner.intersection(inner_node.input_values()):
                # A size of an input: PyTorch records it where it is first asked for, and may use it anywhere after
                body.remove(inner_node)
                inner.difference_update(inner_node.outputs)
                self._graph.nodes.append(inner_node)
        made.blocks.append(SourceGraph(list(made.input_values()), body, list(values_in(results))))
        return made


def _counts(node: SourceNode) -> bool:
    return bool(node.outputs) and all(output.type.is_number for output in node.outputs)
