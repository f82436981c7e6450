"""Loading one plugin: its requirements, its import, what its hooks contribute."""

from __future__ import annotations

import dataclasses
import functools
import os
import reprlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pluggy
import torch
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from onnx_exporter import hookspecs
from onnx_exporter._discovery import Found, PluginInfo
from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET, OpTable
from onnx_exporter._registry import Precedence, Provider
from onnx_exporter._version import OWN_DISTRIBUTION, core_version
from onnx_exporter.errors import ExportError, PluginError

TRACE_VARIABLE = "ONNX_EXPORTER_TRACE"

OPTIONS = frozenset(
    ("opset_version", "capture", "operator_export_type", "keep_initializers_as_inputs", "custom_opsets", "external_data",
     "rtol", "atol", "doc_string", "producer_name")
)  # fmt: skip
"""Arguments of `export` that a plugin may have a default for: those whose own default is that they are not given."""


HOOKS = tuple(name for name in vars(hookspecs) if name.startswith("onnx_exporter_"))
"""The names of all hooks."""

_NODE_ARGUMENTS = ("g", "node")
"""What the hooks that convert nodes get, in this order."""


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """What became of a plugin.

    Attributes:
        info: Which plugin.
        provider: What it contributes, or None if it was not loaded.
        passes: Its passes by stage.
        option_defaults: What it has for options that the caller does not give.
        libraries: Asks it for what verification needs to run its operators.
        is_named: Whether the caller asked for it, so that its passes and option defaults act.
        error: Why it failed to load, "" if it did not.
        disabled: Who disabled it, "" if nobody did.
        seconds: How long loading took.
    """

    info: PluginInfo
    provider: Provider | None = None
    passes: tuple[tuple[str, Any], ...] = ()
    option_defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    libraries: Callable[[], Sequence[Any]] = list
    is_named: bool = False
    error: str = ""
    disabled: str = ""
    seconds: float = 0.0


def load(found: Found, precedence: Precedence, position: int = 0, *, is_named: bool) -> LoadedPlugin:
    """Imports an installed plugin. Whatever its code raises is reported as its error and stops nothing else."""
    start = time.perf_counter()
    info = found.info
    try:
        _check_distribution(found)
        loaded = collect(info, found.entry_point.load(), precedence, position, is_named=is_named)
    except (Exception, SystemExit) as error:  # a plugin is foreign code: it may raise anything, and must not take the others down
        loaded = LoadedPlugin(info, error=described(error))
    loaded = dataclasses.replace(loaded, seconds=time.perf_counter() - start)
    if os.environ.get(TRACE_VARIABLE):
        state = loaded.error or "loaded"
        print(f"onnx_exporter: plugin {info.name} ({info.target}): {state}, {loaded.seconds * 1000:.1f} ms", file=sys.stderr)
    return loaded


def collect(
    info: PluginInfo, plugin: Any, precedence: Precedence, position: int = 0, *, is_named: bool, tables: Iterable[OpTable] = ()
) -> LoadedPlugin:
    """Asks a plugin's hooks for what it contributes.

    Args:
        info: Which plugin.
        plugin: The module or object with hooks.
        precedence: Its rank.
        position: Its place among those of its rank.
        is_named: Whether the caller asked for it.
        tables: Tables that are its own without a hook.

    Raises:
        PluginError: If it has no hook, a wrong one, or one that returns what it must not; or it is for other versions.
    """
    opsets = _check_requires(info, plugin)
    manager = _manager(info, plugin)
    contributed = list(tables)
    if not contributed and not manager.get_hookcallers(plugin):
        raise PluginError(f"{info.target} implements no hook; decorate a function named onnx_exporter_tables with hookimpl")
    ask = functools.partial(_ask, manager, info)
    contributed += ask("onnx_exporter_tables", OpTable, "OpTables")
    for table in contributed:
        table._freeze(info.name)
    stages = ("source", "onnx")
    passes = tuple((stage, item) for stage in stages for item in ask("onnx_exporter_passes", Callable, "functions", stage=stage))
    provider = Provider(
        info.name,
        info.distribution,
        info.version,
        precedence,
        tuple(contributed),
        fallback=_converter(manager.hook.onnx_exporter_fallback),
        python_op=_converter(manager.hook.onnx_exporter_python_op),
        opsets=opsets,
        position=position,
    )
    return LoadedPlugin(
        info,
        provider,
        passes,
        _option_defaults(manager, info),
        lambda: ask("onnx_exporter_custom_op_libraries", (str, os.PathLike, type), "paths and OpRun classes"),
        is_named=is_named,
    )


def _manager(info: PluginInfo, plugin: Any) -> pluggy.PluginManager:
    """Who calls the hooks of one plugin."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin, info.name)
        manager.check_pending()
    except pluggy.PluginValidationError as error:
        raise PluginError(f"plugin {info} has a hook that is none of this version: {error}") from error
    for name in HOOKS:
        if callable(getattr(plugin, name, None)) and not getattr(manager.hook, name).get_hookimpls():
            raise PluginError(f"{name} of plugin {info} is no hook until it is decorated with onnx_exporter.hookimpl")
    return manager


def _ask(manager: pluggy.PluginManager, info: PluginInfo, hook: str, kind: Any, kinds: str, **arguments: Any) -> list[Any]:
    """Returns the items that a hook gives.

    Raises:
        PluginError: If it fails, or gives anything but a list of that kind.
    """
    found: list[Any] = []
    for given in _call(manager, info, hook, **arguments):
        if not isinstance(given, list | tuple) or not all(isinstance(item, kind) for item in given):
            raise PluginError(f"{hook} of plugin {info} returned {reprlib.repr(given)}; it must return a list of {kinds}")
        found += given
    return found


def _call(manager: pluggy.PluginManager, info: PluginInfo, hook: str, **arguments: Any) -> list[Any]:
    try:
        results: list[Any] = getattr(manager.hook, hook)(**arguments)
    except Exception as error:  # a plugin is foreign code: it may raise anything
        raise PluginError(f"{hook} of plugin {info} failed: {described(error)}") from error
    return results


def described(error: BaseException) -> str:
    """What was raised, with its kind where that is no error of the exporter's."""
    return str(error) if isinstance(error, ExportError) else f"{type(error).__name__}: {error}"


def _converter(caller: pluggy.HookCaller) -> Callable[..., Any] | None:
    """The plugin's function for a hook that converts nodes, if it has one; it need not take all that the hook offers."""
    implementations = caller.get_hookimpls()
    if not implementations:
        return None
    (implementation,) = implementations
    function: Callable[..., Any] = implementation.function
    places = [_NODE_ARGUMENTS.index(name) for name in implementation.argnames]
    if places == list(range(len(_NODE_ARGUMENTS))):
        return function

    @functools.wraps(function)
    def with_some(*arguments: Any) -> Any:
        return function(*(arguments[place] for place in places))

    return with_some


def _option_defaults(manager: pluggy.PluginManager, info: PluginInfo) -> Mapping[str, Any]:
    hook = "onnx_exporter_option_defaults"
    defaults: dict[str, Any] = {}
    for given in _call(manager, info, hook):
        if not isinstance(given, Mapping):
            raise PluginError(
                f"{hook} of plugin {info} returned {reprlib.repr(given)}; it must return a dict of arguments of export"
            )
        defaults |= given
    for name in defaults:
        if name not in OPTIONS:
            raise PluginError(
                f"{hook} of plugin {info} gives {name!r}; a plugin may have defaults for {', '.join(sorted(OPTIONS))}"
            )
    return defaults


# Versions


def _check_distribution(found: Found) -> None:
    """Holds what the distribution needs against what is here: one for another version may not even be importable."""
    for line in found.requires:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue  # the installer has taken it; only the names below matter here
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        _check_version(found.info, requirement.name, requirement.specifier)


def _check_requires(info: PluginInfo, plugin: Any) -> frozenset[int]:
    """Checks the versions that a plugin states, and returns the opsets that it is for."""
    stated = getattr(plugin, "onnx_exporter_requires", "")
    ranges = {OWN_DISTRIBUTION: stated} if isinstance(stated, str) else stated
    if not isinstance(ranges, Mapping) or not all(isinstance(text, str) for text in ranges.values()):
        raise PluginError(
            f"onnx_exporter_requires = {stated!r}; it must be a version range such as '>=0.1,<1', or a dict of ranges by name"
        )
    opsets = frozenset(range(OLDEST_OPSET, NEWEST_OPSET + 1))
    for name, text in ranges.items():
        if name not in (OWN_DISTRIBUTION, "torch", "opset"):
            raise PluginError(f"onnx_exporter_requires names {name!r}; it can name {OWN_DISTRIBUTION}, torch and opset")
        try:
            accepted = SpecifierSet(text)
        except InvalidSpecifier as error:
            raise PluginError(f"onnx_exporter_requires = {stated!r}: {text!r} is no version specifier") from error
        if name == "opset":
            opsets = frozenset(opset for opset in opsets if accepted.contains(str(opset)))
            if not opsets:
                raise PluginError(f"it is for opset {text}, of which there is none from {OLDEST_OPSET} to {NEWEST_OPSET}")
        else:
            _check_version(info, name, accepted)
    return opsets


def _check_version(info: PluginInfo, name: str, accepted: SpecifierSet) -> None:
    if name not in (OWN_DISTRIBUTION, "torch"):
        return
    version = core_version() if name == OWN_DISTRIBUTION else torch.__version__
    if not accepted.contains(version, prereleases=True):
        raise PluginError(
            f"it works with {name} {accepted}, this is {version}; install another version of {info.distribution or name}"
        )
