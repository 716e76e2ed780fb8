"""Receipts that the Python client keeps itself: on the disk before a call returns, whole after a crash, and never
lost or overwritten; and that `constancia verify --receipt` takes them."""

import contextlib
import json
import multiprocessing
import os
import subprocess
import threading

import pytest

import receipts as signed
from client import fresh
from program import BINARY
from scripted import hang_up, say, script  # noqa: F401

import constancia
from constancia import Event, ReceiptFile, ReceiptNotKept, models
from constancia._http import Retry
from constancia._receipts import receipt_files

QUICK = Retry(attempts=4, patience=20)
EVENT = {"event_id": "evt_1", "channel_id": "c", "client_ref": "r", "sequence": 1,
         "received_at": "2026-01-02T03:04:05.678901Z", "occurred_at": None, "hash": "0" * 64,
         "hash_alg": "sha-256", "modality": "content", "chain_hash": "1" * 64, "status": "test",
         "timestamp": {"type": "simulated", "reference": None, "sealed_at": None}, "config_version": 1,
         "mode": "test"}


def event_of(number, **more):
    return models.decode(Event, {**EVENT, "event_id": f"evt_{number}", "sequence": number, **more})


def lines_of(*paths):
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


# ---- what a receipt is ----

def test_a_receipt_is_what_came_with_members_that_are_not_known_yet():
    came = {**EVENT, "client_ref": "ñ\u2028", "quantum": {"a": [1, None]}}
    event = models.decode(Event, came)
    assert json.loads(event.to_json()) == came and "\n" not in event.to_json()
    own = Event(**{name: value for name, value in vars(models.decode(Event, EVENT)).items() if name != "raw"})
    assert json.loads(own.to_json()) == EVENT and own == models.decode(Event, EVENT)


def test_receipts_are_kept_and_the_program_takes_them(service, channel, tmp_path):
    path = tmp_path / "receipts.ndjson"
    source = tmp_path / "contract"
    source.write_bytes(b"I declare.")
    with constancia.Client(f"{service.public_url}/v1", channel.live_key["key"], receipts=path) as client:
        first = client.register(fresh(), {"n": 1})
        again = client.register(first.client_ref, {"n": 1})
        file = client.register_file(fresh(), source)
        with pytest.raises(constancia.Conflict):
            client.register(first.client_ref, {"n": 2})
        assert again.replayed
        kept = lines_of(path)
        assert [one["event_id"] for one in kept] == [first.event_id, first.event_id, file.event_id]
        assert kept[0] == json.loads(first.to_json())
        assert all(signed.is_signed(one) for one in kept), "nothing that was signed is lost or altered"
        done = client.wait(client.certify(seq_from=1, seq_to=2), timeout=300)
        client.save(done, tmp_path / "files")
        proven = tmp_path / "proven.json"
        proven.write_text(client.event(first.event_id).to_json(), encoding="utf-8")
    archive = next(one for one in (tmp_path / "files").glob("*.zip") if "content" not in one.name)

    def findings(receipts):
        told = subprocess.run([BINARY, "verify", archive, "--receipt", receipts, "--json"], capture_output=True,
                              check=False)
        return [one["code"] for one in json.loads(told.stdout)["findings"]]
    assert not [one for one in findings(path) + findings(proven) if one.startswith("receipt.")]
    spoilt = tmp_path / "spoilt.ndjson"
    spoilt.write_text(path.read_text(encoding="utf-8").replace(first.chain_hash, "0" * 64), encoding="utf-8")
    assert "receipt.event_differs" in findings(spoilt)


# ---- the file ----

def test_threads_and_processes_share_a_file_that_rotates(tmp_path):
    path = tmp_path / "receipts.ndjson"

    def write(base):
        receipts = ReceiptFile(path, rotate_bytes=3000)
        threads = [threading.Thread(target=lambda start=start: [
            receipts.write(event_of(start + n)) for n in range(20)]) for start in (base, base + 20)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=write, args=(1 + 40 * n,)) for n in range(4)]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    assert [one.exitcode for one in processes] == [0] * 4
    files = receipt_files(path)
    assert files[-1] == path and len(files) > 10
    assert [one.name for one in files[:-1]] == [f"receipts.ndjson.{n}" for n in range(1, len(files))]
    assert sorted(one["sequence"] for one in lines_of(*files)) == list(range(1, 161))
    assert all(one.stat().st_size <= 3000 for one in files)


def test_a_rotation_overwrites_nothing(tmp_path):
    path = tmp_path / "receipts.ndjson"
    (tmp_path / "receipts.ndjson.7").write_text("precious")
    (tmp_path / "receipts.ndjson.old").write_text("another")
    receipts = ReceiptFile(path, rotate_bytes=1)
    for n in (1, 2, 3):
        receipts.write(event_of(n))
    assert (tmp_path / "receipts.ndjson.7").read_text() == "precious"
    assert [one["sequence"] for name in ("receipts.ndjson.8", "receipts.ndjson.9", "receipts.ndjson")
            for one in lines_of(tmp_path / name)] == [1, 2, 3]
    with pytest.raises(ValueError):
        ReceiptFile(path, rotate_bytes=-1)


@pytest.mark.parametrize("without_links", [False, True])
def test_a_rotation_that_was_interrupted_is_ended(tmp_path, monkeypatch, without_links):
    path = tmp_path / "receipts.ndjson"
    receipts = ReceiptFile(path, rotate_bytes=1)
    receipts.write(event_of(1))
    if without_links:
        def refuse(*names):
            raise PermissionError("no links here")
        monkeypatch.setattr("constancia._receipts.os.link", refuse)
    else:
        os.link(path, tmp_path / "receipts.ndjson.1")
    receipts.write(event_of(2))
    assert [one["sequence"] for one in lines_of(*receipt_files(path))] == [1, 2]
    assert len(receipt_files(path)) == 2


@pytest.mark.parametrize("torn, kept", [
    (event_of(2).to_json(), [1, 2, 3]), (event_of(2).to_json()[:-1], [1, 3]), ("{", [1, 3]), ("é", [1, 3])])
def test_a_torn_last_line_is_repaired_at_the_next_write(tmp_path, torn, kept):
    path = tmp_path / "receipts.ndjson"
    ReceiptFile(path).write(event_of(1))
    with open(path, "ab") as file:
        file.write(torn.encode())
    ReceiptFile(path).write(event_of(3))
    assert [one["sequence"] for one in lines_of(path)] == kept
    beside = tmp_path / "receipts.ndjson.torn"
    assert beside.exists() == (len(kept) == 2)
    if beside.exists():
        assert beside.read_text(encoding="utf-8") == torn + "\n"


def test_another_file_is_not_written_to(tmp_path):
    path = tmp_path / "video"
    path.write_bytes(b"x" * (2 << 20))
    with pytest.raises(ValueError, match="not a file of receipts"):
        ReceiptFile(path).write(event_of(1))
    assert path.stat().st_size == 2 << 20


def test_a_write_that_fails_leaves_no_half_line(tmp_path, monkeypatch):
    path = tmp_path / "receipts.ndjson"
    receipts = ReceiptFile(path)
    receipts.write(event_of(1))
    real = os.write
    with monkeypatch.context() as full:
        full.setattr("constancia._receipts.os.write", lambda file, data: real(file, data[:10]))
        with pytest.raises(OSError):
            receipts.write(event_of(2))
    with monkeypatch.context() as spoilt:
        def refuse(file):
            raise OSError("the disk says no")
        spoilt.setattr("constancia._receipts.os.fsync", refuse)
        with pytest.raises(OSError, match="the disk says no"):
            receipts.write(event_of(2))
    receipts.write(event_of(3))
    assert [one["sequence"] for one in lines_of(path)] == [1, 3]


def test_a_receipt_is_synced_before_the_call_returns(script, tmp_path, monkeypatch):  # noqa: F811
    steps, real = [], os.fsync

    def fsync(file):
        steps.append(os.readlink(f"/proc/self/fd/{file}"))
        real(file)
    monkeypatch.setattr("constancia._receipts.os.fsync", fsync)
    script.answers += [say(201, json.dumps(EVENT).encode())]
    path = tmp_path / "receipts.ndjson"
    with constancia.Client(script.url, "k", receipts=path) as client:
        client.register("r", {})
    assert set(steps) == {str(path), str(tmp_path)} and steps[-1] == str(path)
    assert path.stat().st_mode & 0o077 == 0


# ---- sinks, and what is said when keeping fails ----

class Sink:
    def __init__(self):
        self.seen = []

    def write(self, event):
        self.seen.append(event.event_id)


@pytest.mark.parametrize("receipts", [Sink(), [].append])
def test_a_sink_is_given_each_receipt(script, receipts):  # noqa: F811
    script.answers += [hang_up, say(200, json.dumps(EVENT).encode(), Idempotent_Replayed="true")]
    with constancia.Client(script.url, "k", receipts=receipts, retry=QUICK) as client:
        event = client.register("r", {})
    seen = receipts.seen if isinstance(receipts, Sink) else [one.event_id for one in receipts.__self__]
    assert seen == ["evt_1"] and event.replayed


def test_a_receipt_that_was_not_kept_is_in_the_error(script, tmp_path):  # noqa: F811
    def refuse(event):
        raise RuntimeError("the queue is full")
    for receipts, reason in ((refuse, "the queue is full"), (tmp_path / "missing" / "receipts.ndjson", "missing")):
        script.answers += [say(201, json.dumps(EVENT).encode())]
        with constancia.Client(script.url, "k", receipts=receipts) as client:
            with pytest.raises(ReceiptNotKept, match=reason) as failed:
                client.register("r", {})
        assert failed.value.event.event_id == "evt_1" and "registered" in str(failed.value)
        assert failed.value.__cause__ is not None
    script.answers += [say(201, json.dumps(EVENT).encode())]
    seen = []
    with constancia.Client(script.url, "k", receipts=seen.append) as client:
        with contextlib.suppress(constancia.DigestMismatch):
            client.register_file("r", __file__)
    assert [one.event_id for one in seen] == ["evt_1"], "the receipt of what was recorded wrongly is kept, too"
    with pytest.raises(TypeError):
        constancia.Client(script.url, "k", receipts=7)


def test_a_crash_between_two_receipts_loses_none_that_was_returned(tmp_path):
    path = tmp_path / "receipts.ndjson"
    context = multiprocessing.get_context("fork")
    for base in (1, 1001, 2001):
        read_end, write_end = os.pipe()

        def write(base=base, out=write_end):
            for n in range(1000):
                ReceiptFile(path, rotate_bytes=5000).write(event_of(base + n))
                os.write(out, f"{base + n}\n".encode())
        process = context.Process(target=write)
        process.start()
        os.close(write_end)
        with open(read_end, encoding="ascii") as returned:
            told = [int(returned.readline()) for _ in range(25)]
            process.kill()
            told += map(int, returned.read().split())
        process.join()
        ReceiptFile(path).write(event_of(base + 1000))
        kept = [one["sequence"] for one in lines_of(*receipt_files(path))]
        assert set(told) <= set(kept) and base + 1000 in kept
