"""`ONNXProgram`: what ``torch.onnx.export(dynamo=True)`` returns, made of our result."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from onnx_exporter._frontends._inputs import Given
from onnx_exporter._options import Options
from onnx_exporter._pipeline import inputs_of, module_of
from onnx_exporter._protobuf import lay_out
from onnx_exporter._result import ExportResult
from onnx_exporter._verify_runtime import load
from onnx_exporter._write import write_model


class ONNXProgram:
    """An exported model with the methods of ``torch.onnx.ONNXProgram``. Added in 0.1.

    Attributes:
        result: Everything that the export gave.
        exported_program: The ``ExportedProgram`` that was exported, or None if it was a module.
    """

    def __init__(self, result: ExportResult, exported: Any) -> None:
        self.result = result
        self.exported_program = exported if isinstance(exported, torch.export.ExportedProgram) else None
        self._exported = exported
        self._runner: Any = None

    @property
    def model(self) -> ir.Model:
        """The model as `onnx_ir` holds it."""
        return self.result.model

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as protobuf; makes a copy of the weights."""
        return self.result.model_proto

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model to a file. Added in 0.1.

        Args:
            destination: Path of the file.
            include_initializers: Whether to write the weights.
            keep_initializers_as_inputs: Whether to list the weights among the inputs.
            external_data: Whether weights go to a file of their own; by itself only past 2 GB.

        Raises:
            WriteError: If the file cannot be written; what was there stays.
        """
        with _weights(self.model.graph, included=include_initializers, as_inputs=keep_initializers_as_inputs):
            write_model(lay_out(self.model), destination, external_data=external_data)

    def optimize(self) -> None:
        """Does nothing: what is exported is already as it should be. Added in 0.1."""

    def initialize_inference_session(self) -> None:
        """Loads the model into ONNX Runtime, which the first call does by itself. Added in 0.1."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            self.save(path)
            self._runner = load(path)

    def release(self) -> None:
        """Gives back what ONNX Runtime holds. Added in 0.1."""
        self._runner = None

    def __call__(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        """Runs the model under ONNX Runtime with arguments like those of the model's ``forward``, None for what is left out.

        Returns:
            The outputs, in order.
        """
        if self._runner is None:
            self.initialize_inference_session()
        has_sequences = any(isinstance(value.type, ir.SequenceType) for value in self.model.graph.inputs)
        options = Options(sequence_inputs=has_sequences)
        inputs = inputs_of(module_of(self._exported), args, kwargs, options, may_be_empty=True)
        given: list[Given | None] = [item.example for item in inputs.tensors]
        if len(given) < len(self._runner.inputs):
            given = inputs.tensors_and_gaps
        return list(self._runner.run(dict(zip(self._runner.inputs, given, strict=True))))

    def __repr__(self) -> str:
        graph = self.model.graph
        return f"ONNXProgram({len(graph)} nodes, inputs {[value.name for value in graph.inputs]})"


@contextmanager
def _weights(graph: ir.Graph, *, included: bool, as_inputs: bool) -> Iterator[None]:
    """While active, the graph has its weights in the places that are asked for."""
    weights, inputs = dict(graph.initializers), list(graph.inputs)
    if not included:
        graph.initializers.clear()
    if as_inputs:
        known = {value.name for value in inputs}
        graph.inputs.extend(value for name, value in weights.items() if name not in known)
    try:
        yield
    finally:
        graph.initializers.update(weights)
        graph.inputs.clear()
        graph.inputs.extend(inputs)
