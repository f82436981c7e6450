"""Clean-up of the source graph."""

from __future__ import annotations

import torch

from onnx_exporter._source.cleanup import cleanup
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceType, SourceValue
from source_tools import capture, matrix, run

KIND = SourceType(torch.float32, (3,))


def call(operator: torch._ops.OpOverload, arguments: dict[str, object], outputs: list[SourceValue]) -> SourceNode:
    schema = operator._schema
    return SourceNode(schema.name, schema.overload_name, dict(arguments), outputs, schema=schema)


def test_dead_nodes_go_with_what_only_they_read() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        unused = (x + 1).sin()
        unused.unbind()
        return x * 2

    graph = cleanup(capture(program, matrix()))
    assert [node.op for node in graph.nodes] == ["aten::mul"]
    assert torch.equal(run(graph, matrix())[0], matrix() * 2)


def test_a_node_stays_if_one_of_its_outputs_is_read() -> None:
    graph = cleanup(capture(lambda x: x.split(2, 1)[1], matrix()))
    assert [node.op for node in graph.nodes] == ["aten::split"]
    assert len(graph.nodes[0].outputs) == 2


def test_assertions_go_with_their_conditions() -> None:
    x, condition, token, result = (SourceValue(name, KIND) for name in ("x", "condition", "token", "result"))
    graph = SourceGraph(
        [x],
        [
            call(torch.ops.aten.isfinite.default, {"self": x}, [condition]),
            call(torch.ops.aten._assert_async.msg, {"self": condition, "assert_msg": "finite"}, []),
            call(torch.ops.aten._assert_tensor_metadata.default, {"a": x}, []),
            call(torch.ops.aten.sym_constrain_range.default, {"size": 3, "min": 0, "max": None}, []),
            call(torch.ops.aten._functional_assert_scalar.default, {"self": 1, "assert_msg": "", "dep_token": x}, [token]),
            SourceNode("prim::Print", "", {"input_0": x}, []),
            call(torch.ops.aten.neg.default, {"self": x}, [result]),
        ],
        [result],
    )
    assert [node.op for node in cleanup(graph).nodes] == ["aten::neg"]


def test_unknown_operator_without_results_stays_to_be_reported() -> None:
    x = SourceValue("x", KIND)
    graph = cleanup(SourceGraph([x], [SourceNode("acme::log", "", {"x": x}, [])], [x]))
    assert [node.op for node in graph.nodes] == ["acme::log"]


def test_blocks_are_cleaned_and_keep_what_they_read_alive() -> None:
    x, scale, dead, inner, result = (SourceValue(name, KIND) for name in ("x", "scale", "dead", "inner", "result"))
    condition = SourceValue("condition", SourceType(torch.bool, ()))
    block = SourceGraph(
        [],
        [
            call(torch.ops.aten.sin.default, {"self": x}, [dead]),
            call(torch.ops.aten.mul.Tensor, {"self": x, "other": scale}, [inner]),
        ],
        [inner],
    )
    only_asserts = SourceGraph([], [call(torch.ops.aten._assert_async.default, {"self": condition}, [])], [])
    graph = SourceGraph(
        [x, condition],
        [
            call(torch.ops.aten.exp.default, {"self": x}, [scale]),
            SourceNode("prim::If", "", {"condition": condition}, [], blocks=[only_asserts]),
            SourceNode("prim::If", "", {"condition": condition}, [result], blocks=[block]),
        ],
        [result],
    )
    cleanup(graph)
    assert [node.op for node in graph.nodes] == ["aten::exp", "prim::If"]
    assert [node.op for node in block.nodes] == ["aten::mul"]
