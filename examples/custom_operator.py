"""A custom operator becomes ``custom_domain::Foo``: one of `torch.library`, and one of a C++ extension where a compiler is."""

import shutil
import sysconfig
from pathlib import Path

import torch
from torch.utils.cpp_extension import is_ninja_available, load_inline

import onnx_exporter
from onnx_exporter import GraphContext, OpTable, Value

SOURCE = """
#include <torch/extension.h>

torch::Tensor foo_forward(torch::Tensor first, torch::Tensor second, double slope) { return first + slope * second; }

TORCH_LIBRARY(cpp_ops, library) { library.def("foo", &foo_forward); }
"""

table = OpTable()


@table.op("python_ops::foo", "cpp_ops::foo")
def foo(g: GraphContext, first: Value, second: Value, slope: float) -> Value:
    """``foo(Tensor first, Tensor second, float slope)``: the vendor's Foo."""
    return g.op("custom_domain::Foo", first, second, slope=slope)


@torch.library.custom_op("python_ops::foo", mutates_args=())
def python_foo(first: torch.Tensor, second: torch.Tensor, slope: float) -> torch.Tensor:
    return first + slope * second


def has_compiler() -> bool:
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    compilers = [name for name in ("c++", "g++", "clang++") if shutil.which(name)]
    return headers.is_file() and bool(compilers) and is_ninja_available()


def export_with(operator) -> None:
    class Model(torch.nn.Module):
        def forward(self, first, second):
            return operator(first.relu(), second, 0.5).sigmoid()

    args = (torch.randn(2, 3), torch.randn(2, 3))
    result = onnx_exporter.export(Model(), args, "custom.onnx", custom_opsets={"custom_domain": 2}, plugins=[table])
    print([f"{node.domain or 'ai.onnx'}::{node.op_type}" for node in result.model.graph], dict(result.model.opset_imports))


export_with(torch.ops.python_ops.foo)
if has_compiler():
    load_inline("cpp_ops", SOURCE, is_python_module=False)
    export_with(torch.ops.cpp_ops.foo)
