"""Scripted parts of a traced model: the tracer records a call, which is interpreted as a scripted model is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter._frontends._script_interpreter import Interpreter
from onnx_exporter._frontends._script_values import Abstract, CannotJoin, DictValue, ListValue, ModuleValue, from_python
from onnx_exporter._frontends.script import End, arguments_of, inlined_graph, warn_of_dropped
from onnx_exporter._source.graph import SourceNode, SourceValue


@contextmanager
def scripted_parts(model: torch.nn.Module) -> Iterator[None]:
    """While active, the tracer records each call of a scripted submodule as one call, whatever the module does."""
    swapped = []
    for path, module in list(model.named_modules()):
        for name, child in list(module._modules.items()) if not isinstance(module, torch.jit.ScriptModule) else []:
            if isinstance(child, torch.jit.ScriptModule):
                swapped.append((module, name, child))
                module._modules[name] = _Part(child, f"{path}.{name}" if path else name)
    try:
        yield
    finally:
        for module, name, child in swapped:
            module._modules[name] = child


class _Part(torch.nn.Module):
    """Stands for a scripted submodule while the model is traced."""

    def __init__(self, scripted: Any, path: str) -> None:
        super().__init__()
        self.__dict__["scripted"] = scripted
        self._path = path

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["scripted"], name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        scripted = self.scripted
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

        class ScriptedCall(torch.autograd.Function):
            """The call of a scripted module.

            Attributes:
                part: The module.
                rebuild: From the tensors to all arguments.
                structure: Of the results.
            """

            part = self
            structure: Any = None

            @staticmethod
            def rebuild(given: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
                fresh = iter(given)
                rebuilt = [next(fresh) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
                positional, named = pytree.tree_unflatten(rebuilt, spec)
                return positional, named

            @staticmethod
            def forward(ctx: Any, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
                positional, named = ScriptedCall.rebuild(given)
                with _not_traced():
                    found, ScriptedCall.structure = pytree.tree_flatten(scripted(*positional, **named))
                return tuple(found)

        results = ScriptedCall.apply(*tensors)
        return pytree.tree_unflatten(list(results), ScriptedCall.structure)


@contextmanager
def _not_traced() -> Iterator[None]:
    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)  # type: ignore[attr-defined] # the stubs lack it
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)  # type: ignore[attr-defined]


def interpret_part(
    function: Any, tensors: Sequence[SourceValue], weights: Mapping[str, torch.Tensor]
) -> tuple[list[SourceNode], list[SourceValue]] | None:
    """Returns the nodes and results of a recorded call; None if it is not one of a scripted submodule."""
    part = getattr(function, "part", None)
    if not isinstance(part, _Part):
        return None
    interpreter = Interpreter(weights)
    graph = inlined_graph(part.scripted)
    args, kwargs = function.rebuild(tensors)
    owner, *parameters = graph.inputs()
    interpreter.bind([owner], [ModuleValue(part.scripted._c, part._path)])
    interpreter.bind(parameters, arguments_of(part.scripted, interpreter, args, kwargs))
    results = interpreter.run(list(graph.nodes()), End(interpreter, list(graph.outputs())))
    warn_of_dropped(interpreter)
    return interpreter.nodes, results


def interpret_node(node: Any, env: Mapping[int, Any], weights: Mapping[str, torch.Tensor]) -> tuple[list[SourceNode], list[Any]]:
    """Returns the nodes and results of a branch or loop in a function that the model scripts.

    Raises:
        CaptureError: If a file cannot express it.
    """
    interpreter = Interpreter(weights)
    interpreter.env = {key: interpreter.adopt(from_python(value)) for key, value in env.items()}
    try:
        results = interpreter.run([node], lambda: interpreter.values(list(node.outputs())))
    except CannotJoin as reason:
        raise interpreter.refusal(node, f"a branch gives what has no one form: {reason}", "return tensors of one form") from None
    warn_of_dropped(interpreter)
    return interpreter.nodes, [_plain(value) for value in results]


def _plain(value: Abstract) -> Any:
    """A value as a trace has it: lists and tuples are lists."""
    if isinstance(value, ListValue | tuple):
        return [_plain(item) for item in (value.items if isinstance(value, ListValue) else value)]
    return {key: _plain(item) for key, item in value.items.items()} if isinstance(value, DictValue) else value
