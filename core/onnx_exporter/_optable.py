"""`OpTable`: which symbolic functions a plugin contributes. A plain value; registering has no side effect."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import CodeType, MappingProxyType
from typing import Any, TypeVar, cast

from onnx_exporter._arguments import Signature, parse_signature
from onnx_exporter._discovery import plugin_packages
from onnx_exporter.errors import RegistrationError

Function = TypeVar("Function", bound=Callable[..., Any])

OLDEST_OPSET, NEWEST_OPSET = 7, 28
"""The ai.onnx opsets that can be targeted."""

_NAME = re.compile(r"[A-Za-z_]\w*::\w+(\.\w+)?")


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One name of one symbolic function.

    Attributes:
        name: Operator name, perhaps with overload: ``"aten::add"``, ``"aten::add.Tensor"``.
        function: The symbolic function.
        signature: How its arguments are converted.
        opset: First opset in which it is right.
        promote: Parameters to bring to one dtype before the call.
        float_result: Integers among those become the default float type.
        last_opset: Last opset at which it is used.
        by_position: It takes all arguments of the operator in the order of the schema, as torch.onnx passes them.
    """

    name: str
    function: Callable[..., Any]
    signature: Signature = dataclasses.field(hash=False)
    opset: int
    promote: tuple[str, ...] = ()
    float_result: bool = False
    last_opset: int = NEWEST_OPSET
    by_position: bool = False

    @property
    def title(self) -> str:
        """Name of the function."""
        return str(getattr(inspect.unwrap(self.function), "__name__", type(self.function).__name__))

    @property
    def code(self) -> CodeType | None:
        """Code of the function itself, beneath its decorators; None if it is not written in Python."""
        return getattr(inspect.unwrap(self.function), "__code__", None)

    @property
    def place(self) -> str:
        """``file:line`` of the function."""
        return f"{self.code.co_filename}:{self.code.co_firstlineno}" if self.code else repr(self.function)


@dataclasses.dataclass(frozen=True, slots=True)
class Passthrough:
    """Operators that go as they are into a domain of their own."""

    pattern: str
    domain: str
    version: int
    rename: Mapping[str, str]
    opset: int
    replaces: bool = False
    module: str = ""
    place: str = ""

    def matches(self, name: str) -> bool:
        return fnmatchcase(name, self.pattern)


class OpTable:
    """Symbolic functions for operators from one ONNX opset on. Added in 0.1.

    Args:
        opset: The lowest ai.onnx opset that has every ONNX operator the functions emit.
        replaces: The table takes names that others provide; it acts only when its plugin is preferred
            (``export(..., prefer=["name"])``).
    """

    def __init__(self, opset: int = OLDEST_OPSET, *, replaces: bool = False) -> None:
        if not isinstance(opset, int) or not OLDEST_OPSET <= opset <= NEWEST_OPSET:
            raise RegistrationError(f"OpTable(opset={opset!r}): the opset must be a number from {OLDEST_OPSET} to {NEWEST_OPSET}")
        self.opset = opset
        self.replaces = replaces
        self._entries: Mapping[str, Entry] = {}
        self._python_ops: Mapping[str, Entry] = {}
        self._passthroughs: Sequence[Passthrough] = ()
        self._package = _calling_package(2)
        self._place = _calling_place(2)
        self._owner = ""

    def op(self, *names: str, promote: tuple[str, ...] = (), float_result: bool = False) -> Callable[[Function], Function]:
        """Registers the decorated symbolic function for the operators `names`. Added in 0.1.

        Args:
            names: Operators, ``"namespace::name"`` or, for one overload, ``"namespace::name.overload"``.
            promote: Parameters that PyTorch brings to one dtype first; the function then gets them so.
            float_result: Integers among the promoted parameters become the default float type.

        Raises:
            RegistrationError: If a name is malformed or taken, an annotation is no converter, or the table is another plugin's.
        """
        self._check_mine()
        return self._decorator(cast(dict[str, Entry], self._entries), names, _NAME, promote, float_result)

    def python_op(self, *names: str) -> Callable[[Function], Function]:
        """Registers a handler for ``torch.autograd.Function`` classes, by class name or ``module:Class``. Added in 0.1.

        The handler's parameters are named like those of the class's ``forward`` (without ``ctx``). It goes
        before the class's own ``symbolic``.
        """
        self._check_mine()
        return self._decorator(cast(dict[str, Entry], self._python_ops), names, re.compile(r"([\w.]+:)?\w+"), (), False)

    def _decorator(
        self,
        entries: dict[str, Entry],
        names: tuple[str, ...],
        pattern: re.Pattern[str],
        promote: tuple[str, ...],
        float_result: bool,
    ) -> Callable[[Function], Function]:
        if not names:
            raise RegistrationError("give the name of at least one operator")
        for name in names:
            if not isinstance(name, str) or not pattern.fullmatch(name):
                raise RegistrationError(
                    f"{name!r} is not the name of an operator; write it like 'aten::elu' or 'aten::add.Tensor'"
                )

        def register(function: Function) -> Function:
            self._check_unused()
            signature = parse_signature(function)
            unknown = [name for name in promote if name not in signature]
            if unknown:
                raise RegistrationError(f"promote={promote!r} names {unknown[0]!r}, which is no parameter of {function.__name__}")
            for name in names:
                if name in entries:
                    raise RegistrationError(f"{name!r} is already in this table, at {entries[name].place}")
                entries[name] = Entry(name, function, signature, self.opset, promote, float_result)
            return function

        return register

    def passthrough(self, pattern: str, *, domain: str, version: int = 1, rename: Mapping[str, str] | None = None) -> None:
        """Sends every operator that matches `pattern` unchanged into `domain`. Added in 0.1.

        Tensors become inputs, constants become attributes named by the torch schema. Operators that a symbolic function
        converts are left to it, unless the table replaces what others provide.

        Args:
            pattern: ``"namespace::name"``; ``*`` and ``?`` match as in file names.
            domain: ONNX domain of the nodes; not ai.onnx.
            version: Version of the domain that the file declares.
            rename: ONNX operator type for a torch operator's name, where it differs.

        Raises:
            RegistrationError: If the pattern has no namespace, the domain is ai.onnx, or the table is another plugin's.
        """
        self._check_mine()
        if not isinstance(pattern, str) or "::" not in pattern:
            raise RegistrationError(f"passthrough pattern {pattern!r} needs a namespace, as in 'acme::*'")
        if domain in ("", "ai.onnx"):
            raise RegistrationError("passthrough needs a domain of its own; ai.onnx is the standard's")
        module = str(sys._getframe(1).f_globals.get("__name__", ""))
        rule = Passthrough(pattern, domain, version, dict(rename or {}), self.opset, self.replaces, module, _calling_place(2))
        self._passthroughs = (*self._passthroughs, rule)

    def _check_mine(self) -> None:
        """Refuses what would change a table that is in use, or another plugin's."""
        package = _calling_package(3)
        if package != self._package and self._package in plugin_packages():
            raise RegistrationError(
                f"{package} adds to a table that {self._package} made; make one of your own (replaces=True takes over names)"
            )
        self._check_unused()

    def _check_unused(self) -> None:
        if self._owner:
            raise RegistrationError(
                f"the table is in use by plugin {self._owner!r} and takes nothing more; add to it while the plugin is imported"
            )

    def _freeze(self, owner: str) -> None:
        """Has the table take nothing more, by whichever way.

        Args:
            owner: The plugin that contributes it.
        """
        self._owner = owner
        self._entries, self._python_ops = MappingProxyType(dict(self._entries)), MappingProxyType(dict(self._python_ops))
        self._passthroughs = tuple(self._passthroughs)

    def _copy(self) -> OpTable:
        """Returns a table with what this one holds now."""
        made = OpTable(self.opset, replaces=self.replaces)
        made._entries, made._python_ops = dict(self._entries), dict(self._python_ops)
        made._passthroughs, made._place = self._passthroughs, self._place
        return made

    @property
    def entries(self) -> Mapping[str, Entry]:
        """The functions by operator name."""
        return dict(self._entries)

    @property
    def python_ops(self) -> Mapping[str, Entry]:
        """The handlers by class name."""
        return dict(self._python_ops)

    @property
    def passthroughs(self) -> tuple[Passthrough, ...]:
        """The fall-through patterns, in the order given."""
        return tuple(self._passthroughs)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __repr__(self) -> str:
        return f"OpTable(opset={self.opset}, {len(self._entries)} operators)"


def _calling_package(depth: int) -> str:
    """The top package of the code that runs so many calls up."""
    return str(sys._getframe(depth).f_globals.get("__name__", "")).partition(".")[0]


def _calling_place(depth: int) -> str:
    """``file:line`` of the code that runs so many calls up."""
    frame = sys._getframe(depth)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
