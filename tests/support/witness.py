"""The witness of this program, `constancia witness serve`, as tests start it, and logs made in Python for it.

    witness = Witness(folder, "witness.example/one", [log.key.vkey])    .url, .vkey; start(), kill(), stop()
    witness.ask(log.request(old, size))                                 Answer: status, body, headers
"""

import base64
import contextlib
import dataclasses
import hashlib
import http.client
import json
import pathlib

import program
from ports import reserve_port
from tlog import (ED25519, Key, checkpoint_text, consistency, leaf_hash, parse_checkpoint, parse_note,
                  root, verify_note)


@dataclasses.dataclass
class Answer:
    status: int
    body: str
    headers: object

    @property
    def size(self):
        """The size that an answer 409 states."""
        assert self.status == 409 and self.headers["Content-Type"] == "text/x.tlog.size", self
        assert self.body == f"{int(self.body)}\n"
        return int(self.body)


class Log:
    """A log that can do what no log may do. `salt` makes another history with the same key."""

    def __init__(self, origin="log.example/made", key=None, salt=b""):
        self.key = key or Key(origin, ED25519)
        self.salt = salt
        self._leaves = []
        self._roots = {}

    def fork(self, salt=b"fork", first=0):
        """Another history, which has the first leaves of this one."""
        made = Log(key=self.key, salt=salt)
        made._leaves = self.leaves(first)  # pylint: disable=protected-access
        return made

    def leaves(self, size):
        while len(self._leaves) < size:
            self._leaves.append(leaf_hash(self.salt + str(len(self._leaves)).encode()))
        return self._leaves[:size]

    def root(self, size):
        if size not in self._roots:
            self._roots[size] = root(self.leaves(size))
        return self._roots[size]

    def text(self, size, more=""):
        return checkpoint_text(self.key.name, size, self.root(size)) + more

    def note(self, size, more="", signers=None):
        text = self.text(size, more)
        return text + "\n" + "".join(key.sign(text) for key in (signers or [self.key]))

    def proof(self, old, size):
        return consistency(self.leaves(size), old)

    def request(self, old, size, proof=None, note=None):
        """The body of add-checkpoint."""
        if proof is None:
            proof = self.proof(old, size) if 0 < old < size else []
        lines = [f"old {old}", *(base64.b64encode(one).decode() for one in proof)]
        return "\n".join(lines) + "\n\n" + (self.note(size) if note is None else note)

    @property
    def path(self):
        """Where a witness has its checkpoint."""
        return f"/{hashlib.sha256(self.key.name.encode()).hexdigest()}/checkpoint"


class Witness(program.Program):
    def __init__(self, folder, name, logs=(), words=(), host="127.0.0.1", data=None, environment=None):
        folder = pathlib.Path(folder)
        folder.mkdir(exist_ok=True, parents=True)
        super().__init__(folder / "log", {}, environment=environment)
        self.printed = folder / "printed"
        self.data = pathlib.Path(data or folder / "data")
        self.name = name
        self.logs = list(logs)
        self.words = words
        self.port = reserve_port()
        self.url = f"http://{host}:{self.port}"
        self.listen = f"{host}:{self.port}"
        self.ready_file = folder / "ready.json"
        self.vkey = program.run(self.command("witness", "key", "--name", name), environment).stdout.strip()
        self.cosigned = {}  # (origin, size): root, of every cosignature seen

    def __repr__(self):
        return f"<witness {self.data}>"

    def chosen(self):
        return ["--data", str(self.data)]

    def serving(self):
        given = [f"--log={vkey}" for vkey in self.logs]
        return ["witness", "serve", "--listen", self.listen, "--ready-file", self.ready_file, *given,
                *self.words]

    def spawn(self):
        self.ready_file.unlink(missing_ok=True)
        super().spawn()

    def is_ready(self):
        with contextlib.suppress(FileNotFoundError):
            ready = json.loads(self.ready_file.read_text(encoding="utf-8"))
            assert ready == {"name": self.name, "url": self.url, "vkey": self.vkey}
            return True
        return False

    def connect(self, timeout=program.PATIENCE):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def call(self, method, path, body=None, connection=None, **headers):
        used = connection or self.connect()
        try:
            used.request(method, path, body.encode() if isinstance(body, str) else body, headers)
            answer = used.getresponse()
            return Answer(answer.status, answer.read().decode(), answer.headers)
        finally:
            if not connection:
                used.close()

    def ask(self, body, connection=None):
        """Sends a request for a cosignature. A cosignature is verified, and must be of the one tree of that size that
        this witness has cosigned so far."""
        answer = self.call("POST", "/add-checkpoint", body, connection)
        if answer.status == 200:
            text, _ = parse_note(body.split("\n\n", 1)[1])
            (time,) = verify_note(text + "\n" + answer.body, self.vkey)
            assert time > 0
            origin, size, root_hash = parse_checkpoint(text)
            assert self.cosigned.setdefault((origin, size), root_hash) == root_hash, "two trees of one size"
        return answer

    def known(self, log):
        """The size of the last tree of a log, as the witness serves it to monitors; None: there is none."""
        answer = self.call("GET", log.path)
        if answer.status == 404:
            return None
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert verify_note(answer.body, self.vkey) and verify_note(answer.body, log.key.vkey) == [None]
        return parse_checkpoint(parse_note(answer.body)[0])[1]

    def refused(self):
        """The checkpoints that it kept."""
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((self.data / "refused").iterdir())]


__all__ = ["Answer", "Log", "Witness"]
