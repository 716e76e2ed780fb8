"""Events, segments and rounds of an archive (sections 4.3 to 5), in one pass with bounded memory."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import forms
from .archive import Archive
from .cms import Signed, Token
from .forms import Tree, along, canonical, decoded, document, later, members, require, sha256, text_of
from .log import Log

KIND = forms.one_of("qualified", "non_qualified", "development")
EVENT = {"chain": forms.IS_CHAIN, "channel_id": forms.is_text, "client_ref": forms.short(255),
         "config_hash": forms.is_hash, "config_version": forms.integer(), "event_id": forms.is_text,
         "hash": forms.is_text, "hash_alg": forms.one_of("sha-256", "sha-512"),
         "modality": forms.one_of("content", "hash_only"), "occurred_at": forms.or_null(forms.is_time),
         "previous_chain_hash": forms.is_hash, "received_at": forms.is_time, "sequence": forms.integer(),
         "v": forms.integer(1, 1)}
LEAF = {"chain_hash": forms.is_hash, "sequence": forms.integer()}
SEGMENT = {"path": forms.hashes(40), "round_id": forms.short(127), "seal": forms.is_object}
SEAL = {"chain": forms.IS_CHAIN, "chain_hash_before": forms.is_hash, "chain_hash_last": forms.is_hash,
        "channel_id": forms.is_text, "clock": forms.is_object, "count": forms.integer(1, 16384),
        "first_sequence": forms.integer(), "last_sequence": forms.integer(),
        "previous_seal_hash": forms.or_null(forms.is_hash),
        "previous_token_hash": forms.or_null(forms.is_hash), "segment_id": forms.is_text,
        "v": forms.integer(1, 1)}
CLOCK = {"max_error_us": forms.integer(0), "source": forms.is_text, "synchronized": forms.is_bool}
ROUND = {"gen_time": forms.is_time, "root": forms.is_hash, "round_id": forms.short(127),
         "tokens": forms.is_list}
TOKEN = {"authority": forms.is_text, "gen_time": forms.is_time, "kind": KIND,
         "request": forms.or_null(forms.base64_of(1024)), "token": forms.base64_of(65536)}
TOKEN_2 = {**TOKEN, "certificates": forms.ascending(64), "renewal": forms.or_null(forms.is_object),
           "revocations": forms.ascending(16)}
ROUND_1 = {**TOKEN, "root": forms.is_hash, "round_id": forms.short(127)}
RENEWAL = {"path": forms.hashes(40), "stamp": forms.integer()}
STAMP = {"authority": forms.is_text, "gen_time": forms.is_time, "kind": KIND,
         "renewal": forms.or_null(forms.is_object), "stamp": forms.integer(),
         "token": forms.base64_of(131072)}
OBJECT = {"der": forms.base64_of(32 << 20), "kind": forms.one_of("certificate", "crl", "ocsp"),
          "sha256": forms.is_hash}
DIGEST_SIZE = {"sha-256": 64, "sha-512": 128}
Judge = Callable[[Signed], None]


class Link(NamedTuple):
    """An event as a segment covers it; `event` is None where the archive has its chain hash alone."""

    sequence: int
    chain_hash: str
    event: Optional[Dict[str, Any]]


Reader = Callable[[Link], None]
Settler = Callable[[], None]


class Round(NamedTuple):
    """A line of rounds/, and the SHA-256 of its first token."""

    round_id: str
    root: str
    gen_time: str
    token_hash: str


class Stamp(NamedTuple):
    """An archive timestamp."""

    imprint: str
    gen_time: str


def events(archive: Archive) -> Iterator[Link]:
    """Returns the events of the range, each checked against the one before, its configuration and
    the manifest."""
    manifest, asked = archive.manifest, archive.manifest["requested_range"]
    sequence, previous, received = archive.first, manifest["previous_chain_hash"], ""
    latest, used = later(manifest["issued_at"]), set()
    for line in archive.zip.lines("events"):
        where = f"event {sequence}"
        event = document(line, EVENT, where)
        require(sequence <= archive.last, where, "after the range")
        require((event["chain"], event["channel_id"], event["sequence"], event["previous_chain_hash"])
                == (archive.mode, archive.channel_id, sequence, previous), where,
                "it does not continue the chain")
        require(received <= event["received_at"] <= latest, where, "received_at")
        require(asked["from"] is None or asked["from"] <= event["received_at"] < asked["to"], where,
                "it was received outside the range that was asked for")
        require(archive.configs.get(event["config_version"]) == (event["config_hash"], event["modality"]),
                where, "another configuration")
        require(event["modality"] == "hash_only" or event["hash_alg"] == "sha-256", where, "hash_alg")
        require(len(event["hash"]) == DIGEST_SIZE[event["hash_alg"]]
                and not event["hash"].strip("0123456789abcdef"), where, "hash")
        received, previous = event["received_at"], sha256(line)
        require(sequence > archive.first or previous == manifest["first_chain_hash"], where,
                "first_chain_hash")
        used.add(event["config_version"])
        yield Link(sequence, previous, event)
        sequence += 1
    require(sequence == archive.last + 1, "events", "events are missing at the end")
    require(previous == manifest["last_chain_hash"], "manifest.json", "last_chain_hash")
    require(used == set(archive.configs), "manifest.json", "a configuration that no event names")


def leaves(archive: Archive) -> Iterator[Link]:
    before = 0
    for line in archive.zip.lines("leaves"):
        leaf = document(line, LEAF, "leaves")
        sequence = leaf["sequence"]
        require(before < sequence and not archive.first <= sequence <= archive.last, "leaves", "the order")
        require(sequence != archive.first - 1
                or leaf["chain_hash"] == archive.manifest["previous_chain_hash"], "leaves",
                "the event before the range is another one")
        before = sequence
        yield Link(sequence, leaf["chain_hash"], None)


def links(archive: Archive) -> Iterator[Link]:
    """Returns leaves and events in the order of their sequence."""
    outside = leaves(archive)
    waiting: List[Link] = []
    for leaf in outside:
        if leaf.sequence > archive.last:
            waiting.append(leaf)
            break
        yield leaf
    yield from events(archive)
    yield from itertools.chain(waiting, outside)


# ---- rounds ----

class Rounds:
    """The rounds in order, with what their tokens name and what renewed them."""

    def __init__(self, archive: Archive, judge: Judge) -> None:
        self._archive, self._judge = archive, judge
        self._objects = self._read_objects()
        self._named: Set[str] = set()
        self._named_stamps: Set[int] = set()
        self._stamps: Dict[int, Stamp] = {}
        self._read_stamps()
        self._lines = archive.zip.lines("rounds")
        self.before: Optional[Round] = None
        self.current: Optional[Round] = None
        self.advance()

    def advance(self) -> None:
        """Goes on to the next line."""
        line = next(self._lines, None)
        require(line is not None, "rounds", "the round of a segment is missing")
        assert line is not None
        self.before, self.current = self.current, self._read(line)
        if self.before:
            require(self.before.round_id != self.current.round_id, "rounds", "one is repeated")
            require(self.before.gen_time <= later(self.current.gen_time), "rounds", "their order in time")

    def end(self) -> None:
        """Checks that nothing is left over."""
        require(next(self._lines, None) is None, "rounds", "one that no segment needs")
        require(self._named == set(self._objects), "validation", "an object that no token names")
        require(self._named_stamps == set(self._stamps), "renewals", "one that nothing names")

    def _read(self, line: bytes) -> Round:
        if self._archive.manifest["v"] == 1:
            value = document(line, ROUND_1, "rounds")
            tokens = [value]
        else:
            value = document(line, ROUND, "rounds")
            tokens = [members(one, TOKEN_2, value["round_id"]) for one in value["tokens"]]
        where = value["round_id"]
        require(1 <= len(tokens) <= 2 and tokens[0]["gen_time"] == value["gen_time"], where, "its tokens")
        require(value["gen_time"] <= self._archive.latest(), where, "after the archive was issued")
        for token in tokens:
            self._check_token(token, value["root"], where)
        return Round(where, value["root"], value["gen_time"], sha256(decoded(tokens[0]["token"])))

    def _check_token(self, given: Dict[str, Any], root: str, where: str) -> None:
        token = Token(decoded(given["token"]), where)
        require(token.imprint == root, where, "its token is over another root")
        require(text_of(token.time) == given["gen_time"], where, "gen_time is not its token's")
        for name, kinds in (("certificates", ("certificate",)), ("revocations", ("crl", "ocsp"))):
            for one in given.get(name, ()):
                require(self._objects.get(one) in kinds, where, "an object that its token names is missing")
                self._named.add(one)
        self._check_renewal(given, where)
        self._judge(token.signed)

    def _check_renewal(self, given: Dict[str, Any], where: str) -> None:
        """Section 4.9: the archive timestamp that a renewal names covers the token."""
        if given.get("renewal") is None:
            return
        renewal = members(given["renewal"], RENEWAL, where)
        stamp = self._stamps.get(renewal["stamp"])
        require(stamp, where, "its renewal is missing")
        assert stamp
        require(along(sha256(decoded(given["token"])), renewal["path"]) == stamp.imprint, where,
                "its renewal does not cover it")
        require(given["gen_time"] <= stamp.gen_time, where, "it was renewed before its time")
        self._named_stamps.add(renewal["stamp"])

    def _read_stamps(self) -> None:
        before = forms.INTEGER_MAX + 1
        for line in self._archive.zip.lines("renewals"):
            given = document(line, STAMP, "renewals")
            where = f"archive timestamp {given['stamp']}"
            require(given["stamp"] < before and len(self._stamps) < 65536, where, "the order")
            before = given["stamp"]
            token = Token(decoded(given["token"]), where)
            require(text_of(token.time) == given["gen_time"], where, "gen_time is not its token's")
            self._check_renewal(given, where)
            self._judge(token.signed)
            self._stamps[before] = Stamp(token.imprint, given["gen_time"])

    def _read_objects(self) -> Dict[str, str]:
        """Section 4.7. Returns the kind of each object by its SHA-256."""
        found: Dict[str, str] = {}
        before, size = "", 0
        for line in self._archive.zip.lines("validation"):
            given = document(line, OBJECT, "validation")
            der = decoded(given["der"])
            require(sha256(der) == given["sha256"] and given["sha256"] > before, "validation",
                    "a digest, or the order")
            before, size = given["sha256"], size + len(der)
            require(len(found) < 4096 and size <= 32 << 20, "validation", "too many objects")
            found[before] = given["kind"]
        return found


# ---- segments ----

class Summary:
    """What a segment's check needs of its events and leaves, which may be many and large."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.chain_hash = ""  # of the last one
        self.received = ""  # time of the last event, and so the latest; empty: there are leaves alone

    def add(self, link: Link) -> None:
        self.tree.add(link.chain_hash)
        self.chain_hash = link.chain_hash
        if link.event is not None:
            self.received = link.event["received_at"]


class Chain:
    """Leads every event of a live archive to its round."""

    def __init__(self, archive: Archive, judge: Judge) -> None:
        self._archive = archive
        self._rounds = Rounds(archive, judge)
        self._log = Log(archive) if archive.has_log else None
        self._seal_before: Optional[str] = None
        self._chain_hash: Optional[str] = None  # of the event before the next segment, if it is known
        self._next = 0
        self._history: Optional[Tuple[str, int, str]] = None  # its last seal, the next event, and its chain hash
        self.has_open_start = False  # the first segment names no token before, and may not have to

    def walk(self, read: Reader, settle: Settler) -> None:
        """Gives every event and leaf as it is read, and says when its segment is checked."""
        archive, source = self._archive, links(self._archive)
        for line in archive.zip.lines("history"):
            self._walk_history(line)
        for line in archive.zip.lines("seals"):
            self._segment(line, source, read)
            settle()
        require(self._seal_before, "seals", "there are none")
        require(next(source, None) is None, "seals", "they do not cover every event")
        self._rounds.end()
        if self._log:
            self._log.end()

    def _check_seal(self, seal: Dict[str, Any]) -> None:
        where = seal["segment_id"]
        members(seal["clock"], CLOCK, where)
        require((seal["chain"], seal["channel_id"]) == (self._archive.mode, self._archive.channel_id), where,
                "another chain's")
        require(seal["first_sequence"] <= seal["last_sequence"]
                and seal["count"] == seal["last_sequence"] - seal["first_sequence"] + 1, where, "count")

    def _walk_history(self, line: bytes) -> None:
        """Section 4.12: the seals from the first event of the chain on."""
        seal = document(line, SEAL, "history", 2048)
        self._check_seal(seal)
        expected = self._history or (None, 1, self._archive.genesis_hash)
        require((seal["previous_seal_hash"], seal["first_sequence"], seal["chain_hash_before"]) == expected,
                "history", "a seal that does not continue the one before")
        self._history = (sha256(line), seal["last_sequence"] + 1, seal["chain_hash_last"])

    def _segment(self, line: bytes, source: Iterator[Link], read: Reader) -> None:
        value = document(line, SEGMENT, "seals")
        bytes_ = canonical(value["seal"])
        require(len(bytes_) <= 2048, "seals", "the size of a seal")
        seal = members(value["seal"], SEAL, "seals")
        self._check_seal(seal)
        where = seal["segment_id"]
        begin, end = seal["first_sequence"], seal["last_sequence"]
        is_first = self._seal_before is None
        require(begin <= self._archive.first <= end if is_first else begin == self._next, where, "its place")
        self._check_before(seal, is_first, where)
        covered = Summary()
        for sequence in range(begin, end + 1):
            link = next(source, None)
            require(link and link.sequence == sequence, where, "an event that it covers is missing")
            assert link
            covered.add(link)
            read(link)
        require(covered.chain_hash == seal["chain_hash_last"], where, "chain_hash_last")
        require(not is_first or begin != self._archive.first
                or seal["chain_hash_before"] == self._archive.manifest["previous_chain_hash"], where,
                "chain_hash_before")
        seal_hash = sha256(bytes_)
        self._check_round(value, seal, covered, seal_hash, is_first)
        if self._log:
            self._log.check(seal, seal_hash)
        self._seal_before, self._next = seal_hash, end + 1
        self._chain_hash = covered.chain_hash

    def _check_before(self, seal: Dict[str, Any], is_first: bool, where: str) -> None:
        begin = seal["first_sequence"]
        require((seal["previous_seal_hash"] is None) == (begin == 1), where, "previous_seal_hash")
        require(is_first or seal["previous_seal_hash"] == self._seal_before, where, "previous_seal_hash")
        require(not is_first or not self._history or self._history
                == (seal["previous_seal_hash"], begin, seal["chain_hash_before"]), "history",
                "it does not lead to the first segment")
        require(begin > 1 or seal["chain_hash_before"] == self._archive.genesis_hash, where,
                "chain_hash_before")
        require(self._chain_hash in (None, seal["chain_hash_before"]), where, "chain_hash_before")

    def _check_round(self, value: Dict[str, Any], seal: Dict[str, Any], covered: Summary,
                     seal_hash: str, is_first: bool) -> None:
        where, steps = seal["segment_id"], 0
        while self._current().round_id != value["round_id"]:
            steps += 1
            require(steps <= (1 if is_first else 2), "rounds", "one that no segment needs")
            self._rounds.advance()
        current, before = self._current(), self._rounds.before
        covered.tree.add(seal_hash)
        top = along(covered.tree.root(), value["path"])
        require(top == current.root, where, "it does not lead to the root of its round")
        require(seal["previous_token_hash"] == (before.token_hash if before else None), where,
                "previous_token_hash")
        if is_first and not before and seal["first_sequence"] > 1:
            self.has_open_start = True
        require(covered.received <= later(current.gen_time), where,
                "an event was received after its timestamp")

    def _current(self) -> Round:
        assert self._rounds.current
        return self._rounds.current


def walk(archive: Archive, judge: Judge, read: Reader, settle: Settler) -> bool:
    """Gives every event and leaf of an archive to `read` as it is read, none of which waits in memory, and
    calls `settle` when all of these are checked. Returns whether the archive's start was left open."""
    if archive.mode == "test":
        for link in events(archive):
            read(link)
            settle()
        return False
    chain = Chain(archive, judge)
    chain.walk(read, settle)
    return chain.has_open_start
