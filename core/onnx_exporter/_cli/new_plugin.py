"""``onnx-exporter new-plugin``."""

from __future__ import annotations

import keyword
import os
import re
import tempfile
from pathlib import Path

import click
import torch
from packaging.version import Version

from onnx_exporter._discovery import installed_plugins
from onnx_exporter._version import core_version
from onnx_exporter.errors import ArgumentError, WriteError

_TEMPLATE = Path(__file__).parent / "template"
_FILES = {
    "gitignore": ".gitignore",
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "test.yml": ".github/workflows/test.yml",
    "__init__.py": "{package}/__init__.py",
    "vendor.py": "{package}/vendor.py",
    "reference.py": "{package}/reference.py",
    "functions.py": "{package}/functions.py",
    "model.py": "examples/model.py",
    "test_plugin.py": "tests/test_{name}.py",
}
"""Where each template goes."""

_TAKEN = frozenset({"onnx", "torch", "higher_order", "local", "call", "mkldnn", "symm_mem", "xnnpack"})
"""Names that are the exporter's, and PyTorch's in some builds, besides those that its operators have here."""

_DOMAINS_OF_OTHERS = ("ai.onnx", "onnx", "com.microsoft", "org.pytorch")
"""Domains that are others', with all below them."""

_LONGEST = 50
"""Letters of a name: files and folders that are named after it must fit every file system."""


@click.command("new-plugin")
@click.argument("name")
@click.option("--domain", metavar="DOMAIN", help="ONNX domain of the accelerator's operators.  [default: com.NAME]")
@click.option("--here", is_flag=True, help="Write into the current folder, not into exporter-plugin-NAME.")
def new_plugin(name: str, domain: str | None, here: bool) -> None:
    """Writes a plugin NAME to start from: a distribution with an operator of each kind, tests that pass, and CI.

    NAME is the plugin's name and the namespace of its torch operators, such as foo. Nothing that exists is overwritten.
    """
    _check_name(name)
    domain = f"com.{name}" if domain is None else domain
    is_domain = re.fullmatch(r"[A-Za-z][\w-]*(\.[A-Za-z][\w-]*)*", domain, re.ASCII)
    if not is_domain or any(f"{domain}.".startswith(f"{other}.") for other in _DOMAINS_OF_OTHERS):
        raise ArgumentError(f"--domain {domain!r} is no domain of one's own; write it like com.{name}")
    folder = Path() if here else Path(f"exporter-plugin-{name.replace('_', '-')}")
    write(folder, render(name, domain), may_exist=here)
    click.echo(f"{folder.resolve()} has a plugin that is complete and tested. From here:")
    click.echo(f"  pip install -e {'.' if here else f'./{folder}'}")
    click.echo(f"  python -m pytest {'tests' if here else folder}")
    model = "examples/model.py" if here else f"{folder}/examples/model.py"
    click.echo(f'  onnx-exporter export {model}:Model --args "torch.randn(2, 3)" --dynamic x:0=batch')


def render(name: str, domain: str, license: str = "") -> dict[str, str]:
    """Returns the text of each file of a plugin, by its path in the plugin's folder.

    Args:
        name: The plugin's name.
        domain: The ONNX domain that operators fall through to.
        license: SPDX name of a licence; the author chooses one unless given.
    """
    import jinja2  # no other command needs it

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    package = f"exporter_plugin_{name}"
    facts = {
        "name": name,
        "package": package,
        "distribution": f"exporter-plugin-{name.replace('_', '-')}",
        "domain": domain,
        "title": "".join(part.capitalize() for part in name.split("_")),
        "license": license,
        "core": f"{Version(core_version()).major}.{Version(core_version()).minor}",
    }
    files = {f"{package}/py.typed": ""}
    for template, target in _FILES.items():
        source = (_TEMPLATE / f"{template}.jinja").read_text(encoding="utf-8")
        files[target.format(name=name, package=package)] = environment.from_string(source).render(facts)
    return files


def write(folder: Path, files: dict[str, str], *, may_exist: bool) -> None:
    """Writes files into a folder.

    Raises:
        ArgumentError: If the folder (or, where it may exist, one of the files) is there already.
        WriteError: If they cannot be written.
    """
    if not may_exist and os.path.lexists(folder):
        raise ArgumentError(f"{folder} exists already, and nothing is overwritten; move it away or choose another name")
    if there := [name for name in files if os.path.lexists(folder / name)]:
        raise ArgumentError(f"{', '.join(sorted(there))} exists already, and nothing is overwritten")
    for parent in sorted({parent for name in files for parent in (folder / name).parents}):
        if os.path.lexists(parent) and not parent.is_dir():
            raise WriteError(f"cannot write into {parent}: it is no folder")
    moved: list[Path] = []
    try:
        # Whole or not at all: everything is written elsewhere on the same disk, then moved.
        with tempfile.TemporaryDirectory(dir=folder if may_exist else folder.parent, prefix=".new-plugin-") as temporary:
            made = Path(temporary) / "made"
            for name, text in files.items():
                path = made / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            if not may_exist:
                made.rename(folder)
                return
            for name in files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                moved.append((made / name).rename(folder / name))
    except OSError as error:
        for path in moved:
            path.unlink()
        raise WriteError(f"cannot write {error.filename}: {error.strerror}") from error


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise ArgumentError(f"{name!r} cannot be a plugin's name; it must be an identifier in lower case, such as foo or my_ops")
    if len(name) > _LONGEST:
        raise ArgumentError(f"{name!r} cannot be a plugin's name; it has {len(name)} letters, {_LONGEST} are the most")
    other = installed_plugins().get(name)
    if other is not None and not other.is_builtin:
        raise ArgumentError(f"there is a plugin {other} installed already; choose another name")
    own = {operator.partition("::")[0] for operator in torch._C._dispatch_get_all_op_names()}
    if name in own | _TAKEN or hasattr(torch.ops.__class__, name) or name.startswith("symbolic_opset"):
        raise ArgumentError(f"{name!r} is a name of PyTorch's or of the exporter's; choose another")
