"""The record of acts in the console: each act with its seal, its page, and its proof as files."""

import json
import re
import secrets

import pytest

from client import eventually
from console import invited, signed_in

HOSTILE = "<script>alert(1)</script>\"'&"


def somebody(service, account, role="owner"):
    return signed_in(service, invited(service, account, f"{secrets.token_hex(6)}@example.org", role))


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


def test_an_act_shows_what_was_done_and_its_seal(service, account):
    act = sealed(service, newest(service, account, "account set"))
    assert act["seal"]["round"] >= 1
    owner = somebody(service, account)
    owner.get("/console/acts?operation=account+set")
    part = re.search(rf'<details class="act" id="{act["act_id"]}">.*?</details>', owner.body, re.S)[0]
    assert act["seal"]["segment_id"] in part and ">sealed<" in part and f"in round {act['seal']['round']}" in part
    assert f"/console/acts/{act['act_id']}" in owner.links()
    owner.get(f"/console/acts/{act['act_id']}")
    text = words(owner)
    for told in ("Act: account set", act["act_id"], "operator", f"asked by {HOSTILE}", f"One {HOSTILE}",
                 act["seal"]["segment_id"], act["seal"]["authority"], "without probative value"):
        assert told in text, told
    assert "<script>alert" not in owner.body
    assert f'<code class="hash">{act["chain_hash"]}</code>' in owner.body
    assert act["seal"]["sealed_at"][:16] in owner.body
    owner.send("/console/language", language="es")
    text = words(owner.get(f"/console/acts/{act['act_id']}"))
    assert "Acto: account set" in text and "Hora del sello de tiempo" in text and "operador" in text


def test_the_act_of_a_user_names_him_and_his_address(service, account):
    owner = somebody(service, account)
    owner.get("/console/users")
    guest = f"{secrets.token_hex(6)}@example.org"
    owner.send("/console/users/invite", email=guest, role="reader")
    act = newest(service, account, "user invite")
    text = words(owner.get(f"/console/acts/{act['act_id']}"))
    assert act["email"] in text and guest in text and "From where 127.0.0.1" in text


def test_its_proof_is_downloaded_and_verifies(service, account, tmp_path):
    act = sealed(service, newest(service, account, "account set"))
    owner = somebody(service, account)
    path = f"/console/acts/{act['act_id']}"
    owner.get(path)
    assert {f"{path}/{name}" for name in ("act.json", "act.ers", "seal.json", "seal.ers")} <= owner.links()
    for kind, name in (("act", act["act_id"]), ("seal", act["seal"]["segment_id"])):
        for extension in ("json", "ers"):
            owner.get(f"{path}/{kind}.{extension}")
            assert owner.status == 200
            assert owner.headers["content-disposition"] == f'attachment; filename="{name}.{extension}"'
            (tmp_path / f"{name}.{extension}").write_bytes(owner.content)
        told = service.run("verify", str(tmp_path / f"{name}.ers"), str(tmp_path / f"{name}.json"))
        assert told.returncode == 0, told.stdout + told.stderr
    document = (tmp_path / f"{act['act_id']}.json").read_bytes()
    assert json.loads(document)["act_id"] == act["act_id"]
    altered = tmp_path / "altered.json"
    altered.write_bytes(document.replace(b"account set", b"account get"))
    assert service.run("verify", str(tmp_path / f"{act['act_id']}.ers"), str(altered)).returncode != 0
    assert owner.get(f"{path}/nothing.json").status == 404


def test_one_that_is_not_sealed_says_so(start):
    service = start(seal__interval="1h")
    account = service.new_account(credits=1)
    owner = somebody(service, account)
    act = newest(service, account, "account create")
    assert act["seal"] is None
    path = f"/console/acts/{act['act_id']}"
    assert "The act is not sealed yet" in words(owner.get(path)) and "act.ers" not in owner.body
    assert "not sealed yet" in words(owner.get("/console/acts"))
    assert owner.get(f"{path}/act.ers").status == 404


def test_only_owners_of_this_account_see_it(service, account):
    act = sealed(service, newest(service, account, "account set"))
    path = f"/console/acts/{act['act_id']}"
    for role in ("developer", "accountant", "reader"):
        visitor = somebody(service, account, role)
        for below in ("", "/act.json", "/seal.ers"):
            assert visitor.get(path + below).status == 403, (role, below)
    stranger = somebody(service, service.new_account(credits=1))
    for below in ("", "/act.json", "/act.ers", "/seal.json", "/seal.ers"):
        assert stranger.get(path + below).status == 404
        told = stranger.text()
        assert stranger.get("/console/acts/act_nothing" + below).status == 404
        assert told.replace(act["act_id"], "act_nothing") == stranger.text()
