"""`patch_torch_onnx`: what any library asks of torch.onnx, done by us."""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from types import ModuleType
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter._export import export
from onnx_exporter._pretty_string import export_to_pretty_string
from onnx_exporter.compat import _log, _symbolics, _torch_onnx, utils
from onnx_exporter.compat._old_names import Installed, install
from onnx_exporter.compat._program import ONNXProgram


def patch_torch_onnx() -> _Patch:
    """Routes torch.onnx to us, for whichever library calls it. Added in 0.1.

    ::

        with onnx_exporter.patch_torch_onnx():
            library.save_as_onnx(model)

        @onnx_exporter.patch_torch_onnx()
        def main(): ...

    While it is active, in every thread, ``torch.onnx.export``, ``register_custom_op_symbolic`` and its counterpart,
    ``select_model_mode_for_export``, ``torch.onnx.utils`` and the log are ours, and torch.onnx has the names that it once
    had (`compat.install`). Modules that imported these by name (``from torch.onnx import export``) have ours as well; a
    reference that is kept elsewhere, such as in a ``functools.partial`` or as the default of an argument, is not reached.
    Afterwards everything is as it was, but for symbolic functions that were registered meanwhile: they stay with us. It
    can be nested.

    A call takes the arguments of ``torch.onnx.export`` and returns what that would return: None for ``dynamo=False``,
    and for ``dynamo=True`` an `ONNXProgram`, with the model captured by ``torch.export``. Which of the two is the
    default depends on PyTorch, and stays so.
    """
    return _Patch()


class _Patch(ContextDecorator):
    def __enter__(self) -> None:
        _ROUTES.open()

    def __exit__(self, *exception: object) -> None:
        _ROUTES.close()


class _Routes:
    """Which objects are replaced at present. The replacements are made anew each time, so that none is in use elsewhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._replaced: list[tuple[Any, Any]] = []
        self._old_names = Installed()

    def open(self) -> None:
        with self._lock:
            if self._count == 0:
                self._replaced = _replacements()
                self._old_names = install()
                _swap({id(original): ours for original, ours in self._replaced})
            self._count += 1

    def close(self) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0:
                _swap({id(ours): original for original, ours in self._replaced})
                self._old_names.uninstall()
                self._replaced = []


_ROUTES = _Routes()


def _swap(replacements: Mapping[int, Any]) -> None:
    """Replaces objects wherever a module has one by a name."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(module, ModuleType) and isinstance(names, dict):
            for name, value in list(names.items()):
                if id(value) in replacements:
                    names[name] = replacements[id(value)]


def _replacements() -> list[tuple[Any, Any]]:
    """Returns each function of torch.onnx with what is called in its place."""
    found: dict[int, tuple[Any, Any]] = {}
    for module in (_torch_onnx.find_module("torch.onnx"), _torch_onnx.find_utils()):
        for name, replace in _REPLACEMENTS.items():
            original = getattr(module, name, None)
            if original is not None:
                found[id(original)] = (original, functools.wraps(original)(replace(original)))
    return list(found.values())


def _export_like(original: Callable[..., Any]) -> Callable[..., Any]:
    """Our export, with the default capture of one of torch.onnx's."""
    parameter = inspect.signature(original).parameters.get("dynamo")
    default = parameter is not None and parameter.default
    return lambda *args, **kwargs: export_like_torch(*args, **{"dynamo": default, **kwargs})


def export_like_torch(*args: Any, dynamo: bool = True, **kwargs: Any) -> ONNXProgram | None:
    """Exports as `export` does, and returns what ``torch.onnx.export`` returns."""
    model = args[0] if args else kwargs.get("model")
    describes_itself = _is_exportable_module(model)
    by_export = bool(dynamo or describes_itself or isinstance(model, torch.export.ExportedProgram))
    if describes_itself and len(args) < 2 and not kwargs.get("args") and not kwargs.get("kwargs"):
        kwargs = _description(model) | {name: value for name, value in kwargs.items() if value is not None}
    result = export(*args, dynamo=by_export, **kwargs)
    return ONNXProgram(result, model) if by_export else None


def dynamo_export(model: Any, /, *args: Any, export_options: Any = None, **kwargs: Any) -> ONNXProgram:
    """Exports as ``torch.onnx.dynamo_export`` does, which PyTorch 2.1 to 2.8 have."""
    shapes = None
    if getattr(export_options, "dynamic_shapes", False):
        shapes = pytree.tree_map(_any_sizes, dict(inspect.signature(model.forward).bind(*args, **kwargs).arguments))
    return ONNXProgram(export(model, args, kwargs=kwargs, dynamo=True, dynamic_shapes=shapes), model)


def _any_sizes(leaf: Any) -> Any:
    return dict.fromkeys(range(leaf.dim()), torch.export.Dim.AUTO) if isinstance(leaf, torch.Tensor) else None


def _is_exportable_module(model: Any) -> bool:
    """Whether it is one of those modules of torch.onnx that describe their own export."""
    kind = getattr(sys.modules.get("torch.onnx"), "ExportableModule", None)
    return kind is not None and isinstance(model, kind)


def _description(model: Any) -> dict[str, Any]:
    """The arguments of `export` that such a module gives."""
    args, kwargs = model.example_arguments()
    return {
        "args": args,
        "kwargs": kwargs,
        "dynamic_shapes": model.dynamic_shapes(),
        "input_names": model.input_names(),
        "output_names": model.output_names(),
    }


def _unregister_like(original: Callable[..., Any]) -> Callable[..., Any]:
    """Takes back a registration, wherever it was made: with torch.onnx before, or with us since."""

    def replacement(symbolic_name: str, opset_version: int) -> None:
        name = _symbolics.qualified_name(symbolic_name)
        if _symbolics.REGISTERED.remove(name, opset_version) is None:
            original(symbolic_name, opset_version)

    return replacement


def _instead(ours: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    def replace(original: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: ours(*args, **kwargs)

    return replace


_REPLACEMENTS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "export": _export_like,
    "dynamo_export": _instead(dynamo_export),
    "unregister_custom_op_symbolic": _unregister_like,
    "register_custom_op_symbolic": _instead(_symbolics.register_custom_op_symbolic),
    "select_model_mode_for_export": _instead(utils.select_model_mode_for_export),
    "unconvertible_ops": _instead(utils.unconvertible_ops),
    "_export": _instead(utils._export),
    "_model_to_graph": _instead(utils._model_to_graph),
    "export_to_pretty_string": _instead(export_to_pretty_string),
    "is_onnx_log_enabled": _instead(_log.is_onnx_log_enabled),
    "enable_log": _instead(_log.enable_log),
    "disable_log": _instead(_log.disable_log),
    "set_log_stream": _instead(_log.set_log_stream),
    "log": _instead(_log.log),
}
"""For each function of torch.onnx that we take over, what makes the replacement of the original."""
