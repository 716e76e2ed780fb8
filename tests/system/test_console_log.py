"""The console's page of the log of segments: what the service says of an account's channels there."""

import html
import json
import re
import shlex
import socket
import subprocess

import pytest

import stores
import tlog
from client import BINARY, Service, eventually
from console import new_developer, shown
from scripted_witness import ScriptedWitness

ORIGIN = "log.example/segments"


def started(tmp_path, witness=None, **settings):
    if witness:
        settings["log__witnesses"] = f"{witness.vkey} {witness.url}"
    running = Service(tmp_path, **{"seal__interval": "1s", "log__origin": ORIGIN, "rate__live": 100000,
                                   "log__allow_networks": "127.0.0.0/8", **settings})
    running.start()
    return running


def vkey_of(service, origin=ORIGIN):
    return tlog.Key.load(origin, tlog.ED25519, (service.data / "signer" / "log.key").read_bytes()).vkey


def row_of(service, account, channel):
    found = service.admin("channel", "log", "--account", account)
    return found, next(row for row in found["data"] if row["channel_id"] == channel.id)


@pytest.fixture
def witness(tmp_path):
    """Its log is not known until the service has made its key."""
    made = ScriptedWitness("witness.example/one", [])
    yield made
    made.close()


@pytest.fixture
def service(tmp_path, witness):
    (tmp_path / "service").mkdir()
    running = started(tmp_path / "service", witness, log__quorum="1")
    witness.logs[ORIGIN] = vkey_of(running)
    yield running
    running.discard()


def commands(visitor):
    return [html.unescape(one) for one in re.findall(r'<pre class="lines" tabindex="0"><code>(constancia log watch .*?)'
                                                     r'</code></pre>', visitor.body, re.S)]


@pytest.mark.both_stores
def test_what_the_log_has_of_a_channel(service, witness, tmp_path):
    account = service.new_account(credits=50)
    channel, idle = (service.new_channel(account_id=account) for _ in range(2))
    kept = []
    for number in range(3):
        kept.append(channel.live.register({"number": number}).expect(201).json)
        eventually(lambda: row_of(service, account, channel)[1]["last_sequence"] == len(kept), "it is in the log")
    witnessed = eventually(lambda: row_of(service, account, channel)[1]["witnessed_at"], "the witness cosigned it")
    found, row = row_of(service, account, channel)
    remote = tlog.RemoteLog(f"http://127.0.0.1:{service.port}/log")
    size = tlog.parse_checkpoint(tlog.parse_note(remote.note())[0])[1]
    entry = remote.entries(size)[row["index"]]
    assert found["origin"] == ORIGIN and found["origin_is_set"] and found["key"] == vkey_of(service)
    assert 3 <= found["checkpoint"]["size"] <= size
    assert found["checkpoint"]["cosigners"] == 1
    assert found["witnesses"][0]["name"] == witness.key.name and found["witnesses"][0]["key"] == witness.vkey
    assert found["witnesses"][0]["cosigned_at"] and found["witnesses"][0]["cosigned_newest"]
    assert row["tag"] == channel.live.get("/v1/channel").expect(200).json["log_tag"]
    assert (row["entries"], row["first_sequence"], row["last_sequence"], row["overdue"]) == (3, 3, 3, 0)
    assert json.loads(entry)["tag"] == row["tag"] and json.loads(entry)["last_sequence"] == 3
    assert row_of(service, account, idle)[1] == {
        **row, "channel_id": idle.id, "name": row_of(service, account, idle)[1]["name"], "live_events": 0,
        "tag": idle.live.get("/v1/channel").expect(200).json["log_tag"], "entries": 0, "first_sequence": None,
        "last_sequence": None, "index": None, "witnessed_at": None}
    for language, words in (("en", ("Newest published checkpoint", f"events 3 to 3, at index {row['index']}")),
                            ("es", ("Último punto de control publicado",
                                    f"eventos 3 a 3, en el índice {row['index']}"))):
        visitor = new_developer(service, account, "reader", language)
        text = shown(visitor.get("/console/log"))
        assert visitor.status == 200 and "/console/log" in visitor.links()
        for word in (*words, ORIGIN, vkey_of(service), witness.key.name, row["tag"], idle.id):
            assert word in text, word
        assert witnessed[:19] in visitor.body and "<strong>" not in visitor.body.split("<main")[1]
    own = next(one for one in commands(visitor) if channel.id in one)
    (tmp_path / f"{channel.id}.ndjson").write_text("".join(json.dumps(one) + "\n" for one in kept))
    own = own.replace(f"{service.public_url}/log", f"http://127.0.0.1:{service.port}/log")
    words = shlex.split(own.replace("\\\n", " "))
    done = subprocess.run([BINARY, *words[1:], "--once", "--json"], cwd=tmp_path, capture_output=True, text=True,
                          check=False)
    assert words[0] == "constancia" and done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["covered"] == 3


@pytest.mark.both_stores
def test_a_witness_that_is_away(service, witness):
    account = service.new_account(credits=50)
    channel = service.new_channel(account_id=account)
    channel.live.register({"number": 1}).expect(201)
    eventually(lambda: row_of(service, account, channel)[1]["witnessed_at"], "the witness cosigned it")
    witness.behaviour = "down"
    channel.live.register({"number": 2}).expect(201)
    eventually(lambda: row_of(service, account, channel)[1]["entries"] == 2, "it is in the log", 60)
    found, row = row_of(service, account, channel)
    assert row["witnessed_at"] is None and row["overdue"] == 0
    assert found["witnesses"][0]["cosigned_at"] and not found["witnesses"][0]["cosigned_newest"]
    assert "not of the newest checkpoint" in shown(new_developer(service, account).get("/console/log"))


@pytest.mark.both_stores
def test_only_the_accounts_own_channels(service):
    accounts = [service.new_account(credits=50) for _ in range(2)]
    own, other = (service.new_channel(account_id=account) for account in accounts)
    own.live.register({"number": 1}).expect(201)
    other.live.register({"number": 1}).expect(201)
    visitor = new_developer(service, accounts[0])
    for path in ("/console/log", f"/console/log?after={other.id}", f"/console/log?account={accounts[1]}"):
        visitor.get(path)
        tag = other.live.get("/v1/channel").expect(200).json["log_tag"]
        assert tag not in visitor.body and f"/console/channels/{other.id}" not in visitor.body, path
    assert own.id in visitor.get("/console/log").body
    assert new_developer(service, accounts[0], "accountant").get("/console/log").status == 403


@pytest.mark.both_stores
def test_many_channels_are_shown_in_parts(service):
    account = service.new_account(credits=50)
    made = {service.admin("channel", "create", "--account", account, "--name", f"Channel {number}", "--declarant", "D",
                          "--modality", "content")["channel_id"] for number in range(27)}
    visitor = new_developer(service, account)
    visitor.get("/console/log")
    first = set(re.findall(r'<th scope="row"><a href="/console/channels/(\w+)"', visitor.body))
    following = html.unescape(re.search(r'href="(/console/log\?after=[^"]+)"', visitor.body)[1])
    visitor.get(following)
    rest = set(re.findall(r'<th scope="row"><a href="/console/channels/(\w+)"', visitor.body))
    assert len(first) == 25 and first | rest == made and not first & rest
    assert 'class="button" href="/console/log?after=' not in visitor.body
    assert service.run("channel", "log", "--account", account, "--limit", "101").returncode != 0


@pytest.mark.both_stores
def test_events_that_are_overdue(tmp_path):
    """The service could not seal for longer than it promises; and its clock is that of the test."""
    running = started(tmp_path, seal__interval="1s")
    try:
        account = running.new_account(credits=50)
        channel = running.new_channel(account_id=account)
        channel.live.register({"number": 1}).expect(201)
        eventually(lambda: row_of(running, account, channel)[1]["entries"] == 1, "it is in the log")
        assert running.stop() == 0
        running.settings.update({"seal.interval": "1h", "seal.promise": "1s"})
        running.start()
        for number in range(2, 4):
            channel.live.register({"number": number}).expect(201)
        assert row_of(running, account, channel)[1]["overdue"] == 0
        assert running.stop() == 0
        running.store.change(f"UPDATE {stores.EVENTS} SET received_at = received_at - 7400000000")
        running.start()
        assert row_of(running, account, channel)[1]["overdue"] == 2
        visitor = new_developer(running, account, language="es")
        assert re.search(r'data-label="Eventos con retraso"><strong>2</strong>', visitor.get("/console/log").body)
    finally:
        running.discard()


@pytest.mark.both_stores
def test_segments_that_are_older_than_the_log(service):
    account = service.new_account(credits=50)
    channel = service.new_channel(account_id=account)

    def entries_of():
        return row_of(service, account, channel)[1]["entries"]

    while entries_of() < 4:
        before = entries_of()
        channel.live.register({"after": before}).expect(201)
        eventually(lambda: entries_of() > before, "it is in the log")  # pylint: disable=cell-var-from-loop
    newest = row_of(service, account, channel)[1]
    for older, entries in ((1, 3), (3, 1), (4, 0)):
        assert service.stop() == 0
        service.store.change("UPDATE round_blocks SET log_first = NULL, log_entries = NULL WHERE round <= (SELECT round"
                             f" FROM segments WHERE last_sequence = {older} AND document LIKE '%{channel.id}%')")
        service.store.change(f"UPDATE {stores.EVENTS} SET received_at = received_at - 7400000000")
        service.start()
        row = row_of(service, account, channel)[1]
        assert (row["entries"], row["overdue"]) == (entries, 0)
        assert row["index"] == (newest["index"] if entries else None)


@pytest.mark.both_stores
def test_what_is_sealed_and_not_published(tmp_path, witness):
    """A witness that does not answer is awaited."""
    silent = socket.create_server(("127.0.0.1", 0))
    witness.url = f"http://127.0.0.1:{silent.getsockname()[1]}"
    running = started(tmp_path, witness, log__witness_timeout="60s")
    try:
        account = running.new_account(credits=50)
        channel = running.new_channel(account_id=account)
        channel.live.register({"number": 1}).expect(201)
        eventually(lambda: running.admin("channel", "list", "--account", account)["data"][0]["sealed_events"] == 1,
                   "it is sealed")
        found, row = row_of(running, account, channel)
        assert found["checkpoint"] is None and (row["entries"], row["overdue"]) == (0, 0)
    finally:
        running.discard()
        silent.close()


@pytest.mark.both_stores
def test_stored_cosignatures_that_cannot_be_read(service):
    account = service.new_account(credits=50)
    channel = service.new_channel(account_id=account)
    channel.live.register({"number": 1}).expect(201)
    eventually(lambda: row_of(service, account, channel)[1]["witnessed_at"], "the witness cosigned it")
    assert service.stop() == 0
    service.store.change("UPDATE log_checkpoints SET cosignatures = 'nonsense'")
    service.start()
    found, row = row_of(service, account, channel)
    assert row["entries"] == 1 and row["witnessed_at"] is None and found["witnesses"][0]["cosigned_at"] is None


@pytest.mark.sqlite
def test_a_service_whose_log_has_no_name_yet(tmp_path):
    running = started(tmp_path, log__origin="", seal__interval="1h")
    try:
        account = running.new_account(credits=50)
        running.new_channel(account_id=account)
        for language, words in (("en", ("the operator has set none", "the log is not published yet",
                                        "The service has no witnesses")),
                                ("es", ("el operador no ha fijado ninguno", "el registro aún no se ha publicado",
                                        "El servicio no tiene testigos"))):
            text = shown(new_developer(running, account, language=language).get("/console/log"))
            for word in words:
                assert word in text
    finally:
        running.discard()
