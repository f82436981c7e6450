"""A frozen registry: who converts which operator, in which order of precedence."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from onnx_exporter._optable import Entry, OpTable, Passthrough
from onnx_exporter.errors import RegistrationError


class Precedence(enum.IntEnum):
    """Who goes first; the lowest number wins."""

    CALL = 0
    REGISTERED = 1
    PREFERRED = 2
    PLUGIN = 3
    TORCH_ONNX = 4
    OPSET = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Provider:
    """A plugin as a contributor of tables.

    Attributes:
        name: Entry-point name, or a made-up one for tables given to one call.
        distribution: Name of the distribution it came in.
        version: Version of that distribution.
        precedence: Its rank.
        tables: What it contributes.
        entries: Functions that it contributes besides, each with opsets of its own.
        fallback: Its hook for operators that nobody converts, if it has one.
    """

    name: str
    distribution: str
    version: str
    precedence: Precedence
    tables: tuple[OpTable, ...] = ()
    entries: tuple[Entry, ...] = ()
    fallback: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})" if self.distribution else self.name


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """An entry with the plugin it comes from."""

    entry: Entry
    provider: Provider

    def __str__(self) -> str:
        return f"{self.provider.name}: {self.entry.title} at {self.entry.place}"

    @property
    def full_name(self) -> str:
        """The function with the plugin's distribution and version, for messages."""
        return f"{self.provider}: {self.entry.title} at {self.entry.place}"


class Registry:
    """All that a set of plugins contributes, frozen. Two registries can live side by side.

    Args:
        providers: The plugins; order does not matter.

    Raises:
        RegistrationError: If two plugins claim one name and neither says that it replaces the other's.
    """

    def __init__(self, providers: Iterable[Provider]) -> None:
        self.providers = tuple(sorted(providers, key=lambda provider: (provider.precedence, provider.name)))
        self._entries: dict[str, list[Candidate]] = defaultdict(list)
        self._python_ops: dict[str, list[Candidate]] = defaultdict(list)
        self._passthroughs: list[tuple[Passthrough, Provider]] = []
        for provider in self.providers:
            self._add(provider.entries, provider)
            for table in provider.tables:
                if table.replaces and provider.precedence > Precedence.PREFERRED:
                    continue
                self._add(table, provider)
                for entry in table.python_ops.values():
                    self._python_ops[entry.name].append(Candidate(entry, provider))
                self._passthroughs += [(passthrough, provider) for passthrough in table.passthroughs]
        for candidates in (*self._entries.values(), *self._python_ops.values()):
            candidates.sort(key=lambda candidate: (candidate.provider.precedence, -candidate.entry.opset))
            _check_clash(candidates)

    def _add(self, entries: Iterable[Entry], provider: Provider) -> None:
        for entry in entries:
            self._entries[entry.name].append(Candidate(entry, provider))

    def candidates(self, op: str, overload: str, opset: int) -> list[Candidate]:
        """Returns who converts ``op.overload`` at `opset`, in the order in which they are asked."""
        found = [
            (candidate.provider.precedence, rank, -candidate.entry.opset, candidate)
            for rank, name in enumerate((f"{op}.{overload}", op) if overload else (op,))
            for candidate in self._entries.get(name, ())
            if candidate.entry.opset <= opset <= candidate.entry.last_opset
        ]
        found.sort(key=lambda row: row[:3])
        if found and found[0][0] < Precedence.TORCH_ONNX:
            # What a plugin refuses for a reason is not tried with a function that may not know of it.
            found = [row for row in found if row[0] is not Precedence.TORCH_ONNX]
        return [row[3] for row in found]

    def python_op_candidates(self, name: str, module: str, opset: int) -> list[Candidate]:
        """Returns the handlers for an ``autograd.Function`` class at `opset`."""
        found = self._python_ops.get(f"{module}:{name}", []) + self._python_ops.get(name, [])
        return [candidate for candidate in found if candidate.entry.opset <= opset]

    def passthrough(self, op: str, opset: int, *, replacing: bool = False) -> tuple[Passthrough, Provider] | None:
        """Returns the fall-through rule for an operator, if any.

        Args:
            op: The operator.
            opset: The target opset.
            replacing: Only rules that go before every symbolic function.
        """
        for passthrough, provider in self._passthroughs:
            if (passthrough.replaces or not replacing) and passthrough.opset <= opset and passthrough.matches(op):
                return passthrough, provider
        return None

    def available_from(self, op: str, overload: str, opset: int) -> int | None:
        """Returns the lowest opset above `opset` in which somebody converts the operator, or None."""
        names = (f"{op}.{overload}", op)
        later = [c.entry.opset for name in names for c in self._entries.get(name, ()) if c.entry.opset > opset]
        return min(later, default=None)

    def close_names(self, op: str) -> Sequence[str]:
        """Returns names in the registry that look like `op`."""
        return difflib.get_close_matches(op, {name.split(".")[0] for name in self._entries}, n=3, cutoff=0.8)

    def operators(self) -> Iterator[tuple[str, Sequence[Candidate]]]:
        """Yields each operator name, sorted, with everybody who converts it at some opset."""
        yield from sorted(self._entries.items())

    def python_ops(self) -> Iterator[tuple[str, Sequence[Candidate]]]:
        """Yields each ``autograd.Function`` name, sorted, with its handlers."""
        yield from sorted(self._python_ops.items())

    def __contains__(self, name: str) -> bool:
        return name in self._entries


def _check_clash(candidates: Sequence[Candidate]) -> None:
    """Two plugins of one rank, or a plugin and a built-in, may not claim one name unasked."""
    plugins = [candidate for candidate in candidates if candidate.provider.precedence is Precedence.PLUGIN]
    others = [candidate for candidate in candidates if candidate.provider.precedence is Precedence.OPSET]
    for first, second in itertools.pairwise(candidates):
        same_opset = first.entry.opset == second.entry.opset
        if first.provider.precedence is second.provider.precedence is Precedence.OPSET and same_opset:
            raise RegistrationError(f"{first.entry.name!r} is in two tables of opset {first.entry.opset}:\n  {first}\n  {second}")
    names = {candidate.provider.name for candidate in plugins}
    clash = plugins[:1] + ([c for c in plugins if c.provider.name != plugins[0].provider.name] if len(names) > 1 else others)[:1]
    if len(clash) == 2 and len(names) >= 1:
        first, second = clash
        raise RegistrationError(
            f"two plugins convert {first.entry.name!r}:\n"
            f"  {first.provider}: {first.entry.place}\n  {second.provider}: {second.entry.place}\n"
            f"disable one (plugins=['no:{first.provider.name}'], -p no:{first.provider.name}); "
            f"a plugin that means to take over a name declares OpTable(replaces=True) "
            f"and is then used with prefer=['{first.provider.name}']"
        )
