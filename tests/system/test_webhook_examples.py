"""The examples of docs/integrate/webhooks.md: the page has the text of these files, and each does what it says
wherever its interpreter or compiler is installed."""

import os
import pathlib
import shutil
import subprocess
import time

import pytest

from client import ROOT
from hooks import Owner, Receiver
from webhook_receiver import signature

EXAMPLES = ROOT / "docs" / "examples" / "webhooks"
SECRET = "whsec_" + "0123456789abcdef" * 4
OTHER = "whsec_" + "fedcba9876543210" * 4
BODY = '{"id":"ntc_1","data":{"text":"ñ \\n  spaces"}}'.encode()

# How each is made, if at all, and started.
LANGUAGES = {
    "verify.sh": (None, ["sh", "{source}"]),
    "verify.py": (None, ["python3", "{source}"]),
    "verify.mjs": (None, ["node", "{source}"]),
    "verify.php": (None, ["php", "{source}"]),
    "Verify.java": (["javac", "-d", "{folder}", "{source}"], ["java", "-cp", "{folder}", "Verify"]),
    "verify.go": (["go", "build", "-o", "{program}", "{source}"], ["{program}"]),
    "verify.c": (["gcc", "-Wall", "-Wextra", "-Werror", "-o", "{program}", "{source}", "-lcrypto"],
                 ["{program}"]),
}


@pytest.fixture(scope="module")
def service(start):
    return start()


@pytest.fixture
def delivered(service, program):
    """A delivery of the service, with the endpoint's secret: as old as a receiver wants it, however
    long it took to make the program."""
    del program
    with Receiver() as receiver:
        owner = Owner(service)
        endpoint = owner.endpoint(receiver.url)
        owner.cause()
        return endpoint["secret"], receiver.next()


# A Go compiler that has compiled nothing yet takes a minute.
@pytest.fixture(scope="module", params=[pytest.param(name, marks=pytest.mark.thorough if name.endswith(".go") else ())
                                        for name in LANGUAGES])
def program(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("example")
    places = {"source": EXAMPLES / request.param, "folder": folder, "program": folder / "verify"}
    build, run = ([word.format(**places) for word in words] if words else None
                  for words in LANGUAGES[request.param])
    needed = (build or run)[0]
    if not shutil.which(needed):
        pytest.skip(f"{needed} is not installed")
    if build:
        environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": ""}
        subprocess.run(build, check=True, capture_output=True, env=environment, timeout=300)
    if request.param.endswith(".go") and "CLOCK_OFFSET_SECONDS" in os.environ:
        pytest.skip("tests/clock does not move the clock of a Go program")
    return run


def verdict(program, secret, timestamp, given, body):
    done = subprocess.run([*program, timestamp, given], input=body, capture_output=True,
                          env={**os.environ, "WEBHOOK_SECRET": secret}, timeout=60, check=False)
    first = done.stdout.decode().split(":")[0].strip()
    assert (first, done.returncode) in (("valid", 0), ("invalid", 1)), done
    return first


def test_an_example_takes_good_signatures_and_nothing_else(program, delivered):
    now = str(int(time.time()))
    good = "v1=" + signature(SECRET, now, BODY)
    other = "v1=" + signature(OTHER, now, BODY)
    for given in (good, f"{good},{other}", f"{other},{good}"):
        assert verdict(program, SECRET, now, given, BODY) == "valid", given
    for given in (other, "", "v1=", good[:-1], good[3:], good.replace("v1=", "v2="), good + "0",
                  f"{other},{other}"):
        assert verdict(program, SECRET, now, given, BODY) == "invalid", given
    assert verdict(program, SECRET, now, good, BODY + b" ") == "invalid"
    assert verdict(program, SECRET, now, good, b"") == "invalid"
    for seconds in (-400, 400):
        then = str(int(time.time()) + seconds)
        assert verdict(program, SECRET, then, "v1=" + signature(SECRET, then, BODY),
                       BODY) == "invalid"
    for timestamp in ("", "now", now + "x", "-" + now):
        given = "v1=" + signature(SECRET, timestamp, BODY)
        assert verdict(program, SECRET, timestamp, given, BODY) == "invalid"
    secret, delivery = delivered
    assert verdict(program, secret, delivery.headers["X-SVC-Timestamp"],
                   delivery.headers["X-SVC-Signature"], delivery.body) == "valid"


def test_the_documentation_shows_the_examples_as_they_are():
    text = (ROOT / "docs/integrate/webhooks.md").read_text(encoding="utf-8")
    present = {path.name for path in EXAMPLES.iterdir()}
    assert present == set(LANGUAGES)
    for name in LANGUAGES:
        source = pathlib.Path(EXAMPLES / name).read_text(encoding="utf-8")
        assert f"\n{source}```\n" in text, f"docs/integrate/webhooks.md does not show {name} unchanged"
