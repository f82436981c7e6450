"""A model that behaves differently while it is exported."""

import torch

import onnx_exporter


class Detector(torch.nn.Module):
    def forward(self, scores):
        if onnx_exporter.is_in_onnx_export():  # torch.onnx.is_in_onnx_export() is true as well
            return scores  # the runtime has a faster way to choose
        return scores.topk(2).indices


model = Detector()
scores = torch.randn(1, 5)
result = onnx_exporter.export(model, scores, "detector.onnx")
assert [node.op_type for node in result.model.graph] == ["Identity"]
assert model(scores).shape == (1, 2)
print("eager:", tuple(model(scores).shape), "file:", [str(value.shape) for value in result.model.graph.outputs])
