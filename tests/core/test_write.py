"""Writing: the bytes, the two files, and what is left when it fails."""

import errno
import io
import os
import stat
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
from onnx_exporter._write import check_target, write_model, write_model_to_stream
from onnx_exporter.errors import ArgumentError, WriteError

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


def make_model(weights, opset=17):
    """A chain of Add nodes over float weights; other weights are only stored."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["batch", 4]))
    current, nodes, initializers = x, [], []
    for name, weight in weights.items():
        tensor = ir.tensor_adapters.TorchTensor(weight) if isinstance(weight, torch.Tensor) else weight
        value = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=tensor.shape)
        initializers.append(value)
        if tensor.dtype == ir.DataType.FLOAT:
            nodes.append(ir.node("Add", [current, value]))
            current = nodes[-1].outputs[0]
            current.name, current.type = f"sum_{name}", ir.TensorType(ir.DataType.FLOAT)
            current.shape = ir.Shape([None] * max(2, len(tensor.shape)))
    graph = ir.Graph([x], [current], nodes=nodes, initializers=initializers, opset_imports={"": opset}, name="g")
    return ir.Model(graph, ir_version=10, producer_name="test", metadata_props={"b": "2", "a": "1"})


def small_model():
    return make_model({"w": torch.arange(4.0), "b": torch.ones(1, 4)})


def large_model():
    return make_model({"w": torch.randn(300, 4), "b": torch.ones(4), "v": torch.randn(300, 4)})


def raw_of(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


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


def test_a_stream_gets_the_same_bytes(tmp_path):
    model = large_model()
    write_model(lay_out(model), tmp_path / "m.onnx")
    stream = io.BytesIO()
    assert write_model_to_stream(lay_out(model), stream) == len(stream.getvalue())
    assert stream.getvalue() == (tmp_path / "m.onnx").read_bytes()


def test_a_stream_that_takes_little_at_a_time():
    class Slow(io.RawIOBase):
        def __init__(self):
            self.taken = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.taken += bytes(data[:7])
            return min(7, len(data))

    slow, whole = Slow(), io.BytesIO()
    model = small_model()
    write_model_to_stream(lay_out(model), slow)
    write_model_to_stream(lay_out(model), whole)
    assert bytes(slow.taken) == whole.getvalue()


def test_mode_and_links_are_those_of_a_plain_write(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    (tmp_path / "real").mkdir()
    link = tmp_path / "m.onnx"
    link.symlink_to(tmp_path / "real" / "target.onnx")
    write_model(lay_out(small_model()), link)
    assert link.is_symlink()
    assert names_in(tmp_path / "real") == ["target.onnx"]
    assert stat.S_IMODE(link.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs /dev/null")
def test_a_device_is_written_to_and_not_replaced():
    written = write_model(lay_out(large_model()), "/dev/null")
    assert written.size > 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(ArgumentError, match="not a regular file"):
        write_model(lay_out(large_model()), "/dev/null", external_data=True)


def test_wrong_paths(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path, message in [
        (tmp_path / "missing" / "m.onnx", "does not exist; create it"),
        (tmp_path, "is a folder; add a file name"),
        (str(tmp_path) + os.sep + "new" + os.sep, "is a folder"),
        (tmp_path / "file" / "m.onnx", "is not a folder"),
    ]:
        for function in (check_target, lambda path: write_model(lay_out(small_model()), path)):
            with pytest.raises(WriteError, match=message) as caught:
                function(path)
            assert str(Path(path)) in str(caught.value)
    assert names_in(tmp_path) == ["file"]


def test_no_permission(tmp_path, monkeypatch):
    # The suite may run as root, whom no mode stops; so the system's answer is played.
    def refuse(path, mode="r"):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(WriteError, match="no permission"):
        check_target(tmp_path / "m.onnx")


@pytest.fixture
def old_files(tmp_path):
    write_model(lay_out(large_model()), tmp_path / "m.onnx", external_data=True)
    return {name: (tmp_path / name).read_bytes() for name in ("m.onnx", "m.onnx.data")}


def assert_untouched(folder, old_files):
    assert {name: (folder / name).read_bytes() for name in names_in(folder)} == old_files


@pytest.mark.parametrize("external_data", [False, True])
@pytest.mark.skipif(sys.platform == "win32", reason="needs RLIMIT_FSIZE")
def test_a_full_disk_leaves_the_old_files(tmp_path, old_files, external_data):
    script = textwrap.dedent(
        """
        import resource, sys, torch
        from test_write import lay_out, make_model, write_model
        from onnx_exporter.errors import WriteError
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            write_model(lay_out(make_model({"w": torch.ones(100_000)})), sys.argv[1], external_data=sys.argv[2] == "True")
        except WriteError as error:
            print(error)
        """
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "m.onnx"), str(external_data)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
    )
    assert "no room for its 400," in result.stdout
    assert str(tmp_path / "m.onnx") in result.stdout
    assert_untouched(tmp_path, old_files)


@pytest.mark.parametrize("external_data", [False, True])
@pytest.mark.parametrize("weight", [torch.empty(500, device="meta"), torch.eye(30).to_sparse()], ids=["meta", "sparse"])
def test_an_unreadable_tensor_leaves_the_old_files(tmp_path, old_files, external_data, weight):
    with pytest.raises(WriteError, match=r"initializer 'bad'.*dense tensor with real data"):
        write_model(
            lay_out(make_model({"good": torch.ones(500), "bad": weight})), tmp_path / "m.onnx", external_data=external_data
        )
    assert_untouched(tmp_path, old_files)


def test_an_interrupt_leaves_the_old_files(tmp_path, old_files):
    def interrupt():
        raise KeyboardInterrupt

    lazy = ir.LazyTensor(interrupt, dtype=ir.DataType.FLOAT, shape=ir.Shape([500]))
    with pytest.raises(KeyboardInterrupt):
        write_model(lay_out(make_model({"good": torch.ones(500), "bad": lazy})), tmp_path / "m.onnx", external_data=True)
    assert_untouched(tmp_path, old_files)


@pytest.mark.parametrize("had_data", [False, True])
def test_a_failed_rename_puts_the_old_data_back(tmp_path, old_files, monkeypatch, had_data):
    if not had_data:
        (tmp_path / "m.onnx.data").unlink()
        del old_files["m.onnx.data"]
    replace = Path.replace

    def refuse_model(source, target):
        if target.name == "m.onnx":
            raise PermissionError(errno.EACCES, "in use", str(target))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", refuse_model)
    with pytest.raises(WriteError, match=r"m\.onnx"):
        write_model(lay_out(make_model({"new": torch.ones(700)})), tmp_path / "m.onnx", external_data=True)
    assert_untouched(tmp_path, old_files)


def test_a_folder_in_the_place_of_the_data_stays(tmp_path):
    (tmp_path / "m.onnx.data").mkdir()
    with pytest.raises(WriteError, match=r"m\.onnx\.data.*is a folder"):
        write_model(lay_out(large_model()), tmp_path / "m.onnx", external_data=True)
    assert names_in(tmp_path) == ["m.onnx.data"]


def test_old_data_that_the_new_model_does_not_use_is_left(tmp_path, old_files):
    write_model(lay_out(small_model()), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").read_bytes() == old_files["m.onnx.data"]
    assert onnx.load(tmp_path / "m.onnx").graph.initializer[0].name == "w"


def test_a_model_may_be_rewritten_over_the_data_it_is_read_from(tmp_path, old_files):
    write_model(lay_out(ir.load(tmp_path / "m.onnx")), tmp_path / "m.onnx", external_data=True)
    assert_untouched(tmp_path, old_files)


def test_an_initializer_without_data_is_named(tmp_path):
    model = small_model()
    model.graph.initializers["w"].const_value = None
    with pytest.raises(WriteError, match="'w' has no data"):
        write_model(lay_out(model), tmp_path / "m.onnx")


@pytest.mark.parametrize("ir_version", [9, 10])
def test_functions_and_their_types_are_written(tmp_path, ir_version):
    a = ir.Value(name="a", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([4]))
    node = ir.node("Relu", [a])
    node.outputs[0].name = "r"
    body = ir.Graph([a], node.outputs, nodes=[node], opset_imports={"": 17})
    model = small_model()
    model.ir_version = ir_version
    model.functions[("local", "f", "")] = ir.Function("local", "f", graph=body, attributes=[])
    model.graph.opset_imports["local"] = 1
    write_model(lay_out(model), tmp_path / "m.onnx")
    stored = onnx.load(tmp_path / "m.onnx")
    expected = ir.serde.serialize_model(model)
    assert stored.functions == expected.functions
    assert any(info.name == "local::f/a" for info in stored.graph.value_info) == (ir_version == 9)
