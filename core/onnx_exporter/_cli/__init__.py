"""The command ``onnx-exporter``.

Exit codes: 0 done; 1 the export failed; 2 the command line is wrong; 3 the file was written but differs from
PyTorch; 4 operators are not supported; 130 interrupted.
"""

from __future__ import annotations

import sys
import warnings
from typing import TextIO

import click

from onnx_exporter._cli.explain import explain
from onnx_exporter._cli.export import export
from onnx_exporter._cli.new_plugin import new_plugin
from onnx_exporter._cli.ops import ops
from onnx_exporter._cli.plugins import plugins
from onnx_exporter._cli.run import run
from onnx_exporter._cli.show import show
from onnx_exporter._version import core_version
from onnx_exporter.errors import ArgumentError, ExportError, UnsupportedOpError, VerificationError

FAILED, USAGE, DIFFERS, UNSUPPORTED, INTERRUPTED = 1, 2, 3, 4, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(core_version(), prog_name="onnx-exporter")
def cli() -> None:
    """PyTorch to ONNX, with operators that come from plugins.

    Exit codes: 0 done, 1 the export failed, 2 wrong usage, 3 the file differs from PyTorch,
    4 operators are not supported, 130 interrupted.
    """


for command in (export, run, show, plugins, ops, explain, new_plugin):
    cli.add_command(command)


def main() -> None:
    """Runs the command and turns the exporter's errors into messages and exit codes."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except ExportError as error:
        click.echo(f"error: {error}", err=True)
        file = getattr(getattr(error, "result", None), "file", None)
        if file is not None:
            click.echo(f"the file is at {file.path}", err=True)
        code = _exit_code(error)
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Shows a warning as a message; a line of this package would tell the user nothing."""
    if not issubclass(category, DeprecationWarning | FutureWarning):
        click.echo(f"warning: {message}", err=True)


def _exit_code(error: ExportError) -> int:
    if isinstance(error, ArgumentError):
        return USAGE
    if isinstance(error, UnsupportedOpError):
        return UNSUPPORTED
    return DIFFERS if isinstance(error, VerificationError) else FAILED
