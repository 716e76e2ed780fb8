"""Executes the blocks of docs/operate/postgresql-archive.md with pgBackRest, in their order and as written, but for
paths, the port and the way in which a service is started.

usage: python3 -m pytest tests/conformance/test_postgresql_archive.py, with CONSTANCIA=PROGRAM
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "tests/support")]

from client import BINARY  # noqa: E402
from fleet import Fleet  # noqa: E402
from postgres import Cluster, eventually, unprivileged  # noqa: E402
from program import clean_environment  # noqa: E402

PAGE = (ROOT / "docs/operate/postgresql-archive.md").read_text(encoding="utf-8")
DATA, REPOSITORY = "/var/lib/postgresql/15/main", "/var/lib/pgbackrest"


def blocks(heading):
    section = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL).group(1)
    return re.findall(r"```\n(.*?)```", section, re.DOTALL)


class Machine:
    """The page's machine: its paths below a directory, and its commands."""

    def __init__(self):
        server = blocks("Configuration")[1]
        settings = dict(line.split(" = ", 1) for line in server.splitlines())
        self.cluster = Cluster(standbys=0)
        self.settings = []
        directory = pathlib.Path(self.cluster.directory)
        self.repository, self.config = directory / "repository", directory / "pgbackrest.conf"
        self.repository.mkdir()
        user = unprivileged()
        if user:
            os.chown(self.repository, user.pw_uid, user.pw_gid)
        self.cluster.settings = {name: self.translate(value.strip("'")) for name, value in settings.items()}
        primary = self.cluster.primary
        config = self.translate(blocks("Configuration")[0]).rstrip()
        config = config.replace("[global]", f"[global]\nlock-path={self.repository}/lock")
        self.config.write_text(f"{config}\npg1-socket-path={primary.directory}\npg1-port={primary.port}\n")

    def translate(self, text):
        return text.replace(DATA, self.cluster.primary.data).replace(REPOSITORY, str(self.repository)).replace(
            "pgbackrest --stanza", f"pgbackrest --config={self.config} --log-level-file=off --stanza")

    def run(self, script):
        """Runs a block, line by line."""
        for line in self.translate(script).strip().splitlines():
            if line.startswith("sudo systemctl stop postgresql"):
                self.cluster.primary.stop()
            elif line.startswith("sudo systemctl start postgresql"):
                self.cluster.primary.start()
            else:
                self.run_line(line)

    def run_line(self, line):
        user = unprivileged()
        who = f"setpriv --reuid {user.pw_uid} --regid {user.pw_gid} --init-groups" if user else ""
        chosen = shlex.join(map(str, self.settings))
        script = (f'sudo() {{ if [ "$2" = postgres ]; then shift 2; {who} "$@"; else shift 2; "$@"; fi; }}\n'
                  f'constancia() {{ "{BINARY}" "${{@:1:$#-2}}" {chosen}; }}\n' + line)
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300, cwd="/",
                              env=clean_environment({"LC_ALL": "C.UTF-8"}), check=False)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}\n{self.cluster.primary.log_tail()}"


def serves(node):
    answer = node.ask("/livez")
    return answer is not None and answer[0] == 200


def test_the_page_from_the_stanza_to_a_point_in_time(tmp_path):
    assert shutil.which("pgbackrest"), "the package pgbackrest is missing"
    machine = Machine()
    with machine.cluster as cluster, Fleet(tmp_path / "fleet", count=1, cluster=cluster,
                                           seal__interval="300ms", store__require_replicas=0) as fleet:
        node = fleet.nodes[0]
        machine.settings = node.chosen()
        channel = fleet.new_channel()
        client = node.client(channel.live_key["key"])
        kept = client.register_file(b"kept" * 9000, "kept").expect(201).json
        for heading in ("Stanza", "Full backup"):
            machine.run(blocks(heading)[0])
        client.register({"n": 1}, "between").expect(201)
        machine.run(blocks("Incremental backup")[0])
        last = client.register({"n": 2}, "last").expect(201).json
        client.sealed(last["event_id"])
        moment = cluster.primary.query("SELECT date_trunc('milliseconds', clock_timestamp()) + '1 ms'")
        eventually(lambda: cluster.primary.query(f"SELECT clock_timestamp() > '{moment}'") == "t", "time passes")
        lost = client.register({"n": 3}, "lost").expect(201).json
        client.sealed(lost["event_id"])
        client.close()
        assert node.stop() == 0
        node.settings["service.quiet"] = "true"
        machine.settings = node.chosen()
        restore, after = blocks("Restore to a point in time")
        assert '--target="2026-11-29 10:15:00+00"' in restore
        machine.run(restore.replace("2026-11-29 10:15:00+00", moment))
        eventually(lambda: cluster.primary.query("SELECT pg_is_in_recovery()") == "f", "the server accepts writes")
        refs = {row[0] for row in fleet.rows("SELECT client_ref FROM events")}
        assert refs == {"kept", "between", "last"}
        machine.run(after)
        node.spawn()
        eventually(lambda: serves(node), "it serves")
        again = node.client(channel.live_key["key"])
        assert again.content(kept["event_id"]).expect(200).body == b"kept" * 9000
        again.register({"n": 4}, "refused").expect(503)
        assert node.admin("store", "check")["valid"] is True
        assert node.run("store", "wake").returncode == 0
        again.close()
        assert node.stop() == 0
        del node.settings["service.quiet"]
        node.start()
        with contextlib.closing(node.client(channel.live_key["key"])) as resumed:
            assert resumed.register({"n": 5}, "resumed").expect(201).json["sequence"] == 4
