"""Operators of acme's accelerator stay as they are, in a domain that its runtime knows.

Tensors become inputs, constants become attributes named by the torch schema.
"""

from onnx_exporter import OpTable

table = OpTable()
table.passthrough("acme_npu::*", domain="com.acme", version=1, rename={"frob": "Frob"})
