"""Error pages of the console: in its design, in the user's language, with a link to continue."""

import re
import secrets
import socket

import pytest

from client import eventually
from console import Visitor, invited
from markup import Page

SAME = {"Sec-Fetch-Site": "same-origin"}
RATE = 10  # of which forms have a tenth, and four seconds of it at once


def spaniard(service, account):
    """Whose console is in Spanish, and whose browser asks for English."""
    email = f"{secrets.token_hex(6)}@example.org"
    service.admin("user", "invite", "--account", account, "--email", email, "--role", "owner", "--language", "es")
    return Visitor(service, "en").enter(service.admin("user", "link", email)["url"])


def looks_like_the_console(visitor, status, language="es"):
    assert visitor.status == status, visitor.text()
    page = Page(visitor.body)
    assert page.language == language and visitor.headers["content-language"] == language
    assert "/assets/console.css" in visitor.body
    assert "/console/" in visitor.links() or any(form.action == "/console/sign-in" for form in page.forms)
    assert 'action="/verify"' not in visitor.body and "Retry-After" not in visitor.body
    assert "form-action 'self'" in visitor.headers["content-security-policy"]
    return page


def told_seconds(visitor):
    """Those of the page, which are those of the header."""
    seconds = int(visitor.headers["retry-after"])
    assert seconds >= 1 and re.search(rf"\b{seconds} s\b", visitor.text()), visitor.text()


def until_refused(ask, most=200):
    """By the rate, which on a slow machine lets some more through."""
    for _ in range(most):
        if ask().status == 429:
            return
    raise AssertionError(f"{most} were taken")


def test_a_form_that_comes_too_soon_is_shown_again(start):
    service = start(rate__live=RATE)
    account = service.new_account()
    visitor = spaniard(service, account)
    guest = f"{secrets.token_hex(6)}@example.org"
    own = visitor.get("/console/users").own_fields()
    language = {**own, "language": "es", "next": "/console/users"}

    def is_refused():
        until_refused(lambda: visitor.post("/console/language", language, **SAME))
        visitor.post("/console/users/invite", {**own, "email": guest, "role": "accountant"}, **SAME)
        return visitor.status == 429  # and was not the one for which there was a turn again
    eventually(is_refused, "it is refused")
    page = looks_like_the_console(visitor, 429)
    assert "<nav" in visitor.body and 'role="alert"' in visitor.body
    told_seconds(visitor)
    (form,) = [form for form in page.forms if form.action == "/console/users/invite"]
    assert form.values()["email"] == guest and form.values()["role"] == "accountant"
    assert guest not in str(service.admin("user", "list", "--account", account))


def test_a_sign_in_that_comes_too_soon_keeps_the_address(start):
    service = start(rate__live=RATE)
    visitor = Visitor(service, "es").get("/console/sign-in")
    fields = {"token": visitor.token(), "email": "somebody@example.org"}
    until_refused(lambda: visitor.post("/console/sign-in", fields, **SAME))
    looks_like_the_console(visitor, 429)
    told_seconds(visitor)
    assert 'value="somebody@example.org"' in visitor.body


def test_pages_beyond_the_rate_are_refused_in_the_language_of_the_cookie(start):
    service = start(rate__live=1)
    visitor = spaniard(service, service.new_account())
    until_refused(lambda: visitor.get("/console/users"))
    looks_like_the_console(visitor, 429)
    assert "<nav" not in visitor.body, "no one has asked who it is"
    told_seconds(visitor)
    # A form gets no page either then; it leads to the page that it was on.
    for _ in range(100):
        visitor.post("/console/users/invite", {"email": "x"}, **SAME)
        if visitor.status == 429 and "<nav" not in visitor.body:
            break
    looks_like_the_console(visitor, 429)
    assert "<nav" not in visitor.body and "/console/users" in visitor.links()
    until_refused(lambda: Visitor(service, "es").get("/console/sign-in", Accept="application/json"))


def test_a_user_has_one_rate_from_wherever_he_comes(start):
    service = start(rate__live=RATE, service__trusted_proxies="127.0.0.0/8")
    account = service.new_account()
    visitor = spaniard(service, account)
    own = visitor.get("/console/users").own_fields()
    statuses = []

    def send():
        visitor.post("/console/language", {**own, "language": "es", "next": "/console/users"},
                     **{"X-Forwarded-For": f"192.0.2.{len(statuses)}"}, **SAME)
        statuses.append(visitor.status)
        return visitor
    until_refused(send)
    assert statuses[:4] == [303] * 4, statuses
    looks_like_the_console(visitor, 429)
    other = spaniard(service, account)
    own = other.get("/console/users").own_fields()
    other.post("/console/language", {**own, "language": "es", "next": "/console/users"},
               **{"X-Forwarded-For": "192.0.2.200"}, **SAME)
    assert other.status == 303, "the rate of another user is separate"


@pytest.mark.parametrize("method, path, body, status", [
    ("PUT", "/console/users", None, 405), ("DELETE", "/console", None, 405), ("POST", "/console", "a=b", 405),
    ("POST", "/console/users/invite", "email=" + "x" * 400_000, 413)], ids=["put", "delete", "post", "large"])
def test_what_cannot_be_asked_for_is_told_by_the_console(service, method, path, body, status):
    visitor = spaniard(service, service.new_account())
    visitor.ask(method, path, body, **SAME, **{"Content-Type": "application/x-www-form-urlencoded"})
    looks_like_the_console(visitor, status)
    if status == 413:
        assert "/console/users" in visitor.links()


def test_what_takes_too_long_leads_back_to_its_form(start):
    """An endpoint takes the test notice and answers nothing; the request's deadline comes first."""
    service = start(http__deadline="5s", webhook__timeout="60s")
    account = service.new_account()
    visitor = spaniard(service, account)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        endpoint = service.admin("webhook", "create", "--account", account, "--url",
                                 f"http://127.0.0.1:{mute.getsockname()[1]}/")
        service.secrets.add(endpoint["secret"])
        page = f"/console/webhooks/{endpoint['endpoint_id']}"
        visitor.get(page)
        with pytest.raises(AssertionError):  # which no other page may be
            visitor.send(f"{page}/test")
    looks_like_the_console(visitor, 503)
    told_seconds(visitor)
    assert page in visitor.links() and re.search("inc_[0-9a-f]+", visitor.body)


def test_errors_of_a_signed_in_user_keep_the_navigation(service):
    visitor = spaniard(service, service.new_account())
    visitor.get("/console/nothing")
    looks_like_the_console(visitor, 404)
    assert "<nav" in visitor.body
    visitor.post("/console/users/invite", {"email": "x"}, **SAME)
    looks_like_the_console(visitor, 403)
    assert "<nav" in visitor.body and "/console/users" in visitor.links()
    assert Visitor(service, "es").get("/consoles").headers["content-type"] == "application/json"
