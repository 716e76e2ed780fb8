"""Several nodes of the service on one store: each a `constancia serve` with a data directory, ports
and a signing process of its own; the store, the content and the keys that sign are common."""

import contextlib
import glob
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time
import urllib.error
import urllib.request

from ports import reserve_port

PATIENCE = 60


class NotStarted(Exception):
    """A node ended, or did not say that it is ready."""


class Refused(Exception):
    """An administration command that did not exit 0."""


def clean_environment(more=None):
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("CONSTANCIA")}
    return {**kept, **(more or {})}


class SetClock:
    """A clock that a test sets while the process runs: behind by so many seconds, or ahead."""

    def __init__(self, directory, behind=0):
        self.path = pathlib.Path(directory) / "clock_lag"
        self.path.write_bytes(struct.pack("=q", behind))
        self.environment = {**clock_behind(directory, 0), "CLOCK_LAG_FILE": str(self.path)}

    def set(self, behind):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=q", behind))


def clock_behind(directory, seconds):
    """The environment of a process whose clock runs behind by so much; ahead, if negative."""
    shim = pathlib.Path(directory) / "lagging_clock.so"
    source = pathlib.Path(__file__).with_name("lagging_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", shim, source], check=True)
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": str(shim), "CLOCK_LAG_SECONDS": str(seconds),
            "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}


class Node:
    """`wrap` goes before the command, as `ip netns exec` does."""

    def __init__(self, deployment, name, address="127.0.0.1", wrap=(), environment=None,
                 settings=None):
        self.deployment = deployment
        self.name = name
        self.address = address
        self.wrap = list(wrap)
        self.environment = environment or {}
        self.data = os.path.join(deployment.directory, name)
        self.log = self.data + ".log"
        self.port = reserve_port()
        self.admin_port = reserve_port()
        self.settings = {**deployment.settings, **(settings or {}),
                         "service.data_dir": self.data,
                         "service.listen": f"{address}:{self.port}",
                         "service.admin_listen": f"{address}:{self.admin_port}"}
        self.process = None

    def __repr__(self):
        return f"<{self.name}>"

    def command(self, *arguments):
        """A command that finds this node, or its store when it does not run."""
        return [self.deployment.binary, *map(str, arguments),
                *(f"--set={name}={value}" for name, value in self.settings.items())]

    def run(self, *arguments, timeout=600):
        return subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              env=clean_environment(), timeout=timeout, check=False)

    def cli(self, *arguments):
        done = self.run(*arguments, "--json")
        if done.returncode:
            raise Refused(f"{' '.join(map(str, arguments))}: exit {done.returncode}: "
                          f"{done.stderr.strip()[-500:]} {done.stdout.strip()[-500:]}")
        return json.loads(done.stdout)

    def spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.wrap, "setpriv", "--pdeathsig", "KILL", *self.command("serve")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=clean_environment(self.environment))

    def ask(self, path, timeout=PATIENCE):
        """The operator's listener: status and text, None while nobody listens."""
        url = f"http://{self.address}:{self.admin_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None

    def wait(self, path, seconds=PATIENCE):
        """Until it answers 200."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise NotStarted(f"{self.name} ended with {self.process.returncode}:\n"
                                 f"{self.log_tail()}")
            answer = self.ask(path)
            if answer and answer[0] == 200:
                return self
            time.sleep(0.02)
        raise NotStarted(f"{self.name}: {path} is not 200 after {seconds} s: {answer}\n"
                         f"{self.log_tail()}")

    def start(self, seconds=PATIENCE):
        self.spawn()
        return self.wait("/readyz", seconds)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """kill -9; the signing process ends with it."""
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def stop(self):
        """The exit code."""
        self.process.terminate()
        code = self.process.wait(40)
        self.process = None
        return code

    def log_tail(self, lines=15):
        with contextlib.suppress(FileNotFoundError):
            with open(self.log, encoding="utf-8", errors="replace") as file:
                return "".join(file.readlines()[-lines:])
        return ""


class Deployment:
    """What the nodes have in common. The first node prepares the store."""

    node_class = Node

    def __init__(self, directory, binary, settings):
        self.directory = str(directory)
        os.makedirs(self.directory, exist_ok=True)
        self.binary = str(binary)
        self.nodes = []
        self.settings = {"tsa.url": "embedded:", "rate.live": "1000000", "rate.test": "1000000",
                         "http.connections_per_address": "1000",
                         "content.url": f"file:{self.directory}/content", **settings}

    def add(self, **options):
        """A node, not started. All sign with the first one's keys, as a real deployment's do with
        the files of signer.key and signer.chain."""
        node = self.node_class(self, f"node{len(self.nodes) + 1}", **options)
        if not self.nodes:
            done = node.run("init")
            if done.returncode:
                raise NotStarted(f"init: exit {done.returncode}: {done.stderr}")
        else:
            signer = os.path.join(node.data, "signer")
            os.makedirs(signer, mode=0o700)
            os.chmod(node.data, 0o700)
            for key in glob.glob(os.path.join(self.nodes[0].data, "signer", "*.pem")):
                shutil.copy2(key, signer)
        self.nodes.append(node)
        return node

    def close(self):
        for node in self.nodes:
            node.kill()
