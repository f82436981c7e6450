"""Finding, choosing and loading plugins. Listing them imports none."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import importlib_metadata
import pluggy
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from onnx_exporter import hookspecs
from onnx_exporter._optable import OpTable
from onnx_exporter._registry import Precedence, Provider, Registry
from onnx_exporter.compat._symbolics import process_providers
from onnx_exporter.errors import PluginError

GROUP = "onnx_exporter.plugins"
OWN_DISTRIBUTION = "onnx-exporter"
ALLOW_VARIABLE = "ONNX_EXPORTER_PLUGINS"
DISABLE_VARIABLE = "ONNX_EXPORTER_DISABLE"
TRACE_VARIABLE = "ONNX_EXPORTER_TRACE"


@dataclasses.dataclass(frozen=True, slots=True)
class PluginInfo:
    """An installed plugin, as its distribution's metadata describes it. Added in 0.1.

    Attributes:
        name: Entry-point name, by which it is chosen.
        distribution: Distribution that brought it.
        version: Version of that distribution.
        target: ``module`` or ``module:attribute`` that loading it imports.
    """

    name: str
    distribution: str
    version: str
    target: str

    def __str__(self) -> str:
        return f"{self.name!r} ({self.distribution} {self.version})"

    @property
    def is_builtin(self) -> bool:
        """Whether it comes with onnx-exporter itself."""
        return self.distribution == OWN_DISTRIBUTION


@dataclasses.dataclass(frozen=True, slots=True)
class LoadedPlugin:
    """What became of a plugin.

    Attributes:
        info: Which plugin.
        provider: What it contributes, or None if it was not loaded.
        passes: Its passes by stage.
        error: Why it failed to load, "" if it did not.
        disabled: Who disabled it, "" if nobody did.
        seconds: How long loading took.
    """

    info: PluginInfo
    provider: Provider | None = None
    passes: tuple[tuple[str, Any], ...] = ()
    error: str = ""
    disabled: str = ""
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class PluginSet:
    """The plugins of one export: what was found, what was loaded, and the registry made of it."""

    plugins: tuple[LoadedPlugin, ...]

    @functools.cached_property
    def registry(self) -> Registry:
        """Who converts what.

        Raises:
            RegistrationError: If two plugins claim one operator.
        """
        return Registry(plugin.provider for plugin in self.plugins if plugin.provider)

    def passes(self, stage: str) -> list[Any]:
        """Returns the passes that the loaded plugins contribute at `stage`, sorted by plugin name."""
        return [item for plugin in self.plugins for at, item in plugin.passes if at == stage]

    @property
    def failures(self) -> tuple[LoadedPlugin, ...]:
        """The plugins that failed to load."""
        return tuple(plugin for plugin in self.plugins if plugin.error)


def installed_plugins() -> dict[str, PluginInfo]:
    """Returns every installed plugin by name, without importing any. Added in 0.1.

    Raises:
        PluginError: If two distributions bring a plugin of one name.
    """
    found: dict[str, PluginInfo] = {}
    for entry_point in importlib_metadata.entry_points(group=GROUP):
        metadata = entry_point.dist
        info = PluginInfo(
            entry_point.name, metadata.name if metadata else "", metadata.version if metadata else "", entry_point.value
        )
        other = found.get(info.name)
        if other and other.distribution != info.distribution:
            raise PluginError(
                f"two distributions bring a plugin named {info.name!r}: "
                f"{other.distribution} {other.version} ({other.target}) and "
                f"{info.distribution} {info.version} ({info.target}); uninstall one of them"
            )
        found[info.name] = info
    return dict(sorted(found.items()))


def load_plugins(choice: Iterable[Any] = (), prefer: Sequence[str] = ()) -> PluginSet:
    """Loads the plugins for one export and makes a registry of them and of what this process registered.

    Args:
        choice: What the caller said: ``"no:NAME"`` leaves a plugin out, ``"NAME"`` insists on it, an
            `OpTable` or an object with hooks takes part in this call only.
        prefer: Plugins that go before all others and may replace built-in operators.

    Raises:
        PluginError: If a plugin that was named is not installed, is disabled, or failed to load.
    """
    names: list[str] = []
    given: list[Any] = []
    for item in choice:
        (names if isinstance(item, str) else given).append(item)
    key = tuple(os.environ.get(variable, "") for variable in (ALLOW_VARIABLE, DISABLE_VARIABLE))
    plugins = _load_installed(tuple(names), tuple(prefer), key, tuple(sys.path))
    registered = tuple(
        LoadedPlugin(PluginInfo(provider.name, "", "", "registered by this process"), provider)
        for provider in process_providers()
    )
    return _plugin_set(plugins + registered + tuple(_load_given(index, item) for index, item in enumerate(given)))


@functools.lru_cache(maxsize=8)
def _plugin_set(plugins: tuple[LoadedPlugin, ...]) -> PluginSet:
    return PluginSet(plugins)


@functools.lru_cache(maxsize=8)
def _load_installed(
    names: tuple[str, ...], prefer: tuple[str, ...], environment: tuple[str, ...], path: tuple[str, ...]
) -> tuple[LoadedPlugin, ...]:
    """The installed plugins, loaded; cached, since everything that decides it is an argument."""
    installed = installed_plugins()
    asked = {name for name in (*names, *prefer) if not name.startswith("no:")}
    refused = {name.removeprefix("no:") for name in names if name.startswith("no:")}
    for name in sorted(asked | refused):
        if name not in installed:
            others = ", ".join(name for name, info in installed.items() if not info.is_builtin) or "none"
            raise PluginError(
                f"no plugin named {name!r} is installed (installed: {others}); try: pip install exporter-plugin-{name}"
            )
    allowed = _split(environment[0])
    disabled = _split(environment[1])
    result = []
    for name, info in installed.items():
        why = ""
        if name in refused:
            why = f"no:{name}"
        elif name in disabled:
            why = DISABLE_VARIABLE
        elif environment[0] and name not in allowed and not info.is_builtin:
            why = f"not in {ALLOW_VARIABLE}"
        if why:
            if name in asked:
                raise PluginError(f"plugin {name!r} was asked for, but is disabled ({why})")
            result.append(LoadedPlugin(info, disabled=why))
            continue
        loaded = _load(info, preferred=name in prefer)
        if loaded.error and (name in asked or info.is_builtin):
            raise PluginError(f"plugin {info} failed to load: {loaded.error}")
        result.append(loaded)
    return tuple(result)


def _split(text: str) -> set[str]:
    return {item.strip() for item in text.split(",") if item.strip()}


def _load(info: PluginInfo, *, preferred: bool) -> LoadedPlugin:
    """Imports one plugin. Whatever its code raises is reported as its error and stops nothing else."""
    start = time.perf_counter()
    try:
        (entry_point,) = importlib_metadata.entry_points(group=GROUP, name=info.name)
        plugin = entry_point.load()
        precedence = Precedence.OPSET if info.is_builtin else Precedence.PREFERRED if preferred else Precedence.PLUGIN
        loaded = _collect(info, plugin, precedence)
    except (Exception, SystemExit) as error:  # a plugin is foreign code: it may raise anything, and must not take the others down
        loaded = LoadedPlugin(info, error=f"{type(error).__name__}: {error}")
    loaded = dataclasses.replace(loaded, seconds=time.perf_counter() - start)
    if os.environ.get(TRACE_VARIABLE):
        state = loaded.error or "loaded"
        print(f"onnx_exporter: plugin {info.name} ({info.target}): {state}, {loaded.seconds * 1000:.1f} ms", file=sys.stderr)
    return loaded


def _load_given(index: int, item: Any) -> LoadedPlugin:
    """A table or an object with hooks that was given to one call."""
    if isinstance(item, OpTable):
        info = PluginInfo(f"call-{index}", "", "", "table given to this call")
        return LoadedPlugin(info, Provider(info.name, "", "", Precedence.CALL, (item,)))
    info = PluginInfo(getattr(item, "__name__", type(item).__name__), "", "", "object given to this call")
    return _collect(info, item, Precedence.CALL)


def _collect(info: PluginInfo, plugin: Any, precedence: Precedence) -> LoadedPlugin:
    """Asks a plugin's hooks for what it contributes."""
    _check_requires(info, plugin)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(plugin, info.name)
    manager.check_pending()
    if not manager.get_hookcallers(plugin):
        raise PluginError(f"{info.target} implements no hook; decorate a function named onnx_exporter_tables with hookimpl")
    tables: list[OpTable] = []
    for contributed in manager.hook.onnx_exporter_tables():
        tables += contributed
    for table in tables:
        if not isinstance(table, OpTable):
            raise PluginError(f"onnx_exporter_tables returned {table!r}, which is no OpTable")
    fallback = getattr(plugin, "onnx_exporter_fallback", None)
    passes = tuple(
        (stage, item)
        for stage in ("source", "onnx")
        for contributed in manager.hook.onnx_exporter_passes(stage=stage)
        for item in contributed
    )
    provider = Provider(info.name, info.distribution, info.version, precedence, tuple(tables), fallback=fallback)
    return LoadedPlugin(info, provider, passes)


def _check_requires(info: PluginInfo, plugin: Any) -> None:
    requires = getattr(plugin, "onnx_exporter_requires", "")
    if not requires:
        return
    try:
        accepted = SpecifierSet(requires)
    except InvalidSpecifier as error:
        raise PluginError(f"onnx_exporter_requires = {requires!r} is no version specifier") from error
    version = core_version()
    if not accepted.contains(version, prereleases=True):
        raise PluginError(
            f"it works with onnx-exporter {requires}, this is {version}; upgrade {info.distribution or 'it'} or onnx-exporter"
        )


@functools.cache
def core_version() -> str:
    """Version of the installed onnx-exporter."""
    return str(importlib_metadata.version(OWN_DISTRIBUTION))
