"""Trying the interface from a page: the answer is that of the interface, and the command on the page runs and registers
the same event."""

import hashlib
import html
import http.client
import json
import os
import re
import secrets
import subprocess
import threading

import pytest

import receipts
from client import PATIENCE
from console import new_developer

TRY, SEND = "/console/try", "/console/try/send"
# Characters that may end a literal, or are invisible on a page.
HOSTILE = ("it's \"quoted\" \\ `date` $HOME $(date) ${x} !! %s %% \\n </script><!-- --> ]]> \u2028\u2029 \u202e \u00a0 "
           "\t \U0001f600 \U000e0041 \u00ad \ufeff // /* # */ ''' \"\"\" {{x}} &amp; \x7f\u0085\u200d\u1234")


def tried(visitor, channel, content, client_ref="one", **more):
    """Returns the status and the body that the page shows."""
    visitor.get(TRY).send(SEND, channel=channel.id, content=content, client_ref=client_ref, **more)
    assert visitor.status == 200, visitor.text()
    return answer_of(visitor)


def answer_of(visitor):
    status = re.search(r"<dd>HTTP (\d+)</dd>", visitor.body)[1]
    body = re.search(r'<pre class="content program" tabindex="0"><code>(.*?)</code>', visitor.body, re.S)[1]
    return int(status), json.loads(html.unescape(body))


def command_of(visitor):
    return html.unescape(re.search(r'data-program="curl"><code>(.*?)</code></pre>', visitor.body, re.S)[1])


def run(command, key, folder, shell="bash"):
    """Runs the command and returns its exit code and output."""
    (folder / "call.sh").write_text(command, encoding="utf-8")
    done = subprocess.run([shell, "call.sh"], cwd=folder, capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, "CONSTANCIA_TEST_KEY": key, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout + done.stderr


def test_the_page_links_the_operation_in_the_reference(service):
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    assert tried(developer, channel, "{}")[0] == 201
    assert 'href="/docs/reference#registerEvent"' in developer.body
    assert 'id="registerEvent"' in developer.get("/docs/reference").body
    channel.close()


def test_the_answer_is_that_of_the_interface(service):
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    before = service.admin("account", "show", channel.account_id)["balance"]
    status, event = tried(developer, channel, '{"b": 1.0,\n\t"a": "ñ"}', "first")
    first = event.pop("receipt")  # of the registration, not of the event
    assert status == 201 and event == {k: v for k, v in channel.test.event(event["event_id"]).items() if k != "proof"}
    assert first["seal_by"] is None and receipts.is_signed({**event, "receipt": first})
    assert event["hash"] == hashlib.sha256('{"a":"ñ","b":1}'.encode()).hexdigest()
    assert (event["status"], event["mode"], event["timestamp"]["type"]) == ("test", "test", "simulated")
    assert f"/console/events/{event['event_id']}" in developer.links()
    assert "first" in developer.body and "&#39;" not in event["client_ref"]
    assert html.escape('{"b": 1.0,\n\t"a": "ñ"}') in developer.body, "what was typed stays"
    status, again = tried(developer, channel, '{"a": "ñ", "b": 1}', "first")
    assert status == 200 and "was already registered" in " ".join(developer.text().split())
    with_key = channel.test.register({"a": "ñ", "b": 1}, "first").expect(200).json
    for one in again, with_key:
        assert receipts.is_signed(one), "each answer is signed"
        assert {k: v for k, v in one.items() if k != "receipt"} == event
    assert service.admin("account", "show", channel.account_id)["balance"] == before
    acts = service.admin("audit", "list", "--account", channel.account_id, "--operation", "event try")["data"]
    assert len(acts) == 2 and (acts[0]["made"], acts[0]["found"]) == ({}, {"event_id": event["event_id"]})
    act = acts[-1]
    assert not {"found", "outcome"} & set(act)
    owner = new_developer(service, channel.account_id, "owner").get(f"/console/acts/{acts[0]['act_id']}")
    assert re.search(rf"Already existed\W+event_id\W+{event['event_id']}", owner.text())
    assert act["made"] == {"event_id": event["event_id"]} and act["email"] and act["account_id"] == channel.account_id
    typed = hashlib.sha256('{"b": 1.0,\n\t"a": "ñ"}'.encode()).hexdigest()
    assert act["arguments"]["content"] == f"sha-256:{typed}" and act["arguments"]["client_ref"] == "first"
    developer.get(f"/console/events/{event['event_id']}")
    assert developer.status == 200
    channel.close()


REFUSALS = [
    ("{", {}), ("[1]", {}), ("1", {}), ('{"a":1,"a":2}', {}), ('{"a":"\\ud800"}', {}), ('{"a":1e999}', {}),
    ('{"a":9007199254740993}', {}), ('{"a":' * 1000 + "1" + "}" * 1000, {}), ('{"a":"\\u0000', {}),
    ('{},"occurred_at":"2026-01-01T00:00:00Z"', {}), ('{}}', {}), ("{}", {"client_ref": "x" * 256}),
    ("{}", {"client_ref": "a\tb"}), ("{}", {"scenario": "unpaid_limit"}), ("{}", {"scenario": "rate_limited"}),
    ("{}", {"scenario": "temporarily_unavailable"}), ("{}", {"scenario": "suspended"}),
    ("{}", {"scenario": "account_disabled"}), ("{}", {"scenario": "client_ref_conflict"}),
    ("{}", {"scenario": "limit_blocked"}),
]


@pytest.mark.parametrize("content,more", REFUSALS, ids=range(len(REFUSALS)))
@pytest.mark.parametrize("language", ["en", "es"])
def test_a_refusal_is_the_interfaces_error(shared, content, more, language):
    service = shared.test.service
    developer = new_developer(service, shared.account_id, language=language)
    more = {"client_ref": f"refused-{secrets.token_hex(8)}", **more}
    status, error = tried(developer, shared, content, **more)
    assert not service.admin("event", "list", "--channel", shared.id, "--mode", "test", "--client-ref",
                             more["client_ref"][:255].replace("\t", " "))["data"]
    body = f'{{"client_ref":{json.dumps(more["client_ref"])},"payload":{content}}}'.encode()
    headers = {"X-SVC-Test-Scenario": more["scenario"]} if "scenario" in more else {}
    answer = shared.test.call("POST", "/v1/events", body, {"Content-Type": "application/json", **headers},
                              language=language)
    if content.startswith(("{}}", '{},"')):  # within a body it would have another meaning
        assert status == 400 and error["code"] == "validation_error"
    else:
        told = answer.json
        assert (status, error["code"], error["doc_url"]) == (answer.status, told["code"], told["doc_url"])
        # Position and path refer to the typed text.
        there = re.sub(r" \(payload\)|(?<=[('])payload\.", "", told["message"])
        assert re.sub(r"\d+", "", error["message"]) == re.sub(r"\d+", "", there)
    assert html.escape(content).replace("&#x27;", "&#39;") in developer.body, "what was typed stays"


def test_the_size_ends_at_16_kib(service):
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    assert tried(developer, channel, '{"a":"%s"}' % ("x" * (16384 - 8)), "edge")[0] == 201
    developer.get(TRY).send(SEND, channel=channel.id, client_ref="over", content='{"a":"%s"}' % ("x" * (16384 - 7)))
    assert developer.status == 400 and "“Content” must be 1 to 16384 bytes" in developer.text()
    assert "x" * 16000 in developer.body
    # Longer in canonical form than as it was typed.
    status, error = tried(developer, channel, '{"a":[%s]}' % ",".join(["1e20"] * 2000), "grown")
    assert (status, error["code"]) == (413, "payload_too_large") and "16384" in error["message"]
    developer.get(TRY).send(SEND, channel=channel.id, client_ref="nothing", content="")
    assert developer.status == 400
    channel.close()


def payloads():
    yield {"order": 1001, "total": "49.90", "yes": True, "no": False, "none": None, "list": [], "object": {}}
    yield {HOSTILE: HOSTILE, "__proto__": {"a": 1}, "constructor": 1, "'": "'", "": ""}
    yield {"deep": json.loads("[" * 60 + "1" + "]" * 60), "many": list(range(2000))}


@pytest.mark.parametrize("which", range(3))
def test_the_command_registers_the_very_same(service, tmp_path, which):
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    payload = list(payloads())[which]
    client_ref = "it's \"one\" $HOME `date` \\n %s </script> \U0001f600"
    text = json.dumps(payload, ensure_ascii=False, indent=None if which == 2 else 2)
    text = text.replace('"order": 1001', '"order": 1001, "as spelled": [-0, 1E5, 0.1e-7, -0.0, 9007199254740991]')
    status, event = tried(developer, channel, text, client_ref)
    assert status == 201, event
    command = command_of(developer)
    assert f"{service.public_url}/v1" in command and channel.id in command and "CONSTANCIA_TEST_KEY" in command
    assert "svc_test_" not in developer.body and "<script>" not in developer.body.split("<main")[1]
    for shell in ("bash", "dash"):
        code, said = run(command, channel.test.key, tmp_path, shell)
        assert code == 0 and event["hash"] in said and event["event_id"] in said, (command, said)
    count = service.admin("channel", "show", channel.id)["test_events"]
    assert count == 1, "no second one"
    channel.close()


@pytest.mark.parametrize("text", [HOSTILE + "\n" + HOSTILE, "-n", "--", "\n\n", "plain"], ids=range(5))
def test_the_command_declares_the_digest_of_a_text(service, tmp_path, text):
    channel = service.new_channel("hash_only")
    developer = new_developer(service, channel.account_id)
    status, event = tried(developer, channel, text.replace("\n", "\r\n"), "digest")
    assert status == 201 and event["hash"] == hashlib.sha256(text.encode()).hexdigest(), event
    assert (event["modality"], event["hash_alg"]) == ("hash_only", "sha-256")
    code, said = run(command_of(developer), channel.test.key, tmp_path)
    assert code == 0 and event["event_id"] in said, (command_of(developer), said)
    channel.close()


def test_the_command_forces_the_scenario(service, tmp_path):
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    status, error = tried(developer, channel, "{}", "forced", scenario="unpaid_limit")
    assert (status, error["code"]) == (402, "unpaid_limit_exceeded")
    code, said = run(command_of(developer), channel.test.key, tmp_path)
    assert code != 0 and "unpaid" in said.lower(), said
    channel.close()


def test_who_may(service):
    channel, other = service.new_channel(), service.new_channel()
    for role in ("owner", "developer", "accountant", "reader"):
        visitor = new_developer(service, channel.account_id, role)
        may = role in ("owner", "developer")
        assert (TRY in visitor.get("/console/").links()) == may, role
        visitor.get(TRY)
        assert visitor.status == (200 if may else 403)
        own = visitor.get("/console/sessions").own_fields()
        for whose, status in ((channel, 200 if may else 403), (other, 404 if may else 403)):
            visitor.post(SEND, {**own, "channel": whose.id, "client_ref": role, "content": "{}", "language": "en"},
                         **{"Sec-Fetch-Site": "same-origin"})
            assert visitor.status == status, (role, whose.id, visitor.text())
    assert service.admin("channel", "show", other.id)["test_events"] == 0
    assert service.admin("channel", "show", channel.id)["test_events"] == 2
    channel.close()
    other.close()


def test_a_suspended_channel_and_a_disabled_account(service):
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    service.admin("channel", "suspend", channel.id)
    assert [tried(developer, channel, "{}")[0], answer_of(developer)[1]["code"]] == [403, "suspended"]
    service.admin("channel", "resume", channel.id)
    assert tried(developer, channel, "{}")[0] == 201
    status, error = tried(developer, channel, '{"other": 1}')
    assert (status, error["code"]) == (409, "client_ref_conflict") and error["event_id"] in developer.body
    service.admin("account", "disable", channel.account_id)
    status, error = tried(developer, channel, "{}")
    assert (status, error["code"]) == (403, "account_disabled")
    channel.close()


@pytest.mark.usefixtures("one_day")
def test_it_counts_against_the_quota(start):
    service = start()
    channel = service.new_channel()

    def refused():
        answer = service.admin("event", "try", channel.id, "--client-ref", secrets.token_hex(8), "--content", "{}")
        return answer if answer["status"] == 429 else None
    assert not refused()
    assert service.stop() == 0
    service.store.change("UPDATE test_usage SET events = 9999")
    service.start()
    assert not refused(), "the last one"
    answer = refused()
    assert answer["answer"]["code"] == "test_quota_exceeded" and answer["retry_after"] > 1
    channel.test.register().expect(429, "test_quota_exceeded")
    assert service.admin("channel", "show", channel.id)["test_events"] == 2
    acts = service.admin("audit", "list", "--account", channel.account_id, "--operation", "event try")["data"]
    assert len(acts) == 2 and all(one["actor"] == "operator" for one in acts)
    channel.close()


def test_a_flood_of_one_user_is_bounded(start):
    service = start(rate__test=1)
    channel, other = service.new_channel(), service.new_channel()
    calm = new_developer(service, other.account_id)
    developer = new_developer(service, channel.account_id)
    own = {**developer.get(TRY).own_fields(), "channel": channel.id, "content": "{}", "language": "en"}
    for number in range(40):
        developer.post(SEND, {**own, "client_ref": f"n{number}"}, **{"Sec-Fetch-Site": "same-origin"})
        assert developer.status in (200, 429)
        if developer.status == 429 or answer_of(developer)[0] == 429:
            break
    else:
        raise AssertionError("all of it was taken")
    assert answer_of(developer)[1]["code"] == "rate_limited"
    assert tried(calm, other, "{}")[0] == 201, "another account's continues"
    channel.close()
    other.close()


def test_the_service_stops_while_events_are_tried(start):
    service = start(rate__test=1000, rate__live=10000)
    channel = service.new_channel()
    developer = new_developer(service, channel.account_id)
    own = {**developer.get(TRY).own_fields(), "channel": channel.id, "content": "{}", "language": "en"}
    seen, begun = [], threading.Event()

    def send():
        number = 0
        try:
            while True:
                number += 1
                developer.post(SEND, {**own, "client_ref": f"n{number}"}, **{"Sec-Fetch-Site": "same-origin"})
                if developer.status == 200 and answer_of(developer)[0] == 201:
                    seen.append(answer_of(developer)[1]["event_id"])
                    begun.set()
        except (OSError, http.client.HTTPException, AssertionError):  # it succeeds, or answers 503
            return
    sending = threading.Thread(target=send)
    sending.start()
    assert begun.wait(PATIENCE)
    assert service.stop() == 0
    sending.join(PATIENCE)
    service.start()
    held = {one["event_id"] for one in service.admin(
        "event", "list", "--channel", channel.id, "--mode", "test", "--limit", "1000")["data"]}
    assert seen and set(seen) <= held, "what was answered is there"
    channel.close()


def test_the_page_without_a_channel(service):
    owner = new_developer(service, service.new_account(), "owner", "es")
    owner.get(TRY)
    assert owner.status == 200 and "aún no hay canales" in owner.text() and "/console/channels" in owner.links()
