"""Writes the finished model: whole or not at all, and at the price of copying its bytes once to disk.

What is in the file depends on the model alone: exporting it again gives the same bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from onnx_exporter._protobuf import MAX_MESSAGE, Layout
from onnx_exporter.errors import ArgumentError, WriteError


@dataclasses.dataclass(frozen=True)
class WrittenFile:
    """What was written. Added in 0.1.

    Attributes:
        path: The model file, as asked for.
        external_path: The file beside it that holds the weights, or None if they are in the model file.
        size: Bytes of the model file.
        data_size: Bytes of the external data file; 0 if there is none.
    """

    path: str
    external_path: str | None
    size: int
    data_size: int


def write_model(layout: Layout, path: str | os.PathLike[str], *, external_data: bool | None = None) -> WrittenFile:
    """Writes a model that is laid out as one file to `path`.

    The files are written under temporary names in the same folder and renamed at the end, so on any
    failure what was there stays as it was. A symbolic link is followed. A path that is not a regular
    file, such as ``/dev/stdout``, is written to directly.

    Args:
        layout: The model, laid out by `lay_out`.
        path: The model file.
        external_data: True puts every tensor of 1 KiB or more into ``<path>.data``, False puts
            all into the model file, None decides by size: a file ends at 2 GB.

    Raises:
        ArgumentError: If one file is asked for and cannot hold the model.
        WriteError: If the files cannot be written.
    """
    target = Path(path)
    check_target(path)
    data_path = target.with_name(target.name + ".data")
    layout = _choose(layout, data_path.name, external_data)
    if target.exists() and not target.is_file():
        if layout.data_size:
            raise ArgumentError(
                f"'{target}' is not a regular file, so no external data can stand beside it; give the path of a file"
            )
        with _explained(target, layout.size), target.open("wb") as stream:
            _write_all(stream, layout.model_chunks())
        return WrittenFile(str(target), None, layout.size, 0)
    has_data = layout.data_size > 0
    with contextlib.ExitStack() as stack:
        data_temporary = stack.enter_context(_temporary(data_path)) if has_data else None
        model_temporary = stack.enter_context(_temporary(target))
        if data_temporary is not None:
            with _explained(data_path, layout.data_size):
                if data_path.is_dir():
                    raise IsADirectoryError(errno.EISDIR, "is a directory", str(data_path))
                _write_new(data_temporary, layout.data_chunks(), data_path)
        with _explained(target, layout.size):
            _write_new(model_temporary, layout.model_chunks(), target)
            with _replaced(data_temporary, data_path) if data_temporary is not None else contextlib.nullcontext():
                model_temporary.replace(target.resolve())
    return WrittenFile(str(target), str(data_path) if has_data else None, layout.size, layout.data_size)


def write_model_to_stream(layout: Layout, stream: IO[bytes]) -> int:
    """Writes a model that is laid out as one file, weights included, to an open binary stream and returns the number of bytes.

    Raises:
        ArgumentError: If the model is too large for one file.
        WriteError: If a weight cannot be read. An error of the stream itself is raised as it is.
    """
    layout = _choose(layout, "", False)
    _write_all(stream, layout.model_chunks())
    return layout.size


def check_target(path: str | os.PathLike[str]) -> None:
    """Checks that a model can be written to `path`, so that a wrong path is found before the work is done.

    Raises:
        WriteError: If the folder is missing or not writable, or the path is a folder.
    """
    target, text = Path(path), os.fspath(path)
    with _explained(target, 0):
        # Path drops a separator at the end, which says that a folder is meant.
        if target.is_dir() or text.endswith(("/", os.sep)):
            raise IsADirectoryError(errno.EISDIR, "is a directory", text)
        if target.exists() and not target.is_file():
            return
        with _temporary(target) as temporary:
            _write_new(temporary, ())


def _choose(layout: Layout, location: str, external_data: bool | None) -> Layout:
    """The layout with the weights inside or outside, as asked or as the size demands."""
    if external_data or (external_data is None and layout.size > MAX_MESSAGE):
        layout = layout.with_external_data(location)
        if layout.size > MAX_MESSAGE:
            raise WriteError(
                f"the model without its weights has {layout.size:,} bytes, and protobuf holds at most {MAX_MESSAGE:,}; "
                "export it in parts"
            )
    elif layout.size > MAX_MESSAGE:
        raise ArgumentError(
            f"the model has {layout.size:,} bytes and one file holds at most {MAX_MESSAGE:,} (protobuf's limit); "
            "give the path of a file and set external_data=True, or leave it out, to have the weights in a file beside it"
        )
    return layout


def _write_new(path: Path, chunks: Iterable[bytes | memoryview], replaces: Path | None = None) -> None:
    """Creates `path`, which must not exist, with the mode of the file that it replaces, or else that of any new file."""
    with path.open("xb") as stream:
        if replaces is not None and replaces.is_file():
            path.chmod(stat.S_IMODE(replaces.stat().st_mode))
        _write_all(stream, chunks)


def _write_all(stream: IO[bytes], chunks: Iterable[bytes | memoryview]) -> None:
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest.nbytes:
            # An unbuffered stream may take less than all; one that answers None took it all.
            count: Any = stream.write(rest)
            rest = rest[rest.nbytes if count is None else count :]


def _temporary_name(path: Path) -> Path:
    """A fresh name in the folder where `path` really is."""
    return path.resolve().with_name(f".onnx-exporter-{secrets.token_hex(8)}.tmp")


@contextlib.contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A fresh name in the folder of `path`; a file left under it is removed."""
    name = _temporary_name(path)
    try:
        yield name
    finally:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            name.unlink()


@contextlib.contextmanager
def _replaced(temporary: Path, path: Path) -> Iterator[None]:
    """Puts `temporary` in the place of `path`, and what was there back again if the body fails."""
    final, backup = path.resolve(), _temporary_name(path)
    had_one = final.exists()
    try:
        if had_one:
            final.replace(backup)
        temporary.replace(final)
        yield
    except BaseException:
        if backup.exists():
            backup.replace(final)
        elif not had_one:
            final.unlink(missing_ok=True)
        raise
    if had_one:
        # Windows does not remove a file that another process has mapped; the new files are in place all the same.
        with contextlib.suppress(PermissionError):
            backup.unlink()


@contextlib.contextmanager
def _explained(path: Path, size: int) -> Iterator[None]:
    """Turns an error of the operating system into a `WriteError` that says what to do."""
    try:
        yield
    except WriteError as error:
        raise WriteError(f"cannot write '{path}': {error}") from error
    except OSError as error:
        folder = str(path.resolve().parent)
        full = f"there is no room for its {size:,} bytes in {folder!r}; free some space or write elsewhere"
        denied = f"there is no permission to write in {folder!r}; change the folder's permissions or write elsewhere"
        advice = {
            errno.ENOENT: f"the folder {folder!r} does not exist; create it first",
            errno.ENOTDIR: f"{folder!r} is not a folder; correct the path",
            errno.EISDIR: "it is a folder; add a file name, such as 'model.onnx'",
            errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
            errno.EACCES: denied,
            errno.EPERM: denied,
            errno.EROFS: denied,
            errno.ENOSPC: full,
            errno.EDQUOT: full,
            errno.EFBIG: full,
        }.get(error.errno or 0, str(error))
        raise WriteError(f"cannot write '{path}': {advice}. What was there before is untouched.") from error
