"""``onnx-exporter plugins``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table

from onnx_exporter._cli._display import table_console
from onnx_exporter._cli._options import plugin_options
from onnx_exporter._loading import LoadedPlugin
from onnx_exporter._local_plugins import LOCAL_FILE
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter._plugins import load_plugins


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Show also the entry point, load time and all contributions, and the opsets.")
@plugin_options
def plugins(verbose: bool, plugin: tuple[str, ...], prefer: tuple[str, ...]) -> None:
    """Lists the installed plugins, and what is wrong with those that failed to load."""
    plugin_set = load_plugins(plugin, prefer)
    found = plugin_set.plugins
    shown = [item for item in found if verbose or not item.info.is_builtin]
    table = Table(box=None, pad_edge=False)
    for column in ("plugin", "distribution", "version", "contributes", "state", *(("entry point", "load ms") if verbose else ())):
        table.add_column(column, overflow="fold")
    for item in shown:
        info = item.info
        row = [info.name, info.distribution, info.version, _counts(item), _state(item)]
        table.add_row(*row, *((info.target, f"{item.seconds * 1000:.1f}") if verbose else ()))
    console = table_console()
    if shown:
        console.print(table)
    for item in found:
        if item.error:
            click.echo(f"\n{item.info.name} failed to load: {item.error}")
    if verbose:
        for item in shown:
            lines = [] if item.info.is_builtin else list(_contributions(item))
            for line in [f"\n{item.info.name}", *lines] if lines else ():
                click.echo(line)
    else:
        builtin = sum(item.info.is_builtin for item in found)
        console.print(f"{builtin} opset packages are built in; --verbose shows them", highlight=False)
    if Path(LOCAL_FILE).is_file() and not any(Path(item.info.target).resolve() == Path(LOCAL_FILE).resolve() for item in found):
        click.echo(f"{LOCAL_FILE} here is a plugin for exports of the files beside it; -p ./{LOCAL_FILE} shows it")
    for clash in dict.fromkeys(plugin_set.registry.clashes().values()):
        click.echo(f"\n{clash}")


def _counts(plugin: LoadedPlugin) -> str:
    """How many of what its tables hold: names of operators, classes, rules; "-" for none."""
    provider = plugin.provider
    if provider is None:
        return "-"
    names = {entry.name for table in provider.tables for entry in table} | {entry.name for entry in provider.entries}
    classes = {name for table in provider.tables for name in table.python_ops}
    rules = [rule for table in provider.tables for rule in table.passthroughs]
    counts = (("operator", len(names)), ("class", len(classes)), ("rule", len(rules)))
    return ", ".join(f"{count} {_plural(kind, count)}" for kind, count in counts if count) or "-"


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}{'es' if kind.endswith('s') else 's'}"


def _state(plugin: LoadedPlugin) -> str:
    if plugin.error:
        return "failed"
    if plugin.disabled:
        return f"disabled: {plugin.disabled}"
    return "loaded, preferred" if plugin.provider and plugin.provider.is_preferred else "loaded"


def _contributions(plugin: LoadedPlugin) -> Iterator[str]:
    """What a plugin does, a line for each kind."""
    provider = plugin.provider
    if provider is None:
        return
    unless = "" if provider.is_preferred or not provider.is_unasked else f"; only with --prefer {provider.name}"
    for table in provider.tables:
        condition = f"(from opset {table.opset}{unless if table.replaces else ''})"
        if table.entries:
            yield f"  {'replaces' if table.replaces else 'converts'}  {', '.join(sorted(table.entries))} {condition}"
        if table.python_ops:
            yield f"  handles   autograd.Function {', '.join(sorted(table.python_ops))} {condition}"
        for rule in table.passthroughs:
            yield f"  passes    {rule.pattern} on to {rule.domain} version {rule.version} {condition}"
    if provider.entries:
        yield f"  converts  {', '.join(sorted({entry.name for entry in provider.entries}))}"
    if provider.fallback is not None:
        yield "  hook      for operators that nobody converts"
    if provider.python_op is not None:
        yield "  hook      for autograd.Function classes that nobody names"
    when = "" if plugin.is_named else f" (only with -p {plugin.info.name})"
    for stage, item in plugin.passes:
        yield f"  pass      {stage}: {getattr(item, '__name__', type(item).__name__)}{when}"
    for name, value in plugin.option_defaults.items():
        yield f"  default   {name}={value!r}{when}"
    try:
        libraries = plugin.libraries()
    except Exception as error:  # a plugin is foreign code: it may raise anything
        libraries = []
        yield f"  failed    onnx_exporter_custom_op_libraries: {type(error).__name__}: {error}"
    for library in libraries:
        domain = getattr(library, "op_domain", None)
        yield f"  verifies  with {library if domain is None else f'{domain}::{library.__name__} in Python'}"
    opsets = provider.opsets
    if len(opsets) < NEWEST_OPSET - OLDEST_OPSET + 1:
        yield f"  opsets    {', '.join(map(str, sorted(opsets)))}"
