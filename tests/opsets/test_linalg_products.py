"""Products, distances, diagonals and linear equations against eager PyTorch."""

import math

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
X, Y = torch.randn(4, 3), torch.randn(5, 3)
MORE = (torch.randn(2, 3), torch.randn(7, 3))
SQUARE = torch.randn(2, 4, 4)
ALL = {0: {0: "rows", 1: "columns"}}
POINTS = {0: {0: "n"}, 1: {0: "m"}}
VECTOR = torch.tensor([0.5, -2.0, 3.0, 1.0])
TRACE = ("trace",)
POWERS = (0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


CASES = [
    row(
        "aten::cdist",
        lambda a, b: tuple(torch.cdist(a, b, p) for p in POWERS),
        X,
        Y,
        dynamic=POINTS,
        others=[MORE],
        opsets=(9, 13, NEWEST),
        label="cdist",
        captures=("trace", "export"),
    ),
    row(
        "aten::cdist",
        lambda a, b: (torch.cdist(a, b), torch.cdist(a, b[0], compute_mode="use_mm_for_euclid_dist")),
        torch.randn(2, 30, 8),
        torch.randn(1, 6, 8),
        opsets=(9, NEWEST),
        label="by_products",
        atol=1e-4,
    ),
    row(
        "aten::pdist",
        lambda a: tuple(torch.pdist(a, p) for p in POWERS),
        dynamic={0: {0: "n"}},
        others=[(torch.randn(6, 3),)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::cross",
        lambda a, b: (torch.cross(a, b[:4], dim=1), torch.linalg.cross(a, b[:1]), torch.cross(a.t(), b[:4].t(), dim=0)),
        X,
        Y,
        opsets=(7, NEWEST),
    ),
    row(
        "aten::kron",
        lambda a, b: (torch.kron(a, b), torch.kron(a[0], b), torch.kron(a, b.to(torch.float64))),
        X,
        Y,
        dynamic=POINTS,
        others=[MORE],
        opsets=(7, NEWEST),
    ),
    row(
        "aten::tensordot",
        lambda a, b: (torch.tensordot(a, b, dims=([1], [1])), torch.tensordot(a, b, dims=0), torch.tensordot(a, a, 2)),
        X,
        Y,
        dynamic=POINTS,
        others=[MORE],
        opsets=(7, NEWEST),
    ),
    row(
        "aten::linalg_multi_dot",
        lambda a, b: (torch.linalg.multi_dot([a[0], b.t(), b, a.t()]), torch.chain_matmul(a, b.t(), b)),
        X,
        Y,
        dynamic=POINTS,
        others=[MORE],
        opsets=(7, NEWEST),
    ),
    row("aten::linalg_vecdot", lambda a: torch.linalg.vecdot(a, a[:1], dim=0), opsets=(7, NEWEST)),
    row(
        "aten::linalg_vander",
        lambda v: (torch.linalg.vander(v), torch.vander(v, 3), torch.vander(v, 5, increasing=True)),
        VECTOR,
        opsets=(7, NEWEST),
    ),
    row(
        "aten::linalg_matrix_power",
        lambda a: tuple(torch.linalg.matrix_power(a, n) for n in (0, 1, 2, 5, -2)),
        SQUARE,
        opsets=(9, NEWEST),
        rtol=1e-3,
        atol=1e-3,
    ),
    row(
        "aten::cov",
        lambda a: (torch.cov(a), torch.cov(a[0], correction=0), torch.corrcoef(a)),
        dynamic=ALL,
        others=[(torch.randn(2, 9),)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::cov",
        lambda a, f, w: (torch.cov(a, fweights=f), torch.cov(a, aweights=w), torch.cov(a, fweights=f, aweights=w)),
        torch.randn(2, 4),
        torch.tensor([1, 2, 1, 3]),
        torch.rand(4),
        opsets=(9, NEWEST),
        label="weights",
    ),
    row(
        "aten::cov",
        lambda a, f, w: (torch.cov(a.float(), fweights=f), torch.cov(a, fweights=f, aweights=w)),
        torch.randn(2, 4, dtype=torch.float64),
        torch.tensor([1, 2, 1, 3]),
        torch.rand(4),
        opsets=(13, NEWEST),
        label="weights_of_other_types",
        rtol=1e-6,  # the weights are float32
    ),
    row(
        "aten::diag_embed",
        lambda a: (torch.diag_embed(a), torch.diag_embed(a, 1, 0, 1), torch.diag_embed(a, -2, 1, -1), torch.diagflat(a, 1)),
        dynamic=ALL,
        others=[(torch.randn(2, 5),)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::diag",
        lambda a: (torch.diag(a), torch.diag(a, -1), torch.diag(a[0], 2), torch.trace(a), torch.linalg.diagonal(a, offset=1)),
        dynamic=ALL,
        others=[(torch.randn(5, 2),)],
        opsets=(9, NEWEST),
    ),
    row("aten::block_diag", lambda a, b: torch.block_diag(a, b, a[0], a[0, 0]), X, Y, opsets=(7, NEWEST)),
    row(
        "aten::cartesian_prod",
        lambda a, b: (torch.cartesian_prod(a[0], b[:, 0], a[:, 1]), torch.cartesian_prod(a[0])),
        X,
        Y,
        dynamic=POINTS,
        others=[MORE],
        opsets=(8, NEWEST),
        label="cartesian_prod",
    ),
    row(
        "aten::combinations",
        lambda v: (torch.combinations(v), torch.combinations(v, 3), torch.combinations(v, 2, True), torch.combinations(v, 1)),
        VECTOR,
        dynamic={0: {0: "n"}},
        others=[(torch.arange(6.0),)],
        opsets=(9, NEWEST),
        label="combinations",
    ),
    row(
        "aten::einsum",
        lambda a: (torch.einsum("bii->b", a), torch.einsum("bii->bi", a), torch.einsum("bij,bji,kk->b", a, a, a[0])),
        SQUARE,
        opsets=(8, 12, NEWEST),
        label="einsum_diagonals",
    ),
    row(
        "aten::einsum",
        lambda a: (torch.einsum("ij->i", a), torch.einsum("ij,kj->ik", a, a), torch.einsum("ii->i", a)),
        torch.arange(9, dtype=torch.int32).reshape(3, 3),
        opsets=(9, 12, NEWEST),
        label="int32",
    ),
    row(
        "aten::addmm",
        lambda a: (a @ a, torch.addmm(a, a, a, beta=2)),
        torch.full((3, 3), 99, dtype=torch.uint8),
        opsets=(9, NEWEST),
    ),
    row(
        "aten::trapezoid",
        lambda a: (torch.trapezoid(a), torch.trapezoid(a, a.abs(), dim=0), torch.trapz(a, dx=0.5), torch.trapezoid(a, a[0])),
        dynamic=ALL,
        others=[(torch.randn(6, 7),)],
        opsets=(7, NEWEST),
    ),
    *[
        row(
            "aten::trapezoid",
            lambda a: (torch.trapezoid(a), torch.trapezoid(a, dx=2, dim=0), torch.trapezoid(a, torch.tensor([1, 4, 5, 9]))),
            a,
            opsets=(7, 9, 11, NEWEST),
            label=label,
        )
        for a, label in (
            (torch.tensor([[100, 120, -50, 127], [-128, 1, 2, 3]], dtype=torch.int8), "int8"),
            (torch.tensor([[10**10, 3, -7, 5], [-1, 1, 2, 3]]), "int64"),
            (torch.tensor([[math.inf, 3.0, -7.0, 5.0], [-1.0, math.inf, 2.0, -math.inf]]), "infinite"),
        )
    ],
    row(
        "aten::cumulative_trapezoid",
        lambda a: (torch.cumulative_trapezoid(a, dim=0), torch.cumulative_trapezoid(a, a[0])),
        opsets=(11, NEWEST),
    ),
    row(
        "aten::gradient",
        lambda a, p: (
            *torch.gradient(a),
            *torch.gradient(a, spacing=0.5, dim=1, edge_order=2),
            *torch.gradient(a, spacing=(p,), dim=1),
            *torch.gradient(a, spacing=(p,), dim=1, edge_order=2),
        ),
        torch.randn(4, 5),
        torch.tensor([0.0, 1.0, 1.5, 4.0, 4.5]),
        opsets=(7, NEWEST),
    ),
    row(
        "aten::linalg_det",
        lambda a: (torch.linalg.det(a), torch.det(a[0]), torch.linalg.slogdet(a), torch.logdet(a)),
        torch.stack([*SQUARE, torch.ones(4, 4)]),
        dynamic={0: {0: "batch"}},
        others=[(torch.randn(7, 4, 4),)],
        opsets=(9, 13, NEWEST),
        label="determinants",
        captures=("trace", "export"),
    ),
    row(
        "aten::linalg_inv_ex",
        lambda a: torch.linalg.inv_ex(a)[:],
        torch.zeros(2, 0, 0),
        dynamic={0: {0: "n"}},
        others=[(torch.zeros(3, 0, 0),)],
        opsets=(9, NEWEST),
        label="none",
    ),
    row(
        "aten::linalg_inv",
        lambda a: (torch.linalg.inv(a), a[0].inverse(), torch.linalg.inv_ex(a)),
        SQUARE,
        dynamic={0: {0: "batch"}},
        others=[(torch.randn(5, 4, 4) + 3 * torch.eye(4),)],
        opsets=(9, NEWEST),
        rtol=1e-3,
        atol=1e-3,
    ),
    row(
        "aten::linalg_solve",
        lambda a, b: (
            torch.linalg.solve(a, b),
            torch.linalg.solve(a, b[..., 0]),
            torch.linalg.solve(a[0], b),
            torch.linalg.solve(a, b.mT, left=False),
        ),
        SQUARE,
        torch.randn(2, 4, 3),
        opsets=(9, NEWEST),
        rtol=1e-3,
        atol=1e-3,
    ),
    row(
        "aten::linalg_solve_triangular",
        lambda a, b: tuple(
            torch.linalg.solve_triangular(a, b if left else b.mT, upper=upper, left=left, unitriangular=unit)
            for upper in (True, False)
            for left in (True, False)
            for unit in (True, False)
        ),
        SQUARE + 3 * torch.eye(4),
        torch.randn(2, 4, 3),
        opsets=(9, NEWEST),
        rtol=1e-3,
        atol=1e-3,
    ),
    row(
        "aten::linalg_tensorsolve",
        lambda a, b: (torch.linalg.tensorsolve(a, b), torch.linalg.tensorinv(a, ind=2)),
        torch.randn(2, 3, 3, 2),
        torch.randn(2, 3),
        opsets=(9, NEWEST),
        rtol=1e-3,
        atol=1e-3,
    ),
    row(
        "aten::view_copy",
        lambda a: (
            torch.view_copy(a, (3, 4)),
            torch.as_strided_copy(a, (2, 2), (3, 1), 1),
            torch.expand_copy(a[:, :1], (4, 6)),
            torch.permute_copy(a, (1, 0)),
            torch.t_copy(a),
            torch.transpose_copy(a, 0, 1),
            torch.squeeze_copy(a[:, None], 1),
            torch.unsqueeze_copy(a, 1),
            torch.select_copy(a, 0, 1),
            torch.slice_copy(a, 0, 1, 3),
            torch.narrow_copy(a, 1, 1, 2),
            torch.diagonal_copy(a),
            torch.unfold_copy(a, 0, 2, 1),
            torch.unbind_copy(a)[1],
            torch.split_copy(a, 2)[1],
            torch.split_with_sizes_copy(a, (1, 3))[1],
        ),
        opsets=(8, NEWEST),
        label="copies_of_views",
    ),
    row(
        "aten::_chunk_cat",
        lambda a, b: torch._chunk_cat([a[:, None], b[:4, None]], 1, 2),
        X,
        Y,
        opsets=(7, NEWEST),
    ),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_factorisations_need_a_fixed_size(exporter):
    case = row("aten::linalg_inv", torch.linalg.inv, SQUARE[0], dynamic={0: {0: "n", 1: "n"}})
    exporter.refuse(case, 17, reason="a matrix whose size is not fixed")


def test_factorisations_of_large_matrices(exporter):
    exporter.refuse(row("aten::linalg_det", torch.det, torch.randn(65, 65)), 17, reason="larger than 64")
