"""torch.onnx's own helpers and operators, as clients call them, give right ONNX on our values.

Every function that torch.onnx has for an operator of PyTorch is registered, so that whole models are converted by them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import onnx_exporter
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._symbolics import REGISTERED

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import verified

X = torch.randn(2, 3, 8, 8)
V = torch.randn(4, 6)
INDEX = torch.tensor([[0], [1], [2], [0]])


def with_written_column(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[:, 0] = 1.0
    return x


CASES: dict[str, tuple[Any, torch.Tensor]] = {
    "addcmul": (lambda x: torch.addcmul(x, x, x, value=0.5), V),
    "addmm": (lambda x: torch.addmm(x[:, :4], x, x.t()), V),
    "arange": (lambda x: torch.arange(x.shape[0]) + x[:, 0].long(), V),
    "argmax": (lambda x: x.argmax(1), V),
    "avg_pool2d": (nn.AvgPool2d(3, 2, 1), X),
    "batch_norm": (nn.BatchNorm2d(3), X),
    "bmm": (lambda x: torch.bmm(x[:, 0], x[:, 1]), X),
    "bool": (lambda x: ~(x > 0) & (x < 1), V),
    "cat": (lambda x: torch.cat([x, x * 2], 1), X),
    "chunk": (lambda x: torch.chunk(x, 2, 1)[1], V),
    "clamp": (lambda x: x.clamp(min=0.1).clamp(-0.5, 0.5), X),
    "conv2d": (nn.Conv2d(3, 4, 3, padding=1), X),
    "conv_transpose2d": (nn.ConvTranspose2d(3, 4, 3, stride=2), X),
    "cumsum": (lambda x: x.cumsum(1), V),
    "div": (lambda x: torch.div(x, 2, rounding_mode="floor") / 3, V),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), V),
    "embedding": (nn.Embedding(5, 3), torch.randint(5, (2, 3))),
    "embedding_bag": (nn.EmbeddingBag(5, 3), torch.randint(5, (2, 3))),
    "expand": (lambda x: x[:, :1].expand(x.shape[0], 6), V),
    "flip": (lambda x: x.flip(1), V),
    "gather": (lambda x: x.gather(1, INDEX), V),
    "gelu": (lambda x: F.gelu(x) + F.gelu(x, approximate="tanh"), V),
    "group_norm": (nn.GroupNorm(3, 3), X),
    "gru": (nn.GRU(6, 5), torch.randn(3, 2, 6)),
    "index": (lambda x: x[torch.tensor([0, 1]), torch.tensor([1, 2])], V),
    "index_put": (with_written_column, V),
    "instance_norm": (nn.InstanceNorm2d(3), X),
    "interpolate": (lambda x: F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=False), X),
    "interpolate to a size of the input": (lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 2)), X),
    "layer_norm": (nn.LayerNorm(6), V),
    "linalg_vector_norm": (lambda x: torch.linalg.vector_norm(x, 2, 1), V),
    "linear": (nn.Linear(6, 3), V),
    "lstm": (nn.LSTM(6, 5, bidirectional=True), torch.randn(3, 2, 6)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, -1.0), V),
    "max": (lambda x: (x.max(1), x.max(), torch.maximum(x, x * 2)), V),
    "max_pool2d": (nn.MaxPool2d(3, 2, ceil_mode=True), X),
    "meshgrid": (lambda x: torch.meshgrid(x[0], x[1], indexing="ij"), V),
    "nll_loss": (lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 3])), V),
    "numbers": (lambda x: 1 - x + x.numel() * x.size(0), V),
    "one_hot": (lambda x: F.one_hot(x.argmax(1), 6), V),
    "pad": (lambda x: F.pad(x, (1, 2)), V),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(torch.cat([x, x[:, :1]], 1), 2), X),
    "pow": (lambda x: x**2, X),
    "prelu": (nn.PReLU(), V),
    "repeat": (lambda x: x.repeat(2, 1), V),
    "roll": (lambda x: x.roll(1, 1), V),
    "scatter": (lambda x: x.scatter(1, INDEX, 1.0), V),
    "slice": (lambda x: x[:, 1:, ::2], X),
    "softmax": (lambda x: x.softmax(1) + x.log_softmax(1), V),
    "split": (lambda x: torch.split(x, [1, 2, 3], 1)[1], V),
    "squeeze": (lambda x: x.unsqueeze(0).squeeze(), V),
    "stack": (lambda x: torch.stack([x, x], 1), X),
    "std": (lambda x: x.std(1) + x.var(1), V),
    "sum": (lambda x: x.sum(1, keepdim=True) + x.mean((2, 3), keepdim=True), X),
    "to": (lambda x: (x.to(torch.float64), x.long(), (x > 0).type_as(x)), V),
    "topk": (lambda x: x.topk(2, 1), V),
    "tril": (lambda x: x.tril() + x.triu(1), V),
    "unbind": (lambda x: x.unbind(1)[1], V),
    "unfold": (lambda x: F.unfold(x, 3), X),
    "view": (lambda x: x.view(x.shape[0], -1).permute(1, 0), X),
    "where": (lambda x: torch.where(x > 0, x, torch.zeros_like(x)), V),
    "zeros": (lambda x: torch.zeros(x.shape[0], 3) + x[:, :3], V),
}
FROM_11 = {
    "flip",
    "gather",
    "index",
    "index_put",
    "interpolate",
    "interpolate to a size of the input",
    "roll",
    "scatter",
    "numbers",
}
"""Cases that the functions of opset 9 do not convert, or convert to what ONNX Runtime does not run."""

NOT_IN_TORCH = {f"aten::{name}" for name in ("__and__.Tensor", "select_scatter", "chunk", "cumsum", "einsum", "im2col", "tril")}
NOT_IN_TORCH |= {"aten::embedding_bag.padding_idx", "aten::cross_entropy_loss", "aten::triu", "aten::slice.Tensor"}
"""Operators in the cases that torch.onnx has not at every one of these opsets, or declines there."""


@pytest.fixture(scope="module", params=[9, 11, 13, 17])
def opset(request: pytest.FixtureRequest) -> Iterator[int]:
    registry = _torch_onnx.find_registry()
    _torch_onnx.load_builtins()
    names = [name for name in registry.all_functions() if name.startswith("aten::")]
    for name in names:
        function = registry.get_function_group(name).get(request.param)
        if function is not None:
            onnx_exporter.register_custom_op_symbolic(name, function, request.param)
    yield request.param
    for name, version, _ in list(REGISTERED):
        onnx_exporter.unregister_custom_op_symbolic(name, version)


@pytest.mark.parametrize("name", CASES)
def test_operators_of_torch_onnx(opset: int, name: str) -> None:
    if opset == 9 and name in FROM_11:
        pytest.skip("torch.onnx converts it from opset 11 on")
    model, example = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.onnx warns of what it approximates
        result = verified(model, example, opsets=[opset], dynamic=name not in ("lstm", "gru"))
    ours = {origin.op for origin in result.origins.values() if origin.plugin.startswith("symbolic_opset")}
    assert ours <= NOT_IN_TORCH, "torch.onnx converted it, not we"
