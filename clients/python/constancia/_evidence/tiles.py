"""A log's tree from its tiles, and its entries (C2SP tlog-tiles). Nothing that comes is trusted, and each file has a
maximum size."""

from __future__ import annotations

import hashlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from .forms import Invalid, document, integer, is_hash, require
from .log import node

WIDTH, HEIGHT, ENTRY_MAX = 256, 8, 384
ENTRY = {"chain_hash_last": is_hash, "first_sequence": integer(), "last_sequence": integer(), "seal_hash": is_hash,
         "tag": is_hash, "v": integer(1, 1)}
# Returns a file of at most that size in bytes; None: there is none.
Read = Callable[[str, int], Optional[bytes]]


class Entry(NamedTuple):
    index: int
    tag: str
    first: int
    last: int
    chain_hash: str


def path_of(level: str, index: int, width: int) -> str:
    """Returns the path of a tile: tile/0/x001/234.p/8."""
    groups = [f"{index % 1000:03d}"]
    while index >= 1000:
        index //= 1000
        groups.insert(0, f"x{index % 1000:03d}")
    return f"tile/{level}/{'/'.join(groups)}" + (f".p/{width}" if width < WIDTH else "")


def leaf_of(entry: bytes) -> bytes:
    return hashlib.sha256(b"\0" + entry).digest()


def split(count: int) -> int:
    """Returns the largest power of two below a number."""
    return 1 << (count - 1).bit_length() - 1


class Frontier:
    """A tree that grows: the roots of its complete subtrees, from left to right."""

    def __init__(self, size: int = 0, roots: Optional[List[bytes]] = None) -> None:
        self.size, self._roots = size, roots or []

    def add(self, leaf: bytes) -> None:
        bits = self.size
        while bits & 1:
            leaf, bits = node(self._roots.pop(), leaf), bits >> 1
        self._roots.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        if not self._roots:
            return hashlib.sha256().digest()
        *others, found = self._roots
        for left in reversed(others):
            found = node(left, found)
        return found


class Tree:
    """The tree of the first `size` entries. It keeps one tile of each level."""

    def __init__(self, read: Read, size: int) -> None:
        self._read, self.size = read, size
        self._kept: Dict[int, Tuple[int, bytes]] = {}

    def _file(self, level: str, index: int, width: int, most: int) -> bytes:
        """Reads a tile; a partial one that is gone is the beginning of the full one."""
        path = path_of(level, index, width)
        found = self._read(path, most)
        if found is None and width < WIDTH:
            found = self._read(path_of(level, index, WIDTH), most)
        require(found is not None, path, "the log does not have this file")
        assert found is not None
        return found

    def _tile(self, level: int, index: int) -> bytes:
        kept = self._kept.get(level)
        if kept and kept[0] == index:
            return kept[1]
        width = min(WIDTH, (self.size >> HEIGHT * level) - index * WIDTH)
        data = self._file(str(level), index, width, 32 * WIDTH)
        require(len(data) in (32 * width, 32 * WIDTH), path_of(str(level), index, width), "its size")
        self._kept[level] = (index, data)
        return data

    def _node(self, height: int, index: int) -> bytes:
        """Returns the root of a complete subtree."""
        level, inside = divmod(height, HEIGHT)
        first = index << inside
        tile, place = self._tile(level, first // WIDTH), first % WIDTH
        hashes = [tile[32 * one:32 * one + 32] for one in range(place, place + (1 << inside))]
        while len(hashes) > 1:
            hashes = [node(*hashes[one:one + 2]) for one in range(0, len(hashes), 2)]
        return hashes[0]

    def range_root(self, begin: int, count: int) -> bytes:
        """Returns the root over leaves, which begin where a subtree does."""
        if count & (count - 1) == 0:
            height = count.bit_length() - 1
            return self._node(height, begin >> height)
        half = split(count)
        return node(self.range_root(begin, half), self.range_root(begin + half, count - half))

    def consistency(self, old_size: int) -> List[bytes]:
        """Returns the hashes of a consistency proof, the first of which is a node of both trees."""
        def walk(size: int, begin: int, count: int) -> List[bytes]:
            if size == count:
                return [self.range_root(begin, count)]
            half = split(count)
            if size <= half:
                return [*walk(size, begin, half), self.range_root(begin + half, count - half)]
            return [*walk(size - half, begin + half, count - half), self.range_root(begin, half)]
        return walk(old_size, 0, self.size)

    def frontier(self, size: int) -> Frontier:
        """Returns the tree of the first `size` entries, to which later ones are added."""
        roots, begin = [], 0
        for height in range(size.bit_length() - 1, -1, -1):
            if size >> height & 1:
                roots.append(self._node(height, begin >> height))
                begin += 1 << height
        return Frontier(size, roots)

    def _bundle(self, index: int) -> Iterator[bytes]:
        """Returns the entries of a bundle that the tree has."""
        width = min(WIDTH, self.size - index * WIDTH)
        data = self._file("entries", index, width, WIDTH * (ENTRY_MAX + 2))
        where, at = path_of("entries", index, width), 0
        for _ in range(width):
            size = int.from_bytes(data[at:at + 2], "big")
            require(0 < size <= ENTRY_MAX and at + 2 + size <= len(data), where, "an entry is cut off or too large")
            yield data[at + 2:at + 2 + size]
            at += 2 + size

    def entries(self, begin: Frontier, root: bytes) -> Iterator[Entry]:
        """Returns the entries that the tree of `begin` does not have. At the end raises Invalid unless they lead to
        the root."""
        while begin.size < self.size:
            bundle = begin.size // WIDTH
            for index, text in enumerate(self._bundle(bundle), bundle * WIDTH):
                if index < begin.size:
                    continue  # the tree at the beginning has it
                begin.add(leaf_of(text))
                yield entry_of(text, index)
        require(begin.root() == root, "the log",
                f"its entries do not lead to the root of its checkpoint of {self.size} entries")


def entry_of(text: bytes, index: int) -> Entry:
    where = f"entry {index} of the log"
    try:
        given: Dict[str, Any] = document(text, ENTRY, where, ENTRY_MAX)
    except (ValueError, RecursionError):
        raise Invalid(f"{where}: it is not JSON") from None
    require(given["first_sequence"] <= given["last_sequence"], where, "its sequence numbers")
    return Entry(index, given["tag"], given["first_sequence"], given["last_sequence"], given["chain_hash_last"])
