"""Notices that only endpoints receive whose types name them: events that a round sealed, and evidence records."""

import pytest

from client import eventually
from hooks import Receiver, add_thresholds, deliveries, new_endpoint
from test_webhooks import described, judge

pytestmark = pytest.mark.both_stores

BOTH = "event.sealed,certification.evidence_ready"


@pytest.fixture(scope="module")
def hooked(start):
    return start(webhook__schedule="1ms,2ms", webhook__timeout="60s", seal__interval="300ms",
                 evidence__interval="300ms")


@pytest.fixture
def receiver(hooked):
    with Receiver() as running:
        yield running
        running.check()
        description = described(hooked)
        for delivery in running.deliveries:
            judge(description, delivery)


def notices(service, account_id, *flags):
    return service.admin("notice", "list", "--account", account_id, *flags)["data"]


def segments(receiver):
    """Of all notices, in the order of channels and events."""
    found = [part for one in receiver.deliveries if one.type == "event.sealed" for part in one.data["segments"]]
    return sorted(found, key=lambda part: (part["channel_id"], part["seq_from"]))


def test_each_event_is_in_one_notice_after_it_was_sealed(hooked, receiver):
    channel = hooked.new_channel()
    second = hooked.new_channel(account_id=channel.account_id)
    stranger = hooked.new_channel()
    endpoint = new_endpoint(hooked, channel.account_id, receiver.url, "--types", "event.sealed")
    receiver.secrets = [endpoint["secret"]]
    registered = 0
    for count in (3, 1, 2):
        for one in (channel, second):
            for _ in range(count):
                one.live.register().expect(201)
        registered += 2 * count
        channel.test.register().expect(201)  # is never sealed
        stranger.live.register().expect(201)
        eventually(lambda count=registered: sum(part["event_count"] for part in segments(receiver)) >= count,
                   "notices tell of them")
    for one in (channel, second):
        parts = [part for part in segments(receiver) if part["channel_id"] == one.id]
        assert parts[0]["seq_from"] == 1 and parts[-1]["seq_to"] == 6
        for before, after in zip(parts, parts[1:]):
            assert after["seq_from"] == before["seq_to"] + 1
        assert all(part["event_count"] == part["seq_to"] - part["seq_from"] + 1 for part in parts)
        sealed = one.live.get("/v1/events?order=asc").expect(200).json["data"]
        times = {delivery.data["sealed_at"] for delivery in receiver.deliveries}
        for event in sealed:
            (part,) = [part for part in parts if part["seq_from"] <= event["sequence"] <= part["seq_to"]]
            assert event["timestamp"]["sealed_at"] in times, event
            assert event["timestamp"]["reference"] == part["segment_id"]
    assert {part["channel_id"] for part in segments(receiver)} == {channel.id, second.id}
    assert {delivery.record["mode"] for delivery in receiver.deliveries} == {"live"}
    assert {delivery.type for delivery in receiver.deliveries} == {"event.sealed"}
    for one in (channel, second, stranger):
        one.close()


def certify(channel):
    """A live certification whose evidence record is available."""
    asked = channel.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]

    def recorded():
        found = channel.live.certification(asked)
        found = found.json if hasattr(found, "json") else found
        return found if found["evidence_record_url"] else None
    return eventually(recorded, "it has an evidence record")


def test_an_evidence_record_has_one_notice_once_it_is_available(hooked, receiver):
    channel = hooked.new_channel()
    endpoint = new_endpoint(hooked, channel.account_id, receiver.url, "--types", "certification.evidence_ready")
    receiver.secrets = [endpoint["secret"]]
    channel.live.register().expect(201)
    record = certify(channel)
    receiver.expect(1)
    (told,) = receiver.deliveries
    assert (told.type, told.record["mode"]) == ("certification.evidence_ready", "live")
    assert told.data == {"certification_id": record["certification_id"], "channel_id": channel.id,
                         "status": "completed", "event_count": 1, "verification_code": record["verification_code"],
                         "evidence_record_since": record["evidence_record_since"]}
    second = certify(channel)
    receiver.expect(2)
    assert [one.data["certification_id"] for one in receiver.deliveries] == \
        [record["certification_id"], second["certification_id"]]
    channel.close()


def test_an_endpoint_for_all_types_receives_what_it_always_received(hooked, receiver):
    """Neither does a replay of what it missed give it more, nor has its account any such notice."""
    channel = hooked.new_channel(credits=1000)
    alone = hooked.new_channel(credits=1000)
    both = [new_endpoint(hooked, one.account_id, receiver.url) for one in (channel, alone)]
    with Receiver() as other:
        named = new_endpoint(hooked, channel.account_id, other.url, "--types", BOTH)
        other.secrets = [named["secret"]]
        for one in (channel, alone):
            one.live.register().expect(201)
            certify(one)
        eventually(lambda: {told.type for told in other.deliveries} == set(BOTH.split(",")),
                   "the other one receives both")
        other.check()
    for one, endpoint in zip((channel, alone), both):
        add_thresholds(hooked, one.account_id, 500)
        hooked.admin("credits", "add", one.account_id, -900)
        eventually(lambda endpoint=endpoint: "balance.low" in {told["type"] for told in deliveries(hooked, endpoint)},
                   "a later notice")
        queued = hooked.admin("webhook", "replay", "--missed", "--endpoint", endpoint["endpoint_id"])
        assert queued["queued"] == 0
        assert {told["type"] for told in deliveries(hooked, endpoint)} == {"certification.completed", "balance.low"}
        assert not notices(hooked, one.account_id, "--endpoint", endpoint["endpoint_id"], "--status", "missed")
    assert {told["type"] for told in notices(hooked, alone.account_id)} == {"certification.completed", "balance.low"}
    assert set(BOTH.split(",")) < {told["type"] for told in notices(hooked, channel.account_id)}
    assert not set(BOTH.split(",")) & {told.type for told in receiver.deliveries}
    channel.close()
    alone.close()


def test_nothing_is_written_while_no_enabled_endpoint_names_it(hooked, receiver):
    channel = hooked.new_channel()
    endpoint = new_endpoint(hooked, channel.account_id, receiver.url, "--types", BOTH)
    hooked.admin("webhook", "disable", endpoint["endpoint_id"])
    channel.live.register().expect(201)
    certify(channel)
    assert {one["type"] for one in notices(hooked, channel.account_id)} == {"certification.completed"}
    hooked.admin("webhook", "enable", endpoint["endpoint_id"])
    hooked.admin("webhook", "update", endpoint["endpoint_id"], "--types", "all")
    channel.live.register().expect(201)
    certify(channel)
    assert {one["type"] for one in notices(hooked, channel.account_id)} == {"certification.completed"}
    channel.close()


@pytest.mark.parametrize("channels, counts", [(2, [2]), (5, [2, 2, 1]), (8, [2, 2, 2])])
def test_an_account_with_many_channels_gets_few_notices(start, receiver, channels, counts):
    """Here with two channels in a notice, and three notices of a round, in place of 100 and 50."""
    service = start(seal__interval="1h", webhook__timeout="60s",
                    environment={"TORTURE_SIZES": "sealed_of_notice=2,sealed_notices=3"})
    first = service.new_channel()
    every = [first] + [service.new_channel(account_id=first.account_id) for _ in range(channels - 1)]
    endpoint = new_endpoint(service, first.account_id, receiver.url, "--types", "event.sealed")
    receiver.secrets = [endpoint["secret"]]
    for channel in every:
        channel.live.register().expect(201)
    first.live.certified(seq_from=1, seq_to=1)  # it cannot wait for the next round
    receiver.expect(len(counts))
    found = [one["notice_id"] for one in notices(service, first.account_id, "--type", "event.sealed")]
    assert len(found) == len(counts)
    assert sorted((len(one.data["segments"]) for one in receiver.deliveries), reverse=True) == counts
    assert len({part["channel_id"] for part in segments(receiver)}) == sum(counts), "each in one of them"
    assert len({one.data["sealed_at"] for one in receiver.deliveries}) == 1
    for channel in every:
        channel.close()


def test_unknown_types_are_refused_with_all_that_exist(hooked, receiver):
    account_id = hooked.new_account()
    done = hooked.run("webhook", "create", "--account", account_id, "--url", receiver.url, "--types", "event.seal")
    assert done.returncode != 0 and all(name in done.stderr for name in BOTH.split(","))
