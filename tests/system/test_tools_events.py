"""The command `events tail`."""

import json

import pytest

from scripted import cut, say, script  # noqa: F401
from tools import Tools, tools_of


def test_the_newest_events_come_in_order(service, channel, tmp_path):
    tools = tools_of(service, channel.live_key["key"], tmp_path)
    assert tools.run("events", "tail").stdout == ""
    for _ in range(12):
        channel.live.register()
    listed = [{**one, "timestamp": None} for one in channel.live.get("/v1/events").json["data"]]

    def tail(*words):
        """Events without their timestamps, which a sealing round may add meanwhile."""
        return [{**one, "timestamp": None} for one in tools.lines("events", "tail", *words)]
    assert tail("-n", 3) == listed[-3:]
    assert tail() == listed[2:]
    assert tools.lines("events", "tail", "--lines", 0) == []
    first = tools.run("events", "tail", "-n", 1).stdout.split()
    assert first == [str(listed[-1][name]) for name in
                     ("sequence", "received_at", "event_id", "status", "hash", "client_ref")]


def test_new_events_follow(service, channel, tmp_path):
    tools = tools_of(service, channel.live_key["key"], tmp_path)
    channel.live.register()
    with tools.running("events", "tail", "--follow", "--interval", "50ms", "--json") as tail:
        assert tail.json(0)["sequence"] == 1
        channel.live.register()
        channel.live.register()
        assert [tail.json(number)["sequence"] for number in (1, 2)] == [2, 3]


def page(*sequences):
    return say(200, json.dumps({"data": [{"sequence": number, "event_id": f"evt_{number}"} for number in sequences]},
                               indent=1).encode())


def test_a_lost_connection_repeats_no_event(script, tmp_path):  # noqa: F811
    refusal = json.dumps({"code": "revoked_key", "message": "Revoked."}).encode()
    script.answers = [page(2, 1), page(3), cut(b"{", 9), page(4), say(401, refusal)]
    done = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).run(
        "events", "tail", "--follow", "--interval", "1ms", "--json", expect=1)
    assert [json.loads(line)["sequence"] for line in done.stdout.splitlines()] == [1, 2, 3, 4]
    assert [seen.path.split("seq_from=")[1] for seen in script.seen[1:]] == ["3", "4", "4", "5"]


def test_nothing_old_is_printed_with_no_lines(script, tmp_path):  # noqa: F811
    script.answers = [page(7), page(8), say(401, b'{"code": "revoked_key", "message": "Revoked."}')]
    done = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).run(
        "events", "tail", "--follow", "--interval", "1ms", "-n", "0", "--json", expect=1)
    assert [json.loads(line)["sequence"] for line in done.stdout.splitlines()] == [8]


@pytest.mark.parametrize("words", [("-n", "501"), ("-n", "x"), ("--interval", "2"), ("extra",)])
def test_misuse_is_refused(tmp_path, words):
    assert Tools("http://127.0.0.1:1/v1", "svc_test_x", tmp_path).error("events", "tail", *words, expect=2)
