"""What plugins cost: finding 30 of them, loading them, and asking for each node of a model who converts it.

    python benchmarks/plugin_lookup.py [--plugins 30] [--operators 10] [--rounds 9] [--markdown docs/benchmarks.md]

Plugins are made in a temporary folder: a module and a dist-info folder each. Each round is a new process. Lookups are what
the engine does for a node: the functions for it, and the rules that replace.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pages import write_table

if TYPE_CHECKING:
    from onnx_exporter._registry import Registry

LIMITS = {"finding, first time": 20e3, "lookup of a node, a model of 510 nodes": 1.0, "lookup of a node, known already": 1.0}
"""What must hold, in microseconds."""

PLUGIN = """
from onnx_exporter import GraphContext, OpTable, Value, hookimpl

table = OpTable()

@table.op({names})
def function(g: GraphContext, x: Value) -> Value:
    return g.op("Relu", x)

table.passthrough("{plugin}_npu::*", domain="com.{plugin}")

@hookimpl
def onnx_exporter_tables():
    return [table]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plugins", type=int, default=30)
    parser.add_argument("--operators", type=int, default=10, help="Operators of each plugin.")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--markdown", type=Path, help="File whose table between the markers is replaced.")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measured()))
        return
    with tempfile.TemporaryDirectory() as folder:
        make_plugins(Path(folder), given.plugins, given.operators)
        rows = [one_round(Path(folder)) for _ in range(given.rounds)]
    counts = {name: rows[0].pop(name) for name in ("distributions", "plugins", "operators")}
    medians = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
    lines = [
        f"{given.plugins} plugins of {given.operators} operators, beside those of the environment: {counts['distributions']} "
        f"distributions, {counts['plugins']} plugins with the built-in opsets, {counts['operators']} operators; medians of "
        f"{given.rounds} processes, CPU time.\n",
        "| step | time | limit |\n| --- | --- | --- |",
        *(f"| {name} | {shown(value)} | {shown(LIMITS[name]) if name in LIMITS else ''} |" for name, value in medians.items()),
    ]
    print(*lines, sep="\n")
    if given.markdown:
        write_table(given.markdown, "plugin_lookup", lines)
    if late := [name for name, limit in LIMITS.items() if medians[name] > limit]:
        sys.exit(f"over the limit: {', '.join(late)}")


def make_plugins(folder: Path, count: int, operators: int) -> None:
    for plugin in (f"bench{index}" for index in range(count)):
        names = ", ".join(repr(f"{plugin}::op{index}") for index in range(operators))
        (folder / f"exporter_plugin_{plugin}.py").write_text(PLUGIN.format(plugin=plugin, names=names))
        info = folder / f"exporter_plugin_{plugin}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: exporter-plugin-{plugin}\nVersion: 1.0\nRequires-Dist: onnx-exporter>=0.1\n\n"
            + "A description of the usual length.\n" * 100
        )
        (info / "entry_points.txt").write_text(f"[onnx_exporter.plugins]\n{plugin} = exporter_plugin_{plugin}\n")


def one_round(folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--child"]
    result = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout))


def measured() -> dict[str, float]:
    """Times in microseconds, and what there is."""
    import importlib_metadata

    import onnx_exporter
    from onnx_exporter._plugins import load_plugins
    from onnx_exporter._registry import Registry

    times: dict[str, float] = {}

    def timed(name: str, start: float, count: int = 1) -> None:
        times[name] = (time.process_time() - start) * 1e6 / count

    start = time.process_time()
    found = onnx_exporter.installed_plugins()
    timed("finding, first time", start)
    start = time.process_time()
    onnx_exporter.installed_plugins()
    timed("finding, again", start)
    start = time.process_time()
    plugins = load_plugins()
    timed("finding and loading all, first time", start)
    start = time.process_time()
    load_plugins()
    timed("finding and loading all, again", start)
    start = time.process_time()
    registry = plugins.registry
    timed("making the registry", start)
    nodes = [tuple(name.partition(".")[::2]) for name, _ in registry.operators()]
    model = nodes[:: len(nodes) // 30][:30] * 17  # about 500 nodes, of 30 operators
    for name, asked, passes in (
        ("lookup of a node, each another operator", nodes, 1),
        ("lookup of a node, a model of 510 nodes", model, 1),
        ("lookup of a node, known already", nodes, 100),
    ):
        asking = Registry(registry.providers)
        if passes > 1:
            ask(asking, nodes)
        start = time.process_time()
        for _ in range(passes):
            ask(asking, asked)
        timed(name, start, passes * len(asked))
    times |= {"distributions": len(list(importlib_metadata.distributions())), "plugins": len(found), "operators": len(nodes)}
    return times


def ask(registry: Registry, nodes: list[tuple[str, str]]) -> None:
    """What the engine does for each node."""
    for op, overload in nodes:
        registry.candidates(op, overload, 18)
        registry.passthrough(op, 18, replacing=True)


def shown(microseconds: float) -> str:
    return f"{microseconds / 1e3:.1f} ms" if microseconds >= 1e3 else f"{microseconds:.2f} µs"


if __name__ == "__main__":
    main()
