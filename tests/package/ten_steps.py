"""docs/operate/production.md followed to the letter on a machine that systemd boots from a clean root: each block of
its steps, with what an operator gets from outside in between (the seal's certificate, the authority's roots).

usage: ten_steps.py ROOT PACKAGE WORK
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import outside  # noqa: E402
from booted import Booted, Unavailable  # noqa: E402
from chroot import Verdicts  # noqa: E402

PAGE = outside.ROOT / "docs" / "operate" / "production.md"
HERE, OUTSIDE = "44.0.0.1", "44.0.0.2"  # of a network that ends at the two
PATIENCE = 60
verdict = Verdicts()


def steps():
    """The blocks of each step: {heading: [text, …]}, in order."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        heading, _, text = part.partition("\n")
        blocks = re.findall(r"^```sh\n(.*?)^```", text, flags=re.M | re.S)
        if blocks:
            found[heading.strip()] = blocks
    return found


class World:
    """A network namespace with the parties of outside.py."""

    def __init__(self, directory):
        self.directory, self.name = directory, f"constancia-outside-{directory.name}"

    def __enter__(self):
        subprocess.run(["ip", "netns", "add", self.name], check=True)
        subprocess.run(["ip", "-n", self.name, "link", "set", "lo", "up"], check=True)
        return self

    def start(self):
        with open(self.directory / "outside.log", "wb") as log:
            self.process = subprocess.Popen(["ip", "netns", "exec", self.name, sys.executable, "-B", outside.__file__,
                                             str(self.directory), OUTSIDE], stdout=log, stderr=log)
        end = time.monotonic() + PATIENCE
        while not (self.directory / "ready").exists():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError((self.directory / "outside.log").read_text())
            time.sleep(0.1)

    def __exit__(self, *_):
        if hasattr(self, "process"):
            self.process.terminate()
            self.process.wait()
        subprocess.run(["ip", "netns", "del", self.name], check=True)


class Operator:
    """Follows the page. `before` and `after` hold what happens outside of the page's blocks, by step."""

    def __init__(self, machine, world, package):
        self.machine, self.world, self.package, self.times = machine, world, package, []

    def prepare(self):
        machine, world = self.machine, self.world
        machine.link(world.name, f"{OUTSIDE}/24", f"{HERE}/24")
        world.start()
        with open(machine.path("/etc/hosts"), "a", encoding="utf-8") as hosts:
            hosts.write(f"127.0.1.1 {os.uname().nodename}\n{HERE} register.example.org\n{OUTSIDE} {outside.HOST}\n")
        shutil.copy(world.directory / "web.pem", machine.path("/usr/local/share/ca-certificates/known.crt"))
        machine.shell("update-ca-certificates")
        shutil.copy(self.package, machine.path("/root"))

    def certify_seal(self):
        """The provider's answer to the request."""
        request = self.machine.path("/root/seal.csr")
        self.machine.path("/root/seal-chain.pem").write_bytes(outside.seal(self.world.directory, OUTSIDE, request))

    def receive_roots(self):
        shutil.copy(self.world.directory / "roots.pem", self.machine.path("/root/tsa-roots.pem"))

    def follow(self, heading, blocks):
        start = time.monotonic()
        for block in blocks:
            code, words = self.machine.shell("cd /root\n" + block)
            if not verdict(code == 0, f"{heading}: {block.strip().splitlines()[0][:70]}", words):
                raise SystemExit(1)
            print("\n".join("      " + line for line in words.splitlines()[-6:]), flush=True)
        self.times.append((heading, time.monotonic() - start))


def main():
    root, package, work = sys.argv[1:]
    work = pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        with World(work) as world, Booted(root) as machine:
            operator = Operator(machine, world, package)
            operator.prepare()
            received = {"2": operator.certify_seal, "3": operator.receive_roots}
            for heading, blocks in steps().items():
                number = heading.split(".")[0]
                if number == "3":
                    received["3"]()
                operator.follow(heading, blocks)
                if number == "2":
                    received["2"]()
    except Unavailable as reason:
        print(f"ten_steps: no machine can be booted here: {reason}", file=sys.stderr)
        sys.exit(2)
    for heading, seconds in operator.times:
        print(f"      {seconds:6.1f} s  {heading}")
    sys.exit(1 if verdict.failed else 0)


if __name__ == "__main__":
    main()
