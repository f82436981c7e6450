"""The tables in docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write_table(page: Path, name: str, lines: Sequence[str]) -> None:
    """Puts lines between the markers ``<!-- name -->`` and ``<!-- /name -->`` of a page."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = page.read_text().partition(start)
    _, _, after = rest.partition(end)
    page.write_text("\n".join([before + start, *lines, end + after]))
