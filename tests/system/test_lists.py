"""GET /v1/events and /v1/certifications as lists: pages, cursors and filters."""

import datetime
import time

import pytest

from client import EVENT, LIST

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
    assert filled.live.walk("/v1/events", 500, **{"from": elsewhere.isoformat()}) == utc


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
