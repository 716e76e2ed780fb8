"""Several nodes on one store: each serves any key, and all together are as exact as one."""

import collections

import pytest

import receipts
from client import eventually, fresh
from console import Visitor, invited, signed_in
from fleet import Fleet, at_once, gapless, register_everywhere
from nodes import SetClock, clock_behind
from pki import Pki

pytestmark = pytest.mark.postgresql
LAG_SECONDS = 20


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    with Fleet(tmp_path_factory.mktemp("fleet")) as running:
        yield running


def statuses(answers):
    return collections.Counter(answer.status for answer in answers)


# ---- any node serves any key ----

def test_what_one_node_registers_the_other_serves(fleet):
    channel = fleet.new_channel()
    here, there = fleet.clients(channel.live_key["key"])
    for n in range(10):
        one, other = (here, there) if n % 2 else (there, here)
        event = one.register({"n": n}, f"e{n}").expect(201).json
        assert event["sequence"] == n + 1
        assert other.event(event["event_id"])["chain_hash"] == event["chain_hash"]
        again = other.register({"n": n}, f"e{n}").expect(200)
        assert again.headers["Idempotent-Replayed"] == "true"
        assert {**again.json, "timestamp": None, "receipt": None} == {**event, "timestamp": None, "receipt": None}
        other.register({"n": -1}, f"e{n}").expect(409, "client_ref_conflict")
        assert other.content(event["event_id"]).body == b'{"n":%d}' % n
    file = here.register_file(b"bytes" * 10000, "file").expect(201).json
    assert there.content(file["event_id"]).expect(200).body == b"bytes" * 10000
    lists = [[event["chain_hash"] for event in client.walk("/v1/events", limit)]
             for client, limit in ((here, 3), (there, 500))]
    assert lists[0] == lists[1] and len(lists[0]) == 11
    gapless(here.walk("/v1/events", 500))


def test_each_node_signs_receipts_with_a_listed_key(fleet):
    channel = fleet.new_channel()
    signed = [client.register({"n": n}, f"e{n}").expect(201).json
              for n, client in enumerate(fleet.clients(channel.live_key["key"]))]
    keys = [event["receipt"]["key"] for event in signed]
    assert all(map(receipts.is_signed, signed))
    here, there = fleet.clients(channel.live_key["key"])
    again = there.register({"n": 0}, "e0").expect(200).json
    assert receipts.is_signed(again) and again["receipt"]["key"] == keys[1], "a replay is signed where it is answered"
    for client in here, there:
        listed = {item["key"] for item in client.get("/v1/signers").expect(200).json["receipt_keys"]}
        assert set(keys) <= listed


def test_administration_at_one_node_is_in_force_at_the_other(fleet):
    channel = fleet.new_channel()
    _, there = fleet.clients(channel.live_key["key"])
    there.register().expect(201)
    first, _ = fleet.nodes
    first.admin("channel", "configure", channel.id, "--name", "Renamed")
    assert there.get("/v1/channel").expect(200).json["current_config"]["version"] == 2
    assert there.register().expect(201).json["config_version"] == 2
    first.admin("store", "quiet", "--reason", "to be looked at")
    eventually(lambda: there.register().status == 503, "the other node sees the mark")
    eventually(lambda: fleet.nodes[1].metric("quiet") == 1, "and reports it")
    fleet.nodes[1].admin("store", "wake")
    here = first.client(channel.live_key["key"])
    eventually(lambda: here.register().status == 201, "the first sees that it is gone")
    first.admin("account", "suspend", channel.account_id)
    eventually(lambda: there.register().status == 403, "the suspension is in force")
    first.admin("account", "resume", channel.account_id)
    eventually(lambda: there.register().status == 201, "it is lifted")
    first.admin("key", "revoke", channel.live_key["key_id"])
    eventually(lambda: there.register().status == 401, "the key is revoked")


@pytest.mark.parametrize("end", ["leave", "end the other"])
def test_a_session_of_the_console_is_one_at_all_nodes(fleet, end):
    first, second = fleet.nodes
    email = invited(first, fleet.new_account(), f"{fresh('owner')}@example.org")
    here, other = signed_in(first, email), signed_in(first, email)
    there = Visitor(second)
    there.cookies = dict((here if end == "leave" else other).cookies)
    (listed,) = there.other_sessions()
    assert email in there.body
    if end == "leave":
        there.send("/console/leave")
    else:
        there.send("/console/sessions/end", session=listed)
    assert there.status == 303, there.text()
    assert here.get("/console/").location == "/console/sign-in"
    assert other.get("/console/").status == 200, "that one alone"


# ---- exact together ----

def test_sequences_have_no_gap_whoever_registers(fleet):
    channel = fleet.new_channel()
    answers = register_everywhere(fleet, channel.live_key["key"], each=40)
    assert statuses(answers) == {201: 320}
    assert sorted(answer.json["sequence"] for answer in answers) == list(range(1, 321))
    listed = channel.live.walk("/v1/events", 500)
    gapless(listed)
    told = {answer.json["client_ref"]: answer.json["chain_hash"] for answer in answers}
    assert {event["client_ref"]: event["chain_hash"] for event in listed} == told
    fleet.check()


def test_the_same_client_ref_at_both_nodes_at_once_is_one_event(fleet):
    channel = fleet.new_channel()
    for n in range(20):
        ref = fresh()
        answers = at_once([lambda node=node: node.client(channel.live_key["key"])
                           .register({"n": n}, ref) for node in fleet.nodes * 2])
        assert statuses(answers) == {201: 1, 200: 3}
        assert len({answer.json["chain_hash"] for answer in answers}) == 1
    assert channel.live.balance()["balance"] == 1000 - 20


def test_credits_and_the_unpaid_limit_are_exact(fleet):
    channel = fleet.new_channel(credits=50, unpaid_limit=10)
    answers = register_everywhere(fleet, channel.live_key["key"], each=15)
    assert statuses(answers) == {201: 60, 402: 60}
    states = collections.Counter(answer.json["status"] for answer in answers
                                 if answer.status == 201)
    assert states == {"registered": 50, "unpaid": 10}
    assert channel.live.balance() == {"balance": 0, "operational": False, "unpaid_events": 10}
    bought = at_once([lambda node=node: node.admin("credits", "add", channel.account_id, 4)
                      for node in fleet.nodes])
    assert len(bought) == 2
    assert channel.live.balance() == {"balance": 0, "operational": False, "unpaid_events": 2}
    gapless(channel.live.walk("/v1/events", 500))
    fleet.check()


def test_credits_added_while_events_are_registered_all_count(fleet):
    """Administration and registration change the same balance at the same time, at both nodes."""
    channel = fleet.new_channel(credits=1000)

    def add(node):
        return [node.admin("credits", "add", channel.account_id, 7) for _ in range(5)]
    answers = at_once([lambda: register_everywhere(fleet, channel.live_key["key"], each=30),
                       *(lambda node=node: add(node) for node in fleet.nodes)])[0]
    assert statuses(answers) == {201: 240}
    assert channel.live.balance()["balance"] == 1000 + 70 - 240
    fleet.check()


@pytest.mark.usefixtures("one_day")
@pytest.mark.parametrize("of", ["channel", "key"])
def test_a_consumption_limit_lets_exactly_its_number_through(fleet, of):
    channel = fleet.new_channel()
    what = {"channel": channel.id, "key": channel.live_key["key_id"]}[of]
    fleet.admin("limit", "create", f"--{of}", what, "--period", "month", "--max", 33, "--action",
              "block")
    answers = register_everywhere(fleet, channel.live_key["key"], each=10)
    assert statuses(answers) == {201: 33, 422: 47}
    assert channel.live.balance()["balance"] == 1000 - 33
    assert fleet.number("SELECT count(*) FROM notices WHERE type = 'consumption.limit_reached' "
                        f"AND data LIKE '%{channel.id}%'") == 1
    gapless(channel.live.walk("/v1/events", 500))


@pytest.mark.usefixtures("one_day")
def test_a_test_quota_lets_exactly_its_number_through(fleet):
    channel = fleet.new_channel()
    channel.test.register({}, "first").expect(201)
    account = fleet.number("SELECT account FROM accounts "
                           f"WHERE account_id = '{channel.account_id}'")
    fleet.query(f"UPDATE test_usage SET events = 9985 WHERE account = {account}")
    answers = register_everywhere(fleet, channel.test_key["key"], each=5)
    assert statuses(answers) == {201: 15, 429: 25}
    assert {answer.code for answer in answers if answer.status == 429} == {"test_quota_exceeded"}


@pytest.mark.usefixtures("one_day")
def test_20_test_certifications_a_day_are_20_over_all_nodes(fleet):
    channel = fleet.new_channel()
    channel.test.register({}, "first").expect(201)
    clients = fleet.clients(channel.test_key["key"])
    answers = [answer for list_ in at_once(
        [lambda client=client: [client.certify(seq_from=1, seq_to=1) for _ in range(15)]
         for client in clients]) for answer in list_]
    assert statuses(answers) == {202: 20, 429: 10}


# ---- jobs ----

def settle(fleet, clients, accepted):
    for client, answer in zip(clients, accepted):
        done = client.settled(answer.expect(202).json["certification_id"])
        assert done["status"] == "completed", done
        yield done


def test_certifications_asked_for_anywhere_are_issued_once(fleet):
    channel = fleet.new_channel()
    register_everywhere(fleet, channel.live_key["key"], each=5)
    clients = fleet.clients(channel.live_key["key"]) * 8
    accepted = at_once([lambda client=client: client.certify(seq_from=1, seq_to=40)
                        for client in clients[:2]])
    accepted += [client.certify(seq_from=1, seq_to=40) for client in clients[2:]]
    issued = list(settle(fleet, clients, accepted))
    assert len({done["certification_id"] for done in issued}) == 16
    assert len({done["verification_code"] for done in issued}) == 16
    ids = ", ".join(f"'{done['certification_id']}'" for done in issued)
    assert fleet.rows("SELECT DISTINCT attempts, status FROM certifications "
                      f"WHERE certification_id IN ({ids})") == [["1", "completed"]]
    assert fleet.rows(f"""SELECT DISTINCT count(*) FROM issued_files JOIN certifications USING
                      (account, certification) WHERE certification_id IN ({ids})
                      GROUP BY certification""") == [["4"]]
    assert fleet.number("SELECT count(*) FROM notices WHERE type = 'certification.completed' AND ("
                        + " OR ".join(f"data LIKE '%{done['certification_id']}%'"
                                      for done in issued) + ")") == 16
    def told():
        return collections.Counter(
            line["certification_id"] for node in fleet.nodes for line in node.log_lines()
            if line["event"] == "certification_completed")
    eventually(lambda: told().keys() >= {done["certification_id"] for done in issued},
               "the logs tell of all")
    completed = told()
    assert {completed[done["certification_id"]] for done in issued} == {1}
    # What one node issued the other hands out, and both signed with the same key.
    for done in issued[:2]:
        for node in fleet.nodes:
            links = node.client(channel.live_key["key"]).certification(done["certification_id"])
            assert links["evidence_url"].startswith("http")


def test_rounds_and_segments_follow_each_other_whoever_seals(fleet):
    channels = [fleet.new_channel() for _ in range(3)]
    for _ in range(3):
        for channel in channels:
            for client in fleet.clients(channel.live_key["key"]):
                last = client.register().expect(201).json
            client.sealed(last["event_id"])
    rounds = [int(number) for (number,) in fleet.rows("SELECT round FROM seal_rounds ORDER BY 1")]
    assert rounds == list(range(1, len(rounds) + 1))
    ends = {}
    for chain, number, first, last in fleet.rows(
            "SELECT chain, number, first_sequence, last_sequence FROM segments "
            "WHERE chain > 0 ORDER BY chain, number"):
        before = ends.get(chain, (0, 0))
        assert (int(number), int(first)) == (before[0] + 1, before[1] + 1), chain
        ends[chain] = int(number), int(last)
    assert len(ends) >= 3
    fleet.check()


def holder(fleet, certification_id):
    """The node that has the job's lease."""
    for (lease,) in fleet.rows("SELECT lease FROM certifications WHERE lease IS NOT NULL AND "
                               f"certification_id = '{certification_id}'"):
        return next(node for node in fleet.nodes if node.data in lease)
    return None


def test_a_node_that_dies_while_issuing_is_replaced(tmp_path):
    """Killed once it is seen to have the job, until that was three times before the end."""
    with Fleet(tmp_path, seal__interval="300ms") as fleet:
        channel = fleet.new_channel()
        register_everywhere(fleet, channel.live_key["key"], each=30,
                            register=lambda client, payload, ref:
                            client.register({**payload, "pad": "x" * 10000}, ref))
        hits = 0
        for _ in range(30):
            client = next(node for node in fleet.nodes if node.alive()).client(
                channel.live_key["key"])
            identifier = client.certify(seq_from=1, seq_to=240).expect(202).json["certification_id"]
            busy = eventually(lambda identifier=identifier: holder(fleet, identifier) or
                              over(fleet, identifier), "a node issues it", pause=0.001)
            if busy is not True:
                busy.kill()
                hits += not over(fleet, identifier)
            other = next(node for node in fleet.nodes if node is not busy).client(
                channel.live_key["key"])
            assert other.settled(identifier)["status"] == "completed"
            other.register().expect(201)
            if busy is not True:
                busy.start()
            if hits == 3:
                break
        assert hits == 3, "the node was never seen at its work"
        fleet.check()


def over(fleet, certification_id):
    return fleet.rows("SELECT 1 FROM certifications WHERE status <> 'processing' AND "
                      f"certification_id = '{certification_id}'") != []


def test_a_node_that_dies_while_sealing_is_replaced(tmp_path):
    with Fleet(tmp_path, seal__interval="1s") as fleet:
        first, second = fleet.nodes
        channel = fleet.new_channel()
        for _ in range(3):
            event = second.client(channel.live_key["key"]).register().expect(201).json
            eventually(lambda: fleet.rows("SELECT 1 FROM leases WHERE holder LIKE "
                                          f"'%{first.data}%'") or
                       second.client(channel.live_key["key"]).event(event["event_id"])
                       ["timestamp"]["type"] == "batch", "it is being sealed", pause=0.001)
            first.kill()
            second.client(channel.live_key["key"]).sealed(event["event_id"])
            first.start()
        fleet.check()


# ---- a clock that runs behind ----

@pytest.fixture(scope="module")
def lagging(tmp_path_factory):
    """Two nodes, the clock of the second slower than the first's."""
    directory = tmp_path_factory.mktemp("lagging")
    fleet = Fleet(directory / "nodes", count=0, seal__clock_bound="1m")
    fleet.add()
    fleet.add(environment=clock_behind(directory, LAG_SECONDS))
    with fleet:
        yield fleet


def test_a_clock_behind_never_makes_received_at_go_back(lagging):
    behind_alone = lagging.new_channel()
    ahead, behind = lagging.nodes
    early = behind.client(behind_alone.live_key["key"]).register().expect(201).json
    late = ahead.client(behind_alone.live_key["key"]).register().expect(201).json
    assert early["received_at"] < late["received_at"]
    again = behind.client(behind_alone.live_key["key"]).register().expect(201).json
    assert again["received_at"] == late["received_at"], "its clock is not yet there"

    channel = lagging.new_channel()
    answers = register_everywhere(lagging, channel.live_key["key"], each=30)
    assert statuses(answers) == {201: 240}
    gapless(channel.live.walk("/v1/events", 500))
    for answer in answers:
        event = channel.live.event(answer.json["event_id"])
        assert event["received_at"] == answer.json["received_at"]


def test_sealing_and_issuing_bear_a_clock_behind(lagging):
    channel = lagging.new_channel()
    for client in lagging.clients(channel.live_key["key"]) * 3:
        event = client.register().expect(201).json
        client.sealed(event["event_id"])
    for client in lagging.clients(channel.live_key["key"]):
        assert client.certified(seq_from=1, seq_to=6)["status"] == "completed"
    lagging.check()


def test_secrets_overlap_by_the_clock_of_all(lagging):
    behind = lagging.nodes[1]
    account = behind.admin("account", "create", "--name", "An owner")["account_id"]
    endpoint = behind.admin("webhook", "create", "--account", account, "--url",
                          "https://example.org/hook")["endpoint_id"]
    before = lagging.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    behind.admin("webhook", "rotate", endpoint)
    until = lagging.number("SELECT previous_secret_until FROM webhook_endpoints "
                           f"WHERE endpoint_id = '{endpoint}'")
    assert until >= before + 24 * 3600 * 1000000 - LAG_SECONDS * 500000


# ---- a clock that runs ahead ----

@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    """Two nodes, the second with a clock that can be set."""
    directory = tmp_path_factory.mktemp("hasty")
    fleet = Fleet(directory / "nodes", count=0, seal__clock_bound="1m")
    fleet.clock = SetClock(directory)
    fleet.add()
    fleet.add(environment=fleet.clock.environment)
    with fleet:
        yield fleet


def test_a_clock_ahead_refuses_where_it_is_ahead(hasty):
    right, ahead = hasty.nodes
    channel = hasty.new_channel()
    here, there = hasty.clients(channel.live_key["key"])
    first = here.register({"n": 1}, "a").expect(201).json
    hasty.clock.set(-3600)
    try:
        refused = there.register().expect(503, "temporarily_unavailable")
        assert "clock" in refused.message
        assert there.register({"n": 1}, "a").expect(200).json["event_id"] == first["event_id"]
        ahead.client(channel.test_key["key"]).register().expect(201)
        status, text = ahead.ask("/readyz")
        assert status == 503 and "s ahead of the store's" in text
        assert right.ask("/readyz")[0] == 200
        # The right clock is not held back by the other, which wrote nothing.
        second = here.register().expect(201).json
        assert (second["sequence"], right.metric("registrations_clock_refused_total")) == (2, 0)
        here.sealed(second["event_id"])
        told = ahead.logged(lambda line: line["event"] == "clock_rejected")
        assert len(told) == 1 and told[0]["level"] == "error"
    finally:
        hasty.clock.set(0)
    assert there.register().expect(201).json["sequence"] == 3
    ahead.wait("/readyz")


def test_a_clock_ahead_by_less_than_the_bound_holds_nobody_back(hasty):
    channel = hasty.new_channel()
    here, there = hasty.clients(channel.live_key["key"])
    hasty.clock.set(-20)
    try:
        event = there.register().expect(201).json
        behind_it = here.register().expect(201).json
        assert behind_it["received_at"] == event["received_at"], "the right clock is not yet there"
        answers = register_everywhere(hasty, channel.live_key["key"], each=10)
        assert statuses(answers) == {201: 80}
        gapless(channel.live.walk("/v1/events", 500))
    finally:
        hasty.clock.set(0)


# ---- the schema ----

def test_nodes_that_prepare_the_store_at_once_do_not_hinder_each_other(tmp_path):
    pki = Pki(tmp_path / "pki")
    fleet = Fleet(tmp_path, count=0)
    fleet.settings |= {**pki.signer("common"), "tsa.url": "http://127.0.0.1:9/",
                       "tsa.roots": str(pki.root)}
    try:
        nodes = [fleet.node_class(fleet, f"node{n}") for n in range(4)]
        done = at_once([lambda node=node: node.run("init") for node in nodes])
        assert [each.returncode for each in done] == [0] * 4, [each.stderr for each in done]
        assert fleet.number("SELECT count(*) FROM settings WHERE name = 'schema'") == 1
    finally:
        fleet.close()
        fleet.cluster.drop_database(fleet.database)
