"""Nested tensors of `nn.TransformerEncoder`, which leaves padding out where it may, as padded tensors and what is padding.

A file has no nested tensors. The encoder makes one of its input where all padding is at the end, runs its layers on that, and
pads the result with zeros. Here the layers run on the padded tensor with the padding masked, which gives the same elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_values import Abstract, Handler, Nested
from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter

_ENCODER = "torch/nn/modules/transformer.py"
_PADDING_MASK = 1
"""``mask_type`` of a mask with a row for each sequence of the batch."""


def _is_left_aligned(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """The encoder asks whether to make a nested tensor: always, since what becomes of one minds it (`_padded`)."""
    return True if _ENCODER in node.sourceRange().replace("\\", "/") else NotImplemented


def _from_mask(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return Nested(args[0], args[1])


def _is_nested(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return isinstance(args[0], Nested)


def _layer(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    nested = args[0]
    if not isinstance(nested, Nested):
        return NotImplemented
    place = interpreter.location(node)
    padding = interpreter.call("aten::logical_not", nested.valid, place=place)
    operator = find_operator(node.kind(), "")
    assert operator is not None
    (padded,) = interpreter.emit(operator._schema, [nested.padded, *args[1:-2], padding, _PADDING_MASK], place)
    return Nested(padded, nested.valid)


def _padded(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """The padding is set where all of it is at the end; else the encoder would have made no nested tensor."""
    nested, value = args[:2]
    if not isinstance(nested, Nested):
        return NotImplemented
    place = interpreter.location(node)

    def call(name: str, *args: Abstract) -> SourceValue:
        return interpreter.call(f"aten::{name}", *args, place=place)

    padding = call("logical_not", nested.valid)
    before, after = call("slice.Tensor", nested.valid, 1, 0, -1), call("slice.Tensor", padding, 1, 1)
    is_at_end = call("all", call("logical_or", before, after))
    masked = call("unsqueeze", call("logical_and", padding, is_at_end), -1)
    return call("masked_fill.Scalar", nested.padded, masked, value)


HANDLERS: dict[str, Handler] = {
    "aten::_nested_tensor_from_mask_left_aligned": _is_left_aligned,
    "aten::_nested_tensor_from_mask": _from_mask,
    "aten::_transformer_encoder_layer_fwd": _layer,
    "aten::to_padded_tensor": _padded,
    "prim::is_nested": _is_nested,
}
