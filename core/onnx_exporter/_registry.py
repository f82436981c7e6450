"""A frozen registry: who converts which operator, in which order of precedence."""

from __future__ import annotations

import dataclasses
import difflib
import enum
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

from onnx_exporter._clashes import check_builtins, check_claims
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET, Entry, OpTable, Passthrough
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
        position: Its place among those of its rank; below 0 if the caller prefers one of the plugins given to the call.
        tables: What it contributes.
        entries: Functions that it contributes besides, each with opsets of its own.
        fallback: Its hook for operators that nobody converts, if it has one.
        python_op: Its hook for ``autograd.Function`` classes that no table names, if it has one.
        opsets: The opsets that it says it is for; at others it is not asked.
    """

    name: str
    distribution: str
    version: str
    precedence: Precedence
    tables: tuple[OpTable, ...] = ()
    entries: tuple[Entry, ...] = ()
    fallback: Callable[..., Any] | None = None
    python_op: Callable[..., Any] | None = None
    opsets: frozenset[int] = frozenset(range(OLDEST_OPSET, NEWEST_OPSET + 1))
    position: int = 0

    def __str__(self) -> str:
        return f"{self.name} ({self.distribution} {self.version})" if self.distribution else self.name

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands among all; the lowest goes first."""
        return self.precedence, self.position

    @property
    def is_builtin(self) -> bool:
        """Whether it is an opset package."""
        return self.precedence is Precedence.OPSET

    @property
    def is_preferred(self) -> bool:
        """Whether the caller has put it before others."""
        return self.precedence is Precedence.PREFERRED or self.position < 0

    @property
    def is_given(self) -> bool:
        """Whether it is a table, an object or a file of this call."""
        return self.precedence is Precedence.CALL

    @property
    def is_unasked(self) -> bool:
        """Whether it takes part only because it is installed."""
        return self.precedence is Precedence.PLUGIN


@dataclasses.dataclass(frozen=True, slots=True)
class Via:
    """Who converts a node where no function of a table does.

    Attributes:
        name: Who it is, for messages.
        plugin: The plugin.
        version: Version of its distribution.
        module: Where what of it converts the node is.
        title: Name of that.
        code: The code of that, if the node's line is one in it.
        place: ``file:line`` of it otherwise.
    """

    name: str
    plugin: str
    version: str
    module: str
    title: str
    code: CodeType | None = None
    place: str = ""

    @classmethod
    def of(cls, name: str, plugin: str, version: str, function: Callable[..., Any]) -> Via:
        """Returns the one whose function converts the node."""
        plain = inspect.unwrap(function)
        title = getattr(plain, "__qualname__", type(plain).__name__)
        module = plain.__module__ or ""  # code that exec() ran may be of no module
        return cls(name, plugin, version, module, title, getattr(plain, "__code__", None))


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

    def is_for(self, opset: int) -> bool:
        """Whether the entry is used at an opset."""
        return self.entry.opset <= opset <= self.entry.last_opset and opset in self.provider.opsets


class Registry:
    """All that a set of plugins contributes, frozen. Two registries can live side by side.

    Two plugins may claim one name; that is an error once the name is looked up.

    Args:
        providers: The plugins; order does not matter.
        absent: Lines about plugins that take no part though they are installed, each with the reason.

    Raises:
        RegistrationError: If the built-in opsets have two functions for one name and opset.
    """

    def __init__(self, providers: Iterable[Provider], absent: Sequence[str] = ()) -> None:
        self.providers = tuple(sorted(providers, key=lambda provider: (provider.order, provider.name)))
        self.absent = tuple(absent)
        self._entries: dict[str, list[Candidate]] = defaultdict(list)
        self._python_ops: dict[str, list[Candidate]] = defaultdict(list)
        self._passthroughs: list[tuple[Passthrough, Provider]] = []
        self._waiting: dict[str, list[Candidate]] = defaultdict(list)
        self._waiting_rules: list[tuple[Passthrough, Provider]] = []
        self._found: dict[tuple[str, str, int], Sequence[Candidate]] = {}
        self._rules: dict[tuple[str, int, bool], tuple[Passthrough, Provider] | None] = {}
        for provider in self.providers:
            self._add(provider.entries, provider, self._entries)
            for table in provider.tables:
                if table.replaces and provider.precedence > Precedence.PREFERRED:
                    self._add(table, provider, self._waiting)
                    self._waiting_rules += [(rule, provider) for rule in table.passthroughs]
                    continue
                self._add(table, provider, self._entries)
                for entry in table.python_ops.values():
                    self._python_ops[entry.name].append(Candidate(entry, provider))
                self._passthroughs += [(passthrough, provider) for passthrough in table.passthroughs]
        for candidates in (*self._entries.values(), *self._python_ops.values()):
            candidates.sort(key=lambda candidate: (candidate.provider.order, -candidate.entry.opset))
        check_builtins(self._entries)

    @staticmethod
    def _add(entries: Iterable[Entry], provider: Provider, where: dict[str, list[Candidate]]) -> None:
        for entry in entries:
            where[functional_name(entry.name)].append(Candidate(entry, provider))

    def candidates(self, op: str, overload: str, opset: int) -> Sequence[Candidate]:
        """Returns who converts ``op.overload`` at `opset`, in the order in which they are asked.

        Raises:
            RegistrationError: If two plugins do, and neither is preferred.
        """
        # Every node of every model asks, mostly for what was asked before; a registry does not change.
        key = (op, overload, opset)
        found = self._found.get(key)
        if found is None:
            found = tuple(self._candidates(functional_name(op), overload, opset))
            _check(found)
            self._found[key] = found
        return found

    def _candidates(self, op: str, overload: str, opset: int) -> list[Candidate]:
        found = [
            (candidate.provider.order, rank, -candidate.entry.opset, candidate)
            for rank, name in enumerate(_names(op, overload))
            for candidate in self._entries.get(name, ())
            if candidate.is_for(opset)
        ]
        found.sort(key=lambda row: row[:3])
        if found and found[0][0][0] < Precedence.TORCH_ONNX:
            # What a plugin refuses for a reason is not tried with a function that may not know of it.
            found = [row for row in found if row[0][0] is not Precedence.TORCH_ONNX]
        return [row[3] for row in found]

    def python_op_candidates(self, name: str, module: str, opset: int) -> list[Candidate]:
        """Returns the handlers for an ``autograd.Function`` class at `opset`, in the order in which they are asked.

        Raises:
            RegistrationError: If two plugins have one, and neither is preferred.
        """
        handlers = self._python_ops.get(f"{module}:{name}", []) + self._python_ops.get(name, [])
        found = sorted((each for each in handlers if each.is_for(opset)), key=lambda candidate: candidate.provider.order)
        _check(found)
        return found

    def passthrough(self, op: str, opset: int, *, replacing: bool = False) -> tuple[Passthrough, Provider] | None:
        """Returns the fall-through rule for an operator, if any.

        Args:
            op: The operator.
            opset: The target opset.
            replacing: Only rules that go before every symbolic function.

        Raises:
            RegistrationError: If two plugins have one for it and neither is preferred.
        """
        key = (op, opset, replacing)
        if key not in self._rules:
            found = [
                (rule, provider)
                for rule, provider in self._passthroughs
                if (rule.replaces or not replacing) and _applies(rule, provider, op, opset)
            ]
            check_claims(op, [(provider, rule.place) for rule, provider in found])
            self._rules[key] = found[0] if found else None
        return self._rules[key]

    def clashes(self) -> dict[str, str]:
        """Returns the error of each name that two plugins claim at some opset, by name."""
        contended = {
            name.partition(".")[0]
            for name, found in self._entries.items()
            if any(each.provider.is_unasked or each.provider.is_given for each in found)
        }
        found: dict[str, str] = {}
        for name in sorted(self._entries):
            op, _, overload = name.partition(".")
            if op in contended:
                self._note_clash(name, functools.partial(self.candidates, op, overload), found)
        for name in sorted(self._python_ops):
            module, _, plain = name.rpartition(":")
            self._note_clash(name, functools.partial(self.python_op_candidates, plain, module), found)
        return found

    @staticmethod
    def _note_clash(name: str, look_up: Callable[[int], Any], found: dict[str, str]) -> None:
        for opset in range(NEWEST_OPSET, OLDEST_OPSET - 1, -1):
            try:
                look_up(opset)
            except RegistrationError as error:
                found[name] = str(error)
                return

    def waiting(self, op: str, overload: str, opset: int) -> list[Candidate]:
        """Returns who would convert ``op.overload`` if its plugin were preferred."""
        names = _names(functional_name(op), overload)
        return [candidate for name in names for candidate in self._waiting.get(name, ()) if candidate.is_for(opset)]

    def out_of_range(self, op: str, overload: str, opset: int) -> list[Candidate]:
        """Returns who converts ``op.overload``, but says that its plugin is not for this opset."""
        names = _names(functional_name(op), overload)
        found = [candidate for name in names for candidate in self._entries.get(name, ())]
        return [candidate for candidate in found if opset not in candidate.provider.opsets]

    def stand_by(self, op: str, overload: str, opset: int) -> list[str]:
        """Returns what keeps plugins from converting ``op.overload`` at `opset`, a line for each that does or might."""
        providers = [each.provider for each in self.waiting(op, overload, opset)]
        providers += [provider for rule, provider in self._waiting_rules if _applies(rule, provider, op, opset)]
        lines = [
            f"plugin {provider} would convert it if it were preferred: prefer=[{provider.name!r}], --prefer {provider.name}"
            for provider in providers
        ]
        lines += [
            f"plugin {each.provider} converts it, but is for opset {ranges(each.provider.opsets)} only"
            for each in self.out_of_range(op, overload, opset)
        ]
        return [*dict.fromkeys(lines), *self.absent]

    def available_from(self, op: str, overload: str, opset: int) -> int | None:
        """Returns the lowest opset above `opset` in which somebody converts the operator, or None."""
        found = [candidate for name in _names(functional_name(op), overload) for candidate in self._entries.get(name, ())]
        return next((later for later in range(opset + 1, NEWEST_OPSET + 1) if any(each.is_for(later) for each in found)), None)

    def close_names(self, op: str) -> Sequence[str]:
        """Returns other names in the registry that look like `op`."""
        names = {name.split(".")[0] for name in self._entries} - {functional_name(op)}
        return difflib.get_close_matches(op, names, n=3, cutoff=0.8)

    def operators(self) -> Iterator[tuple[str, Sequence[Candidate]]]:
        """Yields each operator name, sorted, with everybody who converts it at some opset."""
        yield from sorted((candidates[0].entry.name, candidates) for candidates in self._entries.values())

    def python_ops(self) -> Iterator[tuple[str, Sequence[Candidate]]]:
        """Yields each ``autograd.Function`` name, sorted, with its handlers."""
        yield from sorted(self._python_ops.items())

    def __contains__(self, name: str) -> bool:
        return functional_name(name) in self._entries


def _applies(rule: Passthrough, provider: Provider, op: str, opset: int) -> bool:
    return rule.opset <= opset and opset in provider.opsets and rule.matches(op)


def _check(candidates: Sequence[Candidate]) -> None:
    if candidates:
        check_claims(candidates[0].entry.name, [(each.provider, each.entry.place) for each in candidates])


def functional_name(name: str) -> str:
    """Returns the name under which an operator is kept: ``foo::bar_``, which writes in place, is converted as ``foo::bar``."""
    op, dot, overload = name.partition(".")
    return f"{op[:-1]}{dot}{overload}" if op.endswith("_") and not op.endswith("__") else name


def ranges(opsets: Iterable[int]) -> str:
    """Numbers as text, those in a row as a range."""
    rows: list[list[int]] = []
    for opset in sorted(opsets):
        if rows and rows[-1][-1] == opset - 1:
            rows[-1].append(opset)
        else:
            rows.append([opset])
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 1 else str(row[0]) for row in rows)


def _names(op: str, overload: str) -> tuple[str, str]:
    """The names of entries that an operator's overload may have; PyTorch calls the one without a name ``default``."""
    return f"{op}.{overload or 'default'}", op
