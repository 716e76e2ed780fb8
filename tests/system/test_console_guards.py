"""The console between users who do not trust each other: sessions, accounts and addresses."""

import json
import re
import secrets

import pytest

from client import eventually
from console import Visitor, invited, new_address, signed_in
from mail_server import MailServer

SAME = {"Sec-Fetch-Site": "same-origin"}


def test_the_page_of_a_link_tells_nothing_before_its_button(service):
    account, email = service.new_account(), new_address()
    service.admin("account", "set", account, "--name", "A rather secret firm")
    invited(service, account, email)
    pages = []
    for link in (service.admin("user", "link", email)["url"].removeprefix(service.public_url),
                 f"/console/enter?link={secrets.token_hex(32)}"):
        visitor = Visitor(service).get(link)
        assert visitor.headers["referrer-policy"] == "strict-origin"
        assert email not in visitor.body and "secret firm" not in visitor.body and account not in visitor.body
        pages.append(re.sub("[0-9a-f]{64}", "", visitor.body))
    assert pages[0] == pages[1]
    assert visitor.get(f"/console/enter?link={secrets.token_hex(32)}&x=%").status == 400
    assert visitor.headers["referrer-policy"] == "strict-origin", "a refusal does not reveal it either"
    assert visitor.get("/console/sign-in").headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("public, origin, status", [
    ("https://Console.Example.org:443", "https://console.example.org", 303),
    ("https://console.example.org", "https://console.example.org", 303),
    ("https://console.example.org:8443", "https://console.example.org:8443", 303),
    ("https://console.example.org", "http://console.example.org", 403),
    ("https://console.example.org", "https://console.example.org:8443", 403),
    ("https://console.example.org", "https://console.example.org.evil.example", 403),
    ("https://console.example.org", "null", 403)])
def test_an_origin_is_compared_in_one_form(start, public, origin, status):
    service = start(service__public_url=public)
    visitor = Visitor(service)
    visitor.connects_to = ("127.0.0.1", service.port)
    visitor.get("/console/sign-in")
    visitor.post("/console/language", {"token": visitor.token(), "language": "es"}, Origin=origin)
    assert visitor.status == status, visitor.text()


def test_an_owner_ends_no_session_in_another_account(service):
    email, host = new_address(), service.new_account()
    victim = signed_in(service, invited(service, service.new_account(), email))
    stranger = signed_in(service, invited(service, host, new_address()))
    stranger.get("/console/users").send("/console/users/invite", email=email, role="reader", language="en")
    assert victim.get("/console/").status == 200
    for role in ("reader", "developer"):
        stranger.get("/console/users")
        stranger.post("/console/users/role", {"token": stranger.token(), "user": email, "role": role,
                                              "in_account": host}, **SAME)
        assert stranger.status == 303
        assert victim.get("/console/").status == 200, role
    stranger.get("/console/users")
    stranger.post("/console/users/remove", {"token": stranger.token(), "user": email, "in_account": host}, **SAME)
    assert stranger.status == 303 and victim.get("/console/").status == 200


def test_a_user_leaves_an_account_by_himself(service):
    home, host, email = service.new_account(), service.new_account(), new_address()
    boss = signed_in(service, invited(service, host, new_address()))
    invited(service, home, email)
    invited(service, host, email, "reader")
    guest = signed_in(service, email)
    guest.send("/console/account", account=host)
    guest.get("/console/sessions").send("/console/users/leave", user=new_address())
    assert guest.status == 404, "no one else"
    guest.get("/console/sessions").send("/console/users/leave")
    assert guest.location.startswith("/console/sessions"), guest.text()
    users = [user["email"] for user in service.admin("user", "list", "--account", host)["data"]]
    assert email not in users and len(users) == 1
    act = service.admin("audit", "list", "--account", host)["data"][0]
    assert (act["operation"], act["actor"], act["email"]) == ("user leave", "user", email)
    boss.get("/console/sessions").send("/console/users/leave")
    assert boss.status == 400 and "last owner" in boss.text()
    assert signed_in(service, email).status == 200, "the user still has the account"


def test_everybody_sees_and_ends_all_sessions_of_his_own(service):
    email = new_address()
    here, elsewhere = service.new_account(), service.new_account()
    boss = signed_in(service, invited(service, here, new_address()))
    invited(service, here, email, "developer")
    invited(service, elsewhere, email, "reader")
    thief, own = signed_in(service, email), signed_in(service, email)
    for visitor, account in ((thief, elsewhere), (own, here)):
        visitor.get("/console/").send("/console/account", account=account)
    listed = re.findall(r'name="session" value="(ses_[^"]+)"', own.get("/console/sessions").body)
    assert len(listed) == 2
    seen = re.findall(r'name="session" value="(ses_[^"]+)"', boss.get("/console/sessions").body)
    hidden = [session for session in listed if session not in seen]
    assert len(seen) == 2 and len(hidden) == 1, "what others do elsewhere is not an owner's affair"
    boss.send("/console/sessions/end", session=hidden[0])
    assert boss.status == 404
    own.send("/console/sessions/end", session=hidden[0])
    assert own.status == 303 and thief.get("/console/").location == "/console/sign-in"
    assert own.get("/console/").status == 200, "that one alone"
    boss.get("/console/sessions").send("/console/sessions/end", session=next(s for s in listed if s in seen))
    assert boss.status == 303 and own.get("/console/").location == "/console/sign-in"


def test_an_invitation_does_not_tell_who_is_a_user_elsewhere(service):
    known, unknown = invited(service, service.new_account(), new_address()), new_address()
    account = service.new_account()
    boss = signed_in(service, invited(service, account, new_address()))
    told = {}
    for email in (known, unknown):
        for _ in range(2):
            boss.get("/console/users").send("/console/users/invite", email=email, role="reader", language="en")
            assert boss.status == 303
            acts = json.loads(boss.get("/console/acts.json?operation=user+invite").body)
            act = {name: acts[0][name] for name in ("before", "after", "made", "arguments")}
            told.setdefault(email, []).append(json.dumps(act).replace(email, "someone"))
            boss.get("/console/users").send("/console/users/remove", user=email)
            assert boss.status == 303
    assert set(told[known]) == set(told[unknown]) and len(set(told[known])) == 1, told


def accounts_of(service, users):
    return [account for account, listed in users.items()
            if any(user["email"] == listed for user in
                   service.admin("user", "list", "--account", account)["data"])]


@pytest.mark.parametrize("language, words", [("en", "Nothing was done"), ("es", "No se ha hecho nada")])
def test_a_form_acts_on_the_account_that_its_page_showed(service, language, words):
    email, guest = new_address(), new_address()
    shown, other = service.new_account(), service.new_account()
    for account in (shown, other):
        invited(service, account, email)
    tab = signed_in(service, email)
    tab.send("/console/language", language=language)
    tab.get("/console/").send("/console/account", account=shown)
    page = tab.get("/console/users").body
    tab.send("/console/account", account=other)  # in another tab
    tab.body = page
    tab.send("/console/users/invite", email=guest, role="owner", language="en")
    assert tab.status == 409 and words in tab.text() and 'role="alert"' in tab.body
    assert accounts_of(service, {shown: guest, other: guest}) == []
    assert re.search(rf'value="{other}" selected', tab.body) and guest not in tab.body
    tab.send("/console/users/invite", email=guest, role="owner", language="en")
    assert tab.status == 303 and accounts_of(service, {shown: guest, other: guest}) == [other]
    token = tab.follow().token()
    tab.post("/console/users/invite", {"token": token, "email": new_address(), "role": "owner"}, **SAME)
    assert tab.status == 409, "a form that does not say"


def test_what_was_typed_is_for_who_typed_it(start):
    service = start()
    account, other = service.new_account(), service.new_account()
    email, colleague, guest = new_address(), new_address(), new_address()
    for one in (account, other):
        invited(service, one, email)
    invited(service, account, colleague)
    visitor = signed_in(service, email)
    visitor.get("/console/").send("/console/account", account=account)
    page = visitor.get("/console/users").body
    assert service.stop() == 0
    service.store.change("UPDATE sessions SET signed_in_at = signed_in_at - 660000000")
    service.start()
    visitor.body = page
    visitor.send("/console/users/invite", email=guest, role="owner", language="en")
    assert visitor.location == "/console/again"
    kept = visitor.cookies["constancia-again"]
    for who, where, filled in ((colleague, account, False), (email, other, False), (email, account, True)):
        next_one = signed_in(service, who)
        if len({account, other} & set(re.findall("acc_[a-z0-9]+", next_one.body))) > 1:
            next_one.send("/console/account", account=where)
        next_one.cookies["constancia-again"] = kept
        next_one.get("/console/users")
        assert next_one.status == 200 and (guest in next_one.body) == filled, (who, where)
        assert "constancia-again" not in next_one.cookies


def test_strangers_who_ask_for_links_lock_nobody_out(start):
    server = MailServer()
    service = start(**server.settings())
    email = invited(service, service.new_account(), new_address())
    visitor = signed_in(service, email)
    before = {"constancia-known": visitor.cookies["constancia-known"]}

    def mails():
        return [message for message in server.messages if "/console/enter?link=" in message.get_content()]

    def ask(who):
        who.get("/console/sign-in").send("/console/sign-in", email=email)
        assert who.location == "/console/sent"

    for _ in range(6):
        ask(Visitor(service))
    # One too many while the five others wait, or after they were sent: it depends on the mailer's pace.
    service.logged(lambda line: line["event"] in ("sign_in_not_queued", "sign_in_not_mailed"), 1)
    eventually(lambda: len(mails()) == 5, "the links of the strangers")
    visitor.get("/console/again").send("/console/again")
    known = Visitor(service)
    known.cookies = before
    ask(known)
    eventually(lambda: len(mails()) == 7, "the links of the open session and of the browser")
    links = [re.search(r"/console/enter\?link=[0-9a-f]{64}", mail.get_content())[0] for mail in mails()[5:]]
    assert 303 in [known.get(link).send("/console/enter").status for link in links]
    server.close()


@pytest.mark.parametrize("language, words", [("en", "invited by {}"), ("es", "invitación de {}")])
def test_an_account_with_the_name_of_another_is_told_from_it(service, language, words):
    """Users are added to an account without their consent, and its owner chooses its name."""
    email, stranger = new_address(), new_address()
    own, host = service.new_account(), service.new_account()
    for account in (own, host):
        service.admin("account", "set", account, "--name", "Example, S.L.")
    invited(service, own, email)
    boss = signed_in(service, invited(service, host, stranger))
    boss.get("/console/users").send("/console/users/invite", email=email, role="owner", language=language)
    assert boss.status == 303
    victim = signed_in(service, email)
    victim.send("/console/language", language=language)
    options = re.findall(r'<option value="(acc_[^"]+)"[^>]*>([^<]*)</option>', victim.get("/console/").body)
    assert {account: text.split(" · ") for account, text in options} == {
        own: ["Example, S.L.", own], host: ["Example, S.L.", host, words.format(stranger)]}
