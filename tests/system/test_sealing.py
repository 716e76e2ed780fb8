"""From pending to batch, and the proof of each event computed independently of the service."""

import pathlib
import subprocess

import pytest

import evidence
from client import EVENT, TIME

pytestmark = pytest.mark.both_stores

PROOF = {"previous_chain_hash", "config_hash"}
SEALED_PROOF = PROOF | {"segment", "path", "round"}
SEGMENT = {"segment_id", "first_sequence", "last_sequence", "seal_document", "root"}
ROUND = {"root", "authority", "kind", "sealed_at", "token"}
SEAL = {"chain", "chain_hash_before", "chain_hash_last", "channel_id", "clock", "count",
        "first_sequence", "last_sequence", "previous_seal_hash", "previous_token_hash",
        "segment_id", "v"}


def config_of(client, event):
    versions = client.get("/v1/channel").json["config_versions"]
    return next(each for each in versions if each["version"] == event["config_version"])


@pytest.fixture(scope="module")
def sealed(service):
    """Twelve sealed events in several segments, under two configurations."""
    channel = service.new_channel()
    channel.events = []
    for count in (1, 3, 8):
        for n in range(count):
            last = channel.live.register({"n": n}, occurred_at="2026-01-31T09:30:00Z") \
                .expect(201).json
        channel.live.sealed(last["event_id"])
        if count == 3:
            service.admin("channel", "configure", channel.id, "--declarant", "Another \u00e9",
                          "--description", "A \"text\" with\nlines", "--supplementary-info",
                          "\u20ac")
    channel.events = [channel.live.event(event["event_id"])
                      for event in channel.live.walk("/v1/events", 100)]
    yield channel
    channel.close()


def test_an_event_is_pending_until_its_segment_is_sealed(channel):
    event = channel.live.register().expect(201).json
    assert event["timestamp"] == {"type": "pending", "reference": None, "sealed_at": None}
    done = channel.live.sealed(event["event_id"])
    timestamp = done["timestamp"]
    assert timestamp["reference"].startswith("seg_")
    assert TIME.fullmatch(timestamp["sealed_at"])
    segments = channel.service.admin("segment", "list", "--channel", channel.id)["data"]
    assert [segment["segment_id"] for segment in segments] == [timestamp["reference"]]
    for name in EVENT - {"timestamp"}:
        assert done[name] == event[name]


def test_a_pending_events_proof_is_its_place_in_the_chain(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    first = channel.live.register({"a": 1}).expect(201).json
    second = channel.live.register({"b": 1}).expect(201).json
    proofs = [channel.live.event(event["event_id"])["proof"] for event in (first, second)]
    assert [set(proof) for proof in proofs] == [PROOF, PROOF]
    assert proofs[1]["previous_chain_hash"] == first["chain_hash"]
    for event, proof in zip((first, second), proofs):
        digest = evidence.config_hash(channel.id, config_of(channel.live, event))
        assert proof["config_hash"] == digest
        record = evidence.event_record(event, digest, proof["previous_chain_hash"])
        assert evidence.sha256(record) == event["chain_hash"]


def test_a_test_event_is_chained_too_and_never_sealed(channel):
    events = [channel.test.register({"n": n}).expect(201).json for n in range(3)]
    channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    previous = None
    for event in events:
        read = channel.test.event(event["event_id"])
        assert read["timestamp"] == {"type": "simulated", "reference": None, "sealed_at": None}
        proof = read["proof"]
        assert set(proof) == PROOF
        digest = evidence.config_hash(channel.id, config_of(channel.test, event))
        record = evidence.event_record(event, digest, proof["previous_chain_hash"])
        assert evidence.sha256(record) == event["chain_hash"]
        assert previous is None or proof["previous_chain_hash"] == previous
        previous = event["chain_hash"]


def test_the_proof_leads_from_the_declared_facts_to_the_authoritys_token(sealed, tmp_path):
    trust = sealed.service.data / "trust.pem"
    for event in sealed.events:
        proof = event["proof"]
        assert set(proof) == SEALED_PROOF
        assert set(proof["segment"]) == SEGMENT and set(proof["round"]) == ROUND
        assert proof["segment"]["segment_id"] == event["timestamp"]["reference"]
        assert proof["round"]["sealed_at"] == event["timestamp"]["sealed_at"]
        assert proof["round"]["kind"] == "development"
        evidence.check_proof(event, proof, config_of(sealed.live, event), trust, tmp_path)


def test_each_event_holds_the_chain_hash_of_the_one_before(sealed):
    for before, event in zip(sealed.events, sealed.events[1:]):
        assert event["proof"]["previous_chain_hash"] == before["chain_hash"]


def test_a_segments_tree_has_its_events_and_its_seal_document_as_leaves(sealed):
    chain_hash = {event["sequence"]: event["chain_hash"] for event in sealed.events}
    chain_hash[0] = sealed.events[0]["proof"]["previous_chain_hash"]
    previous_seal, expected, seen = None, 1, set()
    for event in sealed.events:
        segment = event["proof"]["segment"]
        first, last = segment["first_sequence"], segment["last_sequence"]
        assert first <= event["sequence"] <= last
        if segment["segment_id"] in seen:
            continue
        seen.add(segment["segment_id"])
        assert first == expected, "segments follow each other without gaps"
        expected = last + 1
        seal = segment["seal_document"]
        assert set(seal) == SEAL
        assert set(seal["clock"]) == {"synchronized", "max_error_us", "source"}
        assert (seal["v"], seal["chain"], seal["channel_id"]) == (1, "live", sealed.id)
        assert (seal["first_sequence"], seal["last_sequence"]) == (first, last)
        assert seal["count"] == last - first + 1
        assert seal["segment_id"] == segment["segment_id"]
        assert seal["chain_hash_before"] == chain_hash[first - 1]
        assert seal["chain_hash_last"] == chain_hash[last]
        assert seal["previous_seal_hash"] == previous_seal
        previous_seal = evidence.sha256(evidence.canonical(seal))
        leaves = [chain_hash[n] for n in range(first, last + 1)] + [previous_seal]
        assert evidence.tree_root(leaves) == segment["root"]
    assert len(seen) >= 3


def test_a_forged_event_has_no_proof(sealed, tmp_path):
    event = dict(sealed.events[4])
    proof, trust = event.pop("proof"), sealed.service.data / "trust.pem"
    config = config_of(sealed.live, event)
    for name, value in (("received_at", "2001-01-01T00:00:00.000000Z"), ("client_ref", "other"),
                        ("hash", "0" * 64), ("sequence", 99), ("occurred_at", None)):
        with pytest.raises(AssertionError):
            evidence.check_proof({**event, name: value}, proof, config, trust, tmp_path)
    with pytest.raises(AssertionError):
        evidence.check_proof(event, proof, {**config, "declarant": "Someone else"}, trust, tmp_path)
    evidence.check_proof(event, proof, config, trust, tmp_path)


def test_the_trust_file_holds_roots_that_openssl_reads(service):
    trust = pathlib.Path(service.data / "trust.pem")
    text = trust.read_text()
    assert text.count("BEGIN CERTIFICATE") >= 1
    assert "PRIVATE KEY" not in text
    done = subprocess.run(["openssl", "verify", "-CAfile", trust, trust], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_token_is_asked_for_by_round_and_not_by_event(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    for n in range(300):
        channel.live.register({"n": n}).expect(201)
    done = channel.live.certified(seq_from=1, seq_to=300)
    assert done["status"] == "completed"
    segments = service.admin("segment", "list", "--channel", channel.id)["data"]
    assert len(segments) == 1
    assert (segments[0]["first_sequence"], segments[0]["last_sequence"]) == (1, 300)
