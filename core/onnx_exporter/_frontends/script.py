"""Capture of scripted (and traced) TorchScript: their graphs are interpreted, arguments serve as example types only."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from onnx_exporter._frontends._inputs import InputTensor, ModelInputs
from onnx_exporter._frontends._script_interpreter import Interpreter, inlined
from onnx_exporter._frontends._script_optionals import Chooser, Interpreted, first_opset, may_be_none
from onnx_exporter._frontends._script_results import End, outputs_of, place_of_return, taking_apart
from onnx_exporter._frontends._script_runs import to_number
from onnx_exporter._frontends._script_values import Abstract, Chain, ListValue, ModuleValue, from_python
from onnx_exporter._frontends.captured import CAPTURE_LOCK, Captured
from onnx_exporter._source.graph import Location, SourceGraph, SourceType, SourceValue
from onnx_exporter._warnings import warn
from onnx_exporter.errors import ArgumentError, CaptureError

_NUMBERS: dict[str, tuple[type, torch.dtype]] = {
    "int": (int, torch.int64),
    "float": (float, torch.float64),
    "bool": (bool, torch.bool),
}


_OPTIONALS = frozenset(f"Optional[{name}]" for name in ("Tensor", *_NUMBERS))
"""The types of parameters that may be None and else are an input of the file."""

_LISTS = frozenset({"List[Tensor]", "Optional[List[Tensor]]"})
"""The types of parameters that can be one input, a sequence."""


def _number_kind(item: Any) -> tuple[type, torch.dtype] | None:
    """The kind of number that a parameter takes, be it an optional one; None if it takes something else."""
    return _NUMBERS.get(str(item.type).removeprefix("Optional[").removesuffix("]"))


class Scripted(torch.nn.Module):
    """A scripted model in the form of a module whose arguments are tensors: a number is one of rank 0.

    Args:
        scripted: A ``torch.jit.ScriptModule`` or ``ScriptFunction``.

    Attributes:
        numbers: The kinds of those parameters that are numbers, by name.
        lists: Those parameters that are lists of tensors.
        assigned: The attributes that a call assigns to, each a module and a name; afterwards they are as before.
    """

    def __init__(self, scripted: Any) -> None:
        super().__init__()
        self.scripted: Any
        self.__dict__["scripted"] = scripted  # unregistered, or the names of weights would begin with its own
        if not isinstance(scripted, torch.jit.ScriptFunction) and not hasattr(scripted, "forward"):
            raise ArgumentError(
                "the scripted module has no forward of its own, only overloads of it; script a module that calls it"
            )
        self._arguments = _parameters(scripted)
        self.numbers = {item.name: kind for item in self._arguments if (kind := _number_kind(item)) is not None}
        self.lists = [item.name for item in self._arguments if str(item.type) in _LISTS]
        self.assigned: list[tuple[Any, str]] = []

        def forward(*args: Any, **kwargs: Any) -> Any:
            positional, named = self._replace(args, kwargs, lambda kind, value: kind[0](value))
            before = [(owner, name, owner.getattr(name)) for owner, name in self.assigned]
            try:
                return scripted(*positional, **named)
            finally:
                for owner, name, value in before:
                    owner.setattr(name, value)

        forward.__signature__ = signature_of(scripted)  # type: ignore[attr-defined]
        self.forward = forward

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns the arguments with a tensor of rank 0 in the place of each number."""
        return self._replace(args, kwargs, lambda kind, value: torch.as_tensor(value, dtype=kind[1]))

    def _replace(self, args: Sequence[Any], kwargs: Mapping[str, Any], change: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def changed(name: str, value: Any) -> Any:
            return value if value is None or name not in self.numbers else change(self.numbers[name], value)

        names = [item.name for item in self._arguments]
        positional = [changed(name, value) for name, value in zip(names, args, strict=False)]
        return (*positional, *args[len(positional) :]), {name: changed(name, value) for name, value in kwargs.items()}

    def lists_in(self, inputs: ModelInputs) -> list[str]:
        """Returns those parameters that are lists of tensors, and are given."""
        given = {**dict(zip([item.name for item in self._arguments], inputs.args, strict=False)), **inputs.kwargs}
        return [name for name in self.lists if isinstance(given.get(name), list | tuple)]

    # What the names and the mode of a module mean, for the scripted one.

    def _modules_of(self) -> Any:
        return self.scripted if isinstance(self.scripted, torch.nn.Module) else torch.nn.Module()

    def modules(self, remove_duplicate: bool = True) -> Iterator[torch.nn.Module]:
        yield self
        yield from self._modules_of().modules()

    def train(self, mode: bool = True) -> Scripted:
        self.training = mode
        if hasattr(self.scripted, "training"):
            self.scripted.train(mode)
        return self

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, torch.nn.Parameter]]:
        yield from self._modules_of().named_parameters(*args, **kwargs)

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, torch.Tensor]]:
        yield from self._modules_of().named_buffers(*args, **kwargs)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self._modules_of().state_dict(*args, **kwargs)


def graph_of(scripted: Any) -> Any:
    """Returns a copy of a scripted program's graph, with the functions and modules that it calls inlined."""
    return inlined(scripted.graph if isinstance(scripted, torch.jit.ScriptFunction) else scripted.forward.graph)


def _parameter(item: Any) -> inspect.Parameter:
    default = item.default_value if item.has_default_value() else inspect.Parameter.empty
    return inspect.Parameter(item.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def capture_script(model: Scripted, inputs: ModelInputs, opset: int) -> Captured:
    """Interprets a scripted model; nothing in it depends on what the example holds.

    Args:
        model: The model.
        inputs: The example.
        opset: The version of ONNX that the file will be for: it decides whether there are inputs that need not be given.

    Raises:
        CaptureError: If TorchScript is not there, or the program does what a file cannot express; the message names the line.
    """
    if sys.version_info >= (3, 14):
        raise CaptureError("TorchScript does not run on Python 3.14 and later; export the torch.nn.Module with capture='export'")
    with CAPTURE_LOCK:
        graph = graph_of(model.scripted)
    may_be_left_out = {item.name for item in _parameters(model.scripted) if str(item.type) in _OPTIONALS}
    candidates = {item.parameter: first_opset(item.tensor.dtype) for item in inputs.tensors if item.parameter in may_be_left_out}
    run = Chooser(partial(_interpret, model, graph, inputs), candidates).run(opset)
    interpreter, results = run.interpreter, run.results
    outputs = outputs_of(interpreter, results, place_of_return(interpreter, graph))
    warn_of_dropped(interpreter)
    model.assigned = list(interpreter.assigned.values())
    return Captured(SourceGraph(run.inputs, interpreter.nodes, outputs), flatten=taking_apart(results))


def _interpret(model: Scripted, graph: Any, inputs: ModelInputs, optional: Collection[str]) -> Interpreted:
    """Interprets a model; of the parameters named in `optional` nobody knows whether they are None."""
    interpreter = Interpreter({**dict(model.named_parameters()), **dict(model.named_buffers())})
    values = [_input_value(item, is_optional=item.parameter in optional) for item in inputs.tensors]
    given = {
        item.parameter: may_be_none(interpreter, value, is_number=item.parameter in model.numbers)
        for item, value in zip(inputs.tensors, values, strict=True)
        if value.type.is_optional
    }
    parameters = list(graph.inputs())
    if not isinstance(model.scripted, torch.jit.ScriptFunction):
        interpreter.bind(parameters[:1], [ModuleValue(model.scripted._c, "")])
        parameters = parameters[1:]
    args, kwargs = inputs.rebuild(
        [
            ListValue([Chain(value)]) if value.type.is_list else given.get(item.parameter, value)
            for item, value in zip(inputs.tensors, values, strict=True)
        ]
    )
    interpreter.bind(parameters, arguments_of(model.scripted, interpreter, args, kwargs))
    results = interpreter.run_program(list(graph.nodes()), End(interpreter, list(graph.outputs())))
    return Interpreted(interpreter, given, results, values)


def warn_of_dropped(interpreter: Interpreter) -> None:
    """Warns once of all assertions, exceptions and prints that the file does not have."""
    if interpreter.dropped:
        places = "".join(f"\n  {place}" for place in interpreter.dropped)
        warn(f"a file neither checks, raises nor prints; what the scripted model does so is left out:{places}")


def _input_value(item: InputTensor, *, is_optional: bool) -> SourceValue:
    tensor, shape = item.tensor, item.sizes
    if item.elements is not None:
        return SourceValue(item.name, SourceType(tensor.dtype, shape, is_list=True))
    kind = SourceType(tensor.dtype, shape, False, tensor.stride(), tuple(tensor.shape), requires_grad=tensor.requires_grad)
    return SourceValue(item.name, dataclasses.replace(kind, is_optional=is_optional))


def arguments_of(scripted: Any, interpreter: Interpreter, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Abstract]:
    """Returns the arguments of a scripted program, in order; tensors that stand for numbers become numbers."""
    bound = signature_of(scripted).bind(*args, **kwargs)
    bound.apply_defaults()
    numbers = {item.name for item in _parameters(scripted) if _number_kind(item) is not None}
    return [
        to_number(interpreter, value, Location())
        if name in numbers and isinstance(value, SourceValue)
        else interpreter.adopt(from_python(value))
        for name, value in bound.arguments.items()
    ]


def _parameters(scripted: Any) -> list[Any]:
    """The parameters of a scripted program, without the module itself."""
    is_function = isinstance(scripted, torch.jit.ScriptFunction)
    schema = (scripted if is_function else scripted.forward).schema
    return list(schema.arguments) if is_function else list(schema.arguments)[1:]


def signature_of(scripted: Any) -> inspect.Signature:
    """Returns the parameters of a scripted program as Python has them."""
    return inspect.Signature([_parameter(item) for item in _parameters(scripted)])
