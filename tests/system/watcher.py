"""An owner who watches the log of a service, or one that a test writes (static_log.py)."""

import datetime
import json

from cryptography.hazmat.primitives.asymmetric import ed25519

import receipts
import tlog
from client import run
from static_log import ORIGIN, digest

CHANNEL = "ch_0123456789abcdefghij"
TAG = tlog.tag_of(CHANNEL)
RECEIPT_KEY = ed25519.Ed25519PrivateKey.from_private_bytes(b"\2" * 32)


def before(time, **passed):
    """A time, earlier."""
    found = datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) - datetime.timedelta(**passed)
    return found.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def receipt(sequence, chain_hash=None, seal_by=None, channel_id=CHANNEL, mode="live", received_at=None):
    """The answer to a registration; signed if it promises a time, ten minutes after it was received."""
    received_at = received_at or (before(seal_by, minutes=10) if seal_by else "2026-01-02T03:04:05.000000Z")
    event = {"event_id": f"evt_{sequence}", "channel_id": channel_id, "client_ref": f"ref-{sequence}",
             "sequence": sequence, "received_at": received_at, "occurred_at": None,
             "hash": digest(str(sequence)), "hash_alg": "sha-256", "modality": "content", "config_version": 1,
             "mode": mode, "chain_hash": chain_hash or digest(f"{TAG} {sequence}"), "status": "registered"}
    return receipts.sign(event, RECEIPT_KEY, ORIGIN, seal_by) if seal_by else event


class Watcher:
    """An owner with a state and receipts."""

    def __init__(self, directory, log):
        self.directory, self.log = directory, log
        self.state, self.receipts = directory / "state.json", directory / "receipts.ndjson"
        self.receipts.write_text("")
        self.words = [f"--channel={CHANNEL}"]

    def keep(self, *kept):
        with self.receipts.open("a") as out:
            out.writelines(json.dumps(one) + "\n" for one in kept)

    def run(self, *words):
        return run("log", "watch", "--once", "--json", f"--url={self.log.url}", f"--key={self.log.vkey}",
                   f"--state={self.state}", f"--receipts={self.receipts}", *self.words, *words)

    def watch(self, *words, code=0):
        done = self.run(*words)
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def refused(self, code, *words):
        done = self.run(*words)
        assert done.returncode == code and not done.stdout, done.stdout
        return json.loads(done.stderr)["cause"]

    def convict(self, kind):
        """What is found, and again by the next run; with a document that proves it."""
        before = self.state.read_bytes() if self.state.exists() else None
        found = self.watch(code=1)
        assert [finding["kind"] for finding in found["findings"]] == [kind]
        assert (self.state.read_bytes() if self.state.exists() else None) == before
        again = self.watch(code=1)
        assert [finding["kind"] for finding in again["findings"]] == [kind]
        if kind == "gap":
            assert found["proof"] is None
            return found, None
        assert found["proof"] == f"{self.state}.proof" and again["proof"] == f"{self.state}.proof.latest"
        with open(found["proof"], encoding="utf-8") as file:
            (line,) = file.read().splitlines()
        proof = json.loads(line)
        assert proof["kind"] == kind and proof["v"] == "constancia-log-proof/1"
        assert json.dumps(proof, separators=(",", ":"), sort_keys=True, ensure_ascii=False) == line
        return found, proof

    def check(self, *words, proof=None, key=True):
        path = self.directory / "state.json.proof"
        if proof:
            path = self.directory / "changed.proof"
            path.write_text(json.dumps(proof))
        return run("log", "check-proof", str(path), "--json", *([f"--key={self.log.vkey}"] if key else ()), *words)
