"""The verification page in a real browser (Chromium through its WebDriver interface)."""

import json
import subprocess
import urllib.request

import pytest

from client import eventually, free_port

CHROMIUM = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage"]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, directory, language="en"):
        self.port = free_port()
        self.process = subprocess.Popen(["chromedriver", f"--port={self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self.is_ready, "chromedriver answers")
        options = {"args": [*CHROMIUM, f"--user-data-dir={directory}", f"--lang={language}"],
                   "prefs": {"intl.accept_languages": language}}
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options}}})
        self.session = f"/session/{answer['sessionId']}"

    def is_ready(self):
        try:
            return self.ask("GET", "/status")["ready"]
        except OSError:
            return False

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def open(self, url):
        self.ask("POST", f"{self.session}/url", {"url": url})

    def url(self):
        return self.ask("GET", f"{self.session}/url")

    def find(self, selector):
        found = self.ask("POST", f"{self.session}/element",
                         {"using": "css selector", "value": selector})
        return f"{self.session}/element/{found[ELEMENT]}"

    def text(self, selector="main"):
        return self.ask("GET", f"{self.find(selector)}/text")

    def type(self, selector, text):
        self.ask("POST", f"{self.find(selector)}/value", {"text": text})

    def close(self):
        self.ask("DELETE", self.session)
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def browse(tmp_path):
    opened = []

    def open_one(language):
        opened.append(Browser(tmp_path / language, language))
        return opened[-1]
    yield open_one
    for browser in opened:
        browser.close()


@pytest.fixture
def issued(channel):
    channel.live.register({}).expect(201)
    return channel.live.certified(seq_from=1, seq_to=1)


@pytest.mark.parametrize("language, found", [
    ("en", "This certification was issued by this service"),
    ("es", "Esta certificación la emitió este servicio")])
def test_a_code_and_a_file_are_looked_up_and_the_file_is_not_sent(service, browse, issued, channel,
                                                                  tmp_path, language, found):
    browser = browse(language)
    browser.open(f"{service.public_url}/verify/{issued['verification_code']}")
    assert found in browser.text() and issued["certification_id"] in browser.text()

    report = channel.live.download(issued["reports"][0]["url"]).expect(200).body
    for name, body, expected in (("report.pdf", report, True), ("other.pdf", report + b" ", False)):
        path = tmp_path / name
        path.write_bytes(body)
        browser.open(f"{service.public_url}/verify")
        browser.type("#file", str(path))
        eventually(lambda: "sha256=" in browser.url(), "the digest was looked up")
        assert (issued["certification_id"] in browser.text()) is expected
