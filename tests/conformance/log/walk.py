"""Logs and witnesses of others with ours: usage: walk.py TOOLS WORK ROUNDS

TOOLS has litewitness and witnessctl (filippo.io/torchwood), fsck and posix-oneshot (Tessera), and notes. Prints a line for
each check, `ok` or `FAIL`. Exit status 0: all passed; 1: a check failed.
"""
import base64
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "system")]

import tlog  # noqa: E402
from client import Client, Service, eventually, run  # noqa: E402
from ports import reserve_port  # noqa: E402
from witness import Witness  # noqa: E402

ORIGIN = "log.example/segments"
CHECKS = 7
KILLS = 20  # of the service, and half as many of litewitness

TOOLS, WORK, ROUNDS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
failed = []


@contextlib.contextmanager
def judged(name):
    try:
        yield
    except (AssertionError, subprocess.CalledProcessError, OSError) as problem:
        output = getattr(problem, "stderr", None) or getattr(problem, "output", None) or ""
        print(f"FAIL  {name}\n      {problem}\n      {output}", flush=True)
        failed.append(name)
    else:
        print(f"ok    {name}", flush=True)


def tool(name, *arguments, **more):
    return subprocess.run([TOOLS / name, *arguments], check=True, capture_output=True, text=True, **more)


# ---- litewitness ----

class LiteWitness:
    """litewitness, whose key is in an agent of ours."""

    def __init__(self, folder, name):
        self.folder, self.name, self.process = folder, name, None
        folder.mkdir()
        self.socket, self.port = folder / "agent", reserve_port()
        self.agent = subprocess.Popen(["ssh-agent", "-D", "-a", self.socket], stdout=subprocess.DEVNULL)
        eventually(self.socket.exists, "the agent listens")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key"], check=True)
        subprocess.run(["ssh-add", "-q", folder / "key"], check=True, env={**os.environ, "SSH_AUTH_SOCK": self.socket})
        listed = subprocess.run(["ssh-keygen", "-l", "-f", folder / "key.pub"], check=True, capture_output=True, text=True)
        self.fingerprint = listed.stdout.split()[1]
        public = base64.b64decode((folder / "key.pub").read_text().split()[1])[-32:]
        self.vkey = tlog.vkey_of(name, tlog.COSIGNATURE, public)
        self.url = f"http://127.0.0.1:{self.port}"

    def know(self, vkey):
        origin = vkey.split("+")[0]
        tool("witnessctl", "add-log", "-db", self.folder / "db", "-origin", origin)
        tool("witnessctl", "add-key", "-db", self.folder / "db", "-origin", origin, "-key", vkey)

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [TOOLS / "litewitness", "-db", self.folder / "db", "-key", self.fingerprint, "-name", self.name,
                 "-listen", f"127.0.0.1:{self.port}", "-ssh-agent", self.socket], stdout=log, stderr=log)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def discard(self):
        if self.process:
            self.kill()
        self.agent.kill()
        self.agent.wait()


# ---- our log ----

def log_key(service):
    return tlog.Key.load(ORIGIN, tlog.ED25519, (service.data / "signer" / "log.key").read_bytes())


def start_service(folder, lite, **settings):
    """A service with litewitness and another one of ours as its witnesses."""
    folder.mkdir()
    service = Service(folder, seal__interval="50ms", log__origin=ORIGIN, rate__live=100000, **settings)
    service.start()
    assert service.stop() == 0
    key = log_key(service)
    lite.know(key.vkey)
    ours = Witness(folder / "witness", "witness.example/ours", [key.vkey])
    ours.start()
    service.settings.update({"log.witnesses": f"{lite.vkey} {lite.url}, {ours.vkey} {ours.url}", "log.quorum": "2",
                             "log.allow_networks": "127.0.0.0/8", "log.witness_timeout": "30s"})
    lite.start()
    service.start()
    return service, key, ours


def cosigned_rounds(service, key, witnesses, lite):
    """Grows the log by that many checkpoints, each cosigned by both, with kills in between."""
    channel = service.new_channel(credits=10 * ROUNDS)
    client = Client(service, channel.live_key["key"])
    remote = tlog.RemoteLog(f"http://127.0.0.1:{service.port}/log")
    done, size, waited = 0, 0, 0
    while done < ROUNDS:
        client.register().expect(201)

        def newer(above=size):
            note = remote.note() if remote.status("checkpoint") == 200 else None
            return note and tlog.parse_checkpoint(tlog.parse_note(note)[0])[1] > above and note
        note = eventually(newer, "the next checkpoint")
        size = tlog.parse_checkpoint(tlog.parse_note(note)[0])[1]
        assert tlog.verify_note(note, key.vkey) == [None], "the log has signed"
        waited += not all(tlog.verify_note(note, one.vkey) for one in witnesses)
        done += 1
        if done % (ROUNDS // KILLS) == 0:
            service.kill()
            if done % (2 * ROUNDS // KILLS) == 0:
                lite.kill()
                lite.start()
            service.start()
            client = Client(service, channel.live_key["key"])
            remote = tlog.RemoteLog(f"http://127.0.0.1:{service.port}/log")
    assert waited == 0, f"{waited} of {ROUNDS} checkpoints lacked a cosignature"
    assert service.metric("log_witness_refusals_total") == 0
    return remote


def check_notes(remote, vkeys):
    told = tool("notes", *vkeys, input=remote.note()).stdout
    assert told.startswith(ORIGIN + "\n"), told


def check_event_proof(service, vkeys):
    """torchwood verifies the proof of an event for the entry that its extra data leads to, and for no other one."""
    channel = service.new_channel(credits=100)
    for _ in range(5):
        event = channel.live.register().expect(201).json
    channel.live.sealed(event["event_id"])
    made = channel.live.certified(seq_from=1, seq_to=5)
    archive, proof, entry = WORK / "evidence.zip", WORK / "event.tlog-proof", WORK / "entry"
    archive.write_bytes(channel.live.download(made["evidence_url"]).expect(200).body)
    done = run("proof", event["event_id"], archive, "-o", WORK / "event.ers", "--tlog-proof", proof)
    assert done.returncode == 0, done.stderr
    text = proof.read_text(encoding="utf-8")
    _, computed, _ = tlog.logged_event(text)
    entry.write_bytes(computed)
    tool("notes", "--entry", entry, *vkeys, input=text)
    entry.write_bytes(computed + b" ")
    refused = subprocess.run([TOOLS / "notes", "--entry", entry, *vkeys], input=text, capture_output=True, text=True,
                             check=False)
    assert refused.returncode == 1 and "verification failed" in refused.stderr, refused.stderr


def fsck(remote, vkey):
    """What it says; its exit status is 0 in any case."""
    file = WORK / "vkey"
    file.write_text(vkey)
    return tool("fsck", "--ui=false", "--storage_url", remote.url + "/", "--public_key", file, "--origin", ORIGIN,
                timeout=600).stderr


def check_tiles(remote, key):
    size = tlog.parse_checkpoint(tlog.parse_note(remote.note())[0])[1]
    said = fsck(remote, key.vkey)
    assert f"checking log of size {size}\n" in said and "fsck failed" not in said, said


def fsck_refuses(remote):
    """So that the check before can fail."""
    said = fsck(remote, tlog.Key(ORIGIN, tlog.ED25519).vkey)
    assert "fsck failed" in said, said


# ---- a log of Tessera with our witness ----

def tessera_log(folder):
    folder.mkdir()
    key = tlog.Key("tessera.example/log", tlog.ED25519)
    private = base64.b64encode(bytes([tlog.ED25519]) + key.private_bytes()).decode()
    (folder / "key").write_text(f"PRIVATE+KEY+{key.name}+{key.id.hex()}+{private}")
    ours = Witness(folder / "witness", "witness.example/ours", [key.vkey])
    ours.start()
    (folder / "policy").write_text(f"witness ours {ours.vkey} {ours.url}\nquorum ours\n")
    sizes = []
    try:
        for round_number in range(30):
            entries = folder / f"entries{round_number}"
            entries.mkdir()
            for number in range(1 + round_number * 7 % 40):
                (entries / str(number)).write_text(f"{round_number} {number}")
            tool("posix-oneshot", "--storage_dir", folder / "log", "--entries", f"{entries}/*", "--private_key",
                 folder / "key", "--witness_policy_file", folder / "policy", timeout=120)
            note = (folder / "log" / "checkpoint").read_text(encoding="utf-8")
            sizes.append(tlog.parse_checkpoint(tlog.parse_note(note)[0])[1])
            assert tlog.verify_note(note, ours.vkey), "our witness has cosigned"
            if round_number % 10 == 9:
                ours.kill()
                ours.start()
        tool("notes", key.vkey, ours.vkey, input=note)
        assert sizes == sorted(sizes) and sizes[-1] > 256, sizes
    finally:
        ours.kill()


def main():
    with contextlib.ExitStack() as ending:
        lite = LiteWitness(WORK / "lite", "witness.example/lite")
        ending.callback(lite.discard)
        service, key, ours = start_service(WORK / "service", lite)
        ending.callback(service.discard)
        ending.callback(ours.kill)
        remote = None
        with judged(f"litewitness and our witness cosign {ROUNDS} checkpoints, with kills of service and witness"):
            remote = cosigned_rounds(service, key, (lite, ours), lite)
        remote = remote or tlog.RemoteLog(f"http://127.0.0.1:{service.port}/log")
        with judged("sumdb/note and torchwood verify our note and both cosignatures"):
            check_notes(remote, (key.vkey, lite.vkey, ours.vkey))
        with judged("torchwood verifies the proof that an event is in our log"):
            check_event_proof(service, (key.vkey, lite.vkey, ours.vkey))
        with judged("Tessera's fsck recomputes our log from its tiles"):
            check_tiles(remote, key)
        with judged("fsck refuses our log under another key"):
            fsck_refuses(remote)
        with judged("our own reader recomputes it, too"):
            remote.check()
    with judged("our witness cosigns a log of Tessera, with kills"):
        tessera_log(WORK / "tessera")
    print(f"{CHECKS - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    assert re.fullmatch(r"[1-9]\d*", sys.argv[3])
    sys.exit(main())
