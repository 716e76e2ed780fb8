"""Services with keys of an operator, for the tests."""

import contextlib
import json

import pytest

from client import Client, NotStarted, Service, run

# Test certifications are signed like live ones, and need no timestamp authority.
NO_AUTHORITY = {"tsa.url": "http://127.0.0.1:9/", "tsa.allow_networks": "127.0.0.0/8"}


class Operators(Service):
    """A service with keys that an operator gave it."""

    def __init__(self, directory, pki, signer, **more):
        super().__init__(directory, **more)
        self.settings |= {**NO_AUTHORITY, "tsa.roots": str(pki.root), **signer}
        self.rate_free()

    def rate_free(self):
        self.settings |= {"rate.live": "100000", "rate.test": "100000"}

    def change(self, **settings):
        """Ends, and starts with other settings; None takes one away."""
        assert self.stop() == 0
        self.set(settings)
        return self.start()

    def set(self, settings):
        for name, value in settings.items():
            self.settings.pop(name, None)
            if value is not None:
                self.settings[name] = value

    def refused(self):
        """What a start says that ends at once."""
        with pytest.raises(NotStarted, match="ended with 1"):
            self.start()
        return self.log_tail(3)

    def test_client(self):
        return Client(self, self.ready["channels"]["content"]["test_key"])

    def certify(self, name):
        """Certifies one more event; who signed it."""
        client = self.test_client()
        sequence = client.register({"n": name}, name).expect(201).json["sequence"]
        record = client.certified(seq_from=sequence, seq_to=sequence)
        assert record["status"] == "completed", record
        archive = self.data.parent / f"{name}.zip"
        archive.write_bytes(client.download(record["evidence_url"]).expect(200).body)
        client.close()
        return self.verify(archive)

    def verify(self, archive):
        done = run("verify", archive, "--json", "--trust-signer", self.data / "trust.pem")
        told = json.loads(done.stdout)
        assert done.returncode == 0 and told["trusted"], told
        (signer,) = told["signers"]
        return signer["sha256"]

    def published(self):
        return Client(self).get("/v1/signers").expect(200).json["data"]

    def warnings(self):
        status, text = self.monitor("/readyz")
        assert status == 200, text
        return " ".join(json.loads(text)["warnings"])


@contextlib.contextmanager
def operators(directory, pki, signer, **more):
    service = Operators(directory, pki, signer, **more)
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        yield service


def check(service):
    """The ports that a service has by default may be taken on this machine."""
    return run("config", "check", f"--set=service.listen=127.0.0.1:{service.port}", "--set=service.admin_listen=",
               *service.chosen())
