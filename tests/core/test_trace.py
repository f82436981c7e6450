"""Capture by tracing: what Python reads of a traced tensor, and which recorded sizes are facts."""

from __future__ import annotations

import copy
import math
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._frontends.trace import capture_trace

X = torch.rand(4, 4) + 0.1
DYNAMIC = {"x": {0: "n"}}


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def capture(function, x=X, dynamic=None):
    model = function if isinstance(function, torch.nn.Module) else Module(function)
    model.eval()
    return capture_trace(model, model_inputs(model.forward, (x,), {}, ["x"], dynamic))


def branch(x):
    if x.sum() > 0:
        return x
    return -x


def write_then_branch(x):
    y = torch.zeros(4, 4)
    y[0].copy_(x[0])
    return y if y.sum() > 0 else -y


def write_where_large(x):
    y = x.clone()
    y[x.max() > 9] = 0.0
    return y


READS_OF_DATA = {
    "item": lambda x: x / x.max().item(),
    "bool": branch,
    "through a view": write_then_branch,
    "float": lambda x: x * float(x.sum()),
    "int": lambda x: x * int(x.sum()),
    "index": lambda x: x[range(4)[x.argmax() % 4]],
    "tolist": lambda x: x * x[0].tolist()[0],
    "numpy": lambda x: torch.from_numpy(np.sin(x.numpy())),
    "asarray": lambda x: x + torch.from_numpy(np.asarray(x)),
    "element of a tensor of a type": lambda x: torch.FloatTensor([x.max(), 1.0]),
    "equal": lambda x: x if torch.equal(x, x + 0) else -x,
    "allclose": lambda x: x if x.allclose(x + 0) else -x,
    "random": lambda x: x if torch.rand(1).item() > 2 else -x,
    "number of selected": lambda x: x * len(range(len(x[x > 0.5]))),
    "parts of a selection": lambda x: torch.stack(x[x > 0.5].unbind(0)),
    "mask of rank 0": lambda x: x[x.max() > 0],
    "mask of rank 0 among others": lambda x: x[0, (x > 9).any()],
    "write at a mask of rank 0": write_where_large,
    "axes of a selection": lambda x: x[x > 0.5].squeeze(),
    "pool size": lambda x: F.avg_pool2d(x[None], x.nonzero().shape[0] // 8),
}


@pytest.mark.parametrize("dynamic", [None, DYNAMIC], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", READS_OF_DATA)
def test_a_value_that_depends_on_data_is_reported_with_its_line(name, dynamic):
    captured = capture(READS_OF_DATA[name], dynamic=dynamic)
    assert [text.startswith(f"{__file__}:") for text in captured.baked_data] == [True]
    assert captured.baked_sizes == []


def shortcut(x):
    if x.numel() == 0:
        return x
    return x.sum()


READS_OF_SIZES = {
    "int": lambda x: x.view(int(x.shape[0]), -1),
    "math": lambda x: x / math.sqrt(x.shape[0]),
    "range": lambda x: sum(x[i] for i in range(x.shape[0])),
    "range of len": lambda x: sum(x[i] for i in range(len(x))),
    "lesser by key": lambda x: x * min(2, x.shape[0], key=lambda size: -size),
    "iteration": lambda x: torch.stack([row * 2 for row in x]),
    "split": lambda x: torch.cat(x.split(2)[::-1]),
    "unbind": lambda x: x.unbind(0)[-1],
    "chunk": lambda x: x.chunk(2)[-1],
    "covariance": lambda x: x.cov(),
    "correlation": lambda x: x.corrcoef(),
    "element of a tensor of a type": lambda x: torch.LongTensor([x.shape[0], 1]) + x.sum(),
    "element of a Python list": lambda x: [1, 2, 3, 4, 5][x.shape[0]] * x,
    "branch": lambda x: x if x.shape[0] > 2 else -x,
    "shortcut": shortcut,
    "squeeze": lambda x: x.squeeze(),
    "squeeze of an axis that is called dynamic": lambda x: x.squeeze(0),
    "range that ends at a size": lambda x: torch.range(0, x.shape[0]) + x.sum(),
    "roll": lambda x: x.roll(x.shape[0] - 1, 0),
    "pool size": lambda x: F.max_pool2d(x[None], kernel_size=x.shape[0]),
    "adaptive pool size": lambda x: F.adaptive_avg_pool1d(x[None], x.shape[0] // 2),
    "padding of a convolution": lambda x: F.conv1d(x[None], x[:, :, None], None, 1, x.shape[0]),
    "stride in a tuple": lambda x: F.conv2d(input=x[None, None], weight=x[None, None], padding=4, stride=(x.shape[0], 1)),
}


@pytest.mark.parametrize("name", READS_OF_SIZES)
def test_a_value_that_depends_on_a_dynamic_size_is_reported_apart(name):
    captured = capture(READS_OF_SIZES[name], dynamic=DYNAMIC)
    assert captured.baked_data == []
    assert [text.startswith(f"{__file__}:") for text in captured.baked_sizes] == [True]


@pytest.mark.parametrize("name", READS_OF_SIZES)
def test_a_value_that_depends_on_sizes_is_no_news_where_they_are_fixed(name):
    assert capture(READS_OF_SIZES[name]).baked == []


def nested_guards(x):
    if x.shape[0] > 100:
        if x.shape[1] > 3:
            raise ValueError("too large")
        warnings.warn("large", stacklevel=1)
    if x.sum() > 1e9:
        print("large")
    elif x.max() > 1e9:
        raise ValueError
    assert (x == x).all()
    return x


def is_positive(x):
    return bool(x.sum() > 0)


def guarded_elsewhere(x):
    assert is_positive(x)
    return x


def unpacked(x):
    one, two = x.split(2)
    return one * two


class Twice(torch.nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Channels(torch.nn.Module):
    """Parts of an axis that convolutions, pools and the like leave as it is."""

    def __init__(self):
        super().__init__()
        self.down, self.up = torch.nn.Conv2d(3, 6, 3), torch.nn.ConvTranspose2d(6, 4, 2)

    def forward(self, x):
        x = self.down(x).chunk(2, 1)[-1]
        x = F.max_pool2d(torch.cat([x, x.relu()], 1), 2).chunk(2, 1)[-1]
        x = self.up(torch.cat([F.interpolate(x, scale_factor=2.0)] * 2, 1))
        return x.chunk(2, 1)[-1]


SEQUENCE, IMAGE = torch.randn(2, 5, 8), torch.randn(2, 3, 8, 8)
SEQUENCE_AXES, IMAGE_AXES = {"x": {0: "batch", 1: "sequence"}}, {"x": {0: "batch", 2: "height"}}
HARMLESS = {
    "constant index": (lambda x: x[torch.tensor([0, -1])], X, DYNAMIC),
    "constant item": (lambda x: x * torch.tensor(2).item(), X, DYNAMIC),
    "size in a tensor": (lambda x: x / torch.tensor(x.shape[0]), X, DYNAMIC),
    "sizes in a tensor": (lambda x: x.sum() / torch.tensor([[x.shape[0], 1], [2, len(x)]]), X, DYNAMIC),
    "len": (lambda x: x * len(x), X, DYNAMIC),
    "lesser size": (lambda x: x[: min(3, len(x))], X, DYNAMIC),
    "convolution with a kernel of the input": (lambda x: F.conv1d(x[None], weight=x[:, :, None], padding=1), X, DYNAMIC),
    "checked size": (lambda x: F.max_unpool1d(*F.max_pool1d(x[None], 2, return_indices=True), 2), X, {"x": {1: "columns"}}),
    "greatest size": (lambda x: x * max(x.shape), X, DYNAMIC),
    "fixed axis": (lambda x: x.view(-1, int(x.shape[1])), X, DYNAMIC),
    "fixed axis of a result": (lambda x: x * math.sqrt((x.relu() @ x.t()[:, :4] if False else x.relu()).shape[1]), X, DYNAMIC),
    "boolean in brackets": (lambda x: x[True, 1:], X, DYNAMIC),
    "no positions": (lambda x: x[torch.empty(0, dtype=torch.long)], X, DYNAMIC),
    "slice": (lambda x: x[x.shape[0] - 3 : x.shape[0] - 1], X, DYNAMIC),
    "squeeze of a fixed axis": (lambda x: x.relu().unsqueeze(1).squeeze(1), X, DYNAMIC),
    "chunk of a fixed axis": (lambda x: torch.cat(x.relu().chunk(2, 1)[::-1]), X, DYNAMIC),
    "a single chunk": (lambda x: x.chunk(1)[0], X, DYNAMIC),
    "chunk of the channels": (Channels(), IMAGE, IMAGE_AXES),
    "covariance of fixed rows": (lambda x: x.t().cov(), X, DYNAMIC),
    "parts by reshape": (lambda x: x.view(-1, 2, 2).permute(1, 0, 2).unbind(0)[1], X, DYNAMIC),
    "unpacked": (unpacked, X, DYNAMIC),
    "text": (lambda x: x + len(f"{x.sum()}"[:0]), X, DYNAMIC),
    "guards": (nested_guards, X, DYNAMIC),
    "guard around a function": (guarded_elsewhere, X, DYNAMIC),
    "instance norm": (torch.nn.InstanceNorm2d(3), IMAGE, IMAGE_AXES),
    "attention": (Twice(), SEQUENCE, SEQUENCE_AXES),
    "encoder": (torch.nn.TransformerEncoderLayer(8, 2, batch_first=True), SEQUENCE, SEQUENCE_AXES),
    "area": (lambda x: F.interpolate(x, scale_factor=1.5, mode="area"), IMAGE, IMAGE_AXES),
    "recomputed scale": (
        lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True),
        IMAGE,
        IMAGE_AXES,
    ),
    "local response norm": (torch.nn.LocalResponseNorm(2), IMAGE, IMAGE_AXES),
    "LSTM": (torch.nn.LSTM(8, 4), SEQUENCE, SEQUENCE_AXES),
    "GRU": (torch.nn.GRU(8, 4), SEQUENCE, SEQUENCE_AXES),
    "RNN": (torch.nn.RNN(8, 4), SEQUENCE, SEQUENCE_AXES),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_cannot_change_the_result_is_not_reported(name):
    function, x, dynamic = HARMLESS[name]
    assert capture(function, x, dynamic).baked == []


def test_tensors_read_as_ever_after_a_capture():
    before = {name: vars(torch.Tensor).get(name) for name in ("__bool__", "item", "data", "__deepcopy__", "numpy", "new_tensor")}
    functions = (len, min, max, torch.tensor, torch.as_tensor)
    capture(branch)
    with pytest.raises(Exception, match="lost"):
        capture(lambda x: x.lost)
    assert {name: vars(torch.Tensor).get(name) for name in before} == before
    assert (len, min, max, torch.tensor, torch.as_tensor) == functions
    assert bool(torch.tensor(True)) and torch.tensor(3).item() == 3


SIZED_BY_DATA = {
    "mask": lambda x: x[x > 0.5],
    "bytes": lambda x: x[(x > 0.5).to(torch.uint8)],
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0.5)[0],
    "masked_select": lambda x: x.masked_select(x > 0.5),
    "unique": lambda x: torch.unique(x),
    "unique_consecutive": lambda x: torch.unique_consecutive(x),
    "repeat_interleave": lambda x: x.repeat_interleave(x[0].long() + 1, 0),
    "derived": lambda x: x[x > 0.5].relu().unsqueeze(0),
    "arange": lambda x: torch.arange(x[x > 0.5].shape[0]),
    "zeros": lambda x: torch.zeros(x.nonzero().numel()),
    "view": lambda x: x[x > 0.5].view(1, -1),
}


@pytest.mark.parametrize("name", SIZED_BY_DATA)
def test_a_size_that_depends_on_data_is_not_a_fact(name):
    graph = capture(SIZED_BY_DATA[name]).graph
    kind = graph.outputs[0].type
    assert kind.example_shape is not None
    assert kind.shape == (None,) * len(kind.example_shape)


FACTS = {
    "integers as index": lambda x: x[torch.tensor([0, 2])],
    "data as index": lambda x: x[x.argmax(0)],
    "size": lambda x: torch.zeros(x.shape[0]),
    "written under a mask": lambda x: x.clone().masked_fill_(x > 0.5, 0),
    "scalar": lambda x: x[x > 0.5].sum() * torch.ones(3),
    "added number": lambda x: x + x.nonzero().shape[0],
}


def test_a_write_does_not_make_a_size_uncertain():
    def forward(x):
        y = x.clone()
        y[x > 0.5] = x[x > 0.5]
        return y

    assert capture(forward).graph.outputs[0].type.shape == (4, 4)


@pytest.mark.parametrize("name", FACTS)
def test_other_sizes_are_facts(name):
    kind = capture(FACTS[name]).graph.outputs[0].type
    assert kind.shape == kind.example_shape


def test_a_copy_of_a_tensor_is_not_a_constant():
    graph = capture(lambda x: copy.deepcopy(x) * 2).graph
    assert [node.op for node in graph.nodes] == ["aten::clone", "aten::mul"]
