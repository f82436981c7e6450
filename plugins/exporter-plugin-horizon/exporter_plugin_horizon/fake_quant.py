"""Fake quantization as the vendor's operators, in place of ONNX's QuantizeLinear and DequantizeLinear; or left out."""

import onnx_ir as ir

from exporter_plugin_horizon.domain import DOMAIN
from onnx_exporter import GraphContext, OpTable, SourceGraph, Value

table = OpTable(replaces=True)


@table.op("onnx_exporter::fake_quantize")
def fake_quantize(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, axis: int | None, quant_min: int, quant_max: int
) -> Value:
    """``HzQuantize`` to levels and ``HzDequantize`` back; `axis` is left out where there is one scale for all.

    Every form of ``aten::fake_quantize_*`` and of the fused observers goes through this one.
    """
    levels = g.op(f"{DOMAIN}::HzQuantize", self, scale, zero_point, quant_min=quant_min, quant_max=quant_max, axis=axis)
    return g.op(f"{DOMAIN}::HzDequantize", levels, scale, zero_point, axis=axis)


def leave_out(graph: SourceGraph) -> SourceGraph:
    """A pass over what was captured: the model as if it had no fake quantization, for a compiler that calibrates by itself."""
    read = set(graph.read_values())
    kept = []
    for node in graph.nodes:
        is_fake = "fake_quant" in node.op or "moving_avg_obs" in node.op
        if is_fake and read.isdisjoint(node.outputs[1:]):
            graph.replace(node.outputs[0], node.arguments["self"])
        else:
            kept.append(node)
            node.blocks[:] = map(leave_out, node.blocks)
    graph.nodes = kept
    return graph


def join(model: ir.Model) -> None:
    """A pass over the file's graph: what is back from its levels, and goes to the same ones again, stays there."""
    outputs = set(model.graph.outputs)
    for node in list(model.graph):
        levels = _same_levels(node)
        if levels is not None and node.outputs[0] not in outputs:
            ir.convenience.replace_all_uses_with(node.outputs[0], levels)
            model.graph.remove(node, safe=True)
    for node in reversed(list(model.graph)):
        if node.op_type == "HzDequantize" and not node.outputs[0].uses() and node.outputs[0] not in outputs:
            model.graph.remove(node, safe=True)


def _same_levels(node: ir.Node) -> ir.Value | None:
    """The levels that a HzQuantize would give again, or None."""
    back = node.inputs[0].producer() if node.op_type == "HzQuantize" and node.inputs[0] is not None else None
    first = back.inputs[0].producer() if back is not None and back.op_type == "HzDequantize" and back.inputs[0] else None
    if back is None or first is None or first.op_type != "HzQuantize":
        return None
    alike = _parameters(first) == _parameters(node) and first.inputs[1:] == back.inputs[1:] == node.inputs[1:]
    return first.outputs[0] if alike else None


def _parameters(node: ir.Node) -> dict[str, object]:
    return {name: attribute.value for name, attribute in node.attributes.items()}
