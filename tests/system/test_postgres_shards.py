"""No statement of the hot path touches two accounts. The service runs on a copy of its schema that
is partitioned by the hash of the account, as a sharded PostgreSQL distributes it; the server
explains every statement; whatever looks into more than one account's partition is named."""

import collections
import json
import pathlib
import re

import pytest

from client import eventually, form
from fleet import Fleet, at_once
from postgres import Cluster

pytestmark = pytest.mark.postgresql
PARTITIONS = 32
HERE = "shards"  # in the name of every partition

# Tables that belong to no account, or are found without one. Everything else is partitioned.
GLOBAL_TABLES = {"settings", "api_keys", "seal_rounds", "round_blocks", "staged_round", "round_tokens",
                 "validation_objects", "token_validation", "archive_timestamps",
                 "archive_timestamp_blocks", "tokens_at_rest", "leases", "certification_numbers",
                 "rollbacks", "signers", "signer_lists", "link_secrets", "timestamp_roots",
                 "users", "memberships", "sign_in_links", "sessions", "passkeys",
                 "passkey_challenges", "known_browsers", "log_tiles", "log_checkpoints", "public_keys"}

# What may look at several accounts' rows: polls for work and look-ups by a public identifier, none
# of them on the way of a registration. Each: a name, and a pattern of the statement's text.
ALLOWED = {
    "the sealer looks for unsealed chains": r"FROM unsealed_chains\b",
    "the sealer looks for acts in no segment": r"FROM unsealed_acts WHERE \(account, chain\) >",
    "the sealer looks for what certifications wait for":
        r"FROM certifications r JOIN chains c\b.* WHERE r\.status = 'processing'",
    "what a round seals is counted by account": r"FROM segments WHERE round = \$1 AND place >= \$5 ",
    "the issuer looks for a certification to issue":
        r"FROM certifications c .*c\.status = 'processing' AND \(c\.next_attempt_at",
    "documents that wait for an archive timestamp": r"FROM evidence_queue\b",
    "records that lead to an archive timestamp": r"\bevidence_chains\b.*\bstamp\b",
    "deliveries that are due": r"FROM (webhook_endpoints|deliveries)\b.*\bnext_at\b",
    "mails that are due": r"FROM mails\b.*\bnext_at <= \$1",
    "accounts that are to top up": r"FROM topups\b.*\benabled = 1",
    "payments that are due": r"FROM payments\b.*\bnext_try_at <= \$1",
    "the job of the index of digests looks for chains": r"FROM chains c LEFT JOIN digest_series\b",
    "housekeeping of idle accounts": r"(FROM|UPDATE) accounts\b.*\bactive_at\b",
    "housekeeping of idempotency keys": r"FROM certifications WHERE idempotency_key IS NOT NULL",
    "housekeeping of what was done with forms": r"DELETE FROM form_numbers WHERE at <",
    "housekeeping of objects": r"\b(content_object|object) (IN|=|>)",
    "a certification by its code": r"\bverification_code = \$",
    "a report by its digest": r"\bsha256 = \$",
}

# Written once: LIKE takes columns, defaults, constraints and indexes over, and fails on a unique
# index that does not hold the account.
PARTITION = """
DO $$
DECLARE one RECORD; part INT;
BEGIN
  FOR one IN SELECT table_name FROM information_schema.columns
      WHERE table_schema = 'public' AND column_name = 'account'
      AND table_name NOT IN (%(global)s) LOOP
    EXECUTE format('ALTER TABLE %%I RENAME TO %%I', one.table_name, 'plain_' || one.table_name);
    EXECUTE format('CREATE TABLE %%I (LIKE %%I INCLUDING ALL) PARTITION BY HASH (account)',
                   one.table_name, 'plain_' || one.table_name);
    FOR part IN 0..%(last)d LOOP
      EXECUTE format('CREATE TABLE %%I PARTITION OF %%I FOR VALUES WITH (MODULUS %(count)d, '
                     'REMAINDER %%s)', one.table_name || '_%(here)s_' || part, one.table_name, part);
    END LOOP;
    EXECUTE format('INSERT INTO %%I SELECT * FROM %%I', one.table_name, 'plain_' || one.table_name);
    EXECUTE format('DROP TABLE %%I', 'plain_' || one.table_name);
  END LOOP;
END $$;
"""


class Explained:
    """A statement as the server ran it: its text and the relations of its plan."""

    def __init__(self, document):
        self.text = " ".join(document["Query Text"].split())
        self.relations = set()
        self._walk(document["Plan"])

    def _walk(self, node):
        if "Relation Name" in node:
            self.relations.add(node["Relation Name"])
        for child in node.get("Plans", []):
            self._walk(child)

    @property
    def parts(self):
        """Numbers of the partitions that it looks into, over all tables."""
        return {int(match[1]) for relation in self.relations
                if (match := re.search(rf"_{HERE}_(\d+)$", relation))}

    def allowed_as(self):
        return next((name for name, pattern in ALLOWED.items() if re.search(pattern, self.text)),
                    None)

    def is_global(self):
        return len(self.parts) > 1


class Explainer:
    """Reads the plans that auto_explain wrote into the server's log."""

    def __init__(self, server, database):
        self.server, self.database, self.offset = server, database, 0

    def read(self):
        with open(self.server.log, encoding="utf-8", errors="replace") as file:
            text = file.read()
        # An entry's lines after its first are indented with a tab. The last may be written just now.
        *entries, last = re.split(r"\n(?=\d{4}-\d\d-\d\d )", text)
        for entry in entries + [last] * last.endswith("\n\t}\n"):
            match = re.match(rf"\S+ \S+ \S+ \[\d+\] {self.database} LOG:.*?plan:\s*(\{{.*)",
                             entry, re.DOTALL)
            if match:
                yield Explained(json.loads(match[1], strict=False))


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=0) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(cluster, tmp_path_factory):
    """A node whose database was partitioned before it served."""
    made = Fleet(tmp_path_factory.mktemp("fleet"), count=1, cluster=cluster,
                 store__require_replicas=0, store__sharded="true", seal__interval="500ms")
    made.query("SET ROLE constancia; SET client_min_messages = error;" + PARTITION % {
        "global": ", ".join(f"'{table}'" for table in GLOBAL_TABLES), "here": HERE,
        "last": PARTITIONS - 1, "count": PARTITIONS})
    for name, value in (("session_preload_libraries", "auto_explain"),
                        ("auto_explain.log_min_duration", "0"),
                        ("auto_explain.log_analyze", "off"),
                        ("auto_explain.log_format", "json"),
                        ("auto_explain.log_nested_statements", "on"),
                        # Plans of their own for given values, so that they show what is touched.
                        ("plan_cache_mode", "force_custom_plan")):
        cluster.primary.query(f"ALTER DATABASE {made.database} SET {name} = '{value}'")
    with made:
        yield made


def partitioned(fleet):
    return {name for (name,) in fleet.rows("SELECT relname FROM pg_class WHERE relkind = 'p'")}


def test_every_table_is_led_by_its_account_or_is_named_global(fleet):
    tables = {name for (name,) in fleet.rows(
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
        "AND relnamespace = 'public'::regnamespace")}
    assert tables - partitioned(fleet) == GLOBAL_TABLES & tables
    assert {"accounts", "events", "chains", "credit_entries", "notices"} <= partitioned(fleet)
    leading = dict(fleet.rows(
        "SELECT relname, attname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid "
        "JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0] "
        "WHERE indisprimary AND NOT relispartition AND relnamespace = 'public'::regnamespace"))
    for table in partitioned(fleet):
        assert leading.get(table) == "account", table


def test_the_program_distributes_every_table(fleet):
    text = (pathlib.Path(__file__).resolve().parents[2] / "src/store/schema/distribution.def").read_text()
    assert set(re.findall(r"^BY_ACCOUNT\((\w+)\)$", text, re.M)) == partitioned(fleet)
    assert set(re.findall(r"^ON_NONE\((\w+)\)$", text, re.M)) == GLOBAL_TABLES


@pytest.fixture(scope="module")
def explained(fleet):
    """Everything that the server ran while five accounts were served at once."""
    channels = [fleet.new_channel(credits=30, unpaid_limit=10) for _ in range(5)]
    digests = [fleet.new_channel("hash_only", account_id=channel.account_id)
               for channel in channels]
    for channel in channels:
        fleet.admin("limit", "create", "--channel", channel.id, "--period", "day", "--max", 1000,
                  "--action", "warn")
        fleet.admin("threshold", "create", "--account", channel.account_id, "--credits", 20)
    mark = len(list(Explainer(fleet.cluster.primary, fleet.database).read()))
    at_once([lambda channel=channel, digest=digest: use(channel, digest)
             for channel, digest in zip(channels, digests)])
    yield list(Explainer(fleet.cluster.primary, fleet.database).read())[mark:]


def use(channel, digest):
    """What an account does every day."""
    events = [channel.live.register({"n": n}, f"e{n}").expect(201).json for n in range(20)]
    events.append(channel.live.register_file(b"x" * 50000, "file").expect(201).json)
    content_type, body = form(("client_ref", "big"), ("file", b"y" * 100000, "b.bin"))
    channel.test.call("POST", "/v1/events", body, {"Content-Type": content_type}).expect(201)
    for n in range(5):
        digest.live.register_hash("0" * 64, f"h{n}").expect(201)
        channel.test.register({}, f"t{n}").expect(201)
    channel.live.register({"n": 0}, "e0").expect(200)
    channel.live.register({"n": 1}, "e0").expect(409)
    for n in range(8):
        assert channel.live.register({}, f"late{n}").expect(201).json["status"] in (
            "registered", "unpaid")
    channel.live.sealed(events[-1]["event_id"])
    channel.live.content(events[0]["event_id"]).expect(200)
    channel.live.get("/v1/channel").expect(200)
    channel.live.balance()
    for filters in ({}, {"status": "unpaid"}, {"status": "registered"}, {"seq_from": 3},
                    {"from": events[2]["received_at"], "to": events[9]["received_at"]}):
        channel.live.walk("/v1/events", 7, **filters)
    channel.test.certified(seq_from=1, seq_to=3)
    for _ in range(2):
        channel.test.certify(seq_from=1, seq_to=2, headers={"Idempotency-Key": "k"}).expect(202)
    channel.live.get("/v1/certifications").expect(200)


def test_the_whole_registration_path_runs_partitioned(fleet, explained):
    assert explained
    texts = collections.Counter(statement.text[:60] for statement in explained)
    assert any("INSERT INTO events" in text for text in texts), texts
    fleet.check()
    for (count,) in fleet.rows("SELECT count(*) FROM events GROUP BY account ORDER BY 1"):
        assert int(count) == 40


def test_no_statement_of_the_hot_path_touches_two_accounts(explained):
    wrong = {statement.text for statement in explained
             if statement.is_global() and not statement.allowed_as()}
    assert not wrong, "\n\n".join(sorted(wrong))


def test_the_list_of_what_is_allowed_holds_nothing_of_a_registration(explained):
    """The allowed ones only read, and only what jobs and readers look for."""
    for statement in explained:
        if statement.is_global():
            assert not re.match(r"(INSERT|DELETE|UPDATE)\b", statement.text), statement.text


WRITTEN = ("accounts", "chains", "events", "credit_entries", "daily_usage", "daily_certifications",
           "daily_credits", "test_usage",
           "unpaid_events", "notices", "segments", "certifications")


def test_what_a_statement_inserts_is_of_one_account(fleet, explained):
    """No plan shows where inserted rows go; the rows know which command of which transaction wrote
    them."""
    assert explained
    for table in WRITTEN:
        assert table in partitioned(fleet)
        mixed = fleet.rows("SELECT xmin::text, cmin::text, count(DISTINCT account) "
                           f"FROM {table} GROUP BY 1, 2 HAVING count(DISTINCT account) > 1")
        assert not mixed, (table, mixed)


@pytest.mark.parametrize("sql", [
    "SELECT event FROM events WHERE client_ref = 'e0'",
    "SELECT event FROM events WHERE event = 1",
    "UPDATE chains SET last_sequence = last_sequence WHERE chain = 2",
    "SELECT balance FROM accounts JOIN channels USING (account) WHERE channel_id = 'chn_x'",
    "DELETE FROM daily_usage WHERE day < 1000",
    "SELECT count(*) FROM events WHERE account IN (1, 2, 3, 4, 5)",
])
def test_a_statement_without_its_account_would_be_found(fleet, sql):
    """The test's own eyes: what it must not let through is seen."""
    fleet.query(f"{sql} /* {sql.upper()} */")

    def seen():
        return [statement for statement in Explainer(fleet.cluster.primary, fleet.database).read()
                if sql.upper() in statement.text]
    (statement,) = eventually(seen, "the server explained it")
    assert statement.is_global() and not statement.allowed_as(), statement.relations
