"""Follows the public log of a service's segments: that it only grows, and that it agrees with one's own receipts.

    watch = watch_log("https://constancia.example/log", key, receipts="receipts.ndjson", state=state)
    assert watch, watch.findings
    state = watch.state
"""

from __future__ import annotations

import contextlib
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from . import _calls
from ._calls import CallEnded
from ._evidence import notes
from ._evidence.forms import Invalid, integer, is_hash, is_list, is_text, members
from ._evidence.log import NOTE_MAX, Note, read_note, roots_of
from ._evidence.promises import IS_CHANNEL, Promise, Promises, text_of
from ._evidence.receipts import NotUsable
from ._evidence.tiles import Entry, Frontier, Tree
from ._http import Answer, Request, Retry, Transport
from ._version import VERSION
from .errors import ApiError, ConstanciaError, LogNotValid
from .verification import Receipts, each_receipt

FINDINGS_MAX = 100
SHRUNKEN_READS = 3  # a cache may still serve an earlier checkpoint
GRACE = 60_000_000  # from a sealed segment to a checkpoint with it, and differences of clocks
TOLERANCE = 300_000_000  # of the clocks of witnesses
STATE = {"chains": is_list, "note": is_text, "v": integer(1, 2)}
CHAIN = {"channel_id": is_text, "compared": is_hash, "entries": integer(0), "first_sequence": integer(0),
         "last_sequence": integer(0), "tag": is_hash}
# What is not checked, or was not given. The client for TypeScript uses the same words.
SIGNATURES = "signatures: python3-cryptography is not installed"
LOG_KEY = "signature: the checkpoint is not signed by the given key of the log"
QUORUM = "witnesses: too few of the given ones cosigned the checkpoint"
WITNESSES_NOT_GIVEN = "witnesses: not given"
RECEIPTS_NOT_GIVEN = "receipts: not given"


@dataclass(frozen=True)
class LogFinding:
    """Something that the log, or the service, must not do."""

    kind: str  # as `constancia log watch` has it (docs/verify/log-watch.md)
    what: str


@dataclass(frozen=True)
class LogWatch:
    """What was found. It is true only if everything that was asked for was checked, and nothing is wrong."""

    findings: List[LogFinding]  # the first 100
    finding_count: int
    not_checked: List[str]  # what keeps it from being fine although nothing was found
    not_given: List[str]
    state: Optional[Mapping[str, Any]] = field(repr=False)  # for the next call: the old one if something is wrong
    origin: str
    size: int
    signed: bool
    quorum: bool
    missing_witnesses: List[str]
    witnessed_at: Optional[str]  # the latest cosignature of a given witness
    complete: bool  # entries and receipts were compared
    first: bool  # no state was given: the whole log was read
    new_entries: int
    own_entries: int  # of the watched channels, in the whole log
    receipts: int  # that were compared
    covered: int  # of events that an entry has
    waiting: int  # not covered, and nothing that was promised is overdue
    overdue: int  # broken promises, of which no quorum of witnesses shows that the checkpoint is later
    other_log: int  # not covered, and promised in another log
    without_promise: int  # not covered, and promised for no time within 24 hours
    before_log: int  # of events before the first entry of their chain; those that promise nothing: with begun_later
    begun_later: int  # chains whose first entry is not that of their first event, which no earlier call had found
    test_receipts: int  # ignored: the log has live chains only
    false_receipts: int  # with a signature that does not verify: they promise nothing
    notes: Tuple[str, ...] = field(repr=False)  # the signed checkpoints: keep them if something is wrong

    @property
    def verdict(self) -> str:
        """fine; wrong; or not_established: nothing is wrong, but something could not be checked."""
        return "wrong" if self.finding_count else "not_established" if self.not_checked else "fine"

    def __bool__(self) -> bool:
        return self.verdict == "fine"


def watch_log(url: str, key: str, channels: Iterable[str] = (), *, receipts: Optional[Receipts] = None,
              state: Optional[Mapping[str, Any]] = None, witnesses: Iterable[str] = (), quorum: Optional[int] = None,
              timeout: float = 60.0, retry: Retry = Retry(),
              context: Optional[ssl.SSLContext] = None) -> LogWatch:
    """Checks the log at an address once, as `constancia log watch --once` does, without a key of the interface.

    key: the log's verifier key, obtained once and compared with that of others. channels: the `channel_id` of those of
    which there may be no receipts. receipts: as for `verify_archive`; their channels are watched. state: that of the
    last call, or the file of the program's `--state`, as plain data for JSON; None: the first call, which reads the
    whole log.
    witnesses, quorum: verifier keys, and how many of them must have cosigned (all by default).

    Without python3-cryptography no signature is checked, and the result is never fine. Raises LogNotValid when the
    log's files contradict each other or their signature is false, ValueError for a wrong argument, and the errors of
    requests."""
    with contextlib.closing(Transport(timeout, context, retry)) as transport:
        return watch(transport, url, {"User-Agent": f"constancia-python/{VERSION}"}, key, channels, receipts, state,
                     witnesses, quorum)


def watch(transport: Transport, url: str, headers: Mapping[str, str], key: str, channels: Iterable[str],
          receipts: Optional[Receipts], state: Optional[Mapping[str, Any]], witnesses: Iterable[str],
          quorum: Optional[int]) -> LogWatch:
    """Checks a log over the connections of a client."""
    channels = list(channels)
    if not channels and receipts is None:
        raise ValueError("channels or receipts are missing: without them no entry is known to be yours")
    run = Watch(reader(transport, url, headers), key, channels, state, list(witnesses), quorum)
    try:
        return run.watch(receipts)
    except Invalid as reason:
        raise LogNotValid(str(reason)) from None
    finally:
        run.promises.close()


def reader(transport: Transport, url: str, headers: Mapping[str, str]) -> Callable[[str, int], Optional[bytes]]:
    """Returns what reads a file of a log."""
    base = url.rstrip("/")

    def read(path: str, most: int) -> Optional[bytes]:
        # A cache on the way may keep an old checkpoint, with which promises look broken.
        sent = {**headers, "Cache-Control": "no-cache"} if path == "checkpoint" else headers

        def take(answer: Answer) -> bytes:
            pieces, size = [], 0
            while size <= most:
                piece = answer.read(most + 1 - size)
                if not piece:
                    return b"".join(pieces)
                pieces.append(piece)
                size += len(piece)
            raise LogNotValid(f"{path}: it has more than {most} bytes")
        try:
            return transport.perform(lambda: Request("GET", f"{base}/{path}", sent), take)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
    return read


def key_of(vkey: str, kind: int) -> notes.NoteKey:
    try:
        return notes.read_key(vkey, kind)
    except Invalid as reason:
        raise ValueError(str(reason)) from None


class Span:
    """The events that the entries of a chain cover."""

    def __init__(self, first: int = 0, last: int = 0, entries: int = 0) -> None:
        self.first, self.last, self.entries = first, last, entries

    def add(self, entry: Entry) -> str:
        """Adds the chain's next entry; returns what is wrong with it."""
        wrong = "gap"
        if not self.entries or entry.first == self.last + 1:
            wrong = ""
        elif entry.first <= self.last and entry.last >= self.first:
            wrong = "overlap"
        self.first = min(self.first, entry.first) if self.entries else entry.first
        self.last = max(self.last, entry.last)
        self.entries += 1
        return wrong


class Watch:
    """One check: what was found so far."""

    def __init__(self, read: Callable[[str, int], Optional[bytes]], key: str, channels: List[str],
                 state: Optional[Mapping[str, Any]], witnesses: List[str], quorum: Optional[int]) -> None:
        self._read, self._begun = read, int(time.time() * 1_000_000)
        self._key = key_of(key, notes.ED25519)
        self._witnesses = [key_of(one, notes.COSIGNATURE) for one in witnesses]
        self._quorum = len(witnesses) if quorum is None else quorum
        if not 0 <= self._quorum <= len(witnesses) or len({one.key for one in self._witnesses}) < len(witnesses):
            raise ValueError("quorum is a number up to that of the witnesses, each of which has another key")
        if any(one.key == self._key.key for one in self._witnesses):
            raise ValueError("the log's own key is that of no witness")
        if not all(map(IS_CHANNEL, channels)):
            raise ValueError("channels has the channel_id of each channel")
        self._state = state
        self._known, self._old = self._take_state(state) if state is not None else ({}, None)
        self.promises = Promises(channels)
        self._channels = self.promises.channels
        self._spans: Dict[str, Span] = {}
        self._findings: List[LogFinding] = []
        self._finding_count = 0
        self._not_checked: List[str] = [] if notes.HAS_ED25519 else [SIGNATURES]
        self._new_entries = self._receipts = self._covered = self._waiting = 0
        self._overdue = self._other_log = self._begun_later = self._without_promise = self._before_log = 0
        self._times: List[int] = []  # of cosignatures of given witnesses
        self._is_complete = False

    # ---- the state ----

    def _take_state(self, state: Mapping[str, Any]) -> Tuple[Dict[str, Dict[str, Any]], Note]:
        try:
            given = members(dict(state), STATE, "state")
            chains = {one["tag"]: one for one in (members(one, CHAIN, "state") for one in given["chains"])}
            note = read_note(given["note"], "state")
        except Invalid as reason:
            raise ValueError(f"that is not the state of a watcher: {reason}") from None
        if notes.HAS_ED25519 and (note.origin != self._key.name or not notes.check_log(note, self._key)):
            raise ValueError("the checkpoint of the state is not signed by the given key of the log")
        return chains, note

    def _next_state(self, note: str) -> Mapping[str, Any]:
        spans = [(tag, channel_id, self._spans[tag]) for tag, channel_id in self._channels.items()]
        return {"chains": [{"channel_id": channel_id, "compared": self.promises.digest(channel_id, span.last),
                            "entries": span.entries, "first_sequence": span.first, "last_sequence": span.last,
                            "tag": tag} for tag, channel_id, span in spans], "note": note, "v": 2}

    # ---- the whole ----

    def watch(self, receipts: Optional[Receipts]) -> LogWatch:
        text, note = self._read_head()
        is_signed = notes.HAS_ED25519 and self._is_signed(note)
        times = [self._cosigned_at(note, one) for one in self._witnesses]
        self._times = [one for one in times if one is not None]
        has_quorum = sum(one is not None for one in times) >= self._quorum
        self._not_checked += [] if has_quorum or not notes.HAS_ED25519 else [QUORUM]
        if is_signed:
            self._compare(note, receipts)
        elif notes.HAS_ED25519:
            self._not_checked.append(LOG_KEY)
        accepted = self._is_complete and not self._finding_count
        latest = max(self._times, default=None)
        return LogWatch(
            self._findings, self._finding_count, self._not_checked,
            ([] if self._witnesses else [WITNESSES_NOT_GIVEN]) + ([RECEIPTS_NOT_GIVEN] if receipts is None else []),
            self._next_state(text) if accepted else self._state, note.origin, note.size, is_signed, has_quorum,
            [key.name for key, one in zip(self._witnesses, times) if one is None],
            None if latest is None else text_of(latest), self._is_complete, self._old is None,
            self._new_entries, sum(one.entries for one in self._spans.values()), self._receipts, self._covered,
            self._waiting, self._overdue, self._other_log, self._without_promise, self._before_log, self._begun_later,
            self.promises.test, self.promises.false, (*([self._state["note"]] if self._state else []), text))

    def _is_signed(self, note: Note) -> bool:
        found = notes.check_log(note, self._key)
        if found is False:
            raise LogNotValid(f"the signature of {self._key.name} under the checkpoint is false")
        return found is not None and note.origin == self._key.name

    def _cosigned_at(self, note: Note, key: notes.NoteKey) -> Optional[int]:
        """Returns when a witness cosigned, in microseconds; a time to come is none."""
        found = notes.cosigned_at(note, key) if notes.HAS_ED25519 else None
        return None if found is None or found * 1_000_000 > self._begun + TOLERANCE else found * 1_000_000

    def _find(self, kind: str, what: str) -> None:
        self._finding_count += 1
        if len(self._findings) < FINDINGS_MAX:
            self._findings.append(LogFinding(kind, what))

    # ---- the checkpoint ----

    def _read_head(self) -> Tuple[str, Note]:
        """Reads the checkpoint; an earlier one than the last, which caches may serve, some more times."""
        for attempt in range(SHRUNKEN_READS):
            if attempt:
                _calls.sleep(1)
            data = self._read("checkpoint", NOTE_MAX)
            if data is None:
                raise LogNotValid("the log has no checkpoint")
            try:
                text = data.decode()
            except UnicodeDecodeError:
                raise LogNotValid("the checkpoint is no text") from None
            note = read_note(text, "checkpoint")
            if not self._old or note.size >= self._old.size:
                break
        return text, note

    def _compare(self, note: Note, receipts: Optional[Receipts]) -> None:
        self._take_receipts(receipts)  # after the checkpoint, so that it covers few events without a receipt
        tree = Tree(self._read, note.size)
        self._compare_trees(tree, note)
        if self._finding_count:
            return
        self._scan(tree, note)
        self._compare_receipts(note)
        self._is_complete = True

    def _compare_trees(self, tree: Tree, note: Note) -> None:
        old = self._old
        if not old or old.size == 0:
            return
        counts = f" ({old.size} entries before, {note.size} now)"
        if note.size < old.size:
            self._find("shrunken", "the log lost entries" + counts)
        elif note.size == old.size:
            if note.root != old.root:
                self._find("two_trees", "the log signed two different trees of one size" + counts)
        else:
            roots = roots_of(old.size, note.size, tree.consistency(old.size))
            if not roots or roots[1] != note.root:
                raise LogNotValid("the tiles of the log do not lead to the root of its checkpoint of "
                                  f"{note.size} entries")
            if roots[0] != old.root:
                self._find("inconsistent",
                           "the log was rewritten: its tree does not begin with the one before" + counts)

    # ---- entries ----

    def _may_continue(self) -> bool:
        """Returns whether no chain is new, and no receipt of an event that was covered before. Who made the receipts
        could choose the digest of the first version."""
        if not self._state or self._state["v"] == 1:
            return False
        for tag, channel_id in self._channels.items():
            known = self._known.get(tag)
            if not known or known["compared"] != self.promises.digest(channel_id, known["last_sequence"]):
                return False
        return self._old is not None

    def _scan(self, tree: Tree, note: Note) -> None:
        begin, seen = Frontier(), self._old.size if self._old else 0
        self._spans = {tag: Span() for tag in self._channels}
        if self._old and self._may_continue():
            begin = tree.frontier(seen) if seen else begin
            if begin.root() != self._old.root:
                raise LogNotValid("the tiles of the log do not lead to the root of its checkpoint before")
            self._spans = {tag: Span(known["first_sequence"], known["last_sequence"], known["entries"])
                           for tag, known in self._known.items() if tag in self._channels}
        wrong: List[Tuple[Entry, str, bool]] = []
        for entry in tree.entries(begin, note.root):
            self._new_entries += entry.index >= seen
            channel_id = self._channels.get(entry.tag)
            if channel_id is None:
                continue
            found = self._spans[entry.tag].add(entry)
            receipts = self.promises.hashes_of(channel_id, entry.last, note.origin)
            others = [("receipt_differs", binds) for one, binds in receipts if one != entry.chain_hash]
            for kind, binds in ([(found, False)] if found else []) + others:
                if len(wrong) < FINDINGS_MAX:
                    wrong.append((entry, kind, binds))
                else:
                    self._finding_count += 1
        # Nothing of an entry is wrong before its tree was shown to be that of the checkpoint.
        earlier: Optional[Dict[int, Entry]] = None
        try:
            earlier = self._search(tree, note, [one for one, kind, _ in wrong if kind == "overlap"])
        except CallEnded:
            raise
        except (Invalid, ConstanciaError):
            pass  # a log that does not serve its entries again hides nothing
        for entry, kind, binds in wrong:
            if kind == "receipt_differs":
                self._find_difference(entry, binds)
            else:
                self._find_entry(entry, kind, earlier)

    @staticmethod
    def _search(tree: Tree, note: Note, later: List[Entry]) -> Dict[int, Entry]:
        """Returns the first entry that each one of these has events in common with, if there is one before it."""
        found: Dict[int, Entry] = {}
        if later:
            for entry in tree.entries(Frontier(), note.root):
                for one in later:
                    if (entry.index < one.index and entry.tag == one.tag and entry.first <= one.last
                            and entry.last >= one.first):
                        found.setdefault(one.index, entry)
        return found

    def _find_difference(self, entry: Entry, binds: bool) -> None:
        """Anybody can write a receipt that is not signed."""
        self._find("receipt_differs",
                   f"channel {self._channels[entry.tag]}: entry {entry.index} of the log has another chain hash of "
                   f"event {entry.last} than your receipt, "
                   + ("whose key is not checked here: the service has two histories" if binds else
                      "which is not signed for this log: if it is genuine, the service has two histories"))

    def _find_entry(self, entry: Entry, kind: str, overlapped: Optional[Dict[int, Entry]]) -> None:
        earlier = overlapped.get(entry.index) if overlapped else None
        where = f"channel {self._channels[entry.tag]}: "
        if kind == "overlap" and earlier:
            self._find(kind, f"{where}entries {earlier.index} and {entry.index} of the log have events in common: "
                       f"{earlier.first} to {earlier.last} and {entry.first} to {entry.last}")
        elif kind == "overlap" and overlapped is None:
            self._find(kind, f"{where}entry {entry.index} of the log has the events {entry.first} to {entry.last}, of "
                       "which entries before it have some")
        else:
            self._find("gap", f"{where}entry {entry.index} of the log has the events {entry.first} to {entry.last}, "
                       "which do not follow those of the entry before it")

    # ---- receipts ----

    def _take_receipts(self, receipts: Optional[Receipts]) -> None:
        if receipts is not None:
            try:
                self.promises.add(each_receipt(receipts))
            except NotUsable as reason:
                self._not_checked.append(f"receipts: {reason}")
        promises = self.promises
        promises.index()
        if promises.malformed:
            self._not_checked.append(f"receipts: {promises.malformed} are no answers to registrations "
                                     f"({promises.first_malformed})")
        if promises.false:
            self._not_checked.append(f"receipts: {promises.false} have a false signature and promise nothing")

    def _compare_receipts(self, note: Note) -> None:
        for tag, channel_id in self._channels.items():
            span, known = self._spans[tag], self._known.get(tag)
            is_known = known and known["entries"] and known["first_sequence"] == span.first
            is_new = bool(span.entries) and span.first > 1 and not is_known
            self._begun_later += is_new
            for promise in self.promises.of(channel_id, note.origin):
                self._receipts += 1
                if not span.entries or promise.sequence > span.last:
                    self._judge_uncovered(promise, note)
                elif promise.sequence >= span.first:
                    self._covered += 1
                else:
                    self._before_log += is_new or promise.seal_by is not None
        for count, what in (
                (self._overdue, "broken promises, of which no quorum of witnesses shows that the checkpoint is later: "
                 "an old copy of the log looks the same"),
                (self._other_log, "events should be in another log by now, which their receipts name"),
                (self._without_promise, "events have no entry, and their receipts promise none within 24 hours"),
                (self._before_log, "are of events before the first entry of their chain, which may be older than the "
                 "log"),
                (self._begun_later, "channels have no entry of their first events, which is right only if they are "
                 "older than the log")):
            if count:
                self._not_checked.append(f"receipts: {count} {what}")

    def _judge_uncovered(self, promise: Promise, note: Note) -> None:
        """Judges a receipt of an event that no entry covers. Only witnesses show others that the checkpoint is later
        than the promise: an old copy of the log looks the same."""
        if promise.seal_by is None or promise.seal_by + GRACE >= self._begun:
            is_promised = promise.seal_by is not None and not promise.is_far
            self._waiting += is_promised
            self._without_promise += not is_promised
        elif promise.origin != note.origin:
            self._other_log += 1
        else:
            later = sum(one > promise.seal_by + GRACE for one in self._times)
            is_witnessed = bool(self._quorum) and later >= self._quorum
            self._overdue += not is_witnessed
            self._find("promise_broken",
                       f"channel {promise.channel_id}: event {promise.sequence} was promised a sealed segment until "
                       f"{text_of(promise.seal_by)}, and the log"
                       + (" has none: the service withholds it" if is_witnessed else ", as it is served now, has none"))
