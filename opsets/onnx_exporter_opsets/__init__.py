"""The operators that come with onnx-exporter: one plugin an opset, family files inside."""
