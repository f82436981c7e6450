"""Branches and loops of a scripted program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends import _script_chains as chains
from onnx_exporter._frontends._script_forms import form_of
from onnx_exporter._frontends._script_join import Leaf, common_type, join
from onnx_exporter._frontends._script_known import Known
from onnx_exporter._frontends._script_loops import Loops, Rounds
from onnx_exporter._frontends._script_values import Abstract, CannotJoin, DictValue, ListValue, Maybe
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceValue
from onnx_exporter._source.optionals import NOT

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter

_MOST_COPIES = 64
"""How often what follows a branch may be written into both of its sides."""

Contents = dict[ListValue | DictValue, Any]


@dataclasses.dataclass
class Side:
    """One side of a branch, or one round of a loop.

    Attributes:
        nodes: What it computes.
        results: What it gives.
        changed: What the containers from before hold after it, of those that it changed.
        known: What is known in it.
    """

    nodes: list[SourceNode]
    results: list[Abstract]
    changed: Contents
    known: Known


class Blocks:
    """Interprets branches and loops.

    Attributes:
        demanded: The conditions without which the program raises, whatever way it takes; each with what it must be.
        origins: The node that gives a number or condition, and the place of that among its results.
        known: What is known where the interpreter is now.
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self.demanded: list[tuple[SourceValue, bool]] = []
        self.origins: dict[SourceValue, tuple[SourceNode, int]] = {}
        self.known = Known(self.origins, {})
        self._interpreter = interpreter
        self._outermost = interpreter.nodes
        self._loops = Loops(interpreter, self)
        self._copies = 0

    def rounds(self, loop: Rounds, rest: Sequence[Any], then: Callable[[], list[Abstract]]) -> list[Abstract] | None:
        """Interprets a loop as `Loops.rounds` does."""
        return self._loops.rounds(loop, rest, then)

    def side(self, run: Callable[[], list[Abstract]]) -> Side:
        """Interprets what may or may not run, or may run again; containers from before are as before afterwards."""
        interpreter = self._interpreter
        before = {container: snapshot(container) for container in interpreter.containers}
        outer, interpreter.nodes = interpreter.nodes, []
        try:
            results = run()
            nodes = interpreter.nodes
            # An attribute that was first read here is from before too.
            before = {**interpreter.originals, **before}
            changed = {container: snapshot(container) for container, old in before.items() if is_changed(container, old)}
        finally:
            interpreter.nodes = outer
            for container, old in before.items():
                restore(container, old)
        return Side(nodes, results, changed, self.known)

    # Branches

    def chosen(self, node: Any) -> list[Any] | None:
        """Returns the steps of the one side of a branch that runs; None if the data decide which."""
        interpreter = self._interpreter
        condition = interpreter.env[node.inputsAt(0).unique()]
        sides = list(node.blocks())
        raising = [any(inner.kind() == "prim::RaiseException" for inner in side.nodes()) for side in sides]
        if not any(raising):
            condition = self.known.fact(condition)
        if not isinstance(condition, SourceValue):
            index = 0 if condition else 1
            if raising[index]:
                raise interpreter.refusal(node, "the model raises here with these arguments", "give others")
        elif all(raising):
            raise interpreter.refusal(node, "the model raises here, whatever the data", "mend the model")
        elif any(raising):
            interpreter.drop(node)
            index = raising.index(False)
            if interpreter.nodes is self._outermost:
                self.demanded.append((condition, index == 0))
        else:
            return None
        return self._steps(sides[index], list(node.outputs()))

    def branch(self, node: Any, rest: Sequence[Any], then: Callable[[], list[Abstract]]) -> list[Abstract] | None:
        """Interprets a branch that the data decide, and binds its results.

        Args:
            node: The branch.
            rest: The steps that follow it.
            then: What follows these.

        Returns:
            None or, where one value cannot stand for the results of both sides, the results of `then`: then what follows
            is in both sides, and the node has what comes out in the end.
        """
        interpreter = self._interpreter
        condition = interpreter.env[node.inputsAt(0).unique()]
        outputs, place = list(node.outputs()), interpreter.location(node)
        steps = [self._steps(side, outputs) for side in node.blocks()]
        try:
            runs = [partial(interpreter.run, side, partial(interpreter.values, outputs)) for side in steps]
            results = self.both(place, condition, runs)
        except CannotJoin:
            try:
                return self.with_rest(node, condition, [[*side, *rest] for side in steps], then)
            except CannotJoin as reason:
                try:
                    results = self.both(place, condition, runs, as_chains=True)
                except CannotJoin:
                    if not getattr(then, "is_end", False):
                        raise reason from None
                    what = f"the results have no one form on both sides of a branch: {reason}"
                    raise interpreter.refusal(node, what, "return tensors of one type") from None
        interpreter.bind(outputs, results)
        return None

    def with_rest(
        self, node: Any, condition: SourceValue, steps: Sequence[list[Any]], then: Callable[[], list[Abstract]]
    ) -> list[Abstract]:
        """Writes what follows a branch into both of its sides, and returns what comes out in the end."""
        self._copies += 1
        if self._copies > _MOST_COPIES:
            raise CannotJoin("too many branches give what has no one form")
        interpreter = self._interpreter
        runs = [partial(interpreter.run, side, then) for side in steps]
        return self.both(interpreter.location(node), condition, runs, is_end=getattr(then, "is_end", False))

    def _steps(self, side: Any, outputs: Sequence[Any]) -> list[Any]:
        """One side of a branch, and that the results of the branch are its."""
        return [*side.nodes(), partial(self._bind, outputs, list(side.outputs()))]

    def _bind(self, outputs: Sequence[Any], inner: Sequence[Any]) -> None:
        self._interpreter.bind(outputs, self._interpreter.values(inner))

    def either(
        self, place: Location, condition: SourceValue, first: Callable[[], Abstract], second: Callable[[], Abstract]
    ) -> Abstract:
        """Returns what `first` gives where the condition holds, else what `second` gives.

        Raises:
            CannotJoin: If nothing can stand for both.
        """
        return self.both(place, condition, [lambda: [first()], lambda: [second()]])[0]

    def both(
        self,
        place: Location,
        condition: SourceValue,
        runs: Sequence[Callable[[], list[Abstract]]],
        *,
        is_end: bool = False,
        as_chains: bool = False,
    ) -> list[Abstract]:
        """Interprets both sides of a branch, appends the node and returns its results.

        Args:
            place: Where the branch stands.
            condition: What decides.
            runs: The sides.
            is_end: The results are those of the program, which may differ in rank.
            as_chains: A list whose length the sides make another is one of the file.

        Raises:
            CannotJoin: If nothing can stand for the results of both.
        """
        interpreter = self._interpreter
        known = set(interpreter.containers)
        first, second = (self._on_side(run, condition, holds) for run, holds in zip(runs, (True, False), strict=True))
        source = SourceNode("prim::If", "", {"condition": condition}, [], place)
        graphs = [SourceGraph(nodes=side.nodes) for side in (first, second)]
        leaf = self._leaf(source, graphs, (first.known, second.known), is_end)
        lists = partial(self._as_chains, place, graphs, leaf) if as_chains else None
        results = [
            join(_at_end(one, other, first), _at_end(other, one, second), leaf, lists)
            for one, other in zip(first.results, second.results, strict=True)
        ]
        for one, other, result in zip(first.results, second.results, results, strict=True):
            if isinstance(result, ListValue) and _is_only(one, first, known) and _is_only(other, second, known):
                result.is_shared = False
        changes = {}
        # At the end nobody reads them any more: results are copies.
        for container in [] if is_end else [*first.changed, *(item for item in second.changed if item not in first.changed)]:
            one = first.changed.get(container, snapshot(container))
            other = second.changed.get(container, snapshot(container))
            changes[container] = join(wrap(container, one), wrap(container, other), leaf, lists)
        for container, value in changes.items():
            restore(container, value.items)
        if source.outputs or first.nodes or second.nodes:
            source.blocks = graphs
            interpreter.nodes.append(source)
        for value in results:
            interpreter.adopt(value)
        return results

    def _as_chains(
        self, place: Location, graphs: Sequence[SourceGraph], leaf: Leaf, first: ListValue, second: ListValue
    ) -> ListValue:
        """One list of the file for the lists of both sides."""
        form = form_of([first, second])
        made = []
        for graph, values in zip(graphs, (first, second), strict=True):
            with chains.inside(self._interpreter, graph.nodes):
                made.append(chains.to_chain(self._interpreter, values, place, form))
        return ListValue([join(made[0], made[1], leaf)])

    def _on_side(self, run: Callable[[], list[Abstract]], condition: SourceValue, holds: bool) -> Side:
        """Interprets the side of a branch that runs where a condition holds, or does not."""
        outer, self.known = self.known, self.known.where(condition, holds)
        try:
            return self.side(run)
        finally:
            self.known = outer

    def _leaf(self, source: SourceNode, graphs: Sequence[SourceGraph], known: Sequence[Known], is_end: bool) -> Leaf:
        made: dict[tuple[SourceValue, SourceValue], SourceValue] = {}

        def leaf(first: SourceValue, second: SourceValue) -> SourceValue:
            if (first, second) not in made:
                made[first, second] = self._decided(source, *map(Known.fact, known, (first, second))) or result(first, second)
            return made[first, second]

        def result(first: SourceValue, second: SourceValue) -> SourceValue:
            value = SourceValue("", common_type(first.type, second.type, any_rank=is_end))
            graphs[0].outputs.append(first)
            graphs[1].outputs.append(second)
            self.origins[value] = (source, len(source.outputs))
            source.outputs.append(value)
            return value

        return leaf

    def _decided(self, branch: SourceNode, first: Abstract, second: Abstract) -> SourceValue | None:
        """The condition of a branch, or its opposite, for a flag that is just that; None for all else."""
        condition: SourceValue = branch.arguments["condition"]
        if first is True and second is False:
            return condition
        if first is not False or second is not True:
            return None
        node, _ = self.origins.get(condition, (branch, 0))
        if node.op in NOT:
            return next(node.input_values())
        return self._interpreter.call("aten::__not__", condition, place=branch.location)


def _at_end(value: Abstract, other: Abstract, side: Side) -> Abstract:
    """What a side of a branch gives, as it is at its end; what the other gives too stays the same one."""
    if value is other:
        return value
    if isinstance(value, ListValue | DictValue) and value in side.changed:
        return wrap(value, side.changed[value])
    if isinstance(value, tuple):
        others = other if isinstance(other, tuple) and len(other) == len(value) else (None,) * len(value)
        return tuple(_at_end(item, counterpart, side) for item, counterpart in zip(value, others, strict=True))
    if isinstance(value, Maybe) and not (value.is_input and other is value.value):
        known = side.known.settled(value)
        if known is not value:
            return _at_end(known, other, side)
        inner = _at_end(value.value, other.value if isinstance(other, Maybe) else other, side)
        return value if inner is value.value else Maybe(value.is_set, inner)
    return value


def _is_only(value: Abstract, side: Side, known: Collection[ListValue | DictValue]) -> bool:
    """Whether a list that a side gives was made on it and has no other name."""
    if not isinstance(value, ListValue) or value in known:
        return False
    holders = [*side.results, *(wrap(container, contents) for container, contents in side.changed.items())]
    return sum(_occurrences(holder, value) for holder in holders) == 1


def _occurrences(holder: Abstract, value: ListValue) -> int:
    if holder is value:
        return 1
    if isinstance(holder, Maybe):
        return _occurrences(holder.value, value)
    if isinstance(holder, DictValue):
        holder = tuple(holder.items.values())
    items = holder if isinstance(holder, tuple) else holder.items if isinstance(holder, ListValue) else ()
    return sum(_occurrences(item, value) for item in items)


def snapshot(container: ListValue | DictValue) -> Any:
    """What a container holds."""
    return dict(container.items) if isinstance(container, DictValue) else list(container.items)


def restore(container: ListValue | DictValue, contents: Any) -> None:
    """Has a container hold what it held before."""
    container.items = dict(contents) if isinstance(container, DictValue) else list(contents)


def is_changed(container: ListValue | DictValue, before: Any) -> bool:
    """Whether a container holds something else than before."""
    if isinstance(container, DictValue):
        same = list(container.items) == list(before)
        return not same or any(container.items[key] is not value for key, value in before.items())
    return len(container.items) != len(before) or any(a is not b for a, b in zip(container.items, before, strict=True))


def wrap(container: ListValue | DictValue, contents: Any) -> ListValue | DictValue:
    """Contents as a container of the same kind."""
    return DictValue(contents) if isinstance(container, DictValue) else ListValue(contents)
