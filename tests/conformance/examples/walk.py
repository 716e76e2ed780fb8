"""Runs the reference's examples of every operation in one language, unchanged from the page, at a
real service: usage: walk.py LANGUAGE PUBLIC_URL CONTENT_KEY DIGEST_KEY TEST_KEY DIRECTORY

The first two keys are live ones of channels that are empty, and TEST_KEY is a test key. What an example
needs, such as an identifier, is what an example before it brought.
"""
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "src/http/reference"))

import examples  # noqa: E402
import languages  # noqa: E402

PATIENCE_S = 300
# How a program is run, in the directory where it lies.
COMMANDS = {
    "curl": ["sh example.sh"],
    "python": [f"{sys.executable} -B example.py"],
    "typescript": ["cp example.mts example.mjs", "node example.mjs"],  # it contains no types
    "java": ["java Example.java"],
    "go": ["go run example.go"],
    "php": ["php example.php"],
    "csharp": ["mcs -r:System.Net.Http Example.cs", "mono Example.exe"],
}
# In this order each has what it needs.
FIRST = ["registerEvent", "registerFile", "requestCertification", "getCertification"]


class Walk:
    def __init__(self, language, url, keys, directory):
        self.language, self.url, self.directory = language, url, pathlib.Path(directory)
        self.content_key, self.digest_key, self.test_key = keys  # two live ones, and a test key
        self.document = yaml.safe_load((ROOT / "docs/openapi.yaml").read_text(encoding="utf-8"))
        self.operations = {item[method]["operationId"]: (path, method, item)
                           for path, method, item in examples.operations_of(self.document)}
        self.file, self.write = next((file, write) for key, _, file, write in languages.LANGUAGES
                                     if key == language)
        self.values = {}
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "delivery-note.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)))

    def run(self, request, key):
        """Exit code, and what it printed."""
        (self.directory / self.file).write_text(self.write(request), encoding="utf-8")
        environment = {**os.environ, "CONSTANCIA_URL": f"{self.url}/v1", "CONSTANCIA_KEY": key}
        for command in COMMANDS[self.language]:
            done = subprocess.run(command, shell=True, cwd=self.directory, env=environment,
                                  capture_output=True, timeout=PATIENCE_S, check=False)
            if done.returncode:
                break
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def succeed(self, name, request, key):
        if request.saves:
            (self.directory / request.saves).unlink(missing_ok=True)
        code, printed, complaint = self.run(request, key)
        assert code == 0, f"{name}: {printed}{complaint}\n{self.write(request)}"
        if request.saves:
            assert (self.directory / request.saves).stat().st_size > 0, name
            return None
        body = printed
        if self.language != "curl":
            status, _, body = printed.partition(" ")
            assert status in ("200", "201", "202"), printed
        if name == "registerEvents":
            outcomes = [json.loads(line) for line in body.split("\n") if line]
            assert outcomes and all(one["http_status"] < 300 for one in outcomes), body
            return outcomes
        types = examples.answer_types(self.document, self.operations[name][2][self.operations[name][1]])
        if "application/x-ndjson" in types:
            return [json.loads(line) for line in body.split("\n") if line]
        return json.loads(body) if "application/json" in types else yaml.safe_load(body)

    def example(self, name):
        """What the operation's examples answered, the last of them."""
        path, method, item = self.operations[name]
        answer = None
        for request in examples.requests_of(self.document, path, method, item, self.values):
            digest = isinstance(request.json, dict) and "hash" in request.json
            live_key = self.digest_key if digest else self.content_key
            answered = self.succeed(name, request, self.test_key if path == "/notices" else live_key)
            answer = answer if digest else answered
        return answer

    def fetch(self, url):
        """With patience: some things are made a little later."""
        deadline = time.monotonic() + PATIENCE_S
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.content_key}"})
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.read()
            except urllib.error.HTTPError as refusal:
                assert refusal.code == 404 and time.monotonic() < deadline, refusal.read()
            time.sleep(0.3)

    def issue(self):
        self.values["event_id"] = self.example("registerEvent")["event_id"]
        assert self.example("registerFile")["sequence"] == 2
        self.values["certification_id"] = self.example("requestCertification")["certification_id"]
        deadline = time.monotonic() + PATIENCE_S
        address = f"{self.url}/v1/certifications/{self.values['certification_id']}"
        while json.loads(self.fetch(address))["status"] == "processing":
            assert time.monotonic() < deadline
            time.sleep(0.3)
        return self.example("getCertification")

    def remember(self, issued):
        link = urllib.parse.urlsplit(issued["report_url"])
        self.values |= {name: values[0] for name, values in urllib.parse.parse_qs(link.query).items()}
        self.values |= {"name": link.path.rpartition("/")[2], "code": issued["verification_code"]}
        (self.directory / "evidence.zip").write_bytes(self.fetch(issued["evidence_url"]))
        for kind in ("event", "certification"):
            self.fetch(f"{self.url}/v1/{kind}s/{self.values[kind + '_id']}/evidence-record")

    def refuse(self):
        """A refusal makes the program fail, and its reason is shown."""
        path, method, item = self.operations["getChannel"]
        request, = examples.requests_of(self.document, path, method, item)
        code, printed, complaint = self.run(request, "svc_test_none")
        assert code != 0 and "invalid_key" in printed + complaint, (code, printed, complaint)

    def all(self):
        """How many operations there are."""
        self.remember(self.issue())
        for name in self.operations:
            if name not in FIRST:
                self.example(name)
        self.refuse()
        return len(self.operations)


if __name__ == "__main__":
    chosen, address, *given, folder = sys.argv[1:]
    count = Walk(chosen, address, given, folder).all()
    print(f"{chosen}: the examples of {count} operations")
