"""Refused certifications: one that the program's own verifier does not find valid, and more
than an account may have in progress."""

import pytest

import stores
from client import Service, eventually

pytestmark = pytest.mark.both_stores


def lines(service, event):
    return [line for line in service.log_lines() if line["event"] == event]


def damage(service):
    """The timestamp of the first event's round is in the place of the second's."""
    ((first,), (second,)) = service.store.rows(
        "SELECT DISTINCT round FROM segments WHERE chain > 0 ORDER BY round")
    service.store.change(
        "CREATE TABLE kept_rounds AS SELECT * FROM seal_rounds;"
        "UPDATE seal_rounds SET token = kept.token, token_hash = kept.token_hash, response_head = "
        f"kept.response_head FROM kept_rounds AS kept WHERE kept.round = {first} "
        f"AND seal_rounds.round = {second}")


def mend(service):
    service.store.change(
        "UPDATE seal_rounds SET token = kept.token, token_hash = kept.token_hash, response_head = "
        "kept.response_head FROM kept_rounds AS kept WHERE kept.round = seal_rounds.round;"
        "UPDATE certifications SET next_attempt_at = 0 WHERE status = 'processing'")


def tried_for_an_hour(service):
    service.store.change("UPDATE certifications SET attempts = 30, own_failures = 29, "
                         "next_attempt_at = 0, requested_at = requested_at - 3600000000 "
                         "WHERE status = 'processing'")


@pytest.mark.parametrize("cause", ["passes", "stays"])
def test_what_does_not_verify_is_never_handed_out(tmp_path, cause):
    service = Service(tmp_path, rate__live=100000, seal__interval="1s").start()
    try:
        channel = service.new_channel()
        for _ in range(2):
            event = channel.live.register().expect(201).json
            channel.live.sealed(event["event_id"])
        service.stop()
        damage(service)
        service.start()
        accepted = channel.live.certify(seq_from=2, seq_to=2).expect(202).json
        identifier = accepted["certification_id"]
        eventually(lambda: len(lines(service, "certification_delayed")) >= 3, "it is retried")
        told = lines(service, "certification_delayed")[-1]
        assert told["level"] == "warning" and "does not verify" in told["cause"]
        record = channel.live.certification(identifier)
        assert record["status"] == "processing" and record["evidence_url"] is None
        service.stop()
        (mend if cause == "passes" else tried_for_an_hour)(service)
        service.start()
        record = channel.live.settled(identifier)
        if cause == "passes":
            assert record["status"] == "completed"
            assert service.stop() == 0
            assert not lines(service, "certification_failed")
            return
        assert record["status"] == "failed"
        assert record["evidence_url"] is None and record["reports"] == []
        (told,) = service.logged(lambda line: line["event"] == "certification_failed")
        assert told["certification_id"] == record["certification_id"]
        assert told["incident_id"].startswith("inc_")
        assert "does not verify" in told["cause"] and "rounds" in told["cause"]
        assert service.store.rows("SELECT count(*) FROM issued_files") == [["0"]]
        assert channel.live.certified(seq_from=1, seq_to=1)["status"] == "completed"
        assert service.stop() == 0
    finally:
        service.discard()


def test_an_accounts_open_certifications_are_bounded(tmp_path):
    """Those of a chain that cannot be sealed stay under way."""
    service = Service(tmp_path, rate__live=100000, certification__open_per_account=2,
                      seal__interval="1h").start()
    try:
        service.acts_sealed()  # what is registered now is sealed by the next start at the earliest
        channel, other = service.new_channel(), service.new_channel()
        channel.live.register().expect(201)
        service.stop()
        service.store.change(f"UPDATE {stores.EVENTS} SET chain_hash = {stores.blob(b'short')}")
        service.settings["seal.interval"] = "1s"
        service.start()
        for _ in range(2):
            channel.live.certify(seq_from=1, seq_to=1).expect(202)
        refused = channel.live.certify(seq_from=1, seq_to=1).expect(429, "rate_limited")
        assert int(refused.headers["Retry-After"]) > 0 and "in processing" in refused.message
        other.live.register().expect(201)
        for _ in range(3):
            assert other.live.certified(seq_from=1, seq_to=1)["status"] == "completed"
        channel.test.register().expect(201)
        assert channel.test.certified(seq_from=1, seq_to=1)["status"] == "completed"
        assert service.stop() == 0
    finally:
        service.discard()
