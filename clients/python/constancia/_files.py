"""Files that go and come piece by piece."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import secrets
import stat
from typing import Any, BinaryIO, Callable, ContextManager, Dict, Iterator, Optional, Tuple, Union

from ._http import Answer, Body, Request, Transport
from .errors import ApiError, ConnectionFailed, DigestMismatch, UnexpectedAnswer

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Path = Union[str, "os.PathLike[str]"]
File = Union[Path, BinaryIO]
PIECE = 65536
DOWNLOAD_MAX = 1 << 32  # bytes: more than any file that the service issues
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
    connection stays beside it, under a name made of the digest, for the rest to be added: by one
    at a time, which holds a lock on it; whoever else wants the same file meanwhile fetches it
    under a name of its own, as all do where there are no such locks."""

    def __init__(self, path: Path, expected: Optional[str], algorithm: str,
                 progress: Optional[Callable[[int, Optional[int]], None]], most: int) -> None:
        self.most = most  # bytes
        self.path = pathlib.Path(path)
        self.expected = expected.lower() if expected else None
        self.algorithm = algorithm
        self.progress = progress
        self.etag = ""  # of what came in this call

    def run(self, transport: Transport, request: Callable[[Dict[str, str]], Request]) -> str:
        """The digest. `request` makes one with more headers."""
        name = self._beside(self.expected[:32]) if self.expected else None
        part = claimed(name) if name else None
        resumable = part is not None
        if not name or not part:
            name = self._beside(secrets.token_hex(16))
            part = open(name, "x+b")
        with part:
            try:
                found = self._complete(transport, request, part)
                part.flush()
                os.fsync(part.fileno())
                if not fcntl:
                    part.close()  # Windows renames no file that is open
                os.replace(name, self.path)  # under the lock
                return found
            except BaseException:
                if not resumable or not part.seek(0, os.SEEK_END):
                    with contextlib.suppress(OSError):
                        name.unlink()
                raise

    def _beside(self, mark: str) -> pathlib.Path:
        return self.path.with_name(f".{self.path.name}.{mark}.part")

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
            # Without a digest only the tag tells that the rest is of the same file.
            if not size or not (self.etag or self.expected):
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
        tag = told if told.startswith('"') else ""  # a weak one is for no range
        at, total = content_range(answer)
        if total is not None and total > self.most:
            raise self._too_long(f"it has {total} bytes")
        if at > part.seek(0, os.SEEK_END):
            raise UnexpectedAnswer("another range came than was asked for")
        if at and not self.expected and not (tag and tag == self.etag):
            raise UnexpectedAnswer("a range of another file came than was asked for")
        self.etag = tag
        part.seek(at)
        part.truncate()
        for piece in iter(lambda: answer.read(PIECE), b""):
            if total is not None and at + len(piece) > total:
                raise UnexpectedAnswer("the answer is longer than the file")
            if at + len(piece) > self.most:
                part.truncate(0)
                raise self._too_long("more came, without a length")
            part.write(piece)
            at += len(piece)
            if self.progress:
                self.progress(at, total)
        if total is not None and at < total:
            raise ConnectionFailed(f"{self.path.name}: the answer ended before the file did")

    def _too_long(self, what: str) -> UnexpectedAnswer:
        return UnexpectedAnswer(f"{self.path.name}: {what}, and {self.most} bytes are the most that it may have "
                                "(as the service has on record for it, or `download_max`)")

    def _digest(self, part: BinaryIO) -> str:
        part.seek(0)
        return digest(part, self.algorithm)


def content_range(answer: Answer) -> Tuple[int, Optional[int]]:
    """Where what comes begins in the file, and how long the file is."""
    if answer.status != 206:
        return 0, answer.length
    given = re.fullmatch(r"bytes ([0-9]+)-[0-9]+/([0-9]+)",
                         answer.headers.get("Content-Range", ""))
    if not given:
        raise UnexpectedAnswer("a range came that does not say which, and of how much")
    return int(given[1]), int(given[2])


def claimed(name: pathlib.Path) -> Optional[BinaryIO]:
    """The part of this name, made if need be, locked until it is closed; None if another has it, or
    if it may be somebody else's: others can put what they like into a folder that is shared."""
    if not fcntl:
        return None
    try:
        part = open(os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666),
                    "r+b")
    except OSError:
        return None
    with contextlib.suppress(OSError):
        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(part.fileno())
        # The name may be that of another file by now: who had the lock has renamed this one.
        if (stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1
                and os.path.samestat(found, os.stat(name, follow_symlinks=False))):
            return part
    part.close()
    return None
