"""Operators that are ONNX Runtime's already: a torch operator of their name passes into their domain.

That is how a model calls what PyTorch has no operator for (BeamSearch, MurmurHash3, a tokenizer of onnxruntime-extensions):
define ``com_microsoft::Name`` or ``ai_onnx_contrib::Name`` with ``torch.library``, with the inputs and attributes as the operator
has them. Nobody else converts these names, so that this acts wherever the plugin is installed.
"""

from onnx_exporter import OpTable

table = OpTable()
table.passthrough("com_microsoft::*", domain="com.microsoft")
table.passthrough("ai_onnx_contrib::*", domain="ai.onnx.contrib")
