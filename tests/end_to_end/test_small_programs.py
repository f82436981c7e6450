"""Small programs of the kinds that users report, each at sizes or values that its example did not have."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter import export

torch.manual_seed(0)


class PositionsOfPixels(nn.Module):
    """Coordinates from the image's own size, divided by it."""

    def forward(self, x):
        height, width = x.shape[2], x.shape[3]
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([columns, rows], -1).float() / torch.tensor([width, height])
        return x.mean(1).unsqueeze(-1) + grid * max(height, width)


class PositionalEncoding(nn.Module):
    """A table cut to the length of the sequence."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(50, 1, 4))

    def forward(self, x):
        return x + self.table[: len(x)] / x.new_tensor([len(x), 2.0]).sum()


class ClassToken(nn.Module):
    """A batch of one as the example, and a token for each of the batch."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, 6))

    def forward(self, x):
        patches = self.patches(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1)


class BestCandidates(nn.Module):
    """As many as there are, up to six."""

    def forward(self, scores, boxes):
        values, places = scores.topk(min(6, scores.shape[0]))
        return values, boxes[places], torch.where(values > 0.5)[0]


class NeighbourMeans(nn.Module):
    """Means over the edges of a graph; nodes without edges get zero."""

    def forward(self, nodes, source, target):
        messages = nodes[source]
        total = torch.zeros_like(nodes).scatter_add(0, target.unsqueeze(-1).expand_as(messages), messages)
        count = torch.zeros(len(nodes)).scatter_add(0, target, torch.ones_like(target, dtype=nodes.dtype))
        return total / count.clamp(min=1).unsqueeze(-1)


class DetectionHead(nn.Module):
    """Boxes as expectations over bins, from two scales."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.head = nn.Conv2d(16, 4 * 8 + 3, 1)
        self.register_buffer("bins", torch.arange(8.0))

    def forward(self, x):
        fine = self.stem(x)
        coarse = F.interpolate(F.max_pool2d(fine, 2), size=fine.shape[-2:], mode="nearest")
        boxes, scores = self.head(torch.cat([fine, coarse], 1)).flatten(2).split([32, 3], 1)
        sides = (boxes.view(boxes.shape[0], 4, 8, -1).softmax(2) * self.bins.view(1, 1, 8, 1)).sum(2)
        first, last = sides.chunk(2, 1)
        return torch.cat([(first + last) / 2, last - first, scores.sigmoid()], 1)


class ModulatedConvolution(nn.Module):
    """A kernel of its own for each of a fixed batch, with one convolution in groups."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, 5, 4, 3, 3))

    def forward(self, x, style):
        weight = self.weight * style[:, None, :, None, None]
        weight = weight * weight.pow(2).sum((2, 3, 4), keepdim=True).rsqrt()
        result = F.conv2d(x.reshape(1, -1, *x.shape[2:]), weight.flatten(0, 1), padding=1, groups=2)
        return result.reshape(2, 5, *x.shape[2:])


def edges(count, nodes, *targets):
    return torch.randn(nodes, 3), torch.arange(count) % nodes, torch.tensor(targets)


PROGRAMS = {
    "positions of pixels": (PositionsOfPixels, ("x",), (torch.randn(1, 2, 4, 6),), [(torch.randn(1, 2, 7, 3),)]),
    "positional encoding": (PositionalEncoding, ("x",), (torch.randn(6, 2, 4),), [(torch.randn(11, 2, 4),)]),
    "class token": (ClassToken, ("x",), (torch.randn(1, 3, 8, 8),), [(torch.randn(5, 3, 8, 12),)]),
    "best candidates": (
        BestCandidates,
        ("scores", "boxes"),
        (torch.randperm(9).float(), torch.randn(9, 4)),
        [(torch.randperm(4).float(), torch.randn(4, 4)), (torch.randperm(20).float(), torch.randn(20, 4))],
    ),
    "neighbour means": (
        NeighbourMeans,
        ("nodes", "source", "target"),
        edges(6, 5, 1, 1, 0, 0, 2, 1),
        [edges(3, 7, 3, 3, 0), edges(1, 2, 1)],
    ),
    "detection head": (DetectionHead, ("x",), (torch.randn(1, 3, 16, 16),), [(torch.randn(2, 3, 24, 12),)]),
    "modulated convolution": (
        ModulatedConvolution,
        ("x", "style"),
        (torch.randn(2, 4, 9, 8), torch.randn(2, 4)),
        [(torch.randn(2, 4, 5, 12), torch.randn(2, 4))],
    ),
}


@pytest.mark.parametrize("opset", [11, 16, 18])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("error::onnx_exporter.ExportWarning")
def test_a_program_follows_its_inputs(name, opset):
    make, names, args, others = PROGRAMS[name]
    axes = {
        given: {
            axis: f"{given}_{axis}"
            for axis, size in enumerate(tensor.shape)
            if any(size != other[at].shape[axis] for other in others)
        }
        for at, (given, tensor) in enumerate(zip(names, args, strict=True))
    }
    result = export(
        make().eval(), args, input_names=names, dynamic_axes={name: found for name, found in axes.items() if found},
        opset_version=opset, verify=True, verify_args=others,
    )  # fmt: skip
    assert len(result.comparison.runs) == 1 + len(others)
    assert not {"If", "Loop"} & {node.op_type for node in result.model.graph.all_nodes()}
