"""Two plugins that claim one name: an error, with both, once the name is used."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnx_exporter.errors import RegistrationError

if TYPE_CHECKING:
    from onnx_exporter._registry import Candidate, Provider


def check_builtins(entries: Mapping[str, Sequence[Candidate]]) -> None:
    """Checks that the built-in opsets have one function for a name and an opset.

    Raises:
        RegistrationError: If they have two.
    """
    for candidates in entries.values():
        for first, second in itertools.pairwise(candidates):
            if first.provider.is_builtin and second.provider.is_builtin and first.entry.opset == second.entry.opset:
                raise RegistrationError(
                    f"{first.entry.name!r} is in two tables of opset {first.entry.opset}:\n  {first}\n  {second}"
                )


def check_claims(name: str, claims: Sequence[tuple[Provider, str]]) -> None:
    """Checks that it is clear who goes first for what is about to be converted.

    Args:
        name: What is converted.
        claims: Who could, each with the place of its function or rule, in the order of precedence.

    Raises:
        RegistrationError: If another could as well as the first, and the caller prefers neither.
    """
    for claim in claims[1:]:
        if _contend(claims[0][0], claim[0]):
            raise _clash(name, claims[0], claim)


def _contend(first: Provider, second: Provider) -> bool:
    """Whether nothing says which of two goes first: both are installed, both are given, or one would replace a built-in."""
    if first is second:
        return False
    if first.is_unasked:
        return second.is_unasked or second.is_builtin
    return first.is_given and first.order == second.order


def _clash(name: str, first: tuple[Provider, str], second: tuple[Provider, str]) -> RegistrationError:
    plugin = first[0].name
    prefer = f"prefer=[{plugin!r}], --prefer {plugin}"
    if second[0].is_builtin:
        what = (
            f"leave it out (plugins=['no:{plugin}'], -p no:{plugin}), or let it replace the built-in one ({prefer}); "
            f"one that means to take over a name declares OpTable(replaces=True), and then acts only where it is preferred"
        )
    elif first[0].is_given:
        what = f"give one of them only, or say which goes first ({prefer})"
    else:
        what = f"say which goes first ({prefer}), or leave one out (plugins=['no:{plugin}'], -p no:{plugin})"
    lines = "\n".join(f"  {provider}: {place}" for provider, place in (first, second))
    return RegistrationError(f"two plugins convert {name!r}:\n{lines}\n{what}")
