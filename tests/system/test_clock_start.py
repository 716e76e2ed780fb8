"""A clock that is wrong when the service starts gives no live event its time; and one that cannot be
compared with a timestamp is recorded in the seals of what it gave a time."""

import importlib.util
import json
import pathlib
import threading

import pytest

import evidence
from client import Service, eventually
from nodes import SetClock

pytestmark = pytest.mark.both_stores

OFF_SECONDS = 3600
COMPARED = "ntp_adjtime"
NOT_COMPARED = "ntp_adjtime, not compared with a timestamp"
SUPPORT = pathlib.Path(__file__).resolve().parents[1] / "support"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("timestamp_authority", SUPPORT / "timestamp_authority.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.Server(module.Certificates(str(tmp_path_factory.mktemp("authority"))))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def asking(server, **more):
    return {"tsa__url": server.url, "tsa__roots": server.roots, "tsa__kind": "non_qualified",
            "tsa__allow_networks": "127.0.0.0/8", "seal__interval": "500ms", **more}


@pytest.fixture
def make(tmp_path):
    made = []

    def one(**more):
        made.append(Service(tmp_path, **more))
        return made[-1]
    yield one
    for service in made:
        service.discard()


def readiness(service):
    return json.loads(service.monitor("/readyz")[1])


def logged(service, event):
    return service.logged(lambda line: line["event"] == event)[0]


def source(channel, event):
    return channel.live.sealed(event["event_id"])["proof"]["segment"]["seal_document"]["clock"]["source"]


@pytest.mark.parametrize("behind", [OFF_SECONDS, -OFF_SECONDS], ids=["behind", "ahead"])
def test_a_wrong_clock_gives_no_event_its_time(make, tmp_path, behind):
    """The embedded authority keeps the true time."""
    clock = SetClock(tmp_path, behind)
    service = make(environment=clock.environment, seal__interval="1s").start()
    channel = service.new_channel()
    for _ in range(3):
        answer = channel.live.register().expect(503, "temporarily_unavailable")
        assert "clock" in answer.message and 1 <= int(answer.headers["Retry-After"]) <= 60
    channel.test.register().expect(201)
    assert channel.live.get("/v1/events").expect(200).json["data"] == []
    (told,) = service.logged(lambda line: "new timestamp" in line.get("cause", ""))
    assert (told["level"], told["event"]) == ("error", "clock_rejected")
    (reason,) = readiness(service)["reasons"]
    assert ("s behind a new timestamp" if behind > 0 else "s ahead of a new timestamp") in reason
    assert service.metric("clock_compared") == 0

    clock.set(0)
    eventually(lambda: channel.live.register({"n": 1}, "a").status == 201, "the clock is relied on")
    assert service.metric("clock_compared") == 1
    event = channel.live.register({"n": 1}, "a").expect(200).json
    assert event["sequence"] == 1 and source(channel, event) == COMPARED
    assert service.stop() == 0


def test_where_no_authority_answers_the_seals_say_so(make, authority, tmp_path):
    authority.mode = "error"
    service = make(**asking(authority)).start()
    channel = service.new_channel()
    first = channel.live.register().expect(201).json
    assert logged(service, "clock_not_compared")["level"] == "warning"
    state = readiness(service)
    assert state["ready"] and any("not compared with a timestamp" in each for each in state["warnings"])
    assert service.metric("clock_compared") == 0

    # It is known when it is sealed later, though the process that received it has ended.
    service.kill()
    authority.mode = "good"
    service.start()
    assert service.metric("clock_compared") == 1
    assert source(channel, first) == NOT_COMPARED
    after = channel.live.register().expect(201).json
    assert source(channel, after) == COMPARED
    for event in (channel.live.event(each["event_id"]) for each in (first, after)):
        evidence.check_proof(event, event["proof"], channel.live.get("/v1/channel").json["config_versions"][0],
                             authority.roots, tmp_path)
    # Released only once the program's own verifier found it valid.
    assert channel.live.certified(seq_from=1, seq_to=2)["status"] == "completed"
    assert service.stop() == 0


def test_the_comparison_is_made_once_an_authority_answers(make, authority):
    authority.mode = "error"
    service = make(**asking(authority)).start()
    channel = service.new_channel()
    first = channel.live.register().expect(201).json
    authority.mode = "good"
    assert source(channel, first) == NOT_COMPARED
    eventually(lambda: service.metric("clock_compared") == 1, "it is compared")
    logged(service, "clock_compared")
    assert readiness(service)["ready"]
    assert source(channel, channel.live.register().expect(201).json) == COMPARED
    assert service.stop() == 0


def test_a_wrong_authority_alone_stops_live_events_too(make, authority):
    """Which of the two is wrong does not show: the only authority's time is two hours ahead."""
    authority.mode = "wrong_time"
    service = make(**asking(authority)).start()
    channel = service.new_channel()
    channel.live.register().expect(503, "temporarily_unavailable")
    assert "s behind a new timestamp" in readiness(service)["reasons"][0]
    authority.mode = "good"
    eventually(lambda: channel.live.register().status == 201, "another answer agrees")
    logged(service, "clock_accepted")
    assert service.stop() == 0


def test_an_authority_that_hangs_delays_no_start(make, authority):
    authority.mode = "silent"
    service = make(**asking(authority, tsa__timeout="60s"))
    service.awaits_clock = False
    service.start()
    channel = service.new_channel()
    answer = channel.live.register().expect(503, "temporarily_unavailable")
    assert "clock" in answer.message and 1 <= int(answer.headers["Retry-After"]) <= 5
    assert readiness(service)["reasons"] == ["this clock is being compared with a timestamp"]
    channel.test.register().expect(201)
    channel.live.get("/v1/events").expect(200)
    eventually(lambda: channel.live.register().status == 201, "it continues without")
    assert logged(service, "clock_not_compared")["level"] == "warning"
    authority.mode = "good"
