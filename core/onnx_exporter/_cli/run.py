"""``onnx-exporter run``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import click

from onnx_exporter.compat._drop_in import patch_torch_onnx


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is the name of a module, as for python -m.")
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(script: str, args: tuple[str, ...], *, as_module: bool) -> None:
    """Runs a Python SCRIPT with its ARGS, torch.onnx routed to onnx-exporter.

    What the script, or any library that it uses, exports with torch.onnx is exported by onnx-exporter.
    """
    if not as_module and not Path(script).exists():
        raise click.UsageError(f"{script!r} does not exist; give the path of a Python script, or -m and the name of a module")
    sys.argv = [script, *args]
    sys.path.insert(0, str(Path.cwd() if as_module else Path(script).resolve().parent))
    with patch_torch_onnx():
        if as_module:
            runpy.run_module(script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
