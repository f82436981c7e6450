"""A small model whose weights tell how export treats them."""

import onnxruntime
import torch
from torch import nn

CAPTURES = ["trace", "export"]


class Net(nn.Module):
    """A convolution and a norm, a weight that is not used, and a buffer that eval mode does not read."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.unused = nn.Linear(2, 2)

    def forward(self, x):
        return self.norm(self.conv(x))


X = torch.randn(1, 3, 8, 8)
USED = ["conv.weight", "conv.bias", "norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"]


def names(values):
    return [value.name for value in values]


def run(proto, feeds):
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: value.detach().numpy() for name, value in feeds.items()})
