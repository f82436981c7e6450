"""`export`: capture, convert, write, verify."""

from __future__ import annotations

import dataclasses
import io
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

from onnx_exporter._check import check_model
from onnx_exporter._convert import convert, purify
from onnx_exporter._frontends._inputs import (
    DynamicAxes,
    ModelInputs,
    model_inputs,
    split_args,
)
from onnx_exporter._frontends.captured import Captured
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter._plugins import load_plugins
from onnx_exporter._protobuf import Layout, lay_out
from onnx_exporter._result import ExportResult, ExportWarning, origins_of, plugin_versions, warn_about
from onnx_exporter._verify import verify_file
from onnx_exporter._write import WrittenFile, check_target, write_model, write_model_to_stream
from onnx_exporter.compat import exporting
from onnx_exporter.errors import ArgumentError, CaptureError

DEFAULT_OPSET = 18
"""The opset that is written unless another is asked for."""

Target = str | os.PathLike[str] | IO[bytes] | None
Progress = Callable[[str], None]


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: Any = (),
    f: Target = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_axes: DynamicAxes | None = None,
    capture: str = "trace",
    plugins: Sequence[Any] = (),
    prefer: Sequence[str] = (),
    external_data: bool | None = None,
    verify: bool = False,
    verify_args: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    custom_op_libraries: Sequence[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
) -> ExportResult:
    """Exports a PyTorch model to ONNX. Added in 0.1.

    Args:
        model: The module (exported in eval mode; its mode is restored), or an ``ExportedProgram``.
        args: Example arguments: a tensor, or a tuple that may end in a dict of keyword arguments.
        f: Where to write: a path, a binary file, or None to only return the result.
        kwargs: Example keyword arguments.
        input_names: Names of the inputs, in order; those left out get the names of forward's parameters.
        output_names: Names of the outputs, in order; those left out are ``output_0``, ``output_1``, ...
        opset_version: Version of ai.onnx, 7 to 28; 18 unless given.
        dynamic_axes: For an input's or output's name, its dynamic axes: ``{"x": {0: "batch"}}``, or ``{"x": [0]}``.
            Axes with one name have one size.
        capture: ``"trace"`` runs the model once and records it; ``"export"`` uses ``torch.export``.
        plugins: ``"no:NAME"`` leaves a plugin out, ``"NAME"`` insists on it; an `OpTable` or an object with hooks
            takes part in this export only.
        prefer: Plugins that go first and may replace built-in operators.
        external_data: Whether weights go to a file of their own (``<f>.data``); by itself only past 2 GB.
        verify: Whether to run the file under ONNX Runtime and compare with PyTorch, also at other sizes.
        verify_args: Further arguments (each like `args`) to verify with, in place of sizes made up.
        rtol: Relative tolerance of the comparison; by element type unless given.
        atol: Absolute tolerance of the comparison; by element type unless given.
        custom_op_libraries: Shared libraries with custom operators, for ONNX Runtime to verify with.
        progress: Called with the name of each stage as it starts.

    Returns:
        The model, what each node came from, and the comparison.

    Raises:
        ArgumentError: If an argument is wrong.
        CaptureError: If PyTorch cannot capture the model.
        UnsupportedOpError: If operators cannot be converted; it lists all of them.
        SymbolicError: If a symbolic function fails.
        PluginError: If a plugin asked for by name is missing or broken.
        CheckerError: If the ONNX checker refuses the model.
        WriteError: If the file cannot be written; what was there stays.
        VerificationError: If the file does not compute what PyTorch computes (it is written all the same).
    """
    opset = _checked_opset(opset_version)
    if capture not in ("trace", "export"):
        raise ArgumentError(f"capture is {capture!r}; it must be 'trace' or 'export'")
    if isinstance(f, str | os.PathLike):
        check_target(f)  # a wrong path should not cost a capture first
    elif f is not None and not _takes_bytes(f):
        raise ArgumentError(f"f is {type(f).__name__}; give a path, a file opened in binary mode, or None")
    _check_verification(verify, verify_args, rtol, atol)
    report = progress or (lambda stage: None)
    plugin_set = load_plugins(_as_list(plugins), _as_list(prefer))
    for failure in plugin_set.failures:
        warnings.warn(f"plugin {failure.info} failed to load and is left out: {failure.error}", ExportWarning, stacklevel=2)
    module = _module_of(model)
    with _eval_mode(module), exporting(opset):
        report("capturing")
        inputs = _inputs_of(module, args, kwargs, input_names, dynamic_axes)
        captured = _capture(module, inputs, capture)
        report("converting")
        converted = convert(purify(captured.graph, plugin_set), plugin_set, opset, output_names, dynamic_axes)
        warn_about(captured, is_dynamic=inputs.is_dynamic)
        report("checking")
        layout = lay_out(converted)
        check_model(layout)
        origins = origins_of(converted)
        result = ExportResult(converted, None, origins, plugin_versions(plugin_set, origins), tuple(captured.baked))
        if f is not None:
            report("writing")
            result = dataclasses.replace(result, file=_write(layout, f, external_data))
        if verify:
            report("verifying")
            result = _verify(
                result,
                module,
                inputs,
                ranges=captured.ranges,
                alt_args=verify_args or (),
                rtol=rtol,
                atol=atol,
                custom_op_libraries=custom_op_libraries,
            )
    return result


def _module_of(model: Any) -> Any:
    """The model as a module or an exported program."""
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise CaptureError(
            f"model is a {type(model).__name__}; scripted and traced models cannot be converted yet: "
            "pass the torch.nn.Module itself"
        )
    if isinstance(model, torch.export.ExportedProgram | torch.nn.Module):
        return model
    if isinstance(model, type):
        raise ArgumentError(f"model is the class {model.__name__}; pass an instance of it")
    if callable(model):
        return _FunctionModule(model)
    raise ArgumentError(f"model is {type(model).__name__}; give a torch.nn.Module, a function or an ExportedProgram")


def _as_list(given: Any) -> Sequence[Any]:
    """One name, table or object stands for a list of it."""
    return list(given) if isinstance(given, list | tuple | set | frozenset) else [given]


def _takes_bytes(target: Any) -> bool:
    return hasattr(target, "write") and not isinstance(target, io.TextIOBase)


def _check_verification(verify: Any, verify_args: Any, rtol: Any, atol: Any) -> None:
    if not isinstance(verify, bool):
        raise ArgumentError(f"verify is {verify!r}; it must be True or False")
    if verify_args is not None and not isinstance(verify_args, list | tuple):
        raise ArgumentError(f"verify_args is {type(verify_args).__name__}; give a list of arguments, each like args")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            raise ArgumentError(f"{name} is {value!r}; it must be a number that is not negative")


def _checked_opset(opset: int | None) -> int:
    if opset is None:
        return DEFAULT_OPSET
    if not isinstance(opset, int) or isinstance(opset, bool) or not OLDEST_OPSET <= opset <= NEWEST_OPSET:
        raise ArgumentError(f"opset_version is {opset!r}; it must be a number from {OLDEST_OPSET} to {NEWEST_OPSET}")
    return opset


class _FunctionModule(torch.nn.Module):
    """A plain function in the form of a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


@contextmanager
def _eval_mode(module: Any) -> Iterator[None]:
    """Puts a module in eval mode and restores the mode of each submodule, also after a failure."""
    if not isinstance(module, torch.nn.Module):
        yield
        return
    modes = [(submodule, submodule.training) for submodule in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for submodule, training in modes:
            submodule.training = training


def _inputs_of(
    module: Any, args: Any, kwargs: Mapping[str, Any] | None, input_names: Sequence[str] | None, dynamic_axes: DynamicAxes | None
) -> ModelInputs:
    if dynamic_axes is not None and not isinstance(dynamic_axes, Mapping):
        raise ArgumentError(f"dynamic_axes must be a dict from input or output names to axes, got {type(dynamic_axes).__name__}")
    positional, named = split_args(args, kwargs)
    if isinstance(module, torch.export.ExportedProgram):
        from onnx_exporter._frontends.exported_program import inputs_of_program

        return inputs_of_program(module, positional or None, named, input_names, dynamic_axes)
    return model_inputs(module.forward, positional, named, input_names, dynamic_axes)


def input_names_of(model: Any, args: Any, input_names: Sequence[str] | None = None) -> list[str]:
    """Returns the names that the inputs of a model will have in the file."""
    return [item.name for item in _inputs_of(model, args, None, input_names, None).tensors]


def _capture(module: Any, inputs: ModelInputs, capture: str) -> Captured:
    if capture == "export" or isinstance(module, torch.export.ExportedProgram):
        from onnx_exporter._frontends.exported_program import capture_export

        return capture_export(module, inputs)
    from onnx_exporter._frontends.trace import capture_trace

    return capture_trace(module, inputs)


def _write(layout: Layout, target: Any, external_data: bool | None) -> WrittenFile | None:
    if isinstance(target, str | os.PathLike):
        return write_model(layout, target, external_data=external_data)
    write_model_to_stream(layout, target)
    return None


def _verify(result: ExportResult, module: Any, inputs: ModelInputs, **options: Any) -> ExportResult:
    """Compares the file, or a temporary one where there is none on disk, with eager PyTorch."""
    call = module.module() if isinstance(module, torch.export.ExportedProgram) else module
    names = [value.name or "" for value in result.model.graph.outputs]
    with _file_of(result) as path:
        return dataclasses.replace(result, comparison=verify_file(path, call, inputs, names, result=result, **options))


@contextmanager
def _file_of(result: ExportResult) -> Iterator[str]:
    if result.file is not None:
        yield result.file.path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        write_model(lay_out(result.model), path)
        yield path
