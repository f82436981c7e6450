"""What a loop carries from round to round, and what its rounds collect."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from onnx_exporter._frontends import _script_chains as chains
from onnx_exporter._frontends._script_forms import form_of
from onnx_exporter._frontends._script_join import as_leaf, as_maybe, common_type, is_same_constant, join, list_of, stand_in
from onnx_exporter._frontends._script_values import (
    UNINITIALISED,
    Abstract,
    CannotJoin,
    Chain,
    DictValue,
    Grown,
    ListValue,
    Maybe,
    Run,
    is_number,
    leaves,
    number_constant,
    placeholder,
)
from onnx_exporter._source.graph import SourceNode, SourceType, SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


class Assumptions:
    """Finds what a loop carries: what a round begins with is assumed, and widened until it fits how rounds end.

    Args:
        as_chains: Whether lists whose length changes become lists of the file; else they may only grow, unread.

    Attributes:
        carried: The tensors, numbers and lists that are data carried by the loop; all others are the same in each round.
    """

    def __init__(self, *, as_chains: bool) -> None:
        self.carried: set[SourceValue] = set()
        self._as_chains = as_chains

    def widen(self, assumed: Abstract, found: Abstract) -> Abstract:
        """Returns what stands for what was assumed of a round's beginning and for its end; itself, where that did.

        Raises:
            CannotJoin: If nothing can.
        """
        if found is UNINITIALISED or assumed is found:
            return assumed
        if isinstance(assumed, ListValue) and isinstance(found, ListValue):
            return self._widen_list(assumed, found)
        if isinstance(assumed, tuple) and isinstance(found, tuple) and len(assumed) == len(found):
            items = tuple(map(self.widen, assumed, found))
            return assumed if all(map(_is_unchanged, assumed, items)) else items
        joined = join(assumed, found, self._leaf)
        return assumed if _is_unchanged(assumed, joined) else joined

    def _leaf(self, first: SourceValue, second: SourceValue) -> SourceValue:
        return self._of_type(first, common_type(first.type, second.type))

    def _of_type(self, value: SourceValue, kind: SourceType) -> SourceValue:
        """A carried value of a type: this one, if it is such."""
        if value in self.carried and value.type == kind:
            return value
        made = SourceValue("", kind)
        self.carried.add(made)
        return made

    def _widen_list(self, assumed: ListValue, found: ListValue) -> ListValue:
        kept = assumed.is_known and found.is_known and len(assumed.items) == len(found.items)
        if self._as_chains and not kept:
            return self._widen_chain(assumed, found)
        if _has_grown(assumed, found):
            return assumed if assumed.is_opaque else ListValue([Grown()])
        if len(assumed.items) != len(found.items) or assumed.is_opaque or found.chain is not None is not assumed.chain:
            raise CannotJoin("a list changes its length in another way than by append")
        items = list(map(self.widen, assumed.items, found.items))
        return assumed if all(map(_is_unchanged, assumed.items, items)) else ListValue(items)

    def _widen_chain(self, assumed: ListValue, found: ListValue) -> ListValue:
        before = [] if assumed.chain is None else leaves(assumed.chain)
        form = form_of([assumed, found])
        if form is None:
            return assumed
        kinds = [list_of(leaf.type) for leaf in leaves(form)]
        if len(before) == len(kinds) and all(
            value in self.carried and value.type == kind for value, kind in zip(before, kinds, strict=True)
        ):
            return assumed
        return ListValue([chains.made_of(form, [self._of_type(SourceValue(), kind) for kind in kinds])])


def _has_grown(assumed: ListValue, found: ListValue) -> bool:
    count = len(assumed.items)
    if len(found.items) < count or (len(found.items) == count and not assumed.is_opaque):
        return False
    if assumed.chain is not None or found.chain is not None:
        return False
    return all(one is other for one, other in zip(assumed.items, found.items[:count], strict=True))


def _is_unchanged(before: Abstract, after: Abstract) -> bool:
    if before is after or is_same_constant(before, after):
        return True
    if isinstance(before, tuple) and isinstance(after, tuple):
        return all(map(_is_unchanged, before, after))
    if isinstance(before, Maybe) and isinstance(after, Maybe):
        return _is_unchanged(before.is_set, after.is_set) and _is_unchanged(before.value, after.value)
    if isinstance(before, DictValue) and isinstance(after, DictValue):
        return all(_is_unchanged(value, after.items[key]) for key, value in before.items.items())
    if isinstance(before, Chain) and isinstance(after, Chain):
        return _is_unchanged(before.elements, after.elements)
    if isinstance(before, Run) and isinstance(after, Run):
        return before.value is after.value
    return False


@dataclasses.dataclass
class Collected:
    """What a loop carries and collects, leaf by leaf.

    Attributes:
        initial: What it carries into the first round.
        inputs: What each round begins with.
        ends: What it ends with.
        outputs: What is left after the last.
        scanned: What each round adds to a list.
        stacked: That of all rounds.
    """

    initial: list[SourceValue] = dataclasses.field(default_factory=list)
    inputs: list[SourceValue] = dataclasses.field(default_factory=list)
    ends: list[SourceValue] = dataclasses.field(default_factory=list)
    outputs: list[SourceValue] = dataclasses.field(default_factory=list)
    scanned: list[SourceValue] = dataclasses.field(default_factory=list)
    stacked: list[SourceValue] = dataclasses.field(default_factory=list)


class Collector:
    """Lists what a loop carries.

    Args:
        interpreter: The interpreter, whose nodes are those before the loop.
        source: The loop.
        nodes: The nodes of its body.
        carried: The values that it carries.

    Attributes:
        found: What has been listed.
    """

    def __init__(self, interpreter: Interpreter, source: SourceNode, nodes: list[SourceNode], carried: set[SourceValue]) -> None:
        self._interpreter = interpreter
        self._place = source.location
        self._nodes = nodes
        self._carried = carried
        self._done: dict[SourceValue, SourceValue] = {}
        self.found = Collected()

    def collect(self, initial: Abstract, assumed: Abstract, found: Abstract) -> Abstract:
        """Returns what a value is after the loop, given what it is before, and at the beginning and end of a round."""
        if isinstance(assumed, SourceValue) and assumed in self._carried:
            return self._leaf(initial, assumed, found)
        if isinstance(assumed, Maybe):
            before, after = as_maybe(initial), as_maybe(found)
            return Maybe(
                self.collect(before.is_set, assumed.is_set, after.is_set), self.collect(before.value, assumed.value, after.value)
            )
        if initial is UNINITIALISED and assumed is not UNINITIALISED:
            initial = stand_in(assumed)
        if isinstance(assumed, tuple):
            return tuple(self.collect(*item) for item in zip(initial, assumed, found, strict=True))
        if isinstance(assumed, ListValue) and assumed is not found:
            return self._list(initial, assumed, found)
        if isinstance(assumed, Chain):
            return Chain(self.collect(initial.elements, assumed.elements, found.elements))
        if isinstance(assumed, Run):
            return Run(self.collect(initial.value, assumed.value, found.value), assumed.is_numbers)
        if isinstance(assumed, DictValue):
            return DictValue(
                {key: self.collect(initial.items[key], value, found.items[key]) for key, value in assumed.items.items()}
            )
        return initial

    def _list(self, initial: ListValue, assumed: ListValue, found: ListValue) -> ListValue:
        if assumed.is_opaque:
            return ListValue([*initial.items, *self._grown(found.items[1:])])
        if assumed.chain is None:
            return ListValue([self.collect(*item) for item in zip(initial.items, assumed.items, found.items, strict=True)])
        form = form_of([assumed])
        before = chains.to_chain(self._interpreter, initial, self._place, form)
        with chains.inside(self._interpreter, self._nodes):
            after = chains.to_chain(self._interpreter, found, self._place, form)
        return ListValue([self.collect(before, assumed.chain, after)])

    def _leaf(self, initial: Abstract, assumed: SourceValue, found: Abstract) -> SourceValue:
        done = self._done.get(assumed)
        if done is not None:
            return done
        kind = assumed.type
        self.found.initial.append(placeholder(kind) if initial is UNINITIALISED else as_leaf(initial))
        self.found.inputs.append(assumed)
        self.found.ends.append(placeholder(kind) if found is UNINITIALISED else as_leaf(found))
        output = self._done[assumed] = SourceValue("", kind)
        self.found.outputs.append(output)
        return output

    def _grown(self, items: list[Abstract]) -> list[Run]:
        """The elements that a list gets in each round, for all rounds."""
        if len(items) > 1:
            raise CannotJoin("a list gets several elements in a round")
        runs = []
        for item in items:
            if not (isinstance(item, SourceValue) or is_number(item)):
                raise CannotJoin("a list gets elements that are no tensors or numbers")
            value = item if isinstance(item, SourceValue) else number_constant(item)
            if value.type.dtype is None or value.type.shape is None:
                raise CannotJoin("a list gets tensors of unknown type")
            sizes = value.type.example_shape or tuple(size if isinstance(size, int) else 1 for size in value.type.shape)
            stacked = SourceValue("", SourceType(value.type.dtype, (None, *value.type.shape), example_shape=(1, *sizes)))
            self.found.scanned.append(value)
            self.found.stacked.append(stacked)
            runs.append(Run(stacked, is_number(item)))
        return runs
