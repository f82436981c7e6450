"""Capture by tracing: runs the model once and records the ATen calls that it makes."""

from __future__ import annotations

import contextvars
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.jit._trace import TracerWarning

from onnx_exporter._frontends import _reads
from onnx_exporter._frontends._attention import plain_attention
from onnx_exporter._frontends._compiled import ControlFlowError, as_written
from onnx_exporter._frontends._dependence import Dependence
from onnx_exporter._frontends._followed import followed
from onnx_exporter._frontends._functions import spread_arguments
from onnx_exporter._frontends._guards import is_guard
from onnx_exporter._frontends._inputs import ModelInputs
from onnx_exporter._frontends._reads import Reads
from onnx_exporter._frontends._script_inside_trace import scripted_functions, scripted_parts
from onnx_exporter._frontends._state import ParameterWatch, unchanged_state
from onnx_exporter._frontends._structures import register_structures
from onnx_exporter._frontends._trace_graph import Converter
from onnx_exporter._frontends.captured import CAPTURE_LOCK, Captured, is_library_file
from onnx_exporter.errors import CaptureError


def capture_trace(model: torch.nn.Module, inputs: ModelInputs) -> Captured:
    """Traces `model` with the example inputs.

    Buffers that the model writes are put back: what the file starts from is what they held before.

    Raises:
        CaptureError: If TorchScript is not there, the model raises while it runs, writes to a parameter, or
            returns something that is no tensor.
    """
    if sys.version_info >= (3, 14):
        raise CaptureError("TorchScript does not run on Python 3.14 and later; use capture='export'")
    weights = _named_tensors(model)
    watch = ParameterWatch(model)
    examples = [item.tensor.detach().clone(memory_format=torch.preserve_format) for item in inputs.tensors]

    def forward(*tensors: torch.Tensor) -> Any:
        args, kwargs = inputs.rebuild(tensors[: len(examples)])
        return model(*args, **kwargs)

    reads = Reads(forward.__code__)

    def run(*tensors: torch.Tensor) -> Any:
        with reads.active(), followed(), spread_arguments():
            result = forward(*tensors)
        return _tensors_of(result)

    with (
        CAPTURE_LOCK,
        warnings.catch_warnings(record=True) as caught,
        _module_scopes(model),
        plain_attention(),
        as_written(model),
        scripted_parts(model),
        scripted_functions(),
    ):
        warnings.simplefilter("always")
        with unchanged_state(model):
            try:
                traced = _record(run, [*examples, *weights.values()])
            except CaptureError:
                raise
            except Exception as error:  # the model is the user's code and may raise anything
                raise CaptureError(_describe_failure(model, error)) from error
        if written := watch.written():
            raise CaptureError(
                f"forward writes to the parameter {', '.join(map(repr, written))}, which a file cannot express; its value "
                f"has changed now. Compute on a clone of it, or make it a buffer"
            )
    torch._C._jit_pass_inline(traced)  # functions that the model scripts, which tracing records as calls
    torch._C._jit_pass_lower_all_tuples(traced)
    converter = Converter(inputs, weights, {index for index, read in enumerate(reads.notes) if read.in_brackets})
    graph = converter.convert(traced)
    baked = {Dependence.DATA: _other_warnings(caught), Dependence.SIZES: []}
    for index, level in converter.read.items():
        read = reads.notes[index]
        if level is not Dependence.NOTHING and not read.is_harmless:
            baked[level].append(f"{read.place}: {read.what}")
    for level, text in converter.parts:
        baked[level].append(text)
    data, sizes = (list(dict.fromkeys(baked[level])) for level in (Dependence.DATA, Dependence.SIZES))
    return Captured(graph, baked_data=data, baked_sizes=sizes)


def _tensors_of(result: Any) -> tuple[torch.Tensor, ...]:
    """The tensors in what the model returned; a number becomes a tensor, None and strings vanish."""
    register_structures(result)
    tensors = []
    for leaf in pytree.tree_leaves(result):
        if isinstance(leaf, torch.Tensor):
            tensors.append(leaf)
        elif isinstance(leaf, bool | int | float | complex):
            tensors.append(torch.tensor(leaf))
        elif leaf is not None and not isinstance(leaf, str):
            kind = type(leaf)
            raise CaptureError(
                f"forward returns a {kind.__module__}.{kind.__qualname__}, which a file cannot hold; return tensors, nested "
                f"in tuples, lists or dicts, or register the class with torch.utils._pytree.register_pytree_node"
            )
    return tuple(tensors)


def _other_warnings(caught: Sequence[warnings.WarningMessage]) -> list[str]:
    """What the tracer itself warns of that is not noted as a read; all other warnings are passed on."""
    baked = []
    for warning in caught:
        text = str(warning.message).splitlines()[0]
        if issubclass(warning.category, TracerWarning):
            # Elements of a list that becomes a tensor, and the parts of a tensor, are looked at where they are read.
            known = "results are registered as constants" in text or text.startswith(("Iterating over", "Using len"))
            if not (known or warning.filename == _reads.__file__ or is_guard(warning.filename, warning.lineno)):
                baked.append(f"{warning.filename}:{warning.lineno}: {text}")
        elif not issubclass(warning.category, DeprecationWarning | FutureWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return baked


def _record(run: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """Runs the tracer.

    A trace that fails while PyTorch reads arguments leaves values of its graph behind in its thread, on which any
    later trace there fails or crashes the process. So after a failure the work is done in fresh threads.
    """

    def record() -> Any:
        with torch.no_grad():
            return torch._C._create_graph_by_tracing(run, tensors, lambda tensor: "", True, False)[0]

    if getattr(_FAILED, "in_this_thread", False):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, record).result()
    try:
        return record()
    except BaseException:
        _FAILED.in_this_thread = True
        raise


_FAILED = threading.local()

_IS_COMPILED = "trace a dynamo-optimized function"
"""Part of what the tracer says where a model calls compiled code."""

_NOT_GIVEN = ("unordered_map::at", "_Map_base::at")
"""What the tracer says of a tensor in an ``autograd.Function`` that is none of its inputs, in builds of PyTorch."""


def _describe_failure(model: torch.nn.Module, error: Exception) -> str:
    """Says which line of the model raised what, or that the tracer itself failed."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if not is_library_file(filename):
            place = f" at {filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    if isinstance(error, ControlFlowError) or _IS_COMPILED in str(error):
        what = error if isinstance(error, ControlFlowError) else "a compiled function, or control flow of torch.export,"
        return f"the model calls {what}{place}, which tracing cannot follow; capture='export' can"
    if str(error) in _NOT_GIVEN:
        return (
            f"PyTorch's tracer cannot record the call of an autograd.Function{place}: its forward computes with a tensor that "
            f"it is not given, neither as an argument nor in a list, tuple or dict (in which a call through a name that "
            f"apply was bound to cannot give it). Give it all tensors as arguments, or use capture='export'"
        )
    if "INTERNAL ASSERT FAILED" in str(error):
        reason = next((line for line in str(error).splitlines() if "We don't have an op" in line), str(error).splitlines()[0])
        return (
            f"PyTorch's tracer cannot record what the model does{place}, though the model itself may be right: "
            f"{reason[reason.find('We ') :] if 'We ' in reason else reason}\n"
            f"capture='export' does not use the tracer and works; or write it another way there"
        )
    return (
        f"the model raised while it was traced{place}: {type(error).__name__}: {error}\n"
        f"Check that the model runs with these arguments in eager PyTorch, and that forward returns only tensors "
        f"(nested in tuples, lists or dicts); capture='export' may capture what tracing cannot"
    )


def _named_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each tensor once, those that are not in the state dict included."""
    named: dict[str, torch.Tensor] = dict(model.named_parameters())
    known = {id(tensor) for tensor in named.values()}
    named |= {name: buffer for name, buffer in model.named_buffers() if id(buffer) not in known}
    return {name: tensor for name, tensor in named.items() if tensor.layout is torch.strided and not tensor.is_quantized}


class _Calls(dict[torch.nn.Module, str]):
    """Names for the tracer's scopes: the tracer asks for one each time a module is called."""

    def __init__(self, names: dict[torch.nn.Module, str]) -> None:
        super().__init__(names)
        self._counts: dict[str, int] = {}

    def __getitem__(self, module: torch.nn.Module) -> str:
        """Returns ``"path@n"`` at the n-th call of a module."""
        name = super().__getitem__(module)
        self._counts[name] = count = self._counts.get(name, -1) + 1
        return f"{name}@{count}"

    def get(self, module: torch.nn.Module, default: Any = None) -> Any:
        """Returns the same, or `default` for what is no part of the model; older PyTorch asks by index."""
        try:
            return self[module]
        except KeyError:
            return default


@contextmanager
def _module_scopes(model: torch.nn.Module) -> Iterator[None]:
    """While active, the tracer notes which calls of which modules are around each operator."""
    previous = torch.jit._trace._trace_module_map
    torch.jit._trace._trace_module_map = _Calls({module: name for name, module in model.named_modules() if name})
    try:
        yield
    finally:
        torch.jit._trace._trace_module_map = previous
