"""The places of segments in the log, checkpoints/ and log/: inclusion and consistency proofs (RFC 9162, section
2.1), and the checkpoints to which they lead (C2SP tlog-checkpoint). Nothing here checks who signed these."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import forms
from .archive import Archive
from .forms import canonical, decoded, document, require, sha256

PATH_MAX = 63
SIZE_MAX = 2**53
NOTE_MAX, SIGNATURES_MAX, NAME_MAX, SIGNATURE_MAX = 65536, 64, 255, 21840
PLACE = {"index": forms.or_null(forms.integer(0)), "path": forms.hashes(PATH_MAX),
         "size": forms.or_null(forms.integer())}
CHECKPOINT = {"consistency": forms.hashes(PATH_MAX), "note": forms.is_text}
CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
SIZE = re.compile("0|[1-9][0-9]{0,15}")
# Names have neither white space of Unicode nor control characters nor plus signs.
NAME = "[^\x00-\x20\x7f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000+]+"
DIGIT = "[A-Za-z0-9+/]"
# A dash, a name, and base64 of a key's id, 4 bytes, and more.
SIGNATURE = re.compile(f"\u2014 ({NAME}) ({DIGIT}{{6}}(?:{DIGIT}{{4}})*(?:{DIGIT}{{2}}|{DIGIT}=|{DIGIT}{{4}}==))")


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


class Climb:
    """The way from a node of a tree to its root: to which side each hash of a proof belongs."""

    def __init__(self, index: int, size: int) -> None:
        self._node, self._last = index, size - 1

    def skip_left(self) -> None:
        """Goes up to the first node that is not the right one of two."""
        while self._node & 1:
            self._up()

    @property
    def is_at_root(self) -> bool:
        return self._last == 0

    def is_left(self) -> bool:
        """Goes up, and returns whether the next hash is on the left."""
        found = bool(self._node & 1) or self._node == self._last
        while found and not self._node & 1 and self._node:
            self._up()
        self._up()
        return found

    def _up(self) -> None:
        self._node, self._last = self._node >> 1, self._last >> 1


def is_included(leaf: bytes, index: int, size: int, path: List[bytes], root: bytes) -> bool:
    """Returns whether a leaf has that index in a tree (section 2.1.3.2)."""
    climb = Climb(index, size)
    for one in path:
        if climb.is_at_root:
            return False
        leaf = node(one, leaf) if climb.is_left() else node(leaf, one)
    return climb.is_at_root and leaf == root


def roots_of(old_size: int, size: int, path: List[bytes]) -> Optional[Tuple[bytes, bytes]]:
    """Returns the roots of a tree and of a larger one to which the hashes of a consistency proof lead, the first
    of which is a node of both (section 2.1.4.2); None: it has another number of hashes."""
    climb = Climb(old_size - 1, size)
    climb.skip_left()
    old = new = path[0]
    for one in path[1:]:
        if climb.is_at_root:
            return None
        if climb.is_left():
            old, new = node(one, old), node(one, new)
        else:
            new = node(new, one)
    return (old, new) if climb.is_at_root else None


def is_consistent(old_size: int, old_root: bytes, size: int, root: bytes, path: List[bytes]) -> bool:
    """Returns whether a tree begins with a smaller one."""
    if old_size == 0:
        return not path and old_root == hashlib.sha256().digest()
    if not path:
        return False
    if old_size & (old_size - 1) == 0:
        path = [old_root, *path]
    return roots_of(old_size, size, path) == (old_root, root)


class Checkpoint(NamedTuple):
    origin: str
    size: int
    root: bytes
    consistency: List[bytes]  # with the next one


def path_of(given: List[str]) -> List[bytes]:
    return list(map(bytes.fromhex, given))


def read_checkpoint(line: bytes) -> Checkpoint:
    where = "checkpoints"
    given = document(line, CHECKPOINT, where)
    note = read_note(given["note"], where)
    return Checkpoint(note.origin, note.size, note.root, path_of(given["consistency"]))


class Note(NamedTuple):
    """A signed checkpoint."""

    text: str  # that is signed
    signatures: List[Tuple[str, bytes]]  # names of keys, and an id with a signature
    origin: str
    size: int
    root: bytes


def read_note(note: str, where: str) -> Note:
    require(len(note.encode()) <= NOTE_MAX and not CONTROL.search(note), where, "a note's text")
    text, separator, signatures = note.rpartition("\n\n")
    require(separator and signatures.endswith("\n"), where, "a note without signatures")
    signed = signatures[:-1].split("\n")
    require(len(signed) <= SIGNATURES_MAX, where, "too many signatures")
    found_signatures = []
    for one in signed:
        found = SIGNATURE.fullmatch(one)
        require(found and len(found[1].encode()) <= NAME_MAX and len(found[2]) <= SIGNATURE_MAX, where,
                "the line of a signature")
        assert found
        found_signatures.append((found[1], base64.b64decode(found[2])))
    lines = text.split("\n")
    require(len(lines) >= 3 and all(lines[3:]), where, "the lines of a checkpoint")
    origin, size, root = lines[:3]
    require(1 <= len(origin.encode()) <= NAME_MAX, where, "the origin")
    require(SIZE.fullmatch(size) and int(size) <= SIZE_MAX, where, "the size of a tree")
    hash_ = decoded(root)
    require(len(hash_) == 32, where, "the root of a tree")
    return Note(text + "\n", found_signatures, origin, int(size), hash_)


class Log:
    """Goes along the checkpoints as segments need them, and holds one."""

    def __init__(self, archive: Archive) -> None:
        self._places, self._lines = archive.zip.lines("log"), archive.zip.lines("checkpoints")
        self._tag = sha256(f"constancia-tag/1\n{archive.channel_id}\n{archive.mode}".encode())
        self._current: Optional[Checkpoint] = None

    def check(self, seal: Dict[str, Any], seal_hash: str) -> None:
        """Checks the place of the next segment."""
        where = seal["segment_id"]
        line = next(self._places, None)
        require(line is not None, where, "its place in the log is missing")
        assert line is not None
        place = document(line, PLACE, "log")
        index, size, path = place["index"], place["size"], place["path"]
        require((index is None) == (size is None), "log", "an index or a size alone")
        if size is None:
            require(not path, "log", "a path of a segment that is not in the log")
            return
        require(index < size, "log", "an index beyond its tree")
        while self._current is None or self._current.size < size:
            require(self._advance(), where, "its checkpoint is missing")
        require(self._current.size == size, where, "its checkpoint is missing")
        entry = canonical({**{name: seal[name] for name in ("chain_hash_last", "first_sequence", "last_sequence")},
                           "seal_hash": seal_hash, "tag": self._tag, "v": 1})
        leaf = hashlib.sha256(b"\0" + entry).digest()
        require(is_included(leaf, index, size, path_of(path), self._current.root), where,
                "it is not in the log at its place")

    def end(self) -> None:
        """Checks the checkpoints that no segment needs, and that nothing is left over."""
        require(next(self._places, None) is None, "log", "a place of no segment")
        while self._advance():
            pass
        require(self._current and not self._current.consistency, "checkpoints", "the last one is consistent with none")

    def _advance(self) -> bool:
        line = next(self._lines, None)
        if line is None:
            return False
        before, found = self._current, read_checkpoint(line)
        if before:
            require(found.origin == before.origin, "checkpoints", "two logs")
            require(found.size > before.size, "checkpoints", "their order")
            require(is_consistent(before.size, before.root, found.size, found.root, before.consistency), "checkpoints",
                    f"those of {before.size} and {found.size} entries are not of one history")
        self._current = found
        return True
