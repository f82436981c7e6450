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
import torch.utils._pytree as pytree

from onnx_exporter._frontends._functions import forward_parameters
from onnx_exporter._source.graph import Argument, Location, SourceGraph, SourceNode, SourceValue, values_in

_NAMESPACE = "onnx_exporter"
_BEGINS, _ENDS = "onnx_exporter_begins", "onnx_exporter_ends"
"""Keys of the call that a node begins, or ends, in its `meta`."""


@dataclasses.dataclass(frozen=True)
class FunctionCall:
    """A call of an ``autograd.Function``.

    Attributes:
        function: The class.
        arguments: What ``apply`` was given, with a `Slot` for each tensor or symbolic size.
    """

    function: type[torch.autograd.Function]
    arguments: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Slot:
    """The place of a tensor (or else of a size) among those of a call."""

    index: int
    is_tensor: bool


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
    context = 0 if cls.setup_context is not torch.autograd.Function.setup_context else 1

    @functools.wraps(forward)
    def marked(*everything: Any) -> Any:
        if torch.compiler.is_dynamo_compiling():  # in a branch of torch.cond, which goes through another compiler
            return forward(*everything)
        args = everything[context:]
        leaves = pytree.tree_leaves(args)
        nested = sum(isinstance(leaf, torch.Tensor) for leaf in leaves) > sum(isinstance(arg, torch.Tensor) for arg in args)
        if threading.get_ident() != thread or nested or any(isinstance(leaf, _UNHEARD) for leaf in leaves):
            return forward(*everything)
        tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
        operators = getattr(torch.ops, _NAMESPACE)
        key = str(len(calls))
        calls.append(FunctionCall(cls, _slots(args)))
        token = operators.function_begins(tensors, [arg for arg in args if isinstance(arg, torch.SymInt)], key)
        versions = [tensor._version for tensor in tensors]
        result = forward(*everything)
        results = list(result) if isinstance(result, tuple | list) else [result]
        is_dirty = context == 1 and bool(getattr(everything[0], "dirty_tensors", None))
        if is_dirty or versions != [tensor._version for tensor in tensors]:
            return result  # it writes to its inputs, which the rest of the model is to see
        ended = iter(operators.function_ends([item for item in results if isinstance(item, torch.Tensor)], token, key))
        results = [next(ended) if isinstance(item, torch.Tensor) else item for item in results]
        return tuple(results) if isinstance(result, tuple | list) else results[0]

    return marked


_UNHEARD = (torch.SymFloat, torch.SymBool)
"""Symbolic numbers that no operator takes in a list."""


def _slots(args: Sequence[Any]) -> tuple[Any, ...]:
    counts = {True: 0, False: 0}
    slots = []
    for arg in args:
        is_tensor = isinstance(arg, torch.Tensor)
        if is_tensor or isinstance(arg, torch.SymInt):
            arg = Slot(counts[is_tensor], is_tensor)
            counts[is_tensor] += 1
        slots.append(arg)
    return tuple(slots)


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
        arguments = [
            (inputs if item.is_tensor else sizes)[item.index] if isinstance(item, Slot) else item for item in call.arguments
        ]
        self._open.append((call, len(self._graph.nodes), arguments))

    def end(self, node: torch.fx.Node, results: list[SourceValue], outputs: list[SourceValue], location: Location) -> SourceNode:
        """Returns the node of a call, into which its body goes."""
        while self._open[-1][0] is not node.meta[_ENDS]:
            self._open.pop()
        call, start, arguments = self._open.pop()
        named = dict(zip(forward_parameters(call.function, len(arguments)), arguments, strict=True))
        made = SourceNode("prim::PythonOp", "", named, outputs, location, attributes={"function": call.function})
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
