"""Arithmetic on sizes: ints where known, else symbols of `onnx_ir` (sympy expressions behind them)."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

import onnx_ir as ir

from onnx_exporter._values import Dim

ANONYMOUS = "_s"
"""Prefix of symbols made up for sizes that nothing is known of; they are not written to the file."""


FROM_DATA = f"{ANONYMOUS}d"
"""Prefix of those that data decide: how many elements are selected, say."""


def is_from_data(dim: Dim) -> bool:
    """Whether data decide a size, as far as can be told."""
    return isinstance(dim, ir.SymbolicDim) and dim.value is not None and FROM_DATA in dim.value


def is_anonymous(dim: Dim) -> bool:
    """Whether a symbol, or an expression over symbols, involves a made-up name."""
    return isinstance(dim, ir.SymbolicDim) and (dim.value is None or ANONYMOUS in dim.value)


def simplify(dim: Dim) -> Dim:
    """Returns an int where an expression has turned out to be one."""
    if isinstance(dim, ir.SymbolicDim) and dim.value is not None:
        try:
            return int(dim.value)
        except ValueError:
            return dim
    return dim


@functools.lru_cache(maxsize=4096)
def add(first: Dim, second: Dim) -> Dim:
    """Returns ``first + second``."""
    return simplify(first + second)


@functools.lru_cache(maxsize=4096)
def subtract(first: Dim, second: Dim) -> Dim:
    """Returns ``first - second``."""
    if isinstance(first, int) and isinstance(second, ir.SymbolicDim):
        return simplify(second * -1 + first)
    return simplify(first - second)


@functools.lru_cache(maxsize=4096)
def multiply(first: Dim, second: Dim) -> Dim:
    """Returns ``first * second``."""
    return simplify(first * second)


def product(dims: Iterable[Dim]) -> Dim:
    """Returns the product of sizes."""
    result: Dim = 1
    for dim in dims:
        result = multiply(result, dim)
    return result


@functools.lru_cache(maxsize=4096)
def divide_exactly(total: Dim, by: Dim) -> Dim | None:
    """Returns ``total / by`` if that is proven to be whole, else None."""
    if isinstance(total, int) and isinstance(by, int):
        return total // by if by and total % by == 0 else None
    if total == by:
        return 1
    quotient = simplify(total / by) if isinstance(total, ir.SymbolicDim) else None
    # sympy cancels common factors; what still has a division or a function in it is not proven
    if quotient is None or (isinstance(quotient, ir.SymbolicDim) and _has_division(quotient.value or "/")):
        return None
    return quotient


def _has_division(text: str) -> bool:
    return "/" in text or "floor" in text or "**(-" in text or "**-" in text


class Symbols:
    """Makes up symbols for unknown sizes."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def fresh(self, *, from_data: bool = False) -> ir.SymbolicDim:
        """Returns a symbol that equals no other."""
        return ir.SymbolicDim(f"{FROM_DATA if from_data else ANONYMOUS}{next(self._numbers)}")
