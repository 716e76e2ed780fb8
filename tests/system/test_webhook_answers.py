"""What receivers ask for by their answers: 410 ends an endpoint, and Retry-After delays the next attempt."""

import datetime
import email.utils
import time

import pytest

from client import eventually
from hooks import Owner, Receiver, deliveries, ended

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
def hooked(start):
    """A service that retries at once, and then after an hour. It has no tests of that hour."""
    return start(webhook__schedule="1ms,1h", webhook__timeout="60s", seal__interval="1s")


@pytest.fixture
def receiver():
    with Receiver() as running:
        yield running
        running.check()


def show(service, endpoint):
    return service.admin("webhook", "show", endpoint["endpoint_id"])


def templates(service, account_id):
    return [template for template, in service.store.rows(
        "SELECT m.template FROM mails m JOIN accounts a ON a.account = m.account "
        f"WHERE a.account_id = '{account_id}'")]


# ---- 410 ----

def test_a_receiver_that_is_gone_disables_its_endpoint_at_once(hooked, receiver):
    owner = Owner(hooked, 2)
    hooked.admin("account", "set", owner.account_id, "--email", "owner@example.org")
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = (410, {"Retry-After": "1"}, b"")
    owner.cause()
    shown = eventually(lambda: [one for one in [show(hooked, endpoint)] if not one["enabled"]], "it is disabled")[0]
    assert shown["disabled_by"] == "gone" and shown["disabled_at"]
    assert templates(hooked, owner.account_id) == ["endpoint_gone"]
    (act,) = [one for one in hooked.admin("audit", "list", "--account", owner.account_id)["data"]
              if one["operation"] == "webhook disable"]
    record = hooked.admin("audit", "show", act["act_id"])
    assert (record["actor"], record["via"], record["user"], record["uid"]) == ("service", "service", None, None)
    assert record["arguments"] == {"endpoint": endpoint["endpoint_id"]} and "410" in record["reason"]
    (line,) = hooked.logged(lambda line: line["event"] == "webhook_disabled"
                            and line["endpoint_id"] == endpoint["endpoint_id"])
    assert line["level"] == "warning"
    owner.cause()  # is missed
    # What waited is delivered once the endpoint is enabled again, and what was missed by a replay.
    receiver.answer = 204
    hooked.admin("webhook", "enable", endpoint["endpoint_id"])
    assert [one["status"] for one in ended(hooked, endpoint, 2)] == ["delivered", "delivered"]
    assert show(hooked, endpoint)["enabled"]
    hooked.admin("webhook", "replay", "--missed", "--endpoint", endpoint["endpoint_id"])
    assert [one["status"] for one in ended(hooked, endpoint, 4)] == ["delivered"] * 4


@pytest.mark.parametrize("status", [400, 404, 409, 411, 500])
def test_no_other_answer_disables_it(hooked, receiver, status):
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = status
    owner.cause()
    eventually(lambda: deliveries(hooked, endpoint)[0]["attempts"] == 2, "it is tried twice")
    assert show(hooked, endpoint)["enabled"]


# ---- Retry-After ----

def date(seconds, form=None):
    at = time.time() + seconds
    if form:
        return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime(form)
    return email.utils.formatdate(at, usegmt=True)


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def first_wait(service, receiver, status, headers):
    """Seconds between the first attempt and the next one, as planned, and the attempts that were made by then."""
    owner = Owner(service)
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = (status, headers, b"")
    owner.cause()

    def planned():
        (one,) = deliveries(service, endpoint)
        wait = one["last_attempt"] and seconds_of(one["next_attempt_at"]) - seconds_of(one["last_attempt"]["at"])
        return (wait, one["attempts"]) if wait and wait > 60 else None
    return eventually(planned, "the next attempt is later")


@pytest.mark.parametrize("status", [429, 503, 500, 403, 302])
def test_the_next_attempt_is_not_before_a_receiver_asks_for_it(hooked, receiver, status):
    wait, attempts = first_wait(hooked, receiver, status, {"Retry-After": "1200"})
    assert attempts == 1 and 1200 <= wait < 2400


@pytest.mark.parametrize("form", [None, "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"])
def test_it_may_ask_by_a_date(hooked, receiver, form):
    wait, attempts = first_wait(hooked, receiver, 503, {"Retry-After": date(1200, form)})
    assert attempts == 1 and 600 < wait < 2400


@pytest.mark.parametrize("asked", ["1000000000", "3601", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_it_waits_for_the_longest_delay_of_the_schedule_at_most(hooked, receiver, asked):
    wait, attempts = first_wait(hooked, receiver, 503, {"Retry-After": asked})
    assert attempts == 1 and 3600 <= wait < 4800


@pytest.mark.parametrize("asked", ["0", "-1", "-1000000000", "soon", "", "1200.5", "+1200", "0x4b0", "1200 s",
                                   "1200, 1300", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 2094",
                                   "Fri, 31 Dec 9999 23:59:59 CET"])
def test_what_it_cannot_mean_changes_nothing(hooked, receiver, asked):
    """The second attempt follows at once; only the third one is an hour later."""
    wait, attempts = first_wait(hooked, receiver, 503, {"Retry-After": asked})
    assert attempts == 2 and 3600 <= wait < 4800


def test_it_cannot_shorten_the_schedule(hooked, receiver):
    answers = iter([500])
    receiver.answer = lambda delivery: (503, {"Retry-After": "0"} if next(answers, None) else {"Retry-After": "1"}, b"")
    owner = Owner(hooked)
    endpoint = owner.endpoint(receiver.url)
    owner.cause()
    eventually(lambda: deliveries(hooked, endpoint)[0]["attempts"] == 2, "it is tried twice")
    (one,) = deliveries(hooked, endpoint)
    assert seconds_of(one["next_attempt_at"]) - seconds_of(one["last_attempt"]["at"]) >= 3600


def test_a_receiver_that_always_asks_for_a_wait_is_given_up_as_any_other(start, receiver):
    """After the attempts of the schedule, five notices disable it."""
    service = start(webhook__schedule="1ms,2ms")
    owner = Owner(service, 5)
    endpoint = owner.endpoint(receiver.url)
    receiver.answer = (503, {"Retry-After": "1000000000"}, b"")
    owner.cause()
    done = ended(service, endpoint, 5)
    assert {(one["status"], one["attempts"]) for one in done} == {("failed", 3)}
    assert show(service, endpoint)["disabled_by"] == "failures"
    (act,) = [one for one in service.admin("audit", "list", "--account", owner.account_id)["data"]
              if one["operation"] == "webhook disable"]
    assert service.admin("audit", "show", act["act_id"])["actor"] == "service"
