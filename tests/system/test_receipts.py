"""Receipts of purchases as PDF: what they say, who gets them, and that they are whole and signed."""

import base64
import hashlib
import os
import re
import secrets
import signal
import subprocess
import threading

import pytest

from client import eventually
from console import invited, signed_in
from money import bill, new_pack, new_purchase, purchase, words

HOSTILE = "<b>evil</b> \u202e\u200b'\"\\)("
SHOWN = "<b>evil</b> ‹U+202E›‹U+200B›'\"\\)("


def somebody(service, account, role="accountant", language="en"):
    return signed_in(service, invited(service, account, f"{secrets.token_hex(6)}@example.org", role), language)


@pytest.fixture(scope="module")
def account(service):
    account = service.new_account(credits=10)
    bill(service, account, tax_rate="21")
    return account


@pytest.fixture(scope="module")
def pack(service, account):
    return service.admin("pack", "create", "--name", f"Pack {HOSTILE}", "--credits", 1500, "--price", "1234.50",
                         "--currency", "EUR", "--account", account)


@pytest.fixture
def paid(service, account, pack):
    return purchase(service, "pay", new_purchase(service, account, pack))


def receipt(service, sale, path, *flags):
    """By the command line; its words."""
    told = service.admin("purchase", "receipt", sale["sale_id"], "--output", path, *flags)
    content = path.read_bytes()
    assert "pdf" not in told and told["bytes"] == len(content)
    assert told["sha256"] == hashlib.sha256(content).hexdigest()
    return words(path)


def issued(text):
    """When it says that it was, and the rest."""
    moment = re.search(r" (Issued|Emitido) (.*?UTC) ", text)
    return moment[2], text.replace(moment[0], " ")


def test_a_receipt_says_what_was_recorded(service, account, paid, tmp_path):
    text = receipt(service, paid, tmp_path / "one.pdf")
    for part in ("Receipt", paid["sale_id"], "Seller", service.public_url, account, "ES", f"Pack {SHOWN} (1500)",
                 "1,500", "1,234.50 EUR", "21 %", "259.25 EUR", "1,493.75 EUR", "Manually", "is not an invoice"):
        assert part in text, (part, text)
    assert "Refunded" not in text and "Charged back" not in text
    text = receipt(service, paid, tmp_path / "uno.pdf", "--language", "es")
    for part in ("Recibo", "Vendedor", "1234,50 EUR", "259,25 EUR", "1493,75 EUR", "Manualmente", "No es una factura"):
        assert part in text, (part, text)


def test_what_changes_since_changes_nothing_on_it(service, tmp_path):
    account = service.new_account(credits=1)
    bill(service, account, tax_rate="21")
    service.admin("account", "set", account, "--name", "Señal, S.L.")
    pack = service.admin("pack", "create", "--name", "Ten", "--credits", 10, "--price", "9.99", "--currency", "EUR",
                         "--account", account)
    sale = purchase(service, "pay", new_purchase(service, account, pack))
    before = receipt(service, sale, tmp_path / "before.pdf")
    assert "2.10 EUR" in before and "21 %" in before and "Account name at order Señal, S.L." in before
    service.admin("account", "set", account, "--name", "Somebody else")
    service.admin("account", "billing", account, "--country", "GB", "--region", "europe", "--tax-rate", "5",
                  "--customer", "cus_other")
    service.admin("pack", "withdraw", pack["pack_id"])
    after = receipt(service, sale, tmp_path / "after.pdf")
    assert issued(after)[1] == issued(before)[1]


def test_what_holds_is_what_held_when_it_was_ordered(service, tmp_path):
    """The provider is asked for the total of then; money that comes late changes none of it."""
    account = service.new_account(credits=1)
    bill(service, account, tax_rate="5.25")
    sale = new_purchase(service, account, new_pack(service, price="1.00"))
    service.admin("account", "set", account, "--name", "Somebody else")
    service.admin("account", "billing", account, "--country", "FR", "--tax-rate", "20", "--customer", "cus_other")
    purchase(service, "pay", sale)
    text = receipt(service, sale, tmp_path / "one.pdf")
    # Of a price this small 5 % would give the same tax.
    for part in ("0.05 EUR", "Tax rate 5.25 %", "Account name at order An account", "Billing country ES", "cus_one"):
        assert part in text, (part, text)
    assert "only multiple" not in text


def test_of_a_purchase_from_before_the_records_it_says_so(start, tmp_path):
    service = start()
    account = service.new_account(credits=1)
    bill(service, account, tax_rate="21")
    sale = purchase(service, "pay", new_purchase(service, account, new_pack(service)))
    assert service.stop() == 0
    service.store.change("UPDATE purchases SET tax_rate = NULL, account_name = NULL")
    service.start()
    service.admin("account", "set", account, "--name", "Somebody else")
    text = receipt(service, sale, tmp_path / "one.pdf")
    for part in ("Current account name Somebody else", "were not recorded with this purchase", "21 %",
                 "the only multiple"):
        assert part in text, (part, text)
    assert service.admin("purchase", "show", sale["sale_id"])["tax_rate"] is None
    text = receipt(service, sale, tmp_path / "uno.pdf", "--language", "es")
    for part in ("Nombre actual Somebody else", "no se registraron con esta compra", "el único múltiplo"):
        assert part in text, (part, text)


def test_the_seller_is_the_one_of_the_day_that_it_was_issued_on(start, tmp_path):
    service = start(service__name="Before")
    account = service.new_account(credits=1)
    sale = purchase(service, "pay", new_purchase(service, account, new_pack(service)))
    before = receipt(service, sale, tmp_path / "before.pdf")
    assert service.stop() == 0
    service.settings["service.name"] = "Afterwards"
    service.start()
    after = receipt(service, sale, tmp_path / "after.pdf")
    assert "Name Before" in before and "Name Afterwards" in after and "seller's details are those at the time" in after
    assert issued(before)[0] != issued(after)[0]


def test_the_account_tells_the_language_unless_told(service, tmp_path):
    account = service.new_account(credits=1)
    service.admin("account", "set", account, "--language", "es")
    pack = service.admin("pack", "create", "--name", "Ten", "--credits", 10, "--price", "9.99", "--currency", "USD",
                         "--account", account)
    sale = purchase(service, "pay", new_purchase(service, account, pack))
    text = receipt(service, sale, tmp_path / "one.pdf")
    # No country was recorded, which it says; no tax, so no word on its rate.
    assert "Recibo" in text and "no consta en esta compra" in text and "0,00 USD" in text and "múltiplo" not in text
    assert "not recorded" in receipt(service, sale, tmp_path / "two.pdf", "--language", "en")


@pytest.mark.parametrize("verb, english, spanish",
                         [("refund", "The price of this purchase was refunded",
                           "El precio de esta compra se reembolsó"),
                          ("revert", "bank charged back the payment", "banco del cliente anuló el pago")])
def test_one_that_was_taken_back_says_so(service, paid, verb, english, spanish, tmp_path):
    purchase(service, verb, paid)
    assert english in receipt(service, paid, tmp_path / "one.pdf", "--language", "en")
    assert spanish in receipt(service, paid, tmp_path / "two.pdf", "--language", "es")


def test_others_find_it_whole_and_signed(service, paid, tmp_path):
    path = tmp_path / "one.pdf"
    receipt(service, paid, path)
    done = subprocess.run(["qpdf", "--check", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(["pdfsig", "-nocert", path], capture_output=True, text=True, check=False)
    assert done.stdout.count("Signature Validation: Signature is Valid.") == 1, done.stdout
    assert "Total document signed" in done.stdout
    # It is no report, and is taken for none.
    told = service.run("verify", str(path))
    assert told.returncode != 0 and "Traceback" not in told.stdout + told.stderr


def test_one_that_was_not_paid_has_none(service, account, pack, tmp_path):
    sale = new_purchase(service, account, pack)
    for command in ((), ("cancel",)):
        if command:
            purchase(service, *command, sale)
        told = service.run("purchase", "receipt", sale["sale_id"], "--output", str(tmp_path / "none.pdf"))
        assert told.returncode == 1 and "has not been paid" in told.stderr
    assert not (tmp_path / "none.pdf").exists()
    visitor = somebody(service, account)
    assert "/receipt" not in visitor.get(f"/console/money/purchases/{sale['sale_id']}").body
    assert visitor.get(f"/console/money/purchases/{sale['sale_id']}/receipt").status == 400
    assert "has not been paid" in visitor.text()


def test_the_command_line_writes_over_nothing(service, paid, tmp_path):
    path = tmp_path / "mine.pdf"
    path.write_text("mine")
    told = service.run("purchase", "receipt", paid["sale_id"], "--output", str(path))
    assert told.returncode != 0 and path.read_text() == "mine"
    told = service.run("purchase", "receipt", paid["sale_id"])
    assert told.returncode == 2 and "--output FILE" in told.stderr
    whole = service.admin("purchase", "receipt", paid["sale_id"])
    assert base64.b64decode(whole["pdf"]).startswith(b"%PDF-1.7")


def test_it_is_downloaded_in_the_console(service, account, paid, tmp_path):
    page = f"/console/money/purchases/{paid['sale_id']}"
    for role in ("owner", "accountant", "reader"):
        visitor = somebody(service, account, role)
        assert f"{page}/receipt?language=es" in visitor.get(page).links()
        visitor.get(f"{page}/receipt?language=es")
        assert visitor.status == 200 and visitor.headers["content-type"] == "application/pdf"
        assert visitor.headers["content-disposition"] == f'attachment; filename="{paid["sale_id"]}-es.pdf"'
        assert visitor.headers["cache-control"] == "no-store"
        (tmp_path / "one.pdf").write_bytes(visitor.content)
        assert "Recibo" in words(tmp_path / "one.pdf")
    (tmp_path / "two.pdf").write_bytes(visitor.get(f"{page}/receipt").content)
    assert "Receipt" in words(tmp_path / "two.pdf")
    assert visitor.get(f"{page}/receipt?language=fr").status == 400
    assert somebody(service, account, "developer").get(f"{page}/receipt").status == 403
    stranger = somebody(service, service.new_account(credits=1), "owner")
    assert stranger.get(f"{page}/receipt").status == 404
    assert stranger.get("/console/money/purchases/sal_nothing/receipt").status == 404


def test_an_account_has_so_many_made(start):
    """Each leaves a line in the signer's log for good."""
    service = start(seal__interval="1h")
    # What a start signs by itself is a seal, and what its responder says of either certificate.
    service.logged(lambda line: line["event"] == "validation_data", 2)
    account, other = service.new_account(credits=1), service.new_account(credits=1)
    paths = []
    for one in (account, other):
        sale = purchase(service, "pay", new_purchase(service, one, new_pack(service)))
        paths.append(f"/console/money/purchases/{sale['sale_id']}/receipt")
    visitor = somebody(service, account)
    lines = [len(signer_log(service))]
    for _ in range(30):
        assert visitor.get(paths[0]).status == 200
    lines.append(len(signer_log(service)))
    assert visitor.get(paths[0]).status == 429 and int(visitor.headers["retry-after"]) <= 60
    assert "Too many receipts of this account were created recently" in visitor.text()
    assert lines[1] - lines[0] == 30 and len(signer_log(service)) == lines[1]
    assert somebody(service, other).get(paths[1]).status == 200, "another account's are made"
    assert service.admin("purchase", "receipt", paths[0].split("/")[-2])["bytes"], "and the operator's"


def signer_log(service):
    return (service.data / "signer" / "signer.log").read_text().splitlines()


def test_whoever_waits_for_a_receipt_keeps_nobody_waiting(start):
    """While what signs stands still, whoever asks for receipts waits apart, and all else goes on."""
    service = start(seal__interval="1h", http__deadline="60s")
    account = service.new_account(credits=10)
    channel = service.new_channel(account_id=account)
    event = channel.live.register({"number": 0}).expect(201).json["event_id"]
    sale = purchase(service, "pay", new_purchase(service, account, new_pack(service)))
    path = f"/console/money/purchases/{sale['sale_id']}/receipt"
    asked = [somebody(service, account) for _ in range(3)]
    visitor = somebody(service, account)
    threads = [threading.Thread(target=one.get, args=(path,)) for one in asked]
    signer = service.signer()
    os.kill(signer, signal.SIGSTOP)
    try:
        eventually(lambda: service.metric("http_connections") == 1, "only the channel's is left")
        for thread in threads:
            thread.start()
        eventually(lambda: service.metric("http_connections") == 1 + len(threads), "they are asked for")
        assert visitor.get("/console/money").status == 200
        channel.live.register({"number": 1}).expect(201)
        channel.live.get(f"/v1/events/{event}").expect(200)
        assert all(thread.is_alive() for thread in threads)
    finally:
        os.kill(signer, signal.SIGCONT)
    for thread in threads:
        thread.join()
    assert [one.status for one in asked] == [200] * 3, "one after the other"
    channel.close()


def test_receipts_are_made_one_after_the_other(service, account, paid):
    """Many at once are queued, and all of them come."""
    path = f"/console/money/purchases/{paid['sale_id']}/receipt"
    asked = [somebody(service, account) for _ in range(6)]
    threads = [threading.Thread(target=one.get, args=(path,)) for one in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.status for one in asked] == [200] * 6
