"""Sequences of other lengths, whose elements have other sizes where they may."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from onnx_exporter._frontends._inputs import Given, InputTensor, ModelInputs
from onnx_exporter._verify_values import resized_values


def other_lengths(inputs: ModelInputs, seed: int) -> Iterator[list[list[Given]]]:
    """Yields examples with more, with fewer and with no elements in each sequence, each in several ways, the boldest first.

    All sequences change by as many elements, since they may belong together. In the boldest way each element has a size of
    its own along the axes along which it may.

    Args:
        inputs: The example.
        seed: The same seed gives the same values.
    """
    traced = {item.name: len(item.elements) for item in inputs.tensors if item.elements is not None}
    if not traced:
        return
    changed = [{name: length + change for name, length in traced.items()} for change in (1, -1)]
    for lengths in (*(lengths for lengths in changed if min(lengths.values()) > 0), dict.fromkeys(traced, 0)):
        ways = (_of_lengths(inputs, lengths, seed, own_sizes=own_sizes) for own_sizes in (True, False))
        yield list(ways)


def _of_lengths(inputs: ModelInputs, lengths: Mapping[str, int], seed: int, *, own_sizes: bool) -> list[Given]:
    generator = torch.Generator().manual_seed(seed)
    return [
        item.tensor
        if item.elements is None
        else [_element(item, index, generator, own_sizes=own_sizes) for index in range(lengths[item.name])]
        for item in inputs.tensors
    ]


def _element(item: InputTensor, index: int, generator: torch.Generator, *, own_sizes: bool) -> torch.Tensor:
    """An element like one of the example; of a size of its own, if it is not one."""
    assert item.elements is not None
    example = item.elements[index % len(item.elements)]
    is_open = [size is None for size in item.sizes or ()]
    if index < len(item.elements) and not (own_sizes and any(is_open)):
        return example
    shape = list(example.shape)
    if own_sizes and is_open:
        shape = [size + index + 1 if may_differ else size for size, may_differ in zip(shape, is_open, strict=True)]
    return resized_values(example, shape, generator, keeps_columns=not (is_open and is_open[-1]))
