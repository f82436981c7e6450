"""What the tests of functions written for torch.onnx share."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import onnx
import torch
from torch import nn

import onnx_exporter
from onnx_exporter.compat import _torch_onnx

EXAMPLE = torch.ones(2, 3, 4)

jit_utils: Any = _torch_onnx.find_module("torch.onnx._internal.torchscript_exporter.jit_utils", "torch.onnx._internal.jit_utils")
"""torch.onnx's module of that name, wherever this PyTorch has it."""


class Calls(nn.Module):
    """Calls a function on its inputs."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def op_types(result: Any) -> list[str]:
    """The nodes of a file, with their domains."""
    return [f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in result.model.graph]


def exported(function: Any, *inputs: torch.Tensor, **options: Any) -> Any:
    """Exports a function or module; the checker has passed what is returned."""
    model = function if isinstance(function, nn.Module) else Calls(function)
    return onnx_exporter.export(model.eval(), inputs, **options)


def verified(function: Any, *inputs: torch.Tensor, opsets: Sequence[int] = (18,), dynamic: bool = True, **options: Any) -> Any:
    """Exports a function or module with static and dynamic sizes; the files compute what PyTorch computes.

    Returns:
        The last result.
    """
    names = [f"x{index}" for index in range(len(inputs))]
    axes = {name: {0: "batch"} for name, tensor in zip(names, inputs, strict=True) if tensor.dim()}
    result = None
    for opset in opsets:
        for dynamic_axes in (axes, None) if dynamic else (None,):
            result = exported(
                function, *inputs, opset_version=opset, input_names=names, dynamic_axes=dynamic_axes, verify=True, **options
            )
    return result


@contextlib.contextmanager
def registered(symbolics: dict[str, Any], opset: int = 9, owner: Any = torch.onnx) -> Iterator[None]:
    """While active, symbolic functions are registered, with torch.onnx as their authors do or with us."""
    for name, function in symbolics.items():
        owner.register_custom_op_symbolic(name, function, opset)
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name in symbolics:
                owner.unregister_custom_op_symbolic(name, opset)


def attributes(result: Any, op_type: str) -> dict[str, Any]:
    """The attributes of the only node of a kind."""
    (node,) = [node for node in result.model.graph if node.op_type == op_type]
    return {name: attribute.value for name, attribute in node.attributes.items()}


def output_types(result: Any) -> list[tuple[str, list[Any]]]:
    """Element type and sizes of each output, a name where a size is not fixed."""
    rows = []
    for output in result.model_proto.graph.output:
        tensor = output.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in tensor.shape.dim]
        rows.append((onnx.TensorProto.DataType.Name(tensor.elem_type), dims))
    return rows


def function_of(body: Callable[..., Any], forward: Callable[..., Any]) -> Callable[..., Any]:
    """Returns what calls an ``autograd.Function`` that does `forward` and is converted by ``body(g, ...)``."""

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            return compute(*inputs)

        symbolic = staticmethod(body)

    compute = forward
    return lambda *inputs: Called.apply(*inputs)


def inside(body: Callable[..., Any], x: torch.Tensor = EXAMPLE, opset: int = 18, *extra: Any, **options: Any) -> Any:
    """Exports a model whose only call is converted by `body(g, x, ...)`."""

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            return x.clone()

        symbolic = staticmethod(body)

    return exported(lambda x: Called.apply(x, *extra), x, opset_version=opset, input_names=["x"], **options)


def registered_for(operator: str, body: Callable[..., Any], model: Any, *args: torch.Tensor, opset: int = 18) -> Any:
    """Exports a model in which `body` converts an operator."""
    onnx_exporter.register_custom_op_symbolic(operator, body, 9)
    try:
        return exported(model, *args, opset_version=opset)
    finally:
        onnx_exporter.unregister_custom_op_symbolic(operator, 9)


def checked(body: Callable[..., Any], forward: Callable[..., Any], *args: torch.Tensor, opset: int = 13) -> Any:
    """Exports a call that `body` converts; the file computes what `forward` does."""
    return exported(function_of(body, forward), *args, opset_version=opset, verify=True)


def int_of(g: Any, number: int) -> Any:
    return g.op("Constant", value_t=torch.tensor(number))


def vector_of(g: Any, *numbers: int) -> Any:
    return g.op("Constant", value_t=torch.tensor(numbers))
