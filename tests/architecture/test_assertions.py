"""Assertions only tell the type checker a type.

What must hold is raised: ``python -O`` drops assertions, and pytest rewrites those of installed plugins, of which the test kit is
one.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("core", "opsets", "plugins")
    for path in (ROOT / folder).rglob("*.py")
    if not {"tests", "build"} & set(path.relative_to(ROOT).parts)
)


def is_about_a_type(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        return all(map(is_about_a_type, test.values))
    if isinstance(test, ast.Call):
        return isinstance(test.func, ast.Name) and test.func.id == "isinstance"
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))


def others_in(path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    found = [node.lineno for node in nodes if isinstance(node, ast.Assert) and not is_about_a_type(node.test)]
    return [f"{path.relative_to(ROOT)}:{line}" for line in found]


def test_assertions_are_about_types() -> None:
    assert len(SOURCES) > 300
    assert not [place for path in SOURCES for place in others_in(path)]
