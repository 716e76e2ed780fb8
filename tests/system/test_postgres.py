"""A receipt on PostgreSQL is held by a synchronous standby. One node on a primary and
a standby of its own, with failures of both."""

import contextlib
import http.client
import json
import re
import threading

import pytest

from client import eventually
from console import invited, signed_in
from fleet import Fleet, gapless
from program import NotStarted, Refused
from postgres import ROLE, Cluster, Failed

pytestmark = pytest.mark.postgresql
TIMEOUT = "2s"  # of a commit; one that need not wait takes less on any machine


@pytest.fixture(scope="module")
def cluster():
    with Cluster(standbys=1) as running:
        yield running


@pytest.fixture(scope="module")
def fleet(cluster, tmp_path_factory):
    with Fleet(tmp_path_factory.mktemp("fleet"), count=1, cluster=cluster,
               store__commit_timeout=TIMEOUT) as running:
        yield running


@pytest.fixture
def node(fleet, cluster):
    """Ready before, and ready again after."""
    (one,) = fleet.nodes
    cluster.primary.wait_for_standbys()
    one.wait("/readyz")
    yield one
    assert one.alive()


@pytest.fixture
def channel(fleet, node):
    """Of an account whose registrations are answered again, whatever the test before did."""
    def make():
        try:
            return fleet.new_channel()
        except Refused:  # the connection was one of those that were terminated
            return None
    made = eventually(make, "a channel is made")
    eventually(lambda: made.test.register().status == 201, "its account is served")
    yield made
    made.close()


def not_ready(node, *words):
    """Until /readyz is 503 and gives a reason with one of these words."""
    def look():
        status, text = node.ask("/readyz")
        reasons = json.loads(text)["reasons"]
        return status == 503 and [reason for reason in reasons
                                  if any(word in reason for word in words)]
    return eventually(look, f"/readyz says one of {words}")


def accepted(channel, client_ref, payload=None):
    """The event, once the service acknowledges it again."""
    def look():
        try:
            answer = channel.live.register(payload or {}, client_ref)
        except (OSError, http.client.HTTPException):
            return None
        return answer.expect(answer.status).json if answer.status in (200, 201) else None
    return eventually(look, "it is acknowledged")


def refused(channel, client_ref, payload=None):
    return channel.live.register(payload or {}, client_ref).expect(503, "temporarily_unavailable")


# ---- what is said ----

def test_a_replicated_store_says_so(node, channel):
    status, text = node.ask("/readyz")
    page = json.loads(text)
    assert (status, page["ready"], page["promise"], page["reasons"]) == (200, True, "replicated", [])
    channel.live.register().expect(201)
    with open(node.log, encoding="utf-8") as log:
        assert "receipts_not_replicated" not in log.read()


def test_a_standby_that_is_back_is_missed_until_it_is_seen(cluster, fleet, node):
    """What the node reads before it counts them hangs meanwhile."""
    def told():
        status, text = node.ask("/readyz")
        return status, re.findall(r"\d+ synchronous standbys [a-z ]+, store.require_replicas asks for \d+", text)

    def hold():
        with contextlib.suppress(Failed):
            cluster.primary.query("BEGIN; LOCK TABLE settings IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)",
                                  fleet.database, timeout=600)
    holding = threading.Thread(target=hold)
    held = ("FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE mode = 'AccessExclusiveLock' AND "
            f"relation = 'settings'::regclass AND granted AND datname = '{fleet.database}'")
    cluster.standby.stop("immediate")
    try:
        eventually(lambda: node.metric("store_replicas") == 0, "it sees that none is there")
        assert node.metric("store_replicas_required") == 1
        eventually(lambda: told() == (503, ["0 synchronous standbys are connected, store.require_replicas asks for 1"]),
                   "it is the reason, and logged once")
        holding.start()
        eventually(lambda: cluster.primary.number(f"SELECT count(*) {held}", fleet.database), "it is locked")
    finally:
        cluster.standby.start()
    try:
        eventually(lambda: told() == (200, ["0 synchronous standbys are available, store.require_replicas asks for 1"]),
                   "it serves again, and warns")
    finally:
        cluster.primary.query(f"SELECT pg_terminate_backend(pid) {held}", fleet.database)
        holding.join()
    eventually(lambda: told() == (200, []) and node.metric("store_replicas") == 1, "it is seen")


# ---- no standby, no receipt ----

def test_without_a_standby_nothing_is_acknowledged_and_readyz_says_why(cluster, node, channel):
    first = channel.live.register({"n": 1}, "first").expect(201).json
    cluster.standby.stop("immediate")
    try:
        not_ready(node, "standby", "standbys", "replica")
        english = refused(channel, "second")
        assert english.message != channel.live.register({}, "second", language="es").message
        refused(channel, "first", {"n": 1})
        assert channel.live.event(first["event_id"])["sequence"] == 1, "reading continues"
        assert channel.live.walk("/v1/events", 10)[0]["event_id"] == first["event_id"]
    finally:
        cluster.standby.start()
    node.wait("/readyz")
    assert accepted(channel, "second")["sequence"] == 2
    assert accepted(channel, "first", {"n": 1})["chain_hash"] == first["chain_hash"]


def new_key(node, channel):
    return node.admin("key", "create", "--channel", channel.id, "--mode", "live")


@pytest.mark.parametrize("away", ["stopped", "frozen"])
def test_a_stolen_key_is_stopped_while_the_standby_is_away(cluster, fleet, node, channel, away):
    """Frozen, commits of others wait with what they have locked; the revocation waits for none."""
    stolen = new_key(node, channel)
    other = new_key(node, channel)
    thief = node.client(stolen["key"])
    thief.get("/v1/account/balance").expect(200)
    cluster.standby.stop("immediate") if away == "stopped" else cluster.standby.freeze()
    try:
        refused(channel, f"away-{away}")
        told = node.admin("key", "revoke", stolen["key_id"], "--reason", "stolen")
        assert told["replicated"] is False and "not yet replicated" in told["note"]
        thief.get("/v1/account/balance").expect(401, "revoked_key")
        for each in fleet.nodes:
            with each.client(stolen["key"]) as client:
                eventually(lambda client=client: client.get("/v1/account/balance").status == 401,
                           "every node refuses it")
        assert node.run("key", "create", "--channel", channel.id, "--mode", "live").returncode != 0, \
            "what gives rights waits for the standby"
        refused(channel, f"still-away-{away}")
    finally:
        cluster.standby.start() if away == "stopped" else cluster.standby.thaw()
    node.wait("/readyz")
    eventually(lambda: node.run("account", "show", channel.account_id).returncode == 0 and
               accepted(channel, f"back-{away}"), "the service continues")
    act = node.admin("audit", "list", "--operation", "key revoke", "--limit", "1")["data"][0]
    assert act["arguments"]["key"] == stolen["key_id"] and act["reason"] == "stolen"
    again = node.admin("key", "revoke", other["key_id"])
    assert again["replicated"] is True and "note" not in again
    eventually(lambda: cluster.standby.number(
        f"SELECT count(*) FROM api_keys WHERE key_id = '{stolen['key_id']}' AND revoked_at IS NOT NULL",
        fleet.database) == 1, "the standby holds it by the order of the log")
    thief.close()


def put_in_doubt(cluster, node, *words):
    """Freezes the standby, which the commit of this act then waits for."""
    for _ in range(5):  # unless a commit of the service's own was first
        cluster.standby.freeze()
        doubtful = node.run(*words)
        if "an earlier commit" not in doubtful.stderr:
            break
        cluster.standby.thaw()
        node.wait("/readyz")
    assert doubtful.returncode == 2 and "Check the audit log" in doubtful.stderr, doubtful.stderr
    assert "repeat the same request" not in doubtful.stderr


def test_what_takes_rights_away_passes_an_act_in_doubt(cluster, fleet, node, channel):
    """An earlier change of the same account waits for the standby with its number."""
    account = channel.account_id
    stolen = new_key(node, channel)
    endpoint = node.admin("webhook", "create", "--account", account, "--url",
                          "https://example.org/")["endpoint_id"]
    thief = node.client(stolen["key"])
    thief.get("/v1/account/balance").expect(200)
    try:
        put_in_doubt(cluster, node, "key", "create", "--channel", channel.id, "--mode", "live", "--name", "doubtful")
        for words, code in ((("key", "revoke", stolen["key_id"]), "revoked_key"),
                            (("webhook", "disable", endpoint), "revoked_key"),
                            (("channel", "suspend", channel.id), "revoked_key"),
                            (("account", "suspend", account), "revoked_key"),
                            (("account", "disable", account), "revoked_key")):
            told = node.admin(*words)
            assert told["replicated"] is False and "not yet replicated" in told["note"]
            thief.get("/v1/account/balance").expect(401, code)
        eventually(lambda: channel.live.get("/v1/account/balance").status == 403, "the account is disabled")
        shown = node.admin("account", "show", account)
        assert shown["suspended"] and shown["disabled"]
        assert node.admin("channel", "show", channel.id)["suspended"]
        assert not node.admin("webhook", "show", endpoint)["enabled"]
        acts = node.admin("audit", "list", "--account", account)["data"]
        assert [act["number"] for act in acts if act["urgent"]] == [5, 4, 3, 2, 1]
        assert not any(act["arguments"].get("name") == "doubtful" for act in acts), "it still waits"
    finally:
        cluster.standby.thaw()
    eventually(lambda: node.run("account", "enable", account).returncode == 0, "acts are made again")
    acts = node.admin("audit", "list", "--account", account)["data"]
    ordinary = [act for act in acts if not act["urgent"]]
    assert [act["number"] for act in ordinary] == list(range(len(ordinary), 0, -1))
    assert [act for act in ordinary if act["arguments"].get("name") == "doubtful"]
    node.admin("account", "resume", account)
    node.admin("channel", "resume", channel.id)
    fleet.check()
    thief.close()


def test_an_invitation_in_doubt_keeps_no_user_from_being_removed(cluster, fleet, node, channel):
    """Another account's owner invites the same address; the commit of that waits for the standby."""
    account, other = channel.account_id, fleet.new_channel().account_id
    words = "user", "invite", "--email", "who@example.org", "--account"
    node.admin(*words, account, "--role", "developer")
    try:
        put_in_doubt(cluster, node, *words, other, "--role", "owner")
        for change in (("role", "--role", "reader"), ("remove",)):
            told = node.admin("user", change[0], "who@example.org", "--account", account, *change[1:])
            assert told["replicated"] is False
        assert node.admin("user", "list", "--account", account)["data"] == []
    finally:
        cluster.standby.thaw()
    eventually(lambda: node.admin("user", "list", "--account", other)["data"], "the user is invited")


def test_who_signs_out_waits_for_no_standby(cluster, fleet, node, channel):
    """Nor does the record of it, after a change of the same account that is in doubt."""
    account = channel.account_id
    visitor = signed_in(node, invited(node, account, "ana@example.org"))
    try:
        put_in_doubt(cluster, node, "key", "create", "--channel", channel.id, "--mode", "live", "--name", "doubtful")
        assert visitor.get("/console/sessions").status == 200
        visitor.send("/console/leave")
        assert visitor.location == "/console/sign-in?done=left"
        assert visitor.get("/console/").location == "/console/sign-in"
        (act,) = node.admin("audit", "list", "--account", account, "--operation", "sign out")["data"]
        assert act["urgent"] and act["email"] == "ana@example.org"
    finally:
        cluster.standby.thaw()
    eventually(lambda: node.run("account", "set", account, "--name", "Again").returncode == 0, "all continues")
    fleet.check()


def test_who_is_being_made_an_owner_can_be_removed(cluster, fleet, node, channel):
    """Giving the role waits for the standby, and holds nothing meanwhile."""
    account = channel.account_id
    for email, role in (("ana@example.org", "owner"), ("who@example.org", "reader")):
        node.admin("user", "invite", "--email", email, "--account", account, "--role", role)
    words = "who@example.org", "--account", account
    cluster.standby.freeze()
    try:
        made = node.run("user", "role", *words, "--role", "owner")
        assert made.returncode and "Check the audit log" not in made.stderr, made.stderr
        roles = {one["email"]: one["role"] for one in node.admin("user", "list", "--account", account)["data"]}
        assert roles["who@example.org"] == "reader", "nothing was changed"
        assert node.admin("user", "remove", *words)["replicated"] is False
    finally:
        cluster.standby.thaw()
    node.wait("/readyz")
    eventually(lambda: node.run("user", "invite", "--email", words[0], *words[1:], "--role", "reader"
                                ).returncode == 0, "the service continues")
    assert node.admin("user", "role", *words, "--role", "owner")["replicated"] is True
    fleet.check()


@pytest.mark.parametrize("value", ["off", "local"])
def test_without_synchronous_commit_nothing_is_acknowledged(cluster, fleet, node, channel, value):
    """As when an operator changed it: connections that are made later have it."""
    channel.live.register({}, "before").expect(201)
    try:
        cluster.primary.query(f"ALTER DATABASE {fleet.database} SET synchronous_commit = {value}")
        cluster.primary.terminate_backends(fleet.database)

        def told():
            answer = channel.live.register({}, "while")
            status, text = node.ask("/readyz")
            ready = status == 200 and answer.status in (200, 201)
            return ready or (answer.status == 503 and "synchronous_commit" in text)
        eventually(told, "it is refused for its reason, or the service sets it right itself")
        # A node may insist on its own value; then it must be one that waits for the standby.
        cluster.standby.freeze()
        try:
            refused(channel, "frozen")
        finally:
            cluster.standby.thaw()
    finally:
        cluster.primary.query(f"ALTER DATABASE {fleet.database} RESET synchronous_commit")
        cluster.primary.terminate_backends(fleet.database)
    node.wait("/readyz")
    accepted(channel, "while")


def test_more_standbys_than_there_are_can_be_asked_for(cluster, tmp_path):
    fleet = Fleet(tmp_path, count=1, cluster=cluster)
    (node,) = fleet.nodes
    node.settings["store.require_replicas"] = "2"
    try:
        node.spawn()
        node.wait("/livez")
        not_ready(node, "standby", "standbys", "replica")
    except NotStarted as refusal:
        assert "standby" in str(refusal)
    finally:
        fleet.close()
        cluster.drop_database(fleet.database)


def test_none_can_be_asked_for_and_then_the_promise_is_smaller(tmp_path):
    with Cluster(standbys=0) as alone, \
            Fleet(tmp_path, count=1, cluster=alone, store__require_replicas=0) as fleet:
        (node,) = fleet.nodes
        status, text = node.ask("/readyz")
        assert status == 200 and json.loads(text)["promise"] == "durable"
        fleet.new_channel().live.register().expect(201)
        node.logged(lambda line: line["event"] == "receipts_not_replicated")


# ---- a commit that waits too long ----

def test_a_frozen_standby_makes_outcomes_unknown_and_a_retry_resolves_them(cluster, node, channel):
    cluster.standby.freeze()
    try:
        refused(channel, "unknown", {"n": 1})
        refused(channel, "unknown", {"n": 1})
    finally:
        cluster.standby.thaw()
    event = accepted(channel, "unknown", {"n": 1})
    assert event["sequence"] == 1
    channel.live.register({"n": 2}, "unknown").expect(409, "client_ref_conflict")
    assert len(channel.live.walk("/v1/events", 10)) == 1
    assert channel.live.balance()["balance"] == 999
    assert node.alive()


def make_visible_without_standby(cluster, fleet, ask, sql):
    """Asks while the standby is frozen, and cancels the wait, so that the row is seen."""
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask()))
    asking.start()

    def visible():
        cluster.primary.cancel_commits()
        return fleet.rows(sql)
    eventually(visible, "the row is visible without a standby's word")
    asking.join()
    answers[0].expect(503, "temporarily_unavailable")


def make_event_visible(cluster, fleet, channel, ref):
    make_visible_without_standby(cluster, fleet, lambda: channel.live.register({"n": 1}, ref),
                                 f"SELECT 1 FROM events WHERE client_ref = '{ref}'")


def test_what_is_visible_and_not_replicated_is_not_repeated_as_a_receipt(cluster, fleet, node,
                                                                         channel):
    channel.live.register({}, "first").expect(201)
    cluster.standby.freeze()
    try:
        make_event_visible(cluster, fleet, channel, "seen")
        for _ in range(3):
            refused(channel, "seen", {"n": 1})
        # Nor after the back ends, and the node with all it remembers, were restarted.
        cluster.primary.terminate_backends(fleet.database)
        refused(channel, "seen", {"n": 1})
    finally:
        cluster.standby.thaw()
    event = accepted(channel, "seen", {"n": 1})
    assert event["sequence"] == 2
    cluster.primary.wait_for_standbys()  # what it holds it shows a moment later
    ((digest,),) = cluster.standby.rows(
        "SELECT encode(chain_hash, 'hex') FROM events WHERE client_ref = 'seen'", fleet.database)
    assert digest == event["chain_hash"]
    fleet.check()


def test_a_visible_certification_is_not_repeated_before_it_is_replicated(cluster, fleet, node,
                                                                         channel):
    channel.live.register({}, "first").expect(201)

    def ask():
        return channel.live.certify(seq_from=1, seq_to=1, headers={"Idempotency-Key": "key"})
    cluster.standby.freeze()
    try:
        make_visible_without_standby(cluster, fleet, ask, "SELECT 1 FROM certifications "
                                     "WHERE idempotency_key = 'key'")
        for _ in range(3):
            ask().expect(503, "temporarily_unavailable")
    finally:
        cluster.standby.thaw()

    def answered():
        answer = ask()
        return answer if answer.status != 503 else None
    answer = eventually(answered, "it is answered").expect(202)
    assert answer.headers["Idempotent-Replayed"] == "true"
    cluster.primary.wait_for_standbys()  # what it holds it shows a moment later
    assert cluster.standby.rows("SELECT certification_id FROM certifications WHERE "
                                "idempotency_key = 'key'", fleet.database) == \
        [[answer.json["certification_id"]]]
    (only,) = channel.live.walk("/v1/certifications", 10)
    assert only["certification_id"] == answer.json["certification_id"]


def test_a_node_that_starts_anew_does_not_repeat_it_either(cluster, fleet, node, channel):
    cluster.standby.freeze()
    try:
        make_event_visible(cluster, fleet, channel, "restarted")
        # The writers of all nodes wait behind this one.
        assert node.run("key", "create", "--channel", channel.id, "--mode", "live").returncode == 2
        node.kill()
        node.spawn()
        node.wait("/livez")
        for _ in range(3):
            refused(channel, "restarted", {"n": 1})
    finally:
        cluster.standby.thaw()
    node.wait("/readyz")
    assert accepted(channel, "restarted", {"n": 1})["sequence"] == 1


def test_cancelled_commits_are_not_acknowledged_while_others_are(cluster, fleet, node, channel):
    """Cancelled at random while the standby is well: whatever was acknowledged is on the standby."""
    stop, told = threading.Event(), {}

    def register():
        client = node.client(channel.live_key["key"])
        n = 0
        while not stop.is_set():
            n += 1
            answer = client.register({"n": n}, f"e{n}")
            if answer.status == 201:
                told[f"e{n}"] = answer.json["chain_hash"]
        client.close()
    worker = threading.Thread(target=register)
    worker.start()
    for _ in range(20):
        cluster.primary.cancel_commits()
        cluster.primary.terminate_backends(fleet.database)
    eventually(lambda: len(told) > 20, "some are acknowledged")
    stop.set()
    worker.join()
    cluster.standby.stop("immediate")
    cluster.primary.freeze()  # which could send it what it lacks
    try:
        cluster.standby.start()
        eventually(lambda: cluster.standby.answers(), "the standby answers")

        def holds():  # it answers before it has read all that it has
            held = dict(cluster.standby.rows(
                "SELECT client_ref, encode(chain_hash, 'hex') FROM events", fleet.database))
            return {ref: held.get(ref) for ref in told} == told
        eventually(holds, "the standby shows all that was acknowledged")
    finally:
        cluster.primary.thaw()
    cluster.primary.wait_for_standbys()
    node.wait("/readyz")
    gapless(channel.live.walk("/v1/events", 500))
    fleet.check()


# ---- connections and servers that go away ----

def test_terminated_back_ends_are_replaced(cluster, fleet, node, channel):
    for n in range(5):
        assert cluster.primary.terminate_backends(fleet.database) >= 0
        assert accepted(channel, f"e{n}")["sequence"] == n + 1
        assert channel.live.get("/v1/channel").status in (200, 503)
    node.wait("/readyz")
    fleet.admin("store", "check")


@pytest.fixture
def quick_to_see_deadlocks(cluster, fleet):
    """The service's sessions look for one sooner than others, so that it is they who lose."""
    cluster.primary.query(f"ALTER ROLE {ROLE} SET deadlock_timeout = '500ms'")
    cluster.primary.terminate_backends(fleet.database)
    yield
    cluster.primary.query(f"ALTER ROLE {ROLE} RESET deadlock_timeout")
    cluster.primary.terminate_backends(fleet.database)


def test_a_batch_that_loses_a_deadlock_is_tried_again(cluster, fleet, node, quick_to_see_deadlocks,
                                                      channel):
    accepted(channel, "before")
    database = fleet.database
    (account, number), = cluster.primary.rows(
        f"SELECT account, channel FROM channels WHERE channel_id = '{channel.id}'", database)
    # It holds the chain, waits until a batch that holds the account waits for that, and then asks
    # for the account.
    other = threading.Thread(target=cluster.primary.query, args=(f"""
        BEGIN;
        SELECT 1 FROM chains WHERE account = {account} AND chain = {number} * 2 FOR UPDATE;
        SELECT pg_advisory_lock(77);
        DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks
                                      WHERE relation = 'accounts'::regclass AND mode LIKE 'Row%Lock'
                                      AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))
            LOOP PERFORM pg_sleep(0.01); END LOOP; END $$;
        UPDATE accounts SET name = name WHERE account = {account};
        COMMIT;""", database))
    other.start()
    eventually(lambda: cluster.primary.number(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 77"),
        "the chain is held")
    assert channel.live.register({}, "contended").expect(201).json["sequence"] == 2
    other.join()
    assert "deadlock detected" in cluster.primary.log_tail(20000)


def test_a_standby_takes_over_and_receipts_outlive_the_primary(cluster, fleet, node, channel):
    kept = [channel.live.register({"n": n}, f"e{n}").expect(201).json for n in range(20)]
    cluster.primary.kill()
    old = cluster.fail_over()
    not_ready(node, "standby", "standbys", "replica")
    refused(channel, "later")
    cluster.rebuild(old)
    cluster.primary.wait_for_standbys()
    node.wait("/readyz")
    assert accepted(channel, "later")["sequence"] == 21
    for event in kept:
        assert {**channel.live.event(event["event_id"]), "timestamp": None, "proof": None} == \
            {**{name: value for name, value in event.items() if name != "receipt"}, "timestamp": None, "proof": None}
        assert accepted(channel, event["client_ref"], {"n": event["sequence"] - 1})["chain_hash"] \
            == event["chain_hash"]
    gapless(channel.live.walk("/v1/events", 500))
    fleet.check()


def test_a_store_that_is_away_makes_no_node_end(cluster, fleet, node, channel):
    cluster.primary.stop("immediate")
    try:
        not_ready(node, "")
        refused(channel, "away")
        answer = channel.live.get("/v1/events")
        assert answer.status in (500, 503), answer
    finally:
        cluster.primary.start()
    node.wait("/readyz")
    assert accepted(channel, "away")["sequence"] == 1


# ---- settings ----

def test_a_password_in_the_address_is_told_to_nobody(cluster, tmp_path):
    fleet = Fleet(tmp_path, count=0, cluster=cluster)
    secret = "hunter2-not-for-logs"
    url = fleet.settings["store.url"].replace("constancia@", f"constancia:{secret}@")
    fleet.settings["store.url"] = url
    fleet.add()
    with fleet:
        (node,) = fleet.nodes
        cluster.primary.terminate_backends(fleet.database)
        eventually(lambda: node.ask("/readyz")[0] == 200, "it is connected again")
        shown = "".join(node.ask(path)[1] for path in ("/readyz", "/metrics"))
        with open(node.log, encoding="utf-8") as log:
            shown += log.read()
        assert secret not in shown
    done = node.run("init")
    assert secret not in done.stdout + done.stderr


def test_an_address_that_is_none_is_refused_with_its_reason(cluster, tmp_path):
    fleet = Fleet(tmp_path, count=1, cluster=cluster)
    (node,) = fleet.nodes
    try:
        for url in ("postgresql://[", "postgresql://h/d?no_such_word=1", "postgres//x", "mysql://a/b"):
            node.settings["store.url"] = url
            done = node.run("config", "check")
            assert done.returncode != 0 and "store.url" in done.stdout + done.stderr, url
        node.settings["store.url"] = cluster.url("no_such_database")
        done = node.run("serve", timeout=60)
        assert done.returncode != 0 and "no_such_database" in done.stderr
    finally:
        fleet.close()
        cluster.drop_database(fleet.database)


def test_two_installations_do_not_share_a_database(cluster, tmp_path):
    """Their programs would exclude each other by the same locks. A store that exists is served as before."""
    fleet = Fleet(tmp_path, count=1, cluster=cluster)
    (node,) = fleet.nodes
    first = dict(node.settings)
    other = cluster.url(fleet.database, options="-csearch_path=other")
    try:
        cluster.primary.query(f"CREATE SCHEMA other AUTHORIZATION {ROLE};"
                              "CREATE SCHEMA unrelated; CREATE TABLE unrelated.settings (name text)", fleet.database)
        node.settings.update({"store.url": other, "service.data_dir": str(tmp_path / "other")})
        done = node.run("init")
        assert done.returncode == 1 and "schema public of the database" in done.stderr, done.stderr
        assert "create a database of its own for each installation" in done.stderr
        assert cluster.primary.query("SELECT count(*) FROM pg_tables WHERE schemaname = 'other'", fleet.database) == "0"
        cluster.primary.query("CREATE TABLE other.settings (name text, value text);"
                              "CREATE TABLE other.certifications (name text)", fleet.database)
        node.settings.update(first)
        assert node.run("init").returncode == 0, "its own store exists"
    finally:
        fleet.close()
        cluster.drop_database(fleet.database)


def test_another_node_without_a_directory_learns_how_to_make_it(cluster, tmp_path):
    """The store exists: `init` was run on the first node."""
    fleet = Fleet(tmp_path, count=1, cluster=cluster)
    (node,) = fleet.nodes
    missing = tmp_path / "missing"
    try:
        node.settings["service.data_dir"] = str(missing)
        expected = f"{missing} does not exist yet: run 'constancia init' on the first node, and on each other one " \
                   f"'install -d -m 0700 -o USER {missing}'"
        done = node.run("serve", timeout=60)
        assert done.returncode != 0 and expected in done.stderr, done.stderr
        assert f"warning: --set service.data_dir: service.data_dir: {expected}\n" in node.run("config", "check").stderr
        missing.mkdir(mode=0o700)
        assert "does not exist" not in node.run("config", "check").stderr
    finally:
        fleet.close()
        cluster.drop_database(fleet.database)
