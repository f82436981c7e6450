"""Reductions of axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.linalg import vector_norm

from onnx_exporter.testing import NEWEST, OpCase, expand

TRACE = ("trace",)
INF = float("inf")
X = torch.tensor([[[1.0, -2.0, 3.0], [0.5, 0.0, -1.5]], [[4.0, 2.0, -3.0], [7.0, 0.25, 1.0]]])
INTS = torch.tensor([[3, -1, 2, 9], [0, 5, 5, -7]])
BOOL = torch.tensor([[True, True], [False, True]])
ZERO = torch.tensor(2.5)
BATCH = {0: {0: "batch", 2: "columns"}}
OTHER = [(torch.linspace(-2, 3, 20).reshape(1, 2, 10),)]
CHANGES = (7, 13, 18, 28)
EXTREMES = torch.tensor([[1000.0, 2000.0, -1e30], [float("inf"), 0.0, 5.0], [-float("inf")] * 3, [float("nan"), 1.0, 2.0]])

CASES = [
    OpCase("aten::sum", lambda x: x.sum(1), (X,), CHANGES, BATCH, OTHER, emits={"ReduceSum"}),
    OpCase("aten::sum", lambda x: x.sum(), (X,), CHANGES, label="all", captures=TRACE),
    OpCase("aten::sum", lambda x: x.sum((-1, 0), keepdim=True), (X,), CHANGES, label="keepdim", captures=TRACE),
    OpCase("aten::sum", lambda x: x.sum([]), (X,), (7, 28), label="no-axes", captures=TRACE),
    OpCase("aten::sum", lambda x: x.sum(1), (INTS.int(),), CHANGES, label="int32", captures=TRACE),
    OpCase("aten::sum", lambda x: x.sum(), (BOOL,), CHANGES, label="bool", captures=TRACE),
    OpCase("aten::sum", lambda x: x.sum(0, dtype=torch.float64), (X,), CHANGES, label="dtype", captures=TRACE),
    OpCase("aten::sum", lambda x: x.sum(-1, keepdim=True), (ZERO,), CHANGES, label="rank0", captures=TRACE),
    OpCase("aten::mean", lambda x: x.mean((1, 2)), (X,), CHANGES, BATCH, OTHER, emits={"ReduceMean"}),
    OpCase("aten::mean", lambda x: (x.mean(-1), x.mean(0, keepdim=True)), (ZERO,), CHANGES, label="rank0", captures=TRACE),
    OpCase("aten::var_mean", lambda x: torch.var_mean(x, 0, correction=0), (ZERO,), CHANGES, label="rank0", captures=TRACE),
    OpCase("aten::mean", lambda x: x.mean(-1, keepdim=True), (X,), CHANGES, label="keepdim", captures=TRACE),
    OpCase("aten::mean", lambda x: x.mean(), (X,), CHANGES, label="all", captures=TRACE),
    OpCase("aten::mean", lambda x: x.mean(0, dtype=torch.float32), (INTS,), CHANGES, label="dtype", captures=TRACE),
    OpCase("aten::prod", lambda x: x.prod(), (X + 0.5,), CHANGES, label="all", captures=TRACE),
    OpCase("aten::prod", lambda x: x.prod(1, keepdim=True), (INTS,), CHANGES, captures=TRACE),
    OpCase("aten::amax", lambda x: x.amax((0, -1)), (X,), CHANGES, BATCH, OTHER, captures=TRACE),
    OpCase("aten::amin", lambda x: x.amin(), (INTS,), CHANGES, captures=TRACE),
    OpCase("aten::aminmax", lambda x: torch.aminmax(x, dim=1), (X,), CHANGES, captures=TRACE),
    OpCase("aten::max", lambda x: x.max(), (X,), CHANGES, captures=TRACE),
    OpCase("aten::min", lambda x: x.min(), (INTS.short(),), CHANGES, label="int16", captures=TRACE),
    OpCase("aten::max", lambda x: x.max(), (BOOL,), CHANGES, label="bool", captures=TRACE),
    OpCase("aten::max", lambda x: tuple(x.max(-1)), (X,), CHANGES, BATCH, OTHER, label="dim"),
    OpCase("aten::min", lambda x: tuple(x.min(1, keepdim=True)), (INTS,), CHANGES, label="dim", captures=TRACE),
    OpCase("aten::argmax", lambda x: x.argmax(), (X,), (7, 13, 28), label="all", captures=TRACE),
    OpCase("aten::argmax", lambda x: x.argmax(keepdim=True), (X,), (7, 13, 28), label="all-keepdim", captures=TRACE),
    OpCase("aten::argmax", lambda x: x.argmax(1), (INTS,), (7, 12, 28), label="ties"),
    OpCase("aten::argmin", lambda x: x.argmin(-1, keepdim=True), (X,), (7, 13, 28), captures=TRACE),
    OpCase("aten::argmax", lambda x: x.argmax(0), (ZERO,), (7, 28), label="rank0", captures=TRACE),
    OpCase("aten::all", lambda x: x.all(), (BOOL,), CHANGES, label="all", captures=TRACE),
    OpCase("aten::all", lambda x: x.all(1), (X,), CHANGES, BATCH, OTHER, label="dim", captures=TRACE),
    OpCase("aten::any", lambda x: x.any((0, 1), keepdim=True), (BOOL,), CHANGES, label="dims"),
    OpCase("aten::any", lambda x: x.any(-1), (BOOL.byte(),), CHANGES, label="uint8", captures=TRACE),
    OpCase("aten::any", lambda x: (x.any(()), x.all((), keepdim=True)), (X,), CHANGES, BATCH, OTHER, label="no-axes"),
    OpCase("aten::all", lambda x: (x.all(()), x.any(())), (BOOL.byte(),), CHANGES, label="no-axes-uint8", captures=TRACE),
    OpCase("aten::any", lambda x: (x.any(()), x.all(())), (ZERO,), CHANGES, label="no-axes-rank0", captures=TRACE),
    *[
        OpCase(f"aten::{name}", lambda x, f=f: (f(x, dim=()), f(x, dim=(), keepdim=True)), (X,), CHANGES, BATCH, label="no-axes")
        for name, f in {"amax": torch.amax, "var": torch.var, "mean": torch.mean, "linalg_vector_norm": vector_norm}.items()
    ],
    OpCase("aten::count_nonzero", lambda x: torch.count_nonzero(x, 1), (X,), CHANGES, captures=TRACE),
    OpCase("aten::logsumexp", lambda x: torch.logsumexp(x * 50, 1), (X,), CHANGES, BATCH, OTHER, captures=TRACE),
    OpCase("aten::logsumexp", lambda x: torch.logsumexp(x, (0, 1), keepdim=True), (INTS,), CHANGES, label="int", captures=TRACE),
    OpCase("aten::logsumexp", lambda x: torch.logsumexp(x, -1), (EXTREMES,), CHANGES, label="extremes", captures=TRACE),
    OpCase("aten::var", lambda x: x.var(-1), (X,), CHANGES, BATCH, OTHER),
    OpCase("aten::var", lambda x: x.var(unbiased=False), (X,), CHANGES, label="biased", captures=TRACE),
    OpCase(
        "aten::var", lambda x: torch.var(x, (0, 2), correction=2, keepdim=True), (X,), CHANGES, label="correction", captures=TRACE
    ),
    OpCase("aten::std", lambda x: x.std(), (X,), CHANGES, BATCH, OTHER, captures=TRACE),
    OpCase("aten::std", lambda x: x.std(1, unbiased=False, keepdim=True), (X,), CHANGES, label="dim", captures=TRACE),
    OpCase("aten::var_mean", lambda x: torch.var_mean(x, (1, 2)), (X,), CHANGES, BATCH, OTHER, captures=TRACE),
    OpCase("aten::std_mean", lambda x: torch.std_mean(x, 1, keepdim=True), (X,), CHANGES, captures=TRACE),
    *(
        OpCase(
            "aten::linalg_vector_norm",
            lambda x, p=p: torch.linalg.vector_norm(x, p, dim=(0, 2)),
            (X,),
            CHANGES,
            label=str(p),
            captures=TRACE,
        )
        for p in (0, 1, 2, 3, -INF, INF)
    ),
    OpCase("aten::linalg_vector_norm", lambda x: torch.linalg.vector_norm(x, 2, -1, keepdim=True), (X,), CHANGES, BATCH, OTHER),
    OpCase("aten::linalg_vector_norm", lambda x: x.norm(), (X,), CHANGES, captures=TRACE, label="norm"),
    OpCase(
        "aten::linalg_vector_norm",
        lambda x: x.norm(p=1, dim=1, keepdim=True),
        (X,),
        CHANGES,
        label="norm-dim",
        captures=TRACE,
    ),
    OpCase("", lambda x: torch.nn.functional.normalize(x, dim=-1), (X,), (8, 28), BATCH, OTHER, label="normalize"),
    OpCase("aten::cumsum", lambda x: x.cumsum(-1), (X,), (11, 14, 28), BATCH, OTHER),
    OpCase("aten::cumsum", lambda x: x.cumsum(0), (BOOL,), (11, 28), label="bool", captures=TRACE),
    OpCase("aten::cumsum", lambda x: x.cumsum(1, dtype=torch.float32), (INTS,), (11, 28), label="dtype", captures=TRACE),
    OpCase("aten::cumprod", lambda x: x.cumprod(-1), (X,), (26, 28), BATCH, OTHER, captures=TRACE),
    OpCase("aten::cumprod", lambda x: x.cumprod(0), (INTS,), (26, 28), label="int", captures=TRACE),
    OpCase("aten::dist", lambda x: torch.dist(x, x.flip(0), 3), (X,), CHANGES, captures=TRACE),
    *[
        OpCase("aten::dist", lambda x, y: (torch.dist(x, y), torch.dist(y, x, 1)), (X[0], other), CHANGES, label=label)
        for label, other in {"int64": INTS[0, :3], "half": X[1].half(), "double": X[1, :1].double()}.items()
    ],
    OpCase(
        "aten::pairwise_distance", lambda x: torch.nn.functional.pairwise_distance(x, x.flip(0)), (X,), CHANGES, captures=TRACE
    ),
    OpCase(
        "aten::cosine_similarity", lambda x: torch.cosine_similarity(x, x[0] + 1, dim=1), (X,), (8, 13, 18, 28), captures=TRACE
    ),
    OpCase(
        "aten::cosine_similarity",
        lambda x: torch.cosine_similarity(x, x.flip(0), dim=-1),
        (X,),
        (8, 28),
        BATCH,
        OTHER,
        label="dynamic",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def of_selected(function: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    return lambda x: function(x[x[:, 0] > 0])


SOME, NONE = torch.randn(5, 4), -torch.rand(5, 4)
NOTHING = [
    OpCase("aten::mean", of_selected(lambda x: x.mean(0)), (SOME,), (9, 11, 13, NEWEST), others=[(NONE,)]),
    OpCase(
        "aten::mean", of_selected(lambda x: x.mean(0, keepdim=True)), (SOME,), (9, 13, NEWEST), others=[(NONE,)], label="keepdim"
    ),
    OpCase("aten::mean", of_selected(lambda x: (x * 2)[:, 1:].mean()), (SOME,), (9, 13, NEWEST), others=[(NONE,)], label="all"),
    OpCase("aten::mean", of_selected(lambda x: x.half().mean(0)), (SOME,), (13, NEWEST), others=[(NONE,)], label="half"),
    OpCase("aten::var_mean", of_selected(lambda x: torch.var_mean(x, 0)), (SOME,), (9, 13, NEWEST), others=[(NONE,)]),
    OpCase("aten::var", of_selected(lambda x: x.var(0, correction=0)), (SOME,), (9, 13, NEWEST), others=[(NONE,)]),
    OpCase("aten::mse_loss", of_selected(lambda x: nn.functional.mse_loss(x, x * 2)), (SOME,), (9, 13, NEWEST), others=[(NONE,)]),
]


@pytest.mark.parametrize(("case", "opset", "capture"), expand(NOTHING)[0], ids=expand(NOTHING)[1])
def test_the_mean_of_what_data_have_not_selected_is_no_number(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_a_mean_over_an_axis_that_data_do_not_decide_is_one_node(exporter):
    case = OpCase("aten::mean", lambda x: x.mean((2, 3)), (torch.randn(2, 3, 4, 5),), dynamic={0: {0: "n", 2: "h", 3: "w"}})
    (node,) = exporter.check(case, NEWEST).model.graph
    assert node.op_type == "ReduceMean"
