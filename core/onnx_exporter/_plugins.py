"""Choosing plugins for an export, and what they contribute together."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from onnx_exporter._discovery import Found, PluginInfo, discover
from onnx_exporter._loading import LoadedPlugin, collect, load
from onnx_exporter._local_plugins import LOCAL_FILE, Beside, beside_main, is_path, load_file, name_of
from onnx_exporter._optable import OpTable
from onnx_exporter._registry import Precedence, Provider, Registry
from onnx_exporter._warnings import warn
from onnx_exporter.compat._symbolics import process_providers
from onnx_exporter.errors import PluginError

ALLOW_VARIABLE = "ONNX_EXPORTER_PLUGINS"
DISABLE_VARIABLE = "ONNX_EXPORTER_DISABLE"
NO_PLUGINS = "no:*"
"""The choice that leaves out all but the built-in opsets and what else is named."""


@dataclasses.dataclass(frozen=True)
class PluginSet:
    """The plugins of one export: what was found, what was loaded, and the registry made of it."""

    plugins: tuple[LoadedPlugin, ...]

    @functools.cached_property
    def registry(self) -> Registry:
        """Who converts what."""
        return Registry((plugin.provider for plugin in self.plugins if plugin.provider), tuple(self._absent()))

    def _absent(self) -> Iterator[str]:
        """A line for each installed plugin that takes no part, and one for all that the caller has left out together."""
        left_out = []
        for plugin in self.plugins:
            if plugin.error:
                yield f"plugin {plugin.info.name} failed to load and might: {plugin.error}"
            elif plugin.disabled == NO_PLUGINS:
                left_out.append(plugin.info.name)
            elif plugin.disabled and not plugin.info.is_builtin:
                yield f"plugin {plugin.info.name} is disabled ({plugin.disabled}) and was not asked"
        if left_out:
            yield f"all plugins that are not named are left out ({NO_PLUGINS}): {', '.join(left_out)}"

    def passes(self, stage: str) -> list[tuple[PluginInfo, Any]]:
        """Returns the passes at `stage` of the plugins that were asked for, sorted by plugin name, each with its plugin."""
        return [(plugin.info, item) for plugin in self.plugins if plugin.is_named for at, item in plugin.passes if at == stage]

    def custom_op_libraries(self, used: Collection[str]) -> list[Any]:
        """Returns what verification needs to run operators of the plugins that were asked for, and of those in `used`.

        Raises:
            PluginError: If a plugin's hook fails, or returns what it must not.
        """
        asked = [plugin for plugin in self.plugins if plugin.is_named or plugin.info.name in used]
        return [library for plugin in asked for library in plugin.libraries()]

    def option_default(self, name: str) -> tuple[Any, PluginInfo] | None:
        """Returns what the plugins that were asked for have for an option that the caller does not give, and which of them.

        Raises:
            PluginError: If two state different values.
        """
        found: tuple[Any, PluginInfo] | None = None
        for plugin in self.plugins:
            if not plugin.is_named or name not in plugin.option_defaults:
                continue
            value = plugin.option_defaults[name]
            if found is not None and found[0] != value:
                raise PluginError(
                    f"plugins {found[1]} and {plugin.info} disagree about {name}: {found[0]!r} and {value!r}; "
                    f"give {name} to export, or leave one of the plugins out"
                )
            found = found or (value, plugin.info)
        return found

    def warn_of_failures(self) -> None:
        """Warns about the plugins that failed to load, once in a process about each."""
        for plugin in self.plugins:
            if plugin.error:
                _warn_once(f"plugin {plugin.info} failed to load and is left out: {plugin.error}")


@functools.cache
def _warn_once(message: str) -> None:
    warn(message)


@dataclasses.dataclass(frozen=True, slots=True)
class _Choice:
    """Which plugins take part: what the caller and the environment say. It decides all, so results are cached by it."""

    named: frozenset[str]
    preferred: tuple[str, ...]
    refused: frozenset[str]
    allowed: frozenset[str] | None
    disabled: frozenset[str]

    @property
    def asked(self) -> frozenset[str]:
        return self.named | set(self.preferred)

    def position(self, name: str) -> int:
        """The place of a plugin of the call among those: below 0, in the order given, where it is preferred."""
        return self.preferred.index(name) - len(self.preferred) if name in self.preferred else 0

    def without(self, names: Collection[str]) -> _Choice:
        """The choice among the installed plugins, where the names are those of others."""
        preferred = tuple(name for name in self.preferred if name not in names)
        return dataclasses.replace(self, named=self.named.difference(names), preferred=preferred)

    def refusal(self, name: str, *, is_builtin: bool = False) -> str:
        """Who keeps a plugin from being loaded, "" if nobody does.

        Raises:
            PluginError: If the caller asked for it all the same.
        """
        why = ""
        if name in self.refused:
            why = f"no:{name}"
        elif name in self.disabled:
            why = DISABLE_VARIABLE
        elif self.allowed is not None and name not in self.allowed and not is_builtin:
            why = f"not in {ALLOW_VARIABLE}"
        elif "*" in self.refused and not is_builtin and name not in self.asked:
            return NO_PLUGINS
        if why and name in self.asked:
            raise PluginError(f"plugin {name!r} was asked for, but is disabled ({why})")
        return why


def load_plugins(choice: Iterable[Any] = (), prefer: Sequence[str] = ()) -> PluginSet:
    """Loads the plugins for one export and makes a registry of them and of what this process registered.

    Args:
        choice: What the caller said: ``"no:NAME"`` leaves a plugin out and ``"no:*"`` all that are not named, ``"NAME"``
            insists on one, ``"file.py"`` is a file that holds one, an `OpTable` or an object with hooks takes part in this
            call only.
        prefer: Plugins that go before others, in this order, and may replace built-in operators: names of installed ones, of
            files, and ``"call-0"`` for a table that is given first; or files, which take part by that.

    Raises:
        PluginError: If a plugin that was named is not there, is disabled, or failed to load.
    """
    names: list[str] = []
    files: list[Path] = []
    given: list[Any] = []
    beside: Beside | None = None
    for item in choice:
        if isinstance(item, Beside):
            beside = item
        elif is_path(item):
            files.append(Path(item))
        else:
            (names if isinstance(item, str) else given).append(item)
    preferred = [_preferred(item, files) for item in prefer]
    found = _choice(names, preferred)
    local = [*_load_local(found, files, beside or beside_main()), *_load_given(found, given)]
    installed = found.without({item.info.name for item in local})
    plugins = _load_installed(installed, tuple(sys.path))
    _warn_of_slips(found, (*plugins, *local))
    registered = () if "*" in found.refused else process_providers()
    others = [
        *local,
        *(LoadedPlugin(PluginInfo(item.name, "", "", "registered by this process"), item) for item in registered),
    ]
    return _plugin_set((*plugins, *others))


def _preferred(item: Any, files: list[Path]) -> str:
    """The name of what is preferred; a file takes part by that."""
    if is_path(item):
        path = Path(item)
        if path.resolve() not in [each.resolve() for each in files]:
            files.append(path)
        return name_of(path)
    if not isinstance(item, str):
        raise PluginError(f"prefer has {item!r}; it takes names of plugins and .py files")
    return item


def _choice(names: Sequence[str], prefer: Sequence[str]) -> _Choice:
    allowed = os.environ.get(ALLOW_VARIABLE)
    return _Choice(
        frozenset(name for name in names if not name.startswith("no:")),
        tuple(dict.fromkeys(prefer)),
        frozenset(name.removeprefix("no:") for name in names if name.startswith("no:")),
        None if allowed is None else _split(allowed),
        _split(os.environ.get(DISABLE_VARIABLE, "")),
    )


def _split(text: str) -> frozenset[str]:
    return frozenset(item.strip() for item in text.split(",") if item.strip())


@functools.lru_cache(maxsize=8)
def _plugin_set(plugins: tuple[LoadedPlugin, ...]) -> PluginSet:
    return PluginSet(plugins)


@functools.lru_cache(maxsize=8)
def _load_installed(choice: _Choice, path: tuple[str, ...]) -> tuple[LoadedPlugin, ...]:
    """The installed plugins, loaded; cached, since everything that decides it is an argument. Sorted by name."""
    installed = discover()
    _check_names(choice, installed)
    loaded: dict[str, LoadedPlugin] = {}
    # Built-in opsets first: their tables are in use, and take nothing more, when code of others is imported.
    for name, found in sorted(installed.items(), key=lambda item: not item[1].info.is_builtin):
        info = found.info
        if why := choice.refusal(name, is_builtin=info.is_builtin):
            loaded[name] = LoadedPlugin(info, disabled=why)
            continue
        if info.is_builtin:
            loaded[name] = load(found, Precedence.OPSET, is_named=False)
        elif name in choice.preferred:
            loaded[name] = load(found, Precedence.PREFERRED, choice.preferred.index(name), is_named=True)
        else:
            loaded[name] = load(found, Precedence.PLUGIN, is_named=name in choice.named)
        if loaded[name].error and (name in choice.asked or info.is_builtin):
            raise PluginError(f"plugin {info} failed to load: {loaded[name].error}")
    return tuple(loaded[name] for name in installed)


def _check_names(choice: _Choice, installed: dict[str, Found]) -> None:
    known = {*installed, "*", name_of(Path(LOCAL_FILE))}
    for name in sorted(choice.asked | choice.refused):
        if name not in known or (name not in installed and name in choice.asked):
            others = ", ".join(name for name, found in installed.items() if not found.info.is_builtin) or "none"
            hint = ""
            if not re.fullmatch(r"\w[\w.-]*", name, re.ASCII):
                hint = "; a file that holds a plugin is given by its path, which ends in .py"
            elif name in choice.asked:
                hint = f"; try: pip install exporter-plugin-{name}"
            raise PluginError(f"no plugin named {name!r} is installed (installed: {others}){hint}")


def _warn_of_slips(choice: _Choice, plugins: Sequence[LoadedPlugin]) -> None:
    """Warns of names in the environment that no plugin has: a slip there would change unseen what an export uses."""
    names = {plugin.info.name for plugin in plugins}
    for variable, listed in ((ALLOW_VARIABLE, choice.allowed), (DISABLE_VARIABLE, choice.disabled)):
        if unknown := sorted((listed or frozenset()) - names - {name_of(Path(LOCAL_FILE))}):
            others = ", ".join(sorted(plugin.info.name for plugin in plugins if not plugin.info.is_builtin)) or "none"
            _warn_once(f"{variable} names {', '.join(map(repr, unknown))}, but no plugin is called so (there are: {others})")


def _load_local(choice: _Choice, files: Sequence[Path], beside: Beside) -> list[LoadedPlugin]:
    """The files that the caller named, and the one beside the script."""
    loaded = []
    for path in files:
        name = name_of(path)
        dataclasses.replace(choice, named=choice.named | {name}).refusal(name)
        loaded.append(load_file(path, choice.position(name)))
    own = beside.file
    if own is not None and own not in [item.resolve() for item in files]:
        name = name_of(own)
        why = choice.refusal(name)
        unused = LoadedPlugin(PluginInfo(name, "", "", str(own)), disabled=why)
        loaded.append(unused if why else load_file(own, choice.position(name)))
    return loaded


def _load_given(choice: _Choice, given: Sequence[Any]) -> Iterator[LoadedPlugin]:
    """The tables and objects with hooks that were given to one call."""
    taken: set[str] = set()
    for index, item in enumerate(given):
        if isinstance(item, OpTable):
            name = f"call-{index}"
            info = PluginInfo(name, "", "", f"table made at {item._place}")
            provider = Provider(name, "", "", Precedence.CALL, (item._copy(),), position=choice.position(name))
            yield LoadedPlugin(info, provider)
        else:
            name = str(getattr(item, "__name__", type(item).__name__))
            name = f"{name}-{index}" if name in taken else name
            info = PluginInfo(name, "", "", "object given to this call")
            yield collect(info, item, Precedence.CALL, choice.position(name), is_named=True)
        taken.add(name)
