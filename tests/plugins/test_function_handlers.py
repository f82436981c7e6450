"""Handlers of plugins for autograd.Function: of a table by the class's name, of a hook for any class."""

from __future__ import annotations

import types

import pytest
import torch
from choice_kit import X, kinds

from onnx_exporter import OpTable, UnsupportedOpError, Value, export, hookimpl


class Scale(torch.autograd.Function):
    vendor_op = "Scale"

    @staticmethod
    def forward(ctx, x, factor):
        return x * factor


class Own(torch.autograd.Function):
    vendor_op = "Own"

    @staticmethod
    def forward(ctx, x):
        return x + 1

    @staticmethod
    def symbolic(g, x):
        return g.op("Add", x, g.op("Constant", value_t=torch.tensor(1.0)))


class Other(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.relu(x)


HANDLER = """
from onnx_exporter import OpTable, hookimpl

onnx_exporter_requires = {{"opset": {opset!r}}}

@hookimpl
def onnx_exporter_python_op(g, node):
    name = getattr(node.attributes["function"], "vendor_op", None)
    return None if name is None else g.op(f"com.vendor::{{name}}", g.arguments["x"], factor=g.arguments["factor"])
"""


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_hook_handles_any_class(install, capture):
    install("vendor", HANDLER.format(opset=">=7"))
    result = export(lambda x: Scale.apply(x, 3.0), (X,), capture=capture)
    (node,) = result.model.graph
    assert (node.domain, node.op_type, node.attributes["factor"].as_float()) == ("com.vendor", "Scale", 3.0)
    origin = result.origins[node.name]
    assert (origin.plugin, origin.plugin_version, origin.op) == ("vendor", "1.0", "prim::PythonOp")
    assert origin.function.endswith("vendor.onnx_exporter_python_op")
    assert origin.line.endswith("vendor.py:9")


def test_what_goes_before_and_after_the_hook(install):
    install("vendor", HANDLER.format(opset=">=7"))
    assert kinds(lambda x: Own.apply(x)) == ["Add"]  # its own symbolic
    assert kinds(lambda x: Other.apply(x)) == ["Relu"]  # declined, so what forward computes
    table = OpTable()

    @table.python_op("Scale")
    def scale(g, x: Value, factor: float):
        return g.op("Mul", x, g.constant(factor, like=x))

    assert kinds(lambda x: Scale.apply(x, 3.0), plugins=[table]) == ["Mul"]


def test_hooks_are_not_asked_outside_their_opsets(install):
    install("vendor", HANDLER.format(opset=">=13"))
    assert kinds(lambda x: Scale.apply(x, 3.0), opset_version=13) == ["Scale"]
    assert kinds(lambda x: Scale.apply(x, 3.0), opset_version=12) == ["Mul"]


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("by_name", [True, False], ids=["table", "hook"])
def test_what_a_handler_refuses_is_not_what_forward_computes(capture, by_name):
    """The forward of a class that stands for a vendor's operator need not compute the same."""
    table = OpTable()

    def refuse(g, x: Value):
        raise g.unsupported("it takes no float32")

    table.python_op("Other")(refuse)

    def onnx_exporter_python_op(g):
        return refuse(g, g.arguments["x"])

    plugin = table if by_name else types.SimpleNamespace(onnx_exporter_python_op=hookimpl(onnx_exporter_python_op))
    with pytest.raises(UnsupportedOpError, match=r"it takes no float32(.|\n)*its forward does not stand in"):
        export(lambda x: Other.apply(x), (X,), plugins=[plugin], capture=capture)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_handler_that_gives_none_lets_forward_stand_in(capture):
    table = OpTable()

    @table.python_op("Other")
    def decline(g, x: Value):
        return None

    assert kinds(lambda x: Other.apply(x), plugins=[table], capture=capture) == ["Relu"]
