"""What nodes are started with (LD_PRELOAD) so that faults can happen in them: tests/torture/shaking.c,
tests/support/log_steps.c, tests/support/moved_clock.c."""

import functools
import mmap
import struct
import tempfile

import log_steps
import shaking

_built = tempfile.TemporaryDirectory(prefix="constancia-preloads-")


@functools.cache
def library(module):
    """Builds the library of log_steps or shaking, once."""
    return str(module.build(_built.name))


class Shaking:
    """The values that shaking.c reads while it runs."""

    NAMES = ("fail_any", "sync_us", "fail_sync")

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.write(bytes(8 * len(self.NAMES)))
        with open(path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), 0)

    def set(self, name, value):
        struct.pack_into("=Q", self.shared, 8 * self.NAMES.index(name), value)

    def environment(self):
        return {"LD_PRELOAD": library(shaking), "SHAKE_FILE": self.path}


def log_steps_of(directory):
    return log_steps.LogSteps(directory, library(log_steps))


def joined(environments):
    """Returns the variables of all; the libraries in their order."""
    both = {}
    for one in environments:
        both |= one
    preloaded = [one["LD_PRELOAD"] for one in environments if one.get("LD_PRELOAD")]
    return {**both, "LD_PRELOAD": ":".join(preloaded)} if preloaded else both
