"""Each rule of rules_backups.py holds for a right history, made by hand, and is violated by one in which a single thing
is wrong."""

import copy

import pytest
from builders import CHAIN, Building, event, violated
from closing_copies import LOST
from history import RULES

RULES_OF_BACKUPS = tuple(one.name for one in RULES if one.check.__module__ == "rules_backups")
NAMES = ["000001-20260921T120000Z-full", "000002-20260921T120001Z-incremental", "000003-20260921T120002Z-incremental"]
CLOSED = {"stopped": True}


def listed(number, **members):
    """Returns a backup as a list shows it, with an object for each event before it."""
    base = NAMES[number - 1] if number else None
    return {"name": NAMES[number], "kind": NAMES[number].rpartition("-")[2], "base": base,
            "content_objects": number + 1, "content_missing": 0, **members}


class BackedUp:
    """A history with three backups after one event each, and a fourth event. All are kept, the second one is restored
    and the copy resumed."""

    def __init__(self):
        self.building = made = Building(script={"settings": {"backup.keep": "3", "backup.full_every": "3"}})
        self.events = [event(f"r{number}", number + 1, at=number) for number in range(4)]
        self.backups = []
        self.first_list = self.list([], exit=2, status=400)
        for number in range(3):
            made.register(self.events[number])
            self.backups.append(made.add("store backup", {"reason": f"#{number}"}, answer={
                "directory": f"/backups/{NAMES[number]}", "content_missing": 0, "content_objects": number + 1}))
        self.second_list = self.list([listed(number) for number in range(3)])
        self.verify = made.add("store backup-verify", {"name": None, "stopped": False}, answer={"exit": 0})
        made.register(self.events[3])
        made.close(*self.events)
        self.last_list = self.list([listed(number) for number in range(3)], CLOSED, files=[".lock", *NAMES])
        self.last = self.last_list.answer["printed"]["backups"]
        self.verifies = [made.add("store backup-verify", {"name": name, **CLOSED}, answer={"exit": 0})
                         for name in NAMES]
        self.restore = made.add("store restore", {"name": NAMES[1]}, answer={"exit": 0, "printed": {
            "directory": f"/backups/{NAMES[1]}", "quiet": True, "valid": True, "problems": [],
            "missing": [{"setting": name, "cause": "x"} for name in LOST]}})
        self.told = self.restore.answer["printed"]
        self.copy = made.facts["copy"] = {
            "ready": [503, "read-only copy"], "chains": {CHAIN: copy.deepcopy(self.events[:2])}, "unread": [],
            "contents": [[one["event_id"], one["hash"], 200, one["hash"]] for one in self.events[:2]], "chain": CHAIN,
            "asked": [["list", 401, {}], ["list", 200, None]],
            "refusals": [["register", 503], ["register", 503], ["certify", 503]], "due": [200, {"quiet": True}],
            "sent": {"notices": 0, "mails": 0, "payments": 0}, "exit": 0,
            "woken": {"wake": [200, {"quiet": False}], "register": [201, {"sequence": 3}]}}

    def list(self, backups, arguments=None, status=200, **more):
        printed = {"printed": {"backups": backups, "unreadable": None}} if status == 200 else {}
        return self.building.add("store backup-list", arguments or {"stopped": False}, status=status,
                                 answer={"exit": 0, **printed, **more})

    def found(self):
        return {text.partition(":")[0] for text in violated(self.building, *RULES_OF_BACKUPS)}


def test_a_right_history_violates_nothing():
    assert not BackedUp().found()


def remove(made, number):
    """Removes a backup from the last list and from the directory."""
    name = made.last.pop(number)["name"]
    made.last_list.answer["files"].remove(name)


def without_objects(made):
    for one in made.last:
        one["content_objects"] = -1


def interrupt(made):
    """Has the last backup be one that had no answer."""
    made.backups[2].status, made.backups[2].completed, made.backups[2].answer = 0, float("inf"), None


RIGHT = {
    "as many newer ones are kept": lambda made: (
        made.building.script["settings"].update({"backup.keep": "2"}), remove(made, 0),
        made.last[0].update(base=None, kind="full")),
    "an interrupted one is not listed": lambda made: (interrupt(made), remove(made, 2)),
    "an interrupted one is listed": interrupt,
    "an interrupted one left something": lambda made: (
        interrupt(made), remove(made, 2), made.last_list.answer["files"].append(NAMES[2] + ".partial")),
    "a rotation failed": lambda made: (
        made.backups[2].answer.update(valid=False),
        made.last_list.answer["files"].append("000000-20260921T110000Z-full.removing")),
    "a list met a rotation": lambda made: (
        interrupt(made), made.second_list.answer["printed"].update(unreadable="000000-20260921T110000Z-full")),
    "the content store answered wrongly": lambda made: (
        made.building.fault("content", 0.0, 99.0), made.backups[1].answer.update(content_missing=1)),
    "a backup was in progress during a list": lambda made: (
        interrupt(made), made.second_list.answer["printed"]["backups"].__delitem__(slice(0, 1)),
        made.building.script["settings"].update({"backup.keep": "2"})),
    "a backup was in progress during a verification": lambda made: (
        interrupt(made), setattr(made.verify, "status", 400)),
    "nothing was there to verify": lambda made: (
        setattr(made.verify, "status", 400), setattr(made.verify, "invoked", 0.0)),
    "a power cut interrupted a list": lambda made: (
        setattr(made.second_list, "status", 0), setattr(made.second_list, "answer", None)),
    "the restored backup has no objects": lambda made: (
        made.last[1].update(content_objects=-1), made.told.update(valid=False, problems=["x"]),
        setattr(made.restore, "status", 400), made.copy["contents"][0].__setitem__(2, 404)),
    "the contents are from elsewhere": lambda made: (
        made.building.script.update(content="file"), made.last[1].update(content_objects=-1)),
    "the newest backup is restored": lambda made: (
        made.restore.arguments.update(name=None), made.told.update(directory=f"/backups/{NAMES[2]}"),
        made.copy["chains"][CHAIN].append(made.events[2]), made.copy["woken"]["register"][1].update(sequence=4)),
    "an event after the backup is in the copy": lambda made: (
        made.copy["chains"][CHAIN].append(made.events[2]), made.copy["woken"]["register"][1].update(sequence=4)),
    "a chain could not be read": lambda made: (
        made.copy["chains"].clear(), made.copy.update(unread=[CHAIN], woken=None, refusals=[], contents=[])),
    "the resumed copy refuses for the account": lambda made: made.copy["woken"].update(register=[402, {}]),
}


@pytest.mark.parametrize("right", RIGHT)
def test_what_is_right_is_accepted(right):
    made = BackedUp()
    RIGHT[right](made)
    assert not made.found()


WRONG = {
    "a backup is lost": ("acknowledged_backups_are_listed", lambda made: remove(made, 2)),
    "too few are kept": ("acknowledged_backups_are_listed", lambda made: remove(made, 0)),
    "the directory is lost": ("acknowledged_backups_are_listed", lambda made: (
        setattr(made.second_list, "status", 400), made.second_list.answer.pop("printed"))),
    "a leftover is listed": ("series_list_complete_backups", lambda made: made.last[2].update(
        name=NAMES[2] + ".partial")),
    "a number occurs twice": ("series_list_complete_backups", lambda made: made.last.append(made.last[-1])),
    "the order is wrong": ("series_list_complete_backups", lambda made: made.last.reverse()),
    "a base is not listed": ("series_list_complete_backups", lambda made: remove(made, 0)),
    "a complete one has a base": ("series_list_complete_backups", lambda made: made.last[2].update(kind="full")),
    "an increment has no base": ("series_list_complete_backups", lambda made: made.last[2].update(base=None)),
    "a backup has no manifest": ("series_list_complete_backups",
                                 lambda made: made.last_list.answer["printed"].update(unreadable=NAMES[2])),
    "a leftover stays": ("series_list_complete_backups",
                         lambda made: made.last_list.answer["files"].append(NAMES[0] + ".removing")),
    "a backup is there and not listed": ("series_list_complete_backups", lambda made: made.last.pop()),
    "none with objects is left": ("series_keep_a_whole_backup", without_objects),
    "all have lost an object": ("series_keep_a_whole_backup", lambda made: [
        one.update(content_missing=1) for one in made.last]),
    "a backup is damaged": ("listed_backups_are_undamaged", lambda made: setattr(made.verifies[1], "status", 400)),
    "the newest is damaged while the service runs": ("listed_backups_are_undamaged",
                                                     lambda made: setattr(made.verify, "status", 400)),
    "there are too many increments": ("increments_are_few", lambda made: made.building.script["settings"].update(
        {"backup.full_every": "2"})),
    "a backup misses an object": ("backups_miss_no_object", lambda made: made.backups[1].answer.update(
        content_missing=1)),
    "a restore fails": ("backups_are_restored", lambda made: (
        setattr(made.restore, "status", 400), made.told.clear(), made.building.facts.pop("copy"))),
    "another backup is restored": ("backups_are_restored", lambda made: made.restore.arguments.update(name=NAMES[2])),
    "an older one is restored as the newest": ("backups_are_restored",
                                               lambda made: made.restore.arguments.update(name=None)),
    "a copy is not read-only": ("backups_are_restored", lambda made: made.told.update(quiet=False)),
    "the check finds a problem": ("backups_are_restored", lambda made: made.told.update(problems=["x"])),
    "the copy is not valid": ("backups_are_restored", lambda made: made.told.update(valid=False)),
    "the contents from elsewhere are not found": ("backups_are_restored", lambda made: (
        made.building.script.update(content="file"), made.last[1].update(content_objects=-1),
        made.told.update(problems=["x"]))),
    "a missing file is not named": ("backups_are_restored", lambda made: made.told["missing"].pop()),
    "a copy lacks an event": ("copies_hold_what_was_acknowledged", lambda made: made.copy["chains"][CHAIN].pop()),
    "a copy has another event": ("copies_hold_what_was_acknowledged",
                                 lambda made: made.copy["chains"][CHAIN][0].update(chain_hash="1" * 64)),
    "an unanswered backup lacks what the one before it has": ("copies_hold_what_was_acknowledged", lambda made: (
        interrupt(made), made.restore.arguments.update(name=NAMES[2]),
        made.told.update(directory=f"/backups/{NAMES[2]}"), made.copy["chains"][CHAIN].pop())),
    "a copy has a gap": ("copies_are_beginnings", lambda made: made.copy["chains"][CHAIN].pop(0)),
    "a copy has an event of its own": ("copies_are_beginnings", lambda made: made.copy["chains"][CHAIN].append(
        event("x", 3))),
    "a copy is longer than the original": ("copies_are_beginnings", lambda made: made.copy["chains"][CHAIN].extend(
        [*made.events[2:], event("x", 5)])),
    "a content is lost": ("copies_have_their_contents", lambda made: made.copy["contents"][1].__setitem__(2, 404)),
    "a content is another": ("copies_have_their_contents",
                             lambda made: made.copy["contents"][1].__setitem__(3, "1" * 64)),
    "a copy does not start": ("copies_are_read_only", lambda made: made.building.facts.update(
        copy={"failed": "waited in vain"})),
    "a copy refuses a query": ("copies_are_read_only", lambda made: made.copy["asked"][1].__setitem__(1, 503)),
    "a copy is ready": ("copies_are_read_only", lambda made: made.copy["ready"].__setitem__(0, 200)),
    "a copy denies that it is one": ("copies_are_read_only", lambda made: made.copy["due"][1].update(quiet=False)),
    "a copy registers": ("copies_are_read_only", lambda made: made.copy["refusals"][0].__setitem__(1, 201)),
    "a copy repeats": ("copies_are_read_only", lambda made: made.copy["refusals"][1].__setitem__(1, 200)),
    "a copy certifies": ("copies_are_read_only", lambda made: made.copy["refusals"][2].__setitem__(1, 202)),
    "a copy sends a notice": ("copies_are_read_only", lambda made: made.copy["sent"].update(notices=1)),
    "a copy sends a mail": ("copies_are_read_only", lambda made: made.copy["sent"].update(mails=1)),
    "a copy charges": ("copies_are_read_only", lambda made: made.copy["sent"].update(payments=1)),
    "a copy crashes": ("copies_are_read_only", lambda made: made.copy.update(exit=-6)),
    "a resumed copy stays read-only": ("resumed_copies_continue",
                                       lambda made: made.copy["woken"]["wake"][1].update(quiet=True)),
    "a resumed copy registers nothing": ("resumed_copies_continue",
                                         lambda made: made.copy["woken"].update(register=[503, {}])),
    "a resumed copy leaves a gap": ("resumed_copies_continue",
                                    lambda made: made.copy["woken"]["register"][1].update(sequence=5)),
    "a resumed copy repeats a sequence": ("resumed_copies_continue",
                                          lambda made: made.copy["woken"]["register"][1].update(sequence=2)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_noticed(wrong):
    made = BackedUp()
    name, change = WRONG[wrong]
    change(made)
    assert name in made.found()


def test_every_rule_has_a_wrong_history():
    assert {name for name, _ in WRONG.values()} == set(RULES_OF_BACKUPS)
