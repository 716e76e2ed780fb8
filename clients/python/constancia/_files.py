"""Files that go and come piece by piece."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import secrets
from typing import Any, BinaryIO, Callable, ContextManager, Dict, Iterator, Optional, Tuple, Union

from ._http import Answer, Body, Request, Transport
from .errors import ApiError, DigestMismatch, UnexpectedAnswer

Path = Union[str, "os.PathLike[str]"]
File = Union[Path, BinaryIO]
PIECE = 65536
ALGORITHMS = {"sha-256": "sha256", "sha-512": "sha512"}


def new_hash(algorithm: str) -> Any:
    if algorithm not in ALGORITHMS:
        raise ValueError(f"the algorithm is sha-256 or sha-512, not {algorithm!r}")
    return hashlib.new(ALGORITHMS[algorithm])


def digest(file: File, algorithm: str = "sha-256") -> str:
    """The digest of a file in hexadecimal, read piece by piece: for `Client.register_digest`."""
    running = new_hash(algorithm)
    with opened(file) as source:
        for piece in iter(lambda: source.read(PIECE), b""):
            running.update(piece)
    return str(running.hexdigest())


def opened(file: File) -> ContextManager[BinaryIO]:
    """One that is given open stays open."""
    if isinstance(file, (str, os.PathLike)):
        return open(file, "rb")
    return contextlib.nullcontext(file)


class Form:
    """multipart/form-data of some texts and a file, from where the file stands when it begins. The
    file's SHA-256 is taken while it is sent."""

    def __init__(self, fields: Dict[str, str], source: BinaryIO, name: Optional[str]) -> None:
        if not source.seekable():
            raise ValueError("a file to be sent must be seekable: its length is told before, and a "
                             "further attempt reads it again")
        name = os.path.basename(name or str(getattr(source, "name", ""))) or "file"
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
            raise ValueError("a file's name has no control characters")
        boundary = secrets.token_hex(16)
        escaped = name.replace('"', "%22")
        head = "".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n'
                       f"{value}\r\n" for field, value in fields.items())
        head += (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; '
                 f'filename="{escaped}"\r\nContent-Type: application/octet-stream\r\n\r\n')
        self._head = head.encode()
        self._tail = f"\r\n--{boundary}--\r\n".encode()
        self._source = source
        self._start = source.tell()
        self._size = source.seek(0, os.SEEK_END) - self._start
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self.body = Body(len(self._head) + self._size + len(self._tail), self._pieces)
        self.sha256 = ""

    def _pieces(self) -> Iterator[bytes]:
        running, left = hashlib.sha256(), self._size
        self._source.seek(self._start)
        yield self._head
        while left:
            piece = self._source.read(min(PIECE, left))
            if not piece:
                raise OSError("the file became shorter while it was sent")
            running.update(piece)
            left -= len(piece)
            yield piece
        self.sha256 = running.hexdigest()
        yield self._tail


class Download:
    """A file that comes into `path` whole and checked, or not at all. What came before a lost
    connection stays beside it, under a name made of the digest, for the rest to be added."""

    def __init__(self, path: Path, expected: Optional[str], algorithm: str,
                 progress: Optional[Callable[[int, Optional[int]], None]]) -> None:
        self.path = pathlib.Path(path)
        self.expected = expected.lower() if expected else None
        self.algorithm = algorithm
        self.progress = progress
        mark = self.expected[:32] if self.expected else secrets.token_hex(16)
        self.part = self.path.with_name(f".{self.path.name}.{mark}.part")
        self.etag = ""  # of what came in this call

    def run(self, transport: Transport, request: Callable[[Dict[str, str]], Request]) -> str:
        """The digest. `request` makes one with more headers."""
        try:
            with open(os.open(self.part, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as part:
                found = self._complete(transport, request, part)
                part.flush()
                os.fsync(part.fileno())
            os.replace(self.part, self.path)
            return found
        finally:
            with contextlib.suppress(FileNotFoundError):
                if not self.expected or not self.part.stat().st_size:
                    self.part.unlink()

    def _complete(self, transport: Transport, request: Callable[[Dict[str, str]], Request],
                  part: BinaryIO) -> str:
        left_over = part.seek(0, os.SEEK_END) > 0
        if left_over and self._digest(part) == self.expected:
            return str(self.expected)
        try:
            return self._fetch(transport, request, part)
        except (DigestMismatch, ApiError) as error:
            part.truncate(0)
            # What an earlier call left may be spoilt: once more, from the beginning.
            if not left_over or isinstance(error, ApiError) and error.status != 416:
                raise
        return self._fetch(transport, request, part)

    def _fetch(self, transport: Transport, request: Callable[[Dict[str, str]], Request],
               part: BinaryIO) -> str:
        def prepare() -> Request:
            size = part.seek(0, os.SEEK_END)
            if not size:
                return request({})
            same = {"If-Range": self.etag} if self.etag else {}
            return request({"Range": f"bytes={size}-", **same})

        transport.perform(prepare, lambda answer: self._receive(answer, part))
        found = self._digest(part)
        if self.expected and found != self.expected:
            raise DigestMismatch(self.path.name, self.expected, found)
        return found

    def _receive(self, answer: Answer, part: BinaryIO) -> None:
        told = answer.headers.get("ETag", "")
        self.etag = told if told.startswith('"') else ""  # a weak one is for no range
        at, total = content_range(answer)
        if at > part.seek(0, os.SEEK_END):
            raise UnexpectedAnswer("another range came than was asked for")
        part.seek(at)
        part.truncate()
        for piece in iter(lambda: answer.read(PIECE), b""):
            part.write(piece)
            at += len(piece)
            if self.progress:
                self.progress(at, total)

    def _digest(self, part: BinaryIO) -> str:
        part.seek(0)
        return digest(part, self.algorithm)


def content_range(answer: Answer) -> Tuple[int, Optional[int]]:
    """Where what comes begins in the file, and how long the file is."""
    if answer.status != 206:
        return 0, answer.length
    given = re.fullmatch(r"bytes ([0-9]+)-[0-9]+/([0-9]+|\*)",
                         answer.headers.get("Content-Range", ""))
    if not given:
        raise UnexpectedAnswer("a range came that does not say which")
    return int(given[1]), None if given[2] == "*" else int(given[2])
