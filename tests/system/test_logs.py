"""The log: a line for each request that an operator is asked about, in which its X-Request-Id is
found, and nothing on standard error that is no such line."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

import program
from client import BINARY, Client, eventually, free_port, fresh, run
from program import PATIENCE, clean_environment

pytestmark = pytest.mark.sqlite  # what is logged does not depend on the store

MEMBERS = {"time", "level", "event", "request_id", "method", "route", "status", "code", "key_id",
           "account_id", "channel_id", "duration_us", "bytes_in", "bytes_out"}


@pytest.fixture(scope="module")
def logging(start):
    """A service whose log has everything that can be asked for."""
    return start(log__requests="all", log__addresses="full", service__trusted_proxies="127.0.0.0/8")


def line_of(service, answer):
    """The only line of the answer's request."""
    wanted = answer.headers["X-Request-Id"]
    (line,) = service.logged(
        lambda line: line["event"] == "request" and line["request_id"] == wanted)
    assert MEMBERS <= set(line) <= MEMBERS | {"client", "incident_id", "cut"}, line
    assert line["level"] == "info" and line["status"] == answer.status and "cut" not in line, line
    assert line["duration_us"] >= 0
    return line


def raw(service, text):
    """What is said to a connection's first bytes, until its end."""
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE) as connection:
        connection.sendall(text)
        told = b""
        while piece := connection.recv(65536):
            told += piece
    return told.decode()


def request_id_in(told):
    (line,) = [line for line in told.splitlines() if line.startswith("X-Request-Id: ")]
    return line.split()[1]


def test_a_registration_is_found_by_its_request_id_with_key_and_channel(logging):
    channel = logging.new_channel()
    answer = channel.live.register({"text": "not to be logged"}).expect(201)
    line = line_of(logging, answer)
    assert line["method"] == "POST" and line["route"] == "/v1/events" and line["code"] is None
    assert line["channel_id"] == answer.json["channel_id"]
    assert line["key_id"].startswith("key_") and line["account_id"].startswith("acc_")
    assert line["bytes_out"] == len(answer.body) and line["bytes_in"] > 0
    assert line["client"] == "127.0.0.1"
    assert "not to be logged" not in logging.log.read_text()


def test_refusals_are_found_too(logging):
    channel = logging.new_channel()
    stranger = Client(logging, "svc_live_" + "0" * 40)
    reference = fresh("secret-query")
    no_route = Client(logging).get(f"/v1/nothing/{reference}?token={reference}").expect(404)
    assert line_of(logging, no_route)["route"] is None
    found = {
        "invalid_key": (stranger.get("/v1/channel").expect(401), "/v1/channel"),
        "not_found": (channel.live.get(f"/v1/events/{reference}").expect(404), "/v1/events/{event_id}"),
        "validation_error": (channel.live.get(f"/v1/events?limit={reference}").expect(400),
                             "/v1/events"),
    }
    for code, (answer, route) in found.items():
        line = line_of(logging, answer)
        assert (line["code"], line["route"]) == (code, route), line
        assert (line["key_id"] is None) == (code == "invalid_key"), line
    wrong_method = channel.live.call("DELETE", "/v1/events").expect(405)
    assert line_of(logging, wrong_method)["method"] == "DELETE"
    made_up = channel.live.call("SECRETWORD", "/v1/channel").expect(405)
    assert line_of(logging, made_up)["method"] == "other"
    assert reference not in logging.log.read_text(), "no path, no query"
    assert "SECRETWORD" not in logging.log.read_text()


def test_a_body_that_is_refused_while_it_comes_is_logged_once(logging):
    channel = logging.new_channel()
    told = raw(logging, b"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
               + channel.live.key.encode() + b"\r\nContent-Type: application/json\r\n"
               b"Content-Length: 99999999999\r\n\r\n" + b" " * 100)
    assert " 413 " in told.splitlines()[0]
    (line,) = logging.logged(lambda line: line.get("request_id") == request_id_in(told))
    assert line["status"] == 413 and line["code"] == "payload_too_large" and line["key_id"]


def test_a_head_that_cannot_be_read_and_a_connection_that_is_cut_are_logged(logging):
    with socket.create_connection(("127.0.0.1", logging.port), PATIENCE) as connection:
        connection.sendall(b"GET /v1/channel HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 40000)
    logging.logged(lambda line: line["event"] == "request" and line["status"] == 431)
    with socket.create_connection(("127.0.0.1", logging.port), PATIENCE) as connection:
        connection.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    logging.logged(lambda line: line["event"] == "request" and line.get("cut")
                   and line["method"] == "POST")


FORWARDED = [  # lines of X-Forwarded-For, and whose request that is; 127.0.0.0/8 is trusted
    (["198.51.100.7, 2001:db8:1:2::3"], "2001:db8:1:2::3"),
    (["192.0.2.1:5678"], "192.0.2.1"),
    (["198.51.100.7,192.0.2.1:1 , 127.0.0.2:65535"], "192.0.2.1"),
    (["[2001:db8::1]:443"], "2001:db8::1"),
    (["[2001:db8::1]"], "2001:db8::1"),
    (["2001:db8::1:443"], "2001:db8::1:443"),
    (["::ffff:192.0.2.1"], "192.0.2.1"),
    (["[::ffff:192.0.2.1]:80"], "192.0.2.1"),
    (["192.0.2.1, ::ffff:127.0.0.3"], "192.0.2.1"),
    # Several lines are one list.
    (["192.0.2.1", "127.0.0.3"], "192.0.2.1"),
    (["198.51.100.7", "192.0.2.1", "127.0.0.3, 127.0.0.4"], "192.0.2.1"),
    (["198.51.100.7", "192.0.2.1"], "192.0.2.1"),
    ([f"198.51.100.{number}" for number in range(20)] + ["192.0.2.1"] + ["127.0.0.3"] * 7, "192.0.2.1"),
    # Empty entries are none.
    (["192.0.2.1,"], "192.0.2.1"),
    (["192.0.2.1, , ,127.0.0.3, ,"], "192.0.2.1"),
    (["192.0.2.1", "", " ", ","], "192.0.2.1"),
    (["198.51.100.7," * 1000 + "192.0.2.1"], "192.0.2.1"),
    (["," * 15000 + "192.0.2.1" + "," * 1000], "192.0.2.1"),
    # What is no address ends it: it is whose who wrote it.
    (["192.0.2.1, unknown, 127.0.0.3"], "127.0.0.3"),
    *(([text], "127.0.0.1") for text in (
        "", "unknown", "_hidden", "192.0.2.1:", "192.0.2.1:port", "192.0.2.1:123456", "192.0.2.1:80:80", ":80",
        "192.0.2", "300.0.2.1:80", "[2001:db8::1", "2001:db8::1]:80", "[2001:db8::1]80", "[]:80", "[", "]", ":",
        "[2001:db8::1]:", "fe80::1%eth0", "192.0.2.1 80", "x" * 1000)),
]


def test_the_address_is_the_one_that_a_trusted_proxy_tells(logging):
    key = logging.new_channel().live.key  # of requests with a key each has a line
    told = {}
    for lines, address in FORWARDED:
        said = "".join(f"X-Forwarded-For: {line}\r\n" for line in lines)
        answer = raw(logging, f"GET /v1/channel HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
                              f"Connection: close\r\n{said}\r\n".encode())
        assert answer.startswith("HTTP/1.1 200 "), lines
        told[request_id_in(answer)] = (lines, address)
    found = logging.logged(lambda line: line.get("request_id") in told, len(told))
    assert not [(line["client"], told[line["request_id"]]) for line in found
                if line["client"] != told[line["request_id"]][1]]


def test_nobody_else_tells_addresses(start):
    service = start(log__requests="all", log__addresses="full", service__trusted_proxies="127.0.0.3")
    answer = Client(service).call("GET", "/v1/channel", headers={"X-Forwarded-For": "192.0.2.1, 127.0.0.3"})
    assert line_of(service, answer.expect(401))["client"] == "127.0.0.1"


def test_an_incident_is_in_the_line_of_its_request(start):
    service = start(log__requests="errors")
    channel = service.new_channel()
    content = b"kept " * 20000
    event = channel.live.register_file(content).expect(201).json
    for path in (service.data / "content").rglob("*"):
        if path.is_file() and path.stat().st_size == len(content):
            path.unlink()
    answer = channel.live.get(f"/v1/events/{event['event_id']}/content").expect(500)
    assert line_of(service, answer)["incident_id"] == answer.json["incident_id"]
    both = service.logged(
        lambda line: line.get("request_id") == answer.headers["X-Request-Id"], 2)
    assert {line["event"] for line in both} == {"request", "request_failed"}
    assert {line["incident_id"] for line in both} == {answer.json["incident_id"]}


def test_by_default_only_refusals_are_logged_with_a_part_of_the_address(start):
    service = start()
    channel = service.new_channel()
    good = channel.live.register({"a": 1}).expect(201)
    refused = Client(service).get("/v1/channel").expect(401)
    assert line_of(service, refused)["client"] == "127.0.0.0/24"
    ids = [line.get("request_id") for line in service.log_lines()]
    assert good.headers["X-Request-Id"] not in ids


def test_without_the_setting_there_are_no_lines_of_requests(start):
    service = start(log__requests="none", http__connections_per_address=2)
    Client(service).get("/v1/channel").expect(401)
    assert service.stop() == 0
    assert not [line for line in service.log_lines() if line["event"] == "request"]


def test_a_connection_that_is_turned_away_is_logged(start):
    service = start(http__connections_per_address=1, log__addresses="none", describe=False)
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE):
        assert " 429 " in raw(service, b"").splitlines()[0]
    (line,) = service.logged(lambda line: line["event"] == "connection_refused")
    assert line["status"] == 429 and line["count"] == 1 and "client" not in line


def test_a_flood_of_connections_is_counted_in_a_line_a_second(start):
    """A refused client has no key, and could fill the log's disk."""
    service = start(http__connections_per_address=1, describe=False)
    refused, started = 300, time.monotonic()
    with socket.create_connection(("127.0.0.1", service.port), PATIENCE):
        for _ in range(refused):
            assert " 429 " in raw(service, b"").splitlines()[0]
    assert service.stop() == 0
    lines = [line for line in service.log_lines() if line["event"] == "connection_refused"]
    assert sum(line["count"] for line in lines) == refused
    assert {(line["status"], line["client"]) for line in lines} == {(429, "127.0.0.0/24")}
    assert len(lines) <= time.monotonic() - started + 2, "one of each second that was begun, and the end's"


def test_a_flood_of_requests_without_a_key_is_counted(start):
    service = start(describe=False)
    sent = 500
    stranger = Client(service)
    for _ in range(sent):
        stranger.get("/v1/channel").expect(401)
    known = service.new_channel()
    answer = known.live.get("/v1/events/none").expect(404)
    assert line_of(service, answer)["key_id"], "the holder of a key is found"
    assert service.stop() == 0
    lines = [line for line in service.log_lines() if line["event"] == "request" and line["status"] == 401]
    counted = [line for line in service.log_lines() if line["event"] == "requests_omitted"]
    assert len(lines) + sum(line["count"] for line in counted) == sent and lines
    assert {(line["status"], line["client"]) for line in counted} == {(401, "127.0.0.0/24")}



def test_a_flood_beyond_the_rate_of_a_key_is_counted(start):
    service = start(describe=False, rate__live=1)
    channel = service.new_channel()
    began, sent = time.monotonic(), 400
    refused = [channel.live.get("/v1/channel").status for _ in range(sent)].count(429)
    seconds = time.monotonic() - began
    assert refused > sent / 2
    assert service.stop() == 0
    lines = [line for line in service.log_lines() if line["event"] == "request" and line["status"] == 429]
    counted = [line for line in service.log_lines() if line["event"] == "requests_omitted"]
    assert len(lines) + sum(line["count"] for line in counted) == refused
    assert 0 < len(lines) <= 10 * (seconds + 2)


def test_a_flood_of_incidents_is_counted(start):
    service = start(rate__live=100000)
    channel = service.new_channel()
    content = b"kept " * 20000
    event = channel.live.register_file(content).expect(201).json
    for path in (service.data / "content").rglob("*"):
        if path.is_file() and path.stat().st_size == len(content):
            path.unlink()
    began, sent = time.monotonic(), 400
    for _ in range(sent):
        channel.live.get(f"/v1/events/{event['event_id']}/content").expect(500)
    seconds = time.monotonic() - began
    time.sleep(1.1)
    channel.live.get(f"/v1/events/{event['event_id']}/content").expect(500)
    assert service.stop() == 0
    lines = [line for line in service.log_lines() if line["event"] == "request_failed"]
    assert 0 < len(lines) <= 10 * (seconds + 3)
    assert len(lines) + sum(int(line["omitted"]) for line in lines) == sent + 1, "the others are counted"


def test_words_that_the_settings_do_not_know_are_named(service):
    done = service.run("config", "check", "--set=log.requests=some", "--set=log.addresses=half")
    assert done.returncode == 1
    assert "log.requests: must be none, errors or all" in done.stderr + done.stdout
    assert "log.addresses: must be none, network or full" in done.stderr + done.stdout


# ---- what libraries say ----

@pytest.fixture
def serving(tmp_path):
    """A `serve`, and its log; sanitizers report as they like, so that nothing is taken from them."""
    if program.sanitized():
        pytest.skip("standard error is the sanitizer's")
    settings = tmp_path / "constancia.conf"
    settings.write_text(f"[service]\ndata_dir = {tmp_path}/data\n"
                        f"listen = 127.0.0.1:{free_port()}\nadmin_listen =\n"
                        "[tsa]\nurl = embedded:\n")
    assert run("init", "--config", settings).returncode == 0
    log = tmp_path / "log"
    with open(log, "wb") as file:
        process = subprocess.Popen([BINARY, "serve", "--config", str(settings)], stderr=file,
                                   stdout=subprocess.DEVNULL, env=clean_environment())
    try:
        eventually(lambda: "serving" in events(log), "it serves")
        yield process, log
    finally:
        process.kill()
        process.wait()


def lines_of(log):
    """All are JSON, and whole."""
    return [json.loads(line) for line in log.read_text().splitlines(keepends=True)
            if line.endswith("\n")]


def events(log):
    return [line["event"] for line in lines_of(log)]


def say(process, text):
    """Writes to its standard error, as a library in it does."""
    with open(f"/proc/{process}/fd/2", "wb", buffering=0) as words:
        words.write(text)


def messages(log):
    return [(line["process"], line["text"]) for line in lines_of(log)
            if line["event"] == "library_message"]


def test_what_libraries_say_is_a_line_of_the_log(serving):
    process, log = serving
    say(process.pid, b'Fatal "error" in\tlibrary\nhalf a line: \xff\xc3\xb1')
    eventually(lambda: len(messages(log)) == 2, "both are reported")
    assert messages(log) == [("constancia", 'Fatal "error" in?library'),
                             ("constancia", "half a line: ?\u00f1")]
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    (signer,) = [child for child in children if pathlib.Path(f"/proc/{child}/comm").read_text() == "signer\n"]
    say(signer, b"a module has no token\n")
    eventually(lambda: ("signer", "a module has no token") in messages(log), "the signer's, too")
    assert {line["level"] for line in lines_of(log) if line["event"] == "library_message"} \
        == {"warning"}
    process.terminate()
    assert process.wait(PATIENCE) == 0
    assert events(log)[-1] == "stopped"


def test_a_library_that_never_stops_is_bounded(serving):
    process, log = serving
    say(process.pid, b"again and again\n" * 1000)
    eventually(lambda: len(messages(log)) == 200, "a part is reported")
    process.terminate()
    assert process.wait(PATIENCE) == 0
    (lost,) = [line for line in lines_of(log) if line["event"] == "library_messages_lost"]
    assert len(messages(log)) + int(lost["lines"]) == 1000 and lost["process"] == "constancia"


def test_the_last_words_of_a_process_that_aborts_are_not_lost(serving):
    process, log = serving
    os.kill(process.pid, signal.SIGSTOP)
    say(process.pid, b"constancia: file.c:1: function: Assertion `it' failed.\n")
    os.kill(process.pid, signal.SIGABRT)
    os.kill(process.pid, signal.SIGCONT)
    assert process.wait(PATIENCE) == -signal.SIGABRT
    assert messages(log)[-1][1].endswith("Assertion `it' failed.")
