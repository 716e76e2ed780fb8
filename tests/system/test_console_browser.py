"""The console in a real browser: in both languages, with and without script."""

import re
import secrets

import pytest

from browser import WAYS
from client import eventually
from console import invited
from mail_server import MailServer

WORDS = {
    "en": {"enter": "Open the console", "overview": "Overview", "users": "Users", "sessions": "Sessions",
           "acts": "Audit log", "channels": "Channels", "keys": "Keys", "limits": "Limits",
           "webhooks": "Webhooks", "requests": "Requests", "opened": "The channel is open", "sealed": "A new version",
           "once": "shown only once",
           "done": "The user was invited.", "out": "You are signed out."},
    "es": {"enter": "Abrir la consola", "overview": "Resumen", "users": "Usuarios", "sessions": "Sesiones",
           "acts": "Registro de auditoría", "channels": "Canales", "keys": "Claves", "limits": "Límites",
           "webhooks": "Webhooks", "requests": "Peticiones",
           "opened": "El canal está abierto", "sealed": "una nueva versión",
           "once": "una sola vez", "done": "Se ha invitado al usuario.", "out": "Ha cerrado la sesión."},
}

WORDS["en"] |= {"account": "Account settings", "passkeys": "Passkeys"}
WORDS["es"] |= {"account": "Ajustes de la cuenta", "passkeys": "Claves de acceso"}
WORDS["en"] |= {"money": "Billing", "usage": "Usage", "certifications": "Certifications"}
WORDS["es"] |= {"money": "Facturación", "usage": "Consumo", "certifications": "Certificaciones"}
WORDS["en"] |= {"try": "Try it", "programs": "The same call from a program"}
WORDS["es"] |= {"try": "Probar", "programs": "La misma llamada desde un programa"}
MONEY = ("money", "money/purchases", "money/movements", "money/history", "usage", "certifications")


def spend(service, account):
    """Something on each page of MONEY."""
    service.admin("account", "billing", account, "--country", "ES")
    pack = service.admin("pack", "create", "--account", account, "--name", "N" * 60, "--credits", "5", "--price",
                         "1.00", "--currency", "EUR")["pack_id"]
    service.admin("purchase", "create", "--account", account, "--pack", pack)
    service.admin("threshold", "create", "--account", account, "--credits", "1")
    service.admin("topup", "set", "--account", account, "--threshold", "1", "--pack", pack)
    channel = service.new_channel(account_id=account)
    channel.live.register({"number": 1}).expect(201)
    channel.test.register({"number": 1}).expect(201)
    done = channel.test.certified(seq_from=1, seq_to=1)["certification_id"]
    channel.close()
    return f"certifications/{done}"


def work_through_a_channel(service, browser, words):
    """Opens one, seals a version, makes a key."""
    browser.open(f"{service.public_url}/console/channels")
    browser.type("#open_name", "Señas & <b>one</b>")
    browser.type("#open_declarant", "Anna")
    browser.click("form[action='/console/channels/open'] .main")
    browser.expect("#messages", words["opened"])
    browser.click("tbody th a")
    browser.expect("h1", "Señas & <b>one</b>")
    browser.type("#seal_description", "What it is for")
    if browser.scripted:
        browser.run("window.confirm = () => true")
    browser.click("form[action$='/seal'] .main")
    browser.expect("#messages", words["sealed"])
    assert browser.texts("ins") == ["What it is for"]
    browser.open(f"{service.public_url}/console/keys")
    browser.click("form[action='/console/keys/make'] .main")
    browser.wait_for(".secret code")
    assert words["once"] in browser.text()
    service.secrets.add(browser.text(".secret code"))


def try_it(service, browser, words):
    """Sends the example, and then something that is no JSON."""
    browser.open(f"{service.public_url}/console/try")
    browser.click("form[action='/console/try/send'] .main")
    browser.expect("main", words["programs"])
    assert "HTTP 201" in browser.text("main dl")
    assert f"{service.public_url}/v1/events" in browser.text("[data-program=curl]")
    if browser.scripted:
        assert len(browser.texts(".program + button.copy")) == 2
        assert browser.run("return document.activeElement.id") == "said"
    browser.type("#content_typed", "{")
    browser.click("form[action='/console/try/send'] .main")
    browser.expect("main dl", "HTTP 400")
    assert browser.value("#content_typed").endswith("{")
    browser.open(f"{service.public_url}/console/try")
    browser.click("form[action='/console/try/send'] .main")
    browser.expect("main", words["programs"])
    browser.click("section#said a.button")
    browser.until(lambda: "/console/events/evt_" in browser.url(), "the event's page")


@pytest.mark.parametrize("language, script", WAYS)
def test_every_page_is_walked_and_used(service, browse, language, script):
    words = WORDS[language]
    account = service.new_account(credits=1234567)
    email, guest = (f"{secrets.token_hex(6)}@example.org" for _ in range(2))
    invited(service, account, email)
    service.admin("account", "set", account, "--language", language, "--name", "Señas & <b>Co</b>")
    browser = browse(language, script)
    browser.open(service.admin("user", "link", email)["url"])
    assert browser.text("h1") == words["enter"]
    browser.click("main button")
    browser.wait_for("nav")
    # A user's own language goes before the browser's.
    if browser.text("h1") != words["overview"]:
        browser.click("form.language button")
    browser.expect("h1", words["overview"])
    assert ("1.234.567" if language == "es" else "1,234,567") in browser.text("dl.figures")
    assert "Señas & <b>Co</b>" in browser.text("header")
    for page in ("channels", "keys", "limits", "webhooks", "users", "sessions", "acts", "money", "usage",
                 "certifications", "account", "passkeys", "requests", "try"):
        browser.click(f"nav a[href='/console/{page}']")
        browser.expect("h1", words[page])
        assert browser.text("nav [aria-current=page]") == words[page]
    work_through_a_channel(service, browser, words)
    try_it(service, browser, words)
    browser.open(f"{service.public_url}/console/users")
    browser.type("#invite_email", guest)
    browser.choose("#invite_role", "accountant")
    browser.click("form[action='/console/users/invite'] button")
    browser.expect("#messages", words["done"])
    assert guest in browser.text("main")
    # With its script too, the form was sent once.
    assert sum(guest in row for row in browser.texts("tbody tr")) == 1
    browser.click("form[action='/console/leave'] button")
    browser.expect("#messages", words["out"])
    browser.open(f"{service.public_url}/console/users")
    assert browser.url().endswith("/console/sign-in")


@pytest.mark.parametrize("language, script", WAYS)
def test_a_fresh_sign_in_by_link_leads_back_to_what_was_typed(start, browse, language, script):
    server = MailServer()
    service, words = start(**server.settings()), WORDS[language]
    email, guest = (f"{secrets.token_hex(6)}@example.org" for _ in range(2))
    service.admin("user", "invite", "--account", service.new_account(), "--email", email, "--role", "owner",
                  "--language", language)
    browser = browse(language, script)
    browser.open(service.admin("user", "link", email)["url"])
    browser.click("main button")
    browser.expect("h1", words["overview"])
    assert service.stop() == 0
    service.store.change("UPDATE sessions SET signed_in_at = signed_in_at - 660000000")
    service.start()
    browser.open(f"{service.public_url}/console/users")
    browser.type("#invite_email", guest)
    browser.choose("#invite_role", "accountant")
    browser.click("form[action='/console/users/invite'] button")
    browser.wait_for("form[action='/console/again']")
    browser.click("form[action='/console/again'] .main")
    link = eventually(lambda: [found for message in server.messages if email in str(message["To"]) for found in
                               re.findall(r"\S+/console/enter\?link=[0-9a-f]{64}", message.get_content())],
                      "the link has arrived")[-1]
    browser.open(link)
    browser.click("main .main")
    browser.expect("h1", words["users"])
    assert browser.value("#invite_email") == guest and browser.value("#invite_role") == "accountant"
    browser.click("form[action='/console/users/invite'] button")
    browser.expect("#messages", words["done"])
    server.close()


def test_a_page_obeys_its_policy_and_the_keyboard(service, browse):
    account = service.new_account(credits=5)
    email = f"{secrets.token_hex(6)}@example.org"
    invited(service, account, email)
    browser = browse("en")
    browser.open(service.admin("user", "link", email)["url"])
    browser.click("main button")
    browser.wait_for("nav")
    money = (*MONEY, spend(service, account))
    channel = service.new_channel(account_id=account)
    endpoint = service.admin("webhook", "create", "--account", account, "--url", "http://127.0.0.1:9/browser")
    service.secrets.add(endpoint["secret"])
    work = ("try", "channels", "keys", "limits", "webhooks", "requests", f"channels/{channel.id}",
            f"webhooks/{endpoint['endpoint_id']}")
    channel.close()
    for page in ("", "users", "sessions", "acts", "account", "passkeys", "again", "nothing", *work, *money):
        browser.open(f"{service.public_url}/console/{page}")
        refused = browser.run("""
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            document.body.append(script);
            const style = document.createElement("style");
            style.textContent = "body { display: none }";
            document.head.append(style);
            return [window.ran === true, getComputedStyle(document.body).display]""")
        assert refused == [False, "block"], page
        unnamed = browser.run("""
            return [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, nav, table")]
              .filter(one => !(one.labels?.length || one.ariaLabel || one.textContent?.trim() ||
                               one.querySelector("caption"))).map(one => one.outerHTML)""")
        assert unnamed == [], page
        assert browser.run("return document.querySelectorAll('main, h1').length") == 2, page
        twice = browser.run("""
            const ids = [...document.querySelectorAll("[id]")].map(one => one.id);
            return ids.filter((id, place) => ids.indexOf(id) !== place)""")
        assert twice == [], page
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), page
    browser.emulate(390, "dark", 844)
    for page in ("", "users", "sessions", "acts", "account", "passkeys", *work, *money):
        browser.open(f"{service.public_url}/console/{page}")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), page
    browser.type("body", "\ue004")
    assert browser.run("return document.activeElement.className") == "skip"
