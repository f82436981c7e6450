"""Two plugins that claim one name: found when a registry is made, and reported with both."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET, Passthrough
from onnx_exporter.errors import RegistrationError

if TYPE_CHECKING:
    from onnx_exporter._registry import Candidate, Provider


def check_entries(entries: Mapping[str, Sequence[Candidate]]) -> None:
    """Checks the functions for operators, by name: one for all overloads clashes with one for an overload, too.

    Raises:
        RegistrationError: If a plugin claims what another or a built-in opset has, and is not preferred.
    """
    for candidates in entries.values():
        for first, second in itertools.pairwise(candidates):
            if first.provider.is_builtin and second.provider.is_builtin and first.entry.opset == second.entry.opset:
                raise RegistrationError(
                    f"{first.entry.name!r} is in two tables of opset {first.entry.opset}:\n  {first}\n  {second}"
                )
    claimed = {name.partition(".")[0] for name, found in entries.items() if any(each.provider.is_unasked for each in found)}
    overloads: dict[str, list[str]] = defaultdict(list)
    for name in entries:
        op, _, overload = name.partition(".")
        if op in claimed and overload:
            overloads[op].append(name)
    for op in sorted(claimed):
        bare = entries.get(op, ())
        _check(bare)
        for name in overloads[op]:
            _check([*bare, *entries[name]])


def check_handlers(handlers: Mapping[str, Sequence[Candidate]]) -> None:
    """Checks the handlers for ``autograd.Function`` classes, by class.

    Raises:
        RegistrationError: If two plugins handle one class.
    """
    for candidates in handlers.values():
        _check(candidates)


def check_rules(op: str, rules: Sequence[tuple[Passthrough, Provider]]) -> None:
    """Checks the fall-through rules for one operator, in the order of precedence.

    Raises:
        RegistrationError: If two plugins have one, and neither is preferred.
    """
    claims = [(provider, rule.place) for rule, provider in rules]
    if not claims or not claims[0][0].is_unasked:
        return
    for provider, place in claims[1:]:
        if provider.name != claims[0][0].name and provider.is_unasked:
            raise _clash(op, [claims[0], (provider, place)])


def _check(candidates: Iterable[Candidate]) -> None:
    """Two plugins, or a plugin and a built-in, may not convert one name at one opset unasked."""
    found = [each for each in candidates if each.provider.is_unasked or each.provider.is_builtin]
    for first, second in itertools.combinations(found, 2):
        if (first.provider.is_builtin and second.provider.is_builtin) or first.provider.name == second.provider.name:
            continue
        if any(first.is_for(opset) and second.is_for(opset) for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1)):
            first, second = sorted((first, second), key=lambda each: (each.provider.order, each.provider.name))
            raise _clash(first.entry.name, [(each.provider, each.entry.place) for each in (first, second)])


def _clash(name: str, claims: Sequence[tuple[Provider, str]]) -> RegistrationError:
    plugin = claims[0][0].name
    lines = "\n".join(f"  {provider}: {place}" for provider, place in claims)
    return RegistrationError(
        f"two plugins convert {name!r}:\n{lines}\n"
        f"disable one (plugins=['no:{plugin}'], -p no:{plugin}); "
        f"a plugin that means to take over a name declares OpTable(replaces=True) "
        f"and is then used with prefer=['{plugin}']"
    )
