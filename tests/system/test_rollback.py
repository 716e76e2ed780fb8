"""A store that was rolled back is noticed, and served only once an operator confirmed that."""

import contextlib
import hmac
import json
import shutil
import sqlite3

import pytest

from client import Client, NotStarted, Service, eventually, run
from fleet import Fleet

pytestmark = pytest.mark.both_stores

REASON = "the disk died, the copy of Monday was brought back"


def log_of(data):
    text = (data / "signer" / "signer.log").read_text()
    return [json.loads(line) for line in text.splitlines()]


def marks(data):
    return [line["round"] for line in log_of(data) if line["purpose"] == "round"]


# ---- the embedded store ----

class Kept:
    """A service and copies of its database, taken while it was stopped."""

    def __init__(self, directory):
        self.service = Service(directory, rate__live=100000, rate__test=100000,
                               seal__interval="1s", describe=False)
        self.data = self.service.data
        self.copies = directory / "copies"
        self.copies.mkdir()

    def grow(self, name):
        """Runs until one more event is sealed and known to the signing process."""
        self.service.start()
        key = self.service.ready["channels"]["content"]["live_key"]
        client = Client(self.service, key)
        event = client.register({"a": name}, name).expect(201).json
        client.sealed(event["event_id"])
        client.close()
        ((last,),) = self.service.store.rows("SELECT MAX(round) FROM seal_rounds")
        eventually(lambda: max(marks(self.data), default=0) >= int(last), "the round is marked")
        assert self.service.stop() == 0

    def keep(self, name):
        shutil.copytree(self.data, self.copies / name)

    def bring_back(self, name, what="constancia.db"):
        for path in self.data.glob(what + "*"):
            path.unlink()
        for path in (self.copies / name).glob(what + "*"):
            shutil.copy2(path, self.data)

    def refused(self):
        """What a start says that ends at once."""
        with pytest.raises(NotStarted, match="ended with 1"):
            self.service.start()
        return "\n".join(self.service.log.read_text().splitlines()[-2:])

    def accept(self, *more):
        return run("store", "accept-rollback", *more, "--json", *self.service.chosen())


@pytest.fixture
def kept(tmp_path):
    made = Kept(tmp_path)
    with contextlib.ExitStack() as ending:
        ending.callback(made.service.discard)
        yield made


@pytest.mark.sqlite
def test_an_older_copy_is_served_only_after_it_was_confirmed(kept):
    kept.grow("one")
    kept.keep("early")
    early = max(marks(kept.data))
    kept.grow("two")
    late = max(marks(kept.data))
    kept.bring_back("early")
    for _ in range(2):
        said = kept.refused()
        assert f"last sealed round is {early}, but this node has seen round {late}" in said
        assert "accept-rollback" in said
    checked = run("store", "check", "--json", *kept.service.chosen())
    (problem,) = json.loads(checked.stdout)["problems"]
    assert checked.returncode == 1 and f"this node has seen round {late}" in problem
    assert kept.accept().returncode == 2, "without a reason"
    assert kept.accept("--reason", "").returncode == 2
    done = kept.accept("--reason", REASON)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["round"] == early
    assert json.loads(done.stdout)["known_round"] == late
    (line,) = [line for line in log_of(kept.data) if line["purpose"] == "rollback_accepted"]
    assert line["reason"] == REASON and line["round"] == early
    with contextlib.closing(sqlite3.connect(kept.data / "constancia.db")) as store:
        assert store.execute("SELECT DISTINCT round, known_round, reason FROM rollbacks").fetchall() == [
            (early, late, REASON)]
        (act,) = store.execute("SELECT document FROM acts WHERE operation = 'store accept-rollback'")
        assert json.loads(act[0])["reason"] == REASON, "in the same transaction"
    assert kept.accept("--reason", REASON).returncode == 1, "there is nothing to confirm any more"
    kept.grow("three")
    assert run("store", "check", *kept.service.chosen()).returncode == 0


@pytest.mark.sqlite
def test_another_history_with_as_many_rounds_is_noticed(kept):
    """The copy was written on by a node with a signing process of its own."""
    kept.grow("one")
    kept.keep("early")
    kept.grow("two")
    kept.keep("late")
    kept.bring_back("early")
    shutil.move(kept.data / "signer", kept.copies / "first")
    shutil.copytree(kept.copies / "first", kept.data / "signer",
                    ignore=shutil.ignore_patterns("signer.log"))
    kept.grow("other")
    kept.grow("more")
    shutil.rmtree(kept.data / "signer")
    shutil.move(kept.copies / "first", kept.data / "signer")
    assert "differs from the one that this node has seen" in kept.refused()
    assert kept.accept("--reason", REASON).returncode == 0
    kept.grow("three")


@pytest.mark.sqlite
def test_a_store_that_the_node_knows_nothing_of_is_told(kept):
    """As when the signing process's log was rolled back together with the store, or is gone."""
    kept.grow("one")
    assert "store_history_unknown" not in kept.service.log.read_text()
    kept.keep("early")
    kept.grow("two")
    assert "store_history_unknown" not in kept.service.log.read_text()
    kept.bring_back("early")
    (kept.data / "signer" / "signer.log").unlink()
    kept.grow("three")
    assert "store_history_unknown" in kept.service.log.read_text()


@pytest.mark.sqlite
def test_a_crash_between_a_round_and_its_mark_is_no_rollback(kept):
    kept.grow("one")
    log = (kept.data / "signer" / "signer.log").read_bytes()
    kept.grow("two")
    (kept.data / "signer" / "signer.log").write_bytes(log)
    kept.grow("three")
    assert marks(kept.data) == sorted(set(marks(kept.data)))


@pytest.mark.sqlite
def test_a_store_that_was_made_anew_is_another_one(kept):
    """As when a demonstration's database and content are deleted and its keys are kept."""
    kept.grow("one")
    for path in kept.data.glob("constancia.db*"):
        path.unlink()
    shutil.rmtree(kept.data / "content")
    kept.grow("two")
    assert len({line["store"] for line in log_of(kept.data) if line["purpose"] == "round"}) == 2


@pytest.mark.sqlite
def test_a_backup_brought_back_into_the_same_directory_is_confirmed_too(kept, tmp_path):
    kept.grow("one")
    done = run("store", "backup", tmp_path / "backup", *kept.service.chosen())
    assert done.returncode == 0, done.stderr
    kept.grow("two")
    for path in kept.data.glob("constancia.db*"):
        path.unlink()
    shutil.rmtree(kept.data / "content")
    done = run("store", "restore", "--live", tmp_path / "backup", *kept.service.chosen())
    assert done.returncode == 0, done.stderr
    assert "has seen round" in kept.refused()
    assert kept.accept("--reason", REASON).returncode == 0
    kept.grow("three")


# ---- several nodes ----

@pytest.mark.postgresql
def test_every_node_notices_also_what_others_sealed_and_while_it_serves(tmp_path):
    with Fleet(tmp_path) as fleet:
        channel = fleet.new_channel()
        client = fleet.nodes[0].client(channel.live_key["key"])
        for n in range(3):
            client.sealed(client.register({"n": n}, f"e{n}").expect(201).json["event_id"])
        client.close()
        fleet.acts_sealed()  # which makes the last round
        last = fleet.number("SELECT MAX(round) FROM seal_rounds")
        logs = [tmp_path / node.name for node in fleet.nodes]
        eventually(lambda: all(max(marks(log), default=0) == last for log in logs),
                   "both have seen the last round")
        # A standby that lagged takes over.
        fleet.query(f"DELETE FROM seal_rounds WHERE round = {last}")
        for node in fleet.nodes:
            assert node.process.wait(60) == 1
            assert "store_rollback_detected" in node.log_tail()
        first, second = fleet.nodes
        for node in fleet.nodes:
            done = node.run("serve")
            assert done.returncode == 1 and f"has seen round {last}" in done.stderr
        assert first.admin("store", "accept-rollback", "--reason", REASON)["round"] == last - 1
        first.start()
        done = second.run("serve")
        assert done.returncode == 1 and f"has seen round {last}" in done.stderr, \
            "each node's operator confirms it"
        assert second.admin("store", "accept-rollback", "--reason", REASON)["round"] == last - 1
        second.start()
        assert fleet.number("SELECT COUNT(*) FROM rollbacks") == 2


# ---- links ----

def refused(client, url):
    return client.download(url).status != 200


def urls(client, certification_id):
    return client.certification(certification_id)["evidence_url"]


def signed_by(secret, url):
    path, query = url.split("/v1/", 1)[1].split("?")
    expires, mac = (part.split("=")[1] for part in query.split("&"))
    text = f"GET\n/v1/{path}\n{expires}"
    return hmac.new(bytes.fromhex(secret), text.encode(), "sha256").hexdigest() == mac


def test_the_secret_of_links_is_replaced(service):
    channel = service.new_channel()
    channel.test.register({"a": 1}, "a").expect(201)
    issued = channel.test.certified(seq_from=1, seq_to=1)
    name, first = issued["certification_id"], issued["evidence_url"]
    (former,) = service.store.rows("SELECT secret FROM link_secrets WHERE valid_until IS NULL")
    assert signed_by(former[0], first)
    assert service.admin("store", "rotate-link-secret")["former_links_valid"] is True
    channel.test.download(first).expect(200)

    eventually(lambda: not signed_by(former[0], urls(channel.test, name)),
               "new links carry the new secret")
    channel.test.download(first).expect(200)
    second = urls(channel.test, name)
    assert service.admin("store", "rotate-link-secret", "--now")["former_links_valid"] is False
    assert refused(channel.test, first) and refused(channel.test, second)
    channel.test.download(urls(channel.test, name)).expect(200)
    channel.close()


@pytest.mark.postgresql
def test_the_secret_of_links_is_replaced_on_all_nodes(tmp_path):
    with Fleet(tmp_path) as fleet:
        channel = fleet.new_channel()
        here, there = fleet.clients(channel.test_key["key"])
        here.register({"a": 1}, "a").expect(201)
        issued = here.certified(seq_from=1, seq_to=1)
        name = issued["certification_id"]

        def path(url):
            return url.split("/v1/", 1)[1]

        def got(client, url):
            return client.get("/v1/" + path(url)).status
        first = issued["evidence_url"]
        fleet.nodes[0].admin("store", "rotate-link-secret")
        for _ in range(30):  # a link of either node is good at the other at any time
            assert got(there, urls(here, name)) == got(here, urls(there, name)) == 200
            assert got(there, first) == 200
        fleet.nodes[0].admin("store", "rotate-link-secret", "--now")
        assert got(here, first) != 200
        eventually(lambda: got(there, first) != 200, "the other node knows it")
        eventually(lambda: got(there, urls(here, name)) == 200, "the other node knows the new one")
