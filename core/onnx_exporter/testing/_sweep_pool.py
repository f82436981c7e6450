"""The sweep over many operators, in processes of its own: a crash or a hang costs one sample."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import torch

from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter.testing._opinfo import operators, samples
from onnx_exporter.testing._sweep import TIME_LIMIT, Row, sweep_operator
from onnx_exporter.testing._sweep_method import Method, Ours, Outcome


@dataclasses.dataclass(frozen=True)
class Task:
    """An operator to sweep in one type.

    Attributes:
        operator: Its name.
        dtype: Element type.
        opsets: The targets.
        count: How many samples.
        kinds: ``"call"``, ``"inplace"``, ``"dynamic"``.
    """

    operator: str
    dtype: torch.dtype
    opsets: tuple[int, ...]
    count: int
    kinds: tuple[str, ...] = ("call",)


def sweep(
    tasks: Sequence[Task], *, jobs: int = 1, method: Callable[[], Method] = Ours, time_limit: float = TIME_LIMIT
) -> Iterator[tuple[Task, list[Row]]]:
    """Sweeps operators in child processes and yields each task with its rows as it is done.

    Args:
        tasks: What to do.
        jobs: How many processes at a time.
        method: Makes what exports; called once, before the processes are forked.
        time_limit: Seconds for one sample at one opset.
    """
    operators()  # loaded once, and shared with the children
    exporter = method()
    _warm_up(exporter)
    waiting = list(reversed(tasks))
    running: list[_Child] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_Child(waiting.pop(), exporter, time_limit))
        wait([child.connection for child in running], timeout=1.0)
        for child in list(running):
            if child.advance():
                yield child.task, child.rows
                if waiting and child.is_fit:
                    child.begin(waiting.pop())
                else:
                    child.end()
                    running.remove(child)


_TASKS_OF_A_PROCESS = 32  # its caches are warm after the first


def _warm_up(method: Method) -> None:
    """Exports one sample here, so that not every child has to import what that takes. It is not run: that makes threads."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)
    sample = next(iter(samples("abs", torch.float32, 1)))
    inputs = model_inputs(sample.module().forward, sample.tensors, {}, ["input_0"], None)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Outcome):  # the sweep tells of its failures
        method.write(method.prepare(sample, inputs, 18), 18, Path(folder) / "model.onnx")


class _Child:
    """A forked process that sweeps some operators, one after another; after a crash another one goes on with the next sample."""

    def __init__(self, task: Task, method: Method, time_limit: float) -> None:
        self._method = method
        self._limit = time_limit
        self._served = 0
        self._set(task)
        self._start()
        self.connection.send((self.task, self._at))

    def begin(self, task: Task) -> None:
        """Gives the process another task."""
        self._set(task)
        self.connection.send((task, self._at))

    def end(self) -> None:
        """Lets the process end, unless it has died."""
        with contextlib.suppress(BrokenPipeError):
            self.connection.send(None)
        self._process.join()

    @property
    def is_fit(self) -> bool:
        """Whether the process may serve again: what failed may have left its marks, and what it keeps grows."""
        return self._served < _TASKS_OF_A_PROCESS and all(row.status == "pass" or row.stage == "convert" for row in self.rows)

    def _set(self, task: Task) -> None:
        self.task = task
        self.rows: list[Row] = []
        self._at = ("", -1)
        self._done: set[tuple[str, int, int]] = set()
        self._served += 1
        self._heard = time.monotonic()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.connection, remote = context.Pipe()
        self._process = context.Process(target=_work, args=(remote, self._method, self._limit), daemon=True)
        self._process.start()
        remote.close()
        self._heard = time.monotonic()

    def advance(self) -> bool:
        """Takes what the process has sent; returns whether the task is done."""
        try:
            while self.connection.poll():
                message = self.connection.recv()
                self._heard = time.monotonic()
                if message is None:
                    return True
                if isinstance(message, Row):
                    self.rows.append(message)
                    self._done.add((message.kind, message.sample, message.opset))
                else:
                    self._at = message
        except (EOFError, ConnectionResetError):
            self._process.join()
            code = self._process.exitcode or 0
            return self._crashed(f"the process died of signal {-code}" if code < 0 else f"the process ended with code {code}")
        # The child's own alarm waits for native code to return; this does not.
        if time.monotonic() - self._heard > 2 * self._limit + 30:
            self._process.kill()
            self._process.join()
            return self._crashed("the process hangs")
        return False

    def _crashed(self, how: str) -> bool:
        kind, index = self._at
        for opset in self.task.opsets:
            if (kind, index, opset) not in self._done:
                dtype = str(self.task.dtype).removeprefix("torch.")
                self.rows.append(Row(self.task.operator, kind or "call", dtype, index, opset, "error", how, stage="process"))
        if not kind:
            return True  # it died before the first sample, and would again
        self._start()
        self.connection.send((self.task, self._at))
        return False


def _work(connection: Connection, method: Method, limit: float) -> None:
    torch.set_num_threads(1)
    # ONNX Runtime writes there what its exceptions, and so the rows, say as well.
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    while (given := connection.recv()) is not None:
        task, after = given
        _serve(connection, task, after, method, limit)
    # Leaves without running exit handlers, which belong to the parent.
    os._exit(0)


def _serve(connection: Connection, task: Task, after: tuple[str, int], method: Method, limit: float) -> None:
    arguments: dict[str, Any] = {"count": task.count, "kinds": task.kinds, "method": method, "after": after, "time_limit": limit}

    def started(kind: str, index: int) -> None:
        connection.send((kind, index))

    try:
        for row in sweep_operator(task.operator, task.dtype, task.opsets, started=started, **arguments):
            connection.send(row)
    except Exception as error:  # a fault of the sweep: told as an error, lest the operator vanish from the totals
        text = f"the sweep failed: {type(error).__name__}: {error}"
        connection.send(
            Row(task.operator, "call", str(task.dtype).removeprefix("torch."), -1, task.opsets[0], "error", text, stage="sweep")
        )
    connection.send(None)
