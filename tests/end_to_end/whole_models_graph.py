"""Models whose inputs are of uneven shape: packed sequences, bags of features, graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from whole_models_spec import WholeModel


class PackedGru(nn.Module):
    """A GRU of both directions over sequences of different lengths, with pooling over what is real of them."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(30, 8)
        self.gru = nn.GRU(8, 10, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(40, 3)

    def forward(self, tokens, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        outputs, state = self.gru(packed)
        padded, sizes = nn.utils.rnn.pad_packed_sequence(outputs, batch_first=True)
        mean = padded.sum(1) / sizes.unsqueeze(1)
        return self.head(torch.cat([mean, state[-1], state[-2]], dim=1)), padded


class Dlrm(nn.Module):
    """Meta's recommendation model: bags of categories, dense features, and products of every two of them."""

    def __init__(self, tables: int = 3, width: int = 8) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(20 + table, width, mode="sum") for table in range(tables))
        self.bottom = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Linear(12, width), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, offset=-1))
        self.top = nn.Sequential(nn.Linear(width + pairs, 12), nn.ReLU(), nn.Linear(12, 1), nn.Sigmoid())

    def forward(self, dense, indices, offsets):
        dense = self.bottom(dense)
        bags = [bag(indices[table], offsets[table]) for table, bag in enumerate(self.bags)]
        features = torch.stack([dense, *bags], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], dim=1))


class GraphNetwork(nn.Module):
    """Two layers of messages along edges, each node taking the mean of its own, then a mean for every graph."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = nn.ModuleList([nn.Linear(2 * 6, 6), nn.Linear(2 * 6, 6)])
        self.head = nn.Linear(6, 2)

    def forward(self, nodes, edges, graph, graphs):
        source, target = edges
        first = torch.relu(self.messages[0](torch.cat([nodes[source], nodes[target]], dim=1)))
        total = torch.zeros_like(nodes).index_add(0, target, first)
        count = torch.zeros_like(nodes[:, 0]).index_add(0, target, torch.ones_like(target, dtype=nodes.dtype))
        nodes = nodes + total / count.clamp(min=1).unsqueeze(1)
        second = torch.relu(self.messages[1](torch.cat([nodes[source], nodes[target]], dim=1)))
        index = target.unsqueeze(1).expand_as(second)
        nodes = nodes + torch.zeros_like(nodes).scatter_reduce(0, index, second, "mean", include_self=False)
        empty = nodes.new_zeros(graphs.size(0), nodes.size(1))
        pooled = empty.scatter_reduce(0, graph.unsqueeze(1).expand_as(nodes), nodes, "mean", include_self=False)
        return self.head(pooled), nodes


def _sequences(batch: int = 3, length: int = 6) -> tuple[Any, ...]:
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[-1] = length
    return torch.randint(0, 30, (batch, length)), lengths


def _features(batch: int = 3, count: int = 9) -> tuple[Any, ...]:
    offsets = torch.sort(torch.randint(0, count, (3, batch)), dim=1).values
    offsets[:, 0] = 0
    return torch.randn(batch, 5), torch.randint(0, 20, (3, count)), offsets


def _graph(nodes: int = 7, edges: int = 11, graphs: int = 2) -> tuple[Any, ...]:
    members = torch.sort(torch.randint(0, graphs, (nodes,))).values
    return torch.randn(nodes, 6), torch.randint(0, nodes, (2, edges)), members, torch.zeros(graphs)


OTHERS = {
    "gru-packed": WholeModel(
        PackedGru,
        _sequences,
        {"tokens": {0: "batch", 1: "length"}, "lengths": {0: "batch"}},
        ({"batch": 5, "length": 9}, {"batch": 1, "length": 2}),
    ),
    "dlrm": WholeModel(
        Dlrm,
        _features,
        {"dense": {0: "batch"}, "indices": {1: "count"}, "offsets": {1: "batch"}},
        ({"batch": 5, "count": 14}, {"batch": 1, "count": 2}),
        exports=True,
    ),
    "graph-network": WholeModel(
        GraphNetwork,
        _graph,
        {"nodes": {0: "nodes"}, "edges": {1: "edges"}, "graph": {0: "nodes"}, "graphs": {0: "graphs"}},
        ({"nodes": 12, "edges": 30, "graphs": 4}, {"nodes": 3, "edges": 2, "graphs": 1}),
        exports=True,
    ),
}
