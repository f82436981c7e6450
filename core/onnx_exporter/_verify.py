"""Runs the written file against eager PyTorch, at the traced sizes and at others."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter import _verify_runtime
from onnx_exporter._comparison import Comparison, ComparisonRun, compare_output
from onnx_exporter._frontends._inputs import Given, ModelInputs
from onnx_exporter._frontends._state import unchanged_state
from onnx_exporter._verify_inputs import (
    Ranges,
    Sizes,
    Symbols,
    Tensors,
    alternative_tensors,
    flat,
    label_of,
    mapped,
    regrouped,
    resized,
    sizes_of,
    tensors_in,
    without_optional,
)
from onnx_exporter._verify_lengths import other_lengths
from onnx_exporter._verify_runtime import Output
from onnx_exporter._verify_values import are_as_finite, fresh_values
from onnx_exporter.errors import ArgumentError, VerificationError

AS_TRACED = "as traced"
OTHER_VALUES = "other values"


def verify_file(
    path: str | os.PathLike[str],
    model: Callable[..., Any],
    inputs: ModelInputs,
    output_names: Sequence[str],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    alt_args: Sequence[Any] = (),
    other_sizes: bool = True,
    ranges: Ranges | None = None,
    custom_op_libraries: _verify_runtime.CustomOps = (),
    weights: Mapping[str, torch.Tensor] | None = None,
    flatten: Callable[[Any], Sequence[Output]] | None = None,
    seed: int = 0,
    result: Any = None,
) -> Comparison:
    """Compares the file with eager PyTorch and raises an error if they differ.

    Eager runs see copies of the inputs, record no gradients, and leave the model's buffers and the
    random state as they were. With inputs of fixed sizes there is one more run with other values that PyTorch accepts. With
    dynamic axes there are two more runs, at larger and at smaller sizes that
    PyTorch accepts; if it accepts none, the comparison carries a warning. With optional inputs there are runs without
    each of them and without all of them, with sequences runs with more, fewer and no elements, as far as PyTorch accepts that.

    Args:
        path: The file.
        model: What was exported, as it is called.
        inputs: The traced arguments.
        output_names: Names of the outputs, in order.
        rtol: Relative tolerance; by default it follows from the dtype.
        atol: Absolute tolerance; by default it follows from the dtype and the output's magnitude.
        alt_args: Other arguments, each given like the args of the export, with None for optional inputs that are to be left out;
            to run instead of generated sizes, and instead of leaving inputs out.
        other_sizes: Whether to run on other values, at other sizes where axes are dynamic, and without optional inputs.
        ranges: Limits of the other sizes by axis name, as capture found them.
        custom_op_libraries: As `_verify_runtime.load` takes it.
        weights: Tensors for inputs of the file that are the model's weights.
        flatten: Takes what the model returns apart into the outputs of the file, of which each is a tensor, a list of
            tensors, or None; by default `flatten_outputs`.
        seed: Seed of the generated inputs.
        result: The export's result, to be found on the error.

    Raises:
        ArgumentError: If `alt_args` do not fit, or PyTorch refuses them.
        VerificationError: If the file differs, or nothing here can run it.
    """
    eager = _Eager(model, inputs, flatten or flatten_outputs)
    alternatives = [alternative_tensors(inputs, args) for args in alt_args]
    runner = _verify_runtime.load(path, custom_op_libraries)
    _check_names(runner, [*(item.name for item in inputs.tensors), *(weights or {})], output_names)
    judge = _Judge(runner, inputs, weights or {}, output_names, rtol, atol)

    traced = [item.example for item in inputs.tensors]
    expected = eager(traced)
    runs = [judge(AS_TRACED, traced, expected)]
    warnings: list[str] = []
    notes: list[str] = []
    if alternatives:
        for number, tensors in enumerate(alternatives, 1):
            facts = [label_of(sizes_of(inputs, tensors))]
            facts += [f"without {item.name}" for item, tensor in zip(inputs.tensors, tensors, strict=True) if tensor is None]
            facts = list(filter(None, facts))
            label = f"alternative {number}" + (f" ({', '.join(facts)})" if facts else "")
            results = _accepted(eager, label, tensors, notes)
            if results is None:
                raise ArgumentError(f"{notes[-1]}; give other arguments (verify_args) that the model accepts")
            runs.append(judge(label, tensors, results))
    elif other_sizes:
        others = [
            _other_values(eager, inputs, expected, seed, notes),
            _without_optional(eager, inputs, warnings, notes),
            _other_lengths(eager, inputs, seed, warnings, notes),
        ]
        if inputs.is_dynamic:
            others.append(_other_sizes(eager, inputs, ranges, seed, warnings, notes))
        for run in itertools.chain(*others):
            runs.append(judge(*run))
    if not all(run.ok for run in runs) and _is_random(eager, traced, expected):
        notes.append("PyTorch itself gives other results each time it runs: is dropout on, or does the model draw numbers?")
    comparison = Comparison(tuple(runs), runner.runtime, tuple(warnings), tuple(notes))
    comparison.raise_if_failed(result)
    return comparison


def flatten_outputs(value: Any) -> list[torch.Tensor]:
    """Returns the tensors in what a model returned, in order; a number becomes a tensor, None and strings vanish.

    Raises:
        VerificationError: If it holds an object of another kind.
    """
    tensors = []
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            tensors.append(leaf.detach())
        elif isinstance(leaf, bool | int | float | complex):
            tensors.append(torch.tensor(leaf))
        elif leaf is not None and not isinstance(leaf, str):
            raise VerificationError(
                f"the model returns a {type(leaf).__name__}, which holds no tensors that can be compared; "
                "return tensors, or tuples, lists and dicts of them"
            )
    return tensors


class _Eager:
    """The model in PyTorch, run without a trace on it, on its inputs or on the random state."""

    def __init__(self, model: Callable[..., Any], inputs: ModelInputs, flatten: Callable[[Any], Sequence[Output]]) -> None:
        self._model = model
        self._inputs = inputs
        self._flatten = flatten

    def __call__(self, tensors: Tensors) -> list[Output]:
        args, kwargs = self._inputs.rebuild([None if given is None else mapped(_copy, given) for given in tensors])
        with torch.no_grad(), unchanged_state(self._model), _unchanged_random_state(tensors):
            # Cloned, since an output may be a buffer, which is restored now.
            return [_cloned(output) for output in self._flatten(self._model(*args, **kwargs))]


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def _cloned(output: Output) -> Output:
    return None if output is None else mapped(torch.clone, output)


@contextlib.contextmanager
def _unchanged_random_state(tensors: Tensors) -> Iterator[None]:
    devices = sorted({tensor.get_device() for tensor in flat(tensors) if tensor.is_cuda})
    with torch.random.fork_rng(devices=devices):
        yield


class _Judge:
    """Runs the file and compares."""

    def __init__(
        self,
        runner: _verify_runtime.Runner,
        inputs: ModelInputs,
        weights: Mapping[str, torch.Tensor],
        output_names: Sequence[str],
        rtol: float | None,
        atol: float | None,
    ) -> None:
        self._runner = runner
        self._inputs = inputs
        self._weights = weights
        self._names = output_names
        self._rtol = rtol
        self._atol = atol

    def __call__(self, label: str, tensors: Tensors, expected: list[Output]) -> ComparisonRun:
        sizes = sizes_of(self._inputs, tensors)
        if len(expected) != len(self._names):
            error = f"PyTorch gives {len(expected)} outputs, and the file {len(self._names)} ({', '.join(self._names)})"
            return ComparisonRun(label, sizes, (), error)
        feeds: dict[str, Given | None] = dict(self._weights)
        feeds |= {item.name: tensor for item, tensor in zip(self._inputs.tensors, tensors, strict=True)}
        try:
            actual = self._runner.run(feeds)
        except _verify_runtime.FileRunError as error:
            return ComparisonRun(label, sizes, (), str(error))
        outputs = []
        for name, want, got in zip(self._names, expected, actual, strict=True):
            if _form(want) != _form(got):
                return ComparisonRun(label, sizes, (), f"output {name!r} is {_form(got)}, PyTorch has {_form(want)}")
            for item, one, other in zip(_names_in(name, want), tensors_in(want), tensors_in(got), strict=True):
                outputs.append(compare_output(item, one, other, rtol=self._rtol, atol=self._atol))
        return ComparisonRun(label, sizes, tuple(outputs))


def _form(output: Output) -> str:
    if isinstance(output, list):
        return f"a list of {len(output)} tensors"
    return "nothing" if output is None else "a tensor"


def _names_in(name: str, output: Output) -> list[str]:
    return [f"{name}[{index}]" for index in range(len(output))] if isinstance(output, list) else [name] * len(tensors_in(output))


def _check_names(runner: _verify_runtime.Runner, input_names: Sequence[str], output_names: Sequence[str]) -> None:
    for kind, names, found in (("inputs", tuple(input_names), runner.inputs), ("outputs", tuple(output_names), runner.outputs)):
        if names != found:
            raise VerificationError(f"the file has the {kind} ({', '.join(found)}), but they should be ({', '.join(names)})")


Run = tuple[str, Tensors, list[Output]]
"""A label, inputs, and what PyTorch gives for them."""


def _other_values(eager: _Eager, inputs: ModelInputs, expected: list[Output], seed: int, notes: list[str]) -> Iterator[Run]:
    """Yields inputs of the same sizes with other values, unless other sizes bring other values for all of them."""
    if all(item.dynamic for item in inputs.tensors):
        return
    refusals: list[str] = []
    examples = [item.example for item in inputs.tensors]

    def attempt(tensors: list[torch.Tensor]) -> list[Output] | None:
        results = _accepted(eager, OTHER_VALUES, regrouped(tensors, examples), refusals)
        return results if results is not None and are_as_finite(flat(results), flat(expected)) else None

    found = fresh_values([tensor.detach() for tensor in flat(examples)], attempt, seed)
    if found is None:
        notes.extend(refusals[-1:])
    else:
        tensors, results = found
        yield OTHER_VALUES, regrouped(tensors, examples), results


def _other_lengths(eager: _Eager, inputs: ModelInputs, seed: int, warnings: list[str], notes: list[str]) -> Iterator[Run]:
    """Yields sequences of other lengths that PyTorch accepts."""
    names = [item.name for item in inputs.tensors if item.elements is not None]
    refusals: list[str] = []
    is_verified = not names
    for ways in other_lengths(inputs, seed):
        for tensors in ways:
            label = label_of(sizes_of(inputs, tensors))
            results = _accepted(eager, label, tensors, refusals)
            if results is not None:
                is_verified = True
                yield label, tensors, results
                break
    if not is_verified:
        notes.extend(dict.fromkeys(refusals))
        warnings.append(
            f"not verified at another length: {', '.join(names)}; PyTorch refused every length tried (see the notes). "
            "Give lists of other lengths that the model accepts in alt_args"
        )


def _without_optional(eager: _Eager, inputs: ModelInputs, warnings: list[str], notes: list[str]) -> Iterator[Run]:
    """Yields inputs without optional ones, as far as PyTorch accepts that."""
    left_out: set[str] = set()
    for label, tensors in without_optional(inputs):
        results = _accepted(eager, label, tensors, notes)
        if results is not None:
            left_out.update(item.name for item, tensor in zip(inputs.tensors, tensors, strict=True) if tensor is None)
            yield label, tensors, results
    missed = [item.name for item in inputs.tensors if item.is_optional and item.name not in left_out]
    if missed:
        warnings.append(f"not verified without {', '.join(missed)}; PyTorch refused that (see the notes)")


def _accepted(eager: _Eager, label: str, tensors: Tensors, notes: list[str]) -> list[Output] | None:
    """What PyTorch gives for inputs; None if it refuses them, which is noted."""
    try:
        return eager(tensors)
    # It is the user's code that runs, and it may refuse inputs with whatever it likes.
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0][:160]
        notes.append(f"PyTorch refuses {label}: {type(error).__name__}: {reason}")
        return None


def _other_sizes(
    eager: _Eager, inputs: ModelInputs, ranges: Ranges | None, seed: int, warnings: list[str], notes: list[str]
) -> Iterator[Run]:
    """Yields inputs of other sizes that PyTorch accepts, each with a label and PyTorch's results."""
    symbols = Symbols(inputs, ranges)
    verified: set[str] = set()
    taken: list[Sizes] = []

    def first_accepted(candidates: Iterator[dict[str, int]]) -> Iterator[Run]:
        for sizes in candidates:
            if sizes in taken:
                continue
            tensors = resized(inputs, sizes, seed + len(taken))
            results = _accepted(eager, label_of(sizes), tensors, notes)
            if results is None:
                continue
            taken.append(sizes)
            verified.update(symbol for symbol in symbols.traced if sizes[symbol] != symbols.traced[symbol])
            yield label_of(sizes), tensors, results
            return

    for smaller in (False, True):
        yield from first_accepted(symbols.candidates(smaller))
    if not taken:
        # No way to change them all at once; then one at a time.
        for symbol in symbols.free:
            yield from first_accepted(symbols.candidates_for(symbol))
    missed = [symbol for symbol in symbols.traced if symbol not in verified]
    if missed:
        warnings.append(
            f"not verified at another size: {', '.join(missed)}; PyTorch refused every size tried (see the notes). "
            "Give arguments of other sizes that the model accepts in alt_args"
        )


def _is_random(eager: _Eager, tensors: Tensors, expected: list[Output]) -> bool:
    """Whether PyTorch gives other results when it runs again with the random state moved on."""
    with torch.random.fork_rng(devices=[]):
        torch.rand(1)
        again = eager(tensors)
    if list(map(_form, again)) != list(map(_form, expected)):
        return True
    pairs = zip(flat(expected), flat(again), strict=True)
    return not all(compare_output("", one, two).passed for one, two in pairs)
