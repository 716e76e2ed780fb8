"""Real proxies with the examples that are shipped (dist/), in front of the service: what they log has no
secret, whatever goes wrong, and they take the bodies that the service takes. What several nodes need of
HAProxy is test_proxy.py's."""

import base64
import contextlib
import http.client
import itertools
import os
import pathlib
import pwd
import re
import socket
import ssl
import subprocess
import warnings

import pytest

from client import eventually, form, free_port, fresh
from program import PATIENCE, Program

pytestmark = pytest.mark.sqlite  # proxies know no store
DIST = pathlib.Path(__file__).resolve().parents[2] / "dist"
MIB = 1024 * 1024
CHECK_SIZE = 32 * MIB  # http.check_size


class Proxy(Program):
    """One with its example; only addresses, files and the place of its logs are other ones."""

    example = None

    def __init__(self, place, certificate, service, **adapted):
        super().__init__(place / "log", {})
        self.place, self.port, self.plain_port = place, free_port(), free_port()
        self.configuration = place / self.example
        text = self.adapt((DIST / self.example).read_text(), certificate, service, **adapted)
        self.configuration.write_text(text)

    def __repr__(self):
        return type(self).__name__

    def replace(self, text, *changes):
        for old, new, times in changes:
            text, done = re.subn(old, lambda _, new=new: new, text)
            assert done == times, (self, old, done)
        return text

    def adapt(self, text, certificate, service):
        raise NotImplementedError

    def to_node(self, text, certificate, service):
        """To a node on this machine, without TLS."""
        raise NotImplementedError

    def chosen(self):
        return []

    def command(self, *words):
        return list(map(str, words))

    def is_ready(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def logs(self):
        return "".join(path.read_text(errors="replace") for path in sorted(self.place.rglob("*log*"))
                       if path.is_file())

    def connect(self, context=None):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        return (context or ssl._create_unverified_context()).wrap_socket(
            connection, server_hostname="register.example.org")

    def connect_plain(self):
        return socket.create_connection(("127.0.0.1", self.plain_port), timeout=PATIENCE)

    def answer(self, method, target, body=None, headers=None, plain=False):
        """Status and headers."""
        connection = http.client.HTTPConnection("register.example.org", timeout=PATIENCE)
        connection.sock = self.connect_plain() if plain else self.connect()
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            connection.close()

    def ask(self, method, target, body=None, headers=None):
        return self.answer(method, target, body, headers)[0]

    def tell(self, words, patience=3):
        """Something that may be no request; the status of the answer, None where none comes soon."""
        with contextlib.suppress(OSError), self.connect() as connection:
            connection.settimeout(patience)
            connection.sendall(words)
            told = connection.recv(4096)
            return int(told.split()[1]) if told else None
        return None


class Nginx(Proxy):
    example = "nginx.conf"

    def adapt(self, text, certificate, service, connections=64):
        text = self.replace(
            self.to_node(text, certificate, service),
            (r"listen 443 ", f"listen 127.0.0.1:{self.port} ", 1), (r"\tlisten \[::\]:443 .*\n", "", 1),
            (r"listen 80;", f"listen 127.0.0.1:{self.plain_port};", 1), (r"\tlisten \[::\]:80;\n", "", 1),
            (r"/etc/ssl/register\.pem", f"{certificate}/certificate", 1),
            (r"/etc/ssl/register\.key", f"{certificate}/key", 1),
            (r"/var/log/nginx/", f"{self.place}/", 2))
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        whole = (f"daemon off;\nmaster_process off;\nuser root;\npid {self.place}/pid;\n"
                 f"error_log {self.place}/error.log info;\nevents {{ worker_connections {connections}; }}\n"
                 f"http {{\naccess_log {self.place}/others.log;\n"
                 + "".join(f"{kind}_temp_path {self.place}/{kind};\n" for kind in kinds))
        return f"{whole}{text}\n}}\n"

    def to_node(self, text, certificate, service):
        return self.replace(text, (r"127\.0\.0\.1:8080", f"127.0.0.1:{service.port}", 1))

    def serving(self):
        return ["/usr/sbin/nginx", "-p", self.place, "-c", self.configuration, "-e", self.place / "error.log"]


class Caddy(Proxy):
    example = "Caddyfile"

    def adapt(self, text, certificate, service):
        self.environment = {name: str(self.place) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
        return self.replace(
            self.to_node(text, certificate, service),
            (r"(?m)^register\.example\.org \{", f"https://register.example.org:{self.port} {{", 1),
            (r"(?m)^http://register\.example\.org \{", f"http://register.example.org:{self.plain_port} {{", 1),
            # It would ask an authority for a certificate.
            (r"tls \{", f"tls {certificate}/certificate {certificate}/key {{", 1),
            (r"(?m)^\{$", f"{{\n\tadmin off\n\tauto_https disable_redirects\n\thttp_port {self.plain_port}\n"
                          f"\thttps_port {self.port}", 1))

    def to_node(self, text, certificate, service):
        return self.replace(text, (r"127\.0\.0\.1:8080", f"127.0.0.1:{service.port}", 1))

    def serving(self):
        return ["caddy", "run", "--adapter", "caddyfile", "--config", self.configuration]


class Haproxy(Proxy):
    example = "haproxy.cfg"

    def adapt(self, text, certificate, service):
        if os.geteuid() != 0:
            text = self.replace(text, (r"\t(user|group|chroot) .*\n", "", 3))
        return self.replace(
            self.to_node(text, certificate, service), (r"log /dev/log local0", "log stdout format raw local0", 1),
            (r"bind :443 ssl crt \S+", f"bind 127.0.0.1:{self.port} ssl crt {certificate}/both", 1),
            (r"bind :80\b", f"bind 127.0.0.1:{self.plain_port}", 1), (r"\tserver node2 .*\n", "", 2))

    def to_node(self, text, certificate, service):
        return self.replace(text, (
            r"(?m)server node1 .*$", f"server node1 127.0.0.1:{service.port} port {service.admin_port}", 2))

    def serving(self):
        return ["haproxy", "-db", "-f", self.configuration]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj",
                    "/CN=register.example.org", "-keyout", place / "key", "-out", place / "certificate"],
                   check=True, capture_output=True)
    (place / "both").write_text((place / "certificate").read_text() + (place / "key").read_text())
    return place


@pytest.fixture(scope="module")
def shared(start):
    return start(service__trusted_proxies="127.0.0.0/8", log__requests="all")


@pytest.fixture
def behind(shared):
    if not shared.alive():
        shared.start()
    return shared


@pytest.fixture
def proxies(behind, certificate, tmp_path):
    """Starts one, by its kind, in front of `behind`."""
    with contextlib.ExitStack() as ending:
        def make(kind, **adapted):
            place = tmp_path / kind.__name__
            place.mkdir()
            proxy = kind(place, certificate, behind, **adapted)
            ending.callback(proxy.kill)
            proxy.start()
            eventually(lambda: proxy.ask("GET", "/v1/openapi.yaml") == 200 or adapted, "it passes requests on")
            return proxy
        yield make


KINDS = [Nginx, Caddy, Haproxy]


# ---- what is logged ----

def with_secrets(proxy, secrets):
    """Requests that bear them everywhere where some do: statuses of the answers."""
    def secret():
        secrets.append(fresh("secret").replace("-", ""))
        return secrets[-1]

    def basic():
        encoded = base64.b64encode(f"{secret()}:".encode()).decode()
        secrets.append(encoded.rstrip("=")[:-2])  # whichever way it is written down
        return f"Basic {encoded}"

    def headers(**more):
        return {"Referer": f"https://register.example.org/console/enter?link={secret()}",
                "X-SVC-Api-Key": secret(), "Cookie": f"session={secret()}", **more}
    told = [proxy.ask("GET", f"/console/enter?link={secret()}", headers=headers()),
            proxy.ask("POST", "/console/enter", f"link={secret()}".encode(), headers()),
            proxy.ask("GET", f"/v1/reports/x?link={secret()}",
                      headers=headers(Authorization=f"Bearer {secret()}")),
            proxy.ask("GET", f"/v1/events?x={secret()}", headers=headers(Authorization=basic()))]
    # What a proxy itself refuses, and says so.
    words = "".join(f"{name}: {value}\r\n" for name, value in headers().items())
    for line, more in ((f"POST /v1/events?x={secret()} HTTP/1.1", f"Content-Length: {1 << 30}\r\n"),
                       (f"GET /console/enter?link={secret()} HTTP/1.1", "no header\r\n"),
                       (f"GET /console/enter?link={secret()} HTTP/1.1", f"Large: {'x' * 70000}\r\n"),
                       (f"GET /console/enter?link={secret()} HTTP/7", "")):
        told.append(proxy.tell(f"{line}\r\nHost: register.example.org\r\n{words}{more}\r\n".encode()))
    # One that does not wait for its answer.
    with contextlib.suppress(OSError), proxy.connect() as connection:
        connection.sendall(f"GET /console/enter?link={secret()} HTTP/1.1\r\nHost: register.example.org\r\n"
                           f"{words}\r\n".encode())
    return told


def judge_logs(proxy, secrets):
    proxy.process.terminate()  # what waits to be written is written
    proxy.process.wait(PATIENCE)
    text = proxy.logs()
    assert not [(secret, line) for secret in secrets for line in text.splitlines() if secret in line]
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_no_log_of_a_proxy_has_a_link_or_a_key(behind, proxies, kind):
    proxy, secrets = proxies(kind), []
    up = with_secrets(proxy, secrets)
    assert up[2] == 404 and up[3] in (400, 401), up
    behind.kill()
    eventually(lambda: proxy.ask("GET", "/v1/openapi.yaml") in (502, 503), "it notices")
    down = with_secrets(proxy, secrets)
    assert set(down[:4]) <= {502, 503}, down
    text = judge_logs(proxy, secrets)
    assert "/console/enter" in text and re.search(r"\b50[23]\b", text), "what happened is reported all the same"


def test_nor_where_nginx_lacks_something_itself(proxies):
    """What it calls an alert has the request, too: here it has no connection left for the service."""
    proxy, secrets = proxies(Nginx, connections=3), []
    for _ in range(3):
        secrets.append(fresh("secret").replace("-", ""))
        proxy.tell(f"GET /console/enter?link={secrets[-1]} HTTP/1.1\r\nHost: register.example.org\r\n"
                   "\r\n".encode())
    judge_logs(proxy, secrets)


# ---- what is let through ----

def hand_in(proxy, size_bytes):
    """One from an address at a time: 429 until the one before is done with."""
    content_type, body = form(("file", bytes(size_bytes), "evidence.zip"))
    headers = {"Content-Type": content_type, "Accept": "application/json"}
    statuses = iter(lambda: proxy.ask("POST", "/verify", body, headers), None)
    return next(status for status in itertools.islice(statuses, 20) if status != 429)


@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_passes_on_what_the_service_takes(behind, proxies, kind):
    proxy = proxies(kind)
    for size_bytes in (20 * MIB, CHECK_SIZE):
        assert hand_in(proxy, size_bytes) == 200
    key = behind.ready["channels"]["content"]["live_key"]
    content_type, body = form(("client_ref", fresh()), ("file", bytes(10 * MIB), "file.bin"))
    headers = {"Content-Type": content_type, "Authorization": f"Bearer {key}"}
    assert proxy.ask("POST", "/v1/events", body, headers) == 201


def test_nginx_refuses_more_before_the_service_is_asked(behind, proxies):
    proxy = proxies(Nginx)
    behind.kill()
    for target, size_bytes in (("/verify", 34 * MIB), ("/v1/events", 12 * MIB)):
        told = proxy.tell(f"POST {target} HTTP/1.1\r\nHost: register.example.org\r\n"
                          f"Content-Length: {size_bytes}\r\n\r\n".encode(), PATIENCE)
        assert told == 413, target


# ---- TLS ----

@pytest.mark.parametrize("kind", KINDS)
def test_every_answer_says_once_that_browsers_use_https_alone(behind, proxies, kind):
    proxy = proxies(kind)

    def told(target):
        status, headers = proxy.answer("GET", target)
        return status, headers.get_all("Strict-Transport-Security")
    assert told("/v1/openapi.yaml") == (200, ["max-age=31536000"])
    assert told("/v1/channel") == (401, ["max-age=31536000"])
    behind.kill()
    status, sent = eventually(lambda: [told for told in [told("/verify")] if told[0] in (502, 503)], "it notices")[0]
    assert sent == ["max-age=31536000"], status


def test_a_node_that_says_it_itself_is_not_heard_twice(start, certificate, tmp_path):
    """Its public_url begins with https, and the proxy is none that it trusts."""
    node = start(service__public_url="https://register.example.org")
    for kind in KINDS:
        place = tmp_path / kind.__name__
        place.mkdir()
        proxy = kind(place, certificate, node)
        try:
            proxy.start()
            _, headers = eventually(lambda proxy=proxy: [told for told in [proxy.answer("GET", "/v1/openapi.yaml")]
                                                         if told[0] == 200], "it passes requests on")[0]
            assert headers.get_all("Strict-Transport-Security") == ["max-age=31536000"], kind
        finally:
            proxy.kill()


def speaking(version, ciphers="ALL:@SECLEVEL=0"):
    context = ssl._create_unverified_context()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of old versions
        context.minimum_version = context.maximum_version = version
    context.set_ciphers(ciphers)
    return context


@pytest.mark.parametrize("kind", KINDS)
def test_old_versions_and_ciphers_are_refused(proxies, kind):
    proxy = proxies(kind)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with proxy.connect(speaking(version)) as connection:
            assert connection.version() == version.name.replace("_", ".")
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            proxy.connect(speaking(version))
    for weak in ("AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA"):  # without forward secrecy; CBC
        with pytest.raises((ssl.SSLError, ConnectionError), match="HANDSHAKE_FAILURE|reset"):
            proxy.connect(speaking(ssl.TLSVersion.TLSv1_2, f"{weak}:@SECLEVEL=0"))


@pytest.mark.parametrize("kind", KINDS)
def test_plain_http_leads_pages_to_https_and_refuses_keys(behind, proxies, kind):
    proxy, secrets = proxies(kind), [fresh("secret").replace("-", "") for _ in range(3)]
    status, headers = proxy.answer("GET", f"/console/enter?link={secrets[0]}", plain=True)
    assert (status, headers["Location"]) == (308, f"https://register.example.org/console/enter?link={secrets[0]}")
    status, headers = proxy.answer("GET", "/verify", headers={"Host": "elsewhere.example.net"}, plain=True)
    assert "elsewhere" not in headers.get("Location", ""), "it leads nowhere else"
    for method, path in [("GET", "/v1/events"), ("POST", "/v1/events"), ("POST", "//v1/events"),
                         ("GET", "/%761/events"), ("GET", "/v1//events")]:
        status, headers = proxy.answer(method, f"{path}?x={secrets[1]}", b"{}", {
            "Authorization": f"Bearer {secrets[2]}"}, plain=True)
        assert (status, headers["Location"]) == (403, None), path
    judge_logs(proxy, secrets)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up rights")
def test_haproxy_gives_up_its_rights(proxies):
    proxy = proxies(Haproxy)
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{proxy.process.pid}/status").read_text()
                  .splitlines() if ":\t" in line)
    uid = pwd.getpwnam("haproxy").pw_uid
    assert status["Uid"].split() == [str(uid)] * 4 and int(status["CapEff"], 16) == 0
    assert os.readlink(f"/proc/{proxy.process.pid}/root") == "/var/lib/haproxy"


# ---- the drop-in for their units ----

def drop_in():
    text = (DIST / "proxy-hardening.conf").read_text()
    return dict(line.split("=", 1) for line in text.splitlines() if line[:1].isalpha())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up rights")
@pytest.mark.parametrize("kind", KINDS)
def test_a_proxy_needs_no_more_rights_than_its_drop_in_leaves(behind, certificate, tmp_path, kind):
    """As its unit starts it: Caddy as a user with one capability, the others as root with those named."""
    names = [name.removeprefix("CAP_").lower() for name in drop_in()["CapabilityBoundingSet"].split()]
    assert drop_in()["NoNewPrivileges"] == "yes"
    proxy = kind(tmp_path, certificate, behind)
    proxy.wrap = ["setpriv", "--no-new-privs", f"--bounding-set=-all,{','.join('+' + name for name in names)}",
                  f"--inh-caps=-all,{','.join('+' + name for name in names)}"]
    try:
        proxy.start()
        eventually(lambda: proxy.ask("GET", "/v1/openapi.yaml") == 200, "it passes requests on")
    finally:
        proxy.kill()


def test_systemd_takes_the_drop_in(tmp_path):
    (tmp_path / "proxy.service").write_text("[Service]\nExecStart=/bin/true\n")
    (tmp_path / "proxy.service.d").mkdir()
    (tmp_path / "proxy.service.d/hardening.conf").write_text((DIST / "proxy-hardening.conf").read_text())
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / "proxy.service"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and "hardening.conf" not in done.stderr, done.stderr


# ---- what could be read in two ways ----

# Each hides from an older libmicrohttpd that what follows is a body; {0} is its length.
HIDING = {
    "a line of a colon": "X-Any: 1\r\n: x\r\nContent-Length: {0}\r\n",
    "a colon and a bare line feed": "X-Any: 1\r\n:\nContent-Length: {0}\r\n",
    "a NUL and a bare line feed": "X-Any: 1\r\n\0\nContent-Length: {0}\r\n",
    "a line that begins with a NUL": "X-Any: 1\r\n\0x: 1\r\nContent-Length: {0}\r\n",
    "a folded length": "Content-Length:\r\n {0}\r\n",
    "a length folded behind a tab": "Content-Length: \r\n\t{0}\r\n",
    "a NUL behind a length": "Content-Length: {0}\0\r\n",
    "a NUL before a length": "Content-Length: \0{0}\r\n",
    "a space before the colon": "Content-Length : {0}\r\n",
    "a length after a bare line feed": "X-Any: 1\nContent-Length: {0}\r\n",
    "a length after a bare carriage return": "X-Any: 1\rContent-Length: {0}\r\n",
}
CODINGS = {
    "a folded coding": "Transfer-Encoding:\r\n chunked\r\n",
    "a NUL behind a coding": "Transfer-Encoding: chunked\0\r\n",
    "a space before a coding's colon": "Transfer-Encoding : chunked\r\n",
    "a coding after a colon": "Content-Length: 0\r\n:\nTransfer-Encoding: chunked\r\n",
    "a coding with a control character": "Transfer-Encoding: \x0bchunked\r\n",
}


def hidden(service, method, lines, chunked):
    """A request whose body is another one."""
    key = service.ready["channels"]["content"]["live_key"]
    inner = (f"GET /v1/events/evt_smuggled HTTP/1.1\r\nHost: register.example.org\r\n"
             f"Authorization: Bearer {key}\r\n\r\n")
    body = f"{len(inner):x}\r\n{inner}\r\n0\r\n\r\n" if chunked else inner
    return (f"{method} /verify HTTP/1.1\r\nHost: register.example.org\r\n"
            f"{lines.format(len(body))}\r\n{body}").encode("latin-1")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_hidden_in_a_body_reaches_the_service_through_a_proxy(behind, proxies, kind):
    proxy = proxies(kind)
    for method in ("GET", "POST"):
        for name, lines in [*HIDING.items(), *CODINGS.items()]:
            proxy.tell(hidden(behind, method, lines, name in CODINGS), patience=1)
            assert proxy.ask("GET", "/v1/openapi.yaml") == 200, (method, name)
    key = behind.ready["channels"]["content"]["live_key"]
    assert proxy.ask("GET", "/v1/channel", headers={"Authorization": f"Bearer {key}"}) == 200
    routes = eventually(lambda: [routes for routes in [{line.get("route") for line in behind.log_lines()}]
                                 if "/v1/channel" in routes], "the last request is in the log")[0]
    assert "/v1/events/{event_id}" not in routes
