"""The transparency log of segments, read as anybody can and checked with an implementation of its own
(tests/support/tlog.py), and its witnesses, which are written from the specification (scripted_witness.py)."""

import gzip
import json
import re
import shutil
import time
import zipfile

import pytest

import stores
import tlog
from client import Client, Service, eventually, form, run
from scripted_witness import ScriptedWitness

INTERVAL = "200ms"
ORIGIN = "log.example/segments"


class Log:
    """The log of a running service."""

    def __init__(self, service):
        self.service = service
        self.remote = tlog.RemoteLog(f"http://127.0.0.1:{service.port}/log")
        pem = (service.data / "signer" / "log.key").read_bytes()
        self.key = tlog.Key.load(ORIGIN, tlog.ED25519, pem)

    def size(self):
        if self.remote.status("checkpoint") == 404:
            return 0
        return tlog.parse_checkpoint(tlog.parse_note(self.remote.note())[0])[1]

    def wait_beyond(self, size):
        return eventually(lambda: self.size() > size and self.size(), f"the log has more than {size} entries")


def started(tmp_path, *witnesses, **settings):
    tmp_path.mkdir(exist_ok=True)
    if witnesses:
        settings["log__witnesses"] = ",".join(f"{one.vkey} {one.url}" for one in witnesses)
    return Service(tmp_path, seal__interval=INTERVAL, log__origin=ORIGIN, log__allow_networks="127.0.0.0/8",
                   rate__live=100000, **settings)


@pytest.fixture
def service(tmp_path):
    running = started(tmp_path)
    running.start()
    yield running
    running.discard()


def grow(log, channel, rounds):
    """Registers events and waits until they are in the log, that many times."""
    for _ in range(rounds):
        before = log.size()
        channel.live.register().expect(201)
        log.wait_beyond(before)


def test_the_log_has_a_leaf_for_each_segment(service):
    channels = [service.new_channel(credits=1000) for _ in range(3)]
    log = Log(service)
    for channel in channels:
        for n in range(5):
            channel.live.register({"n": n}).expect(201)
    grow(log, channels[0], 12)
    note, entries = log.remote.check()
    assert tlog.verify_note(note, log.key.vkey) == [None]
    ours = [entry for entry in entries if entry["tag"] == tlog.tag_of(channels[0].id)]
    last = 0
    for entry in ours:
        assert entry["first_sequence"] == last + 1 and entry["last_sequence"] >= entry["first_sequence"]
        last = entry["last_sequence"]
    events = channels[0].live.walk("/v1/events", 500)
    assert last == len(events) == 17
    chain = {event["sequence"]: event["chain_hash"] for event in events}
    assert all(chain[entry["last_sequence"]] == entry["chain_hash_last"] for entry in ours)
    assert len({entry["seal_hash"] for entry in entries}) == len(entries)


def test_checkpoints_belong_together(service):
    """Each one begins with all leaves of those before, also after kills."""
    channel = service.new_channel(credits=1000)
    log = Log(service)
    notes = []
    for round_number in range(6):
        grow(log, channel, 2)
        notes.append(log.remote.note())
        if round_number % 2:
            service.kill()
            service.start()
            log = Log(service)
            channel.live = Client(service, channel.live_key["key"])
    sizes = [tlog.parse_checkpoint(tlog.parse_note(note)[0])[1] for note in notes]
    hashes = [tlog.leaf_hash(entry) for entry in log.remote.entries(log.size())]
    assert sizes == sorted(set(sizes))
    for note in notes:
        _, size, root = tlog.parse_checkpoint(tlog.parse_note(note)[0])
        assert tlog.verify_note(note, log.key.vkey) == [None] and tlog.root(hashes[:size]) == root


@pytest.mark.parametrize("path, status", (
    ("tile/0/000", 404), ("tile/0/000.p/999", 404), ("tile/1/000.p/1", 404), ("tile/0/0", 404), ("tile/7/000", 404),
    ("tile/0/x000/000", 404), ("tile/0/001.p/1", 404), ("tile/entries/000", 404), ("", 404), ("tile", 404),
    ("checkpoint/", 404), ("tile/0/000.p/1", 200), ("tile/entries/000.p/1", 200), ("entries/000.p/1", 200)))
def test_only_tiles_of_the_log_exist(service, path, status):
    channel = service.new_channel(credits=1000)
    log = Log(service)
    grow(log, channel, 1)
    assert log.size() < 256
    assert log.remote.status(path) == status


def test_tiles_may_be_cached_and_checkpoints_not_for_long(service):
    channel = service.new_channel(credits=1000)
    grow(Log(service), channel, 1)
    client = Client(service)
    tile = client.call("GET", "/log/tile/0/000.p/1").expect(200)
    assert tile.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert tile.headers["Content-Type"] == "application/octet-stream"
    assert tile.headers["Access-Control-Allow-Origin"] == "*"
    note = client.call("GET", "/log/checkpoint").expect(200)
    assert note.headers["Cache-Control"] == "public, max-age=1"
    assert note.headers["Content-Type"] == "text/plain; charset=utf-8"
    client.close()


# ---- witnesses ----

@pytest.fixture
def witnesses():
    made = []

    def make(name, logs):
        made.append(ScriptedWitness(name, logs))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def witnessed(tmp_path, witnesses):
    """A service with two witnesses that know its log's key."""
    running = started(tmp_path / "a")
    running.start()  # it makes the key
    assert running.stop() == 0
    log_key = tlog.Key.load(ORIGIN, tlog.ED25519, (running.data / "signer" / "log.key").read_bytes())
    pair = [witnesses(f"witness.example/{name}", [log_key.vkey]) for name in ("one", "two")]
    running.settings.update({"log.witnesses": ",".join(f"{one.vkey} {one.url}" for one in pair), "log.quorum": "2",
                             "log.witness_timeout": "2s"})
    running.start()
    yield running, pair
    running.discard()


def cosigners(log, pair):
    note = log.remote.note()
    return [bool(tlog.verify_note(note, one.vkey)) for one in pair]


def test_witnesses_cosign_every_checkpoint(witnessed):
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = Log(service)
    for _ in range(8):
        grow(log, channel, 1)
        assert cosigners(log, pair) == [True, True]
    service.kill()
    service.start()
    channel.live = Client(service, channel.live_key["key"])
    grow(Log(service), channel, 3)
    assert cosigners(Log(service), pair) == [True, True]
    assert {status for _, status in pair[0].requests} <= {200, 409}
    assert service.metric("log_witness_refusals_total") == 0


@pytest.mark.parametrize("behaviour", ("down", "error", "lie", "other", "empty"))
def test_a_witness_that_fails_holds_nothing_up(witnessed, behaviour):
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = Log(service)
    grow(log, channel, 1)
    pair[1].behaviour = behaviour
    grow(log, channel, 1)
    assert cosigners(log, pair) == [True, False]
    assert service.metric("log_quorums_missing_total") >= 1 and service.metric("log_witness_failures_total") >= 1
    assert service.metric("log_witness_refusals_total") == 0
    pair[1].behaviour = "cosign"
    eventually(lambda: cosigners(log, pair) == [True, True], "the witness cosigns again")


def test_a_witness_that_answers_with_many_lines_fills_nothing(witnessed):
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = Log(service)
    pair[0].behaviour = "repeat"
    for _ in range(3):
        grow(log, channel, 1)
        assert cosigners(log, pair) == [True, True]
        assert len(tlog.parse_note(log.remote.note())[1]) == 3
    assert not any(line["event"] == "log_not_published" for line in service.log_lines())


def poisoned(service, log, is_final):
    """Stops the service, and leaves too many lines and unreadable ones with its newest checkpoint."""
    lines = log.remote.note().rpartition("\n\n")[2].split("\n", 1)[1]  # without the log's
    assert service.stop() == 0
    bad = stores.text(lines + "no line\n" + lines * 100)
    ((newest,),) = service.store.rows("SELECT MAX(size) FROM log_checkpoints")
    service.store.change(f"UPDATE log_checkpoints SET cosignatures = {bad}, cosigners = 2, is_final = {is_final}"
                         f" WHERE size = {newest}")
    service.start()


@pytest.mark.parametrize("is_final", (0, 1))
def test_stored_lines_that_no_reader_takes_are_dropped(witnessed, is_final):
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = Log(service)
    pair[1].behaviour = "error"
    grow(log, channel, 2)
    poisoned(service, log, is_final)
    channel.live = Client(service, channel.live_key["key"])
    log = Log(service)
    assert len(tlog.parse_note(log.remote.note())[1]) == 2
    grow(log, channel, 1)
    assert len(tlog.parse_note(log.remote.note())[1]) == 2 and cosigners(log, pair) == [True, False]
    assert not any(line["event"] == "log_not_published" for line in service.log_lines())


@pytest.mark.parametrize("behaviour", ("refuse", "conflict"))
def test_a_witness_that_refuses_a_consistent_tree_raises_an_alert(witnessed, behaviour):
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    grow(Log(service), channel, 1)
    pair[0].behaviour = behaviour
    channel.live.register().expect(201)
    eventually(lambda: service.metric("log_witness_refusals_total") >= 1, "the refusal is counted")
    assert [line for line in service.log_lines() if line["event"] == "log_witness_refuses"]


@pytest.mark.sqlite  # the store is in the directory that is copied
def test_a_copy_of_the_store_that_goes_on_is_refused(witnessed, tmp_path):
    """Two services with one key, and one history up to the copy."""
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    grow(Log(service), channel, 2)
    assert service.stop() == 0
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    service.start()
    channel.live = Client(service, channel.live_key["key"])
    grow(Log(service), channel, 2)
    fork = started(tmp_path / "b", *pair, log__quorum=2, log__witness_timeout="2s")
    fork.start()
    try:
        Client(fork, channel.live_key["key"]).register({"another": "history"}).expect(201)
        eventually(lambda: fork.metric("log_witness_refusals_total") >= 1, "the witnesses refuse the fork")
        trees = [(size, root) for _, size, root in pair[0].cosigned]
        assert len(dict(trees)) == len(set(trees)), "a witness cosigns one tree of each size"
    finally:
        fork.discard()


# ---- archives ----

@pytest.fixture
def archived(witnessed, tmp_path):
    """A service with witnesses, an archive of five segments, and its content."""
    service, pair = witnessed
    channel = service.new_channel(credits=1000)
    log = Log(service)
    grow(log, channel, 5)
    made = channel.live.certified(seq_from=1, seq_to=5)
    path = tmp_path / "evidence.zip"
    path.write_bytes(channel.live.download(made["evidence_url"]).expect(200).body)
    return service, pair, log, path


def verified(service, path, *options, expected=0):
    done = run("verify", path, "--trust", service.data / "trust.pem", "--json", *options)
    assert done.returncode == expected, done.stdout + done.stderr
    result = json.loads(done.stdout)
    return result, {each["code"]: each["what"] for each in result["findings"]}


def keys(log, pair, of=("log", "one", "two")):
    """The options that name them."""
    given = {"log": ("--log-key", log.key.vkey), "one": ("--witness", pair[0].vkey), "two": ("--witness", pair[1].vkey)}
    return [word for name in of for word in given[name]]


def test_an_archive_shows_that_witnesses_cosigned_its_segments(archived, tmp_path):
    service, pair, log, path = archived
    result, _ = verified(service, path, *keys(log, pair), "--quorum", "2")
    (seen,) = result["logs"]
    assert (seen["origin"], seen["segments"], seen["segments_logged"], seen["signed"]) == (ORIGIN, 5, 5, True)
    assert [each["name"] for each in seen["cosigned_by"]] == [one.key.name for one in pair]
    assert seen["entries"] >= 5
    with zipfile.ZipFile(path) as opened:
        notes = [json.loads(line)["note"] for line in
                 gzip.decompress(opened.read("checkpoints/checkpoints-000001.ndjson.gz")).splitlines()]
    assert all(tlog.verify_note(note, one.vkey) for note in notes for one in pair)
    policy = tmp_path / "policy"
    policy.write_text(f"log {log.key.vkey}\nwitness a {pair[0].vkey}\nwitness b {pair[1].vkey}\n"
                      "group g any a b\nquorum g\n")
    result, _ = verified(service, path, "--log-policy", policy)
    assert [each["name"] for each in result["logs"][0]["cosigned_by"]] == ["a", "b"]
    told = run("verify", path, "--trust", service.data / "trust.pem").stdout
    assert "5 of 5 segments are in the log" in told
    assert "not checked" not in told.split("are in the log", 1)[1].split("\n")[0], "the signer certifies the log's key"


def test_the_reports_state_the_log_as_the_archive_has_it(archived, tmp_path):
    """A report that states something else is found (unit tests)."""
    service, pair, log, path = archived
    channel = service.new_channel(credits=1000)
    grow(log, channel, 2)
    made = channel.live.certified(seq_from=1, seq_to=2)
    path = tmp_path / "its.zip"
    path.write_bytes(channel.live.download(made["evidence_url"]).expect(200).body)
    for report in made["reports"]:
        pdf = tmp_path / "report.pdf"
        pdf.write_bytes(channel.live.download(report["url"]).expect(200).body)
        (stated,) = re.findall(rb"<constancia:SegmentLog>(.*)</constancia:SegmentLog>", pdf.read_bytes())
        entries, segments, origin, *witnesses = stated.decode().split(" ")
        assert (segments, origin) == ("2", ORIGIN) and int(entries) >= 7
        assert witnesses[1::2] == [one.key.name for one in pair]
        with zipfile.ZipFile(path) as opened:
            lines = gzip.decompress(opened.read("checkpoints/checkpoints-000001.ndjson.gz")).splitlines()
        times = [tlog.verify_note(json.loads(lines[-1])["note"], one.vkey)[0] for one in pair]
        assert witnesses[::2] == [time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(one)) for one in times]
        done = run("verify", path, pdf, "--trust", service.data / "trust.pem", "--json")
        assert done.returncode == 0, done.stdout


def test_without_its_quorum_an_archive_is_not_established(archived):
    service, pair, log, path = archived
    stranger = tlog.Key("witness.example/stranger", tlog.COSIGNATURE)
    _, findings = verified(service, path, *keys(log, pair), "--witness", stranger.vkey, expected=2)
    assert set(findings) == {"log.no_quorum"} and stranger.name in findings["log.no_quorum"]
    assert pair[0].key.name not in findings["log.no_quorum"]
    verified(service, path, *keys(log, pair), "--witness", stranger.vkey, "--quorum", "2")
    another = tlog.Key(ORIGIN, tlog.ED25519)
    _, findings = verified(service, path, "--log-key", another.vkey, expected=2)
    assert set(findings) == {"log.not_signed"}


@pytest.mark.parametrize("options, said", (
    (("--quorum", "0"), "--log-key"), (("--quorum", "1"), "--quorum"), (("--log-key", "x"), "--log-key"), (("--log-policy", "/nowhere"), "/nowhere"),
    (("--log-key", "{log}", "--quorum", "1"), "--quorum"), (("--log-key", "{one}"), "of type 1"),
    (("--log-key", "{log}", "--witness", "{log}"), "of type 4"),
    (("--log-key", "{log}", "--log-policy", "{log}"), "--log-policy")))
def test_keys_that_cannot_be_used_are_refused(tmp_path, options, said):
    vkeys = {"log": tlog.Key(ORIGIN, tlog.ED25519).vkey, "one": tlog.Key("w", tlog.COSIGNATURE).vkey}
    done = run("verify", tmp_path, *(option.format(**vkeys) for option in options))
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_the_verification_page_says_who_witnessed(archived):
    service, pair, _, path = archived
    anyone = Client(service)
    body = form(("file", path.read_bytes(), "evidence.zip"))
    for accepted in ("application/json", "text/html"):
        answer = anyone.post("/verify", body[1], headers={"Content-Type": body[0], "Accept": accepted}).expect(200)
        for one in pair:
            assert one.key.name in answer.body.decode()
    assert "entries of the append-only log" in answer.body.decode()
    anyone.close()


def test_the_verification_page_knows_former_keys(archived, tmp_path):
    """As on a node whose key differs from that of the node which signed; no list of keys in the archive helps."""
    service, pair, _, path = archived
    bare = tmp_path / "bare.zip"
    with zipfile.ZipFile(path) as whole, zipfile.ZipFile(bare, "w") as kept:
        for member in whole.infolist():
            if member.filename != "signers.p7m":
                kept.writestr(member, whole.read(member))
    assert service.stop() == 0
    (service.data / "signer" / "log.key").unlink()
    service.settings["log.origin"] = "log.example/another"
    service.start()
    anyone = Client(service)
    kind, body = form(("file", bare.read_bytes(), "evidence.zip"))
    answer = anyone.post("/verify", body, headers={"Content-Type": kind, "Accept": "application/json"}).expect(200)
    anyone.close()
    found = answer.json["verification"]
    assert found["logs"][0]["signed"] is True and not any(each["code"].startswith("log.") for each in found["findings"])
    assert [each["name"] for each in found["logs"][0]["cosigned_by"]] == [one.key.name for one in pair]


# ---- settings ----

@pytest.mark.parametrize("settings, name, said", (
    ("witnesses = x", "witnesses", "a verifier key, a space and a URL"),
    ("witnesses = {witness}= https://w.example", "witnesses", "key"),
    ("witnesses = {log} https://w.example", "witnesses", "type 4"),
    ("witnesses = {witness} ftp://w.example", "witnesses", "https://"),
    ("witnesses = {witness} https://a.example, {witness} https://b.example", "witnesses", "the same"),
    ("quorum = 2\nwitnesses = {witness} https://w.example", "quorum", "from 0 to 1"),
    ("origin = two words", "origin", "without spaces"), ("origin = {long}", "origin", "255"),
    ("witness_timeout = 2m", "witness_timeout", "60s"), ("allow_networks = here", "allow_networks", "")))
def test_settings_of_the_log_are_checked(tmp_path, settings, name, said):
    file = tmp_path / "constancia.conf"
    witness, log = (tlog.Key("a.example", kind).vkey for kind in (tlog.COSIGNATURE, tlog.ED25519))
    file.write_text("[log]\n" + settings.format(witness=witness, log=log, long="a" * 256) + "\n")
    done = run("config", "check", "--config", file)
    (line,) = [line for line in (done.stderr + done.stdout).splitlines() if f"log.{name}" in line]
    assert done.returncode == 1 and said in line and str(file) in line, done.stderr + done.stdout
    file.write_text(f"[log]\nquorum = 1\nwitnesses = {witness} https://w.example/prefix/\norigin = a.example/log\n")
    done = run("config", "check", "--config", file)
    assert "log." not in done.stderr + done.stdout


def test_a_log_with_another_key_is_not_continued(service):
    """As on a second node whose key was not copied."""
    channel = service.new_channel(credits=1000)
    log = Log(service)
    grow(log, channel, 1)
    size = log.size()
    assert service.stop() == 0
    (service.data / "signer" / "log.key").unlink()
    service.start()
    Client(service, channel.live_key["key"]).register().expect(201)
    eventually(lambda: any(line["event"] == "log_not_published" and "another key" in line["cause"]
                           for line in service.log_lines()), "the node says why")
    assert log.size() == size
    made = Client(service, channel.live_key["key"]).get("/v1/events").expect(200).json["data"]
    assert len(made) == 2


# ---- store check ----

def problems(service):
    done = service.run("store", "check", "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["problems"]


LAST = "WHERE log_first = (SELECT MAX(log_first) FROM round_blocks)"


@pytest.mark.parametrize("damage, said", (
    ("UPDATE log_tiles SET hashes = zeroblob(length(hashes)) WHERE level = 0", "tile 0 of level 0 differs"),
    ("DELETE FROM log_tiles", "tile 0 of level 0 differs"),
    ("UPDATE seal_rounds SET log_size = log_size + 1 WHERE round = 2", "has another size or root"),
    ("UPDATE seal_rounds SET log_root = zeroblob(32) WHERE round = 2", "has another size or root"),
    (f"UPDATE round_blocks SET log_first = log_first + 1 {LAST}", "does not continue the log"),
    (f"UPDATE round_blocks SET log_entries = zeroblob(length(log_entries)) {LAST}", "its entry in the log of segments"),
    (f"UPDATE round_blocks SET log_entries = NULL, log_first = NULL {LAST}", "does not continue the log")))
@pytest.mark.sqlite  # the statements are of SQLite
def test_store_check_recomputes_the_log(service, damage, said):
    channel = service.new_channel(credits=1000)
    grow(Log(service), channel, 3)
    assert service.stop() == 0
    assert problems(service) == []
    service.store.change(damage)
    found = problems(service)
    assert found and any(said in problem for problem in found), found
