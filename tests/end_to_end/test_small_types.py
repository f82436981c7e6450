"""Half and bfloat16 models end to end, at sizes that the example did not have."""

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter import export

NAMES = {torch.float16: onnx.TensorProto.FLOAT16, torch.bfloat16: onnx.TensorProto.BFLOAT16}


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.SiLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, groups=2),
            nn.GroupNorm(2, 8),
        )
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = F.interpolate(self.body(x), scale_factor=2.0, mode="nearest")
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)).softmax(-1)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, norm_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(16), enable_nested_tensor=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], dtype=self.embedding.weight.dtype)
        return self.encoder(self.embedding(tokens), mask=mask)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True, bidirectional=True, num_layers=2)
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        result, (state, _) = self.lstm(x)
        return self.head(result), state


def images(dtype):
    return [torch.randn(2, 3, 12, 10).to(dtype), torch.randn(3, 3, 9, 14).to(dtype)], {0: "batch", 2: "height", 3: "width"}


def tokens(dtype):
    return [torch.randint(0, 20, (2, 5)), torch.randint(0, 20, (3, 8))], {0: "batch", 1: "time"}


def sequences(dtype):
    return [torch.randn(2, 5, 6).to(dtype), torch.randn(3, 8, 6).to(dtype)], {0: "batch", 1: "time"}


MODELS = {"convolutional": (ConvNet, images), "transformer": (Transformer, tokens), "recurrent": (Recurrent, sequences)}


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(
    ("dtype", "opset"), [(torch.float16, 9), (torch.float16, 18), (torch.float16, 28), (torch.bfloat16, 18), (torch.bfloat16, 28)]
)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_a_small_type_keeps_it(name, dtype, opset, capture, tmp_path):
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    model = make().eval().to(dtype)
    (example, other), axes = inputs(dtype)
    result = export(
        model, (example,), tmp_path / "model.onnx", input_names=["x"], dynamic_axes={"x": axes}, opset_version=opset,
        capture=capture, verify=True, verify_args=[(other,)],
    )  # fmt: skip
    assert len(result.comparison.runs) == 2
    file = onnx.load(tmp_path / "model.onnx")
    weights = {tensor.data_type for tensor in file.graph.initializer if tensor.name in dict(model.named_parameters())}
    results = {value.type.tensor_type.elem_type for value in file.graph.output}
    assert weights == results == {NAMES[dtype]}
