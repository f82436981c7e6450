"""Finds the model that the command line names."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from onnx_exporter.errors import ArgumentError


def load_model(target: str, keywords: dict[str, Any], weights: str | None) -> Any:
    """Returns the model behind ``module:attribute`` or ``file.py:attribute``.

    Args:
        target: Names a module or program, or a factory (a class or function) that makes one.
        keywords: Arguments for the factory.
        weights: File with a state dict to load, or None.

    Raises:
        ArgumentError: If it cannot be found, is no model, or the weights do not fit.
    """
    place, separator, attribute = target.rpartition(":")
    if not separator or not place or not attribute:
        raise ArgumentError(f"model is {target!r}; write it as module:attribute or file.py:attribute")
    found: Any = _import(place)
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ArgumentError(f"{place} has no attribute {attribute!r}")
        found = getattr(found, name)
    if isinstance(found, torch.nn.Module | torch.export.ExportedProgram):
        if keywords:
            raise ArgumentError(f"{target} is a model already, so --kwarg has nothing to go to")
        model = found
    elif callable(found):
        try:
            model = found(**keywords)
        except Exception as error:  # the factory is the user's code and may raise anything
            what = keywords or "no arguments"
            raise ArgumentError(f"{target} cannot be called with {what}: {_what_happened(error)}") from error
    else:
        raise ArgumentError(f"{target} is {type(found).__name__}; it must be a module, an ExportedProgram or a factory of one")
    if not isinstance(model, torch.nn.Module | torch.export.ExportedProgram):
        raise ArgumentError(f"{target} made {type(model).__name__}, not a torch.nn.Module")
    if weights is not None:
        _load_weights(model, weights)
    return model


def folder_of(target: str) -> Path | None:
    """Returns the folder whose code a target that is loaded asks to run.

    It is the file's; for a module that is somewhere in the current folder, that; for one that is installed, none.
    """
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return Path(place).resolve().parent
    file = getattr(sys.modules.get(place), "__file__", None)
    return Path.cwd() if file and Path(file).resolve().is_relative_to(Path.cwd().resolve()) else None


def _import(place: str) -> ModuleType:
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise ArgumentError(f"there is no file {place!r}")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:  # the file is the user's code and may raise anything
            raise ArgumentError(f"cannot load {place}: {_what_happened(error)}") from error
        return module
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise ArgumentError(f"there is no module {place!r}: {error}") from error
        raise ArgumentError(f"cannot load {place}: {_what_happened(error)}") from error
    except (Exception, SystemExit) as error:  # the module is the user's code and may raise anything
        raise ArgumentError(f"cannot load {place}: {_what_happened(error)}") from error


def _what_happened(error: BaseException) -> str:
    """The error with the innermost line of code that is not in this package."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith((str(Path(__file__).parent), "<frozen")):
            place = f" at {frame.filename}:{frame.lineno}"
    if isinstance(error, SyntaxError):
        place = f" at {error.filename}:{error.lineno}"
    return f"{type(error).__name__}: {error}{place}"


def _load_weights(model: Any, weights: str) -> None:
    if not isinstance(model, torch.nn.Module):
        raise ArgumentError("--weights needs a torch.nn.Module; an ExportedProgram has its own")
    try:
        state = torch.load(weights, map_location="cpu", weights_only=True)
        model.load_state_dict(state)
    except (OSError, RuntimeError) as error:
        raise ArgumentError(f"--weights {weights}: {error}") from error
    except Exception as error:  # what torch.load raises on a file that it cannot or must not read is of any class
        message = f"--weights {weights} is no state dict that weights_only=True loads: {_what_happened(error)}"
        raise ArgumentError(message) from error


def evaluate_args(expression: str | None) -> Any:
    """Returns the example arguments from a Python expression over ``torch``.

    Raises:
        ArgumentError: If the expression fails.
    """
    if not expression:
        return ()
    try:
        return eval(expression, {"torch": torch})
    except Exception as error:  # the expression is the user's code and may raise anything
        raise ArgumentError(f"--args {expression!r}: {type(error).__name__}: {error}") from error


def parse_keywords(items: Sequence[str]) -> dict[str, Any]:
    """Returns ``{"name": value}`` from ``name=value`` items; what is no Python literal is a string.

    Raises:
        ArgumentError: If an item has no ``=``.
    """
    keywords = {}
    for item in items:
        name, separator, text = item.partition("=")
        if not separator or not name.isidentifier():
            raise ArgumentError(f"--kwarg {item!r} must be name=value")
        try:
            keywords[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            keywords[name] = text
    return keywords


def parse_dynamic(items: Sequence[str], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Returns ``dynamic_axes`` from ``NAME:AXIS=SYMBOL`` items.

    ``input`` stands for the input of a model that has just one, whatever its name.

    Args:
        items: What the command line has; ``x:0=batch,2=height`` names several axes.
        names: Names of the model's inputs.

    Raises:
        ArgumentError: If an item is malformed.
    """
    result: dict[str, dict[int, str]] = {}
    for item in items:
        name, separator, axes = item.rpartition(":")
        if not separator or not name:
            raise ArgumentError(f"--dynamic {item!r} must be NAME:AXIS=SYMBOL, as in x:0=batch")
        if name == "input" and name not in names and len(names) == 1:
            name = names[0]
        for entry in axes.split(","):
            axis, _, symbol = entry.partition("=")
            try:
                result.setdefault(name, {})[int(axis)] = symbol.strip()
            except ValueError:
                raise ArgumentError(f"--dynamic {item!r}: {axis!r} is no axis; write NAME:AXIS=SYMBOL, as in x:0=batch") from None
    return result
