"""Finding installed plugins. Reads the metadata of distributions and imports nothing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import importlib_metadata

from onnx_exporter._version import OWN_DISTRIBUTION
from onnx_exporter.errors import PluginError

GROUP = "onnx_exporter.plugins"

_HEADER = re.compile(r"^(Name|Version|Requires-Dist):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


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
        return f"{self.name!r} ({self.distribution} {self.version})" if self.distribution else f"{self.name!r} ({self.target})"

    @property
    def is_builtin(self) -> bool:
        """Whether it comes with onnx-exporter itself."""
        return self.distribution == OWN_DISTRIBUTION


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """An installed plugin with what loading it needs.

    Attributes:
        info: Which plugin.
        entry_point: What imports it.
        requires: What its distribution needs, as ``Requires-Dist`` writes it.
    """

    info: PluginInfo
    entry_point: importlib_metadata.EntryPoint
    requires: tuple[str, ...]


def installed_plugins() -> dict[str, PluginInfo]:
    """Returns every installed plugin by name, without importing any. Added in 0.1.

    Raises:
        PluginError: If two distributions bring a plugin of one name.
    """
    return {name: found.info for name, found in discover().items()}


def discover() -> dict[str, Found]:
    """Returns every installed plugin by name, sorted; see `installed_plugins`."""
    found: dict[str, Found] = {}
    for each in _all_plugins():
        info = each.info
        other = found.setdefault(info.name, each).info
        if other.distribution != info.distribution:
            raise PluginError(
                f"two distributions bring a plugin named {info.name!r}: "
                f"{other.distribution} {other.version} ({other.target}) and "
                f"{info.distribution} {info.version} ({info.target}); uninstall one of them"
            )
    return dict(sorted(found.items()))


def plugin_packages() -> set[str]:
    """Returns the top packages of the installed plugins."""
    return {found.info.target.partition(":")[0].partition(".")[0] for found in _all_plugins()}


def _all_plugins() -> Iterator[Found]:
    """Yields the plugins of each distribution, the first of a name on the path hiding others.

    Only the metadata of distributions that name the group is parsed: there may be hundreds of others.
    """
    hidden: set[str] = set()
    for distribution in importlib_metadata.distributions():
        if GROUP not in (distribution.read_text("entry_points.txt") or ""):
            continue
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        headers = _HEADER.findall(text.partition("\n\n")[0])
        name, version = (next((value for key, value in headers if key == wanted), "") for wanted in ("Name", "Version"))
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in hidden:
            continue
        hidden.add(key)
        requires = tuple(value for key, value in headers if key == "Requires-Dist")
        for entry_point in distribution.entry_points.select(group=GROUP):
            info = PluginInfo(entry_point.name, name, version, entry_point.value)
            yield Found(info, entry_point, requires)
