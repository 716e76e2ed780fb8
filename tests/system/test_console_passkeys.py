"""Passkeys: used in a real browser with the authenticator of its driver, and refused when an authenticator of the test
gives wrong answers."""

import json
import re

import pytest

from authenticator import PRESENT, VERIFIED, Passkey, bytes_of, text_of
from client import eventually
from console import Visitor, invited, make_stale, new_address, signed_in
from mail_server import MailServer

SAME = {"Sec-Fetch-Site": "same-origin"}
WORDS = {
    "en": {"passkeys": "Passkeys", "added": "The passkey was added.", "again": "Sign in again", "users": "Users",
           "invited": "The user was invited.", "refused": "This passkey was not accepted.", "overview": "Overview",
           "sign_in": "Sign in", "script": "has JavaScript enabled"},
    "es": {"passkeys": "Claves de acceso", "added": "Se ha añadido la clave de acceso.",
           "again": "Vuelva a iniciar sesión", "users": "Usuarios", "invited": "Se ha invitado al usuario.",
           "refused": "Esta clave de acceso no se ha aceptado.", "overview": "Resumen", "sign_in": "Iniciar sesión",
           "script": "JavaScript activado"},
}


def named(service):
    """Returns an address with a name, because passkeys do not work with IP addresses."""
    return service.public_url.replace("127.0.0.1", "localhost")


def enter_by_link(service, browser, email):
    browser.open(service.admin("user", "link", email)["url"].replace("127.0.0.1", "localhost"))
    browser.click("main button.main")
    browser.wait_for("nav")


def add_by_browser(service, browser, name, words):
    browser.open(f"{named(service)}/console/passkeys")
    browser.type("#name", name)
    browser.click("form[data-passkey=create] .main")
    browser.expect("#messages", words["added"])
    assert name in browser.text("main table")


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_passkey_is_made_signs_in_is_shown_afresh_and_removed(start, browse, language):
    service, words, guest = start(), WORDS[language], new_address()
    account = service.new_account(credits=5)
    email = new_address()
    service.admin("user", "invite", "--account", account, "--email", email, "--role", "owner", "--language", language)
    browser = browse(language)
    browser.add_authenticator()
    enter_by_link(service, browser, email)
    add_by_browser(service, browser, "Laptop <b>&</b>", words)
    acts = service.admin("audit", "list", "--account", account)["data"]
    assert [act["operation"] for act in acts][0] == "passkey add" and acts[0]["email"] == email
    browser.click("form[action='/console/leave'] button")
    browser.expect("h1", words["sign_in"])
    browser.click("form[data-passkey=get] .main")
    browser.expect("h1", words["overview"])
    assert service.admin("session", "list", "--user", email)["data"][0]["by_passkey"] is True
    make_stale(service, email)
    browser.open(f"{named(service)}/console/users")
    browser.type("#invite_email", guest)
    browser.choose("#invite_role", "developer")
    browser.click("form[action='/console/users/invite'] button")
    browser.expect("h1", words["again"])
    browser.click("form[data-passkey=get] .main")
    browser.expect("h1", words["users"])
    assert browser.value("#invite_email") == guest
    assert browser.value("#invite_role") == "developer"
    browser.click("form[action='/console/users/invite'] button")
    browser.expect("#messages", words["invited"])
    browser.open(f"{named(service)}/console/passkeys")
    browser.run("window.confirm = () => true")
    browser.click("form[action='/console/passkeys/remove'] button")
    browser.expect("h1", words["sign_in"])
    assert service.admin("session", "list", "--user", email)["data"] == []
    browser.click("form[data-passkey=get] .main")
    browser.expect("#said", words["refused"])
    assert service.admin("session", "list", "--user", email)["data"] == []


@pytest.mark.parametrize("language", ["en", "es"])
def test_without_script_the_page_says_that_the_link_is_the_way(service, browse, language):
    email = invited(service, service.new_account(), new_address())
    browser = browse(language, False)
    browser.open(f"{named(service)}/console/sign-in")
    assert WORDS[language]["script"] in browser.text("main") and browser.has("form[data-passkey][hidden]")
    enter_by_link(service, browser, email)
    browser.open(f"{named(service)}/console/passkeys")
    assert browser.has("form[data-passkey][hidden]") and named(service) in browser.text("main")


def test_at_an_address_the_page_says_where_passkeys_work(service, browse):
    browser = browse("en")
    browser.open(f"{service.public_url}/console/sign-in")
    assert browser.has("form[data-passkey][hidden]") and named(service) in browser.text("main")
    browser.open(f"{named(service)}/console/sign-in")
    assert not browser.has("form[data-passkey][hidden]") and named(service) not in browser.text("main")


def test_a_service_at_an_address_has_none(start):
    service = start(service__public_url="https://192.0.2.1")
    visitor = Visitor(service)
    visitor.connects_to = "127.0.0.1", service.port
    assert "passkey" not in visitor.get("/console/sign-in").body
    visitor.post("/console/passkey/challenge", {"token": visitor.token()}, **SAME)
    assert visitor.status == 400


def test_what_was_cancelled_is_said_and_can_be_tried_again(service, browse):
    email = invited(service, service.new_account(), new_address())
    browser = browse("en")
    enter_by_link(service, browser, email)
    browser.open(f"{named(service)}/console/passkeys")
    browser.run("navigator.credentials.create = () => Promise.reject(new DOMException('no', 'NotAllowedError'))")
    browser.type("#name", "Phone")
    browser.click("form[data-passkey=create] .main")
    browser.expect("[data-failed]:not([hidden])", "No passkey was added.")
    assert browser.run("return document.activeElement.hasAttribute('data-failed')")
    browser.add_authenticator()
    browser.run("delete navigator.credentials.create")
    browser.click("form[data-passkey=create] .main")
    browser.expect("#messages", "The passkey was added.")


# ---- with an authenticator of the test ----

def asked(visitor, ceremony="get", page="/console/sign-in"):
    visitor.get(page)
    fields = {"token": visitor.token()}
    visitor.post("/console/passkey/challenge", {**fields, "ceremony": ceremony}, **SAME)
    assert visitor.status == 200, visitor.text()
    assert visitor.headers["cache-control"] == "no-store"
    return fields, json.loads(visitor.body)


def adding(visitor, passkey, name="Key", **said):
    fields, wanted = asked(visitor, "create", "/console/passkeys")
    visitor.post("/console/passkeys/add", {**fields, "name": name, **passkey.create(wanted, **said)}, **SAME)
    return visitor


def with_passkey(service, email):
    visitor, passkey = signed_in(service, email), Passkey(named(service))
    assert adding(visitor, passkey).location == "/console/passkeys?done=passkey_add"
    return visitor, passkey


def entering(visitor, passkey, **said):
    page = "/console/again" if "constancia" in visitor.cookies else "/console/sign-in"
    fields, wanted = asked(visitor, page=page)
    visitor.post("/console/passkey", {**fields, **passkey.get(wanted, **said)}, **SAME)
    return visitor


def is_refused(visitor):
    return visitor.status == 403 and "This passkey was not accepted." in visitor.text()


@pytest.fixture
def email(service):
    return invited(service, service.new_account(credits=5), new_address())


def test_a_passkey_signs_in_where_one_was_going(service, email):
    _, passkey = with_passkey(service, email)
    visitor = Visitor(service)
    visitor.get("/console/sessions")
    assert entering(visitor, passkey).location == "/console/sessions"
    assert email in visitor.follow().text() and "constancia-browser" not in visitor.cookies
    before = visitor.cookies["constancia"]
    assert entering(visitor, passkey).status == 303 and visitor.cookies["constancia"] != before
    ended = Visitor(service)
    ended.cookies = {"constancia": before}
    assert ended.get("/console/").location == "/console/sign-in", "the session until then has ended"


@pytest.mark.parametrize("said", [
    {"origin": "https://evil.example"}, {"origin": "http://localhost"}, {"party": "evil.example"},
    {"party": "127.0.0.1"}, {"flags": PRESENT}, {"flags": VERIFIED}])
def test_what_says_something_else_neither_adds_nor_enters(service, email, said):
    visitor, passkey = with_passkey(service, email)
    assert is_refused(entering(Visitor(service), passkey, **said))
    assert is_refused(entering(visitor, passkey, **said))
    other = Passkey(named(service))
    assert adding(visitor, other, **said).status == 400 and "was not accepted" in visitor.text()
    assert 'value="Key"' in visitor.body
    assert len(service.admin("passkey", "list", email)["data"]) == 1
    assert adding(visitor, other).status == 303 and entering(Visitor(service), other).status == 303


def test_a_challenge_is_answered_once_and_in_its_own_browser(service, email):
    _, passkey = with_passkey(service, email)
    visitor, thief = Visitor(service), Visitor(service)
    fields, wanted = asked(visitor)
    handed = passkey.get(wanted)
    thief.get("/console/sign-in").post("/console/passkey", {"token": thief.token(), **handed}, **SAME)
    assert is_refused(thief)
    asked(thief)
    thief.post("/console/passkey", {"token": thief.get("/console/sign-in").token(), **handed}, **SAME)
    assert is_refused(thief), "nor with a challenge of the thief's own"
    kept = dict(visitor.cookies)
    visitor.post("/console/passkey", {**fields, **handed}, **SAME)
    assert visitor.status == 303
    replayer = Visitor(service)
    replayer.cookies = kept
    assert is_refused(replayer.post("/console/passkey", {**fields, **handed}, **SAME))
    fields, wanted = asked(replayer)
    assert is_refused(replayer.post("/console/passkey", {**fields, **handed, "signature": "AA"}, **SAME))
    replayer.post("/console/passkey", {**fields, **passkey.get(wanted)}, **SAME)
    assert is_refused(replayer), "also one that was answered wrongly is used up"


def test_a_challenge_is_of_minutes(start):
    service = start()
    email = invited(service, service.new_account(), new_address())
    _, passkey = with_passkey(service, email)
    visitor = Visitor(service)
    fields, wanted = asked(visitor)
    assert service.stop() == 0
    service.store.change("UPDATE passkey_challenges SET made_at = made_at - 301000000")
    service.start()
    assert is_refused(visitor.post("/console/passkey", {**fields, **passkey.get(wanted)}, **SAME))


@pytest.mark.parametrize("field", ["signature", "authenticator_data", "client_data", "credential", "user"])
def test_an_altered_field_is_refused(service, email, field):
    _, passkey = with_passkey(service, email)
    for alter in (lambda data: data[:-1] + bytes([data[-1] ^ 1]), lambda data: b"", lambda data: data * 50,
                  lambda data: data[:-1], lambda data: data + b"\0"):
        visitor = Visitor(service)
        fields, wanted = asked(visitor)
        handed = passkey.get(wanted)
        handed[field] = text_of(alter(bytes_of(handed[field])))
        assert is_refused(visitor.post("/console/passkey", {**fields, **handed}, **SAME)), field
    fields, wanted = asked(visitor)
    handed = passkey.get(wanted)
    handed[field] = "<script>" + handed[field]
    assert is_refused(visitor.post("/console/passkey", {**fields, **handed}, **SAME))
    assert entering(visitor, passkey).status == 303


def test_a_copied_passkey_is_refused(service, email):
    _, passkey = with_passkey(service, email)
    assert entering(Visitor(service), passkey).status == 303
    passkey.count -= 1
    assert is_refused(entering(Visitor(service), passkey))
    passkey.count = 0
    assert is_refused(entering(Visitor(service), passkey))
    passkey.count = 9
    assert entering(Visitor(service), passkey).status == 303


def test_no_passkey_of_another_user_signs_in_afresh(service, email):
    _, passkey = with_passkey(service, invited(service, service.new_account(), new_address()))
    visitor = signed_in(service, email)
    assert is_refused(entering(visitor, passkey))
    assert "Sign in again" in visitor.text() and visitor.get("/console/").status == 200
    fields, wanted = asked(visitor, page="/console/again")
    assert wanted["known"] == []
    handed = passkey.get(wanted)
    handed["user"] = wanted["user"]
    assert is_refused(visitor.post("/console/passkey", {**fields, **handed}, **SAME))
    # It is not added to another user, either.
    assert adding(visitor, passkey).status == 400 and "already registered" in visitor.text()


def test_a_stranger_is_told_nothing_of_anybody(service, email):
    _, passkey = with_passkey(service, email)
    fields, wanted = asked(Visitor(service))
    assert set(wanted) == {"challenge", "party", "service", "known"} and wanted["known"] == []
    strange, bad = Passkey(named(service), passkey.user), Visitor(service)
    entering(bad, strange)
    unknown = re.sub("[0-9a-f]{64}", "", bad.body)
    assert is_refused(bad)
    entering(bad, passkey, origin="https://evil.example")
    assert is_refused(bad) and re.sub("[0-9a-f]{64}", "", bad.body) == unknown


def test_a_removed_passkey_and_what_it_began_are_gone(service, email):
    visitor, passkey = with_passkey(service, email)
    by_link, by_passkey = signed_in(service, email), Visitor(service)
    assert entering(by_passkey, passkey).status == 303
    stranger, theirs = with_passkey(service, invited(service, service.new_account(), new_address()))
    kept = re.search(r'name="passkey" value="(psk_[^"]+)"', stranger.get("/console/passkeys").body)[1]
    by_link.get("/console/passkeys").send("/console/passkeys/remove", passkey=kept)
    assert by_link.status == 404 and len(re.findall('name="passkey"', by_link.body)) == 1
    by_link.get("/console/passkeys").send("/console/passkeys/remove")
    assert by_link.location == "/console/passkeys?done=passkey_remove"
    assert "The passkey was removed." in by_link.follow().text() and "no passkey yet" in by_link.text()
    assert by_passkey.get("/console/").location == "/console/sign-in"
    assert visitor.get("/console/").location == "/console/sign-in", "the one that it was added in"
    assert is_refused(entering(Visitor(service), passkey))
    assert stranger.get("/console/").status == 200 and entering(Visitor(service), theirs).status == 303


def test_adding_wants_a_fresh_sign_in_and_a_name(start):
    server = MailServer()
    service = start(**server.settings())
    email = invited(service, service.new_account(), new_address())
    visitor, passkey = signed_in(service, email), Passkey(named(service))
    fields, wanted = asked(visitor, "create", "/console/passkeys")
    visitor.post("/console/passkeys/add", {**fields, **passkey.create(wanted)}, **SAME)
    assert visitor.status == 400 and "Enter a name for the passkey." in visitor.text()
    fields, wanted = asked(visitor, "create", "/console/passkeys")
    make_stale(service, email)
    visitor.post("/console/passkeys/add", {**fields, "name": "Blue key", **passkey.create(wanted)}, **SAME)
    assert visitor.location == "/console/again"
    visitor.get("/console/passkeys")
    assert 'value="Blue key"' in visitor.body and "You will be asked to sign in again" in visitor.text()
    visitor.post("/console/passkey/challenge", {**fields, "ceremony": "create"}, **SAME)
    assert visitor.status == 403, "nothing is made on a device in vain"
    assert service.admin("passkey", "list", email)["data"] == []
    stranger = Visitor(service).get("/console/sign-in")
    stranger.post("/console/passkey/challenge", {"token": stranger.token(), "ceremony": "create"}, **SAME)
    assert stranger.status == 403
    server.close()


@pytest.mark.parametrize("path", ["passkey", "passkey/challenge", "passkeys/add", "passkeys/remove"])
def test_what_another_page_sends_is_refused(service, email, path):
    visitor, passkey = with_passkey(service, email)
    fields, wanted = asked(visitor, page="/console/passkeys")
    fields |= passkey.get(wanted) | {"passkey": service.admin("passkey", "list", email)["data"][0]["passkey_id"]}
    for headers, token in (({"Sec-Fetch-Site": "cross-site"}, fields["token"]), (SAME, "0" * 64), (SAME, "")):
        visitor.post(f"/console/{path}", {**fields, "token": token}, **headers)
        assert visitor.status == 403 and "Nothing was done" in visitor.text()
    assert len(service.admin("passkey", "list", email)["data"]) == 1


# ---- accounts that require passkeys ----

def demand(service, account):
    service.admin("account", "set", account, "--passkeys", "required")


def test_who_lacks_a_passkey_adds_one(service):
    account = service.new_account(credits=5)
    email = invited(service, account, new_address())
    demand(service, account)
    visitor = signed_in(service, email)
    assert visitor.location == "/console/passkeys"
    for path in ("/console/", "/console/users", "/console/acts.csv", "/console/sessions", "/console/usage"):
        assert visitor.get(path).location == "/console/passkeys", path
    visitor.follow()
    assert visitor.status == 200 and "requires a passkey" in visitor.text() and "Add a passkey," in visitor.text()
    visitor.post("/console/users/invite", {**visitor.own_fields(), "email": new_address(), "role": "owner"}, **SAME)
    assert visitor.location == "/console/passkeys"
    assert len(service.admin("user", "list", "--account", account)["data"]) == 1
    passkey = Passkey(named(service))
    assert adding(visitor, passkey).status == 303 and visitor.get("/console/users").status == 200
    # For a user with a passkey a link is not sufficient to sign in, to add another one or to remove theirs.
    by_link = signed_in(service, email)
    assert "Sign in with your passkey" in by_link.get("/console/passkeys").text()
    assert by_link.body.count("<script src=\"/assets/passkeys.js\"") == 1 and "/passkeys/add" not in by_link.body
    assert adding(by_link, Passkey(named(service))).status == 403 and "requires passkeys" in by_link.text()
    by_link.get("/console/passkeys").send("/console/passkeys/remove")
    assert by_link.location == "/console/passkeys"
    assert len(service.admin("passkey", "list", email)["data"]) == 1
    assert entering(by_link, passkey).status == 303 and by_link.get("/console/users").status == 200


def test_nor_does_a_link_to_another_account_go_round_it(service):
    strict, lax = service.new_account(), service.new_account()
    email = invited(service, strict, new_address())
    invited(service, lax, email)
    visitor, passkey = with_passkey(service, email)
    demand(service, strict)
    by_link = signed_in(service, email)
    by_link.get("/console/passkeys").send("/console/account", account=lax)
    assert by_link.get("/console/users").status == 200, "choosing another account is free"
    assert adding(by_link, Passkey(named(service))).status == 403 and "requires passkeys" in by_link.text()
    by_link.get("/console/passkeys").send("/console/passkeys/remove")
    assert by_link.status == 403 and "requires passkeys" in by_link.text()
    assert len(service.admin("passkey", "list", email)["data"]) == 1
    assert entering(by_link, passkey).status == 303
    by_link.get("/console/passkeys").send("/console/passkeys/remove")
    assert by_link.status == 303 and service.admin("passkey", "list", email)["data"] == []


def test_who_lacks_a_passkey_may_leave(service):
    account, email = service.new_account(), new_address()
    invited(service, account, new_address())
    invited(service, account, email, "reader")
    demand(service, account)
    visitor = signed_in(service, email)
    visitor.get("/console/passkeys").send("/console/passkeys/leave")
    assert visitor.status == 303 and visitor.get("/console/").location == "/console/sign-in"
    assert email not in [user["email"] for user in service.admin("user", "list", "--account", account)["data"]]


def test_who_has_a_passkey_leaves_by_it_alone(service):
    account, email = service.new_account(), new_address()
    invited(service, account, new_address())
    invited(service, account, email, "reader")
    visitor, passkey = with_passkey(service, email)
    visitor = signed_in(service, email)
    fields = visitor.get("/console/sessions").own_fields()
    demand(service, account)
    for form in ("/console/passkeys/leave", "/console/users/leave"):
        visitor.post(form, fields, **SAME)
        assert visitor.location == "/console/passkeys"
    assert 'action="/console/passkeys/leave"' not in visitor.follow().body
    assert entering(visitor, passkey).status == 303
    visitor.get("/console/sessions").send("/console/users/leave")
    assert visitor.status == 303 and visitor.get("/console/").location == "/console/sign-in"


@pytest.mark.parametrize("role", ["owner", "developer", "accountant", "reader"])
def test_every_role_has_passkeys_of_its_own(service, role):
    account = service.new_account()
    invited(service, account, new_address())
    email = invited(service, account, new_address(), role)
    visitor, _ = with_passkey(service, email)
    owner = signed_in(service, invited(service, account, new_address()))
    assert "psk_" in visitor.get("/console/passkeys").body and "psk_" not in owner.get("/console/passkeys").body


def test_the_operator_removes_a_passkey_before_the_eyes_of_those_whom_it_concerns(service, email):
    """An owner of an account that the user never entered must not learn that they have passkeys."""
    (here,) = [one["account_id"] for one in service.admin("account", "list", "--limit", "1000")["data"]
               if email in str(service.admin("user", "list", "--account", one["account_id"])["data"])]
    entered, never = service.new_account(), service.new_account()
    for account in (entered, never):
        invited(service, account, email)
    visitor, _ = with_passkey(service, email)
    visitor.get("/console/").send("/console/account", account=entered)
    assert visitor.follow().status == 200
    passkey = service.admin("passkey", "list", email)["data"][0]["passkey_id"]
    service.admin("passkey", "remove", passkey, "--user", email)
    for account in (here, entered):
        (act,) = service.admin("audit", "list", "--account", account, "--operation", "passkey remove")["data"]
        assert (act["actor"], act["arguments"]["user"], act["urgent"]) == ("operator", email, True)
    assert not service.admin("audit", "list", "--account", never, "--operation", "passkey remove")["data"]
    assert visitor.get("/console/").location == "/console/sign-in"


def test_how_one_came_in_is_a_passkey_only_where_one_was_shown(service, email):
    _, passkey = with_passkey(service, email)
    (session,) = service.admin("session", "list", "--user", email)["data"]
    assert session["by_passkey"] and session["signed_in_by"] == "operator_link", "it was added later"
    # The holder of the link has the passkey, so the requirement is met only by one that was added with it.
    second, visitor = Passkey(named(service)), Visitor(service)
    assert entering(visitor, passkey).status == 303
    assert adding(visitor.follow(), second).location == "/console/passkeys?done=passkey_add"
    assert entering(Visitor(service), second).status == 303
    acts = service.admin("audit", "list", "--operation", "sign in", "--limit", "3")["data"]
    assert [(act["email"], act["signed_in_by"]) for act in acts] == [
        (email, "operator_passkey"), (email, "operator_passkey"), (email, "operator_link")]
    assert "passkey added with a link from the operator" in visitor.get("/console/sessions").text()


def test_the_users_own_passkey_is_his_own(start):
    server = MailServer()
    service = start(**server.settings())
    email = invited(service, service.new_account(), new_address())
    visitor, passkey = Visitor(service).get("/console/sign-in"), Passkey(named(service))
    visitor.send("/console/sign-in", email=email)
    visitor.enter(eventually(lambda: re.search(r"\S+/console/enter\?link=[0-9a-f]{64}", "".join(
        mail.get_content() for mail in server.messages)), "the link")[0])
    assert adding(visitor, passkey).status == 303
    assert entering(Visitor(service), passkey).status == 303
    acts = service.admin("audit", "list", "--operation", "sign in")["data"]
    assert [act["signed_in_by"] for act in acts] == ["passkey", "link"]
    server.close()
