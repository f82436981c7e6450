"""Writing: streams, paths, and what is left when it fails."""

import errno
import io
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest
import torch

from onnx_exporter._protobuf import lay_out
from onnx_exporter._write import check_target, write_model, write_model_to_stream
from onnx_exporter.errors import ArgumentError, WriteError
from write_models import large_model, make_model, names_in, small_model


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
