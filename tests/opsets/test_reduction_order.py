"""Medians, quantiles, modes, running totals, and reductions that leave out NaN."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

TRACE = ("trace",)
NAN = float("nan")
INF = float("inf")
OPSETS = (9, 10, 11, 13, NEWEST)
X = torch.randperm(60).reshape(3, 4, 5).float() / 7
GAPS = torch.where(torch.rand(3, 4, 5) > 0.6, torch.tensor(NAN), X).index_fill(1, torch.tensor(2), NAN)
DISTINCT = torch.randperm(60).reshape(3, 4, 5) - 30
INTS = torch.tensor([[3, 1, 3, 2, 2], [5, 5, 0, 9, 9]])
SIZES = {0: {1: "m", 2: "n"}}
OTHERS = [(torch.randperm(42).reshape(3, 2, 7).float() / 5,)]
EACH = torch.tensor([0.0, 0.3, 0.5, 1.0])

CASES = [
    OpCase("aten::median", lambda x: tuple(x.median(1)), (X,), (10, 11, NEWEST), SIZES, OTHERS, label="dim"),
    OpCase("aten::median", lambda x: tuple(x.median(-1, keepdim=True)), (GAPS,), OPSETS, captures=TRACE, label="nan"),
    OpCase("aten::median", lambda x: x.median(), (X,), OPSETS, captures=TRACE, label="all"),
    OpCase("aten::median", lambda x: tuple(x.median(0)), (DISTINCT * 2**40,), (9, 11, NEWEST), captures=TRACE, label="int64"),
    OpCase("aten::median", lambda x: tuple(x.median(0)), (DISTINCT.short(),), (9, 11, NEWEST), captures=TRACE, label="int16"),
    OpCase("aten::nanmedian", lambda x: x.nanmedian(1)[0], (GAPS,), (10, 11, NEWEST), SIZES, OTHERS, captures=TRACE, label="dim"),
    OpCase(
        "aten::nanmedian",
        lambda x: tuple(x.nanmedian(-1, keepdim=True)),
        (GAPS[:, :2],),
        (9, NEWEST),
        captures=TRACE,
        label="keepdim",
    ),
    OpCase("aten::nanmedian", lambda x: x.nanmedian(), (GAPS,), (9, NEWEST), label="all"),
    *[
        OpCase(
            f"aten::{name}",
            lambda x, name=name: getattr(x[x > 3], name)(),
            (values,),
            (10, 11, NEWEST),
            others=[(values * 0,), (values // 2,)],
            label=f"selected_{str(values.dtype)[6:]}",
        )
        for name in ("median", "nanmedian")
        for values in (INTS, INTS.float(), INTS.byte())
    ],
    *[
        OpCase("aten::median", lambda x: (x[:0].median(), x[:0].nanmedian()), (values,), (9, NEWEST), captures=TRACE, label=label)
        for label, values in {"empty": X, "empty_int": INTS}.items()
    ],
    *[
        OpCase(
            "aten::quantile",
            lambda x, mode=mode: torch.quantile(x, EACH, dim=1, interpolation=mode),
            (X,),
            (9, 11, NEWEST),
            captures=TRACE,
            label=mode,
        )
        for mode in ("linear", "lower", "higher", "nearest", "midpoint")
    ],
    OpCase("aten::quantile", lambda x: torch.quantile(x, 0.3, dim=-1), (X,), (10, 11, NEWEST), SIZES, OTHERS, label="dynamic"),
    OpCase("aten::quantile", lambda x: torch.quantile(x, 0.25), (X,), (9, NEWEST), captures=TRACE, label="all"),
    OpCase(
        "aten::quantile", lambda x: torch.quantile(x, EACH, keepdim=True), (X,), (9, NEWEST), captures=TRACE, label="all-keepdim"
    ),
    OpCase(
        "aten::quantile", lambda x: torch.quantile(x, EACH, 0, keepdim=True), (GAPS,), (9, NEWEST), captures=TRACE, label="nan"
    ),
    OpCase("aten::quantile", lambda x, q: torch.quantile(x, q, 2), (X, EACH), (9, NEWEST), label="tensor-q"),
    OpCase(
        "aten::nanquantile", lambda x: torch.nanquantile(x, EACH, 1), (GAPS,), (10, 11, NEWEST), SIZES, OTHERS, captures=TRACE
    ),
    OpCase(
        "aten::nanquantile", lambda x: torch.nanquantile(x, 0.7, 2, True), (GAPS,), (9, NEWEST), captures=TRACE, label="keepdim"
    ),
    OpCase("aten::mode", lambda x: tuple(x.mode()), (INTS,), (9, 13, NEWEST)),
    OpCase("aten::mode", lambda x: tuple(x.float().mode(0, keepdim=True)), (INTS,), (9, NEWEST), captures=TRACE, label="keepdim"),
    OpCase("aten::nansum", lambda x: x.nansum((0, 2)), (GAPS,), (9, 13, NEWEST), captures=TRACE),
    OpCase("aten::nansum", lambda x: x.nansum(), (INTS,), (9, NEWEST), captures=TRACE, label="int"),
    OpCase("aten::nanmean", lambda x: x.nanmean(1, keepdim=True), (GAPS,), (9, 13, NEWEST), SIZES, OTHERS),
    OpCase("aten::cumsum", lambda x: x.cumsum(1), (X,), (7, 11, NEWEST), captures=TRACE, label="static"),
    OpCase("aten::cumsum", lambda x: x.cumsum(-1), (X,), (9, 11, NEWEST), SIZES, OTHERS),
    OpCase("aten::cumsum", lambda x: x.cumsum(1), (INTS.int(),), (7, 11, NEWEST), captures=TRACE, label="int32"),
    OpCase(
        "aten::cumsum", lambda x: x.cumsum(1, dtype=torch.int32), (INTS > 2,), (7, 11, NEWEST), captures=TRACE, label="int32-kept"
    ),
    OpCase("aten::cumprod", lambda x: x.cumprod(1), (X / 4,), (7, 13, 26, NEWEST), captures=TRACE, label="static"),
    OpCase("aten::cumprod", lambda x: x.cumprod(1), (X / 4,), (9, 18, 26), SIZES, OTHERS),
    OpCase("aten::cumprod", lambda x: x.cumprod(1), (INTS,), (7, 26), captures=TRACE, label="int"),
    OpCase("aten::logcumsumexp", lambda x: x.logcumsumexp(1), (X * 9,), (9, NEWEST), SIZES, OTHERS),
    OpCase(
        "aten::logcumsumexp",
        lambda x: x.logcumsumexp(0),
        (torch.tensor([-INF, -INF, 2.0, -INF]),),
        (9, NEWEST),
        captures=TRACE,
        label="inf",
    ),
    OpCase("aten::diff", lambda x: x.diff(n=2, dim=1), (X,), (7, 10, NEWEST), SIZES, [(torch.randn(3, 6, 7),)]),
    OpCase(
        "aten::diff", lambda x: x.diff(prepend=x[:, :1], append=x), (INTS.byte(),), (7, NEWEST), captures=TRACE, label="prepend"
    ),
    OpCase("aten::diff", lambda x: x.diff(), (INTS > 2,), (7, NEWEST), captures=TRACE, label="bool"),
    OpCase("aten::sum_to_size", lambda x: x.sum_to_size(4, 1), (X,), (7, 13, NEWEST)),
    OpCase("aten::var", lambda x: (x[:, :0].var(1), torch.std_mean(x[:0])), (X,), (9, 13, NEWEST), captures=TRACE, label="empty"),
    OpCase("aten::mean", lambda x: x[:0].mean(0), (X,), (7, 13, NEWEST), captures=TRACE, label="empty"),
    OpCase("aten::any", lambda x: (x[:0].any(0), x[:0].all(0)), (INTS.byte(),), (7, 13, NEWEST), captures=TRACE, label="empty"),
    OpCase(
        "aten::cosine_similarity",
        lambda x: (torch.cosine_similarity(x[:, :1], x[:1], -2), torch.cosine_similarity(x, x[0, 1], 1)),
        (X,),
        (7, 13, NEWEST),
        captures=TRACE,
        label="broadcast",
    ),
    OpCase(
        "aten::cosine_similarity",
        lambda x: torch.cosine_similarity(x.sum(), x.mean(), 0),
        (X,),
        (7, NEWEST),
        captures=TRACE,
        label="rank0",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "x", "dynamic", "opset", "reason"),
    [
        (lambda x: x.cumprod(2), X, SIZES, 8, "Where, of opset 9"),
    ],
)
def test_refuses_what_the_opset_lacks(call, x, dynamic, opset, reason, exporter):
    exporter.refuse(OpCase("", call, (x,), dynamic=dynamic), opset, reason=reason)
