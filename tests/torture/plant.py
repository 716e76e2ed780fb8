#!/usr/bin/env python3
"""Plants a fault into sources: what is compiled of them is a program whose fault a campaign has to find.

usage: plant.py FAULT INPUT… OUTPUT…

Fails where a source no longer has the words that the fault replaces: then it is to be planted in
another way.
"""

import pathlib
import sys

FAULTS = {
    # When a run is begun, one of its entries is dropped.
    "flush": {
        "client_refs.c": [
            ("""	refs->moving = sorted_of(refs, refs->slots, count);
""", """	refs->moving = sorted_of(refs, refs->slots, count - 1);
"""),
            ("ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count,",
             "ref_runs_begin_flush(refs->runs, connection, refs->gathered + refs->added.count - 1,"),
        ],
    },
    # A merge loses one entry in 61.
    "merge": {
        "client_ref_runs.c": [
            ("			if (bucket >= first && bucket < end)\n",
             "			if (bucket >= first && bucket < end && entry.place % 61)\n"),
        ],
    },
    # How far a merge came in a transaction counts, though that was rolled back.
    "rollback": {
        "client_ref_runs.c": [
            ("		run->gone = false;\n		run->filled_next = run->filled;\n",
             "		run->gone = false;\n"),
        ],
    },
    # Who looks something up does not look where it is being moved to.
    "lookup": {
        "client_ref_runs.c": [
            ("			if (!others)\n				continue;\n", "			continue;\n"),
        ],
    },
}


def main():
    fault, *paths = sys.argv[1:]
    half = len(paths) // 2
    for source, planted in zip(paths[:half], paths[half:]):
        text = pathlib.Path(source).read_text(encoding="utf-8")
        for before, after in FAULTS[fault].get(pathlib.Path(source).name, []):
            if text.count(before) != 1:
                sys.exit(f"plant.py: {fault}: {source} has not once: {before}")
            text = text.replace(before, after)
        pathlib.Path(planted).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
