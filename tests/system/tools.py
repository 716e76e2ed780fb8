"""The commands for integrators, as a user with a key runs them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading

from client import BINARY, PATIENCE
from program import clean_environment

# The program without the service, where the build has it: both have the same commands (test_tools_program.py).
SMALL = pathlib.Path(os.environ.get("CONSTANCIA_TOOLS", f"{BINARY}-tools"))
TOOLS = SMALL if SMALL.exists() else pathlib.Path(BINARY)


class Tools:
    """Commands by a key, in a folder of their own."""

    def __init__(self, url, key, folder, program=TOOLS):
        self.folder = folder
        self.environment = {"CONSTANCIA_URL": url, "CONSTANCIA_KEY": key}
        self.program = str(program)

    def run(self, *words, expect=0, **more):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, text=True, capture_output=True,
                              env=clean_environment(self.environment), timeout=5 * PATIENCE, check=False, **more)
        assert done.returncode == expect, (words, done.returncode, done.stdout, done.stderr)
        return done

    def lines(self, *words, **more):
        """What a command says with --json: a document a line."""
        return [json.loads(line) for line in self.run(*words, "--json", **more).stdout.splitlines()]

    def error(self, *words, expect=1, **more):
        """The last error of a command that fails."""
        return json.loads(self.run(*words, "--json", expect=expect, **more).stderr.splitlines()[-1])

    @contextlib.contextmanager
    def running(self, *words):
        """A command that runs until it is ended, by the lines of its output."""
        with subprocess.Popen([self.program, *map(str, words)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=clean_environment(self.environment)) as process:
            one = Running(process)
            try:
                yield one
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    process.wait(PATIENCE)
                one.end()


class Running:
    """Collects the lines that a running command prints."""

    def __init__(self, process):
        self.process = process
        self.lines = []
        self.errors = []
        self._changed = threading.Condition()
        self._readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((process.stdout, self.lines), (process.stderr, self.errors))]
        for one in self._readers:
            one.start()

    def _read(self, stream, lines):
        for line in stream:
            with self._changed:
                lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def line(self, number):
        """The line of that number, from 0, once it is printed."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.lines) > number, PATIENCE), (self.lines, self.errors)
            return self.lines[number]

    def json(self, number):
        return json.loads(self.line(number))

    def end(self):
        for one in self._readers:
            one.join(PATIENCE)


def tools_of(service, key, folder):
    return Tools(f"{service.public_url}/v1", key, folder)


def receipts_of(folder, name="receipts.ndjson"):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]
