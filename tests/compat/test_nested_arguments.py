"""Sizes and tensors inside lists, tuples and dicts that an ``autograd.Function`` is given."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import onnx_exporter
from onnx_exporter import CaptureError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, op_types, verified

pytestmark = pytest.mark.parametrize("capture", ["trace", "export"])
X = torch.randn(2, 3)
Pair = collections.namedtuple("Pair", "rows columns")


def vector(g: Any, sizes: Any) -> Any:
    """The sizes as a tensor of rank 1; those that are known come as numbers."""
    parts = [
        g.op("Unsqueeze", size, torch.tensor([0])) if isinstance(size, torch._C.Value) else torch.tensor([size]) for size in sizes
    ]
    return g.op("Concat", *parts, axis_i=0)


def expanding(take: Callable[[Any], Any]) -> Any:
    """A function that repeats a row as often as sizes in its argument say, of which it makes a list with `take`."""

    class Expanded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, sizes: Any) -> Any:
            return x.expand(take(sizes)).clone()

        @staticmethod
        def symbolic(g: Any, x: Any, sizes: Any) -> Any:
            assert isinstance(sizes, list | tuple | dict)
            return g.op("Expand", x, vector(g, take(sizes)))

    return Expanded


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "torch.Size": (lambda shape: shape, list),
    "tuple": (tuple, list),
    "list": (lambda shape: [shape[0], 3], list),
    "dict": (lambda shape: {"rows": shape[0], "columns": 3, "name": "n"}, lambda given: [given["rows"], given["columns"]]),
    "ordered": (lambda shape: collections.OrderedDict(a=[shape[0]], b=3), lambda given: [given["a"][0], given["b"]]),
    "namedtuple": (lambda shape: Pair(shape[0], 3), lambda given: [given.rows, given.columns]),
    "nested": (lambda shape: [(shape[0], {"n": 3})], lambda given: [given[0][0], given[0][1]["n"]]),
}


@pytest.mark.parametrize("case", CASES)
def test_sizes_are_values(case: str, capture: str) -> None:
    give, take = CASES[case]
    function = expanding(take)
    result = verified(lambda x: function.apply(x[:1], give(x.shape)) + 1, X, capture=capture)
    assert "Expand" in op_types(result)


def test_sizes_that_are_arguments_themselves(capture: str) -> None:
    class Expanded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, rows: Any) -> Any:
            return x.expand(rows, 3).clone()

        @staticmethod
        def symbolic(g: Any, x: Any, rows: Any) -> Any:
            return g.op("Expand", x, vector(g, [rows, 3]))

    verified(lambda x: Expanded.apply(x[:1], x.shape[0]), X, capture=capture)


def test_without_a_symbolic_forward_is_inlined(capture: str) -> None:
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, sizes: Any, x: Any, more: Any) -> Any:
            return x.expand(sizes) * more["by"][0] + more["by"][1]

    verified(lambda x: Plain.apply(x.shape, x[:1], {"by": [x * 2, x.relu()]}), X, capture=capture)


def test_setup_context(capture: str) -> None:
    class WithSetup(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, sizes: Any) -> Any:
            return x.expand(sizes).clone()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            assert len(inputs) == 2 and len(inputs[1]) == 2
            ctx.rows = inputs[1][0]

        @staticmethod
        def symbolic(g: Any, x: Any, sizes: Any) -> Any:
            return g.op("Expand", x, vector(g, sizes))

    verified(lambda x: WithSetup.apply(x[:1], x.shape), X, capture=capture)


def test_tensors_in_a_list(capture: str) -> None:
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensors: Any, weights: Any) -> Any:
            return tensors[0] * weights["a"] + tensors[1]

        @staticmethod
        def symbolic(g: Any, tensors: Any, weights: Any) -> Any:
            assert all(isinstance(item, torch._C.Value) for item in tensors)
            return g.op("Add", g.op("Mul", tensors[0], weights["a"]), tensors[1])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self, x: torch.Tensor) -> Any:
            return Sum.apply([x.relu(), x], {"a": self.weight})

    assert op_types(verified(Model(), X, capture=capture)) == ["Relu", "Mul", "Add"]


def test_without_dynamic_axes_they_are_numbers(capture: str) -> None:
    seen = []

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shape: Any) -> Any:
            return x.clone()

        @staticmethod
        def symbolic(g: Any, x: Any, shape: Any) -> Any:
            seen.append([int(size) for size in shape])
            return g.op("vendor::Mark", x, shape_i=shape)

    result = exported(lambda x: Marked.apply(x, x.shape), X, capture=capture)
    assert seen == [[2, 3]] and list(attributes(result, "Mark")["shape"]) == [2, 3]


def test_an_attribute_fixes_a_size_and_says_so(capture: str) -> None:
    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shape: Any, attrs: Any) -> Any:
            return x.clone()

        @staticmethod
        def symbolic(g: Any, x: Any, shape: Any, attrs: Any) -> Any:
            return g.op("mmdeploy::Mark", x, shape_i=shape, **attrs)

    options = {"capture": capture, "input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}
    with pytest.warns(onnx_exporter.ExportWarning, match=r"fixed a size at that of the example, 2, .*'shape_i':\n.*py:\d+"):
        result = exported(lambda x: Marked.apply(x, x.shape, {"k_i": 3}), X, **options)
    found = attributes(result, "Mark")
    assert list(found["shape"]) == [2, 3] and found["k"] == 3


def test_objects_without_values_stay_the_same_objects(capture: str) -> None:
    class Config(dict):  # type: ignore[type-arg]
        pass

    config, numbers = Config(k=3), [1, 2]

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, first: Any, second: Any) -> Any:
            return x.clone()

        @staticmethod
        def symbolic(g: Any, x: Any, first: Any, second: Any) -> Any:
            assert first is config and second is numbers
            return g.op("Identity", x)

    exported(lambda x: Same.apply(x, config, numbers), X, capture=capture)


def test_an_apply_that_was_bound_before(capture: str) -> None:
    """Where PyTorch's apply is not written in Python, a trace cannot see into its arguments; that is told."""

    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, shape: Any) -> Any:
            return x.clone()

        @staticmethod
        def symbolic(g: Any, x: Any, shape: Any) -> Any:
            return g.op("vendor::Mark", x, *[size for size in shape if isinstance(size, torch._C.Value)])

    bound = Marked.apply
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = exported(lambda x: bound(x, x.shape), X, capture=capture, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    node = next(node for node in result.model.graph if node.op_type == "Mark")
    told = [str(item.message) for item in caught if "through a name that its apply was bound to" in str(item.message)]
    assert len(node.inputs) == 2 or (capture == "trace" and "test_nested_arguments.py" in told[0])


def test_a_tensor_that_forward_is_not_given(capture: str) -> None:
    class Closed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, holder: Any) -> Any:
            return x + holder.value

    class Holder:
        value: Any

    holder = Holder()

    def model(x: Any) -> Any:
        holder.value = x.relu()
        return Closed.apply(x, holder)

    if capture == "trace":
        with pytest.raises(CaptureError, match=r"autograd.Function at .*test_nested_arguments.py:\d+: its forward computes with"):
            exported(model, X, capture=capture)
    else:
        verified(model, X, capture=capture)
