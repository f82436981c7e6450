"""torch.onnx for a PyTorch that has none: modules of its names, made of what is ours."""

from __future__ import annotations

import enum
from types import ModuleType
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter import errors
from onnx_exporter._enums import OperatorExportTypes, TrainingMode
from onnx_exporter._modes import select_model_mode_for_export
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter._version import core_version
from onnx_exporter.compat import _log, symbolic_registry, utils
from onnx_exporter.compat._calling import SymbolicContext
from onnx_exporter.compat._drop_in import export_like_torch
from onnx_exporter.compat._duck_context import DuckContext
from onnx_exporter.compat._old_functions import OLD_FUNCTIONS, ExportTypes
from onnx_exporter.compat._program import ONNXProgram
from onnx_exporter.compat._running import FALLBACK_GLOBALS, is_in_onnx_export
from onnx_exporter.compat._symbolics import register_custom_op_symbolic, unregister_custom_op_symbolic
from onnx_exporter.compat.stand_in import _helper, _nodes, _operators, _quantization, _types, _values
from onnx_exporter.compat.stand_in._opsets import symbolic_function

_make_enum: Any = enum.IntEnum
TensorProtoDataType: Any = _make_enum("TensorProtoDataType", {member.name: int(member) for member in ir.DataType})
"""ONNX's element types by name."""


def modules() -> dict[str, ModuleType]:
    """Returns the modules, by full name. Those of the opsets convert by our operators."""
    globals_ = _module("torch.onnx._globals", {"GLOBALS": FALLBACK_GLOBALS})
    public = _module("torch.onnx", _PUBLIC)
    made = {
        "torch.onnx": public,
        "torch.onnx.errors": errors,
        "torch.onnx.utils": _module(
            "torch.onnx.utils",
            {**{name: getattr(utils, name) for name in utils.__all__}, **OLD_FUNCTIONS, "export": _export_by_tracing},
        ),
        "torch.onnx.operators": _module("torch.onnx.operators", _OPERATORS),
        "torch.onnx.symbolic_helper": _module("torch.onnx.symbolic_helper", _symbolic_helper()),
        "torch.onnx.symbolic_registry": symbolic_registry,
        "torch.onnx._type_utils": _types,
        "torch.onnx._globals": globals_,
        "torch.onnx._internal": _module("torch.onnx._internal", {}),
        "torch._C._onnx": _module("torch._C._onnx", _ENUMERATIONS),
        # PyTorch's tracer itself imports these when it comes to an autograd.Function
        "torch.onnx.__init__": public,
        "torch.onnx._internal.torchscript_exporter": _module("torch.onnx._internal.torchscript_exporter", {}),
        "torch.onnx._internal.torchscript_exporter._globals": globals_,
        "torch.onnx._internal.jit_utils": _module("torch.onnx._internal.jit_utils", {"GraphContext": DuckContext}),
        "torch.onnx._internal.registration": _module("torch.onnx._internal.registration", {"onnx_symbolic": _onnx_symbolic}),
    }
    made["torch.onnx.ops"] = _module(
        "torch.onnx.ops", {name: getattr(_nodes, name) for name in ("symbolic", "symbolic_multi_out")}
    )
    made["torch.onnx.verification"] = _module("torch.onnx.verification", {"verify": _verify})
    for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1):
        name = f"torch.onnx.symbolic_opset{opset}"
        made[name] = _module(name, {"__getattr__": symbolic_function})
    for name in _MOVED:  # where PyTorch 2.9 and later have them
        short = name.rpartition(".")[2]
        made[f"torch.onnx._internal.torchscript_exporter.{short}"] = made[name]
    return made


def _symbolic_helper() -> dict[str, Any]:
    """Returns the names of ``torch.onnx.symbolic_helper``."""
    parts = (_values, _operators, _quantization, _helper)
    names = {name: value for part in parts for name, value in vars(part).items() if not name.startswith("__")}
    return names | {"__getattr__": _helper.__getattr__}


_MOVED = (
    "torch.onnx.utils",
    "torch.onnx.symbolic_helper",
    "torch.onnx._type_utils",
    "torch.onnx._internal.jit_utils",
    "torch.onnx._internal.registration",
)

_ENUMERATIONS = {
    "OperatorExportTypes": OperatorExportTypes,
    "TrainingMode": TrainingMode,
    "TensorProtoDataType": TensorProtoDataType,
}

_PUBLIC = {
    "export": export_like_torch,
    "register_custom_op_symbolic": register_custom_op_symbolic,
    "unregister_custom_op_symbolic": unregister_custom_op_symbolic,
    "is_in_onnx_export": is_in_onnx_export,
    "select_model_mode_for_export": select_model_mode_for_export,
    "is_onnx_log_enabled": _log.is_onnx_log_enabled,
    "enable_log": _log.enable_log,
    "disable_log": _log.disable_log,
    "set_log_stream": _log.set_log_stream,
    "log": _log.log,
    **_ENUMERATIONS,
    "JitScalarType": _types.JitScalarType,
    "SymbolicContext": SymbolicContext,
    "ONNXProgram": ONNXProgram,
    "OnnxExporterError": errors.ExportError,
    "CheckerError": errors.CheckerError,
    "ExportTypes": ExportTypes,
    "producer_name": "onnx-exporter",
    "producer_version": core_version(),
    "export_to_pretty_string": utils.export_to_pretty_string,
}


_OPERATORS = {
    "shape_as_tensor": torch._shape_as_tensor,
    "reshape_from_tensor_shape": torch._reshape_from_tensor,
}
"""What models call to keep sizes in the graph."""


def _export_by_tracing(*args: Any, **kwargs: Any) -> None:
    export_like_torch(*args, **{"dynamo": False, **kwargs})


def _verify(model: Any, input_args: Any, input_kwargs: Any = None, **options: Any) -> None:
    """Exports a model and compares the file with it, under ONNX Runtime.

    Raises:
        VerificationError: If the two differ.
    """
    export_like_torch(model, input_args, kwargs=input_kwargs, **{"dynamo": False, "verify": True, **options})


def _module(name: str, names: dict[str, Any]) -> ModuleType:
    module = ModuleType(name, "Given by onnx_exporter.compat.install().")
    vars(module).update(names)
    return module


def _onnx_symbolic(name: str, opset: int | list[int], decorate: Any = None, custom: bool = True) -> Any:
    """The decorator with which some register a symbolic function."""

    def register(function: Any) -> Any:
        decorated = function
        for decorator in decorate or ():
            decorated = decorator(decorated)
        for version in [opset] if isinstance(opset, int) else opset:
            register_custom_op_symbolic(name, decorated, version)
        return function

    return register
