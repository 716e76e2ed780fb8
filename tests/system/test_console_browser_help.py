"""What a browser makes easier in the console, and what it must not make harder: automatic progress, the
reader's own time, copying, the keyboard alone, paper, and a small screen in either language."""

import hashlib
import re
import secrets
import subprocess
import threading

import pytest

import stores  # finds tests/support
import timestamp_authority
from client import eventually
from test_console_browser import MONEY, WORDS, spend

TAB, ENTER, DOWN = "\ue004", "\ue007", "\ue015"


def come_in(service, browser, account, language="en"):
    email = f"{secrets.token_hex(6)}@example.org"
    service.admin("user", "invite", "--account", account, "--email", email, "--role", "owner", "--language", language)
    browser.open(service.admin("user", "link", email)["url"])
    browser.click("main button")
    browser.expect("h1", WORDS[language]["overview"])
    return email


@pytest.fixture
def authority(tmp_path):
    """Of timestamps; it gives none until its mode is changed."""
    server = timestamp_authority.Server(timestamp_authority.Certificates(str(tmp_path / "authority")), mode="error")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_certification_goes_on_before_the_readers_eyes(start, authority, browse):
    """It waits for the seal of its events; the page is not requested again."""
    sealing = start(tsa__url=authority.url, tsa__kind="non_qualified", tsa__roots=authority.roots,
                    tsa__allow_networks="127.0.0.0/8", tsa__policy="2.25.1", seal__interval="1s")
    channel = sealing.new_channel(credits=5)
    browser = browse("en")
    come_in(sealing, browser, channel.account_id)
    channel.live.register({"number": 1}).expect(201)
    made = channel.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
    browser.open(f"{sealing.public_url}/console/certifications/{made}")
    browser.wait_for("[data-refresh] progress")
    assert not browser.has("main section table")
    authority.mode = "good"
    browser.wait_for("body:not(:has([data-refresh])) main section table", 300)
    assert browser.url().endswith(made) and ".pdf" in browser.text("main section table")
    channel.close()


def test_times_stand_in_the_readers_zone_too(service, browse):
    account = service.new_account(credits=5)
    browser = browse("en")
    browser.devtools("Emulation.setTimezoneOverride", timezoneId="America/Bogota")
    come_in(service, browser, account)
    browser.open(f"{service.public_url}/console/sessions")
    times = browser.texts("main time")
    assert times and all(re.search(r"UTC \(.+GMT-5\)$", time) for time in times), times
    hours = [[int(hour) for hour in re.findall(r"(\d\d):\d\d", time)] for time in times]
    assert all(utc % 12 == (own + 5) % 12 for utc, own in hours), times
    assert "in your time zone" in browser.text("footer")
    browser.devtools("Emulation.setTimezoneOverride", timezoneId="UTC")
    browser.open(f"{service.public_url}/console/sessions")
    assert not browser.has("time .zone") and "in your time zone" not in browser.text("footer")


@pytest.mark.parametrize("language, before, after", [("en", "Copy", "Copied"), ("es", "Copiar", "Copiado")])
def test_a_hash_is_copied_whole(service, browse, language, before, after):
    channel = service.new_channel(credits=5)
    event = channel.test.register({"number": 1}).expect(201).json["event_id"]
    browser = browse(language)
    come_in(service, browser, channel.account_id, language)
    browser.devtools("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.open(f"{service.public_url}/console/events/{event}")
    hashes = browser.texts("code.hash")
    assert len(hashes) > 3 and len(browser.texts("code.hash + button.copy")) == len(hashes)
    assert browser.text("code.hash + button.copy") == before
    browser.click("code.hash + button.copy")
    browser.until(lambda: browser.text("code.hash + button.copy") == after, "it says so")
    assert browser.run("return navigator.clipboard.readText()") == hashes[0]
    channel.close()


ON_RECORD = {"en": ("Is this file on record?", "No event of this selection has this digest."),
             "es": ("¿Consta este fichero?", "Ningún evento de esta selección tiene este resumen.")}


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("language", ["en", "es"])
def test_a_file_is_looked_up_and_not_sent(service, browse, tmp_path, language, script):
    """Its digest is computed in the browser, or entered."""
    title, none = ON_RECORD[language]
    channel = service.new_channel(credits=5)
    event = channel.live.register_file(b"on record").expect(201).json
    browser = browse(language, script)
    come_in(service, browser, channel.account_id, language)
    for content, expected in (b"on record", True), (b"not on record", False):
        for name in "sha256", "sha512":
            digest = hashlib.new(name, content).hexdigest()
            browser.open(f"{service.public_url}/console/events")
            assert (title in browser.text()) is script
            if script:
                path = tmp_path / "file.bin"
                path.write_bytes(content)
                browser.choose("#lookup_algorithm", "SHA-512" if name == "sha512" else "SHA-256")
                browser.type("#lookup_file", str(path))
            else:
                browser.type("#hash", digest)
                browser.click("form[role=search] button")
            browser.until(lambda: f"hash={digest}" in browser.url(), "the digest was looked up")
            assert "lookup_file" not in browser.url()
            is_found = expected and name == "sha256"
            assert browser.has(f"a[href='/console/events/{event['event_id']}']") is is_found
            assert (none in browser.text()) is not is_found
    assert not browser.complaints()
    channel.close()


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_form_is_filled_and_sent_by_the_keyboard_alone(service, browse, language):
    account, guest = service.new_account(), f"{secrets.token_hex(6)}@example.org"
    browser = browse(language)
    come_in(service, browser, account, language)
    browser.open(f"{service.public_url}/console/users")

    def tab_to(wanted):
        for _ in range(60):
            browser.keys(TAB)
            if browser.run("const e = document.activeElement; return e.id || e.className") == wanted:
                return
        pytest.fail(f"Tab does not lead to {wanted}")
    tab_to("skip")
    browser.keys(ENTER)
    browser.until(lambda: browser.run("return location.hash") == "#content", "the page is at its content")
    tab_to("invite_email")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none", "one sees where one is"
    browser.keys(guest)
    tab_to("invite_role")
    browser.keys(DOWN)
    chosen = browser.value("#invite_role")
    assert chosen == "accountant"
    tab_to("main")
    browser.keys(ENTER)
    browser.expect("#messages", WORDS[language]["done"])
    (added,) = [one for one in service.admin("user", "list", "--account", account)["data"] if one["email"] == guest]
    assert added["role"] == chosen


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_printed_page_has_what_is_to_be_read_alone(service, browse, tmp_path, language):
    words = WORDS[language]
    channel = service.new_channel(credits=5)
    event = channel.test.register({"number": 1}).expect(201).json
    browser = browse(language)
    email = come_in(service, browser, channel.account_id, language)
    for page, told in (("users", email), (f"events/{event['event_id']}", event["event_id"])):
        browser.open(f"{service.public_url}/console/{page}")
        (tmp_path / "page.pdf").write_bytes(browser.printed())
        text = subprocess.run(["pdftotext", "-layout", tmp_path / "page.pdf", "-"], check=True, capture_output=True,
                              text=True).stdout
        assert told in text, text
        for gone in ("webhooks", "acts", "passkeys", "money"):
            assert words[gone] not in text, (page, gone)
        browser.devtools("Emulation.setEmulatedMedia", media="print")
        shown = browser.run("""return [...document.querySelectorAll("nav, form, button, footer, .skip")]
            .filter(one => getComputedStyle(one).display !== "none" && one.getClientRects().length)
            .map(one => one.outerHTML.slice(0, 100))""")
        assert shown == [], page
        browser.devtools("Emulation.setEmulatedMedia", media="")
    channel.close()


@pytest.mark.parametrize("language", ["en", "es"])
def test_no_page_is_wider_than_a_phone(service, browse, language):
    account = service.new_account(credits=5)
    browser = browse(language)
    come_in(service, browser, account, language)
    channel = service.new_channel(account_id=account)
    event = channel.test.register({"reference": "R" * 80}, "r" * 200).expect(201).json["event_id"]
    asked = channel.test.get(f"/v1/events/{'x' * 300}?limit={'1' * 400}").headers["X-Request-Id"]
    channel.close()
    eventually(lambda: service.admin("request", "list", "--account", account, "--request", asked)["data"],
               "the request is logged")
    endpoint = service.admin("webhook", "create", "--account", account, "--url",
                             f"http://127.0.0.1:9/{'long' * 100}")
    service.secrets.add(endpoint["secret"])
    pages = (*MONEY, spend(service, account), "", "users", "sessions", "acts", "account", "passkeys", "again", "nothing",
             "try", "channels", "keys", "limits", "webhooks", "events", f"events/{event}", "requests", "log",
             f"channels/{channel.id}", f"webhooks/{endpoint['endpoint_id']}", "certifications/new")
    browser.emulate(390, "light", 844)
    for page in pages:
        browser.open(f"{service.public_url}/console/{page}")
        assert browser.run("return document.documentElement.lang") == language
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), page
