"""Progress on work that takes over a second; silent where standard error is no terminal."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.status import Status

_DELAY = 1.0


class StageDisplay:
    """Shows the running stage with a spinner once a second has passed.

    Calling it with the name of a stage changes what it shows.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status = Status("starting", console=self._console)
        self._timer = threading.Timer(_DELAY, self._status.start)
        self._timer.daemon = True

    def __call__(self, stage: str) -> None:
        self._status.update(stage)

    def __enter__(self) -> StageDisplay:
        if self._console.is_terminal:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._timer.cancel()
        if self._timer.ident is not None:
            self._timer.join()
        self._status.stop()


def table_console() -> Console:
    """Returns a console for tables; where standard output is no terminal, no cell is folded."""
    console = Console()
    return console if console.is_terminal else Console(width=500)
