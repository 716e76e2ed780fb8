"""What one account may use at most, however many keys and channels it has."""

import time

import pytest

from client import Client, eventually
from program import Refused

pytestmark = pytest.mark.both_stores

LOOK = "/v1/account/balance"
FEE = 3


@pytest.fixture(scope="module")
def bounded(start):
    return start(rate__live=50, rate__test=10, certification__fee=FEE, seal__interval="1s")


def numbers(answer):
    return tuple(int(answer.headers[f"RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))


def sister(service, channel, mode="live"):
    return Client(service, service.ask_socket("key create", channel=channel.id, mode=mode)["key"])


def ask_all(clients, times):
    """How many requests were allowed, the refusals, and how long it took."""
    started = time.monotonic()
    answers = [client.get(LOOK) for _ in range(times) for client in clients]
    passed = time.monotonic() - started
    refused = [answer for answer in answers if answer.status == 429]
    return len(answers) - len(refused), refused, passed


def bounds(service, account):
    return service.admin("account", "show", account)["bounds"]


# ---- the rate ----

def test_forty_keys_have_no_more_than_their_account(bounded):
    """With a rate of 1/s for each key, all together have four times that."""
    channel = bounded.new_channel(rate=1)
    clients = [sister(bounded, channel) for _ in range(40)]
    allowed, refused, passed = ask_all(clients, 4)
    assert 16 <= allowed <= 16 + 4 * passed + 1
    refused[-1].expect(429, "rate_limited")
    assert "the keys of this account in total" in refused[-1].message
    assert int(refused[-1].headers["Retry-After"]) == 1
    assert numbers(refused[-1])[:2] == (16, 0)


def test_an_account_may_have_a_bound_of_its_own(bounded):
    channel = bounded.new_channel(**{"account-rate": 1})
    clients = [sister(bounded, channel) for _ in range(8)]
    # The bucket with fewer left is the one that answers tell of.
    assert numbers(clients[0].get(LOOK).expect(200))[:2] == (4, 3)
    allowed, refused, passed = ask_all(clients, 2)
    assert 3 <= allowed <= 3 + passed + 1
    answer = refused[-1].expect(429, "rate_limited")
    assert numbers(answer)[:2] == (4, 0)
    spanish = clients[0].get(LOOK, language="es")
    if spanish.status == 429:
        assert "las claves de esta cuenta en total" in spanish.message
    bounded.new_channel().live.get(LOOK).expect(200)  # another account does not notice

    bounded.admin("account", "set", channel.account_id, "--account-rate", "0")
    eventually(lambda: numbers(clients[1].get(LOOK))[0] == 200, "the general setting holds")


def test_one_key_alone_meets_its_own_bucket_first(bounded):
    channel = bounded.new_channel()
    assert numbers(channel.live.get(LOOK).expect(200)) == (200, 199, 1)


def test_what_the_account_refuses_costs_the_key_nothing(bounded):
    channel = bounded.new_channel(rate=1)
    clients = [sister(bounded, channel) for _ in range(5)]

    def refused():
        ask_all(clients, 4)  # uses up what the account has
        fresh = sister(bounded, channel)
        return fresh if fresh.get(LOOK).status == 429 else None
    one = eventually(refused, "the account's bucket is empty")
    bounded.admin("account", "set", channel.account_id, "--account-rate", "1000")

    def own_bucket():
        answer = one.get(LOOK)
        return answer if answer.status == 200 and numbers(answer)[0] == 4 else None
    # Asked more seldom than its own bucket fills.
    assert numbers(eventually(own_bucket, "its own bucket is the nearer one", pause=1.2))[1] >= 1


def test_test_keys_share_a_bucket_too(bounded):
    channel = bounded.new_channel()
    clients = [sister(bounded, channel, "test") for _ in range(8)]
    allowed, refused, passed = ask_all(clients, 10)
    assert 40 <= allowed <= 40 + 40 * passed + 1
    if refused:
        assert numbers(refused[-1])[0] in (10, 40)
    channel.live.get(LOOK).expect(200)  # live keys have another one


# ---- channels and keys ----

def refused(service, operation, **arguments):
    with pytest.raises(Refused) as told:
        service.ask_socket(operation, **arguments)
    assert "validation_error" in str(told.value)
    return str(told.value)


def test_channels_and_keys_are_bounded(bounded):
    account = bounded.new_account(channels=2, keys=3)
    channel = bounded.new_channel(account_id=account)  # with two keys
    assert bounds(bounded, account)["channels"] == {"most": 2, "own": 2, "used": 1}
    assert bounds(bounded, account)["keys"] == {"most": 3, "own": 3, "used": 2}
    create = {"name": "B", "declarant": "D", "modality": "content", "account": account}
    bounded.ask_socket("channel create", **create)
    assert "more channels: its limit is 2" in refused(bounded, "channel create", **create)
    third = bounded.ask_socket("key create", channel=channel.id, mode="live")["key_id"]
    assert "not counting revoked keys, is 3" in refused(bounded, "key create", channel=channel.id, mode="test")
    assert bounds(bounded, account)["keys"]["used"] == 3
    assert bounds(bounded, account)["channels"]["used"] == 2

    bounded.admin("key", "revoke", third)
    bounded.ask_socket("key create", channel=channel.id, mode="test")
    bounded.admin("account", "set", account, "--keys", "4", "--channels", "0")
    assert bounds(bounded, account)["channels"] == {"most": 1000, "own": None, "used": 2}
    bounded.ask_socket("channel create", **create)
    bounded.ask_socket("key create", channel=channel.id, mode="live")
    refused(bounded, "key create", channel=channel.id, mode="live")


def test_a_setting_reaches_those_without_a_bound_of_their_own(start):
    service = start(account__channels=2, account__keys=4, certification__per_day=0)
    account = service.new_account()
    channel, _ = (service.new_channel(account_id=account) for _ in range(2))
    refused(service, "key create", channel=channel.id, mode="live")
    refused(service, "channel create", name="B", declarant="D", modality="content", account=account)
    assert bounds(service, account)["certifications_per_day"] == {"most": None, "own": None, "used": 0}
    service.admin("account", "set", account, "--keys", "5")
    service.ask_socket("key create", channel=channel.id, mode="live")


def test_a_changed_bound_is_audited(bounded):
    account = bounded.new_account()
    bounded.admin("account", "set", account, "--account-rate", "9", "--channels", "8", "--keys", "7",
                  "--certifications-per-day", "6")
    (act,) = [act for act in bounded.admin("audit", "list", "--account", account)["data"]
              if act["operation"] == "account set"]
    shown = bounded.admin("audit", "show", act["act_id"])
    names = ("account_rate", "channels", "keys", "certifications_per_day")
    assert shown["before"] == {"account": dict.fromkeys(names)}
    assert shown["after"] == {"account": dict(zip(names, (9, 8, 7, 6)))}
    assert [bounds(bounded, account)[name]["most"] for name in names] == [9, 8, 7, 6]


# ---- certifications ----

def test_live_certifications_of_a_day_are_bounded(bounded, one_day):
    channel = bounded.new_channel(**{"certifications-per-day": 2})
    channel.live.register().expect(201)
    first = channel.live.certify(seq_from=1, seq_to=1, headers={"Idempotency-Key": "one"}).expect(202)
    again = channel.live.certify(seq_from=1, seq_to=1, headers={"Idempotency-Key": "one"})
    assert again.json["certification_id"] == first.json["certification_id"]
    channel.live.certify(seq_from=1, seq_to=1).expect(202)
    assert bounds(bounded, channel.account_id)["certifications_per_day"] == \
        {"most": 2, "own": 2, "used": 2}
    balance = channel.live.balance()["balance"]
    refused = channel.live.certify(seq_from=1, seq_to=1).expect(429, "rate_limited")
    assert "its daily limit is 2" in refused.message
    assert 0 < int(refused.headers["Retry-After"]) <= 86400
    assert channel.live.balance()["balance"] == balance, "nothing was charged"
    assert channel.live.certify(seq_from=1, seq_to=1, headers={"Idempotency-Key": "one"}) \
        .json["certification_id"] == first.json["certification_id"], "what was accepted is shown again"

    channel.test.register().expect(201)
    channel.test.certify(seq_from=1, seq_to=1).expect(202)  # those have a bound of their own
    assert bounds(bounded, channel.account_id)["certifications_per_day"]["used"] == 2
    bounded.admin("account", "set", channel.account_id, "--certifications-per-day", "3")
    channel.live.certify(seq_from=1, seq_to=1).expect(202)
    channel.live.certify(seq_from=1, seq_to=1).expect(429, "rate_limited")
