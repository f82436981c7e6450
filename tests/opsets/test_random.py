"""Random tensors. Their values cannot be PyTorch's, so shape, type and distribution are tested."""

from __future__ import annotations

import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import NEWEST, OpCase

X = torch.ones(200, 100)
N = X.numel()
RUNS = 21
"""The newest opset in which ONNX Runtime 1.32 draws random numbers; Dropout it has in all."""
OPSETS = (7, 8, 13, RUNS)


def run(exporter, call, args, opset, dynamic=None, fed=None, capture="trace"):
    """Exports, without the checks that compare values, and runs the file."""
    exporter.export(OpCase("", call, args, dynamic=dynamic or {}), opset, capture, verify=False)
    session = ort.InferenceSession(str(exporter.folder / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = {item.name: value.numpy() for item, value in zip(session.get_inputs(), fed or args, strict=True)}
    return [torch.from_numpy(output) for output in session.run(None, feed)]


def moments(x):
    return x.double().mean().item(), x.double().std().item()


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize(
    ("call", "dtype", "mean", "std", "low", "high"),
    [
        (lambda x: x + torch.rand(200, 100), torch.float32, 1.5, 0.2887, 1.0, 2.0),
        (lambda x: x * torch.rand_like(x), torch.float32, 0.5, 0.2887, 0.0, 1.0),
        (lambda x: x + torch.randn(200, 100), torch.float32, 1.0, 1.0, -6.0, 8.0),
        (lambda x: x + torch.randn_like(x), torch.float32, 1.0, 1.0, -6.0, 8.0),
        (lambda x: x.double() + torch.randn_like(x, dtype=torch.float64), torch.float64, 1.0, 1.0, -6.0, 8.0),
        (lambda x: x.half() + torch.rand_like(x, dtype=torch.float16), torch.float16, 1.5, 0.2887, 1.0, 2.0),
        (lambda x: x + torch.randint(-2, 8, (200, 100)), torch.float32, 3.5, 2.8723, -1.0, 8.0),
        (lambda x: torch.randint_like(x, 4) + x, torch.float32, 2.5, 1.118, 1.0, 4.0),
        (lambda x: torch.bernoulli(x * 0.3), torch.float32, 0.3, 0.4583, 0.0, 1.0),
        (lambda x: torch.bernoulli(x, 0.8), torch.float32, 0.8, 0.4, 0.0, 1.0),
        (lambda x: torch.empty_like(x).uniform_(-1, 3) + x, torch.float32, 2.0, 1.1547, 0.0, 4.0),
        (lambda x: torch.empty_like(x).normal_(2, 3) + x, torch.float32, 3.0, 3.0, -17.0, 23.0),
        (lambda x: torch.normal(x, 2.0), torch.float32, 1.0, 2.0, -13.0, 15.0),
        (lambda x: torch.normal(x * 3, x), torch.float32, 3.0, 1.0, -4.0, 10.0),
        (lambda x: torch.empty_like(x).exponential_(2.0) * x, torch.float32, 0.5, 0.5, 0.0, 12.0),
        (lambda x: torch.multinomial(x[:, :10], 1000, replacement=True)[:20] + 0 * x[0, 0], torch.float32, 4.5, 2.8723, 0, 9),
    ],
    ids=[
        *("rand", "rand_like", "randn", "randn_like", "randn-double", "rand-half", "randint", "randint_like", "bernoulli"),
        *("bernoulli-p", "uniform_", "normal_", "normal", "normal-std", "exponential_", "multinomial"),
    ],
)
def test_distribution(call, dtype, mean, std, low, high, opset, exporter):
    if opset == 7 and "multinomial" in str(call.__code__.co_names):
        pytest.skip("multinomial with replacement needs Expand, of opset 8")
    (drawn,) = run(exporter, call, (X,), opset)
    assert drawn.dtype == dtype
    assert drawn.shape == (20, 1000) if drawn.shape[1] == 1000 else (200, 100)
    found = moments(drawn)
    assert found[0] == pytest.approx(mean, abs=5 * std / N**0.5 + 1e-3)
    assert found[1] == pytest.approx(std, rel=0.06)
    assert low <= drawn.min() and drawn.max() <= high


@pytest.mark.parametrize("opset", [12, 13, NEWEST])
def test_emits_the_operator_that_means_it(opset, exporter):
    dropout = exporter.export(OpCase("", lambda x: F.dropout(x, 0.3, training=True), (X,)), opset, verify=False)
    assert [node.op_type for node in dropout.model.graph] == ["Dropout", "Where"]


@pytest.mark.parametrize("opset", [7, 11, 12, 13, NEWEST])
@pytest.mark.parametrize("p", [0.25, 1.0])
def test_dropout_in_training(p, opset, exporter):
    (dropped,) = run(exporter, lambda x: F.dropout(x, p, training=True), (X,), opset)
    kept = dropped != 0
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=0.02)
    assert torch.allclose(dropped[kept], torch.full((int(kept.sum()),), 1 / (1 - p) if p < 1 else 0.0))


@pytest.mark.parametrize("opset", [7, 12, RUNS])
def test_native_dropout_tells_what_it_kept(opset, exporter):
    dropped, mask = run(exporter, lambda x: torch.ops.aten.native_dropout(x, 0.5, True), (X,), opset)
    assert mask.dtype == torch.bool
    assert torch.equal(mask, dropped != 0)


@pytest.mark.parametrize("opset", [8, RUNS])
def test_dropout_of_channels(opset, exporter):
    x = torch.ones(50, 40, 2, 3)
    (dropped,) = run(exporter, lambda x: F.dropout2d(x, 0.4, training=True), (x,), opset)
    channels = dropped.reshape(2000, 6)
    assert torch.equal(channels.amin(1), channels.amax(1))
    assert (channels[:, 0] != 0).double().mean().item() == pytest.approx(0.6, abs=0.06)


@pytest.mark.parametrize("call", [F.alpha_dropout, F.feature_alpha_dropout], ids=["alpha", "feature_alpha"])
def test_alpha_dropout_keeps_mean_and_variance(call, exporter):
    x = torch.randn(300, 200)
    (dropped,) = run(exporter, lambda x: call(x, 0.3, training=True), (x,), RUNS)
    mean, std = moments(dropped)
    assert mean == pytest.approx(0, abs=0.05)
    assert std == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("opset", [8, 13, RUNS])
@pytest.mark.parametrize("capture", ["trace", "export"])
def test_shapes_follow_the_input(opset, capture, exporter):
    def call(x):
        return torch.randn(x.shape[0], 3) + x[:, :3], torch.rand_like(x), torch.randint(0, 5, (x.shape[0],))

    other = torch.ones(7, 100)
    outputs = run(exporter, call, (X,), opset, {0: {0: "n"}}, (other,), capture)
    assert [tuple(output.shape) for output in outputs] == [(7, 3), (7, 100), (7,)]
    assert outputs[2].dtype == torch.int64


@pytest.mark.parametrize("opset", [7, 11, RUNS])
def test_randperm_is_a_permutation(opset, exporter):
    (order,) = run(exporter, lambda x: torch.randperm(50) + x[0, 0].long() * 0, (X,), opset)
    assert order.dtype == torch.int64
    assert torch.equal(order.sort().values, torch.arange(50))
    assert not torch.equal(order, torch.arange(50))


@pytest.mark.parametrize("opset", [7, 11, RUNS])
def test_multinomial_without_replacement_repeats_nothing(opset, exporter):
    weights = torch.tensor([0.1, 0.0, 0.4, 0.5]).repeat(100, 1)
    (samples,) = run(exporter, lambda w: torch.multinomial(w, 3), (weights,), opset)
    assert samples.shape == (100, 3) and samples.dtype == torch.int64
    assert torch.equal(samples.sort(1).values, torch.tensor([[0, 2, 3]]).expand(100, 3))
