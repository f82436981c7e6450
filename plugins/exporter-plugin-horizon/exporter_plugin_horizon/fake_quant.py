"""Fake quantization as the vendor's operators, in place of ONNX's QuantizeLinear and DequantizeLinear."""

from exporter_plugin_horizon.domain import DOMAIN
from onnx_exporter import GraphContext, OpTable, Value

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
