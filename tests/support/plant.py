#!/usr/bin/env python3
"""Plants a fault (planted_faults.py) into sources. A program made of them has a defect that a campaign must find.

usage: plant.py FAULT INPUT… OUTPUT…
       plant.py --list
       plant.py --check ROOT

The inputs are files below `src`. --list prints a line per fault for meson.build: its name, whether it is built with
everything else, and its sources. --check verifies that each text which a fault replaces occurs exactly once in today's
sources. When it fails, plant the fault in another way.
"""

import pathlib
import sys

sys.dont_write_bytecode = True  # meson runs this in the sources

from planted_faults import FAULTS  # noqa: E402


def planted(fault, path, text):
    """Returns the text of the source `path` (relative to src) with the fault."""
    for before, after in FAULTS[fault].places[path]:
        if text.count(before) != 1:
            raise ValueError(f"{fault}: src/{path} has {text.count(before)} times instead of once:\n{before}")
        text = text.replace(before, after)
    return text


def list_faults():
    for name, fault in FAULTS.items():
        print(name, "usual" if fault.usual else "wanted", *(f"src/{path}" for path in fault.places))


def check(root):
    errors = []
    for name, fault in FAULTS.items():
        for path in fault.places:
            source = pathlib.Path(root, "src", path)
            try:
                planted(name, path, source.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                errors.append(str(error))
    print("\n".join(errors) or f"{len(FAULTS)} faults can be planted")
    return 1 if errors else 0


def plant(fault, paths):
    half = len(paths) // 2
    for source, target in zip(paths[:half], paths[half:]):
        source = pathlib.Path(source)
        path = source.as_posix().rpartition("src/")[2]
        pathlib.Path(target).write_text(planted(fault, path, source.read_text(encoding="utf-8")), encoding="utf-8")


def main():
    first, *rest = sys.argv[1:]
    if first == "--list":
        list_faults()
        return 0
    if first == "--check":
        return check(rest[0])
    try:
        plant(first, rest)
    except ValueError as error:
        sys.exit(f"plant.py: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
