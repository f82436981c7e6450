"""Small models to write, and what became of them."""

import onnx_ir as ir
import torch


def make_model(weights, opset=17):
    """A chain of Add nodes over float weights; other weights are only stored."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["batch", 4]))
    current, nodes, initializers = x, [], []
    for name, weight in weights.items():
        tensor = ir.tensor_adapters.TorchTensor(weight) if isinstance(weight, torch.Tensor) else weight
        value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=tensor.shape)
        initializers.append(value)
        if tensor.dtype == ir.DataType.FLOAT:
            nodes.append(ir.node("Add", [current, value]))
            current = nodes[-1].outputs[0]
            current.name, current.type = f"sum_{name}", ir.TensorType(ir.DataType.FLOAT)
            current.shape = ir.Shape([None] * max(2, len(tensor.shape)))
    graph = ir.Graph([x], [current], nodes=nodes, initializers=initializers, opset_imports={"": opset}, name="g")
    return ir.Model(graph, ir_version=10, producer_name="test", metadata_props={"b": "2", "a": "1"})


def small_model():
    return make_model({"w": torch.arange(4.0), "b": torch.ones(1, 4)})


def large_model():
    return make_model({"w": torch.randn(300, 4), "b": torch.ones(4), "v": torch.randn(300, 4)})


def raw_of(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())
