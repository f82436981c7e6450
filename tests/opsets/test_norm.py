"""Normalisation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.randn(3, 6, 5, 7)
NHW = {0: {0: "n", 2: "h", 3: "w"}}
OTHERS = [(torch.randn(2, 6, 4, 9),)]
TRACE = ("trace",)


def trained(module):
    """Gives a module statistics and weights that are not those it starts with."""
    with torch.no_grad():
        for value in module.state_dict().values():
            if value.is_floating_point():
                value.uniform_(0.5, 2.0)
    return module


class InTraining(nn.Module):
    """Batch norm as in training mode, which a module in eval mode does not show."""

    def forward(self, x):
        return F.batch_norm(x, torch.ones(6), torch.ones(6), torch.ones(6), torch.ones(6), training=True)


ODD_ROWS = torch.tensor([[1.0, float("nan")], [3.0, 4.0], [float("inf"), 1.0], [0.1, 0.1]])


def renormalized(index):
    """An embedding that scales the rows it reads down to a norm."""
    weight = torch.arange(15.0).reshape(5, 3) / 7
    return F.embedding(index, weight.clone(), max_norm=1.0)


CASES = [
    OpCase(
        "aten::batch_norm",
        trained(nn.BatchNorm2d(6)),
        (X,),
        (7, 9, 14, 15, NEWEST),
        NHW,
        OTHERS,
        {"BatchNormalization"},
        captures=TRACE,
    ),
    OpCase("aten::batch_norm", trained(nn.BatchNorm2d(6, affine=False)), (X,), (7, NEWEST), NHW, OTHERS, label="no-affine"),
    OpCase(
        "aten::batch_norm", nn.BatchNorm2d(6, track_running_stats=False), (X,), (7, NEWEST), NHW, OTHERS, label="no-statistics"
    ),
    OpCase("aten::batch_norm", InTraining(), (X,), (7, NEWEST), captures=TRACE, label="training"),
    OpCase("aten::batch_norm", trained(nn.BatchNorm1d(6)), (X[:, :, 0, 0],), (7, NEWEST), captures=TRACE, label="vectors"),
    OpCase("aten::batch_norm", trained(nn.BatchNorm1d(6)), (X[:, :, 0],), (7, NEWEST), captures=TRACE, label="1d"),
    OpCase("aten::batch_norm", trained(nn.BatchNorm3d(6)), (X[:, :, None],), (7, NEWEST), captures=TRACE, label="3d"),
    OpCase(
        "aten::native_batch_norm",
        lambda x: torch.native_batch_norm(x, None, torch.ones(6), torch.ones(6), torch.ones(6), False, 0.1, 1e-5)[0],
        (X,),
        captures=TRACE,
    ),
    OpCase("aten::instance_norm", nn.InstanceNorm2d(6), (X,), (7, NEWEST), NHW, OTHERS, {"InstanceNormalization"}),
    OpCase("aten::instance_norm", trained(nn.InstanceNorm2d(6, affine=True)), (X,), (7, NEWEST), captures=TRACE, label="affine"),
    OpCase(
        "aten::instance_norm",
        trained(nn.InstanceNorm2d(6, track_running_stats=True)),
        (X,),
        (7, NEWEST),
        captures=TRACE,
        label="running",
    ),
    OpCase("aten::instance_norm", nn.InstanceNorm1d(6), (X[0, :, 0],), (7, NEWEST), captures=TRACE, label="unbatched"),
    OpCase(
        "aten::instance_norm", F.instance_norm, (X,), (7, NEWEST), {0: {1: "c"}}, [(X[:, :4],)], captures=TRACE, label="channels"
    ),
    OpCase("aten::group_norm", trained(nn.GroupNorm(3, 6)), (X,), (7, 13, 21, NEWEST), NHW, OTHERS),
    OpCase("aten::group_norm", trained(nn.GroupNorm(3, 6)), (X + 300,), (7, 13, 21, NEWEST), captures=TRACE, label="far-from-0"),
    OpCase(
        "aten::group_norm",
        lambda x: nn.functional.group_norm(x[x[:, 0, 0, 0] > 0], 3),
        (X,),
        (9, 13, NEWEST),
        others=[(-X.abs(),)],
        captures=TRACE,
        label="of-none",
    ),
    OpCase("aten::group_norm", nn.GroupNorm(2, 6, affine=False), (X[:, :, 0, 0],), (7, NEWEST), captures=TRACE, label="vectors"),
    OpCase(
        "aten::native_group_norm",
        lambda x: torch.native_group_norm(x, torch.ones(6), None, x.shape[0], 6, 35, 3, 1e-5),
        (X,),
        captures=TRACE,
    ),
    OpCase(
        "aten::layer_norm",
        trained(nn.LayerNorm(7)),
        (X,),
        (7, 17, NEWEST),
        NHW | {0: {0: "n", 2: "h"}},
        [(torch.randn(2, 6, 4, 7),)],
    ),
    OpCase(
        "aten::layer_norm", trained(nn.LayerNorm((5, 7), eps=1e-3)), (X,), (7, 13, 17, NEWEST), captures=TRACE, label="two-axes"
    ),
    OpCase(
        "aten::layer_norm", nn.LayerNorm((6, 5, 7), elementwise_affine=False), (X,), (7, 17), captures=TRACE, label="no-affine"
    ),
    OpCase("aten::layer_norm", trained(nn.LayerNorm(7, bias=False)), (X,), (7, 17), captures=TRACE, label="no-bias"),
    OpCase(
        "aten::layer_norm",
        lambda x: F.layer_norm(x, x.shape[-2:]),
        (X,),
        (9, 17),
        NHW,
        OTHERS,
        captures=TRACE,
        label="sizes-of-input",
    ),
    OpCase("aten::layer_norm", nn.LayerNorm(7).half(), (X.half(),), (7, 17), captures=TRACE, label="half", rtol=1e-2, atol=1e-2),
    OpCase("aten::native_layer_norm", lambda x: torch.native_layer_norm(x, [7], None, None, 1e-5), (X,), (7, 17), captures=TRACE),
    OpCase(
        "aten::rms_norm",
        trained(nn.RMSNorm(7, eps=1e-3)),
        (X,),
        (7, 23, NEWEST),
        NHW | {0: {0: "n", 2: "h"}},
        [(torch.randn(2, 6, 4, 7),)],
    ),
    OpCase("aten::rms_norm", nn.RMSNorm((5, 7)), (X * 1e-3,), (7, NEWEST), captures=TRACE, label="default-eps"),
    OpCase(
        "aten::rms_norm",
        nn.RMSNorm(7).half(),
        (X.half() * 1e-3,),
        (7, NEWEST),
        captures=TRACE,
        label="half",
        rtol=1e-2,
        atol=1e-2,
    ),
    OpCase("aten::avg_pool3d", nn.LocalResponseNorm(3), (X,), (7, NEWEST), captures=TRACE, label="local_response_norm"),
    OpCase("aten::_weight_norm", nn.utils.parametrizations.weight_norm(nn.Linear(7, 4)), (X,), (7, NEWEST), captures=TRACE),
    OpCase(
        "aten::_weight_norm", lambda v, g: torch._weight_norm(v, g, 1), (X[0], torch.randn(1, 5, 1)), captures=TRACE, label="dim"
    ),
    OpCase("aten::instance_norm", nn.InstanceNorm2d(6).double(), (X.double(),), (7, NEWEST), captures=TRACE, label="double"),
    OpCase("aten::group_norm", nn.GroupNorm(3, 6).double(), (X.double(),), (NEWEST,), captures=TRACE, label="double"),
    OpCase("aten::layer_norm", nn.LayerNorm(7).double(), (X.double(),), (7, NEWEST), captures=TRACE, label="double"),
    *[
        OpCase(
            f"aten::{name}",
            lambda x, name=name, flags=flags: getattr(torch.ops.aten, name)(
                x, torch.full((6,), 2.0), None, torch.zeros(6), torch.ones(6), *flags, 0.3, 1e-5
            ),
            (X,),
            (7, 18),
            captures=TRACE,
            label=f"functional-{flags}",
        )
        for name, flags in (
            ("_native_batch_norm_legit_functional", (True,)),
            ("_native_batch_norm_legit_functional", (False,)),
            ("_batch_norm_with_update_functional", ()),
        )
    ],
    OpCase(
        "aten::batch_norm",
        lambda x, y: (F.batch_norm(x, x, x), y + 1),  # an empty result alone shows nothing
        (torch.zeros(0), torch.ones(2)),
        (7, NEWEST),
        captures=TRACE,
        label="empty",
    ),
    OpCase("aten::renorm", lambda x: torch.renorm(x, 2, 1, 5.0), (X,), (7, 13, 18), NHW, OTHERS),
    OpCase("aten::renorm", lambda x: torch.renorm(x, 0.5, -1, 900.0), (X,), (7, 18), captures=TRACE, label="half"),
    OpCase("aten::renorm", lambda x: torch.renorm(x, 2, 0, 1.0), (ODD_ROWS,), (9, 18), captures=TRACE, label="odd"),
    OpCase("aten::embedding_renorm", renormalized, (torch.tensor([[1, 3], [3, 0]]),), (9, 11, 18), captures=TRACE),
    *[
        OpCase(
            "aten::linalg_norm",
            lambda x, order=order, dim=dim, keep=keep: torch.linalg.norm(x, order, dim, keep),
            (X,),
            (7, 18),
            captures=TRACE,
            label=f"{order}-{dim}-{keep}",
        )
        for order, dim, keep in (
            (None, None, False),
            ("fro", (0, 2), True),
            (float("inf"), (3, 1), False),
            (-float("inf"), (-1, 0), True),
            (1, (1, 2), False),
            (-1, (2, 0), False),
            (3, 1, True),
            (-2, -1, False),
            (0, (2,), False),
        )
    ],
    OpCase("aten::linalg_matrix_norm", lambda x: torch.linalg.matrix_norm(x, 1), (X,), (7, 13, 18), NHW, OTHERS, captures=TRACE),
    OpCase("aten::rms_norm", nn.RMSNorm(7).double(), (X.double(),), (7, NEWEST), captures=TRACE, label="double"),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize("order", ["nuc", 2, -2])
def test_refuses_norms_by_singular_values(order, exporter):
    exporter.refuse(OpCase("", lambda x: torch.linalg.matrix_norm(x, order), (X,)), 18, reason="singular values")
