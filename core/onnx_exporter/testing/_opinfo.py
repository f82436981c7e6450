"""PyTorch's own operator samples (``op_db``), in the form of models to export.

Of the 703 entries of ``op_db`` (torch 2.14; an entry is a name and a variant) 46 are left out, see `LEFT_OUT`,
which leaves 657. An entry without float32 (bitwise operators, say) counts with the first type of `STAND_INS` that it
has. Within the others, a sample that draws random numbers (dropout in training mode) is passed over.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import functools
import itertools
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

_RANDOM = "its result is random"
_UNINITIALISED = "its result is uninitialised memory"
_NO_TENSOR = "it returns no tensor"
_SPARSE = "it returns a sparse tensor, which ONNX does not have"
_NO_CPU = "it does not run on a CPU, or in float8 only"

LEFT_OUT: dict[str, str] = {
    **dict.fromkeys(
        (
            *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "uniform"),
            *("normal", "normal/in_place", "normal/number_mean", "rand_like", "randint", "randint_like", "randn", "randn_like"),
            *("nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d", "nn.functional.dropout3d"),
            *("nn.functional.feature_alpha_dropout/with_train", "nn.functional.rrelu"),
            *("nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d", "pca_lowrank", "svd_lowrank"),
        ),
        _RANDOM,
    ),
    **dict.fromkeys(("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"), _UNINITIALISED),
    **dict.fromkeys(("allclose", "broadcast_shapes", "equal", "item"), _NO_TENSOR),
    **dict.fromkeys(("sparse.sampled_addmm", "to_sparse"), _SPARSE),
    **dict.fromkeys(
        (
            *("jiterator_2inputs_2outputs", "jiterator_4inputs_with_extra_args", "jiterator_binary"),
            *("jiterator_binary_return_by_ref", "jiterator_unary", "torch._scaled_mm", "torch._scaled_mm_v2"),
            *("torch.ops.aten._efficient_attention_forward", "torch.ops.aten._flash_attention_forward"),
        ),
        _NO_CPU,
    ),
}
"""Operators that no comparison with eager PyTorch can judge, each with the reason."""

STAND_INS = (torch.int64, torch.bool, torch.complex64)
"""Types that stand in for float32, in this order, where an operator does not take it."""


class NotASampleError(Exception):
    """The sample cannot be an ONNX model's input; the message says why."""


def name_of(info: Any) -> str:
    """``"add"``, or ``"linalg.norm/subgradients_at_zero"`` for a variant."""
    return f"{info.name}/{info.variant_test_name}" if info.variant_test_name else str(info.name)


@functools.cache
def operators() -> dict[str, Any]:
    """Returns the OpInfo of every operator that is not left out, by name."""
    from torch.testing._internal.common_methods_invocations import op_db

    infos = {name_of(info): info for info in op_db}
    return {name: info for name, info in infos.items() if name not in LEFT_OUT}


def select(patterns: Sequence[str] = ()) -> list[str]:
    """Returns the names that match one of the patterns (``"nn.functional.*pool*"``), all without patterns."""
    names = list(operators())
    if not patterns:
        return names
    return [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)]


def dtype_for(info: Any, dtype: torch.dtype) -> torch.dtype | None:
    """Returns the type to sample an operator in, or None if it does not take `dtype`."""
    if info.supports_dtype(dtype, "cpu"):
        return dtype
    if dtype is not torch.float32:
        return None
    # An entry that claims no type at all for CPUs only repeats another one's tests; it runs in float32 all the same.
    return next((other for other in STAND_INS if info.supports_dtype(other, "cpu")), dtype if not info.dtypes else None)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One call of an operator: its tensors, and everything else baked in.

    Attributes:
        operator: Name of the operator.
        kind: ``"call"``, or ``"inplace"`` for ``x.op_()``.
        index: Which of the operator's samples it is.
        dtype: Element type that was asked for.
        tensors: The tensors among the arguments, in order, those in lists too.
        function: What is called.
    """

    operator: str
    kind: str
    index: int
    dtype: torch.dtype
    tensors: tuple[torch.Tensor, ...]
    function: Callable[..., Any]
    _leaves: tuple[Any, ...]
    _spec: pytree.TreeSpec

    def module(self) -> torch.nn.Module:
        """Returns a module that takes the tensors and returns the tensors of the result."""
        return SampleModule(self)

    def eager(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Returns what PyTorch computes from copies of the tensors."""
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [result.clone() for result in self(*(tensor.detach().clone() for tensor in tensors))]

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        fresh = iter(tensors)
        leaves = [next(fresh) if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves]
        first, args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        results = pytree.tree_leaves(self.function(first, *args, **kwargs))
        return tuple(_real(result) for result in results if isinstance(result, torch.Tensor))

    def __str__(self) -> str:
        """The call in brief: ``add(f32[5,5], f32[5], alpha=2)``."""
        first, args, kwargs = pytree.tree_unflatten([_brief(leaf) for leaf in self._leaves], self._spec)
        parts = [_listed(first), *map(_listed, args), *(f"{name}={_listed(value)}" for name, value in kwargs.items())]
        name = f"{self.operator}_" if self.kind == "inplace" else self.operator
        return f"{name}({', '.join(parts)})"


class SampleModule(torch.nn.Module):
    """A sample as a module that takes its tensors."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.sample(*tensors)


def samples(name: str, dtype: torch.dtype, count: int, kind: str = "call") -> Iterator[Sample]:
    """Yields those of an operator's first `count` samples that have one result; the same each time.

    Args:
        name: Name of the operator, as `operators` has it.
        dtype: Element type.
        count: How many samples to look at.
        kind: ``"call"`` or ``"inplace"``.
    """
    info = operators()[name]
    chosen = dtype_for(info, dtype)
    function = info.op if kind == "call" else _in_place(info)
    if chosen is None or function is None:
        return
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(zlib.crc32(name.encode()))
        given = list(itertools.islice(info.sample_inputs("cpu", chosen, requires_grad=False), count))
    for index, sample in enumerate(given):
        if kind == "inplace" and sample.broadcasts_input:
            continue
        leaves, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        leaves = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        tensors = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
        made = Sample(name, kind, index, chosen, tensors, function, tuple(leaves), spec)
        if kind == "inplace" and not _runs(made):
            continue
        if not _draws(made):
            yield made


def check_inputs(sample: Sample) -> None:
    """Checks that the tensors can be inputs of an ONNX model.

    Raises:
        NotASampleError: If one is sparse, complex or quantized, or the operator reads memory around a tensor.
    """
    for tensor in sample.tensors:
        if tensor.layout is not torch.strided:
            raise NotASampleError(f"input of layout {tensor.layout}")
        if tensor.is_complex():
            raise NotASampleError("complex input")
        if tensor.is_quantized:
            raise NotASampleError("quantized input")
    try:
        sample.eager(sample.tensors)
    except RuntimeError as error:
        raise NotASampleError(f"PyTorch does not run on copies of the tensors: {error}") from error


def _in_place(info: Any) -> Callable[..., Any] | None:
    method = info.inplace_variant
    if method is None:
        return None

    def call(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return method(first.clone(), *args, **kwargs)

    return call


class _RandomDraws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes whether an operator draws random numbers while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # The fused attention kernel has the tag for its dropout, which the CPU's does not have.
        if torch.Tag.nondeterministic_seeded in func.tags and "flash_attention" not in str(func):
            self.found = True
        return func(*args, **(kwargs or {}))


def _runs(sample: Sample) -> bool:
    """Whether PyTorch can write the result in place: it may have another type or size than the tensor."""
    try:
        sample.eager(sample.tensors)
    except RuntimeError:
        return False
    return True


def _draws(sample: Sample) -> bool:
    with _RandomDraws() as mode, contextlib.suppress(RuntimeError):  # check_inputs tells of samples that do not run
        sample.eager(sample.tensors)
    return bool(mode.found)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c", "bool": "bool"}


class _Text(str):
    """A leaf that is written as it is."""

    def __repr__(self) -> str:
        return str(self)


def _brief(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    kind = str(leaf.dtype).removeprefix("torch.")
    letters = kind.rstrip("0123456789")
    strides = "" if leaf.layout is not torch.strided or leaf.is_contiguous() else f",stride={leaf.stride()}"
    return _Text(f"{_SHORT.get(letters, letters)}{kind.removeprefix(letters)}[{','.join(map(str, leaf.shape))}{strides}]")


def _listed(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 120 else f"{text[:117]}..."
