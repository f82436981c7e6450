"""`install`: names that torch.onnx had in some version of PyTorch, given back to the one that runs."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from onnx_exporter import errors
from onnx_exporter.compat import _log, _torch_onnx, symbolic_registry
from onnx_exporter.compat._calling import SymbolicContext
from onnx_exporter.compat._old_functions import OLD_FUNCTIONS, ExportTypes, cast_function
from onnx_exporter.compat._running import is_in_onnx_export

_PRIVATE = "torch.onnx._internal.torchscript_exporter"
_OPSETS = range(7, 21)
"""The opsets of which torch.onnx has a module of symbolic functions."""


class Installed:
    """Names that were given back to torch.onnx. Leaving the ``with`` block, or `uninstall`, takes them away again."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], Any]] = []

    def name(self, owner: ModuleType | None, name: str, value: Any) -> None:
        """Gives a module a name that it does not have."""
        if owner is not None and name not in vars(owner):
            setattr(owner, name, value)
            self._undo.append(functools.partial(vars(owner).pop, name, None))

    def module(self, full_name: str, module: ModuleType | None) -> None:
        """Has a module be imported by a name that there is not."""
        parent, _, name = full_name.rpartition(".")
        if module is not None and _torch_onnx.find_module(full_name) is None:
            sys.modules[full_name] = module
            self._undo.append(functools.partial(sys.modules.pop, full_name, None))
            self.name(sys.modules.get(parent), name, module)

    def answers(self, owner: ModuleType | None, find: Callable[[str], Any]) -> None:
        """Has a module look elsewhere for names that it does not have; `find` raises AttributeError for others."""
        self.name(owner, "__getattr__", find)

    def uninstall(self) -> None:
        """Takes back everything, in reverse order. Added in 0.1."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *exception: object) -> None:
        self.uninstall()


_LOCK = threading.Lock()


def install() -> Installed:
    """Gives torch.onnx back the names that it had in PyTorch 1.8 to 2.8, so that code which imports them runs. Added in 0.1.

    ``torch.onnx.symbolic_registry``, ``_type_utils``, ``_globals`` and ``SymbolicContext``; ``_internal.jit_utils``,
    ``.registration`` and ``._beartype``; the log; ``CheckerError``; names of ``symbolic_helper`` such as
    ``_export_onnx_opset_version``, which follow the running export; and the private functions of the ``symbolic_opsetN``.
    A name that is there stays as it is. A PyTorch without torch.onnx gets all of its modules, made of what is ours. It is for the
    whole process, so it changes what ``hasattr(torch.onnx, ...)`` answers to anybody.

    ::

        with onnx_exporter.compat.install():
            import library_for_torch_1_12

    Returns:
        What takes the names away again: `Installed.uninstall`, or the end of the ``with`` block.
    """
    installed = Installed()
    public = _torch_onnx.find_module("torch.onnx")
    with _LOCK:
        if public is None:
            _install_stand_in(installed)
            return installed
        _install_modules(installed)
        for name, value in {**_CLASSES, **_LOG, "dynamo_export": _dynamo_export}.items():
            installed.name(public, name, value)
        installed.name(_torch_onnx.find_utils(), "ONNXCheckerError", errors.CheckerError)
        installed.name(_torch_onnx.find_utils(), "is_in_onnx_export", is_in_onnx_export)
        installed.name(_torch_onnx.find_utils(), "get_ns_op_name_from_custom_op", _parts_of_name)
        for name, function in OLD_FUNCTIONS.items():
            installed.name(_torch_onnx.find_utils(), name, function)
        for owner in (public, _torch_onnx.find_utils()):
            installed.name(owner, "export_to_pretty_string", _export_to_pretty_string)
        installed.name(_torch_onnx.find_module("torch.onnx.errors"), "CheckerError", errors.CheckerError)
        for name in ("utils", "symbolic_helper", *(f"symbolic_opset{opset}" for opset in _OPSETS)):
            private, facade = _torch_onnx.find_module(f"{_PRIVATE}.{name}"), _facade(public, name)
            if name == "symbolic_helper":
                installed.answers(private or facade, lambda name: helper_of_old(name, _torch_onnx.find_globals()))
            if name == "symbolic_opset9":
                installed.answers(private or facade, cast_function)
            if private is not None:
                installed.answers(facade, _asks(private))
    return installed


def _export_to_pretty_string(*args: Any, **kwargs: Any) -> str:
    from onnx_exporter._pretty_string import export_to_pretty_string  # it is built on export(), as this package is not

    return export_to_pretty_string(*args, **kwargs)


def _dynamo_export(model: Any, /, *args: Any, export_options: Any = None, **kwargs: Any) -> Any:
    from onnx_exporter.compat._drop_in import dynamo_export  # as above

    return dynamo_export(model, *args, export_options=export_options, **kwargs)


def _parts_of_name(symbolic_name: str) -> tuple[str, str]:
    namespace, _, name = symbolic_name.rpartition("::")
    return namespace or "aten", name


class ExportOptions:
    """What ``dynamo_export`` is given; of it, only whether all sizes are dynamic has a meaning here."""

    def __init__(self, *, dynamic_shapes: bool | None = None, **others: Any) -> None:
        self.dynamic_shapes = dynamic_shapes


_CLASSES = {
    "SymbolicContext": SymbolicContext,
    "CheckerError": errors.CheckerError,
    "ExportOptions": ExportOptions,
    "ExportTypes": ExportTypes,
}

_LOG = {
    function.__name__: function
    for function in (_log.is_onnx_log_enabled, _log.enable_log, _log.disable_log, _log.set_log_stream, _log.log)
}


def _install_modules(installed: Installed) -> None:
    installed.module("torch.onnx.symbolic_registry", symbolic_registry)
    for name in ("_type_utils", "_globals"):
        installed.module(f"torch.onnx.{name}", _torch_onnx.find_module(f"{_PRIVATE}.{name}"))
    for name in ("jit_utils", "registration", "onnx_proto_utils"):
        installed.module(f"torch.onnx._internal.{name}", _torch_onnx.find_module(f"{_PRIVATE}.{name}"))
    _install_empty(installed)


def _install_empty(installed: Installed) -> None:
    patch = ModuleType("torch.onnx._patch_torch", "Was imported for what it did to graphs, and for a few functions.")
    vars(patch).update(OLD_FUNCTIONS)
    installed.module(patch.__name__, patch)
    beartype = ModuleType("torch.onnx._internal._beartype", "Checked types at run time; checks nothing now.")
    beartype.beartype = lambda function: function  # type: ignore[attr-defined]
    installed.module(beartype.__name__, beartype)


def _install_stand_in(installed: Installed) -> None:
    from onnx_exporter.compat.stand_in import modules  # it is built on export(), which is built on this package

    for name, module in modules().items():
        installed.module(name, module)
    installed.name(sys.modules["torch"], "onnx", sys.modules["torch.onnx"])
    _install_empty(installed)


def _facade(public: ModuleType, name: str) -> ModuleType | None:
    """Returns the module ``torch.onnx.<name>``. Importing it gives torch.onnx's attribute another meaning; that is put back."""
    before = vars(public).get(name)
    facade = _torch_onnx.find_module(f"torch.onnx.{name}")
    if before is not None:
        setattr(public, name, before)
    return facade


def _asks(module: ModuleType) -> Callable[[str], Any]:
    return lambda name: getattr(module, name)


def helper_of_old(name: str, state: Any) -> Any:
    """What ``torch.onnx.symbolic_helper`` once had: state that is in ``GLOBALS`` now, and functions that set it.

    Raises:
        AttributeError: If it never had the name.
    """
    if name in _STATE:
        return getattr(state, _STATE[name])
    if name in _SETTERS:
        return lambda value: setattr(state, _SETTERS[name], value)
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if name == "is_caffe2_aten_fallback":
        return lambda: False
    raise AttributeError(f"module 'torch.onnx.symbolic_helper' has no attribute {name!r}")


_STATE = {
    "_export_onnx_opset_version": "export_onnx_opset_version",
    "_training_mode": "training_mode",
    "_operator_export_type": "operator_export_type",
    "_onnx_shape_inference": "onnx_shape_inference",
}
_SETTERS = {
    "_set_opset_version": "export_onnx_opset_version",
    "_set_training_mode": "training_mode",
    "_set_operator_export_type": "operator_export_type",
    "_set_onnx_shape_inference": "onnx_shape_inference",
}
_CONSTANTS = {
    "_default_onnx_opset_version": 9,
    "_onnx_main_opset": max(_OPSETS),
    "_onnx_stable_opsets": list(_OPSETS)[:-1],
    "_constant_folding_opset_versions": list(_OPSETS)[2:],
}
