"""Activations."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
X = torch.tensor([[-30.0, -4.0, -3.0, -1.0, -0.5, 0.0], [0.5, 1.0, 2.9, 3.0, 6.5, 30.0]])
IMAGE = torch.linspace(-3, 3, 48).reshape(2, 4, 3, 2)
INTS = torch.tensor([[-3, 0, 2, 9]])
BATCH = {0: {0: "batch"}}
MORE = [(torch.cat([X, X + 0.1, -X]),)]

CASES = [
    OpCase("aten::relu", F.relu, (X,), (7, 13, 28), BATCH, MORE, emits={"Relu"}),
    OpCase("aten::relu", lambda x: F.relu(x + 1, inplace=True), (X,), (7, 28), label="in-place"),
    OpCase("aten::relu", F.relu, (INTS,), (9, 14, 28), label="int", captures=TRACE),
    OpCase("aten::relu6", F.relu6, (X,), (7, 11, 28), BATCH, MORE, emits={"Clip"}, captures=TRACE),
    OpCase("aten::hardtanh", lambda x: F.hardtanh(x, -0.5, 4), (X,), (7, 11, 28), captures=TRACE),
    OpCase("aten::hardtanh", lambda x: F.hardtanh(x, -2, 4), (INTS,), (9, 12, 28), label="int", captures=TRACE),
    OpCase("aten::sigmoid", torch.sigmoid, (X,), (7, 28), BATCH, MORE, emits={"Sigmoid"}),
    OpCase("aten::sigmoid", torch.sigmoid, (INTS,), (7, 28), label="int", captures=TRACE),
    OpCase("aten::tanh", torch.tanh, (X,), (7, 28), captures=TRACE),
    OpCase("aten::silu", F.silu, (X,), (7, 24, 28), BATCH, MORE),
    OpCase("aten::mish", F.mish, (X,), (7, 18, 22, 28), captures=TRACE),
    OpCase("aten::hardsigmoid", F.hardsigmoid, (X,), (7, 28), captures=TRACE),
    OpCase("aten::hardswish", F.hardswish, (X,), (7, 14, 28), BATCH, MORE, captures=TRACE),
    OpCase("aten::gelu", F.gelu, (X,), (9, 13, 20, 28), BATCH, MORE),
    OpCase("aten::gelu", lambda x: F.gelu(x, approximate="tanh"), (X,), (7, 9, 20, 28), label="tanh", captures=TRACE),
    OpCase("aten::softmax", lambda x: F.softmax(x, -1), (X,), (7, 11, 13, 28), BATCH, MORE, emits={"Softmax"}),
    OpCase("aten::softmax", lambda x: F.softmax(x, 1), (IMAGE,), (7, 11, 13, 28), BATCH, label="channels"),
    OpCase("aten::softmax", lambda x: F.softmax(x, 0), (IMAGE,), (7, 13), label="first", captures=TRACE),
    OpCase("aten::softmax", lambda x: F.softmax(x, -1, dtype=torch.float32), (INTS,), (7, 13, 28), label="dtype", captures=TRACE),
    OpCase("aten::softmax", lambda x: F.softmax(x, 0), (X[0, 0],), (7, 13, 28), label="rank0", captures=TRACE),
    OpCase("aten::softmax", lambda x: (x[:0].softmax(-1), x[:, :0].log_softmax(0)), (INTS,), (7, 13, 28), label="no-ints"),
    OpCase("aten::log_softmax", lambda x: F.log_softmax(x, 1), (IMAGE,), (7, 11, 13, 28), BATCH, captures=TRACE),
    OpCase(
        "aten::log_softmax", lambda x: F.log_softmax(x, -1, dtype=torch.float64), (X,), (7, 13, 28), label="dtype", captures=TRACE
    ),
    OpCase("aten::softplus", F.softplus, (X,), (7, 22, 28), captures=TRACE),
    OpCase("aten::softplus", lambda x: F.softplus(x, 2.0, 3.0), (X,), (9, 28), label="threshold", captures=TRACE),
    OpCase("aten::log_sigmoid", F.logsigmoid, (X,), (7, 28), captures=TRACE),
    OpCase("aten::elu", lambda x: F.elu(x, 0.7), (X,), (7, 22, 28), captures=TRACE),
    OpCase("aten::elu", lambda x: torch.ops.aten.elu(x, 0.7, 1.5, 0.5), (X,), (9, 28), label="scales", captures=TRACE),
    OpCase("aten::selu", F.selu, (X,), (7, 22, 28), captures=TRACE),
    OpCase("aten::celu", lambda x: F.celu(x, 1.3), (X,), (7, 12, 28), captures=TRACE),
    OpCase("aten::leaky_relu", lambda x: F.leaky_relu(x, 0.2), (X,), (7, 16, 28), captures=TRACE),
    OpCase("aten::rrelu", lambda x: F.rrelu(x, 0.1, 0.3, training=False), (X,), (7, 28), captures=TRACE),
    OpCase("aten::prelu", torch.nn.PReLU(4), (IMAGE,), (7, 9, 16, 28), BATCH),
    OpCase("aten::prelu", torch.nn.PReLU(), (IMAGE,), (7, 28), label="one", captures=TRACE),
    OpCase("aten::prelu", torch.nn.PReLU(6), (X,), (7, 28), label="rank2", captures=TRACE),
    OpCase("aten::prelu", torch.nn.PReLU(), (X[0],), (7, 28), label="rank1", captures=TRACE),
    OpCase("aten::glu", lambda x: F.glu(x, 1), (IMAGE,), (7, 13, 28), BATCH, captures=TRACE),
    OpCase("aten::glu", lambda x: F.glu(x, -1), (X,), (10, 13, 28), {0: {1: "columns"}}, [(X[:, :4],)], label="dynamic"),
    OpCase("aten::threshold", lambda x: F.threshold(x, 0.7, -2.0), (X,), (9, 28), captures=TRACE),
    OpCase("aten::threshold", lambda x: F.threshold(x, 0.7, 0.7), (X,), (7, 28), label="clip", captures=TRACE),
    OpCase("aten::hardshrink", lambda x: F.hardshrink(x, 1.0), (X,), (9, 28), captures=TRACE),
    OpCase("aten::softshrink", lambda x: F.softshrink(x, 1.0), (X,), (7, 11, 28), captures=TRACE),
    OpCase("aten::logit", torch.logit, (torch.tensor([0.1, 0.5, 0.9]),), (7, 28), captures=TRACE),
    OpCase("aten::logit", lambda x: torch.logit(x, 0.2), (torch.tensor([-0.1, 0.5, 0.9]),), (7, 28), label="eps", captures=TRACE),
    OpCase("aten::tanh", F.tanhshrink, (X,), (7, 28), captures=TRACE, label="tanhshrink"),
    OpCase("aten::div", F.softsign, (X,), (7, 28), captures=TRACE, label="softsign"),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "opset", "reason"),
    [
        (F.gelu, 8, "opset 9"),
        (lambda x: F.threshold(x, 0.0, 1.0), 8, "opset 9"),
    ],
)
def test_refuses_what_it_cannot_do_exactly(call, opset, reason, exporter):
    exporter.refuse(OpCase("", call, (X,)), opset, reason=reason)
