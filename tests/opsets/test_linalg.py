"""Matrix products."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand

A, B, V, W = torch.randn(3, 4), torch.randn(4, 5), torch.randn(4), torch.randn(4)
BA, BB = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
TRACE = ("trace",)


def einsum(equation, *args, opsets=(7, 12, NEWEST), **options):
    label = equation.replace(" ", "").replace(",", "_").replace("->", "_to_")
    return OpCase("aten::einsum", lambda *x: torch.einsum(equation, *x), args, opsets, label=label, captures=TRACE, **options)


class SwappedLinear(nn.Linear):
    """A product after a swap of axes, on which ONNX Runtime could crash."""

    def forward(self, x):
        return super().forward(x.transpose(0, 1))


CASES = [
    OpCase("aten::linear", nn.Linear(4, 5), (A,), (7, 9, 11, 13, NEWEST), {0: {0: "n"}}, [(torch.randn(1, 4),)], {"Gemm"}),
    OpCase("aten::linear", nn.Linear(4, 5, bias=False), (A,), (7, NEWEST), captures=TRACE, label="no-bias"),
    OpCase("aten::linear", nn.Linear(4, 5), (V,), (7, NEWEST), captures=TRACE, label="vector"),
    OpCase(
        "aten::linear", nn.Linear(4, 5), (BA,), (7, NEWEST), {0: {0: "n", 1: "t"}}, [(torch.randn(1, 6, 4),)], label="sequence"
    ),
    OpCase("aten::linear", lambda x, w: F.linear(x, w), (A, V), (7, NEWEST), captures=TRACE, label="weight-vector"),
    OpCase(
        "aten::linear",
        lambda x, w, b: F.linear(x, w, b),
        (A, B.t().contiguous(), V[0]),
        (7, NEWEST),
        captures=TRACE,
        label="scalar-bias",
    ),
    OpCase("aten::matmul", torch.matmul, (BA, B), (7, NEWEST), {0: {0: "n", 1: "t"}}, [(torch.randn(1, 6, 4), B)]),
    OpCase("aten::matmul", torch.matmul, (A, V), (7, NEWEST), captures=TRACE, label="matrix-vector"),
    OpCase("aten::matmul", torch.matmul, (V, BB), (7, NEWEST), captures=TRACE, label="vector-batch"),
    OpCase("aten::matmul", torch.matmul, (V, W), (7, NEWEST), captures=TRACE, label="vectors"),
    OpCase("aten::matmul", torch.matmul, (BA[:, None], BB), (7, NEWEST), captures=TRACE, label="broadcast"),
    OpCase("aten::matmul", torch.matmul, (A.long(), B.long()), (9, NEWEST), captures=TRACE, label="integers"),
    OpCase("aten::mm", torch.mm, (A, B), (7, NEWEST), captures=TRACE),
    OpCase("aten::bmm", torch.bmm, (BA, BB), (7, NEWEST), captures=TRACE),
    OpCase("aten::mv", torch.mv, (A, V), (7, NEWEST), captures=TRACE),
    OpCase("aten::mv", lambda x, v: torch.mv(x.T, v), (A.T, V), (7, 13, NEWEST), captures=TRACE, label="transposed"),
    OpCase("aten::matmul", lambda x, v: x.mT @ v, (BA.mT, V), (7, 13, NEWEST), {0: {0: "n"}}, label="transposed-vector"),
    OpCase("aten::dot", torch.dot, (V, W), (7, NEWEST), captures=TRACE),
    OpCase("aten::vdot", torch.vdot, (V, W), captures=TRACE),
    OpCase("aten::inner", torch.inner, (A, V), captures=TRACE),
    OpCase("aten::inner", torch.inner, (BA, torch.randn(2, 6, 4)), (7, NEWEST), captures=TRACE, label="batches"),
    OpCase("aten::outer", torch.outer, (V, W), (7, NEWEST), captures=TRACE),
    OpCase("aten::addmm", torch.addmm, (torch.randn(5), A, B), (7, 11, NEWEST), captures=TRACE),
    OpCase(
        "aten::addmm",
        lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2),
        (torch.randn(3, 1), A, B),
        (7, NEWEST),
        label="factors",
    ),
    OpCase(
        "aten::addmm",
        lambda c, a, b: torch.addmm(c, a, b, beta=0, alpha=2),
        (torch.full((5,), torch.nan), A, B),
        captures=TRACE,
        label="beta-0",
    ),
    OpCase(
        "aten::addmm",
        lambda c, a, b: torch.addmm(c, a, b, beta=3, alpha=2),
        (torch.arange(5), A.long(), B.long()),
        (9, NEWEST),
        label="integers",
    ),
    OpCase(
        "aten::baddbmm",
        lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2),
        (torch.randn(2, 3, 5), BA, BB),
        (7, NEWEST),
        captures=TRACE,
    ),
    OpCase(
        "aten::addbmm",
        lambda c, a, b: torch.addbmm(c, a, b, beta=0.5),
        (torch.randn(3, 5), BA, BB),
        (7, 13, NEWEST),
        captures=TRACE,
    ),
    OpCase("aten::addmv", lambda c, a, b: torch.addmv(c, a, b, alpha=2), (torch.randn(3), A, V), (7, NEWEST), captures=TRACE),
    OpCase("aten::addr", lambda c, a, b: torch.addr(c, a, b, beta=2), (torch.randn(4, 4), V, W), (7, NEWEST), captures=TRACE),
    OpCase(
        "aten::bilinear",
        nn.Bilinear(4, 5, 3),
        (BA, torch.randn(2, 3, 5)),
        (7, NEWEST),
        {0: {0: "n"}, 1: {0: "n"}},
        [(BA[:1], torch.randn(1, 3, 5))],
    ),
    einsum("ij,jk->ik", A, B, dynamic={0: {0: "n"}}, others=[(torch.randn(7, 4), B)]),
    einsum("bij,bjk", BA, BB),
    einsum("b i j , b k j -> k b i", BA, torch.randn(2, 6, 4)),
    einsum(
        "bhid,bhjd->bhij",
        torch.randn(2, 3, 4, 5),
        torch.randn(2, 3, 6, 5),
        dynamic={0: {0: "n"}, 1: {0: "n"}},
        others=[(torch.randn(1, 3, 4, 5), torch.randn(1, 3, 6, 5))],
    ),
    einsum("abcd,cdef->abef", torch.randn(2, 3, 4, 5), torch.randn(4, 5, 3, 2)),
    einsum("...ij,...jk->...ik", torch.randn(2, 3, 4, 5), torch.randn(3, 5, 2)),
    einsum("...i,...i", BA, BA),
    einsum("i,j->ij", V, W),
    einsum("ij->ji", A),
    einsum("ij->", A),
    einsum("ij,kj,kl->il", A, torch.randn(5, 4), torch.randn(5, 2)),
    einsum("Ba,aC", A, B),
    einsum("ii->i", torch.randn(4, 4), opsets=(12, NEWEST)),
    einsum("b...,b...->b", BA, BA, opsets=(8, 12, NEWEST), dynamic={0: {1: "n"}, 1: {1: "m"}}, others=[(BA[:, :2], BA[:, :1])]),
    OpCase(
        "aten::linear",
        SwappedLinear(4, 2, bias=False).half(),
        (BA.half(),),
        (9, NEWEST),
        {0: {0: "n"}},
        [(BA[:1].half(),)],
        label="swapped-halves",
    ),
    OpCase("aten::einsum", lambda a, b: torch.einsum("ij,jk->ik", a, b), (A, B), (7, 12), captures=("export",), label="exported"),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_names_the_opset_of_what_an_operator_is_built_on(exporter):
    case = OpCase("aten::linalg_matrix_power", lambda x: torch.linalg.matrix_power(x, -2), (torch.eye(2),))
    exporter.refuse(case, 7, reason="built on aten::linalg_inv, which is converted from opset 9 on")
