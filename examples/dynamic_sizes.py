"""Sizes that vary: batch, height and width of one input, and symbols that two inputs share."""

import onnxruntime
import torch

import onnx_exporter


class Pyramid(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, image):
        small = torch.nn.functional.avg_pool2d(self.convolution(image), 2, ceil_mode=True)
        return torch.nn.functional.interpolate(small, size=image.shape[2:], mode="bilinear")


class Attend(torch.nn.Module):
    def forward(self, queries, keys):
        return (queries @ keys.transpose(1, 2)).softmax(-1) @ keys


axes = {"image": {0: "batch", 2: "height", 3: "width"}}
result = onnx_exporter.export(Pyramid(), torch.randn(1, 3, 32, 32), "pyramid.onnx", dynamic_axes=axes, verify=True)
print(result.comparison)
session = onnxruntime.InferenceSession("pyramid.onnx", providers=["CPUExecutionProvider"])
print(session.run(None, {"image": torch.randn(2, 3, 17, 40).numpy()})[0].shape)

# Axes with one name have one size; the file says so, and verification keeps to it.
axes = {"queries": {0: "batch", 1: "queries"}, "keys": {0: "batch", 1: "keys"}}
args = (torch.randn(2, 5, 8), torch.randn(2, 7, 8))
result = onnx_exporter.export(Attend(), args, "attend.onnx", dynamic_axes=axes, verify=True)
print([str(value.shape) for value in (*result.model.graph.inputs, *result.model.graph.outputs)])
print(result.comparison)
