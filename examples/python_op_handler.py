"""One function converts every ``autograd.Function`` without a ``symbolic``: it is registered for ``prim::PythonOp``."""

import torch
from torch.onnx import symbolic_helper

import onnx_exporter
from onnx_exporter import SymbolicContext, register_custom_op_symbolic, unregister_custom_op_symbolic


class MyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low):
        return x.clamp(min=low)


class MyRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=0)


class Model(torch.nn.Module):
    def forward(self, x):
        return MyRelu.apply(MyClip.apply(x, -0.5) * 2)


def python_op(ctx: SymbolicContext, g, *args, **kwargs):
    """Gets what ``forward`` got, tensors as values of the file, and the name of the class."""
    node, name = ctx.cur_node, kwargs["name"]
    for index, argument in enumerate(args):
        if symbolic_helper._is_value(argument):
            print(f"{name}: argument {index} is a tensor, requires_grad={argument.requiresGrad()}")
        else:
            print(f"{name}: argument {index} is {argument!r}")
    if name == "MyClip":
        made = g.op("Clip", args[0], g.op("Constant", value_t=torch.tensor(args[1])))
    elif name == "MyRelu":
        made = g.op("Relu", args[0])
    else:
        return None  # it is replaced by what its forward computes
    return made.setType(node.output().type())


register_custom_op_symbolic("prim::PythonOp", python_op, 11)
try:
    x = torch.randn(2, 3, requires_grad=True)
    result = onnx_exporter.export(Model(), x, "python_ops.onnx", opset_version=13, verify=True)
finally:
    unregister_custom_op_symbolic("prim::PythonOp", 11)
print([node.op_type for node in result.model.graph], str(result.comparison).splitlines()[0])
