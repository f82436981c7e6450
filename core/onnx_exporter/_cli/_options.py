"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import click

from onnx_exporter._export import DEFAULT_OPSET
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter._plugins import NO_PLUGINS
from onnx_exporter.errors import ArgumentError

Command = TypeVar("Command", bound=Callable[..., Any])


def opset_option(command: Command) -> Command:
    """``--opset N``."""
    return click.option(
        "--opset",
        type=click.IntRange(OLDEST_OPSET, NEWEST_OPSET),
        help=f"Version of ai.onnx to write.  [default: {DEFAULT_OPSET}, or what a plugin given with -p states]",
    )(command)


def plugin_options(command: Command) -> Command:
    """``-p NAME``, ``-p no:NAME``, ``--no-plugins`` and ``--prefer NAME``."""

    @functools.wraps(command)
    def with_choice(*args: Any, plugin: tuple[str, ...], no_plugins: bool, **options: Any) -> Any:
        return command(*args, plugin=((NO_PLUGINS,) if no_plugins else ()) + plugin, **options)

    for option in (
        click.option(
            "--prefer",
            multiple=True,
            metavar="NAME",
            help="Plugin that goes first and may replace built-in operators; can be repeated.",
        ),
        click.option(
            "--no-plugins", is_flag=True, help="Leave out every plugin that is not given with -p; the built-in opsets stay."
        ),
        click.option(
            "-p",
            "--plugin",
            "plugin",
            multiple=True,
            metavar="[no:]NAME",
            help="Insist on a plugin (a name, or a .py file), or with no: leave it out; can be repeated.",
        ),
    ):
        with_choice = option(with_choice)
    return cast(Command, with_choice)


def kind_options(command: Command) -> Command:
    """What becomes of modes, operators, weights and modules."""
    for option in reversed(
        (
            click.option(
                "--training",
                type=click.Choice(["EVAL", "PRESERVE", "TRAINING"], case_sensitive=False),
                default="EVAL",
                show_default=True,
                help="Mode of the model.",
            ),
            click.option(
                "--operator-export-type",
                type=click.Choice(["ONNX", "ONNX_FALLTHROUGH", "ONNX_ATEN_FALLBACK", "ONNX_ATEN"], case_sensitive=False),
                help="What becomes of operators that nobody converts.  [default: ONNX]",
            ),
            click.option(
                "--custom-opset", multiple=True, metavar="DOMAIN=VERSION", help="Version of a custom domain; can be repeated."
            ),
            click.option(
                "--constant-folding/--no-constant-folding",
                default=True,
                help="Whether to store what is computed from weights alone.",
            ),
            click.option("--functions", is_flag=True, help="Write modules as ONNX local functions (from opset 15 on)."),
        )
    ):
        command = option(command)
    return command


def parse_custom_opsets(given: Sequence[str]) -> dict[str, int]:
    """Returns the versions by domain.

    Raises:
        ArgumentError: If an item is not DOMAIN=VERSION.
    """
    versions = {}
    for item in given:
        domain, _, version = item.partition("=")
        if not domain or not version.isdigit():
            raise ArgumentError(f"--custom-opset {item!r} must be DOMAIN=VERSION, such as com.acme=2")
        versions[domain] = int(version)
    return versions
