"""Layers import downwards only; what each may import is written here."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "onnx_exporter"
OPSETS = ROOT / "opsets" / "onnx_exporter_opsets"
PLUGINS = ROOT / "plugins"

# Lowest first. A module may import from its own layer and from those below it.
LAYERS = [
    {"errors", "_warnings", "_version"},
    {"_discovery"},
    {"_enums", "_modes"},
    {"_source"},
    {"compat._torch_onnx", "compat._errors", "compat._onnx_nodes", "compat._running"},
    {"_frontends"},
    {"helpers.dtypes"},
    {"_values"},
    {"_arguments", "_dims", "_attributes", "_nodes"},
    {"_elements", "_shapes", "_optable"},
    {"_clashes"},
    {"_inference", "_registry"},
    {"compat._symbolics"},
    {"_builder"},
    {"_context", "_lists", "hookspecs"},
    {"compat._duck_types", "compat._duck_values"},
    {"compat._duck_attributes", "compat._duck_given", "compat._duck_places"},
    {"compat._duck_nodes", "compat._duck_blocks", "compat._duck_operands", "compat._duck_captured"},
    {"compat._duck_graph"},
    {"helpers.shapes", "helpers.emit", "helpers"},
    {"_fallback"},
    {"compat._duck_context"},
    {"compat._calling"},
    {"compat._quantized"},
    {"compat._log", "compat._old_functions", "compat.symbolic_registry"},
    {"_loading"},
    {"_local_plugins"},
    {"_engine", "_branches", "_loops", "_blame", "_failures", "_others", "_plugins", "_reconcile"},
    {"_passes"},
    {
        "_finish",
        "_function_forms",
        "_module_calls",
        "_text",
        "_tensor_data",
        "_protobuf",
        "_check",
        "_write",
        "_comparison",
        "_reference_ops",
        "_verify_values",
        "_verify_inputs",
        "_verify_lengths",
        "_verify_runtime",
        "_verify",
    },
    {"compat._duck_model"},
    {"_result"},
    {"_local_functions"},
    {"_convert"},
    {"_options"},
    {"_report"},
    {"_pipeline"},
    {"_export"},
    {"_pretty_string"},
    {"compat._program", "compat.utils"},
    {"compat", "compat._old_names", "compat._drop_in", "compat.stand_in"},
    {"testing", "_cli", "__init__", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)


def imports(path: Path) -> list[str]:
    """Every module that a file imports, at its top or inside functions, but not for type checking only."""
    found = []

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.Import):
            found.extend(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.extend(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


def layer_of(name: str) -> str | None:
    """The layer of a dotted name inside the core package."""
    parts = name.split(".")[1:]
    for length in (2, 1):
        key = ".".join(parts[:length])
        if key in RANK:
            return key
    return None


def core_name(path: Path) -> str:
    return "onnx_exporter." + ".".join(path.relative_to(CORE).with_suffix("").parts)


@pytest.mark.parametrize("path", modules(CORE), ids=lambda path: str(path.relative_to(CORE)))
def test_core_imports_downwards(path: Path) -> None:
    own = layer_of(core_name(path))
    assert own is not None, f"{path} is in no layer; add it to LAYERS"
    for name in imports(path):
        assert not name.startswith(("onnx_exporter_opsets", "exporter_plugin_")), (
            f"{path.name} imports {name}; core finds plugins by entry point"
        )
        if name.startswith("onnx_exporter."):
            other = layer_of(name)
            if other is None:
                assert path.name == "__init__.py" or own in LAYERS[-1] or name.split(".")[1] == "hookspecs", (
                    f"{path.name} imports {name}"
                )
            else:
                assert RANK[other] <= RANK[own], f"{path.name} ({own}) imports {name}, which is above it"


@pytest.mark.parametrize("path", modules(CORE / "_frontends") + modules(CORE / "_source"), ids=lambda path: path.name)
def test_capture_knows_no_onnx(path: Path) -> None:
    assert not [name for name in imports(path) if name.split(".")[0] in ("onnx", "onnx_ir", "onnxruntime")]


@pytest.mark.parametrize("name", ["_engine.py", "_registry.py", "_optable.py", "_plugins.py", "_context.py"])
def test_engine_knows_no_operator(name: str) -> None:
    text = (CORE / name).read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare | ast.Dict | ast.Set):
            strings = [item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            assert not [text for text in strings if text.startswith("aten::") and len(text) > 6], f"{name} names an operator"


@pytest.mark.parametrize("path", modules(CORE), ids=lambda path: str(path.relative_to(CORE)))
def test_only_compat_imports_torch_onnx(path: Path) -> None:
    if "compat" not in path.parts:
        assert not [name for name in imports(path) if name.startswith("torch.onnx")]


PUBLIC = ("onnx_exporter.helpers", "onnx_exporter.errors", "onnx_exporter.testing")


def is_public(name: str) -> bool:
    return not any(part.startswith("_") and part != "__future__" for part in name.split("."))


@pytest.mark.parametrize("path", modules(OPSETS) + modules(PLUGINS), ids=lambda path: str(path.relative_to(ROOT)))
def test_operators_use_the_public_api(path: Path) -> None:
    parts = path.relative_to(ROOT).parts
    own = parts[2] if parts[0] == "opsets" and len(parts) > 3 else None
    for name in imports(path):
        if name.startswith("onnx_exporter."):
            assert is_public(name), f"{path} imports {name}, which is private"
        if name.startswith("onnx_exporter_opsets."):
            other = name.split(".")[1]
            assert other == own, f"{path} imports {name}; delegate by name with g.call, so that overrides are honoured"
        if parts[0] == "opsets":
            assert not name.startswith("exporter_plugin_")
        elif name.startswith("exporter_plugin_"):
            assert name.split(".")[0] == parts[1].replace("-", "_"), f"{path} imports another plugin"


@pytest.mark.parametrize("path", modules(CORE) + modules(OPSETS), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_global_state(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Global)]


@pytest.mark.parametrize("path", modules(CORE) + modules(OPSETS), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 430
