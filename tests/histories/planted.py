"""Runs programs with a planted fault each until a rule notices it, and keeps a table of what was found by what."""

import json
import pathlib
import time

import campaign
from planted_faults import FAULTS
from program import BINARY

def sentence_of(name):
    """Returns what the fault does."""
    return FAULTS[name].sentence


def stores_of(name):
    """Returns the stores on which the fault can be noticed."""
    return FAULTS[name].stores


def program_of(name):
    return pathlib.Path(BINARY).with_name(f"constancia-{name}")


def search(name, script_of, seed, store, minutes, *, jobs, keep, progress):
    """Returns the row of a fault: whether a rule was violated, which, and after how much work."""
    state = campaign.State(None, store, seed)
    keep = keep / name
    keep.mkdir(exist_ok=True)
    start = time.monotonic()
    campaign.Campaign(state, script_of, keep, program=str(program_of(name)), jobs=jobs, progress=progress,
                      minutes=minutes, until_violation=True).run()
    row = {"found": bool(state["violations"]), "rules": [], "seed": None, "histories": state["histories"],
           "operations": state.operations, "seconds": round(time.monotonic() - start, 1),
           "not_done": len(state["failures"])}
    if state["violations"]:
        row |= {name: state["violations"][0][name] for name in ("seed", "rules")}
    return row


def table(rows):
    """Returns the rows as a table of a page of the documentation."""
    lines = ["| fault | what it does | found | histories | seconds | by the rules |", "|---|---|---|---|---|---|"]
    for name, row in rows.items():
        by = ", ".join(f"`{rule}`" for rule in row["rules"])
        if row["not_done"]:
            by = ", ".join(filter(None, (by, f"{row['not_done']} could not be done")))
        lines.append(f"| `{name}` | {sentence_of(name)} | {'yes' if row['found'] else 'no'} | {row['histories']} | "
                     f"{row['seconds']:.0f} | {by} |")
    return "\n".join(lines)


def run(names, script_of, *, path, store, seed, minutes, jobs, keep, progress):
    """Searches each fault, also with what an earlier call found. Returns the rows."""
    document = {"version": 1, "store": store, "minutes": minutes, "planted": {}}
    if path and path.exists():
        document = json.loads(path.read_text(encoding="utf-8"))
    rows = document["planted"]
    for name in names or [name for name in FAULTS if store in stores_of(name)]:
        if name in rows:
            continue
        if not program_of(name).exists():
            progress.say(f"{name}: {program_of(name)} is not built; ninja -C build constancia-{name}")
            continue
        rows[name] = search(name, script_of, seed, store, minutes, jobs=jobs, keep=keep, progress=progress)
        row = rows[name]
        progress.say(f"planted {name}: " + (f"found by {', '.join(row['rules'])}, seed {row['seed']}" if row["found"]
                                            else "not found") +
                     f", {row['histories']} histories, {row['seconds']:.0f} s")
        if path:
            campaign.write_atomically(path, document)
    return rows
