"""For which sizes a capture by ``torch.export`` holds.

PyTorch notes every condition on sizes that the capture relied on. Most say where the model itself works: eager
PyTorch raises elsewhere. Others say which way the capture went, in a branch of the model or in a number that
became a constant; where they do not hold the file is wrong without a word, so these are reported.
"""

from __future__ import annotations

import dataclasses
import itertools
import linecache
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from onnx_exporter._frontends._fx_types import location_of
from onnx_exporter._frontends._guards import is_guard
from onnx_exporter._frontends.captured import Range, is_library_file
from onnx_exporter.errors import CaptureError

_TORCH_NN = f"{os.sep}torch{os.sep}nn{os.sep}"
"""Part of the path of PyTorch's own modules, which branch as the user's do."""
_DEFAULT_LEAST = 2
"""The least size of every dynamic axis unless a condition says more; so PyTorch tells 0 and 1 from the rest."""
_UNLIMITED = 2**62
"""Sizes from here on mean "no limit", as the end of a slice does."""

_FIXING = "__torch_function__"
"""The function of PyTorch that takes a number computed from sizes, which is an argument of an operator, for a constant."""
_RESHAPING = frozenset({"_reshape_view_helper_core_alg", "__call__"})
"""Those that find out whether an axis keeps its size, and so need not be reshaped."""


@dataclasses.dataclass(frozen=True)
class _Condition:
    """A condition on sizes.

    Attributes:
        expression: It, in PyTorch's symbols.
        place: ``"file:line"`` in the model, "" if unknown.
        of_operator: Whether the checks of an operator made it, not the model.
    """

    expression: Any
    place: str
    of_operator: bool = False


def validity_of(program: torch.export.ExportedProgram, axes: Sequence[tuple[str, Any]]) -> tuple[dict[str, Range], list[str]]:
    """Returns the range of each axis in which the capture holds, and what to tell the user about it.

    An axis without a limit beyond PyTorch's default has no range.

    Args:
        program: The exported program.
        axes: Name and symbolic size of each dynamic axis of the inputs.
    """
    names: dict[Any, str] = {}
    examples: dict[Any, int] = {}
    shape_env: Any = None
    nodes: list[tuple[str, Any]] = [(name, size.node) for name, size in axes if isinstance(size, torch.SymInt)]
    # Each by its own symbol, then by the one that PyTorch found it to equal.
    symbols_of = [(name, node._expr, node) for name, node in nodes] + [(name, node.expr, node) for name, node in nodes]
    for name, expression, node in symbols_of:
        shape_env = node.shape_env
        if expression.is_Symbol and node.has_hint():
            names.setdefault(expression, name)
            examples.setdefault(expression, int(node.hint))
    ranges = _declared(program, names)
    reported: dict[str, Range] = {}
    places: dict[str, list[str]] = {}
    notes = []
    for condition in dict.fromkeys([*_guards(shape_env), *_clamped_slices(program), *_squeezed_axes(program)]):
        symbols = sorted(condition.expression.free_symbols, key=str)
        if not symbols or not all(symbol in names for symbol in symbols):
            continue
        is_single = len(symbols) == 1
        found = _range_of(condition, symbols[0], examples[symbols[0]]) if is_single else None
        if found is not None:
            name = names[symbols[0]]
            ranges[name] = _meet(ranges.get(name, (0, None)), found)
            if found != (0, None):
                reported[name] = _meet(reported.get(name, (0, None)), found)
                places.setdefault(name, []).append(condition.place)
        elif not condition.of_operator and (is_single or not _is_implied(condition.expression, symbols)):
            named = condition.expression.xreplace({symbol: sympy.Symbol(names[symbol]) for symbol in symbols})
            if named != sympy.true:  # two axes of one name have one size
                notes.append(f"torch.export holds only where {_text(named)}{_at([condition.place])}")
    told = [f"torch.export holds for {_words(name, limits)} only{_at(places[name])}" for name, limits in reported.items()]
    limited = {name: limits for name, limits in ranges.items() if limits != (0, None)}
    return limited, list(dict.fromkeys(told + notes))


def check_squeezes(program: torch.export.ExportedProgram, lengths: Sequence[tuple[Any, int]]) -> None:
    """Refuses a program that keeps an axis which ``squeeze`` removes from the example.

    Args:
        program: The exported program.
        lengths: Symbolic size of each dynamic axis of the inputs, and the example's.

    Raises:
        CaptureError: If there is one.
    """
    sizes = {size.node.expr: length for size, length in lengths if isinstance(size, torch.SymInt)}
    for condition in _squeezed_axes(program):
        if _holds(condition.expression, sizes) is False:
            raise CaptureError(
                "squeeze() removes a dynamic axis that has size 1 in the example, which torch.export takes to be longer\n"
                f"  at {condition.place or 'unknown place'}\n"
                "  fix the axis, give an example in which it is longer, or use capture='trace'"
            )


def _declared(program: torch.export.ExportedProgram, names: Mapping[Any, str]) -> dict[str, Range]:
    """The ranges that the program states, which hold what eager PyTorch would refuse too."""
    ranges: dict[str, Range] = {}
    for symbol, limits in program.range_constraints.items():
        if symbol in names:
            least = int(limits.lower)
            most = int(limits.upper) if limits.upper.is_Integer and limits.upper < _UNLIMITED else None
            given = (least if least > _DEFAULT_LEAST else 0, most)
            ranges[names[symbol]] = _meet(ranges.get(names[symbol], (0, None)), given)
    return ranges


def _guards(shape_env: Any) -> Iterator[_Condition]:
    """The conditions on which the model or the number of an operator's results depended during capture."""
    for guard in getattr(shape_env, "guards", ()):
        frame = getattr(getattr(guard, "sloc", None), "framework_loc", None)
        file, line = getattr(frame, "filename", ""), getattr(frame, "lineno", 0) or 0
        if is_library_file(file) and _TORCH_NN not in file:
            # A number of results, as that of split, is a constant; a size that is 1 is broadcast, and of two sizes that are
            # equal a reshape moves none: eager PyTorch takes others too. Other equalities are the operator's checks.
            if isinstance(guard.expr, sympy.Eq):
                yield _Condition(guard.expr, "", of_operator=not _is_choice(guard.expr, getattr(frame, "name", "")))
        elif not is_guard(file, line) and "torch._check" not in linecache.getline(file, line):
            yield _Condition(guard.expr, "" if is_library_file(file) or not file else f"{file}:{line}")


def _is_choice(equality: Any, function: str) -> bool:
    """Whether an equality of sizes decides what an operator does, by the function of PyTorch that asked."""
    if sympy.S.One in equality.args or function == _FIXING:
        return True
    return function in _RESHAPING and all(side.is_Symbol for side in equality.args)


def _clamped_slices(program: torch.export.ExportedProgram) -> Iterator[_Condition]:
    """Conditions for slices such as ``x[:5]`` of a dynamic axis, which capture takes to have all their elements."""
    for node in _calls(program, torch.ops.aten.slice):
        if node.target is not torch.ops.aten.slice.Tensor:
            continue
        source, dim, start, end = (*node.args, *(0, None, None)[len(node.args) - 1 :])[:4]
        size, result = source.meta["val"].shape[dim], node.meta["val"].shape[dim]
        if not isinstance(size, torch.SymInt) or (isinstance(result, torch.SymInt) and not result.node.expr.is_number):
            continue
        needed = end if isinstance(end, int) and 0 <= end < _UNLIMITED else -start if isinstance(start, int) else 0
        if needed > 0:
            yield _at_least(size, needed, node)


def _squeezed_axes(program: torch.export.ExportedProgram) -> Iterator[_Condition]:
    """Conditions for dynamic axes that ``squeeze`` is asked to remove, which capture takes to be longer than 1."""
    for node in _calls(program, torch.ops.aten.squeeze):
        shape = node.args[0].meta["val"].shape
        dims = node.args[1] if len(node.args) > 1 else range(len(shape))
        for dim in [dims] if isinstance(dims, int) else dims:
            size = shape[dim] if shape else 1
            if isinstance(size, torch.SymInt) and not size.node.expr.is_number:
                yield _at_least(size, 2, node)


def _calls(program: torch.export.ExportedProgram, operator: Any) -> Iterator[Any]:
    """The calls of an operator, whichever overload, in blocks too."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if getattr(node.target, "overloadpacket", None) is operator:
                yield node


def _at_least(size: torch.SymInt, least: int, node: Any) -> _Condition:
    location = location_of(node)
    return _Condition(sympy.Ge(size.node.expr, least), f"{location.file}:{location.line}" if location.file else "")


def _range_of(condition: _Condition, symbol: Any, example: int) -> Range | None:
    """The sizes around the example for which a condition holds; None if these are not one range."""
    near = range(max(1, example - 32), example + 33)
    samples = sorted({*range(1, 65), *near, 2 * example, 4 * example, 8 * example, 2**16})
    held = [size for size in samples if _holds(condition.expression, {symbol: size}) is not False]
    failed = [size for size in samples if size not in set(held)]
    if not failed:
        return (0, None)
    below = max((size for size in failed if size < example), default=None)
    above = min((size for size in failed if size > example), default=None)
    if example in failed or (above is not None and max(held) > above):
        return None
    if below is not None and min(held) < below and not condition.of_operator:
        return None
    least = 0 if below is None else min(size for size in held if size > below)
    most = None if above is None else max(size for size in held if size < above)
    if below is not None:
        least = _edge(condition.expression, symbol, least, below)
    if above is not None and most is not None:
        most = _edge(condition.expression, symbol, most, above)
    return None if least == most else (least, most)


def _edge(condition: Any, symbol: Any, inside: int, outside: int) -> int:
    """The last size from `inside` towards `outside` for which the condition holds."""
    while abs(inside - outside) > 1:
        middle = (inside + outside) // 2
        if _holds(condition, {symbol: middle}) is False:
            outside = middle
        else:
            inside = middle
    return inside


def _is_implied(condition: Any, symbols: Sequence[Any]) -> bool:
    """Whether a condition seems to hold for all sizes."""
    choices = itertools.islice(itertools.product((2, 3, 4, 5, 8, 13), repeat=len(symbols)), 216)
    return all(_holds(condition, dict(zip(symbols, sizes, strict=True))) is not False for sizes in choices)


def _holds(condition: Any, sizes: Mapping[Any, int]) -> bool | None:
    """Whether a condition holds for these sizes; None if it cannot be told."""
    try:
        result = condition.xreplace({symbol: sympy.Integer(size) for symbol, size in sizes.items()})
    except (ZeroDivisionError, AssertionError):  # a size of 0 inside the expression, which PyTorch's functions refuse
        return None
    return bool(result) if result in (sympy.true, sympy.false) else None


def _meet(one: Range, two: Range) -> Range:
    most = [limit for limit in (one[1], two[1]) if limit is not None]
    return max(one[0], two[0]), min(most, default=None)


def _words(name: str, limits: Range) -> str:
    least, most = limits
    if most is None:
        return f"{name} >= {least}"
    return f"{least} <= {name} <= {most}" if least > 0 else f"{name} <= {most}"


def _text(condition: Any) -> str:
    if isinstance(condition, sympy.core.relational.Relational):
        return f"{condition.lhs} {condition.rel_op} {condition.rhs}"
    return str(condition)


def _at(places: Sequence[str]) -> str:
    known = list(dict.fromkeys(place for place in places if place and not place.startswith("<")))  # not in generated code
    return f" ({', '.join(known)})" if known else ""
