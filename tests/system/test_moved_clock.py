"""tests/clock, by which the tests run at other times: what it moves, and what it does not."""

import subprocess
import sys
import time

import pytest

from program import ROOT

CLOCK = ROOT / "tests" / "clock"
AHEAD = 400 * 86400
CERTIFICATE = ("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /CN=a "
               "-days 1 2>/dev/null | openssl x509 -noout -startdate | cut -d= -f2 | date -u -f - +%s")
PROGRAMS = {
    "date": ["date", "+%s"],
    "openssl": ["sh", "-c", CERTIFICATE],
    "python": [sys.executable, "-c", "import time; print(time.time())"],
    "sqlite": ["sqlite3", ":memory:", "SELECT strftime('%s')"],
    "node": ["node", "-p", "Date.now() / 1000"],
}
# Each of them for a fifth of a second, by a deadline of the wall clock.
WAITING = """
import ctypes, time
c = ctypes.CDLL(None, use_errno=True)
until = time.time() + 0.2
deadline = (ctypes.c_long * 2)(int(until), int(until % 1 * 1e9))
room, more = (ctypes.c_char * 64)(), (ctypes.c_char * 64)()
began = time.monotonic()
DO
assert time.monotonic() - began > 0.15, "it did not wait"
"""
WAITS = {
    "semaphore": "assert c.sem_timedwait(room, deadline) == -1 and ctypes.get_errno() == 110",
    "mutex": "assert c.pthread_mutex_lock(room) == 0 and c.pthread_mutex_timedlock(room, deadline) == 110",
    "condition": "c.pthread_mutex_lock(more); assert c.pthread_cond_timedwait(room, more, deadline) == 110",
    "sleep": "assert c.clock_nanosleep(0, 1, deadline, None) == 0",
    "timer": "timer = c.timerfd_create(0, 0); times = (ctypes.c_long * 4)(0, 0, *deadline); "
             "assert c.timerfd_settime(timer, 1, times, None) == 0 and c.read(timer, room, 8) == 8",
}


def on(when, *command):
    done = subprocess.run([CLOCK, when, *command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_clock_is_moved_by_an_offset_or_to_a_moment(name):
    before = int(time.time())
    told = float(on("+400d", *PROGRAMS[name]))
    assert before + AHEAD <= told <= time.time() + AHEAD
    assert 0 <= float(on("2028-02-28T23:59:00Z", *PROGRAMS[name])) - 1835395140 < time.time() + 2 - before


def test_it_is_moved_twice():
    before = int(time.time())
    assert before + AHEAD <= int(on("+1d", CLOCK, "+399d", "date", "+%s")) <= time.time() + AHEAD


def test_what_measures_durations_is_not_moved():
    before = time.monotonic()
    assert before <= float(on("+400d", sys.executable, "-c", "import time; print(time.monotonic())")) <= time.monotonic()


@pytest.mark.parametrize("when", ["+400d", "-400d"])
@pytest.mark.parametrize("name", WAITS)
def test_a_deadline_of_the_clock_is_met(when, name):
    on(when, sys.executable, "-c", WAITING.replace("DO", WAITS[name]))


def test_the_command_ends_as_ever():
    for script, code in (("exit 3", 3), ("kill -TERM $$", 143)):
        assert subprocess.run([CLOCK, "+1d", "sh", "-c", script], check=False).returncode == code
    done = subprocess.run([CLOCK, "tomorrow", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "tomorrow" in done.stderr
