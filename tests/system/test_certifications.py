"""Certifications: ranges, acceptance, fees, issuance, failure, records and languages."""

import concurrent.futures
import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import signal
import time
import zipfile

import pytest

from client import CERTIFICATION, HASH, PART, RANGE, REPORT, TIME, Client, eventually

pytestmark = pytest.mark.both_stores

FUTURE, PAST = "2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"


def check_certification(record, mode, modality="content"):
    """Every member, its type, and what its status promises."""
    assert set(record) == CERTIFICATION
    marker = "-TEST" if mode == "test" else ""
    year = record["requested_at"][:4]
    assert re.fullmatch(rf"CERT{marker}-{year}-\d{{7}}", record["certification_id"])
    assert record["channel_id"].startswith("chn_")
    assert record["status"] in ("processing", "completed", "failed")
    assert TIME.fullmatch(record["requested_at"])
    assert set(record["range"]) == RANGE
    by_time = record["range"]["from"] is not None
    for name in ("from", "to"):
        assert (record["range"][name] is not None) == by_time
        assert not by_time or TIME.fullmatch(record["range"][name])
    for name in ("seq_from", "seq_to"):
        assert (record["range"][name] is None) == by_time
        assert by_time or type(record["range"][name]) is int
    assert type(record["event_count"]) is int and record["event_count"] >= 1
    assert record["config_versions_in_range"] == sorted(set(record["config_versions_in_range"]))
    assert all(type(version) is int for version in record["config_versions_in_range"])
    assert record["mode"] == mode
    if record["status"] == "processing":
        assert record["progress"] is None or 0 <= record["progress"] <= 1
        assert record["completed_at"] is None
    else:
        assert record["progress"] is None or record["progress"] == 1
        assert TIME.fullmatch(record["completed_at"])
        assert record["completed_at"] >= record["requested_at"]
    if record["status"] != "completed":
        assert record["reports"] == record["content_parts"] == []
        assert record["report_url"] is record["evidence_url"] is record["verification_code"] is None
        assert record["evidence_record_url"] is record["evidence_record_sha256"] is None
        return
    assert re.fullmatch(rf"SVC{marker}-{year}-[0-9A-Z]{{4}}-[0-9A-Z]{{4}}",
                        record["verification_code"])
    assert sorted(report["languages"] for report in record["reports"]) == [["en"], ["es"]]
    for report in record["reports"]:
        assert set(report) == REPORT and HASH.fullmatch(report["sha256"])
    assert record["report_url"] and record["evidence_url"]
    assert bool(record["content_parts"]) == (modality == "content")
    for number, part in enumerate(record["content_parts"], 1):
        assert set(part) == PART and HASH.fullmatch(part["sha256"])
        assert part["name"] == f"content-part-{number:03}.zip"
        assert type(part["bytes"]) is int and 0 < part["bytes"] <= 10 ** 9


@pytest.fixture(scope="module")
def filled(service):
    """Five live and five test events."""
    channel = service.new_channel(credits=1000)
    channel.events = {"live": [], "test": []}
    for mode, events in channel.events.items():
        for n in range(5):
            events.append(channel.client(mode).register({"n": n}).expect(201).json)
            time.sleep(0.002)
    yield channel
    channel.close()


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_certification_is_accepted_at_once_and_issued_later(filled, mode):
    client = filled.client(mode)
    accepted = client.certify(seq_from=2, seq_to=4).expect(202).json
    check_certification(accepted, mode)
    assert accepted["range"] == {"from": None, "to": None, "seq_from": 2, "seq_to": 4}
    assert accepted["event_count"] == 3
    assert accepted["config_versions_in_range"] == [1]
    assert accepted["channel_id"] == filled.id
    done = client.settled(accepted["certification_id"])
    check_certification(done, mode)
    assert done["status"] == "completed"
    for name in ("certification_id", "channel_id", "requested_at", "range", "event_count", "mode",
                 "config_versions_in_range"):
        assert done[name] == accepted[name], name
    if mode == "live":
        for event in filled.events["live"][1:4]:
            timestamp = client.event(event["event_id"])["timestamp"]
            assert timestamp["type"] == "batch", "issuance had every event sealed first"
            assert timestamp["sealed_at"] <= done["completed_at"]


def test_a_hash_only_channel_has_no_content_parts(hash_channel):
    for client, mode in ((hash_channel.live, "live"), (hash_channel.test, "test")):
        client.register_hash("0" * 64).expect(201)
        check_certification(client.certified(seq_from=1, seq_to=1), mode, "hash_only")


@pytest.mark.parametrize("mode", ["live", "test"])
def test_a_range_by_reception_time_includes_its_start_and_excludes_its_end(filled, mode):
    times = [event["received_at"] for event in filled.events[mode]]
    accepted = filled.client(mode).certify(start=times[1], to=times[4]).expect(202).json
    assert accepted["range"] == {"from": times[1], "to": times[4], "seq_from": None,
                                 "seq_to": None}
    assert accepted["event_count"] == len([each for each in times if times[1] <= each < times[4]])
    check_certification(accepted, mode)


def test_a_future_end_is_answered_as_it_was_sent_and_cut_at_the_moment_of_the_request(channel):
    for n in range(3):
        channel.test.register({"n": n}).expect(201)
    accepted = channel.test.certify(start=PAST, to="2999-01-01T02:00:00.5+02:00").expect(202).json
    channel.test.register({"late": True}).expect(201)
    assert accepted["range"]["to"] == "2999-01-01T00:00:00.500000Z"
    assert accepted["range"]["from"] == "2001-01-01T00:00:00.000000Z"
    assert accepted["event_count"] == 3
    assert channel.test.settled(accepted["certification_id"])["event_count"] == 3


NO_RANGES = {
    "nothing": {},
    "half of the times": {"from": PAST},
    "the other half of the times": {"to": FUTURE},
    "half of the numbers": {"seq_from": 1},
    "the other half of the numbers": {"seq_to": 1},
    "both pairs": {"from": PAST, "to": FUTURE, "seq_from": 1, "seq_to": 1},
    "one and a half pairs": {"from": PAST, "to": FUTURE, "seq_from": 1},
    "half of each": {"from": PAST, "seq_to": 2},
    "numbers from 0": {"seq_from": 0, "seq_to": 1},
    "negative numbers": {"seq_from": -1, "seq_to": 1},
    "inverted numbers": {"seq_from": 3, "seq_to": 2},
    "numbers beyond the last event": {"seq_from": 1, "seq_to": 6},
    "numbers all beyond the last event": {"seq_from": 6, "seq_to": 7},
    "huge numbers": {"seq_from": 1, "seq_to": 9007199254740991},
    "numbers as text": {"seq_from": "1", "seq_to": "2"},
    "fractions": {"seq_from": 1.5, "seq_to": 2.5},
    "a number that is true": {"seq_from": True, "seq_to": 2},
    "inverted times": {"from": FUTURE, "to": PAST},
    "times that are the same": {"from": PAST, "to": PAST},
    "times before the first event": {"from": PAST, "to": "2001-01-02T00:00:00Z"},
    "times after the last event": {"from": "2998-01-01T00:00:00Z", "to": FUTURE},
    "a time without an offset": {"from": "2001-01-01T00:00:00", "to": FUTURE},
    "a date": {"from": "2001-01-01", "to": FUTURE},
    "a leap second": {"from": "2016-12-31T23:59:60Z", "to": FUTURE},
    "times as numbers": {"from": 0, "to": 4000000000},
    "an unknown member": {"seq_from": 1, "seq_to": 2, "language": "es"},
}


@pytest.mark.parametrize("body", NO_RANGES.values(), ids=NO_RANGES.keys())
@pytest.mark.parametrize("mode", ["live", "test"])
def test_what_is_no_range_is_refused(filled, mode, body):
    client = filled.client(mode)
    before = len(client.walk("/v1/certifications", 500))
    client.post("/v1/certifications", body).expect(400, "validation_error")
    assert len(client.walk("/v1/certifications", 500)) == before


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b'{"seq_from":1,"seq_from":1,"seq_to":2}',
    b'{"seq_from":1,"seq_to":2}x', b'{"seq_from":1.0,"seq_to":2}', b'{"seq_from":1,"seq_to":\xff}',
])
def test_a_body_that_is_not_one_json_object_is_refused(filled, body):
    headers = {"Content-Type": "application/json"}
    filled.live.post("/v1/certifications", body, headers=headers).expect(400, "validation_error")
    headers = {"Content-Type": "text/plain"}
    body = b'{"seq_from":1,"seq_to":2}'
    filled.live.post("/v1/certifications", body, headers=headers).expect(400, "validation_error")
    filled.live.post("/v1/certifications", body).expect(400, "validation_error")


def test_a_chain_without_events_has_nothing_to_certify(channel):
    for client in (channel.live, channel.test):
        client.certify(seq_from=1, seq_to=1).expect(400, "validation_error")
        client.certify(start=PAST, to=FUTURE).expect(400, "validation_error")


def test_the_configurations_of_a_range_are_told(channel):
    service = channel.service
    channel.test.register({"n": 1}).expect(201)
    for number in (2, 3, 4):
        service.admin("channel", "configure", channel.id, "--name", f"Name {number}")
        if number != 3:
            event = channel.test.register({"n": number}).expect(201).json
            assert event["config_version"] == number
    done = channel.test.certified(seq_from=1, seq_to=3)
    assert done["config_versions_in_range"] == [1, 2, 4]
    assert channel.test.certified(seq_from=2, seq_to=2)["config_versions_in_range"] == [2]


def test_numbers_and_codes_are_never_given_twice(filled):
    done = [filled.test.certified(seq_from=1, seq_to=1) for _ in range(3)]
    assert len({record["certification_id"] for record in done}) == 3
    assert len({record["verification_code"] for record in done}) == 3


def test_a_certification_that_is_not_the_channels_is_not_found(service, filled):
    done = filled.live.certified(seq_from=1, seq_to=1)
    target = f"/v1/certifications/{done['certification_id']}"
    other = service.new_channel(account_id=filled.account_id)
    for client in (filled.test, other.live, other.test):
        client.get(target).expect(404, "not_found")
    filled.live.get(target.lower()).expect(404, "not_found")
    filled.live.get("/v1/certifications/CERT-2026-9999999").expect(404, "not_found")


def test_the_report_url_follows_the_language_of_whoever_reads(filled):
    done = filled.test.certified(seq_from=1, seq_to=2)
    urls = {report["languages"][0]: report for report in done["reports"]}
    for language, wanted in (("es", "es"), ("en", "en"), (None, "en"), ("fr, es;q=0.2", "es"),
                             ("de", "en")):
        record = filled.test.certification(done["certification_id"], language=language)
        report = filled.test.download(record["report_url"]).expect(200)
        assert hashlib.sha256(report.body).hexdigest() == urls[wanted]["sha256"]
        listed = filled.test.get("/v1/certifications", query={"limit": 500},
                                 language=language).json["data"]
        mine = next(item for item in listed
                    if item["certification_id"] == done["certification_id"])
        content = filled.test.download(mine["report_url"]).body
        assert hashlib.sha256(content).hexdigest() == urls[wanted]["sha256"]


def test_the_language_of_the_request_does_not_bind_the_reader(filled):
    accepted = filled.test.certify(seq_from=1, seq_to=1, language="es").expect(202).json
    done = filled.test.settled(accepted["certification_id"])
    english = next(report for report in done["reports"] if report["languages"] == ["en"])
    report = filled.test.download(done["report_url"]).body
    assert hashlib.sha256(report).hexdigest() == english["sha256"]


def test_reports_evidence_and_parts_have_the_digests_and_sizes_they_are_listed_with(filled):
    done = filled.live.certified(seq_from=1, seq_to=5)
    for report in done["reports"]:
        body = filled.live.download(report["url"]).expect(200).body
        assert body.startswith(b"%PDF-")
        assert hashlib.sha256(body).hexdigest() == report["sha256"]
    for part in done["content_parts"]:
        body = filled.live.download(part["url"]).expect(200).body
        assert len(body) == part["bytes"]
        assert hashlib.sha256(body).hexdigest() == part["sha256"]
    assert filled.live.download(done["evidence_url"]).expect(200).body.startswith(b"PK\x03\x04")


def test_parts_made_beside_the_archive_hold_what_it_lists(service):
    """Long enough that both are made at the same time."""
    channel = service.new_channel(credits=1000)

    def register(numbers):
        with Client(service, channel.test_key["key"]) as client:
            for n in numbers:
                client.register({"n": n}).expect(201)
    with concurrent.futures.ThreadPoolExecutor(8) as several:
        list(several.map(register, (range(first, 2000, 8) for first in range(8))))
    done = channel.test.certified(seq_from=1, seq_to=2000)
    (part,) = done["content_parts"]
    archive = zipfile.ZipFile(io.BytesIO(channel.test.download(done["evidence_url"]).body))
    content = zipfile.ZipFile(io.BytesIO(channel.test.download(part["url"]).body))
    (name,) = [name for name in archive.namelist() if name.startswith("events/")]
    for line in gzip.decompress(archive.read(name)).splitlines():
        event = json.loads(line)
        payload = content.read(f"content/{event['sequence']:012}.json")
        assert hashlib.sha256(payload).hexdigest() == event["hash"]
    channel.close()


def test_the_same_range_can_be_certified_again(filled):
    first = filled.test.certified(seq_from=1, seq_to=5)
    second = filled.test.certified(seq_from=1, seq_to=5)
    assert first["certification_id"] != second["certification_id"]
    assert first["verification_code"] != second["verification_code"]


def test_a_hash_only_and_a_content_range_may_hold_sha512_and_files(service):
    channel = service.new_channel("hash_only")
    channel.live.register_hash("a" * 64).expect(201)
    channel.live.register_hash("b" * 128, hash_alg="sha-512").expect(201)
    assert channel.live.certified(seq_from=1, seq_to=2)["status"] == "completed"
    channel = service.new_channel()
    channel.live.register_file(b"small", name="a.txt").expect(201)
    channel.live.register_file(b"large" * 100000, name="b.txt").expect(201)
    channel.live.register_file(b"", name="empty").expect(201)
    channel.live.register({"x": "y" * 100000}).expect(201)
    channel.live.register({}).expect(201)
    assert channel.live.certified(seq_from=1, seq_to=5)["status"] == "completed"


# ---- fees and failures ----

@pytest.fixture(scope="module")
def charging(start):
    return start(certification__fee=5, seal__interval="1s")


def test_a_fee_is_charged_at_acceptance_and_only_for_live_certifications(charging):
    channel = charging.new_channel(credits=7)
    channel.live.register().expect(201)
    channel.test.register().expect(201)
    channel.test.certify(seq_from=1, seq_to=1).expect(202)
    assert channel.live.balance()["balance"] == 6
    channel.live.certify(seq_from=1, seq_to=2).expect(400, "validation_error")
    assert channel.live.balance()["balance"] == 6
    accepted = channel.live.certify(seq_from=1, seq_to=1).expect(202).json
    assert channel.live.balance()["balance"] == 1
    english = channel.live.certify(seq_from=1, seq_to=1).expect(402, "insufficient_balance")
    spanish = channel.live.certify(seq_from=1, seq_to=1, language="es")
    assert spanish.expect(402, "insufficient_balance").message != english.message
    assert channel.live.settled(accepted["certification_id"])["status"] == "completed"
    assert channel.live.balance() == {"balance": 1, "operational": True, "unpaid_events": 0}
    charging.admin("credits", "add", channel.account_id, 4)
    channel.live.certify(seq_from=1, seq_to=1).expect(202)
    assert channel.live.balance()["balance"] == 0


def test_unpaid_events_are_told_before_a_fee_that_cannot_be_covered(charging):
    channel = charging.new_channel(credits=0)
    channel.live.register().expect(201)
    channel.live.certify(seq_from=1, seq_to=1).expect(402, "account_not_operational")


def test_a_failed_certification_gives_the_fee_back_and_the_range_can_be_asked_for_again(charging):
    channel = charging.new_channel(credits=20)
    content = b"declared " * 12345
    event = channel.live.register_file(content).expect(201).json
    channel.live.sealed(event["event_id"])
    stored = [path for path in (charging.data / "content").rglob("*")
              if path.is_file() and path.stat().st_size == len(content)]
    assert len(stored) == 1
    stored[0].chmod(0o600)
    stored[0].write_bytes(content.upper())
    failed = channel.live.certified(seq_from=1, seq_to=1)
    check_certification(failed, "live")
    assert failed["status"] == "failed"
    assert failed["completed_at"] is not None
    assert channel.live.balance()["balance"] == 19, "the fee came and went"
    shown = charging.admin("certification", "show", failed["certification_id"])
    assert shown["incident_id"].startswith("inc_")
    kinds = [entry["kind"] for entry in
             charging.admin("credits", "list", channel.account_id)["data"]]
    assert kinds[:2] == ["fee_refund", "fee"]
    assert channel.live.walk("/v1/certifications", 10, status="failed")[0]["certification_id"] \
        == failed["certification_id"]
    stored[0].write_bytes(content)
    assert channel.live.certified(seq_from=1, seq_to=1)["status"] == "completed"
    assert channel.live.balance()["balance"] == 14




def test_a_certification_survives_a_restart(start):
    service = start(seal__interval="1h", tsa__timeout="2s")
    channel = service.new_channel("hash_only")
    for n in range(200):
        channel.test.register_hash(f"{n:064x}").expect(201)
    accepted = [channel.test.certify(seq_from=1, seq_to=200).expect(202).json for _ in range(4)]
    service.kill()
    service.start()
    for record in accepted:
        done = channel.test.settled(record["certification_id"])
        assert done["status"] == "completed"
        check_certification(done, "test", "hash_only")


def test_a_live_range_is_sealed_at_once_without_waiting_for_the_window(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    event = channel.live.register().expect(201).json
    assert channel.live.event(event["event_id"])["timestamp"]["type"] == "pending"
    done = channel.live.certified(seq_from=1, seq_to=1)
    assert done["status"] == "completed"
    assert channel.live.event(event["event_id"])["timestamp"]["type"] == "batch"


# ---- links ----

def test_a_link_serves_parts_of_a_file(filled):
    done = filled.test.certified(seq_from=1, seq_to=5)
    url = done["evidence_url"]
    whole = filled.test.download(url).expect(200)
    size = len(whole.body)
    assert whole.headers["Content-Length"] == str(size)
    assert whole.headers["Accept-Ranges"] == "bytes"
    for value, start, end in (("bytes=0-0", 0, 1), ("bytes=0-99", 0, 100),
                              ("bytes=100-", 100, size), ("bytes=-10", size - 10, size),
                              (f"bytes={size - 1}-{size + 1000}", size - 1, size)):
        answer = filled.test.download(url, headers={"Range": value}).expect(206)
        assert answer.body == whole.body[start:end], value
        assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
        assert answer.headers["Content-Length"] == str(end - start)
    beyond = filled.test.download(url, headers={"Range": f"bytes={size}-"})
    assert beyond.status == 416
    assert beyond.headers["Content-Range"] == f"bytes */{size}"
    for value in ("lines=1-2", "bytes=5-1", "bytes=x"):
        answer = filled.test.download(url, headers={"Range": value}).expect(200)
        assert answer.body == whole.body


def test_a_link_says_what_it_serves(filled):
    done = filled.test.certified(seq_from=1, seq_to=1)
    for report in done["reports"]:
        headers = filled.test.download(report["url"], "HEAD").expect(200).headers
        assert headers["Content-Type"] == "application/pdf"
        assert re.fullmatch(r'(attachment|inline); filename="[^"\\]+\.pdf"',
                            headers["Content-Disposition"])
        assert int(headers["Content-Length"]) > 1000
    headers = filled.test.download(done["evidence_url"], "HEAD").expect(200).headers
    assert headers.get_content_type() in ("application/zip", "application/vnd.etsi.asic-e+zip")
    assert "attachment" in headers["Content-Disposition"]
    for part in done["content_parts"]:
        headers = filled.test.download(part["url"], "HEAD").expect(200).headers
        assert headers["Content-Type"] == "application/zip"
        assert f'filename="{part["name"]}"' in headers["Content-Disposition"]
        assert headers["Content-Length"] == str(part["bytes"])


def test_a_link_is_for_7_days_and_reading_again_gives_a_fresh_one(filled):
    done = filled.test.certified(seq_from=1, seq_to=1)
    expires = int(re.search(r"expires=(\d+)", done["evidence_url"])[1])
    assert abs(expires - time.time() - 7 * 86400) < 300
    time.sleep(1.1)
    again = filled.test.certification(done["certification_id"])
    assert int(re.search(r"expires=(\d+)", again["evidence_url"])[1]) > expires
    filled.test.download(done["evidence_url"]).expect(200)
    filled.test.download(again["evidence_url"]).expect(200)


def test_an_altered_link_is_not_found(filled):
    done = filled.test.certified(seq_from=1, seq_to=1)
    other = filled.test.certified(seq_from=1, seq_to=2)
    # Parts have the same name in every certification.
    part, id_of_other = done["content_parts"][0]["url"], other["certification_id"]
    assert other["content_parts"][0]["name"] == done["content_parts"][0]["name"]
    moved = filled.test.download(part.replace(done["certification_id"], id_of_other))
    moved.expect(404, "not_found")
    url, expires = done["evidence_url"], re.search(r"expires=(\d+)", done["evidence_url"])[1]
    mac = re.search(r"mac=([^&]+)", url)[1]
    flipped = ("0" if mac[0] != "0" else "1") + mac[1:]
    for altered in (
            url.replace(mac, flipped), url.replace(mac, mac[:-1]), url.replace(mac, ""),
            url.replace(expires, str(int(expires) + 1)), url.replace(expires, "9" * 18),
            url.partition("?")[0], url.replace(done["certification_id"], id_of_other),
            done["reports"][0]["url"].partition("?")[0] + "?" + url.partition("?")[2],
            url.replace("/downloads/", "/downloads/x")):
        answer = filled.test.download(altered)
        assert answer.status == 404 and answer.code == "not_found", altered
    filled.test.download(url).expect(200)


def test_an_expired_link_is_not_found_and_a_fresh_one_works(start):
    service = start(certification__link_lifetime="1s")
    channel = service.new_channel("hash_only")
    channel.test.register_hash("0" * 64).expect(201)
    done = channel.test.certified(seq_from=1, seq_to=1)
    eventually(lambda: channel.test.download(done["evidence_url"]).status == 404, "it expires")
    channel.test.download(done["report_url"]).expect(404, "not_found")

    def fresh():
        again = channel.test.certification(done["certification_id"])
        return channel.test.download(again["report_url"]).status == 200
    eventually(fresh, "a fresh link is used in time")


def test_a_link_needs_no_key_and_uses_none_of_its_rate(start):
    service = start(rate__test=10, rate__live=50)
    channel = service.new_channel("hash_only")
    channel.test.register_hash("0" * 64).expect(201)
    done = channel.test.certified(seq_from=1, seq_to=1)
    time.sleep(1.1)
    remaining = int(channel.test.get("/v1/channel").headers["RateLimit-Remaining"])
    for _ in range(20):
        channel.test.download(done["report_url"]).expect(200)
    answer = channel.test.get("/v1/channel").expect(200)
    assert int(answer.headers["RateLimit-Remaining"]) >= remaining - 1


def test_a_report_whose_drawing_crashes_is_drawn_again_and_the_service_goes_on(start):
    service = start()
    channel = service.new_channel()
    channel.test.register({"a": 1}, "a").expect(201)
    asked = []

    def kill_one():  # before it is through, which on this machine it may be
        if not asked or channel.test.certification(asked[-1])["status"] != "processing":
            asked.append(channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"])
        for child in service.children("renderer"):
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
        return [line for line in service.log_lines() if line["event"] == "certification_delayed" and
                "renderer was ended by signal 9" in line["cause"]]
    eventually(kill_one, "a renderer is killed", pause=0)
    channel.test.register({"a": 2}, "b").expect(201)
    done = channel.test.settled(asked[-1])
    assert done["status"] == "completed"
    channel.test.download(done["report_url"]).expect(200)
    channel.close()
