"""Functionalization of branches and loops: a tensor from outside that a block writes becomes a result of it.

Of a branch both sides give the tensor's new value, of a loop it is carried from round to round. What a block gives or
carries is a value of its own, although PyTorch may share memory with what it came from: where that would be seen,
`sinking.py` has moved the write into the branch, or refused it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onnx_exporter._source.choices import refusal
from onnx_exporter._source.emit import without_strides
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceValue, values_in

if TYPE_CHECKING:
    from onnx_exporter._source.functionalize import _Alias, _Functionalizer, _Storage


_KEEPING = {"prim::ListConstruct": ("tensors",), "prim::ListInsert": ("element",)}
"""Nodes that put tensors into a list, and the arguments that they put there."""

_READING = "prim::ListAt"


class ControlFlow:
    """Rewrites nodes with blocks.

    Args:
        functionalizer: What rewrites the nodes inside, and knows what views what.
    """

    def __init__(self, functionalizer: _Functionalizer) -> None:
        self._functionalizer = functionalizer
        self._kept: set[SourceValue] = set()
        self._read: set[SourceValue] = set()

    def rewrite(self, node: SourceNode) -> None:
        """Makes the blocks of a node pure; the node gives what they write."""
        if node.op == "prim::Loop":
            self._loop(node)
        else:
            self._branches(node)

    def check_write(self, storage: _Storage, location: Location) -> None:
        """Refuses a write into memory that a list of unknown length holds too.

        Raises:
            UnsupportedOpError: If it does.
        """
        if storage.origin in self._kept:
            raise refusal(location, "a tensor is written in place that a list holds whose length the data decide")
        if storage.origin in self._read:
            raise refusal(location, "a tensor is written in place that comes from a list whose length the data decide")

    # Lists

    def note_lists(self, node: SourceNode) -> None:
        """Notes what a node puts into a list whose length the data decide, or takes out of it: the list holds values."""
        self._kept.difference_update(node.outputs)  # in each round of a loop it is another tensor
        if node.op in _KEEPING:
            self._keep(value for name in _KEEPING[node.op] for value in values_in(node.arguments[name]))
        elif node.op == _READING:
            self._read.update(node.outputs)

    def _keep(self, values: Iterable[SourceValue]) -> None:
        functionalizer = self._functionalizer
        self._kept.update(
            functionalizer.tensor(value).alias.storage.origin for value in values if value in functionalizer.written
        )

    # Branches

    def _branches(self, node: SourceNode) -> None:
        self._meet_outer(node)
        sides = []
        for block in node.blocks:
            before = self._save()
            self._inside(block)
            sides.append({alias: alias.value for alias in self._written_since(before)})
            self._restore(before)
        bases = list(dict.fromkeys(alias for side in sides for alias in side))
        for base in bases:
            for block, side in zip(node.blocks, sides, strict=True):
                block.outputs.append(side.get(base, base.value))
            self._replace(node, base, len(node.outputs))

    # Loops

    def _loop(self, node: SourceNode) -> None:
        self._meet_outer(node)
        (body,) = node.blocks
        carried: list[SourceValue] = node.arguments["carried"]
        inputs = body.inputs[1:]
        before = self._save()
        trial = SourceGraph(body.inputs, _copies(body.nodes), body.outputs)
        self._inside(trial)
        self._keep(body.outputs[1 + len(inputs) :])
        bases = self._written_since(before)
        self._restore(before)
        starts = []
        for base in bases:
            carried.append(base.value)
            inner = SourceValue(type=without_strides(base.type))
            starts.append(inner)
            _set(base, inner)
        body.inputs += starts
        self._inside(body)
        count = 1 + len(inputs)
        body.outputs[count:count] = [base.value for base in bases]
        self._restore(before)
        for position, base in enumerate(bases):
            self._replace(node, base, len(inputs) + position)

    # Both

    def _inside(self, block: SourceGraph) -> None:
        functionalizer = self._functionalizer
        functionalizer.forget(block.inputs)
        outputs = block.outputs
        block.nodes = functionalizer.rewrite(block, lambda: [functionalizer.read(value) for value in outputs])

    def _meet_outer(self, node: SourceNode) -> None:
        """Notes the tensors from outside that the blocks may write or view, before they do."""
        functionalizer = self._functionalizer
        own = {value for block in node.blocks for value in (*block.inputs, *block.made_values())}
        for block in node.blocks:
            for value in block.read_values():
                if value in functionalizer.written and value not in own:
                    functionalizer.tensor(value)

    def _replace(self, node: SourceNode, base: _Alias, position: int) -> None:
        """Has a base take the value that a node gives."""
        result = SourceValue(type=without_strides(base.type))
        node.outputs.insert(position, result)
        _set(base, result)

    def _save(self) -> list[tuple[_Alias, SourceValue, int, int]]:
        return [(alias, alias.value, alias.seen, alias.storage.writes) for alias in self._functionalizer.aliases]

    def _restore(self, before: Sequence[tuple[_Alias, SourceValue, int, int]]) -> None:
        for alias, value, seen, writes in before:
            alias.value, alias.seen, alias.storage.writes = value, seen, writes

    @staticmethod
    def _written_since(before: Sequence[tuple[_Alias, SourceValue, int, int]]) -> list[_Alias]:
        """The bases whose memory has been written."""
        return [alias for alias, _, _, writes in before if alias.view is None and alias.storage.writes != writes]


def _set(base: _Alias, value: SourceValue) -> None:
    base.storage.writes += 1
    base.value, base.seen = value, base.storage.writes


def _copies(nodes: Sequence[SourceNode]) -> list[SourceNode]:
    """Copies that can be rewritten while the nodes stay as they are."""
    return [
        dataclasses.replace(
            node,
            arguments={name: _copy(argument) for name, argument in node.arguments.items()},
            outputs=list(node.outputs),
            blocks=[SourceGraph(list(block.inputs), _copies(block.nodes), list(block.outputs)) for block in node.blocks],
        )
        for node in nodes
    ]


def _copy(argument: Any) -> Any:
    return list(argument) if isinstance(argument, list) else argument
