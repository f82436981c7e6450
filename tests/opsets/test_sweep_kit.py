"""The sweep itself: what it leaves out, and that it finds what it is there to find."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import helper, numpy_helper

from onnx_exporter import export
from onnx_exporter.testing._fresh import fresh_values
from onnx_exporter.testing._opinfo import LEFT_OUT, name_of, operators, samples, select
from onnx_exporter.testing._sweep import Row, sweep_operator
from onnx_exporter.testing._sweep_method import Ours, Outcome, Written
from onnx_exporter.testing._sweep_pool import Task, sweep
from onnx_exporter.testing._ties import same_up_to_ties


class Method:
    """Writes the file with a function."""

    def __init__(self, write: Callable[[Any, Path], None]) -> None:
        self._write = write

    def prepare(self, sample: Any, inputs: Any, opset: int) -> Any:
        return sample

    def write(self, prepared: Any, opset: int, path: Path) -> Written:
        self._write(prepared, path)
        return Written()


def bake(sample: Any, path: Path) -> None:
    """A file that returns the example's results, whatever it is given."""
    results = sample.eager(sample.tensors)
    inputs = [_info(f"input_{index}", tensor) for index, tensor in enumerate(sample.tensors)]
    outputs = [_info(f"output_{index}", tensor) for index, tensor in enumerate(results)]
    nodes = [
        helper.make_node("Constant", [], [item.name], value=numpy_helper.from_array(tensor.numpy()))
        for item, tensor in zip(outputs, results, strict=True)
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "baked", inputs, outputs), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    onnx.save(model, path)


def _info(name: str, tensor: torch.Tensor) -> onnx.ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(tensor.numpy().dtype)
    return helper.make_tensor_value_info(name, dtype, list(tensor.shape))


def rows_of(name: str, method: Any = None, **options: Any) -> list[Row]:
    return list(sweep_operator(name, options.pop("dtype", torch.float32), (18,), method=method, **options))


def test_what_is_left_out() -> None:
    from torch.testing._internal.common_methods_invocations import op_db

    assert len(LEFT_OUT) == 46
    assert LEFT_OUT.keys() <= {name_of(info) for info in op_db}
    assert len(operators()) == len(op_db) - len(LEFT_OUT)
    assert all(LEFT_OUT.values())


@pytest.mark.parametrize("name", ["add", "bitwise_and", "istft", "nn.functional.batch_norm/without_cudnn", "resize_"])
def test_every_operator_has_a_type_to_be_sampled_in(name: str) -> None:
    assert list(samples(name, torch.float32, 6))


def test_samples_that_draw_random_numbers_are_passed_over() -> None:
    found = [sample.index for sample in samples("nn.functional.scaled_dot_product_attention", torch.float32, 6)]
    assert found == [0, 1, 4, 5]  # the others have dropout


def test_samples_are_the_same_each_time() -> None:
    first, second = (list(samples("addmm", torch.float32, 3)) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.tensors, two.tensors, strict=True))


def test_tensors_in_lists_are_inputs() -> None:
    sample = next(iter(samples("cat", torch.float32, 1)))
    assert len(sample.tensors) > 1
    assert str(sample).startswith("cat([f32[")


def test_select() -> None:
    assert sorted(select(["nn.functional.avg_pool*"])) == [f"nn.functional.avg_pool{rank}d" for rank in (1, 2, 3)]
    assert select() == list(operators())


@pytest.mark.parametrize(
    "name", ["add", "sort", "gather", "index_put", "nn.functional.conv2d", "topk", "linalg.cholesky", "cumsum"]
)
def test_a_baked_result_is_found(name: str) -> None:
    """The second run has other values, so that a file which only knows the example's is wrong."""
    rows = [row for row in rows_of(name, Method(bake), count=12) if not re.search(r"\[0|,0[,\]]", row.call)]
    assert rows
    assert {(row.status, row.stage) for row in rows} == {("wrong", "fresh values")}


def test_fresh_values_stay_in_the_domain() -> None:
    matrix = torch.eye(3) + 0.1
    expected = [torch.linalg.cholesky(matrix)]
    found = fresh_values([matrix], expected, lambda tensors: [torch.linalg.cholesky(tensors[0])])
    assert found is not None
    (fresh,), (result,) = found
    assert not torch.equal(fresh, matrix)
    assert bool(result.isfinite().all())


def test_fresh_boundaries_stay_sorted() -> None:
    boundaries = torch.tensor([1.0, 2.0, 3.0, 5.0])
    found = fresh_values([boundaries], [boundaries], lambda tensors: [tensors[0]])
    assert found is not None
    assert bool((found[0][0].diff() >= 0).all())


def test_wrong_sizes_are_found() -> None:
    """With dynamic axes the second run has other sizes."""

    def fixed(sample: Any, path: Path) -> None:
        export(sample.module(), sample.tensors, path, input_names=["input_0"])

    rows = rows_of("ravel", Method(fixed), kinds=("dynamic",))
    assert rows
    assert {(row.status, row.stage) for row in rows} == {("error", "other size")}


def test_in_place_variants() -> None:
    rows = rows_of("mul", kinds=("inplace",))
    assert rows
    assert {row.status for row in rows} == {"pass"}
    assert rows[0].call.startswith("mul_(")


def test_complex_inputs_are_refused() -> None:
    (row, *_) = rows_of("istft")
    assert (row.status, row.stage, row.detail) == ("refused", "input", "complex input")


def test_outcomes_of_a_method_are_rows() -> None:
    def refuse(sample: Any, path: Path) -> None:
        raise Outcome("refused", "convert", "because", ["aten::add"])

    rows = rows_of("add", Method(refuse), count=2)
    assert [(row.status, row.detail, row.missing) for row in rows] == [("refused", "because", ("aten::add",))] * 2


def test_a_slow_sample_is_an_error() -> None:
    rows = rows_of("add", Method(lambda sample, path: time.sleep(30)), count=1, time_limit=0.2)
    assert [(row.status, row.detail) for row in rows] == [("error", "more than 0 s")]


def test_a_crash_costs_one_sample() -> None:
    ours = Ours()

    class Crashing:
        def prepare(self, sample: Any, inputs: Any, opset: int) -> Any:
            return sample.index, ours.prepare(sample, inputs, opset)

        def write(self, prepared: Any, opset: int, path: Path) -> Written:
            index, graph = prepared
            if index == 1:
                os.abort()
            return ours.write(graph, opset, path)

    ((_, rows),) = sweep([Task("add", torch.float32, (18,), 3)], method=Crashing)
    assert [row.status for row in rows] == ["pass", "error", "pass"]
    assert rows[1].detail == "the process died of signal 6"


def test_what_computes_the_same_is_run_once() -> None:
    """Add changed in opsets 13 and 14: between these and after them only its conversion is new."""
    rows = list(sweep_operator("add", torch.float32, (7, 11, 13, 14, 18), count=1))
    assert [(row.opset, row.same_as) for row in rows] == [(7, 0), (11, 7), (13, 0), (14, 0), (18, 14)]
    assert len({(row.status, row.runtime, row.runs) for row in rows}) == 1


def test_half_results_may_be_better_than_pytorchs() -> None:
    """PyTorch rounds the positions in an image to 16 bits on the way."""
    assert {row.status for row in rows_of("grid_sampler_2d", dtype=torch.float16, count=2)} == {"pass"}
    assert {row.status for row in rows_of("mul", Method(bake), dtype=torch.float16, count=2)} == {"wrong"}


def test_a_wrong_file_is_wrong_at_every_opset() -> None:
    class Same(Method):
        def write(self, prepared: Any, opset: int, path: Path) -> Written:
            super().write(prepared, opset, path)
            return Written(fingerprint=b"same")

    rows = list(sweep_operator("add", torch.float32, (17, 18), method=Same(bake), count=1))
    assert [(row.status, row.same_as) for row in rows] == [("wrong", 0), ("wrong", 0)]


def test_ties() -> None:
    values = torch.tensor([[3.0, 1.0, 3.0], [2.0, 2.0, 0.0]])
    expected = values.sort(dim=1, stable=True).indices
    other = torch.tensor([[1, 2, 0], [2, 1, 0]])
    assert not torch.equal(expected, other)
    assert same_up_to_ties(values, expected, other)
    assert not same_up_to_ties(values, expected, torch.tensor([[1, 2, 2], [2, 1, 0]]))  # one position twice
    assert not same_up_to_ties(values, expected, torch.tensor([[0, 1, 2], [2, 1, 0]]))  # another element
