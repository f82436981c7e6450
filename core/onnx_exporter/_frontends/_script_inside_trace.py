"""Scripted parts of a traced model: the tracer records a call, which is interpreted as a scripted model is."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter._frontends._patching import patched
from onnx_exporter._frontends._script_interpreter import Interpreter
from onnx_exporter._frontends._script_results import End, outputs_of, place_of_return
from onnx_exporter._frontends._script_values import Abstract, CannotJoin, DictValue, ListValue, Maybe, ModuleValue, from_python
from onnx_exporter._frontends.script import arguments_of, graph_of, warn_of_dropped
from onnx_exporter._source.graph import SourceNode, SourceValue
from onnx_exporter.errors import CaptureError


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


@contextmanager
def scripted_functions() -> Iterator[None]:
    """While active, scripted functions are given other names of the tensors that they are called with.

    The tracer knows values by their tensor objects. A function that returns one that it was given would make the result, which
    other data may make another tensor, what the argument is from then on.
    """
    call: Any = torch.jit.ScriptFunction.__call__

    @functools.wraps(call)
    def with_other_names(function: Any, *args: Any, **kwargs: Any) -> Any:
        if torch._C._get_tracing_state() is not None:
            args, kwargs = pytree.tree_map_only(torch.Tensor, torch.ops.aten.alias.default, (args, kwargs))
        return call(function, *args, **kwargs)

    with patched([(torch.jit.ScriptFunction, "__call__", with_other_names)]):
        yield


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
                if not any(isinstance(item, torch.Tensor) for item in found):
                    raise CaptureError(f"the scripted module {self._path!r} gives no tensor with these arguments; {_SCRIPT_ALL}")
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
    graph = graph_of(part.scripted)
    args, kwargs = function.rebuild(tensors)
    owner, *parameters = graph.inputs()
    interpreter.bind([owner], [ModuleValue(part.scripted._c, part._path)])
    interpreter.bind(parameters, arguments_of(part.scripted, interpreter, args, kwargs))
    results = interpreter.run_program(list(graph.nodes()), End(interpreter, list(graph.outputs())))
    check_fixed(results)
    outputs = outputs_of(interpreter, results, place_of_return(interpreter, graph))
    warn_of_dropped(interpreter)
    return interpreter.nodes, outputs


def check_fixed(results: Sequence[Abstract]) -> None:
    """Refuses results of which a trace would not know how many there are.

    Raises:
        CaptureError: If there is one.
    """
    for value in results:
        if isinstance(value, Maybe) or (isinstance(value, ListValue) and not value.is_known):
            what = "a list whose length" if isinstance(value, ListValue) else "a value of which"
            what += " the data decide" if isinstance(value, ListValue) else " the data decide whether it is None"
            raise CaptureError(f"a scripted part of a traced model gives {what}; {_SCRIPT_ALL}")
        if isinstance(value, tuple | ListValue):
            check_fixed(value if isinstance(value, tuple) else value.items)


_SCRIPT_ALL = "script the whole model: export(torch.jit.script(model), ...)"


def interpret_node(node: Any, env: dict[int, Any], weights: Mapping[str, torch.Tensor]) -> tuple[list[SourceNode], list[Any]]:
    """Returns the nodes and results of a branch or loop in a function that the model scripts, or of what reads a list of it.

    Lists in `env` that it changes are replaced there; one whose length the data decide stays a `ListValue`.

    Raises:
        CaptureError: If a file cannot express it.
    """
    interpreter = Interpreter(weights)
    lists = {id(value): from_python(value) for value in env.values() if isinstance(value, list)}
    interpreter.env = {key: interpreter.adopt(lists.get(id(value), from_python(value))) for key, value in env.items()}
    try:
        results = interpreter.run([node], lambda: interpreter.values(list(node.outputs())))
    except CannotJoin as reason:
        raise interpreter.refusal(node, f"a branch gives what has no one form: {reason}", "return tensors of one form") from None
    warn_of_dropped(interpreter)
    if any(isinstance(value, Maybe) for value in results):
        check_fixed(results)
    for key, value in env.items():
        if isinstance(value, list) and _is_changed(lists[id(value)], value):
            env[key] = _plain(lists[id(value)])
    return interpreter.nodes, [_plain(value) for value in results]


def is_unknown(value: Any) -> bool:
    """Whether a value of a trace is a list whose length the data decide."""
    return isinstance(value, ListValue)


def refuse_unknown() -> CaptureError:
    """Returns the error for a list whose length the data decide as a result of a trace."""
    return CaptureError(f"a scripted part of a traced model gives a list whose length the data decide; {_SCRIPT_ALL}")


def _is_changed(values: ListValue, before: list[Any]) -> bool:
    """Whether a list holds something else than before, or one in it does."""
    if len(values.items) != len(before):
        return True
    pairs = zip(values.items, before, strict=True)
    return any(_is_changed(one, other) if isinstance(one, ListValue) else one is not other for one, other in pairs)


def _plain(value: Abstract) -> Any:
    """A value as a trace has it: lists of known length and tuples are lists."""
    if isinstance(value, ListValue) and not value.is_known:
        return value
    if isinstance(value, ListValue | tuple):
        return [_plain(item) for item in (value.items if isinstance(value, ListValue) else value)]
    return {key: _plain(item) for key, item in value.items.items()} if isinstance(value, DictValue) else value
