"""`export_to_onnx`: the signature that the vendor's users know, and nothing of its own but which plugins take part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Any, Literal

import torch

from exporter_plugin_horizon import fake_quant
from exporter_plugin_horizon.fall_through import FallThrough
from onnx_exporter import ArgumentError, ExportResult, OperatorExportTypes, TrainingMode, export

OPSET = 11
"""The opset that the vendor's compiler reads."""


def export_to_onnx(
    model: torch.nn.Module,
    args: Any,
    f: str | os.PathLike[str] | IO[bytes] | None,
    export_params: bool = True,
    verbose: bool = False,
    training: TrainingMode = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX_FALLTHROUGH,
    opset_version: int = OPSET,
    do_constant_folding: bool = True,
    dynamic_axes: Mapping[str, Any] | None = None,
    keep_initializers_as_inputs: bool | None = None,
    custom_opsets: Mapping[str, int] | None = None,
    *,
    fake_quantize: Literal["qdq", "vendor", "none"] = "qdq",
    **options: Any,
) -> ExportResult:
    """Exports a float or QAT model for the vendor's compiler.

    Args:
        model: The model.
        args: Example arguments.
        f: Where to write.
        export_params: As in `onnx_exporter.export`; so are those that are not named here.
        operator_export_type: ``ONNX_FALLTHROUGH`` leaves what nobody converts as it is in the domain ``horizon``;
            ``ONNX`` fails then.
        fake_quantize: ``"qdq"`` writes fake quantization as QuantizeLinear and DequantizeLinear (with a scale a channel from
            opset 13 on; below as Round, Clip and arithmetic), ``"vendor"`` as ``HzQuantize`` and ``HzDequantize``; ``"none"``
            leaves it out, for a compiler that calibrates by itself.
        options: What else `onnx_exporter.export` takes.

    Raises:
        ExportError: As `onnx_exporter.export` does.
    """
    if fake_quantize not in ("qdq", "vendor", "none"):
        raise ArgumentError(f"fake_quantize is {fake_quantize!r}; it must be 'qdq', 'vendor' or 'none'")
    tables = [fake_quant.table] if fake_quantize == "vendor" else []
    passes: Mapping[str, Sequence[Any]] = {}
    if fake_quantize != "qdq":
        passes = {"onnx": [fake_quant.join]} if fake_quantize == "vendor" else {"source": [fake_quant.leave_out]}
    falls_through = operator_export_type == OperatorExportTypes.ONNX_FALLTHROUGH
    return export(
        model,
        args,
        f,
        export_params,
        verbose,
        training,
        input_names,
        output_names,
        operator_export_type,
        opset_version,
        do_constant_folding,
        dynamic_axes,
        keep_initializers_as_inputs,
        custom_opsets,
        plugins=[*options.pop("plugins", ()), FallThrough(tables, falls_through, passes)],
        **options,
    )
