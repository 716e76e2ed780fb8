"""An operator's own signing keys: what is refused, what waits, and how one key replaces another."""

import contextlib
import json
import os
import re
import shlex
import signal
import time

import pytest

from client import NotStarted, eventually, run
from fleet import Fleet
from operators import NO_AUTHORITY, Operators, check, operators
from pki import DAY, Pki, as_next
from program import ROOT
from publisher import Publisher
from stores import KIND
from test_signer_list import assert_proved

# A server's store `config check` asks with --connect alone (test_config_connect.py).
LOOKS_INTO_THE_STORE = KIND == "sqlite"


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


# ---- what is refused ----

@pytest.mark.parametrize("what, why", [
    ({"ends": -60}, "has expired on"),
    ({"begins": DAY}, "is not valid before"),
    ({"kind": "P-224"}, "a curve weaker than P-256"),
    ({"extensions": "web"}, "is not for signing documents"),
    ({"extensions": "authority"}, "is of a key that may not sign"),
])
def test_what_is_not_fit_is_refused_at_start_and_by_config_check(tmp_path, what, why):
    pki = Pki(tmp_path / "pki")
    with operators(tmp_path, pki, pki.signer("bad", **what)) as service:
        assert why in service.refused()
        done = check(service)
        blamed = "signer.key" if "kind" in what else "signer.chain"  # the key itself, or its certificate
        assert done.returncode == 1 and why in done.stderr and f"{blamed}: " in done.stderr


def test_a_key_that_others_may_read_or_of_another_certificate_is_refused(tmp_path, pki):
    mine, other = pki.signer("mine"), pki.signer("other")
    with operators(tmp_path, pki, {**mine, "signer.chain": other["signer.chain"]}) as service:
        assert "does not belong to the key" in service.refused()
        assert "does not belong to the key" in check(service).stderr
        service.set(mine)
        pki.path("mine.key").chmod(0o640)
        assert "users other than its owner" in service.refused()
        assert "users other than its owner" in check(service).stderr
        pki.path("mine.key").chmod(0o600)
        done = check(service)
        assert done.returncode == 0, done.stderr
        service.start()
        assert service.certify("a") == pki.sha256("mine")


@pytest.mark.parametrize("given, lacks", [(["short"], "CN=An issuer of seals"), (["short", "issuer"], "CN=An operator's root")])
def test_a_chain_that_does_not_lead_to_its_root_is_refused(tmp_path, given, lacks):
    """What it signed would not be valid for a reader who trusts the root."""
    pki = Pki(tmp_path / "pki")
    settings = pki.signer("short")
    whole = pki.path("short-chain.pem").read_bytes()
    pki.path("short-chain.pem").write_bytes(b"".join(pki.path(each + ".pem").read_bytes() for each in given))
    with operators(tmp_path, pki, settings) as service:
        assert f"does not lead to a root: the certificate of {lacks}" in service.refused()
        done = check(service)
        assert done.returncode == 1 and f"the certificate of {lacks}" in done.stderr
        assert "signer.chain: " in done.stderr
        pki.path("short-chain.pem").write_bytes(whole)
        assert check(service).returncode == 0
        service.start()
        assert service.certify("a") == pki.sha256("short")


def test_the_next_key_is_looked_at_too(tmp_path, pki):
    bad = as_next(pki.signer("no-next", extensions="web"))
    with operators(tmp_path, pki, {**pki.signer("present"), **bad}) as service:
        assert "signer.next_key" in service.refused()
        assert "signer.next_chain: " in check(service).stderr


# ---- the end of a certificate ----

def test_certifications_wait_while_the_certificate_has_expired(tmp_path, pki):
    with operators(tmp_path, pki, pki.signer("short", ends=40)) as service:
        service.start()
        assert "expires on" in service.warnings(), "warned 30 days before"
        (line,) = service.logged(lambda line: line.get("event") == "certificate_expiring")
        assert "CN=short" in line["subject"]
        assert service.metric("signer_can_sign") == 1
        assert service.metric("signer_expires_timestamp_seconds") < time.time() + 60
        eventually(lambda: "certifications wait" in service.warnings(), "it has expired")
        assert service.metric("signer_can_sign") == 0
        client = service.test_client()
        event = client.register({"a": 1}, "meanwhile").expect(201).json
        accepted = client.certify(seq_from=1, seq_to=event["sequence"]).expect(202).json
        waiting = accepted["certification_id"]
        time.sleep(3)
        assert client.certification(waiting)["status"] == "processing"
        shown = service.admin("certification", "show", waiting)
        assert shown["attempts"] == 0
        # The next one, and what waited is issued.
        assert service.stop() == 0
        service.set(as_next(pki.signer("longer")))
        service.start()
        client = service.test_client()
        assert client.settled(waiting)["status"] == "completed"
        assert [record["sha256"] for record in service.published()] == [
            pki.sha256("short"), pki.sha256("longer")]
        assert "certificate's end was near" in service.published()[0]["reason"]


# ---- one after the other ----

def test_the_next_key_is_taken_while_serving_and_old_evidence_stays_valid(tmp_path, pki):
    first, second = pki.signer("first"), pki.signer("second")
    with operators(tmp_path, pki, {**first, **as_next(second)}) as service:
        service.start()
        assert service.certify("a") == pki.sha256("first")
        (receipt_signer,) = service.children("receipt-signer")
        os.kill(receipt_signer, signal.SIGSTOP)
        told = service.admin("signer", "rotate", "--reason", "as every year")["data"]
        assert [item["sha256"] for item in told] == [pki.sha256("first"), pki.sha256("second")]
        assert service.certify("b") == pki.sha256("second")
        assert service.verify(tmp_path / "a.zip") == pki.sha256("first")
        # The key of receipts signs the new certificate, once it signs at all.
        service.logged(lambda line: line["event"] == "receipt_key_not_proved")
        os.kill(receipt_signer, signal.SIGCONT)
        proofs = "SELECT key, proof, proof_of FROM public_keys WHERE kind = 'receipt'"
        ((key, proof, sha256),) = eventually(
            lambda: [row for row in service.store.rows(proofs) if row[2] == pki.sha256("second")], "another proof")
        assert_proved({"key": key, "proof": proof, "sha256": sha256}, pki.sha256("second"))
        assert run("signer", "rotate", *service.chosen()).returncode == 1, "there is no other"
        # The history is published without a key, and in a backup.
        former, present = service.published()
        assert former["reason"] == "as every year" and former["used_until"] == present["used_from"]
        assert present["used_until"] is None and not present["development"]
        assert former["certificates"].count("BEGIN CERTIFICATE") == 3
        # What is next becomes present with the settings, at leisure.
        service.change(**second, **{name: None for name in as_next(second)})
        assert service.certify("c") == pki.sha256("second")
        # The former one never returns.
        assert service.stop() == 0
        service.set(first)
        assert "does not match the store's current signing certificate" in service.refused()
        service.set(second)
        lines = [json.loads(line) for line in
                 (service.data / "signer" / "signer.log").read_text().splitlines()]
        assert [line["sha256"] for line in lines if line["purpose"] == "key_taken"] == [
            pki.sha256("second")]


def test_another_key_in_place_of_the_present_one_is_refused(tmp_path, pki):
    with operators(tmp_path, pki, pki.signer("one")) as service:
        service.start()
        assert service.stop() == 0
        service.set(pki.signer("two"))
        assert pki.sha256("one") in service.refused()
        if LOOKS_INTO_THE_STORE:
            done = check(service)
            assert done.returncode == 1 and pki.sha256("one") in done.stderr, "and is found before"


def test_from_development_to_an_operators_key_and_not_back(tmp_path, pki):
    with contextlib.ExitStack() as ending:
        service = Operators(tmp_path, pki, {})
        ending.callback(service.discard)
        service.set({name: None for name in (*NO_AUTHORITY, "tsa.roots")})
        service.start()
        assert service.published()[0]["development"] is True
        assert service.stop() == 0
        service.set({**NO_AUTHORITY, "tsa.roots": str(pki.root), **pki.signer("real")})
        said = service.refused()
        assert "signer end --reason" in said
        assert "signer end --reason" in check(service).stderr or not LOOKS_INTO_THE_STORE
        service.admin("signer", "end", "--reason", "going live")
        done = check(service)
        assert done.returncode == 0, done.stderr
        assert len(service.admin("signer", "list")["data"]) == 1, "nothing came into force by that"
        service.start()
        assert service.certify("a") == pki.sha256("real")
        assert [item["reason"] for item in service.published()] == ["going live", None]
        assert service.stop() == 0
        service.set({name: None for name in ("signer.key", "signer.chain", *NO_AUTHORITY)})
        assert "Set signer.key" in service.refused()
        assert "Set signer.key" in check(service).stderr or not LOOKS_INTO_THE_STORE
        service.admin("signer", "end", "--reason", "try to go back")
        last = service.refused().splitlines()[-1]
        assert "was ended in the store" in last
        assert "was ended in the store" in check(service).stderr or not LOOKS_INTO_THE_STORE


# ---- what the pages say ----

def command_of(page, service):
    """The one command that a page of docs/ has, run unchanged."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (line,) = [line.strip() for line in text.splitlines() if line.strip().startswith("constancia signer")]
    words = shlex.split(line)[1:]
    service.admin(*words)
    return words[-1]


def test_a_lost_key(tmp_path, pki):
    with operators(tmp_path, pki, pki.signer("lost")) as service:
        service.start()
        service.certify("a")
        assert service.stop() == 0
        pki.path("lost.key").unlink()
        with pytest.raises(NotStarted, match="cannot be read"):
            service.start()
        found = pki.signer("found")
        service.set(found)
        if LOOKS_INTO_THE_STORE:
            done = check(service)
            assert done.returncode == 1 and "1 problem" in done.stderr and pki.sha256("lost") in done.stderr
        reason = command_of("operate/runbooks/lost-key.md", service)
        assert check(service).returncode == 0
        service.start()
        assert service.certify("b") == pki.sha256("found")
        assert service.verify(tmp_path / "a.zip") == pki.sha256("lost")
        assert [item["reason"] for item in service.published()] == [reason, None]
        assert "certifications wait" not in service.warnings()


def test_a_stolen_key(tmp_path, pki):
    stolen = pki.signer("stolen")
    with operators(tmp_path, pki, stolen) as service:
        service.start()
        service.certify("a")
        reason = command_of("operate/runbooks/stolen-key.md", service)
        assert "certifications wait" in service.warnings()
        client = service.test_client()
        sequence = client.register({"b": 1}, "b").expect(201).json["sequence"]
        waiting = client.certify(seq_from=1, seq_to=sequence).expect(202).json["certification_id"]
        assert service.admin("store", "check")["valid"] is True
        assert service.stop() == 0
        assert "cannot be used again" in service.refused()
        service.set(pki.signer("safe"))
        service.start()
        assert service.test_client().settled(waiting)["status"] == "completed"
        assert [item["reason"] for item in service.published()] == [reason, None]
        assert service.verify(tmp_path / "a.zip") == pki.sha256("stolen")


@pytest.mark.postgresql
def test_nodes_have_one_signer(tmp_path, pki):
    first, second = pki.signer("fleet1"), as_next(pki.signer("fleet2"))
    common = {**NO_AUTHORITY, "tsa.roots": str(pki.root), **first, **second}
    with Fleet(tmp_path, **{name.replace(".", "__"): value for name, value in common.items()}) as fleet:
        one, two = fleet.nodes

        def in_force(node):
            return json.loads(node.client(None).get("/v1/signers").expect(200).body)["data"][-1]
        assert in_force(one)["sha256"] == in_force(two)["sha256"] == pki.sha256("fleet1")
        one.admin("signer", "rotate")
        for node in fleet.nodes:
            eventually(lambda node=node: any(line.get("event") == "signer_activated"
                                             for line in node.log_lines()), "both have taken it")
        # A node without the next key says so, and continues to register.
        assert two.stop() == 0
        for name in second:
            two.settings.pop(name)
        assert pki.sha256("fleet2") in two.run("serve").stderr
        # A node without a configured key does not join.
        for name in (*first, *NO_AUTHORITY, "tsa.roots"):
            two.settings.pop(name)
        two.settings["tsa.url"] = "embedded:"
        done = two.run("serve")
        assert done.returncode == 1 and "only a development key" in done.stderr + done.stdout


@pytest.mark.postgresql
def test_a_development_key_is_not_two_nodes(tmp_path):
    with Fleet(tmp_path) as fleet:
        node = fleet.nodes[1]
        assert node.stop() == 0
        for path in (tmp_path / node.name / "signer").glob("*.pem"):
            path.unlink()
        done = node.run("serve")
        assert done.returncode == 1 and "another node's development key" in done.stderr


# ---- what the metrics say of chains ----

def chains(service):
    """The state of the signing key's chain: complete and revoked, as /metrics has it."""
    _, text = service.monitor("/metrics")
    found = [re.findall(rf'^constancia_signer_chain_{what}\{{signer="key"\}} (\d)$', text, re.M)
             for what in ("complete", "revoked")]
    return found[0] and found[1] and (int(found[0][0]), int(found[1][0]))


def test_metrics_have_signers_whose_chain_is_incomplete_or_revoked(tmp_path, pki):
    publisher = Publisher(tmp_path / "published")
    with contextlib.ExitStack() as ending:
        ending.callback(publisher.close)
        whole, gone = publisher.pki.signer("whole"), publisher.pki.signer("gone")
        for name, of, signer, expected in (("a", publisher.pki, whole, (1, 0)), ("b", publisher.pki, gone, (0, 1)),
                                           ("c", pki, pki.signer("silent"), (0, 0))):
            (tmp_path / name).mkdir()
            service = ending.enter_context(operators(tmp_path / name, of, signer))
            service.set({"revocation.allow_networks": "127.0.0.0/8", "revocation.timeout": "30s"})
            if signer is gone:
                publisher.pki.revoke("gone")  # within the second that the first check looks back
            service.start()
            assert eventually(lambda service=service: chains(service), "the chain is checked") == expected, name
            assert service.stop() == 0
