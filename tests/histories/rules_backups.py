"""Rules about the series of backups and about the copy that is restored from it in the end."""

import re

from closing_copies import LOST
from history import FOREVER, lasting, rule

NAME = re.compile(r"(\d{6})-\d{8}T\d{6}Z-(full|incremental)")
OF_DIRECTORY = {".lock"}  # what a series has besides its backups


def name_of(one):
    """Returns the name of the backup that an acknowledgment states."""
    return one.answer["directory"].rsplit("/", 1)[1]


def number_of(name):
    return int(name.partition("-")[0])


def made(history):
    """Returns {name: operation} of the acknowledged backups."""
    return {name_of(one): one for one in history.of("store backup") if one.good}


def setting(history, name, default):
    return int(history.script["settings"].get(name, default))


def pending(history, one):
    """Returns how many backups may have been in progress during an operation; none once the service had stopped."""
    if one.arguments["stopped"]:
        return 0
    return sum(other.invoked <= one.completed and one.invoked <= other.completed
               for other in history.of("store backup"))


def lists(history):
    """Returns (operation, the backups that it lists) of the lists that a power cut did not interrupt."""
    return [(one, one.answer.get("printed", {}).get("backups", [])) for one in history.of("store backup-list")
            if one.status]


def has_contents(history, backup):
    """Returns whether the copy of a backup has all contents: from the backup, or from the content store."""
    return is_whole(backup) or backup["content_objects"] < 0 and history.script.get("content") == "file"


def is_whole(backup):
    return backup["content_objects"] >= 0 and backup["content_missing"] == 0


def begun(history, name):
    """Returns a time at which the backup of this name had not begun: each is made after the one before it."""
    requests = made(history)
    before = [one.invoked for other, one in requests.items() if number_of(other) < number_of(name)]
    return requests[name].invoked if name in requests else max(before, default=0.0)


# ---- the series ----

@rule("An acknowledged backup is listed until backup.keep newer ones are.")
def acknowledged_backups_are_listed(history):
    keep = setting(history, "backup.keep", 7)
    for one, backups in lists(history):
        names = [backup["name"] for backup in backups]
        for name, request in made(history).items():
            if request.completed > one.invoked or name in names:
                continue
            newer = sum(number_of(other) > number_of(name) for other in names)
            if newer + pending(history, one) < keep:
                yield f"{request}, but {one}"


@rule("A series lists complete backups only: numbered, each once, an increment with its base, and nothing that an "
      "interrupted one left. After an acknowledged one nothing else is in its directory.")
def series_list_complete_backups(history):
    for one, backups in lists(history):
        names = [backup["name"] for backup in backups]
        numbers = [number_of(name) for name in names if NAME.fullmatch(name)]
        unreadable = not pending(history, one) and one.answer.get("printed", {}).get("unreadable")
        if len(numbers) != len(names) or numbers != sorted(set(numbers)) or unreadable:
            yield str(one)
        for backup in backups:
            if (backup["kind"] == "full") != (backup["base"] is None):
                yield f"{backup['name']} is based on {backup['base']}"
            if backup["base"] and backup["base"] not in names and not pending(history, one):
                yield f"{backup['name']} is listed without its base {backup['base']}"
        requests, files = history.of("store backup"), set(one.answer.get("files", names)) - OF_DIRECTORY
        # One that could not remove older ones says so.
        if requests and requests[-1].good and requests[-1].answer.get("valid", True) and files != set(names):
            yield f"{sorted(files)}, but listed are {names}"


@rule("Once a backup with all objects was acknowledged, the series always has one.")
def series_keep_a_whole_backup(history):
    whole = min((one.completed for one in made(history).values()
                 if one.answer.get("content_missing", 1) == 0), default=FOREVER)
    for one, backups in lists(history):
        if whole < one.invoked and not pending(history, one) and not any(map(is_whole, backups)):
            yield str(one)


@rule("A listed backup is undamaged.")
def listed_backups_are_undamaged(history):
    for one in history.of("store backup-verify"):
        if not one.status or one.good or pending(history, one):
            continue
        if one.arguments["name"] or any(request.completed < one.invoked for request in made(history).values()):
            yield str(one)


@rule("At most backup.full_every - 1 increments follow a complete backup.")
def increments_are_few(history):
    most = setting(history, "backup.full_every", 7)
    for one, backups in lists(history):
        bases = {backup["name"]: backup["base"] for backup in backups}
        for name in bases:
            length, base = 1, bases[name]
            while base in bases and length <= most:
                length, base = length + 1, bases[base]
            if length > most:
                yield f"{name} needs {length - 1} others: {one}"


@rule("A backup has every object that its events name, unless the content store answers wrongly.")
def backups_miss_no_object(history):
    for one in made(history).values():
        if one.answer.get("content_missing") and not history.faulty(one.invoked, one.completed, "content"):
            yield str(one)


# ---- a restored copy ----

def copy_of(history):
    """Returns the restore, the backup that it restored, and what the copy showed; None without a copy."""
    restores = history.of("store restore")
    found = history.facts.get("copy")
    if not restores or not found or "chains" not in found:
        return None
    return restores[-1], restores[-1].answer["printed"]["directory"].rsplit("/", 1)[1], found


@rule("A listed backup is restored, the newest one where none is named; the check of the copy finds nothing if all "
      "contents are there. The files that are missing are named.")
def backups_are_restored(history):
    listed = {backup["name"]: backup for _, backups in lists(history)[-1:] for backup in backups}
    for one in history.of("store restore"):
        told, wanted = one.answer.get("printed", {}), one.arguments["name"] or max(listed, key=number_of)
        if told.get("directory", "").rpartition("/")[2] != wanted or not told.get("quiet"):
            yield str(one)
        elif has_contents(history, listed[wanted]) and not (one.good and told["valid"] and told["problems"] == []):
            yield f"{one}, but {listed[wanted]}"
        elif not set(LOST) <= {missing["setting"] for missing in told["missing"]}:
            yield f"{one}: {told['missing']}"


@rule("A copy holds every event that was acknowledged before its backup began, as the receipt says.")
def copies_hold_what_was_acknowledged(history):
    if not (found := copy_of(history)):
        return
    restore, name, copy = found
    held = {chain: {event["event_id"]: event for event in events} for chain, events in copy["chains"].items()}
    for one in history.of("register"):
        chain = one.arguments["chain"]
        if one.good and chain in held and one.completed < begun(history, name):
            event = held[chain].get(one.answer["event_id"])
            if event is None or lasting(event) != lasting(one.answer):
                yield f"{one}; the copy of {name} has {event}"


@rule("The chains of a copy are the beginnings of the chains of the original, without a gap.")
def copies_are_beginnings(history):
    if not (found := copy_of(history)):
        return
    _, name, copy = found
    for chain, events in copy["chains"].items():
        if [event["sequence"] for event in events] != list(range(1, len(events) + 1)):
            yield f"{chain} of {name}: {[event['sequence'] for event in events]}"
        for event, original in zip(events, history.final.get(chain, [])):
            if lasting(event) != lasting(original):
                yield f"{chain} of {name}: {event}, in the original {original}"
        if chain in history.final and len(events) > len(history.final[chain]):
            yield f"{chain} of {name} has {len(events)} events, the original {len(history.final[chain])}"


@rule("A copy has the contents of its events.")
def copies_have_their_contents(history):
    if not (found := copy_of(history)):
        return
    _, name, copy = found
    listed = {backup["name"]: backup for _, backups in lists(history) for backup in backups}
    for event_id, digest, status, got in copy["contents"]:
        if has_contents(history, listed[name]) and (status, got) != (200, digest):
            yield f"{event_id} of {name}: {status} {got}, not {digest}"


@rule("A copy answers queries. Until an operator resumes it, it is not ready, registers and certifies nothing, sends "
      "no notice or mail, and asks the payment provider for nothing.")
def copies_are_read_only(history):
    copy = history.facts.get("copy") or {}
    if "failed" in copy:
        yield copy["failed"]
    if "chains" not in copy:
        return
    for kind, status, answer in copy["asked"]:
        if kind in ("list", "list_next") and status not in (200, 401, 403):
            yield f"{kind}: {status} {answer}"
    if copy["ready"][0] != 503 or not (copy["due"][1] or {}).get("quiet"):
        yield f"{copy['ready']}, {copy['due']}"
    for kind, status in copy["refusals"]:
        if status not in (401, 403, 503):
            yield f"{kind}: {status}"
    if any(copy["sent"].values()):
        yield f"it sent {copy['sent']}"
    if copy["exit"] != 0:
        yield f"it ended with {copy['exit']}"


@rule("A copy that an operator resumed is no longer read-only, and continues its chains without a gap.")
def resumed_copies_continue(history):
    copy = history.facts.get("copy") or {}
    if not copy.get("woken"):
        return
    told, (status, answer) = copy["woken"]["wake"], copy["woken"]["register"]
    if told[0] != 200 or told[1]["quiet"]:
        yield f"store wake: {told}"
    if status in (0, 503):
        yield f"a registration: {status} {answer}"
    if status == 201 and answer["sequence"] != len(copy["chains"][copy["chain"]]) + 1:
        yield f"after {len(copy['chains'][copy['chain']])} events: {answer}"
