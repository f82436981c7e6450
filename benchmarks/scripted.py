"""Scripted programs beside torch.onnx (dynamo=False): nodes of the file, and its latency in ONNX Runtime.

    python benchmarks/scripted.py [--opset 17] [--rounds 200] [--program Greedy ...]

The programs are those of tests/scripted. Latencies are medians of one thread, the two files taking turns.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "scripted"))

from test_programs import PROGRAMS, Program

import onnx_exporter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--program", nargs="*", help="names of programs; by default all")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| program | nodes | torch.onnx | latency µs | torch.onnx | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for program in PROGRAMS:
        if not given.program or str(program) in given.program:
            print(compared(program, given.opset, given.rounds), flush=True)


def compared(program: Program, opset: int, rounds: int) -> str:
    """One row of the table."""
    model = program.model()
    names = [f"input_{index}" for index in range(len(program.args))]
    feeds = {name: as_array(value) for name, value in zip(names, program.args, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder) / "ours.onnx", Path(folder) / "theirs.onnx"
        onnx_exporter.export(model, program.args, str(ours), opset_version=opset, input_names=names)
        failure = exported_by_peer(model, program.args, theirs, opset, names) or refusal(theirs, feeds)
        found = latencies([ours] if failure else [ours, theirs], feeds, rounds)
        if failure:
            return f"| {program} | {nodes(ours)} | {failure} | {found[0]:.0f} | | |"
        columns = (program, nodes(ours), nodes(theirs), f"{found[0]:.0f}", f"{found[1]:.0f}", f"{found[0] / found[1]:.2f}")
    return f"| {' | '.join(map(str, columns))} |"


def as_array(value: object) -> np.ndarray:
    """An argument as ONNX Runtime takes it; a Python float is a double."""
    return value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def exported_by_peer(model: object, args: tuple[object, ...], path: Path, opset: int, names: list[str]) -> str:
    """Why torch.onnx does not export, "" if it does."""
    try:
        with silence():  # it prints the graph that it fails on
            torch.onnx.export(model, args, str(path), opset_version=opset, input_names=names, dynamo=False)
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


def refusal(path: Path, feeds: dict[str, np.ndarray]) -> str:
    """Why ONNX Runtime does not run a file, "" if it does."""
    try:
        session = load(path)
        session.run(None, {item.name: feeds[item.name] for item in session.get_inputs()})
    except Exception as error:  # ONNX Runtime has a class of its own for each kind of failure
        return f"does not run: {type(error).__name__}"
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
