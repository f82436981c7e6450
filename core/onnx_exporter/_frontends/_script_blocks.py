"""Branches and loops of a scripted program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_join import Leaf, common_type, join
from onnx_exporter._frontends._script_loops import Loops
from onnx_exporter._frontends._script_values import Abstract, CannotJoin, DictValue, ListValue
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceValue

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
    """

    nodes: list[SourceNode]
    results: list[Abstract]
    changed: Contents


class Blocks:
    """Interprets branches and loops."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._loops = Loops(interpreter, self)
        self._copies = 0

    def loop(self, node: Any) -> list[Abstract]:
        """Returns the results of a loop."""
        return self._loops.loop(node)

    def side(self, run: Callable[[], list[Abstract]]) -> Side:
        """Interprets what may or may not run, or may run again; containers from before are as before afterwards."""
        interpreter = self._interpreter
        before = {container: snapshot(container) for container in interpreter.containers}
        outer, interpreter.nodes = interpreter.nodes, []
        try:
            results = run()
            nodes = interpreter.nodes
            changed = {container: snapshot(container) for container, old in before.items() if is_changed(container, old)}
        finally:
            interpreter.nodes = outer
            for container, old in before.items():
                restore(container, old)
        return Side(nodes, results, changed)

    # Branches

    def chosen(self, node: Any) -> list[Any] | None:
        """Returns the steps of the one side of a branch that runs; None if the data decide which."""
        interpreter = self._interpreter
        condition = interpreter.env[node.inputsAt(0).unique()]
        sides = list(node.blocks())
        raising = [any(inner.kind() == "prim::RaiseException" for inner in side.nodes()) for side in sides]
        if not isinstance(condition, SourceValue):
            index = 0 if condition else 1
            if raising[index]:
                raise interpreter.refusal(node, "the model raises here with these arguments", "give others")
        elif all(raising):
            raise interpreter.refusal(node, "the model raises here, whatever the data", "mend the model")
        elif any(raising):
            interpreter.drop(node)
            index = raising.index(False)
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
            results = self._both(place, condition, runs)
        except CannotJoin:
            self._copies += 1
            if self._copies > _MOST_COPIES:
                raise
            runs = [partial(interpreter.run, [*side, *rest], then) for side in steps]
            is_end = getattr(then, "is_end", False)
            try:
                return self._both(place, condition, runs, is_end=is_end)
            except CannotJoin as reason:
                if not is_end:
                    raise
                what = f"the results have no one form on both sides of a branch: {reason}"
                raise interpreter.refusal(node, what, "return tensors of one type") from None
        interpreter.bind(outputs, results)
        return None

    def _steps(self, side: Any, outputs: Sequence[Any]) -> list[Any]:
        """One side of a branch, and that the results of the branch are its."""
        return [*side.nodes(), partial(self._bind, outputs, list(side.outputs()))]

    def _bind(self, outputs: Sequence[Any], inner: Sequence[Any]) -> None:
        self._interpreter.bind(outputs, self._interpreter.values(inner))

    def either(
        self, place: Location, condition: SourceValue, first: Callable[[], SourceValue], second: Callable[[], SourceValue]
    ) -> SourceValue:
        """Returns what `first` gives where the condition holds, else what `second` gives."""
        (result,) = self._both(place, condition, [lambda: [first()], lambda: [second()]])
        assert isinstance(result, SourceValue)
        return result

    def _both(
        self, place: Location, condition: SourceValue, runs: Sequence[Callable[[], list[Abstract]]], *, is_end: bool = False
    ) -> list[Abstract]:
        """Interprets both sides, appends the node and returns its results; those of the program may differ in rank."""
        interpreter = self._interpreter
        first, second = (self.side(run) for run in runs)
        source = SourceNode("prim::If", "", {"condition": condition}, [], place)
        graphs = [SourceGraph(nodes=side.nodes) for side in (first, second)]
        leaf = self._leaf(source, graphs, is_end)
        results = [join(one, other, leaf) for one, other in zip(first.results, second.results, strict=True)]
        changes = {}
        for container in [*first.changed, *(item for item in second.changed if item not in first.changed)]:
            one = first.changed.get(container, snapshot(container))
            other = second.changed.get(container, snapshot(container))
            changes[container] = join(wrap(container, one), wrap(container, other), leaf)
        for container, value in changes.items():
            restore(container, value.items)
        if source.outputs or first.nodes or second.nodes:
            source.blocks = graphs
            interpreter.nodes.append(source)
        for value in results:
            interpreter.adopt(value)
        return results

    @staticmethod
    def _leaf(source: SourceNode, graphs: Sequence[SourceGraph], is_end: bool) -> Leaf:
        made: dict[tuple[SourceValue, SourceValue], SourceValue] = {}

        def leaf(first: SourceValue, second: SourceValue) -> SourceValue:
            known = made.get((first, second))
            if known is None:
                known = SourceValue("", common_type(first.type, second.type, any_rank=is_end))
                graphs[0].outputs.append(first)
                graphs[1].outputs.append(second)
                source.outputs.append(known)
                made[first, second] = known
            return known

        return leaf


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
