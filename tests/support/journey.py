"""A client's way through a deployed service, over plain HTTP or TLS: registers, certifies and verifies."""

import http.client
import json
import secrets
import ssl
import urllib.parse

from program import BINARY, PATIENCE, eventually, run


class Client:
    """Requests to an address; with `name`, over TLS under that name, verified with the roots in `roots`."""

    def __init__(self, address, port, key=None, name=None, roots=None):
        self.address, self.port, self.key, self.name = address, port, key, name
        self.context = ssl.create_default_context(cafile=roots) if name else None

    def ask(self, method, target, body=None, headers=None):
        """Returns status, headers and body."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=PATIENCE)
        try:
            connection.connect()
            if self.context:
                connection.sock = self.context.wrap_socket(connection.sock, server_hostname=self.name)
            headers = {"Host": self.name or self.address, **(headers or {})}
            if self.key:
                headers["Authorization"] = f"Bearer {self.key}"
            if body is not None:
                headers["Content-Type"] = "application/json"
            connection.request(method, target, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, target, body=None, status=200):
        code, _, text = self.ask(method, target, body)
        assert code == status, (method, target, code, text[:600])
        return json.loads(text)

    def register(self):
        return self.json("POST", "/v1/events", {"client_ref": secrets.token_hex(8), "payload": {"on": "record"}}, 201)

    def certified(self):
        """Certifies the first event of the channel and returns the certification once it is complete."""
        asked = self.json("POST", "/v1/certifications", {"seq_from": 1, "seq_to": 1}, 202)

        def look():
            found = self.json("GET", f"/v1/certifications/{asked['certification_id']}")
            return found if found["status"] != "processing" else None
        found = eventually(look, "the certification is issued")
        assert found["status"] == "completed", found
        return found

    def download(self, url):
        parts = urllib.parse.urlsplit(url)
        code, _, body = self.ask("GET", f"{parts.path}?{parts.query}")
        assert code == 200, (url, code, body[:600])
        return body


def new_key(admin):
    """Creates an account, a channel and a key by a function that runs an administration command; returns the key."""
    account = admin("account", "create", "--name", "Example", "--credits", 100)["account_id"]
    channel = admin("channel", "create", "--account", account, "--name", "Example", "--declarant", "Example",
                    "--modality", "content")
    return admin("key", "create", "--channel", channel["channel_id"], "--mode", "live")["key"]


def verify(client, place, trust):
    """Certifies, downloads the archive and verifies it offline."""
    archive = place / "evidence.zip"
    archive.write_bytes(client.download(client.certified()["evidence_url"]))
    done = run([BINARY, "verify", "--trust", trust, archive])
    assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
