"""The audit log of the administration: actor, object, reason, before and after, in the same transaction
as the change; listed, exported, and bound together."""

import concurrent.futures
import contextlib
import csv
import hashlib
import json
import os
import pwd
import subprocess

import pytest

import stores
from client import Service, run
from program import clean_environment

pytestmark = pytest.mark.both_stores

ZEROS = bytes(32)


def acts(service, *words):
    return service.admin("audit", "list", *words)["data"]


def claimed_by(service, name, *words):
    done = subprocess.run(service.command(*words), env=clean_environment({"SUDO_USER": name}),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done


def test_an_act_says_who_what_why_and_what_was_before(service):
    account = service.new_account(credits=7)
    claimed_by(service, "alice", "account", "set", account, "--email", "new@example.org", "--reason",
               "the owner asked, by telephone")
    service.admin("credits", "add", account, "5", "--reason", "a gift")
    gift, change, creation = acts(service, "--account", account)
    me = os.getuid()
    for act in (gift, change, creation):
        assert (act["uid"], act["user"]) == (me, pwd.getpwuid(me).pw_name), "proven by the socket"
        assert act["actor"] == "operator" and act["via"] == "socket" and act["node"]
        assert act["account_id"] == account
    assert [act["number"] for act in (creation, change, gift)] == [1, 2, 3]
    assert [act["operation"] for act in (creation, change, gift)] == ["account create", "account set",
                                                                     "credits add"]
    assert creation["made"]["account_id"] == account and creation["claimed"] is None
    assert change["claimed"] == "alice", "what sudo says is reported apart from what is proven"
    assert change["reason"] == "the owner asked, by telephone"
    assert change["before"] == {"account": {"email": None}} or change["before"]["account"]["email"]
    assert change["after"] == {"account": {"email": "new@example.org"}}
    assert gift["reason"] == "a gift" and gift["arguments"]["credits"] == 5
    assert gift["made"] == {"balance": 12}
    logged = service.logged(lambda line: line.get("event") == "administration"
                            and line.get("act") == change["act_id"])
    assert len(logged) == 1 and logged[0]["operation"] == "account set"
    assert logged[0]["claimed"] == "alice" and logged[0]["account"] == account


def test_what_is_refused_or_only_read_leaves_no_act(service):
    account = service.new_account()
    service.admin("threshold", "create", "--account", account, "--credits", "3")
    before = len(acts(service, "--account", account))
    for words in (("threshold", "create", "--account", account, "--credits", "3"),
                  ("credits", "add", account, "-99999999"), ("threshold", "delete", "thr_unknown"),
                  ("key", "revoke", "key_unknown"), ("account", "set", "acc_unknown", "--name", "x")):
        assert service.run(*words).returncode != 0, words
    service.admin("account", "show", account)
    service.admin("account", "billing", account)  # shows, and changes nothing without an option
    assert len(acts(service, "--account", account)) == before
    assert not [act for act in acts(service, "--installation")
                if act["operation"] in ("threshold delete", "key revoke", "account set")]
    service.admin("account", "billing", account, "--country", "ES")
    assert acts(service, "--account", account)[0]["after"]["billing"]["country"] == "ES"


def test_no_secret_is_on_record(service):
    channel = service.new_channel()
    made = service.admin("key", "create", "--channel", channel.id, "--mode", "live")
    endpoint = service.admin("webhook", "create", "--account", channel.account_id, "--url",
                             "https://example.org/hook")
    rotated = service.admin("webhook", "rotate", endpoint["endpoint_id"])
    kept = json.dumps(acts(service, "--account", channel.account_id))
    assert made["key_id"] in kept and endpoint["endpoint_id"] in kept
    for secret in (made["key"], endpoint["secret"], rotated["secret"]):
        assert secret not in kept and secret[-20:] not in kept
    assert acts(service, "--operation", "webhook rotate")[0]["after"]["endpoint"]["secret_version"] == 2


def test_no_secret_of_an_address_is_on_record(service):
    """What receivers have in their addresses to know their callers by, and links that let a user in."""
    account = service.new_account()
    endpoint = service.admin("webhook", "create", "--account", account, "--url",
                             "https://example.org/hook?a=1&token=s3cret0one")
    service.admin("webhook", "update", endpoint["endpoint_id"], "--url",
                  "https://example.org/hook?a=1&token=s3cret0two")
    assert service.admin("webhook", "show", endpoint["endpoint_id"])["url"].endswith("?a=1&token=s3cret0two")
    service.admin("user", "invite", "--account", account, "--email", "jane@example.org", "--role", "owner")
    link = service.admin("user", "link", "jane@example.org")["url"]
    secret = link.split("=")[-1]
    assert len(secret) > 20
    kept = json.dumps(acts(service))
    for gone in ("s3cret0one", "s3cret0two", secret):
        assert gone not in kept, gone
    masked = "https://example.org/hook?a=********&token=********"
    changed, created = [act for act in acts(service, "--account", account)
                        if act["operation"].startswith("webhook")]
    assert created["arguments"]["url"] == created["after"]["endpoint"]["url"] == masked
    assert changed["arguments"]["url"] == masked
    assert (changed["before"], changed["after"]) == ({"endpoint": {"url": masked}},) * 2, \
        "that it was changed is reported, to what is not"
    assert acts(service, "--operation", "user link")[0]["arguments"] == {"user": "jane@example.org"}


def test_what_is_outside_of_the_store_is_recorded_before(service, tmp_path):
    service.admin("store", "backup", tmp_path / "copy", "--reason", "before the upgrade")
    copy = acts(service, "--installation", "--operation", "store backup")[0]
    assert copy["reason"] == "before the upgrade" and copy["account_id"] is None
    assert copy["arguments"]["directory"] == str(tmp_path / "copy")
    service.admin("store", "rotate-link-secret", "--reason", "a laptop was lost")
    assert acts(service, "--installation")[0]["operation"] == "store rotate-link-secret"


def pages(service, *words):
    found, after = [], ()
    while True:
        told = service.admin("audit", "list", "--limit", "3", *words, *after)
        found += told["data"]
        if not told["has_more"]:
            return found
        after = ("--after", told["data"][-1]["act_id"])


def test_lists_are_filtered_and_paged(service):
    account = service.new_account()
    for n in range(7):
        service.admin("account", "set", account, "--rate", str(n + 1))
    service.acts_sealed()
    newest = pages(service, "--account", account)
    assert [act["number"] for act in newest] == list(range(8, 0, -1))
    assert pages(service, "--account", account, "--ascending") == newest[::-1]
    everything = pages(service, "--ascending")
    assert len({act["act_id"] for act in everything}) == len(everything)
    assert [act for act in everything if act["account_id"] == account] == newest[::-1]
    third = newest[5]
    later = acts(service, "--account", account, "--since", third["at"])
    assert later == newest[:6]
    assert acts(service, "--account", account, "--until", third["at"]) == newest[6:]
    assert acts(service, "--account", account, "--since", "1h") == newest
    assert acts(service, "--account", account, "--until", "1h") == []
    assert service.run("audit", "list", "--since", "yesterday").returncode == 2
    assert service.run("audit", "list", "--after", "act_unknown").returncode == 1


def export(service, to, *words):
    done = service.run("audit", "export", "-o", to, *words)
    assert done.returncode == 0, done.stderr


def chain_holds(exported):
    ends = {}
    for act in exported:
        hash_of_it = act.pop("chain_hash")
        act.pop("seal")
        document = json.dumps(act, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        chain = (act["account_id"], act["urgent"])
        number, end = ends.get(chain, (0, ZEROS))
        assert act["number"] == number + 1, "no number is missing"
        end = hashlib.sha256(end + hashlib.sha256(document).digest()).digest()
        assert end.hex() == hash_of_it
        ends[chain] = (act["number"], end)
    return ends


def test_everything_is_exported_and_recomputed_by_anybody(service, tmp_path):
    account = service.new_account()
    service.admin("account", "set", account, "--name", "=1+1", "--reason", '=cmd() "x",\'y\' añil')
    service.admin("account", "suspend", account)
    service.admin("account", "resume", account)
    service.admin("account", "disable", account)
    service.acts_sealed()
    export(service, tmp_path / "all.ndjson")
    lines = (tmp_path / "all.ndjson").read_text().splitlines()
    exported = [json.loads(line) for line in lines]
    assert exported == pages(service, "--ascending")
    ends = chain_holds(exported)
    assert [ends[account, urgent][0] for urgent in (False, True)] == [3, 2], \
        "what takes rights away is a chain of its own"
    export(service, tmp_path / "one.csv", "--account", account, "--format", "csv")
    rows = list(csv.DictReader((tmp_path / "one.csv").open(newline="")))
    assert [(row["operation"], row["urgent"]) for row in rows] == [
        ("account create", "false"), ("account set", "false"), ("account suspend", "true"),
        ("account resume", "false"), ("account disable", "true")]
    assert rows[1]["reason"] == '\'=cmd() "x",\'y\' añil', "no spreadsheet takes it for a formula"
    assert json.loads(rows[1]["after"]) == {"account": {"name": "=1+1"}}
    for reason in ("  =1+1", "＝1+1"):
        service.admin("account", "set", account, "--rate", "7", "--reason", reason)
        export(service, tmp_path / f"{len(reason)}.csv", "--account", account, "--format", "csv")
        (row,) = [row for row in csv.DictReader((tmp_path / f"{len(reason)}.csv").open(newline=""))
                  if row["reason"].endswith(reason)]
        assert row["reason"] == "'" + reason, "as in every other table"
    assert service.run("audit", "export", "-o", tmp_path / "one.csv").returncode == 2, "never over a file"
    assert (tmp_path / "all.ndjson").stat().st_mode & 0o77 == 0


def test_an_export_that_failed_can_be_repeated(service, tmp_path):
    """It leaves neither the file nor the directory of proofs, which it would not write over."""
    service.new_account()
    proofs = tmp_path / "proofs"
    for words in (("-o", tmp_path / "nowhere" / "acts"), ("-o", tmp_path / "acts", "--since", "yesterday")):
        done = service.run("audit", "export", *words, "--proofs", proofs)
        assert done.returncode == 2 and list(tmp_path.iterdir()) == [], done.stderr
    proofs.mkdir()
    (proofs / "of_somebody").touch()
    done = service.run("audit", "export", "-o", tmp_path / "acts", "--proofs", proofs)
    assert done.returncode == 2 and [path.name for path in tmp_path.rglob("*")] == ["proofs", "of_somebody"]
    (proofs / "of_somebody").unlink()
    proofs.rmdir()
    export(service, tmp_path / "acts", "--proofs", proofs)


def under_other_accounts(which):
    """An account leads to where its rows are: they do not just change it."""
    return (f"CREATE TABLE moved AS SELECT * FROM acts WHERE {which}; DELETE FROM acts WHERE {which};"
            "UPDATE moved SET account = -account; INSERT INTO acts SELECT * FROM moved; DROP TABLE moved")


def test_a_changed_or_missing_audit_record_is_found(tmp_path):
    service = Service(tmp_path)
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        service.start()
        account = service.new_account()
        for n in range(3):
            service.admin("account", "set", account, "--rate", str(n + 1))
        assert service.admin("store", "check")["valid"]
        service.admin("store", "quiet", "--reason", "a drill")
        service.admin("store", "wake", "--dry-run")
        service.admin("store", "wake", "--reason", "it is over")
        assert [(act["operation"], act["reason"]) for act in acts(service, "--installation")[:2]] == [
            ("store wake", "it is over"), ("store quiet", "a drill")]
        assert service.stop() == 0
        done = service.run("account", "suspend", account, "--reason", "no service runs", "--json")
        assert done.returncode == 0, done.stderr
        last = json.loads(service.run("audit", "list", "--json").stdout)["data"][0]
        assert last["via"] == "command" and last["reason"] == "no service runs"
        for damage, mended in (
                ("UPDATE acts SET document = replace(document, 'no service', 'a service') "
                 "WHERE document LIKE '%no service%'",
                 "UPDATE acts SET document = replace(document, 'a service', 'no service') "
                 "WHERE document LIKE '%a service%'"),
                ("UPDATE acts SET operation = 'account resume' WHERE operation = 'account suspend'",
                 "UPDATE acts SET operation = 'account suspend' WHERE operation = 'account resume'"),
                ("UPDATE acts SET at = at - 1 WHERE number = -1", "UPDATE acts SET at = at + 1 WHERE number = -1"),
                ("UPDATE acts SET act_id = act_id || 'x' WHERE number = -1",
                 f"UPDATE acts SET act_id = '{last['act_id']}' WHERE number = -1"),
                (under_other_accounts("account > 0"), under_other_accounts("account < 0")),
                ("UPDATE acts SET number = 99 WHERE number = -1", "UPDATE acts SET number = -1 WHERE number = 99"),
                ("DELETE FROM acts WHERE account > 0 AND number = 2", None)):
            service.store.change(damage)
            told = json.loads(service.run("store", "check", "--json").stdout)
            assert not told["valid"] and any("audit record" in problem for problem in told["problems"]), (damage, told)
            if mended:
                service.store.change(mended)
                assert json.loads(service.run("store", "check", "--json").stdout)["valid"], mended


def test_a_clock_that_is_turned_back_does_not_turn_the_order_round(tmp_path):
    service = Service(tmp_path)
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        service.start()
        account = service.new_account()
        assert service.stop() == 0
        service.store.change("UPDATE acts SET at = 4102444800000000 WHERE account > 0")
        for rate in ("1", "2"):
            assert service.run("account", "set", account, "--rate", rate).returncode == 0
        assert service.run("account", "suspend", account).returncode == 0
        told = json.loads(service.run("audit", "list", "--account", account, "--ascending", "--json").stdout)
        suspended, _, first, second = told["data"]
        assert (first["arguments"]["rate"], first["at"]) == (1, "2100-01-01T00:00:00.000001Z")
        assert (second["arguments"]["rate"], second["at"]) == (2, "2100-01-01T00:00:00.000002Z")
        assert suspended["operation"] == "account suspend", "each chain goes by its own end"


def test_acts_at_the_same_moment_have_numbers_of_their_own(service):
    """Commands that take rights away run concurrently on PostgreSQL, so that two may want the same number."""
    account = service.new_account()
    channel = service.admin("channel", "create", "--account", account, "--name", "C", "--declarant", "D",
                            "--modality", "content")["channel_id"]
    keys = [service.admin("key", "create", "--channel", channel, "--mode", "test")["key_id"]
            for _ in range(8)]
    commands = [("key", "revoke", key) for key in keys]
    commands += [("threshold", "create", "--account", account, "--credits", str(n)) for n in range(1, 17)]
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda words: service.run(*words), commands))
    assert [(one.returncode, one.stderr) for one in done] == [(0, "")] * len(commands)
    made = acts(service, "--account", account, "--limit", "100")
    for urgent, count in ((True, len(keys)), (False, 2 + len(keys) + 16)):
        numbers = [act["number"] for act in made if act["urgent"] is urgent]
        assert sorted(numbers) == list(range(1, count + 1))
    service.admin("store", "check")


# ---- sealed as events are ----

def digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


def verify(service, *paths):
    done = run("verify", *paths, "--trust", service.data / "trust.pem", "--json")
    return done.returncode, json.loads(done.stdout)


def test_a_stranger_verifies_the_record_and_finds_nobody_rewrote_it(service, tmp_path):
    account = service.new_account()
    service.admin("account", "suspend", account, "--reason", "añil")
    for rate in ("1", "2", "3"):
        service.admin("account", "set", account, "--rate", rate)
    listed = service.acts_sealed("--account", account, "--ascending")
    assert all(act["seal"]["kind"] == "development" and act["seal"]["sealed_at"] > act["at"][:19]
               for act in listed)
    proofs = tmp_path / "proofs"
    export(service, tmp_path / "acts.ndjson", "--account", account, "--proofs", proofs)
    assert {path.name for path in proofs.glob("act_*.json")} == {act["act_id"] + ".json" for act in listed}
    status, told = verify(service, *proofs.iterdir())
    # That they existed is shown; nothing in them is signed.
    assert status == 2 and told["verdict"]["code"] == "existence_only" and not told["trusted"]
    assert {found["path"] for found in told["findings"]} == {str(path) for path in proofs.glob("*.json")}
    assert len(told["evidence_records"]) == len(list(proofs.glob("*.ers")))
    covered = {path for record in told["evidence_records"] for path in record["covers"]}
    assert covered == {str(path) for path in proofs.glob("*.json")}
    # The seal documents name the chains' ends: what was left out, or put in another order, shows.
    for name, urgent in (("acts", False), ("urgent acts", True)):
        end, number = ZEROS, 0
        seals = sorted((json.loads(path.read_text()) for path in proofs.glob("seg_*.json")),
                       key=lambda seal: seal["first_sequence"])
        for seal in (seal for seal in seals if seal["chain"] == name):
            assert seal["channel_id"] == account and seal["chain_hash_before"] == end.hex()
            for act in (act for act in listed if act["urgent"] is urgent):
                if seal["first_sequence"] <= act["number"] <= seal["last_sequence"]:
                    number += 1
                    assert act["number"] == number and act["seal"]["segment_id"] == seal["segment_id"]
                    end = hashlib.sha256(end + digest(proofs / f"{act['act_id']}.json")).digest()
            assert seal["chain_hash_last"] == end.hex() and seal["last_sequence"] == number
        assert number == len([act for act in listed if act["urgent"] is urgent])
    changed = proofs / f"{listed[0]['act_id']}.json"
    changed.write_text(changed.read_text().replace("account create", "account delete"))
    status, told = verify(service, *proofs.iterdir())
    assert status == 1 and [found["path"] for found in told["findings"]
                            if "none of the given evidence records covers the file" in found["what"]] == [str(changed)]
    assert service.run("audit", "export", "-o", tmp_path / "again", "--proofs", proofs).returncode == 2


def test_what_is_not_sealed_yet_says_so(tmp_path):
    service = Service(tmp_path, seal__interval="1h")
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        service.start()
        service.acts_sealed()
        account = service.new_account()
        (act,) = acts(service, "--account", account)
        assert act["seal"] is None
        pending = service.run("audit", "proof", act["act_id"])
        assert pending.returncode == 1 and "is not sealed yet" in pending.stderr
        export(service, tmp_path / "acts.ndjson", "--account", account, "--proofs", tmp_path / "proofs")
        assert not list((tmp_path / "proofs").iterdir())
        assert service.admin("store", "check")["valid"]


def rewritten(service, account, number, change):
    """SQL that changes the document of an audit log entry, and all later hashes as the rule wants them."""
    rows = service.store.rows("SELECT number, document FROM acts WHERE account = "
                              f"(SELECT account FROM accounts WHERE account_id = '{account}') "
                              "AND number > 0 ORDER BY number")
    end, sql = ZEROS, ""
    for row_number, document in rows:
        if int(row_number) == number:
            document = change(document)
        end = hashlib.sha256(end + hashlib.sha256(document.encode()).digest()).digest()
        sql += (f"UPDATE acts SET document = {stores.text(document)}, chain_hash = {stores.blob(end)} "
                f"WHERE number = {row_number} AND document LIKE '%{account}%';")
    return sql


def problems(service):
    return json.loads(service.run("store", "check", "--json").stdout)["problems"]


def test_a_record_that_was_rewritten_whole_is_found_by_its_seals(tmp_path):
    service = Service(tmp_path, seal__interval="1s")
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        service.start()
        account, other = service.new_account(), service.new_account()
        for n in range(4):
            service.admin("account", "set", account, "--rate", str(n + 1), "--reason", "asked")
        service.acts_sealed()
        assert service.stop() == 0
        assert problems(service) == []
        back = rewritten(service, account, 3, lambda document: document)
        service.store.change(rewritten(service, account, 3, lambda document: document.replace("asked", "none!")))
        found = problems(service)
        assert found and all("segment" in problem for problem in found), "every hash follows, but no seal"
        service.store.change(back)
        assert problems(service) == []
        # Cut off at the end, and marks that were taken away or added.
        for damage in (f"DELETE FROM acts WHERE number = 5 AND document LIKE '%{account}%'",
                       "INSERT INTO unsealed_acts (account, chain, number) SELECT account, -2, 1 FROM accounts",
                       "DELETE FROM segments WHERE chain = -2 AND account > 0"):
            service.store.change(damage)
            found = [problem for problem in problems(service) if problem not in found]
            assert found, damage
        assert other


def test_a_broken_record_keeps_no_event_from_being_sealed(tmp_path):
    service = Service(tmp_path, seal__interval="1s")
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        service.start()
        channel = service.new_channel()
        assert service.stop() == 0
        done = service.run("account", "set", channel.account_id, "--rate", "7", "--reason", "asked")
        assert done.returncode == 0
        service.store.change("UPDATE acts SET document = replace(document, 'asked', 'none!')")
        service.start()
        event = channel.live.register().expect(201).json
        channel.live.sealed(event["event_id"])
        (line, *_) = service.logged(lambda line: line["event"] == "chain_not_sealed")
        assert line["chain"] == channel.account_id and "chain_hash" in line["cause"]
        later = service.new_account()
        assert len(service.acts_sealed("--account", later)) == 1, "other accounts' records continue"
        assert [act["seal"] is None for act in acts(service, "--account", channel.account_id)][0]
