"""The command `certify`: request, wait, download, and verification against the receipts."""

import hashlib
import json
import os

import pytest

from client import ROOT, fresh
from scripted import say, script  # noqa: F401
from tools import Tools, receipts_of, tools_of


@pytest.fixture
def tools(service, channel, tmp_path):
    return tools_of(service, channel.live_key["key"], tmp_path)


def registered(tools, count=2):
    for _ in range(count):
        (tools.folder / "file").write_text(fresh())
        tools.run("register", "file")


def trusted(service):
    return ("--trust", service.data / "trust.pem")


def test_everything_is_certified_and_valid(service, channel, tools):
    registered(tools, 3)
    done = tools.run("certify", "--save", "out", *trusted(service))
    assert "Compared with 3 receipts." in done.stdout
    assert done.stdout.splitlines()[-1].startswith("VALID")
    (listed,) = channel.live.get("/v1/certifications").json["data"]
    assert listed["range"]["seq_from"] == 1 and listed["range"]["seq_to"] == 3
    names = sorted(os.listdir(tools.folder / "out"))
    number = listed["certification_id"]
    assert names == [f"{number}-en.pdf", f"{number}-es.pdf", f"{number}-evidence.zip", "content-part-001.zip",
                     "receipts-1.ndjson"]
    assert receipts_of(tools.folder / "out", "receipts-1.ndjson") == receipts_of(tools.folder)
    record = channel.live.get(f"/verify/{listed['verification_code']}", headers={"Accept": "application/json"}).json
    for document in record["documents"]:
        content = (tools.folder / "out" / document["name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == document["sha256"]


def test_without_roots_the_origin_is_not_established(tools):
    registered(tools, 1)
    done = tools.run("certify", expect=2)
    assert done.stdout.splitlines()[-1].startswith("INTACT, SIGNER NOT ESTABLISHED")


def test_a_repetition_takes_up_the_last_certification(service, channel, tools):
    registered(tools)
    first = tools.lines("certify", *trusted(service))[0]
    (tools.folder / first["files"][0]).unlink()
    (tools.folder / first["files"][1]).write_bytes(b"altered")
    again = tools.lines("certify", *trusted(service))[0]
    assert again["certification_id"] == first["certification_id"]
    assert again["verification"]["valid"] and again["receipts"] == 2
    assert (first["first_sequence"], first["last_sequence"]) == (1, 2)
    registered(tools, 1)
    new = tools.lines("certify", *trusted(service))[0]
    assert (new["first_sequence"], new["last_sequence"], new["receipts"]) == (3, 3, 1)
    assert len(channel.live.get("/v1/certifications").json["data"]) == 2


def test_it_says_what_nothing_local_shows_of_a_range_that_the_service_chose(service, tools):
    registered(tools)
    words = ("certify", *trusted(service))
    whole = tools.lines(*words)[0]["range"]
    assert whole == {"chosen_by": "service", "established": True, "notes": []}
    (tools.folder / "receipts.ndjson").rename(tools.folder / "kept")
    assert tools.lines(*words)[0]["range"]["notes"] == ["Nothing local shows that 2 is the newest event."]
    registered(tools, 1)
    rest = tools.lines(*words)[0]
    before = "Nothing local shows that the events before 3 were certified."
    assert rest["first_sequence"] == 3
    assert rest["range"] == {"chosen_by": "service", "established": False, "notes": [before]}
    said = tools.run(*words).stdout.splitlines()
    assert "Range: the last certification, because nothing is new, by the service." in said
    assert before in said and "To choose the range, specify --from and --to." in said


def test_a_range_of_the_user_is_established(service, tools):
    registered(tools)
    receipts = receipts_of(tools.folder)
    given = tools.lines("certify", "--from", 2, "--to", 2, *trusted(service))[0]
    assert given["range"] == {"chosen_by": "user", "established": True, "notes": []}
    assert "Range: as requested." in tools.run("certify", "--from", 2, "--to", 2, *trusted(service)).stdout
    period = ("certify", "--since", receipts[0]["received_at"], "--until", receipts[1]["received_at"], *trusted(service))
    assert tools.lines(*period)[0]["range"]["established"]
    (tools.folder / "receipts.ndjson").unlink()
    assert tools.lines(*period)[0]["range"]["notes"] == ["Nothing local shows which events were received in the period."]


def test_a_repeated_range_pays_once(start, tmp_path):
    service = start(certification__fee=10, seal__interval="1s")
    channel = service.new_channel(credits=100)
    tools = tools_of(service, channel.live_key["key"], tmp_path)
    registered(tools, 2)
    left = channel.live.balance()["balance"]
    one = tools.lines("certify", "--from", 1, "--to", 2, *trusted(service))[0]
    assert channel.live.balance()["balance"] == left - 10
    again = tools.lines("certify", "--from", 1, "--to", 2, *trusted(service))[0]
    assert again["certification_id"] == one["certification_id"]
    assert channel.live.balance()["balance"] == left - 10
    assert len(channel.live.get("/v1/certifications").json["data"]) == 1


def test_an_archive_with_the_seal_history_is_asked_for(start, script, tmp_path):  # noqa: F811
    service = start(certification__fee=10, seal__interval="200ms")
    channel = service.new_channel(credits=100)
    tools = tools_of(service, channel.live_key["key"], tmp_path)
    for _ in range(2):
        registered(tools, 1)
        channel.live.sealed(channel.live.get("/v1/events", query={"limit": 1}).json["data"][0]["event_id"])

    def asked(*words):
        made = tools.lines("certify", *words, *trusted(service))[0]
        (archive,) = [file for file in made["verification"]["files"] if file["kind"] == "archive"]
        return made["certification_id"], archive["seal_history"], channel.live.balance()["balance"]
    plain = asked("--from", 2, "--to", 2)
    assert plain[1] is False
    whole = asked("--from", 2, "--to", 2, "--seal-history")
    assert whole[0] != plain[0] and whole[1] is True and whole[2] == plain[2] - 10
    assert asked("--from", 2, "--to", 2, "--seal-history") == whole  # pays once
    assert asked("--seal-history") == whole  # the last certification again
    assert asked("--from", 1, "--to", 1)[1] is True  # there is nothing before it
    # A service that has another archive than the one asked for.
    archive = f"{plain[0]}-evidence.zip"
    script.answers = served(script, archive, tools.folder / plain[0] / archive, {**CHANNEL, "channel_id": channel.id},
                            2, 2, certification_id=plain[0], evidence_url=f"{script.url}/v1/downloads/{archive}?mac=x")
    other = Tools(f"{script.url}/v1", "svc_live_x", tmp_path / plain[0])
    error = other.error("certify", "--from", 2, "--to", 2, "--seal-history", "--save", "other")
    assert "lacks the seal documents" in error["message"], error
    assert json.loads(script.seen[1].body) == {"seal_history": True, "seq_from": 2, "seq_to": 2}


def test_a_period_is_certified(service, channel, tools):
    registered(tools)
    first, last = receipts_of(tools.folder)
    one = tools.lines("certify", "--since", first["received_at"], "--until", last["received_at"], *trusted(service))[0]
    assert (one["first_sequence"], one["last_sequence"]) == (1, 1)
    rest = tools.lines("certify", *trusted(service))[0]  # the end of a period is known to its verification
    assert (rest["first_sequence"], rest["last_sequence"]) == (2, 2)


def test_a_test_key_certifies_test_events(service, channel, tmp_path):
    live, test = (tools_of(service, key["key"], tmp_path) for key in (channel.live_key, channel.test_key))
    registered(live, 1)
    registered(test, 2)
    one = test.lines("certify", *trusted(service))[0]
    assert one["certification_id"].startswith("CERT-TEST-") and one["receipts"] == 2


def test_an_altered_receipt_is_found(service, tools):
    registered(tools, 1)
    (receipt,) = receipts_of(tools.folder)
    receipt["hash"] = "0" * 64
    (tools.folder / "receipts.ndjson").write_text(json.dumps(receipt) + "\n")
    done = tools.run("certify", *trusted(service), expect=2)
    assert "receipt" in done.stdout and not done.stdout.splitlines()[-1].startswith("VALID")
    (tools.folder / "receipts.ndjson").write_text("no receipt\n")
    assert "no receipt" in tools.error("certify", *trusted(service))["message"]


def test_receipts_that_do_not_exist_are_an_error_only_when_named(service, tools):
    registered(tools, 1)
    (tools.folder / "receipts.ndjson").unlink()
    assert tools.lines("certify", *trusted(service))[0]["receipts"] == 0
    assert "absent" in tools.error("certify", "--receipts", "absent", expect=2)["cause"]


def test_nothing_to_certify(tools):
    assert "Nothing is registered" in tools.error("certify")["message"]
    assert tools.error("certify", "--from", 1, "--to", 2)["code"] == "validation_error"


@pytest.mark.parametrize("words", [
    ("--from", "1"), ("--since", "2026-01-01T00:00:00Z"), ("--from", "0", "--to", "1"), ("--from", "x", "--to", "1"),
    ("--from", "1", "--to", "1", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-02T00:00:00Z"),
    ("--since", "yesterday", "--until", "today"), ("--wait", "soon")])
def test_misuse_is_refused_before_anything_is_sent(tmp_path, words):
    assert Tools("http://127.0.0.1:1/v1", "svc_test_x", tmp_path).error("certify", *words, expect=2)


# ---- against a scripted service ----

def certification(status="completed", **more):
    return {"certification_id": "CERT-2026-0000001", "status": status, "progress": 1, "verification_code": "SVC-1",
            "evidence_url": None, "reports": [], "content_parts": [], **more}


def ok(record, status=200, **headers):
    return say(status, json.dumps(record).encode(), **headers)


CHANNEL = {"channel_id": "chn_1", "current_config": {"modality": "content"}}


def test_a_failed_certification_is_followed_by_another_key(script, tmp_path):  # noqa: F811
    script.answers = [ok(CHANNEL), ok(certification("failed"), 202, Idempotent_Replayed="true"),
                      ok(certification("failed"), 202), ok(certification("failed"))]
    error = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).error("certify", "--from", 1, "--to", 2)
    assert "failed" in error["message"] and "refunded" in error["message"]
    assert [seen.headers["Idempotency-Key"] for seen in script.seen if seen.command == "POST"] == [
        "certify:1-2", "certify:1-2:2"]


def test_the_wait_ends(script, tmp_path):  # noqa: F811
    script.answers = [ok(CHANNEL), ok(certification("processing"), 202),
                      ok(certification("processing"), Retry_After="3600")]
    error = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).error("certify", "--from", 1, "--to", 2, expect=2)
    assert "still in progress" in error["message"]


@pytest.mark.parametrize("record", [certification(), certification("processing")])
@pytest.mark.parametrize("name", ["../../.ssh", "a/b", ".", "", "-x", "CERT 1"])
def test_an_identifier_that_is_no_name_is_refused(script, tmp_path, record, name):  # noqa: F811
    script.answers = [ok(CHANNEL), ok({**record, "certification_id": name}, 202)]
    error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify", "--from", 1, "--to", 2, expect=2)
    assert "no certification" in error["cause"] and os.listdir(tmp_path) == []


@pytest.mark.parametrize("change, words", [({"last_sequence": 1}, "1 to 1, not of 1 to 2"),
                                           ({"first_sequence": 2}, "2 to 2, not of 1 to 2"), ({"mode": "test"}, "mode")])
def test_a_certification_of_something_else_is_refused(script, tmp_path, change, words):  # noqa: F811
    verification = {"first_sequence": 1, "last_sequence": 2, "mode": "live", "documents": [], **change}
    script.answers = [ok(CHANNEL), ok(certification(), 202), ok(certification()), ok(certification()), ok(verification)]
    error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify", "--from", 1, "--to", 2)
    assert words in error["message"]


# A service that chooses what is compared: every one of these answers was once believed.

def listed(first, last):
    return ok({"data": [{**certification(), "range": {"seq_from": first, "seq_to": last, "from": None, "to": None}}],
               "has_more": False, "next_cursor": None})


def newest(sequence):
    return ok({"data": [{"sequence": sequence}]})


def receipt(folder, sequence, **change):
    line = {"channel_id": "chn_1", "mode": "live", "sequence": sequence, **change}
    with open(folder / "receipts.ndjson", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def test_a_service_that_denies_an_event_of_a_receipt_is_refused(script, tmp_path):  # noqa: F811
    for sequence, change in ((4, {}), (5, {}), (9, {"mode": "test"}), (9, {"channel_id": "chn_2"})):
        receipt(tmp_path, sequence, **change)
    for certified in (4, 3):  # nothing is new, or events to 4 only
        script.answers = [ok(CHANNEL), listed(1, certified), newest(4)]
        error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify")
        assert "receipt of the event 5" in error["message"] and "service is 4" in error["message"]
    assert all(seen.command == "GET" for seen in script.seen), "nothing was requested"


def test_a_certification_beyond_the_newest_event_is_refused(script, tmp_path):  # noqa: F811
    script.answers = [ok(CHANNEL), listed(1, 7), newest(6)]
    error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify")
    assert "events to 7" in error["message"] and "6 as the newest" in error["message"]


def test_the_last_certification_has_to_be_what_the_service_listed(script, tmp_path):  # noqa: F811
    verification = {"first_sequence": 3, "last_sequence": 3, "mode": "live", "documents": []}
    script.answers = [ok(CHANNEL), listed(1, 3), newest(3), ok(certification()), ok(certification()), ok(verification)]
    error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify")
    assert "3 to 3, not of 1 to 3" in error["message"]


@pytest.mark.parametrize("range_", [None, {}, {"seq_from": None, "seq_to": 3}, {"from": "yesterday", "to": "today"}])
def test_a_listed_certification_without_a_range_is_refused(script, tmp_path, range_):  # noqa: F811
    script.answers = [ok(CHANNEL), ok({"data": [{**certification(), "range": range_}], "next_cursor": None})]
    error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify", expect=2)
    assert "without a range" in error["cause"]


GENUINE = ROOT / "tests/corpus/evidence/base"  # of the events 1 to 3 of this channel
ITS_CHANNEL = {**CHANNEL, "channel_id": "chn_x3efwrvv13q9jfq1"}


def served(script, name, path, channel=None, first=1, last=3, **certified):  # noqa: F811
    """The answers of a service that has a certification of 1 to 3, by the document of that name."""
    content = path.read_bytes()
    documents = [{"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}]
    url = f"{script.url}/v1/downloads/{name}?mac=x"
    record = certification(**(certified or {"evidence_url": url}))
    for report in record["reports"]:
        report["url"] = url
    return [ok(channel or ITS_CHANNEL), ok(record, 202), ok(record), ok(record),
            ok({"first_sequence": first, "last_sequence": last, "mode": "live", "documents": documents}),
            say(200, content)]


ARCHIVE = "CERT-2026-0000001-evidence.zip"


def test_the_archive_says_what_was_certified(script, tmp_path):  # noqa: F811
    tools = Tools(f"{script.url}/v1", "svc_live_x", tmp_path)
    script.answers = served(script, ARCHIVE, GENUINE / "live.zip")
    assert tools.lines("certify", "--from", 1, "--to", 3, expect=2)[0]["verification"]["checked"]["events"] == 3
    script.answers = served(script, ARCHIVE, GENUINE / "live.zip", last=9)
    assert "1 to 3, not of 1 to 9" in tools.error("certify", "--from", 1, "--to", 9, "--save", "a")["message"]
    script.answers = served(script, ARCHIVE, GENUINE / "live.zip", channel=CHANNEL)
    assert "another certification, channel" in tools.error("certify", "--from", 1, "--to", 3, "--save", "b")["message"]
    script.answers = served(script, ARCHIVE, GENUINE / "live.zip")
    period = ("--since", "2026-01-01T00:00:00Z", "--until", "2027-01-01T00:00:00Z")
    assert "another period" in tools.error("certify", *period, "--save", "c")["message"]


def test_reports_without_the_archive_are_refused(script, tmp_path):  # noqa: F811
    name = "CERT-2026-0000001-en.pdf"
    script.answers = served(script, name, GENUINE / "report-en.pdf", reports=[{"language": "en"}])
    error = Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify", "--from", 1, "--to", 3)
    assert "without a readable archive" in error["message"]


def test_receipts_of_other_events_alone_are_an_error_when_they_were_named(service, channel, tools, tmp_path):
    registered(tools)
    (tools.folder / "receipts.ndjson").rename(tools.folder / "others")
    tools_of(service, service.new_channel().live_key["key"], tmp_path)
    (receipt, _) = receipts_of(tools.folder, "others")
    (tools.folder / "others").write_text(json.dumps({**receipt, "channel_id": "chn_other"}) + "\n")
    assert tools.lines("certify", *trusted(service))[0]["receipts"] == 0
    error = tools.error("certify", "--receipts", "others", *trusted(service), expect=2)
    assert "others" in error["message"] and channel.live.get("/v1/certifications").json["data"][1:] == []


def test_the_last_certification_is_found_on_a_later_page(script, tmp_path):  # noqa: F811
    def page(number, last, cursor):
        return ok({"data": [{**certification(), "certification_id": f"CERT-2026-000000{number}",
                             "range": {"seq_from": 1, "seq_to": last}}], "has_more": bool(cursor), "next_cursor": cursor})
    script.answers = [ok(CHANNEL), page(3, 1, "a&b"), page(2, 7, "c"), page(1, 4, None), ok({"data": [{"sequence": 7}]}),
                      ok(certification("failed"))]
    Tools(f"{script.url}/v1", "svc_live_x", tmp_path).error("certify")
    assert [seen.path for seen in script.seen[1:]] == [
        "/v1/certifications?limit=100", "/v1/certifications?limit=100&cursor=a%26b",
        "/v1/certifications?limit=100&cursor=c", "/v1/events?order=desc&limit=1", "/v1/certifications/CERT-2026-0000002"]


@pytest.mark.parametrize("name, reason", [
    ("..%2Fout", "without a digest"), (".hidden", "without a digest"), ("unknown.zip", "without a digest"),
    ("receipts.ndjson", "without a digest"), ("CERT-2026-0000001-x.exe", "without a digest"),
    ("CERT-2026-0000001-evidence.zip", "does not have the digest")])
def test_no_file_but_a_document_on_record_is_written(script, tmp_path, name, reason):  # noqa: F811
    url = f"{script.url}/v1/downloads/{name}?mac=x"
    verification = {"first_sequence": 1, "last_sequence": 2, "mode": "live", "documents": [
        {"name": name, "bytes": 3, "sha256": "0" * 64} for name in (
            "CERT-2026-0000001-evidence.zip", "CERT-2026-0000001-x.exe", ".hidden", "../out", "receipts.ndjson")]}
    script.answers = [ok(CHANNEL), ok(certification(), 202), ok(certification()),
                      ok(certification(evidence_url=url)), ok(verification)] + [say(200, b"abc")] * 5
    tools = Tools(f"{script.url}/v1", "svc_live_x", tmp_path)
    assert reason in tools.error("certify", "--from", 1, "--to", 2, "--save", "out", expect=2)["cause"]
    assert set(os.listdir(tmp_path)) == {"out"}
    assert not os.listdir(tmp_path / "out")
    assert all(seen.headers["Authorization"] is None for seen in script.seen[4:])
