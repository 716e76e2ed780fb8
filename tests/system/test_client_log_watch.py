"""The clients' own watch of a log, on logs that a test writes and on that of a service that has two histories: each
finds what `constancia log watch` finds, and can continue with its state."""

import json
import re
import shutil
import subprocess

import pytest

import receipts
import tlog
from client import Client, Service, eventually
from scripted import CLIENT  # noqa: F401 (puts the client's folder on the path)
from static_log import ORIGIN, StaticLog, digest
from test_client_typescript import program  # noqa: F401 (a fixture)
from watcher import CHANNEL, RECEIPT_KEY, TAG, Watcher, before, receipt

import constancia

pytestmark = pytest.mark.sqlite

PAST, FUTURE = "2026-01-02T03:14:05.000000Z", "2096-01-02T03:14:05.000000Z"
OTHER = "ch_another"


class Python:
    @staticmethod
    def watch(url, key, channels, **options):
        try:
            found = constancia.watch_log(url, key, channels, retry=constancia.Retry(attempts=1), **options)
        except (constancia.ConstanciaError, ValueError) as error:
            return {"error": type(error).__name__, "message": str(error)}
        assert bool(found) is (found.verdict == "fine")
        return {**{name: getattr(found, name) for name in (
            "finding_count", "not_checked", "not_given", "state", "origin", "size", "signed", "quorum",
            "missing_witnesses", "witnessed_at", "complete", "first", "new_entries", "own_entries", "receipts",
            "covered", "waiting", "overdue", "other_log", "without_promise", "before_log", "begun_later",
            "test_receipts", "false_receipts", "verdict")},
            "notes": list(found.notes), "findings": [{"kind": one.kind, "what": one.what} for one in found.findings]}


class TypeScript:
    """A process of Node that watches what it is asked about."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["node", "watch.mjs"], cwd=folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def watch(self, url, key, channels, **options):
        self.process.stdin.write(json.dumps({"url": url, "key": key, "channels": channels, **options}) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return {re.sub("[A-Z]", lambda one: "_" + one[0].lower(), name): value for name, value in found.items()}

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def node(program):  # noqa: F811
    made = TypeScript(program)
    yield made
    made.close()


@pytest.fixture(params=("python", "typescript"))
def library(request):
    return Python if request.param == "python" else request.getfixturevalue("node")


@pytest.fixture
def log(tmp_path):
    made = StaticLog(tmp_path / "log")
    yield made
    made.close()


class Owner(Watcher):
    """One who watches with a client and with the program: they have to find the same."""

    def __init__(self, directory, log, library):  # pylint: disable=redefined-outer-name
        super().__init__(directory, log)
        self.library, self.known, self.channels = library, None, [CHANNEL]
        self.words = [f"--channel={CHANNEL}"]

    def ask(self, **options):
        options.setdefault("receipts", str(self.receipts))
        return self.library.watch(self.log.url, self.log.vkey, self.channels, state=self.known, **options)

    def both(self, verdict="fine", **options):
        """What the client finds, if the program finds the same; the state is kept if it was accepted."""
        found = self.ask(**options)
        assert "error" not in found, found
        words = [f"--witness={one}" for one in options.get("witnesses", ())]
        words += [f"--quorum={options['quorum']}"] if "quorum" in options else []
        self.state.unlink(missing_ok=True)
        if self.known:
            self.state.write_text(json.dumps(self.known, separators=(",", ":"), sort_keys=True))
        stated = self.watch(*words, code={"fine": 0, "wrong": 1, "not_established": 2}[verdict])
        assert found["verdict"] == verdict, found
        assert found["findings"] == [{"kind": one["kind"], "what": one["what"]} for one in stated["findings"]]
        for name in ("before_log", "begun_later", "complete", "covered", "false_receipts", "finding_count", "first",
                     "new_entries",
                     "other_log", "overdue", "own_entries", "receipts", "test_receipts", "waiting", "without_promise"):
            assert found[name] == stated[name], name
        assert found["size"] == stated["checkpoint"]["size"] and found["signed"] is stated["checkpoint"]["signed"]
        if verdict == "wrong":
            assert found["state"] == self.known, "what is wrong is found again"
        elif found["complete"]:
            assert found["state"] == json.loads(self.state.read_text())
        self.known = found["state"]
        return found

    def kinds(self, verdict="wrong", **options):
        return [one["kind"] for one in self.both(verdict, **options)["findings"]]


@pytest.fixture
def owner(tmp_path, log, library):
    """Has seen a log of 300 entries, two of which are of its chain, and has receipts of four events."""
    log.fill(298)
    log.add(TAG, 1, 3)
    log.add(TAG, 4, 4)
    log.write()
    made = Owner(tmp_path, log, library)
    made.keep(*(receipt(n) for n in range(1, 5)))
    found = made.both()
    assert (found["first"], found["new_entries"], found["own_entries"], found["covered"]) == (True, 300, 2, 4)
    assert found["not_given"] == ["witnesses: not given"]
    return made


# ---- logs that grow ----

@pytest.mark.parametrize("more", (0, 1, 211, 212, 213, 700))
def test_a_log_that_grows(owner, more):
    owner.log.fill(more)
    owner.log.add(TAG, 5, 9)
    owner.log.write()
    owner.keep(receipt(5), receipt(9), receipt(10, seal_by=FUTURE), receipt(4, mode="test"))
    found = owner.both()
    assert (found["new_entries"], found["own_entries"], found["covered"], found["waiting"]) == (more + 1, 3, 6, 1)
    before = len(owner.log.requests)
    assert owner.ask()["new_entries"] == 0
    assert not [path for path in owner.log.requests[before:] if "/entries/" in path], "what it has read before"


def test_each_size_is_consistent_with_each_other(tmp_path, log, library):
    log.fill(20)
    for old in range(1, 20):
        known = None
        for new in (old, old + 1, 20):
            log.write(size=new)
            found = library.watch(log.url, log.vkey, [CHANNEL], state=known)
            assert found["verdict"] == "fine" and found["size"] == new, (old, new, found)
            known = found["state"] if new == old else known


def test_large_logs(tmp_path, log, library):
    """More than one level of tiles, and a tile that is no longer there in part."""
    log.fill(66_000)
    log.write(size=65_540)
    first = library.watch(log.url, log.vkey, [CHANNEL])
    log.write()
    assert first["verdict"] == "fine"
    found = library.watch(log.url, log.vkey, [CHANNEL], state=first["state"])
    assert found["verdict"] == "fine" and found["new_entries"] == 460


def test_the_channels_of_receipts(owner):
    owner.log.add(tlog.tag_of(OTHER), 1, 2)
    owner.log.write()
    owner.keep(receipt(1, channel_id=OTHER), receipt(2, digest("different"), channel_id=OTHER))
    found = owner.both("wrong")
    assert [one["kind"] for one in found["findings"]] == ["receipt_differs"] and OTHER in found["findings"][0]["what"]
    assert found["own_entries"] == 3


# ---- what a log must not do ----

@pytest.mark.parametrize("old, place, new", ((300, 0, 301), (300, 299, 600), (256, 255, 512), (1, 0, 2),
                                             (512, 511, 700)))
def test_a_leaf_that_is_rewritten(tmp_path, log, library, old, place, new):
    log.fill(new)
    log.write(size=old)
    owner = Owner(tmp_path, log, library)
    owner.both()
    log.add(digest("another"), 1, 1)
    log.entries[place] = log.entries.pop()
    log.write()
    assert owner.kinds() == ["inconsistent"] == owner.kinds()
    assert len(owner.ask()["notes"]) == 2


def test_two_trees_of_one_size(owner):
    owner.log.entries[7] = owner.log.entries[8]
    owner.log.write()
    assert owner.kinds() == ["two_trees"]


def test_a_log_that_lost_entries(owner):
    owner.log.write(size=250)
    assert owner.kinds() == ["shrunken"]


def test_entries_that_overlap(owner):
    owner.log.add(TAG, 4, 6)
    owner.log.fill(3)
    owner.log.write()
    assert owner.kinds() == ["overlap"]


def test_entries_that_leave_out_events(owner):
    owner.log.add(TAG, 7, 9)
    owner.log.write()
    assert owner.kinds() == ["gap"]
    owner.log.add(TAG, 5, 6)  # it overlaps none, although the first and the last event of the chain are around it
    owner.log.write()
    assert owner.kinds() == ["gap", "gap"]


def test_another_chain_hash(owner):
    owner.keep(receipt(4, digest("other")))  # of an entry that was read before
    assert owner.kinds() == ["receipt_differs"]


def test_a_promise_that_was_broken(owner):
    owner.keep(receipt(5, seal_by=PAST), receipt(6, seal_by=FUTURE), receipt(7, seal_by=FUTURE))
    found = owner.both("wrong")
    assert found["overdue"] == 1 and any("no quorum" in one for one in found["not_checked"])
    witness = tlog.Key("witness.example/one", tlog.COSIGNATURE)
    promised = 1_767_323_645  # PAST in seconds
    for time, overdue in ((promised + 60, 1), (promised + 61, 0), (4_000_000_000, 1)):
        owner.log.write(cosigners=[witness], time=time)
        assert owner.kinds("wrong", witnesses=[witness.vkey]) == ["promise_broken"], time
        assert owner.both("wrong", witnesses=[witness.vkey])["overdue"] == overdue, time
    owner.log.add(TAG, 5, 5)
    owner.log.write()
    assert owner.both()["waiting"] == 2


def test_more_findings_than_are_listed(owner):
    for _ in range(120):
        owner.log.add(TAG, 4, 4)
    owner.log.write()
    found = owner.ask()
    assert found["verdict"] == "wrong" and found["finding_count"] == 120 and len(found["findings"]) == 100


def test_a_receipt_that_is_not_signed(owner):
    """It is a finding; only one that is signed for this log binds the service."""
    other = receipt(4, digest("other"))
    for kept, what in ((other, "not signed for this log"),
                       (receipts.sign(other, RECEIPT_KEY, "log.example/x"), "not signed for this log"),
                       (receipts.sign(other, RECEIPT_KEY), "whose key is not checked here")):
        owner.keep(kept)
        (found,) = owner.both("wrong")["findings"]
        assert found["kind"] == "receipt_differs" and what in found["what"]


# ---- what cannot be checked is never fine ----

def test_receipts_that_promise_nothing(owner):
    far = "2096-01-03T03:04:05.000001Z"
    owner.keep(receipt(5), receipts.sign(receipt(6), RECEIPT_KEY, ORIGIN),
               receipt(7, seal_by=far, received_at="2096-01-02T03:04:05.000000Z"))
    found = owner.both("not_established")
    assert (found["without_promise"], found["waiting"], found["covered"]) == (3, 0, 4)
    assert found["not_checked"] == ["receipts: 3 events have no entry, and their receipts promise none within 24 hours"]
    owner.keep(receipt(7, seal_by=before(far, microseconds=1), received_at="2096-01-02T03:04:05.000000Z"))
    found = owner.both("not_established")
    assert (found["without_promise"], found["waiting"]) == (2, 1)
    owner.log.add(TAG, 5, 6)
    owner.log.write()
    assert owner.both()["covered"] == 6


def test_the_receipt_that_binds_most(owner):
    """Of several with one chain hash: for this log before another one, and then the earliest promise."""
    owner.keep(receipt(5), receipts.sign(receipt(5), RECEIPT_KEY, "log.example/x", PAST))
    assert owner.both("not_established")["other_log"] == 1
    owner.keep(receipts.sign(receipt(5), RECEIPT_KEY, ORIGIN))
    assert owner.both("not_established")["without_promise"] == 1
    owner.keep(receipts.sign(receipt(5), RECEIPT_KEY, ORIGIN, PAST.replace("03:14", "03:24")))
    assert owner.kinds() == ["promise_broken"]


def test_a_chain_that_is_older_than_the_log(owner):
    owner.log.add(tlog.tag_of(OTHER), 5, 7)
    owner.log.write()
    owner.keep(receipt(2, channel_id=OTHER), receipt(3, seal_by=PAST, channel_id=OTHER))
    found = owner.both("not_established")
    assert (found["before_log"], found["begun_later"], found["finding_count"]) == (2, 1, 0)
    found = owner.both("not_established")
    assert (found["before_log"], found["begun_later"]) == (1, 0)
    assert "1 are of events before the first entry" in found["not_checked"][0]


def test_a_state_of_the_first_version(owner):
    """Who made the receipts could choose its digest, so that everything is compared again."""
    for version, is_read in ((2, False), (1, True)):
        owner.known = {**owner.known, "v": version}
        owner.log.requests.clear()
        found = owner.ask()
        assert found["verdict"] == "fine" and found["state"]["v"] == 2
        assert ("/tile/entries/000" in owner.log.requests) is is_read
    owner.both()
    owner.known = {**owner.known, "v": 3}
    assert owner.ask()["error"] in ("ValueError", "TypeError")


def test_caches_are_asked_for_the_latest_checkpoint(owner):
    owner.log.add(TAG, 5, 5)
    owner.log.write()
    owner.log.no_cache.clear()
    owner.both()
    assert owner.log.no_cache == ["/checkpoint"] * 2, "by the client and by the program, and no tile"


def test_receipts_that_say_nothing(owner):
    altered = receipt(5, seal_by=PAST)
    altered["chain_hash"] = digest("altered")
    owner.keep(altered)
    found = owner.both("not_established")
    assert found["false_receipts"] == 1 and "false signature" in found["not_checked"][0]


@pytest.mark.parametrize("line, what", (("nonsense", "receipts"), ("{}", "channel_id"), ("[1]", "receipts"),
                                        (json.dumps(receipt(1, channel_id="c" * 40)), "channel_id"),
                                        (json.dumps(receipt(1)).replace(CHANNEL, "\\ud800"), "channel_id")))
def test_lines_that_are_no_receipts(owner, line, what):
    with owner.receipts.open("a") as out:
        out.write(line + "\n")
    owner.keep(receipt(4, digest("other")))
    found = owner.ask()
    assert found["not_checked"] and what in found["not_checked"][0], found["not_checked"]
    assert found["verdict"] in ("wrong", "not_established")


def test_a_promise_of_another_log(owner):
    other = receipt(5, seal_by=PAST)
    assert other["receipt"]["origin"] == ORIGIN
    log_of_another = StaticLog(owner.directory / "other", "log.example/other")
    log_of_another.add(TAG, 1, 4)
    log_of_another.write()
    owner.keep(other)
    try:
        found = owner.library.watch(log_of_another.url, log_of_another.vkey, [], receipts=str(owner.receipts))
    finally:
        log_of_another.close()
    assert found["verdict"] == "not_established" and found["other_log"] == 1
    assert "another log" in found["not_checked"][0]


def test_a_chain_that_begins_later(owner):
    owner.log.add(tlog.tag_of(OTHER), 3, 4)
    owner.log.write()
    owner.keep(receipt(4, digest(f"{tlog.tag_of(OTHER)} 4"), channel_id=OTHER))
    owner.keep(receipt(5, seal_by=FUTURE, channel_id=OTHER))
    assert owner.both("not_established")["begun_later"] == 1
    assert owner.both()["begun_later"] == 0, "it is said once"


def test_a_log_that_does_not_serve_its_entries_again(owner):
    owner.log.add(TAG, 4, 6)
    owner.log.write()
    (owner.log.directory / "tile/entries/000").unlink()
    found = owner.ask()
    assert [one["kind"] for one in found["findings"]] == ["overlap"] and found["verdict"] == "wrong"


def test_witnesses(owner):
    one, two = (tlog.Key(f"witness.example/{name}", tlog.COSIGNATURE) for name in ("one", "two"))
    owner.log.write(cosigners=[one], time=1_700_000_000)
    found = owner.both("not_established", witnesses=[one.vkey, two.vkey])
    assert not found["quorum"] and found["missing_witnesses"] == [two.name] and found["complete"]
    found = owner.both(witnesses=[one.vkey, two.vkey], quorum=1)
    assert found["quorum"] and found["witnessed_at"] == "2023-11-14T22:13:20.000000Z" and not found["not_given"]
    false = one.line((1_700_000_000).to_bytes(8, "big") + bytes(64))
    for note in (owner.log.checkpoint(cosigners=[tlog.Key(one.name, tlog.COSIGNATURE)], time=1_700_000_000),
                 owner.log.checkpoint() + false, owner.log.checkpoint() + false + one.cosign("another text\n", 1)):
        (owner.log.directory / "checkpoint").write_text(note)
        assert owner.both("not_established", witnesses=[one.vkey])["missing_witnesses"] == [one.name]


def test_another_key(owner):
    key = tlog.Key(ORIGIN, tlog.ED25519)
    found = owner.library.watch(owner.log.url, key.vkey, owner.channels)
    assert found["verdict"] == "not_established" and not found["signed"] and not found["complete"]
    assert found["state"] is None and "not signed" in found["not_checked"][0]
    refused = owner.library.watch(owner.log.url, key.vkey, owner.channels, state=owner.known)
    assert refused["error"] in ("ValueError", "TypeError") and "state" in refused["message"]


@pytest.mark.parametrize("change, what", (
    (lambda log: log.directory.joinpath("tile/entries/001.p/44").write_bytes(b"\1\0x"), "cut off"),
    (lambda log: log.directory.joinpath("tile/entries/000").write_bytes(b"x" * 100_000), "bytes"),
    (lambda log: log.directory.joinpath("tile/entries/000").unlink(), "does not have"),
    (lambda log: log.directory.joinpath("checkpoint").write_bytes(b"x" * 70_000), "bytes"),
    (lambda log: log.directory.joinpath("checkpoint").write_bytes(b"\xff\n"), "text"),
    (lambda log: log.directory.joinpath("checkpoint").unlink(), "no checkpoint"),
    (lambda log: log.directory.joinpath("checkpoint").write_text(log.checkpoint().replace("\n300\n", "\n301\n")),
     "false")))
def test_logs_that_contradict_themselves(owner, change, what):
    change(owner.log)
    owner.known = None
    found = owner.ask()
    assert found.get("error") == "LogNotValid" and what in found["message"], found


def test_entries_that_do_not_lead_to_the_root(owner):
    path = owner.log.directory / "tile/entries/001.p/44"
    data = path.read_bytes()
    path.write_bytes(data.replace(digest("seal " + TAG + " 4 4").encode(), digest("another").encode()))
    assert path.read_bytes() != data
    owner.known = None
    assert owner.ask()["error"] == "LogNotValid"


@pytest.mark.parametrize("given", ({"channels": ["c" * 40]}, {"channels": []}, {"key": "x"}, {"key": "a+00000000+AQ=="},
                                   {"witnesses": ["x"]}, {"state": {}}, {"state": {"v": 1}}, {"quorum": 1}))
def test_wrong_arguments(owner, given):
    arguments = {"url": owner.log.url, "key": owner.log.vkey, "channels": owner.channels, **given}
    assert owner.library.watch(**arguments)["error"] in ("ValueError", "TypeError")


# ---- a service ----

def test_a_service_that_has_two_histories(tmp_path, library):
    """A copied store that goes on in parallel."""
    (tmp_path / "service").mkdir()
    service = Service(tmp_path / "service", seal__interval="1s", log__origin=ORIGIN, rate__live=100000)
    service.start()
    fork = None
    try:
        channel = service.new_channel()
        vkey = tlog.Key.load(ORIGIN, tlog.ED25519, (service.data / "signer" / "log.key").read_bytes()).vkey
        kept = [channel.live.register({"n": 1}).expect(201).json]
        receipts = tmp_path / "receipts.ndjson"

        def watch(of, state=None):
            receipts.write_text("".join(json.dumps(one) + "\n" for one in kept))
            return library.watch(f"http://127.0.0.1:{of.port}/log", vkey, [], receipts=str(receipts), state=state)

        seen = eventually(lambda: (found := watch(service)).get("covered") == 1 and found, "the segment is in the log")
        assert seen["verdict"] == "fine" and seen["false_receipts"] == 0
        assert service.stop() == 0
        shutil.copytree(tmp_path / "service", tmp_path / "fork")
        service.start()
        kept.append(Client(service, channel.live_key["key"]).register({"n": 2}).expect(201).json)
        seen = eventually(lambda: (found := watch(service, seen["state"])).get("covered") == 2 and found,
                          "the second segment is in the log")
        fork = Service(tmp_path / "fork", seal__interval="1s", log__origin=ORIGIN, rate__live=100000)
        fork.start()
        liar = Client(fork, channel.live_key["key"])
        liar.register({"another": "history"}).expect(201)
        late = eventually(lambda: (found := watch(fork)).get("findings") and found,
                          "the other second event is in the log")
        assert [one["kind"] for one in late["findings"]] == ["receipt_differs"] and late["state"] is None

        def grown():
            liar.register({"another": "history"}).expect(201)
            found = watch(fork, seen["state"])
            return found["size"] > seen["size"] and found

        assert [one["kind"] for one in eventually(grown, "the fork has a larger log")["findings"]] == ["inconsistent"]
    finally:
        service.discard()
        if fork:
            fork.discard()


def test_the_methods_of_the_python_clients(owner):
    import asyncio  # pylint: disable=import-outside-toplevel
    given = {"receipts": [receipt(4)], "url": owner.log.url}
    with constancia.Client("http://127.0.0.1:9/v1") as client:
        assert client.watch_log(owner.log.vkey, owner.channels, **given)

    async def run():
        async with constancia.AsyncClient("http://127.0.0.1:9/v1") as client:
            return await client.watch_log(owner.log.vkey, owner.channels, **given)

    assert asyncio.run(run()).covered == 1


def test_python_without_the_library_for_signatures(owner, tmp_path):
    (tmp_path / "blocked" / "cryptography").mkdir(parents=True)
    (tmp_path / "blocked" / "cryptography" / "__init__.py").write_text("raise ImportError")
    code = ("import json, sys, constancia\nfound = constancia.watch_log(*sys.argv[1:3], json.loads(sys.argv[3]))\n"
            "print(json.dumps([bool(found), found.verdict, found.not_checked, found.state]))")
    done = subprocess.run(["/usr/bin/python3", "-c", code, owner.log.url, owner.log.vkey, json.dumps(owner.channels)],
                          env={"PYTHONPATH": f"{tmp_path / 'blocked'}:{CLIENT}"}, capture_output=True, text=True,
                          check=True)
    assert json.loads(done.stdout) == [False, "not_established", ["signatures: python3-cryptography is not installed"],
                                       None]
