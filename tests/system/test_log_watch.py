"""`constancia log watch` and `log check-proof` on logs that a test writes, with everything that a service must not
do."""

import json
import struct
import time

import pytest

import receipts
import tlog
from client import run
from static_log import ORIGIN, StaticLog, digest
from watcher import CHANNEL, RECEIPT_KEY, TAG, Watcher, before, receipt

pytestmark = pytest.mark.sqlite

PAST, FUTURE = "2026-01-02T03:14:05.000000Z", "2096-01-02T03:14:05.000000Z"
LATEST = 1_767_323_705  # a minute after it, in seconds since 1970


@pytest.fixture
def log(tmp_path):
    made = StaticLog(tmp_path / "log")
    yield made
    made.close()


@pytest.fixture
def owner(tmp_path, log):
    """Has seen a log of 300 entries, two of which are of its chain, and has receipts of four events."""
    log.fill(298)
    log.add(TAG, 1, 3)
    log.add(TAG, 4, 4)
    log.write()
    made = Watcher(tmp_path, log)
    made.keep(*(receipt(n) for n in range(1, 5)))
    found = made.watch()
    assert (found["first"], found["new_entries"], found["own_entries"]) == (True, 300, 2)
    assert (found["receipts"], found["covered"], found["waiting"], found["complete"]) == (4, 4, 0, True)
    return made


# ---- logs that grow ----

@pytest.mark.parametrize("more", (0, 1, 211, 212, 213, 500))
def test_a_log_that_grows(owner, more):
    owner.log.fill(more)
    owner.log.add(TAG, 5, 9)
    owner.log.write()
    owner.keep(receipt(5), receipt(9), receipt(10, seal_by=FUTURE))
    del owner.log.requests[:]
    found = owner.watch()
    assert (found["first"], found["new_entries"], found["own_entries"]) == (False, more + 1, 3)
    assert (found["receipts"], found["covered"], found["waiting"]) == (7, 6, 1)
    bundles = {path for path in owner.log.requests if "/entries/" in path}
    assert "/tile/entries/000" not in bundles, "what it has read before"
    assert owner.watch()["new_entries"] == 0


def test_each_size_is_consistent_with_each_other(tmp_path, log):
    """A proof from every size to the next ones, also where the old tree is a node of the new one."""
    log.fill(20)
    for old in range(1, 20):
        owner = Watcher(tmp_path, log)
        owner.state.unlink(missing_ok=True)
        log.write(size=old)
        owner.watch()
        for new in (old + 1, 20):
            log.write(size=new)
            assert owner.watch()["finding_count"] == 0


def test_receipts_of_entries_that_were_read_before(owner):
    """Nobody can hide a difference by sealing before the receipt is kept."""
    owner.keep(receipt(4, digest("other")))
    _, proof = owner.convict("receipt_differs")
    assert json.loads(proof["receipt"])["chain_hash"] == digest("other")


def test_receipts_that_are_chosen(owner):
    """An operator publishes one history, and answers with 300 receipts of another. It has two chain hashes for each
    event, and finds those whose digests sum up to nothing, as the first version of the state had it."""
    tag, count = tlog.tag_of("ch_chosen"), 300
    owner.log.add(tag, 1, count, digest("the other history"))
    owner.log.write()
    owner.words += ["--channel=ch_chosen"]
    owner.watch()

    def one(sequence, chain_hash):
        return int.from_bytes(tlog.sha256(struct.pack("<q", sequence) + bytes.fromhex(chain_hash)), "big")

    hashes = [[digest(f"{kind} {number}") for kind in "ab"] for number in range(1, count + 1)]
    basis, rest, taken = {}, 0, 0
    for number, (a, b) in enumerate(hashes, 1):
        rest ^= one(number, a)
        vector, mask = one(number, a) ^ one(number, b), 1 << number
        while vector and vector.bit_length() in basis:
            known = basis[vector.bit_length()]
            vector, mask = vector ^ known[0], mask ^ known[1]
        basis[vector.bit_length()] = (vector, mask)
    while rest:
        known = basis[rest.bit_length()]
        rest, taken = rest ^ known[0], taken ^ known[1]
    chosen = [pair[taken >> number & 1] for number, pair in enumerate(hashes, 1)]
    total = 0
    for number, chain_hash in enumerate(chosen, 1):
        total ^= one(number, chain_hash)
    assert total == 0
    owner.keep(*(receipt(number, chain_hash, seal_by=PAST, channel_id="ch_chosen")
                 for number, chain_hash in enumerate(chosen, 1)))
    owner.convict("receipt_differs")


def test_a_state_of_the_first_version(owner):
    """Who made the receipts could choose its digest, so that everything is compared again."""
    for version, is_read in ((2, False), (1, True), (2, False)):
        state = json.loads(owner.state.read_text())
        assert state["v"] == 2
        owner.state.write_text(json.dumps({**state, "v": version}, separators=(",", ":"), sort_keys=True))
        owner.log.requests.clear()
        found = owner.watch()
        assert (found["first"], found["new_entries"], found["own_entries"]) == (False, 0, 2)
        assert ("/tile/entries/000" in owner.log.requests) is is_read
    owner.state.write_text(json.dumps({**state, "v": 3}, separators=(",", ":"), sort_keys=True))
    assert "move it away" in owner.refused(2)


def test_a_last_line_that_a_program_is_writing(owner):
    text = json.dumps(receipt(4, digest("other")))
    with owner.receipts.open("a") as out:
        out.write(text[:-9])
    found = owner.watch(code=2)
    assert (found["unusable_receipts"], found["finding_count"]) == (1, 0)
    with owner.receipts.open("a") as out:
        out.write(text[-9:])
    assert owner.convict("receipt_differs")[0]["unusable_receipts"] == 0


def test_receipts_that_promise_nothing(owner):
    """Neither is fine, until the event has an entry: without a receipt that binds the service it can be left out."""
    far = "2096-01-03T03:04:05.000001Z"
    owner.keep(receipt(5), receipts.sign(receipt(6), RECEIPT_KEY, ORIGIN),
               receipt(7, seal_by=far, received_at="2096-01-02T03:04:05.000000Z"))
    found = owner.watch(code=2)
    assert (found["without_promise"], found["waiting"], found["covered"]) == (3, 0, 4)
    text = run("log", "watch", "--once", f"--url={owner.log.url}", f"--key={owner.log.vkey}", f"--state={owner.state}",
               f"--receipts={owner.receipts}")
    assert text.returncode == 2 and "3 events have no entry, and their receipts promise none" in text.stdout
    owner.keep(receipt(7, seal_by=before(far, microseconds=1), received_at="2096-01-02T03:04:05.000000Z"))
    found = owner.watch(code=2)
    assert (found["without_promise"], found["waiting"]) == (2, 1)
    owner.log.add(TAG, 5, 6)
    owner.log.write()
    assert owner.watch()["covered"] == 6


def test_a_chain_that_is_older_than_the_log(owner, log):
    """After an upgrade: repeated registrations of events that were sealed before have receipts of the new log."""
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    log.add(tlog.tag_of("ch_older"), 5, 7)
    log.write(cosigners=[witness], time=int(time.time()))
    owner.words += [f"--witness={witness.vkey}"]
    owner.keep(receipt(2, channel_id="ch_older"), receipt(3, seal_by=PAST, channel_id="ch_older"))
    found = owner.watch(code=2)
    assert (found["finding_count"], found["before_log"], found["begun_later"]) == (0, 2, 1)
    assert (found["overdue"], found["without_promise"], found["covered"]) == (0, 0, 4)
    found = owner.watch(code=2)
    assert (found["before_log"], found["begun_later"]) == (1, 0), "those that promise nothing are named once"
    text = run("log", "watch", "--once", f"--url={log.url}", f"--key={log.vkey}", f"--state={owner.state}",
               f"--receipts={owner.receipts}", *owner.words)
    assert text.returncode == 2 and "1 receipts are of events before the first entry" in text.stdout
    document = {"entries": [], "kind": "promise_broken", "notes": [(log.directory / "checkpoint").read_text()],
                "observed_at": "2026-01-03T00:00:00.000000Z", "path": [], "v": "constancia-log-proof/1",
                "receipt": json.dumps(receipt(3, seal_by=PAST, channel_id="ch_older"))}
    words = [f"--url={log.url}", f"--witness={witness.vkey}", f"--receipt-key={receipts.text_of(RECEIPT_KEY)}"]
    done = owner.check(*words, proof=document)
    assert done.returncode == 2 and "older than the log" in json.loads(done.stdout)["not_shown"], done.stderr
    later = receipt(8, seal_by=PAST, channel_id="ch_older")
    assert owner.check(*words, proof={**document, "receipt": json.dumps(later)}).returncode == 0


def test_a_second_channel(owner):
    """A channel is watched from its first receipt on, and without receipts if it is named."""
    owner.log.add(tlog.tag_of("ch_another"), 1, 2)
    owner.log.write()
    assert owner.watch()["own_entries"] == 2 and owner.watch("--channel=ch_another")["own_entries"] == 3
    owner.keep(receipt(2, digest("different"), channel_id="ch_another"))
    found, _ = owner.convict("receipt_differs")
    assert found["own_entries"] == 3 and "ch_another" in found["findings"][0]["what"]


def test_without_a_channel(owner):
    owner.words = []
    owner.receipts.write_text(json.dumps(receipt(1, mode="test")) + "\n")
    assert "no channel is named" in owner.refused(2)
    assert owner.watch(f"--channel={CHANNEL}")["own_entries"] == 2
    assert "id of a channel" in owner.refused(2, f"--channel={'x' * 40}")


def test_the_state_is_beside_the_receipts_by_default(owner):
    words = ("log", "watch", "--once", "--json", f"--url={owner.log.url}", f"--key={owner.log.vkey}")
    for first in (True, False):
        found = json.loads(run(*words, f"--receipts={owner.receipts}").stdout)
        assert found["first"] == first and (owner.directory / "receipts.ndjson.watch").exists()
    done = run(*words, f"--channel={CHANNEL}")
    assert done.returncode == 2 and "--state" in done.stderr


def test_receipts_of_test_chains_are_ignored(owner):
    owner.keep(receipt(4, digest("other"), mode="test"))
    found = owner.watch()
    assert (found["test_receipts"], found["receipts"]) == (1, 4)


def test_rotated_receipts(owner):
    owner.receipts.rename(f"{owner.receipts}.1")
    owner.keep(receipt(4, digest("other")))
    assert owner.watch(code=1)["receipts"] == 5


@pytest.mark.parametrize("text", ("nonsense", "{}", json.dumps(receipt(1, channel_id="x" * 40)),
                                  json.dumps(receipt(1, channel_id="ch_\x1b[2J"))))
def test_lines_that_are_no_receipts(owner, text):
    """They are counted, and hide no other one."""
    owner.receipts.write_text(f"{text}\n")
    found = owner.watch(code=2)
    assert (found["unusable_receipts"], found["receipts"], found["finding_count"]) == (1, 0, 0)
    owner.keep(receipt(4, digest("other")))
    assert owner.convict("receipt_differs")[0]["unusable_receipts"] == 1


def test_receipts_that_name_another_log(owner):
    """As after a change of log.origin: an entry in this log keeps the promise, and its lack does not break it here."""
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    owner.words += [f"--witness={witness.vkey}"]
    owner.log.write(cosigners=[witness], time=int(time.time()))
    owner.keep(*(receipts.sign(receipt(n), RECEIPT_KEY, "log.example/old", PAST) for n in (4, 6)))
    found = owner.watch(code=2)
    assert (found["other_log"], found["overdue"], found["waiting"], found["covered"]) == (1, 0, 0, 4)
    owner.keep(receipts.sign(receipt(6), RECEIPT_KEY, ORIGIN, PAST))
    _, proof = owner.convict("promise_broken")
    assert json.loads(proof["receipt"])["receipt"]["origin"] == ORIGIN


def test_a_chain_without_its_first_events(owner, log):
    """Right if it is older than the log, which nothing shows: so it is said once."""
    tag = tlog.tag_of("ch_older")
    log.add(tag, 5, 7)
    log.write()
    owner.words += ["--channel=ch_older"]
    text = run("log", "watch", "--once", f"--url={log.url}", f"--key={log.vkey}", f"--state={owner.state}x",
               *owner.words)
    assert text.returncode == 2 and "no events of channel ch_older before 5" in text.stdout
    assert owner.watch(code=2)["begun_later"] == 1
    assert owner.watch()["begun_later"] == 0
    owner.keep(receipt(8, seal_by=FUTURE, channel_id="ch_older"))
    assert owner.watch()["waiting"] == 1
    log.add(tag, 8, 8, receipt(8)["chain_hash"])
    log.write()
    assert owner.watch()["finding_count"] == 0


def test_the_name_of_an_unknown_log_is_a_quotation(owner, log):
    words = ["log", "audit", f"--dir={log.directory}"]
    assert f'log            "{ORIGIN}"\n' in run(*words).stdout
    assert f"log            {ORIGIN}\n" in run(*words, f"--key={log.vkey}").stdout
    note = (log.directory / "checkpoint").read_text()
    (log.directory / "checkpoint").write_text(note.replace(ORIGIN + "\n", 'log" \u202etxt\n', 1))
    assert 'log            "log? ???txt"\n' in run(*words).stdout


def test_a_state_of_another_log(owner, tmp_path):
    other = StaticLog(tmp_path / "other", "log.example/other")
    other.fill(3)
    other.write()
    owner.log, old = other, owner.log
    try:
        assert "not signed by the given key" in owner.refused(2)
        assert "of the log log.example/other" in owner.refused(1, f"--key={old.vkey}")
        owner.state.write_text("{}")
        assert "move it away" in owner.refused(2)
    finally:
        other.close()
        old.close()


@pytest.mark.parametrize("words", (
    (), ("--state=s",), ("--state=s", "--dir=x"), ("--once", "--interval=5s", "--state=s")))
def test_wrong_usage(words):
    done = run("log", "watch", *words)
    assert done.returncode == 2 and done.stderr and not done.stdout


def test_a_log_without_a_quorum(owner):
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    for at in ((), (253402300799,), (int(time.time()) + 400,)):
        owner.log.write(cosigners=[witness] if at else (), time=at[0] if at else 0)
        found = owner.watch(f"--witness={witness.vkey}", code=2)
        assert found["checkpoint"]["missing_witnesses"] == "witness.example/one" and found["complete"]
    owner.log.write(cosigners=[witness], time=int(time.time()) + 200)
    assert owner.watch(f"--witness={witness.vkey}")["checkpoint"]["quorum"], "clocks may differ by five minutes"


# ---- logs that contradict themselves ----

def test_two_trees_of_one_size(owner):
    owner.log.entries[7] = owner.log.entries[8]
    owner.log.write()
    _, proof = owner.convict("two_trees")
    done = owner.check()
    assert done.returncode == 0 and json.loads(done.stdout)["shown"], done.stderr
    for notes in ([proof["notes"][0]] * 2, proof["notes"][:1], [proof["notes"][0].replace("\n300\n", "\n301\n"),
                                                               proof["notes"][1]]):
        assert owner.check(proof={**proof, "notes": notes}).returncode == 1
    assert owner.check(key=False).returncode == 2


@pytest.mark.parametrize("old, place, new", ((300, 0, 301), (300, 299, 600), (256, 0, 300), (256, 255, 512), (1, 0, 2),
                                             (512, 511, 700)))
def test_a_leaf_that_is_rewritten(tmp_path, log, old, place, new):
    log.fill(new)
    log.write(size=old)
    owner = Watcher(tmp_path, log)
    owner.watch()
    log.add(digest("another"), 1, 1)
    log.entries[place] = log.entries.pop()
    log.write()
    _, proof = owner.convict("inconsistent")
    done = owner.check()
    assert done.returncode == 0 and "does not begin with it" in json.loads(done.stdout)["what"]
    wrong = [proof["path"][:-1], proof["path"] + [digest("x")], proof["path"][::-1] + [digest("y")], []]
    for path in wrong:
        assert owner.check(proof={**proof, "path": path}).returncode == 1
    assert owner.check(proof={**proof, "notes": proof["notes"][::-1]}).returncode == 1


def test_consistent_trees_prove_nothing(owner):
    old = owner.log.checkpoint()
    owner.log.fill(10)
    path = tlog.consistency([tlog.leaf_hash(entry) for entry in owner.log.entries], 300)
    document = {"entries": [], "kind": "inconsistent", "notes": [old, owner.log.checkpoint()],
                "observed_at": "2026-01-01T00:00:00.000000Z", "path": [one.hex() for one in path],
                "receipt": None, "v": "constancia-log-proof/1"}
    done = owner.check(proof=document)
    assert done.returncode == 1 and "begins with the smaller" in done.stderr


def test_a_log_that_lost_entries(owner):
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    owner.words += [f"--witness={witness.vkey}"]
    owner.log.write(cosigners=[witness], time=1_700_000_000)
    owner.watch()
    owner.log.write(size=250, cosigners=[witness], time=1_700_000_001)
    owner.convict("shrunken")
    # A witness that is behind cosigns an old checkpoint of an honest log late, so that times show no order.
    for words in ([f"--witness={witness.vkey}"], []):
        done = owner.check(*words)
        assert done.returncode == 2 and "after the larger one" in json.loads(done.stdout)["not_shown"]


def test_an_earlier_checkpoint_of_a_cache_is_read_again(owner, log):
    log.fill(5)
    whole = log.checkpoint()
    log.write()
    owner.watch()
    served = []

    class Requests(list):
        """The file is replaced when the answer has begun: the next request has the new one."""

        def append(self, path):
            served.append(path)
            (log.directory / "next").write_text(whole)
            (log.directory / "next").rename(log.directory / "checkpoint")

    (log.directory / "checkpoint").write_text(log.checkpoint(300))
    log._server.requests = Requests()  # pylint: disable=protected-access
    assert owner.watch()["finding_count"] == 0
    assert [path for path in served if path.endswith("checkpoint")] == ["/checkpoint"] * 2


def test_tiles_that_do_not_lead_to_the_checkpoint(owner):
    """Not a contradiction between statements that are signed, so there is no proof."""
    owner.log.fill(50)
    owner.log.write()
    tile = owner.log.path(0, 1, 94)
    tile.write_bytes(tile.read_bytes()[:-1] + b"x")
    assert "tiles of the log do not lead" in owner.refused(1)


def test_entries_that_do_not_lead_to_the_checkpoint(owner):
    owner.log.fill(50)
    owner.log.write()
    bundle = owner.log.path("entries", 1, 94)
    head, mark, tail = bundle.read_bytes().rpartition(b'"tag":"')
    bundle.write_bytes(head + mark + (b"0" if tail[:1] != b"0" else b"1") + tail[1:])
    assert "do not lead to the root" in owner.refused(1)


@pytest.mark.parametrize("kind", ("checkpoint", "tile", "entries"))
def test_files_that_are_missing(owner, kind):
    owner.log.fill(5)
    owner.log.write()
    file = owner.log.file(kind, 1, 49)
    file.unlink()
    assert "is missing" in owner.refused(2)


def test_a_false_signature(owner):
    owner.log.fill(1)
    owner.log.write(key=tlog.Key(ORIGIN, tlog.ED25519))
    assert not owner.watch(code=2)["checkpoint"]["signed"], "it is of an unknown key"
    note = owner.log.checkpoint()
    (owner.log.directory / "checkpoint").write_text(note.replace("\n301\n", "\n302\n"))
    assert "is false" in owner.refused(1)


# ---- entries and receipts ----

@pytest.mark.parametrize("first, last", ((4, 6), (2, 2), (1, 4)))
def test_two_entries_that_overlap(owner, first, last):
    owner.log.fill(3)
    owner.log.add(TAG, first, last, digest("fork"))
    owner.log.write()
    owner.receipts.write_text("")
    _, proof = owner.convict("overlap")
    assert [json.loads(item["entry"])["tag"] for item in proof["entries"]] == [TAG, TAG]
    for item in proof["entries"]:
        head, _, note = item["proof"].partition("\n\n")
        magic, index, *path = head.split("\n")
        assert magic == "c2sp.org/tlog-proof@v1"
        _, size, root = tlog.parse_checkpoint(tlog.parse_note(note)[0])
        leaves = [tlog.leaf_hash(entry) for entry in owner.log.entries]
        hashes = [tlog.base64.b64decode(line) for line in path]
        number = int(index.removeprefix("index "))
        assert hashes == tlog.inclusion(leaves, number) and owner.log.entries[number].decode() == item["entry"]
        assert tlog.root_of_path(leaves[number], number, size, hashes) == root
    assert owner.check().returncode == 0
    one, two = proof["entries"]
    for entries in ([one, one], [one], [{**one, "entry": two["entry"]}, two], [one, {**two, "proof": one["proof"]}]):
        assert owner.check(proof={**proof, "entries": entries}).returncode == 1


def test_what_is_found_is_said_without_tiles_that_prove_it(owner):
    owner.log.add(TAG, 2, 2)
    owner.log.fill(1)
    owner.log.write()
    owner.state.unlink()
    owner.log.path(0, 1, 46).unlink()
    found = owner.watch(code=1)
    assert [(one["kind"], one["proved"]) for one in found["findings"]] == [("overlap", False)]
    assert found["proof"] is None


def test_many_entries_that_overlap_are_searched_once(owner, log):
    for number in range(60):
        log.add(TAG, 1 + number % 4, 4, digest(f"fork {number}"))
    log.fill(400)
    log.write()
    owner.receipts.write_text("")
    owner.state.unlink()
    log.requests.clear()
    done = owner.run()
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["finding_count"] == 60 and all(one["proved"] for one in found["findings"])
    assert [log.requests.count(f"/tile/entries/{bundle}") for bundle in ("000", "001", "002.p/248")] == [2, 2, 1]
    assert "entry 300 of the log has the events 1 to 4" in json.loads(done.stderr)["notice"]
    assert owner.check().returncode == 0


def test_a_log_that_serves_entries_once_hides_nothing(owner, log):
    log.add(TAG, 2, 2)
    log.add(TAG, 3, 3)
    log.fill(300)
    log.write()
    owner.receipts.write_text("")
    owner.state.unlink()

    class Requests(list):
        def append(self, path):
            super().append(path)
            if path.startswith("/tile/entries/002"):
                log.path("entries", 1, 256).unlink(missing_ok=True)

    log._server.requests = Requests()  # pylint: disable=protected-access
    found = owner.watch(code=1)
    assert [(one["kind"], one["proved"]) for one in found["findings"]] == [("overlap", False)] * 2
    assert "entries before it" in found["findings"][0]["what"]


def test_proofs_that_cannot_be_written(owner):
    owner.log.add(TAG, 2, 2)
    owner.log.write()
    done = owner.run("--proof=/nonexistent/proof")
    assert done.returncode == 1 and json.loads(done.stdout)["findings"] and "/nonexistent" in done.stderr


def test_a_gap(owner):
    owner.log.add(TAG, 6, 7)
    owner.log.write()
    found, _ = owner.convict("gap")
    assert "6 to 7" in found["findings"][0]["what"]


def test_a_chain_hash_that_differs_from_the_receipt(owner):
    owner.log.add(TAG, 5, 8, digest("a history for others"))
    owner.log.write()
    owner.keep(receipt(8), receipt(7, digest("in the middle")))
    found, proof = owner.convict("receipt_differs")
    assert json.loads(proof["receipt"]) == receipt(8) and found["complete"]
    assert not found["findings"][0]["proved"] and "is not signed for this log" in found["findings"][0]["what"]
    done = owner.check()
    assert done.returncode == 2, "the receipt is not signed"
    assert "two histories" in json.loads(done.stdout)["what"] and "receipt" in json.loads(done.stdout)["not_shown"]
    right = receipt(8, digest("a history for others"))
    other = receipt(8, channel_id="ch_other")
    for changed in (right, receipt(7), other, receipt(8, mode="test")):
        assert owner.check(proof={**proof, "receipt": json.dumps(changed)}).returncode == 1
    key = f"--receipt-key={receipts.text_of(RECEIPT_KEY)}"
    signed = {**proof, "receipt": json.dumps(receipt(8, seal_by=PAST))}
    assert owner.check(key, proof=signed).returncode == 0 and owner.check(proof=signed).returncode == 2
    other = receipts.sign(receipt(8), RECEIPT_KEY, "log.example/another", PAST)
    assert owner.check(key, proof={**proof, "receipt": json.dumps(other)}).returncode == 1
    assert owner.check(proof={**proof, "receipt": None}).returncode == 1
    for kept, is_proved in ((other, False), (receipts.sign(receipt(8), RECEIPT_KEY, ORIGIN), True)):
        owner.keep(kept)
        (found,) = owner.watch(code=1)["findings"]
        assert found["proved"] is is_proved
        assert ("your receipt, whose key is not checked here" in found["what"]) is is_proved


def test_a_promise_that_is_broken(owner):
    future = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + 3600))
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    owner.log.write(cosigners=[witness], time=int(time.time()))
    owner.keep(receipt(5, seal_by=future), receipt(3, seal_by=PAST))
    assert owner.watch()["waiting"] == 1
    owner.keep(receipt(6, seal_by=PAST))
    # An old checkpoint looks the same: neither without witnesses nor before the promise is it shown to others.
    found = owner.watch(code=1)
    assert found["overdue"] == 1 and "as it is served now" in found["findings"][0]["what"]
    assert owner.check("--url=" + owner.log.url, f"--receipt-key={receipts.text_of(RECEIPT_KEY)}").returncode == 2
    owner.words += [f"--witness={witness.vkey}"]
    for moment, overdue in ((LATEST, 1), (LATEST - 100, 1), (LATEST + 1, 0)):
        owner.log.write(cosigners=[witness], time=moment)
        found = owner.watch(code=1)
        assert (found["overdue"], found["waiting"], found["finding_count"]) == (overdue, 1, 1)
        assert found["findings"][0]["proved"] == (not overdue)
    for file in owner.directory.glob("state.json.proof*"):
        file.unlink()
    found, proof = owner.convict("promise_broken")
    assert found["waiting"] == 1 and json.loads(proof["receipt"])["sequence"] == 6
    words = [f"--url={owner.log.url}", f"--witness={witness.vkey}", f"--receipt-key={receipts.text_of(RECEIPT_KEY)}"]
    assert owner.check(*words).returncode == 0
    for missing, what in zip(words, ("--url", "cosignature", "--receipt-key")):
        done = owner.check(*(word for word in words if word != missing))
        assert done.returncode == 2 and what in json.loads(done.stdout)["not_shown"]
        assert "withholds" in json.loads(done.stdout)["what"]
    for changed in (receipt(6), receipt(6, seal_by=future), receipt(2, seal_by=PAST),
                    receipt(6, seal_by=PAST, mode="test"), {**receipt(6, seal_by=PAST), "sequence": 7}):
        assert owner.check(*words, proof={**proof, "receipt": json.dumps(changed)}).returncode == 1


def test_receipts_with_false_signatures(owner):
    owner.keep({**receipt(6, seal_by=PAST), "received_at": "2026-01-02T03:04:06.000000Z"})
    found = owner.watch(code=2)
    assert (found["false_receipts"], found["finding_count"], found["complete"]) == (1, 0, True)
    owner.keep({**receipt(4, digest("other"), seal_by=PAST), "received_at": "2026-01-02T03:04:06.000000Z"})
    owner.convict("receipt_differs")
    assert owner.check().returncode == 1, "it proves nothing to others"


@pytest.mark.parametrize("text", ("", "{}", "nonsense", "[]", '{"v":"constancia-log-proof/2"}'))
def test_documents_that_are_no_proofs(owner, text):
    path = owner.directory / "x.proof"
    path.write_text(text)
    assert run("log", "check-proof", str(path), f"--key={owner.log.vkey}").returncode == (1 if text else 2)


def test_many_findings_have_one_document_each(owner):
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    owner.words += [f"--witness={witness.vkey}"]
    owner.log.write(cosigners=[witness], time=int(time.time()))
    owner.keep(*(receipt(n, seal_by=PAST) for n in range(10, 210)))
    found = owner.watch(code=1)
    assert found["finding_count"] == 200 and len(found["findings"]) == 100
    with open(found["proof"], encoding="utf-8") as file:
        assert len(file.readlines()) == 100
    assert owner.check().returncode == 2
