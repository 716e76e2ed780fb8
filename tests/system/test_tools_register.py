"""The command `register`: files through the interface, and their receipts."""

import hashlib
import json
import os

import pytest

from client import fresh, run
from scripted import cut, hang_up, say, script  # noqa: F401
from tools import Tools, receipts_of, tools_of

FILE_MAX = 10 << 20


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def tools(service, shared, tmp_path):
    return tools_of(service, shared.test_key["key"], tmp_path)


def test_files_are_registered_once(service, channel, tmp_path):
    tools = tools_of(service, channel.live_key["key"], tmp_path)
    contents = {"a.txt": b"one", "b ñ\".bin": os.urandom(3 << 20), "empty": b""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    first = tools.lines("register", *contents)
    assert [one["file"] for one in first] == list(contents)
    assert [one["replayed"] for one in first] == [False] * 3
    for one in first:
        content = contents[one["file"]]
        assert one["receipt"]["hash"] == digest(content)
        assert one["receipt"]["client_ref"] == f"{one['file']}:{digest(content)}"
        assert channel.live.content(one["receipt"]["event_id"]).body == content
    assert receipts_of(tmp_path) == [one["receipt"] for one in first]
    again = tools.lines("register", *contents)
    assert [one["replayed"] for one in again] == [True] * 3
    assert [one["receipt"]["event_id"] for one in again] == [one["receipt"]["event_id"] for one in first]
    assert len(channel.live.get("/v1/events").json["data"]) == 3
    assert "a.txt: registered before as evt_" in tools.run("register", "a.txt").stdout


def test_a_channel_without_content_gets_the_digest(service, hash_channel, tmp_path):
    tools = tools_of(service, hash_channel.test_key["key"], tmp_path)
    content = os.urandom(FILE_MAX + (1 << 20))  # more than a file that is sent may have
    (tmp_path / "large.bin").write_bytes(content)
    (one,) = tools.lines("register", "large.bin")
    assert one["receipt"]["hash"] == digest(content)
    assert one["receipt"]["modality"] == "hash_only"


def test_standard_input_needs_a_reference(service, hash_channel, tools):
    ref = fresh()
    (one,) = tools.lines("register", "-", "--ref", ref, input="from a pipe")
    assert (one["file"], one["receipt"]["client_ref"]) == ("standard input", ref)
    assert one["receipt"]["hash"] == digest(b"from a pipe")
    assert "--ref" in tools.error("register", "-", expect=2)["message"]
    hashed = tools_of(service, hash_channel.test_key["key"], tools.folder)
    (one,) = hashed.lines("register", "-", "--ref", ref, "--digest-only", input="from a pipe")
    assert one["receipt"]["hash"] == digest(b"from a pipe")


def test_a_json_object_is_a_payload(tools):
    (tools.folder / "payload.json").write_text(' {"b": 1.50, "a": "\\u0061"}\n')
    (one,) = tools.lines("register", "--payload", "payload.json", "--occurred-at", "2026-01-31T09:30:00+01:00")
    assert one["receipt"]["hash"] == digest(b'{"a":"a","b":1.5}')
    assert one["receipt"]["occurred_at"] == "2026-01-31T08:30:00.000000Z"
    (tools.folder / "list.json").write_text("[1]")
    assert "must be an object" in tools.error("register", "--payload", "list.json")["message"]
    (tools.folder / "twice.json").write_text('{"a":1,"a":2}')
    assert "repeated" in tools.error("register", "--payload", "twice.json")["message"]


def test_a_refused_file_does_not_keep_the_others(tools):
    (tools.folder / "large").write_bytes(bytes(FILE_MAX + (1 << 20)))
    (tools.folder / "good").write_text(fresh())
    done = tools.run("register", "large", "missing", "good", "--json", expect=2)
    codes = [json.loads(line)["code"] for line in done.stderr.splitlines()]
    assert codes == ["payload_too_large", "temporarily_unavailable"]
    assert [json.loads(line)["file"] for line in done.stdout.splitlines()] == ["good"]
    assert len(receipts_of(tools.folder)) == 1
    ref = fresh()
    tools.run("register", "good", "--ref", ref)
    (tools.folder / "good").write_text("another content")
    assert tools.error("register", "good", "--ref", ref)["code"] == "client_ref_conflict"


def test_a_key_that_is_refused_ends_the_command(tools):
    for name in "ab":
        (tools.folder / name).write_text(name)
    tools.environment["CONSTANCIA_KEY"] = "svc_test_unknown"
    done = tools.run("register", "a", "b", "--digest-only", "--json", expect=1)
    assert [json.loads(line)["code"] for line in done.stderr.splitlines()] == ["invalid_key"]


def test_the_key_comes_from_a_file_and_never_from_the_command_line(service, shared, tmp_path):
    tools = Tools(f"{service.public_url}/", "", tmp_path)  # the version is appended
    (tmp_path / "key").write_text(shared.test_key["key"] + "\n")
    (tmp_path / "a").write_text(fresh())
    (one,) = tools.lines("register", "a", "--key-file", "key")
    assert one["receipt"]["mode"] == "test"
    assert "CONSTANCIA_KEY" in tools.error("register", "a", expect=2)["message"]
    assert "missing" in tools.error("register", "--key-file", "missing", "a", expect=2)["cause"]
    (tmp_path / "bad").write_text("svc test\n")
    assert "characters" in tools.error("register", "--key-file", "bad", "a")["message"]
    tools.environment["CONSTANCIA_URL"] = ""
    assert "CONSTANCIA_URL" in tools.error("register", "a", expect=2)["message"]
    assert "--key " not in tools.run("register", "--help").stdout


@pytest.mark.parametrize("words", [
    (), ("a", "b", "--ref", "r"), ("a", "--payload", "b"), ("--payload", "a", "--digest-only"),
    ("a", "--occurred-at", "yesterday")])
def test_misuse_is_refused_before_anything_is_sent(tmp_path, words):
    tools = Tools("http://127.0.0.1:1/v1", "svc_test_x", tmp_path)
    assert tools.error("register", *words, expect=2)["code"] == "validation_error"


def event(content, ref, **more):
    return json.dumps({"event_id": "evt_1", "client_ref": ref, "hash": digest(content), "sequence": 1,
                       "received_at": "2026-01-01T00:00:00.000000Z", **more}).encode()


def test_lost_answers_and_busy_servers_are_asked_again(script, tmp_path):  # noqa: F811
    (tmp_path / "a").write_bytes(b"one")
    good = event(b"one", "r")
    script.answers = [say(503, b"{}", Retry_After="0"), hang_up, cut(good, len(good) + 5), say(201, good)]
    tools = Tools(f"{script.url}/v1", "svc_test_x", tmp_path)
    (one,) = tools.lines("register", "a", "--ref", "r", "--digest-only")
    assert one["receipt"]["event_id"] == "evt_1"
    assert len({seen.body for seen in script.seen}) == 1 and len(script.seen) == 4
    assert {seen.headers["Authorization"] for seen in script.seen} == {"Bearer svc_test_x"}
    assert len(receipts_of(tmp_path)) == 1


def test_a_file_is_sent_whole_again(script, tmp_path):  # noqa: F811
    content = os.urandom(1 << 20)
    (tmp_path / "a").write_bytes(content)
    channel = json.dumps({"channel_id": "chn_1", "current_config": {"modality": "content"}}).encode()
    script.answers = [say(200, channel), hang_up, say(201, event(content, "r"))]
    Tools(f"{script.url}/v1", "svc_test_x", tmp_path).run("register", "a", "--ref", "r")
    first, second = (seen.body.split(b"\r\n\r\n")[-1] for seen in script.seen[1:])
    assert first == second and first.startswith(content)


def test_a_long_wait_is_not_begun(script, tmp_path):  # noqa: F811
    (tmp_path / "a").write_bytes(b"one")
    body = json.dumps({"code": "rate_limited", "message": "Wait."}).encode()
    script.answers = [say(429, body, Retry_After="3600")]
    error = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).error("register", "a", "--digest-only")
    assert (error["code"], error["message"]) == ("rate_limited", "a: Wait.")


@pytest.mark.parametrize("answer", [event(b"other", "r"), event(b"one", "other")])
def test_a_receipt_of_something_else_is_kept_and_reported(script, tmp_path, answer):  # noqa: F811
    (tmp_path / "a").write_bytes(b"one")
    script.answers = [say(201, answer)]
    error = Tools(f"{script.url}/v1", "svc_test_x", tmp_path).error("register", "a", "--ref", "r", "--digest-only")
    assert "receipt" in error["message"]
    assert len(receipts_of(tmp_path)) == 1


@pytest.mark.parametrize("change, why", [
    ({"size": 2000}, "'size'"), ({"origin": "o" * 300}, "'origin'"), ({"path": ["AAAA"] * 11}, "'path'"),
    ({"origin": "another.example"}, "its signature is not valid"), (None, "object")])
def test_a_receipt_that_proves_nothing_is_kept_and_reported(service, hash_channel, script, tmp_path,  # noqa: F811
                                                            change, why):
    tools = tools_of(service, hash_channel.test_key["key"], tmp_path)
    (tools.folder / "a").write_text(fresh())
    (good,) = tools.lines("register", "a", "--digest-only", "--receipts", "good")
    (tools.folder / "good").unlink()
    receipt = {**good["receipt"], "receipt": {**good["receipt"]["receipt"], **change} if change else []}
    script.answers = [say(201, json.dumps(receipt).encode())]
    answered = Tools(f"{script.url}/v1", "svc_test_x", tools.folder)
    error = answered.error("register", "a", "--digest-only", "--ref", good["receipt"]["client_ref"])
    assert "it proves nothing" in error["message"] and why in error["message"], error
    assert receipts_of(tools.folder) == [receipt]


def test_what_is_no_answer_of_the_service_is_named(script, tmp_path):  # noqa: F811
    (tmp_path / "a").write_bytes(b"one")
    tools = Tools(f"{script.url}/v1", "svc_test_x", tmp_path)
    for body in (b"<html>", b"[]"):
        script.answers = [say(200, body)] * 5
        assert tools.error("register", "a", "--digest-only", expect=2)["code"] == "temporarily_unavailable"
    script.answers = [say(404, b"<html>")]
    assert "check the address" in tools.error("register", "a", "--digest-only", expect=2)["cause"]


# ---- the file of receipts ----

def test_a_torn_line_is_moved_and_a_whole_one_completed(tools):
    kept = json.dumps({"event_id": "evt_kept"})
    path = tools.folder / "receipts.ndjson"
    (tools.folder / "a").write_text(fresh())
    path.write_text(f'{kept}\n{{"event_id":"evt_to')
    tools.run("register", "a")
    assert (tools.folder / "receipts.ndjson.torn").read_text() == '{"event_id":"evt_to\n'
    assert len(receipts_of(tools.folder)) == 2
    path.write_text(kept)
    tools.run("register", "a")
    assert [one["event_id"] for one in receipts_of(tools.folder)][0] == "evt_kept"
    assert len(receipts_of(tools.folder)) == 2


def test_a_full_file_is_renamed_and_none_overwritten(tools):
    (tools.folder / "a").write_text(fresh())
    path = tools.folder / "receipts.ndjson"
    line = json.dumps({"event_id": "x" * 1000}) + "\n"
    full = line * ((4 << 20) // len(line))
    (tools.folder / "receipts.ndjson.1").write_text("older\n")
    (tools.folder / "receipts.ndjson.3").write_text("newer\n")  # the second one was moved elsewhere
    path.write_text(full)
    tools.run("register", "a")
    assert (tools.folder / "receipts.ndjson.1").read_text() == "older\n"
    assert (tools.folder / "receipts.ndjson.4").read_text() == full
    assert len(receipts_of(tools.folder)) == 1
    # A crash between the two steps of the rotation leaves both names.
    os.link(path, tools.folder / "receipts.ndjson.5")
    tools.run("register", "a")
    assert len(receipts_of(tools.folder, "receipts.ndjson.5")) == 1
    assert len(receipts_of(tools.folder)) == 1


def test_a_receipt_that_cannot_be_kept_is_an_error(tools):
    (tools.folder / "a").write_text(fresh())
    done = tools.run("register", "a", "--receipts", "missing/receipts", expect=2)
    assert "missing/receipts" in done.stderr and not done.stdout


def test_the_help_names_every_option():
    text = run("register", "--help").stdout
    assert all(f"--{name}" in text for name in ("url", "key-file", "payload", "ref", "receipts"))
