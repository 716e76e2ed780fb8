"""The commands `listen` and `trigger`: notices of the test mode, on a machine that no webhook reaches."""

import json

import pytest

from client import fresh, run
from hooks import Receiver
from scripted import cut, hang_up, say, script  # noqa: F401
from tools import Tools, tools_of


@pytest.fixture
def tools(service, shared, tmp_path):
    return tools_of(service, shared.test_key["key"], tmp_path)


def secret_file(tools):
    secret = "whsec_" + fresh()
    (tools.folder / "secret").write_text(secret + "\n")
    return secret


def types():
    """Those that the completion of a shell offers."""
    return [line.split(":")[1] for line in run("completion", "bash").stdout.splitlines()
            if line.startswith("trigger:") and line.endswith("::") and line != "trigger:::"]


def test_notices_are_forwarded_as_webhooks_are(tools):
    with Receiver() as receiver, tools.running("listen", "--forward-to", receiver.url, "--json") as listening:
        started = listening.json(0)
        assert started["forward_to"] == receiver.url
        receiver.secrets = [started["secret"]]
        assert len(types()) == 11
        for number, kind in enumerate(types()[:-1], 1):  # webhook.test is a notice of an endpoint alone
            made = tools.lines("trigger", kind)[0]
            delivery = receiver.next()
            assert json.loads(delivery.body) == made and made["type"] == kind
            said = listening.json(number)
            assert said["notice"] == made and said["acknowledged"] and said["attempt"] == 1
            assert said["status"] // 100 == 2 and said["reason"] is None
        receiver.check()


def test_the_notice_of_a_test_certification_is_forwarded(tools, shared):
    shared.test.register()
    with Receiver() as receiver:
        receiver.secrets = [secret_file(tools)]
        with tools.running("listen", "--forward-to", receiver.url, "--secret-file", "secret",
                           "--types", "balance.low,certification.completed", "--once", "1") as listening:
            listening.line(0)
            tools.run("trigger", "balance.exhausted")  # not one of the types
            last = shared.test.get("/v1/events?order=desc&limit=1").json["data"][0]["sequence"]
            certified = shared.test.certified(seq_from=last, seq_to=last)
            delivery = receiver.next()
            receiver.check()
            assert json.loads(delivery.body)["data"]["certification_id"] == certified["certification_id"]
            assert listening.process.wait(60) == 0
            assert "whsec_" not in "".join(listening.lines)


def test_without_a_receiver_notices_are_printed(tools):
    with tools.running("listen", "--json", "--once", "1") as listening:
        assert listening.json(0) == {"forward_to": None, "secret": None}
        made = tools.run("trigger", "balance.low").stdout
        assert listening.json(1)["notice"]["id"] in made
        assert listening.process.wait(60) == 0


def test_a_live_key_is_refused(service, shared, tmp_path):
    tools = tools_of(service, shared.live_key["key"], tmp_path)
    assert "test" in tools.error("listen")["message"]
    assert "test" in tools.error("trigger", "balance.low")["message"]


def test_an_unknown_type_is_refused_with_the_known_ones(tools):
    message = tools.error("trigger", "balance.high")["message"]
    assert all(kind in message for kind in types())
    assert "balance.high" in tools.error("listen", "--types", "balance.low,balance.high", expect=2)["message"]


@pytest.mark.parametrize("words", [
    ("--forward-to", "localhost"), ("--once", "0"), ("--secret-file", "empty"), ("--forward-to", "http://a@b/")])
def test_misuse_is_refused(tmp_path, words):
    (tmp_path / "empty").write_text("\n")
    assert Tools("http://127.0.0.1:1/v1", "svc_test_x", tmp_path).error("listen", *words, expect=2)


# ---- against scripted servers ----

def notice(number):
    return {"id": f"ntc_{number}", "type": "balance.low", "created_at": "2026-01-01T00:00:00.000000Z",
            "mode": "test", "data": {"text": 'a "quoted] \\ text}', "list": [1, {"b": [2.50]}]}}


def notices(*numbers, cursor):
    body = json.dumps({"has_more": False, "data": [notice(number) for number in numbers], "next_cursor": cursor},
                      indent=1)
    return say(200, body.encode())


def receiver_of(script):  # noqa: F811
    """A second scripted server: what listens is the first."""
    return f"{script.url}/hook"


def test_a_failing_receiver_never_blocks_later_notices(script, tmp_path):  # noqa: F811
    """The answers to the polls and to the receiver are one script, because the command does one after the other."""
    script.answers = [notices(cursor="c 1"), notices(1, 2, cursor="c2"), hang_up, say(302, Location="/elsewhere"), say(500),
                      say(204)]
    tools = Tools(f"{script.url}/v1", "acme_test_x", tmp_path)
    done = tools.run("listen", "--forward-to", receiver_of(script), "--once", "2", "--json", expect=1)
    said = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert [(one["notice"]["id"], one["attempt"], one["status"], one["acknowledged"]) for one in said] == [
        ("ntc_1", 1, None, False), ("ntc_1", 2, 302, False), ("ntc_1", 3, 500, False), ("ntc_2", 1, 204, True)]
    assert said[0]["reason"]
    hooks = [seen for seen in script.seen if seen.command == "POST"]
    assert [seen.path for seen in hooks] == ["/hook"] * 4, "redirects are not followed"
    assert [json.loads(seen.body) for seen in hooks] == [notice(1)] * 3 + [notice(2)]
    assert hooks[0].body in json.dumps({"data": [notice(1)]}, indent=1).encode(), "byte for byte as it came"
    assert {seen.headers["Authorization"] for seen in hooks} == {None}
    assert hooks[0].headers["X-ACME-Webhook-Id"] == "ntc_1", "the prefix is that of the key"
    assert [seen.path for seen in script.seen if seen.command == "GET"] == [
        "/v1/notices", "/v1/notices?wait=20&limit=100&cursor=c%201"]


def test_the_connection_is_made_again(script, tmp_path):  # noqa: F811
    script.answers = [notices(cursor="c1"), cut(b"{", 9), say(503, b"{}"), notices(1, cursor="c2")]
    done = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).run("listen", "--once", "1", "--json")
    assert json.loads(done.stdout.splitlines()[-1])["notice"] == notice(1)
    assert len(done.stderr.splitlines()) == 2
    assert [seen.path.split("=")[-1] for seen in script.seen[1:]] == ["c1"] * 3


def test_a_key_that_is_refused_ends_it(script, tmp_path):  # noqa: F811
    refusal = json.dumps({"code": "revoked_key", "message": "This API key has been revoked."}).encode()
    script.answers = [notices(cursor="c1"), say(401, refusal)]
    tools = Tools(f"{script.url}/v1", "svc_test_x", tmp_path)
    assert tools.error("listen")["code"] == "revoked_key"
    script.answers = [hang_up]
    assert tools.error("listen", expect=2)["code"] == "temporarily_unavailable", "it never began"


def test_trigger_is_not_repeated(script, tmp_path):  # noqa: F811
    script.answers = [hang_up]
    assert Tools(f"{script.url}/v1", "svc_test_x", tmp_path).error("trigger", "balance.low", expect=2)
    assert len(script.seen) == 1
