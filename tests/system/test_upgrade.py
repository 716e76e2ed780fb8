"""Stores and evidence that programs of version 0.1.0 made (tests/support/fixtures/0.1.0), an early one and the
last one of its schema: today's program migrates the store, continues with it, and finds the evidence as
good as then.

What they left waiting has become old since: the settings that forget or give up by age are long."""

import base64
import datetime
import json
import os
import pathlib
import resource
import signal
import subprocess
import tarfile
import threading
import urllib.request

import pytest

import hooks
import money
import sizes
import stores
import timestamp_authority
from client import Client, Service, eventually, run
from mail_server import MailServer
from moved_clock import MovedClock
from postgres import ROLE
from program import PATIENCE

pytestmark = pytest.mark.both_stores

FIXTURE = pathlib.Path(__file__).parents[1] / "support" / "fixtures" / "0.1.0"
STEPS = sorted(path.stem for path in (pathlib.Path(__file__).parents[2] / "src/store/schema/sqlite")
               .glob("*.sql"))
ROLLING = {"018-digest-index", "019-requests", "020-test-notices"}
SIZES = {"digests_gathered": 5, "digests_of_chain": 5, "digest_block": 3, "digests_scanned_directly": 1,
         "digests_us": 20_000}
EVER = {"certification__give_up_after": "36500d", "webhook__keep": "36500d",
        "webhook__schedule": ",".join(["2s"] * 12), "seal__interval": "300ms",
        "rate__live": 100000, "rate__test": 100000}
THEN = "2027-01-01T00:00:00Z"  # while the certificates of the evidence were good
LATER = "2090-01-01T00:00:00Z"
# Of an event, and the same for ever.
FIXED = {"event_id", "channel_id", "client_ref", "sequence", "received_at", "occurred_at", "hash",
         "hash_alg", "modality", "chain_hash", "config_version", "mode"}


class Early:
    """What `constancia dev` left, of schema 004."""

    schema = "004-mails"
    archive = f"{stores.KIND}.tar.xz"

    @staticmethod
    def settings(_directory):
        return {"tsa.url": "embedded:"}


class Late:
    """Of schema 016, with an operator's keys: the authority continues, and the second key signs."""

    schema = "016-idempotency-keys"
    archive = f"{stores.KIND}-016.tar.xz"

    @staticmethod
    def settings(directory):
        keys = directory / "keys"
        for path in (*keys.glob("*.key"), *keys.glob("clock/*.key")):
            path.chmod(0o600)
        server = timestamp_authority.Server(timestamp_authority.Certificates(str(keys / "clock")))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return {"tsa.url": server.url, "tsa.roots": str(keys / "root.pem"), "tsa.kind": "non_qualified",
                "tsa.allow_networks": "127.0.0.0/8", "signer.key": str(keys / "second.key"),
                "signer.chain": str(keys / "second-chain.pem"), "evidence.digest": "sha-512"}


BOTH = [pytest.param(made, id=made.schema) for made in (Early, Late)]


def fixed(event):
    return {name: event[name] for name in FIXED}


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Old(Service):
    """What 0.1.0 left, and today's program on it."""

    def __init__(self, directory, made, **settings):
        super().__init__(directory, prepared=False, **EVER, **settings)
        self.directory, self.made = directory, made
        self.steps = [step for step in STEPS if step > made.schema]
        with tarfile.open(FIXTURE / made.archive) as archive:
            archive.extractall(directory)  # made by ourselves
        self.settings |= made.settings(directory)
        os.chmod(self.data, 0o700)
        if stores.KIND == "postgresql":
            dump = (directory / "dump.sql").read_text(encoding="utf-8")
            self.store.change(f"SET ROLE {ROLE};\n{dump}")
        self.told = json.loads((directory / "told.json").read_text(encoding="utf-8"))
        self.receipts = lines(directory / "receipts.ndjson")
        self.requests = lines(directory / "requests.ndjson")

    def schema(self):
        return self.store.rows("SELECT value FROM settings WHERE name = 'schema'")[0][0]

    def command_on_store(self, *words):
        return run(*words, *self.chosen(), environment=self.environment)

    def migrate(self, *words):
        """And is distributed where tables are to be."""
        done = self.command_on_store("store", "migrate", "--json", *words)
        assert done.returncode == 0, done.stderr
        if "--dry-run" not in words:
            self.distribute()
        return json.loads(done.stdout)

    def client_of(self, channel, mode):
        return Client(self, self.told["channels"][channel][mode])

    def repeat(self, client, asked):
        """The same request again."""
        more = {key: asked[key] for key in ("client_ref", "occurred_at") if key in asked}
        if "payload" in asked:
            return client.register(asked["payload"], **more)
        if "digest" in asked:
            return client.register_hash(asked["digest"], hash_alg=asked["hash_alg"], **more)
        return client.register_file(base64.b64decode(asked["file"]), name=asked["file_name"],
                                    **more)

    def receipts_of(self, channel, first, last):
        """A file with those of some events of a live chain."""
        wanted = self.told["channels"][channel]["channel_id"]
        path = self.directory / f"receipts-{channel}-{first}-{last}.ndjson"
        path.write_text("".join(
            json.dumps(one) + "\n" for one in self.receipts if one["channel_id"] == wanted
            and one["mode"] == "live" and first <= one["sequence"] <= last), encoding="utf-8")
        return path

    def verify(self, *paths, at=THEN, receipts=None):
        more = ["--receipt", receipts] if receipts else []
        done = run("verify", *paths, "--json", "--trust", self.data / "trust.pem", *more,
                   *(["--at", at] if at else []))
        return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module", params=BOTH)
def old(request, tmp_path_factory):
    """Moved on, not started."""
    mail = MailServer()
    environment = pytest.MonkeyPatch()
    environment.setenv(sizes.NAME, ",".join(f"{name}={size}" for name, size in SIZES.items()))
    one = Old(tmp_path_factory.mktemp("old"), request.param, **mail.settings(mail__schedule="1s,1s,1s,1s,1s,1s"))
    one.mail, one.refusals = mail, {words[0]: one.command_on_store(*words) for words in
                                    (("serve", "--set=service.listen=127.0.0.1:0", "--set=service.admin_listen="), ("store", "check"))}
    one.planned, one.between = one.migrate("--dry-run"), one.schema()
    one.taken = one.migrate()
    one.checked = one.command_on_store("store", "check", "--json")
    yield one
    one.discard()
    mail.close()
    environment.undo()


@pytest.fixture(scope="module")
def running(old):
    old.start()
    yield old
    assert old.stop() == 0
    done = old.command_on_store("store", "check", "--json")
    assert done.returncode == 0, done.stdout
    assert not [line for line in old.log_lines() if line["level"] == "error"], old.log_tail()


def test_the_store_is_refused_until_it_is_moved(old):
    for done in old.refusals.values():
        assert done.returncode not in (0, None)
        assert "constancia store migrate" in done.stderr and old.made.schema in done.stderr, done.stderr
    due = {"steps": old.steps, "kinds": ["rolling" if step in ROLLING else "stop" for step in old.steps]}
    assert old.planned == {"applied": False, **due} and old.between == old.made.schema
    assert old.taken == {"applied": True, **due} and old.schema() == STEPS[-1]


def test_everything_in_it_is_proven(old):
    assert old.checked.returncode == 0, old.checked.stdout + old.checked.stderr
    told = json.loads(old.checked.stdout)
    assert told["valid"] and told["events"] == len(old.receipts)


def test_notices_are_signed_with_the_secret_of_then(running):
    taken, dead = running.told["taken"], running.told["dead"]
    waiting = [one for one in running.told["deliveries"]["dead"] if one["status"] == "waiting"]
    assert waiting
    with hooks.Receiver(secrets=[dead["secret"]]) as receiver:
        running.admin("webhook", "update", dead["endpoint_id"], "--url", receiver.url)

        def come():
            return {one["notice_id"] for one in waiting} <= {one.id for one in receiver.deliveries}
        receiver.wait(come, "what waited")
        receiver.check()
    with hooks.Receiver(secrets=[taken["secret"]]) as receiver:
        running.admin("webhook", "update", taken["endpoint_id"], "--url", receiver.url)
        running.admin("webhook", "test", taken["endpoint_id"])
        receiver.expect(1)
        receiver.check()
    (message,) = eventually(lambda: running.mail.messages, "the mail that waited comes")[:1]
    assert message.recipients == ["owner@example.com"]


def test_what_is_repeated_gets_the_receipt_of_then(running):
    """What was sealed then never gets an entry in the log, so its receipt promises none."""
    clients, promised = {}, set()
    sealed = {one["event_id"] for modes in running.told["events"].values() for one in modes.get("live", ())
              if one["timestamp"]["type"] != "pending"}
    for request, receipt in zip(running.requests, running.receipts):
        place = request["channel"], request["mode"]
        client = clients.setdefault(place, running.client_of(*place))
        answer = running.repeat(client, request["asked"]).expect(200)
        assert answer.headers["Idempotent-Replayed"] == "true"
        assert fixed(answer.json) == fixed(receipt)
        if answer.json["receipt"]["seal_by"]:
            promised.add(receipt["event_id"])
    assert len(running.receipts) > 50
    live = {one["event_id"] for one in running.receipts if one["mode"] == "live"}
    assert sealed and promised and promised == live - sealed
    conflict = running.client_of("content", "live").register({"another": 1}, "json-0")
    conflict.expect(409, "client_ref_conflict")


def test_events_of_then_are_found_by_their_digest(running):
    """They are added to the index; later ones are found with them."""
    hashes, channel = {}, running.client_of("content", "live")
    for event in channel.walk("/v1/events", 500):
        hashes.setdefault(event["hash"], []).append(event["event_id"])
    assert len(hashes) > 10

    identifier = running.told["channels"]["content"]["channel_id"]

    def is_indexed():
        assert running.stop() == 0
        rows = running.store.rows("SELECT s.indexed FROM digest_series s JOIN channels c"
                                  " ON c.account = s.account AND s.chain = 2 * c.channel"
                                  f" WHERE c.channel_id = '{identifier}'")
        running.start()
        return rows and int(rows[0][0]) >= len(hashes) - 2 * SIZES["digests_of_chain"]
    eventually(is_indexed, "the index has the events of then")
    for digest, events in hashes.items():
        for order, expected in ("asc", events), ("desc", events[::-1]):
            found = channel.walk("/v1/events", 1, hash=digest, order=order)
            assert [event["event_id"] for event in found] == expected
    assert channel.walk("/v1/events", 1, hash="0" * 64) == []


def test_keys_money_and_configurations_are_as_they_were(running):
    told = running.told
    for name, channel in told["channels"].items():
        client = running.client_of(name, "live")
        assert client.balance() == told["balances"][name]
        assert client.get("/v1/channel").json["config_versions"] == channel["configs"]
        for mode in ("live", "test"):
            events = running.client_of(name, mode).walk("/v1/events", 500)
            assert [(fixed(one), one["status"]) for one in events] == \
                [(fixed(one), one["status"]) for one in told["events"][name][mode]]
    assert told["balances"]["poor"]["unpaid_events"] > 0
    for name, account in told["accounts"].items():
        assert [list(one) for one in money.movements(running, account)] == told["movements"][name]
    Client(running, told["revoked_key"]).get("/v1/channel").expect(401, "revoked_key")


def test_days_of_before_are_told(running):
    for account in running.told["accounts"].values():
        moved = [entry for entry in money.movements(running, account) if entry[0] != "settlement"]
        days, more, after = [], True, ()
        while more:
            page = running.admin("credits", "history", "--account", account, *after)
            days, more = days + page["data"], page["has_more"]
            after = ("--after", days[-1]["day"])
        assert days[-1]["balance"] == sum(credits for _, credits, _, _ in moved) + \
            sum(day["settlements"] for day in days)
        assert sum(day["events"] for day in days) == \
            sum(credits for kind, credits, _, _ in moved if kind == "events")


def test_what_was_pending_is_sealed_and_the_waiting_certification_issued(running):
    told, client = running.told, running.client_of("content", "live")
    before = {one["event_id"]: one["timestamp"] for one in told["events"]["content"]["live"]}
    pending = [event for event, timestamp in before.items() if timestamp["type"] == "pending"]
    sealed = [event for event in before if event not in pending]
    assert pending and sealed
    for event in pending:
        client.sealed(event)
    for event in sealed:
        assert client.event(event)["timestamp"] == before[event]
    waiting = told["certifications"]["waiting"]
    assert waiting["status"] == "processing"
    record = client.settled(waiting["certification_id"])
    assert record["status"] == "completed", record
    archive = running.directory / "waited.zip"
    archive.write_bytes(client.download(record["evidence_url"]).expect(200).body)
    receipts = running.receipts_of("content", 1, waiting["range"]["seq_to"])
    code, verdict = running.verify(archive, at=None, receipts=receipts)
    assert code == 0 and verdict["valid"] and verdict["trusted"], verdict
    assert verdict["checked"]["receipts"] == waiting["event_count"] == len(before)


def test_links_and_codes_lead_to_what_was_issued(running):
    for name, mode in (("content-live", "live"), ("content-test", "test")):
        record = running.told["certifications"][name]
        evidence = running.directory / "evidence" / mode
        now = running.client_of("content", mode).certification(record["certification_id"])
        assert now["status"] == "completed"
        for url in (record["evidence_url"], now["evidence_url"]):
            path = url[url.index("/v1/"):]
            answer = running.client_of("content", mode).download(running.public_url + path)
            assert answer.expect(200).body == (evidence / "archive.zip").read_bytes()
        for part in now["content_parts"]:
            answer = running.client_of("content", mode).download(part["url"])
            assert answer.expect(200).body == (evidence / part["name"]).read_bytes()
        with Client(running) as anyone:
            page = anyone.get(f"/verify/{record['verification_code']}").expect(200)
        assert record["certification_id"] in page.body.decode()


def test_the_chain_goes_on_without_a_gap_and_is_certified_across(running):
    client = running.client_of("digests", "live")
    last = running.told["events"]["digests"]["live"]
    last = max(one["sequence"] for one in last)
    for number in range(1, 4):
        receipt = client.register_hash(f"{number:064x}", f"after-{number}").expect(201).json
        assert receipt["sequence"] == last + number
        with open(running.directory / "receipts.ndjson", "a", encoding="utf-8") as receipts:
            receipts.write(json.dumps(receipt) + "\n")
        running.receipts.append(receipt)
        running.requests.append({"channel": "digests", "mode": "live", "asked": {
            "digest": f"{number:064x}", "hash_alg": "sha-256", "client_ref": f"after-{number}"}})
    record = client.certified(seq_from=1, seq_to=last + 3)
    archive = running.directory / "across.zip"
    archive.write_bytes(client.download(record["evidence_url"]).expect(200).body)
    code, verdict = running.verify(archive, at=None,
                                   receipts=running.receipts_of("digests", 1, last + 3))
    assert code == 0 and verdict["trusted"] and verdict["checked"]["receipts"] == last + 3


def test_what_was_bought_is_known_and_what_was_open_can_be_paid(running):
    sales, poor = running.told["sales"], running.told["accounts"]["poor"]
    unpaid = running.told["balances"]["poor"]["unpaid_events"]
    states = {one["sale_id"]: one["state"] for one in money.purchases(running, poor)}
    assert states[sales["cancelled"]] == "canceled"
    assert states[sales["confirmed"]] != states[sales["open"]]
    # Nothing was recorded of who bought and at what rate.
    unknown = running.admin("purchase", "show", sales["confirmed"])
    assert unknown["tax_rate"] is None and unknown["account_name"] is None
    paid = running.admin("purchase", "pay", sales["open"])
    assert paid["state"] == states[sales["confirmed"]]
    assert running.client_of("poor", "live").balance()["unpaid_events"] == unpaid - 3


def test_what_was_issued_gets_an_evidence_record(running):
    client = running.client_of("content", "live")
    record = running.told["certifications"]["content-live"]
    now = eventually(lambda: (one := client.certification(record["certification_id"]))[
        "evidence_record_sha256"] and one, "it has an evidence record")
    evidence = running.directory / "evidence" / "live"
    path = running.directory / "of-old.ers"
    path.write_bytes(client.get(now["evidence_record_url"].removeprefix(running.public_url))
                     .expect(200).body)
    code, verdict = running.verify(*sorted(evidence.iterdir()), path, at=None)
    assert code == 0 and verdict["checked"]["evidence_records"] == 1, verdict
    assert sorted(verdict["evidence_records"][0]["covers"]) == sorted(
        map(str, evidence.iterdir()))


def test_evidence_of_then_is_what_it_was(old):
    record = old.told["certifications"]["content-live"]["range"]
    evidence = sorted((old.directory / "evidence" / "live").iterdir())
    receipts = old.receipts_of("content", record["seq_from"], record["seq_to"])
    code, verdict = old.verify(*evidence, receipts=receipts)
    assert code == 0 and verdict["valid"] and verdict["trusted"] and not verdict["findings"]
    count = record["seq_to"] - record["seq_from"] + 1
    checked = verdict["checked"]
    assert (checked["events"], checked["receipts"], checked["reports"], checked["parts"]) == \
        (count, count, 2, 1)
    forged = lines(receipts)
    forged[0]["hash"] = "0" * 64
    receipts.write_text("".join(json.dumps(one) + "\n" for one in forged), encoding="utf-8")
    code, verdict = old.verify(*evidence, receipts=receipts)
    assert code == 2 and "the archive or the receipt is not genuine" in verdict["findings"][0]["what"]
    code, verdict = old.verify(*sorted((old.directory / "evidence" / "test").iterdir()))
    assert code == 0 and verdict["valid"], verdict


def test_when_the_certificates_have_ended_nothing_is_called_wrong(old):
    """Without an evidence record it cannot be decided; never that it was altered."""
    evidence = sorted((old.directory / "evidence" / "live").iterdir())
    code, verdict = old.verify(*evidence, at=LATER)
    assert code == 2 and verdict["could_not_check"], verdict
    assert {"the certificate of the newest timestamp expired" in one["what"]
            for one in verdict["findings"]} == {True}


# ---- what the late one has besides ----

@pytest.fixture
def late(old):
    return old if old.made is Late else pytest.skip("the early program had none of it")


def test_evidence_that_was_renewed_then_is_good_and_is_renewed_no_more(late, running):
    evidence = late.directory / "evidence"
    documents = sorted((evidence / "live").iterdir())
    for name, stamps in (("live-first.ers", 1), ("live-renewed.ers", 2)):
        code, verdict = late.verify(*documents, evidence / name)
        assert code == 0 and verdict["valid"] and verdict["trusted"], verdict
        (record,) = verdict["evidence_records"]
        assert len(record["timestamps"]) == stamps and len(record["covers"]) == len(documents)
    certification = running.told["certifications"]["content-live"]
    answer = running.client_of("content", "live").get(
        f"/v1/certifications/{certification['certification_id']}/evidence-record").expect(200)
    assert answer.body == (evidence / "live-renewed.ers").read_bytes(), "it is the one of then"
    code, verdict = late.verify(*sorted((evidence / "digests").iterdir()))
    assert code == 0 and verdict["valid"] and verdict["checked"]["events"] == 7, "of digests alone"


def test_both_signers_are_known_and_the_second_signs(late, running):
    told, today = running.told["signers"], Client(running).get("/v1/signers").expect(200).json["data"]
    assert len(told) == 2 and [one["sha256"] for one in today] == [one["sha256"] for one in told]
    assert today[0]["reason"] == "a year is over" and today[0]["used_until"] == told[0]["used_until"]
    found = []
    for name in ("live", "digests"):
        _, verdict = late.verify(late.directory / "evidence" / name / "archive.zip")
        found += [one["sha256"] for one in verdict["signers"]]
    assert found == [one["sha256"] for one in told]
    client = running.client_of("content", "test")
    record = client.certified(seq_from=1, seq_to=2)
    archive = running.directory / "second.zip"
    archive.write_bytes(client.download(record["evidence_url"]).expect(200).body)
    _, verdict = late.verify(archive, at=None)
    assert [one["sha256"] for one in verdict["signers"]] == [told[1]["sha256"]]


# ---- what is kept for a day ----

class Then(Old):
    """The late one, on a clock that is set, as are those of its store and of its authority."""

    def __init__(self, directory, clock):
        super().__init__(directory, Late, environment=clock.environment)
        self.clock = clock

    def set(self, moment):
        ahead = self.clock.set(moment.timestamp())
        urllib.request.urlopen(urllib.request.Request(
            self.settings["tsa.url"] + "mode", f"ahead:{ahead}".encode(), method="PUT"), timeout=PATIENCE).close()


@pytest.fixture
def then(tmp_path):
    """Moved on and serving, a quarter of an hour before the day is over for which its key is kept."""
    with MovedClock() as clock, stores.cluster_with(clock.environment):
        one = Then(tmp_path, clock)
        try:
            first = one.told["certifications"]["digests-live"]
            requested = datetime.datetime.fromisoformat(first["requested_at"])
            one.over = requested + datetime.timedelta(days=1)
            one.set(one.over - datetime.timedelta(minutes=15))
            one.migrate()
            one.start()
            yield one
            assert one.stop() == 0
        finally:
            one.discard()


def test_a_key_of_then_leads_to_the_certification_of_then_for_a_day(then):
    first, asked = then.told["certifications"]["digests-live"], then.told["idempotent"]
    client = then.client_of("digests", "live")

    def ask(**wanted):
        return client.certify(**wanted, headers=asked["headers"])
    answer = ask(**asked["asked"]).expect(202)
    assert answer.json["certification_id"] == first["certification_id"]
    assert answer.headers["Idempotent-Replayed"] == "true"
    ask(seq_from=1, seq_to=1).expect(409)
    assert then.stop() == 0
    client.close()
    then.set(then.over)
    then.start()
    answer = ask(seq_from=1, seq_to=1).expect(202)
    assert answer.json["certification_id"] != first["certification_id"]
    assert "Idempotent-Replayed" not in answer.headers
    assert client.settled(answer.json["certification_id"])["status"] == "completed"
    ask(**asked["asked"]).expect(409)


# ---- a migration that does not come to its end ----

@pytest.mark.sqlite
@pytest.mark.parametrize("share,left", [(0.25, True), (0.8, False)])
@pytest.mark.parametrize("made", BOTH)
def test_a_migration_killed_while_it_writes_is_done_again(tmp_path, made, share, left):
    """While the log grows, and later, while it is checkpointed: the limit of a file's
    size ends it with a signal."""
    old = Old(tmp_path, made)
    whole = Old(tmp_path / "whole", made)
    before = whole.store.path.stat().st_size
    whole.migrate()
    size = int(max(before, whole.store.path.stat().st_size) * share)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    done = run("store", "migrate", *old.chosen(), preexec_fn=limit)
    assert done.returncode not in (0, None), "it was interrupted"
    assert old.schema() == (made.schema if left else STEPS[-1]), "either everything is done, or nothing"
    assert old.migrate()["steps"] == (old.steps if left else [])
    done = old.command_on_store("store", "check", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["events"] == len(old.receipts)


@pytest.mark.postgresql
def test_a_migration_killed_while_a_step_waits_is_done_again(tmp_path):
    """In the midst of the steps, at a table that somebody else holds."""
    old = Old(tmp_path, Early)
    try:
        primary = old.store.cluster.primary
        activity = ("SELECT {} FROM pg_stat_activity WHERE datname = "
                    f"'{old.store.database}' AND ")

        def hold():
            primary.query("BEGIN; LOCK TABLE seal_rounds IN ACCESS SHARE MODE;"
                          " SELECT pg_sleep(300)", old.store.database, 400)
        holder = threading.Thread(target=lambda: pytest.raises(Exception, hold))
        holder.start()
        sleeping = activity.format("count(*)") + "wait_event = 'PgSleep'"
        eventually(lambda: primary.number(sleeping), "it is held")
        process = subprocess.Popen(
            old.command("store", "migrate"), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        waiting = activity.format("count(*)") + "wait_event_type = 'Lock'"
        eventually(lambda: primary.number(waiting), "a step waits")
        process.kill()
        process.wait()
        primary.query(activity.format("pg_cancel_backend(pid)") + "wait_event = 'PgSleep'")
        holder.join()
        assert old.schema() == Early.schema
        assert old.migrate()["steps"] == old.steps
        done = old.command_on_store("store", "check", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["events"] == len(old.receipts)
    finally:
        old.discard()
