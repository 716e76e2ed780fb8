"""What was acknowledged outlasts a power failure, or a kill, at the steps of what is done with the
log of the embedded store: it is checkpointed once it has grown; a transaction that is larger
than the memory it may have puts a part of itself there before its commit. Where a thread is stopped
for that: tests/support/log_steps.py."""

import hashlib
import itertools
import json
import threading
import time

import pytest

import log_steps
from burst import Burst
from client import Client, eventually
from test_power_failure import LASTING, LOG, box, library  # noqa: F401 (fixtures)

pytestmark = pytest.mark.sqlite
MIB = 1 << 20
MEMORY = 4 * MIB  # of the writer
CONNECTIONS = 400  # and as many events of a transaction: 7 MiB
FEW = 100  # of a transaction that the checkpointer can keep up with
FILE = "constancia.db$"
MOVE_ATTEMPTS = 5
MOVE_PATIENCE = 15
TEXT_SIZE = 15_500  # of JSON that travels in the transaction, nearly as large as it may be


@pytest.fixture(scope="module")
def steps_library(tmp_path_factory):
    return log_steps.build(tmp_path_factory.mktemp("steps"))


@pytest.fixture
def steps(box, tmp_path, steps_library):
    made = log_steps.LogSteps(tmp_path, steps_library)
    box.service.environment = made.environment(box.service.environment)
    box.service.settings.update(Burst.SETTINGS)
    return made


def text_of(client_ref):
    """In canonical form."""
    return json.dumps({"note": client_ref.ljust(TEXT_SIZE, "x")}, separators=(",", ":")).encode()


def registration(client_ref):
    return b'{"client_ref":"%s","payload":%s}' % (client_ref.encode(), text_of(client_ref))


class Load(threading.Thread):
    """Registers events of 15 KiB, that number at a time, until no request is answered any more."""

    numbers = itertools.count()

    def __init__(self, box, count, rounds=None):
        super().__init__(daemon=True)
        self.count = count
        self.burst = Burst(box.service.port, box.key, count)
        self.rounds = rounds
        self.last = False  # is under way
        self.receipts = {}  # client_ref: event
        self.sent = []
        self.statuses = set()

    def run(self):
        for _ in itertools.count() if self.rounds is None else range(self.rounds):
            refs = [f"large-{next(self.numbers)}" for _ in range(self.count)]
            self.sent += refs
            try:
                self.burst.send(map(registration, refs))
            except OSError:
                break
            for ref, answer in zip(refs, self.burst.answers(self.count)):
                self.take(ref, answer)
            if None in self.statuses or self.last:
                break
        self.burst.close()

    def take(self, ref, answer):
        self.statuses.add(answer and answer[0])
        if answer and answer[0] in (200, 201):
            self.receipts[ref] = json.loads(answer[1])

    def include(self, former):
        """What another one sent is checked with this one."""
        self.receipts.update(former.receipts)
        self.sent += former.sent

    def wait_for(self, count):
        eventually(lambda: len(self.receipts) >= count, f"{count} are acknowledged", pause=0.01)

    def check(self, box):
        """What was acknowledged is there, and all that is there is whole. How many of it are."""
        client = Client(box.service, box.key)
        events = client.walk("/v1/events", 500)
        assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
        found = {event["client_ref"]: event for event in events}
        for ref, event in self.receipts.items():
            assert {name: found[ref][name] for name in LASTING} \
                == {name: event[name] for name in LASTING}
        ours = [ref for ref in self.sent if ref in found]
        for ref in ours:
            assert found[ref]["hash"] == hashlib.sha256(text_of(ref)).hexdigest()
        for ref in ours[-20:]:
            assert client.content(found[ref]["event_id"]).expect(200).body == text_of(ref)
        client.close()
        box.check()
        return len(ours)


# ---- the log is checkpointed ----

@pytest.mark.parametrize("step, size", (("moving", 0), ("moving", 16 * MIB), ("moved", 0),
                                        ("synced", 0), ("reset", 0)))
def test_the_power_may_fail_at_each_step_of_a_move(box, steps, step, size):
    """While the pages are moved, registration continues."""
    box.start()
    steps.stop_at(step, size)
    load = Load(box, FEW)
    load.start()
    steps.wait_until(step)
    if step == "moving":
        load.wait_for(len(load.receipts) + 4 * FEW)
    assert steps.reached() == step
    box.cut()
    load.join()
    assert len(load.sent) * TEXT_SIZE > 24 * MIB
    box.start()
    load.check(box)


def test_the_power_may_fail_once_the_log_has_begun_anew(box, steps):
    """What was moved is nowhere else, then."""
    box.start()
    steps.stop_at("reset")
    load = Load(box, FEW)
    load.start()
    steps.wait_until("reset")
    before = (box.service.data / LOG).stat().st_size
    steps.go_on()
    load.wait_for(len(load.receipts) + 4 * FEW)
    assert before >= 32 * MIB and (box.service.data / LOG).stat().st_size <= before
    box.cut()
    load.join()
    box.start()
    load.check(box)


def turn_of_log(box):
    """The number in its head that each beginning raises."""
    with open(box.service.data / LOG, "rb") as log:
        return log.read(16)[12:]


def begin_anew(box):
    """Registers until the log is reset."""
    turn = turn_of_log(box)

    def begins_anew():
        box.register().expect(201)
        return turn_of_log(box) != turn

    eventually(begins_anew, "the write-ahead log is reset")


def try_to_move_alone(box, steps, step):
    """Returns the registrations before it, and whether the checkpointer came to its end and to that step."""
    steps.stop_at("moving")
    load = Load(box, FEW)
    load.start()
    steps.wait_until("moving")
    load.wait_for(len(load.receipts) + 4 * FEW)  # more than would be left to the writer
    load.last = True
    load.join()
    assert load.statuses == {201}
    steps.stop_at(step)
    return load, steps.comes_to(step, MOVE_PATIENCE)


def move_alone(box, steps, step):
    """The checkpointer comes to its end, and to that step, without any registration. If a job of the service
    commits meanwhile, what it wrote is left to the writer, and the checkpointer does not sync: then it is tried
    again."""
    load, comes = try_to_move_alone(box, steps, step)
    for _ in range(MOVE_ATTEMPTS - 1):
        if comes:
            break
        steps.go_on()
        begin_anew(box)
        former = load
        load, comes = try_to_move_alone(box, steps, step)
        load.include(former)
    assert comes, f"no checkpoint of {MOVE_ATTEMPTS} was {step}"
    return load


def test_what_is_moved_while_nobody_registers_is_on_the_disk_before_the_log_begins_anew(box, steps):
    """No rest is left to the writer then, nor a sync that would cover all."""
    box.start()
    load = move_alone(box, steps, "synced")
    steps.go_on()
    begin_anew(box)
    box.cut()
    box.start()
    load.check(box)


def move_rest(box, steps, step):
    """The writer itself is at that step: it checkpoints what was added while the checkpointer worked."""
    steps.stop_at(step)
    load = Load(box, FEW)
    load.start()
    steps.wait_until(step)
    return load


def test_nothing_of_a_new_turn_is_written_before_its_head_is_on_the_disk(box, steps):
    """A disk writes out of order. If what follows the old head were new, the old turn would end early, and its
    first transactions would be applied to a file that is ahead of them."""
    box.start()
    assert box.service.stop() == 0
    box.start()  # over an empty log
    for _ in range(3):
        box.register().expect(201)
    small = (box.service.data / LOG).stat().st_size  # that many bytes of the old turn have whole transactions
    load = move_rest(box, steps, "rest synced")
    first = Load(box, CONNECTIONS, rounds=1)
    first.start()
    eventually(lambda: box.service.metric("registration_queue_length") >= CONNECTIONS,
               "the first transaction of the new turn is larger than that")
    steps.stop_at("reset")
    steps.wait_until("reset")
    box.cut(survives=(LOG, small))
    load.join()
    first.join()
    assert not first.receipts
    load.sent += first.sent
    box.start()
    load.check(box)


def test_the_log_is_not_reset_while_a_checkpoint_begins(box, steps):
    """SQLite 3.40 may take what is written then for checkpointed. So a checkpoint begins only while a reader
    prevents a reset, which it does unless all of the log was checkpointed before."""
    box.start()

    def register_meanwhile():
        turn = turn_of_log(box)
        for _ in range(3):
            box.register().expect(201)
        assert turn_of_log(box) == turn

    former = move_alone(box, steps, "synced")
    steps.stop_at("beginning")
    time.sleep(1)  # none begins now: there is nothing to checkpoint
    if steps.reached() == "beginning":
        register_meanwhile()
        steps.stop_at("beginning")
    load = Load(box, FEW)
    load.start()
    steps.wait_until("beginning")
    load.last = True
    load.join()
    register_meanwhile()
    steps.go_on()
    box.cut()
    load.include(former)
    box.start()
    load.check(box)


@pytest.mark.parametrize("by", ("checkpointer", "writer"))
def test_the_log_begins_anew_only_once_its_move_is_believed(box, steps, by):
    """The file system may have given up, and the sync of the file have done nothing: it is asked
    for that."""
    box.start()
    if by == "checkpointer":
        load = move_alone(box, steps, "moved")
    else:
        load = move_rest(box, steps, "rest moved")
        load.last = True
    box.disk.plan("lie", FILE)
    steps.stop_at("checking")
    steps.wait_until("checking")
    assert not box.disk.planned()
    box.register("in doubt").expect(503)
    box.cut()
    box.start()
    load.check(box)


def test_the_sync_of_the_file_may_fail(box, steps):
    """The service ends. Of what was moved before, too, much is in the log alone, which is then
    unchanged, though a later sync would be good."""
    box.start()
    steps.stop_at("moved")
    load = Load(box, FEW)
    load.start()
    steps.wait_until("moved")
    box.disk.plan("fail", FILE)
    steps.go_on()
    eventually(lambda: box.service.process.poll() is not None, "the service ends")
    assert not box.disk.planned()
    box.cut()
    load.join()
    box.start()
    load.check(box)


# ---- a transaction larger than its memory ----

def begin_large(box, steps):
    """Its registrations wait for their transaction, which waits for the sync of another."""
    steps.stop_at("committing")
    first = threading.Thread(target=box.register, args=("first",))
    first.start()
    steps.wait_until("committing")
    load = Load(box, CONNECTIONS, rounds=1)
    load.start()
    eventually(lambda: box.service.metric("registration_queue_length") == CONNECTIONS,
               "all of them wait")
    return first, load


@pytest.mark.parametrize("fails", ("power", "process"))
@pytest.mark.parametrize("step, size", (("spilling", 1), ("spilling", 2 * MIB),
                                        ("committing", MEMORY + 1), ("committed", MEMORY + 1)))
def test_it_is_there_wholly_or_not_at_all(box, steps, step, size, fails):
    """What a kill leaves of it in the page cache counts as soon as its end is there."""
    box.start()
    first, load = begin_large(box, steps)
    steps.stop_at(step, size)
    steps.wait_until(step)
    first.join()
    assert "first" in box.receipts
    box.service.kill()
    if fails == "power":
        box.disk.cut()
    load.join()
    assert not load.receipts
    box.start()
    whole = step == "committed" or (step == "committing" and fails == "process")
    assert load.check(box) == (CONNECTIONS if whole else 0)
    again = Burst(box.service.port, box.key, CONNECTIONS)
    again.send(map(registration, load.sent))
    for ref, answer in zip(load.sent, again.answers(CONNECTIONS)):
        load.take(ref, answer)
    again.close()
    assert load.statuses == {None, 200 if whole else 201}
    box.cut()
    box.start()
    assert load.check(box) == CONNECTIONS


def test_one_that_has_no_room_for_its_rest_is_not_there(box, steps):
    """What it had put into the log is forgotten, and the next one is written over it."""
    box.start()
    first, load = begin_large(box, steps)
    steps.stop_at("spilling", MIB)
    steps.wait_until("spilling")
    first.join()
    box.disk.plan("full", LOG)
    steps.go_on()
    load.join()
    assert load.statuses == {503}
    box.disk.forget_plan()
    for _ in range(3):
        box.register().expect(201)
    box.cut()
    box.start()
    assert load.check(box) == 0
