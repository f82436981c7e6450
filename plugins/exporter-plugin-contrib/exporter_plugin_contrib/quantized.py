"""Quantized arithmetic: QLinearAdd and the like in place of DequantizeLinear, the operator and QuantizeLinear."""

from __future__ import annotations

import torch

from exporter_plugin_contrib import fused
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=10, replaces=True)  # QuantizeLinear and DequantizeLinear are new in opset 10

_FORMS = {
    "Add": "QLinearAdd",
    "Concat": "QLinearConcat",
    "LeakyRelu": "QLinearLeakyRelu",
    "Mul": "QLinearMul",
    "Sigmoid": "QLinearSigmoid",
}


@table.op("onnx_exporter::fake_quantize")
def fake_quantize(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, axis: int | None, quant_min: int, quant_max: int
) -> Value:
    """Fake quantization, of whichever operator, of a sum, a product, a sigmoid, a leaky ReLU or a concatenation of such.

    ONNX Runtime rounds what it computes once; where a number lies halfway between two levels, it may take the other one.
    """
    kind = next((kind for kind in (torch.uint8, torch.int8) if _is_whole(kind, quant_min, quant_max)), None)
    if kind is None or axis is not None or self.dtype is not torch.float32:
        raise g.unsupported("ONNX Runtime's quantized operators have one scale, and all levels of uint8 or int8")
    node = self.ir.producer()
    if node is None or node.domain or node.op_type not in _FORMS:
        raise g.unsupported("ONNX Runtime has no quantized operator for what is quantized here")
    operands: list[Value] = []
    for operand in fused.inputs_of(node):
        source = fused.made_by(operand, "DequantizeLinear")
        parts = [] if source is None else fused.inputs_of(source)
        if len(parts) != 3 or parts[0].dtype != kind or parts[1].rank != 0:
            raise g.unsupported("ONNX Runtime's quantized operators need operands that are quantized in the same way")
        operands += parts
    target = [emit.reshape(g, emit.cast(g, scale, torch.float32), []), emit.reshape(g, emit.cast(g, zero_point, kind), [])]
    inputs = [*target, *operands] if node.op_type == "Concat" else [*operands, *target]
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    levels = fused.emit(g, _FORMS[node.op_type], *inputs, like=operands[0], dims=self.shape, **attributes)
    return g.op("DequantizeLinear", levels, *target)


def _is_whole(kind: torch.dtype, quant_min: int, quant_max: int) -> bool:
    limits = torch.iinfo(kind)
    return (quant_min, quant_max) == (limits.min, limits.max)
