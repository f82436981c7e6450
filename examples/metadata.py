"""What the file says about itself."""

import onnx
import torch

import onnx_exporter

onnx_exporter.export(
    torch.nn.Linear(4, 2),
    torch.randn(1, 4),
    "with_metadata.onnx",
    doc_string="Tells apples from pears.",
    producer_name="orchard",
    metadata_props={"author": "A. Gardener", "classes": "apple,pear"},
)
proto = onnx.load("with_metadata.onnx")
print(proto.producer_name, "|", proto.doc_string)
print({item.key: item.value for item in proto.metadata_props})
