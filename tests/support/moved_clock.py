"""A wall clock that is moved for programs (moved_clock.c, preloaded): by tests/clock for all tests and the
programs they start, or by a test for the programs it starts."""

import os
import pathlib
import struct
import subprocess
import tempfile
import time

SOURCE = pathlib.Path(__file__).with_name("moved_clock.c")


def build(directory):
    """Builds and returns the library to preload; a library that is already preloaded must not be loaded twice."""
    if library := os.environ.get("CLOCK_LIBRARY"):
        return pathlib.Path(library)
    library = pathlib.Path(directory) / "moved_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, SOURCE], check=True)
    return library


def preload(library, environment=os.environ):
    """Returns the variables that load it before other preloaded libraries."""
    preloaded = [str(library), environment.get("LD_PRELOAD")]
    asan = environment.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": ":".join(filter(None, preloaded)), "CLOCK_LIBRARY": str(library),
            "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}


class MovedClock:
    """A clock that a test sets while processes run with its environment, as any user."""

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
        """Sets the clock to that time (seconds since 1970); returns how far it is ahead of the real clock."""
        ahead = int(seconds - time.time())
        self.move(ahead)
        return ahead

    def move(self, ahead):
        """Sets it that many seconds ahead of the real clock."""
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=q", ahead))
