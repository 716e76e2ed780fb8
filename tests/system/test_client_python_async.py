"""The Python client for asyncio: it has what Client has, and a call that is cancelled or out of time ends."""

import asyncio
import inspect
import json
import socket
import ssl
import subprocess
import threading
import typing

import pytest

from client import fresh
from scripted import hang_up, say, script  # noqa: F401

import constancia
from constancia import AsyncClient, Client, Hooks, Retry

from test_client_python import BALANCE
from test_client_python_receipts import EVENT

QUICK = Retry(attempts=4, patience=20)
PATIENCE = 60  # seconds, of a machine under load


def test_it_has_every_method_with_the_same_arguments():
    for name, method in vars(Client).items():
        if name.startswith("_"):
            continue
        own = getattr(AsyncClient, name)
        given = list(inspect.signature(method).parameters)
        assert list(inspect.signature(own).parameters) == given, name
        assert inspect.iscoroutinefunction(own) or "AsyncIterator" in str(
            typing.cast(typing.Any, own).__annotations__["return"]), name


def test_it_registers_certifies_and_downloads(service, channel, tmp_path):
    receipts = tmp_path / "receipts.ndjson"
    source = tmp_path / "source"
    source.write_bytes(b"I declare.")

    async def run():
        async with AsyncClient(f"{service.public_url}/v1", channel.live_key["key"], receipts=receipts) as client:
            events = await asyncio.gather(*(client.register(fresh(), {"n": n}) for n in range(20)))
            file = await client.register_file(fresh(), source)
            listed = [one.event_id async for one in client.events(page_size=7)]
            assert sorted(listed) == sorted([one.event_id for one in events] + [file.event_id])
            asked = await client.certify(seq_from=1, seq_to=21)
            seen = []
            done = await client.wait(asked, timeout=300, progress=seen.append)
            assert done.status == "completed" and seen[-1].progress == 1.0
            steps = []
            await client.save_content(file, tmp_path / "back", progress=lambda *at: steps.append(at))
            await asyncio.sleep(0)
            assert (tmp_path / "back").read_bytes() == b"I declare." and steps[-1] == (10, 10)
            digest = await client.channel_seals(tmp_path / "seals", from_=1, to=events[0].received_at)
            assert digest == constancia.digest(tmp_path / "seals")
            saved = await client.save(done, tmp_path / "files")
            assert saved and [one.certification_id async for one in client.certifications()] == [
                done.certification_id]
            with pytest.raises(constancia.Conflict):
                await client.register(events[0].client_ref, {"other": 1})
            assert channel.live_key["key"] not in repr(client) and "AsyncClient" in repr(client)
    asyncio.run(run())
    assert len(receipts.read_text().splitlines()) == 21


class Hang:
    """An answer that comes when the test says, and knows when its connection ended."""

    def __init__(self, answer=hang_up):
        self.answer = answer
        self.asked, self.go, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __call__(self, handler):
        self.asked.set()
        handler.connection.settimeout(0.05)
        while not self.go.is_set():
            try:
                if handler.connection.recv(1) == b"":
                    self.ended.set()
                    handler.close_connection = True
                    return
            except TimeoutError:
                pass
        self.answer(handler)


async def until(event):
    assert await asyncio.get_running_loop().run_in_executor(None, event.wait, PATIENCE)


def test_a_cancelled_call_ends_its_connection_and_sends_nothing_more(script):  # noqa: F811
    async def run():
        hang = Hang()
        script.answers += [hang]
        async with AsyncClient(script.url, "k", retry=QUICK) as client:
            call = asyncio.ensure_future(client.register("r", {}))
            await until(hang.asked)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(hang.ended)
            script.answers += [say(200, BALANCE)]
            assert (await client.balance()).balance == 1, "the client goes on"
            assert len(script.seen) == 2
    asyncio.run(run())


def test_a_call_whose_time_is_over_ends(script):  # noqa: F811
    async def run():
        hang = Hang()
        script.answers += [hang]
        async with AsyncClient(script.url, "k", retry=QUICK) as client:
            call = asyncio.ensure_future(client.balance())
            await until(hang.asked)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call, 0.05)
            await until(hang.ended)
            assert len(script.seen) == 1
    asyncio.run(run())


def test_a_pause_before_a_retry_ends_with_its_call(script):  # noqa: F811
    async def run():
        planned = threading.Event()
        script.answers += [say(503, Retry_After="3000")]
        async with AsyncClient(script.url, "k", retry=Retry(attempts=3, patience=36000), concurrency=1,
                               hooks=Hooks(on_retry=lambda _: planned.set())) as client:
            call = asyncio.ensure_future(client.balance())
            await until(planned)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            script.answers += [say(200, BALANCE)]
            await asyncio.wait_for(client.balance(), PATIENCE)  # its only thread is free
            assert len(script.seen) == 2
    asyncio.run(run())


def test_a_call_that_no_thread_has_begun_is_never_sent(script):  # noqa: F811
    async def run():
        hang = Hang(say(200, BALANCE))
        script.answers += [hang]
        async with AsyncClient(script.url, "k", retry=QUICK, concurrency=1) as client:
            first = asyncio.ensure_future(client.balance())
            await until(hang.asked)
            second = asyncio.ensure_future(client.register("r", {}))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            hang.go.set()
            assert (await first).balance == 1
            script.answers += [say(200, BALANCE)]
            await client.balance()
            assert [one.command for one in script.seen] == ["GET", "GET"]
    asyncio.run(run())


def test_a_certification_whose_call_was_cancelled_is_repeated_by_its_key(script):  # noqa: F811
    async def run():
        hang = Hang()
        script.answers += [hang]
        async with AsyncClient(script.url, "k") as client:
            call = asyncio.ensure_future(client.certify(seq_from=1, seq_to=1, idempotency_key="own"))
            await until(hang.asked)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert script.seen[0].headers["Idempotency-Key"] == "own"
    asyncio.run(run())


def test_a_cancelled_call_over_tls_ends(tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "3650",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    asked, ended = threading.Event(), threading.Event()

    def serve():
        with context.wrap_socket(listener.accept()[0], server_side=True) as connection:
            connection.recv(4096)
            asked.set()
            try:
                connection.recv(1)
            except OSError:
                pass
            ended.set()
    threading.Thread(target=serve, daemon=True).start()

    async def run():
        trusted = ssl.create_default_context(cafile=certificate)
        async with AsyncClient(f"https://127.0.0.1:{listener.getsockname()[1]}", "k", context=trusted,
                               retry=QUICK) as client:
            call = asyncio.ensure_future(client.balance())
            await until(asked)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(ended)
    asyncio.run(run())
    listener.close()


def test_batches_are_awaited(script):  # noqa: F811
    def echo(handler):
        refs = [json.loads(line)["client_ref"] for line in handler.body.splitlines()]
        say(200, "".join(json.dumps({**EVENT, "client_ref": ref, "http_status": 201}) + "\n"
                         for ref in refs).encode())(handler)
    script.answers += [echo] * 2

    async def run():
        seen = []
        async with AsyncClient(script.url, "k", receipts=seen.append) as client:
            found = [one.client_ref async for one in client.register_many(
                constancia.Declaration(f"r{n}", {}) for n in range(1001))]
        assert found == [f"r{n}" for n in range(1001)] == [one.client_ref for one in seen]
    asyncio.run(run())
