"""A plugin that is one Python file beside the user's script, with no packaging."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import sys
import time
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from onnx_exporter._discovery import PluginInfo
from onnx_exporter._loading import HOOKS, LoadedPlugin, collect, described
from onnx_exporter._optable import OpTable
from onnx_exporter._registry import Precedence
from onnx_exporter.errors import PluginError

LOCAL_FILE = "onnx_exporter_plugins.py"
"""The name of a file that is a plugin for exports by what stands beside it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Beside:
    """Says which folder's file is looked for, in place of the folder of the running script.

    Attributes:
        folder: The folder, or None for no file at all.
    """

    folder: Path | None

    @property
    def file(self) -> Path | None:
        """The file, if it is there."""
        path = self.folder / LOCAL_FILE if self.folder is not None else None
        return path if path is not None and path.is_file() else None


def beside_main() -> Beside:
    """The folder of the script that Python runs; none in an interactive session.

    The user has asked for that script's code to be run. A file in the current folder may be anybody's.
    """
    place = getattr(sys.modules.get("__main__"), "__file__", None)
    path = Path(place).resolve() if place else None
    return Beside(None if path is None or path.name == LOCAL_FILE else path.parent)


def is_path(item: Any) -> bool:
    """Whether what a caller said is a file with a plugin, not the name of one."""
    return isinstance(item, os.PathLike) or (isinstance(item, str) and item.endswith(".py"))


def name_of(path: Path) -> str:
    """The name by which a file's plugin is chosen."""
    return path.stem


def load_file(path: Path, position: int = 0) -> LoadedPlugin:
    """Imports a file and collects what its hooks contribute; one without hooks contributes its tables.

    Args:
        path: The file.
        position: Its place among the plugins of the call.

    Raises:
        PluginError: If there is no such file, or its code fails.
    """
    if not path.is_file():
        raise PluginError(f"there is no plugin file {os.fspath(path)!r}")
    start = time.perf_counter()
    try:
        source = path.read_bytes()
        info = PluginInfo(name_of(path), "", _contents(source), os.fspath(path))
        module = _import(path.resolve(), source)
        has_hook = any(hasattr(module, name) for name in HOOKS)
        tables = [] if has_hook else [value for value in vars(module).values() if isinstance(value, OpTable)]
        loaded = collect(info, module, Precedence.CALL, position, is_named=True, tables=dict.fromkeys(tables))
    except (Exception, SystemExit) as error:  # the file is the user's code and may raise anything
        raise PluginError(f"plugin file {os.fspath(path)!r} failed to load: {described(error)}") from error
    return dataclasses.replace(loaded, seconds=time.perf_counter() - start)


def _contents(source: bytes) -> str:
    """What tells one state of a file from another; it stands for the version of a plugin that is a file."""
    return f"sha256:{hashlib.sha256(source).hexdigest()[:16]}"


_STATE = "__onnx_exporter_contents__"
"""The attribute of a module that says from which contents of its file it was made."""


def _import(path: Path, source: bytes) -> ModuleType:
    """The file as a module, under its own name where no other module can have that; it stays so until the file changes."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:8]
    for name in (path.stem, f"{path.stem}_{digest}"):
        known = sys.modules.get(name)
        if known is None and _is_free(name, path):
            break
        place = getattr(known, "__file__", None)
        if known is not None and place and Path(place).resolve() == path:
            # What the script has imported itself is of the contents that the file has when it is first seen here.
            if vars(known).setdefault(_STATE, _contents(source)) == _contents(source):
                return known
            break
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or not isinstance(spec.loader, SourceLoader):
        raise PluginError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    vars(module)[_STATE] = _contents(source)
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        # Not by the loader: its cache takes a file that was changed within a second for the one before.
        exec(spec.loader.source_to_code(source, os.fspath(path)), vars(module))
    except BaseException:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before
        raise
    return module


def _is_free(name: str, path: Path) -> bool:
    """Whether importing a name elsewhere can only mean the file."""
    found = importlib.util.find_spec(name) if "." not in name else None
    return found is None or (found.origin is not None and Path(found.origin).resolve() == path)
