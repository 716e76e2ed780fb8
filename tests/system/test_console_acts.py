"""The audit log in the console: each entry with its seal, its page, and its proof as files."""

import csv
import io
import json
import pathlib
import re
import secrets

import pytest

from client import eventually
from console import Visitor, invited, new_visitor, signed_in
from mail_server import MailServer

pytestmark = pytest.mark.both_stores

HOSTILE = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def account(service):
    account = service.new_account(credits=10)
    service.admin("account", "set", account, "--name", f"One {HOSTILE}", "--reason", f"asked by {HOSTILE}")
    return account


def newest(service, account, operation):
    return service.admin("audit", "list", "--account", account, "--operation", operation, "--limit", "1")["data"][0]


def sealed(service, act):
    def look():
        found = service.admin("audit", "show", act["act_id"])
        return found if found["seal"] else None
    return eventually(look, "its seal")


def words(visitor):
    return " ".join(visitor.text().split())


def test_acts_have_names_and_are_chosen_by_them(service, account):
    owner = new_visitor(service, account)
    owner.send("/console/language", language="es")
    owner.get("/console/acts")
    choice = re.search(r'<select id="operation" name="operation">(.*?)</select>', owner.body, re.S)[1]
    options = dict(re.findall(r'<option value="([^"]*)"[^>]*>([^<]+)</option>', choice))
    assert options["account set"] == "Ajustes de la cuenta cambiados" and options[""] == "todas"
    console = pathlib.Path(__file__).resolve().parents[2] / "src/console"
    forms = {found for file in console.glob("*.c") for rows in
             re.findall(r"const struct console_form \w+\[\] = \{(.*?)\n\};", file.read_text(), re.S)
             for found in re.findall(r'\.operation = "([a-z ]+)"', rows)}
    assert len(forms) > 30 and forms | {"passkey add"} <= set(options), "whatever a form does has a name"
    assert all(name != option for option, name in options.items())
    owner.get("/console/acts?operation=account+set")
    assert '<option value="account set" selected>' in owner.body
    assert set(re.findall("<summary><strong>([^<]+)</strong>", owner.body)) == {"Ajustes de la cuenta cambiados"}


def test_an_act_shows_what_was_done_and_its_seal(service, account):
    act = sealed(service, newest(service, account, "account set"))
    assert act["seal"]["round"] >= 1
    owner = new_visitor(service, account)
    owner.get("/console/acts?operation=account+set")
    part = re.search(rf'<details class="act" id="{act["act_id"]}">.*?</details>', owner.body, re.S)[0]
    assert act["seal"]["segment_id"] in part and ">sealed<" in part and f"in round {act['seal']['round']}" in part
    assert f"/console/acts/{act['act_id']}" in owner.links()
    owner.get(f"/console/acts/{act['act_id']}")
    text = words(owner)
    for told in ("Account settings changed", "account set", act["act_id"], "operator", f"asked by {HOSTILE}", f"One {HOSTILE}",
                 act["seal"]["segment_id"], act["seal"]["authority"], "without probative value"):
        assert told in text, told
    assert "<script>alert" not in owner.body
    assert f'<code class="hash">{act["chain_hash"]}</code>' in owner.body
    assert act["seal"]["sealed_at"][:16] in owner.body
    owner.send("/console/language", language="es")
    text = words(owner.get(f"/console/acts/{act['act_id']}"))
    assert "Ajustes de la cuenta cambiados" in text and "Hora del sello de tiempo" in text and "operador" in text


def test_the_act_of_a_user_names_him_and_his_address(service, account):
    owner = new_visitor(service, account)
    owner.get("/console/users")
    guest = f"{secrets.token_hex(6)}@example.org"
    owner.send("/console/users/invite", email=guest, role="reader")
    act = newest(service, account, "user invite")
    text = words(owner.get(f"/console/acts/{act['act_id']}"))
    assert act["email"] in text and guest in text and "IP address 127.0.0.1" in text


def test_its_proof_is_downloaded_and_verifies(service, account, tmp_path):
    act = sealed(service, newest(service, account, "account set"))
    owner = new_visitor(service, account)
    path = f"/console/acts/{act['act_id']}"
    owner.get(path)
    assert {f"{path}/{name}" for name in ("act.json", "act.ers", "seal.json", "seal.ers")} <= owner.links()
    for kind, name in (("act", act["act_id"]), ("seal", act["seal"]["segment_id"])):
        for extension in ("json", "ers"):
            owner.get(f"{path}/{kind}.{extension}")
            assert owner.status == 200
            assert owner.headers["content-disposition"] == f'attachment; filename="{name}.{extension}"'
            (tmp_path / f"{name}.{extension}").write_bytes(owner.content)
        told = service.run("verify", str(tmp_path / f"{name}.ers"), str(tmp_path / f"{name}.json"), "--trust",
                           str(service.data / "trust.pem"))
        assert told.returncode == 2 and told.stdout.startswith("EXISTENCE ONLY: "), told.stdout + told.stderr
    document = (tmp_path / f"{act['act_id']}.json").read_bytes()
    assert json.loads(document)["act_id"] == act["act_id"]
    altered = tmp_path / "altered.json"
    altered.write_bytes(document.replace(b"account set", b"account get"))
    assert service.run("verify", str(tmp_path / f"{act['act_id']}.ers"), str(altered)).returncode == 1
    assert owner.get(f"{path}/nothing.json").status == 404


def test_one_that_is_not_sealed_says_so(start):
    service = start(seal__interval="1h")
    account = service.new_account(credits=1)
    owner = new_visitor(service, account)
    act = newest(service, account, "account create")
    assert act["seal"] is None
    path = f"/console/acts/{act['act_id']}"
    assert "The entry is not sealed yet" in words(owner.get(path)) and "act.ers" not in owner.body
    assert "not sealed yet" in words(owner.get("/console/acts"))
    assert owner.get(f"{path}/act.ers").status == 404


def test_only_owners_of_this_account_see_it(service, account):
    act = sealed(service, newest(service, account, "account set"))
    path = f"/console/acts/{act['act_id']}"
    for role in ("developer", "accountant", "reader"):
        visitor = new_visitor(service, account, role)
        for below in ("", "/act.json", "/seal.ers"):
            assert visitor.get(path + below).status == 403, (role, below)
    stranger = new_visitor(service, service.new_account(credits=1))
    for below in ("", "/act.json", "/act.ers", "/seal.json", "/seal.ers"):
        assert stranger.get(path + below).status == 404
        told = stranger.text()
        assert stranger.get("/console/acts/act_nothing" + below).status == 404
        assert told.replace(act["act_id"], "act_nothing") == stranger.text()


def acts_of(service, account, operation):
    return service.admin("audit", "list", "--account", account, "--operation", operation, "--ascending")["data"]


def test_coming_in_and_going_out_are_on_record(service):
    account = service.new_account(credits=1)
    owner = new_visitor(service, account)
    session = service.admin("session", "list", "--account", account)["data"][0]
    (came,) = acts_of(service, account, "sign in")
    assert came["arguments"] == {"session": session["session_id"]} and came["email"] == session["email"]
    assert (came["via"], came["address"], came["actor"], came["uid"]) == ("console", "127.0.0.1", "user", None)
    owner.get("/console/sessions").send("/console/leave")
    assert owner.location == "/console/sign-in?done=left"
    (left,) = acts_of(service, account, "sign out")
    assert left["arguments"] == came["arguments"] and left["email"] == came["email"] and left["urgent"]
    # It replaces another session, which ends.
    first = new_visitor(service, account)
    former = service.admin("session", "list", "--account", account)["data"][0]
    other = service.new_account(credits=1)
    first.enter(service.admin("user", "link", invited(service, other, f"{secrets.token_hex(6)}@example.org"))["url"])
    left = acts_of(service, account, "sign out")[-1]
    assert left["arguments"] == {"session": former["session_id"]} and left["email"] == former["email"]
    assert len(acts_of(service, other, "sign in")) == 1 and not acts_of(service, other, "sign out")
    guest = new_visitor(service, account)
    assert "sign out" in guest.get("/console/acts").body and guest.status == 200


@pytest.mark.parametrize("language, by_mail, by_operator", [
    ("en", "e-mail link", "link created by the operator"),
    ("es", "enlace por correo", "enlace creado por el operador")])
def test_what_is_done_with_an_operators_link_is_told_from_the_users_own(start, language, by_mail, by_operator):
    server = MailServer()
    service = start(**server.settings())
    account = service.new_account(credits=1)
    email = f"{secrets.token_hex(6)}@example.org"
    service.admin("user", "invite", "--account", account, "--email", email, "--role", "owner", "--language", language)
    own = Visitor(service, language).get("/console/sign-in")
    own.send("/console/sign-in", email=email)
    url = eventually(lambda: re.search(r"\S+/console/enter\?link=[0-9a-f]{64}", "".join(
        mail.get_content() for mail in server.messages)), "the link")[0]
    own.enter(url)
    operators = signed_in(service, email, language)
    for visitor, name in ((own, "Mine"), (operators, "Not mine")):
        visitor.get("/console/account").send("/console/account/set", name=name)
        assert visitor.status == 303, visitor.text()
    told = {act["arguments"]["name"]: act["signed_in_by"] for act in acts_of(service, account, "account set")}
    assert told == {"Mine": "link", "Not mine": "operator_link"}
    assert [act["signed_in_by"] for act in acts_of(service, account, "sign in")] == ["link", "operator_link"]
    sessions = service.admin("session", "list", "--account", account)["data"]
    assert sorted(session["signed_in_by"] for session in sessions) == ["link", "operator_link"]
    text = words(own.get("/console/sessions"))
    assert by_mail in text and by_operator in text
    own.get("/console/acts?operation=account+set")
    for part in re.findall(r'<details class="act".*?</details>', own.body, re.S):
        assert (f'<span class="tag">{by_operator}</span>' in part) == ("Not mine" in part)
        assert (by_mail in part) == ("Not mine" not in part)
    assert by_operator in words(own.get(f"/console/acts/{newest(service, account, 'account set')['act_id']}"))
    rows = list(csv.DictReader(io.StringIO(own.get("/console/acts.csv?operation=account+set").body)))
    assert [row["signed_in_by"] for row in rows] == ["operator_link", "link"]
    server.close()
