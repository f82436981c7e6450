"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from onnx_exporter._export import DEFAULT_OPSET
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET

Command = TypeVar("Command", bound=Callable[..., Any])


def opset_option(command: Command) -> Command:
    """``--opset N``."""
    return click.option(
        "--opset",
        type=click.IntRange(OLDEST_OPSET, NEWEST_OPSET),
        default=DEFAULT_OPSET,
        show_default=True,
        help="Version of ai.onnx to write.",
    )(command)


def plugin_options(command: Command) -> Command:
    """``-p NAME``, ``-p no:NAME`` and ``--prefer NAME``."""
    command = click.option(
        "--prefer",
        multiple=True,
        metavar="NAME",
        help="Plugin that goes first and may replace built-in operators; can be repeated.",
    )(command)
    return click.option(
        "-p",
        "--plugin",
        "plugin",
        multiple=True,
        metavar="[no:]NAME",
        help="Insist on a plugin, or with no: leave it out; can be repeated.",
    )(command)
