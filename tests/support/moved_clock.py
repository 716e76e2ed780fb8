"""A wall clock that is moved under programs (moved_clock.c, preloaded): by tests/clock for the tests and
all that they start, or by a test for what it starts."""

import os
import pathlib
import struct
import subprocess
import tempfile
import time

SOURCE = pathlib.Path(__file__).with_name("moved_clock.c")


def build(directory):
    """The library to preload. One that is preloaded already must not be joined by another copy of it."""
    if library := os.environ.get("CLOCK_LIBRARY"):
        return pathlib.Path(library)
    library = pathlib.Path(directory) / "moved_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    return library


def preload(library, environment=os.environ):
    """The variables that load it before all that is preloaded there."""
    preloaded = [str(library), environment.get("LD_PRELOAD")]
    asan = environment.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": ":".join(filter(None, preloaded)), "CLOCK_LIBRARY": str(library),
            "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}


class MovedClock:
    """A clock that a test sets while processes run with its environment, of whatever user."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory(prefix="constancia-clock-")
        place = pathlib.Path(self._directory.name)
        place.chmod(0o755)
        self.path = place / "offset"
        self.path.write_bytes(struct.pack("=q", 0))
        self.environment = {**preload(build(place)), "CLOCK_OFFSET_FILE": str(self.path)}

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self._directory.cleanup()

    def set(self, seconds):
        """How many seconds of time since 1970 it is there now; by how much that is ahead of here."""
        ahead = int(seconds - time.time())
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=q", ahead))
        return ahead
