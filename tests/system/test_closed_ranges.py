"""A certification by time has all that was received in its range, and nothing is received in it afterwards."""

import datetime
import threading
import time

import pytest

from client import Client, Service
from moved_clock import MovedClock

pytestmark = pytest.mark.both_stores

LONG_AGO, FAR = "2020-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z"
CLIENTS, CERTIFICATIONS = 8, 12


def moment(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat(timespec="microseconds").replace(
        "+00:00", "Z")


def check_history(receipts, certified):
    """Faults of a history: `certified` are pairs of a certification of all since LONG_AGO and its `to`."""
    faults = []
    for certification, to in certified:
        end = min(to, certification["requested_at"])
        for receipt in receipts:
            inside = receipt["sequence"] <= certification["event_count"]
            if inside != (receipt["received_at"] < end):
                faults.append((certification["certification_id"], end, receipt["sequence"], receipt["received_at"]))
    return faults


def test_the_checker_finds_both_faults():
    receipts = [{"sequence": 1, "received_at": moment(100)}, {"sequence": 2, "received_at": moment(200)}]
    asked = {"certification_id": "C", "requested_at": moment(300), "event_count": 1}
    assert len(check_history(receipts, [(asked, FAR)])) == 1, "one is left out"
    assert not check_history(receipts, [(asked, moment(200))])
    assert len(check_history(receipts, [(asked, moment(100))])) == 1, "one came afterwards"


@pytest.fixture(scope="module")
def service(start):
    return start(seal__interval="1h")


@pytest.mark.parametrize("mode", ["live", "test"])
def test_what_is_registered_meanwhile_is_in_it_or_later(service, mode):
    channel = service.new_channel(credits=1000000)
    over, receipts = threading.Event(), []

    def register():
        with Client(service, channel.client(mode).key) as client:
            while not over.is_set():
                receipts.append(client.register().expect(201).json)

    workers = [threading.Thread(target=register) for _ in range(CLIENTS)]
    getattr(channel, mode).register().expect(201)
    for worker in workers:
        worker.start()
    certified = []
    with Client(service, channel.client(mode).key) as client:
        for number in range(CERTIFICATIONS):
            time.sleep(0.05)  # for registrations to be under way
            to = FAR if number % 2 else moment(time.time())
            certified.append((client.certify(start=LONG_AGO, to=to).expect(202).json, to))
    over.set()
    for worker in workers:
        worker.join()
    assert len(receipts) > CLIENTS
    assert check_history(receipts, certified) == []
    with Client(service, channel.client(mode).key) as client:
        for certification, to in certified:
            if to != FAR:
                again = client.certify(start=LONG_AGO, to=to).expect(202).json
                assert again["event_count"] == certification["event_count"], "a closed range says one thing"
    channel.close()


def test_a_clock_that_is_set_back_opens_no_range(tmp_path):
    with MovedClock() as clock:
        service = Service(tmp_path, environment=clock.environment, rate__live=100000, seal__interval="1h").start()
        try:
            channel = service.new_channel()
            channel.live.register().expect(201)
            time.sleep(1.1)
            asked = {"start": LONG_AGO, "to": FAR}
            first = channel.live.certify(**asked).expect(202).json
            clock.set(time.time() - 1)
            late = channel.live.register().expect(201).json
            assert late["received_at"] >= first["requested_at"] and late["sequence"] == 2
            again = channel.live.certify(start=LONG_AGO, to=first["requested_at"]).expect(202).json
            assert first["event_count"] == again["event_count"] == 1
            assert service.stop() == 0
        finally:
            service.discard()
