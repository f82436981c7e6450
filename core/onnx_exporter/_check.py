"""The ONNX checker, run on the model without its weights, so that it costs no copy of them."""

from __future__ import annotations

import onnx

from onnx_exporter._protobuf import Layout
from onnx_exporter.errors import CheckerError

_SMALL = 1024


def check_model(layout: Layout) -> None:
    """Checks a model that is laid out as one file, shape inference included.

    Raises:
        CheckerError: If the checker refuses it.
    """
    try:
        onnx.checker.check_model(_without_weights(layout), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise CheckerError(f"the ONNX checker refuses the model: {error}") from error


def _without_weights(layout: Layout) -> onnx.ModelProto:
    """The model as protobuf with an input, which has a type and no data, in place of each large weight."""
    proto = onnx.ModelProto()
    proto.ParseFromString(layout.model)
    proto.graph.ParseFromString(layout.graph)
    inputs = {value.name for value in proto.graph.input}
    for item in layout.initializers:
        if item.data_size <= _SMALL:
            tensor = proto.graph.initializer.add()
            tensor.ParseFromString(item.head)
            if item.tensor is not None:
                tensor.raw_data = bytes(item.data())
        elif item.name not in inputs:
            value = proto.graph.input.add()
            value.name = item.name
            tensor = onnx.TensorProto.FromString(item.head)
            value.type.tensor_type.elem_type = tensor.data_type
            value.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension(dim_value=dim) for dim in tensor.dims)
    _give_ranks(proto.graph)
    return proto


def _give_ranks(graph: onnx.GraphProto) -> None:
    """Puts its shape in the place of an output of unknown rank, which ONNX allows and its checker does not."""
    for output in graph.output:
        if output.type.HasField("tensor_type") and not output.type.tensor_type.HasField("shape"):
            shape = f"{output.name}.shape"
            graph.node.append(onnx.helper.make_node("Shape", [output.name], [shape]))
            output.CopyFrom(onnx.helper.make_tensor_value_info(shape, onnx.TensorProto.INT64, [None]))
