"""Writes docs/public_api.txt: every public name with its signature. A test compares it with the code.

python docs/public_api.py
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import Any

import onnx_exporter

TARGET = Path(__file__).with_name("public_api.txt")
_TORCH_ONNX = "onnx_exporter.compat"
"""What is public there is public because torch.onnx has it; the package itself re-exports it."""
_MADE_BY_US = ("GraphContext", "ONNXProgram", "SymbolicContext", "Value")
"""Classes whose objects are handed out; how they are made is nobody else's business."""


class _Bare(str):
    """An annotation that is shown as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def modules() -> Iterator[ModuleType]:
    """Yields the public modules, the package first."""
    yield onnx_exporter
    for info in sorted(pkgutil.walk_packages(onnx_exporter.__path__, "onnx_exporter."), key=lambda info: info.name):
        is_public = not any(part.startswith("_") for part in info.name.split("."))
        if is_public and not info.name.startswith(_TORCH_ONNX):
            yield importlib.import_module(info.name)


def names_of(module: ModuleType) -> list[str]:
    """Returns the public names of a module: those that it lists, else those that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return sorted(name for name in own if not name.startswith("_"))


def describe(name: str, value: Any) -> Iterator[str]:
    """Yields a line for a name, and for a class one for each of its public members."""
    if inspect.ismodule(value):
        yield f"{name}: module"
    elif isinstance(value, GenericAlias):
        yield f"{name} = {value!r}"
    elif inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base.__module__.startswith(("builtins", "onnx_exporter")))
        bases = "" if bases == "object" else bases
        signature = _signature(value)
        made = "" if name in _MADE_BY_US or not signature or "*args" in signature else f": {name}{signature}"
        yield f"class {name}({bases}){made}" if bases else f"class {name}{made}"
        fields = [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
        for member in sorted({*fields, *(key for key in vars(value) if not key.startswith("_"))}):
            yield f"    {_member(value, member)}"
    elif inspect.isfunction(value):
        yield f"{name}{_signature(value)}"
    elif callable(value):
        yield f"{name}: {type(value).__name__}"
    else:
        yield f"{name} = {value!r}"


def _member(kind: type, name: str) -> str:
    found = inspect.getattr_static(kind, name, None)
    if isinstance(found, classmethod | staticmethod):
        return f"{name}{_signature(found.__func__)}  [{type(found).__name__}]"
    return f"{name}{_signature(found)}" if inspect.isfunction(found) else name


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except ValueError:  # made in C++
        return ""
    bare = [
        item.replace(annotation=_shown(item.annotation), default=_in_order(item.default))
        for item in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=_shown(signature.return_annotation)))


def _in_order(default: Any) -> Any:
    """A default that is shown in the same way each time: a set has no order of its own."""
    return _Bare(f"{{{', '.join(sorted(map(repr, default)))}}}") if isinstance(default, frozenset) and default else default


def _shown(annotation: Any) -> Any:
    return _Bare(annotation) if isinstance(annotation, str) else annotation


def text() -> str:
    """Returns the page."""
    lines = ["Written by docs/public_api.py. What stands here is kept as docs/stability.md says."]
    for module in modules():
        lines += ["", f"# {module.__name__}"]
        for name in names_of(module):
            lines += describe(name, getattr(module, name))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text())
    print(f"{TARGET}: {len(text().splitlines())} lines")
