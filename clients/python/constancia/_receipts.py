"""Receipts that keep themselves: a file that is appended to, or a sink of the caller's."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pathlib
import re
import threading
from typing import Any, Iterable, Iterator, List, Sequence, Union

from .models import Event

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Path = Union[str, "os.PathLike[str]"]
Sink = Any  # a callable that is given an Event, or an object with `write(event)`
# A file of this size is one that `constancia verify --receipt` takes: 10,000 receipts, 16 MiB.
ROTATE_BYTES = 4 << 20
TORN_MAX = 1 << 20  # bytes of a last line that are searched for its beginning


class ReceiptFile:
    """One receipt a line, each on the disk before the call that registered the event returns.

    Threads and processes may share the file: each line is one write, under a lock (on Windows the
    lock is between threads alone, and the file is not rotated). A line that a crash tore off is
    moved to `….torn` by the next write. Before the file exceeds `rotate_bytes` (0: never) it is
    renamed to `….1`, then `….2` and so on; the highest number is the newest, and no file is ever
    overwritten or removed."""

    def __init__(self, path: Path, rotate_bytes: int = ROTATE_BYTES) -> None:
        if rotate_bytes < 0:
            raise ValueError("rotate_bytes is 0 (no rotation) or more")
        self.path = pathlib.Path(path)
        self.rotate_bytes = rotate_bytes
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<constancia.ReceiptFile {self.path}>"

    def write(self, event: Event) -> None:
        """Appends the receipt of an event."""
        self.write_all([event])

    def write_all(self, events: Sequence[Event]) -> None:
        """Appends receipts with one write and one fsync, into one file."""
        lines = "".join(event.to_json() + "\n" for event in events).encode()
        if not lines:
            return
        with self._lock, self._opened() as file:
            self._append(file, lines)

    def files(self) -> List[pathlib.Path]:
        """Returns the files that there are, the oldest first."""
        return receipt_files(self.path)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Opens the file under its lock, repaired, and with room for another line."""
        while True:
            is_new = not self.path.exists()
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT
                           | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0), 0o600)
            try:
                if fcntl:
                    fcntl.flock(file, fcntl.LOCK_EX)
                if not self._is_current(file):
                    continue  # another process rotated it meanwhile
                if is_new:
                    self._sync_folder()
                self._repair(file)
                yield file
                return
            finally:
                os.close(file)

    def _is_current(self, file: int) -> bool:
        """Returns whether the path still names the open file; ends a rotation that a crash
        interrupted."""
        try:
            if not os.path.samestat(os.fstat(file), os.stat(self.path)):
                return False
        except FileNotFoundError:
            return False
        if os.fstat(file).st_nlink > 1:
            older = receipt_files(self.path)[:-1]
            if older and os.path.samestat(os.fstat(file), os.stat(older[-1])):
                os.unlink(self.path)
                self._sync_folder()
                return False
        return True

    def _append(self, file: int, lines: bytes) -> None:
        size = os.fstat(file).st_size
        if fcntl and self.rotate_bytes and size and size + len(lines) > self.rotate_bytes:
            self._rotate(file)
            with self._opened() as fresh:
                self._append(fresh, lines)
            return
        try:
            written = os.write(file, lines)
            if written != len(lines):
                raise OSError(errno.ENOSPC, f"only {written} of {len(lines)} bytes were written",
                              str(self.path))
            os.fsync(file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.ftruncate(file, size)
            raise

    def _rotate(self, file: int) -> None:
        number = max(map(number_of, receipt_files(self.path)), default=0) + 1
        while True:
            name = f"{self.path}.{number}"
            try:
                os.link(self.path, name)  # unlike a rename it replaces nothing
            except FileExistsError:
                number += 1
                continue
            except OSError:  # a file system without links
                if os.path.lexists(name):
                    number += 1
                    continue
                os.rename(self.path, name)
                break
            self._sync_folder()
            os.unlink(self.path)
            break
        self._sync_folder()

    def _repair(self, file: int) -> None:
        """Completes or removes a last line without its end, which a crash left."""
        size = os.fstat(file).st_size
        if not size or pread(file, 1, size - 1) == b"\n":
            return
        begin = max(0, size - TORN_MAX)
        tail = pread(file, size - begin, begin)
        torn = tail[tail.rfind(b"\n") + 1:]
        if len(torn) == TORN_MAX:
            raise ValueError(f"{self.path} is not a file of receipts")
        if is_receipt(torn):
            os.write(file, b"\n")
        else:
            beside = os.open(f"{self.path}.torn", os.O_WRONLY | os.O_APPEND | os.O_CREAT
                             | getattr(os, "O_BINARY", 0), 0o600)
            try:
                os.write(beside, torn + b"\n")
                os.fsync(beside)
            finally:
                os.close(beside)
            os.ftruncate(file, size - len(torn))
        os.fsync(file)
        self._sync_folder()

    def _sync_folder(self) -> None:
        if not fcntl:
            return  # Windows opens no folder
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def pread(file: int, size: int, at: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, size)


def is_receipt(line: bytes) -> bool:
    """Returns whether a line is whole: the end alone is missing."""
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and "event_id" in value


def number_of(path: pathlib.Path) -> int:
    """Returns the number of a rotated file, 0 of the current one."""
    found = re.fullmatch(r".*\.([1-9][0-9]*)", path.name)
    return int(found[1]) if found else 0


def receipt_files(path: Path) -> List[pathlib.Path]:
    """Returns a file of receipts and those that it was rotated to, the oldest first."""
    path = pathlib.Path(path)
    older = []
    with contextlib.suppress(FileNotFoundError):
        for one in path.parent.iterdir():
            if re.fullmatch(re.escape(path.name) + r"\.[1-9][0-9]*", one.name):
                older.append(one)
    return sorted(older, key=number_of) + ([path] if path.exists() else [])


def write_to(sink: Sink, events: Iterable[Event]) -> None:
    """Gives receipts to a sink: all at once where it can take them so."""
    given = list(events)
    if hasattr(sink, "write_all"):
        sink.write_all(given)
        return
    write = sink.write if hasattr(sink, "write") else sink
    for event in given:
        write(event)


def sink_of(receipts: Union[None, Path, Sink]) -> Sink:
    """Returns what takes receipts: a file for a path, else what was given."""
    if receipts is None:
        return None
    if isinstance(receipts, (str, os.PathLike)):
        return ReceiptFile(receipts)
    if not callable(getattr(receipts, "write", receipts)):
        raise TypeError("receipts is a path, a ReceiptFile, a callable or has `write(event)`")
    return receipts
