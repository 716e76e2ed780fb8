"""TLS in the process: supported versions, refusals, and that certificates are replaced under open connections."""

import contextlib
import http.client
import os
import pathlib
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

from client import PATIENCE, eventually, form, fresh
from test_proxies import Caddy, Haproxy, Nginx
from test_reload import Reloading
from test_request_heads import LINES_MAX, SIZE_MAX, head_size, padded, registration, wire

pytestmark = pytest.mark.sqlite  # TLS knows no store
MIB = 1024 * 1024
LARGE = 8 * MIB


# ---- certificates ----

class Authority:
    """A root, and what it issues: of a server with an issuer in between, of clients without one."""

    def __init__(self, place, name):
        self.place, self.name = place / name, name
        self.place.mkdir()
        self.root = self.issue("root", ca=True)

    def run(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

    def issue(self, name, issuer=None, ca=False, days=60, more=()):
        path = self.place / name
        signed = ["-CA", f"{issuer}.crt", "-CAkey", f"{issuer}.key"] if issuer else []
        usage = [*(("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign") if ca else
                   ("basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature")), *more]
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", days,
                 "-subj", f"/O={self.name}/CN={name}", "-keyout", f"{path}.key", "-out", f"{path}.crt", *signed,
                 *(word for extension in usage for word in ("-addext", extension)))
        os.chmod(f"{path}.key", 0o600)
        return path

    def dated(self, path, issuer, begins, ends, extensions):
        """Times are days from now, which of openssl's commands `ca` alone can set."""
        files = {"ext": "\n".join(extensions), "database": "", "cnf": (
            f"[ca]\ndefault_ca=this\n[this]\nrand_serial=yes\ndatabase={path}.database\ndefault_md=sha256\n"
            f"new_certs_dir={self.place}\npolicy=any\n[any]\norganizationName=supplied\ncommonName=supplied\n")}
        for end, text in files.items():
            pathlib.Path(f"{path}.{end}").write_text(text)
        first, last = (time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + days * 86400))
                       for days in (begins, ends))
        self.run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", f"/O={self.name}/CN={path.name}", "-keyout", f"{path}.key", "-out", f"{path}.csr")
        self.run("ca", "-batch", "-config", f"{path}.cnf", "-cert", f"{issuer}.crt", "-keyfile", f"{issuer}.key",
                 "-in", f"{path}.csr", "-out", f"{path}.crt", "-notext", "-extfile", f"{path}.ext",
                 "-startdate", first, "-enddate", last)
        os.chmod(f"{path}.key", 0o600)
        return path

    def server(self, name="server", days=60, begins=None):
        between = self.issue(f"{name}-issuer", self.root, ca=True)
        more = ("subjectAltName=DNS:localhost,IP:127.0.0.1", "extendedKeyUsage=serverAuth")
        path = self.place / name
        if begins is None:
            self.issue(name, between, days=days, more=more)
        else:
            self.dated(path, between, begins, days, more)
        chain = pathlib.Path(f"{path}.pem")
        chain.write_text(pathlib.Path(f"{path}.crt").read_text() + pathlib.Path(f"{between}.crt").read_text())
        return path

    def client(self, name="client", usage="clientAuth"):
        return self.issue(name, self.root, more=(f"extendedKeyUsage={usage}",))


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"), "authority")


@pytest.fixture(scope="module")
def server_files(authority):
    return authority.server()


def tls_settings(path, admin=False, **more):
    prefix = "service__admin_tls_" if admin else "service__tls_"
    return {f"{prefix}certificate": f"{path}.pem", f"{prefix}key": f"{path}.key", **more}


class Speaking(Reloading):
    """Serves TLS on its public listener."""

    def __init__(self, place, authority, **settings):
        super().__init__(place)
        self.authority = authority
        self.base |= {"service.public_url": f"https://localhost:{self.port}",
                      "http.tls_handshakes": "10000",
                      **{name.replace("__", "."): value for name, value in settings.items()}}
        self.write()

    def context(self, root=None, client=None, versions=()):
        context = ssl.create_default_context(cafile=f"{root or self.authority.root}.crt")
        context.set_alpn_protocols(["h2", "http/1.1"])
        if client:
            context.load_cert_chain(f"{client}.crt", f"{client}.key")
        if versions:
            context.minimum_version, context.maximum_version = versions
        return context

    def connect(self, context=None, port=None):
        plain = socket.create_connection(("127.0.0.1", port or self.port), timeout=PATIENCE)
        return (context or self.context()).wrap_socket(plain, server_hostname="localhost")

    def talk(self, context=None, port=None):
        connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        connection.sock = self.connect(context, port)
        return connection

    def get(self, path="/v1/openapi.yaml", context=None, port=None):
        with contextlib.closing(self.talk(context, port)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.whole = answer.read()
            return answer

    def failed_handshakes(self):
        return self.metric("tls_handshakes_failed_total")


@pytest.fixture(scope="module")
def serving(tmp_path_factory, authority, server_files):
    one = Speaking(tmp_path_factory.mktemp("serving"), authority, http__transfer_timeout="2s",
                   http__connections_per_address=1000, **tls_settings(server_files))
    try:
        one.start()
        one.key = one.new_channel("content").live_key["key"]
        yield one
        assert one.stop() == 0
    finally:
        one.discard()


def everything(connection):
    """Until the other side says that nothing follows; without that an error."""
    connection.settimeout(PATIENCE)
    return b"".join(iter(lambda: connection.recv(65536), b""))


# ---- what is spoken ----

def accepts(serving, *words):
    """What openssl's client agrees on: version and cipher; None where it does not."""
    done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{serving.port}", *words], input=b"",
                          capture_output=True, timeout=PATIENCE, check=False)
    found = re.search(rb"New, (TLSv[0-9.]+), Cipher is (\S+)", done.stdout)
    return found and (found[1].decode(), found[2].decode())


def test_only_current_versions_and_ciphers_are_accepted(serving):
    assert serving.get().status == 200
    for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
        with serving.connect(serving.context(versions=(version, version))) as connection:
            assert connection.version() == name
            assert connection.selected_alpn_protocol() == "http/1.1"
    any_cipher = ("-cipher", "ALL:@SECLEVEL=0")
    assert accepts(serving, "-tls1_2", *any_cipher)
    assert accepts(serving, "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256")
    for refused in (("-tls1_1", *any_cipher), ("-tls1", *any_cipher),
                    ("-tls1_2", "-cipher", "AES256-GCM-SHA384:AES128-SHA"),  # without forward secrecy
                    ("-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA"),
                    ("-tls1_2", "-cipher", "ALL:@SECLEVEL=0", "-sigalgs", "ECDSA+SHA1")):
        before = serving.failed_handshakes()
        assert not accepts(serving, *refused), refused
        eventually(lambda before=before: serving.failed_handshakes() == before + 1, "it is counted")


def test_a_session_is_taken_up_again(serving):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = serving.context(versions=(version, version))
        with contextlib.closing(serving.talk(context)) as connection:
            connection.request("GET", "/livez")
            connection.getresponse().read()
            session = connection.sock.session
        plain = socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE)
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as again:
            assert again.session_reused


def test_answers_say_that_tls_is_to_stay(serving):
    assert serving.get().headers["Strict-Transport-Security"] == "max-age=31536000"
    assert serving.get("/nothing").headers["Strict-Transport-Security"] == "max-age=31536000"


def test_plain_http_and_rubbish_are_closed_and_counted(serving):
    lines = len(serving.log_lines())
    before = serving.failed_handshakes()
    words = (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", bytes(range(256)) * 4, b"\x16\x03\x01\xff\xff" + bytes(99),
             b"\x16", b"")
    for said in words * 4:
        with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE) as connection:
            with contextlib.suppress(OSError):
                connection.sendall(said)
                connection.shutdown(socket.SHUT_WR)
                assert b"HTTP" not in b"".join(iter(lambda c=connection: c.recv(4096), b""))
    eventually(lambda: serving.failed_handshakes() == before + 4 * len(words), "all are counted")
    assert len(serving.log_lines()) - lines < 4


# ---- HTTP over it ----

def test_requests_on_one_connection(serving):
    with contextlib.closing(serving.talk()) as connection:
        for _ in range(20):
            connection.request("GET", "/v1/openapi.yaml")
            answer = connection.getresponse()
            assert answer.status == 200 and len(answer.read()) > 65536
    # Sent at once, in records that end where no request does.
    one = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
    said = one * 29 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with serving.connect() as connection:
        for at in range(0, len(said), 37):
            connection.sendall(said[at:at + 37])
        assert everything(connection).count(b"HTTP/1.1 404") == 30
    with serving.connect() as connection:
        for byte in one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"):
            connection.sendall(bytes([byte]))
        assert everything(connection).startswith(b"HTTP/1.1 404")


def register_large(serving, connection, size_bytes, **more):
    content = os.urandom(size_bytes)
    content_type, body = form(("client_ref", fresh()), ("file", content, "file.bin"))
    connection.request("POST", "/v1/events", body, {"Content-Type": content_type,
                                                    "Authorization": f"Bearer {serving.key}", **more})
    return content, connection.getresponse()


def test_large_bodies_pass_both_ways(serving):
    with contextlib.closing(serving.talk()) as connection:
        for size_bytes in (1, 16384, 16385, LARGE):
            content, answer = register_large(serving, connection, size_bytes)
            told = answer.read()
            assert answer.status == 201, told
            (path,) = re.findall(rb'"event_id":"([^"]+)"', told)
            connection.request("GET", f"/v1/events/{path.decode()}/content",
                               headers={"Authorization": f"Bearer {serving.key}"})
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read() == content


def test_curl_speaks_with_it(serving, tmp_path):
    """It waits for "100 Continue", and verifies the certificate."""
    content_type, body = form(("client_ref", fresh()), ("file", os.urandom(LARGE), "file.bin"))
    (tmp_path / "body").write_bytes(body)
    done = subprocess.run(
        ["curl", "-sS", "--cacert", f"{serving.authority.root}.crt", "-H", f"Content-Type: {content_type}", "-H",
         "Expect: 100-continue", "-H", f"Authorization: Bearer {serving.key}", "--data-binary",
         f"@{tmp_path / 'body'}", "-w", "%{http_code} %{ssl_verify_result}", "-o", tmp_path / "answer", "-v",
         f"https://localhost:{serving.port}/v1/events"], capture_output=True, timeout=PATIENCE, check=False)
    assert done.stdout == b"201 0", done.stderr[-2000:]
    assert b"100 Continue" in done.stderr


def test_what_is_said_in_the_middle_of_a_body_is_tls(serving):
    """It goes around the library."""
    head = (b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 90000000\r\n\r\n")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        before = serving.metric("http_refused_early_total")
        with serving.connect(serving.context(versions=(version, version))) as connection:
            connection.sendall(head + bytes(100000))
            told = everything(connection)
        assert told.startswith(b"HTTP/1.1 401 "), told
        assert int(re.search(rb"Content-Length: (\d+)", told)[1]) == len(told.partition(b"\r\n\r\n")[2])
        assert serving.metric("http_refused_early_total") == before + 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_body_that_is_cut_short_is_not_executed(serving, version):
    """Whether TLS says that nothing follows, or only the connection ends."""
    registered = serving.metric("events_registered_total")
    context = serving.context(versions=(version, version))
    for size in (10, 20000, 200000):
        body = b'{"client_ref":"%s","payload":{"a":"%s"}}' % (fresh().encode(), b"x" * size)
        for framing in (b"Content-Length: %d\r\n\r\n%s" % (len(body) + 1, body),
                        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body)):
            for says in (True, False):
                with serving.connect(context) as connection:
                    connection.sendall(b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                                       b"Authorization: Bearer %s\r\n%s" % (serving.key.encode(), framing))
                    with contextlib.suppress(OSError):
                        if says:
                            connection.unwrap()
                        connection.shutdown(socket.SHUT_WR)
                        while connection.recv(65536):
                            pass
    eventually(lambda: serving.metric("http_connections") == 0, "all are gone")
    assert serving.metric("events_registered_total") == registered


def test_one_that_is_too_slow_is_told_so_in_tls(serving):
    with serving.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: local")
        assert everything(connection).startswith(b"HTTP/1.1 408 ")


# ---- heads, and what goes around the library with them ----

class Told:
    """What was answered to some bytes, at whose end it was said that nothing follows."""

    def __init__(self, serving, said):
        plain = socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE)
        with serving.context().wrap_socket(plain, server_hostname="localhost",
                                           suppress_ragged_eofs=False) as connection:
            with contextlib.suppress(OSError):  # what comes after the end of the answer
                connection.sendall(said)
            self.whole = everything(connection)
        self.statuses = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+) ", self.whole)]


def until_told(serving, said):
    """What comes after the end of the answer may reset the connection before the answer is read."""
    for _ in range(10):
        with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
            return Told(serving, said)
    return None


def lines_of(count):
    return "".join(f"X-{number}: 1\n" for number in range(count))


def test_heads_are_served_or_refused_before_anything_is_done(serving):
    """Over TLS answers have a header more, which has room, too."""
    registered = serving.metric("events_registered_total")
    served = 0
    for size in [*range(SIZE_MAX - 20, SIZE_MAX + 21, 4), *range(20000, 29000, 499), 40000]:
        for more in ("", lines_of(LINES_MAX - 7)):
            request = padded(serving.key, lambda pad, more=more: f"{more}X-Long: {pad}", size)
            assert head_size(request) == size
            told = (Told if size <= SIZE_MAX else until_told)(serving, request)
            served += size <= SIZE_MAX
            assert told.statuses == [201] if size <= SIZE_MAX else told.statuses[0] in (414, 431), (size, told.whole)
            if size <= SIZE_MAX:
                assert b"\r\nStrict-Transport-Security: " in told.whole
    for count in (LINES_MAX - 5, LINES_MAX - 4, 400):
        is_served = count + 5 <= LINES_MAX
        told = (Told if is_served else until_told)(serving, registration(serving.key, lines_of(count)))
        served += is_served
        assert told.statuses == [201 if is_served else 431], told.whole
    assert serving.metric("events_registered_total") == registered + served


def test_an_answer_without_room_is_rescued_in_tls(serving):
    """Empty lines before a request stay in the connection's memory; what is done is answered all the same."""
    registered, lost = (serving.metric(name) for name in ("events_registered_total", "http_answers_lost_total"))
    rescued = serving.metric("http_answers_rescued_total")
    served = 0
    for count in range(11000, 15000, 250):
        told = Told(serving, b"\r\n" * count + registration(serving.key))
        served += told.statuses == [201]
    assert serving.metric("events_registered_total") == registered + served
    assert serving.metric("http_answers_lost_total") == lost
    if rescued_here := serving.metric("http_answers_rescued_total") - rescued:
        assert rescued_here <= served


@pytest.mark.parametrize("behind", [0, 1, 5000, 15000])
def test_what_is_no_sound_head_is_refused_in_tls(serving, behind):
    """With what follows it in the same record and is not read."""
    for lines in ("Content-Length: 0\nContent-Length: 3\n", "Content-Length: 0\nHost: y\n", ""):
        text = f"POST /v1/events HTTP/1.1\nHost: x\nAuthorization: Bearer {serving.key}\n{lines}\n"
        told = until_told(serving, wire(text) + b"x" * behind)
        assert told.statuses == [400], (lines, told.whole)


@pytest.mark.parametrize("line", [b"0" * 28000, b"0" * 34000, b"f" * 65536, b"5;" + b"x" * 34000,
                                  b"5;" + b"x" * 65536],
                         ids=["all but", "digits", "many digits", "an extension", "a long extension"])
def test_an_endless_chunk_line_is_answered_in_tls(serving, line):
    """What was decrypted and does not fit into the connection's memory has left the socket."""
    text = (f"POST /v1/events HTTP/1.1\nHost: x\nAuthorization: Bearer {serving.key}\n"
            "Content-Type: application/json\nTransfer-Encoding: chunked\n\n")
    told = until_told(serving, wire(text) + line)
    # From 1.0 on the library ends the session at a long extension before it is known.
    if told and told.whole:
        assert told.statuses[0] in (400, 408, 413, 431), told.whole
    else:
        assert b";" in line
    # It is gone, and no loop is kept from the handshakes of others, whichever loop it was.
    eventually(lambda: serving.metric("http_connections") <= 1, "it is gone")
    for _ in range(8):
        assert serving.get().status == 200


# ---- handshakes that take long ----

def wanted_seconds(process):
    """How long its loops have had a processor, or waited for one."""
    return sum(sum(map(int, (task / "schedstat").read_text().split()[:2])) / 1e9
               for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()
               if (task / "comm").read_text().startswith("http-"))


def test_silent_handshakes_are_cut_and_cost_nothing(serving):
    """Before anything, in the middle of a word, and after the handshake: each has the time of a head."""
    before = serving.metric("http_connections_cut_total")
    began = time.monotonic()
    with contextlib.ExitStack() as ending:
        silent = [ending.enter_context(socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE))
                  for _ in range(200)]
        for connection in silent[:100]:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        late = serving.connect()
        used = wanted_seconds(serving.process)
        for connection in silent:
            with contextlib.suppress(ConnectionError):
                assert connection.recv(100) == b""
        took = time.monotonic() - began
        assert late.recv(100) == b""
        # One that is taken for ready all the time keeps a thread busy.
        assert wanted_seconds(serving.process) - used < 0.5 * took
    assert took >= 1.5
    eventually(lambda: serving.metric("http_connections_cut_total") >= before + 201, "all are counted")
    assert serving.get().status == 200


def test_a_handshake_byte_by_byte(serving):
    """Whatever the parts in which it comes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = serving.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", serving.port), timeout=PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def attempt(what, *words):
            while True:
                try:
                    done = what(*words)
                except ssl.SSLWantReadError:
                    done = None
                said = outgoing.read()
                for byte in said:
                    connection.sendall(bytes([byte]))
                if done is not None:
                    return done
                come = connection.recv(65536)
                assert come, "it is not closed"
                incoming.write(come)
        attempt(lambda: client.do_handshake() or True)
        attempt(client.write, b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert attempt(client.read, 65536).startswith(b"HTTP/1.1 404")


def test_a_hello_beyond_its_bound_is_not_waited_for(tmp_path, authority, server_files):
    """What a handshake's message has is held until it is whole, and counted nowhere."""
    one = Speaking(tmp_path, authority, http__transfer_timeout="1h", **tls_settings(server_files))
    try:
        one.start()
        for sent, ends in ((1000, False), (100_000, True)):
            hello = b"\x01\x01\xff\xff\x03\x03" + bytes(sent)
            records = (hello[at:at + 16384] for at in range(0, len(hello), 16384))
            with socket.create_connection(("127.0.0.1", one.port), timeout=PATIENCE if ends else 1) as connection:
                with contextlib.suppress(ConnectionError) if ends else pytest.raises(TimeoutError):
                    for record in records:
                        connection.sendall(b"\x16\x03\x01" + len(record).to_bytes(2, "big") + record)
                    connection.recv(1)
        assert one.stop() == 0
    finally:
        one.discard()


def test_an_address_has_so_many_handshakes_a_second(tmp_path, authority, server_files):
    """What is beyond costs nothing and is counted; a reload allows more, and a proxy has any number."""
    one = Speaking(tmp_path, authority, http__tls_handshakes=1, **tls_settings(server_files))

    def shakes_hands():
        try:
            one.connect().close()
        except OSError:
            return False
        return True

    def completed():
        return sum(shakes_hands() for _ in range(30))
    try:
        one.start()
        assert 4 <= completed() < 30
        assert one.metric("http_connections_cut_total") > 0
        (told, *_) = one.logged(lambda line: line["event"] == "connection_refused")
        assert told["status"] == 429
        one.reload(http__tls_handshakes=1, service__trusted_proxies="127.0.0.0/8")
        assert completed() == 30
        one.reload(http__tls_handshakes=1000)
        assert completed() == 30
    finally:
        one.discard()


def test_a_service_ends_while_handshakes_are_under_way(tmp_path, authority, server_files):
    one = Speaking(tmp_path, authority, **tls_settings(server_files))
    try:
        one.start()
        with contextlib.ExitStack() as ending:
            for said in (b"", b"\x16\x03\x01\x02\x00\x01\x00") * 20:
                connection = ending.enter_context(socket.create_connection(("127.0.0.1", one.port)))
                connection.sendall(said)
            ending.enter_context(one.connect())
            assert one.get("/nothing").status == 404
            assert one.stop() == 0
    finally:
        one.discard()


# ---- files ----

def shown(serving, port=None):
    with serving.connect(port=port) as connection:
        return connection.getpeercert()["serialNumber"]


@pytest.fixture
def replacing(tmp_path, authority):
    place = tmp_path / "files"
    place.mkdir()
    one = Speaking(tmp_path, authority, **tls_settings(place / "server"),
                   **tls_settings(place / "server", admin=True))
    one.files = place / "server"
    replace(one, authority.server(fresh()))
    try:
        one.start()
        yield one
        assert one.stop() == 0
    finally:
        one.discard()


def replace(serving, path):
    for end in ("pem", "key"):
        target = pathlib.Path(f"{serving.files}.{end}")
        target.with_suffix(".new").write_bytes(pathlib.Path(f"{path}.{end}").read_bytes())
        target.with_suffix(".new").chmod(0o600)
        target.with_suffix(".new").rename(target)


def expires(serving):
    text = serving.get("/metrics", port=serving.admin_port).whole.decode()
    return {name: float(value) for name, value in re.findall(
        r'constancia_tls_certificate_expires_timestamp_seconds\{listener="(\w+)"\} (\S+)', text)}


def test_a_certificate_is_replaced_under_open_connections(replacing, authority):
    first, ends = shown(replacing), expires(replacing)
    assert set(ends) == {"public", "operator"}
    with contextlib.closing(replacing.talk()) as connection:
        connection.request("GET", "/v1/openapi.yaml")
        assert connection.getresponse().read()
        for days in (50, 40, 30):
            replace(replacing, authority.server(fresh(), days=days))
            replacing.reload()
            second = shown(replacing)
            assert second != first and second == shown(replacing, replacing.admin_port)
            assert expires(replacing) != ends
            connection.request("GET", "/v1/openapi.yaml")
            answer = connection.getresponse()
            assert answer.status == 200 and answer.read()
            first, ends = second, expires(replacing)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_session_ends_with_a_reload(replacing, version):
    context = replacing.context(versions=(version, version))

    def talk(session=None):
        plain = socket.create_connection(("127.0.0.1", replacing.port), timeout=PATIENCE)
        with context.wrap_socket(plain, server_hostname="localhost", session=session) as connection:
            connection.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
            return connection.session_reused, connection.session
    _, first = talk()
    assert talk(first)[0]
    replacing.reload()
    reused, second = talk(first)
    assert not reused and talk(second)[0]


def test_certificates_are_replaced_while_many_connect(replacing, authority):
    faults, over = [], threading.Event()

    def connect_again_and_again():
        while not over.is_set():
            try:
                assert replacing.get("/nothing").status == 404
            except Exception as fault:  # pylint: disable=broad-except
                faults.append(fault)
                return
    threads = [threading.Thread(target=connect_again_and_again, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            replace(replacing, authority.server(fresh()))
            replacing.reload()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not faults


def test_broken_files_change_nothing(replacing, authority):
    first = shown(replacing)
    certificate, key = pathlib.Path(f"{replacing.files}.pem"), pathlib.Path(f"{replacing.files}.key")
    other = authority.server(fresh())
    secret = key.read_text().splitlines()[1]

    def refused(setting, what):
        told = [line for line in replacing.reload("configuration_rejected") if line["setting"] == setting]
        assert told and what in told[0]["problem"], told
        assert shown(replacing) == first and shown(replacing, replacing.admin_port) == first
    good = key.read_bytes()
    key.write_bytes(pathlib.Path(f"{other}.key").read_bytes())
    refused("service.tls_key", "is not the key of the certificate")
    key.write_text("no key")
    refused("service.tls_key", "must be a PEM file")
    key.write_bytes(good)
    key.chmod(0o644)
    refused("service.tls_key", "mode 0600")
    key.chmod(0o600)
    good = certificate.read_bytes()
    certificate.write_text("")
    refused("service.tls_certificate", "is empty")
    certificate.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    refused("service.tls_certificate", "must be a PEM file")
    certificate.write_bytes(pathlib.Path(f"{authority.root}.crt").read_bytes() + good)
    refused("service.tls_certificate", "followed by that of its issuer")
    certificate.unlink()
    refused("service.tls_certificate", "cannot be read")
    certificate.write_bytes(good)
    # TLS begins and ends with a start.
    told = replacing.reload("configuration_rejected", service__tls_certificate="", service__tls_key="")
    assert told[0]["setting"] == "service.tls_certificate" and "restart" in told[0]["problem"]
    assert replacing.reload() and shown(replacing) == first
    assert secret not in replacing.log.read_text() and "PRIVATE KEY" not in replacing.log.read_text()


def test_a_certificate_that_clients_refuse_replaces_none_that_they_accept(replacing, authority):
    first = shown(replacing)
    for begins, ends in ((-60, -1), (1, 60)):
        replace(replacing, authority.server(fresh(), days=ends, begins=begins))
        told = replacing.reload("configuration_rejected", rate__live=7)
        assert [line["setting"] for line in told] == ["service.tls_certificate"]
        assert "clients would refuse it" in told[0]["problem"]
        assert shown(replacing) == first and shown(replacing, replacing.admin_port) == first
    replace(replacing, authority.server(fresh()))
    replacing.reload()
    assert shown(replacing) != first


def test_a_start_names_what_is_wrong(tmp_path, authority, server_files):
    other = authority.server(fresh())
    one = Speaking(tmp_path, authority)

    def refused(setting, what, **settings):
        one.write(**settings)
        for words in (("serve",), ("config", "check")):
            done = one.run(*words)
            assert done.returncode != 0, (words, done)
            assert setting in done.stdout + done.stderr and what in done.stdout + done.stderr, done
            assert "PRIVATE KEY" not in done.stdout + done.stderr
    try:
        assert one.run("init").returncode == 0
        refused("service.tls_key", "require each other", service__tls_certificate=f"{server_files}.pem")
        refused("service.tls_certificate", "require each other", service__tls_key=f"{server_files}.key")
        refused("service.tls_key", "is not the key", service__tls_certificate=f"{server_files}.pem",
                service__tls_key=f"{other}.key")
        refused("service.admin_tls_clients", "requires TLS", service__admin_tls_clients=f"{authority.root}.crt")
        refused("service.admin_tls_clients", "must be a PEM file with the root certificates",
                **tls_settings(server_files, admin=True), service__admin_tls_clients=f"{server_files}.key")
    finally:
        one.discard()


def test_a_certificate_that_ends_is_told(tmp_path, authority):
    soon = authority.server(fresh(), days=3)
    one = Speaking(tmp_path, authority, **tls_settings(soon))
    try:
        one.start()
        ready = eventually(lambda: one.monitor("/readyz")[1], "it answers")
        assert "service.tls_certificate" in ready and "expires on" in ready
        assert [line for line in one.logged(lambda line: line["event"] == "certificate_expiring")
                if line["subject"] == "service.tls_certificate"]
        done = one.run("config", "check")
        assert "service.tls_certificate" in done.stdout + done.stderr
        assert "expires on" in done.stdout + done.stderr
    finally:
        one.discard()


# ---- proxies ----

class Encrypted:
    """A proxy with its example, which reaches the node over TLS, as docs/operate/tls.md has it."""

    name = "localhost"  # which the node's certificate must have


class EncryptedNginx(Encrypted, Nginx):
    def to_node(self, text, certificate, service):
        return self.replace(
            super().to_node(text, certificate, service), (r"proxy_pass http:", "proxy_pass https:", 2),
            (r"node1\.example\.org", self.name, 1), (r"/etc/ssl/nodes\.pem", f"{certificate}/root", 1))


class EncryptedCaddy(Encrypted, Caddy):
    def to_node(self, text, certificate, service):
        return self.replace(
            super().to_node(text, certificate, service), (r"reverse_proxy ", "reverse_proxy https://", 1),
            (r"#tls_server_name node1\.example\.org", f"tls_server_name {self.name}", 1),
            (r"#tls_trusted_ca_certs \S+", f"tls_trusted_ca_certs {certificate}/root", 1))


class EncryptedHaproxy(Encrypted, Haproxy):
    def to_node(self, text, certificate, service):
        return self.replace(
            text, (r"10\.0\.0\.11:8443", f"127.0.0.1:{service.port} port {service.admin_port}", 2),
            (r"node1\.example\.org", self.name, 6), (r"/etc/haproxy/nodes\.pem", f"{certificate}/root", 4),
            (r"/etc/haproxy/client\.pem", f"{certificate}/client", 4))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory, authority, server_files):
    """As the proxies want them: what they show, what they trust, and for HAProxy's checks a client's."""
    place, client = tmp_path_factory.mktemp("proxy"), authority.client(fresh())
    (place / "certificate").write_bytes(pathlib.Path(f"{server_files}.pem").read_bytes())
    (place / "key").write_bytes(pathlib.Path(f"{server_files}.key").read_bytes())
    (place / "root").write_bytes(pathlib.Path(f"{authority.root}.crt").read_bytes())
    (place / "both").write_bytes((place / "certificate").read_bytes() + (place / "key").read_bytes())
    (place / "client").write_bytes(b"".join(pathlib.Path(f"{client}.{end}").read_bytes() for end in ("crt", "key")))
    return place


@pytest.fixture(scope="module")
def node(tmp_path_factory, authority, server_files):
    one = Speaking(tmp_path_factory.mktemp("node"), authority, service__trusted_proxies="127.0.0.0/8",
                   service__admin_tls_clients=f"{authority.root}.crt", **tls_settings(server_files),
                   **tls_settings(server_files, admin=True))
    try:
        one.start()
        one.key = one.new_channel("content").live_key["key"]
        yield one
        assert one.stop() == 0
    finally:
        one.discard()


@pytest.mark.parametrize("kind", [EncryptedNginx, EncryptedCaddy, EncryptedHaproxy])
def test_a_proxy_reaches_a_node_over_tls(node, certificates, kind, tmp_path):
    proxy = kind(tmp_path, certificates, node)
    try:
        proxy.start()
        eventually(lambda: proxy.ask("GET", "/v1/openapi.yaml") == 200, "it passes requests on")
        for size_bytes in (100, 10 * MIB):
            content_type, body = form(("client_ref", fresh()), ("file", bytes(size_bytes), "file.bin"))
            headers = {"Content-Type": content_type, "Authorization": f"Bearer {node.key}"}
            assert proxy.ask("POST", "/v1/events", body, headers) == 201
        # It looks at the certificate: one of another root is refused.
        pathlib.Path(certificates / "root").rename(certificates / "kept")
        proxy.kill()
        other = Authority(tmp_path, "other")
        (certificates / "root").write_bytes(pathlib.Path(f"{other.root}.crt").read_bytes())
        proxy.start()
        assert eventually(lambda: proxy.ask("GET", "/v1/openapi.yaml"), "it answers") in (502, 503)
    finally:
        proxy.kill()
        if (certificates / "kept").exists():
            (certificates / "kept").rename(certificates / "root")


@pytest.mark.parametrize("kind", [EncryptedNginx, EncryptedCaddy, EncryptedHaproxy])
def test_a_proxy_passes_nothing_to_a_node_of_another_name(node, certificates, kind, tmp_path):
    proxy = type(kind.__name__, (kind,), {"name": "node2.example.org"})(tmp_path, certificates, node)
    try:
        proxy.start()
        # HAProxy also says so before its first check.
        assert eventually(lambda: proxy.ask("GET", f"/v1/events/{fresh('evt')}"), "it answers") in (502, 503)
        assert eventually(lambda: proxy.ask("GET", "/v1/openapi.yaml"), "it still answers") in (502, 503)
    finally:
        proxy.kill()


# ---- clients' certificates ----

def test_the_operators_listener_asks_for_certificates(tmp_path, authority, server_files):
    good, other = authority.client(fresh()), Authority(tmp_path, "other")
    stranger, wrong = other.client(), authority.client(fresh(), "serverAuth")
    ended = authority.dated(authority.place / fresh(), authority.root, -60, -1, ["extendedKeyUsage=clientAuth"])
    one = Speaking(tmp_path, authority, **tls_settings(server_files, admin=True),
                   service__admin_tls_clients=f"{authority.root}.crt")

    def ask(client, version):
        context = one.context(client=client, versions=(version, version))
        return one.get("/livez", context, one.admin_port).status
    try:
        one.start()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            assert ask(good, version) == 200
            for bad in (None, stranger, wrong, ended):
                with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                    ask(bad, version)
            assert ask(good, version) == 200
        # The roots are read again, and no session is resumed without a check of the certificate.
        context = one.context(client=stranger)
        one.reload(**{**tls_settings(server_files, admin=True),
                      "service__admin_tls_clients": f"{other.root}.crt"})
        assert one.get("/livez", context, one.admin_port).status == 200
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            ask(good, ssl.TLSVersion.TLSv1_3)
    finally:
        one.discard()
