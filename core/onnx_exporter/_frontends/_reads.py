"""Notes where Python reads a traced tensor's value, which tracing then fixes at the example's."""

from __future__ import annotations

import dataclasses
import dis
import functools
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any

import torch

from onnx_exporter._frontends._guards import is_guard_in
from onnx_exporter._frontends._patching import StandIn, patched
from onnx_exporter._frontends.captured import is_library_file
from onnx_exporter.errors import CaptureError

_METHODS = {
    "__bool__": "bool() of a tensor decides what runs",
    "__int__": "int() of a tensor",
    "__float__": "float() of a tensor",
    "__complex__": "complex() of a tensor",
    "__index__": "a tensor as a Python index or length",
    "item": ".item() of a tensor",
    "tolist": ".tolist() of a tensor",
    "numpy": "a tensor as a NumPy array",
    "__dlpack__": "a tensor as another library's array",
    "equal": ".equal() of tensors",
    "allclose": ".allclose() of tensors",
    "is_nonzero": ".is_nonzero() of a tensor",
}
"""Methods of a tensor that hand its value to Python, and how a message calls that."""

_FUNCTIONS = {
    "equal": "torch.equal() of tensors",
    "allclose": "torch.allclose() of tensors",
    "is_nonzero": "torch.is_nonzero() of a tensor",
}

_ADAPTIVE = tuple(f"adaptive_{kind}_pool{rank}d" for kind in ("avg", "max") for rank in (1, 2, 3))
_LISTS: dict[Any, tuple[str, ...]] = {
    torch: ("roll", "adaptive_avg_pool1d", "adaptive_max_pool1d"),
    torch.Tensor: ("roll",),
    torch.nn.functional: (
        *(f"{kind}_pool{rank}d" for kind in ("avg", "max", "lp") for rank in (1, 2, 3)),
        *_ADAPTIVE,
    ),
}
"""Functions that take one number for a list; PyTorch reads a tensor there without a word."""

_NUMBERS = ("range",)
"""Functions of torch that take numbers only; PyTorch reads a tensor there without a word."""

_CONVOLUTIONS = ("convolution", *(f"conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3)))
"""Functions of which PyTorch reads every tensor that stands for a number, also within a tuple, without a word."""

_OPERANDS = frozenset({"self", "input", "weight", "bias"})
"""Parameters of these functions that are tensors anyway."""

_SHORTCUTS = frozenset({"if input.numel() == 0:", "if attn_mask.size(0) == 1 and attn_mask.dim() == 3:"})
"""Conditions in PyTorch's own code; what is recorded where they do not hold is right where they do as well."""

_CHECKED = frozenset({"mini_batch = int(batch_sizes[0])"})
"""Lines of PyTorch's own code that read what only a check looks at."""

_PRINTING = ("_tensor_str.py", "__format__")

NOTE = "onnx_exporter_note"
"""Attribute of the node in the trace that keeps a noted value: its index among the notes."""


@dataclasses.dataclass(frozen=True)
class Read:
    """One place where Python read a traced tensor.

    Attributes:
        what: What was done with the tensor, for the message.
        in_brackets: The tensor stood in ``[...]``; if that was a slice of a tensor, the tracer has it all the same.
        frames: The function and line of each caller, innermost first, up to the model's own.
    """

    what: str
    in_brackets: bool
    frames: tuple[tuple[CodeType, int], ...]

    @property
    def is_harmless(self) -> bool:
        """Whether the value only decides if the model raises or warns."""
        return any(is_guard_in(code, line) for code, line in self.frames)

    @property
    def place(self) -> str:
        """``file:line`` of the innermost line outside PyTorch, or of the innermost at all."""
        outside = [(code, line) for code, line in self.frames if not is_library_file(code.co_filename)]
        code, line = (outside or list(self.frames))[0] if self.frames else (None, 0)
        return f"{code.co_filename}:{line}" if code is not None else "unknown place"


class Reads:
    """Collects reads while it is active.

    The value that was read may be of no other use, and the tracer would drop it with all that tells where
    it came from; so each gets a node in the trace that counts as an effect.

    Attributes:
        notes: The reads, in order; a node in the trace holds the index of its own.
    """

    def __init__(self, root: CodeType) -> None:
        self.notes: list[Read] = []
        self._root = root

    @contextmanager
    def active(self) -> Iterator[None]:
        """Puts the methods of tensors through this object; its caller holds `CAPTURE_LOCK`."""
        readers: list[tuple[Any, str, str, int]] = [(torch, name, what, 0) for name, what in _FUNCTIONS.items()]
        readers += [(torch.Tensor, name, what, 0) for name, what in _METHODS.items()]
        readers += [(owner, name, _as_argument(name), 1) for owner in _LISTS for name in _LISTS[owner]]
        readers += [(torch, name, _as_argument(name), 0) for name in _NUMBERS]
        # after the input, the weight and the bias
        readers += [(owner, name, _as_argument(name), 3) for owner in (torch, torch.nn.functional) for name in _CONVOLUTIONS]
        replacements: list[tuple[Any, str, Any]] = [
            (owner, name, self._noting(owner, name, what, first)) for owner, name, what, first in readers if hasattr(owner, name)
        ]
        replacements += [(torch.Tensor, "data", _data()), (torch.Tensor, "__deepcopy__", _deepcopy(torch.Tensor.__deepcopy__))]
        with patched(replacements):
            yield

    def _noting(self, owner: Any, name: str, what: str, first: int) -> Callable[..., Any]:
        """A function that notes every tensor among its arguments from the one at `first` on, for a convolution in tuples too."""
        original: Callable[..., Any] = getattr(owner, name)
        nested = name in _CONVOLUTIONS

        @functools.wraps(original)
        def read(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)  # PyTorch tries some that raise, and then takes another way
            if torch._C._get_tracing_state() is not None:
                for value in (*args[first:], *(value for name, value in kwargs.items() if name not in _OPERANDS)):
                    for part in value if nested and isinstance(value, list | tuple) else (value,):
                        if isinstance(part, torch.Tensor):
                            self._note(part, what, sys._getframe(1), result)
            return result

        return StandIn(read) if isinstance(owner, ModuleType) else read

    def _note(self, tensor: torch.Tensor, what: str, caller: FrameType, result: Any) -> None:
        tracer: Any = torch._C
        frames = self._frames(caller)
        file = caller.f_code.co_filename
        line = linecache.getline(file, caller.f_lineno).strip() if is_library_file(file) else ""
        if line in _CHECKED or (line in _SHORTCUTS and result is False):
            return
        if any(mark in (code.co_name, code.co_filename[-len(mark) :]) for code, _ in frames for mark in _PRINTING):
            return  # what is printed is not part of the result
        try:
            value: Any = tracer._get_value_trace(tensor)
        except RuntimeError:  # a tensor that the tracer does not know and cannot hold as a constant
            return
        if any(use.user.kind() == "aten::Int" and not use.user.output().uses() for use in value.uses()):
            return  # an argument of the call that is recorded next: the tracer has it
        graph = torch._C._get_tracing_state().graph()
        node = graph.create("prim::Print", [value], 0)
        node.i_(NOTE, len(self.notes))
        graph.insertNode(node)
        operation = dis.opname[caller.f_code.co_code[caller.f_lasti]]
        self.notes.append(Read(what, "SUBSCR" in operation or "SLICE" in operation, frames))

    def _frames(self, caller: FrameType) -> tuple[tuple[CodeType, int], ...]:
        frames = []
        frame: FrameType | None = caller
        while frame is not None and frame.f_code is not self._root:
            frames.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        return tuple(frames)


def _as_argument(name: str) -> str:
    return f"a tensor as an argument of {name}()"


def _data() -> property:
    """``Tensor.data`` as the view that it is; the tracer would take it for a constant."""
    original: Any = torch._C.TensorBase.data

    def get(self: torch.Tensor) -> Any:
        if torch._C._get_tracing_state() is None:
            return original.__get__(self)
        return self.detach()

    def set_(self: torch.Tensor, value: torch.Tensor) -> None:
        if torch._C._get_tracing_state() is not None and not isinstance(self, torch.nn.Parameter):
            raise CaptureError("the model assigns to .data of a tensor, which tracing cannot follow; use copy_() there")
        original.__set__(self, value)

    return property(get, set_)


def _deepcopy(original: Callable[..., Any]) -> Callable[..., Any]:
    """``copy.deepcopy`` of a tensor as a clone; the tracer would take the copy for a constant."""

    def deepcopy(self: torch.Tensor, memo: dict[int, Any]) -> Any:
        if torch._C._get_tracing_state() is None or isinstance(self, torch.nn.Parameter):
            return original(self, memo)
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    return deepcopy
