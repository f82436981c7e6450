"""Shape operators against eager PyTorch, at static and dynamic sizes."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.arange(48.0).reshape(2, 4, 6)
Y = torch.arange(90.0).reshape(3, 5, 6)
ALL = {0: {0: "batch", 1: "rows"}}
EVERY = {0: {0: "batch", 1: "rows", 2: "columns"}}
IMAGE = torch.randn(2, 8, 4, 6)
IMAGES = {0: {0: "batch", 2: "height", 3: "width"}}
TRACE = ("trace",)


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


CASES = [
    row("aten::view", lambda x: x.view(x.size(0), -1), dynamic=ALL, others=[(Y,)], opsets=(7, 13, NEWEST)),
    row(
        "aten::view",
        lambda x: x.view(-1, x.shape[2] // 2, 2),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, NEWEST),
        captures=("trace", "export"),
    ),
    row("aten::view", lambda x: x.view(2, 24), label="static", avoids={"Shape", "If"}),
    row("aten::view", lambda x: x.view(x.shape[0] * x.shape[1], 6), dynamic=ALL, others=[(Y,)]),
    row(
        "aten::reshape",
        lambda x: x.transpose(0, 1).reshape(x.size(1), x.size(0), 2, 3),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, NEWEST),
    ),
    row("aten::reshape", lambda x: x[:0].reshape(0, 4, 3, 2), opsets=(14, NEWEST), label="empty"),
    row("aten::view_as", lambda x, y: x.view_as(y), X, X.reshape(2, 6, 4), dynamic={0: {0: "b"}, 1: {0: "b"}}),
    row(
        "aten::flatten",
        lambda x: (x.flatten(1), x.flatten(), x.flatten(0, 1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, NEWEST),
        avoids={"Shape"},
    ),
    row("aten::flatten", lambda x: x.flatten(0, 1), dynamic=EVERY, others=[(torch.randn(1, 2, 3),)]),
    row("aten::flatten", lambda x: x.flatten(), torch.tensor(3.0), label="scalar"),
    row("aten::unflatten", lambda x: (x.unflatten(2, (2, 3)), x.unflatten(-1, (-1, 2))), dynamic=ALL, others=[(Y,)]),
    row(
        "aten::unflatten",
        lambda x: (x.unflatten(0, (2, -1)), x.unflatten(1, (-1, 2)), x.unflatten(1, (2, x.size(1) // 2))),
        dynamic=EVERY,
        others=[(torch.randn(4, 0, 3),), (torch.randn(6, 4, 0),), (torch.randn(0, 2, 3),), (torch.randn(6, 6, 5),)],
        opsets=(7, 13, 14, NEWEST),
        label="nothing",
    ),
    row(
        "aten::unflatten",
        lambda x: (x[:1, :0].unflatten(0, (1, -1)), x[:, :0].unflatten(-1, (3, -1)), x),
        opsets=(9, 14, NEWEST),
        label="static_nothing",
    ),
    row(
        "aten::flatten",
        lambda x: (x.flatten(0, 1), x[:, None].flatten(1, 2), x.transpose(1, 2)[..., None].flatten(0, 1)),
        dynamic=EVERY,
        others=[(torch.randn(4, 3, 0),), (torch.randn(0, 2, 3),), (torch.randn(3, 0, 2),), (torch.randn(1, 2, 7),)],
        opsets=(7, 13, 14, NEWEST),
        label="nothing",
    ),
    row(
        "aten::expand",
        lambda x: (x[:, :1].expand(-1, 0, 6) * 2, x[..., :1].expand(x.size(0), 4, 0) * 2),
        dynamic={0: {0: "b"}},
        others=[(Y[:, :4],)],
        opsets=(8, 9, NEWEST),
        label="nothing",
    ),
    row(
        "aten::repeat_interleave",
        lambda x: (x.repeat_interleave(0, -1), x[:, :, :1].repeat_interleave(torch.tensor([0]), 0), x.repeat_interleave(0)),
        opsets=(9, 14, NEWEST),
        label="nothing",
    ),
    row("aten::squeeze", lambda x: x.mean(1, keepdim=True).squeeze(), dynamic=ALL, others=[(Y,)], avoids={"If"}),
    row(
        "aten::squeeze",
        lambda x: x.squeeze(),
        torch.randn(1, 3, 1),
        dynamic={0: {1: "n"}},
        others=[(torch.randn(1, 4, 1),)],
        opsets=(7, 13, NEWEST),
    ),
    row(
        "aten::squeeze",
        lambda x: (x.squeeze(0), x.squeeze(1), x.squeeze(-1)),
        torch.randn(1, 3, 1),
        dynamic={0: {1: "n"}},
        others=[(torch.randn(1, 4, 1),)],
    ),
    row("aten::squeeze", lambda x: (x.squeeze(0), x.squeeze(-1), x.squeeze((0,)), x.squeeze()), torch.tensor(2.0), label="rank0"),
    row("aten::squeeze", lambda x: x.squeeze((0, 2)), torch.randn(1, 3, 1), label="dims"),
    row("aten::squeeze", lambda x: x.squeeze((0, 1)), torch.randn(1, 3, 1), label="dims_some"),
    row("aten::unsqueeze", lambda x: (x.unsqueeze(-1), x.unsqueeze(0), x.unsqueeze(-3)), opsets=(7, 13, NEWEST)),
    row("aten::permute", lambda x: (x.permute(2, 0, -2), x.permute(0, 1, 2)), opsets=(7, NEWEST)),
    row(
        "aten::transpose", lambda x: (x.transpose(0, -1), x.swapaxes(1, 2), x.swapdims(0, 1), x.mT, x[0].t(), x[0].T, x[0, 0].t())
    ),
    row("aten::movedim", lambda x: (x.movedim(0, -1), x.movedim((0, 1), (2, 0)), torch.moveaxis(x, 2, 0))),
    row(
        "aten::expand",
        lambda x: (x[:, :1].expand(-1, 5, -1), x.expand(3, -1, -1, -1)),
        dynamic={0: {0: "b"}},
        others=[(Y[:, :4],)],
        opsets=(8, NEWEST),
    ),
    row(
        "aten::expand",
        lambda x: x[:1].expand(x.size(1), x.size(1), -1),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(8, NEWEST),
        captures=("trace", "export"),
    ),
    row("aten::expand", lambda x: x[:, :1].expand(2, 5, 6), opsets=(7,), label="tile"),
    row(
        "aten::expand_as",
        lambda x, y: x[:1].expand_as(y),
        X,
        X,
        dynamic={0: {0: "b"}, 1: {0: "b"}},
        others=[(Y[:, :4], Y[:, :4])],
    ),
    row("aten::broadcast_to", lambda x: torch.broadcast_to(x[0, 0], (3, 2, 6))),
    row("aten::broadcast_tensors", lambda x: torch.broadcast_tensors(x, x[:1, :1], x[0, 0]), dynamic=ALL, others=[(Y,)]),
    row(
        "aten::repeat",
        lambda x: (x.repeat(2, 1, 3), x.repeat(2, 1, 1, x.size(1)), x.repeat(1, 1, 1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, NEWEST),
    ),
    row("aten::tile", lambda x: (x.tile(2), x.tile(2, 1, 1, 2)), dynamic=ALL, others=[(Y,)]),
    row(
        "aten::repeat_interleave",
        lambda x: (x.repeat_interleave(2, 1), x.repeat_interleave(3)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(8, NEWEST),
    ),
    row("aten::repeat_interleave", lambda x: x.repeat_interleave(torch.tensor([2, 0, 1, 3]), 1), label="tensor"),
    row(
        "aten::roll",
        lambda x: x.roll((1, -2), (0, 2)),
        dynamic=EVERY,
        others=[(torch.randn(0, 2, 3),), (torch.randn(2, 4, 0),), (torch.randn(1, 0, 5),), (torch.randn(3, 5, 1),)],
        opsets=(7, 9, 10, NEWEST),
        label="nothing",
    ),
    row("aten::roll", lambda x: (x.roll(1), x.roll((1, -2), (0, 2)), x.roll(7, 1)), opsets=(7, 9, NEWEST)),
    row("aten::roll", lambda x: (x.roll(3), x.roll((-3, 9), (0, 1))), dynamic=ALL, others=[(Y,)], opsets=(9, 10, NEWEST)),
    row("aten::roll", lambda x: (x.roll(1, 1), x.roll(-1, 0)), dynamic=ALL, others=[(Y,)], opsets=(7, 9, 10), label="by_one"),
    row(
        "aten::roll",
        lambda x: (x.roll((x.size(0),), (1,)), x.roll((-x.size(1), 1), (0, 1))),
        dynamic=ALL,
        others=[(Y,)],
        label="run_time",
    ),
    row(
        "aten::flip",
        lambda x: (x.flip(0), x.flip(0, -1), x.fliplr(), x.flipud(), x.rot90(1, [0, 2]), x.rot90(-1)),
        opsets=(7, 10, NEWEST),
    ),
    row("aten::flip", lambda x: x.flip(0, 1), dynamic=ALL, others=[(Y,)], opsets=(9, NEWEST)),
    row("aten::size", lambda x: x + x.size(0) * x.shape[-1] + x.numel(), dynamic=ALL, others=[(Y,)], opsets=(7, NEWEST)),
    row("aten::_shape_as_tensor", lambda x: torch._shape_as_tensor(x), dynamic=ALL, others=[(Y,)]),
    row("aten::_reshape_from_tensor", lambda x: torch._reshape_from_tensor(x, torch.tensor([-1, 2])), opsets=(7, 14, NEWEST)),
    row(
        "aten::_reshape_from_tensor",
        lambda x: torch._reshape_from_tensor(x.relu().flatten(), torch._shape_as_tensor(x)),
        dynamic=ALL,
        others=[(Y,)],
        label="to the shape of another",
    ),
    row(
        "aten::pixel_shuffle",
        lambda x: torch.pixel_shuffle(x, 2),
        IMAGE,
        dynamic=IMAGES,
        others=[(torch.randn(1, 8, 3, 5),)],
        opsets=(7, 11, NEWEST),
    ),
    row("aten::pixel_shuffle", lambda x: torch.pixel_shuffle(x.long(), 2), IMAGE[0], label="int"),
    row(
        "aten::pixel_unshuffle",
        lambda x: torch.pixel_unshuffle(x, 2),
        IMAGE,
        dynamic=IMAGES,
        others=[(torch.randn(1, 8, 2, 8),)],
        opsets=(7, NEWEST),
    ),
    row(
        "aten::channel_shuffle",
        lambda x: torch.nn.functional.channel_shuffle(x, 4),
        IMAGE,
        dynamic=IMAGES,
        others=[(torch.randn(1, 8, 3, 5),)],
    ),
    row(
        "aten::unfold",
        lambda x: (x.unfold(1, 2, 1), x.unfold(-1, 3, 2)),
        dynamic={0: {0: "b", 1: "rows", 2: "columns"}},
        others=[(torch.randn(1, 7, 9),)],
        opsets=(9, 11, NEWEST),
    ),
    row(
        "aten::atleast_3d",
        lambda x, y: (
            torch.atleast_1d(y),
            torch.atleast_2d(x),
            torch.atleast_3d(x),
            torch.atleast_3d(y),
            torch.atleast_2d((x, y))[1],
        ),
        X[0, 0],
        torch.tensor(1.0),
    ),
    row(
        "aten::meshgrid",
        lambda x, y: (*torch.meshgrid(x, y, indexing="ij"), *torch.meshgrid(x, y, indexing="xy")),
        X[0, 0],
        X[0, :, 0],
        dynamic={0: {0: "n"}, 1: {0: "m"}},
        others=[(torch.randn(3), torch.randn(2))],
    ),
    row("aten::as_strided", lambda x: x.transpose(0, 2).as_strided((3, 2), (5, 7), 1), label="transposed"),
    row(
        "aten::im2col",
        lambda x: torch.nn.functional.unfold(x, (2, 3), dilation=(1, 2), padding=(1, 0), stride=(2, 1)),
        IMAGE,
        dynamic=IMAGES,
        others=[(torch.randn(1, 8, 5, 7),)],
        opsets=(9, 11, NEWEST),
    ),
    row(
        "aten::im2col",
        lambda x, y: (torch.nn.functional.unfold(x, 2), y + 1),  # an empty result alone shows nothing
        IMAGE[:0],
        torch.ones(2),
        dynamic={0: {2: "height", 3: "width"}},
        others=[(torch.randn(0, 8, 5, 9), torch.ones(2))],
        opsets=(9, 13, 14, NEWEST),
        label="none",
    ),
    row("aten::as_strided", lambda x: x.as_strided((3, 2), (2, 7), 1), opsets=(7, NEWEST)),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_as_strided_of_dynamic_sizes_is_refused(exporter):
    case = row("aten::as_strided", lambda x: x.as_strided((2, 2), (6, 1)), dynamic=ALL)
    exporter.refuse(case, NEWEST, reason="sizes are not fixed")


def test_view_as_another_type_is_refused(exporter):
    exporter.refuse(row("aten::view", lambda x: x.view(torch.int32)), NEWEST, "export", reason="memory as")


def test_known_sizes_need_no_shape(exporter):
    case = row("aten::view", lambda x: x.view(x.size(0), x.size(1), 2, 3).transpose(1, 2).flatten(2))
    assert {node.op_type for node in exporter.check(case, 13).model.graph} == {"Reshape", "Transpose"}
