"""Has the embedded store of a service fail and rest now and then: shaking.c, preloaded into it."""

import os
import pathlib
import subprocess

SOURCE = pathlib.Path(__file__).with_name("shaking.c")


def build(directory):
    """The library to preload."""
    library = os.path.join(directory, "shaking.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    return library


def environment(library, fail=150, rest=2):
    """What is to be in that of the service: one statement in this number."""
    return {"LD_PRELOAD": library, "SHAKE_FAIL": str(fail), "SHAKE_REST": str(rest)}
