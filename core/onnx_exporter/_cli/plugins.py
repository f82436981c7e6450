"""``onnx-exporter plugins``."""

from __future__ import annotations

import click
from rich.table import Table

from onnx_exporter._cli._display import table_console
from onnx_exporter._cli._options import plugin_options
from onnx_exporter._plugins import LoadedPlugin, load_plugins


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Show the entry point, load time and operators too, and the built-in opsets.")
@plugin_options
def plugins(verbose: bool, plugin: tuple[str, ...], prefer: tuple[str, ...]) -> None:
    """Lists the installed plugins, and what is wrong with those that failed to load."""
    plugin_set = load_plugins(plugin, prefer)
    found = plugin_set.plugins
    shown = [item for item in found if verbose or not item.info.is_builtin]
    table = Table(box=None, pad_edge=False)
    for column in ("plugin", "distribution", "version", "operators", "state", *(("entry point", "load ms") if verbose else ())):
        table.add_column(column, overflow="fold")
    for item in shown:
        info = item.info
        row = [info.name, info.distribution, info.version, str(_operators(item)), _state(item)]
        table.add_row(*row, *((info.target, f"{item.seconds * 1000:.1f}") if verbose else ()))
    console = table_console()
    if shown:
        console.print(table)
    builtin = sum(item.info.is_builtin for item in found)
    if not verbose:
        console.print(f"{builtin} opset packages are built in; --verbose shows them", highlight=False)
    _ = plugin_set.registry  # raises if two of them claim one operator


def _operators(plugin: LoadedPlugin) -> int:
    if plugin.provider is None:
        return 0
    return sum(len(table.entries) + len(table.python_ops) + len(table.passthroughs) for table in plugin.provider.tables)


def _state(plugin: LoadedPlugin) -> str:
    if plugin.error:
        return f"failed: {plugin.error}"
    return f"disabled: {plugin.disabled}" if plugin.disabled else "loaded"
