"""Stops a service with the embedded store at a step of its log handling. log_steps.c, which is preloaded into
it, lists the steps."""

import mmap
import pathlib
import struct
import subprocess
import time

from program import eventually

SOURCE = pathlib.Path(__file__).with_name("log_steps.c")
NAMES = (None, "moving", "moved", "synced", "checking", "reset", "spilling", "committing",
         "committed", "rest moved", "rest synced", "beginning")
WANTED, AT, REACHED, BYTES = range(4)


def build(directory):
    """The library to preload."""
    library = pathlib.Path(directory) / "log_steps.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    return library


class LogSteps:
    """`directory` must not be on a disk that a cut affects."""

    def __init__(self, directory, library):
        self.library = library
        self.path = pathlib.Path(directory) / "log_steps"
        self.path.write_bytes(bytes(16))
        with open(self.path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 16)

    def environment(self, environment):
        """Returns the environment of the service: `environment` with additions."""
        preloaded = [str(self.library), environment.get("LD_PRELOAD")]
        return {**environment, "LOG_STEPS": str(self.path),
                "LD_PRELOAD": ":".join(filter(None, preloaded))}

    def _get(self, place):
        return struct.unpack_from("=I", self.shared, 4 * place)[0]

    def _set(self, place, value):
        struct.pack_into("=I", self.shared, 4 * place, value)

    def stop_at(self, step, size=0):
        """Stops the next thread that reaches the step, or that many bytes of it."""
        self._set(WANTED, 0)
        self._set(AT, size)
        self._set(WANTED, NAMES.index(step))
        self._set(REACHED, 0)  # a stopped thread continues now, at most to the wanted step

    def reached(self):
        """Returns the step at which a thread is stopped."""
        return NAMES[self._get(REACHED)]

    def bytes(self):
        """Returns the number of bytes reached there."""
        return self._get(BYTES)

    def comes_to(self, step, patience):
        """Returns whether a thread is stopped at the step within that many seconds."""
        end = time.monotonic() + patience
        while self.reached() != step and time.monotonic() < end:
            time.sleep(0.005)
        return self.reached() == step

    def wait_until(self, step):
        eventually(lambda: self.reached() == step, f"a thread is {step}", pause=0.005)

    def go_on(self):
        """Releases the stopped thread and stops no other."""
        self._set(WANTED, 0)
        self._set(REACHED, 0)
