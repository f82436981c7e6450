"""Symbolic functions that were registered for the whole process: with us, and with torch.onnx."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from onnx_exporter._optable import NEWEST_OPSET, OLDEST_OPSET, Entry
from onnx_exporter._registry import Precedence, Provider
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.errors import RegistrationError

Symbolic = Callable[..., Any]

_NAME = re.compile(r"[\w-]+::[A-Za-z_][\w-]*(\.\w+)?")
_BASE_OPSET = 9
"""Where torch.onnx's own opsets begin: below it, it looks for a function of a later opset, up to this one."""


class SymbolicTable:
    """Functions by operator and opset, registered while the process runs."""

    def __init__(self) -> None:
        self._functions: defaultdict[str, dict[int, Symbolic]] = defaultdict(dict)

    def add(self, name: str, function: Symbolic, opset: int) -> None:
        """Registers a function; one that was registered for the same name and opset gives way."""
        self._functions[name][opset] = function

    def remove(self, name: str, opset: int) -> Symbolic | None:
        """Removes a function and returns it, or None if there is none."""
        return self._functions.get(name, {}).pop(opset, None)

    def get(self, name: str, opset: int) -> Symbolic | None:
        """Returns the function that is right at an opset: that of the highest opset not above it."""
        known = self._functions.get(name, {})
        return known.get(max((version for version in known if version <= opset), default=opset))

    def __iter__(self) -> Iterator[tuple[str, int, Symbolic]]:
        """Yields the name, opset and function of each registration."""
        for name, versions in list(self._functions.items()):
            for version, function in list(versions.items()):
                yield name, version, function

    def entries(self) -> Iterator[Entry]:
        """Yields what the registry needs: each function from its opset on."""
        for name in list(self._functions):
            versions = dict(self._functions[name])
            before = [version for version in versions if version <= OLDEST_OPSET]
            for version in (*sorted(before)[-1:], *(version for version in versions if version > OLDEST_OPSET)):
                yield _entry(name, versions[version], max(version, OLDEST_OPSET))


REGISTERED = SymbolicTable()
"""What this process registered with us."""


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Symbolic, opset_version: int) -> None:
    """Registers a symbolic function for the rest of the process, from an opset on. Added in 0.1.

    It goes before every plugin and built-in operator; only a table given to ``export(plugins=[...])`` goes before it. A
    plugin's `OpTable` is the better place for a function that is to last: it has no effect on anybody else's export.

    The function is called as torch.onnx calls it: with ``g`` (after a `SymbolicContext` if its first parameter is
    annotated as one), and then with each argument of the operator by position, in the order of its schema.
    ``"prim::PythonOp"`` stands for every ``autograd.Function`` without a ``symbolic``: the function gets what was
    given to ``forward``, and the keywords `name`, `module` and `inplace`.

    Args:
        symbolic_name: ``"namespace::operator"``; ``"::operator"`` is ``"aten::operator"``. With ``.overload`` it is for
            that overload only.
        symbolic_fn: The function.
        opset_version: The lowest opset in which it is right. A function registered for a later opset goes before it there.

    Raises:
        RegistrationError: If the name is none, or names an operator of ONNX; if the function cannot be called; if the
            opset is not a number from 1 on.
    """
    name = qualified_name(symbolic_name)
    if not callable(symbolic_fn):
        raise RegistrationError(f"symbolic_fn is {symbolic_fn!r}; give a function that takes g and the operator's arguments")
    REGISTERED.add(name, symbolic_fn, _checked(opset_version))


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Takes back `register_custom_op_symbolic`. Warns if nothing was registered so. Added in 0.1.

    Args:
        symbolic_name: The name it was registered for.
        opset_version: The opset it was registered for.

    Raises:
        RegistrationError: If the name or the opset is none.
    """
    name = qualified_name(symbolic_name)
    if REGISTERED.remove(name, _checked(opset_version)) is None:
        warnings.warn(f"no symbolic function is registered for {name!r} at opset {opset_version}", stacklevel=2)


def qualified_name(name: str) -> str:
    """Returns an operator's name in full: ``"::relu"`` is ``"aten::relu"``, ``"::prim_PythonOp"`` is ``"prim::PythonOp"``.

    Raises:
        RegistrationError: If it is no name, or one of ONNX.
    """
    full = name if not isinstance(name, str) or not name.startswith("::") else f"aten{name}"
    if not isinstance(full, str) or not _NAME.fullmatch(full):
        raise RegistrationError(f"{name!r} is not the name of an operator; write it like 'aten::elu' or 'mylib::frob'")
    if full.startswith("onnx::"):
        raise RegistrationError(f"{name!r} is an operator of ONNX, which needs no conversion; name the operator of PyTorch")
    return full.replace("aten::prim_", "prim::", 1)


def _checked(opset: int) -> int:
    if not isinstance(opset, int) or isinstance(opset, bool) or opset < 1:
        raise RegistrationError(f"opset_version is {opset!r}; it must be a number from 1 on")
    return opset


def process_providers() -> list[Provider]:
    """Returns who contributes symbolic functions by registering them, as of now."""
    found = [
        Provider("register_custom_op_symbolic", "", "", Precedence.REGISTERED, entries=tuple(REGISTERED.entries())),
        Provider("torch.onnx", "", "", Precedence.TORCH_ONNX, entries=tuple(_torch_entries())),
    ]
    return [provider for provider in found if provider.entries]


def _torch_entries() -> Iterator[Entry]:
    """Functions that others registered with torch.onnx, each for the opsets at which torch.onnx would use it.

    It takes the highest version that is not above the target among its built-in and the registered ones together: one
    registered for opset 1 loses to a built-in of opset 14. Where a built-in wins, we have operators of our own.
    """
    if "torch.onnx" not in sys.modules:
        return  # nobody can have registered anything, and importing it takes time
    registry = _torch_onnx.find_registry()
    custom = {name: registry.get_function_group(name)._functions for name, _, _ in registered_with_torch()}
    if custom:
        _torch_onnx.load_builtins()  # torch.onnx reads most of them only when it exports
    for name, versions in custom.items():
        for version, (first, last) in _spans(versions):
            if _is_custom(versions, version):
                yield _entry(name, versions[version], first, last)


def registered_with_torch() -> Iterator[tuple[str, int, Symbolic]]:
    """Yields the name, opset and function of each registration with torch.onnx that is none of PyTorch's own."""
    registry: Any = _torch_onnx.find_registry() if "torch.onnx" in sys.modules else None
    for name in sorted(registry.all_functions()) if registry is not None else ():
        versions = registry.get_function_group(name)._functions
        yield from ((name, version, versions[version]) for version in versions if _is_custom(versions, version))


def _is_custom(versions: Any, version: int) -> bool:
    """Whether a function of torch.onnx's registry is none of PyTorch's own.

    One that was registered with the decorator that torch.onnx uses for its own stands among them.
    """
    if versions.overridden(version):
        return True
    function = versions[version]
    plain = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
    return (getattr(plain, "__module__", None) or "").partition(".")[0] not in _BUILT_IN


_BUILT_IN = ("torch", "functools")
"""Top packages of the functions that torch.onnx registers itself."""


def _entry(name: str, function: Symbolic, first: int, last: int = NEWEST_OPSET) -> Entry:
    if name == _CONSTANT_CHUNK:
        name, function = "aten::chunk", _for_chunk(function)
    if _DUNDER.fullmatch(name):
        name += "_"
    return Entry(name, function, {}, first, last_opset=last, by_position=True)


_DUNDER = re.compile(r"aten::__\w*[^\W_]_")
"""Names such as ``aten::__and_``: torch.onnx takes one underscore from the end of every name."""

_CONSTANT_CHUNK = "prim::ConstantChunk"
"""What ``aten::chunk`` is to torch.onnx: an operator whose numbers are attributes, which it passes as keywords."""


def _for_chunk(function: Symbolic) -> Symbolic:
    @functools.wraps(function)
    def symbolic(g: Any, x: Any, chunks: Any, dim: Any) -> Any:
        return function(g, x, chunks=chunks.item(), dim=dim.item())

    return symbolic


def _spans(versions: Iterable[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yields each version with a run of targets, first and last, at which torch.onnx uses it."""
    known = set(versions)
    targets = range(OLDEST_OPSET, NEWEST_OPSET + 1)
    for version, run in itertools.groupby(targets, lambda target: _version_for(target, known)):
        if version is not None:
            members = list(run)
            yield version, (members[0], members[-1])


def _version_for(target: int, versions: set[int]) -> int | None:
    if target >= _BASE_OPSET:
        return max((version for version in versions if version <= target), default=None)
    return min((version for version in versions if target <= version <= _BASE_OPSET), default=None)
