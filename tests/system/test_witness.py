"""The witness of transparency logs: the protocol (C2SP tlog-witness) for logs made here, from the specification
(tests/support/tlog.py), its command line, and services that it cosigns for."""

import concurrent.futures
import contextlib
import http.client
import json
import random
import shutil
import socket
import threading
import time

import pytest

import tlog
from client import Client, eventually
from forgetful import Disk, build
from program import BINARY, NotStarted, run
from test_segment_log import ORIGIN, Log as ServiceLog, grow, started
from witness import Log, Witness

pytestmark = pytest.mark.sqlite
ROUNDS = 300


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def witness(tmp_path, log):
    one = Witness(tmp_path / "w", "witness.example/one", [log.key.vkey])
    one.start()
    yield one
    one.kill()


# ---- histories ----

def test_a_log_grows_over_kills(witness, log):
    """The witness is killed between requests, and with a request under way. It never forgets a cosigned tree."""
    chance = random.Random(1)
    size = 0
    for number in range(ROUNDS):
        new = size + chance.choice((0, 1, 1, 1, 2, 7))
        body = log.request(size, new)
        if number % 10 == 5:
            witness.kill()
            witness.start()
            assert (witness.known(log) or 0) == size
        if number % 10 == 9:
            size = ask_and_kill(witness, log, body, size, new, chance)
        else:
            assert witness.ask(body).status == 200
            size = new
            # A fork that has all leaves up to the half, at the same size and beyond.
            fork = log.fork(str(number).encode(), size // 2)
            assert size == 0 or witness.ask(fork.request(size, size)).status == 422
            assert size == 0 or witness.ask(fork.request(size, size + 3)).status == 422
    assert witness.known(log) == size > ROUNDS
    assert witness.stop() == 0


def ask_and_kill(witness, log, body, size, new, chance):
    """Kills it while it answers. Returns the size that it knows afterwards: the new one, if it answered that."""
    connection = witness.connect()
    connection.request("POST", "/add-checkpoint", body.encode())
    threading.Event().wait(chance.random() * 0.004)
    answered = None
    if chance.random() < 0.3:
        answered = connection.getresponse().status
    witness.kill()
    connection.close()
    witness.start()
    known = witness.known(log) or 0
    assert known == new if answered == 200 else known in (size, new)
    assert witness.ask(log.request(known, known)).status == 200
    return known


def test_requests_at_once(witness, log):
    """Trees of different sizes and of two histories, all from the same size: one of them is cosigned each time."""
    size = 5
    assert witness.ask(log.request(0, size)).status == 200
    history = log
    for number in range(20):
        fork = history.fork(str(number).encode(), size)
        bodies = [(one, new, one.request(size, new)) for one in (history, fork) for new in range(size + 1, size + 9)]
        random.Random(number).shuffle(bodies)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda item: witness.ask(item[2]), bodies))
        winners = [item for item, given in zip(bodies, answers) if given.status == 200]
        assert len(winners) == 1 and {given.status for given in answers} == {200, 409}
        history, size, _ = winners[0]
        assert {given.size for given in answers if given.status == 409} <= {size}
        assert witness.known(history) == size
        history.leaves(size + 9)
    sizes = [size for _, size in witness.cosigned]
    assert len(set(sizes)) == len(sizes)


def test_logs_do_not_touch_each_other(tmp_path):
    logs = [Log(f"log.example/{number}") for number in range(8)]
    one = Witness(tmp_path / "w", "witness.example/one", [log.key.vkey for log in logs])
    one.start()
    try:
        for size in range(1, 20):
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                done = pool.map(lambda log: one.ask(log.request(size - 1, size)).status, logs)
            assert set(done) == {200}
        assert [one.known(log) for log in logs] == [19] * 8
    finally:
        one.kill()


# ---- power failures (tests/support/forgetful.py) ----

@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "box", build(tmp_path))


def on_disk(folder, disk, log):
    return Witness(folder, "witness.example/one", [log.key.vkey], data=disk.root / "w", environment=disk.environment())


def test_nothing_cosigned_is_lost_in_a_power_failure(tmp_path, disk, log):
    one = on_disk(tmp_path / "w", disk, log)
    size = 0
    for number in range(12):
        one.start()
        for _ in range(number % 4 + 1):
            assert one.ask(log.request(size, size + 1)).status == 200
            size += 1
        assert one.ask(log.fork(b"x", size - 1).request(size, size)).status == 422
        one.kill()
        disk.cut()
    one.start()
    assert one.known(log) == size
    assert len(one.refused()) == 12
    one.kill()


@pytest.mark.parametrize("fault", ("fail", "lie", "kill"))
def test_a_sync_that_fails_is_not_followed_by_a_cosignature(tmp_path, disk, log, fault):
    """Neither does the process that comes after the failed one rely on pages that only seem to be written."""
    one = on_disk(tmp_path / "w", disk, log)
    one.start()
    assert one.ask(log.request(0, 1)).status == 200
    size = 1
    for number in range(1, 7):
        disk.plan(fault, "witness.db-wal", number // 2 + 1)
        for _ in range(8):
            status = try_to_ask(one, log.request(size, size + 1))
            size += status == 200
            if not disk.planned():
                break
        assert not disk.planned() and status == (None if fault == "kill" else 500)
        assert eventually(lambda: not one.alive() and one.process.returncode, "it ends") in (2, -9)
        if number % 2:
            disk.cut()
        one.start()
        known = one.known(log)
        assert known in (size, size + 1)
        assert one.ask(log.request(known, known + 1)).status == 200
        size = known + 1
        one.kill()
        disk.cut()
        one.start()
        assert one.known(log) == size
    one.kill()


@pytest.mark.parametrize("fault", ("fail", "lie", "kill"))
@pytest.mark.parametrize("part", ("witness.db$", "witness.db-wal"))
def test_a_sync_that_fails_at_the_end_or_the_start(tmp_path, disk, log, fault, part):
    one = on_disk(tmp_path / "w", disk, log)
    one.start()
    assert one.ask(log.request(0, 7)).status == 200
    disk.plan(fault, part)
    one.stop()  # moves the log of the database into it, as far as that is possible
    assert not disk.planned()
    disk.cut()
    one.start()
    assert one.known(log) == 7
    one.kill()
    disk.plan(fault, part)
    with contextlib.suppress(NotStarted):
        one.start()
    one.kill()
    disk.cut()
    one.start()
    assert one.known(log) == 7 and one.ask(log.request(7, 8)).status == 200
    one.kill()


def test_a_power_failure_while_a_witness_is_made(tmp_path, disk, log):
    words = [BINARY, "witness", "key", "--data", disk.root / "w"]
    for number in range(1, 100):
        disk.plan("kill", "disk/w", number)
        done = run([*words, "--name", "witness.example/one"], environment=disk.environment())
        missed = disk.planned()
        disk.cut()
        again = run([*words, "--name", "witness.example/one"], environment=disk.environment())
        assert again.returncode == 0, (number, done, again)
        assert not done.stdout or done.stdout == again.stdout
        one = on_disk(tmp_path / str(number), disk, log)
        one.start()
        assert one.ask(log.request(0, number)).status == 200
        one.kill()
        if missed:
            break
        shutil.rmtree(disk.root / "w")
    assert missed and number > 5


def try_to_ask(witness, body):
    try:
        return witness.ask(body).status
    except (OSError, http.client.HTTPException):
        return None


# ---- requests that are wrong ----

def wrong_requests(log):
    """(what, body, status) of a witness that knows 12 leaves."""
    good = log.request(12, 20)
    proof = log.proof(12, 20)
    false = log.note(20)[:-12] + "AAAAAAAAAA=\n"
    other = Log("other.example")
    impostor = tlog.Key(log.key.name, tlog.ED25519)
    fork = log.fork(b"x", 11)
    yield "nothing", "", 400
    yield "no size", good.split("\n", 1)[1], 400
    yield "a leading zero", good.replace("old 12", "old 012", 1), 400
    yield "a negative size", good.replace("old 12", "old -12", 1), 400
    yield "two spaces", good.replace("old 12", "old  12", 1), 400
    yield "line ends of Windows", good.replace("\n", "\r\n"), 400
    yield "a proof that is not base64", good.replace("\n", "\n!", 1), 400
    yield "a short hash", log.request(12, 20, [proof[0][:31]]), 400
    yield "64 hashes", log.request(12, 20, proof * 64), 400
    yield "no checkpoint", good.split("\n\n")[0] + "\n\n", 400
    yield "no signature", log.request(12, 20, note=log.text(20) + "\n"), 400
    yield "no end", good[:-1], 400
    yield "a size that is none", log.request(12, 20, note=log.note(20).replace("\n20\n", "\n2O\n")), 400
    yield "a size of 2^64", log.request(12, 20, note=log.note(20).replace("\n20\n", f"\n{1 << 64}\n")), 400
    yield "an old size above the new one", log.request(21, 20, []), 400
    yield "an unknown log", other.request(0, 3), 404
    yield "no key of the log", log.request(12, 20, note=log.note(20, signers=[other.key])), 403
    yield "another key with the name of the log", log.request(12, 20, note=log.note(20, signers=[impostor])), 403
    yield "a false signature", log.request(12, 20, note=false), 403
    yield "a signature of another size", log.request(12, 20, note=log.note(19).replace("\n19\n", "\n20\n")), 403
    yield "no old size", log.request(0, 20), 409
    yield "an older size", log.request(11, 20), 409
    yield "a newer size", log.request(13, 20), 409
    yield "no proof", log.request(12, 20, []), 422
    yield "a proof from elsewhere", log.request(12, 20, log.proof(11, 20)), 422
    yield "a proof with one hash more", log.request(12, 20, proof + proof[:1]), 422
    yield "a proof for the same size", log.request(12, 12, proof[:1]), 422
    yield "another tree of the same size", fork.request(12, 12), 422
    yield "a tree of another history", fork.request(12, 20), 422


def test_wrong_requests(witness, log):
    assert witness.ask(log.request(0, 12)).status == 200
    kept = witness.call("GET", log.path).body
    for what, body, status in wrong_requests(log):
        given = witness.ask(body)
        assert given.status == status, (what, given)
        if status == 409:
            assert given.size == 12
        else:
            assert given.headers["Content-Type"] == "text/plain; charset=utf-8" and given.body.endswith("\n"), what
    assert witness.call("GET", log.path).body == kept
    assert witness.ask(log.request(12, 20)).status == 200
    assert witness.log_lines() and not [line for line in witness.log_lines() if line["event"] == "request_failed"]


def test_the_first_request(witness, log):
    assert witness.ask(log.request(0, 9, log.proof(4, 9))).status == 422
    assert witness.ask(log.request(4, 9)).size == 0
    assert witness.known(log) is None
    assert witness.ask(log.request(0, 0)).status == 200
    assert witness.known(log) == 0
    empty = log.note(0).replace(log.text(0).split("\n")[2], log.text(1).split("\n")[2])
    text, _ = tlog.parse_note(empty)
    assert witness.ask(log.request(0, 0, note=text + "\n" + log.key.sign(text))).status == 422
    assert witness.ask(log.request(0, 9)).status == 200


def test_a_note_with_more(witness, log):
    """Extension lines are cosigned; signatures of others are ignored, and not given to monitors."""
    others = [tlog.Key(f"other.example/{number}", tlog.ED25519) for number in range(20)]
    note = log.note(5, "more of it\n", [*others, log.key])
    assert witness.ask(log.request(0, 5, note=note)).status == 200
    served = witness.call("GET", log.path).body
    text, signatures = tlog.parse_note(served)
    assert text == log.text(5, "more of it\n")
    assert [name for name, _, _ in signatures] == [log.key.name, witness.name]


@pytest.mark.parametrize("method, path, status, allow", (
    ("GET", "/add-checkpoint", 405, "POST"), ("PUT", "/add-checkpoint", 405, "POST"), ("POST", "/", 404, None),
    ("GET", "/", 404, None), ("GET", "/checkpoint", 404, None), ("GET", "/add-checkpoint/", 404, None),
    ("POST", "/{hash}/checkpoint", 405, "GET, HEAD"), ("GET", "/{HASH}/checkpoint", 404, None),
    ("GET", "/{hash}/checkpoint/", 404, None), ("GET", "/{other}/checkpoint", 404, None),
    ("GET", "/{hash}/checkpoint", 200, None), ("HEAD", "/{hash}/checkpoint", 200, None)))
def test_paths_and_methods(witness, log, method, path, status, allow):
    assert witness.ask(log.request(0, 3)).status == 200
    known = log.path.split("/")[1]
    given = witness.call(method, path.format(hash=known, HASH=known.upper(), other="0" * 64),
                         "x" if method in ("POST", "PUT") else None)
    assert (given.status, given.headers["Allow"]) == (status, allow)


def test_large_bodies(witness, log):
    limit = 128 << 10
    filled = log.request(0, 3)
    for size, status in ((limit, 400), (limit + 1, 413), (900_000, 413)):
        body = filled + "x" * (size - len(filled.encode()))
        assert witness.call("POST", "/add-checkpoint", body).status == status
        assert witness.call("POST", "/add-checkpoint", iter([body.encode()])).status == status  # in chunks
    # Without end, it is ended.
    with contextlib.closing(witness.connect()) as endless, pytest.raises((OSError, http.client.HTTPException)):
        endless.request("POST", "/add-checkpoint", (b"x" * 65536 for _ in range(1000)))
        endless.getresponse()
    assert witness.ask(filled).status == 200


CHUNKED = b"POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\n\r\n"
UNFINISHED = (b"POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: 1000\r\n\r\nold 0\n", b"POST /add-che", b"",
              b"GET / HTTP/1.1\r\nX: ", CHUNKED + b"500\r\nold", CHUNKED + b"5;" + b"x" * 40000)


def test_slow_clients_delay_no_other_and_are_cut(witness, log):
    slow = []
    for number in range(40):
        connection = socket.create_connection(("127.0.0.1", witness.port))
        connection.settimeout(120)
        connection.sendall(UNFINISHED[number % len(UNFINISHED)])
        slow.append(connection)
    for size in range(1, 30):
        assert witness.ask(log.request(size - 1, size)).status == 200
    assert all(is_open(connection) for connection in slow)
    done = threading.Event()

    def dribble():
        while not done.wait(0.5):
            with contextlib.suppress(OSError):
                slow[0].sendall(b"\n")

    feeder = threading.Thread(target=dribble)
    feeder.start()
    try:
        eventually(lambda: not any(is_open(connection) for connection in slow), "they are cut", patience=120)
    finally:
        done.set()
        feeder.join()
        for connection in slow:
            connection.close()
    assert witness.ask(log.request(29, 30)).status == 200


def test_a_crowd_of_unfinished_requests_is_cut_soon(witness, log):
    """Three times as many connections as there may be, from an address that is not counted."""
    crowd = []
    try:
        for number in range(800):
            connection = socket.create_connection(("127.0.0.1", witness.port))
            connection.sendall(UNFINISHED[number % len(UNFINISHED)][:200])
            crowd.append(connection)
        begun = time.monotonic()
        eventually(lambda: witness.ask(log.request(0, 1)).status in (200, 409), "it answers", patience=120)
        assert time.monotonic() - begun < 30, "the usual time of one request"
    finally:
        for connection in crowd:
            connection.close()


def test_connections_of_an_address_are_bounded(tmp_path, log):
    """Other than loopback addresses, behind which there is a proxy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing
        own = probe.getsockname()[0]
    if own.startswith(("127.", "0.")):
        pytest.skip("this machine has no address other than loopback")
    one = Witness(tmp_path / "w", "witness.example/one", [log.key.vkey], host="0.0.0.0")
    one.start()
    with contextlib.ExitStack() as stack:
        stack.callback(one.kill)
        made = [stack.enter_context(socket.create_connection((own, one.port))) for _ in range(20)]
        eventually(lambda: [is_open(connection) for connection in made] == [True] * 16 + [False] * 4,
                   "those beyond the limit are closed")
        assert one.ask(log.request(0, 1)).status == 200
        made[0].close()
        eventually(lambda: admits(own, one.port), "there is space for one")


def admits(address, port):
    with socket.create_connection((address, port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: w\r\n\r\n")
        try:
            return connection.recv(12) == b"HTTP/1.1 404"
        except OSError:
            return False


def is_open(connection):
    connection.setblocking(False)
    try:
        return connection.recv(4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        connection.setblocking(True)


def test_a_connection_is_kept(witness, log):
    connection = witness.connect()
    connection.connect()
    used = connection.sock
    for size in range(1, 20):
        assert witness.ask(log.request(size - 1, size), connection).status == 200
        assert witness.ask(log.request(0, size), connection).size == size
        assert connection.sock is used
    connection.close()


# ---- evidence ----

def test_refused_checkpoints_are_kept(witness, log):
    fork = log.fork(b"x", 11)
    assert witness.ask(log.request(0, 12)).status == 200
    note = witness.call("GET", log.path).body
    body = fork.request(12, 12)
    for _ in range(3):
        assert witness.ask(body).status == 422
    assert witness.ask(fork.request(12, 14)).status == 422
    assert witness.ask(log.request(12, 14, [])).status == 422
    # Any old size, as the two checkpoints are proof without it.
    late = log.fork(b"y", 5).request(0, 12)
    assert witness.ask(late).size == 12
    kept = {document["request"]: document for document in witness.refused()}
    assert kept[body] == {"at": kept[body]["at"], "kind": "fork", "known": note, "origin": log.key.name,
                          "request": body}
    assert kept[late]["kind"] == "fork" and kept[fork.request(12, 14)]["kind"] == "unproven"
    # A reader of the file can prove the fork without the witness.
    both = [kept[body]["known"], kept[body]["request"].split("\n\n", 1)[1]]
    assert [tlog.verify_note(one, log.key.vkey) for one in both] == [[None], [None]]
    first, second = (tlog.parse_checkpoint(tlog.parse_note(one)[0]) for one in both)
    assert first[:2] == second[:2] and first[2] != second[2]
    lines = witness.logged(lambda line: line["event"] == "checkpoint_refused", 4)
    assert [line["kind"] for line in lines] == ["fork", "unproven", "unproven", "fork"]
    assert all((witness.data / line["file"]).exists() and line["level"] == "error" for line in lines)


def test_kept_checkpoints_are_bounded(witness, log):
    assert witness.ask(log.request(0, 3)).status == 200
    for number in range(40):
        assert witness.ask(log.fork(str(number).encode()).request(3, 3)).status == 422
    assert len(witness.refused()) == 32
    witness.logged(lambda line: line["event"] == "refusal_not_kept")


# ---- the command line ----

def command(*words, expect=0):
    done = run([BINARY, "witness", *words, "--json"])
    assert done.returncode == expect, done
    return json.loads(done.stdout) if expect == 0 else json.loads(done.stderr)


def test_the_key(tmp_path, log):
    data = tmp_path / "data"
    assert "needs a name" in command("key", "--data", data, expect=2)["cause"]
    made = command("key", "--data", data, "--name", "witness.example/one")
    name, _, kind, _ = tlog.parse_vkey(made["vkey"])
    assert (name, kind) == ("witness.example/one", tlog.COSIGNATURE) == (made["name"], 4)
    assert command("key", "--data", data) == made == command("key", "--data", data, "--name", made["name"])
    assert "witness.example/one" in command("key", "--data", data, "--name", "other", expect=2)["cause"]
    assert (data / "witness.key").stat().st_mode & 0o777 == 0o600
    assert tlog.Key.load(name, 4, (data / "witness.key").read_bytes()).vkey == made["vkey"]
    # A key without its memory is not used.
    (data / "witness.db").unlink()
    assert "witness.db" in command("serve", "--data", data, "--listen", "127.0.0.1:0", "--log", log.key.vkey,
                                   expect=1)["cause"]


@pytest.mark.parametrize("words, named", (
    ([], "--data"), (["--data", "{data}"], "--listen"), (["--data", "{data}", "--listen", "here"], "--listen"),
    (["--data", "{data}", "--listen", "127.0.0.1:0"], "--log"),
    (["--data", "{data}", "--listen", "127.0.0.1:0", "--log", "x"], "--log"),
    (["--data", "{data}", "--listen", "127.0.0.1:0", "--log", "{witness}"], "--log"),
    (["--data", "{data}", "--listen", "127.0.0.1:0", "--policy", "{policy}"], "line 2"),
    (["--data", "{data}", "--listen", "127.0.0.1:0", "--log", "{log}", "--name", "a b"], "name")))
def test_wrong_options(tmp_path, log, words, named):
    policy = tmp_path / "policy"
    policy.write_text("quorum none\nlog x\n", encoding="utf-8")
    places = {"data": tmp_path / "data", "policy": policy, "log": log.key.vkey,
              "witness": tlog.Key("w", tlog.COSIGNATURE).vkey}
    refused = command("serve", *(word.format(**places) for word in words), expect=2)
    assert named in f"{refused['message']} {refused.get('cause')}"
    assert not (tmp_path / "data" / "witness.key").exists()


def test_logs_of_a_policy(tmp_path, log):
    """A policy names more logs; its witnesses and quorum do not matter. Several keys of one name are one log."""
    second, newer = Log("second.example"), tlog.Key(log.key.name, tlog.ED25519)
    policy = tmp_path / "policy"
    policy.write_text(f"# ours\nlog {second.key.vkey} https://log.example/\nlog {newer.vkey}\n"
                      f"witness w {tlog.Key('w', tlog.COSIGNATURE).vkey}\nquorum w\n", encoding="utf-8")
    one = Witness(tmp_path / "w", "witness.example/one", [log.key.vkey], ["--policy", policy])
    one.start()
    try:
        assert one.ask(log.request(0, 3)).status == one.ask(second.request(0, 4)).status == 200
        assert one.ask(log.request(3, 5, note=log.note(5, signers=[newer]))).status == 200
        assert one.ask(log.request(5, 6, note=log.note(6, signers=[log.key, newer]))).status == 200
        # One process serves, and others may ask for the key.
        again = run([one.binary, *one.serving(), *one.chosen()])
        assert again.returncode == 2 and "witness.lock" in again.stderr
        assert command("key", *one.chosen())["vkey"] == one.vkey
        assert one.stop() == 0
        # A log that is no longer named is unknown, and monitors still get what was cosigned.
        one.words = ()
        one.start()
        assert one.ask(second.request(4, 5)).status == 404
        assert one.known(second) == 4
    finally:
        one.kill()


# ---- services ----

@pytest.fixture
def witnessed(tmp_path):
    """A service, and two witnesses that know its log's key."""
    (tmp_path / "a").mkdir()
    service = started(tmp_path / "a")
    service.start()  # it makes the key
    assert service.stop() == 0
    key = tlog.Key.load(ORIGIN, tlog.ED25519, (service.data / "signer" / "log.key").read_bytes())
    pair = [Witness(tmp_path / name, f"witness.example/{name}", [key.vkey]) for name in ("one", "two")]
    for one in pair:
        one.start()
    service = started(tmp_path / "a", *pair, **WITNESSING)
    service.start()
    yield service, pair
    service.discard()
    for one in pair:
        one.kill()


WITNESSING = {"log__quorum": 2, "log__witness_timeout": "2s"}


def cosigners(log, pair):
    note = log.remote.note()
    return [bool(tlog.verify_note(note, one.vkey)) for one in pair]


def test_a_service_gets_cosignatures(witnessed):
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = ServiceLog(service)
    for _ in range(5):
        grow(log, channel, 1)
        assert cosigners(log, pair) == [True, True]
    # One of them is away: the log is published without it, after the time-out, and the quorum is missed.
    pair[1].kill()
    grow(log, channel, 3)
    assert cosigners(log, pair) == [True, False]
    assert service.metric("log_quorums_missing_total") >= 1 and service.metric("log_witness_failures_total") >= 1
    # It returns, and is given the proof from the tree that it knows.
    pair[1].start()
    grow(log, channel, 1)
    eventually(lambda: cosigners(log, pair) == [True, True], "the witness that was away cosigns")
    # And after a restart of the service, which does not remember what they know.
    service.kill()
    service.start()
    channel.live = Client(service, channel.live_key["key"])
    log = ServiceLog(service)
    grow(log, channel, 1)
    eventually(lambda: cosigners(log, pair) == [True, True], "both cosign after the restart")
    assert service.metric("log_witness_refusals_total") == 0
    assert not pair[0].refused() and not pair[1].refused()
    log.remote.check()


def test_a_copy_of_the_store_is_found_out(witnessed, tmp_path):
    """Two services with one key and one history up to the copy: only one continues with cosignatures."""
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = ServiceLog(service)
    grow(log, channel, 2)
    assert service.stop() == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    service.start()
    channel.live = Client(service, channel.live_key["key"])
    log = ServiceLog(service)
    grow(log, channel, 2)
    eventually(lambda: cosigners(log, pair) == [True, True], "the history is cosigned")
    copy = started(tmp_path / "b", *pair, **WITNESSING)
    copy.start()
    try:
        other = ServiceLog(copy)
        Client(copy, channel.live_key["key"]).register({"another": "history"}).expect(201)
        eventually(lambda: copy.metric("log_witness_refusals_total") >= 1, "the witnesses refuse the copy")
        assert [line for line in copy.log_lines() if line["event"] == "log_witness_refuses"]
        before = other.size()
        grow(other, SameChannel(Client(copy, channel.live_key["key"])), 4)
        assert other.size() > before and cosigners(other, pair) == [False, False]
        eventually(lambda: pair[0].refused() and pair[1].refused(), "both witnesses keep what they refused")
        grow(log, channel, 1)
        eventually(lambda: cosigners(log, pair) == [True, True], "the history is still cosigned")
        assert service.metric("log_witness_refusals_total") == 0
    finally:
        copy.discard()


class SameChannel:
    def __init__(self, live):
        self.live = live


