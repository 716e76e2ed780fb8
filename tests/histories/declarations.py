"""Declarations that clients send, made of a few numbers, so that a script needs no contents."""

import base64
import datetime
import hashlib
import json
import random

BOUNDARY = "----histories"


class Declaration:
    """A request body of POST /events, with the digest that the service has to state."""

    def __init__(self, client_ref, spec):
        self.client_ref, self.spec = client_ref, spec
        self.occurred_at = spec.get("occurred_at")
        self.hash_alg = "sha-256"
        getattr(self, "_" + spec["form"])(random.Random(spec["seed"]))

    def _members(self, **more):
        members = {"client_ref": self.client_ref, **more}
        if self.occurred_at:
            members["occurred_at"] = self.occurred_at
        return json.dumps(members).encode()

    def _json(self, chosen):
        note = base64.b64encode(chosen.randbytes(self.spec["size"]))[:self.spec["size"]].decode()
        payload = {"z": chosen.randrange(1 << 40), "note": note, "list": [True, None, {"a": chosen.randrange(9)}]}
        self.content = json.dumps(payload, sort_keys=True, separators=(",", ":")).encode()
        self.digest = hashlib.sha256(self.content).hexdigest()
        self.body, self.content_type = self._members(payload=payload), "application/json"

    def _hash(self, chosen):
        self.hash_alg = chosen.choice(("sha-256", "sha-512"))
        self.content = None
        self.digest = hashlib.new(self.hash_alg.replace("-", ""), chosen.randbytes(16)).hexdigest()
        self.body = self._members(hash=self.digest, hash_alg=self.hash_alg)
        self.content_type = "application/json"

    def _file(self, chosen):
        self.content = chosen.randbytes(self.spec["size"])
        self.digest = hashlib.sha256(self.content).hexdigest()
        parts = {"client_ref": self.client_ref, **({"occurred_at": self.occurred_at} if self.occurred_at else {})}
        text = "".join(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                       for name, value in parts.items())
        text += (f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="declared.bin"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n")
        self.body = text.encode() + self.content + f"\r\n--{BOUNDARY}--\r\n".encode()
        self.content_type = f"multipart/form-data; boundary={BOUNDARY}"

    def identity(self):
        """Returns what makes two declarations the same one."""
        return [self.digest, self.hash_alg, normalized(self.occurred_at)]


def normalized(occurred_at):
    """Returns a time of a request as the service states it: UTC, microseconds."""
    if occurred_at is None:
        return None
    time = datetime.datetime.fromisoformat(occurred_at).astimezone(datetime.timezone.utc)
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def draw(chosen, modality):
    """Returns a random specification for a channel of this modality."""
    spec = {"seed": chosen.getrandbits(48)}
    if modality == "hash_only":
        spec["form"] = "hash"
    elif chosen.random() < 0.2:
        spec |= {"form": "file", "size": chosen.choice((1, 500, 5000, 70_000, 300_000))}
    else:
        spec |= {"form": "json", "size": chosen.choice((0, 20, 20, 300, 300, 5000, 60_000))}
    if chosen.random() < 0.15:
        spec["occurred_at"] = f"20{chosen.randrange(10, 26)}-03-0{chosen.randrange(1, 10)}T12:00:00.5+02:00"
    return spec
