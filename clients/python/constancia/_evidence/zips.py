"""ZIP files of section 2's shape, and the streams of lines inside, read with bounded memory."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from typing import BinaryIO, Dict, Iterator, List, NamedTuple, Optional

from .forms import Invalid, require

PIECE = 65536
LINES_MAX, LINE_MAX = 100000, 262144
CENTRAL, LOCAL, END = "<4sHHHHHHIIIHHHHHII", "<4sHHHHHIIIHH", "<4sHHHHIIH"


def is_zip(source: BinaryIO) -> bool:
    """Returns whether a file is meant to be a ZIP file: it begins or ends as one."""
    size = source.seek(0, 2)
    source.seek(0)
    head = source.read(4)
    source.seek(max(0, size - 22))
    return head == b"PK\3\4" or size >= 22 and source.read(4) == b"PK\5\6"


class Entry(NamedTuple):
    name: str
    at: int
    size: int
    crc: int


class Zip:
    """An open file whose every byte has its place: other shapes are Invalid. The directory is read at
    once, contents are read when they are asked for."""

    def __init__(self, source: BinaryIO, where: str, entries_max: int) -> None:
        self._source = source
        self.where = where
        self.size = source.seek(0, 2)
        self.entries: Dict[str, Entry] = {}
        self._digests: Dict[str, str] = {}
        require(22 <= self.size <= 2**32 - 1, where, "its size")
        _, _, _, _, count, size, offset, _ = end = struct.unpack(END, self._bytes(self.size - 22, 22))
        require(end == (b"PK\5\6", 0, 0, count, count, size, offset, 0), where, "the end record")
        require(offset + size + 22 == self.size, where, "the place of the directory")
        require(1 <= count <= entries_max and size <= count * 146, where, "the number of entries")
        self._read_directory(self._bytes(offset, size), count, offset)

    def _read_directory(self, directory: bytes, count: int, offset: int) -> None:
        at = place = 0
        for _ in range(count):
            require(place + 46 <= len(directory), self.where, "the directory is cut off")
            central = struct.unpack(CENTRAL, directory[place:place + 46])
            crc, size, length = central[7], central[8], central[10]
            raw = directory[place + 46:place + 46 + length]
            require(re.fullmatch(rb"[A-Za-z0-9._/-]{1,100}", raw) and len(raw) == length, self.where,
                    "a name")
            name = raw.decode("ascii")
            require(name not in self.entries and not {"", ".", ".."} & set(name.split("/")), self.where,
                    f"the name {name}")
            common = (10, 0, 0, 0, 0x21, crc, size, size, length, 0)
            require(central == (b"PK\1\2", 0x030A) + common + (0, 0, 0, 0x81A40000, at), self.where,
                    f"the directory's record of {name}")
            begin = at + 30 + length
            require(begin + size <= offset, self.where, f"{name} is cut off")
            require(self._bytes(at, 30 + length) == struct.pack(LOCAL, b"PK\3\4", *common) + raw,
                    self.where, f"the local header of {name}")
            self.entries[name] = Entry(name, begin, size, crc)
            at, place = begin + size, place + 46 + length
        require(at == offset and place == len(directory), self.where, "bytes of no entry")

    def _bytes(self, at: int, size: int) -> bytes:
        self._source.seek(at)
        data = self._source.read(size)
        if len(data) != size:
            raise Invalid(f"{self.where}: cut off")
        return data

    def pieces(self, name: str) -> Iterator[bytes]:
        """Returns the content of an entry piece by piece; its CRC is compared at the end."""
        entry = self.entries[name]
        at, left, crc = entry.at, entry.size, 0
        while left:
            piece = self._bytes(at, min(PIECE, left))
            crc = zlib.crc32(piece, crc)
            at, left = at + len(piece), left - len(piece)
            yield piece
        require(crc == entry.crc, name, "the CRC")

    def read(self, name: str, most: int) -> bytes:
        """Returns the content of an entry, which is refused above the maximum size."""
        require(name in self.entries, name, "missing")
        require(self.entries[name].size <= most, name, "its size")
        return b"".join(self.pieces(name))

    def digest(self, name: str) -> str:
        """Returns the SHA-256 of an entry."""
        if name not in self._digests:
            running = hashlib.sha256()
            for piece in self.pieces(name):
                running.update(piece)
            self._digests[name] = running.hexdigest()
        return self._digests[name]

    def streams(self, stream: str) -> List[str]:
        """Returns the files of a stream, in order."""
        names: List[str] = []
        while (name := f"{stream}/{stream}-{len(names) + 1:06}.ndjson.gz") in self.entries:
            names.append(name)
        return names

    def lines(self, stream: str, skip: int = 0) -> Iterator[bytes]:
        """Returns the lines of a stream without their ends, without its first `skip` ones."""
        names = self.streams(stream)
        first = skip // LINES_MAX
        left = skip - first * LINES_MAX
        for number, name in enumerate(names[first:], first + 1):
            count = 0
            for line in split(inflated(self.pieces(name), name), name, LINE_MAX):
                count += 1
                require(count <= LINES_MAX, name, "too many lines")
                if left:
                    left -= 1
                else:
                    yield line
            require(count == LINES_MAX or count and number == len(names), name, "its number of lines")


def inflated(pieces: Iterator[bytes], where: str) -> Iterator[bytes]:
    """Returns what a gzip file of one member unpacks to, no more at once than there is need for."""
    inflater = zlib.decompressobj(31)
    for piece in pieces:
        require(not inflater.eof, where, "bytes after the gzip member")
        while piece:
            yield inflater.decompress(piece, PIECE)
            require(not inflater.unused_data, where, "bytes after the gzip member")
            piece = inflater.unconsumed_tail
    while not inflater.eof:
        more = inflater.decompress(b"", PIECE)
        require(more or inflater.eof, where, "the gzip file is cut off")
        yield more


def split(pieces: Iterator[bytes], where: str, line_max: int,
          lines_max: Optional[int] = None) -> Iterator[bytes]:
    """Returns lines without their ends, each of which has one."""
    rest, count = b"", 0
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            count += 1
            require(len(line) <= line_max and (lines_max is None or count <= lines_max), where,
                    "a line that is too long, or too many")
            yield line
        require(len(rest) <= line_max, where, "a line that is too long")
    require(not rest, where, "the last line has no end")
