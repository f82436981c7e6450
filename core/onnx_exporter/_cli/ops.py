"""``onnx-exporter ops``."""

from __future__ import annotations

from fnmatch import fnmatchcase

import click
from rich.table import Table

from onnx_exporter._cli._display import table_console
from onnx_exporter._cli._options import plugin_options
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter._plugins import load_plugins


@click.command()
@click.argument("pattern", default="*")
@click.option("--opset", type=click.IntRange(OLDEST_OPSET, NEWEST_OPSET), help="Only operators that this opset can have.")
@plugin_options
def ops(pattern: str, opset: int | None, plugin: tuple[str, ...], prefer: tuple[str, ...]) -> None:
    """Lists the operators that can be converted. PATTERN may have * and ?, as in 'aten::max*'."""
    if "::" not in pattern and not pattern.startswith("*"):
        pattern = f"*::{pattern}"
    table = Table(box=None, pad_edge=False)
    for column in ("operator", "from opset", "changed at", "plugin"):
        table.add_column(column)
    count = 0
    registry = load_plugins(plugin, prefer).registry
    clashes = registry.clashes()
    for name, candidates in registry.operators():
        usable = [item for item in candidates if opset is None or item.entry.opset <= opset]
        if not usable or not fnmatchcase(name, pattern):
            continue
        opsets = sorted({item.entry.opset for item in usable})
        later = ", ".join(map(str, opsets[1:]))
        claimed = [item.provider.name for item in usable[: 2 if name in clashes else 1]]
        table.add_row(name, str(opsets[0]), later, " and ".join(claimed))
        count += 1
    console = table_console()
    if count:
        console.print(table)
    console.print(f"{count} operator{'s' * (count != 1)}{f' at opset {opset}' if opset else ''}", highlight=False)
