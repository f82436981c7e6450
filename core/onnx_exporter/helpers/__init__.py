"""For symbolic functions: element types, sizes, and ONNX operators whose form changed between opsets."""
