"""AlexNet with named inputs, outputs and weights: exported, printed, checked and run.

python alexnet.py
"""

import numpy as np
import onnx
import onnxruntime
import torch
import torchvision

import onnx_exporter

model = torchvision.models.alexnet(weights=None)
image = torch.randn(10, 3, 224, 224)

# Names beyond those of the inputs are for the weights, in the order of the state dict.
input_names = ["actual_input_1"] + [f"learned_{index}" for index in range(16)]
onnx_exporter.export(model, image, "alexnet.onnx", verbose=True, input_names=input_names, output_names=["output1"])

proto = onnx.load("alexnet.onnx")
onnx.checker.check_model(proto)

session = onnxruntime.InferenceSession("alexnet.onnx", providers=["CPUExecutionProvider"])
(scores,) = session.run(None, {"actual_input_1": image.numpy()})
with torch.no_grad():
    np.testing.assert_allclose(scores, model.eval()(image).numpy(), rtol=1e-3, atol=1e-4)
print(f"{len(proto.graph.node)} nodes, scores of shape {scores.shape}")
