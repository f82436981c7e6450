"""Scripted programs beside torch.onnx (dynamo=False): nodes of the file, and its latency in ONNX Runtime.

    python benchmarks/scripted.py [--opset 17] [--rounds 1000] [--program Greedy ...] [--markdown docs/benchmarks.md]

The programs are those of tests/scripted. Latencies are medians of one thread, the two files taking turns. A file that
computes something else than PyTorch on any of a program's arguments has no latency.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "scripted"))

from pages import write_table
from test_programs import PROGRAMS, Program
from torch.utils._pytree import tree_leaves

import onnx_exporter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--program", nargs="*", help="names of programs; by default all")
    parser.add_argument("--markdown", type=Path, help="File whose table between the markers is replaced.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        f"Opset {given.opset}, one thread, medians of {given.rounds} runs; nodes include those of sub-graphs.\n",
        "| program | nodes | torch.onnx | latency µs | torch.onnx | ours / torch.onnx |\n| --- | --- | --- | --- | --- | --- |",
    ]
    print(*lines, sep="\n")
    for program in PROGRAMS:
        if not given.program or str(program) in given.program:
            lines.append(compared(program, given.opset, given.rounds))
            print(lines[-1], flush=True)
    if given.markdown:
        write_table(given.markdown, "scripted", lines)


def compared(program: Program, opset: int, rounds: int) -> str:
    """One row of the table."""
    model = program.model()
    names = input_names(program)
    axes = program.dynamic or None
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.onnx", Path(folder) / "theirs.onnx"
        options = {"opset_version": opset, "input_names": names, "dynamic_axes": axes}
        onnx_exporter.export(model, program.args, str(ours), verify=True, verify_args=program.others, **options)
        failure = exported_by_peer(model, program, theirs, opset, names) or fault(program, model, theirs, names)
        found = latencies([ours] if failure else [ours, theirs], feeds_of(names, program.args), rounds)
        if failure:
            return f"| {program} | {nodes(ours)} | {failure} | {found[0]:.0f} | | |"
        columns = (program, nodes(ours), nodes(theirs), f"{found[0]:.0f}", f"{found[1]:.0f}", f"{found[0] / found[1]:.2f}")
    return f"| {' | '.join(map(str, columns))} |"


def as_array(value: object) -> np.ndarray:
    """An argument as ONNX Runtime takes it; a Python float is a double."""
    return value.detach().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def input_names(program: Program) -> list[str]:
    """The names of the parameters that the arguments are for."""
    if isinstance(program.call, torch.nn.Module):
        return list(inspect.signature(program.call.forward).parameters)[: len(program.args)]
    return [value.debugName().partition(".")[0] for value in program.call.graph.inputs()]


def feeds_of(names: list[str], args: tuple[object, ...]) -> dict[str, np.ndarray]:
    """The arguments by name, those that are not given left out."""
    return {name: as_array(value) for name, value in zip(names, args, strict=True) if value is not None}


def exported_by_peer(model: object, program: Program, path: Path, opset: int, names: list[str]) -> str:
    """Why torch.onnx does not export, "" if it does."""
    options = {"input_names": names, "dynamic_axes": program.dynamic or None, "dynamo": False}
    try:
        with silence():  # it prints the graph that it fails on
            torch.onnx.export(model, program.args, str(path), opset_version=opset, **options)
    except Exception as error:  # whatever the other exporter fails with is its answer
        return f"fails: {type(error).__name__}"
    return ""


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """While active, nothing is printed, by C++ code either."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def tensors_of(result: object) -> list[np.ndarray]:
    """The tensors and numbers of a result, in order."""
    return [as_array(item) for item in tree_leaves(result) if item is not None]


def fault(program: Program, model: Any, path: Path, names: list[str]) -> str:
    """Why a file is of no use: it does not run, or is wrong for some arguments of the program; "" if it is right."""
    for args in (program.args, *program.others):
        feeds, wanted = feeds_of(names, args), tensors_of(model(*args))
        try:
            session = load(path)
            found = session.run(None, {item.name: feeds[item.name] for item in session.get_inputs()})
        except Exception as error:  # ONNX Runtime has a class of its own for each kind of failure
            return f"does not run: {type(error).__name__}"
        found = [as_array(item) for item in tree_leaves(found)]
        if [item.shape for item in found] != [item.shape for item in wanted]:
            return "wrong shape"
        if not all(np.allclose(one, other, 1e-4, 1e-5, equal_nan=True) for one, other in zip(found, wanted, strict=True)):
            return "wrong value"
    return ""


def load(path: Path) -> onnxruntime.InferenceSession:
    """The file in ONNX Runtime, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def latencies(paths: list[Path], feeds: dict[str, np.ndarray], rounds: int) -> list[float]:
    """The median latency of each file in microseconds."""
    sessions = [load(path) for path in paths]
    given = [{item.name: feeds[item.name] for item in session.get_inputs()} for session in sessions]
    times: list[list[float]] = [[] for _ in sessions]
    for _ in range(rounds):
        for session, inputs, taken in zip(sessions, given, times, strict=True):
            start = time.perf_counter()
            session.run(None, inputs)
            taken.append((time.perf_counter() - start) * 1e6)
    return [statistics.median(taken) for taken in times]


def nodes(path: Path) -> int:
    """Nodes of a file, those of sub-graphs included, constants left out."""

    def count(graph: onnx.GraphProto) -> int:
        inner = [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
        return sum(node.op_type != "Constant" for node in graph.node) + sum(map(count, inner))

    return count(onnx.load(str(path)).graph)


if __name__ == "__main__":
    main()
