"""A restored copy is read-only: it sends, charges, seals and acknowledges nothing until it is resumed."""

import json
import time

import pytest

import signer_log
import stores
from client import Client, Refused, Service, eventually, run
from hooks import Receiver, add_thresholds, new_endpoint
from mail_server import MailServer
from money import bill, movements, new_pack, new_purchase, purchase
from payment_provider import PaymentProvider
from program import copy_keys

pytestmark = pytest.mark.both_stores

SCHEDULES = 4  # seconds in which each job would have looked several times


class Outside:
    """Everybody to whom something could be sent."""

    def __init__(self):
        self.receiver, self.mails, self.provider = Receiver(), MailServer(), PaymentProvider()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in (self.receiver, self.mails, self.provider):
            one.close()

    def settings(self):
        return {**self.mails.settings(), **self.provider.settings(), "seal__interval": "1s"}


def queue_mail(store, account_id):
    (number,), = store.rows("SELECT account FROM accounts WHERE account_id = "
                            + stores.text(account_id))
    values = json.dumps({"endpoint_id": "whk_1", "url": "https://example.org/"})
    store.change("INSERT INTO mails (account, mail_id, template, details, queued_at, next_at) VALUES "
                 f"({number}, 'mail_0000000000000001', 'endpoint_disabled', '{values}', 1, 1);")


def prepare(service, outside):
    """A notice, a payment, an event and a mail that wait, in a store that was made quiet."""
    channel = service.new_channel(credits=100, email="owner@example.com")
    channel.live.register({"n": 1}, "first").expect(201)
    purchase(service, "pay", new_purchase(service, channel.account_id, new_pack(service)))
    service.admin("credits", "add", channel.account_id, -10)
    assert service.admin("store", "quiet", "--reason", "to be copied")["quiet"]
    new_endpoint(service, channel.account_id, outside.receiver.url)
    add_thresholds(service, channel.account_id, 50)
    service.admin("credits", "add", channel.account_id, -96)
    bill(service, channel.account_id)
    service.admin("topup", "set", "--account", channel.account_id, "--threshold", 5, "--pack",
                  new_pack(service)["pack_id"], "--daily-max", 1)
    channel.live.register({"n": 2}, "second").expect(503, "temporarily_unavailable")
    return channel


def was_tried(store):
    """The notice has had one attempt, as one that met a dead endpoint."""
    store.change(
        "INSERT INTO webhook_attempts (account, endpoint, notice, attempt, at, duration_us)"
        " SELECT account, endpoint, notice, 1, 1700000000000000, 1 FROM webhook_deliveries;"
        " UPDATE webhook_deliveries SET attempts = 1, tries = 1;")


def nothing_was_sent(outside, channel):
    assert outside.receiver.deliveries == []
    assert outside.mails.messages == []
    assert outside.provider.requests == []
    (event,) = channel.get("/v1/events").expect(200).json["data"]
    assert event["timestamp"]["type"] == "pending", event


def expect_read_only(copy, channel, outside):
    status, text = copy.monitor("/readyz")
    assert status == 503 and not json.loads(text)["ready"]
    assert any("store wake" in reason for reason in json.loads(text)["reasons"]), text
    assert copy.metric("quiet") == 1
    time.sleep(SCHEDULES)
    nothing_was_sent(outside, channel)
    for answer in (channel.register({"n": 2}, "second"), channel.register_file(b"x" * 100, "third"),
                   channel.post("/v1/certifications", {"seq_from": 1, "seq_to": 1})):
        assert "acknowledges nothing" in answer.expect(503, "temporarily_unavailable").message
    endpoint = copy.admin("webhook", "list")["data"][0]["endpoint_id"]
    signed = len(signer_log.lines(copy.data))
    for words in (("webhook", "test", endpoint), ("signer", "rotate")):
        with pytest.raises(Refused, match="read-only copy"):
            copy.admin(*words)
    assert len(signer_log.lines(copy.data)) == signed


def test_a_restored_copy_sends_nothing_until_it_is_woken(start, tmp_path):
    with Outside() as outside:
        service = start(seal__interval="1h")
        prepared = prepare(service, outside)
        service.admin("store", "backup", tmp_path / "backup")
        assert service.stop() == 0
        copy = Service(tmp_path / "copy", prepared=False, rate__live=100000, rate__test=100000,
                       **outside.settings())
        copy.data.parent.mkdir()
        done = run("store", "restore", tmp_path / "backup", *copy.chosen())
        assert done.returncode == 0 and "store wake" in done.stdout, done.stderr
        copy.distribute()
        queue_mail(copy.store, prepared.account_id)
        copy_keys(service.data, copy.data)
        copy.start()
        try:
            channel = Client(copy, prepared.live_key["key"])
            expect_read_only(copy, channel, outside)
            told = copy.admin("store", "wake", "--dry-run")
            assert told["quiet"] and told["due"] == {
                "notices": 1, "mails": 1, "payments": 1, "certifications": 0}
            nothing_was_sent(outside, channel)
            assert not copy.admin("store", "wake")["quiet"]
            outside.receiver.expect(2)  # of the balance, and of the payment
            eventually(lambda: outside.mails.messages, "the mail is sent")
            eventually(lambda: movements(copy, prepared.account_id)[-1][1] == 10, "it is paid")
            (event,) = channel.get("/v1/events").expect(200).json["data"]
            channel.sealed(event["event_id"])
            assert copy.monitor("/readyz")[0] == 200 and copy.metric("quiet") == 0
            channel.register({"n": 2}, "second").expect(201)
            time.sleep(1)
            assert len(outside.receiver.deliveries) == 2 and len(outside.mails.messages) == 1
            channel.close()
        finally:
            copy.discard()


def test_the_setting_is_stronger_and_notices_can_be_skipped(start, tmp_path):
    """For copies that other tools made."""
    with Outside() as outside:
        service = start(seal__interval="1h")
        prepared = prepare(service, outside)
        service.settings["service.quiet"] = "true"
        assert service.stop() == 0
        was_tried(service.store)
        service.start()
        told = service.admin("store", "wake", "--skip-notices")
        assert told["quiet"] and told["by_setting"] and told["skipped_notices"] == 1
        prepared.live.register({"n": 2}, "second").expect(503)
        assert "service.quiet" in service.monitor("/readyz")[1]
        service.settings["service.quiet"] = "false"
        assert service.stop() == 0
        service.start()
        prepared.live.register({"n": 2}, "second").expect(201)
        (notice,) = service.admin("notice", "list", "--account", prepared.account_id)["data"][-1:]
        assert notice["failed"] == 1, "it can be replayed"
        assert outside.receiver.deliveries == []
        assert service.admin("store", "check")["valid"], "the totals count it"
