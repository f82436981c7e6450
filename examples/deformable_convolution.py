"""torchvision's deformable convolution to a domain of one's own, and `my_add`, which is 2a + b, to standard operators."""

import torch
import torchvision

import onnx_exporter
from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=9, replaces=True)
# As it is: tensors become inputs, numbers attributes that are named by the schema.
table.passthrough("torchvision::deform_conv2d", domain="my_domain", rename={"deform_conv2d": "DeformConv2d"})


@table.op("my_ops::my_add")
def my_add(g: GraphContext, a: Value, b: Value) -> Value:
    """``my_ops::my_add(Tensor a, Tensor b)``: 2a + b."""
    return g.op("Add", g.op("Mul", a, g.constant(2.0, like=a)), b)


@torch.library.custom_op("my_ops::my_add", mutates_args=())
def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return 2 * a + b


class Deformable(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.offsets = torch.nn.Conv2d(3, 18, 3)
        self.convolution = torchvision.ops.DeformConv2d(3, 5, 3)

    def forward(self, x):
        return self.convolution(x, self.offsets(x))


class Add(torch.nn.Module):
    def forward(self, a, b):
        return torch.ops.my_ops.my_add(a, b)


result = onnx_exporter.export(Deformable(), torch.randn(1, 3, 10, 10), "deformable.onnx", plugins=[table])
print([f"{node.domain or 'ai.onnx'}::{node.op_type}" for node in result.model.graph])
result = onnx_exporter.export(Add(), (torch.randn(3), torch.randn(3)), "my_add.onnx", plugins=[table], verify=True)
print(result.comparison)
