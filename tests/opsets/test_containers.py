"""Joining and splitting tensors against eager PyTorch."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.arange(48.0).reshape(2, 4, 6)
Y = torch.arange(90.0).reshape(3, 5, 6)
ALL = {0: {0: "batch", 1: "rows"}}
TRACE = ("trace",)


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


CASES = [
    row(
        "aten::cat",
        lambda x: (torch.cat([x, x[:1]]), torch.cat([x, x], -1), torch.cat([x], 1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, NEWEST),
    ),
    row("aten::cat", lambda x: torch.cat([torch.tensor([]), x], 1), label="empty", captures=("trace", "export")),
    row("aten::cat", lambda x: torch.cat([x, x.long(), x > 3], 0), label="types", opsets=(7, NEWEST)),
    row(
        "aten::cat",
        lambda x, y: torch.cat([x, y]),
        torch.zeros(0),
        torch.ones(3),
        label="vectors",
        dynamic={0: {0: "n"}, 1: {0: "m"}},
        others=[(torch.ones(2), torch.ones(1))],
    ),
    row(
        "aten::stack",
        lambda x: (torch.stack([x, x], -1), torch.stack([x[0, 0, 0], x[1, 1, 1]])),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, 13, NEWEST),
    ),
    row(
        "aten::hstack",
        lambda x: (
            torch.hstack([x, x]),
            torch.vstack([x[0, 0], x[0, 0]]),
            torch.dstack([x, x]),
            torch.column_stack([x[0, 0], x[0].T]),
            torch.hstack([x[0, 0], x[0, 0]]),
        ),
    ),
    row("aten::split", lambda x: (*x.split(2, 2), *x.split(4, -1)), dynamic=ALL, others=[(Y,)], opsets=(7, 13, 18, NEWEST)),
    row("aten::split", lambda x: x.split(3, 1), dynamic=ALL, others=[(torch.randn(3, 5, 6),)], label="rest"),
    row(
        "aten::split_with_sizes",
        lambda x: x.split([1, 3, 2], 2),
        opsets=(7, 13, NEWEST),
        dynamic=ALL,
        others=[(Y,)],
        captures=("trace", "export"),
    ),
    row(
        "aten::split_with_sizes",
        lambda x: x.split([x.size(1) - 1, 1], 1),
        opsets=(9, 13),
        dynamic=ALL,
        others=[(Y,)],
        label="run_time",
    ),
    row(
        "aten::chunk",
        lambda x: (*x.chunk(2, 1), *x.chunk(4, -1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 13, NEWEST),
        captures=("trace", "export"),
    ),
    row(
        "aten::tensor_split",
        lambda x: (*x.tensor_split(4, 2), *x.tensor_split((1, 3), 2), *x.tensor_split((-2, 9), 1)),
        opsets=(7, NEWEST),
    ),
    row("aten::tensor_split", lambda x: x.tensor_split(3, 1), dynamic=ALL, others=[(Y,)], label="run_time", opsets=(9, 13)),
    row("aten::hsplit", lambda x: (*x.hsplit(2), *x.vsplit([1]), *x.dsplit(3))),
    row(
        "aten::unbind",
        lambda x: (*x.unbind(2), *x[:, 0, :].reshape(-1, 3).unbind(-1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, NEWEST),
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize("call", [lambda x: x.unbind(1), lambda x: x.split(2, 1)], ids=["unbind", "split"])
def test_another_number_of_parts_does_not_run(call, exporter):
    """A file that silently dropped what the example did not have would be wrong."""
    ort = pytest.importorskip("onnxruntime")
    result = exporter.export(row("aten::unbind", call, dynamic={0: {1: "rows"}}), 13)
    session = ort.InferenceSession(result.file.path)
    assert len(session.run(None, {"input_0": X.numpy()})) in (2, 4)
    with pytest.raises(Exception, match=r"[Ss]plit"):
        session.run(None, {"input_0": torch.randn(2, 8, 6).numpy()})
