"""The account's settings in the console: whose page it is, the audit log of each change, and the requirement of
passkeys."""

import json
import re

import pytest

from authenticator import Passkey
from console import invited, new_address, signed_in

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def account(service):
    return service.new_account(credits=5)


@pytest.fixture
def owner(service, account):
    return signed_in(service, invited(service, account, new_address()))


BOUNDS = ("account_rate", "channels", "keys", "certifications_per_day")


def settings(service, account):
    shown = service.admin("account", "show", account)
    return {name: shown[name] for name in ("name", "email", "language", "passkeys_required")}


@pytest.mark.parametrize("language, title, done", [
    ("en", "Account settings", "The settings were saved."),
    ("es", "Ajustes de la cuenta", "Se han guardado los ajustes.")])
def test_an_owner_changes_name_address_and_language(service, account, owner, language, title, done):
    owner.get("/console/").send("/console/language", language=language)
    assert title in owner.get("/console/account").text()
    owner.send("/console/account/set", name="Señas <b>&</b> Co", email="books@example.org", language="es")
    assert owner.location == "/console/account?done=account_set"
    assert done in owner.follow().text() and 'value="Señas &lt;b&gt;&amp;&lt;/b&gt; Co"' in owner.body
    assert settings(service, account) == {"name": "Señas <b>&</b> Co", "email": "books@example.org", "language": "es",
                                          "passkeys_required": False}
    act = json.loads(owner.get("/console/acts.json?operation=account+set").body)[0]
    assert act["actor"] == "user" and act["after"]["account"]["email"] == "books@example.org", act
    assert act["before"]["account"]["name"] != act["after"]["account"]["name"] == "Señas <b>&</b> Co"
    owner.get("/console/account").send("/console/account/set", name="Plain", email="", language="en")
    assert owner.status == 303 and not settings(service, account)["email"]


def test_what_cannot_be_saved_is_said_and_changes_nothing(service, account, owner):
    before = settings(service, account)
    for fields in ({"email": "no address", "name": "New"}, {"language": "fr"}, {"passkeys": "perhaps"},
                   {"rate": "5"}, {"unpaid_limit": "5"}, *({name: "5"} for name in BOUNDS)):
        owner.get("/console/account").send("/console/account/set", **fields)
        assert owner.status == (403 if {"rate", "unpaid_limit", *BOUNDS} & set(fields) else 400), fields
        assert settings(service, account) == before
    owner.get("/console/account").send("/console/account/set", email="no address", name="New <i>")
    assert 'role="alert"' in owner.body and 'value="no address"' in owner.body and 'value="New &lt;i&gt;"' in owner.body


def test_the_bounds_of_the_account_are_shown(service, account, owner):
    service.admin("account", "set", account, "--channels", "7", "--keys", "1234", "--certifications-per-day", "9",
                  "--account-rate", "77")
    owner.get("/console/")
    owner.send("/console/language", language="en")
    page = re.sub(r"(<[^>]*>|\s)+", " ", owner.get("/console/account").body)
    for row in (r"Channels \d+ 7\b", r"Keys that are not revoked \d+ 1,234\b",
                r"Live certifications requested today \(UTC\) 0 9\b",
                r"all live keys together – 77\b"):
        assert re.search(row, page), row
    owner.send("/console/language", language="es")
    assert "Claves sin revocar" in owner.get("/console/account").body


def test_a_channel_beyond_the_bound_is_refused_on_the_page(service, account, owner):
    shown = service.admin("account", "show", account)["bounds"]
    service.admin("account", "set", account, "--channels", str(max(1, shown["channels"]["used"])))
    if not shown["channels"]["used"]:
        owner.get("/console/channels").send("/console/channels/open", name="One", declarant="Me", modality="content")
        assert owner.status == 303
    owner.get("/console/").send("/console/language", language="es")
    owner.get("/console/channels").send("/console/channels/open", name="Two", declarant="Me", modality="content")
    assert owner.status == 400 and "no puede tener más canales: su máximo es" in owner.text()
    assert 'value="Two"' in owner.body, "the field keeps what was typed"


@pytest.mark.parametrize("role", ["developer", "accountant", "reader"])
def test_the_page_is_the_owners(service, account, owner, role):
    visitor = signed_in(service, invited(service, account, new_address(), role))
    before = settings(service, account)
    assert "/console/account\"" not in visitor.body and "/console/account\"" in owner.get("/console/").body
    assert visitor.get("/console/account").status == 403
    visitor.get("/console/sessions")
    for path in ("set", "passkeys"):
        visitor.post(f"/console/account/{path}", {**visitor.own_fields(), "name": "Mine", "passkeys": "optional"}, **SAME)
        assert visitor.status == 403 and settings(service, account) == before


def test_another_accounts_settings_are_not_there(service, account, owner):
    other = service.new_account()
    before = settings(service, other)
    owner.get("/console/account").send("/console/account/set", account=other, name="Ours now")
    assert owner.status == 404 and settings(service, other) == before


def test_an_owner_who_has_no_passkey_does_not_lock_himself_out(service, account, owner):
    owner.get("/console/account")
    assert "first sign in with one yourself" in owner.text() and 'value="required"' not in owner.body
    owner.post("/console/account/passkeys", {**owner.own_fields(), "passkeys": "required"}, **SAME)
    assert owner.status == 403 and settings(service, account)["passkeys_required"] is False
    assert owner.get("/console/users").status == 200


def test_passkeys_are_asked_of_everybody_and_no_longer(service, account, owner):
    reader = signed_in(service, invited(service, account, new_address(), "reader"))
    origin = service.public_url.replace("127.0.0.1", "localhost")
    fields = {"token": owner.get("/console/passkeys").token()}
    owner.post("/console/passkey/challenge", {**fields, "ceremony": "create"}, **SAME)
    handed = Passkey(origin).create(json.loads(owner.body))
    assert owner.post("/console/passkeys/add", {**fields, "name": "Key", **handed}, **SAME).status == 303
    owner.get("/console/account").send("/console/account/passkeys", passkeys="required")
    assert owner.location == "/console/account?done=account_set"
    assert "All users of this account need a passkey to use the console." in owner.follow().text()
    assert settings(service, account)["passkeys_required"] is True
    assert reader.get("/console/channels").location == "/console/passkeys"
    owner.send("/console/account/passkeys", passkeys="optional")
    assert owner.status == 303 and settings(service, account)["passkeys_required"] is False
    assert reader.get("/console/channels").status == 200
    acts = json.loads(owner.get("/console/acts.json?operation=account+set").body)
    assert [act["arguments"]["passkeys"] for act in acts[:2]] == ["optional", "required"]


def test_changes_want_a_fresh_sign_in(start):
    service = start()
    account, email = service.new_account(), new_address()
    visitor = signed_in(service, invited(service, account, email))
    assert service.stop() == 0
    service.store.change("UPDATE sessions SET signed_in_at = signed_in_at - 660000000 WHERE user_id = "
                         f"(SELECT user_id FROM users WHERE email = '{email}')")
    service.start()
    before = settings(service, account)
    visitor.get("/console/account").send("/console/account/set", name="New")
    assert visitor.location == "/console/again" and settings(service, account) == before
    visitor.get("/console/account")
    visitor.post("/console/account/passkeys", {**visitor.own_fields(), "passkeys": "optional"}, **SAME)
    assert visitor.location == "/console/again"
