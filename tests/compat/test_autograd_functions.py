"""Calls of ``autograd.Function``: by their ``symbolic``, by handlers, inlined, or refused, under both captures."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import nn

import onnx_exporter
from onnx_exporter import GraphContext, OpTable, SymbolicContext, SymbolicError, UnsupportedOpError, Value

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, op_types, output_types, registered, verified

pytestmark = pytest.mark.parametrize("capture", ["trace", "export"])
X = torch.randn(3, 4)
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
CAN_SLICE = TORCH >= (2, 6)
"""Before, torch.export finds that an axis with a name cannot vary where another axis is sliced."""


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, name: str = "none", sizes: Any = (1, 2), dtype: Any = None) -> Any:
        return x * factor

    @staticmethod
    def symbolic(g: Any, x: Any, factor: float, name: str = "none", sizes: Any = (1, 2), dtype: Any = None) -> Any:
        assert isinstance(factor, float) and isinstance(name, str) and isinstance(sizes, tuple)
        return g.op("here::Scale", x, factor_f=factor, name_s=name, sizes_i=sizes, dtype_s=str(dtype))


def test_python_arguments_are_passed_as_they_are(capture: str) -> None:
    result = exported(lambda x: Scale.apply(x, 2.0, "twice", (3, 4), torch.float16), X, capture=capture)
    expected = {"factor": 2.0, "name": "twice", "sizes": (3, 4), "dtype": "torch.float16"}
    found = attributes(result, "Scale")
    assert {**found, "sizes": tuple(found["sizes"])} == expected
    assert output_types(result) == [("FLOAT", [3, 4])]


def test_arguments_that_are_left_out(capture: str) -> None:
    assert attributes(exported(lambda x: Scale.apply(x, 0.5), X, capture=capture), "Scale")["name"] == "none"


def test_apply_bound_to_a_name(capture: str) -> None:
    bound = Scale.apply
    assert op_types(exported(lambda x: bound(x, 0.5), X, capture=capture)) == ["here::Scale"]


class ByClass(torch.autograd.Function):
    name = "Relu"

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.relu()

    @classmethod
    def symbolic(cls, g: Any, x: Any) -> Any:
        return g.op(cls.name, x)


class Inherits(ByClass):
    name = "Abs"

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.abs()


def test_class_methods_and_inheritance(capture: str) -> None:
    result = verified(lambda x: Inherits.apply(ByClass.apply(x)), X, capture=capture)
    assert op_types(result) == ["Relu", "Abs"]


class WithSetup(torch.autograd.Function):
    """In the newer style: the context has a method of its own, and arguments may have names."""

    @staticmethod
    def forward(x: Any, low: float = 0.0, high: float = 1.0) -> Any:
        return x.clamp(low, high)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def symbolic(g: Any, x: Any, low: float, high: float) -> Any:
        return g.op("Clip", x, torch.tensor(low), torch.tensor(high))


@pytest.mark.skipif(TORCH < (2, 7), reason="PyTorch's apply takes keyword arguments from 2.7 on")
def test_keyword_arguments(capture: str) -> None:
    result = verified(lambda x: WithSetup.apply(x, high=0.5), X, opsets=[11, 18], capture=capture)
    assert op_types(result) == ["Clip"]


class MinMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, mask: Any, dim: int) -> Any:
        least, greatest = x.min(dim).values, x.max(dim).values
        return least, greatest, None

    @staticmethod
    def symbolic(g: Any, x: Any, mask: Any, dim: int) -> Any:
        assert mask is None
        kinds = ("ReduceMin", "ReduceMax")
        return (*(g.op(kind, x, axes_i=[dim], keepdims_i=0) for kind in kinds), None)


def test_several_outputs_and_none(capture: str) -> None:
    def forward(x: Any) -> Any:
        least, greatest, nothing = MinMax.apply(x, None, 1)
        assert nothing is None
        return greatest - least

    assert op_types(verified(forward, X, opsets=[11, 13], capture=capture)) == ["ReduceMin", "ReduceMax", "Sub"]


class TimesSize(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, size: int) -> Any:
        return x * size

    @staticmethod
    def symbolic(g: Any, x: Any, size: Any) -> Any:
        return g.op("Mul", x, g.op("Cast", size, to_i=torch.onnx.TensorProtoDataType.FLOAT))


def test_a_size_that_varies_as_an_argument(capture: str) -> None:
    result = verified(lambda x: TimesSize.apply(x, x.shape[0]), X, capture=capture)
    assert op_types(result)[-1] == "Mul"
    dynamic = exported(
        lambda x: TimesSize.apply(x, x.shape[0]), X, capture=capture, input_names=["x"], dynamic_axes={"x": {0: "n"}}
    )
    assert op_types(dynamic)[0] == "Shape"


class Passes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        return x


def test_an_input_is_returned(capture: str) -> None:
    assert op_types(verified(lambda x: Passes.apply(x) * 2, X, capture=capture)) == ["Mul"]
    assert op_types(verified(Passes.apply, X, capture=capture)) == ["Identity"]


class Placeholder(torch.autograd.Function):
    """As many plugins of TensorRT: what ``forward`` computes is not looked at, only its type and sizes are."""

    @staticmethod
    def forward(ctx: Any, boxes: Any, scores: Any, count: int) -> Any:
        batch = scores.shape[0]
        return torch.zeros(batch, 1, dtype=torch.int32), torch.randn(batch, count, 4)

    @staticmethod
    def symbolic(g: Any, boxes: Any, scores: Any, count: int) -> Any:
        return g.op("TRT::EfficientNMS_TRT", boxes, scores, max_output_boxes_i=count, outputs=2)


def test_types_of_a_vendors_operator_come_from_forward(capture: str) -> None:
    result = exported(lambda b, s: Placeholder.apply(b, s, 7), torch.randn(2, 9, 4), torch.randn(2, 9), capture=capture)
    assert op_types(result) == ["TRT::EfficientNMS_TRT"]
    assert output_types(result) == [("INT32", [2, 1]), ("FLOAT", [2, 7, 4])]


@pytest.mark.parametrize("annotation", [SymbolicContext, "SymbolicContext", "torch.onnx.SymbolicContext"])
def test_symbolic_context(capture: str, annotation: Any) -> None:
    seen: list[Any] = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: int) -> Any:
            return x * factor

        @staticmethod
        def symbolic(ctx: Any, g: Any, x: Any, factor: int) -> Any:
            node = ctx.cur_node
            seen.append((node.kind(), node.pyname(), node.cconv(), node.scalar_args(), node.pyobj().__self__))
            assert node.output().type().sizes() == [3, 4]
            return g.op("Mul", x, torch.tensor(float(factor))).setType(node.output().type())

    Double.symbolic.__annotations__["ctx"] = annotation
    verified(lambda x: Double.apply(x, 2), X, dynamic=False, capture=capture)
    assert seen == [("prim::PythonOp", "Double", "dc", [2], Double)]


# Functions without symbolic


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, power: int) -> Any:
        ctx.save_for_backward(x)
        return x**power + x.shape[0]


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return ByClass.apply(Cube.apply(x, 3)).sum(1), x[:, :2]


def test_without_symbolic_the_body_is_inlined(capture: str) -> None:
    def forward(x: Any) -> Any:
        total, part = Outer.apply(x)
        return total * x.shape[0], part + 1

    result = verified(forward, X, capture=capture, dynamic=CAN_SLICE or capture == "trace")
    assert "Relu" in op_types(result) and not any("::" in name for name in op_types(result))


def test_inlining_may_be_refused(capture: str) -> None:
    with pytest.raises(UnsupportedOpError, match="test_autograd_functions:Cube"):
        exported(lambda x: Cube.apply(x, 3), X, capture=capture, autograd_inlining=False)
    exported(lambda x: ByClass.apply(x), X, capture=capture, autograd_inlining=False)


class Unconvertible(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.linalg.qr(x)[0]


def test_a_body_that_cannot_be_converted_is_told(capture: str) -> None:
    with pytest.raises(UnsupportedOpError, match="linalg_qr"):
        exported(Unconvertible.apply, X, capture=capture)


class Writes(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)


def test_a_body_that_writes_to_its_input(capture: str) -> None:
    def forward(x: Any) -> Any:
        y = x + 1
        Writes.apply(y)
        return y

    verified(forward, X, capture=capture)


class WritesInside(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.clone()
        y[:, 0] = 1
        y.view(-1).mul_(2)
        z = y.t()
        z.add_(CONSTANT[:, None])
        return y, z.sum()


CONSTANT = torch.arange(4.0)


def test_a_body_that_writes_to_views(capture: str) -> None:
    def forward(x: Any) -> Any:
        y, total = WritesInside.apply(x)
        return y * 2 + total

    verified(forward, X, capture=capture, dynamic=CAN_SLICE or capture == "trace")


def test_in_a_branch(capture: str) -> None:
    """PyTorch captures a branch of torch.cond by another way, in which a call is always inlined."""

    def forward(x: Any) -> Any:
        if capture == "trace":
            return ByClass.apply(x)  # tracing follows the branch that the example takes
        return torch.cond(x.sum() > 0, lambda x: ByClass.apply(x) * 2, lambda x: x + 1, (x,))

    verified(forward, X, capture=capture)


def test_weights_of_the_model_in_a_body(capture: str) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Any) -> Any:
            return Scaled.apply(x, self.linear.weight, self.linear.bias)

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any) -> Any:
            return nn.functional.linear(x, weight, bias)

    result = verified(Model(), X, capture=capture)
    assert {"linear.weight", "linear.bias"} <= set(result.model.graph.initializers)


# Handlers


class MyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, low: float) -> Any:
        return x.clamp(min=low)


def handler(ctx: SymbolicContext, g: Any, *args: Any, **kwargs: Any) -> Any:
    node = ctx.cur_node
    assert [output.requiresGrad() for output in node.outputs()] == [args[0].requiresGrad()]
    assert not node.hasAttribute("subgraph") and node.s("name") == kwargs["name"] and node.i("inplace") == 0
    if kwargs["name"] != "MyClip":
        return torch.onnx.symbolic_helper._unimplemented("prim::PythonOp", "unknown node kind: " + kwargs["name"])
    made = g.op("Max", args[0], torch.tensor(args[1]))
    made.setType(node.output().type())
    return made


@pytest.mark.parametrize("owner", [torch.onnx, onnx_exporter])
def test_a_handler_for_all(capture: str, owner: Any) -> None:
    """What it does not know is inlined."""
    with registered({"prim::PythonOp": handler}, 1, owner):
        result = verified(lambda x: Cube.apply(MyClip.apply(x, 0.5), 2), X, opsets=[8, 18], capture=capture)
    assert op_types(result)[0] == "Max"


def test_requires_grad(capture: str) -> None:
    """Whether PyTorch would differentiate: inputs that ask for it, weights, and what is computed of them."""
    seen: list[bool] = []

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            seen.append(x.requiresGrad())
            return g.op("Add", x, torch.tensor(1.0))

    model = nn.Linear(4, 4)
    exported(lambda x: Asks.apply(x * 2), X, capture=capture)
    exported(nn.Sequential(model, Calls(Asks.apply)), X, capture=capture)
    exported(lambda x: Asks.apply(x * 2), X.clone().requires_grad_(), capture=capture)
    assert seen == [False, True, True]


class Calls(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def test_a_plugins_handler_by_name_goes_first(capture: str) -> None:
    table = OpTable(opset=9)

    @table.python_op("ByClass")
    def by_class(g: GraphContext, x: Value) -> Value:
        return g.op("LeakyRelu", x, alpha=0.0)

    assert op_types(verified(ByClass.apply, X, capture=capture, plugins=[table])) == ["LeakyRelu"]


# Faults


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, axis: int) -> Any:
        return x.sum(axis)

    @staticmethod
    def symbolic(g: Any, x: Any, axis: int) -> Any:
        return g.op("ReduceSum", x, axes_i=[0, 1][axis + 5])


def test_a_fault_is_reported_with_its_place(capture: str) -> None:
    with pytest.raises(SymbolicError) as caught:
        exported(lambda x: Fails.apply(x, 1), X, capture=capture)
    message = str(caught.value)
    assert "test_autograd_functions:Fails failed: IndexError: list index out of range" in message
    assert "by Fails.symbolic at " in message and "raised at " in message and "in symbolic" in message
    assert message.count("test_autograd_functions.py:") >= 2 and "x=float32[3, 4], axis=1" in message
    assert re.search(r"\n  at \S+\.py:\d+\n", message), "the place in the model"
    assert isinstance(caught.value.__cause__, IndexError)
