"""Faults that plant.py plants: mistakes that a competent programmer makes, and that today's code prevents.

Each leaves ordinary requests correct. It shows under concurrency, at a boundary, after a kill, or when records are
compared.
"""

import dataclasses

SQLITE, POSTGRESQL = ("sqlite",), ("postgresql",)


@dataclasses.dataclass(frozen=True)
class Fault:
    sentence: str           # what the planted program does
    places: dict            # {source below src: [(text, its replacement), …]}
    seen: str               # what shows it
    stores: tuple = SQLITE + POSTGRESQL
    usual: bool = False     # built with everything else, because `make test` searches for it


# ---- the index of client references of the embedded store ----

INDEX = {
    "flush": Fault(
        "One entry is dropped when a run of the index is begun.",
        {"store/events/client_refs.c": [
            ("""	refs->moving = sorted_of(refs, refs->slots, count);
""", """	refs->moving = sorted_of(refs, refs->slots, count - 1);
"""),
            ("ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count,",
             "ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count - 1,"),
        ]},
        "one event per client_ref, with a small refs_gathered", SQLITE, usual=True),
    "merge": Fault(
        "A merge loses one entry in 61.",
        {"store/events/client_ref_runs.c": [
            ("			if (bucket >= first && bucket < end)\n",
             "			if (bucket >= first && bucket < end && entry.place % 61)\n"),
        ]},
        "one event per client_ref, with small sizes of the index", SQLITE, usual=True),
    "rollback": Fault(
        "The progress of a merge in a transaction counts although it was rolled back.",
        {"store/events/client_ref_runs.c": [
            ("		run->gone = false;\n		run->filled_next = run->filled;\n",
             "		run->gone = false;\n"),
        ]},
        "one event per client_ref, with small sizes of the index and statements that fail", SQLITE, usual=True),
    "lookup": Fault(
        "A lookup reads one side of what is being moved.",
        {"store/events/client_ref_runs.c": [
            ("			if (!others)\n				continue;\n", "			continue;\n"),
        ]},
        "a list by client_ref, or one event per client_ref, with small sizes of the index", SQLITE, usual=True),
}

FAULTS = INDEX
