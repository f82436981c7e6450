"""Front ends: each captures a PyTorch model into a `SourceGraph`. They know nothing of ONNX."""
