"""The request log of accounts: which requests it has, what it says of them, to whom, and for how long."""

import html
import json
import re

import pytest

from client import Client, eventually
from console import new_developer, new_visitor, shown

pytestmark = pytest.mark.both_stores
MEMBERS = {"row", "request_id", "at", "method", "route", "path", "query", "status", "code", "incident_id",
           "duration_us", "bytes_in", "bytes_out", "aborted", "channel_id", "channel_name", "key_id", "key_name",
           "mode", "represents"}
DAY_US = 86400 * 1000000


def identifier(answer):
    return answer.headers["X-Request-Id"]


def listed(service, account, *flags):
    return service.admin("request", "list", "--account", account, "--limit", 1000, *flags)["data"]


def found(service, account, answer):
    """The row of a request, once it is written."""
    (row,) = eventually(lambda: listed(service, account, "--request", identifier(answer)), "the request is logged")
    return row


def identifiers(rows):
    return [row["request_id"] for row in rows]


@pytest.fixture(scope="module")
def used(service):
    """A channel with five requests, oldest first: three with the live key, two with the test key."""
    channel = service.new_channel()
    channel.answers = [
        channel.live.register({"n": 1}, "first").expect(201), channel.live.get("/v1/events?limit=1").expect(200),
        channel.live.get("/v1/events/evt_none").expect(404), channel.test.get("/v1/events").expect(200),
        channel.test.post("/v1/events", b"{", headers={"Content-Type": "application/json"}).expect(400)]
    found(service, channel.account_id, channel.answers[-1])
    yield channel
    channel.close()


# ---- rows ----

def test_a_row_says_what_became_of_a_request(service, used):
    first, *_, last = used.answers
    row = found(service, used.account_id, first)
    assert set(row) == MEMBERS
    assert (row["method"], row["route"], row["path"], row["query"]) == ("POST", "/v1/events", "/v1/events", "")
    assert (row["status"], row["code"], row["incident_id"], row["aborted"]) == (201, None, None, False)
    assert row["bytes_in"] == len(json.dumps({"client_ref": "first", "payload": {"n": 1}}))
    assert row["bytes_out"] == len(first.body) and row["duration_us"] > 0
    assert (row["channel_id"], row["channel_name"]) == (used.id, "A channel")
    assert (row["key_id"], row["mode"], row["represents"]) == (used.live_key["key_id"], "live", 1)
    row = found(service, used.account_id, last)
    assert (row["status"], row["code"], row["mode"]) == (400, "validation_error", "test")
    row = found(service, used.account_id, used.answers[2])
    assert (row["route"], row["path"]) == ("/v1/events/{event_id}", "/v1/events/evt_none")
    assert found(service, used.account_id, used.answers[1])["query"] == "limit=1"


def test_all_are_listed_newest_first_and_in_pages(service, used):
    expected = [identifier(answer) for answer in reversed(used.answers)]
    assert identifiers(listed(service, used.account_id)) == expected
    seen, place = [], ()
    while True:
        page = service.admin("request", "list", "--account", used.account_id, "--limit", 2, *place)
        seen += identifiers(page["data"])
        if not page["has_more"]:
            break
        place = ("--after", page["data"][-1]["row"])
    assert seen == expected


def test_filters(service, used):
    at = found(service, used.account_id, used.answers[2])["at"]
    for flags, expected in (
            (("--key", used.live_key["key_id"]), [2, 1, 0]), (("--key", used.test_key["key_id"]), [4, 3]),
            (("--channel", used.id), [4, 3, 2, 1, 0]), (("--status", "4xx"), [4, 2]), (("--status", "404"), [2]),
            (("--status", "5xx"), []), (("--since", at), [4, 3, 2]), (("--until", at), [1, 0]),
            (("--since", "1h"), [4, 3, 2, 1, 0]),
            (("--request", identifier(used.answers[3]), "--status", "2xx"), [3]),
            (("--request", identifier(used.answers[3]), "--status", "4xx"), []),
            (("--request", "req_" + "0" * 16), [])):
        assert identifiers(listed(service, used.account_id, *flags)) == [
            identifier(used.answers[one]) for one in expected], flags


def test_what_the_list_refuses(service, used):
    for flags, said in ((("--request", "inc_0123456789abcdef"), "--request"),
                        (("--request", "req_1"), "16 hexadecimal"), (("--status", "abc"), "--status"),
                        (("--status", "6xx"), "--status"), (("--status", "4x1"), "--status"),
                        (("--after", "x"), "--after"), (("--key", "key_none"), "no key"),
                        (("--channel", "chn_none"), "no channel"), (("--since", "soon"), "--since"),
                        (("--since", "1h", "--until", "2h"), "--since")):
        refused = service.run("request", "list", "--account", used.account_id, *flags)
        assert refused.returncode != 0 and said in refused.stderr, (flags, refused)


def test_no_key_is_stored(service, used):
    key = used.live_key["key"]
    answers = [used.live.get(f"/v1/events/{key}").expect(404),
               used.live.get(f"/v1/events?client_ref={key}").expect(200),
               used.live.get(f"/v1/events?key={key}").expect(400), used.live.get(f"/v1/events?{key}=1").expect(400),
               used.live.get("/v1/events/" + key.replace("_", "%5F")).expect(404),
               used.live.get("/v1/events?limit=1&token=secret").expect(400)]
    rows = [found(service, used.account_id, answer) for answer in answers]
    assert [(row["path"], row["query"]) for row in rows] == [
        ("/v1/events/***", ""), ("/v1/events", "client_ref=***"), ("/v1/events", "key=***"), ("/v1/events", "***"),
        ("/v1/events/***", ""), ("/v1/events", "limit=1&token=***")]
    assert key[9:-6] not in json.dumps(listed(service, used.account_id))


def test_long_paths_and_queries_are_cut(service, channel):
    row = found(service, channel.account_id, channel.live.get("/v1/events/" + "x" * 500).expect(404))
    assert row["path"].startswith("/v1/events/xxx") and row["path"].endswith("…") and len(row["path"]) <= 204
    row = found(service, channel.account_id, channel.live.get("/v1/events?cursor=" + "x" * 500).expect(400))
    assert row["query"].startswith("cursor=xxx") and row["query"].endswith("…") and len(row["query"]) <= 304


# ---- whose ----

def test_requests_without_a_known_key_are_not_logged(service, channel, anyone):
    anyone.get("/v1/events").expect(401)
    with Client(service, "svc_live_" + "x" * 36) as unknown:
        unknown.get("/v1/events").expect(401)
    last = channel.live.get("/v1/account/balance").expect(200)
    found(service, channel.account_id, last)
    assert identifiers(listed(service, channel.account_id)) == [identifier(last)]


def test_a_revoked_key_is_still_seen(service, channel):
    service.admin("key", "revoke", channel.test_key["key_id"])
    answer = eventually(lambda: (one := channel.test.get("/v1/events")).status == 401 and one, "the key is revoked")
    row = found(service, channel.account_id, answer)
    assert (row["status"], row["code"], row["key_id"], row["mode"]) == (
        401, "revoked_key", channel.test_key["key_id"], "test")


def test_an_account_never_sees_those_of_another(service, used, channel):
    own = channel.live.get("/v1/events").expect(200)
    found(service, channel.account_id, own)
    assert identifiers(listed(service, channel.account_id)) == [identifier(own)]
    assert not listed(service, channel.account_id, "--request", identifier(used.answers[0]))
    for flags in (("--key", used.live_key["key_id"]), ("--channel", used.id)):
        refused = service.run("request", "list", "--account", channel.account_id, *flags)
        assert refused.returncode != 0 and "There is no" in refused.stderr
    visitor = new_visitor(service, channel.account_id)
    visitor.get("/console/requests")
    assert identifier(own) in visitor.body and identifier(used.answers[0]) not in visitor.body
    visitor.get(f"/console/requests?request={identifier(used.answers[0])}")
    assert "There is no request with this identifier." in visitor.body and "A channel:" in visitor.body
    for other in (f"key={used.live_key['key_id']}", f"channel={used.id}"):
        assert visitor.get(f"/console/requests?{other}").status == 404


# ---- the page ----

def requests_of(visitor):
    return re.findall(r'<code class="note">(req_[0-9a-f]{16})</code>', visitor.body)


def test_the_page_lists_and_filters(service, used):
    reader = new_visitor(service, used.account_id, "reader")
    for query, expected in ((f"key={used.test_key['key_id']}&until=", [4, 3]), ("status=201", [0]),
                            (f"request={identifier(used.answers[2])}", [2]),
                            (f"channel={used.id}&key={used.live_key['key_id']}&status=201", [0])):
        assert reader.get(f"/console/requests?{query}").status == 200
        assert requests_of(reader) == [identifier(used.answers[one]) for one in expected], query
    reader.get(f"/console/requests?request={identifier(used.answers[2])}")
    assert "404" in shown(reader) and "not_found" in shown(reader)
    for wrong in ("request=req_1", "status=abc", "after=x"):
        assert reader.get(f"/console/requests?{wrong}").status == 400
    reader.get("/console/requests?status=599")
    assert "No matching requests." in reader.body
    assert f"/console/requests?channel={used.id}" in reader.get(f"/console/channels/{used.id}").body
    for role, may in (("owner", True), ("developer", True), ("accountant", False)):
        visitor = new_visitor(service, used.account_id, role)
        assert ('href="/console/requests"' in visitor.get("/console/").body) is may
        assert visitor.get("/console/requests").status == (200 if may else 403)


def test_the_page_in_spanish(service, used):
    visitor = new_developer(service, used.account_id, language="es")
    visitor.get("/console/requests")
    assert "Las peticiones hechas con las claves de la cuenta en los últimos 30 días." in shown(visitor)
    visitor.get("/console/requests?status=4x1")
    assert "debe ser 4xx, 5xx o tres cifras, como 404" in html.unescape(visitor.body)


def test_pages_of_the_page(service, channel):
    answers = [channel.live.get(f"/v1/events?limit={n + 1}").expect(200) for n in range(53)]
    expected = [identifier(answer) for answer in reversed(answers)]
    eventually(lambda: identifiers(listed(service, channel.account_id)) == expected, "all are logged")
    visitor = new_visitor(service, channel.account_id)
    visitor.get(f"/console/requests?status=2xx&key={channel.live_key['key_id']}")
    assert requests_of(visitor) == expected[:50]
    (older,) = [html.unescape(link) for link in re.findall(r'<a class="button" href="([^"]+)"', visitor.body)]
    visitor.get(older)
    assert requests_of(visitor) == expected[50:]


# ---- how many, and how long ----

def test_an_account_has_a_part_of_many(start):
    """18 rows a day for what succeeds and 6 for what fails: two and one of them at once."""
    service = start(requests__per_day=24)
    channel = service.new_channel()
    answers = [channel.live.get("/v1/events").expect(200) for _ in range(5)]
    failures = [channel.live.get("/v1/events/evt_none").expect(404) for _ in range(3)]
    other = service.new_channel()
    answer = other.live.get("/v1/events").expect(200)
    found(service, other.account_id, answer)
    found(service, channel.account_id, failures[0])
    expected = [identifier(one) for one in (failures[0], answers[1], answers[0])]
    assert identifiers(listed(service, channel.account_id)) == expected
    assert service.metric("requests_logged_total") == 4 and service.metric("requests_skipped_total") == 5
    visitor = new_visitor(service, channel.account_id)
    visitor.get("/console/requests")
    assert "on this page" not in shown(visitor)
    assert service.stop() == 0
    service.store.change("UPDATE requests SET represents = 1234 WHERE status = 404")
    service.start()
    visitor.get("/console/requests")
    assert "The 3 rows on this page represent 1,236 requests." in visitor.body and "represents 1,234" in visitor.body
    channel.close()
    other.close()


def test_the_log_can_be_off(start):
    service = start(requests__per_day=0)
    channel = service.new_channel()
    for _ in range(3):
        channel.live.get("/v1/events").expect(200)
    assert service.stop() == 0  # which writes what waits
    service.start()
    assert not listed(service, channel.account_id)
    assert service.store.rows("SELECT COUNT(*) FROM requests") == [["0"]]
    assert service.metric("requests_logged_total") == service.metric("requests_skipped_total") == 0
    channel.close()


def test_a_stopping_node_writes_what_waits(start):
    service = start()
    channel = service.new_channel()
    answer = channel.live.get("/v1/events").expect(200)
    assert service.stop() == 0
    service.start()
    assert identifiers(listed(service, channel.account_id)) == [identifier(answer)]
    channel.close()


@pytest.mark.parametrize("per_day", [20000, 0])
def test_rows_are_kept_for_30_days(start, per_day):
    """Also after the log was turned off."""
    service = start()
    channel = service.new_channel()
    answers = [channel.live.get("/v1/events").expect(200) for _ in range(3)]
    found(service, channel.account_id, answers[-1])
    assert service.stop() == 0
    for answer, days in zip(answers, (31, 29, 0)):
        service.store.change(f"UPDATE requests SET at = at - {days * DAY_US} WHERE request = "
                             f"{int.from_bytes(bytes.fromhex(identifier(answer)[4:]), 'big', signed=True)}")
    service.settings["requests.per_day"] = str(per_day)
    service.start()
    assert identifiers(listed(service, channel.account_id)) == [identifier(one) for one in (answers[2], answers[1])]
    eventually(lambda: service.store.rows("SELECT COUNT(*) FROM requests") == [["2"]], "the old row is deleted")
    channel.close()


def test_a_read_only_copy_logs_nothing(start):
    service = start()
    channel = service.new_channel()
    assert service.admin("store", "quiet", "--reason", "to be copied")["quiet"]
    before = service.metric("requests_skipped_total")
    for _ in range(2):
        channel.live.get("/v1/events").expect(200)
    eventually(lambda: service.metric("requests_skipped_total") == before + 2, "they are counted")
    assert not listed(service, channel.account_id)
    assert not service.admin("store", "wake")["quiet"]
    row = found(service, channel.account_id, channel.live.get("/v1/events").expect(200))
    assert row["represents"] == 3
    channel.close()
