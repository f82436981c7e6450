"""Export in training mode: dropout drops, and statistics are those of the batch."""

import copy

import onnxruntime
import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn

from onnx_exporter import TrainingMode, UnsupportedOpError, export

RUNS = 21
"""The newest opset whose random operators ONNX Runtime has kernels for."""
CAPTURES = ["trace", "export"]
IMAGE = torch.randn(4, 3, 6, 5) * 2 + 1


def run(model, args, opset=18, training=TrainingMode.TRAINING, **options):
    """Exports, runs under ONNX Runtime and returns the outputs with the result of the export."""
    result = export(model, args, training=training, opset_version=opset, **options)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {item.name: tensor.numpy() for item, tensor in zip(session.get_inputs(), args, strict=True)}
    return [torch.from_numpy(output) for output in session.run(None, feeds)], result


def eager(model, args):
    with torch.no_grad():
        results = copy.deepcopy(model).train()(*(tensor.clone() for tensor in args))
    return pytree.tree_leaves(results)


def assert_like_eager(model, args, opset, **options):
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    outputs, result = run(model, args, opset, **options)
    for output, expected in zip(outputs, eager(model, args), strict=True):
        torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), f"the export changed {name}"
    return result


NORMS = {
    "1d": (nn.BatchNorm1d(3), torch.randn(5, 3)),
    "1d of sequences": (nn.BatchNorm1d(3), torch.randn(5, 3, 7)),
    "2d": (nn.BatchNorm2d(3), IMAGE),
    "3d": (nn.BatchNorm3d(2), torch.randn(2, 2, 3, 4, 5)),
    "without weights": (nn.BatchNorm2d(3, affine=False), IMAGE),
    "without statistics": (nn.BatchNorm2d(3, track_running_stats=False), IMAGE),
    "instance": (nn.InstanceNorm2d(3, affine=True), IMAGE),
    "instance with statistics": (nn.InstanceNorm2d(3, track_running_stats=True), IMAGE),
    "after a convolution": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), IMAGE),
}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [7, 9, 13, 14, 15, 18, 23])
@pytest.mark.parametrize("name", NORMS)
def test_normalisation_by_the_batch(name, opset, capture):
    model, x = NORMS[name]
    assert_like_eager(model, (x,), opset, capture=capture)


def test_verification_leaves_the_running_statistics_alone():
    model = nn.BatchNorm2d(3)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    result = export(model, (IMAGE,), training=TrainingMode.TRAINING, verify=True, dynamic_axes={"input": {0: "batch"}})
    assert result.comparison.ok
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())


def test_momentum_none_averages_all_batches():
    assert_like_eager(nn.BatchNorm2d(3, momentum=None), (IMAGE,), 18)


@pytest.mark.parametrize("training", [TrainingMode.EVAL, TrainingMode.PRESERVE])
def test_the_mode_decides(training):
    model = nn.BatchNorm2d(3).eval()
    (output,), result = run(model, (IMAGE,), training=training)
    torch.testing.assert_close(output, model(IMAGE).detach())
    assert [node.op_type for node in result.model.graph] == ["BatchNormalization"]


def test_preserve_goes_submodule_by_submodule():
    model = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3)).train()
    model[0].eval()
    _, result = run(model, (IMAGE,), training=TrainingMode.PRESERVE)
    kinds = {node.op_type for node in result.model.graph if result.origins[node.name].module == "0"}
    assert kinds == {"BatchNormalization"}
    assert "ReduceMean" in {node.op_type for node in result.model.graph if result.origins[node.name].module == "1"}
    assert (model.training, model[0].training, model[1].training) == (True, False, True)


class Reads(nn.Module):
    """Uses the running statistics after it has updated them."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3, momentum=0.3)

    def forward(self, x):
        y = self.norm(x)
        z = self.norm(y * 2 + 1)
        return z, self.norm.running_mean + 0, self.norm.running_var.clone(), self.norm.num_batches_tracked * 1


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_updated_statistics_that_the_model_reads(opset, capture):
    assert_like_eager(Reads(), (IMAGE,), opset, capture=capture)


@pytest.mark.parametrize("capture", CAPTURES)
def test_updated_statistics_that_are_inputs(capture):
    class Given(nn.Module):
        def forward(self, x, mean, var):
            y = F.batch_norm(x, mean, var, training=True, momentum=0.2)
            return y - mean[:, None, None], var

    assert_like_eager(Given(), (IMAGE, torch.rand(3), torch.rand(3)), 13, capture=capture)


def test_statistics_that_nobody_reads_are_not_in_the_file():
    _, result = run(nn.BatchNorm2d(3), (IMAGE,))
    assert set(result.model.graph.initializers) >= {"weight", "bias"}
    assert not {"running_mean", "running_var", "num_batches_tracked"} & set(result.model.graph.initializers)


def test_updated_statistics_of_instance_norm_are_refused():
    class Instance(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.InstanceNorm2d(3, track_running_stats=True)

        def forward(self, x):
            return self.norm(x), self.norm.running_mean * 2

    with pytest.raises(UnsupportedOpError, match="running statistics that it updates"):
        run(Instance(), (IMAGE,))


# Random: other values than PyTorch's, from the same distribution

ONES = torch.ones(200, 100)
OPSETS = [7, 11, 12, 13, RUNS]


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [*OPSETS, 28])
def test_dropout(opset, capture):
    """In the midst of a model too, where runtimes that are made for inference like to remove it."""
    model = nn.Sequential(nn.ReLU(), nn.Dropout(0.3), nn.Hardtanh(-9, 9))
    (output,), _ = run(model, (ONES,), opset, capture=capture)
    kept = output != 0
    assert kept.double().mean().item() == pytest.approx(0.7, abs=0.02)
    torch.testing.assert_close(output[kept], torch.full_like(output[kept], 1 / 0.7))


def test_dropout_is_gone_in_eval_mode():
    (output,), _ = run(nn.Dropout(0.3), (ONES,), training=TrainingMode.EVAL)
    assert torch.equal(output, ONES)


@pytest.mark.parametrize("module", [nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout])
@pytest.mark.parametrize("opset", [9, 12, 28])
def test_dropout_of_channels(module, opset):
    rank = {nn.Dropout1d: 1, nn.Dropout3d: 3}.get(module, 2)
    x = torch.ones(50, 40, *[2] * rank)
    (output,), _ = run(module(0.4), (x,), opset)
    channels = output.reshape(2000, -1)
    assert torch.equal(channels.amin(1), channels.amax(1))
    assert (channels[:, 0] > 0).double().mean().item() == pytest.approx(0.6, abs=0.06)


@pytest.mark.parametrize("opset", [7, 13, 28])
@pytest.mark.parametrize("module", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_alpha_dropout_keeps_mean_and_deviation(module, opset):
    (output,), _ = run(module(0.3), (torch.randn(300, 200),), opset)
    assert (output.mean().item(), output.std().item()) == pytest.approx((0, 1), abs=0.05)


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [7, 13, RUNS])
def test_rrelu_draws_a_slope_for_each_negative_element(opset, capture):
    x = torch.cat([-ONES, ONES, 0 * ONES])
    (output,), _ = run(nn.RReLU(0.1, 0.3), (x,), opset, capture=capture)
    slopes = -output[:200]
    assert torch.equal(output[200:], x[200:])
    assert 0.1 <= slopes.min() < 0.11 and 0.29 < slopes.max() <= 0.3
    assert slopes.mean().item() == pytest.approx(0.2, abs=0.005)
    assert slopes.unique().numel() > 10_000


@pytest.mark.parametrize("opset", [9, 12, RUNS])
def test_attention_drops_weights(opset):
    query, key = torch.zeros(1, 8, 50, 4), torch.zeros(1, 8, 100, 4)
    value = torch.ones(1, 8, 100, 4)
    call = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.25)  # noqa: E731
    (output,), _ = run(call, (query, key, value), opset)
    counts = output * 0.75 * 100  # each of the 100 keys has the same weight, and three of four stay
    torch.testing.assert_close(counts, counts.round(), rtol=0, atol=1e-2)
    assert counts.mean().item() == pytest.approx(75, abs=1.5)
    assert counts.std().item() == pytest.approx((100 * 0.25 * 0.75) ** 0.5, rel=0.25)


RECURRENT = {
    "lstm": nn.LSTM(3, 4, 2, dropout=1.0),
    "gru": nn.GRU(3, 4, 3, dropout=1.0, bidirectional=True),
    "rnn": nn.RNN(3, 4, 2, dropout=1.0, batch_first=True),
    "projected": nn.LSTM(3, 4, 2, dropout=1.0, proj_size=2),
}


@pytest.mark.parametrize("opset", [9, 14])
@pytest.mark.parametrize("name", RECURRENT)
def test_dropout_between_recurrent_layers(name, opset):
    """With everything dropped nothing is random, and each layer but the first sees zeros."""
    assert_like_eager(RECURRENT[name], (torch.randn(5, 2, 3),), opset)


def test_recurrent_layers_are_random_in_training():
    outputs, result = run(nn.LSTM(3, 4, 2, dropout=0.5), (torch.randn(5, 2, 3),), 14)
    assert [node.op_type for node in result.model.graph].count("Dropout") == 1
    assert outputs[0].shape == (5, 2, 4)


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, 2, dropout=1.0)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0])[0]


def test_dropout_between_layers_over_packed_sequences():
    assert_like_eager(Packed(), (torch.randn(5, 2, 3), torch.tensor([5, 3])), 14)


def test_a_whole_model():
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    assert_like_eager(model, (torch.randn(2, 5, 8),), 17)
