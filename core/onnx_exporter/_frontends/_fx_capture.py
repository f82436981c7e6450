"""The call of ``torch.export``, and what surrounds it: PyTorch's state, its log and the places that it notes."""

from __future__ import annotations

import contextlib
import logging
import os
import traceback
import warnings
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch.fx.experimental._config as shape_config

from onnx_exporter._frontends._attention import plain_attention
from onnx_exporter._frontends._fx_functions import marked_functions, note_calls
from onnx_exporter._frontends._fx_rnn import whole_rnns
from onnx_exporter._frontends.captured import is_library_file

_LOGGERS = (
    "torch.fx.experimental.symbolic_shapes",
    "torch.fx.experimental.recording",
    "torch._subclasses.fake_tensor",
    "torch._dynamo",
    "torch._export",
    "torch.export",
)
"""Where PyTorch logs what it raises too, at length."""


def run_export(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], shapes: dict[str, Any] | None, oblivious: bool
) -> torch.export.ExportedProgram:
    """Runs ``torch.export`` as we need it.

    It changes state of the process, so its caller holds `CAPTURE_LOCK`.

    Args:
        model: The model.
        args: Positional arguments.
        kwargs: Keyword arguments.
        shapes: Its ``dynamic_shapes``.
        oblivious: Whether sizes of 0 and 1 are to be treated as any other.
    """
    config: Any = shape_config
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(plain_attention())
        stack.enter_context(whole_rnns())
        stack.enter_context(_whole_places())
        stack.enter_context(_quiet_log())
        stack.enter_context(warnings.catch_warnings())
        # RNNs keep a list of their own weights, which torch.export takes for state that is written.
        warnings.filterwarnings("ignore", message="The tensor attribute", category=UserWarning)
        if oblivious and hasattr(config, "backed_size_oblivious"):
            stack.enter_context(config.patch({"backed_size_oblivious": True}))
        calls = stack.enter_context(marked_functions())
        program = torch.export.export(model, args, kwargs, dynamic_shapes=shapes, strict=False)
        note_calls(program, calls)
        return program


@contextlib.contextmanager
def _whole_places() -> Iterator[None]:
    """While active, nodes note every frame of the user's code; PyTorch keeps those of functions named forward only."""
    if not hasattr(torch.fx.proxy.TracerBase, "_filter_traceback_frames"):
        yield  # an older PyTorch, which keeps all
        return

    def users(tracer: Any, frames: traceback.StackSummary) -> traceback.StackSummary:
        # Only the frames below run_export are the model's.
        inside = max((index for index, frame in enumerate(frames) if frame.filename == __file__), default=-1)
        kept = [frame for frame in frames[inside + 1 :] if not is_library_file(frame.filename)]
        return traceback.StackSummary.from_list(kept)

    with mock.patch.object(torch.fx.proxy.TracerBase, "_filter_traceback_frames", users):
        yield


@contextlib.contextmanager
def _quiet_log() -> Iterator[None]:
    """While active, PyTorch does not log the errors that it raises, unless the user asked for its log."""
    if os.environ.get("TORCH_LOGS"):
        yield
        return
    found = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith(_LOGGERS)]
    found += [logging.getLogger(name) for name in _LOGGERS]
    before = [(logger, logger.disabled) for logger in found]
    for logger in found:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in reversed(before):
            logger.disabled = disabled
