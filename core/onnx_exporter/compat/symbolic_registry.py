"""The functions of ``torch.onnx.symbolic_registry``, which torch.onnx had up to PyTorch 1.12.

Operators are named by domain and name here: ``("", "relu")`` is ``aten::relu``, ``("", "prim_PythonOp")`` is
``prim::PythonOp``, ``("mylib", "frob")`` is ``mylib::frob``. All of them act on the functions that
`onnx_exporter.register_custom_op_symbolic` registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnx_exporter.compat import _symbolics, _torch_onnx
from onnx_exporter.compat._symbolics import REGISTERED, Symbolic, qualified_name
from onnx_exporter.errors import UnsupportedOp, UnsupportedOpError

__all__ = ["get_registered_op", "is_registered_op", "register_op", "register_version", "unregister_op"]


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
    """Takes back `register_op`. Warns if nothing was registered so. Added in 0.1.

    Args:
        opname: Name of the operator, without namespace.
        domain: Its namespace; ``""`` is ``aten``.
        version: The opset it was registered for.
    """
    _symbolics.unregister_custom_op_symbolic(f"{domain}::{opname}", version)


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
    """Does nothing: every opset's own operators are there without it. Added in 0.1."""


def _find(opname: str, domain: str, version: int) -> Symbolic | None:
    name = qualified_name(f"{domain}::{opname}")
    found = REGISTERED.get(name, version)
    registry = _torch_onnx.find_registry()
    if found is None and registry is not None:
        _torch_onnx.load_builtins()
        group = registry.get_function_group(name)
        found = None if group is None else group.get(version)
    return found


class _Registry(Mapping[tuple[str, int], dict[str, Any]]):
    """What is registered with us, as ``_registry[(domain, version)][opname]``."""

    def __getitem__(self, key: tuple[str, int]) -> dict[str, Any]:
        return self._tables()[key]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._tables())

    def __len__(self) -> int:
        return len(self._tables())

    def _tables(self) -> dict[tuple[str, int], dict[str, Any]]:
        tables: dict[tuple[str, int], dict[str, Any]] = {}
        for name, version, function in REGISTERED:
            namespace, _, opname = name.partition("::")
            domain = "" if namespace in ("aten", "prim") else namespace
            tables.setdefault((domain, version), {})[f"prim_{opname}" if namespace == "prim" else opname] = function
        return tables


_registry = _Registry()
