"""docs/operators.md says what the registry holds."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_is_current() -> None:
    spec = importlib.util.spec_from_file_location("operators_page", DOCS / "operators_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (DOCS / "operators.md").read_text() == module.page(), "run python docs/operators_page.py"
