"""The client for asyncio: the same operations, each in a thread that ends with its call."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import functools
from types import TracebackType
from typing import (TYPE_CHECKING, Any, AsyncIterator, Callable, Coroutine, Iterable, Mapping,
                    Optional, Type, TypeVar, Union)

from ._batches import Declaration, Outcome, Time, batches
from ._calls import CURRENT, Call
from ._files import Path
from .client import Client, Progress, Waiting
from .models import Certification, Event, Page

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")


def _like(method: Callable[Concatenate[Client, P], T]
          ) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Returns the method of AsyncClient that awaits a method of Client, with its arguments."""
    @functools.wraps(method)
    async def run(self: AsyncClient, *given: P.args, **named: P.kwargs) -> T:
        return await self._run(functools.partial(method, self.client, *given, **named))
    return run  # type: ignore[return-value]


class AsyncClient:
    """Client for asyncio, with the same arguments. Each method has the arguments of the one of the same
    name, and is awaited; `events`, `certifications`, `find_by_hash` and `register_many` are for
    `async for`.

    A call that is cancelled, or whose time is over (`asyncio.wait_for`), ends at once: its connection is
    shut down and no request follows. What was sent may have been done, as after any lost connection:
    repeat a registration with its `client_ref`, a certification with its `idempotency_key`.
    At most `concurrency` calls run at once; others wait for their turn. Receipts, hooks and sinks run in
    the call's thread, the `progress` of waiting and of files in the event loop."""

    def __init__(self, base_url: str, key: Optional[str] = None, *, concurrency: int = 32,
                 **options: Any) -> None:
        self.client = Client(base_url, key, **options)
        self._threads = concurrent.futures.ThreadPoolExecutor(concurrency, "constancia")

    def __repr__(self) -> str:
        return repr(self.client).replace("Client", "AsyncClient", 1)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connections that are kept, and the threads. The client cannot go on."""
        self.client.close()
        self._threads.shutdown(wait=False)

    register = _like(Client.register)
    register_digest = _like(Client.register_digest)
    register_file = _like(Client.register_file)
    find_file = _like(Client.find_file)
    is_on_record = _like(Client.is_on_record)
    event = _like(Client.event)
    events_page = _like(Client.events_page)
    content = _like(Client.content)
    event_evidence_record = _like(Client.event_evidence_record)
    channel = _like(Client.channel)
    balance = _like(Client.balance)
    notices_page = _like(Client.notices_page)
    create_notice = _like(Client.create_notice)
    certify = _like(Client.certify)
    certification = _like(Client.certification)
    certifications_page = _like(Client.certifications_page)
    certification_evidence_record = _like(Client.certification_evidence_record)
    save = _like(Client.save)
    signers = _like(Client.signers)
    signer_list = _like(Client.signer_list)
    verify = _like(Client.verify)
    verify_digest = _like(Client.verify_digest)
    verify_file = _like(Client.verify_file)
    verify_archive = _like(Client.verify_archive)
    watch_log = _like(Client.watch_log)
    description = _like(Client.description)
    webhook_description = _like(Client.webhook_description)

    def events(self, *, from_: Optional[Time] = None, to: Optional[Time] = None,
               seq_from: Optional[int] = None, seq_to: Optional[int] = None,
               status: Optional[str] = None, client_ref: Optional[str] = None,
               order: Optional[str] = None, page_size: int = 500) -> AsyncIterator[Event]:
        """Returns all events that the filters let through, as `Client.events`."""
        return self._all(self.events_page, from_=from_, to=to, seq_from=seq_from, seq_to=seq_to,
                         status=status, client_ref=client_ref, order=order, limit=page_size)

    def find_by_hash(self, hash: str, *, hash_alg: Optional[str] = None,
                     page_size: int = 500) -> AsyncIterator[Event]:
        """Returns the events of this channel that declare content of this digest."""
        return self._all(self.events_page, hash=hash.lower(), hash_alg=hash_alg, limit=page_size)

    def certifications(self, *, status: Optional[str] = None, order: Optional[str] = None,
                       page_size: int = 500) -> AsyncIterator[Certification]:
        """Returns all certifications that the filter lets through, page by page."""
        return self._all(self.certifications_page, status=status, order=order, limit=page_size)

    async def register_many(self, declarations: Iterable[Union[Declaration, Mapping[str, Any]]]
                            ) -> AsyncIterator[Outcome]:
        """Registers declarations in batches, as `Client.register_many`."""
        for batch in batches(declarations):
            for outcome in await self._run(functools.partial(self.client._register_batch, batch)):
                yield outcome

    async def wait(self, certification: Union[Certification, str], *, timeout: float = 600.0,
                   progress: Optional[Callable[[Certification], Any]] = None) -> Certification:
        """Returns the certification once it is completed, as `Client.wait`."""
        certification_id = (certification if isinstance(certification, str)
                            else certification.certification_id)
        waiting = Waiting(timeout, progress)
        while True:
            pause = waiting.pause_after(await self.certification(certification_id))
            if pause is None:
                return waiting.last
            await asyncio.sleep(pause)

    async def download(self, url: str, path: Path, *, sha256: Optional[str] = None,
                       progress: Optional[Progress] = None) -> str:
        """Fetches an issued file by its link, as `Client.download`."""
        return await self._run(functools.partial(self.client.download, url, path, sha256=sha256,
                                                 progress=self._in_loop(progress)))

    async def save_content(self, event: Event, path: Path, *,
                           progress: Optional[Progress] = None) -> str:
        """Fetches the declared content to a file, as `Client.save_content`."""
        return await self._run(functools.partial(self.client.save_content, event, path,
                                                 progress=self._in_loop(progress)))

    async def channel_seals(self, path: Path, *, from_: Union[Time, int, None] = None,
                            to: Union[Time, int, None] = None,
                            progress: Optional[Progress] = None) -> str:
        """Fetches seal documents to a file, as `Client.channel_seals`."""
        return await self._run(functools.partial(self.client.channel_seals, path, from_=from_, to=to,
                                                 progress=self._in_loop(progress)))

    @staticmethod
    def _in_loop(progress: Optional[Progress]) -> Optional[Progress]:
        """Returns what a thread calls so that the event loop calls `progress`."""
        loop = asyncio.get_running_loop()
        if progress is None:
            return None
        given = progress

        def pass_on(done: int, total: Optional[int]) -> None:
            loop.call_soon_threadsafe(given, done, total)
        return pass_on

    async def _run(self, work: Callable[[], T]) -> T:
        """Runs a call in a thread. When it is cancelled, the call is ended and not waited for."""
        call = Call()
        context = contextvars.copy_context()
        context.run(CURRENT.set, call)
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, functools.partial(context.run, _begin, call, work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            call.end()
            running.cancel()  # if no thread has begun with it
            running.add_done_callback(_forget)
            raise

    @staticmethod
    async def _all(fetch: Callable[..., Coroutine[Any, Any, Page[T]]],
                   **query: Any) -> AsyncIterator[T]:
        page = await fetch(**query)
        while True:
            for one in page.data:
                yield one
            if not page.next_cursor:
                return
            page = await fetch(**query, cursor=page.next_cursor)


def _begin(call: Call, work: Callable[[], T]) -> T:
    call.check()
    return work()


def _forget(running: "asyncio.Future[Any]") -> None:
    """Takes the exception of a call that was given up, so that asyncio does not report it."""
    if not running.cancelled():
        running.exception()
