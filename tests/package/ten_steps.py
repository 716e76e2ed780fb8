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
PATIENCE = 300
# The one difference to the page: no authority for TLS certificates (ACME) is outside, so Caddy is its own, which the
# machine trusts as it would that one.
OWN_AUTHORITY = """
example=/usr/share/doc/constancia/examples/Caddyfile
root=/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt
until [ -f $example ]; do sleep 0.1; done
sed -i '0,/^{$/s//{\\n\\tlocal_certs/' $example
until [ -s $root ]; do sleep 0.1; done
cp $root /usr/local/share/ca-certificates/proxy.crt
update-ca-certificates
"""
verdict = Verdicts()


def blocks_of(text):
    return re.findall(r"^```sh\n(.*?)^```", text, flags=re.M | re.S)


def read_page():
    """What the operator sets before the first step, and the blocks of each section: {heading: [text, …]}, in order."""
    head, *parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)
    variables, = blocks_of(head)
    sections = {part.partition("\n")[0].strip(): blocks_of(part) for part in parts}
    assert len([heading for heading in sections if re.match(r"\d+\. ", heading)]) == 10 and all(sections.values())
    return variables, sections


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

WATCHED = """
is_up() {
    curl -sG http://127.0.0.1:9090/api/v1/query --data-urlencode 'query=min(up{job="constancia"})' |
        jq -e '.data.result[0].value[1] == "1"'
}
for attempt in $(seq 120); do if is_up; then break; fi; sleep 1; done
is_up
curl -s http://127.0.0.1:9090/api/v1/rules |
    jq -e '[.data.groups[].rules[] | select(.type == "alerting")] | length > 30'
curl -s http://127.0.0.1:9090/api/v1/alertmanagers | jq -e '.data.activeAlertmanagers | length == 1'
"""
FAILED_UNITS = """for unit in $(systemctl list-units --failed --plain --no-legend | cut -d" " -f1); do
    journalctl --no-pager -n 30 -u "$unit"
done"""


class Operator:
    """Follows the page, and receives from outside the files that its steps name."""

    def __init__(self, machine, world, package):
        self.machine, self.world, self.package, self.times = machine, world, package, []
        self.variables, self.sections = read_page()
        self.checks = {"8. Alerts": self.is_watched}
        self.received = {"seal-chain.pem": self.seal_chain, "tsa-roots.pem": self.roots}

    def prepare(self):
        machine, world = self.machine, self.world
        machine.link(world.name, f"{OUTSIDE}/24", f"{HERE}/24")
        world.start()
        with open(machine.path("/etc/hosts"), "a", encoding="utf-8") as hosts:
            hosts.write(f"127.0.0.1 localhost\n127.0.1.1 {os.uname().nodename}\n{HERE} register.example.org\n"
                        f"{OUTSIDE} {outside.HOST}\n")
        shutil.copy(world.directory / "web.pem", machine.path("/usr/local/share/ca-certificates/known.crt"))
        machine.shell("update-ca-certificates")
        shutil.copy(self.package, machine.path("/root"))
        self.proxy = subprocess.Popen(machine.words(["bash", "-ec", OWN_AUTHORITY]))

    def seal_chain(self):
        """The provider's answer to the request."""
        return outside.seal(self.world.directory, OUTSIDE, self.machine.path("/root/seal.csr"))

    def roots(self):
        return (self.world.directory / "roots.pem").read_bytes()

    def receive(self, block):
        for name in [name for name in self.received if name in block]:
            self.machine.path(f"/root/{name}").write_bytes(self.received.pop(name)())

    def is_watched(self):
        """Prometheus has read the metrics of the service and evaluates the rules."""
        code, words = self.machine.shell(WATCHED)
        verdict(code == 0, "Prometheus reads the metrics and has the rules", words)

    def follow(self, heading, blocks):
        start = time.monotonic()
        for block in blocks:
            self.receive(block)
            code, words = self.machine.shell(f"cd /root\n{self.variables}\n{block}")
            if not verdict(code == 0, f"{heading}: {block.strip().splitlines()[0][:70]}", words):
                print(self.machine.shell(FAILED_UNITS)[1])
                raise SystemExit(1)
            print("\n".join("      " + line for line in words.splitlines()[-6:]), flush=True)
        self.times.append((heading, time.monotonic() - start))
        if check := self.checks.get(heading):
            check()


def main():
    root, package, work = sys.argv[1:]
    work = pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        with World(work) as world, Booted(root) as machine:
            operator = Operator(machine, world, package)
            operator.prepare()
            for heading, blocks in operator.sections.items():
                operator.follow(heading, blocks)
    except Unavailable as reason:
        print(f"ten_steps: no machine can be booted here: {reason}", file=sys.stderr)
        sys.exit(2)
    for heading, seconds in operator.times:
        print(f"      {seconds:6.1f} s  {heading}")
    sys.exit(1 if verdict.failed else 0)


if __name__ == "__main__":
    main()
