"""In-place writes into buffers, parameters and tensors in attributes that branches choose."""

from __future__ import annotations

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import export

X = torch.tensor([1.5, -0.5, 2.0])


class Buffers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("b", torch.zeros(3))
        self.register_buffer("c", torch.ones(3))
        self.weight = nn.Parameter(torch.ones(2, 3))
        self.norm = nn.BatchNorm1d(3)
        self.items = [torch.ones(3), torch.zeros(3)]
        self.named = {"a": torch.ones(3), "b": torch.zeros(3)}


class Buffer(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        v = self.b if bool(x.sum() > 0) else self.c
        v.add_(1)
        return self.b + x


class BufferOrResult(Buffers):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        v = self.b if bool(x.sum() > 0) else x * 1
        v.add_(1)
        return self.b + x, v


class RowOfAParameter(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            v = self.weight[0] if bool(x.sum() > 0) else self.weight[1]
            v.mul_(3)
        return self.weight * x


class AverageInALoop(Buffers):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        for i in range(x.size(0)):
            v = self.b if bool(x[i] > 0) else self.c
            v.mul_(0.5).add_(x[i])
        return self.b * 1, self.c * 1


class RunningStatistics(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        mean, variance = self.norm.running_mean, self.norm.running_var
        assert mean is not None and variance is not None
        v = mean if bool(x.sum() > 0) else variance
        v.add_(1)
        return self.norm(x.expand(2, 3))


class Items(Buffers):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        v = self.items[0] if bool(x.sum() > 0) else self.items[1]
        v.add_(1)
        w = self.named["a"] if bool(x.sum() > 0) else self.named["b"]
        w.add_(1)
        return self.items[0] * 1, self.items[1] * 1, self.named["a"] * 1, self.named["b"] * 1


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("model", [Buffer, BufferOrResult, RowOfAParameter, AverageInALoop, RunningStatistics, Items])
def test_a_write_into_a_buffer_that_a_branch_chose_is_seen(model: type[nn.Module], opset: int) -> None:
    """Each run of the file begins with the buffers that the model had."""
    result = export(torch.jit.script(model().eval()), (X,), None, opset_version=opset)
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    for x in (X, -X, X * X):
        with torch.jit.optimized_execution(False):
            expected = torch.jit.script(model().eval())(x.clone())
        given = {item.name: x.numpy() for item in session.get_inputs()}
        for actual, wanted in zip(
            session.run(None, given), expected if isinstance(expected, tuple) else (expected,), strict=True
        ):
            torch.testing.assert_close(torch.from_numpy(actual), wanted.detach())
