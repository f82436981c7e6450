"""A finished model, as code written for torch.onnx sees a graph."""

from __future__ import annotations

import onnx_ir as ir
import torch

from onnx_exporter._attributes import to_tensor
from onnx_exporter._builder import Builder, NodeError
from onnx_exporter._engine import Engine
from onnx_exporter._registry import Registry
from onnx_exporter._values import Value
from onnx_exporter.compat._duck_attributes import to_torch
from onnx_exporter.compat._duck_context import DuckContext
from onnx_exporter.compat._duck_graph import DuckGraph
from onnx_exporter.compat._duck_nodes import DuckNode, EmittedNode
from onnx_exporter.compat._duck_values import DuckValue


class ModelGraph(DuckGraph):
    """The graph of a model: what passes over TorchScript graphs read and change. Changes are made in the model itself.

    Args:
        model: The model.
    """

    def __init__(self, model: ir.Model) -> None:
        self._model = model
        builder = Builder(model.opset_imports[""])
        builder.domains = model.opset_imports
        DuckGraph.__init__(self, Engine(Registry(()), builder))
        graph = model.graph
        for value in (*graph.inputs, *graph.initializers.values(), *(out for node in graph.all_nodes() for out in node.outputs)):
            if value.name:
                builder.reserve(value.name)
        self.weights = {
            name: to_torch(item.const_value) for name, item in graph.initializers.items() if item.const_value is not None
        }
        self._parameters = {id(item) for item in graph.initializers.values()}

    def inputs(self) -> list[DuckValue]:
        """The model's inputs, and then its weights."""
        graph = self._model.graph
        return [self.value(value) for value in dict.fromkeys((*graph.inputs, *graph.initializers.values()))]

    def outputs(self) -> list[DuckValue]:
        """The model's results."""
        return [self.value(value) for value in self._model.graph.outputs]

    def nodes(self) -> list[DuckNode]:
        """The nodes, in order."""
        return [self.node_of(node) for node in self._model.graph]

    def nodes_in_place(self) -> ir.Graph:
        """Returns what new nodes go into."""
        return self._model.graph

    def changed(self, node: EmittedNode) -> None:
        """Forgets the types of what is computed from a node; they are found again when the file is read."""
        pending, seen = [node.ir], {id(node.ir)}
        while pending:
            for output in pending.pop().outputs:
                if not output.is_graph_output() and not self.value(output).is_typed:
                    output.type = output.shape = None
                users = [use.node for use in output.uses() if id(use.node) not in seen]
                seen.update(map(id, users))
                pending += users

    def replace_result(self, old: DuckValue, new: DuckValue) -> None:
        """Has the model give another value in the place of one, under the same name."""
        outputs = self._model.graph.outputs
        for index, value in enumerate(list(outputs)):
            if value is old.ir:
                name, value.name = value.name, self.builder.unique(f"{value.name}.replaced")
                new.ir.name = name
                if new.ir.type is None:
                    new.ir.type, new.ir.shape = value.type, value.shape
                outputs[index] = new.ir

    def current(self) -> DuckContext:
        """Raises NodeError: nodes of a finished model are made with `create`."""
        raise NodeError("no symbolic function runs; make nodes with graph.create(kind, inputs, outputs) and put them in place")

    def constant(self, tensor: torch.Tensor, *, is_number: bool = False) -> DuckValue:
        """Returns a constant tensor."""
        given = to_tensor(tensor.detach())
        value = ir.Value(
            name=self.builder.unique("constant"), type=ir.TensorType(given.dtype), shape=ir.Shape(tensor.shape), const_value=given
        )
        self._model.graph.initializers.add(value)
        return self.value(Value(value, is_number=is_number))
