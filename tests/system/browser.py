"""Chromium, driven through its WebDriver interface."""

import base64
import contextlib
import http.client
import json
import os
import subprocess
import tempfile
import urllib.error
import urllib.request

import pytest

from client import PATIENCE, eventually, free_port

CHROMIUM = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage", "--disable-extensions", "--disable-breakpad"]
# Without the script of Debian's package before it, which takes a third of the time of a start.
PROGRAM = "/usr/lib/chromium/chromium"
# Pairs of a language and whether scripts run. `make test` takes two, which have both languages and both ways.
WAYS = [pytest.param(language, script, marks=() if (language == "en") == script else pytest.mark.thorough)
        for language in ("en", "es") for script in (True, False)]
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, directory, language="en", script=True):
        self.port, self.scripted, self.media = free_port(), script, ""
        self.process = subprocess.Popen(["chromedriver", f"--port={self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self.is_ready, "chromedriver answers")
        options = {"args": [*CHROMIUM, f"--user-data-dir={directory}", f"--lang={language}"],
                   "prefs": {"intl.accept_languages": language,
                             "profile.managed_default_content_settings.javascript":
                                 1 if script else 2}}
        if os.path.exists(PROGRAM):
            options["binary"] = PROGRAM
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{answer['sessionId']}"
        self.visited = set()

    def is_ready(self):
        try:
            return self.ask("GET", "/status")["ready"]
        except OSError:
            return False

    def ask(self, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5 * PATIENCE) as answer:
            return json.load(answer)["value"]

    def lives(self):
        try:
            return bool(self.url())
        except (OSError, http.client.HTTPException):
            return False

    def open(self, url):
        self.visited.add("/".join(url.split("/")[:3]))
        self.ask("POST", f"{self.session}/url", {"url": url})

    def url(self):
        return self.ask("GET", f"{self.session}/url")

    def find(self, selector):
        found = self.ask("POST", f"{self.session}/element",
                         {"using": "css selector", "value": selector})
        return f"{self.session}/element/{found[ELEMENT]}"

    def text(self, selector="main"):
        return self.ask("GET", f"{self.find(selector)}/text")

    def value(self, selector):
        """The current value of a field; also where pages have no script."""
        return self.ask("GET", f"{self.find(selector)}/property/value")

    def type(self, selector, text):
        self.ask("POST", f"{self.find(selector)}/value", {"text": text})

    def clear(self, selector):
        self.ask("POST", f"{self.find(selector)}/clear", {})

    def accept(self):
        """What a page asks before it does something, once it asks."""
        self.until(lambda: self.ask("GET", f"{self.session}/alert/text"), "the page asks")
        self.ask("POST", f"{self.session}/alert/accept", {})

    def click(self, selector):
        self.ask("POST", f"{self.find(selector)}/click", {})

    def run(self, script, *arguments):
        return self.ask("POST", f"{self.session}/execute/sync",
                        {"script": script, "args": list(arguments)})

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)", selector)

    def has(self, selector):
        return self.run("return document.querySelector(arguments[0]) !== null", selector)

    def until(self, question, what, patience=PATIENCE):
        """The first true answer. While one page is replaced by the next, there may be no answer."""
        def answer():
            with contextlib.suppress(urllib.error.HTTPError):
                return question()
        return eventually(answer, what, patience)

    def expect(self, selector, words, patience=PATIENCE):
        """The page that follows a click, once it says what the page before did not."""
        self.until(lambda: words in " ".join(self.texts(selector)), f"{selector} says '{words}'", patience)

    def wait_for(self, selector, patience=PATIENCE):
        """The page that follows a click, once it has what the page before had not."""
        self.until(lambda: self.has(selector), f"there is {selector}", patience)

    def choose(self, selector, value):
        """An option of a select, as a reader does it; also where pages have no script."""
        self.click(f"{selector} option[value='{value}']")

    def add_authenticator(self):
        """A virtual device: it keeps passkeys, and reports that its user is present and verified."""
        self.ask("POST", f"{self.session}/webauthn/authenticator",
                 {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
                  "isUserVerified": True, "isUserConsenting": True})

    def cookies(self):
        return {cookie["name"]: cookie for cookie in self.ask("GET", f"{self.session}/cookie")}

    def complaints(self):
        """What its console has said since the last call: errors, refusals of a policy, what is not found."""
        said = self.ask("POST", f"{self.session}/se/log", {"type": "browser"})
        return [f"{one['level']}: {one['message']}" for one in said]

    def picture(self):
        """The whole page as PNG."""
        shot = self.ask("POST", f"{self.session}/goog/cdp/execute",
                        {"cmd": "Page.captureScreenshot", "params": {"captureBeyondViewport": True}})
        return base64.b64decode(shot["data"])

    def emulate(self, width, scheme, height=900):
        """A screen so wide, of a visitor who likes it light or dark."""
        for command, parameters in (
                ("Emulation.setDeviceMetricsOverride",
                 {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
                ("Emulation.setEmulatedMedia",
                 {"media": self.media, "features": [{"name": "prefers-color-scheme", "value": scheme}]})):
            self.ask("POST", f"{self.session}/goog/cdp/execute",
                     {"cmd": command, "params": parameters})

    def devtools(self, command, **parameters):
        return self.ask("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def keys(self, text):
        """Typed where the reader is, as with a keyboard alone."""
        found = self.ask("GET", f"{self.session}/element/active")
        self.ask("POST", f"{self.session}/element/{found[ELEMENT]}/value", {"text": text})

    def printed(self):
        """What its printed page has, as PDF."""
        return base64.b64decode(self.ask("POST", f"{self.session}/print", {}))

    def forget(self):
        """Becomes as it was when it started: a window without a history, no cookie, cache and permission, and nothing
        stored by an origin that was opened. The clipboard stays, and which links were visited."""
        with contextlib.suppress(urllib.error.HTTPError):  # there is seldom one
            self.ask("POST", f"{self.session}/alert/dismiss", {})
        self.devtools("Network.clearBrowserCookies")
        self.devtools("Network.clearBrowserCache")
        self.devtools("Browser.resetPermissions")
        for origin in self.visited:
            self.devtools("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
        self.visited.clear()
        old = self.ask("GET", f"{self.session}/window/handles")
        new = self.ask("POST", f"{self.session}/window/new", {"type": "tab"})["handle"]
        for handle in old:
            self.ask("POST", f"{self.session}/window", {"handle": handle})
            self.ask("DELETE", f"{self.session}/window")
        self.ask("POST", f"{self.session}/window", {"handle": new})
        self.devtools("Page.bringToFront")  # else nothing in it has the focus
        self.complaints()
        self.media = ""

    def close(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            self.ask("DELETE", self.session)
        self.process.terminate()
        self.process.wait()


class Browsers:
    """One for each language, with and without script. A start costs as much as a hundred pages."""

    def __init__(self, directory):
        self.directory, self.kept = directory, {}

    @contextlib.contextmanager
    def lend(self, *kind):
        """One that knows nothing of what was done with it before."""
        browser = self.kept.pop(kind, None)
        if browser and not browser.lives():
            browser.close()
            browser = None
        browser = browser or Browser(tempfile.mkdtemp(dir=self.directory), *kind)
        yield browser
        try:
            browser.forget()
        except (OSError, ValueError, http.client.HTTPException):  # as after a failed test
            browser.close()
        else:
            if other := self.kept.pop(kind, None):
                other.close()
            self.kept[kind] = browser

    def close(self):
        for browser in self.kept.values():
            browser.close()


@pytest.fixture(scope="session")
def browsers(tmp_path_factory):
    kept = Browsers(tmp_path_factory.mktemp("browsers"))
    yield kept
    kept.close()


@pytest.fixture
def browse(browsers):
    with contextlib.ExitStack() as lent:
        yield lambda language, script=True: lent.enter_context(browsers.lend(language, script))
