"""Losses, with weights, ignored targets and all reductions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import NEWEST, OpCase, expand

TRACE = ("trace",)
OPSETS = (9, NEWEST)
X, Y = torch.randn(4, 5), torch.randn(4, 5)
P, Q = torch.rand(4, 5), torch.rand(4, 5)
SIGNS = torch.tensor([1.0, -1.0, -1.0, 1.0])
CLASSES = torch.tensor([4, 0, 2, 2])
IGNORING = torch.tensor([4, -100, 2, -100])
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0])
IMAGE, PIXELS = torch.randn(2, 5, 3, 4), torch.randint(5, (2, 3, 4))
BATCH = {0: {0: "batch"}, 1: {0: "batch"}}
OTHER = [(torch.randn(7, 5), torch.tensor([1, 1, -100, 0, 3, 4, 2]))]


def each_reduction(op, loss, *args, label="", opsets=OPSETS):
    """A row for each way to reduce."""
    rows = []
    for reduction in ("none", "mean", "sum"):

        def call(*values, reduction=reduction):
            return loss(*values, reduction=reduction)

        rows.append(OpCase(op, call, args, opsets, captures=TRACE, label=f"{label}{'-' if label else ''}{reduction}"))
    return rows


CASES = [
    *each_reduction("aten::l1_loss", F.l1_loss, X, Y, opsets=(7, NEWEST)),
    *each_reduction("aten::mse_loss", F.mse_loss, X, Y, opsets=(7, NEWEST)),
    *each_reduction("aten::smooth_l1_loss", lambda x, y, reduction: F.smooth_l1_loss(x, y, reduction=reduction, beta=0.7), X, Y),
    *each_reduction("aten::huber_loss", lambda x, y, reduction: F.huber_loss(x, y, reduction=reduction, delta=0.7), X, Y),
    *each_reduction("aten::binary_cross_entropy", F.binary_cross_entropy, P, Q),
    *each_reduction("aten::binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits, X, Q, opsets=(7, NEWEST)),
    *each_reduction("aten::kl_div", F.kl_div, X, Q),
    *each_reduction("aten::soft_margin_loss", F.soft_margin_loss, X, Y.sign()),
    *each_reduction("aten::poisson_nll_loss", lambda x, y, reduction: F.poisson_nll_loss(x, y, reduction=reduction), X, Q),
    *each_reduction("aten::hinge_embedding_loss", F.hinge_embedding_loss, X, Y.sign()),
    *each_reduction("aten::margin_ranking_loss", F.margin_ranking_loss, X[:, 0], Y[:, 0], SIGNS, opsets=(7, NEWEST)),
    *each_reduction("aten::cosine_embedding_loss", F.cosine_embedding_loss, X, Y, SIGNS),
    *each_reduction("aten::triplet_margin_loss", F.triplet_margin_loss, X, Y, P, opsets=(7, 13, NEWEST)),
    *each_reduction("aten::multi_margin_loss", F.multi_margin_loss, X, CLASSES),
    *each_reduction("aten::multilabel_margin_loss", F.multilabel_margin_loss, X, torch.tensor([[3, 0, -1, 1, 2]] * 4)),
    *each_reduction("aten::nll_loss_nd", F.nll_loss, X, IGNORING, label="ignore_index"),
    *each_reduction("aten::cross_entropy_loss", F.cross_entropy, X, IGNORING, label="ignore_index"),
    *each_reduction(
        "aten::cross_entropy_loss",
        lambda x, y, w, reduction: F.cross_entropy(x, y, w, reduction=reduction, label_smoothing=0.2),
        X,
        IGNORING,
        WEIGHT,
        label="smoothing-weight",
    ),
    *each_reduction("aten::cross_entropy_loss", F.cross_entropy, X, Q, WEIGHT, label="probabilities"),
    *each_reduction("aten::cross_entropy_loss", F.cross_entropy, IMAGE, PIXELS, WEIGHT, label="pixels"),
    OpCase("aten::l1_loss", lambda x, y: F.smooth_l1_loss(x, y, beta=0.0), (X, Y), captures=TRACE, label="smooth"),
    OpCase("aten::cross_entropy_loss", F.cross_entropy, (X, IGNORING), OPSETS, BATCH, OTHER, label="dynamic"),
    OpCase("aten::cross_entropy_loss", F.cross_entropy, (X[0], CLASSES[0]), OPSETS, captures=TRACE, label="unbatched"),
    OpCase(
        "aten::cross_entropy_loss",
        lambda x, y: F.cross_entropy(x, y, ignore_index=2, label_smoothing=0.1),
        (X, CLASSES),
        captures=TRACE,
        label="other-index",
    ),
    OpCase("aten::nll_loss_nd", F.nll_loss, (X, CLASSES, WEIGHT), OPSETS, captures=TRACE, label="weight"),
    OpCase("aten::nll_loss_nd", F.nll_loss, (IMAGE, PIXELS), OPSETS, captures=TRACE, label="pixels"),
    OpCase(
        "aten::nll_loss_forward",
        lambda x, y: torch.ops.aten.nll_loss_forward(x, y, None, 1, -100),
        (X, IGNORING),
        captures=TRACE,
    ),
    OpCase(
        "aten::binary_cross_entropy_with_logits",
        lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, Q, pos_weight=w),
        (X * 50, Q, WEIGHT),
        (7, NEWEST),
        label="pos_weight",
    ),
    OpCase(
        "aten::binary_cross_entropy",
        lambda x, y: F.binary_cross_entropy(x, y, Q),
        (P.round(), Q),
        OPSETS,
        captures=TRACE,
        label="log-of-0",
    ),
    OpCase("aten::kl_div", lambda x, y: F.kl_div(x, y, log_target=True), (X, Y), OPSETS, captures=TRACE, label="log_target"),
    OpCase("aten::kl_div", lambda x, y: F.kl_div(x, y, reduction="batchmean"), (X, P.round()), captures=TRACE, label="batchmean"),
    OpCase(
        "aten::poisson_nll_loss",
        lambda x, y: F.poisson_nll_loss(x, y, log_input=False, full=True),
        (P, Q * 4),
        OPSETS,
        captures=TRACE,
        label="full",
    ),
    OpCase(
        "aten::multi_margin_loss",
        lambda x, y, w: F.multi_margin_loss(x, y, p=2, margin=0.5, weight=w),
        (X, CLASSES, WEIGHT),
        OPSETS,
        captures=TRACE,
        label="squared-weight",
    ),
    OpCase("aten::multi_margin_loss", F.multi_margin_loss, (X[0], CLASSES[0]), captures=TRACE, label="unbatched"),
    OpCase(
        "aten::triplet_margin_loss",
        lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=0.3, p=1, swap=True),
        (X, Y, P),
        (8, NEWEST),
        captures=TRACE,
        label="swap",
    ),
    OpCase(
        "aten::multilabel_margin_loss_forward",
        lambda x, y: torch.ops.aten.multilabel_margin_loss_forward(x, y, 1),
        (X[0], torch.tensor([3, 0, -1, 1, 2])),
        captures=TRACE,
    ),
    OpCase("", lambda x, y: F.gaussian_nll_loss(x, y, P + 1, full=True), (X, Y), captures=TRACE, label="gaussian_nll_loss"),
    OpCase(
        "aten::log_sigmoid",
        F.multilabel_soft_margin_loss,
        (X, Q.round()),
        (7, NEWEST),
        captures=TRACE,
        label="multilabel_soft_margin_loss",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_refuses_ctc(exporter):
    lengths = torch.tensor([3, 2])
    case = OpCase(
        "", lambda x: F.ctc_loss(x, torch.ones(2, 2, dtype=torch.int64), lengths, torch.tensor([2, 1])), (torch.rand(3, 2, 4),)
    )
    exporter.refuse(case, NEWEST, reason="alignments")
