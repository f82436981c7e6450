"""The mode of a model while it is exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from onnx_exporter._enums import TrainingMode, as_training_mode


@contextmanager
def select_model_mode_for_export(model: Any, mode: Any = TrainingMode.EVAL) -> Iterator[None]:
    """While active, a module is in the mode in which it is to be exported. Added in 0.1.

    Afterwards, also after a failure, each of its submodules is in the mode in which it was before. What has no mode
    (a function, an ``ExportedProgram``, a module frozen by ``torch.jit.freeze``) stays as it is.

    Args:
        model: What is exported.
        mode: ``TrainingMode.EVAL``, ``TRAINING``, or ``PRESERVE`` to leave every submodule in its own.

    Raises:
        ArgumentError: If `mode` is no `TrainingMode`.
    """
    mode = as_training_mode(mode)
    if mode == TrainingMode.PRESERVE or not isinstance(model, torch.nn.Module) or not hasattr(model, "training"):
        yield
        return
    before = [(module, module.training) for module in model.modules() if hasattr(module, "training")]
    try:
        # By train(), which a module may override to keep parts of itself frozen.
        model.train(mode == TrainingMode.TRAINING)
        yield
    finally:
        for module, training in before:
            module.training = training
