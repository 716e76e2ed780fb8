"""Receivers that behave badly, or have an address to which nothing should be sent, are harmless."""

import gzip
import ssl
import subprocess
import time

import pytest

from client import Refused, free_port
from hooks import BadReceiver, Owner, Receiver, attempts, deliveries, eventually

LIMIT = 65536


@pytest.fixture(scope="module")
def patient(start):
    """A service with a short patience, which tries a few times more."""
    return start(webhook__schedule="200ms,1s,5s", webhook__timeout="1500ms")


@pytest.fixture(scope="module")
def unhurried(start):
    """One that waits for what comes, however slowly this machine sends it."""
    return start(webhook__schedule="200ms", webhook__timeout="30s")


def first_attempt(service, endpoint):
    """The first attempt at a notice, and the delivery."""
    made = eventually(lambda: [one for one in deliveries(service, endpoint) if one["attempts"]],
                      "an attempt")[0]
    return attempts(service, endpoint, made["notice_id"])[0], made


def deliver(service, url):
    """The first attempt of the deliverer, and that of a test delivery, which are of one kind."""
    owner = Owner(service)
    endpoint = owner.endpoint(url)
    owner.cause()
    attempt, _ = first_attempt(service, endpoint)
    shown = service.admin("webhook", "test", endpoint["endpoint_id"])
    assert shown["http_status"] == attempt["http_status"]
    assert (shown["error"] is None) == (attempt["error"] is None)
    service.admin("webhook", "delete", endpoint["endpoint_id"])
    return attempt, shown


def send_all(connection, data):
    connection.sendall(data)


def drip(connection, data, pause=0.05, rounds=400):
    for _ in range(rounds):
        connection.sendall(data)
        time.sleep(pause)


def test_a_redirect_is_not_followed_and_fails(unhurried):
    with Receiver() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            answer = (status, {"Location": elsewhere.url}, b"")
            with Receiver(answer=answer) as receiver:
                attempt, shown = deliver(unhurried, receiver.url)
                assert attempt["http_status"] == status and not shown["delivered"]
        assert elsewhere.deliveries == []


def never(connection):
    time.sleep(20)


def slow_headers(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\n")
    drip(connection, b"X-Slow: x\r\n")


def slow_status(connection):
    for byte in b"HTTP/1.1 200 OK\r\n" * 20:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def slow_body(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    drip(connection, b"x")


def endless_chunks_of_nothing_much(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    drip(connection, b"1\r\nx\r\n")


def endless_interim_answers(connection):
    drip(connection, b"HTTP/1.1 100 Continue\r\n\r\n")


def flood_of_interim_answers(connection):
    drip(connection, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, 0, 100000)


def huge_header(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\nX-Huge: " + b"x" * 1_000_000 + b"\r\n\r\n")


def many_headers(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\n")
    drip(connection, b"X-More: something\r\n" * 1000, 0, 1000)


def garbage(connection):
    send_all(connection, bytes(range(256)) * 100)


def http_0_9(connection):
    send_all(connection, b"hello\n")


def nothing(connection):
    pass


def cut_body(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")


def bad_chunks(connection):
    send_all(connection, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\nhello")


@pytest.mark.parametrize("script", [
    never, slow_headers, slow_status, slow_body, endless_chunks_of_nothing_much,
    endless_interim_answers, flood_of_interim_answers, huge_header, many_headers, garbage, http_0_9,
    nothing, cut_body, bad_chunks])
def test_an_answer_that_is_not_whole_within_the_time_fails(patient, script):
    with BadReceiver(script) as receiver:
        attempt, shown = deliver(patient, receiver.url)
    assert attempt["http_status"] is None and attempt["error"] and not shown["delivered"]


def test_a_body_of_any_length_is_cut(unhurried):
    sent = []

    def endless(connection):
        send_all(connection, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        sent.append(0)
        while True:
            connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            sent[-1] += 65536

    with BadReceiver(endless) as receiver:
        attempt, shown = deliver(unhurried, receiver.url)
    assert attempt["http_status"] == 200 and shown["delivered"]
    assert attempt["answer"] == "x" * 256
    # What fits into the buffers between both (up to 10 MiB by the kernel's defaults), and not more.
    assert len(sent) == 2 and max(sent) < 256 * LIMIT


def test_a_compressed_bomb_stays_compressed(unhurried):
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < LIMIT
    with Receiver(answer=(200, {"Content-Encoding": "gzip"}, bomb)) as receiver:
        attempt, shown = deliver(unhurried, receiver.url)
        assert attempt["http_status"] == 200 and shown["delivered"]
        assert attempt["answer"].startswith("?")  # 1f 8b, the magic number, is no text
        assert all("Accept-Encoding" not in one.headers for one in receiver.deliveries)


def test_a_cookie_is_not_sent_back(unhurried):
    with Receiver(answer=(200, {"Set-Cookie": "a=b; Path=/"}, b"")) as receiver:
        owner = Owner(unhurried, 3)
        endpoint = owner.endpoint(receiver.url)
        owner.cause()
        receiver.expect(3)
        unhurried.admin("webhook", "test", endpoint["endpoint_id"])
        assert all("Cookie" not in one.headers for one in receiver.expect(4))


def test_the_service_goes_on_registering_and_delivering_beside_all_of_them(patient):
    scripts = [never, slow_headers, flood_of_interim_answers, many_headers, slow_body]
    receivers = [BadReceiver(script) for script in scripts]
    owners = [Owner(patient, 5) for _ in receivers]
    for owner, receiver in zip(owners, receivers):
        owner.endpoint(receiver.url)
        owner.cause()
    channel = patient.new_channel(credits=10)
    with Receiver() as good:
        owner = Owner(patient, 10)
        owner.endpoint(good.url)
        owner.cause()
        for _ in range(10):
            channel.live.register().expect(201)
        good.expect(10)
    for receiver in receivers:
        assert receiver.connections > 0
        receiver.close()


# ---- places that are not public ----


@pytest.fixture(scope="module")
def public_only(start):
    return start(webhook__allow_networks="", webhook__schedule="100ms")


FORMS = [
    "127.0.0.1", "localhost", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001",
    "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
    "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]", "[::7f00:1]", "10.0.0.1",
    "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "[fd00::1]", "[fe80::1]",
    "[fec0::1]", "224.0.0.1", "[ff02::1]", "192.0.2.1", "255.255.255.255", "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::1]", "[::ffff:169.254.169.254]", "localhost.", "LOCALHOST", "127.0.0.1."]


def test_no_form_of_a_private_address_is_connected_to(public_only):
    with Receiver(port=free_port()) as four, Receiver(address="::1", port=four.port) as six:
        owner = Owner(public_only)
        for form in FORMS:
            try:
                endpoint = owner.endpoint(f"http://{form}:{four.port}/hook")
            except Refused:
                continue  # that is no host at all
            shown = public_only.admin("webhook", "test", endpoint["endpoint_id"])
            assert not shown["delivered"] and shown["http_status"] is None, (form, shown)
            # A name that is no name here fails before any address is known.
            assert "not permitted" in shown["error"] or "resolve" in shown["error"], (form, shown)
            public_only.admin("webhook", "delete", endpoint["endpoint_id"])
        endpoint = owner.endpoint(f"http://localhost:{four.port}/hook")
        owner.cause()
        attempt, _ = first_attempt(public_only, endpoint)
        assert "not permitted" in attempt["error"]
        assert four.deliveries == [] and six.deliveries == []


def test_the_operator_can_allow_one_network(start):
    service = start(webhook__allow_networks="127.0.0.2/32")
    with Receiver(address="127.0.0.2", port=free_port()) as allowed, Receiver(port=allowed.port) as other:
        endpoint = Owner(service).endpoint(allowed.url)
        assert service.admin("webhook", "test", endpoint["endpoint_id"])["delivered"]
        endpoint = Owner(service).endpoint(other.url)
        assert not service.admin("webhook", "test", endpoint["endpoint_id"])["delivered"]
        assert other.deliveries == []


# ---- certificates ----


def certificate(directory, name, subject_alt_name):
    """One that signs itself."""
    key, pem = directory / f"{name}.key", directory / f"{name}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-keyout", key, "-out", pem, "-days", "30", "-subj", f"/CN={name}"]
    if subject_alt_name:
        command += ["-addext", f"subjectAltName={subject_alt_name}"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    both = directory / f"{name}-both.pem"
    both.write_bytes(pem.read_bytes() + key.read_bytes())
    return both


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificates")
    certificate(directory, "roots", None)
    return {
        "roots": directory / "roots.pem",
        "good": signed(directory, "good", "IP:127.0.0.1"),
        "other host": signed(directory, "other", "DNS:example.org"),
        "expired": signed(directory, "expired", "IP:127.0.0.1", expired=True),
        "self-signed": certificate(directory, "own", "IP:127.0.0.1"),
    }


def signed(directory, name, subject_alt_name, expired=False):
    """By the roots; `openssl ca`, which wants files of its own, can set dates in the past."""
    key, request, pem = (directory / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
    extensions = directory / f"{name}.ext"
    extensions.write_text(f"subjectAltName={subject_alt_name}\nbasicConstraints=CA:FALSE\n")

    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True,
                       cwd=directory)
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            key, "-out", request, "-subj", f"/CN={name}")
    if expired:
        (directory / "index.txt").write_text("")
        (directory / "serial").write_text("01\n")
        (directory / "ca.cnf").write_text(
            "[ca]\ndefault_ca=this\n[this]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\n"
            "default_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n")
        openssl("ca", "-batch", "-config", "ca.cnf", "-cert", "roots.pem", "-keyfile", "roots.key",
                "-in", request, "-out", pem, "-extfile", extensions, "-notext",
                "-startdate", "20200101000000Z", "-enddate", "20200201000000Z")
    else:
        openssl("x509", "-req", "-in", request, "-CA", "roots.pem", "-CAkey", "roots.key",
                "-CAcreateserial", "-days", "30", "-extfile", extensions, "-out", pem)
    both = directory / f"{name}-both.pem"
    both.write_bytes(pem.read_bytes() + key.read_bytes())
    return both


def test_only_a_good_certificate_is_delivered_to(start, certificates):
    service = start(webhook__allow_http="false", webhook__schedule="100ms",
                    webhook__roots=certificates["roots"])
    for name in ("good", "other host", "expired", "self-signed"):
        with Receiver(certificate=certificates[name]) as receiver:
            attempt, shown = deliver(service, receiver.url)
            assert shown["delivered"] == (name == "good"), (name, shown)
            if name == "good":
                receiver.expect(2)
            else:
                assert "certificate" in attempt["error"] or "SSL" in attempt["error"], attempt
                assert receiver.deliveries == []


def test_the_systems_roots_do_not_know_a_private_authority(start, certificates):
    service = start(webhook__schedule="100ms")
    with Receiver(certificate=certificates["good"]) as receiver:
        _, shown = deliver(service, receiver.url)
        assert not shown["delivered"] and receiver.deliveries == []


def test_a_tls_receiver_that_breaks_off_or_speaks_something_else(start, certificates):
    service = start(webhook__roots=certificates["roots"], webhook__timeout="1500ms",
                    webhook__schedule="100ms")
    for script in (garbage, never, nothing):
        with BadReceiver(script, read=False) as receiver:
            _, shown = deliver(service, receiver.url.replace("http:", "https:"))
            assert not shown["delivered"] and shown["error"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates["good"])
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with BadReceiver(cut_body, context=context) as receiver:
        _, shown = deliver(service, receiver.url)
        assert not shown["delivered"]
