"""Running the service: starts, stops, restarts, settings, administration, log, metrics."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time

import pytest

import stores

from client import (BINARY, CHANNEL, CONFIG, TIME, Client, Refused, Service, eventually, free_port,
                    run)
from program import PATIENCE, STOP_PATIENCE, copy_keys, sanitized

pytestmark = pytest.mark.both_stores

LOADED_AT_FIRST_USE = ("libcurl", "libfido2", "libisal", "libmicrohttpd", "libpq")


# ---- starting and the ready file ----

def test_the_ready_file_tells_how_to_reach_everything(service):
    ready = service.ready
    assert {"base_url", "public_url", "admin_socket", "account_id", "channels"} <= set(ready)
    assert ready["base_url"] == f"{service.public_url}/v1"
    assert ready["public_url"] == service.public_url
    assert ready["account_id"].startswith("acc_")
    assert set(ready["channels"]) == {"content", "hash_only"}
    for modality, channel in ready["channels"].items():
        for mode in ("live", "test"):
            client = Client(service, channel[f"{mode}_key"])
            record = client.get("/v1/channel").expect(200).json
            assert record["channel_id"] == channel["channel_id"]
            assert record["current_config"]["modality"] == modality
            assert client.balance()["balance"] > 0


def test_the_demo_account_can_register_in_both_channels(service):
    content = Client(service, service.ready["channels"]["content"]["live_key"])
    digest = Client(service, service.ready["channels"]["hash_only"]["live_key"])
    content.register({"hello": "world"}).expect(201)
    digest.register_hash("0" * 64).expect(201)


def test_a_free_port_is_taken_when_none_is_named(tmp_path):
    ready = tmp_path / "ready.json"
    process = subprocess.Popen([BINARY, "dev", "--data", tmp_path / "data", "--listen",
                                "127.0.0.1:0", "--ready-file", ready, "--set",
                                "service.admin_listen="], stderr=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: ready.exists() and ready.stat().st_size, "it is ready")
        told = json.loads(ready.read_text())
        host, _, port = told["base_url"].split("/")[2].partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        connection.request("GET", "/v1/channel", headers={
            "Authorization": "Bearer " + told["channels"]["content"]["test_key"]})
        assert connection.getresponse().status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_PATIENCE) == 0


def test_a_second_service_on_the_same_data_is_refused(service):
    done = run("dev", "--data", service.data, "--listen", f"127.0.0.1:{free_port()}", "--set",
               f"service.admin_listen=127.0.0.1:{free_port()}")
    assert done.returncode in (1, 2), done.stderr
    assert "in use" in done.stderr
    Client(service).get("/v1/openapi.yaml").expect(200)


def test_a_port_in_use_is_said_and_not_waited_for(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("dev", "--data", tmp_path / "data", "--listen",
                   f"127.0.0.1:{taken.getsockname()[1]}", "--set", "service.admin_listen=")
    assert done.returncode in (1, 2)
    assert "in use" in done.stderr.lower() + done.stdout.lower(), done.stderr


# ---- restarts ----

@pytest.mark.usefixtures("one_day")
def test_a_restart_keeps_everything_byte_for_byte(start):
    service = start(seal__interval="500ms")
    channel = service.new_channel()
    hashes = service.new_channel("hash_only", account_id=channel.account_id)
    events = [channel.live.register({"n": n}, f"e{n}").expect(201).json for n in range(3)]
    file = channel.live.register_file(b"bytes" * 10000, "file", "a.bin").expect(201).json
    hashes.live.register_hash("0" * 64, "h").expect(201)
    channel.test.register({"t": 1}, "t").expect(201)
    channel.live.sealed(file["event_id"])
    done = channel.live.certified(seq_from=1, seq_to=4)
    service.admin("limit", "create", "--channel", hashes.id, "--period", "day", "--max", 1,
                  "--action", "block")
    service.admin("channel", "configure", channel.id, "--name", "Second")
    demo = dict(service.ready["channels"])
    targets = ["/v1/channel", "/v1/events", "/v1/account/balance",
               *(f"/v1/events/{event['event_id']}" for event in [*events, file]),
               *(f"/v1/events/{event['event_id']}/content" for event in [*events, file])]
    before = [channel.live.get(target).expect(200).body for target in targets]
    before_test = channel.test.get("/v1/events").body
    documents = {report["url"]: channel.live.download(report["url"]).body
                 for report in done["reports"]}
    assert service.stop() == 0
    service.start()
    assert [channel.live.get(target).expect(200).body for target in targets] == before
    assert channel.test.get("/v1/events").body == before_test
    assert service.ready["channels"] == demo, "the same demo account, channels and keys"
    replay = channel.live.register({"n": 0}, "e0").expect(200).json
    assert {**replay, "timestamp": None, "receipt": None} == {**events[0], "timestamp": None, "receipt": None}
    hashes.live.register_hash("1" * 64, "i").expect(422, "limit_blocked")
    for url, body in documents.items():
        assert channel.live.download(url).expect(200).body == body, "a link outlives a restart"
    assert channel.live.register({}, "next").expect(201).json["sequence"] == 5
    service.admin("store", "check")


def test_a_killed_service_has_lost_nothing_it_acknowledged(start):
    service = start(seal__interval="300ms")
    channel = service.new_channel(credits=100000)
    acknowledged, stop = {}, threading.Event()

    def send(worker):
        client, n = Client(service, channel.live.key), 0
        while not stop.is_set():
            ref = f"{worker}-{n}"
            try:
                answer = client.register({"n": n, "x": "y" * (n % 3 * 20000)}, ref)
            except (OSError, http.client.HTTPException):
                return
            if answer.status == 201:
                acknowledged[ref] = answer.json
            n += 1
    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(acknowledged) > 100, "a hundred are acknowledged")
    service.kill()
    stop.set()
    for thread in threads:
        thread.join()
    service.start()
    listed = {event["client_ref"]: event for event in channel.live.walk("/v1/events", 500)}
    assert [event["sequence"] for event in listed.values()] == list(range(1, len(listed) + 1))
    for ref, event in acknowledged.items():
        found = listed[ref]
        for name in ("event_id", "sequence", "received_at", "hash", "chain_hash"):
            assert found[name] == event[name], ref
        worker, n = ref.split("-")
        assert channel.live.content(event["event_id"]).expect(200).json["n"] == int(n)
    assert channel.live.balance()["balance"] == 100000 - len(listed)
    assert service.admin("store", "check")


def test_what_is_under_way_at_sigterm_is_answered(start):
    service = start()
    channel = service.new_channel(credits=100000)
    outcomes, stop = [], threading.Event()

    def send(worker):
        client, n = Client(service, channel.live.key), 0
        while not stop.is_set():
            ref = f"{worker}-{n}"
            try:
                outcomes.append((ref, client.register({}, ref).status))
            except (OSError, http.client.HTTPException):
                return
            n += 1
    threads = [threading.Thread(target=send, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(outcomes) > 50, "requests are under way")
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(STOP_PATIENCE) == 0
    stop.set()
    for thread in threads:
        thread.join()
    assert {status for _, status in outcomes} <= {201, 503}
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", service.port)) != 0, "nothing listens any more"
    service.start()
    listed = {event["client_ref"] for event in channel.live.walk("/v1/events", 500)}
    assert {ref for ref, status in outcomes if status == 201} <= listed


def test_sigterm_ends_with_0_within_30_seconds_though_connections_are_open(start):
    service = start()
    idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(5)]
    half = socket.create_connection(("127.0.0.1", service.port), timeout=60)
    half.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
                 + service.ready["channels"]["content"]["live_key"].encode()
                 + b"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
                 b"Expect: 100-continue\r\n\r\n")
    assert half.recv(12) == b"HTTP/1.1 100"
    half.sendall(b"{")
    eventually(lambda: service.metric("http_connections") >= len(idle) + 1, "all have come")
    started = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() - started < 31
    for link in [*idle, half]:
        link.close()
    assert not os.path.exists(service.ready["admin_socket"])


# ---- settings ----

def test_config_check_names_file_and_line_of_every_mistake(tmp_path):
    file = tmp_path / "constancia.ini"
    file.write_text("[service]\nname = A\n\n[rate]\nlive = many\nlvie = 3\n[seal]\n"
                    "interval = 60 parsecs\n[nonsense]\nkey = 1\n")
    check_told(file, {5: "live", 6: "lvie", 8: "interval", 10: "nonsense"})
    # What is written well may still make no sense.
    file.write_text("# a comment\n[service]\nprefix = UPPER!\npublic_url = example.org\n\n[log]\n"
                    "level = loud\n[seal]\ninterval = 0s\n")
    check_told(file, {3: "prefix", 4: "public_url", 7: "level", 9: "interval"})


def check_told(file, mistakes):
    done = run("config", "check", "--config", file)
    assert done.returncode == 1
    told = done.stderr + done.stdout
    for line, name in mistakes.items():
        pattern = rf"{re.escape(str(file))}:{line}\b.*"
        found = re.search(pattern, told)
        assert found, (line, told)
        assert name in found[0], found[0]


def test_config_check_is_content_with_good_settings(tmp_path):
    printed = run("config", "print", "--data", tmp_path)
    assert printed.returncode == 0
    file = tmp_path / "constancia.ini"
    file.write_text("[service]\nprefix = acme\n[rate]\nlive = 70\n[seal]\ninterval = 2m\n")
    again = run("config", "print", "--config", file, "--json")
    assert again.returncode == 0
    values = json.loads(again.stdout)
    text = json.dumps(values)
    assert "acme" in text and "70" in text


def test_an_unreadable_file_of_settings_is_said(tmp_path):
    done = run("config", "check", "--config", tmp_path / "absent.ini")
    assert done.returncode == 1
    assert "absent.ini" in done.stderr + done.stdout


def setting(name, *arguments, environment=None):
    """What a setting of a printed configuration is."""
    done = run("config", "print", *arguments, environment=environment)
    assert done.returncode == 0, done.stderr
    section, _, key = name.partition(".")
    text = done.stdout[done.stdout.index(f"[{section}]"):]
    return re.search(rf"^[#;]?\s*{key}\s*=[ \t]*(.*)$", text, re.MULTILINE)[1]


def test_the_environment_goes_before_the_file_and_set_before_both(tmp_path):
    file = tmp_path / "constancia.ini"
    file.write_text("[rate]\nlive = 11\ntest = 12\n[seal]\ninterval = 13s\n")
    environment = {"CONSTANCIA_RATE_TEST": "22", "CONSTANCIA_SEAL_INTERVAL": "23s"}
    how = ["--config", file, "--set", "seal.interval=33s"]
    assert setting("rate.live", "--config", file) == "11"
    assert setting("rate.live", *how, environment=environment) == "11"
    assert setting("rate.test", *how, environment=environment) == "22"
    assert setting("seal.interval", *how, environment=environment) == "33s"


def test_a_running_service_heeds_its_environment_and_its_flags(tmp_path):
    one = Service(tmp_path, environment={"CONSTANCIA_RATE_LIVE": "5", "CONSTANCIA_RATE_TEST": "6"},
                  describe=False, rate__test=7)
    try:
        one.start()
        keys = one.ready["channels"]["content"]
        limits = [Client(one, keys[f"{mode}_key"]).get("/v1/channel").headers["RateLimit-Limit"]
                  for mode in ("live", "test")]
        assert limits == ["20", "7"]
    finally:
        assert one.stop() == 0


@pytest.mark.parametrize("value", ["rate.live", "rate.live=", "rate.live=x", "rate.live=-1",
                                   "nonsense.key=1", "rate.lvie=1", "seal.interval=5",
                                   "webhook.allow_http=perhaps", "service.prefix=A"])
def test_a_wrong_setting_on_the_command_line_is_wrong_usage(tmp_path, value):
    done = run("dev", "--data", tmp_path / "data", "--listen", f"127.0.0.1:{free_port()}",
               "--set", value)
    assert done.returncode == 2, (done.returncode, done.stderr)
    assert "--set" in done.stderr and value.partition("=")[0] in done.stderr
    environment = {"CONSTANCIA_RATE_LIVE": "x"}
    done = run("config", "check", "--data", tmp_path, environment=environment)
    assert done.returncode == 1 and "CONSTANCIA_RATE_LIVE" in done.stderr + done.stdout


# ---- administration ----

def test_the_administration_socket_is_for_its_owner_alone(service):
    mode = os.stat(service.ready["admin_socket"]).st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_commands_find_the_service_by_data_socket_or_environment(service):
    account = service.ready["account_id"]
    ways = [run("account", "show", account, "--json", "--data", service.data),
            run("account", "show", account, "--json",
                environment={"CONSTANCIA_ADMIN_SOCKET": service.ready["admin_socket"]})]
    for done in ways:
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["account_id"] == account


def test_administration_works_with_no_service_running(start):
    service = start()
    channel = service.new_channel()
    channel.live.register({"a": 1}, "a").expect(201)
    assert service.stop() == 0
    shown = service.admin("account", "show", channel.account_id)
    assert shown["balance"] == 999
    service.admin("credits", "add", channel.account_id, 5)
    key = service.new_key(channel.id, "live")
    service.admin("key", "revoke", channel.live_key["key_id"])
    made = service.admin("account", "create", "--name", "Made in the dark", "--credits", 3)
    assert service.admin("store", "check")
    service.start()
    channel.live.get("/v1/channel").expect(401, "revoked_key")
    client = Client(service, key["key"])
    assert client.balance()["balance"] == 1004
    assert service.admin("account", "show", made["account_id"])["name"] == "Made in the dark"


@pytest.mark.parametrize("arguments,exit_code", [
    (["account", "show", "acc_none"], 1), (["channel", "suspend", "chn_none"], 1),
    (["key", "revoke", "key_none"], 1), (["limit", "delete", "lim_none"], 1),
    (["account", "create"], 2), (["account", "create", "--name", ""], 2),
    (["account", "create", "--name", "A", "--credits", "many"], 2),
    (["account", "create", "--name", "A", "--surprise", "1"], 2),
    (["account", "create", "--name", "A", "--name", "B"], 2),
    (["account", "invent"], 2), (["nonsense"], 2), (["account", "show"], 2),
    (["account", "show", "a", "b"], 2), (["credits", "add", "acc_none", "0"], 2),
    (["key", "create", "--channel", "chn_none", "--mode", "both"], 2),
    (["key", "create", "--channel", "chn_none", "--mode", "live"], 1),
    (["limit", "create", "--period", "day", "--max", "1", "--action", "block"], 2),
])
def test_a_command_that_fails_says_why_as_json_on_standard_error(service, arguments, exit_code):
    done = run(*arguments, "--json", "--data", service.data)
    assert done.returncode == exit_code, (done.returncode, done.stderr)
    assert done.stdout == ""
    told = json.loads(done.stderr)
    assert "message" in json.dumps(told)


def test_commands_speak_to_people_too(service):
    account = service.ready["account_id"]
    shown = run("account", "show", account, "--data", service.data)
    assert shown.returncode == 0 and account in shown.stdout
    listed = run("channel", "list", "--data", service.data)
    assert listed.returncode == 0
    assert service.ready["channels"]["content"]["channel_id"] in listed.stdout
    for arguments in (["--help"], ["account", "--help"], ["account", "create", "--help"],
                      ["dev", "--help"], ["verify", "--help"]):
        done = run(*arguments)
        assert done.returncode == 0 and done.stdout, arguments


def test_an_account_is_made_changed_and_listed(service):
    account = service.new_account(7, unpaid_limit=9)
    shown = service.admin("account", "show", account)
    assert (shown["balance"], shown["unpaid_limit"], shown["operational"]) == (7, 9, True)
    service.admin("account", "set", account, "--name", "Changed \u00f1", "--unpaid-limit", 0)
    shown = service.admin("account", "show", account)
    assert (shown["name"], shown["unpaid_limit"]) == ("Changed \u00f1", 0)
    found, cursor = set(), []
    while True:
        page = service.admin("account", "list", "--limit", 50, *cursor)
        found |= {each["account_id"] for each in page["data"]}
        if not page["has_more"]:
            break
        cursor = ["--after", page["data"][-1]["account_id"]]
    assert account in found and service.ready["account_id"] in found


def test_a_configuration_is_a_new_sealed_version_and_no_version_is_rewritten(channel):
    service = channel.service
    first = channel.live.get("/v1/channel").expect(200).json
    assert first["current_config"]["version"] == 1
    sealed = service.admin("channel", "configure", channel.id, "--name", "New", "--description", "D",
                           "--declarant", "Other", "--supplementary-info", "S")
    assert sealed["changed"] is True and sealed["config_version"] == 2
    second = channel.live.get("/v1/channel").json
    assert [config["version"] for config in second["config_versions"]] == [1, 2]
    assert second["config_versions"][0] == first["current_config"]
    assert second["current_config"] == second["config_versions"][1]
    config = second["current_config"]
    assert (config["name"], config["description"], config["declarant"],
            config["supplementary_info"]) == ("New", "D", "Other", "S")
    assert second["name"] == "New"
    assert config["sealed_at"] > first["current_config"]["sealed_at"]
    same = service.admin("channel", "configure", channel.id, "--name", "New")
    assert same["changed"] is False
    assert len(channel.live.get("/v1/channel").json["config_versions"]) == 2
    channel.live.register().expect(201)
    with pytest.raises(Refused) as refused:
        service.admin("channel", "configure", channel.id, "--modality", "hash_only")
    assert refused.value.exit == 1


def test_the_channel_record_has_its_members_and_a_note_in_both_languages(shared):
    english = shared.live.get("/v1/channel", language="en").expect(200).json
    spanish = shared.live.get("/v1/channel", language="es").expect(200).json
    for record in (english, spanish):
        assert set(record) == CHANNEL
        for config in [record["current_config"], *record["config_versions"]]:
            assert set(config) == CONFIG
            assert type(config["version"]) is int
            assert TIME.fullmatch(config["sealed_at"])
            assert config["modality"] == "content"
            assert isinstance(config["name"], str) and isinstance(config["declarant"], str)
            assert isinstance(config["description"], str)
            assert config["supplementary_info"] is None
    assert english["mode_note"] != spanish["mode_note"]
    assert {**english, "mode_note": ""} == {**spanish, "mode_note": ""}
    assert shared.test.get("/v1/channel").json == english


# ---- the store ----

def test_store_check_finds_what_was_altered(start):
    service = start(seal__interval="300ms")
    channel = service.new_channel()
    for n in range(5):
        event = channel.live.register({"n": n}, f"e{n}").expect(201).json
    channel.live.sealed(event["event_id"])
    assert service.admin("store", "check")
    assert service.stop() == 0
    assert service.admin("store", "check")
    service.store.change(
        f"UPDATE {stores.EVENTS} SET received_at = received_at + 1 WHERE client_ref = 'e2'")
    done = run("store", "check", "--json", *service.chosen())
    assert done.returncode == 1, (done.stdout, done.stderr)


def test_a_backup_taken_while_serving_can_be_brought_back(start, tmp_path):
    service = start(seal__interval="300ms")
    channel = service.new_channel()
    events = [channel.live.register({"n": n}, f"e{n}").expect(201).json for n in range(5)]
    file = channel.live.register_file(b"z" * 50000, "file").expect(201).json
    channel.live.sealed(file["event_id"])

    def certify(client, key):
        answer = client.certify(seq_from=1, seq_to=1, headers={"Idempotency-Key": key}).expect(202)
        return answer.json["certification_id"], "Idempotent-Replayed" in answer.headers
    certification, _ = certify(channel.live, "before")
    service.admin("store", "backup", tmp_path / "backup")
    certify(channel.live, "later")
    later = channel.live.register({"later": 1}, "later").expect(201).json
    assert later["sequence"] == 7
    restored = Service(tmp_path / "other", prepared=False, rate__live=100000, rate__test=100000)
    restored.data.parent.mkdir()
    done = run("store", "restore", "--live", tmp_path / "backup", "--json", *restored.chosen())
    assert done.returncode == 0, done.stderr
    assert restored.admin("store", "check")
    act = restored.admin("audit", "list", "--installation")["data"][0]
    assert act["operation"] == "store restore" and act["arguments"]["directory"] == str(tmp_path / "backup")
    restored.distribute()
    shared = stores.KIND == "postgresql"
    if shared:
        said = run(*restored.serving(), *restored.chosen()).stderr
        assert "another node's development key" in said
        copy_keys(service.data, restored.data)
    restored.start()
    try:
        client = Client(restored, channel.live.key)
        for event in [*events, file]:
            found = client.event(event["event_id"])
            assert found["chain_hash"] == event["chain_hash"]
            assert found["received_at"] == event["received_at"]
        assert client.content(file["event_id"]).expect(200).body == b"z" * 50000
        client.get(f"/v1/events/{later['event_id']}").expect(404)
        assert certify(client, "before") == (certification, True)
        assert certify(client, "later")[1] is False
    finally:
        assert restored.stop() == 0
    # A store of this service alone continues with keys of its own, and says so.
    assert shared != any(line["event"] == "development_key_replaced"
                         for line in restored.log_lines())
    again = run("store", "restore", "--live", tmp_path / "backup", "--json", *restored.chosen())
    assert again.returncode == 1, "never over a store that is there"
    restored.discard()


def test_a_standstill_of_the_signing_process_is_shown_and_ends_the_service(start):
    """A signature that does not come is not waited for: the supervisor restarts both processes."""
    service = start(seal__interval="1s")
    account = service.new_channel()
    os.kill(service.signer(), signal.SIGSTOP)
    account.live.register({"a": 1}, "a").expect(201)  # registration needs no signature
    account.close()

    def told():
        status, text = service.monitor("/readyz")
        return status == 503 and "signing process does not respond" in text
    eventually(told, "readiness says so")
    assert "constancia_signer_ready 0" in service.monitor("/metrics")[1]
    assert service.process.wait(90) == 1
    assert any(line["event"] == "signer_ended" for line in service.log_lines())
    service.process = None
    assert service.start().monitor("/readyz")[0] == 200
    assert "constancia_signer_ready 1" in service.monitor("/metrics")[1]


def copy_program(directory):
    """The program, with the files that belong next to it."""
    for name in ("constancia-renderer", os.path.basename(BINARY)):
        program = shutil.copy2(os.path.join(os.path.dirname(BINARY), name), directory)
    return program


@pytest.mark.parametrize("command", ["init", "serve", "dev"])
def test_a_renderer_that_does_not_start_is_told_at_the_start(tmp_path, command):
    program = copy_program(tmp_path)
    renderer = tmp_path / "constancia-renderer"
    data = tmp_path / "data"

    def start(name):
        words = ["--set", "tsa.url=embedded:"] if name != "dev" else []
        return subprocess.run([program, name, *words, "--data", data, "--set",
                               "service.listen=127.0.0.1:0"], capture_output=True, text=True,
                              timeout=60, check=False)
    if command == "serve":
        assert start("init").returncode == 0
    install = "Install it from the same package"
    for script, expected, is_unusable in (
            ("#!/bin/sh\nprintf -- '-16 libpango is gone' >&2\nexit 1\n",
             "is not usable: renderer: libpango is gone", True),
            ("#!/bin/sh\nkill -9 $$\n", "failed: the renderer was ended by signal 9", False),
            ("no program", "is not usable: starting the renderer: Exec format error", True)):
        renderer.write_text(script, encoding="ascii")
        done = start(command)
        assert done.returncode == 2
        assert f"The report renderer {renderer} {expected}" in done.stderr
        assert (install in done.stderr) == is_unusable
    # What draws nothing needs none.
    assert subprocess.run([program, "config", "print"], capture_output=True,
                          check=False).returncode == 0


@pytest.mark.skipif(sanitized(), reason="a sanitizer reserves address space")
def test_a_start_without_memory_says_so(tmp_path):
    words = ["--set", "tsa.url=embedded:", "--data", tmp_path / "data", "--set", "service.listen=127.0.0.1:0"]
    subprocess.run([BINARY, "init", *words], capture_output=True, timeout=60, check=True)
    told = ""
    for mebibytes in range(28, 64, 4):  # where parts of the start fail
        limit = mebibytes << 20
        done = subprocess.run(["prlimit", f"--as={limit}:{limit}", BINARY, "serve", *words], capture_output=True,
                              text=True, timeout=60, check=False)
        assert done.returncode != 0
        told += done.stderr
    assert '"message":"Out of memory."' in told
    assert "incident" not in told


def test_only_the_renderer_loads_what_draws_and_it_loads_no_network():
    renderer = os.path.join(os.path.dirname(BINARY), "constancia-renderer")
    loaded = {program: subprocess.run(["ldd", program], capture_output=True, text=True,
                                      check=True).stdout for program in (BINARY, renderer)}
    for library in ("libcairo", "libpango", "libglib", "libfontconfig", "libX11"):
        assert library in loaded[renderer] and library not in loaded[BINARY]
    assert "libsqlite3" in loaded[BINARY] and "libsqlite3" not in loaded[renderer]
    for library in LOADED_AT_FIRST_USE:
        assert library not in loaded[BINARY] and library not in loaded[renderer]


def test_a_process_has_what_it_uses(service):
    """A service answers requests; the process that signs does nothing that needs such a library, and
    has none but what its parent had loaded."""
    maps = {process: open(f"/proc/{process}/maps", encoding="utf-8").read()
            for process in (service.process.pid, service.signer())}
    assert "libmicrohttpd" in maps[service.process.pid]
    assert ("libpq" in maps[service.process.pid]) == (stores.KIND == "postgresql")
    assert [library for library in LOADED_AT_FIRST_USE if library in maps[service.signer()]] == (
        ["libpq"] if stores.KIND == "postgresql" else [])


def test_no_process_that_holds_secrets_leaves_a_core_or_can_be_looked_into(service):
    """What is not dumpable is root's in /proc, whichever user runs it; so it is run by another user."""
    for process in (service.process.pid, service.signer()):
        limits = open(f"/proc/{process}/limits", encoding="ascii").read()
        assert re.search(r"Max core file size +0 +0 ", limits), limits
    nobody = 65534
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        program = copy_program(directory)
        home = os.path.join(directory, "home")
        os.mkdir(home)
        user = {}
        if os.geteuid() == 0:
            os.chown(home, nobody, nobody)
            user = {"user": nobody, "group": nobody, "extra_groups": []}
        running = subprocess.Popen([program, "dev", "--listen", "127.0.0.1:0", "--data", "data"],
                                   cwd=home, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, **user)
        try:
            signed = os.path.join(home, "data", "signer", "signer.log")
            eventually(lambda: os.path.exists(signed), "its signing process has a log")
            assert os.stat(f"/proc/{running.pid}/mem").st_uid == 0
        finally:
            running.terminate()
            assert running.wait(60) == 0


def test_store_check_recomputes_the_signers_log(start):
    service = start()
    log = service.data / "signer" / "signer.log"
    eventually(lambda: '"purpose":"ocsp"' in log.read_text(), "what the responder said is logged")
    before = service.admin("store", "check")["signer_log_lines"]
    assert before >= 1
    channel = service.new_channel()
    event = channel.live.register({"a": 1}, "a").expect(201).json
    channel.live.sealed(event["event_id"])
    channel.close()
    assert '"purpose":"timestamp"' in log.read_text()
    checked = service.admin("store", "check")
    assert checked["valid"] is True and checked["signer_log_lines"] > before
    assert service.stop() == 0
    log.write_text(log.read_text() + log.read_text())
    done = run("store", "check", "--json", *service.chosen())
    assert done.returncode == 1
    assert "does not match the previous line" in json.loads(done.stdout)["problems"][0]
    refused = run("serve", "--set=tsa.url=embedded:", *service.chosen())
    assert refused.returncode != 0 and "does not match the previous line" in refused.stdout + refused.stderr


def test_a_log_that_an_earlier_store_left_is_not_put_into_a_restored_one(start, tmp_path):
    service = start()
    channel = service.new_channel()
    kept = channel.live.register({"n": 1}, "kept").expect(201).json
    service.admin("store", "backup", tmp_path / "backup")
    channel.live.register({"n": 2}, "lost").expect(201)
    service.kill()
    store = service.data / "constancia.db"
    log = service.data / "constancia.db-wal"
    if not log.exists():
        pytest.skip("the store is not the embedded one")
    store.unlink()
    restore = ("store", "restore", "--live", tmp_path / "backup", "--json", *service.chosen())
    refused = run(*restore)
    assert refused.returncode == 1 and str(log) in refused.stderr
    assert not store.exists()
    log.unlink()
    assert run(*restore).returncode == 0
    service.start()
    assert [event["client_ref"] for event in channel.live.walk("/v1/events", 500)] == ["kept"]
    assert channel.live.event(kept["event_id"])["chain_hash"] == kept["chain_hash"]


@pytest.mark.sqlite
def test_a_restore_leaves_the_content_that_is_there(start, tmp_path):
    """What rotted in a backup does not take the place of what is whole."""
    service = start()
    channel = service.new_channel()
    contents = [bytes([n]) * 50000 for n in range(2)]
    events = [channel.live.register_file(one).expect(201).json for one in contents]
    service.admin("store", "backup", tmp_path / "backup")
    assert service.stop() == 0
    for left in service.data.glob("constancia.db*"):
        left.unlink()
    lost, = (path for path in (service.data / "content").rglob("*")
             if path.is_file() and path.read_bytes() == contents[1])
    lost.unlink()
    rotten, = (path for path in (tmp_path / "backup" / "content").rglob("*")
               if path.is_file() and path.read_bytes() == contents[0])
    rotten.chmod(0o600)
    rotten.write_bytes(b"x" * 50000)
    done = run("store", "restore", "--live", tmp_path / "backup", "--json", *service.chosen())
    assert done.returncode == 0, done.stderr
    service.start()
    for event, content in zip(events, contents):
        answer = channel.live.get(f"/v1/events/{event['event_id']}/content").expect(200)
        assert answer.body == content


def test_a_missing_object_keeps_nothing_else_out_of_a_backup(start, tmp_path):
    service = start()

    def noted():
        return service.store.rows("SELECT value FROM settings WHERE name = 'last_backup'")
    channel = service.new_channel()
    files = [channel.live.register_file(bytes([n]) * 50000).expect(201).json for n in range(3)]
    content = service.data / "content"
    lost = next(path for path in content.rglob("*")
                if path.is_file() and path.read_bytes() == b"\1" * 50000)
    lost.unlink()
    done = run("store", "backup", tmp_path / "backup", "--json", *service.chosen())
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert (told["valid"], told["content_missing"], told["content_objects"]) == (False, 1, 2)
    name = lost.relative_to(content)
    (line,) = service.logged(lambda line: line["event"] == "object_missing")
    assert line["object"] == str(name)
    assert noted() == [], "it is none to rely on"
    (line,) = service.logged(lambda line: line["event"] == "backup_not_recorded")
    assert "1 object that the store references is missing" in line["cause"]
    done = run("store", "backup", tmp_path / "alone", "--no-content", "--json", *service.chosen())
    assert done.returncode == 0 and noted(), "of the database, as it was asked for"
    restored = Service(tmp_path / "other", prepared=False)
    restored.data.parent.mkdir()
    done = run("store", "restore", "--live", tmp_path / "backup", *restored.chosen())
    assert done.returncode == 0, done.stderr
    restored.distribute()
    checked = run("store", "check", "--json", *restored.chosen())
    problems = json.loads(checked.stdout)["problems"]
    assert checked.returncode == 1 and len(problems) == 1 and str(name) in problems[0]
    assert files[1]["event_id"] in problems[0]
    restored.discard()


def test_the_end_of_the_signing_process_is_the_end_of_the_service(start):
    """Its supervisor restarts both."""
    service = start()
    os.kill(service.signer(), signal.SIGKILL)
    assert service.process.wait(STOP_PATIENCE) == 1
    assert any(line["event"] == "signer_ended" for line in service.log_lines())
    service.process = None


def is_stopping(service):
    status, text = service.monitor("/readyz")
    return status == 503 and "the service is stopping" in text


def test_a_stopping_service_serves_during_its_delay_and_a_second_signal_does_not_end_it(start):
    service = start(http__drain_delay="8s")
    account = service.new_channel()
    account.live.register({"a": 1}).expect(201)
    for _ in range(2):
        service.process.terminate()
        eventually(lambda: is_stopping(service), "proxies can notice")
    assert Client(service, account.live_key["key"]).register({"a": 2}).expect(201).json["sequence"] == 2
    assert service.process.wait(STOP_PATIENCE) == 0
    assert [line["event"] for line in service.log_lines()].count("drain_announced") == 1
    service.process = None


def test_a_failure_during_the_delay_ends_it(start):
    """Nothing is served without a signing process for longer than it takes to notice."""
    service = start(http__drain_delay="8s")
    service.process.terminate()
    eventually(lambda: is_stopping(service), "the delay has begun")
    os.kill(service.signer(), signal.SIGKILL)
    assert service.process.wait(STOP_PATIENCE) == 0
    events = [line["event"] for line in service.log_lines()]
    assert "drain_announced" in events and "signer_ended" in events
    service.process = None


def test_a_service_that_failed_does_not_delay_its_end(start):
    service = start(http__drain_delay="8s")
    os.kill(service.signer(), signal.SIGKILL)
    assert service.process.wait(STOP_PATIENCE) == 1
    events = [line["event"] for line in service.log_lines()]
    assert "signer_ended" in events and "drain_announced" not in events
    service.process = None


# ---- watching it ----

def test_livez_readyz_and_metrics_answer_the_operator(service, channel):
    assert service.monitor("/livez")[0] == 200
    status, text = service.monitor("/readyz")
    assert status == 200 and json.loads(text)["ready"] is True
    assert service.monitor("/v1/channel")[0] == 404

    def counted():
        status, text = service.monitor("/metrics")
        assert status == 200
        values = {}
        for line in text.splitlines():
            assert line.startswith("#") or re.fullmatch(
                r'[a-z_]+(\{([a-z]+="[^"]*",?)*\})? [-+0-9.eE]+', line), line
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        assert all(name.startswith(("constancia_", "process_")) for name in values)
        return values
    before = counted()
    channel.live.register({"a": 1}, "a").expect(201)
    channel.live.register({"a": 1}, "a").expect(200)
    channel.live.register({"a": 2}, "a").expect(409)
    after = counted()
    for name in ("events_registered_total", "events_replayed_total", "events_conflicts_total"):
        assert after[f"constancia_{name}"] >= before[f"constancia_{name}"] + 1, name
    for key in service.secrets:
        assert key not in service.monitor("/metrics")[1]


@pytest.mark.sqlite
def test_keys_are_stored_as_digests_alone(service, channel):
    channel.live.register().expect(201)
    files = [path for path in service.data.iterdir() if path.name.startswith("constancia.db")]
    assert files
    for path in files:
        data = path.read_bytes()
        for key in (channel.live_key["key"], channel.test_key["key"]):
            assert key.encode() not in data
            assert key[9:-6].encode() not in data


def test_the_data_directory_is_closed_to_others(service):
    assert stat.S_IMODE(os.stat(service.data).st_mode) & 0o007 == 0


def test_a_password_in_the_address_of_the_store_is_not_shown(tmp_path):
    given = ["--data", tmp_path, "--set", "tsa.url=embedded:", "--set",
             "store.url=postgresql://someone:geheim@127.0.0.1:1/none"]
    for words in (["config", "print"], ["config", "print", "--json"], ["init"]):
        done = run(*words, *given)
        assert "geheim" not in done.stdout + done.stderr
    assert done.returncode != 0
