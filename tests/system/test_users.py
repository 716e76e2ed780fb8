"""Users of the console, whom the operator creates and removes: links, sessions, e-mails, audit log."""

import re

import pytest

from client import eventually
from console import signed_in
from mail_server import MailServer

pytestmark = pytest.mark.both_stores

SECRET = re.compile(r"/console/enter\?link=([0-9a-f]{64})$")


@pytest.fixture
def server():
    one = MailServer()
    yield one
    one.close()


def users(service, account):
    return {user["email"]: user for user in service.admin("user", "list", "--account", account)["data"]}


def invite(service, account, email, role, *more):
    return service.admin("user", "invite", "--account", account, "--email", email, "--role", role, *more)


def test_users_of_an_account(service):
    account, other = service.new_account(), service.new_account()
    made = invite(service, account, "Ana@Example.org", "owner")
    assert made["email"] == "ana@example.org" and made["role"] == "owner" and not made["mailed"]
    again = invite(service, other, "ana@example.org", "reader")
    assert again["user_id"] == made["user_id"], "one user may have several accounts"
    invite(service, account, "eva@example.org", "accountant")
    assert {email: user["role"] for email, user in users(service, account).items()} == {
        "ana@example.org": "owner", "eva@example.org": "accountant"}
    assert list(users(service, other)) == ["ana@example.org"]
    assert service.run("user", "invite", "--account", account, "--email", "eva@example.org",
                       "--role", "reader").returncode == 1
    for words in (("--email", "nobody", "--role", "reader"), ("--email", "x@example.org", "--role", "king")):
        assert service.run("user", "invite", "--account", account, *words).returncode == 2, words


def test_the_operators_link(service):
    account = service.new_account()
    invite(service, account, "ana@example.org", "owner")
    link = service.admin("user", "link", "ANA@example.org")
    secret = SECRET.search(link["url"])[1]
    refused = service.run("user", "link", "nobody@example.org")
    assert refused.returncode == 1 and "nobody@example.org" in refused.stderr
    (act,) = service.admin("audit", "list", "--account", account, "--operation", "user link")["data"]
    assert secret not in str(act) and secret not in service.log.read_text()


def test_the_operators_link_is_on_record_in_each_account_of_the_user(service):
    accounts, other = [service.new_account() for _ in range(3)], service.new_account()
    for account, role in zip(accounts, ("owner", "reader", "developer")):
        invite(service, account, "eve@example.org", role)
    invite(service, other, "somebody@example.org", "owner")
    service.admin("user", "link", "eve@example.org", "--reason", "lost her mail")
    for account in accounts:
        (act,) = service.admin("audit", "list", "--account", account, "--operation", "user link")["data"]
        assert (act["actor"], act["arguments"]["user"], act["reason"]) == (
            "operator", "eve@example.org", "lost her mail")
        assert not any(one in str(act) for one in accounts if one != account) and "usr_" not in str(act)
    assert not service.admin("audit", "list", "--account", other, "--operation", "user link")["data"]
    assert not [act for act in service.admin("audit", "list", "--installation", "--limit", "1000")["data"]
                if act["operation"] == "user link"]


def test_who_was_here_is_known_when_his_sessions_are_forgotten(start):
    service = start()
    account, other = service.new_account(), service.new_account()
    for one in (account, other):
        invite(service, one, "ana@example.org", "owner")
    invite(service, account, "eva@example.org", "reader")
    visitor = signed_in(service, "ana@example.org")
    here = account if account in str(service.admin("session", "list")["data"][0]) else other
    seen = users(service, here)["ana@example.org"]["last_seen_at"]
    assert seen and users(service, account)["eva@example.org"]["last_seen_at"] is None
    assert service.stop() == 0
    service.store.change("DELETE FROM sessions")
    service.start()
    assert users(service, here)["ana@example.org"]["last_seen_at"] == seen
    assert users(service, other if here == account else account)["ana@example.org"]["last_seen_at"] is None
    assert visitor.get("/console/").location == "/console/sign-in"


def test_roles_and_the_last_owner(service):
    account = service.new_account()
    invite(service, account, "ana@example.org", "owner")
    invite(service, account, "eva@example.org", "reader")
    for words in (("role", "ana@example.org", "--account", account, "--role", "reader"),
                  ("remove", "ana@example.org", "--account", account)):
        refused = service.run("user", *words)
        assert refused.returncode == 1 and "last owner" in refused.stderr
    service.admin("user", "role", "eva@example.org", "--account", account, "--role", "owner")
    service.admin("user", "remove", "ana@example.org", "--account", account)
    assert list(users(service, account)) == ["eva@example.org"]
    assert service.run("user", "remove", "ana@example.org", "--account", account).returncode == 1


@pytest.mark.parametrize("language", ["en", "es"])
def test_an_invitation_is_mailed(start, server, language):
    service = start(**server.settings())
    account = service.new_account()
    assert invite(service, account, "eva@example.org", "reader", "--language", language)["mailed"]
    message = eventually(lambda: next(iter(server.messages), None), "the invitation has arrived")
    assert message.recipients == ["eva@example.org"]
    assert message["Content-Language"] == language
    text = message.get_content()
    assert {"en": "Your role: reader.", "es": "Su papel: lector."}[language] in text
    assert "/console/" in text and account in text
    assert "link=" not in text, "it holds no secret"


def test_acts_tell_roles_and_passkeys(service):
    account = service.new_account()
    invite(service, account, "ana@example.org", "owner")
    invite(service, account, "eva@example.org", "reader")
    service.admin("user", "role", "EVA@example.org", "--account", account, "--role", "developer")
    assert not service.admin("account", "show", account)["passkeys_required"]
    service.admin("account", "set", account, "--passkeys", "required")
    assert service.admin("account", "show", account)["passkeys_required"]
    service.admin("account", "set", account, "--name", "Another")
    assert service.admin("account", "show", account)["passkeys_required"], "it stays"
    service.admin("user", "remove", "eva@example.org", "--account", account)
    acts = {act["operation"]: act for act in
            reversed(service.admin("audit", "list", "--account", account)["data"])
            if act["operation"] != "account set" or act["arguments"].get("passkeys")}
    assert "usr_" not in str(acts["user invite"]), "the id would reveal that the user has other accounts"
    assert acts["user role"]["before"] == {"membership": {"role": "reader"}}
    assert acts["user role"]["after"] == {"membership": {"role": "developer"}}
    assert acts["user role"]["urgent"] and acts["user role"]["actor"] == "operator"
    assert acts["account set"]["after"] == {"account": {"passkeys_required": True}}
    assert acts["user remove"]["before"] == {"membership": {"role": "developer"}}
    assert acts["user remove"]["after"] is None


@pytest.mark.parametrize("address", ["http://example.org", "https://192.0.2.7", "https://[2001:db8::1]:8443"])
def test_nobody_asks_for_passkeys_where_there_are_none(start, address):
    service = start(service__public_url=address)
    account = service.new_account()
    asked = service.run("account", "set", account, "--passkeys", "required")
    assert asked.returncode and "They require https and a host name" in asked.stderr
    assert not service.admin("account", "show", account)["passkeys_required"]
    service.admin("account", "set", account, "--passkeys", "optional")


def test_each_change_of_a_role_is_in_one_chain(service):
    account = service.new_account()
    for email in ("ana@example.org", "eva@example.org"):
        invite(service, account, email, "owner")
    for role in ("reader", "owner", "developer", "accountant", "owner", "owner"):
        answer = service.admin("user", "role", "eva@example.org", "--account", account, "--role", role)
        acts = service.admin("audit", "list", "--account", account)["data"]
        act = max((one for one in acts if one["operation"] == "user role"), key=lambda one: one["at"])
        assert answer["role"] == role and act["urgent"]


def test_what_is_not_there(service):
    account = service.new_account()
    invite(service, account, "ana@example.org", "owner")
    for words in (("user", "remove", "eva@example.org", "--account", account),
                  ("user", "role", "eva@example.org", "--account", account, "--role", "reader"),
                  ("user", "list", "--account", "acc_unknown"),
                  ("session", "end", "ses_unknown"),
                  ("passkey", "remove", "psk_unknown", "--user", "ana@example.org")):
        refused = service.run(*words)
        assert refused.returncode == 1 and "There is no" in refused.stderr or "no user" in refused.stderr, words
    assert service.admin("session", "list", "--account", account)["data"] == []
    assert service.admin("passkey", "list", "ana@example.org")["data"] == []
