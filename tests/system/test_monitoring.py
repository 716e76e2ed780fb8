"""What is reported to an operator: /metrics, /readyz, and the log of what becomes of them."""

import calendar
import json
import re
import threading
import time

import pytest

import stores  # finds tests/support
import timestamp_authority
from client import Client, eventually, fresh, run
from fleet import Fleet

SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="([^"]*)"')


def samples(service, name, text=None):
    """Of a metric: each with its labels; as of now, unless the text of an earlier scrape is given."""
    text = text or service.monitor("/metrics")[1]
    found = [SAMPLE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    assert all(found), text
    return [(dict(LABEL.findall(each[2] or "")), float(each[3])) for each in found
            if each[1] == name]


def sample(service, name, **labels):
    """The sum of those that have these labels."""
    return sum(value for found, value in samples(service, name)
               if labels.items() <= found.items())


# ---- requests ----

def requests(service, route, method, status):
    return sample(service, "constancia_http_requests_total", route=route, method=method,
                  status=str(status))


def test_requests_are_counted_by_route_method_and_status_and_never_by_their_path(service):
    channel = service.new_channel()
    templates = {
        ("/v1/events", "POST", 201): lambda: channel.live.register({"n": 1}).expect(201),
        ("/v1/events/{event_id}", "GET", 404): lambda: channel.live.get("/v1/events/evt_no").expect(404),
        ("/v1/events/{event_id}", "other", 405):
            lambda: channel.live.call("DELETE", "/v1/events/evt_no").expect(405),
        ("/v1/channel", "HEAD", 200):
            lambda: channel.live.call("HEAD", "/v1/channel").expect(200),
        ("other", "GET", 404):
            lambda: channel.live.get("/v1/secret-path-of-nobody").expect(404),
    }
    for labels, ask in templates.items():
        before = requests(service, *labels)
        took = sample(service, "constancia_http_request_seconds_count", route=labels[0])
        ask()
        # A request is counted at its end, behind its answer.
        eventually(lambda: requests(service, *labels) >= before + 1, f"{labels} is counted")
        eventually(lambda: sample(service, "constancia_http_request_seconds_count",
                                  route=labels[0]) >= took + 1, f"the time of {labels} is counted")
    _, text = service.monitor("/metrics")
    assert "secret-path" not in text and "evt_" not in text
    routes = {labels["route"] for labels, _ in samples(service, "constancia_http_requests_total")}
    described = {f"/v1{path}" for path in service.description.document["paths"]}
    assert all(route in described for route in routes if route.startswith("/v1/")
               and not route.endswith(".yaml")), (routes - described)


def test_the_times_of_a_route_are_a_histogram(service):
    route = "/v1/openapi.yaml"
    Client(service).get(route).expect(200)
    eventually(lambda: requests(service, route, "GET", 200), "it is counted")
    _, text = service.monitor("/metrics")
    buckets = [(labels["le"], value) for labels, value
               in samples(service, "constancia_http_request_seconds_bucket", text)
               if labels["route"] == route]
    assert [value for _, value in buckets] == sorted(value for _, value in buckets)
    ((_, count),) = [one for one in samples(service, "constancia_http_request_seconds_count", text)
                     if one[0]["route"] == route]
    assert buckets[-1] == ("+Inf", count)


def test_every_refusal_of_a_registration_is_counted_by_its_code(service):
    channel = service.new_channel()
    suspended = service.new_channel()
    service.admin("channel", "suspend", suspended.id)
    reference = fresh()
    channel.live.register({"n": 1}, reference).expect(201)
    broken = {"Content-Type": "application/json"}
    refusals = [
        ("validation_error", lambda: channel.live.call("POST", "/v1/events", b"{", broken)),
        ("validation_error", lambda: channel.live.register_hash("no digest")),
        ("validation_error", lambda: channel.live.post("/v1/events", {"client_ref": 7})),
        ("payload_too_large", lambda: channel.live.register({"n": "x" * 2 ** 21})),
        ("client_ref_conflict", lambda: channel.live.register({"n": 2}, reference)),
        ("invalid_key", lambda: Client(service, "svc_live_" + "0" * 43).register({"n": 1})),
        ("suspended", lambda: suspended.live.register({"n": 1})),
        ("unpaid_limit_exceeded",
         lambda: channel.test.register({"n": 1}, scenario="unpaid_limit")),
    ]
    for code, refused in refusals:
        before = sample(service, "constancia_events_refused_total", code=code)
        assert refused().code == code
        # What is said while the body still comes is counted at its end.
        eventually(lambda: sample(service, "constancia_events_refused_total", code=code) > before,
                   f"{code} is counted")
    # What was registered, repeated or only read is no refusal.
    total = sample(service, "constancia_events_refused_total")
    read = requests(service, "/v1/events", "GET", 400)
    channel.live.register({"n": 1}, reference).expect(200)
    channel.live.get("/v1/events?nothing=1").expect(400)
    # By then the one before it on the same connection is counted, too.
    eventually(lambda: requests(service, "/v1/events", "GET", 400) > read, "it is counted")
    assert sample(service, "constancia_events_refused_total") == total


def test_what_runs_is_told(service):
    ((labels, value),) = samples(service, "constancia_build_info")
    assert value == 1
    assert labels == {"version": run("version").stdout.split()[1],
                      "schema": labels["schema"], "store": service.settings.get(
                          "store.url", "sqlite:").partition(":")[0]}
    assert re.fullmatch(r"\d{3}-[a-z][a-z0-9.-]*", labels["schema"])
    assert 0 < sample(service, "process_resident_memory_bytes") < \
        sample(service, "process_virtual_memory_bytes")
    assert 0 < sample(service, "process_open_fds") < sample(service, "process_max_fds")
    assert sample(service, "process_cpu_seconds_total") > 0
    assert sample(service, "process_threads") > 1
    status = service.process.pid
    ticks = int(open(f"/proc/{status}/stat").read().rpartition(")")[2].split()[19])
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)  # by this clock; /proc/stat has the kernel's
    assert abs(sample(service, "process_start_time_seconds") - (boot + ticks / 100)) < 2


# ---- readiness ----

def readyz(service):
    status, text = service.monitor("/readyz")
    record = json.loads(text)
    assert (status == 200) == record["ready"] == (not record["reasons"]), text
    return record


def findings(service, kind):
    return sample(service, "constancia_readiness_findings", kind=kind)


def seconds(text):
    """Of a time as the interface writes it."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{rest or 0}")


def changes(service, word, member="come"):
    return [line for line in service.log_lines()
            if line.get("event") == "readiness_changed" and word in line[member]]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """Of timestamps; its mode can be changed."""
    server = timestamp_authority.Server(timestamp_authority.Certificates(
        str(tmp_path_factory.mktemp("authority"))))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def settings(*servers, **more):
    return {"tsa__url": ",".join(server.url for server in servers), "tsa__roots": servers[0].roots,
            "tsa__allow_networks": "127.0.0.0/8", "tsa__timeout": "10s", "seal__interval": "1s",
            **more}


def oldest(service):
    return sample(service, "constancia_oldest_pending_event_timestamp_seconds")


def last_seal(service):
    return sample(service, "constancia_last_seal_timestamp_seconds")


def test_the_oldest_pending_event_is_told_to_the_microsecond_staged_or_not(start, authority):
    authority.mode = "error"
    service = start(**settings(authority))
    first = service.new_channel().live
    received = seconds(first.register({"n": 1}).expect(201).json["received_at"])
    eventually(lambda: oldest(service) == pytest.approx(received, abs=1e-6), "it is reported")
    # Staged for a round that no authority seals; what follows is later.
    eventually(lambda: stores_count(service, "SELECT COUNT(*) FROM segments") > 0, "it is staged")
    first.register({"n": 2}).expect(201)
    second = service.new_channel().live
    second.register({"n": 1}).expect(201)
    seen = watched_again(service)
    assert oldest(service) == pytest.approx(received, abs=1e-6), seen
    # It is stuck, and that it is is said wherever one looks, and once in the log.
    record = eventually(lambda: (lambda found: found if any(
        "no segment could be sealed" in each for each in found["warnings"]) else None)(
            readyz(service)), "it is called late")
    assert record["ready"] and seconds(record["oldest_pending_at"]) == pytest.approx(received)
    assert findings(service, "sealing") == 1
    assert len(service.logged(lambda line: line.get("event") == "readiness_changed"
                              and "no segment could be sealed" in line["come"])) == 1
    # The same after a restart, before anything was tried.
    assert service.stop() == 0
    service.start()
    eventually(lambda: oldest(service) == pytest.approx(received, abs=1e-6), "it is reported again")
    authority.mode = "good"
    eventually(lambda: oldest(service) == 0, "all is sealed", 60)
    eventually(lambda: findings(service, "sealing") == 0, "nothing is late")
    service.logged(lambda line: line.get("event") == "readiness_changed"
                   and "no segment could be sealed" in line["gone"])
    service.acts_sealed()  # which is a seal, too
    ((latest,),) = service.store.rows("SELECT MAX(sealed_at) FROM seal_rounds")
    eventually(lambda: last_seal(service) == pytest.approx(int(latest) / 1e6, abs=1e-6), "it is seen")
    sealed = last_seal(service)
    assert sealed > received - 2
    assert service.stop() == 0
    service.start()
    eventually(lambda: samples(service, "constancia_last_seal_timestamp_seconds"), "it looked")
    assert last_seal(service) == sealed, "it is the store's, not this process's"


def stores_count(service, sql):
    return int(service.store.rows(sql)[0][0])


def watched_again(service):
    """Once the service has checked itself again at least once."""
    noted = service.admin("store", "backup-done")["last_backup_at"]
    eventually(lambda: readyz(service)["last_backup_at"] == noted, "it looked again")
    return noted


def test_sealing_that_hangs_without_a_failure_is_told(start):
    """The lease is a node's that is dead, or hangs."""
    service = start(seal__interval="1s")
    channel = service.new_channel()
    channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
    assert service.stop() == 0
    until = (int(time.time()) + 3600) * 1000000
    service.store.change(f"DELETE FROM leases WHERE name = 'sealer'; INSERT INTO leases "
                         f"(name, holder, expires_at) VALUES ('sealer', 'gone', {until})")
    service.start()
    channel.live.register({"n": 2}).expect(201)
    eventually(lambda: findings(service, "sealing") == 1, "it is late", 60)
    assert service.metric("seal_failures_total") == 0


def test_an_authority_that_fails_is_named_while_another_answers(start, authority):
    bad = timestamp_authority.Server(authority.certificates, mode="error")
    threading.Thread(target=bad.serve_forever, daemon=True).start()
    authority.mode = "good"
    service = start(**settings(bad, authority))
    channel = service.new_channel()
    channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
    host = bad.url.split("/")[2]
    assert sample(service, "constancia_authority_fails", authority=host, number="1") == 1
    assert sample(service, "constancia_authority_fails", number="2") == 0
    assert sample(service, "constancia_authority_answers_total", number="1", outcome="failed") >= 1
    assert sample(service, "constancia_authority_answers_total", number="1", outcome="good") == 0
    assert sample(service, "constancia_authority_answers_total", number="2", outcome="good") >= 1
    good = sample(service, "constancia_authority_last_success_timestamp_seconds", number="2")
    assert abs(time.time() - good) < 600
    assert sample(service, "constancia_authority_last_success_timestamp_seconds", number="1") == 0
    record = readyz(service)
    assert any(f"the timestamp authority {host} fails" in each for each in record["warnings"])
    assert record["ready"]
    bad.shutdown()
    bad.server_close()


def test_the_age_of_the_backup_is_told_and_outlives_the_process(start, tmp_path):
    service = start(store__backup_warn="1h")
    eventually(lambda: findings(service, "backup") == 1, "there is none")
    assert sample(service, "constancia_last_backup_timestamp_seconds") == 0
    assert any("no backup" in each for each in readyz(service)["warnings"])
    made = service.admin("store", "backup", str(tmp_path / "backup"))["created_at"]
    eventually(lambda: readyz(service)["last_backup_at"] == made, "it is reported")
    assert findings(service, "backup") == 0
    service.logged(lambda line: line.get("event") == "readiness_changed"
                   and "no backup" in line["gone"])
    assert len(changes(service, "no backup")) == 1, "once for each change"
    assert service.stop() == 0
    # An archive of another kind is noted by hand; and an old one is reported.
    service.store.change("UPDATE settings SET value = '1700000000000000' "
                         "WHERE name = 'last_backup'")
    service.start()
    eventually(lambda: findings(service, "backup") == 1, "it is old")
    assert any("2023-11-14" in each for each in readyz(service)["warnings"])
    noted = service.admin("store", "backup-done")["last_backup_at"]
    eventually(lambda: readyz(service)["last_backup_at"] == noted, "it is noted")
    assert sample(service, "constancia_last_backup_timestamp_seconds") == \
        pytest.approx(seconds(noted), abs=1e-6)


def test_a_certification_says_what_it_waits_for(start, authority):
    authority.mode = "error"
    service = start(**settings(authority))
    channel = service.new_channel()
    channel.live.register({"n": 1}).expect(201)
    accepted = channel.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]

    def shown():
        return service.admin("certification", "show", accepted)
    host = authority.url.split("/")[2]
    told = eventually(lambda: (lambda one: one if host in (one["waits_for"] or "") else None)(
        shown()), "it says why")
    assert told["status"] == "processing" and "the seal of event 1" in told["waits_for"]
    assert (told["attempts"], told["last_error"]) == (0, None)
    authority.mode = "good"
    channel.live.settled(accepted)
    done = shown()
    assert (done["waits_for"], done["next_attempt_at"], done["last_error"]) == (None, None, None)
    assert done["attempts"] >= 1


def test_a_certification_that_failed_once_shows_its_error_and_attempts_while_it_waits(start):
    service = start()
    channel = service.new_channel()
    channel.test.register_file(b"x" * 40000, "a").expect(201)
    objects = [path for path in (service.data / "content").rglob("*") if path.is_file()
               and path.stat().st_size == 40000]
    assert len(objects) == 1
    objects[0].rename(service.data / "aside")
    accepted = channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
    told = eventually(lambda: (lambda one: one if one["last_error"] else None)(
        service.admin("certification", "show", accepted)), "it says why")
    assert told["status"] == "processing" and told["attempts"] >= 1
    assert told["next_attempt_at"] and told["waits_for"]
    (listed,) = service.admin("certification", "list", "--channel", channel.id, "--mode",
                              "test")["data"]
    assert listed["last_error"] and listed["next_attempt_at"] and listed["attempts"] >= 1
    (service.data / "aside").rename(objects[0])
    service.admin("certification", "retry", accepted)
    assert channel.test.settled(accepted)["status"] == "completed"


@pytest.mark.postgresql
def test_nodes_tell_the_same_of_the_store_and_of_its_standbys(tmp_path):
    with Fleet(tmp_path, store__require_replicas=1) as fleet:
        channel = fleet.new_channel()
        channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
        names = ["last_seal_timestamp_seconds", "oldest_pending_event_timestamp_seconds",
                 "last_backup_timestamp_seconds", "store_replicas", "store_replicas_required"]
        noted = fleet.admin("store", "backup-done")["last_backup_at"]
        eventually(lambda: all(json.loads(node.ask("/readyz")[1])["last_backup_at"] == noted
                               for node in fleet.nodes), "each has looked")
        fleet.acts_sealed()  # which is a seal that each comes to see

        def look():
            told = [[node.metric(name) for name in names] for node in fleet.nodes]
            return told if told[0] == told[1] else None
        told = eventually(look, "they tell the same")
        assert told[0][0] > 0 and told[0][1] == 0 and told[0][3:] == [1, 1]
        # They were given development keys, and serve.
        for node in fleet.nodes:
            assert node.metric("development_keys") == 1
            assert any("development key" in each
                       for each in json.loads(node.ask("/readyz")[1])["warnings"])
