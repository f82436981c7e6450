"""Two operators added by hand at opset 9: Elu as a table of this process, Asinh in the manner of torch.onnx."""

import torch

import onnx_exporter
from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=9, replaces=True)


@table.op("aten::elu")
def elu(g: GraphContext, self: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    """``aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)``: Elu, where the scales are 1."""
    if scale != 1 or input_scale != 1:
        raise g.unsupported("ONNX's Elu has no scales")
    return g.op("Elu", self, alpha=alpha)


def asinh(g, x):
    """The way of torch.onnx: positional arguments, and attributes whose names end in their type."""
    return g.op("Asinh", x)


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.asinh(torch.nn.functional.elu(x, alpha=0.5))


onnx_exporter.register_custom_op_symbolic("aten::asinh", asinh, 9)
try:
    result = onnx_exporter.export(Model(), torch.randn(2, 3), "by_hand.onnx", opset_version=9, plugins=[table], verify=True)
finally:
    onnx_exporter.unregister_custom_op_symbolic("aten::asinh", 9)
print([node.op_type for node in result.model.graph])
print(result.comparison)
