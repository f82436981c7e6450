"""A model in protobuf's wire format, laid out so that the weights need not be in it while it is built.

A protobuf message is the concatenation of its fields. So the graph without weights is serialised as
usual, and each weight is appended as one more ``initializer`` field: a short head, then its bytes
straight from the tensor's memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import onnx
import onnx_ir as ir

from onnx_exporter._tensor_data import tensor_data
from onnx_exporter.errors import WriteError

_GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
_INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
_RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number

MAX_MESSAGE = 2**31 - 1
"""Bytes in the largest message that protobuf reads."""

EXTERNAL_FROM = 1024
"""A tensor smaller than this stays in the model file, so that shapes and axes can be read from it alone."""

_ALIGNMENT = 64
_PAGE = 4096
_PAGE_FROM = 64 * 1024


@dataclasses.dataclass(frozen=True)
class Initializer:
    """One weight in the file.

    Attributes:
        name: Its name.
        tensor: Its data, or None if `head` already holds it (strings).
        head: The ``TensorProto`` without its raw data.
        offset: Where its data stands in the external file, or None if it is in the model file.
    """

    name: str
    tensor: ir.TensorProtocol | None
    head: bytes
    offset: int | None = None

    @property
    def data_size(self) -> int:
        """Number of bytes of its data."""
        return 0 if self.tensor is None else self.tensor.nbytes

    @property
    def is_inside(self) -> bool:
        """Whether its data is raw data in the model file."""
        return self.tensor is not None and self.offset is None

    @property
    def message_size(self) -> int:
        """Number of bytes of its whole ``TensorProto``."""
        raw = len(_length_prefix(_RAW_DATA, self.data_size)) + self.data_size if self.is_inside else 0
        return len(self.head) + raw

    def data(self) -> memoryview:
        """Returns its bytes.

        Raises:
            WriteError: If the tensor cannot be read.
        """
        assert self.tensor is not None
        try:
            data = tensor_data(self.tensor)
        except (RuntimeError, TypeError, ValueError, NotImplementedError, OSError) as error:
            raise WriteError(
                f"cannot read the data of initializer {self.name!r} ({self.tensor.dtype}, {self.tensor.shape}): {error}; "
                "a weight must be a dense tensor with real data (not meta, fake or sparse)"
            ) from error
        if data.nbytes != self.data_size:
            raise WriteError(
                f"initializer {self.name!r} has {data.nbytes} bytes of data, but its type and shape "
                f"({self.tensor.dtype}, {self.tensor.shape}) need {self.data_size}"
            )
        return data


@dataclasses.dataclass(frozen=True)
class Layout:
    """Everything about the files but the bytes of the weights.

    Attributes:
        model: The fields of the ``ModelProto`` without its graph.
        graph: The fields of the ``GraphProto`` without its initializers.
        initializers: The weights, in the model's order.
    """

    model: bytes
    graph: bytes
    initializers: tuple[Initializer, ...]

    @property
    def _graph_size(self) -> int:
        sizes = (item.message_size for item in self.initializers)
        return len(self.graph) + sum(len(_length_prefix(_INITIALIZER, size)) + size for size in sizes)

    @property
    def size(self) -> int:
        """Number of bytes of the model file."""
        graph = self._graph_size
        return len(self.model) + len(_length_prefix(_GRAPH, graph)) + graph

    @property
    def data_size(self) -> int:
        """Number of bytes of the external data file; 0 if there is none."""
        return max((item.offset + item.data_size for item in self.initializers if item.offset is not None), default=0)

    def model_chunks(self) -> Iterator[bytes | memoryview]:
        """Yields the model file piece by piece; at most one tensor's copy is alive at a time."""
        yield self.model
        yield _length_prefix(_GRAPH, self._graph_size)
        yield self.graph
        for item in self.initializers:
            yield _length_prefix(_INITIALIZER, item.message_size)
            yield item.head
            if item.is_inside:
                yield _length_prefix(_RAW_DATA, item.data_size)
                yield item.data()

    def data_chunks(self) -> Iterator[bytes | memoryview]:
        """Yields the external data file piece by piece."""
        position = 0
        for item in self.initializers:
            if item.offset is not None:
                yield bytes(item.offset - position)
                yield item.data()
                position = item.offset + item.data_size

    def with_external_data(self, location: str) -> Layout:
        """Returns the layout with all but the small tensors in a file named `location` beside the model.

        A tensor starts at a multiple of 64 bytes, one of 64 KiB or more at a multiple of 4096, so that
        it can be mapped into memory.
        """
        position = 0
        items = []
        for item in self.initializers:
            if item.data_size >= EXTERNAL_FROM:
                alignment = _PAGE if item.data_size >= _PAGE_FROM else _ALIGNMENT
                offset = -(-position // alignment) * alignment
                position = offset + item.data_size
                head = item.head + _reference(location, offset, item.data_size)
                item = dataclasses.replace(item, head=head, offset=offset)
            items.append(item)
        return dataclasses.replace(self, initializers=tuple(items))


def lay_out(model: ir.Model) -> Layout:
    """Returns the layout of `model` as one file. The model is not changed.

    Raises:
        WriteError: If an initializer has no data.
    """
    graph = model.graph
    # A view without the initializers: onnx_ir would copy each into a TensorProto.
    view = ir.GraphView(
        graph.inputs,
        graph.outputs,
        nodes=graph,
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    skeleton = ir.Model(
        view,  # type: ignore[arg-type]  # onnx_ir documents that a view may stand here
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=list(model.functions.values()),
        metadata_props=model.metadata_props,
    )
    proto = ir.serde.serialize_model(skeleton)
    graph_fields = proto.graph.SerializeToString()
    proto.ClearField("graph")
    return Layout(proto.SerializeToString(), graph_fields, _initializers(list(graph.initializers.values())))


def _initializers(values: Sequence[ir.Value]) -> tuple[Initializer, ...]:
    items = []
    for value in values:
        name, tensor = value.name or "", value.const_value
        if tensor is None:
            raise WriteError(f"initializer {name!r} has no data; set its const_value or make it an input of the graph")
        if tensor.dtype == ir.DataType.STRING:
            strings = ir.serde.serialize_tensor(tensor)
            strings.name = name
            items.append(Initializer(name, None, strings.SerializeToString()))
            continue
        head = onnx.TensorProto(dims=tensor.shape.numpy(), data_type=int(tensor.dtype), name=name)
        if tensor.doc_string:
            head.doc_string = tensor.doc_string
        for key in sorted(tensor.metadata_props):
            head.metadata_props.add(key=key, value=tensor.metadata_props[key])
        items.append(Initializer(name, tensor, head.SerializeToString()))
    return tuple(items)


def _reference(location: str, offset: int, length: int) -> bytes:
    """The fields of a ``TensorProto`` that say where its data stands."""
    proto = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        proto.external_data.add(key=key, value=value)
    return bytes(proto.SerializeToString())


def _length_prefix(field: int, length: int) -> bytes:
    """The tag of a length-delimited field and its length."""
    return _varint(field << 3 | 2) + _varint(length)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
