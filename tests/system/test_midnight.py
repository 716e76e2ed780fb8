"""What is counted by the day and by the month, while one passes into the next: on clocks of the program, its
store and its authority that are set shortly before midnight, and continue."""

import datetime
import time

import stores
from client import Service
from moved_clock import MovedClock

DAY = datetime.timedelta(days=1)
# The first day of a leap year's month, a leap day and the day after it.
FIRST = [datetime.datetime.fromisoformat(day + "T00:00:00Z") for day in ("2028-01-01", "2028-02-29", "2028-03-01")]


class Counted:
    """A channel that may register one event a day, another one a month, and what both are."""

    def __init__(self, service):
        self.service = service
        self.by_day = service.new_channel()
        self.by_month = service.new_channel(account_id=self.by_day.account_id)
        for channel, period in ((self.by_day, "day"), (self.by_month, "month")):
            service.admin("limit", "create", "--channel", channel.id, "--period", period, "--max", 1,
                          "--action", "block")
        self.channels = self.by_day, self.by_month

    def register(self):
        """In each channel one live event if that is not refused, and a test event: how many live ones."""
        answers = [channel.live.register() for channel in self.channels]
        for channel in self.channels:
            channel.test.register().expect(201)
        for answer in answers:
            if answer.status != 201:
                answer.expect(422, "limit_blocked")
        return [answer for answer in answers if answer.status == 201]

    def events(self):
        overview = self.service.admin("account", "overview", self.by_day.account_id)
        return {name: overview["events"][name] for name in ("total", "today", "test_today")}

    def periods(self, what):
        rows = self.service.admin("usage", "--account", self.by_day.account_id, "--by", what)["data"]
        return {row["period"]: row["events"] for row in rows if row["mode"] == "live"}

    def close(self):
        for channel in self.channels:
            channel.close()


def pass_midnight(service, clock, midnight):
    clock.set((midnight - DAY / 2).timestamp())
    began = time.monotonic()
    service.start()
    counted = Counted(service)
    assert service.stop() == 0
    counted.close()
    ahead = clock.set(midnight.timestamp() - 5 - 3 * (time.monotonic() - began))
    service.start()
    before = counted.register()
    assert len(before) == 2 and not counted.register()
    certified = counted.by_day.live.certify(seq_from=1, seq_to=1).expect(202).json
    assert counted.events() == {"total": 2, "today": 2, "test_today": 4}
    last = f"{midnight - DAY:%Y-%m-%d}"
    for record in (before[0].json["received_at"], before[1].json["received_at"], certified["requested_at"]):
        assert record.startswith(last), f"midnight of {midnight} came too early for this machine"

    time.sleep(max(0, midnight.timestamp() - ahead - time.time()) + 1)
    month_is_new = midnight.day == 1
    after = counted.register()
    assert len(after) == (2 if month_is_new else 1) and not counted.register()
    assert all(answer.json["received_at"].startswith(f"{midnight:%Y-%m-%d}") for answer in after)
    assert counted.events() == {"total": 2 + len(after), "today": len(after), "test_today": 4}
    assert counted.periods("day") == {last: 2, f"{midnight:%Y-%m-%d}": len(after)}
    assert counted.periods("month") == ({last[:7]: 2, f"{midnight:%Y-%m}": 2} if month_is_new else {last[:7]: 3})
    again = counted.by_day.live.certify(seq_from=1, seq_to=2).expect(202).json
    assert certified["certification_id"].startswith(f"CERT-{last[:4]}-")
    assert again["certification_id"].startswith(f"CERT-{midnight:%Y}-")
    for record in (certified, again):
        assert counted.by_day.live.settled(record["certification_id"])["status"] == "completed"
    counted.close()
    assert service.stop() == 0


def test_a_day_and_a_month_end_while_it_runs(tmp_path):
    with MovedClock() as clock, stores.cluster_with(clock.environment):
        service = Service(tmp_path, environment=clock.environment, rate__live=100000, rate__test=100000,
                          seal__interval="300ms")
        try:
            for midnight in FIRST:
                pass_midnight(service, clock, midnight)
            assert not [line for line in service.log_lines() if line["level"] == "error"], service.log_tail()
        finally:
            service.discard()
