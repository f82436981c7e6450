"""The functions of ``torch.onnx.symbolic_registry``, which torch.onnx had up to PyTorch 1.12.

Operators are named by domain and name here: ``("", "relu")`` is ``aten::relu``, ``("", "prim_PythonOp")`` is
``prim::PythonOp``, ``("mylib", "frob")`` is ``mylib::frob``. All of them act on the functions that
`onnx_exporter.register_custom_op_symbolic` registers; those that others registered with torch.onnx are seen as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET
from onnx_exporter.compat import _symbolics, _torch_onnx
from onnx_exporter.compat._symbolics import REGISTERED, Symbolic, qualified_name
from onnx_exporter.errors import UnsupportedOp, UnsupportedOperatorError, UnsupportedOpError

__all__ = [
    "UnsupportedOperatorError",
    "get_op_supported_version",
    "get_ops_in_version",
    "get_registered_op",
    "is_registered_op",
    "is_registered_version",
    "register_op",
    "register_ops_helper",
    "register_ops_in_version",
    "register_version",
    "unregister_op",
]


def register_op(opname: str, op: Symbolic, domain: str, version: int) -> None:
    """Registers a symbolic function from an opset on. Added in 0.1.

    Args:
        opname: Name of the operator, without namespace.
        op: The symbolic function; `onnx_exporter.register_custom_op_symbolic` says how it is called.
        domain: Its namespace; ``""`` is ``aten``.
        version: The lowest opset in which it is right.

    Raises:
        RegistrationError: If they do not make the name of an operator, or the opset is none.
    """
    _symbolics.register_custom_op_symbolic(f"{domain}::{opname}", op, version)


def unregister_op(opname: str, domain: str, version: int) -> None:
    """Takes back `register_op`, or what was registered with torch.onnx. Warns if nothing was. Added in 0.1.

    Args:
        opname: Name of the operator, without namespace.
        domain: Its namespace; ``""`` is ``aten``.
        version: The opset it was registered for.
    """
    if not _remove(qualified_name(f"{domain}::{opname}"), version):
        warnings.warn(f"The opname {opname} is not registered.", stacklevel=2)


def is_registered_op(opname: str, domain: str, version: int) -> bool:
    """Whether a symbolic function is registered, with us or with torch.onnx (whose built-in ones count too). Added in 0.1."""
    return _find(opname, domain, version) is not None


def get_registered_op(opname: str, domain: str, version: int) -> Symbolic:
    """Returns the symbolic function that is registered, with us or with torch.onnx. Added in 0.1.

    Raises:
        UnsupportedOpError: If none is.
    """
    found = _find(opname, domain, version)
    if found is None:
        hint = "register a symbolic function for it with register_op"
        raise UnsupportedOpError([UnsupportedOp(qualified_name(f"{domain}::{opname}"), (), hint=hint)], version)
    return found


def register_version(domain: str, version: int) -> None:
    """Notes that there are operators of a domain; those of ``aten`` are there without it. Added in 0.1."""
    _registry.declared.add((domain, version))


def register_ops_in_version(domain: str, version: int) -> None:
    """Does what `register_version` does: every opset's own operators are there. Added in 0.1."""
    register_version(domain, version)


def register_ops_helper(domain: str, version: int, iter_version: int) -> None:
    """Does what `register_version` does: every opset's own operators are there. Added in 0.1."""
    register_version(domain, version)


def is_registered_version(domain: str, version: int) -> bool:
    """Whether there are operators of a domain. Added in 0.1."""
    return (domain, version) in _registry


def get_ops_in_version(version: int) -> list[tuple[str, str, Symbolic]]:
    """Returns domain, name and function of each symbolic function that torch.onnx has for an opset. Added in 0.1."""
    registry = _torch_onnx.find_registry()
    if registry is None:
        return []
    _torch_onnx.load_builtins()
    groups = ((name, registry.get_function_group(name)._functions) for name in sorted(registry.all_functions()))
    return [(*_parts(name), functions[version]) for name, functions in groups if version in functions]


def get_op_supported_version(opname: str, domain: str, version: int) -> int | None:
    """Returns the first opset from `version` on in which a symbolic function is registered, or None. Added in 0.1."""
    return next((opset for opset in range(version, NEWEST_OPSET + 1) if is_registered_op(opname, domain, opset)), None)


def _find(opname: str, domain: str, version: int) -> Symbolic | None:
    name = qualified_name(f"{domain}::{opname}")
    found = REGISTERED.get(name, version)
    registry = _torch_onnx.find_registry()
    if found is None and registry is not None:
        _torch_onnx.load_builtins()
        group = registry.get_function_group(name)
        found = None if group is None else group.get(version)
    return found


def _remove(name: str, version: int) -> bool:
    """Takes back what was registered with us or with torch.onnx; returns whether anything was."""
    if REGISTERED.remove(name, version) is not None:
        return True
    registry = _torch_onnx.find_registry()
    group = None if registry is None else registry.get_function_group(name)
    if group is None or not group._functions.overridden(version):
        return False
    registry.unregister(name, version)
    return True


def _custom() -> Iterator[tuple[str, int, Symbolic]]:
    """Yields name, opset and function of each registration with torch.onnx (but for PyTorch's own) and with us."""
    yield from _symbolics.registered_with_torch()
    yield from REGISTERED


def _parts(name: str) -> tuple[str, str]:
    """Returns domain and name as they are called here."""
    namespace, _, opname = name.partition("::")
    return ("" if namespace in ("aten", "prim") else namespace), (f"prim_{opname}" if namespace == "prim" else opname)


class _Operators(MutableMapping[str, Symbolic]):
    """What is registered for a domain and an opset. It lists what is not PyTorch's own; that can be looked up as well."""

    def __init__(self, domain: str, version: int) -> None:
        self._domain = domain
        self._version = version

    def __getitem__(self, opname: str) -> Symbolic:
        found = self._registered().get(opname) or _find(opname, self._domain, self._version)
        if found is None:
            raise KeyError(opname)
        return found

    def __setitem__(self, opname: str, op: Symbolic) -> None:
        register_op(opname, op, self._domain, self._version)

    def __delitem__(self, opname: str) -> None:
        if not _remove(qualified_name(f"{self._domain}::{opname}"), self._version):
            raise KeyError(opname)

    def __iter__(self) -> Iterator[str]:
        return iter(self._registered())

    def __len__(self) -> int:
        return len(self._registered())

    def _registered(self) -> dict[str, Symbolic]:
        wanted = (self._domain, self._version)
        parts = ((*_parts(name), version, function) for name, version, function in _custom())
        return {opname: function for domain, opname, version, function in parts if (domain, version) == wanted}


class _Registry(MutableMapping[tuple[str, int], MutableMapping[str, Symbolic]]):
    """What is registered, as ``_registry[(domain, version)][opname]``; what is put into it is registered with us.

    Attributes:
        declared: Domains and opsets that are there even without operators.
    """

    def __init__(self) -> None:
        self.declared: set[tuple[str, int]] = set()

    def __getitem__(self, key: tuple[str, int]) -> MutableMapping[str, Symbolic]:
        domain, version = key
        if key not in self._keys() and not (domain == "" and OLDEST_OPSET <= version <= NEWEST_OPSET):
            raise KeyError(key)
        return _Operators(domain, version)

    def __setitem__(self, key: tuple[str, int], operators: Mapping[str, Symbolic]) -> None:
        self.declared.add(key)
        _Operators(*key).update(operators)

    def __delitem__(self, key: tuple[str, int]) -> None:
        if key not in self._keys():
            raise KeyError(key)
        self.declared.discard(key)
        _Operators(*key).clear()

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._keys())

    def __len__(self) -> int:
        return len(self._keys())

    def _keys(self) -> dict[tuple[str, int], None]:
        made = ((_parts(name)[0], version) for name, version, _ in _custom())
        return dict.fromkeys((*made, *sorted(self.declared)))


_registry = _Registry()


class _Versions(Mapping[int, Any]):
    """torch.onnx's module of symbolic functions for each opset that it has one for."""

    def __getitem__(self, opset: int) -> Any:
        module = _torch_onnx.find_module(f"torch.onnx.symbolic_opset{opset}")
        if module is None:
            raise KeyError(opset)
        return module

    def __iter__(self) -> Iterator[int]:
        return iter(range(OLDEST_OPSET, 21))

    def __len__(self) -> int:
        return 21 - OLDEST_OPSET


_symbolic_versions = _Versions()
