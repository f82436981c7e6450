"""torch.export captures and the process around them: shared examples, threads, places, the log, and odd results."""

from __future__ import annotations

import dataclasses
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from export_models import capture, nodes
from onnx_exporter._frontends._fx_capture import _LOGGERS
from onnx_exporter.errors import CaptureError
from source_tools import run_captured


class Function(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.forward = function


def test_one_tensor_for_two_parameters_is_two_inputs() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            return self.attention(query, key, value)[0]

    model = Attention().eval()
    x = torch.randn(2, 3, 4)
    graph = capture(model, (x, x, x))
    others = [torch.randn(2, 3, 4) for _ in range(3)]
    with torch.no_grad():
        torch.testing.assert_close(run_captured(graph, others), [model(*others)])


def test_the_identity_of_examples_is_no_part_of_the_model() -> None:
    class Same(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x * 2 if x is y else x + y

    x = torch.ones(2)
    graph = capture(Same(), (x, x))
    assert torch.equal(run_captured(graph, [x, 3 * x])[0], 4 * x)


def helper(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x)  # in the helper


@pytest.mark.parametrize("is_module", [True, False], ids=["module", "function"])
def test_the_place_is_the_innermost_line_of_the_user(is_module: bool) -> None:
    class Outer(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return helper(x) + 1  # in forward

    (model, outer) = (Outer(), "# in forward") if is_module else (Function(lambda x: helper(x) + 1), "lambda x: helper")
    graph = capture(model, (torch.randn(2),))
    lines = Path(__file__).read_text().splitlines()
    for name, expected in (("aten::tanh", "# in the helper"), ("aten::add.Tensor", outer)):
        location = nodes(graph, name)[0].location
        assert location.file == __file__
        assert expected in lines[location.line - 1]


def test_threads_may_capture_at_once() -> None:
    def one(width: int) -> bool:
        model = nn.Sequential(nn.Linear(width, 3), nn.ReLU())
        x = torch.randn(4, width)
        graph = capture(model, (x,), input={0: "batch"})
        return torch.allclose(run_captured(graph, [x])[0], model(x))

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(one, range(2, 8)))


@dataclasses.dataclass
class Result:
    x: torch.Tensor


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: Result(x * 2), r"forward returns a .*Result, which torch.export does not know"),
        (lambda x: {x * 2}, "forward returns a set, which torch.export does not know"),
        (lambda x: None, "forward returns None, which holds no tensor"),
        (lambda x: {"name": "text"}, "forward returns {'name': 'text'}, which holds no tensor"),
    ],
    ids=["dataclass", "set", "none", "text"],
)
def test_a_result_that_cannot_be_captured_is_named(function: Any, message: str) -> None:
    with pytest.raises(CaptureError, match=message):
        capture(Function(function), (torch.randn(2),))


def test_the_log_of_what_is_handled_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    before = {name: logging.getLogger(name).disabled for name in _LOGGERS}
    with pytest.raises(CaptureError):
        capture(Function(lambda x: x * float(x.shape[0])), (torch.randn(4, 3),), x={0: "n"})
    # At one, PyTorch fails first; the capture at another size follows.
    capture(Function(lambda x: x * 2 if x.shape[0] == 1 else x), (torch.randn(1, 3),), x={0: "n"})
    assert capfd.readouterr() == ("", "")
    assert {name: logging.getLogger(name).disabled for name in _LOGGERS} == before
