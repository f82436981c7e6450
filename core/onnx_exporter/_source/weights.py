"""The weights of a captured model: which there are, under which names, and as inputs in place of constants."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import torch

from onnx_exporter._source.graph import SourceGraph, SourceValue
from onnx_exporter.errors import ArgumentError


def weights_of(graph: SourceGraph) -> list[SourceValue]:
    """Returns the named constants of a graph, each once, in the order in which they are used."""
    return list({value: None for value in graph.read_values() if value.constant is not None and value.name})


def name_weights(graph: SourceGraph, order: Sequence[str], names: Sequence[str]) -> None:
    """Gives the first weights other names.

    Args:
        graph: The captured graph; its weights carry the names of `order`.
        order: The names of all weights, in the order of the state dict.
        names: Names for the first of them; those of weights that the model does not use go unused.

    Raises:
        ArgumentError: If a name is given twice or is that of an input or of another weight.
    """
    new = dict(zip(order, names, strict=False))
    taken = [value.name for value in graph.inputs] + [name for name in order if name not in new] + list(names)
    repeated = sorted({name for name in names if taken.count(name) > 1})
    if repeated:
        raise ArgumentError(
            f"input_names gives {', '.join(map(repr, repeated))}, which stands for another input or weight too; "
            "give each its own name"
        )
    for value in weights_of(graph):
        value.name = new.get(value.name, value.name)


def weights_to_inputs(graph: SourceGraph, order: Sequence[str], reserved: Collection[str] = ()) -> dict[str, torch.Tensor]:
    """Makes each weight an input of the graph, after those that it has, and returns them by name.

    Their values are unknown from then on, so nothing that is converted can depend on them.

    Args:
        graph: The captured graph.
        order: The names that weights may have, in the order of the inputs wanted.
        reserved: Names that no input may have.
    """
    rank = {name: position for position, name in enumerate(order)}
    weights = sorted(weights_of(graph), key=lambda value: rank.get(value.name, len(rank)))
    names = {*reserved, *(value.name for value in graph.inputs)}
    tensors = {}
    for value in weights:
        assert value.constant is not None  # weights_of gives constants only
        tensor, value.constant = value.constant, None
        value.type = dataclasses.replace(value.type, shape=tuple(tensor.shape))
        base, number = value.name, 0
        while value.name in names:
            number += 1
            value.name = f"{base}_{number}"
        names.add(value.name)
        tensors[value.name] = tensor
    graph.inputs += weights
    return tensors
