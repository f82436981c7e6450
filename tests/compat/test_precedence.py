"""Which registered function is used: fresh processes, several opsets, threads, names that end in an underscore."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.onnx
from torch import nn
from torch.onnx import symbolic_helper

import onnx_exporter
from clients import exported, op_types, registered
from onnx_exporter import OpTable, symbolic_registry
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._symbolics import REGISTERED

X = torch.randn(3, 4)
GLOBALS = _torch_onnx.find_globals()


def named(name: str) -> Any:
    return lambda g, x, *rest: g.op(f"here::{name}", x)


@pytest.fixture(autouse=True)
def _nothing_stays_registered() -> Iterator[None]:
    yield
    for name, opset, _ in list(REGISTERED):
        onnx_exporter.unregister_custom_op_symbolic(name, opset)


def used(model: Any, *opsets: int, **options: Any) -> dict[int, str]:
    """The first node at each opset."""
    return {opset: op_types(exported(model, X, opset_version=opset, **options))[0] for opset in opsets}


# torch.onnx's rule, and ours


def test_the_same_function_loses_there_and_wins_here() -> None:
    """For opset 1 against a built-in function of opset 14."""
    with registered({"aten::tril": named("Theirs")}, 1):
        found = used(torch.tril, 9, 13, 14, 18)
        assert (found[9], found[13]) == ("here::Theirs",) * 2 and "here::Theirs" not in (found[14], found[18])
    with registered({"aten::tril": named("Ours")}, 1, onnx_exporter):
        assert set(used(torch.tril, 7, 9, 13, 14, 18, 28).values()) == {"here::Ours"}
        with registered({"aten::tril": named("Theirs")}, 20):
            assert set(used(torch.tril, 9, 20, 28).values()) == {"here::Ours"}, "ours go first, whatever their opsets"


def test_several_opsets_and_the_one_that_is_taken_back() -> None:
    for opset in (14, 16, 19):
        torch.onnx.register_custom_op_symbolic("aten::tril", named(f"From{opset}"), opset)
    try:
        assert used(torch.tril, 14, 15, 16, 18, 19, 28) == {
            14: "here::From14",
            15: "here::From14",
            16: "here::From16",
            18: "here::From16",
            19: "here::From19",
            28: "here::From19",
        }
        torch.onnx.unregister_custom_op_symbolic("aten::tril", 16)
        assert used(torch.tril, 16, 19) == {16: "here::From14", 19: "here::From19"}
        torch.onnx.register_custom_op_symbolic("aten::tril", named("Again"), 16)
        assert used(torch.tril, 16) == {16: "here::Again"}
    finally:
        for opset in (14, 16, 19):
            torch.onnx.unregister_custom_op_symbolic("aten::tril", opset)
    assert "here" not in used(torch.tril, 16)[16]


def test_an_operator_that_nobody_else_has() -> None:
    """Every opset from its own on; below it torch.onnx's rule finds none, and ours neither."""
    for owner in (torch.onnx, onnx_exporter):
        with registered({"aten::linalg_qr": lambda g, x, mode: g.op("here::QR", x, outputs=2)}, 12, owner):
            assert used(torch.linalg.qr, 12, 28) == {12: "here::QR", 28: "here::QR"}
            with pytest.raises(onnx_exporter.UnsupportedOpError, match="linalg_qr"):
                exported(torch.linalg.qr, X, opset_version=11)


def test_tables_of_the_call_and_preferred_plugins() -> None:
    table = OpTable(opset=9)
    table.op("aten::tril")(_table_tril)
    with registered({"aten::tril": named("Theirs")}, 18), registered({"aten::tril": named("Ours")}, 9, onnx_exporter):
        assert used(torch.tril, 18, plugins=[table]) == {18: "here::Table"}
        assert used(torch.tril, 18) == {18: "here::Ours"}


def _table_tril(g: onnx_exporter.GraphContext, self: onnx_exporter.Value, diagonal: int = 0) -> onnx_exporter.Value:
    return g.op("here::Table", self)


def test_the_module_of_old_registers_with_us() -> None:
    symbolic_registry.register_op("tril", named("Old"), "", 1)
    assert used(torch.tril, 18) == {18: "here::Old"}
    symbolic_registry.register_op("tril", named("Newer"), "", 18)
    assert used(torch.tril, 17, 18) == {17: "here::Old", 18: "here::Newer"}
    symbolic_registry.unregister_op("tril", "", 18)
    assert used(torch.tril, 18) == {18: "here::Old"}


# Names


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_writes_are_found_by_the_name_without_underscore(capture: str) -> None:
    with registered({"aten::relu": named("Relu")}, 9):
        assert op_types(exported(lambda x: (x + 1).relu_(), X, opset_version=9, capture=capture))[-1] == "here::Relu"


@pytest.mark.parametrize("name", ["aten::__and_", "aten::__and__"])
@pytest.mark.parametrize("owner", [torch.onnx, onnx_exporter])
def test_a_name_with_underscores_at_both_ends(name: str, owner: Any) -> None:
    """torch.onnx takes one underscore from the end of any name, and registers its own function for what is left."""
    with registered({name: lambda g, x, y: g.op("here::And", x, y)}, 18, owner):
        assert op_types(exported(lambda x, y: x & y, X > 0, X > 1, opset_version=18)) == ["here::And"]


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("owner", [torch.onnx, onnx_exporter])
def test_the_name_that_torch_onnx_has_for_chunk(owner: Any, capture: str) -> None:
    """There ``aten::chunk`` is ``prim::ConstantChunk``, whose numbers are keywords."""

    def chunk(g: Any, x: Any, chunks: int, dim: int) -> Any:
        size = symbolic_helper._get_tensor_dim_size(x, dim)
        return g.op("Split", x, g.op("Constant", value_t=torch.tensor([size // chunks] * chunks)), axis_i=dim, outputs=chunks)

    seen: list[Any] = []

    def noting(g: Any, x: Any, **kwargs: Any) -> Any:
        seen.append(kwargs)
        return chunk(g, x, **kwargs)

    if capture == "export" and torch.__version__ < "2.6":
        pytest.skip("torch.export of this PyTorch records it as a split")
    with registered({"prim::ConstantChunk": noting}, 13, owner):
        exported(lambda x: x.chunk(2, 1), X, opset_version=13, capture=capture, verify=True)
    assert seen == [{"chunks": 2, "dim": 1}]


# Processes


FRESH = """
import torch, {first}, {second}
{register}
{imports}
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tril(x)
def op_types():
    return [node.op_type for node in onnx_exporter.export(Model(), torch.ones(2, 2), opset_version=13).model.graph]
assert op_types() == ["Mine"], op_types()
torch.onnx.unregister_custom_op_symbolic("aten::tril", 1)
assert "Mine" not in op_types()
"""
REGISTER = "torch.onnx.register_custom_op_symbolic('aten::tril', lambda g, x, d: g.op('here::Mine', x), 1)"


@pytest.mark.parametrize(
    ("first", "second", "before", "after"),
    [
        ("torch.onnx", "sys", REGISTER, "import onnx_exporter"),
        ("torch.onnx", "onnx_exporter", REGISTER, ""),
        ("onnx_exporter", "torch.onnx", "", REGISTER),
        ("onnx_exporter", "sys", "op = onnx_exporter.export(torch.nn.ReLU(), torch.ones(2))", f"import torch.onnx; {REGISTER}"),
    ],
    ids=["before we are imported", "after torch.onnx", "after us", "torch.onnx imported after an export"],
)
def test_in_a_fresh_process(first: str, second: str, before: str, after: str, tmp_path: Path) -> None:
    code = FRESH.format(first=first, second=second, register=before, imports=after)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_an_export_does_not_import_torch_onnx_for_nothing(tmp_path: Path) -> None:
    code = """
import sys, torch, onnx_exporter
loaded = "torch.onnx._internal.torchscript_exporter.symbolic_opset11" in sys.modules
onnx_exporter.export(torch.nn.ReLU(), torch.ones(2))
assert not loaded and "torch.onnx._internal.torchscript_exporter.symbolic_opset11" not in sys.modules
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


# Threads


class Asks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        told = GLOBALS.export_onnx_opset_version, g.opset, torch.onnx.is_in_onnx_export(), GLOBALS.training_mode.name
        return g.op("here::Asks", x, opset_i=told[0], target_i=told[1], running_i=told[2], mode_s=told[3])


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        opset = GLOBALS.export_onnx_opset_version
        assert torch.onnx.is_in_onnx_export() and GLOBALS.in_onnx_export
        return Asks.apply(x) + opset


def test_each_thread_sees_its_own_export() -> None:
    """In forward, in symbolic functions and afterwards, while others export for other opsets and in other modes."""
    before = GLOBALS.export_onnx_opset_version, GLOBALS.in_onnx_export, GLOBALS.training_mode

    def work(index: int) -> bool:
        opset = 9 + index % 10
        mode = onnx_exporter.TrainingMode.TRAINING if index % 2 else onnx_exporter.TrainingMode.EVAL
        result = onnx_exporter.export(Model(), X, opset_version=opset, training=mode)
        (node,) = [node for node in result.model.graph if node.op_type == "Asks"]
        told = {name: attribute.value for name, attribute in node.attributes.items()}
        (added,) = [node.inputs[1].const_value.numpy() for node in result.model.graph if node.op_type == "Add"]
        return told == {"opset": opset, "target": opset, "running": 1, "mode": mode.name} and float(added) == opset

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))
    assert (GLOBALS.export_onnx_opset_version, GLOBALS.in_onnx_export, GLOBALS.training_mode) == before
    assert not torch.onnx.is_in_onnx_export()


def test_a_failing_export_in_one_thread_leaves_the_others_alone() -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ZeroDivisionError

    def work(index: int) -> Any:
        model = Fails() if index % 3 == 0 else Model()
        try:
            return onnx_exporter.export(model, X, opset_version=9 + index).model.opset_imports[""]
        except onnx_exporter.CaptureError:
            return torch.onnx.is_in_onnx_export()

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, range(9))) == [False, 10, 11, False, 13, 14, False, 16, 17]


def test_registering_while_others_export() -> None:
    """An export uses what was registered when it began, whoever registers and unregisters meanwhile."""
    stop, faults = threading.Event(), []

    def register(owner: Any, first: int) -> None:
        try:
            opset = first
            while not stop.is_set():
                owner.register_custom_op_symbolic(f"busy::op{opset}", named("Busy"), opset)
                owner.register_custom_op_symbolic("aten::tril", named("Mine"), 18)
                owner.unregister_custom_op_symbolic(f"busy::op{opset}", opset)
                opset = first + (opset - first + 1) % 11
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=register, args=(owner, 9)) for owner in (torch.onnx, onnx_exporter)]
    for owner in (torch.onnx, onnx_exporter):
        owner.register_custom_op_symbolic("aten::tril", named("Mine"), 18)
    for thread in threads:
        thread.start()
    try:
        found = [used(torch.tril, 18) for _ in range(20)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        torch.onnx.unregister_custom_op_symbolic("aten::tril", 18)
    assert faults == [] and found == [{18: "here::Mine"}] * 20


def test_a_symbolic_function_may_export() -> None:
    """An export within an export is one of its own, and leaves the outer one as it was."""
    inner: list[Any] = []

    def tril(g: Any, x: Any, diagonal: Any) -> Any:
        result = onnx_exporter.export(nn.ReLU(), torch.ones(2), opset_version=11)
        inner.append((result.model.opset_imports[""], GLOBALS.export_onnx_opset_version, g.opset))
        return g.op("here::Mine", x)

    with registered({"aten::tril": tril}, 18):
        assert used(torch.tril, 18) == {18: "here::Mine"}
    assert inner == [(11, 18, 18)] and not torch.onnx.is_in_onnx_export()


@pytest.mark.parametrize("register", [torch.onnx.register_custom_op_symbolic, onnx_exporter.register_custom_op_symbolic])
def test_what_is_built_on_batch_norm_gives_a_client_all_arguments(register: Any) -> None:
    seen: list[Any] = []

    def batch_norm(g: Any, x: Any, w: Any, b: Any, m: Any, v: Any, training: Any, momentum: Any, eps: Any, cudnn: Any) -> Any:
        seen.append(symbolic_helper._get_const(cudnn, "i", "cudnn_enabled"))
        return g.op("BatchNormalization", x, w, b, m, v, epsilon_f=symbolic_helper._get_const(eps, "f", "eps"))

    register("aten::batch_norm", batch_norm, 9)
    try:
        model = nn.InstanceNorm2d(3, affine=True, track_running_stats=True).eval()
        onnx_exporter.export(model, (torch.randn(1, 3, 4, 4),), None, opset_version=13, verify=True)
    finally:
        if register is torch.onnx.register_custom_op_symbolic:
            torch.onnx.unregister_custom_op_symbolic("aten::batch_norm", 9)
    assert len(seen) == 1


def test_group_norm_is_not_built_on_the_instance_norm_of_a_client() -> None:
    def instance_norm(g: Any, x: Any, w: Any, b: Any, m: Any, v: Any, stats: Any, momentum: Any, eps: Any, cudnn: Any) -> Any:
        return g.op("client::InstanceNorm", x, w, b)

    onnx_exporter.register_custom_op_symbolic("aten::instance_norm", instance_norm, 9)
    onnx_exporter.export(nn.GroupNorm(3, 3), (torch.randn(1, 3, 4, 4),), None, opset_version=13, verify=True)
