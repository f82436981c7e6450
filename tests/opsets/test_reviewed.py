"""ONNX's own history of changes against what our opset packages account for, so that no changed operator is overlooked."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from pathlib import Path

import onnx
import pytest

from onnx_exporter.testing import NEWEST

ROOT = Path(__file__).parents[2] / "opsets" / "onnx_exporter_opsets"


def _form(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    """What a symbolic function relies on: inputs, outputs and attributes, but not the element types."""
    attributes = [
        (item.name, str(item.type), item.required, str(item.default_value).strip()) for item in schema.attributes.values()
    ]
    return (
        [(item.name, str(item.option), item.is_homogeneous, item.min_arity) for item in schema.inputs],
        [(item.name, str(item.option)) for item in schema.outputs],
        sorted(attributes),
    )


def changes() -> dict[int, set[str]]:
    """For each opset, the operators that are new, deprecated or have another form; more element types are no change."""
    history: dict[str, dict[int, onnx.defs.OpSchema]] = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.domain:
            history[schema.name][schema.since_version] = schema
    found: dict[int, set[str]] = defaultdict(set)
    for name, versions in history.items():
        ordered = sorted(versions)
        for before, now in zip([None, *ordered], ordered, strict=False):
            if before is None or versions[now].deprecated or _form(versions[before]) != _form(versions[now]):
                found[now].add(name)
    return found


CHANGES = changes()


def emitted_in(opset: int) -> set[str]:
    """ONNX operators that the functions of one opset package name."""
    text = "".join(path.read_text() for path in (ROOT / f"symbolic_opset{opset}").glob("*.py") if path.name != "__init__.py")
    return set(re.findall(r'"([A-Z]\w+)"', text))


@pytest.mark.parametrize("opset", range(8, NEWEST + 1))
def test_every_changed_operator_is_accounted_for(opset: int) -> None:
    reviewed = importlib.import_module(f"onnx_exporter_opsets.symbolic_opset{opset}").REVIEWED
    missing = CHANGES[opset] - emitted_in(opset) - set(reviewed)
    assert not missing, f"opset {opset} changed {sorted(missing)}; write a delta, or say in REVIEWED why none is needed"


@pytest.mark.parametrize("opset", range(8, NEWEST + 1))
def test_reviews_are_of_real_changes_and_say_why(opset: int) -> None:
    reviewed = importlib.import_module(f"onnx_exporter_opsets.symbolic_opset{opset}").REVIEWED
    assert set(reviewed) <= CHANGES[opset]
    assert all(len(reason) > 10 for reason in reviewed.values())


def test_the_newest_opset_is_the_newest_of_onnx() -> None:
    assert max(version for version in CHANGES if version <= onnx.defs.onnx_opset_version()) <= NEWEST
