"""Tells harmless from harmful among the values that tracing fixes."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Iterable
from types import CodeType

_REPORTS = frozenset(
    {"warn", "warning", "warning_once", "warn_once", "warn_explicit", "debug", "info", "error", "critical", "exception", "log"}
    | {"print"}
)
"""Functions that tell the user something and change nothing."""

_CHECKS = frozenset({"_assert", "_check", "_check_value", "_check_index", "_check_type", "_check_with", "_check_is_size"})
"""Functions of torch that raise unless a condition holds."""


def is_guard(filename: str, line: int) -> bool:
    """Whether a line belongs to the condition of an ``assert``, or of an ``if`` that only raises or warns.

    Such a check passed while tracing; that it is missing in the file changes no result.
    """
    return line in _guard_lines("".join(linecache.getlines(filename)))


def is_guard_in(code: CodeType, line: int) -> bool:
    """Like `is_guard` for a line of a function, of which no more is read than the function."""
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename)
    if not first <= line <= len(lines):
        return False
    source = textwrap.dedent("".join(inspect.getblock(lines[first - 1 :])))
    guards = _guard_lines(source)
    if guards is _UNREADABLE:  # a lambda in the middle of an expression
        return is_guard(code.co_filename, line)
    return line - first + 1 in guards


def is_unpacked(filename: str, line: int) -> bool:
    """Whether a line belongs to the right side of ``a, b = ...``, which fixes how many parts there are."""
    return line in _unpacking_lines("".join(linecache.getlines(filename)))


@functools.lru_cache(maxsize=64)
def _unpacking_lines(source: str) -> frozenset[int]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()
    lines: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(item, ast.Starred) for item in target.elts):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


_UNREADABLE: frozenset[int] = frozenset({-1})


@functools.lru_cache(maxsize=256)
def _guard_lines(source: str) -> frozenset[int]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return _UNREADABLE
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _only_guards(node)):
            # the warning may name the line of the statement or any line of its condition
            lines.update(range(node.lineno, (node.test.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Call) and _name_of(node) in _CHECKS:
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(lines)


def _only_guards(node: ast.If) -> bool:
    """Whether it makes no difference which way an ``if`` goes, unless it raises."""
    return _raises(node.body) or _raises(node.orelse) or _changes_nothing([*node.body, *node.orelse])


def _raises(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _changes_nothing(body: Iterable[ast.stmt]) -> bool:
    return all(
        isinstance(item, ast.Raise | ast.Assert | ast.Pass)
        or (isinstance(item, ast.If) and _only_guards(item) and _changes_nothing([*item.body, *item.orelse]))
        or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
        or (isinstance(item, ast.Expr) and isinstance(item.value, ast.Call) and _name_of(item.value) in _REPORTS | _CHECKS)
        for item in body
    )


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
