"""Constant propagation in the source graph."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter._source.fold import fold_constants
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter.errors import ExportError
from source_tools import capture, matrix, run


def number(value: int | float) -> SourceValue:
    tensor = torch.tensor(value, dtype=torch.int64 if isinstance(value, int) else torch.float64)
    return SourceValue("", SourceType(tensor.dtype, (), True), tensor)


def constant(tensor: torch.Tensor, name: str = "") -> SourceValue:
    return SourceValue(name, SourceType(tensor.dtype, tuple(tensor.shape)), tensor)


def call(operator: torch._ops.OpOverload, *outputs: SourceValue, **arguments: object) -> SourceNode:
    schema = operator._schema
    return SourceNode(
        schema.name, schema.overload_name, dict(arguments), list(outputs), Location("m", "model.py", 7), schema=schema
    )


def fold_one(node: SourceNode, **options: object) -> SourceGraph:
    return fold_constants(SourceGraph([], [node], node.outputs), **options)  # type: ignore[arg-type]


def test_what_depends_on_constants_only_is_computed() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        position = torch.arange(4).float().unsqueeze(0)
        return x * (position / 4).sin() + torch.ones(3, 1)

    graph = fold_constants(capture(program, matrix()))
    assert [node.op for node in graph.nodes] == ["aten::mul", "aten::add"]
    assert torch.equal(run(graph, matrix())[0], program(matrix()))


def test_every_output_of_a_list_is_folded() -> None:
    parts = [SourceValue(), SourceValue()]
    graph = fold_one(call(torch.ops.aten.split.Tensor, *parts, self=constant(torch.arange(4)), split_size=2, dim=0))
    assert graph.nodes == []
    assert [part.constant.tolist() for part in parts if part.constant is not None] == [[0, 1], [2, 3]]
    assert parts[0].type == SourceType(torch.int64, (2,))


def test_weights_stay() -> None:
    weight, result = constant(torch.ones(3), "linear.weight"), SourceValue()
    graph = fold_one(call(torch.ops.aten.neg.default, result, self=weight))
    assert len(graph.nodes) == 1 and result.constant is None


def test_the_caller_may_say_what_the_weights_are() -> None:
    named, unnamed = constant(torch.ones(3), "scale"), constant(torch.ones(3))
    assert fold_one(call(torch.ops.aten.neg.default, SourceValue(), self=named), weights={unnamed}).nodes == []
    assert len(fold_one(call(torch.ops.aten.neg.default, SourceValue(), self=unnamed), weights={unnamed}).nodes) == 1


def test_folded_values_are_not_taken_for_weights() -> None:
    first, second = SourceValue("ones_1"), SourceValue("neg_1")
    nodes = [
        call(torch.ops.aten.exp.default, first, self=constant(torch.zeros(3))),
        call(torch.ops.aten.neg.default, second, self=first),
    ]
    assert fold_constants(SourceGraph([], nodes, [second])).nodes == []
    assert second.constant is not None and second.constant.tolist() == [-1.0] * 3


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (torch.ops.aten.rand.default, {"size": [2]}),
        (torch.ops.aten.dropout.default, {"input": constant(torch.ones(2)), "p": 0.5, "train": True}),
        (torch.ops.aten.empty.memory_format, {"size": [2]}),
        (torch.ops.aten.add_.Scalar, {"self": constant(torch.ones(2)), "other": 1, "alpha": 1}),
    ],
    ids=["rand", "dropout", "empty", "add_"],
)
def test_what_is_not_a_function_of_its_inputs_stays(operator: torch._ops.OpOverload, arguments: dict[str, object]) -> None:
    assert len(fold_one(call(operator, SourceValue(), **arguments)).nodes) == 1


@pytest.mark.parametrize("example_shape", [(1000, 1000), None], ids=["size known", "size unknown"])
def test_a_large_result_of_small_inputs_stays(example_shape: tuple[int, ...] | None) -> None:
    kind = SourceType(torch.float32, None, example_shape=example_shape)
    options = {"dtype": None, "layout": None, "device": None, "pin_memory": None}
    factory = call(torch.ops.aten.ones.default, SourceValue(type=kind), size=[1000, 1000], **options)
    one = constant(torch.ones(1, 1))
    spread = call(torch.ops.aten.expand.default, SourceValue(type=kind), self=one, size=[1000, 1000], implicit=False)
    assert len(fold_one(factory).nodes) == 1
    assert len(fold_one(spread).nodes) == 1


def test_a_large_result_of_large_inputs_is_folded_without_a_copy() -> None:
    result, large = SourceValue(), torch.ones(200, 300)
    graph = fold_one(call(torch.ops.aten.t.default, result, self=constant(large)))
    assert graph.nodes == [] and result.constant is not None
    assert result.constant.data_ptr() == large.data_ptr() and result.type.shape == (300, 200)


@pytest.mark.parametrize("name", ["fake_quantize_per_tensor_affine", "dequantize"])
def test_quantization_of_a_constant_stays(name: str) -> None:
    operator = getattr(torch.ops.aten, name)
    operator = operator.default if "default" in operator.overloads() else operator.self
    arguments = {"self": constant(torch.ones(2)), "scale": 0.1, "zero_point": 0, "quant_min": 0, "quant_max": 255}
    given = {argument.name: arguments[argument.name] for argument in operator._schema.arguments}
    assert len(fold_one(call(operator, SourceValue(), **given)).nodes) == 1


def test_the_limit_is_the_callers() -> None:
    node = call(torch.ops.aten.arange.default, SourceValue(), end=100, dtype=None, layout=None, device=None, pin_memory=None)
    assert len(fold_one(node, limit=100).nodes) == 1
    assert fold_one(node, limit=800).nodes == []


def test_numbers_stay_numbers() -> None:
    count = SourceValue(type=SourceType(torch.int64, (), True))
    fold_one(call(torch.ops.aten.size.int, count, self=constant(torch.ones(3, 5)), dim=1))
    total = SourceValue(type=SourceType(torch.int64, (), True))
    fold_one(call(torch.ops.aten.add.Tensor, total, self=count, other=number(2), alpha=1))
    assert count.constant is not None and total.constant is not None
    assert (count.constant.item(), total.constant.item()) == (5, 7)
    assert total.type == SourceType(torch.int64, (), True)


def test_numbers_are_divided_as_python_divides() -> None:
    quotient = SourceValue(type=SourceType(torch.float32, (), True))
    fold_one(call(torch.ops.aten.div.Tensor, quotient, self=number(1), other=number(3)))
    assert quotient.constant is not None and quotient.constant.item() == 1 / 3


def test_a_number_is_weaker_than_a_tensor() -> None:
    result = SourceValue()
    fold_one(call(torch.ops.aten.add.Tensor, result, self=constant(torch.tensor(1, dtype=torch.int16)), other=number(2), alpha=1))
    assert result.constant is not None and result.constant.dtype is torch.int16


def test_a_factory_called_on_a_tensor_needs_only_its_dtype() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x + x.new_full((3, 1), 2) + x.new_zeros(4)

    graph = fold_constants(capture(program, matrix().double(), dynamic=True))
    assert [node.op for node in graph.nodes] == ["aten::add", "aten::add"]
    assert torch.equal(run(graph, matrix().double())[0], program(matrix().double()))


def test_other_namespaces_are_left_to_their_plugins() -> None:
    node = SourceNode(
        "acme::twice", "", {"x": constant(torch.ones(2))}, [SourceValue()], schema=torch.ops.aten.neg.default._schema
    )
    assert len(fold_one(node).nodes) == 1


def test_a_failure_names_operator_and_place() -> None:
    node = call(torch.ops.aten.matmul.default, SourceValue(), self=constant(torch.ones(2)), other=constant(torch.ones(3)))
    with pytest.raises(ExportError, match=r"aten::matmul \(module 'm', model.py:7\) fails on the constants"):
        fold_one(node)


def test_blocks_are_folded() -> None:
    result = SourceValue()
    block = SourceGraph([], [call(torch.ops.aten.neg.default, result, self=constant(torch.ones(2)))], [result])
    node = SourceNode("prim::If", "", {"condition": SourceValue()}, [SourceValue()], blocks=[block])
    graph = fold_constants(SourceGraph([], [node], node.outputs))
    assert graph.nodes == [node] and block.nodes == [] and result.constant is not None
