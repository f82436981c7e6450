"""torch.onnx's two exporters as methods of the sweep."""

from __future__ import annotations

import contextlib
import io
import logging
from pathlib import Path
from typing import Any

from onnx_exporter.testing._sweep_method import Outcome, TimeLimitError, Written


class Peer:
    """torch.onnx.export."""

    def __init__(self, dynamo: bool) -> None:
        import onnx
        import onnxruntime

        self.dynamo = dynamo
        self._onnx = onnx
        del onnxruntime
        if dynamo:
            import onnxscript

            del onnxscript
        logging.disable(logging.ERROR)

    def prepare(self, sample: Any, inputs: Any, opset: int) -> Any:
        """Keeps the sample: torch.onnx captures once for each opset."""
        return sample, inputs

    def write(self, prepared: Any, opset: int, path: Path) -> Written:
        """Exports; what torch.onnx raises counts as a refusal, since its errors have no common kind."""
        import torch

        sample, inputs = prepared
        axes = {item.name: dict(item.dynamic) for item in inputs.tensors if item.dynamic}
        names = [item.name for item in inputs.tensors]
        options: dict[str, Any] = {"input_names": names, "opset_version": opset, "dynamo": self.dynamo, "verbose": False}
        if axes and self.dynamo:
            options["dynamic_shapes"] = ([dict.fromkeys(item.dynamic, torch.export.Dim.AUTO) for item in inputs.tensors],)
        elif axes:
            options["dynamic_axes"] = axes
        if self.dynamo:
            options["external_data"] = False
        silent = io.StringIO()
        try:
            with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
                torch.onnx.export(sample.module().eval(), sample.tensors, path, **options)
        except TimeLimitError:
            raise
        except Exception as error:
            raise Outcome("refused", "export", f"{type(error).__name__}: {str(error)[:300]}") from error
        model = self._onnx.load(path)
        checker = ""
        try:
            self._onnx.checker.check_model(model, full_check=True)
        except (self._onnx.checker.ValidationError, self._onnx.shape_inference.InferenceError) as error:
            checker = str(error)[:300]
        return Written(tuple(sorted({node.op_type for node in model.graph.node})), checker)


PEERS = {
    "torch.onnx, dynamo=False": (lambda: Peer(dynamo=False), (9, 13, 17, 20)),
    "torch.onnx, dynamo=True": (lambda: Peer(dynamo=True), (18,)),
}
"""What makes a peer, and the opsets that it is measured at."""
