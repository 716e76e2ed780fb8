"""Stops a service with the embedded store at a step of what it does with its log: log_steps.c,
preloaded into it, says which there are."""

import mmap
import pathlib
import struct
import subprocess

from program import eventually

SOURCE = pathlib.Path(__file__).with_name("log_steps.c")
NAMES = (None, "moving", "moved", "synced", "believing", "anew", "spilling", "committing",
         "committed")
WANTED, AT, REACHED, BYTES = range(4)


def build(directory):
    """The library to preload."""
    library = pathlib.Path(directory) / "log_steps.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    return library


class LogSteps:
    """`directory` is none whose content a cut takes."""

    def __init__(self, directory, library):
        self.library = library
        self.path = pathlib.Path(directory) / "log_steps"
        self.path.write_bytes(bytes(16))
        with open(self.path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 16)

    def environment(self, environment):
        """What is to be in that of the service, beside what `environment` has."""
        preloaded = [str(self.library), environment.get("LD_PRELOAD")]
        return {**environment, "LOG_STEPS": str(self.path),
                "LD_PRELOAD": ":".join(filter(None, preloaded))}

    def _get(self, place):
        return struct.unpack_from("=I", self.shared, 4 * place)[0]

    def _set(self, place, value):
        struct.pack_into("=I", self.shared, 4 * place, value)

    def stop_at(self, step, size=0):
        """The next thread that comes to it, or to that many bytes of it, stands still there."""
        self._set(WANTED, 0)
        self._set(AT, size)
        self._set(WANTED, NAMES.index(step))
        self._set(REACHED, 0)  # who stands goes on now, and not past what is wanted

    def reached(self):
        """The step at which a thread stands."""
        return NAMES[self._get(REACHED)]

    def bytes(self):
        """How much of it was done there."""
        return self._get(BYTES)

    def wait_until(self, step):
        eventually(lambda: self.reached() == step, f"a thread is {step}", pause=0.005)

    def go_on(self):
        """Nobody stands any more, nor is to."""
        self._set(WANTED, 0)
        self._set(REACHED, 0)
