"""SIGHUP: a running service reads its settings again."""

import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import pwd
import signal
import tempfile
import threading

import pytest

import hooks
import program
import stores
import timestamp_authority
from client import PATIENCE, Client, Service, eventually
from mail_server import MailServer, make_certificates
from test_supervised import Supervisor

OWN = {"tsa.url": "embedded:", "rate.live": "100000", "rate.test": "100000", "seal.interval": "200ms"}


class Reloading(Service):
    """Serves by a file of settings, which is rewritten while it runs."""

    def __init__(self, directory, environment=None, **settings):
        super().__init__(directory, environment, describe=False)
        self.file = directory / "constancia.conf"
        self.earlier = 0
        self.base = {"service.data_dir": str(self.data), "service.listen": f"127.0.0.1:{self.port}",
                     "service.admin_listen": f"127.0.0.1:{self.admin_port}",
                     "service.public_url": self.public_url, **OWN, **self.settings}
        self.write(**settings)

    def write(self, text=None, **settings):
        given = {**self.base, **{name.replace("__", "."): value for name, value in settings.items()}}
        sections = {}
        for name, value in given.items():
            section, _, key = name.partition(".")
            sections.setdefault(section, []).append(f"{key} = {value}")
        self.file.write_text("".join(f"[{section}]\n" + "\n".join(lines) + "\n"
                                     for section, lines in sections.items()) + (text or ""))

    def chosen(self):
        return ["--config", str(self.file)]

    def serving(self):
        return ["serve"]

    def starts(self):
        return self.log.read_text().count('"event":"serving"') if self.log.exists() else 0

    def is_ready(self):
        return self.starts() > self.earlier

    def start(self, seconds=PATIENCE):
        assert self.run("init").returncode == 0
        self.earlier = self.starts()  # in the log of all starts
        self.spawn()
        return self.wait_until(self.is_ready, "it serves", seconds)

    def events(self, name):
        return [line for line in self.log_lines() if line["event"] == name]

    def reload(self, event="configuration_reloaded", text=None, **settings):
        before = len(self.events(event))
        self.write(text, **settings)
        self.process.send_signal(signal.SIGHUP)
        return eventually(lambda: self.events(event)[before:], f"the log has {event}", pause=0.01)

    def get(self, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path, headers={name.replace("_", "-"): value
                                                 for name, value in headers.items()})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer


@pytest.fixture
def reloading(tmp_path):
    one = Reloading(tmp_path)
    try:
        yield one.start()
        assert one.stop() in (0, None)
    finally:
        one.discard()


@pytest.mark.sqlite
def test_it_takes_over_what_can_be_changed(reloading):
    key = reloading.new_channel().live_key["key"]

    def limit():
        return reloading.get("/v1/channel", X_SVC_Api_Key=key).headers["RateLimit-Limit"]
    assert limit() == "400000"
    (told,) = reloading.reload(rate__live=1)
    assert (told["changed"], told["needs_restart"]) == ("rate.live", "")
    assert limit() == "4"
    # 429 comes at the new rate.
    statuses = [reloading.get("/v1/channel", X_SVC_Api_Key=key).status for _ in range(40)]
    assert 429 in statuses

    # Addresses behind a proxy, each with what it may do.
    def strangers(number):
        return [reloading.get("/v1/channel", X_Forwarded_For=f"192.0.2.{number}").status
                for _ in range(40)]
    assert 429 in strangers(1) and strangers(2).index(429) < 4, "all are one client"
    reloading.reload(rate__live=1, service__trusted_proxies="127.0.0.0/8")
    assert strangers(3).index(429) >= 4, "it has a bucket of its own"
    # What needs a restart is reported.
    (told,) = reloading.reload(rate__live=50, service__name="Another")
    assert set(told["before"].split("; ")) == {"rate.live = 1", "service.trusted_proxies = 127.0.0.0/8"}
    assert set(told["after"].split("; ")) == {"rate.live = 50", "service.trusted_proxies = "}
    assert told["needs_restart"] == "service.name"
    assert set(told["changed"].split()) == {"rate.live", "service.trusted_proxies"}
    assert limit() == "200"


@pytest.mark.sqlite
def test_values_are_told_as_they_were_and_are_but_secrets(reloading):
    """The first one, against what the service started with."""
    (told,) = reloading.reload(certification__fee=7, account__unpaid_limit=3, mail__password="hush0one",
                               mail__url="smtp://127.0.0.1:9", mail__from="a@example.org")
    assert set(told["before"].split("; ")) == {
        "certification.fee = 0", "account.unpaid_limit = 100", "mail.password = ", "mail.url = ",
        "mail.from = "}
    assert set(told["after"].split("; ")) == {
        "certification.fee = 7", "account.unpaid_limit = 3", "mail.password = ********",
        "mail.url = smtp://127.0.0.1:9", "mail.from = a@example.org"}
    (told,) = reloading.reload(certification__fee=7, account__unpaid_limit=3, mail__password="hush0two",
                               mail__url="smtp://127.0.0.1:9", mail__from="a@example.org")
    assert (told["changed"], told["before"], told["after"]) == (
        "mail.password", "mail.password = ********", "mail.password = ********")
    assert "hush0" not in reloading.log.read_text()


@pytest.mark.sqlite
def test_a_file_with_faults_changes_nothing(reloading):
    key = reloading.new_channel().live_key["key"]
    reloading.reload("configuration_rejected", rate__live=3,
                     text="[rate]\nlvie = 1\n[log]\nlevel = loud\n")
    told = reloading.logged(lambda line: line["event"] == "configuration_rejected", 2)
    assert {line["origin"].rpartition(":")[0] for line in told} == {str(reloading.file)}
    assert any("did you mean rate.live" in line["problem"] for line in told)
    assert any(line["setting"] == "log.level" for line in told)
    answer = reloading.get("/v1/channel", X_SVC_Api_Key=key)
    assert answer.status == 200 and answer.headers["RateLimit-Limit"] == "400000"
    # Roots that are none are found, too, and the next good file is taken.
    roots = reloading.data.parent / "roots.pem"
    roots.write_text("nothing\n")
    (told,) = reloading.reload("configuration_rejected", tsa__url="embedded:,https://tsa.example/",
                               tsa__roots=roots)
    assert told["setting"] == "tsa.roots"
    (told,) = reloading.reload(rate__live=4)
    assert told["changed"] == "rate.live"


@pytest.mark.sqlite
def test_the_log(reloading):
    """Its level, and what it says of requests, each from the moment that this is logged."""
    def requests():
        return [line["status"] for line in reloading.log_lines() if line["event"] == "request"]
    reloading.reload(log__level="info", log__requests="none")
    reloading.reload(log__level="info", log__requests="all")
    reloading.get("/v1/channel")
    # A request's line comes when its end is seen, which may be after its answer has arrived.
    eventually(requests, "the log tells of the request")
    reloading.reload(log__level="info", log__requests="none")
    reloading.get("/v1/channel")
    reloading.reload(log__level="error", log__requests="none")
    (told,) = reloading.reload(log__level="warning", rate__test=3)  # logged at any level
    assert set(told["changed"].split()) == {"log.level", "log.requests", "rate.test"}
    assert reloading.stop() == 0
    assert requests() == [401], "the first alone"
    assert not reloading.events("stopping")


@pytest.mark.sqlite
def test_no_line_of_others_passes_for_a_reload(reloading):
    """The level is as set, at every moment."""
    def ask(ending):
        while not ending.is_set():
            reloading.get("/v1/channel")

    ending = threading.Event()
    asking = [threading.Thread(target=ask, args=(ending,)) for _ in range(3)]
    quiet = {"log__level": "error", "log__requests": "all"}
    reloading.reload(**quiet)
    before = len(reloading.log_lines())
    for thread in asking:
        thread.start()
    for number in range(40):
        reloading.reload(rate__test=number + 1, **quiet)
    ending.set()
    for thread in asking:
        thread.join()
    assert {line["event"] for line in reloading.log_lines()[before:]} == {"configuration_reloaded"}


@pytest.mark.sqlite
def test_under_load_no_request_fails_for_it(reloading):
    key = reloading.new_channel().live_key["key"]
    statuses, ending = [], threading.Event()

    def ask():
        while not ending.is_set():
            statuses.append(reloading.get("/v1/channel", X_SVC_Api_Key=key).status)
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(12):
        reloading.reload(rate__live=100000 + number + 1, seal__interval="100ms",
                         service__trusted_proxies="127.0.0.1/32" if number % 2 else "")
    ending.set()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200} and len(statuses) > 12


def memory(process):
    """What a process has to itself, in KiB."""
    text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private"))


@pytest.mark.sqlite
def test_what_was_replaced_is_given_back(reloading):
    if program.sanitized():
        pytest.skip("a sanitizer keeps what is freed")

    def again(count):
        for number in range(count):
            reloading.reload(rate__live=100001 + number)
        return memory(reloading.process.pid)
    before = again(60)
    assert again(160) < before + 160 * 40, "as many KiB for each"


@pytest.fixture
def receiver():
    with hooks.Receiver() as one:
        yield one


@pytest.mark.sqlite
def test_where_notices_may_go(reloading, receiver):
    """And no connection that was permitted before is used again."""
    soon = {"webhook__schedule": "100ms", "webhook__allow_http": "true"}
    allowed = {"webhook__allow_networks": "127.0.0.0/8", **soon}
    reloading.reload(**allowed)
    owner = hooks.Owner(reloading)
    endpoint = owner.endpoint(receiver.url)
    receiver.secrets = [endpoint["secret"]]
    owner.cause()
    receiver.expect(1)
    hooks.ended(reloading, endpoint)
    reloading.reload(**soon)
    owner.cause()
    found = hooks.ended(reloading, endpoint, 2)
    assert [one["status"] for one in found] == ["failed", "delivered"]
    (tried, *_) = hooks.attempts(reloading, endpoint, found[0]["notice_id"])
    assert "not permitted" in tried["error"]
    assert len(receiver.deliveries) == 1
    reloading.reload(**allowed)
    owner.cause()
    receiver.expect(2)


@pytest.mark.sqlite
def test_roots_that_are_written_anew_under_the_same_name(reloading, tmp_path):
    made = []
    for name in ("own", "another"):
        (tmp_path / name).mkdir()
        made.append(make_certificates(tmp_path / name))
    (own, chain, key), (another, *_) = made
    certificate, roots = tmp_path / "receiver.pem", tmp_path / "roots.pem"
    certificate.write_bytes(chain.read_bytes() + key.read_bytes())
    given = {"webhook__roots": roots, "webhook__schedule": "100ms", "webhook__allow_networks": "127.0.0.0/8"}
    roots.write_bytes(another.read_bytes())
    reloading.reload(**given)
    owner = hooks.Owner(reloading)
    with hooks.Receiver(certificate=certificate) as receiver:
        endpoint = owner.endpoint(receiver.url)
        for count, (root, status) in enumerate(((another, "failed"), (own, "delivered"), (another, "failed")), 1):
            roots.write_bytes(root.read_bytes())
            (told,) = reloading.reload(**given)
            assert told["changed"] == ""
            owner.cause()
            assert hooks.ended(reloading, endpoint, count)[0]["status"] == status, count
        assert len(receiver.deliveries) == 1


@pytest.mark.sqlite
def test_the_mail_server(reloading):
    servers = [MailServer(), MailServer()]
    account = reloading.new_account(credits=5, email="owner@example.com")
    pack = reloading.admin("pack", "create", "--name", "A pack", "--credits", 1000, "--price",
                           "10.00", "--currency", "EUR")["pack_id"]
    reloading.admin("account", "billing", account, "--country", "ES")
    try:
        for number, server in enumerate(servers):
            reloading.reload(**server.settings())
            # Without a payment method it fails at once, and is turned off.
            reloading.admin("topup", "set", "--account", account, "--threshold", 10, "--pack", pack)
            eventually(lambda: server.messages, "an e-mail has arrived")
            assert [len(one.messages) for one in servers] == [1, number]
    finally:
        for server in servers:
            server.close()


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    made = [timestamp_authority.Server(timestamp_authority.Certificates(
        str(tmp_path_factory.mktemp("authority")))) for _ in range(2)]
    for server in made:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield made
    for server in made:
        server.shutdown()
        server.server_close()


def by(server, **more):
    return {"tsa__url": server.url, "tsa__roots": server.roots, "tsa__timeout": "10s",
            "tsa__allow_networks": "127.0.0.0/8", **more}


@pytest.mark.sqlite
def test_the_authority_and_how_it_did(reloading, authorities):
    def told(line):
        _, text = reloading.monitor("/metrics")
        return [float(found.split()[-1]) for found in text.splitlines()
                if found.startswith(f"constancia_authority_{line}")]

    channel = reloading.new_channel()

    def seal():
        """Twice: a pass that was under way at the reload continues with its settings, and seals the first."""
        for n in range(2):
            channel.live.sealed(channel.live.register({"n": n}).expect(201).json["event_id"])
    counts = [server.count for server in authorities]
    reloading.reload(**by(authorities[0]))
    seal()
    assert authorities[0].count > counts[0] and authorities[1].count == counts[1]
    good = told("answers_total{")
    assert good and told("last_success_timestamp_seconds")[0] > 0
    # Whatever else is read again, how it did is known as before.
    authorities[0].mode = "error"
    channel.live.register({"n": 2}).expect(201)
    eventually(lambda: told("fails{") == [1], "it fails")
    last = told("last_success_timestamp_seconds")
    failed = told("answers_total{")
    reloading.reload(rate__test=7, **by(authorities[0]))
    assert told("fails{") == [1] and told("last_success_timestamp_seconds") == last
    assert all(now >= before for now, before in zip(told("answers_total{"), failed))
    warned = json.loads(reloading.monitor("/readyz")[1])["warnings"]
    assert any("timestamp authority" in each for each in warned)
    # Another one takes its place; where it lies is permitted only as long as the settings say so.
    reloading.reload(**by(authorities[1]))
    seal()
    assert authorities[1].count > counts[1] and told("fails{") == [0]
    reloading.reload(**by(authorities[1], tsa__allow_networks="10.0.0.0/8"))

    def fails():  # also for what comes behind a pass that began before
        channel.live.register({"n": 3}).expect(201)
        return told("fails{") == [1]
    eventually(fails, "it is not permitted any more")
    authorities[0].mode = "good"


# ---- the audit log ----

def acts(service, count, refusals=False):
    """The entries of reloads, oldest first, once there are that many; `refusals`: the service may refuse to list them
    until then."""
    service.write()  # commands read the file, too

    def found():
        listed = ()
        with contextlib.suppress(*([program.Refused] if refusals else ())):
            listed = service.admin("audit", "list", "--installation", "--operation", "config reload",
                                   "--ascending")["data"]
        return listed if len(listed) >= count else None
    listed = eventually(found, f"{count} reloads are in the audit log")
    assert len(listed) == count
    return listed


@pytest.mark.both_stores
def test_a_reload_is_in_the_audit_log(reloading):
    """Who, what and when; names of settings, and no value."""
    reloading.reload(rate__live=50, mail__password="hush0one", mail__url="smtp://127.0.0.1:9",
                     mail__from="a@example.org", service__name="Another")
    reloading.reload(rate__live=50, mail__password="hush0one", mail__url="smtp://127.0.0.1:9",
                     mail__from="a@example.org", service__name="Another")
    reloading.reload("configuration_rejected", rate__live="many", mail__password="hush0two",
                     text="[rate]\nlvie = 1\n\xe4\n")
    listed = acts(reloading, 3)
    applied, unchanged, rejected = [act["arguments"] for act in listed]
    assert applied["applied"] and set(applied["changed"]) == {"rate.live", "mail.password",
                                                              "mail.url", "mail.from"}
    assert applied["needs_restart"] == unchanged["needs_restart"] == ["service.name"]
    assert unchanged["applied"] and unchanged["changed"] == []
    assert not rejected["applied"] and "changed" not in rejected
    assert any(one.get("setting") == "rate.live" and "integer" in one["problem"]
               and one["origin"].startswith(str(reloading.file)) for one in rejected["problems"])
    assert any("did you mean rate.live" in one["problem"] for one in rejected["problems"])
    me = os.getuid()
    for act in listed:
        assert (act["uid"], act["user"]) == (me, pwd.getpwuid(me).pw_name), "the kernel reports the sender"
        assert (act["actor"], act["via"], act["claimed"]) == ("operator", "signal", None)
        assert act["arguments"]["pid"] == os.getpid()
        assert act["account_id"] is None and act["node"] and act["at"]
        assert act["arguments"]["received_at"]
    assert "hush0" not in json.dumps(listed)
    logged = reloading.logged(lambda line: line["event"] == "administration"
                              and line["operation"] == "config reload", 3)
    assert [line["act"] for line in logged] == [act["act_id"] for act in listed]
    assert reloading.admin("store", "check")["valid"]


@pytest.mark.both_stores
def test_a_reload_with_many_problems_is_recorded_with_some(reloading):
    text = "".join(f"unknown_{number} = \"{'x' * 40}\\\n" for number in range(300))
    reloading.reload("configuration_rejected", text="[rate]\n" + text)
    (act,) = acts(reloading, 1)
    assert len(act["arguments"]["problems"]) == 20
    assert act["arguments"]["problems_omitted"] == 280


class Value(ctypes.Union):
    _fields_ = [("integer", ctypes.c_int), ("pointer", ctypes.c_void_p)]


@pytest.mark.sqlite
def test_a_sender_that_states_itself_is_claimed_and_not_proven(reloading):
    """By sigqueue(3): the kernel does not fill in who that was."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.sigqueue(reloading.process.pid, signal.SIGHUP, Value(integer=0)) == 0
    (act,) = acts(reloading, 1)
    assert (act["uid"], act["user"], act["via"]) == (None, None, "signal")
    assert act["claimed"] == pwd.getpwuid(os.getuid()).pw_name
    assert act["arguments"]["pid"] is None


@pytest.mark.sqlite
def test_reloads_just_before_the_end_are_recorded(tmp_path):
    service = Reloading(tmp_path)
    try:
        service.start()
        for number in range(5):
            service.reload(rate__live=number + 1)
        assert service.stop() == 0
        service.start()
        assert len(acts(service, 5)) == 5
        assert service.stop() == 0
    finally:
        service.discard()


@pytest.mark.postgresql
def test_a_reload_without_a_store_is_recorded_later_or_logged(tmp_path):
    with stores.cluster_with({}), contextlib.ExitStack() as ending:
        primary = stores.cluster().primary
        service = Reloading(tmp_path)
        ending.callback(service.discard)
        service.start()
        primary.stop("immediate")
        for number in range(3):
            service.reload(rate__live=number + 1)
        eventually(lambda: service.events("audit_record_delayed"), "the store refuses it")
        primary.start()
        listed = acts(service, 3, refusals=True)
        assert all(act["arguments"]["received_at"] < act["at"] for act in listed)
        assert [act["number"] for act in listed] == sorted(act["number"] for act in listed)
        assert not service.events("audit_record_not_written")
        # What is still queued at the end is in the log, with all that the entry would have said.
        primary.freeze()
        ending.callback(primary.thaw)
        for number in range(3):
            service.reload(rate__live=number + 10)
        service.process.terminate()
        lost = service.logged(lambda line: line["event"] == "audit_record_not_written", 3)
        assert {line["operation"] for line in lost} == {"config reload"}
        assert json.loads(lost[0]["made"])["changed"] == ["rate.live"]


# ---- the supervisor ----

def supervised(directory, **settings):
    place = tempfile.TemporaryDirectory()
    name = f"{place.name}/notify"
    supervisor = Supervisor(name)
    service = Reloading(directory, {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000000"}, **settings)
    return place, supervisor, service


@pytest.mark.sqlite
def test_the_supervisor_hears_when_it_begins_and_ends(tmp_path):
    place, supervisor, service = supervised(tmp_path)
    try:
        service.start()
        assert supervisor.hear("READY=1")
        for faults, status in ((None, "settings reloaded"), ("[x]\ny = 1\n", "previous settings")):
            service.reload("configuration_rejected" if faults else "configuration_reloaded", faults)
            begun = supervisor.hear("RELOADING=1")
            ended = supervisor.hear("READY=1")
            (moment,) = [line for line in begun if line.startswith("MONOTONIC_USEC=")]
            with open("/proc/uptime", encoding="ascii") as uptime:
                now = float(uptime.read().split()[0])
            assert 0 < int(moment.partition("=")[2]) <= (now + 1) * 1000000
            assert any(status in line for line in ended if line.startswith("STATUS=")), ended
        assert service.stop() == 0
    finally:
        service.discard()
        supervisor.close()
        place.cleanup()


@pytest.mark.postgresql
def test_a_store_that_hangs_keeps_nothing_from_being_told(tmp_path):
    """A reload in the meantime stops no sign of life, and the log says what /readyz says."""
    place, supervisor, service = supervised(tmp_path)
    trust = service.data / "trust.pem"
    primary = stores.cluster().primary

    def changes():
        return [line["ready"] for line in service.events("readiness_changed")]
    try:
        service.start()
        Client(service).get("/v1/openapi.yaml").expect(200)
        trust.unlink()
        primary.freeze()
        service.reload(rate__test=9)
        supervisor.forget()
        for _ in range(3):
            assert supervisor.hear("WATCHDOG=1", 10), "it is alive"
        # By then a connection may have been given up, whose cause it says instead.
        status, text = service.monitor("/readyz")
        assert status == 503 and json.loads(text)["reasons"], text
        eventually(lambda: changes()[-1:] == ["false"], "the log tells")
        assert not trust.exists()
        primary.thaw()
        eventually(lambda: changes()[-1:] == ["true"], "the log tells")
        eventually(trust.exists, "it is written again")
        assert service.stop() == 0
    finally:
        primary.thaw()
        service.discard()
        supervisor.close()
        place.cleanup()
