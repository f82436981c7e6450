"""How many of PyTorch's operators export, and compute what PyTorch computes, per opset; torch.onnx beside us.

    python benchmarks/operator_coverage.py [--ops 'nn.functional.*pool*'] [--opsets 9 13 17 18 20] [--dtypes float32]
        [--kinds call inplace dynamic] [--samples 6] [--jobs 2] [--peers] [--json rows.jsonl] [--report report.md]
        [--markdown docs/benchmarks.md] [--read rows.jsonl] [-v]

The samples are those of PyTorch's own tests (``op_db``). An operator counts as right if every sample is, and as wrong
if some file differs from PyTorch without anyone having said so. Every operator runs in a process of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from operator_peers import PEERS
from operator_report import PEER_OPSETS, PEER_SAMPLES, report, totals
from pages import write_table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", nargs="*", default=[], help="Patterns of names in op_db; all operators unless given.")
    parser.add_argument("--opsets", nargs="*", type=int, default=PEER_OPSETS)
    parser.add_argument("--dtypes", nargs="*", default=["float32"])
    parser.add_argument("--kinds", nargs="*", default=["call"], choices=["call", "inplace", "dynamic"])
    parser.add_argument("--samples", type=int, default=PEER_SAMPLES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--peers", action="store_true", help="Measure torch.onnx's exporters on the same samples too.")
    parser.add_argument("--methods", nargs="*", choices=["ours", *PEERS], help="Measure only these.")
    parser.add_argument("--json", type=Path, help="File for the rows, one JSON object a line.")
    parser.add_argument("--report", type=Path, help="File for what failed, by reason, in Markdown.")
    parser.add_argument("--markdown", type=Path, help="File whose table between the markers is replaced.")
    parser.add_argument("-v", "--verbose", action="store_true", help="Print what failed, by reason.")
    parser.add_argument("--read", nargs="*", type=Path, help="Take the rows from files that --json wrote.")
    options = parser.parse_args()

    start = time.perf_counter()
    if options.read:
        rows = [json.loads(line) for path in options.read for line in path.read_text().splitlines()]
    else:
        rows = list(measure(options))
    tables = totals(rows)
    ours = [row for row in rows if row["method"] == "ours"]
    print(report(ours) if options.verbose else tables)
    print(f"{len(rows)} rows in {time.perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if options.report:
        options.report.write_text(report(ours))
    if options.markdown:
        write_table(options.markdown, "operator_coverage", [tables])
    return any(row["status"] in ("wrong", "error") for row in ours)


def measure(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yields every row as a dict, with the name of the method."""
    import torch

    from onnx_exporter.testing._opinfo import dtype_for, operators, select
    from onnx_exporter.testing._sweep_method import Ours
    from onnx_exporter.testing._sweep_pool import Task, sweep

    torch.set_num_threads(1)
    names = select(options.ops)
    if not names:
        sys.exit(f"no operator matches {' '.join(options.ops)}")
    chosen = options.methods or (["ours", *PEERS] if options.peers else ["ours"])
    for label in chosen:
        make, only = (Ours, None) if label == "ours" else PEERS[label]
        opsets = tuple(opset for opset in options.opsets if only is None or opset in only)
        if not opsets:
            continue
        tasks = [
            Task(name, getattr(torch, dtype), opsets, options.samples, tuple(options.kinds))
            for dtype in options.dtypes
            for name in names
            if dtype_for(operators()[name], getattr(torch, dtype)) is not None
        ]
        limit = 20.0 if label == "ours" else 60.0
        for number, (task, done) in enumerate(sweep(tasks, jobs=options.jobs, method=make, time_limit=limit), 1):
            for row in done:
                # An operator without float32 counts in that column all the same.
                yield {"method": label, "column": str(task.dtype).removeprefix("torch."), **dataclasses.asdict(row)}
            if number % 50 == 0:
                print(f"{label}: {number} of {len(tasks)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
