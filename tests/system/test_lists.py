"""GET /v1/events and /v1/certifications as lists: pages, cursors and filters."""

import datetime
import threading
import time
import urllib.parse

import pytest

from client import EVENT, LIST, Client

pytestmark = pytest.mark.both_stores

TARGETS = ["/v1/events", "/v1/certifications"]


@pytest.fixture(scope="module")
def filled(service):
    """25 live events in two groups with a time between, 5 of them unpaid, and 3 test events."""
    channel = service.new_channel(credits=20)
    channel.events = [channel.live.register({"n": n}).expect(201).json for n in range(15)]
    time.sleep(0.01)
    channel.events += [channel.live.register({"n": n}).expect(201).json for n in range(15, 25)]
    channel.test_events = [channel.test.register({"n": n}).expect(201).json for n in range(3)]
    yield channel
    channel.close()


def sequences(items):
    return [item["sequence"] for item in items]


@pytest.mark.parametrize("limit", [1, 7, 24, 25, 26, 500])
def test_a_walk_by_cursor_gives_every_event_once_in_order(filled, limit):
    assert sequences(filled.live.walk("/v1/events", limit)) == list(range(1, 26))


def test_events_in_a_list_have_the_members_of_the_record(filled):
    for event, listed in zip(filled.events, filled.live.walk("/v1/events", 500)):
        assert set(listed) == EVENT
        for name in EVENT - {"timestamp"}:
            assert listed[name] == event[name]


def test_the_end_of_a_list_says_so(filled):
    page = filled.live.get("/v1/events", query={"limit": 25}).json
    assert (len(page["data"]), page["has_more"], page["next_cursor"]) == (25, False, None)
    page = filled.live.get("/v1/events", query={"limit": 24}).json
    assert (len(page["data"]), page["has_more"]) == (24, True)
    assert isinstance(page["next_cursor"], str)


def test_an_empty_list_is_a_list(channel):
    for target in TARGETS:
        for client in (channel.live, channel.test):
            page = client.get(target).expect(200).json
            assert page == {"data": [], "has_more": False, "next_cursor": None}
            assert set(page) == LIST


def test_50_are_given_unless_told_otherwise(channel):
    for n in range(51):
        channel.test.register({"n": n}).expect(201)
    page = channel.test.get("/v1/events").expect(200).json
    assert len(page["data"]) == 50 and page["has_more"]
    rest = channel.test.get("/v1/events", query={"cursor": page["next_cursor"]}).json
    assert sequences(rest["data"]) == [51] and not rest["has_more"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("limit", ["0", "501", "-1", "1.0", "1e2", "", " 1", "ten", "+1", "0x10",
                                   "99999999999999999999"])
def test_a_limit_outside_1_to_500_is_refused_and_never_clamped(filled, target, limit):
    answer = filled.live.get(target, query={"limit": limit}).expect(400, "validation_error")
    assert "limit" in answer.message
    filled.live.get(target, query={"limit": 500}).expect(200)
    filled.live.get(target, query={"limit": 1}).expect(200)


@pytest.mark.parametrize("seq_from,seq_to,expected", [
    (1, None, range(1, 26)), (25, None, [25]), (26, None, []), (None, 1, [1]),
    (None, 25, range(1, 26)), (None, 1000, range(1, 26)), (5, 9, range(5, 10)), (7, 7, [7]),
])
def test_sequence_filters_include_both_ends(filled, seq_from, seq_to, expected):
    filters = {name: value for name, value in (("seq_from", seq_from), ("seq_to", seq_to)) if value}
    for limit in (3, 500):
        assert sequences(filled.live.walk("/v1/events", limit, **filters)) == list(expected)


@pytest.mark.parametrize("name", ["seq_from", "seq_to"])
@pytest.mark.parametrize("value", ["0", "-1", "1.5", "one", "", "99999999999999999999999"])
def test_a_sequence_filter_is_an_integer_from_1(filled, name, value):
    answer = filled.live.get("/v1/events", query={name: value}).expect(400, "validation_error")
    assert name in answer.message


def test_a_time_filter_includes_its_start_and_excludes_its_end(filled):
    times = [event["received_at"] for event in filled.events]
    first, later = times[0], times[15]

    def listed(**query):
        return sequences(filled.live.walk("/v1/events", 500, **query))
    expected_from = [event["sequence"] for event in filled.events if event["received_at"] >= later]
    expected_to = [event["sequence"] for event in filled.events if event["received_at"] < later]
    assert listed(**{"from": later}) == expected_from and expected_from[-1] == 25
    assert listed(to=later) == expected_to and expected_to[0] == 1
    assert listed(**{"from": first, "to": later}) == expected_to
    assert listed(to=first) == []
    assert listed(**{"from": "2999-01-01T00:00:00Z"}) == []
    assert listed(to="2999-01-01T00:00:00Z") == list(range(1, 26))


def test_a_time_filter_takes_any_offset(filled):
    middle = datetime.datetime.fromisoformat(filled.events[15]["received_at"])
    elsewhere = middle.astimezone(datetime.timezone(datetime.timedelta(hours=-3, minutes=-30)))
    utc = filled.live.walk("/v1/events", 500, **{"from": filled.events[15]["received_at"]})
    there = filled.live.walk("/v1/events", 500, **{"from": elsewhere.isoformat()})
    assert sequences(there) == sequences(utc)  # they may be sealed in between


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize("value", ["", "today", "2026-01-31", "2026-01-31T00:00:00",
                                   "2026-01-31 00:00:00Z", "2026-01-31T00:00:60Z"])
def test_a_time_filter_is_a_date_time_with_an_offset(filled, name, value):
    answer = filled.live.get("/v1/events", query={name: value}).expect(400, "validation_error")
    assert name in answer.message


def test_a_status_filter_gives_that_status_alone(filled):
    def listed(status, limit):
        return sequences(filled.live.walk("/v1/events", limit, status=status))
    for limit in (2, 500):
        assert listed("registered", limit) == list(range(1, 21))
        assert listed("unpaid", limit) == list(range(21, 26))
        assert listed("test", limit) == []
    assert sequences(filled.test.walk("/v1/events", 2, status="test")) == [1, 2, 3]
    assert filled.test.walk("/v1/events", 2, status="registered") == []


@pytest.mark.parametrize("target,values", [
    ("/v1/events", ["", "Unpaid", "completed", "all", "registered,unpaid"]),
    ("/v1/certifications", ["", "Completed", "unpaid", "all", "pending"]),
])
def test_an_unknown_status_is_refused(filled, target, values):
    for value in values:
        answer = filled.live.get(target, query={"status": value}).expect(400, "validation_error")
        assert "status" in answer.message


def test_time_sequence_and_status_filters_combine(filled):
    later = filled.events[15]["received_at"]
    both = filled.live.walk("/v1/events", 2, **{"from": later, "seq_to": 18})
    assert sequences(both) == [n for n in range(16, 19)]
    unpaid = filled.live.walk("/v1/events", 2, **{"from": later, "seq_to": 22, "status": "unpaid"})
    assert sequences(unpaid) == [21, 22]


def test_a_cursor_is_bound_to_its_filters(filled):
    query = {"limit": 5, "seq_from": 2}
    cursor = filled.live.get("/v1/events", query=query).json["next_cursor"]
    filled.live.get("/v1/events", query={**query, "cursor": cursor}).expect(200)
    for other in ({"limit": 5}, {"limit": 5, "seq_from": 3}, {**query, "seq_to": 20},
                  {**query, "status": "registered"}, {**query, "to": "2999-01-01T00:00:00Z"}):
        filled.live.get("/v1/events", query={**other, "cursor": cursor}).expect(400)


def test_the_page_size_may_change_along_a_walk(filled):
    first = filled.live.get("/v1/events", query={"limit": 5}).json
    second = filled.live.get("/v1/events", query={"limit": 3, "cursor": first["next_cursor"]})
    assert sequences(second.expect(200).json["data"]) == [6, 7, 8]


def test_a_foreign_cursor_is_refused(filled, channel):
    for n in range(3):
        channel.live.register({"n": n}).expect(201)
    for page in (channel.live.get("/v1/events", query={"limit": 2}),
                 filled.test.get("/v1/events", query={"limit": 2})):
        cursor = page.json["next_cursor"]
        answer = filled.live.get("/v1/events", query={"limit": 2, "cursor": cursor})
        answer.expect(400, "validation_error")
        assert "cursor" in answer.message
    own = filled.live.get("/v1/events", query={"limit": 2}).json["next_cursor"]
    filled.live.get("/v1/certifications", query={"limit": 2, "cursor": own}).expect(400)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cursor", ["", "0", "x" * 32, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "1",
                                    "\u00e9", "null"])
def test_an_invented_cursor_is_refused(filled, target, cursor):
    answer = filled.live.get(target, query={"cursor": cursor}).expect(400, "validation_error")
    assert "cursor" in answer.message


def test_a_cursor_altered_anywhere_is_refused(filled):
    cursor = filled.live.get("/v1/events", query={"limit": 5}).json["next_cursor"]
    for place in range(len(cursor)):
        letter = "A" if cursor[place] != "A" else "B"
        altered = cursor[:place] + letter + cursor[place + 1:]
        filled.live.get("/v1/events", query={"limit": 5, "cursor": altered}).expect(400)
    for altered in (cursor[:-1], cursor + "A", cursor.swapcase()):
        filled.live.get("/v1/events", query={"limit": 5, "cursor": altered}).expect(400)


def test_a_walk_is_not_disturbed_by_events_that_come_meanwhile(channel):
    for n in range(4):
        channel.live.register({"n": n}).expect(201)
    page = channel.live.get("/v1/events", query={"limit": 3}).json
    channel.live.register({"n": 4}).expect(201)
    rest = channel.live.get("/v1/events", query={"limit": 3, "cursor": page["next_cursor"]}).json
    assert sequences(page["data"] + rest["data"]) == [1, 2, 3, 4, 5]


def test_certifications_are_listed_newest_first_page_by_page_and_by_status(channel):
    channel.test.register().expect(201)
    made = [channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
            for _ in range(5)]
    for identifier in made:
        assert channel.test.settled(identifier)["status"] == "completed"
    for limit in (1, 2, 5, 500):
        items = channel.test.walk("/v1/certifications", limit)
        assert [item["certification_id"] for item in items] == made[::-1]
        done = channel.test.walk("/v1/certifications", limit, status="completed")
        assert done == items or [item["certification_id"] for item in done] == made[::-1]
    assert channel.test.walk("/v1/certifications", 2, status="failed") == []
    assert channel.test.walk("/v1/certifications", 2, status="processing") == []
    cursor = channel.test.get("/v1/certifications", query={"limit": 2}).json["next_cursor"]
    query = {"limit": 2, "status": "completed", "cursor": cursor}
    channel.test.get("/v1/certifications", query=query).expect(400, "validation_error")
    channel.test.get("/v1/events", query={"limit": 2, "cursor": cursor}).expect(400)


# ---- a list turned round ----

@pytest.mark.parametrize("limit", [1, 7, 24, 25, 26, 500])
def test_a_list_goes_down_as_it_goes_up(filled, limit):
    assert sequences(filled.live.walk("/v1/events", limit, order="desc")) == list(range(25, 0, -1))
    assert sequences(filled.live.walk("/v1/events", limit, order="asc")) == list(range(1, 26))


def test_filters_hold_downwards(filled):
    later = filled.events[15]["received_at"]

    def listed(**query):
        return sequences(filled.live.walk("/v1/events", 2, order="desc", **query))
    assert listed(status="unpaid") == [25, 24, 23, 22, 21]
    assert listed(status="test") == []
    assert listed(seq_from=5, seq_to=9) == [9, 8, 7, 6, 5]
    assert listed(seq_from=20, seq_to=1000) == list(range(25, 19, -1))
    assert listed(**{"from": later, "seq_to": 18}) == [18, 17, 16]
    assert listed(to=later) == list(range(15, 0, -1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ["ASC", "descending", "1", "asc,desc"])
def test_an_unknown_order_is_refused(filled, target, order):
    answer = filled.live.get(target, query={"order": order}).expect(400, "validation_error")
    assert "'order'" in answer.message and "asc, desc" in answer.message


@pytest.mark.parametrize("usual,other", [("asc", "desc"), ("desc", "asc")])
def test_a_cursor_goes_on_in_its_own_order_and_in_no_other(filled, usual, other):
    query = {"limit": 5, "seq_from": 2}
    first = filled.live.get("/v1/events", query={**query, "order": usual}).expect(200).json
    cursor = {**query, "cursor": first["next_cursor"]}
    expected = [7, 8, 9, 10, 11] if usual == "asc" else [20, 19, 18, 17, 16]
    for more in ({}, {"order": usual}):
        page = filled.live.get("/v1/events", query={**cursor, **more}).expect(200).json
        assert sequences(page["data"]) == expected
    answer = filled.live.get("/v1/events", query={**cursor, "order": other})
    answer.expect(400, "validation_error")
    assert f"order={usual}" in answer.message
    told = filled.live.get("/v1/events", query={**cursor, "order": other}, language="es")
    assert f"order={usual}" in told.expect(400).message and told.message != answer.message
    for foreign in ({**cursor, "seq_from": 3}, {**cursor, "status": "unpaid"}):
        answer = filled.live.get("/v1/events", query={**foreign, "order": other}).expect(400)
        assert "order=" not in answer.message
    letter = "A" if cursor["cursor"][-1] != "A" else "B"
    filled.live.get("/v1/events", query={**cursor, "cursor": cursor["cursor"][:-1] + letter}) \
        .expect(400)


def test_a_cursor_that_was_given_without_an_order_is_of_the_usual_one(filled):
    cursor = filled.live.get("/v1/events", query={"limit": 5}).json["next_cursor"]
    assert filled.live.get("/v1/events", query={"limit": 5, "order": "asc"}).json["next_cursor"] \
        == cursor
    page = filled.live.get("/v1/events", query={"limit": 2, "order": "asc", "cursor": cursor}).json
    assert sequences(page["data"]) == [6, 7]
    filled.live.get("/v1/events", query={"limit": 2, "order": "desc", "cursor": cursor}).expect(400)


def test_a_walk_downwards_is_not_disturbed_by_events_that_come_meanwhile(channel):
    """While somebody registers all the time, each that was there is given once, and none later."""
    for n in range(30):
        channel.live.register({"n": n}).expect(201)
    going_on = threading.Event()
    walker = Client(channel.service, channel.live.key)

    def register():
        while not going_on.is_set():
            channel.live.register({}).expect(201)
    thread = threading.Thread(target=register)
    thread.start()
    try:
        for _ in range(3):
            down = sequences(walker.walk("/v1/events", 3, order="desc"))
            assert down == list(range(down[0], 0, -1)) and down[0] >= 30
            up = sequences(walker.walk("/v1/events", 20, order="asc"))
            assert up == list(range(1, up[-1] + 1)) and up[-1] >= down[0]
    finally:
        going_on.set()
        thread.join()


def test_certifications_are_listed_oldest_first_too(channel):
    channel.test.register().expect(201)
    made = [channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
            for _ in range(5)]
    for identifier in made:
        assert channel.test.settled(identifier)["status"] == "completed"

    def listed(limit, **query):
        return [item["certification_id"]
                for item in channel.test.walk("/v1/certifications", limit, **query)]
    for limit in (1, 2, 5, 500):
        assert listed(limit, order="asc") == made
        assert listed(limit, order="desc") == made[::-1]
        assert listed(limit, order="asc", status="completed") == made
    page = channel.test.get("/v1/certifications", query={"limit": 2, "order": "asc"}).json
    query = {"limit": 2, "cursor": page["next_cursor"]}
    channel.test.certify(seq_from=1, seq_to=1).expect(202)
    again = channel.test.get("/v1/certifications", query=query).expect(200).json
    assert [item["certification_id"] for item in again["data"]] == made[2:4]
    answer = channel.test.get("/v1/certifications", query={**query, "order": "desc"})
    assert "order=asc" in answer.expect(400, "validation_error").message


# ---- by client_ref ----

def test_a_client_ref_finds_the_one_event_that_holds_it(filled, channel):
    for event in (filled.events[0], filled.events[24]):
        query = {"client_ref": event["client_ref"]}
        for more in ({}, {"order": "desc"}, {"limit": 1}, {"status": event["status"]},
                     {"seq_from": event["sequence"], "seq_to": event["sequence"]},
                     {"from": event["received_at"]}):
            page = filled.live.get("/v1/events", query={**query, **more}).expect(200).json
            assert (page["has_more"], page["next_cursor"]) == (False, None)
            assert [item["event_id"] for item in page["data"]] == [event["event_id"]], more
        for more in ({"status": "test"}, {"seq_from": event["sequence"] + 1},
                     {"to": event["received_at"]}, {"seq_to": 1, "status": "unpaid"}):
            page = filled.live.get("/v1/events", query={**query, **more}).expect(200).json
            assert page == {"data": [], "has_more": False, "next_cursor": None}, more
        for other in (filled.test, channel.live):
            assert other.get("/v1/events", query=query).expect(200).json["data"] == []
    assert filled.live.get("/v1/events", query={"client_ref": "no such"}).json["data"] == []


@pytest.mark.parametrize("ref", ["a b&c=d+e%20", "a+b", "+", " ", "ñ€😀", "x" * 255, "0", "'; DROP TABLE events"])
def test_any_client_ref_can_be_looked_for(shared, ref):
    made = shared.live.register({}, ref).json
    for encode in (urllib.parse.quote, urllib.parse.quote_plus):  # a space is %20 or +
        listed = shared.live.get(f"/v1/events?client_ref={encode(ref)}").expect(200).json["data"]
        assert [event["client_ref"] for event in listed] == [made["client_ref"]] == [ref]


@pytest.mark.parametrize("ref", ["", "x" * 256, "ñ" * 128, "a\tb", "\x7f", "\u0085"])
def test_a_client_ref_that_none_can_be_is_refused_as_when_registering(shared, ref):
    refused = shared.live.register({}, ref).expect(400, "validation_error")
    answer = shared.live.get("/v1/events", query={"client_ref": ref})
    answer.expect(400, "validation_error")
    assert "'client_ref'" in answer.message
    assert answer.message == refused.message or ref == ""


def test_an_event_is_found_as_soon_as_it_is_acknowledged(channel):
    for n in range(50):
        event = channel.live.register({}, f"ref-{n}").expect(201).json
        page = channel.live.get("/v1/events", query={"client_ref": f"ref-{n}"}).expect(200).json
        assert [found["event_id"] for found in page["data"]] == [event["event_id"]]


def test_a_cursor_of_the_whole_list_is_not_good_for_a_client_ref(filled):
    cursor = filled.live.get("/v1/events", query={"limit": 5}).json["next_cursor"]
    query = {"client_ref": filled.events[20]["client_ref"], "cursor": cursor}
    filled.live.get("/v1/events", query=query).expect(400, "validation_error")


# ---- ranges the wrong way round, and nothing for something ----

@pytest.mark.parametrize("first,last,low,high", [
    ("from", "to", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z"),
    ("from", "to", "2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z"),
    ("seq_from", "seq_to", 1, 2), ("seq_from", "seq_to", 3, 1000000),
])
def test_a_range_the_wrong_way_round_is_told_the_same_way_everywhere(filled, first, last, low, high):
    filled.live.get("/v1/events", query={first: low, last: low}).expect(200)
    filled.live.get("/v1/events", query={first: low, last: high}).expect(200)
    for language in ("en", "es"):
        told = {answer.expect(400, "validation_error").message for answer in (
            filled.live.get("/v1/events", query={first: high, last: low}, language=language),
            filled.live.get("/v1/events", query={first: high, last: low, "order": "desc"},
                            language=language),
            filled.test.post("/v1/certifications", {first: high, last: low}, language=language))}
        assert len(told) == 1 and f"'{first}'" in (message := told.pop()) and f"'{last}'" in message


@pytest.mark.parametrize("target,names", [
    ("/v1/events", ["from", "to", "seq_from", "seq_to", "status", "client_ref", "order", "limit",
                    "cursor"]),
    ("/v1/certifications", ["status", "order", "limit", "cursor"]),
])
def test_a_parameter_without_a_value_is_told_as_what_it_is(filled, target, names):
    for name in names:
        for query in (f"?{name}=", f"?{name}", f"?limit=2&{name}=" if name != "limit" else "?limit"):
            answer = filled.live.get(target + query).expect(400, "validation_error")
            assert f"'{name}'" in answer.message and "empty" in answer.message
        assert "vacío" in filled.live.get(f"{target}?{name}=", language="es").expect(400).message
