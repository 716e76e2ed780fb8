"""`constancia dev --debuggable`: debuggers and core dumps of the service, but not of the signing process."""

import os
import pathlib
import re
import shutil
import tempfile

import pytest

from program import BINARY, DevService

pytestmark = pytest.mark.sqlite

CORE_BYTES = 1 << 20
UNPRIVILEGED = 65534


class Debuggable(DevService):
    """Runs without root's rights, since /proc/PID/mem belongs to root where a process is not dumpable."""

    def __init__(self, directory, *options):
        for name in ("constancia-renderer", os.path.basename(BINARY)):
            program = shutil.copy2(os.path.join(os.path.dirname(BINARY), name), directory)
        home = os.path.join(directory, "home")
        os.mkdir(home)
        wrap = ["prlimit", f"--core={CORE_BYTES}:{CORE_BYTES}"]
        if os.geteuid() == 0:
            os.chown(home, UNPRIVILEGED, UNPRIVILEGED)
            wrap += ["setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
        super().__init__(os.path.join(home, "data"), os.path.join(directory, "log"), {}, wrap=wrap, binary=program)
        self.options = options

    def serving(self):
        return [*super().serving(), *self.options]


@pytest.fixture
def debuggable():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        service = Debuggable(directory, "--debuggable")
        try:
            yield service.start()
        finally:
            service.kill()


def is_traceable(process):
    return os.stat(f"/proc/{process}/mem").st_uid != 0


def core_limits(process):
    limits = pathlib.Path(f"/proc/{process}/limits").read_text(encoding="ascii")
    return tuple(map(int, re.search(r"Max core file size +(\d+) +(\d+) ", limits).groups()))


def test_a_debuggable_service_is_traceable_and_its_signing_process_is_not(debuggable):
    """That a service is protected by default is tested in test_operation.py."""
    assert is_traceable(debuggable.process.pid)
    assert core_limits(debuggable.process.pid) == (CORE_BYTES, CORE_BYTES)
    assert not is_traceable(debuggable.signer())
    assert core_limits(debuggable.signer()) == (0, 0)
    assert debuggable.stop() == 0
