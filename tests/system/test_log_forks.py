"""An operator with two histories and one key, who shows each witness another one: of a quorum of two of three
witnesses, one saw both. The forks of tests/system/test_log_watch.py are of logs that a test writes; these are
services."""

import json
import shutil

import pytest

import tlog
from client import Client, eventually, run
from scripted_witness import ScriptedWitness
from test_log_watch_service import size_of
from test_segment_log import ORIGIN, Log, grow, started
from watcher import Watcher

pytestmark = pytest.mark.sqlite  # the store is in the directory that is copied

NAMES = ("one", "two", "three")
QUORUM = {"log__quorum": 2, "log__witness_timeout": "2s"}


class Side:
    """A service that goes on from the common history, and what it shows to others."""

    def __init__(self, directory, witnesses, key):
        self.service, self.key = started(directory, *witnesses, **QUORUM), key
        self.log = self.live = None

    def start(self, channel):
        self.service.start()
        self.log, self.live = Log(self.service), Client(self.service, channel.live_key["key"])
        self.url, self.vkey = self.log.remote.url, self.key.vkey

    def archive(self, path, last):
        made = self.live.certified(seq_from=1, seq_to=last)
        path.write_bytes(self.live.download(made["evidence_url"]).expect(200).body)
        return path

    def cosigners(self, witnesses):
        note = self.log.remote.note()
        return [name for name, one in zip(NAMES, witnesses) if tlog.verify_note(note, one.vkey)]


@pytest.fixture
def forked(tmp_path):
    """Two services with one history of two events and one key. The second witness knows both."""
    first = started(tmp_path / "a")
    first.start()
    channel = first.new_channel(credits=1000)
    assert first.stop() == 0
    key = tlog.Key.load(ORIGIN, tlog.ED25519, (first.data / "signer" / "log.key").read_bytes())
    witnesses = [ScriptedWitness(f"{name}.example", [key.vkey]) for name in NAMES]
    sides = []
    try:
        sides.append(Side(tmp_path / "a", witnesses[:2], key))
        sides[0].start(channel)
        grow(sides[0].log, sides[0], 2)
        eventually(lambda: sides[0].cosigners(witnesses) == ["one", "two"], "the common history is cosigned")
        assert sides[0].service.stop() == 0
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        sides.append(Side(tmp_path / "b", witnesses[1:], key))
        yield channel, sides, witnesses
    finally:
        for one in witnesses:
            one.close()
        for side in sides:
            side.service.discard()


@pytest.mark.parametrize("chosen", (0, 1))
def test_one_fork_at_most_has_the_quorum(forked, tmp_path, chosen):
    channel, sides, witnesses = forked
    honest, liar = sides[chosen], sides[1 - chosen]
    own, other = (NAMES[0], NAMES[2]) if chosen == 0 else (NAMES[2], NAMES[0])
    honest.start(channel)
    for number in (3, 4):
        before = honest.log.size()
        honest.live.register({"n": number}).expect(201)
        honest.log.wait_beyond(before)
    eventually(lambda: honest.cosigners(witnesses) == sorted([own, "two"], key=NAMES.index), "it has its quorum")
    (tmp_path / "newcomer").mkdir()
    owner, newcomer = Watcher(tmp_path, honest), Watcher(tmp_path / "newcomer", liar)
    owner.words = newcomer.words = [f"--channel={channel.id}"]
    policy = [*(f"--witness={one.vkey}" for one in witnesses), "--quorum=2"]
    assert owner.watch(*policy)["finding_count"] == 0

    liar.start(channel)
    for number in (3, 4, 5):
        before = liar.log.size()
        liar.live.register({"another": number}).expect(201)
        liar.log.wait_beyond(before)
    eventually(lambda: liar.service.metric("log_witness_refusals_total") >= 1, "the second witness refuses")
    eventually(lambda: liar.cosigners(witnesses) == [other], "it has the cosignature of its own witness")
    trees = [(size, root) for _, size, root in witnesses[1].cosigned]
    assert len(dict(trees)) == len(set(trees)), "the second witness cosigned one tree of each size"

    # Archives: that of the fork without a quorum names who is missing.
    for side, code in ((honest, 0), (liar, 2)):
        path = side.archive(tmp_path / f"{code}.zip", 4)
        done = run("verify", path, "--trust", side.service.data / "trust.pem", "--json", f"--log-key={side.vkey}",
                   *policy)
        assert done.returncode == code, done.stdout + done.stderr
        (log,) = json.loads(done.stdout)["logs"]
        cosigners = {other} if code else {own, "two"}
        assert [each["name"] for each in log["cosigned_by"]] == [f"{name}.example" for name in NAMES
                                                                 if name in cosigners]
        found = {each["code"]: each["what"] for each in json.loads(done.stdout)["findings"]}
        assert set(found) == ({"log.no_quorum"} if code else set())
        assert not code or all(f"{name}.example" in found["log.no_quorum"] for name in (own, "two"))

    # The log: a newcomer sees that witnesses are missing, and the owner who saw the other fork has proof of both.
    seen = newcomer.watch(*policy, code=2)
    assert seen["finding_count"] == 0 and seen["checkpoint"]["missing_witnesses"] == \
        ", ".join(f"{name}.example" for name in NAMES if name != other)
    assert size_of(liar) > tlog.parse_checkpoint(tlog.parse_note(json.loads(owner.state.read_text())["note"])[0])[1]
    owner.log = liar
    found, proof = owner.convict("inconsistent")
    assert found["proof"] and len(proof["notes"]) == 2
    done = owner.check(*policy)
    assert done.returncode == 0 and "does not begin with it" in json.loads(done.stdout)["what"], done.stdout
