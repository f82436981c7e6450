"""``onnx-exporter export``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from onnx_exporter._cli._display import StageDisplay
from onnx_exporter._cli._options import kind_options, opset_option, parse_custom_opsets, plugin_options
from onnx_exporter._cli._target import evaluate_args, folder_of, load_model, parse_dynamic, parse_keywords
from onnx_exporter._enums import OperatorExportTypes, TrainingMode
from onnx_exporter._export import export as run_export
from onnx_exporter._export import input_names_of
from onnx_exporter._local_plugins import Beside


@click.command()
@click.argument("model")
@click.option("--args", "expression", metavar="PYTHON", help="Example arguments: a tensor or a tuple, as Python over `torch`.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write; the model's name with .onnx unless given.")
@opset_option
@click.option("--kwarg", multiple=True, metavar="NAME=VALUE", help="Argument of the factory; can be repeated.")
@click.option("--weights", metavar="FILE", help="State dict to load (with weights_only=True).")
@click.option("--input-names", metavar="A,B", help="Names of the inputs; those of forward's parameters unless given.")
@click.option("--output-names", metavar="A,B", help="Names of the outputs.")
@click.option("--dynamic", multiple=True, metavar="NAME:AXIS=SYMBOL", help="Dynamic axis, as in x:0=batch; can be repeated.")
@click.option("--capture", type=click.Choice(["trace", "export"]), help="How to capture the model.  [default: trace]")
@click.option(
    "--external-data/--one-file", default=None, help="Where weights go; by itself only past 2 GB into a file of their own."
)
@click.option(
    "--sequence-inputs/--fixed-lists",
    default=True,
    help="Whether a scripted model's lists of tensors are sequences of any length, or as long as the example's.",
)
@click.option("--verify/--no-verify", default=True, help="Whether to compare the file with PyTorch under ONNX Runtime.")
@click.option("--rtol", type=float, help="Relative tolerance of the comparison.")
@click.option("--atol", type=float, help="Absolute tolerance of the comparison.")
@click.option("--report", type=click.Path(dir_okay=False), metavar="FILE", help="Markdown report to write, also of a failure.")
@click.option("--verbose", is_flag=True, help="Print the graph as text.")
@kind_options
@plugin_options
def export(
    model: str,
    expression: str | None,
    output: Path | None,
    opset: int | None,
    kwarg: tuple[str, ...],
    weights: str | None,
    input_names: str | None,
    output_names: str | None,
    dynamic: tuple[str, ...],
    capture: str | None,
    external_data: bool | None,
    sequence_inputs: bool,
    verify: bool,
    rtol: float | None,
    atol: float | None,
    report: str | None,
    verbose: bool,
    training: str,
    operator_export_type: str | None,
    custom_opset: tuple[str, ...],
    constant_folding: bool,
    functions: bool,
    plugin: tuple[str, ...],
    prefer: tuple[str, ...],
) -> None:
    """Exports MODEL, a module or a factory of one: module:attribute or file.py:attribute."""
    target = output or Path(model.rpartition(":")[2].rpartition(".")[2] + ".onnx")
    with StageDisplay() as display:
        display("loading the model")
        loaded = load_model(model, parse_keywords(kwarg), weights)
        args = evaluate_args(expression)
        inputs = _names(input_names)
        axes = (
            parse_dynamic(dynamic, input_names_of(loaded, args, inputs, opset_version=opset, sequence_inputs=sequence_inputs))
            if dynamic
            else None
        )
        result = run_export(
            loaded,
            args,
            target,
            opset_version=opset,
            input_names=inputs,
            output_names=_names(output_names),
            dynamic_axes=axes,
            capture=capture,
            external_data=external_data,
            sequence_inputs=sequence_inputs,
            verify=verify,
            rtol=rtol,
            atol=atol,
            report=report or False,
            verbose=verbose,
            training=TrainingMode.__members__[training],
            operator_export_type=None if operator_export_type is None else OperatorExportTypes.__members__[operator_export_type],
            custom_opsets=parse_custom_opsets(custom_opset) or None,
            do_constant_folding=constant_folding,
            export_modules_as_functions=functions,
            plugins=[*plugin, Beside(folder_of(model))],
            prefer=prefer,
            progress=display,
        )
    _show(result)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]


def _show(result: Any) -> None:
    file = result.file
    beside = f" and {file.external_path} ({_size(file.data_size)})" if file.external_path else ""
    plugins = ", ".join(name for name in result.plugins if not name.startswith("symbolic_opset"))
    click.echo(
        f"{file.path} ({_size(file.size)}){beside}: opset {result.model.opset_imports['']}, {len(result.origins)} nodes"
        + (f", plugins: {plugins}" if plugins else "")
    )
    if result.comparison is not None:
        click.echo(str(result.comparison))


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
