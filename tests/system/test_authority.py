"""A timestamp authority that answers late, wrongly, garbage or not at all, and then well."""

import gzip
import http.client
import importlib.util
import json
import pathlib
import signal
import subprocess
import threading
import zipfile

import pytest

import evidence
from client import eventually, run
from nodes import clock_behind

SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"
# None that gives a good timestamp of another time: by that the clock is wrong (test_clock_start.py).
BAD = ["late:30", "wrong_imprint", "wrong_nonce", "wrong_policy", "wrong_usage", "untrusted",
       "rejected", "garbage", "error", "close", "silent"]
PATIENCE = 90  # an authority that failed is left alone for a while


def load(name="timestamp_authority"):
    spec = importlib.util.spec_from_file_location(name, SUPPORT / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """Makes authorities in this process that share one set of certificates."""
    module = load()
    certificates = module.Certificates(str(tmp_path_factory.mktemp("authority")))
    running = []

    def make(mode="good", own=False):
        server = module.Server(
            module.Certificates(str(tmp_path_factory.mktemp("own"))) if own else certificates,
            mode=mode)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        return server
    yield make
    for server in running:
        server.shutdown()
        server.server_close()


def settings(*servers, **more):
    return {"tsa__url": ",".join(server.url for server in servers), "tsa__roots": servers[0].roots,
            "tsa__kind": "non_qualified", "tsa__allow_networks": "127.0.0.0/8",
            "tsa__policy": "2.25.1", "tsa__timeout": "10s", "seal__interval": "200ms", **more}


def config_of(client):
    return client.get("/v1/channel").json["config_versions"][0]


def failed_rounds(service):
    metrics = service.monitor("/metrics")[1]
    return next(float(line.split()[-1]) for line in metrics.splitlines()
                if line.startswith("constancia_seal_failures_total "))


def check_pending(channel, event):
    assert channel.live.event(event["event_id"])["timestamp"] == \
        {"type": "pending", "reference": None, "sealed_at": None}


def test_an_authority_elsewhere_seals_as_its_kind_says(start, stand_in, tmp_path):
    server = stand_in()
    service = start(**settings(server))
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    assert event["proof"]["round"]["kind"] == "non_qualified"
    evidence.check_proof(event, event["proof"], config_of(channel.live), server.roots, tmp_path)
    assert server.count >= 1


@pytest.mark.parametrize("modes", [BAD[:6], BAD[6:]], ids=["first six", "last five"])
def test_bad_authorities_seal_nothing_and_stop_no_registration(start, stand_in, tmp_path, modes):
    servers = [stand_in(mode) for mode in modes]
    service = start(**settings(*servers, tsa__timeout="1s"))
    channel = service.new_channel()
    events = [channel.live.register({"n": 0}).expect(201).json]
    eventually(lambda: all(server.count for server in servers), "each of them was asked", 60)
    for n in range(1, 6):
        events.append(channel.live.register({"n": n}).expect(201).json)
    assert [event["sequence"] for event in events] == list(range(1, 7))
    for event in events:
        check_pending(channel, event)
    assert service.admin("segment", "list", "--channel", channel.id)["data"] == []
    eventually(lambda: failed_rounds(service) >= 1, "a failed round is counted", 60)
    assert service.monitor("/readyz")[0] == 200, "registration continues"

    accepted = channel.live.certify(seq_from=1, seq_to=6).expect(202).json
    assert channel.live.certification(accepted["certification_id"])["status"] == "processing"
    channel.test.register().expect(201)
    # Once one is good again everything is sealed, and what waited resumes automatically.
    for server in servers:
        server.mode = "good"

    def sealed():
        return channel.live.event(events[-1]["event_id"])["timestamp"]["type"] == "batch"
    eventually(sealed, "the last event is sealed", PATIENCE)
    for event in events:
        read = channel.live.event(event["event_id"])
        assert read["received_at"] == event["received_at"]
        evidence.check_proof(read, read["proof"], config_of(channel.live), servers[0].roots,
                             tmp_path)
    done = channel.live.settled(accepted["certification_id"])
    assert done["status"] == "completed"


def test_the_next_authority_is_asked_when_the_first_fails(start, stand_in, tmp_path):
    bad, good = stand_in("garbage"), stand_in("good")
    service = start(**settings(bad, good))
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    assert bad.count >= 1 and good.count >= 1
    evidence.check_proof(event, event["proof"], config_of(channel.live), good.roots, tmp_path)


@pytest.mark.parametrize("mode, why", [
    ("wrong_name", "tsa in the TSTInfo, CN=Timestamp somebody else,O=Stand-in, is no name of the certificate that "
                   "signed it, CN=Timestamp good,O=Stand-in"),
    ("critical", "the TSTInfo has an unknown critical extension, 2.25.3")])
def test_a_token_that_openssl_would_not_verify_is_not_taken(start, stand_in, tmp_path, mode, why):
    bad, good = stand_in(mode), stand_in("named")
    service = start(**settings(bad, good))
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    evidence.check_proof(event, event["proof"], config_of(channel.live), good.roots, tmp_path)

    def failed():
        """A round logs it. After the comparison of the clock, which may be first, that is a later round."""
        channel.live.sealed(channel.live.register().expect(201).json["event_id"])
        return [line for line in service.log_lines() if line["event"] == "authority_failed"]
    (first, *_) = eventually(failed, "a round logs the failure", PATIENCE)
    assert why in first["reason"], first


def test_the_next_authority_is_asked_when_the_first_is_late(start, stand_in, tmp_path):
    """Its tokens are good but for their time, an hour before what they would seal."""
    late, good = stand_in("good"), stand_in("ahead:3600")
    service = start(**settings(late, good, tsa__time_bound="2h", seal__clock_bound="2h"),
                    environment=clock_behind(tmp_path, -3600))
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    assert late.count >= 1 and good.count >= 1
    evidence.check_proof(event, event["proof"], config_of(channel.live), good.roots, tmp_path)
    failed = service.logged(lambda line: line["event"] == "authority_failed")
    assert "earlier than permitted" in failed[0]["reason"]


def test_one_token_covers_the_segments_of_many_channels(start, stand_in, tmp_path):
    server = stand_in("error")
    service = start(**settings(server))
    channels = [service.new_channel() for _ in range(5)]
    events = [channel.live.register({"n": n}).expect(201).json
              for channel in channels for n in range(3)]
    owners = [channel for channel in channels for _ in range(3)]
    eventually(lambda: failed_rounds(service) >= 1, "the first round has failed")
    server.mode = "good"
    sealed = [channel.live.sealed(event["event_id"]) for channel, event in zip(owners, events)]
    for channel, event in zip(owners, sealed):
        evidence.check_proof(event, event["proof"], config_of(channel.live), server.roots, tmp_path)
    # What was staged when the first round failed is a round of its own, the rest another one.
    assert len({event["proof"]["round"]["token"] for event in sealed}) <= 2
    assert len({event["timestamp"]["reference"] for event in sealed}) >= 5


def metric(service, name):
    metrics = service.monitor("/metrics")[1]
    return next(float(line.split()[-1]) for line in metrics.splitlines()
                if line.startswith(f"constancia_{name} "))


def certified_archive(channel, last, directory):
    """Of events 1 to `last`: the archive, and its lines of rounds."""
    path = directory / "evidence.zip"
    record = channel.live.certified(seq_from=1, seq_to=last)
    assert record["status"] == "completed"
    path.write_bytes(channel.live.download(record["evidence_url"]).expect(200).body)
    lines = gzip.decompress(zipfile.ZipFile(path).read("rounds/rounds-000001.ndjson.gz"))
    return path, [json.loads(line) for line in lines.splitlines()]


def verified(archive, *roots):
    trust = archive.parent / "roots.pem"
    trust.write_text("".join(pathlib.Path(path).read_text(encoding="utf-8") for path in roots),
                     encoding="utf-8")
    done = run("verify", archive, "--json", "--trust", trust)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def two(stand_in, first="good", second="good"):
    """Two authorities, each with certificates of its own."""
    servers = [stand_in(first), stand_in(second, own=True)]
    return servers, settings(*servers, tsa__tokens=2, tsa__kind="non_qualified,qualified",
                             tsa__roots=",".join(server.roots for server in servers))


def test_two_authorities_give_two_times(start, stand_in, tmp_path):
    servers, chosen = two(stand_in)
    service = start(**chosen)
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    # The better kind is the round's, whatever the order of preference.
    assert event["proof"]["round"]["kind"] == "qualified"
    evidence.check_proof(event, event["proof"], config_of(channel.live), servers[1].roots, tmp_path)
    archive, rounds = certified_archive(channel, 1, tmp_path)
    round_ = rounds[-1]  # after that of the audit log, whose token it names
    assert [token["kind"] for token in round_["tokens"]] == ["qualified", "non_qualified"]
    for token, server in zip(round_["tokens"], reversed(servers)):
        assert evidence.token_is_over(token["token"], round_["root"], server.roots, tmp_path)
    # The second token does not replace the first: each needs its own root.
    assert not evidence.token_is_over(round_["tokens"][1]["token"], round_["root"],
                                      servers[1].roots, tmp_path)
    found = verified(archive, *(server.roots for server in servers), service.data / "trust.pem")
    assert len(found["authorities"]) >= 2
    assert not any("diverge" in warning["what"] for warning in found["warnings"])
    assert metric(service, "seal_second_timestamps_missing_total") == 0
    assert metric(service, "seal_timestamps_diverging_total") == 0
    checked = service.admin("store", "check")
    assert checked["problems"] == []


def test_a_second_authority_that_fails_stops_no_round(start, stand_in, tmp_path):
    servers, chosen = two(stand_in, second="error")
    service = start(**chosen)
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    assert event["proof"]["round"]["kind"] == "non_qualified"
    assert metric(service, "seal_second_timestamps_missing_total") >= 1
    assert service.logged(lambda line: line["event"] == "second_timestamp_missing")
    _, rounds = certified_archive(channel, 1, tmp_path)
    assert {len(round_["tokens"]) for round_ in rounds} == {1}


def test_times_that_diverge_are_alarmed_and_told(start, stand_in, tmp_path):
    servers, chosen = two(stand_in, second="ahead:300")
    service = start(**chosen, tsa__time_bound="10m")
    channel = service.new_channel()
    channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    (told, *_) = service.logged(lambda line: line["event"] == "timestamps_diverge")
    assert told["level"] == "error" and 290000 <= int(told["milliseconds"]) <= 310000
    assert metric(service, "seal_timestamps_diverging_total") >= 1
    # Certified once that time has come for the archive's signature, too.
    servers[1].mode = "good"
    archive, _ = certified_archive(channel, 1, tmp_path)
    found = verified(archive, *(server.roots for server in servers), service.data / "trust.pem")
    assert found["valid"]
    assert any("diverge" in warning["what"] for warning in found["warnings"])


def test_test_events_never_reach_an_authority(start, stand_in):
    server = stand_in()
    service = start(**settings(server))
    channel = service.new_channel()
    for _ in range(3):
        event = channel.test.register().expect(201).json
        assert event["timestamp"]["type"] == "simulated"
    asked = server.count
    done = channel.test.certified(seq_from=1, seq_to=3)
    assert done["status"] == "completed"
    live = channel.live.register().expect(201).json
    channel.live.sealed(live["event_id"])
    assert channel.test.event(event["event_id"])["timestamp"]["type"] == "simulated"
    assert server.count >= asked + 1


def test_the_stand_in_itself_answers_as_its_mode_says(stand_in):
    server = stand_in("error")
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    connection.request("POST", "/", b"0\x00")
    assert connection.getresponse().status == 500


# ---- credentials ----

USER, PASSWORD, TOKEN = "registry", "correct-horse, battery", "eyJhbGciOi.J9.opaque-token"


@pytest.fixture(scope="module")
def demanding(stand_in, tmp_path_factory):
    """Makes proxies with TLS that demand something, before one good authority."""
    module = load("demanding_proxy")
    certificates = module.Certificates(str(tmp_path_factory.mktemp("proxy")))
    running = []

    def make(**demands):
        behind = stand_in()
        proxy = module.Server(certificates, behind.url, **demands)
        proxy.behind, proxy.roots = behind, behind.roots
        proxy.certificates = certificates
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        running.append(proxy)
        return proxy
    yield make
    for server in running:
        server.shutdown()
        server.server_close()


def with_credentials(proxy, **more):
    given = {"tsa__tls_roots": proxy.certificates.path("root.pem"), **more}
    return settings(proxy, **given)


KINDS = {
    "basic": ({"basic": f"{USER}:{PASSWORD}"},
              {"tsa__user": USER, "tsa__password": PASSWORD}),
    "bearer": ({"bearer": TOKEN}, {"tsa__token": TOKEN}),
    "certificate": ({"mutual": True}, {"tsa__client_certificate": "client.pem",
                                       "tsa__client_key": "client.key"}),
    "both": ({"mutual": True, "bearer": TOKEN},
             {"tsa__client_certificate": "client.pem", "tsa__client_key": "client.key",
              "tsa__token": TOKEN}),
}


def given_files(proxy, given):
    return {name: proxy.certificates.path(value) if "client" in name else value
            for name, value in given.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_an_authority_that_demands_credentials_gets_them(start, demanding, tmp_path, kind):
    demands, given = KINDS[kind]
    proxy = demanding(**demands)
    service = start(**with_credentials(proxy, **given_files(proxy, given)))
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    evidence.check_proof(event, event["proof"], config_of(channel.live), proxy.roots, tmp_path)
    assert proxy.behind.count >= 1
    log = service.log.read_text()
    shown = service.run("config", "print").stdout
    assert "not shown" in shown or kind == "certificate"
    for secret in (PASSWORD, TOKEN):
        assert secret not in log and secret not in shown


@pytest.mark.parametrize("kind", ["basic", "bearer"])
def test_wrong_credentials_are_told_plainly(start, demanding, kind):
    proxy = demanding(**KINDS[kind][0])
    wrong = ({"tsa__user": USER, "tsa__password": "wrong-horse"} if kind == "basic"
             else {"tsa__token": "wrong-token"})
    service = start(**with_credentials(proxy, **wrong))
    channel = service.new_channel()
    event = channel.live.register().expect(201).json
    told = service.logged(lambda line: line["event"] == "authority_failed")[0]
    assert told["reason"].startswith("HTTP 401"), told
    assert proxy.behind.count == 0 and proxy.seen
    log = service.log.read_text()
    assert "wrong-horse" not in log and "wrong-token" not in log
    check_pending(channel, event)


def test_who_is_not_the_one_meant_gets_nothing(start, demanding):
    """A server whose certificate leads to no root given, and a client with another's certificate."""
    proxy = demanding(mutual=True, bearer=TOKEN)
    path = proxy.certificates.path
    stranger = {"tsa__client_certificate": path("stranger.pem"),
                "tsa__client_key": path("stranger.key"), "tsa__token": TOKEN}
    untrusting = {"tsa__tls_roots": path("stranger_root.pem"), "tsa__token": TOKEN,
                  "tsa__client_certificate": path("client.pem"),
                  "tsa__client_key": path("client.key")}
    for given in (stranger, untrusting):
        service = start(**with_credentials(proxy, **given))
        channel = service.new_channel()
        channel.live.register().expect(201)
        told = service.logged(lambda line: line["event"] == "authority_failed")[0]
        assert "HTTP" not in told["reason"], told
        assert TOKEN not in service.log.read_text()
    assert proxy.behind.count == 0 and not proxy.seen, "no token went to either"


# ---- what the standards leave to an authority ----

@pytest.mark.parametrize("mode", ["no_accuracy", "ber"])
def test_tokens_as_the_standards_allow_them_seal(start, stand_in, tmp_path, mode):
    server = stand_in(mode)
    service = start(**settings(server))
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    evidence.check_proof(event, event["proof"], config_of(channel.live), server.roots, tmp_path)
    done = channel.live.certified(seq_from=1, seq_to=1)
    words = judged(service, channel.live, done, tmp_path, server.roots)
    assert ("state no accuracy" in words) == (mode == "no_accuracy"), words


def judged(service, live, done, tmp_path, roots):
    """What constancia verify says of the archive and a report, with that root for timestamps."""
    archive, report = tmp_path / "evidence.zip", tmp_path / "report.pdf"
    archive.write_bytes(live.download(done["evidence_url"]).expect(200).body)
    report.write_bytes(live.download(done["report_url"]).expect(200).body)
    checked = run("verify", "--trust-signer", service.data / "trust.pem", "--trust-timestamps",
                  roots, archive, report)
    words = checked.stdout + checked.stderr
    assert checked.returncode == 0, words
    trust = tmp_path / "trust.pem"
    trust.write_text((service.data / "trust.pem").read_text() + pathlib.Path(roots).read_text())
    again = subprocess.run([SUPPORT / "check_archive.py", "--trust", trust, archive],
                           capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    return words


@pytest.mark.parametrize("form", ["crt", "p7c"])
def test_an_authority_that_sends_its_own_certificate_alone(start, stand_in, tmp_path, form):
    """The path is completed when sealing: the evidence needs the root alone."""
    server = stand_in("alone")
    server.certificates.make_alone(f"{server.url}middle.{form}")
    service = start(**settings(server))
    channel = service.new_channel()
    channel.live.sealed(channel.live.register({"n": 0}).expect(201).json["event_id"])
    fetched = server.fetched
    assert 1 <= fetched <= 3, "by the comparison of the clock, the sealer and the list of signers, which may run at once"
    channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
    assert server.fetched == fetched, "what is known is not asked for again"
    done = channel.live.certified(seq_from=1, seq_to=2)
    judged(service, channel.live, done, tmp_path, server.roots)


def test_given_intermediates_need_no_asking(start, stand_in, tmp_path):
    server = stand_in("alone_lost")
    server.certificates.make_alone(f"{server.url}middle.crt")
    both = tmp_path / "both.pem"
    both.write_text("".join(pathlib.Path(server.certificates.path(name)).read_text()
                            for name in ("middle.pem", "root.pem")))
    service = start(**settings(server, tsa__roots=both))
    channel = service.new_channel()
    channel.live.sealed(channel.live.register().expect(201).json["event_id"])
    done = channel.live.certified(seq_from=1, seq_to=1)
    judged(service, channel.live, done, tmp_path, server.roots)


@pytest.mark.parametrize("mode, why", [("alone_lost", "HTTP 404"),
                                       ("alone_wrong", "another certificate")])
def test_what_cannot_be_completed_is_refused_and_says_what_is_missing(start, stand_in, mode, why):
    server = stand_in(mode)
    server.certificates.make_alone(f"{server.url}middle.crt")
    service = start(**settings(server))
    channel = service.new_channel()
    event = channel.live.register().expect(201).json
    reason = service.logged(lambda line: line["event"] == "authority_failed")[0]["reason"]
    assert "CN=Timestamp alone,O=Stand-in was issued by CN=Timestamp middle" in reason, reason
    assert why in reason and "/middle.crt" in reason, reason
    check_pending(channel, event)
    server.mode = "alone"
    eventually(lambda: channel.live.event(event["event_id"])["timestamp"]["type"] == "batch",
               "it is sealed", PATIENCE)


def test_addresses_that_are_not_allowed_are_not_asked(start, stand_in):
    """A certificate may say any address: those that are guarded stay so."""
    server = stand_in("alone")
    server.certificates.make_alone("http://169.254.169.254/latest/meta-data")
    service = start(**settings(server))
    channel = service.new_channel()
    channel.live.register().expect(201)
    reason = service.logged(lambda line: line["event"] == "authority_failed")[0]["reason"]
    assert "169.254.169.254" in reason and "metadata" in reason, reason


def test_nobody_is_answered_any_more_once_the_background_work_ends(start, stand_in):
    """A certification would wake threads that are gone."""
    server = stand_in("silent")
    service = start(**settings(server, tsa__timeout="60s"))
    channel = service.new_channel()
    channel.live.register({}).expect(201)
    eventually(lambda: server.count >= 2, "a sealing round waits for the authority, and not the clock alone", PATIENCE)
    service.process.send_signal(signal.SIGTERM)

    def closed():
        try:
            channel.live.certify(seq_from=1, seq_to=1)
            return False
        except (OSError, http.client.HTTPException):
            return True
    eventually(closed, "HTTP ends", PATIENCE)
    with pytest.raises(subprocess.TimeoutExpired):
        service.process.wait(2)
    assert service.stop() == 0
