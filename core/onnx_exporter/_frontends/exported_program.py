"""Capture by ``torch.export``, and of programs that the user exported already."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind, TensorArgument

from onnx_exporter._frontends._dynamic import DynamicAxes, normalise_axes
from onnx_exporter._frontends._fx_capture import run_export
from onnx_exporter._frontends._fx_graph import Constants, GraphConverter
from onnx_exporter._frontends._fx_ranges import check_squeezes, validity_of
from onnx_exporter._frontends._fx_types import Symbols, number_kind, type_of
from onnx_exporter._frontends._inputs import InputTensor, ModelInputs, chosen_names
from onnx_exporter._frontends.captured import CAPTURE_LOCK, Captured, is_library_file
from onnx_exporter._source.graph import Argument, SourceGraph, SourceType, SourceValue, values_in
from onnx_exporter.errors import ArgumentError, CaptureError

_SOLVER = f"{os.sep}sympy{os.sep}"
"""Part of the path of sympy, in which PyTorch solves its constraints on sizes; no place in a model."""

_UNKNOWN_OUTPUT = re.compile(r"Found <class '(.+?)'> in output, which is not a known type")


def capture_export(model: torch.nn.Module | ExportedProgram, inputs: ModelInputs) -> Captured:
    """Captures `model` with ``torch.export``; an exported program is taken as it is.

    Raises:
        CaptureError: If the model raises or returns what cannot be captured, or an axis that is asked to be dynamic cannot be.
    """
    if isinstance(model, ExportedProgram):
        return _to_source(model, inputs, [])
    _refuse_scripted_parts(model)
    # Clones, since torch.export takes one tensor that is given twice for one input.
    clones = [item.tensor.detach().clone(memory_format=torch.preserve_format) for item in inputs.tensors]
    with CAPTURE_LOCK:
        program, doubts = _export(model, _with_tensors(inputs, clones))
    return _to_source(program, inputs, doubts)


def _refuse_scripted_parts(model: torch.nn.Module) -> None:
    scripted = [path for path, module in model.named_modules() if isinstance(module, torch.jit.ScriptModule)]
    if scripted:
        raise CaptureError(
            f"torch.export takes no TorchScript, but {scripted[0]!r} is scripted; use capture='trace', which takes scripted "
            "parts as they are, or export the model without torch.jit.script"
        )


def settle_automatic(model: torch.nn.Module | ExportedProgram, inputs: ModelInputs) -> ModelInputs:
    """Returns the inputs without those dynamic axes that may be fixed and that ``torch.export`` finds fixed.

    Raises:
        CaptureError: If the model cannot be captured.
    """
    if isinstance(model, ExportedProgram) or not any(item.automatic for item in inputs.tensors):
        return inputs
    _refuse_scripted_parts(model)
    with CAPTURE_LOCK:
        try:
            program = _run_export(model, inputs, "AUTO")
        except Exception as error:  # the model is the user's code and may raise anything
            raise CaptureError(_describe_failure(error)) from error
    tensors = []
    for item, node in _input_nodes(program, inputs):
        sizes = [Symbols().dim(size) for size in node.meta["val"].shape]
        fixed = {axis for axis in item.automatic if isinstance(sizes[axis], int)}
        dynamic = {axis: name for axis, name in item.dynamic.items() if axis not in fixed}
        tensors.append(dataclasses.replace(item, dynamic=dynamic, automatic=item.automatic - fixed))
    return dataclasses.replace(inputs, tensors=tuple(tensors))


def inputs_of_program(
    program: ExportedProgram,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    input_names: Sequence[str] | None,
    dynamic_axes: DynamicAxes | None,
) -> ModelInputs:
    """Takes the arguments of an exported program apart.

    Names that are not given are the program's own. An axis is dynamic if it is in the program;
    `dynamic_axes` only gives it a name.

    Args:
        program: The exported program.
        args: Positional arguments, or None for those that it was exported with.
        kwargs: Keyword arguments; they are taken only with `args`.
        input_names: Names for the first inputs.
        dynamic_axes: Names of axes by input.

    Raises:
        ArgumentError: If the arguments do not fit the program, or an axis named in `dynamic_axes` is fixed in it.
    """
    if args is None:
        if program.example_inputs is None:
            raise ArgumentError("the exported program holds no example inputs; give args")
        args, kwargs = program.example_inputs
    named = dict(kwargs or {})
    leaves, spec = pytree.tree_flatten((list(args), named))
    specs = _specs_of_leaves(program, args, named)
    found = [(item, leaf) for item, leaf in zip(specs, leaves, strict=True) if isinstance(leaf, torch.Tensor)]
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    names = chosen_names([item.arg.name for item, _ in found], input_names)
    tensors = []
    for (item, leaf), name in zip(found, names, strict=True):
        if not isinstance(item.arg, TensorArgument):
            raise ArgumentError(f"the exported program has a constant where args have a tensor of shape {list(leaf.shape)}")
        shape = placeholders[item.arg.name].meta["val"].shape
        if len(shape) != leaf.dim():
            raise ArgumentError(f"input {name!r} has {leaf.dim()} dimensions, but the program was exported with {len(shape)}")
        axes = _axes_of_program(name, shape, (dynamic_axes or {}).get(name, ()))
        tensors.append(InputTensor(name, leaf, item.arg.name, axes))
    return ModelInputs(tuple(args), named, tuple(tensors), tuple(leaves), spec)


def _axes_of_program(name: str, shape: Sequence[Any], given: Mapping[int, str] | Sequence[int]) -> dict[int, str]:
    """The dynamic axes of one input: those of the program, with the names given or its own."""
    sizes = [Symbols().dim(size) for size in shape]
    own = {axis: size for axis, size in enumerate(sizes) if isinstance(size, str)}
    chosen = normalise_axes(name, len(shape), given)
    for axis in chosen:
        if axis not in own:
            raise ArgumentError(
                f"dynamic_axes names axis {axis} of {name!r}, but the program was exported with the fixed size {sizes[axis]} "
                f"there; give torch.export.export dynamic_shapes for it"
            )
    return own | chosen


def _specs_of_leaves(program: ExportedProgram, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[InputSpec]:
    """The program's own record of each leaf of the arguments, in the order of the caller's keywords."""
    specs = [item for item in program.graph_signature.input_specs if item.kind is InputKind.USER_INPUT]
    own_args, own_kwargs = _plain(program.call_spec.in_spec, iter(specs))
    if len(own_args) != len(args) or set(own_kwargs) != set(kwargs):
        raise ArgumentError(
            f"the program was exported with {len(own_args)} positional arguments and keywords {sorted(own_kwargs)}, "
            f"got {len(args)} and {sorted(kwargs)}"
        )
    result = pytree.tree_leaves((list(own_args), {name: own_kwargs[name] for name in kwargs}))
    count = len(pytree.tree_leaves((list(args), kwargs)))
    if len(result) != count:
        raise ArgumentError(f"the program was exported with {len(result)} arguments, nested ones counted, got {count}")
    return result


# Capture


def _export(model: torch.nn.Module, inputs: ModelInputs) -> tuple[ExportedProgram, list[str]]:
    """Runs ``torch.export`` and explains its failures.

    PyTorch takes a size of 0 or 1 for a constant. The axes of this size are made longer for the capture
    where the model allows; else PyTorch is told to look away, and what it may have got wrong is returned.
    """
    small = sorted({name for item in inputs.tensors for axis, name in item.dynamic.items() if item.tensor.shape[axis] < 2})
    if small and (program := _export_enlarged(model, inputs)) is not None:
        return program, []
    try:
        return _run_export(model, inputs, "DYNAMIC", oblivious=bool(small)), _doubts(small)
    except Exception as error:  # the model is the user's code and may raise anything
        if not _is_constraint(error):
            raise CaptureError(_describe_failure(error)) from error
        failure = error
    if not small:
        # A size inside the model, such as sequence - 1, may still be 1 with this example.
        try:
            return _run_export(model, inputs, "DYNAMIC", oblivious=True), _doubts([""])
        except Exception as error:
            if not _is_constraint(error):
                raise CaptureError(_describe_failure(error)) from error
    raise CaptureError(_describe_fixed_axes(model, inputs, failure)) from failure


def _export_enlarged(model: torch.nn.Module, inputs: ModelInputs) -> ExportedProgram | None:
    """Captures the model with longer axes; None if it then takes another course than with the example."""
    try:
        program = _run_export(model, _enlarged(inputs), "DYNAMIC")
    except Exception:  # the model may refuse these sizes; the caller captures its own example next, and reports that
        return None
    guards = getattr(program.module(), "_guards_fn", None)
    if guards is not None:
        try:
            # Conditions on sizes that the capture relied on, such as a branch that was taken.
            guards(*pytree.tree_leaves((list(inputs.args), inputs.kwargs)))
        except AssertionError:
            return None
    return program


def _doubts(axes: Sequence[str]) -> list[str]:
    """What to tell about a capture in which PyTorch took less care with sizes of 0 and 1; "" is a size inside the model."""
    advice = "which torch.export may have taken for a constant; give a larger example, or verify the file at another size"
    named = (
        f"dynamic axis {name!r} has size 0 or 1 in the example" if name else "a size inside the model is 0 or 1" for name in axes
    )
    return [f"{what}, {advice}" for what in named]


def _enlarged(inputs: ModelInputs) -> ModelInputs:
    """Returns inputs in which every dynamic axis has at least two elements."""
    tensors = []
    for item in inputs.tensors:
        tensor = item.tensor
        for axis in item.dynamic:
            if tensor.shape[axis] == 0:
                tensor = tensor.new_zeros((*tensor.shape[:axis], 1, *tensor.shape[axis + 1 :]))
            if tensor.shape[axis] == 1:
                tensor = torch.cat([tensor, tensor], axis)
        tensors.append(tensor)
    return _with_tensors(inputs, tensors)


def _with_tensors(inputs: ModelInputs, tensors: Sequence[torch.Tensor]) -> ModelInputs:
    """Returns the inputs with other tensors in place of theirs."""
    items = tuple(dataclasses.replace(item, tensor=tensor) for item, tensor in zip(inputs.tensors, tensors, strict=True))
    args, kwargs = inputs.rebuild(tensors)
    leaves = tuple(pytree.tree_leaves((list(args), kwargs)))
    return dataclasses.replace(inputs, args=args, kwargs=kwargs, tensors=items, _leaves=leaves)


def _run_export(model: torch.nn.Module, inputs: ModelInputs, hint: str, oblivious: bool = False) -> ExportedProgram:
    shapes = _dynamic_shapes(model, inputs, hint)
    return run_export(model, inputs.args, inputs.kwargs, shapes, oblivious)


def _dynamic_shapes(model: torch.nn.Module, inputs: ModelInputs, hint: str) -> dict[str, Any] | None:
    """Returns ``dynamic_shapes``: for each parameter of ``forward``, nested as its argument, the dynamic axes.

    Axes are marked and not tied to each other by a ``Dim``: PyTorch then finds itself which are equal,
    and accepts that one is an expression of others (total = past + sequence). The names are ours to give.
    """
    if not inputs.is_dynamic:
        return None
    mark = _marks(inputs, hint)
    specs = [{axis: mark(name) for axis, name in item.dynamic.items()} or None for item in inputs.tensors]
    fresh = iter(specs)
    leaves = [next(fresh) if isinstance(leaf, torch.Tensor) else None for leaf in inputs._leaves]
    args, kwargs = _plain(inputs._spec, iter(leaves))
    return dict(inspect.signature(model.forward).bind(*args, **kwargs).arguments)


def _plain(spec: pytree.TreeSpec, leaves: Iterator[Any]) -> Any:
    """Returns leaves in a structure as ``torch.export`` wants it: a list for any object that is no list, tuple or dict."""
    if spec.is_leaf():
        return next(leaves)
    children = [_plain(child, leaves) for child in (spec.children() if hasattr(spec, "children") else spec.children_specs)]
    if spec.type is dict:
        return dict(zip(spec.context, children, strict=True))
    return tuple(children) if spec.type is tuple else children


def _marks(inputs: ModelInputs, hint: str) -> Callable[[str], Any]:
    """Returns what marks an axis of a given name as dynamic in this version of PyTorch."""
    if hasattr(Dim, hint):
        return lambda name: getattr(Dim, hint)
    names = {name for item in inputs.tensors for name in item.dynamic.values()}
    dims = {name: Dim(name if name.isidentifier() else f"axis_{index}") for index, name in enumerate(sorted(names))}
    return dims.__getitem__


def _is_constraint(error: Exception) -> bool:
    """Whether ``torch.export`` says that an axis cannot be dynamic, or fails while it works out what to say."""
    kind = getattr(error, "error_type", None)
    if getattr(kind, "name", "") == "CONSTRAINT_VIOLATION" or type(error).__name__ == "ConstraintViolationError":
        return True
    return isinstance(error, NotImplementedError) and any(
        _SOLVER in frame.filename for frame in traceback.extract_tb(error.__traceback__)
    )


def _describe_fixed_axes(model: torch.nn.Module, inputs: ModelInputs, error: Exception) -> str:
    """Says which axes the model fixes: those that stay constant when PyTorch may choose."""
    said = str(error).strip().split("\n\n")[0]
    places: list[str] = []
    if hasattr(Dim, "AUTO") and not isinstance(error, NotImplementedError):
        # It has just been captured to the end, so it does not fail where axes may be fixed.
        program = _run_export(model, inputs, "AUTO", oblivious=True)
        for item, node in _input_nodes(program, inputs):
            for axis, name in item.dynamic.items():
                size = Symbols().dim(node.meta["val"].shape[axis])
                if isinstance(size, int):
                    places.append(f"axis {axis} ({name!r}) of input {item.name!r} must be {size}")
    what = "; ".join(places) or "an axis in dynamic_axes must be constant"
    return (
        f"torch.export finds that the model, with this example, works for one size only: {what}.\n"
        f"Leave it out of dynamic_axes, give a larger example, or change the model where it depends on the size. "
        f"PyTorch said:\n{said}"
    )


def _describe_failure(error: Exception) -> str:
    """Says which line of the model raised what, or what it returns that cannot be captured."""
    returned = _UNKNOWN_OUTPUT.search(str(error))
    if returned:
        return (
            f"forward returns a {returned[1]}, which torch.export does not know; return tensors (nested in tuples, lists or "
            f"dicts), or make a dataclass known with torch.export.register_dataclass"
        )
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_library_file(frame.filename)]
    places = [f"{frame.filename}:{frame.lineno}" for frame in frames if _SOLVER not in frame.filename]
    what = (
        f"the model raised while torch.export captured it at {places[-1]}"
        if places
        else "torch.export could not capture the model"
    )
    return (
        f"{what}: {type(error).__name__}: {error}\n"
        f"Check that the model runs with these arguments in eager PyTorch; capture='trace' may capture what torch.export cannot"
    )


# Conversion


def _input_nodes(program: ExportedProgram, inputs: ModelInputs) -> list[tuple[InputTensor, torch.fx.Node]]:
    """Each input tensor with its placeholder."""
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    specs = _specs_of_leaves(program, inputs.args, inputs.kwargs)
    tensors = [item for item, leaf in zip(specs, inputs._leaves, strict=True) if isinstance(leaf, torch.Tensor)]
    return [(item, placeholders[spec.arg.name]) for item, spec in zip(inputs.tensors, tensors, strict=True)]


def _to_source(program: ExportedProgram, inputs: ModelInputs, doubts: list[str]) -> Captured:
    """Converts an exported program; with `doubts` about it, no size of 0 or 1 is taken for a fact."""
    symbols = Symbols(trusts_one=not doubts)
    pairs = _input_nodes(program, inputs)
    for item, node in pairs:
        for axis, name in item.dynamic.items():
            symbols.give(node.meta["val"].shape[axis], name)
    graph = SourceGraph()
    env: dict[str, Argument] = {}
    for item, node in pairs:
        kind = type_of(node.meta["val"], symbols)
        sizes = map(Symbols().dim, node.meta["val"].shape)
        shape = tuple(item.dynamic.get(axis, size) for axis, size in enumerate(sizes))
        env[node.name] = SourceValue(item.name, dataclasses.replace(kind, shape=shape, requires_grad=item.tensor.requires_grad))
        graph.inputs.append(env[node.name])
    constants = Constants()
    for spec in program.graph_signature.input_specs:
        if spec.arg.name not in env:
            env[spec.arg.name] = _bound_value(program, spec, constants)
    names = [node.name for node in program.graph.nodes if node.op == "placeholder"]
    results = GraphConverter(graph, symbols, constants).convert(program.graph_module, [env[name] for name in names])
    axes = [(name, node.meta["val"].shape[axis]) for item, node in pairs for axis, name in item.dynamic.items()]
    check_squeezes(
        program, [(node.meta["val"].shape[axis], item.tensor.shape[axis]) for item, node in pairs for axis in item.dynamic]
    )
    ranges, notes = validity_of(program, axes)
    captured = Captured(graph, doubts, ranges, notes)
    # What else a program returns (mutated buffers, tokens) is no output of the model.
    specs = program.graph_signature.output_specs
    returned = [item for item, spec in zip(results, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
    for output in returned:
        graph.outputs += _output_values(output, captured)
    if not graph.outputs:
        what = pytree.tree_unflatten(returned, program.call_spec.out_spec) if program.call_spec.out_spec else None
        raise CaptureError(f"forward returns {what!r}, which holds no tensor, so there is nothing to export")
    return captured


def _bound_value(program: ExportedProgram, spec: InputSpec, constants: Constants) -> Argument:
    """What a placeholder that is no input of the file stands for."""
    if spec.kind is InputKind.USER_INPUT:
        if isinstance(spec.arg, ConstantArgument):
            return spec.arg.value
        raise CaptureError(
            f"argument {spec.arg.name!r} of the exported program is a number that may change from call to call; "
            f"pass it as a tensor, or export the program with it as a constant"
        )
    if spec.kind is InputKind.TOKEN or spec.target is None:
        return None
    held = program.state_dict[spec.target] if spec.target in program.state_dict else program.constants[spec.target]
    # A tensor that is neither parameter nor buffer has no name, as in a trace
    name = "" if spec.kind is InputKind.CONSTANT_TENSOR else spec.target
    return constants.value(name, held) if isinstance(held, torch.Tensor) else held


def _output_values(output: Argument, captured: Captured) -> list[SourceValue]:
    """The outputs of the file for one output of the program: none for None."""
    if output is None or isinstance(output, SourceValue | list):
        return list(values_in(output))
    if number_kind(output) is not None:
        tensor = torch.tensor(output)
        return [SourceValue("", SourceType(tensor.dtype, (), True, (), ()), tensor)]
    captured.baked_data.append(f"the model returns {output!r}, which a file cannot hold; it is left out")
    return []
