"""An ``autograd.Function`` says itself what it becomes: with a static method ``symbolic``, as torch.onnx reads it."""

import torch

import onnx_exporter


class MyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x > 0)

    @staticmethod
    def symbolic(g, x):
        return g.op("Clip", x, g.op("Constant", value_t=torch.tensor(0.0)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return MyRelu.apply(self.linear(x))


for capture in ("trace", "export"):
    result = onnx_exporter.export(Model(), torch.randn(2, 4), "my_relu.onnx", opset_version=13, capture=capture, verify=True)
    print(capture, [node.op_type for node in result.model.graph], str(result.comparison).splitlines()[0])
