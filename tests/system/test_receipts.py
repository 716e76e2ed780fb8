"""Signed receipts: every answer to a registration that is acknowledged has one, and it is valid for what the store has,
whatever is killed, retried or repeated."""

import concurrent.futures
import contextlib
import datetime
import gzip
import http.client
import json
import os
import signal
import threading
import zipfile

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import receipts
from client import Client, eventually, run

pytestmark = pytest.mark.both_stores

ORIGIN = "log.example/segments"
UNSIGNED = "receipts_unsigned_total"
STABLE = ("event_id", "channel_id", "client_ref", "sequence", "received_at", "hash", "chain_hash")


@pytest.fixture(scope="module")
def signing(start):
    return start(log__origin=ORIGIN)


@pytest.fixture
def own(signing):
    channel = signing.new_channel(credits=100000)
    yield channel
    channel.close()


def key_of(service):
    """The public key of receipt.key, as receipts state it."""
    pem = (service.data / "signer" / "receipt.key").read_bytes()
    return receipts.text_of(serialization.load_pem_private_key(pem, None))


def assert_signed(service, event):
    assert receipts.is_signed(event), event
    assert event["receipt"]["origin"] == ORIGIN
    assert event["receipt"]["key"] == key_of(service)


def without_receipt(event):
    return {name: value for name, value in event.items() if name != "receipt"}


def test_a_registration_and_its_replay_are_signed(signing, own):
    event = own.live.register({"a": 1}, "one").expect(201).json
    assert_signed(signing, event)
    assert receipts.seconds(event) == 600
    again = own.live.register({"a": 1}, "one").expect(200).json
    assert_signed(signing, again)
    assert without_receipt(again) == without_receipt(event)
    assert receipts.statement(again) == receipts.statement(event)
    for name, value in (("chain_hash", "0" * 64), ("sequence", 2), ("mode", "test"), ("hash", "1" * 64),
                        ("received_at", "2026-01-01T00:00:00.000000Z"), ("channel_id", own.id + "0")):
        assert not receipts.is_signed({**event, name: value}), name
    for name, value in (("origin", "other.example/log"), ("seal_by", None)):
        assert not receipts.is_signed({**event, "receipt": {**event["receipt"], name: value}}), name


def test_every_kind_of_declaration_has_a_receipt(signing, own):
    file = own.live.register_file(b"z" * 100000, "file").expect(201).json
    large = own.live.register({"text": "x" * 20000}, "large").expect(201).json
    test = own.test.register({"a": 1}, "test").expect(201).json
    hashes = signing.new_channel("hash_only")
    digest = hashes.live.register_hash("ab" * 64, "digest", hash_alg="sha-512").expect(201).json
    hashes.close()
    for event in (file, large, test, digest):
        assert_signed(signing, event)
    assert test["receipt"]["seal_by"] is None
    listed = own.live.get("/v1/events").json["data"]
    assert all("receipt" not in event for event in listed), "it is of the registration, not of the event"
    assert "receipt" not in own.live.event(file["event_id"])


def test_one_signature_serves_a_batch(signing, own):
    first = own.live.register({"n": 0}, "item-0").expect(201).json
    items = [{"client_ref": f"item-{n}", "payload": {"n": n}} for n in range(300)]
    items.insert(7, {"client_ref": "item-0", "payload": {"n": "another"}})
    outcomes = own.live.register_batch(items)
    assert [line["http_status"] for line in outcomes[:2]] == [200, 201]
    assert outcomes[7]["http_status"] == 409 and "receipt" not in outcomes[7]
    events = [line for line in outcomes if line["http_status"] != 409]
    for event in events:
        assert_signed(signing, event)
    assert without_receipt(events[0]) == {**without_receipt(first), "http_status": 200}
    trees = {receipts.root(event) for event in events}
    places = {(receipts.root(event), event["receipt"]["index"]) for event in events}
    assert len(places) == len(events), "each has a leaf of its own"
    assert len(trees) <= 3 and max(event["receipt"]["size"] for event in events) >= 100, "few batches of the sequencer"


def test_a_refusal_has_no_receipt(own):
    own.live.register({"a": 1}, "one").expect(201)
    assert "receipt" not in own.live.register({"a": 2}, "one").expect(409, "client_ref_conflict").json


def test_concurrent_accounts_have_receipts_of_their_own_batches(signing):
    """Several sequencers on PostgreSQL sign in lanes that do not mix."""
    channels = [signing.new_channel(credits=10000) for _ in range(8)]

    def register(channel):
        return [channel.live.register({"n": n}).expect(201).json for n in range(40)]

    with concurrent.futures.ThreadPoolExecutor(len(channels)) as pool:
        for channel, events in zip(channels, pool.map(register, channels)):
            for event in events:
                assert_signed(signing, event)
                assert event["channel_id"] == channel.id
    for channel in channels:
        channel.close()


def test_what_was_acknowledged_before_a_kill_is_what_the_store_has(start):
    """Receipts leave after the commit: no acknowledged receipt is of an event that the kill removed, or of another."""
    service = start(log__origin=ORIGIN, seal__interval="1h")
    channels = [service.new_channel(credits=100000) for _ in range(4)]
    for _ in range(3):
        acknowledged, stopping = [], threading.Event()

        def load(channel, known=acknowledged, stop=stopping):
            client = Client(service, channel.live.key)
            for n in range(100000):
                if stop.is_set():
                    break
                reference = f"{len(known)}-{n}-{threading.get_ident()}"
                try:
                    answer = client.register({"n": n}, reference)
                except (OSError, http.client.HTTPException):
                    break
                if answer.status == 201:
                    known.append((channel, n, answer.json))
            client.close()

        threads = [threading.Thread(target=load, args=[channel]) for channel in channels]
        for thread in threads:
            thread.start()
        eventually(lambda: len(acknowledged) > 60, "events are acknowledged")
        service.kill()
        stopping.set()
        for thread in threads:
            thread.join()
        service.start()
        for channel, n, event in acknowledged:
            assert_signed(service, event)
            again = channel.live.register({"n": n}, event["client_ref"]).expect(200).json
            assert_signed(service, again)
            assert [again[name] for name in STABLE] == [event[name] for name in STABLE]
            assert receipts.statement(again) == receipts.statement(event)
    assert service.stop() == 0


def test_a_signing_process_that_stands_still_delays_nothing_for_long(start):
    """Events are acknowledged with a null receipt, which is counted and logged; then they are signed again."""
    service = start(log__origin=ORIGIN, seal__interval="1h")
    channel = service.new_channel()
    assert_signed(service, channel.live.register({"n": 0}).expect(201).json)
    assert service.metric(UNSIGNED) == 0
    (signer,) = service.children("receipt-signer")
    os.kill(signer, signal.SIGSTOP)
    for n in range(1, 6):
        event = channel.live.register({"n": n}).expect(201).json
        assert event["receipt"] is None and event["sequence"] == n + 1
    assert service.metric(UNSIGNED) == 5
    (line,) = service.logged(lambda line: line["event"] == "receipts_unsigned")
    assert line["level"] == "warning"
    os.kill(signer, signal.SIGCONT)

    def signs():
        return channel.live.register({"n": 9}).expect(201).json["receipt"]
    assert eventually(signs, "receipts are signed again")
    assert_signed(service, channel.live.register({"n": 10}).expect(201).json)


def test_the_service_ends_with_its_signer_of_receipts(start):
    """The supervisor restarts both; the key stays."""
    service = start(log__origin=ORIGIN)
    key = key_of(service)
    (signer,) = service.children("receipt-signer")
    os.kill(signer, signal.SIGKILL)
    assert service.process.wait(90) == 1
    assert any(line["event"] == "receipt_signer_ended" for line in service.log_lines())
    service.process = None
    service.start()
    event = service.new_channel().live.register().expect(201).json
    assert_signed(service, event)
    assert event["receipt"]["key"] == key


def test_a_signer_of_receipts_that_hangs_is_replaced(start):
    service = start(log__origin=ORIGIN, environment={"TORTURE_SIZES": "receipt_stuck_us=2000000"})
    channel = service.new_channel()
    (signer,) = service.children("receipt-signer")
    os.kill(signer, signal.SIGSTOP)

    def ends():
        with contextlib.suppress(OSError, http.client.HTTPException):
            channel.live.register()
        return service.process.poll() is not None
    eventually(ends, "the service ends")
    assert service.process.returncode == 1
    assert any(line["event"] == "receipt_signer_ended" for line in service.log_lines())
    service.process = None
    service.start()
    assert_signed(service, service.new_channel().live.register().expect(201).json)


def test_receipts_can_be_turned_off_and_promises_changed(start):
    service = start(log__origin=ORIGIN, receipt__signed="false")
    channel = service.new_channel()
    assert channel.live.register().expect(201).json["receipt"] is None
    assert channel.live.register_batch([{"client_ref": "b", "payload": {}}])[0]["receipt"] is None
    assert not service.children("receipt-signer")
    assert not (service.data / "signer" / "receipt.key").exists()
    assert service.metric(UNSIGNED) == 0
    other = start(log__origin=ORIGIN, seal__promise="90s")
    event = other.new_channel().live.register().expect(201).json
    assert_signed(other, event)
    assert receipts.seconds(event) == 90
    assert json.dumps(event).count(ORIGIN) == 1


# ---- what they prove ----

def shifted(text, **by):
    time = datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) + datetime.timedelta(**by)
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def listed_key(service):
    """The signed list, once it names the key of receipts."""
    return eventually(lambda: Client(service).get("/v1/signers.p7m").status == 200, "the list is signed")


@pytest.fixture(scope="module")
def certified(start, tmp_path_factory):
    """A sealed and certified channel: its service, events and archive."""
    service = start(log__origin=ORIGIN, seal__interval="300ms")
    channel = service.new_channel()
    listed_key(service)
    events = [channel.live.register({"n": n}, f"event-{n}").expect(201).json for n in range(6)]
    done = channel.live.certified(seq_from=2, seq_to=5)
    archive = tmp_path_factory.mktemp("archive") / "archive.zip"
    archive.write_bytes(channel.live.download(done["evidence_url"]).expect(200).body)
    channel.close()
    return service, events, archive


def verified(certified, tmp_path, *given):
    service, _, archive = certified
    path = tmp_path / "receipts.ndjson"
    path.write_text("".join(json.dumps(event) + "\n" for event in given), encoding="utf-8")
    done = run("verify", archive, "--json", "--trust", service.data / "trust.pem", "--receipt", path)
    told = json.loads(done.stdout)
    return done.returncode, {finding["code"] for finding in told["findings"] + told["warnings"]}


def private_key(service):
    return serialization.load_pem_private_key((service.data / "signer" / "receipt.key").read_bytes(), None)


def test_the_key_is_on_the_list_of_signers(certified):
    service, events, _ = certified
    public = Client(service).get("/v1/signers").expect(200).json
    assert [key["key"] for key in public["receipt_keys"]] == [events[0]["receipt"]["key"]]
    (log,) = public["log_keys"]
    assert log["key"].startswith(ORIGIN + "+")


def test_genuine_receipts_match_the_archive(certified, tmp_path):
    _, events, _ = certified
    status, codes = verified(certified, tmp_path, *events[1:5])
    assert status == 0 and not {code for code in codes if code.startswith("receipt.")}, codes


def test_a_signed_contradiction_is_proof_against_the_service(certified, tmp_path):
    """The operator acknowledged one history and certified another."""
    service, events, _ = certified
    other = {**events[2], "chain_hash": "ab" * 32}
    seal_by = events[2]["receipt"]["seal_by"]
    signed = receipts.sign(other, private_key(service), ORIGIN, seal_by)
    assert receipts.is_signed(signed)
    status, codes = verified(certified, tmp_path, signed)
    assert status == 1 and "receipt.two_histories" in codes
    # Anybody can sign with a key of their own, or alter a receipt: nothing shows which one is genuine.
    stranger = receipts.sign(other, ed25519.Ed25519PrivateKey.generate(), ORIGIN, seal_by)
    assert receipts.is_signed(stranger)
    status, codes = verified(certified, tmp_path, stranger)
    assert status == 2 and "receipt.event_differs" in codes and "receipt.two_histories" not in codes
    status, codes = verified(certified, tmp_path, {**other, "receipt": None})
    assert status == 2 and "receipt.event_differs" in codes
    status, codes = verified(certified, tmp_path, other)
    assert status == 2 and "receipt.event_differs" in codes
    status, codes = verified(certified, tmp_path, {**events[2], "receipt": {**events[2]["receipt"], "origin": "x"}})
    assert status == 2 and "receipt.signature" in codes


def with_stream(archive, altered, stream, change):
    """A copy of the archive with another text in that stream, and nothing else changed."""
    with zipfile.ZipFile(archive) as given, zipfile.ZipFile(altered, "w") as made:
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename.startswith(stream + "/"):
                text = gzip.decompress(content)
                assert change(text) != text
                content = gzip.compress(change(text), mtime=0)
            made.writestr(entry, content, compress_type=entry.compress_type)
    return altered


def test_an_altered_copy_of_an_archive_is_no_proof_against_the_service(certified, tmp_path):
    """Somebody who passes the archive on exchanges the digest of an event in it."""
    service, events, archive = certified
    altered = with_stream(archive, tmp_path / "altered.zip", "events",
                          lambda text: text.replace(events[2]["hash"].encode(), b"ab" * 32))
    status, codes = verified((service, events, altered), tmp_path, events[2])
    assert status == 1 and "receipt.two_histories" not in codes and "receipt.event_differs" in codes, codes
    assert codes & {"archive.file_size", "archive.file_digest"}, codes


@pytest.mark.parametrize("line", ["{", '{"consistency":[],"note":"' + "B" * 1000 + '"}'])
def test_a_checkpoint_that_is_not_valid_leaves_the_one_before_it(certified, tmp_path, line):
    """The last valid one is judged, by its own signature."""
    service, _, archive = certified

    def add(text):
        assert text.count(b"\n") == 1, "one checkpoint"
        return text + line.encode() + b"\n"
    done = run("verify", with_stream(archive, tmp_path / "altered.zip", "checkpoints", add), "--json",
               "--trust", service.data / "trust.pem")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert [log["signed"] for log in told["logs"]] == [True], told["logs"]
    assert "log.signature_false" not in {finding["code"] for finding in told["findings"]}


def test_a_broken_promise_is_found(certified, tmp_path):
    service, events, _ = certified
    earlier = shifted(events[2]["received_at"], hours=-1)
    withheld = receipts.sign({**events[2], "sequence": 1000}, private_key(service), ORIGIN, earlier)
    status, codes = verified(certified, tmp_path, withheld)
    assert status == 1 and "receipt.withheld" in codes
    late = receipts.sign(events[2], private_key(service), ORIGIN, earlier)
    status, codes = verified(certified, tmp_path, late)
    assert status == 0 and "receipt.late" in codes
    kept = receipts.sign({**events[2], "sequence": 1000}, private_key(service), ORIGIN, events[2]["receipt"]["seal_by"])
    status, codes = verified(certified, tmp_path, kept)
    assert status == 2 and codes & {"receipt.withheld", "receipt.event_not_given"} == {"receipt.event_not_given"}


def test_receipts_without_a_promise_are_named(certified, tmp_path):
    service, events, _ = certified
    for seal_by in (None, "9999-12-31T23:59:59.999999Z"):
        status, codes = verified(certified, tmp_path, receipts.sign(events[2], private_key(service), ORIGIN, seal_by))
        assert status == 0 and "receipt.no_promise" in codes, codes


# ---- replacement of the key ----

def receipt_keys(service):
    return {each["key"]: each["used_until"] for each in Client(service).get("/v1/signers").expect(200).json["receipt_keys"]}


def test_a_key_is_replaced_without_a_gap_and_ended(start):
    service = start(log__origin=ORIGIN)
    channel = service.new_channel(credits=1000)
    file = service.data / "signer" / "receipt.key"
    old, old_pem = key_of(service), file.read_bytes()
    assert_signed(service, channel.live.register().expect(201).json)
    eventually(lambda: receipt_keys(service) == {old: None}, "the key is listed")
    assert service.stop() == 0
    file.unlink()
    service.start()
    client = Client(service, channel.live_key["key"])
    assert_signed(service, client.register().expect(201).json)
    new = key_of(service)
    assert new != old
    eventually(lambda: receipt_keys(service) == {old: None, new: None}, "both keys are listed")
    done = service.run("signer", "end-key", old, "--reason", "replaced")
    assert done.returncode == 0, done.stderr
    ended = receipt_keys(service)
    assert ended[new] is None and ended[old] is not None
    for key in (old, "AAAA"):
        assert service.run("signer", "end-key", key).returncode == 1, "it is not in use"
    assert receipt_keys(service) == ended
    # The old key again, by mistake: receipts go on, and the log says that nobody can attribute them.
    assert service.stop() == 0
    file.write_bytes(old_pem)
    service.start()
    assert_signed(service, Client(service, channel.live_key["key"]).register().expect(201).json)
    eventually(lambda: any(line["event"] == "public_keys_not_listed" for line in service.log_lines()), "it is logged")
    assert receipt_keys(service) == ended
