"""Tells harmless from harmful among the values that tracing fixes."""

from __future__ import annotations

import ast
import functools
import linecache


def is_guard(filename: str, line: int) -> bool:
    """Whether a line belongs to the condition of an ``assert``, or of an ``if`` that only raises.

    Such a check passed while tracing; that it is missing in the file changes no result.
    """
    return line in _guard_lines(filename)


@functools.lru_cache(maxsize=64)
def _guard_lines(filename: str) -> frozenset[int]:
    source = "".join(linecache.getlines(filename))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return frozenset()
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) or (
            isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise)
        ):
            # the warning may name the line of the statement or any line of its condition
            lines.update(range(node.lineno, (node.test.end_lineno or node.lineno) + 1))
    return frozenset(lines)
