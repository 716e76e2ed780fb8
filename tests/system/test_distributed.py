"""Every statement of the program is executed on a schema that is really distributed, where the
PostgreSQL at hand can do that."""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import shlex
import subprocess
import threading

import pytest

from client import BINARY, Client, eventually
from distributed import MISSING, Distributed, offered
from fleet import Fleet
from hooks import add_thresholds
from money import bill, new_pack, new_purchase
from postgres import ROLE
from sharded import (FEE, accepted, channels, done, findings, fleet,  # noqa: F401
                     named, not_done, refused, replicated, sealed, worker_of)

pytestmark = [pytest.mark.postgresql, pytest.mark.skipif(not offered(), reason=MISSING)]
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(BINARY).resolve().parent
LITERAL = r'"(?:[^"\\]|\\.)*"'

# What is not for such a server: a pattern of the file, and of the statement.
ELSEWHERE = {
    "the embedded store's own": ("register_embedded|client_ref|arrivals", ""),
    "tables that come and go": ("", r"\brestoring\b"),
    "asked of a server with all on it: the digest alone": ("channels", r"FROM api_keys JOIN .*key_hash = \$1$"),
    "likewise: bare arrays": ("register_server", r"SELECT \$1, \* FROM unnest"),
    "likewise: acts before their segments": ("audit_record_list", r"LIMIT \$8\) t "),
    "likewise: acts that wait for a seal": ("record_segments", "GROUP BY account, chain ORDER BY"),
    "likewise: day by day": ("limits", r"WITH RECURSIVE days\(number\) AS \(SELECT CAST\(\$4"),
    "likewise: a time within a segment": ("staged_round", r"\(SELECT e\.received_at"),
    "likewise: the way of a chain": ("times", "WITH RECURSIVE way.certification"),
    "asked of the servers' pieces": ("", r"[{]|\($"),
    "likewise: what a lost archive timestamp led to": ("lost", "WITH RECURSIVE gone.*evidence_chains"),
}
VALUES = {"bigint": "1", "text": "'x'", "bytea": r"'\x00'", "integer": "1", "bigint[]": "'{1}'",
          "text[]": "'{x}'", "bytea[]": "'{}'"}


def statements():
    """{text: file}, as the compiler sees the literals: macros are gone, neighbours are one."""
    found = {}
    for command in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(os.path.normpath(os.path.join(command["directory"], command["file"])))
        if not path.is_relative_to(ROOT / "src" / "store"):
            continue
        flags = [word for word in shlex.split(command["command"]) if word.startswith(("-I", "-D", "-std"))]
        text = subprocess.run(["cc", "-E", "-P", *flags, path], cwd=command["directory"],
                              capture_output=True, text=True, check=True).stdout
        for match in re.finditer(rf"(?:{LITERAL}\s*)+", text):
            sql = "".join(json.loads(one) for one in re.findall(LITERAL, match[0]))
            if re.match(r"(SELECT|INSERT|UPDATE|DELETE|WITH)\b", sql):
                found[sql] = path.stem
    return {sql: name for sql, name in found.items()
            if not any(re.search(file, name) and re.search(pattern, sql, re.DOTALL)
                       for file, pattern in ELSEWHERE.values())}


def with_types(sql):
    """The program binds 64 bits where a text leaves it open."""
    if re.search(r"\$1 - 1\b", sql):
        sql = sql.replace("SELECT $1,", "SELECT $1::bigint,").replace("$1 - 1", "$1::bigint - 1")
    sql = re.sub(r"(?<=-)\$(\d+)|(?<=NULLIF\()\$(\d+)",
                 lambda found: f"${found[1] or found[2]}::bigint", sql)
    return re.sub(r"enabled = \$2\b", "enabled = $2::bigint", sql)


@pytest.fixture(scope="module")
def servers():
    with Distributed(standbys=0) as running:
        yield running


@pytest.fixture(scope="module")
def database(servers):
    name = servers.create_database()
    servers.prepare(name, BINARY)
    return name


def executed(servers, database, texts, values, how="", filtered=True):
    """[what the server says of each statement]"""
    prepared = "".join(f"PREPARE s{n} AS {with_types(sql)};\n" for n, sql in enumerate(texts))
    types = dict(servers.primary.rows(
        prepared + "SELECT name, array_to_string(parameter_types, ' ') FROM pg_prepared_statements;",
        database))
    script = ""
    for n, sql in enumerate(texts):
        given = ", ".join("0" if not filtered and f"${place} = 0 OR" in sql else values[one]
                          for place, one in enumerate(types[f"s{n}"].split(), 1))
        script += (f"\\echo @@{n}\nPREPARE s{n} AS {with_types(sql)};\nBEGIN;\n"
                   f"{how} EXECUTE s{n}{given and f'({given})'};\nROLLBACK;\nDEALLOCATE s{n};\n")
    parts = servers.primary.attempt(f"SET ROLE {ROLE};\n{script}", database).split("@@")[1:]
    return [said for _, _, said in (part.partition("\n") for part in parts)]


def failures(servers, database, texts, filtered=True):
    """[(state and message, statement)] of what no value could make right: a row may break a rule."""
    texts = list(texts)
    found = []
    for sql, said in zip(texts, executed(servers, database, texts, VALUES, filtered=filtered)):
        error = re.search(r"ERROR:\s+(\w{5}): .*", said)
        # What is copied to a shard breaks a rule there, and is reported with a less precise SQLSTATE.
        if error and error[1][:2] not in ("22", "23") and "not-null constraint" not in error[0]:
            found.append((error[0], sql))
    return found


def test_every_statement_runs_on_distributed_tables(servers, database):
    texts = statements()
    assert len(texts) > 400
    assert failures(servers, database, texts) == []


def test_lists_run_without_their_filters_too(servers, database):
    """A filter of the account leads to its shard, and hides what all of them cannot do."""
    texts = [sql for sql in statements() if re.search(r"\$\d+ = 0 OR\b", sql)]
    assert texts
    assert failures(servers, database, texts, filtered=False) == []


@pytest.mark.parametrize("sql", [
    "SELECT account FROM accounts WHERE account_id = $1 FOR UPDATE",
    "INSERT INTO packs (account) VALUES ((SELECT max(account) FROM accounts))",
])
def test_one_that_does_not_would_be_found(servers, database, sql):
    ((_, text),) = failures(servers, database, [sql])
    assert text == sql


# By a condition that holds whatever else is asked for.
NAMES_ACCOUNTS = re.compile(r"(?<!0 OR )(?<!0 OR \w\.)\baccount = (ANY\(\$\d+\)|\$\d+)(?! AND \w+\.?\w* [<>]| OR )")


def scattered(servers, database, texts):
    """[statement] of those that go to more shards than one, all accounts being one."""
    texts = list(texts)
    none = {**VALUES, "bigint": "0", "integer": "0", "bigint[]": "'{0}'"}
    return [sql for sql, said in zip(texts, executed(servers, database, texts, none, "EXPLAIN"))
            if any(int(count) > 1 for count in re.findall(r"Task Count: (\d+)", said))]


def test_what_names_its_accounts_goes_to_their_shards_alone(servers, database):
    """So polls do, and what is asked for while another server is away."""
    texts = [sql for sql, file in statements().items()
             if file != "check_totals" and NAMES_ACCOUNTS.search(sql)]
    assert len([sql for sql in texts if "account = ANY(" in sql]) > 20
    assert scattered(servers, database, texts) == []


@pytest.mark.parametrize("sql", [
    "SELECT number FROM purchases WHERE sale_id = $1",
    "SELECT (SELECT MAX(number) FROM payments z WHERE z.account = p.account) FROM purchases p"
    " WHERE p.account = ANY($1)",
])
def test_one_that_does_not_would_be_seen(servers, database, sql):
    assert scattered(servers, database, [sql]) == [sql]


def test_what_is_distributed_stays_so(servers, database):
    done = subprocess.run([BINARY, "store", "distribute", "--json", f"--set=store.url={servers.url(database)}",
                           "--set=tsa.url=embedded:", "--set=store.require_replicas=0"],
                          check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == {"applied": False, "tables": []}


def test_one_that_was_broken_off_goes_on(servers):
    name = servers.create_database()
    servers.prepare(name, BINARY)
    servers.primary.query(f"SET ROLE {ROLE}; SELECT undistribute_table('mails');", name)
    options = [f"--set=store.url={servers.url(name)}", "--set=tsa.url=embedded:",
               "--set=store.require_replicas=0", "--json"]
    for words, applied in ((["--dry-run"], False), ([], True)):
        done = subprocess.run([BINARY, "store", "distribute", *words, *options], check=True,
                              capture_output=True, text=True)
        assert json.loads(done.stdout) == {"applied": applied, "tables": ["mails"]}


def test_a_server_that_cannot_says_so(servers, tmp_path):
    name = servers.coordinator.create_database()
    options = [f"--set=store.url={servers.url(name)}", "--set=tsa.url=embedded:",
               f"--set=service.data_dir={tmp_path}", "--set=store.require_replicas=0"]
    subprocess.run([BINARY, "init", *options], check=True, capture_output=True)
    done = subprocess.run([BINARY, "store", "distribute", *options], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and "cannot distribute tables" in done.stderr


def sessions(server, since):
    """[what each session was asked since that place of the log]"""
    with open(server.log, encoding="utf-8", errors="replace") as file:
        text = file.read()[since:]
    asked = collections.defaultdict(str)
    for process, line in re.findall(r"^\S+ \S+ \S+ \[(\d+)\] (.*)$", text, re.M):
        asked[process] += line + "\n"
    return list(asked.values())


def test_registrations_commit_in_one_phase(servers, tmp_path):
    """On the server of their account, and there alone; two phases are of what is on none, too."""
    fleet = Fleet(tmp_path, count=1, cluster=servers, store__require_replicas=0,
                  store__sharded="true", seal__interval="1h")
    done = fleet.nodes[0].run("store", "distribute")
    assert done.returncode == 0, done.stderr
    with fleet:
        channels = [fleet.new_channel() for _ in range(3)]
        places = []
        for server in servers.clusters:
            server.primary.query("ALTER SYSTEM SET log_statement = 'all'")
            server.primary.query("SELECT pg_reload_conf()")
            places.append(os.path.getsize(server.primary.log))
        for n in range(20):
            for channel in channels:
                channel.live.register({"n": n}, f"e{n}").expect(201)
        fleet.new_channel()  # with each key comes an entry in the audit log of its account
        fleet.check()
        by_coordinator, *by_workers = [sessions(server.primary, place)
                                       for server, place in zip(servers.clusters, places)]
        asked = [one for some in by_workers for one in some]
        assert sum(one.count("INSERT INTO events_") for one in asked) > 40
        for one in asked:
            if "INSERT INTO events_" in one:
                assert "PREPARE TRANSACTION" not in one, one
        held = [one for one in by_coordinator if "lock_shard_metadata" in one]
        assert held, "the rows are held where they are"
        for one in held:
            assert "INSERT" not in one and "COMMIT" not in one, one
        assert not any("INTO events" in one for one in by_coordinator)
        assert any("PREPARE TRANSACTION" in one for one in asked), "it would be seen"


# ---- what a receipt, an acceptance and an audit log entry say ----

def restart(worker):
    worker.primary.stop()
    worker.primary.start()


WEAK = [("synchronous_standby_names", ""), ("fsync", "off"), ("synchronous_commit", "local")]


@contextlib.contextmanager
def weakened(monkeypatch, worker, setting, value):
    """That server promises less than the others."""
    with monkeypatch.context() as changed:
        if setting == "synchronous_standby_names":
            changed.setattr(worker, "replicated", False)
        else:
            changed.setitem(worker.settings, setting, value)
        restart(worker)
    try:
        assert worker.primary.query(f"SHOW {setting}").strip() == value
        yield
    finally:
        restart(worker)


# A registration is its server's own transaction, and sets synchronous_commit itself.
@pytest.mark.parametrize("setting, value", WEAK[:2])
def test_what_its_server_promises_is_asked_there(monkeypatch, channels, setting, value):
    """The other worker, and the coordinator, promise it all the while."""
    (channel, worker), (other, _) = channels
    event = accepted(channel, "first")
    with weakened(monkeypatch, worker, setting, value):
        for _ in range(3):
            refused(channel, setting)
            refused(channel, "first")
            accepted(other, setting)
    assert accepted(channel, setting)["sequence"] == event["sequence"] + 1
    assert accepted(channel, "first")["chain_hash"] == event["chain_hash"]


def certify(channel, key):
    return channel.live.post("/v1/certifications", {"seq_from": 1, "seq_to": 1},
                             headers={"Idempotency-Key": key})


def certified(channel, key):
    """The earlier connections were lost with a server: the first request finds out."""
    def look():
        answer = certify(channel, key)
        return answer.json if answer.expect(answer.status).status == 202 else None
    return eventually(look, "the certification is accepted")


def not_certified(channel, key):
    certify(channel, key).expect(503, "temporarily_unavailable")


def fees(fleet, channel):
    return [entry["credits"] for entry in fleet.admin("credits", "list", channel.account_id)["data"]
            if entry["kind"] == "fee"]


@pytest.mark.parametrize("setting, value", WEAK)
def test_a_certification_is_accepted_on_its_server(monkeypatch, fleet, channels, setting, value):
    """As one that is repeated is, and its fee."""
    (channel, worker), (other, _) = channels
    for one in (channel, other):
        accepted(one, "first")
    first = certified(channel, "first")
    with weakened(monkeypatch, worker, setting, value):
        certified(other, "meanwhile")
        for _ in range(3):
            not_certified(channel, setting)
            not_certified(channel, "first")
        certified(other, "still")
    assert certified(channel, "first")["certification_id"] == first["certification_id"]
    assert fees(fleet, channel) == [-FEE], "what was refused is nowhere"
    second = certified(channel, setting)
    assert second["certification_id"] != first["certification_id"]
    assert fees(fleet, channel) == [-FEE, -FEE]


@pytest.mark.parametrize("setting, value", WEAK)
def test_an_act_is_done_on_its_accounts_server(monkeypatch, fleet, channels, setting, value):
    """What the operator does there, purchases with it."""
    (channel, worker), (other, _) = channels
    pack = new_pack(fleet)
    for one in (channel, other):
        bill(fleet, one.account_id)
    sale, others = (new_purchase(fleet, one.account_id, pack) for one in (channel, other))
    balance = fleet.admin("account", "show", channel.account_id)["balance"]
    acts = [["account", "set", channel.account_id, "--name", "Another name"],
            ["channel", "configure", channel.id, "--name", "Another name"],
            ["purchase", "create", "--account", channel.account_id, "--pack", pack["pack_id"]],
            ["purchase", "pay", sale["sale_id"]]]
    with weakened(monkeypatch, worker, setting, value):
        done(fleet, "purchase", "pay", others["sale_id"])
        for act in acts:
            not_done(fleet, *act)
        done(fleet, "account", "set", other.account_id, "--name", "Another name")
    assert done(fleet, "account", "show", channel.account_id)["balance"] == balance
    for act in acts:
        done(fleet, *act)
    assert fleet.admin("account", "show", channel.account_id)["balance"] == balance + pack["credits"]


@contextlib.contextmanager
def cancelled(worker):
    """No commit there waits for the standby, which does not have it."""
    stop = threading.Event()

    def cancel():
        while not stop.wait(0.05):
            worker.primary.cancel_commits()
    cancelling = threading.Thread(target=cancel)
    worker.standby.freeze()
    cancelling.start()
    try:
        yield
    finally:
        stop.set()
        cancelling.join()
        worker.standby.thaw()


def test_what_its_standby_does_not_hold_is_no_receipt(replicated, fleet, channels):
    """Neither as created nor repeated, after the wait was cancelled there."""
    (channel, worker), (other, _) = channels
    accepted(channel, "first")
    with cancelled(worker):
        answers = [channel.live.register({}, ref).status
                   for ref in ("seen", "first", "seen", "unseen", "seen")]
        accepted(other, "meanwhile")
    assert answers == [503] * 5
    event = accepted(channel, "seen")
    assert event["sequence"] == 2
    worker.primary.wait_for_standbys()
    held = [row for row in replicated.primary.rows(
        "SELECT shardid FROM citus_shards WHERE table_name = 'events'::regclass AND nodeport = "
        f"{worker.primary.port}", fleet.database)]
    assert held
    digests = [digest for (shard,) in held for (digest,) in worker.standby.rows(
        f"SELECT encode(chain_hash, 'hex') FROM events_{shard} WHERE client_ref = 'seen'", fleet.database)]
    assert event["chain_hash"] in digests


def test_what_its_standby_does_not_hold_is_no_acceptance(fleet, channels):
    (channel, worker), _ = channels
    accepted(channel, "first")
    first = certified(channel, "first")
    with cancelled(worker):
        for key in ("seen", "first", "seen", "unseen", "seen"):
            not_certified(channel, key)
        not_done(fleet, "account", "set", channel.account_id, "--name", "Another name")
    ids = [certified(channel, key)["certification_id"] for key in ("first", "seen", "unseen")]
    assert ids[0] == first["certification_id"] and len(set(ids)) == 3
    assert len(fees(fleet, channel)) == 3


# ---- what a registration finds, and where ----

def shard_of(fleet, channel):
    return fleet.number(
        "SELECT get_shard_id_for_distribution_column('accounts', (SELECT account FROM accounts "
        f"WHERE account_id = '{channel.account_id}'))")


def move(fleet, channel, source, target):
    fleet.query("SELECT citus_move_shard_placement("
                f"{shard_of(fleet, channel)}, '127.0.0.1', {source.primary.port}, '127.0.0.1', "
                f"{target.primary.port}, 'block_writes')")


def test_rows_that_are_moved_meanwhile_are_registered_where_they_are(replicated, fleet, channels):
    """The move waits for the registration, and the next one for the move."""
    (channel, source), (_, target) = channels
    stop, events = threading.Event(), []

    def register():
        with contextlib.closing(Client(fleet.nodes[0], channel.live.key)) as client:
            while not stop.is_set() or len(events) < 50:
                ref = f"e{len(events)}"
                with contextlib.suppress(OSError, http.client.HTTPException):
                    answer = client.register({}, ref)
                    if answer.status in (200, 201):
                        events.append(answer.json)
                    else:
                        answer.expect(503)
    thread = threading.Thread(target=register)
    thread.start()
    try:
        for one, other in ((source, target), (target, source), (source, target)):
            before = len(events)
            eventually(lambda: len(events) > before + 5, "some are registered")
            move(fleet, channel, one, other)
            assert worker_of(replicated, fleet, channel.account_id) is other
    finally:
        stop.set()
        thread.join()
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    for event in events:
        found = channel.live.get(f"/v1/events/{event['event_id']}").expect(200).json
        assert found["chain_hash"] == event["chain_hash"]


def test_what_is_on_none_is_found_by_a_registration(fleet, channels):
    """Rounds, keys and the one number of notices."""
    (channel, _), _ = channels
    fleet.admin("limit", "create", "--key", channel.live_key["key_id"], "--period", "day", "--max",
                "3", "--action", "block")
    add_thresholds(fleet, channel.account_id, 999)
    first = accepted(channel, "first")
    sealed(channel, first["event_id"])
    again = channel.live.register({}, "first").expect(200).json
    found = channel.live.get(f"/v1/events/{first['event_id']}").expect(200).json
    assert again["timestamp"] == found["timestamp"]
    accepted(channel, "second")
    accepted(channel, "third")
    channel.live.register({}, "fourth").expect(422, "limit_blocked")
    types = fleet.rows("SELECT type, notice FROM notices ORDER BY notice")
    assert len(types) >= 2 and all(int(number) < 1000 for _, number in types), types


# ---- what is said of its servers ----

def connections(fleet):
    """What `config check --connect` says of each."""
    told = json.loads(fleet.nodes[0].run("config", "check", "--connect", "--json").stdout)
    return {one["text"].split(": ")[0]: (one["ok"], one["text"]) for one in told["connections"]
            if one["what"] == "shards"}


@pytest.mark.parametrize("state, said", [
    ("weak", "commits wait for 0 standbys"), ("lone", "0 synchronous standbys are connected"),
    ("stopped", ""), ("frozen", "does not answer")])
def test_a_server_that_cannot_acknowledge_is_named(monkeypatch, fleet, replicated, state, said):
    one, other = replicated.workers
    eventually(lambda: not findings(fleet), "all is well")
    with contextlib.ExitStack() as ending:
        if state == "weak":
            ending.enter_context(weakened(monkeypatch, one, "synchronous_standby_names", ""))
        elif state == "lone":
            one.standby.stop()
            ending.callback(one.standby.start)
        elif state == "stopped":
            one.primary.stop()
            ending.callback(one.primary.start)
        else:
            one.primary.freeze()
            ending.callback(one.primary.thaw)
        # One that hangs holds up every query of all shards, and so in the end the node.
        (found,) = eventually(lambda: findings(fleet, state != "frozen"), "it is reported")
        assert named(one) in found and said in found
        assert fleet.nodes[0].metric('readiness_findings{kind="shard"}') == 1
        told = connections(fleet)
        assert told[named(other)] == (True, named(other))
        ok, text = told[named(one)]
        assert not ok and said in text
    eventually(lambda: not findings(fleet, False), "it is over")
    assert connections(fleet) == {named(each): (True, named(each)) for each in replicated.workers}
