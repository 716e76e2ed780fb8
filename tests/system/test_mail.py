"""E-mails to account owners, through a real mail server that also refuses, fails and closes connections."""

import email.utils

import pytest

import hooks
from client import eventually, run
from fleet import Fleet
from mail_server import MailServer, make_certificates
from ports import reserve_port


@pytest.fixture
def server():
    one = MailServer()
    yield one
    one.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("mail"))


def new_owner(service, language="en", address="owner@example.com"):
    return service.new_account(credits=5, email=address, language=language)


def cause_mail(service, account_id):
    """Without a payment method an automatic top-up fails at once."""
    pack = service.admin("pack", "create", "--name", "A pack", "--credits", 1000, "--price", "10.00",
                         "--currency", "EUR")["pack_id"]
    service.admin("account", "billing", account_id, "--country", "ES")
    service.admin("topup", "set", "--account", account_id, "--threshold", 10, "--pack", pack)
    return pack


def logged(service, event, count=1):
    return service.logged(lambda line: line["event"] == event, count)


def arrived(server, count=1):
    return eventually(lambda: server.messages if len(server.messages) >= count else None,
                      f"{count} e-mails have arrived")


def over(service, count=1):
    """That number of mails has ended, well or badly."""
    eventually(lambda: service.metric("mails_sent_total") + service.metric("mails_failed_total")
               >= count, f"{count} mails are over")


@pytest.mark.parametrize("language", ["en", "es"])
def test_a_mail_as_it_arrives(start, server, language):
    service = start(**server.settings(), service__name="Constancia & señas")
    account_id = new_owner(service, language)
    pack = cause_mail(service, account_id)
    message = arrived(server)[0]
    assert message.sender == "notices@example.org"
    assert message.recipients == ["owner@example.com"]
    assert message["To"] == "owner@example.com"
    assert email.utils.parseaddr(str(message["From"])) == ("Constancia & señas",
                                                           "notices@example.org")
    assert message["Subject"] == {
        "en": "Constancia & señas: the automatic top-up failed and has been turned off",
        "es": "Constancia & señas: la recarga automática ha fallado y se ha desactivado"}[language]
    assert message["Message-ID"].startswith("<eml_")
    assert message["Message-ID"].endswith("@example.org>")
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Content-Language"] == language
    assert email.utils.parsedate_to_datetime(message["Date"]).utcoffset().total_seconds() == 0
    assert message.get_content_type() == "text/plain"
    assert message.get_content_charset() == "utf-8"
    text = message.get_content()
    assert account_id in text and pack in text
    assert {"en": "no valid payment method.", "es": "no tiene un método de pago válido."}[language] \
        in text
    assert not message.defects
    assert max(len(line) for line in message.content.splitlines()) <= 78
    assert message.content.isascii()
    over(service)
    assert len(server.messages) == 1
    assert "owner@example.com" not in service.log.read_text()


def test_a_disabled_endpoint_is_told_of(start, server):
    service = start(**server.settings(), webhook__schedule="50ms")
    owner = hooks.Owner(service, burst=5)
    service.admin("account", "set", owner.account_id, "--email", "owner@example.com",
                  "--language", "es")
    endpoint = owner.endpoint(f"http://127.0.0.1:{reserve_port()}/hook")
    owner.cause()
    message = arrived(server)[0]
    assert message["Subject"] == (f"Constancia: se han detenido los avisos a su destino de webhook "
                                  f"{endpoint['endpoint_id']}")
    assert endpoint["url"] in message.get_content()
    over(service)
    assert len(server.messages) == 1


def test_nobody_to_tell(start, server):
    service = start(**server.settings())
    without = service.new_account(credits=5)
    cause_mail(service, without)
    cause_mail(service, new_owner(service))
    over(service)
    assert len(arrived(server)) == 1
    assert without not in server.messages[0].get_content()


@pytest.mark.parametrize("steps", [
    ("451 later", "421 and later"), ("rcpt 450 busy",), ("rcpt 421 gone", "452 full")], ids=", ".join)
def test_what_passes_is_waited_for(start, server, steps):
    service = start(**server.settings())
    server.script(*steps)
    cause_mail(service, new_owner(service))
    over(service)
    assert len(server.messages) == 1
    assert service.metric("mails_sent_total") == 1
    assert len(logged(service, "mail_delayed", len(steps))) == len(steps)
    for message in server.turned_down:
        assert message.content == server.messages[0].content


def test_a_lost_answer_gives_the_same_message_again(start, server):
    service = start(**server.settings())
    server.script("cut", "cut")
    cause_mail(service, new_owner(service))
    over(service)
    assert service.metric("mails_sent_total") == 1
    assert len(server.messages) == 3
    assert len({message["Message-ID"] for message in server.messages}) == 1
    assert len({message.content for message in server.messages}) == 1


@pytest.mark.parametrize("step, status", [("rcpt 550 nobody of that name", "550"),
                                          ("554 looks like spam", "554")])
def test_what_is_refused_for_good_is_not_tried_again(start, server, step, status):
    service = start(**server.settings())
    server.script(step)
    account_id = new_owner(service)
    cause_mail(service, account_id)
    over(service)
    assert service.metric("mails_failed_total") == 1
    assert server.messages == []
    line, = logged(service, "mail_failed")
    assert line["account_id"] == account_id
    assert status in line["cause"]


def test_tried_often_enough(start, server):
    service = start(**server.settings(mail__schedule="50ms,50ms"))
    server.script(*["451 later"] * 3)
    cause_mail(service, new_owner(service))
    over(service)
    assert service.metric("mails_failed_total") == 1
    assert len(server.turned_down) == 3


def test_over_tls_with_a_password(start, certificates):
    server = MailServer(certificates, user="constancia", password="a password")
    try:
        service = start(**server.settings(mail__require_tls="true", mail__roots=certificates[0],
                                          mail__user="constancia", mail__password="a password"))
        cause_mail(service, new_owner(service))
        message = arrived(server)[0]
        assert message.over_tls
        assert server.logins == ["constancia"]
        assert "a password" not in service.log.read_text()
        assert "a password" not in run("config", "print", *service.chosen()).stdout
    finally:
        server.close()


def test_a_stranger_with_a_certificate_of_his_own_gets_nothing(start, certificates):
    server = MailServer(certificates, user="constancia", password="a password")
    try:
        service = start(**server.settings(mail__require_tls="true", mail__schedule="50ms",
                                          mail__user="constancia", mail__password="a password"))
        cause_mail(service, new_owner(service))
        over(service)
        assert service.metric("mails_failed_total") == 1
        assert server.messages == [] and server.logins == []
        assert "certificate" in logged(service, "mail_failed")[0]["cause"]
    finally:
        server.close()


def test_nothing_in_the_clear_where_tls_is_wanted(start, server):
    service = start(**server.settings(mail__require_tls="true", mail__schedule="50ms"))
    cause_mail(service, new_owner(service))
    over(service)
    assert service.metric("mails_failed_total") == 1
    assert server.messages == []


def test_private_addresses_are_for_the_operator_to_allow(start, server):
    service = start(**server.settings(mail__allow_networks="10.0.0.0/8", mail__schedule="50ms"))
    cause_mail(service, new_owner(service))
    over(service)
    assert server.messages == []
    assert "127.0.0.1 is loopback and not permitted" in logged(service, "mail_failed")[0]["cause"]


def test_without_a_server_mails_are_dropped(start):
    service = start()
    account_id = new_owner(service)
    cause_mail(service, account_id)
    over(service)
    line, = logged(service, "mail_dropped")
    assert (line["account_id"], line["template"]) == (account_id, "topup_failed")


def test_a_mail_survives_the_end_of_the_process(start):
    waiting = MailServer()
    waiting.close()
    service = start(**waiting.settings(mail__schedule="1s,1s,1s,1s,1s,1s,1s,1s,1s"))
    cause_mail(service, new_owner(service))
    logged(service, "mail_delayed")
    service.kill()
    back = MailServer()
    try:
        service.settings["mail.url"] = back.url
        service.start()
        over(service)
        assert len(arrived(back)) == 1
    finally:
        back.close()


@pytest.mark.postgresql
def test_several_nodes_send_each_mail_once(tmp_path, server):
    wanted = 24
    with Fleet(tmp_path, count=2, **server.settings()) as fleet:
        pack = fleet.admin("pack", "create", "--name", "A pack", "--credits", 1000, "--price", "10.00",
                         "--currency", "EUR")["pack_id"]
        for number in range(wanted):
            account_id = fleet.new_account(credits=5, email=f"owner{number}@example.com")
            fleet.admin("account", "billing", account_id, "--country", "ES")
            fleet.admin("topup", "set", "--account", account_id, "--threshold", 10, "--pack", pack)
        eventually(lambda: sum(node.metric("mails_sent_total") for node in fleet.nodes) >= wanted,
                   "all mails are sent")
        assert sum(node.metric("mails_failed_total") for node in fleet.nodes) == 0
    recipients = sorted(address for message in server.messages for address in message.recipients)
    assert recipients == sorted(f"owner{number}@example.com" for number in range(wanted))
