"""Runs an ONNX file: with ONNX Runtime, or with ONNX's reference where that lacks a kernel."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx
import onnx_ir as ir
import torch
import torch.utils.dlpack

from onnx_exporter._nodes import nodes_of
from onnx_exporter._tensor_data import tensor_data
from onnx_exporter.errors import VerificationError

_OFF = "or turn verification off (verify=False, --no-verify)"
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})


class FileRunError(Exception):
    """The file could not be run on the given inputs."""


Feed = torch.Tensor | list[torch.Tensor] | None
"""What an input of a file is given: a tensor, for a sequence a list, for an optional that is left out None."""
Output = torch.Tensor | list[torch.Tensor] | None
"""What an output of a file holds: a tensor, of a sequence a list, of an optional that is not there None."""


class Runner(abc.ABC):
    """A loaded file.

    Attributes:
        runtime: Name of what runs it.
        inputs: Names of its inputs, in order.
        outputs: Names of its outputs, in order.
    """

    runtime: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @abc.abstractmethod
    def run(self, feeds: Mapping[str, Feed]) -> list[Output]:
        """Returns the outputs, given a tensor for each input, a list for a sequence, or None for one that need not be given.

        Raises:
            FileRunError: If the file does not run on these inputs.
        """


CustomOps = Sequence[str | os.PathLike[str] | type[Any]]
"""What brings operators that ONNX Runtime lacks: shared libraries, and subclasses of ``onnx.reference.op_run.OpRun``."""


def load(path: str | os.PathLike[str], custom_op_libraries: CustomOps = ()) -> Runner:
    """Loads a file.

    Args:
        path: The file.
        custom_op_libraries: Shared libraries for ONNX Runtime; and Python classes: where ONNX Runtime lacks an operator
            that one of them computes, ONNX's reference runs the file with them.

    Raises:
        VerificationError: If nothing here can run it.
    """
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state
    except ImportError as error:
        raise VerificationError(f"verification needs ONNX Runtime: pip install onnxruntime, {_OFF}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Otherwise a product with a quantized weight rounds the other factor to 8 bits, which the file does not say.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    refusals = (state.Fail, state.InvalidGraph, state.InvalidArgument, state.RuntimeException, state.NotImplemented)
    libraries = [item for item in custom_op_libraries if not isinstance(item, type)]
    classes = [item for item in custom_op_libraries if isinstance(item, type)]
    for item in classes:
        if not getattr(item, "op_domain", "") or not hasattr(item, "_run"):
            raise VerificationError(
                f"custom_op_libraries has {item.__name__}, which computes no operator: a class derives from "
                "onnx.reference.op_run.OpRun, is named like the operator and has its domain as op_domain"
            )
    for library in libraries:
        name = os.fspath(library)
        if not Path(library).is_file():
            raise VerificationError(f"the custom operator library {name!r} does not exist; correct its path")
        try:
            options.register_custom_ops_library(name)
        except refusals as error:
            raise VerificationError(
                f"ONNX Runtime cannot load the custom operator library {name!r}; was it built for this version? {error}"
            ) from error
    try:
        session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except refusals as error:
        foreign = _foreign_operators(path, str(error))
        computed = {f"{item.op_domain}::{item.__name__}" for item in classes}
        if missing := foreign - computed:
            _refuse_foreign(missing, given=bool(custom_op_libraries), error=error)
        # Complex types are refused with Fail, a missing kernel with NotImplemented.
        if foreign or isinstance(error, state.NotImplemented) or "is not currently registered or supported" in str(error):
            return _ReferenceRunner(path, str(error), classes)
        raise VerificationError(f"ONNX Runtime cannot load the file: {error}") from error
    return _OnnxRuntimeRunner(session, (*refusals, state.EPFail))


def _foreign_operators(path: str | os.PathLike[str], error: str) -> set[str]:
    """The operators in a file that ONNX Runtime, which failed to load it with `error`, does not have."""
    model = ir.load(path)
    return {
        f"{node.domain}::{node.op_type}"
        for node in nodes_of(model)
        if node.domain not in _KNOWN_DOMAINS
        and node.op_identifier() not in model.functions
        # The rest of Microsoft's operators are there; only those named in the message are missing.
        and (not node.domain.startswith("com.microsoft") or node.op_type in error)
    }


def _refuse_foreign(missing: set[str], *, given: bool, error: Exception) -> NoReturn:
    """Explains a failure to load that comes from operators which nothing here has."""
    beside = " beside the libraries given" if given else ""
    raise VerificationError(
        f"ONNX Runtime{beside} has no operator {', '.join(sorted(missing))}, so the file cannot be verified; give the library "
        f"that has it (custom_op_libraries=['libcustom.so']), or a class that computes it {_OFF}. ONNX Runtime says: {error}"
    ) from error


class _OnnxRuntimeRunner(Runner):
    def __init__(self, session: Any, refusals: tuple[type[Exception], ...]) -> None:
        self.runtime = "onnxruntime"
        self.inputs = tuple(item.name for item in session.get_inputs())
        self.outputs = tuple(item.name for item in session.get_outputs())
        self._gives_tensors = all(item.type.startswith("tensor(") for item in session.get_outputs())
        self._session = session
        self._refusals = refusals

    def run(self, feeds: Mapping[str, Feed]) -> list[Output]:
        values = {name: _to_python(given) for name, given in feeds.items() if given is not None}
        takes_tensors = not any(isinstance(value, list) for value in values.values())
        try:
            if self._gives_tensors and takes_tensors:
                results = self._session.run_with_ort_values(list(self.outputs), values)
            else:  # an OrtValue does not show what is in a sequence, and is not made of one
                return [_from_python(item) for item in self._session.run(list(self.outputs), values)]
        except self._refusals as error:
            raise FileRunError(str(error)) from error
        return [_from_ort(name, value) for name, value in zip(self.outputs, results, strict=True)]


def _to_python(given: torch.Tensor | list[torch.Tensor]) -> Any:
    return [_to_numpy(item) for item in given] if isinstance(given, list) else _to_ort(given)


def _to_numpy(tensor: torch.Tensor) -> Any:
    return np.asarray(tensor.detach().resolve_conj().cpu().numpy(), order="C")


def _to_ort(tensor: torch.Tensor) -> Any:
    from onnxruntime import OrtValue

    dtype = ir.tensor_adapters.from_torch_dtype(tensor.dtype)
    if tensor.dtype in _NUMPY_DTYPES:
        return OrtValue.ortvalue_from_numpy(_to_numpy(tensor))
    bits = np.frombuffer(tensor_data(ir.tensor_adapters.TorchTensor(tensor)), f"u{tensor.element_size()}")
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits.reshape(tensor.shape), int(dtype))


def _from_ort(name: str, value: Any) -> torch.Tensor:
    if not value.is_tensor():
        raise FileRunError(f"output {name!r} is a {value.data_type()}, not a tensor")
    dtype = ir.tensor_adapters.to_torch_dtype(ir.DataType(value.element_type()))
    if dtype not in _NUMPY_DTYPES:
        # NumPy has no bfloat16 or float8, but both sides speak DLPack.
        return torch.utils.dlpack.from_dlpack(value).clone()
    return _from_numpy(value.numpy())


def _from_python(result: Any) -> Output:
    if isinstance(result, list):
        return [_from_numpy(item) for item in result]
    return None if result is None else _from_numpy(result)


def _from_numpy(array: Any) -> torch.Tensor:
    array = np.array(array)  # a copy: a file may return its input, whose memory belongs to the caller
    if array.dtype.kind == "V" or array.dtype not in _NUMPY_DTYPES.values():
        dtype = ir.tensor_adapters.to_torch_dtype(ir.DataType.from_numpy(array.dtype))
        return torch.from_numpy(array.view(f"u{array.dtype.itemsize}")).view(dtype)
    # NumPy may have two types of one size and kind (long, long long); torch takes one of them.
    return torch.from_numpy(array.view(array.dtype.str))


class _ReferenceRunner(Runner):
    def __init__(self, path: str | os.PathLike[str], reason: str, classes: Sequence[type[Any]] = ()) -> None:
        from onnx.reference import ReferenceEvaluator

        from onnx_exporter._reference_ops import CORRECTED

        self.runtime = "onnx.reference"
        model = onnx.load(path)
        weights = {item.name for item in model.graph.initializer}
        self.inputs = tuple(item.name for item in model.graph.input if item.name not in weights)
        self.outputs = tuple(item.name for item in model.graph.output)
        self._optional = {item.name for item in model.graph.output if item.type.WhichOneof("value") == "optional_type"}
        try:
            self._evaluator = ReferenceEvaluator(model, new_ops=[*CORRECTED, *classes])
        except (NotImplementedError, RuntimeError) as error:
            raise VerificationError(
                f"neither ONNX Runtime ({reason}) nor ONNX's reference ({error}) can run the file; export in another dtype {_OFF}"
            ) from error

    def run(self, feeds: Mapping[str, Feed]) -> list[Output]:
        arrays = {name: _to_arrays(given) for name, given in feeds.items()}
        try:
            results = self._evaluator.run(None, arrays)
        # The reference's kernels are Python code and raise whatever NumPy raises.
        except Exception as error:
            raise FileRunError(f"{type(error).__name__}: {error}") from error
        # The reference holds an optional as a list of it, or of None
        unwrapped = [result[0] if name in self._optional else result for name, result in zip(self.outputs, results, strict=True)]
        return [_from_python(result) for result in unwrapped]


def _to_arrays(given: Feed) -> Any:
    if isinstance(given, list):
        return [_to_arrays(item) for item in given]
    return None if given is None else ir.tensor_adapters.TorchTensor(given.detach()).numpy()


_NUMPY_DTYPES = {
    torch.bool: np.dtype(np.bool_),
    torch.uint8: np.dtype(np.uint8),
    torch.uint16: np.dtype(np.uint16),
    torch.uint32: np.dtype(np.uint32),
    torch.uint64: np.dtype(np.uint64),
    torch.int8: np.dtype(np.int8),
    torch.int16: np.dtype(np.int16),
    torch.int32: np.dtype(np.int32),
    torch.int64: np.dtype(np.int64),
    torch.float16: np.dtype(np.float16),
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.complex64: np.dtype(np.complex64),
    torch.complex128: np.dtype(np.complex128),
}
