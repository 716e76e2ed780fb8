"""While a server of a distributed store is unavailable, accounts on the others work."""

import contextlib
import json
import threading

import pytest

from client import Channel, Client, eventually
from console import invited, signed_in
from distributed import MISSING, offered
from hooks import Receiver, new_endpoint
from money import bill, new_pack, new_purchase
from payment_provider import PaymentProvider
from program import Refused
from sharded import (accepted, away, channels, done, findings, fleet, named,  # noqa: F401
                     new_fleet, not_done, one_on_each, refused, replicated, sealed)

pytestmark = [pytest.mark.postgresql, pytest.mark.skipif(not offered(), reason=MISSING)]
HOW = pytest.mark.parametrize("how", ["stopped", "frozen"])


def completed(channel, key, last):
    """Accepted, repeated under its key where that is in doubt, and issued."""
    bounds = {"seq_from": 1, "seq_to": last}

    def accept():
        answer = channel.live.post("/v1/certifications", bounds, headers={"Idempotency-Key": key})
        return answer.json if answer.status == 202 else None
    found = eventually(accept, "it is accepted", patience=120)["certification_id"]

    def issued():
        answer = channel.live.get(f"/v1/certifications/{found}")
        return answer.status == 200 and answer.json["status"] == "completed"
    eventually(issued, "it is issued", patience=120)
    return found


def told(receiver, certification):
    eventually(lambda: certification in [one.data.get("certification_id")
                                         for one in receiver.deliveries],
               f"{certification} is reported", patience=120)


def stuck(fleet, table):
    """The statements on that table that the coordinator is at."""
    return fleet.rows("SELECT query FROM pg_stat_activity WHERE datname = current_database() AND "
                      fr"state = 'active' AND pid <> pg_backend_pid() AND query ~ '\m{table}\M'")


@HOW
def test_a_server_that_is_away_stops_its_own_accounts_alone(fleet, channels, how):
    """The others' events are sealed, certified and notified, and they get keys; what is of it is
    refused, and done when it is back."""
    (lost, worker), (kept, _) = channels
    with Receiver() as receiver:
        for one in (lost, kept):
            new_endpoint(fleet, one.account_id, receiver.url)
        first = {one: accepted(one, "first") for one in (lost, kept)}
        with away(worker, how):
            event = accepted(kept, "meanwhile")
            sealed(kept, event["event_id"])
            told(receiver, completed(kept, "meanwhile", event["sequence"]))
            key = done(fleet, "key", "create", "--channel", kept.id, "--mode", "live")
            with contextlib.closing(Client(fleet.nodes[0], key["key"])) as client:
                client.register({}, "by a new key").expect(201)
            assert done(fleet, "account", "show", kept.account_id)["account_id"] == kept.account_id
            for n in range(3):
                refused(lost, f"refused {n}")
            (found,) = eventually(lambda: findings(fleet), "it is said which one is away")
            assert named(worker) in found
            sealed(kept, accepted(kept, "still")["event_id"])
            not_done(fleet, "key", "revoke", lost.live_key["key_id"], "--reason", "stolen")
            assert stuck(fleet, "acts") == [], "urgent changes of others would wait after it"
            done(fleet, "key", "revoke", kept.test_key["key_id"], "--reason", "stolen")
        for one in (lost, kept):
            assert accepted(one, "first")["chain_hash"] == first[one]["chain_hash"]
        last = accepted(lost, "afterwards")
        sealed(lost, last["event_id"])
        told(receiver, completed(lost, "afterwards", last["sequence"]))


def test_a_user_of_several_accounts_works_in_those_that_are_there(fleet, channels):
    """The user's sessions are found without the server that is away."""
    (lost, worker), (kept, _) = channels
    (node,) = fleet.nodes
    for one in (lost, kept):
        invited(node, one.account_id, "jane@example.org")
    visitor = signed_in(node, "jane@example.org")
    if visitor.own_fields()["in_account"] != kept.account_id:
        visitor.send("/console/account", account=kept.account_id).follow()
    assert visitor.own_fields()["in_account"] == kept.account_id
    with away(worker, "frozen"):
        eventually(lambda: findings(fleet), "it is said which one is away")
        refused(lost, "refused")
        assert visitor.get("/console/channels").status == 200
        assert visitor.own_fields()["in_account"] == kept.account_id
        assert stuck(fleet, "memberships") == []


def succeeds(node, *words):
    with contextlib.suppress(Refused):
        return node.admin(*words)
    return None


@contextlib.contextmanager
def waiting_within(moment, worker, fleet, start):
    """`start` begins something that waits for that worker, which does not return meanwhile."""
    with contextlib.ExitStack() as ending:
        if moment in ("the commit", "the PREPARE"):
            worker.standby.freeze()
            ending.callback(worker.standby.thaw)
            begun = worker.primary.commits_waiting
        elif moment == "the COMMIT PREPARED":
            decider = fleet.cluster.coordinator  # its standby has to receive the decision first
            decider.standby.freeze()
            ending.callback(decider.standby.thaw)

            def begun():
                return decider.primary.commits_waiting() and worker.primary.number(
                    f"SELECT count(*) FROM pg_prepared_xacts WHERE database = '{fleet.database}'")
        else:
            shards = ", ".join(f"accounts_{shard}" for (shard,) in fleet.rows(
                "SELECT shardid FROM citus_shards WHERE table_name = 'accounts'::regclass AND "
                f"nodeport = {worker.primary.port}"))
            holder = worker.primary.session(
                f"SET citus.enable_manual_changes_to_shards = on; BEGIN; LOCK TABLE {shards} IN "
                "EXCLUSIVE MODE;\n", fleet.database)
            ending.callback(holder.communicate, "ROLLBACK;\n")
            locks = ("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND {}").format
            eventually(lambda: worker.primary.number(locks("mode = 'ExclusiveLock'")), "it is locked")

            def begun():
                return worker.primary.number(locks("NOT granted"))
        before = begun()
        waits = threading.Event()

        def start_until_it_waits():  # a job may wait first, for another worker
            while not waits.is_set():
                start()
        started = threading.Thread(target=start_until_it_waits)
        started.start()
        ending.callback(started.join)
        ending.callback(waits.set)
        eventually(lambda: begun() > before, "it waits")
        waits.set()
        if moment != "the commit":
            worker.primary.freeze()
            ending.callback(worker.primary.thaw)
        if moment == "the COMMIT PREPARED":
            decider.standby.thaw()
        yield


@pytest.mark.parametrize("fleet", [2], indirect=True)
@pytest.mark.parametrize("moment", ["the commit", "a statement", "the PREPARE", "the COMMIT PREPARED"])
def test_a_writer_that_waits_for_a_server_stops_its_accounts_alone(fleet, channels, moment):
    """Neither its place in the queue nor anything else that it holds keeps the others, at no node."""
    (lost, worker), (kept, _) = channels

    def change():
        succeeds(fleet.nodes[0], "account", "set", lost.account_id, "--name", "meanwhile")
    for one in (lost, kept):
        sealed(one, accepted(one, "first")["event_id"])
    with waiting_within(moment, worker, fleet, change):
        for number, node in enumerate(fleet.nodes):
            keys = {"live": kept.live_key, "test": kept.test_key}
            one = Channel(node, kept.account_id, {"channel_id": kept.id}, keys)
            with contextlib.closing(one):
                event = accepted(one, f"meanwhile-{number}")
                eventually(lambda: succeeds(node, "account", "set", kept.account_id, "--name",
                                            f"Name {number}"), "it is administered")
                sealed(one, event["event_id"])
                completed(one, f"meanwhile-{number}", event["sequence"])
    eventually(lambda: succeeds(fleet.nodes[1], "account", "set", lost.account_id, "--name", "last"),
               "it is administered again", patience=120)
    last = accepted(lost, "afterwards")
    sealed(lost, last["event_id"])
    completed(lost, "afterwards", last["sequence"])
    assert done(fleet, "account", "show", lost.account_id)["name"] == "last"


def known_away(fleet, kept):
    """An earlier request waits for it, and fails."""
    done(fleet, "account", "show", kept.account_id)
    eventually(lambda: findings(fleet), "it is said")

    def left_out():
        with contextlib.suppress(Refused):
            return fleet.admin("account", "list").get("incomplete")
        return False
    eventually(left_out, "no one asks it")


def state(fleet, sale_id, wanted):
    eventually(lambda: done(fleet, "purchase", "show", sale_id)["state"] == wanted,
               f"{sale_id} is {wanted}")


# ---- what names no account ----

class Things:
    """What an account has, by the identifiers that alone name it."""

    def __init__(self, fleet, channel, receiver):
        account = channel.account_id
        self.account = account
        self.event = accepted(channel, "first")
        bill(fleet, account)
        self.pack = new_pack(fleet, account=account)
        self.sale, self.other = (new_purchase(fleet, account, self.pack) for _ in range(2))
        self.limit = fleet.admin("limit", "create", "--channel", channel.id, "--period", "day",
                                 "--max", "1000000", "--action", "warn")
        self.threshold = fleet.admin("threshold", "create", "--account", account, "--credits", "3")
        self.endpoint = new_endpoint(fleet, account, receiver.url)["endpoint_id"]
        self.certification = completed(channel, "things", 1)
        told(receiver, self.certification)
        (notice,) = [one for one in receiver.deliveries
                     if one.data.get("certification_id") == self.certification]
        self.notice = notice.id
        self.act = fleet.admin("audit", "list", "--account", account, "--limit", "1")["data"][0]["act_id"]
        self.segment = fleet.admin("segment", "list", "--channel", channel.id)["data"][0]["segment_id"]

    def words(self, channel):
        """Commands, of which each can be done."""
        return [
            ["purchase", "show", self.sale["sale_id"]],
            ["purchase", "pay", self.sale["sale_id"]],
            ["purchase", "cancel", self.other["sale_id"]],
            ["purchase", "list", "--account", self.account, "--after", self.sale["sale_id"]],
            ["pack", "show", self.pack["pack_id"]],
            ["pack", "withdraw", self.pack["pack_id"]],
            ["limit", "list", "--account", self.account],
            ["limit", "delete", self.limit["limit_id"]],
            ["threshold", "list", "--account", self.account],
            ["threshold", "delete", self.threshold["threshold_id"]],
            ["webhook", "show", self.endpoint],
            ["webhook", "list", "--account", self.account],
            ["webhook", "deliveries", self.endpoint],
            ["webhook", "attempts", self.endpoint, self.notice],
            ["webhook", "replay", self.notice, "--endpoint", self.endpoint],
            ["webhook", "replay", "--endpoint", self.endpoint, "--missed"],
            ["webhook", "disable", self.endpoint],
            ["notice", "show", self.notice],
            ["certification", "show", self.certification],
            ["segment", "show", self.segment],
            ["audit", "show", self.act],
            ["audit", "list", "--account", self.account],
            ["channel", "show", channel.id],
            ["channel", "list", "--account", self.account],
            ["channel", "configure", channel.id, "--name", "Another name"],
            ["usage", "--account", self.account],
            ["account", "overview", self.account],
            ["credits", "history", "--account", self.account],
            ["session", "list", "--account", self.account],
        ]


@HOW
def test_what_names_no_account_is_found_on_the_servers_that_are_there(fleet, channels, how):
    (lost, worker), (kept, _) = channels
    with Receiver() as receiver:
        things = {one: Things(fleet, one, receiver) for one in (lost, kept)}
        with away(worker, how):
            known_away(fleet, kept)
            for words in things[kept].words(kept):
                fleet.admin(*words)
            for words in things[lost].words(lost):
                not_done(fleet, *words)
            with pytest.raises(Refused, match="temporarily_unavailable"):  # it may be on that one
                fleet.admin("purchase", "show", "sal_" + "a" * 16)
        assert done(fleet, "purchase", "show", things[kept].sale["sale_id"])["state"] == "paid"
        assert done(fleet, "purchase", "show", things[lost].sale["sale_id"])["state"] == "pending"
        for words in things[lost].words(lost):
            done(fleet, *words)
        with pytest.raises(Refused, match="not_found"):
            fleet.admin("purchase", "show", "sal_" + "a" * 16)


@HOW
def test_what_is_made_there_is_numbered_and_on_record(fleet, channels, how):
    """Channels of accounts that are there, and accounts on servers that are."""
    (lost, worker), (kept, _) = channels
    account = kept.account_id
    pack = new_pack(fleet, account=account)
    bill(fleet, account)
    with away(worker, how):
        known_away(fleet, kept)
        made = [fleet.new_channel(account_id=account) for _ in range(2)]
        accounts = [fleet.new_account(7) for _ in range(4)]
        for words in (["limit", "create", "--channel", made[0].id, "--period", "day", "--max", "9",
                       "--action", "warn"],
                      ["threshold", "create", "--account", account, "--credits", "3"],
                      ["webhook", "create", "--account", account, "--url", "https://example.org/"],
                      ["purchase", "create", "--account", account, "--pack", pack["pack_id"]],
                      ["topup", "set", "--account", account, "--pack", pack["pack_id"], "--threshold", "5"],
                      ["user", "invite", "--account", account, "--email", "kept@example.org", "--role",
                       "owner"],
                      ["pack", "create", "--account", account, "--name", "Another", "--credits", "9",
                       "--price", "9.00", "--currency", "EUR"]):
            fleet.admin(*words)
        for channel in made:
            channel.live.register({}, "first").expect(201)
        acts = fleet.admin("audit", "list", "--account", account, "--limit", "7")["data"]
        assert [act["operation"] for act in acts][-1] == "limit create"
    for one in (*accounts, lost.account_id):
        assert done(fleet, "account", "show", one)["account_id"] == one
    accepted(lost, "afterwards")
    numbers = [row for (row,) in fleet.rows("SELECT channel FROM channels")]
    assert len(numbers) == len(set(numbers))
    more = fleet.new_channel()
    assert int(max(numbers, key=int)) < fleet.number(
        f"SELECT channel FROM channels WHERE channel_id = '{more.id}'")


def test_the_first_accounts_can_be_made_there(replicated, tmp_path):
    """What the last number was is known from the distribution on."""
    with new_fleet(replicated, tmp_path) as fleet, away(replicated.workers[0], "stopped"):
        eventually(lambda: findings(fleet), "it is said which one is away")

        def made():
            with contextlib.suppress(Refused):
                return fleet.new_account(7)
            return None
        accounts = [eventually(made, "an account is made") for _ in range(3)]
        channels_made = [fleet.new_channel(account_id=one).id for one in accounts]
        assert len(set(accounts)) == len(set(channels_made)) == 3


def test_a_providers_word_finds_its_sale(replicated, tmp_path):
    """By its reference alone, as a lost dispute has it."""
    provider = PaymentProvider()
    fleet = new_fleet(replicated, tmp_path, **provider.settings(),
                      payment__return_url="https://example.org/paid")
    with contextlib.closing(provider), fleet:
        (lost, worker), (kept, _) = one_on_each(replicated, fleet)
        fleet.secrets |= {provider.key, provider.secret}
        provider.webhook_url = fleet.nodes[0].public_url + "/payments/stripe/notices"
        sales, intents = {}, {}
        for one in (lost, kept):
            bill(fleet, one.account_id, customer="cus_" + one.account_id[4:])
            sale = new_purchase(fleet, one.account_id, new_pack(fleet, account=one.account_id))
            sales[one] = sale["sale_id"]
            intents[one] = provider.pay_page(sale["payment_url"].rpartition("/")[2])["id"]
            state(fleet, sales[one], "paid")
        with away(worker, "stopped"):
            known_away(fleet, kept)
            provider.notices = "hold"
            for one in (lost, kept):
                provider.lose_dispute(intents[one])
            of_lost, of_kept = provider.held
            assert provider.deliver(of_kept) == 200
            state(fleet, sales[kept], "reverted")
            assert provider.deliver(of_lost) == 503
        eventually(lambda: provider.deliver(of_lost) == 200, "it is reported again")
        state(fleet, sales[lost], "reverted")


# ---- what is of all accounts ----

LISTS = {"account": "account_id", "channel": "channel_id", "limit": "limit_id",
         "threshold": "threshold_id", "webhook": "endpoint_id", "purchase": "sale_id",
         "pack": "pack_id", "audit": "act_id"}


def listed(fleet, what):
    """The list, and what is said next to it."""
    told = fleet.nodes[0].run(what, "list", "--limit", "1000", "--json")
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout), told.stderr


def home(replicated, fleet, account):
    """The port of the server that has the account's rows; None: what is of no account."""
    number = f"(SELECT account FROM accounts WHERE account_id = '{account}')" if account else "0"
    return replicated.primary.number(
        "SELECT nodeport FROM citus_shards WHERE table_name = 'accounts'::regclass AND shardid = "
        f"get_shard_id_for_distribution_column('accounts', {number})", fleet.database)


@HOW
def test_lists_say_what_they_miss(replicated, fleet, channels, how):
    """Numbers over all accounts are refused."""
    (lost, worker), (kept, _) = channels
    with Receiver() as receiver:
        for one in (lost, kept):
            Things(fleet, one, receiver)
        new_pack(fleet)
        before = {what: listed(fleet, what)[0] for what in LISTS}
        accounts = {one["account_id"] for told in before.values() for one in told["data"]}
        there = {one for one in accounts if home(replicated, fleet, one) != worker.primary.port}
        with away(worker, how):
            known_away(fleet, kept)
            for what, column in LISTS.items():
                assert "incomplete" not in before[what]
                told, warning = listed(fleet, what)
                assert told["incomplete"] is True and "warning: the list may be incomplete" in warning, what
                wanted = [one[column] for one in before[what]["data"] if one["account_id"] in there]
                assert [one[column] for one in told["data"]] == wanted != [], what
            assert fleet.admin("session", "list")["data"] == []
            for words in (["usage"], ["store", "check"], ["audit", "export", "-"]):
                failed = fleet.nodes[0].run(*words)
                assert failed.returncode != 0 and failed.stdout == "", words
        assert done(fleet, "usage")["data"]


@HOW
def test_metrics_count_what_is_there(fleet, channels, how):
    """And tell that a server is away."""
    (lost, worker), (kept, _) = channels
    counts = ["notices_waiting", "notices_held", "webhooks_disabled"]
    with Receiver(answer=500) as receiver:
        for one in (lost, kept):
            endpoint = new_endpoint(fleet, one.account_id, receiver.url)["endpoint_id"]
            fleet.admin("webhook", "disable", endpoint)
            new_endpoint(fleet, one.account_id, receiver.url)
            completed(one, "one", accepted(one, "one")["sequence"])

        def counted():
            return [fleet.nodes[0].metric(name) for name in counts]
        both = eventually(lambda: (found := counted())[0] >= 2 and found, "deliveries wait")
        with away(worker, how):
            known_away(fleet, kept)
            assert counted() == [one / 2 for one in both]
            assert fleet.nodes[0].metric('readiness_findings{kind="shard"}') == 1
        eventually(lambda: counted() == both, "all is counted")


# ---- users ----

@HOW
def test_a_user_of_both_works_in_the_account_that_is_there(fleet, channels, how):
    (lost, worker), (kept, _) = channels
    email = "both@example.org"
    for one in (lost, kept):
        fleet.admin("account", "set", one.account_id, "--name", f"The {one.account_id}")
        fleet.admin("user", "invite", "--account", one.account_id, "--email", email, "--role", "owner")
    visitor = signed_in(fleet.nodes[0], email)
    with away(worker, how):
        known_away(fleet, kept)
        visitor.get("/console/channels")
        assert visitor.status == 200 and kept.id in visitor.body and lost.id not in visitor.body


# ---- work ----

def two_of_a_shard(fleet):
    """Two channels of accounts of the same shard, in the order of the accounts' numbers."""
    found = {}
    while True:
        channel = fleet.new_channel()
        shard = fleet.number("SELECT get_shard_id_for_distribution_column('accounts', account) FROM accounts "
                             f"WHERE account_id = '{channel.account_id}'")
        if shard in found:
            return found[shard], channel
        found[shard] = channel


def test_an_account_that_always_has_work_leaves_others_their_turn(replicated, tmp_path, monkeypatch):
    """A node considers one account of a shard at a time."""
    monkeypatch.setenv("TORTURE_SIZES", "work_accounts=1")
    with new_fleet(replicated, tmp_path) as fleet, Receiver(answer=500) as failing, Receiver() as receiver:
        first, last = two_of_a_shard(fleet)
        for one, its in ((first, failing), (last, receiver)):
            new_endpoint(fleet, one.account_id, its.url)
        told(failing, completed(first, "first", accepted(first, "first")["sequence"]))
        told(receiver, completed(last, "last", accepted(last, "last")["sequence"]))
