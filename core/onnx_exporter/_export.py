"""`export`: its arguments, and what each means."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import IO, Any

import torch

from onnx_exporter._enums import OperatorExportTypes, TrainingMode
from onnx_exporter._frontends._dynamic import DynamicAxes
from onnx_exporter._options import DEFAULT_OPSET, Options, translate_foreign
from onnx_exporter._pipeline import inputs_of, module_of, run_export
from onnx_exporter._result import ExportResult

__all__ = ["DEFAULT_OPSET", "export", "input_names_of"]


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: Any = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    export_params: bool = True,
    verbose: bool | None = False,
    training: TrainingMode = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: OperatorExportTypes | None = None,
    opset_version: int | None = None,
    do_constant_folding: bool = True,
    dynamic_axes: DynamicAxes | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type[torch.nn.Module]] = False,
    *,
    capture: str | None = None,
    dynamo: bool | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    external_data: bool | None = None,
    plugins: Sequence[Any] = (),
    prefer: Sequence[str] = (),
    verify: bool = False,
    verify_args: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    custom_op_libraries: Sequence[str | os.PathLike[str] | type[Any]] = (),
    doc_string: str | None = None,
    producer_name: str | None = None,
    metadata_props: Mapping[str, str] | None = None,
    autograd_inlining: bool = True,
    sequence_inputs: bool = True,
    report: bool | str | os.PathLike[str] = False,
    progress: Callable[[str], None] | None = None,
    **foreign: Any,
) -> ExportResult:
    """Exports a PyTorch model to ONNX. Added in 0.1.

    The positional arguments are those of ``torch.onnx.export`` in PyTorch 1.12. Arguments that it has dropped since are
    taken with a ``DeprecationWarning`` that says what replaces them.

    Args:
        model: The module, a function, or an ``ExportedProgram``.
        args: Example arguments: a tensor, or a tuple that may end in a dict of keyword arguments. An empty dict at
            the end makes the dict before it positional. Tensors, also those nested in tuples, lists, dicts,
            dataclasses and the outputs and caches of transformers, become inputs in order of appearance;
            everything else is baked in.
        f: Where to write: a path, a binary file, or None to only return the result.
        export_params: False stores no weights: they become inputs after the others, in the order of the state dict.
        verbose: True prints the graph as text, and puts the user's source locations in the nodes' ``doc_string``.
        training: ``TrainingMode.EVAL``, ``TRAINING``, or ``PRESERVE`` for the mode that each submodule has. Modes
            are restored afterwards.
        input_names: Names of the inputs, in order; those left out get the names of forward's parameters. Names
            beyond the inputs are for the weights, in the order of the state dict.
        output_names: Names of the outputs, in order; those left out are ``output_0``, ``output_1``, ...
        operator_export_type: ``ONNX`` (the default) converts every operator or fails. ``ONNX_FALLTHROUGH`` leaves those
            that nobody converts as they are, in a domain named after their namespace. ``ONNX_ATEN_FALLBACK`` makes
            ``org.pytorch.aten::ATen`` nodes of those, ``ONNX_ATEN`` of every ATen operator.
        opset_version: Version of ai.onnx, 7 to 28; `DEFAULT_OPSET` unless given.
        do_constant_folding: Whether what is computed from weights alone is stored computed. What is computed from the
            model's other constants always is.
        dynamic_axes: For an input's or output's name, its dynamic axes: ``{"x": {0: "batch"}}``, or ``{"x": [0]}``.
            Axes with one name have one size.
        keep_initializers_as_inputs: Whether weights are inputs too, so that a run may give others. None means False,
            but True for the other operator export types. Below opset 9 ONNX demands it.
        custom_opsets: Versions of custom domains: ``{"com.acme": 2}``; 1 for those that are not named.
        export_modules_as_functions: True, or the module classes, to write as ONNX local functions; from opset 15 on.
        capture: ``"trace"`` (the default) runs the model once and records it; ``"export"`` uses ``torch.export``.
        dynamo: torch.onnx's name for the choice: True is ``capture="export"``, False ``capture="trace"``.
        kwargs: Example keyword arguments.
        dynamic_shapes: Dynamic axes in a structure like the arguments', as ``torch.export.export`` takes it: ``Dim``,
            ``Dim.AUTO``, ``Dim.DYNAMIC`` or a name for each. Limits of a ``Dim`` are kept in the file's metadata.
        external_data: Whether weights go to a file of their own (``<f>.data``); by itself only past 2 GB.
        plugins: ``"NAME"`` insists on a plugin, whose passes and option defaults then act too; ``"no:NAME"`` leaves one out,
            ``"no:*"`` all that are not named. The path of a ``.py`` file, an `OpTable` or an object with hooks takes part in
            this export only. A file ``onnx_exporter_plugins.py`` beside the running script takes part by itself.
        prefer: Plugins that go first, in this order, and may replace built-in operators.
        verify: Whether to run the file under ONNX Runtime and compare with PyTorch, also on other values and at other sizes.
        verify_args: Further arguments (each like `args`) to verify with, in place of values and sizes made up.
        rtol: Relative tolerance of the comparison; by element type unless given.
        atol: Absolute tolerance of the comparison; by element type unless given.
        custom_op_libraries: What verification needs for custom operators: shared libraries for ONNX Runtime, or classes that
            derive from ``onnx.reference.op_run.OpRun``, with which ONNX's reference then runs the file.
        doc_string: The file's ``doc_string``.
        producer_name: The file's ``producer_name``; ``onnx-exporter`` unless given.
        metadata_props: Further ``metadata_props`` of the file.
        autograd_inlining: Whether an ``autograd.Function`` that nobody converts is replaced by the operators of its
            ``forward``; without it such a function is an unsupported operator.
        sequence_inputs: Whether a parameter ``List[Tensor]`` of a scripted model is one input, a sequence of any length, from
            opset 11 on; without it there is an input for each tensor that the example has in the list.
        report: True writes a Markdown report of the export beside `f` (or to the current folder), also of one that
            fails; a path says where.
        progress: Called with the name of each stage as it starts.
        foreign: Arguments that only torch.onnx.export has or had.

    Returns:
        The model, what each node came from, and the comparison.

    Raises:
        ArgumentError: If an argument is wrong.
        CaptureError: If PyTorch cannot capture the model.
        UnsupportedOpError: If operators cannot be converted; it lists all of them.
        SymbolicError: If a symbolic function fails.
        PluginError: If a plugin asked for by name is missing or broken.
        CheckerError: If the ONNX checker refuses the model (it is written all the same).
        WriteError: If the file cannot be written; what was there stays.
        VerificationError: If the file does not compute what PyTorch computes (it is written all the same).
    """
    given = {
        "opset_version": opset_version,
        "capture": capture,
        "dynamo": dynamo,
        "training": training,
        "operator_export_type": operator_export_type,
        "input_names": input_names,
        "output_names": output_names,
        "dynamic_axes": dynamic_axes,
        "dynamic_shapes": dynamic_shapes,
        "export_params": export_params,
        "keep_initializers_as_inputs": keep_initializers_as_inputs,
        "do_constant_folding": do_constant_folding,
        "custom_opsets": custom_opsets,
        "export_modules_as_functions": export_modules_as_functions,
        "verbose": verbose,
        "plugins": plugins,
        "prefer": prefer,
        "external_data": external_data,
        "verify": verify,
        "verify_args": verify_args,
        "rtol": rtol,
        "atol": atol,
        "custom_op_libraries": custom_op_libraries,
        "doc_string": doc_string,
        "producer_name": producer_name,
        "metadata_props": metadata_props,
        "autograd_inlining": autograd_inlining,
        "sequence_inputs": sequence_inputs,
        "report": report,
        "progress": progress,
    }
    options = Options(**given | translate_foreign(foreign)).checked()
    return run_export(model, args, kwargs, f, options)


def input_names_of(model: Any, args: Any, input_names: Sequence[str] | None = None, **options: Any) -> list[str]:
    """Returns the names that the inputs of a model will have in the file, given further options that decide them."""
    return [item.name for item in inputs_of(module_of(model), args, None, Options(input_names=input_names, **options)).tensors]
