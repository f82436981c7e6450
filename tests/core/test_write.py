"""Writing: the bytes, and the two files."""

import io
import os
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
import torch

from onnx_exporter import _tensor_data, _write
from onnx_exporter._protobuf import MAX_MESSAGE, lay_out
from onnx_exporter._write import write_model, write_model_to_stream
from onnx_exporter.errors import ArgumentError
from write_models import large_model, make_model, names_in, raw_of, small_model

TORCH_DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


@pytest.mark.parametrize("external_data", [False, True])
def test_every_reader_finds_the_same_model(tmp_path, external_data):
    weights = {"w": torch.randn(500, 4), "b": torch.randn(4)}
    written = write_model(lay_out(make_model(weights)), tmp_path / "m.onnx", external_data=external_data)

    onnx.checker.check_model(written.path, full_check=True)
    x = np.zeros((500, 4), np.float32)
    (result,) = onnxruntime.InferenceSession(written.path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_array_equal(result, (weights["w"] + weights["b"]).numpy())
    for stored in onnx.load(written.path).graph.initializer:
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(stored), weights[stored.name].numpy())
    loaded = ir.load(written.path)
    assert list(loaded.graph.initializers) == ["w", "b"]
    np.testing.assert_array_equal(loaded.graph.initializers["w"].const_value.numpy(), weights["w"].numpy())
    assert loaded.metadata_props == {"a": "1", "b": "2"}
    assert written.size == Path(written.path).stat().st_size
    assert (written.external_path is not None) == external_data


def test_the_file_parses_to_what_onnx_ir_would_have_serialised(tmp_path):
    model = small_model()
    write_model(lay_out(model), tmp_path / "m.onnx")
    expected = ir.serde.serialize_model(model)
    actual = onnx.load(tmp_path / "m.onnx")
    for proto in (expected, actual):
        del proto.graph.value_info[:]  # the types of weights, which their tensors state already
    assert actual == expected


@pytest.mark.parametrize("dtype", TORCH_DTYPES, ids=str)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "scalar", "empty"])
def test_every_dtype_and_layout(tmp_path, dtype, layout):
    base = torch.arange(-6, 6).to(torch.complex128 if dtype.is_complex else torch.float64).reshape(3, 4)
    tensor = base.abs().to(dtype) if not dtype.is_signed else base.to(dtype)
    tensor = {"contiguous": tensor, "transposed": tensor.t(), "scalar": tensor[0, 1], "empty": tensor[:0]}[layout]
    write_model(lay_out(make_model({"w": tensor})), tmp_path / "m.onnx")
    (stored,) = onnx.load(tmp_path / "m.onnx").graph.initializer
    assert stored.raw_data == raw_of(tensor)
    assert tuple(stored.dims) == tuple(tensor.shape)
    assert stored.data_type == ir.tensor_adapters.from_torch_dtype(dtype)


@pytest.mark.parametrize("external_data", [False, True])
def test_conjugated_negated_strided_parameters_and_views(tmp_path, external_data):
    rows = torch.nn.Parameter(torch.randn(256, 8))
    complex_rows = torch.randn(256, 4, dtype=torch.complex64)
    weights = {
        "parameter": rows,
        "slice": rows[:, ::2],
        "offset": rows[3:],
        "conj": complex_rows.conj(),
        "negative": complex_rows.conj().imag,
    }
    model = make_model(weights)
    model.graph.outputs[:] = [model.graph.inputs[0]]
    written = write_model(lay_out(model), tmp_path / "m.onnx", external_data=external_data)
    for stored in onnx.load(written.path).graph.initializer:
        expected = weights[stored.name].detach().resolve_conj().resolve_neg().numpy()
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(stored), expected)


def test_tensors_that_are_not_torch(tmp_path):
    four_bit = np.arange(5).astype(ir.DataType.INT4.numpy())
    tensors = {
        "numpy": ir.tensor(np.arange(6.0, dtype=np.float32).reshape(2, 3)[:, ::2]),
        "four_bit": ir.Tensor(four_bit, dtype=ir.DataType.INT4),
        "strings": ir.StringTensor(np.array([b"a", b"bc"], dtype=object), shape=ir.Shape([2])),
        "lazy": ir.LazyTensor(lambda: ir.tensor(np.ones(2, np.float64)), dtype=ir.DataType.DOUBLE, shape=ir.Shape([2])),
    }
    model = make_model(tensors)
    model.graph.outputs[:] = [model.graph.inputs[0]]
    write_model(lay_out(model), tmp_path / "m.onnx", external_data=True)
    stored = {item.name: onnx.numpy_helper.to_array(item) for item in onnx.load(tmp_path / "m.onnx").graph.initializer}
    np.testing.assert_array_equal(stored["numpy"], [[0, 2], [3, 5]])
    np.testing.assert_array_equal(stored["four_bit"].astype(int), [0, 1, 2, 3, 4])
    assert list(stored["strings"]) in ([b"a", b"bc"], ["a", "bc"])
    np.testing.assert_array_equal(stored["lazy"], [1, 1])


def test_bytes_are_little_endian_on_any_host(monkeypatch):
    big_endian = np.arange(3).astype(">i4")
    assert _tensor_data._numpy_bytes(big_endian).tobytes() == np.arange(3).astype("<i4").tobytes()
    monkeypatch.setattr(_tensor_data, "_LITTLE_ENDIAN_HOST", False)
    tensor = ir.tensor_adapters.TorchTensor(torch.tensor([1 + 2j]))
    assert _tensor_data.tensor_data(tensor).tobytes() == np.array([1, 2], ">f4").tobytes()


@pytest.mark.parametrize("external_data", [False, True])
def test_the_same_model_gives_the_same_bytes(tmp_path, external_data):
    torch.manual_seed(0)
    first, second = (tmp_path / name for name in ("1", "2"))
    for folder in (first, second):
        folder.mkdir()
        torch.manual_seed(0)
        write_model(lay_out(large_model()), folder / "m.onnx", external_data=external_data)
    assert names_in(first) == names_in(second)
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names_in(first))


def test_writing_leaves_the_model_as_it_was(tmp_path):
    model = large_model()
    before = [(value, value.const_value, value.const_value.name) for value in model.graph.initializers.values()]
    nodes = list(model.graph)
    write_model(lay_out(model), tmp_path / "m.onnx", external_data=True)
    assert before == [(value, value.const_value, value.const_value.name) for value in model.graph.initializers.values()]
    assert nodes == list(model.graph)
    assert all(node.graph is model.graph for node in nodes)


def test_external_data_is_aligned_and_small_tensors_stay_inside(tmp_path):
    sizes = {"a": 257, "small": 4, "b": 300, "page": 20000}
    model = make_model({name: torch.randn(size) for name, size in sizes.items()})
    written = write_model(lay_out(model), tmp_path / "m.onnx", external_data=True)
    stored = onnx.load(written.path, load_external_data=False).graph.initializer
    where = {item.name: {entry.key: entry.value for entry in item.external_data} for item in stored}
    assert where["small"] == {}
    assert where["a"] == {"location": "m.onnx.data", "offset": "0", "length": "1028"}
    assert where["b"]["offset"] == "1088"
    assert where["page"]["offset"] == "4096"
    assert written.external_path == str(tmp_path / "m.onnx.data")
    assert written.data_size == Path(written.external_path).stat().st_size == 4096 + 80000
    assert written.size < 1000


def test_no_data_file_for_a_model_without_large_tensors(tmp_path):
    written = write_model(lay_out(small_model()), tmp_path / "m.onnx", external_data=True)
    assert written.external_path is None
    assert names_in(tmp_path) == ["m.onnx"]


def huge_model():
    """3 GB of weights that take no memory: one element seen many times."""
    return make_model({"huge": torch.zeros(1).expand(750_000_000), "small": torch.ones(4)})


def test_past_two_gigabytes_the_weights_go_outside():
    layout = _write._choose(lay_out(huge_model()), "m.onnx.data", None)
    assert layout.data_size == 3_000_000_000
    assert layout.size < 1000


def test_just_under_two_gigabytes_they_stay_inside():
    layout = lay_out(make_model({"w": torch.zeros(1).expand(536_870_800)}))
    assert MAX_MESSAGE - 1100 < layout.size <= MAX_MESSAGE
    assert _write._choose(layout, "m.onnx.data", None).data_size == 0


def test_one_file_past_two_gigabytes_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="external_data"):
        write_model(lay_out(huge_model()), tmp_path / "m.onnx", external_data=False)
    with pytest.raises(ArgumentError, match="path of a file"):
        write_model_to_stream(lay_out(huge_model()), io.BytesIO())
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("external_data", [False, True])
def test_writing_takes_no_memory_for_the_weights(tmp_path, external_data):
    weights = {f"w{index}": torch.zeros(1024, 1024) for index in range(16)}  # 64 MB
    script = textwrap.dedent(
        """
        import resource, sys, torch
        from test_write import lay_out, make_model, write_model
        weights = {f"w{index}": torch.ones(1024, 1024) for index in range(32)}
        model = make_model(weights)
        write_model(lay_out(make_model({"w": torch.ones(600)})), sys.argv[1] + ".warm", external_data=True)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        write_model(lay_out(model), sys.argv[1], external_data=sys.argv[2] == "True")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "p.onnx"), str(external_data)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert int(result.stdout) * 1024 < 0.1 * 32 * 4 * 1024**2

    model = make_model(weights)
    tracemalloc.start()
    try:
        write_model(lay_out(model), tmp_path / "m.onnx", external_data=external_data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * 1024**2
