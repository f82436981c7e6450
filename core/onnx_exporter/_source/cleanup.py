"""Removes what does not contribute to the outputs: assertions, prints, and nodes that nobody reads."""

from __future__ import annotations

from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue

_NO_EFFECT = frozenset(
    {
        *("aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata", "aten::_make_dep_token"),
        *("aten::_functional_assert_async", "aten::_functional_assert_scalar"),
        *("aten::sym_constrain_range", "aten::sym_constrain_range_for_size"),
        *("aten::_functional_sym_constrain_range", "aten::_functional_sym_constrain_range_for_size"),
        *("aten::_print", "aten::warn", "aten::manual_seed", "aten::record_stream", "aten::retain_grad", "prim::Print"),
        *("profiler::_record_function_enter", "profiler::_record_function_enter_new"),
        "profiler::_record_function_exit",
    }
)
"""Operators that check or report and compute nothing: ONNX has no place for them."""


def cleanup(graph: SourceGraph) -> SourceGraph:
    """Drops assertions and dead nodes, in blocks too, and returns the graph. It must not write in place."""
    _drop_assertions(graph)
    _drop_dead(graph, set())
    return graph


def _drop_assertions(graph: SourceGraph) -> None:
    for node in graph.nodes:
        for block in node.blocks:
            _drop_assertions(block)
    # A branch or loop that only asserted is empty now.
    graph.nodes = [node for node in graph.nodes if node.op not in _NO_EFFECT and not _is_empty(node)]


def _is_empty(node: SourceNode) -> bool:
    return bool(node.blocks) and not node.outputs and not any(block.nodes for block in node.blocks)


def _is_idle(node: SourceNode) -> bool:
    """Whether a branch or loop without results has no node in it that is there for an effect either."""
    return bool(node.blocks) and all(inner.outputs or _is_idle(inner) for block in node.blocks for inner in block.nodes)


def _drop_dead(graph: SourceGraph, live: set[SourceValue]) -> None:
    """Drops the nodes whose results are not in `live`; adds what the others read to `live`."""
    live.update(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        # A node without results is there for an effect that is not known here; the engine reports it.
        if (node.outputs or _is_idle(node)) and not any(output in live for output in node.outputs):
            continue
        kept.append(node)
        if node.op == "prim::If":
            _drop_results(node, live)
        live.update(node.input_values())
        for block in node.blocks:
            _drop_dead(block, live)
    kept.reverse()
    graph.nodes = kept


def _drop_results(node: SourceNode, live: set[SourceValue]) -> None:
    """Drops the results of a branch that are not in `live`."""
    kept = [index for index, output in enumerate(node.outputs) if output in live]
    node.outputs = [node.outputs[index] for index in kept]
    for block in node.blocks:
        block.outputs = [block.outputs[index] for index in kept]
