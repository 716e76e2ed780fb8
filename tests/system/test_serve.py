"""A real deployment's commands, and what depends on the machine's clock."""

import contextlib
import json
import os
import signal
import subprocess
import urllib.request

import stores
from client import BINARY, eventually, free_port, run
from program import STOP_PATIENCE


def write_settings(directory):
    ports = free_port(), free_port()
    path = directory / "constancia.conf"
    path.write_text(f"[service]\ndata_dir = {directory}/data\nlisten = 127.0.0.1:{ports[0]}\n"
                    f"admin_listen = 127.0.0.1:{ports[1]}\n[tsa]\nurl = embedded:\n")
    return path, ports


def ready_page(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return json.load(answer)
    except urllib.error.URLError:
        return None


def test_init_then_serve_then_sigterm(tmp_path):
    path, (port, admin_port) = write_settings(tmp_path)
    before = run("serve", "--config", path)
    assert before.returncode != 0 and "constancia init" in before.stderr
    assert run("init", "--config", path).returncode == 0
    log = open(tmp_path / "log", "w+", encoding="utf-8")
    process = subprocess.Popen([BINARY, "serve", "--config", str(path)], stderr=log,
                               stdout=subprocess.DEVNULL)
    try:
        page = eventually(lambda: ready_page(admin_port), "the service is ready")
        assert page["ready"] is True and page["promise"] == "durable"
        account = json.loads(run("account", "create", "--name", "A", "--credits", "5", "--json",
                                 "--config", path).stdout)
        channel = json.loads(run("channel", "create", "--account", account["account_id"], "--name",
                                 "C", "--declarant", "D", "--modality", "content", "--json",
                                 "--config", path).stdout)
        key = json.loads(run("key", "create", "--channel", channel["channel_id"], "--mode", "live",
                             "--json", "--config", path).stdout)["key"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v1/events", b'{"client_ref":"a","payload":{}}',
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 201 and json.load(answer)["sequence"] == 1
        eventually(lambda: '"of":"signer"' in (tmp_path / "log").read_text(encoding="utf-8"),
                   "the signer's certificate was checked")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_PATIENCE) == 0
    log.seek(0)
    lines = [json.loads(line) for line in log]
    events = [line["event"] for line in lines]
    assert "receipts_not_replicated" in events
    assert "development_timestamp_authority" in events
    # The development certificates have a responder of their own.
    (told,) = [line for line in lines
               if line["event"] == "validation_data" and line["of"] == "signer"]
    assert told["signature_level"] == "LTA"
    assert "validation_data_missing" not in events


def test_where_passkeys_are_asked_for_in_vain_the_log_says_so(tmp_path):
    path, _ = write_settings(tmp_path)
    asks = "--set", "service.public_url=https://register.example.org"
    assert run("init", "--config", path, *asks).returncode == 0

    def told(*arguments):
        """Of a start, until it serves."""
        with subprocess.Popen([BINARY, "serve", "--config", str(path), *arguments], text=True,
                              stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            lines = []
            for text in process.stderr:
                lines.append(json.loads(text))
                if lines[-1]["event"] == "serving":
                    break
            process.terminate()
        return [line["accounts"] for line in lines if line["event"] == "passkeys_unavailable"]
    at_an_address = "--set", "service.public_url=https://192.0.2.7"
    account = run("account", "create", "--name", "A", "--json", "--config", path)
    assert told(*at_an_address) == []
    asked = run("account", "set", json.loads(account.stdout)["account_id"], "--passkeys", "required",
                "--config", path, *asks)
    assert asked.returncode == 0, asked.stderr
    assert told(*at_an_address) == ["1"] and told(*asks) == []


def test_a_log_that_nobody_reads_stops_nothing(tmp_path):
    path, (_, admin_port) = write_settings(tmp_path)
    assert run("init", "--config", path).returncode == 0
    reader, writer = os.pipe()
    process = subprocess.Popen([BINARY, "serve", "--config", str(path)], stderr=writer,
                               stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: ready_page(admin_port), "the service is ready")
        filler = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(BlockingIOError):
            while os.write(filler, b"x" * 512):
                pass
        os.close(filler)
        # What the administration does is logged.
        for _ in range(3):
            assert run("account", "create", "--name", "A", "--json", "--config",
                       path).returncode == 0
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_PATIENCE) == 0
    os.close(reader)
    os.close(writer)


def test_a_strict_clock_holds_back_live_registrations_alone(start):
    service = start(seal__strict_clock="true")
    synchronized = "\nconstancia_clock_synchronized 1\n" in service.monitor("/metrics")[1]
    channel = service.new_channel()
    channel.test.register({}).expect(201)
    if synchronized:
        channel.live.register({}).expect(201)
        assert service.monitor("/readyz")[0] == 200
    else:
        channel.live.register({}).expect(503, "temporarily_unavailable")
        status, text = service.monitor("/readyz")
        assert status == 503 and json.loads(text)["reasons"] == [
            "the system clock is not synchronized"]
    channel.close()


def test_store_check_recomputes_segments_up_to_their_timestamps(start):
    service = start(seal__interval="1s")
    channel = service.new_channel()
    event = channel.live.register({}).expect(201).json["event_id"]
    channel.live.sealed(event)
    service.stop()
    assert service.admin("store", "check")["valid"] is True
    store = service.store
    store.change("CREATE TABLE kept_segments AS SELECT * FROM segments;"
                 "CREATE TABLE kept_rounds AS SELECT * FROM seal_rounds")
    ((size,),) = store.rows("SELECT length(nodes) FROM segments WHERE chain > 0")
    changes = [f"UPDATE segments SET nodes = {stores.blob(bytes(int(size)))} WHERE chain > 0",
               f"UPDATE segments SET root = {stores.blob(bytes(32))} WHERE chain > 0",
               "UPDATE segments SET document = replace(document, '\"count\":', '\"COUNT\":') "
               "WHERE chain > 0",
               "UPDATE segments SET document = replace(document, '\"previous_seal_hash\":null', "
               "'\"previous_seal_hash\":\"" + "0" * 64 + "\"') WHERE chain > 0",
               f"UPDATE seal_rounds SET root = {stores.blob(bytes(32))}",
               "UPDATE seal_rounds SET sealed_at = sealed_at + 1",
               "UPDATE seal_rounds SET token = substr(token, 1, length(token) - 1) || "
               + stores.blob(b"\0")]
    for change in changes:
        store.change(change)
        report = run("store", "check", "--json", *service.chosen())
        assert report.returncode == 1, change
        assert "segment" in json.loads(report.stdout)["problems"][0]
        store.change("UPDATE segments SET nodes = kept.nodes, root = kept.root, "
                     "document = kept.document "
                     "FROM kept_segments AS kept WHERE kept.segment_id = segments.segment_id;"
                     "UPDATE seal_rounds SET root = kept.root, sealed_at = kept.sealed_at, "
                     "token = kept.token FROM kept_rounds AS kept "
                     "WHERE kept.round = seal_rounds.round")
    assert service.admin("store", "check")["valid"] is True
    channel.close()
