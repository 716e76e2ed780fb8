"""The operations of the service."""

from __future__ import annotations

import hashlib
import io
import os
import pathlib
import platform
import re
import secrets
import ssl
import time
import urllib.parse
from dataclasses import replace
from types import TracebackType
from typing import (Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Type, TypeVar,
                    Union, overload)

from . import _calls
from ._batches import (BYTES_MAX, Declaration, Item, Outcome, Time, batches, outcomes, rfc3339,
                       to_json)
from ._files import DOWNLOAD_MAX, Download, File, Form, PIECE, Path, new_hash, opened
from ._hooks import Hooks
from ._http import AGAIN, Answer, Body, Request, Retry, Transport, split
from ._receipts import ReceiptFile, Sink, sink_of, write_to
from ._version import VERSION
from . import log_watch, verification
from .errors import (ApiError, CertificationFailed, ConstanciaError, DigestMismatch, ReceiptNotKept,
                     TooLarge, UnexpectedAnswer, WaitTimeout)
from .models import (Balance, Certification, Channel, Content, Event, EventWithProof, FileCheck,
                     Page, Signer, Verification, decode)
from .webhooks import Notice

T = TypeVar("T")
Progress = Callable[[int, Optional[int]], None]  # bytes so far, and in all where that is known
POLL_FIRST, POLL_LONGEST = 0.25, 5.0  # seconds


class Client:
    """A channel, in the mode of its key. Threads may share one.

    base_url: of the interface, `https://…/v1`. key: not needed for what anybody may ask.
    language: of messages and `report_url`, "en" or "es". timeout: seconds without a sign of the
    service. scenario: with a test key, the refusal that is forced. header_prefix: the
    installation's. context: for https with roots of one's own. receipts: keeps the receipt of each
    registration, before the call returns: the path of a file (see ReceiptFile), a callable that is
    given the Event, or an object with `write(event)`. hooks: for logs and metrics. download_max: the most
    bytes that a file has which is fetched to the disk; `save` takes no more than the service has on record."""

    def __init__(self, base_url: str, key: Optional[str] = None, *,
                 language: Optional[str] = None, timeout: float = 60.0, retry: Retry = Retry(),
                 scenario: Optional[str] = None, header_prefix: str = "SVC",
                 user_agent: Optional[str] = None,
                 context: Optional[ssl.SSLContext] = None,
                 receipts: Union[None, Path, ReceiptFile, Sink] = None,
                 hooks: Hooks = Hooks(), download_max: int = DOWNLOAD_MAX) -> None:
        base = base_url.rstrip("/")
        split(base)
        self._base = base if base.endswith("/v1") else base + "/v1"
        self._site = self._base[:-len("/v1")]
        own = f"constancia-python/{VERSION} Python/{platform.python_version()}"
        self._open = {"User-Agent": f"{user_agent} {own}" if user_agent else own,
                      "Accept": "application/json, */*;q=0.5"}
        if language:
            self._open["Accept-Language"] = language
        self._keyed = dict(self._open)
        if key is not None:
            if not re.fullmatch("[!-~]+", key):
                raise ValueError("the key is empty, or has what no key has, such as a line's end")
            self._keyed["Authorization"] = f"Bearer {key}"
        if scenario:
            self._keyed[f"X-{header_prefix}-Test-Scenario"] = scenario
        for name, value in self._keyed.items():
            # As http.client sends them: it would say so only once there is a connection.
            if not re.fullmatch("[!#-'*+.^-z|~A-Z0-9-]+", name) or not re.fullmatch(
                    "[\t -~\xa0-\xff]*", value):
                raise ValueError(f"{name} has what no header has, such as a line's end")
        self._transport = Transport(timeout, context, retry, hooks)
        self.receipts = sink_of(receipts)
        self._download_max = download_max

    def __repr__(self) -> str:
        return f"<constancia.Client {self._base}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connections that are kept; the next call makes new ones."""
        self._transport.close()

    # ---- registering: repeated with the same client_ref it has the effect of once ----

    def register(self, client_ref: str, payload: Mapping[str, Any], *,
                 occurred_at: Optional[Time] = None) -> Event:
        """A JSON object, on a channel that keeps content. A datetime in it is sent as a text, in UTC with
        microseconds."""
        return self._register(client_ref, {"payload": payload}, occurred_at)

    def register_digest(self, client_ref: str, digest: str, *, algorithm: str = "sha-256",
                        occurred_at: Optional[Time] = None) -> Event:
        """A digest alone, on a channel that keeps no content; `constancia.digest` takes a
        file's."""
        return self._register(client_ref, {"hash": digest, "hash_alg": algorithm}, occurred_at)

    def register_file(self, client_ref: str, file: File, *, name: Optional[str] = None,
                      occurred_at: Optional[Time] = None) -> Event:
        """A file by its path, or open for reading bytes, on a channel that keeps content. What the
        receipt says is compared with the digest of what was sent."""
        fields = {"client_ref": client_ref}
        if occurred_at is not None:
            fields["occurred_at"] = rfc3339(occurred_at)
        with opened(file) as source:
            form = Form(fields, source, name)
            event = self._kept(self._ask(Event, "POST", "/events", form.body, form.content_type))
        check_ref(event, client_ref)
        if event.hash != form.sha256:
            raise DigestMismatch(f"{event.event_id} as it was recorded", form.sha256, event.hash)
        return event

    def register_many(self, declarations: Iterable[Union[Declaration, Mapping[str, Any]]]
                      ) -> Iterator[Outcome]:
        """Registers declarations in batches, and returns what became of each, in order: an event, or
        the error of that one alone. A declaration is a Declaration, or a body of `POST /events`.

        Batches are sent while the outcomes are used, and each outcome's receipt is kept by then. A
        batch whose answer is lost is repeated, as are items alone that were refused for a while (429,
        503). An exception is about a whole batch: repeat the call with what has no outcome yet."""
        for batch in batches(declarations):
            yield from self._register_batch(batch)

    # ---- events ----

    def find_by_hash(self, hash: str, *, hash_alg: Optional[str] = None,
                     page_size: int = 500) -> Iterator[Event]:
        """Returns the events of this channel that declare content of this digest."""
        return self._all(self.events_page, hash=hash.lower(), hash_alg=hash_alg, limit=page_size)

    def is_on_record(self, file: Union[File, bytes]) -> bool:
        """Returns whether an event of this channel declares this file, or these bytes. They are
        hashed here and not sent."""
        return bool(self.find_file(file))

    def find_file(self, file: Union[File, bytes]) -> List[Event]:
        """Returns the events of this channel that declare this file, or these bytes, by SHA-256 or
        SHA-512. They are hashed here and not sent."""
        source = io.BytesIO(file) if isinstance(file, bytes) else file
        running = {name: new_hash(name) for name in ("sha-256", "sha-512")}
        with opened(source) as readable:
            for piece in iter(lambda: readable.read(PIECE), b""):
                for one in running.values():
                    one.update(piece)
        return [event for name, one in running.items()
                for event in self.find_by_hash(one.hexdigest(), hash_alg=name)]

    def event(self, event_id: str) -> EventWithProof:
        return self._ask(EventWithProof, "GET", f"/events/{quoted(event_id)}")

    def events(self, *, from_: Optional[Time] = None, to: Optional[Time] = None,
               seq_from: Optional[int] = None, seq_to: Optional[int] = None,
               status: Optional[str] = None, client_ref: Optional[str] = None,
               order: Optional[str] = None, page_size: int = 500) -> Iterator[Event]:
        """All that the filters let through, fetched page by page while they are used. order: "asc",
        as it is without, or "desc"."""
        return self._all(self.events_page, from_=from_, to=to, seq_from=seq_from, seq_to=seq_to,
                         status=status, client_ref=client_ref, order=order, limit=page_size)

    def events_page(self, *, from_: Optional[Time] = None, to: Optional[Time] = None,
                    seq_from: Optional[int] = None, seq_to: Optional[int] = None,
                    status: Optional[str] = None, client_ref: Optional[str] = None,
                    order: Optional[str] = None, limit: Optional[int] = None,
                    cursor: Optional[str] = None, hash: Optional[str] = None,
                    hash_alg: Optional[str] = None) -> Page[Event]:
        return self._page(Event, "/events", {
            "from": from_, "to": to, "seq_from": seq_from, "seq_to": seq_to, "status": status,
            "client_ref": client_ref, "order": order, "limit": limit, "cursor": cursor,
            "hash": hash, "hash_alg": hash_alg})

    def content(self, event_id: str) -> Content:
        """The declared content, in memory; `save_content` writes it to a file and checks it."""
        def consume(answer: Answer) -> Content:
            return Content(answer.read(), answer.headers.get_content_type(),
                           file_name(answer))
        return self._perform("GET", f"/events/{quoted(event_id)}/content", consume)

    def save_content(self, event: Event, path: Path, *,
                     progress: Optional[Progress] = None) -> str:
        """The declared content to a file, checked against the event's digest, which it returns."""
        url = f"{self._base}/events/{quoted(event.event_id)}/content"
        return Download(path, event.hash, event.hash_alg, progress, self._download_max).run(
            self._transport, lambda more: Request("GET", url, {**self._keyed, **more}))

    def event_evidence_record(self, event_id: str) -> bytes:
        """RFC 4998, in DER; NotFound until the event is sealed."""
        return self._record(f"/events/{quoted(event_id)}/evidence-record")

    # ---- channel and account ----

    def channel(self, *, before_version: Optional[int] = None) -> Channel:
        """With the newest 1,000 versions of its configuration. While `has_more_versions`, older ones
        come with `before_version` set to the first version of the answer."""
        query = f"?before_version={before_version}" if before_version is not None else ""
        return self._ask(Channel, "GET", "/channel" + query)

    def channel_seals(self, path: Path, *, from_: Union[Time, int, None] = None,
                      to: Union[Time, int, None] = None, progress: Optional[Progress] = None) -> str:
        """Fetches the seal documents of the segments that contain the events from one to another, each
        a sequence number or a time, to a file for `constancia verify --bridge`. Returns its SHA-256."""
        url = f"{self._base}/channel/seals?" + encoded_query({"from": from_, "to": to})
        return Download(path, None, "sha-256", progress, self._download_max).run(
            self._transport, lambda more: Request("GET", url, {**self._keyed, **more}))

    def balance(self) -> Balance:
        return self._ask(Balance, "GET", "/account/balance")

    # ---- notices of the test mode ----

    def notices_page(self, *, cursor: Optional[str] = None, wait: Optional[int] = None,
                     limit: Optional[int] = None) -> Page[Notice]:
        """Returns the notices of the test mode after the cursor, with a test key. If there are none,
        the service waits up to `wait` seconds for one, or less. Without a cursor the page is empty.
        `next_cursor` is where the next page begins, also after the last one."""
        return self._page(Notice, "/notices", {"cursor": cursor, "wait": wait, "limit": limit})

    def create_notice(self, type: str) -> Notice:
        """Creates a notice with sample data for notices_page, with a test key."""
        return self._ask(Notice, "POST", "/notices", encoded({"type": type}))

    # ---- certifications ----

    def certify(self, *, from_: Optional[Time] = None, to: Optional[Time] = None,
                seq_from: Optional[int] = None, seq_to: Optional[int] = None,
                seal_history: bool = False, idempotency_key: Optional[str] = None) -> Certification:
        """Asks for a range by time or by sequence. The service issues it after the answer: see `wait`. With
        seal_history the archive has the seal documents of all segments before its own.

        A key is made for each call unless one is given, and goes with each attempt, so that one
        certification comes of them and one fee. To be as safe beyond the call, store a key of your
        own before it, and give that: for 24 hours it answers with the certification that it stands
        for. An error tells the key that was sent, as `idempotency_key`."""
        body = {name: value if isinstance(value, int) else rfc3339(value) for name, value in
                (("from", from_), ("to", to), ("seq_from", seq_from), ("seq_to", seq_to))
                if value is not None}
        if seal_history:
            body["seal_history"] = True
        key = secrets.token_urlsafe(24) if idempotency_key is None else idempotency_key
        if not re.fullmatch("[!-~]{1,255}", key):
            raise ValueError("an idempotency key is 1 to 255 visible ASCII characters")
        try:
            return self._ask(Certification, "POST", "/certifications", encoded(body),
                             headers={"Idempotency-Key": key})
        except ConstanciaError as error:
            error.idempotency_key = key
            raise

    def certification(self, certification_id: str) -> Certification:
        """With fresh links."""
        return self._ask(Certification, "GET", f"/certifications/{quoted(certification_id)}")

    def certifications(self, *, status: Optional[str] = None, order: Optional[str] = None,
                       page_size: int = 500) -> Iterator[Certification]:
        """All that the filter lets through, fetched page by page: newest first, unless order is
        "asc"."""
        return self._all(self.certifications_page, status=status, order=order, limit=page_size)

    def certifications_page(self, *, status: Optional[str] = None, order: Optional[str] = None,
                            limit: Optional[int] = None,
                            cursor: Optional[str] = None) -> Page[Certification]:
        return self._page(Certification, "/certifications", {
            "status": status, "order": order, "limit": limit, "cursor": cursor})

    def wait(self, certification: Union[Certification, str], *, timeout: float = 600.0,
             progress: Optional[Callable[[Certification], None]] = None) -> Certification:
        """The certification once it is completed. progress: called with each state that is seen, the
        last of them completed, with a progress of 1. Raises CertificationFailed, or WaitTimeout at
        the end of the time."""
        certification_id = (certification if isinstance(certification, str)
                            else certification.certification_id)
        waiting = Waiting(timeout, progress)
        while True:
            pause = waiting.pause_after(self.certification(certification_id))
            if pause is None:
                return waiting.last
            _calls.sleep(pause)

    def certification_evidence_record(self, certification_id: str) -> bytes:
        """RFC 4998, in DER; NotFound until it is made, soon after issuing."""
        return self._record(f"/certifications/{quoted(certification_id)}/evidence-record")

    def download(self, url: str, path: Path, *, sha256: Optional[str] = None,
                 progress: Optional[Progress] = None) -> str:
        """An issued file by its link, to a file that comes into being whole; the key does not go
        with it. Returns its SHA-256, which has to be `sha256` if that is given. With it a later
        call goes on where one that failed ended."""
        return self._download(url, path, sha256, progress, self._download_max)

    def _download(self, url: str, path: Path, sha256: Optional[str], progress: Optional[Progress],
                  most: int) -> str:
        return Download(path, sha256, "sha-256", progress, most).run(
            self._transport, lambda more: Request("GET", url, {**self._open, **more}))

    def save(self, certification: Certification, folder: Path) -> List[pathlib.Path]:
        """All files of a completed certification, each checked against the digest that the service
        has on record for it. Their names have the certification's, so that a folder may have the files of
        several."""
        code = certification.verification_code
        if certification.status != "completed" or not code:
            raise ValueError(f"{certification.certification_id} is not completed")
        own = certification.certification_id
        links = links_of(certification)
        documents = {one.name: one for one in self.verify(code).documents}
        saved = []
        os.makedirs(folder, exist_ok=True)
        for link in links:
            name = pathlib.PurePath(urllib.parse.unquote(urllib.parse.urlsplit(link).path)).name
            if name not in documents:
                raise UnexpectedAnswer(f"the service has no digest of {name}")
            saved.append(pathlib.Path(folder, name if own in name else pathlib.PurePath(f"{own}-{name}").name))
            self._download(link, saved[-1], documents[name].sha256, None,
                           min(documents[name].bytes or self._download_max, self._download_max))
        return saved

    # ---- what anybody may ask ----

    def signers(self) -> List[Signer]:
        return self._perform("GET", "/signers",
                             lambda answer: decode(List[Signer], answer.json()["data"]))

    def signer_list(self) -> bytes:
        """The same as the service signed it (CMS, in DER), for `constancia verify --signers`; NotFound while there is
        none."""
        return self._perform("GET", "/signers.p7m", lambda answer: answer.read())

    @overload
    def verify(self, code: str) -> Verification: ...

    @overload
    def verify(self, code: os.PathLike[str], **options: Any) -> verification.ArchiveCheck: ...

    def verify(self, code: Union[str, os.PathLike[str]], **options: Any) -> Any:
        """What the service issued under this code; NotFound if nothing. Of a `pathlib.Path`, or with the
        options of `verify_archive`, it checks an archive as that does."""
        if options or not isinstance(code, str):
            return self.verify_archive(code, **options)
        return self._ask(Verification, "GET", f"{self._site}/verify/{quoted(code)}")

    def verify_digest(self, sha256: str) -> Verification:
        """The certification with a file of this SHA-256; NotFound if none."""
        return self._ask(Verification, "GET",
                         f"{self._site}/verify?" + urllib.parse.urlencode({"sha256": sha256}))

    def verify_file(self, file: File) -> FileCheck:
        """Has a report or an archive checked in full by the service."""
        with opened(file) as source:
            form = Form({}, source, None)
            return self._ask(FileCheck, "POST", f"{self._site}/verify", form.body,
                             form.content_type)

    def verify_archive(self, archive: Path, *, receipts: Optional[verification.Receipts] = None,
                       trust: Optional[verification.Paths] = None, parts: Iterable[Path] = (),
                       signers: Iterable[Path] = (), signer: Iterable[str] = (),
                       at: Optional[Time] = None,
                       program: Union[None, bool, Path] = None) -> verification.ArchiveCheck:
        """Checks an evidence archive here, without the service: see `constancia.verify_archive`."""
        return verification.verify_archive(archive, receipts=receipts, trust=trust, parts=parts,
                                           signers=signers, signer=signer, at=at, program=program)

    def watch_log(self, key: str, channels: Iterable[str] = (), *, receipts: Optional[verification.Receipts] = None,
                  state: Optional[Mapping[str, Any]] = None, witnesses: Iterable[str] = (),
                  quorum: Optional[int] = None, url: Optional[str] = None) -> log_watch.LogWatch:
        """Checks the log of this service once: see `constancia.watch_log`. `url`: another address of its log."""
        headers = {"User-Agent": self._open["User-Agent"]}
        return log_watch.watch(self._transport, url or f"{self._site}/log", headers, key, channels, receipts, state,
                               witnesses, quorum)

    def description(self) -> str:
        """The interface's description in OpenAPI."""
        return self._perform("GET", "/openapi.yaml", lambda answer: answer.read().decode())

    def webhook_description(self) -> str:
        """That of notices, from services that tell."""
        return self._perform("GET", "/webhooks.yaml", lambda answer: answer.read().decode())

    # ---- behind them ----

    def _perform(self, method: str, target: str, consume: Callable[[Answer], T],
                 body: Optional[Body] = None, headers: Optional[Mapping[str, str]] = None) -> T:
        """target: a path of the interface, with the key; or a public page, without."""
        keyed = target.startswith("/")
        request = Request(method, self._base + target if keyed else target,
                          {**(self._keyed if keyed else self._open), **(headers or {})}, body)
        return self._transport.perform(lambda: request, consume)

    def _ask(self, kind: Type[T], method: str, target: str, body: Optional[Body] = None,
             content_type: str = "application/json",
             headers: Optional[Mapping[str, str]] = None) -> T:
        def consume(answer: Answer) -> T:
            result: Any = decode(kind, answer.json())
            if answer.headers.get("Idempotent-Replayed", "").lower() == "true":
                result = replace(result, replayed=True)
            after = answer.headers.get("Retry-After", "")
            if kind is Certification and re.fullmatch("[0-9]{1,6}", after):
                result = replace(result, retry_after=int(after))
            return result  # type: ignore[no-any-return]
        sent = {**({"Content-Type": content_type} if body else {}), **(headers or {})}
        return self._perform(method, target, consume, body, sent)

    def _register(self, client_ref: str, declared: Dict[str, Any],
                  occurred_at: Optional[Time]) -> Event:
        body = {"client_ref": client_ref, **declared}
        if occurred_at is not None:
            body["occurred_at"] = rfc3339(occurred_at)
        event = self._kept(self._ask(Event, "POST", "/events", encoded(body)))
        check_ref(event, client_ref)
        if "hash" in declared and event.hash != str(declared["hash"]).lower():
            raise DigestMismatch(f"{event.event_id} as it was recorded", declared["hash"], event.hash)
        return event

    def _kept(self, event: Event) -> Event:
        self._keep([event])
        return event

    def _keep(self, events: List[Event]) -> None:
        if self.receipts is None or not events:
            return
        try:
            write_to(self.receipts, events)
        except Exception as error:
            raise ReceiptNotKept(events, error) from error

    def _register_batch(self, batch: List[Item]) -> List[Outcome]:
        """Registers a batch, and repeats the items of it that were refused for a while."""
        found: Dict[int, Outcome] = {}
        left, attempt, waited = list(range(len(batch))), 1, 0.0
        while True:
            found.update(zip(left, self._send_batch([batch[at] for at in left])))
            errors = {at: error for at in left for error in [found[at].error]
                      if error and error.status in AGAIN}
            after = [one.retry_after for one in errors.values() if one.retry_after is not None]
            pause = self._transport.retry.delay(attempt, max(after, default=None), waited)
            if not errors or pause is None:
                return [found[at] for at in range(len(batch))]
            _calls.sleep(pause)
            left, attempt, waited = list(errors), attempt + 1, waited + pause

    def _send_batch(self, batch: List[Item]) -> List[Outcome]:
        """Sends a batch, in halves where the service takes smaller ones, and keeps the receipts."""
        if len(batch) == 1 and len(batch[0].line) >= BYTES_MAX:
            return [self._register_large(batch[0])]
        body = Body.of(b"".join(item.line + b"\n" for item in batch))
        try:
            told = self._perform("POST", "/events/batch", lambda answer: outcomes(batch, answer.read()), body,
                                 {"Content-Type": "application/x-ndjson"})
        except TooLarge:  # nothing of it was registered
            if len(batch) == 1:
                return [self._register_large(batch[0])]
            half = len(batch) // 2
            return self._send_batch(batch[:half]) + self._send_batch(batch[half:])
        self._keep([one.event for one in told if one.event])
        return told

    def _register_large(self, item: Item) -> Outcome:
        """Has the service say itself what it thinks of an item that no batch can hold."""
        try:
            event = self._ask(Event, "POST", "/events", Body.of(item.line))
        except ApiError as error:
            return Outcome(item.client_ref, error=error)
        return Outcome(item.client_ref, event=self._kept(event))

    def _page(self, kind: Type[T], path: str, query: Mapping[str, Any]) -> Page[T]:
        def consume(answer: Answer) -> Page[T]:
            page: Page[T] = decode(Page, answer.json())
            return replace(page, data=decode(List[kind], page.data))  # type: ignore[valid-type]
        return self._perform("GET", path + "?" + encoded_query(query), consume)

    @staticmethod
    def _all(fetch: Callable[..., Page[T]], **query: Any) -> Iterator[T]:
        page = fetch(**query)
        yield from page.data
        while page.next_cursor:
            page = fetch(**query, cursor=page.next_cursor)
            yield from page.data

    def _record(self, path: str) -> bytes:
        """Its ETag is its SHA-256."""
        def consume(answer: Answer) -> bytes:
            body = answer.read()
            found, told = hashlib.sha256(body).hexdigest(), answer.headers.get("ETag", "")
            if told.strip('"') != found:
                raise DigestMismatch("the evidence record", told.strip('"'), found)
            return body
        return self._perform("GET", path, consume)


class Waiting:
    """The polling of a certification, without the requests and the pauses themselves."""

    def __init__(self, timeout: float,
                 progress: Optional[Callable[[Certification], Any]]) -> None:
        self.last: Certification = None  # type: ignore[assignment]
        self._timeout = timeout
        self._end = time.monotonic() + timeout
        self._pause = POLL_FIRST
        self._progress = progress

    def pause_after(self, now: Certification) -> Optional[float]:
        """Returns the seconds until the next look; None when it is completed, then in `last`."""
        if now.status == "completed" and now.progress != 1.0:
            now = replace(now, progress=1.0)
        self.last = now
        if self._progress:
            self._progress(now)
        if now.status == "completed":
            return None
        if now.status == "failed":
            raise CertificationFailed(now)
        left = self._end - time.monotonic()
        if left <= 0:
            raise WaitTimeout(now, self._timeout)
        pause = min(max(self._pause, now.retry_after or 0), left)
        self._pause = min(2 * self._pause, POLL_LONGEST)
        return pause


def links_of(certification: Certification) -> List[str]:
    """Returns the links of a completed certification's files, none of which may be missing."""
    given = [("evidence_url", certification.evidence_url)]
    given += [(f"reports[{number}].url", one.url) for number, one in enumerate(certification.reports)]
    given += [(f"content_parts[{number}].url", one.url) for number, one in enumerate(certification.content_parts)]
    for member, link in given:
        if not link:
            raise UnexpectedAnswer(f"{certification.certification_id} is completed and has no {member}: ask for "
                                   "the certification again")
    return [link for _, link in given if link]


def check_ref(event: Event, client_ref: str) -> None:
    """Refuses the receipt of another declaration."""
    if event.client_ref != client_ref:
        raise UnexpectedAnswer(f"the answer is about {event.client_ref!r}, not {client_ref!r}")


def encoded(body: Mapping[str, Any]) -> Body:
    return Body.of(to_json(body))


def encoded_query(query: Mapping[str, Any]) -> str:
    """Parameters with a value, as they are sent; a value is a number, a text or a time."""
    return urllib.parse.urlencode({name: value if isinstance(value, (int, str)) else rfc3339(value)
                                   for name, value in query.items() if value is not None})


def quoted(name: str) -> str:
    """As one step of a path."""
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} names nothing")
    return urllib.parse.quote(name, safe="")


def file_name(answer: Answer) -> Optional[str]:
    """Of Content-Disposition: the exact one goes before the one for older programs."""
    exact = re.search(r"filename\*=utf-8''([^;\s]+)", answer.headers.get("Content-Disposition", ""),
                      re.IGNORECASE)
    return urllib.parse.unquote(exact[1]) if exact else answer.headers.get_filename()
