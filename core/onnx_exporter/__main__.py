"""Runs the command line as ``python -m onnx_exporter``."""

from onnx_exporter._cli import main

if __name__ == "__main__":
    main()
