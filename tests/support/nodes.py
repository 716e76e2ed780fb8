"""Several nodes of the service on one store: each is a `constancia serve` with a data directory, ports and a
signing process of its own. Store, content and signing keys are shared."""

import os
import pathlib
import struct
import subprocess
import urllib.error
import urllib.request

from ports import reserve_port
from program import PATIENCE, NotStarted, Program, copy_keys


class SetClock:
    """A clock that a test sets while the process runs: behind by a number of seconds; negative: ahead."""

    def __init__(self, directory, behind=0):
        self.path = pathlib.Path(directory) / "clock_lag"
        self.path.write_bytes(struct.pack("=q", behind))
        self.environment = {**clock_behind(directory, 0), "CLOCK_LAG_FILE": str(self.path)}

    def set(self, behind):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=q", behind))


def clock_behind(directory, seconds):
    """Returns the environment of a process whose clock is behind by that many seconds; negative: ahead."""
    shim = pathlib.Path(directory) / "lagging_clock.so"
    source = pathlib.Path(__file__).with_name("lagging_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", shim, source], check=True)
    asan = os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": str(shim), "CLOCK_LAG_SECONDS": str(seconds),
            "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}


class Node(Program):
    def __init__(self, deployment, name, address="127.0.0.1", settings=None, **more):
        self.deployment = deployment
        self.name = name
        self.address = address
        self.data = os.path.join(deployment.directory, name)
        self.port = reserve_port()
        self.admin_port = reserve_port()
        super().__init__(self.data + ".log", {**deployment.settings, **(settings or {}),
                                              "service.data_dir": self.data,
                                              "service.listen": f"{address}:{self.port}",
                                              "service.admin_listen":
                                              f"{address}:{self.admin_port}"},
                         binary=deployment.binary, **more)

    def __repr__(self):
        return f"<{self.name}>"

    def serving(self):
        return ["serve"]

    def is_ready(self):
        return self.is_well("/readyz")

    def ask(self, path, timeout=PATIENCE):
        """Asks the operator's listener: status and text, or None while it does not accept connections."""
        url = f"http://{self.address}:{self.admin_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None

    def is_well(self, path):
        answer = self.ask(path)
        return answer is not None and answer[0] == 200

    def wait(self, path, seconds=PATIENCE):
        """Blocks until it returns 200."""
        return self.wait_until(lambda: self.is_well(path), f"{path} is 200", seconds)


class Deployment:
    """The common settings of the nodes. The first node prepares the store."""

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
        """Adds a node without starting it. All nodes sign with the first one's keys, as production nodes do
        with the files of signer.key and signer.chain."""
        node = self.node_class(self, f"node{len(self.nodes) + 1}", **options)
        if not self.nodes:
            done = node.run("init")
            if done.returncode:
                raise NotStarted(f"init: exit {done.returncode}: {done.stderr}")
        else:
            os.makedirs(node.data, mode=0o700, exist_ok=True)
            copy_keys(self.nodes[0].data, node.data)
        self.nodes.append(node)
        return node

    def close(self):
        for node in self.nodes:
            node.kill()
