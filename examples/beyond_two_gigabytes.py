"""A model beyond 2 GB: its weights go to a file beside it, by themselves."""

from pathlib import Path

import onnxruntime
import torch

import onnx_exporter

SIDE = 23_200
"""A square of this many floats has a little more than the 2 GB that one file can hold."""

model = torch.nn.Linear(SIDE, SIDE, bias=False)
with torch.no_grad():
    model.weight.zero_().fill_diagonal_(2.0)

result = onnx_exporter.export(model, torch.randn(1, SIDE), "large.onnx")
print(f"{result.file.path}: {result.file.size} bytes; {result.file.external_path}: {result.file.data_size} bytes")

session = onnxruntime.InferenceSession("large.onnx", providers=["CPUExecutionProvider"])
x = torch.ones(1, SIDE)
assert (session.run(None, {"input": x.numpy()})[0] == 2).all()
for path in (result.file.path, result.file.external_path):
    Path(path).unlink()
