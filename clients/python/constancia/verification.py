"""Checks evidence archives without trusting the service.

    check = verify_archive("CERT-2026-0000001-evidence.zip", receipts="receipts.ndjson", trust="roots.pem")
    assert check.valid, check.findings
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from ._batches import rfc3339
from ._evidence import cms
from ._evidence.archive import Archive, NotArchive
from ._evidence.chain import Link, walk
from ._evidence.cms import Signed, Unchecked
from ._evidence.forms import Invalid
from ._evidence.parts import check_part
from ._evidence.receipts import Differences, NotUsable, read
from ._evidence.zips import is_zip
from ._files import digest
from ._receipts import ReceiptFile, receipt_files
from .models import Event

Path = Union[str, "os.PathLike[str]"]
Paths = Union[Path, Sequence[Path]]
Receipts = Union[Path, ReceiptFile, Iterable[Union[Path, Event, Mapping[str, Any]]]]
# As `constancia verify` has them, from the best to the worst.
CODES = ("valid", "existence_only", "authority_not_established", "signer_not_established", "could_not_check",
         "not_valid")
FINDINGS_MAX = 100
# What damaged bytes make the standard library raise.
DAMAGE = (Invalid, ArithmeticError, LookupError, TypeError, ValueError, AssertionError, RecursionError,
          struct.error, zlib.error)
STRUCTURE = "structure: ZIP, entries, canonical documents, digests of all files"
CHAIN = "chain: every event, its order, its configuration and its place in the chain"
SEGMENTS = "segments: every event leads to the root of a round, whose tokens are over it"
LOG = "log: the place of every segment, and that all checkpoints are of one history"
CONTENT = "content parts that were given"
RECEIPTS = "receipts"
SIGNATURES = "signatures: by the keys of the certificates inside"
ORIGIN = ("origin: certificate paths to trusted roots, revocation, validity in time, signer lists, and the "
          "rules of signatures")
# What is never checked here, or was not given. The clients for other languages use the same words.
LOG_SIGNATURES = "log: the signatures of the log and of its witnesses, which constancia verify --log-key checks"
RECEIPTS_NOT_GIVEN = "receipts: not given"
CONTENT_NOT_GIVEN = "content parts: not all given"
REPORTS_NOT_GIVEN = "reports: not given"


@dataclass(frozen=True)
class Finding:
    """Something that keeps an archive from being valid, or a warning."""

    code: str  # of the program (docs/verify/findings.md), or begins with `client.`
    what: str
    by: str  # client or program


@dataclass(frozen=True)
class ReceiptCheck:
    """Receipts against an archive."""

    compared: int  # of events that it holds
    outside: int  # of other events, channels or modes: nothing is said of these
    differing: int


@dataclass(frozen=True)
class ArchiveCheck:
    """What was found. It is true, as `valid` is, only if nothing keeps the archive from being valid."""

    code: str  # of CODES, the worse one of this process and of the program
    findings: List[Finding]
    warnings: List[Finding]
    checked: List[str]
    not_checked: List[str]  # also what was not given, which does not change the verdict
    signatures_by: Optional[str]  # program: with their origin; cryptography: their values; None: nothing
    manifest: Optional[Mapping[str, Any]] = field(default=None, repr=False)
    signer_sha256: Optional[str] = None  # of the certificate that is named as the signer's
    stamped_at: Optional[datetime] = None  # of the signature's timestamp
    receipts: Optional[ReceiptCheck] = None
    program: Optional[Mapping[str, Any]] = field(default=None, repr=False)  # what the program says

    @property
    def verdict(self) -> str:
        """valid; invalid; or origin_not_established: nothing is wrong, but something is open."""
        return {"valid": "valid", "not_valid": "invalid"}.get(self.code, "origin_not_established")

    @property
    def valid(self) -> bool:
        return self.code == "valid"

    def __bool__(self) -> bool:
        return self.valid


def verify_archive(archive: Path, *, receipts: Optional[Receipts] = None, trust: Optional[Paths] = None,
                   parts: Iterable[Path] = (), signers: Iterable[Path] = (),
                   signer: Iterable[str] = (), at: Union[None, str, datetime] = None,
                   program: Union[None, bool, Path] = None) -> ArchiveCheck:
    """Checks an evidence archive of any size: its shape, all digests, the chain of events, the segments and
    rounds, places in the log, content parts and receipts here, in this process.

    Whose signatures and timestamps these are is for `constancia verify` to say, which is run when it is
    installed: without it no archive is valid, but `origin_not_established` at best, and where
    python3-cryptography is installed the values of the signatures are checked.

    receipts: files (with those they were rotated to), a ReceiptFile, events, or answers. A receipt that
    differs makes the code `could_not_check`: nothing shows which one of the two is genuine. Receipts of
    other events are counted, as long as one at least is of this archive. trust: PEM files with the
    roots to trust. signers: lists of signers (`Client.signer_list`). signer: SHA-256
    of the certificates that alone may have signed. at: as of a time instead of now.
    program: its path; True: it has to be there; False: it is not run."""
    run = Run(pathlib.Path(archive), [pathlib.Path(one) for one in parts])
    wanted = [one.lower().replace(":", "") for one in signer]
    run.check(receipts, wanted)
    found = None if program is False else shutil.which("constancia" if program in (None, True)
                                                       else os.fspath(program))  # type: ignore[arg-type]
    if found:
        run.ask(found, paths_of(trust), paths_of(list(signers)), wanted, at)
    elif program not in (None, False):
        raise FileNotFoundError(f"the program {program if program is not True else 'constancia'} is not installed")
    return run.result()


def paths_of(given: Optional[Paths]) -> List[str]:
    if given is None:
        return []
    return [os.fspath(one) for one in ([given] if isinstance(given, (str, os.PathLike)) else given)]


class Run:
    """One check: what was found so far."""

    def __init__(self, path: pathlib.Path, parts: List[pathlib.Path]) -> None:
        self._path, self._parts = path, parts
        self._code = "signer_not_established"
        self._findings: List[Finding] = []
        self._warnings: List[Finding] = []
        self._checked: List[str] = []
        self._unchecked_signature: Optional[str] = None
        self._has_receipts = False  # some were given
        self._part_names: Set[str] = set()  # of the archive's content parts that were given
        self._archive: Optional[Archive] = None
        self._is_sound = False  # all of this process's checks went through
        self._sha256: Optional[str] = None  # of what was checked
        self._receipts: Optional[ReceiptCheck] = None
        self._program: Optional[Dict[str, Any]] = None

    def result(self) -> ArchiveCheck:
        by = "program" if self._program else "cryptography" if SIGNATURES in self._checked else None
        archive = self._archive
        every = [STRUCTURE, CHAIN, SIGNATURES, ORIGIN]
        every += [SEGMENTS] if not archive or archive.mode == "live" else []
        every += [LOG] if archive and archive.has_log else []
        every += [CONTENT] if self._parts else []
        every += [RECEIPTS] if self._has_receipts else []
        stamped_at = archive.stamped_at if archive else None
        return ArchiveCheck(
            self._code, self._findings, self._warnings[:FINDINGS_MAX], self._checked,
            [one for one in every if one not in self._checked] + self._not_given(), by, archive.manifest if archive else None,
            archive.signed.fingerprint if archive and hasattr(archive, "signed") else None,
            datetime.fromisoformat(stamped_at.replace("Z", "+00:00")) if stamped_at else None,
            self._receipts, self._program)

    def _not_given(self) -> List[str]:
        found = [LOG_SIGNATURES] if self._archive and self._archive.has_log else []
        found += [] if self._has_receipts else [RECEIPTS_NOT_GIVEN]
        was_counted = not self._parts or CONTENT in self._checked
        if self._archive and was_counted and len(self._part_names) < len(self._archive.manifest["content_parts"]):
            found.append(CONTENT_NOT_GIVEN)
        return found + [REPORTS_NOT_GIVEN]  # none can be: the program checks them

    def _find(self, verdict: str, code: str, what: str, by: str = "client") -> None:
        self._worsen(verdict)
        if len(self._findings) < FINDINGS_MAX:
            self._findings.append(Finding(code, printable(what), by))

    def _worsen(self, verdict: str) -> None:
        self._code = max(self._code, verdict, key=CODES.index)

    # ---- in this process ----

    def check(self, receipts: Optional[Receipts], wanted: List[str]) -> None:
        """Checks all that this process can. It ends with the first thing that is not valid."""
        self._has_receipts = receipts is not None
        with open(self._path, "rb") as source:
            if not is_zip(source):
                self._find("could_not_check", "file.kind_unknown", f"{self._path.name} is no evidence archive")
                return
            try:
                self._archive = archive = Archive(source, self._path.name)
                self._checked.append(STRUCTURE)
                for signed in archive.check_signature():
                    self._judge(signed)
                if wanted and archive.signed.fingerprint not in wanted:
                    raise Invalid(f"the signer {archive.signed.fingerprint} is not one of those that may have signed")
                self._check_events(archive, receipts)
                self._check_content(archive)
            except NotArchive as error:
                self._find("could_not_check", "client.part_alone", str(error))
                return
            except DAMAGE as error:
                what = str(error) if isinstance(error, Invalid) else f"damaged: {type(error).__name__}: {error}"
                self._find("not_valid", "client.not_valid", what)
                return
            source.seek(0)
            self._sha256 = digest(source)
        self._is_sound = True
        if archive.mode == "test":
            self._warnings.append(Finding("client.test", "a test archive has no probative value", "client"))

    def _judge(self, signed: Signed) -> None:
        """Checks the value of a signature, as far as a library is there that can."""
        if self._unchecked_signature is None:
            try:
                signed.check_value()
            except Unchecked as reason:
                self._unchecked_signature = str(reason)

    def _check_events(self, archive: Archive, receipts: Optional[Receipts]) -> None:
        compare = Differences(archive)
        try:
            is_usable = receipts is not None and self._add(compare, receipts)
            compare.begin()
            found: List[str] = []  # the first ones, until the segment is checked
            differing = 0

            def compare_with(link: Link) -> None:
                nonlocal differing
                for what in compare.of(link):
                    differing += 1
                    if len(found) < FINDINGS_MAX:
                        found.append(what)

            def settle() -> None:
                while found:
                    self._find("could_not_check", "receipt.event_differs", found.pop(0))

            has_open_start = walk(archive, self._judge, compare_with, settle)
            compare.end()
            self._checked += [CHAIN] + ([SEGMENTS] if archive.mode == "live" else [])
            self._checked += [LOG] if archive.has_log else []
            if self._unchecked_signature is None:
                self._checked.append(SIGNATURES)
            if has_open_start:
                self._find("could_not_check", "client.open_start", "the first segment names no token before, and "
                           "nothing here shows that it is of the first round of all")
            if is_usable:
                self._conclude(compare, differing)
        finally:
            compare.close()

    def _add(self, compare: Differences, receipts: Receipts) -> bool:
        self._receipts = ReceiptCheck(0, 0, 0)
        try:
            compare.add(each_receipt(receipts))
        except NotUsable as reason:
            self._find("could_not_check", "receipt.not_usable", str(reason))
            return False
        for reason in compare.unusable:
            self._find("could_not_check", "receipt.malformed", reason)
        return True

    def _conclude(self, compare: Differences, differing: int) -> None:
        self._receipts = ReceiptCheck(compare.compared, compare.outside, differing)
        self._checked.append(RECEIPTS)
        if compare.left_out:
            self._find("could_not_check", "client.left_out",
                       "events of the time that was asked for were acknowledged, and are not in the archive: "
                       + ", ".join(map(str, compare.left_out)))
        if not compare.compared:
            self._find("could_not_check", "receipt.event_not_given", "no receipt is of an event of this archive")

    def _check_content(self, archive: Archive) -> None:
        for path in self._parts:
            name = check_part(archive, path, digest(path))
            if name is not None:
                self._part_names.add(name)
            else:
                self._find("could_not_check", "client.part_of_another", f"{path.name}: of another certification")
        if self._parts:
            self._checked.append(CONTENT)

    # ---- by the program ----

    def ask(self, program: str, trust: List[str], signers: List[str], wanted: List[str],
            at: Union[None, str, datetime]) -> None:
        """Has the program judge the same files; the worse of both verdicts counts."""
        command = [program, "verify", *map(os.fspath, (self._path.absolute(), *(
            one.absolute() for one in self._parts))), "--json", "--config", ""]
        with contextlib.ExitStack() as stack:
            if trust:
                command += ["--trust", trust[0] if len(trust) == 1 else joined(trust, stack)]
            for one in signers:
                command += ["--signers", one]
            for one in wanted:
                command += ["--signer", one]
            if at is not None:
                command += ["--at", rfc3339(at)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        try:
            told = json.loads(done.stdout)
            verdict = told["verdict"]["code"]
            CODES.index(verdict)
            findings = [(str(one["code"]), str(one["what"])) for one in told["findings"]]
            warnings = [(str(one["code"]), str(one["what"])) for one in told["warnings"]]
        except (ValueError, KeyError, TypeError):
            said = done.stderr.decode(errors="replace").strip() or f"exit status {done.returncode}"
            self._find("could_not_check", "client.program_failed", f"{program}: {said[:500]}")
            return
        seen = [one.get("sha256") for one in told.get("files", ())]
        if self._sha256 and self._sha256 not in seen and verdict == "valid":
            self._find("could_not_check", "client.program_failed", f"{program}: it read another file")
            return
        if (done.returncode == 0) != (verdict == "valid"):
            self._find("could_not_check", "client.program_failed", f"{program}: exit status {done.returncode}")
            return
        self._program = told
        self._warnings += [Finding(code, printable(what), "program") for code, what in warnings]
        if self._is_sound and self._code == "signer_not_established":
            self._code = verdict  # that was all that this process could not know
        for code, what in findings:
            self._find(verdict, code, what, "program")
        self._worsen(verdict)
        self._checked += [one for one in (SIGNATURES, ORIGIN) if one not in self._checked]


def printable(text: str) -> str:
    """Returns a text whose control characters are escaped: parts of it are of the archive's maker."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def joined(paths: List[str], stack: contextlib.ExitStack) -> str:
    """Returns one PEM file that holds several."""

    file = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".pem"))
    for path in paths:
        file.write(pathlib.Path(path).read_bytes() + b"\n")
    file.flush()
    return file.name


def each_receipt(given: Receipts) -> Iterator[Tuple[str, Any]]:
    """Returns receipts, each with what to call it."""
    if isinstance(given, ReceiptFile):
        given = given.path
    if isinstance(given, (str, os.PathLike)):
        files = receipt_files(given)
        if not files:
            raise FileNotFoundError(f"{os.fspath(given)}: there are no receipts")
        for path in files:
            yield from read(path)
        return
    for number, one in enumerate([given] if isinstance(given, (Event, Mapping)) else given, 1):
        if isinstance(one, (str, os.PathLike, ReceiptFile)):
            yield from each_receipt(one)
        else:
            yield f"receipt {number}", json.loads(one.to_json()) if isinstance(one, Event) else one
