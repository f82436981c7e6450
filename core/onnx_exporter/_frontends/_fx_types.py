"""Types and places of FX nodes, read from the metadata that ``torch.export`` leaves on them."""

from __future__ import annotations

import re
from typing import Any

import torch

from onnx_exporter._frontends.captured import is_library_file
from onnx_exporter._source.graph import UNKNOWN, Dim, Location, SourceType

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_NUMBER_DTYPES: dict[type, torch.dtype] = {bool: torch.bool, int: torch.int64, float: torch.float64}


class Symbols:
    """Names of the symbolic sizes of a program.

    PyTorch calls them ``s77`` or ``u0``; a symbol that is an axis of an input has the name that the
    user gave to the axis, in expressions too.

    Attributes:
        trusts_one: Whether a size of 0 or 1 is a fact. PyTorch takes some for constants that are not when it
            was told to treat such an example as any other.
    """

    def __init__(self, trusts_one: bool = True) -> None:
        self.trusts_one = trusts_one
        self._names: dict[Any, Any] = {}

    def give(self, size: Any, name: str) -> None:
        """Names the symbol that `size` is; the first name stays. An expression is not a symbol and has no name."""
        expression = _expression(size)
        if expression is not None and expression.is_Symbol and expression not in self._names:
            self._names[expression] = type(expression)(name, **expression.assumptions0)

    def dim(self, size: Any) -> Dim:
        """Returns a size as a dimension: an int, the text of the symbolic expression, or None if it cannot be trusted."""
        expression = _expression(size)
        if expression is None or expression.is_number:
            number = int(size if expression is None else expression)
            return number if number > 1 or self.trusts_one else None
        return str(expression.xreplace(self._names))


def type_of(value: Any, symbols: Symbols) -> SourceType:
    """Returns the type of what an FX node holds (its ``meta['val']``)."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            return SourceType(value.dtype, tuple(symbols.dim(size) for size in value.shape))
        shape = tuple(symbols.dim(size) for size in value.shape)
        return SourceType(
            value.dtype, shape, False, _example(value.stride()), _example(value.shape), requires_grad=value.requires_grad
        )
    kind = number_kind(value)
    return UNKNOWN if kind is None else SourceType(_NUMBER_DTYPES[kind], (), is_number=True)


def number_kind(value: Any) -> type | None:
    """Returns ``bool``, ``int`` or ``float`` for a Python or symbolic number, None for anything else."""
    for kind, symbolic in ((bool, torch.SymBool), (int, torch.SymInt), (float, torch.SymFloat)):
        if isinstance(value, kind | symbolic):
            return kind
    return None


def _expression(size: Any) -> Any:
    """The sympy expression of a symbolic number, None for a Python number."""
    return size.node.expr if isinstance(size, torch.SymInt) else None


def _example(sizes: Any) -> tuple[int, ...] | None:
    """The sizes or strides that the example had, None if one depends on data."""
    result = []
    for size in sizes:
        if isinstance(size, torch.SymInt):
            if not size.node.has_hint():
                return None
            size = size.node.hint
        result.append(int(size))
    return tuple(result)


def location_of(node: torch.fx.Node) -> Location:
    """Returns where in the user's model an FX node comes from."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    # PyTorch's own synthetic frames have a path relative to its package.
    users = [
        frame for frame in frames if not is_library_file(frame[0]) and not frame[0].startswith(("torch/", "<eval_with_key>"))
    ]
    file, line, function = users[-1] if users else ("", "0", "")
    calls = _calls(node)
    return Location(calls[-1].rpartition("@")[0] if calls else "", file, int(line), function, calls)


def _calls(node: torch.fx.Node) -> tuple[str, ...]:
    """The calls of submodules around a node, outermost first."""
    found = []
    for key, (path, _) in (node.meta.get("nn_module_stack") or {}).items():
        path = re.sub(r"@\d+", "", re.sub(r"^L\['self'\]\.?", "", str(path)).lstrip("."))
        if path and not path.startswith("_empty_nn_module_stack"):
            again = re.search(r"@(\d+)$", str(key))  # a module that is called again carries a count
            found.append(f"{path}@{again[1] if again else 0}")
    return tuple(found)
