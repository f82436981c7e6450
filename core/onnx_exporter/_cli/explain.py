"""``onnx-exporter explain``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import torch

from onnx_exporter._cli._options import opset_option, plugin_options
from onnx_exporter._options import DEFAULT_OPSET
from onnx_exporter._plugins import load_plugins
from onnx_exporter._registry import Candidate, Registry, functional_name, ranges
from onnx_exporter.errors import RegistrationError


@click.command()
@click.argument("operator")
@opset_option
@plugin_options
def explain(operator: str, opset: int | None, plugin: tuple[str, ...], prefer: tuple[str, ...]) -> int:
    """Tells who converts OPERATOR (such as aten::elu or aten::max.dim), who else could, and what to do if nobody does.

    Exit codes: 0 somebody converts it, 1 two plugins claim it, 4 nobody converts it.
    """
    if "::" not in operator:
        operator = f"aten::{operator}"
    plugins = load_plugins(plugin, prefer)
    registry = plugins.registry
    if opset is None:
        default = plugins.option_default("opset_version")
        opset = DEFAULT_OPSET if default is None else int(default[0])
    name, _, overload = operator.partition(".")
    functional = functional_name(name)
    if functional != name:
        click.echo(f"{name} writes in place; it is converted as {functional}")
        name = functional
    overloads = [overload] if overload else ["", *_registered_overloads(registry, name)]
    found = False
    clashes: dict[str, None] = {}
    for each in overloads:
        try:
            candidates = registry.candidates(name, each, opset)
        except RegistrationError as error:
            clashes[str(error)] = None
            continue
        own = [item for item in candidates if not each or overload or item.entry.name.endswith(f".{each}")]
        if own:
            found = True
            _show(f"{name}.{each}" if each else name, opset, candidates)
    try:
        rule = registry.passthrough(name, opset)
    except RegistrationError as error:
        clashes[str(error)] = None
    else:
        if rule is not None:
            click.echo(f"{operator} falls through into domain {rule[0].domain!r} version {rule[0].version} (plugin {rule[1]})")
            found = True
    for clash in clashes:
        click.echo(clash)
    later = registry.available_from(name, overload, opset)
    if found and later is not None and not clashes and not registry.candidates(name, overload, opset):
        click.echo(f"{operator} in general: opset {later} has it: export with --opset {later}")
    if not found and not clashes:
        _show_nobody(operator, name, overload, opset, registry)
    for item in dict.fromkeys(item for each in overloads for item in registry.waiting(name, each, opset)):
        click.echo(f"  would replace {_line(item)}; only with --prefer {item.provider.name}")
    for item in dict.fromkeys(item for each in overloads for item in registry.out_of_range(name, each, opset)):
        opsets = ranges(item.provider.opsets)
        click.echo(f"  not asked     {_line(item)}; its plugin is for opset {opsets} only")
    for provider in registry.providers:
        if provider.fallback is not None and not found:
            click.echo(f"  asked last    the hook onnx_exporter_fallback of plugin {provider}")
    if clashes:
        return _TWO_CLAIM_IT
    return 0 if found else _NOBODY_CONVERTS_IT


_TWO_CLAIM_IT, _NOBODY_CONVERTS_IT = 1, 4
"""Exit codes, those with which an export of the operator ends."""


def _registered_overloads(registry: Registry, name: str) -> list[str]:
    return [key.partition(".")[2] for key, _ in registry.operators() if key.startswith(f"{name}.")]


def _show(operator: str, opset: int, candidates: Sequence[Candidate]) -> None:
    first, *others = candidates
    click.echo(f"{operator} at opset {opset}")
    click.echo(f"  converted by  {_line(first)}")
    summary = (first.entry.function.__doc__ or "").strip().split("\n")[0]
    if summary:
        click.echo(f"                {summary}")
    for item in others:
        click.echo(f"  then asked    {_line(item)}")


def _line(item: Candidate) -> str:
    entry = item.entry
    return f"{entry.name} from opset {entry.opset}: {entry.title}, plugin {item.provider}, {entry.place}"


def _show_nobody(operator: str, name: str, overload: str, opset: int, registry: Registry) -> None:
    """What to do about an operator that nobody converts."""
    click.echo(f"nobody converts {operator} at opset {opset}")
    later = registry.available_from(name, overload, opset)
    if later is not None:
        click.echo(f"  opset {later} has it: export with --opset {later}")
    for line in registry.absent:
        click.echo(f"  {line}")
    schemas = _schemas(name)
    for schema in schemas[:6]:
        click.echo(f"  schema        {schema}")
    if not schemas:
        click.echo("  PyTorch knows no operator of this name (is the library that defines it imported?)")
    namespace = name.partition("::")[0]
    close = registry.close_names(name)
    if close:
        click.echo(f"  similar       {', '.join(close)}")
    if later is None and namespace == "aten":
        click.echo(
            f"  it belongs in {_family(registry, name)}, in the folder of the lowest opset that has every ONNX operator it emits"
        )
        click.echo("                (see CONTRIBUTING.md: add an operator in five minutes)")
    elif later is None:
        plugin = f"a plugin (by convention exporter-plugin-{namespace})"
        click.echo(f"  try           {plugin}, or write one (docs/writing-a-plugin.md)")


def _schemas(name: str) -> list[str]:
    return [str(schema) for schema in torch._C._jit_get_schemas_for_operator(name)]


def _family(registry: Registry, name: str) -> str:
    """The file where operators of like names are, or the choice of files."""
    words = set(name.partition("::")[2].strip("_").split("_"))
    votes: dict[str, int] = {}
    families = set()
    for key, candidates in registry.operators():
        if not key.startswith("aten::") or not candidates[-1].provider.name.startswith("symbolic_opset"):
            continue
        family = Path(candidates[-1].entry.place.rpartition(":")[0]).name
        families.add(family)
        shared = words & set(key.partition("::")[2].partition(".")[0].strip("_").split("_"))
        if shared:
            votes[family] = votes.get(family, 0) + len(shared)
    if votes:
        return max(sorted(votes), key=lambda family: votes[family])
    return f"one of the family files ({', '.join(sorted(families))})"
