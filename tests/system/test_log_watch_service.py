"""`constancia log watch` and `log audit` on the log of a service, and on that of a service that has two histories."""

import json
import shutil
import subprocess

import pytest

import tlog
from client import BINARY, Client, Service, eventually, run
from static_log import ORIGIN, digest
from watcher import Watcher


@pytest.fixture
def service(tmp_path):
    (tmp_path / "service").mkdir()
    running = Service(tmp_path / "service", seal__interval="1s", log__origin=ORIGIN, rate__live=100000)
    running.start()
    yield running
    running.discard()


class ServiceLog:
    def __init__(self, service):
        self.url = f"http://127.0.0.1:{service.port}/log"
        self.vkey = tlog.Key.load(ORIGIN, tlog.ED25519, (service.data / "signer" / "log.key").read_bytes()).vkey


def size_of(log):
    remote = tlog.RemoteLog(log.url)
    if remote.status("checkpoint") == 404:
        return 0
    return tlog.parse_checkpoint(tlog.parse_note(remote.note())[0])[1]


@pytest.mark.both_stores
def test_the_log_of_a_service(service, tmp_path):
    channel, other = service.new_channel(), service.new_channel()
    log = ServiceLog(service)
    owner = Watcher(tmp_path, log)
    owner.words = []  # the channels are those of the receipts
    for client in (channel.live, channel.test):
        assert client.get("/v1/channel").expect(200).json["log_tag"] == tlog.tag_of(channel.id)
    for number in range(6):
        before = size_of(log)
        for _ in range(3):
            owner.keep(channel.live.register({"n": number}).expect(201).json)
        other.live.register().expect(201)
        eventually(lambda: size_of(log) > before, "the segments are in the log")  # pylint: disable=cell-var-from-loop
        if number % 2:
            found = owner.watch()
            assert found["finding_count"] == 0 and found["receipts"] == 3 * (number + 1)
    eventually(lambda: owner.watch()["covered"] == 18, "all events are in the log")
    done = run("log", "audit", "--json", f"--url={log.url}", f"--key={log.vkey}")
    assert done.returncode == 0 and json.loads(done.stdout)["finding_count"] == 0, done.stderr
    found = owner.watch()
    assert (found["covered"], found["false_receipts"], found["waiting"]) == (18, 0, 0)


@pytest.mark.sqlite
def test_a_copy_of_the_store_that_goes_on_is_convicted(service, tmp_path):
    """Two services with one key and one history up to the copy: whoever saw the one is shown the other."""
    channel = service.new_channel()
    log = ServiceLog(service)
    first = channel.live.register({"n": 1}).expect(201).json
    (tmp_path / "late").mkdir()
    owner, late = Watcher(tmp_path, log), Watcher(tmp_path / "late", log)
    owner.keep(first)
    eventually(lambda: size_of(log) > 0 and owner.watch()["covered"] == 1, "the first segment is in the log")
    assert service.stop() == 0
    shutil.copytree(tmp_path / "service", tmp_path / "fork")
    service.start()
    log.url = f"http://127.0.0.1:{service.port}/log"
    second = Client(service, channel.live_key["key"]).register({"n": 2}).expect(201).json
    owner.keep(second)
    eventually(lambda: owner.watch()["covered"] == 2, "the second segment is in the log")
    known = size_of(log)
    fork = Service(tmp_path / "fork", seal__interval="1s", log__origin=ORIGIN, rate__live=100000)
    fork.start()
    try:
        log.url = f"http://127.0.0.1:{fork.port}/log"
        liar = Client(fork, channel.live_key["key"])
        liar.register({"another": "history"}).expect(201)
        late.keep(first, second)  # one who has seen no log before, but has the receipts of the first history
        eventually(lambda: late.run().returncode == 1, "the other second event is in the log")
        assert [one["kind"] for one in late.watch(code=1)["findings"]] == ["receipt_differs"]
        done = late.check(f"--receipt-key={second['receipt']['key']}")
        assert done.returncode == 0 and "two histories" in json.loads(done.stdout)["what"], done.stdout

        def grow():
            liar.register({"another": "history"}).expect(201)
            return size_of(log) > known

        eventually(grow, "the fork has a larger log")
        owner.convict("inconsistent")
        assert owner.check().returncode == 0
    finally:
        fork.discard()


def test_a_watcher_that_follows(service, tmp_path):
    channel = service.new_channel()
    log = ServiceLog(service)
    owner = Watcher(tmp_path, log)
    words = [BINARY, "log", "watch", "--json", "--interval=200ms", f"--url={log.url}", f"--key={log.vkey}",
             f"--state={owner.state}", f"--receipts={owner.receipts}", f"--channel={channel.id}"]
    output = tmp_path / "output"
    with output.open("w") as out, subprocess.Popen(words, stdout=out, stderr=subprocess.DEVNULL) as process:
        def lines():
            return [json.loads(line) for line in output.read_text().splitlines()]
        try:
            registered = channel.live.register().expect(201).json
            owner.keep(registered)
            eventually(lambda: lines() and lines()[-1]["covered"] == 1, "it sees the segment")
            owner.keep({**registered, "chain_hash": digest("false")})
            assert process.wait(30) == 1
            assert lines()[-1]["findings"][0]["kind"] == "receipt_differs"
        finally:
            process.kill()
