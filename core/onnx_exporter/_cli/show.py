"""``onnx-exporter show``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
import onnx
from google.protobuf.message import DecodeError
from rich.console import Console
from rich.table import Table

from onnx_exporter._builder import Origin
from onnx_exporter._cli._display import table_console
from onnx_exporter.errors import ArgumentError

_CORE = "onnx_exporter.version"


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--depth", type=click.IntRange(min=1), help="Gather modules below this depth of the model's tree.")
def show(file: Path, depth: int | None) -> None:
    """Lists what made the nodes of an ONNX FILE: versions, then nodes by plugin and by module of the model.

    Weights are not read, so the file beside it that holds them may be missing.
    """
    model = _read(file)
    facts = {item.key: item.value for item in model.metadata_props}
    nodes = [(node, {item.key: item.value for item in node.metadata_props}) for node in _nodes(model)]
    if _CORE not in facts and not any(Origin.key("plugin") in props for _, props in nodes):
        producer = " ".join(filter(None, (model.producer_name, model.producer_version))) or "an unknown program"
        raise ArgumentError(f"{file} was written by {producer}, not by onnx-exporter; its nodes do not say where they come from")
    console = table_console()
    _show_facts(model, facts)
    _show_nodes(console, "plugin", nodes, lambda props: (_fact(props, "plugin"), _fact(props, "plugin_version")))
    _show_nodes(console, "module", nodes, lambda props: (_module(_fact(props, "module"), depth), ""))


def _read(file: Path) -> onnx.ModelProto:
    try:
        model = onnx.load(file, load_external_data=False)
    except OSError as error:
        raise ArgumentError(f"cannot read {file}: {error.strerror}") from error
    except DecodeError as error:
        raise ArgumentError(f"{file} is no ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise ArgumentError(f"{file} is no ONNX model: it holds no graph")
    return model


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Every node of a file, those in sub-graphs and in functions included."""
    yield from _with_inner(model.graph.node)
    for function in model.functions:
        yield from _with_inner(function.node)


def _with_inner(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _with_inner(graph.node)


def _show_facts(model: onnx.ModelProto, facts: dict[str, str]) -> None:
    click.echo(f"{model.producer_name} {model.producer_version}, {model.graph.name}, IR version {model.ir_version}")
    opsets = ", ".join(f"{item.domain or 'ai.onnx'} {item.version}" for item in model.opset_import)
    own = {key.partition(".")[2]: value for key, value in facts.items() if key.startswith("onnx_exporter.")}
    named = {"version": "onnx-exporter", "opset": "opset asked for"}
    for name, value in (("opsets", opsets), *((named.get(key, key.replace(".", " ")), value) for key, value in own.items())):
        click.echo(f"  {name:<20} {value}")


def _show_nodes(
    console: Console,
    what: str,
    nodes: list[tuple[onnx.NodeProto, dict[str, str]]],
    key_of: Callable[[dict[str, str]], tuple[str, str]],
) -> None:
    """A table with a row for each key, in the order in which they first appear."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for node, props in nodes:
        operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        counts.setdefault(key_of(props), Counter())[operator] += 1
    has_versions = any(version for _, version in counts)
    table = Table(box=None, pad_edge=False)
    for column in (what, *(("version",) if has_versions else ()), "nodes", "operators"):
        table.add_column(column, overflow="fold")
    for (name, version), operators in counts.items():
        kinds = ", ".join(f"{kind} {count}" if count > 1 else kind for kind, count in operators.most_common())
        table.add_row(name or "-", *((version or "-",) if has_versions else ()), str(operators.total()), kinds)
    console.print()
    console.print(table)


def _fact(props: dict[str, str], name: str) -> str:
    return props.get(Origin.key(name), "")


def _module(path: str, depth: int | None) -> str:
    return ".".join(path.split(".")[:depth]) or "(the model itself)"
