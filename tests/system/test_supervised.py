"""What a supervisor such as systemd receives: readiness, watchdog messages, the end; how the
journal receives the log; and socket activation."""

import contextlib
import ctypes
import fcntl
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

from client import BINARY, Client, Service, eventually
from program import PATIENCE, NotStarted, clean_environment

pytestmark = pytest.mark.sqlite  # what is reported does not depend on the store

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000


class Supervisor:
    """The socket that NOTIFY_SOCKET names."""

    def __init__(self, name):
        self.heard = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def close(self):
        self.socket.close()

    def hear(self, wanted, seconds=PATIENCE):
        """The next message with such a line; None when it does not come."""
        while select.select([self.socket], [], [], seconds)[0]:
            message = self.socket.recv(4096).decode().splitlines()
            self.heard.append(message)
            if any(line.startswith(wanted) for line in message):
                return message
        return None

    def forget(self):
        while select.select([self.socket], [], [], 0)[0]:
            self.socket.recv(4096)


@pytest.fixture(scope="module", params=["path", "abstract"])
def supervised(request, tmp_path_factory):
    """A service and who supervises it; it is asked for a sign of life every two seconds."""
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as ending:
        name = f"{place}/notify" if request.param == "path" else f"@constancia-{os.getpid()}"
        supervisor = Supervisor(name)
        ending.callback(supervisor.close)
        service = Service(tmp_path_factory.mktemp("supervised"), describe=False,
                          environment={"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "2000000"})
        ending.callback(service.discard)
        yield service.start(), supervisor


def test_it_says_when_it_serves_that_it_lives_and_when_it_ends(supervised):
    service, supervisor = supervised
    ready = supervisor.hear("READY=1")
    assert f"MAINPID={service.process.pid}" in ready
    assert f"STATUS=serving on 127.0.0.1:{service.port}" in ready
    assert supervisor.heard[0] == ["STATUS=starting"]
    Client(service).get("/v1/openapi.yaml").expect(200)
    for _ in range(2):
        assert supervisor.hear("WATCHDOG=1")
    assert service.stop() == 0
    assert supervisor.hear("STOPPING=1")


def test_signs_of_life_go_on_while_it_ends(supervised):
    """A request that is under way is waited for."""
    service, supervisor = supervised
    if not service.alive():
        service.start()
    supervisor.forget()
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as client:
        key = service.ready["channels"]["content"]["live_key"]
        body = b'{"client_ref":"a","payload":{}}'
        client.sendall(b"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                       + f"Authorization: Bearer {key}\r\n".encode()
                       + f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 100 ")
        client.sendall(body[:5])
        assert supervisor.hear("WATCHDOG=1")
        service.process.terminate()
        assert "WATCHDOG=1" in supervisor.hear("STOPPING=1")
        for _ in range(3):
            assert supervisor.hear("WATCHDOG=1")
        client.sendall(body[5:])
        assert client.recv(4096).split()[1] == b"201"
    assert service.process.wait(PATIENCE) == 0
    service.stop()


@contextlib.contextmanager
def stopped_thread(process, name):
    """One thread of a process does not run, whatever the others do."""
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    (thread, *_) = [int(task.name) for task in pathlib.Path(f"/proc/{process}/task").iterdir()
                    if (task / "comm").read_text().strip() == name]
    if library.ptrace(PTRACE_SEIZE, thread, None, None):
        pytest.skip(f"threads cannot be stopped here: {os.strerror(ctypes.get_errno())}")
    try:
        assert library.ptrace(PTRACE_INTERRUPT, thread, None, None) == 0
        os.waitpid(thread, WALL)
        yield
    finally:
        assert library.ptrace(PTRACE_DETACH, thread, None, None) == 0


def test_there_is_no_sign_of_life_while_a_thread_that_polls_hangs(supervised):
    service, supervisor = supervised
    if not service.alive():
        service.start()
    assert supervisor.hear("WATCHDOG=1")
    with stopped_thread(service.process.pid, "http-loop"):
        supervisor.hear("WATCHDOG=1", 3)  # one may be on its way
        supervisor.forget()
        assert supervisor.hear("WATCHDOG=1", 5) is None
    assert supervisor.hear("WATCHDOG=1"), "and there is again"
    assert service.stop() == 0


def test_a_watchdog_of_another_process_is_not_fed(tmp_path):
    supervisor = Supervisor(str(tmp_path / "notify"))
    service = Service(tmp_path, describe=False,
                      environment={"NOTIFY_SOCKET": str(tmp_path / "notify"),
                                   "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"})
    try:
        service.start()
        assert supervisor.hear("READY=1")
        assert supervisor.hear("WATCHDOG=1", 3) is None
        assert service.stop() == 0
    finally:
        service.discard()
        supervisor.close()


# ---- the journal ----

PRIORITIES = {"debug": "<7>", "info": "<6>", "warning": "<4>", "error": "<3>"}


def journaled(tmp_path, named):
    """Lines that a service writes to a socket, as it does to the journal's; `named` makes the
    value of JOURNAL_STREAM of its device and inode."""
    ours, its = socket.socketpair()
    found = os.fstat(its.fileno())
    process = subprocess.Popen(
        [BINARY, "dev", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", "--set",
         "service.admin_listen=", "--set", "log.requests=all", "--ready-file", str(tmp_path / "ready")], stderr=its,
        stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        env=clean_environment({"JOURNAL_STREAM": named(found.st_dev, found.st_ino)}))
    its.close()
    told = b""
    ours.settimeout(PATIENCE)
    eventually((tmp_path / "ready").exists, "it is ready")
    process.send_signal(signal.SIGTERM)
    while piece := ours.recv(65536):
        told += piece
    assert process.wait(PATIENCE) == 0
    ours.close()
    lines = told.decode().splitlines()
    prefixes = [line[:line.index("{")] for line in lines]
    return [(prefix, json.loads(line[len(prefix):])) for prefix, line in zip(prefixes, lines)]


def test_each_line_to_the_journal_begins_with_its_priority(tmp_path):
    lines = journaled(tmp_path, lambda device, inode: f"{device}:{inode}")
    assert "stopping" in [line["event"] for _, line in lines]
    assert all(prefix == PRIORITIES[line["level"]] for prefix, line in lines), lines


def test_a_journal_that_standard_error_does_not_go_to_has_no_say(tmp_path):
    lines = journaled(tmp_path, lambda device, inode: f"{device}:{inode + 1}")
    assert lines and all(prefix == "" for prefix, _ in lines), lines


# ---- sockets that are handed over ----

class HandedOver(Service):
    """Finds its sockets open, as sd_listen_fds(3) says; those in `sockets` are (name, socket)."""

    def __init__(self, directory, sockets, **settings):
        super().__init__(directory, describe=False, **settings)
        self.sockets = sockets

    def spawn(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ready_file)
        moves = " ".join(f"{3 + i}<&{held.fileno()}" for i, (_, held) in enumerate(self.sockets))
        names = ":".join(name for name, _ in self.sockets)
        script = (f'export LISTEN_PID=$$ LISTEN_FDS={len(self.sockets)} LISTEN_FDNAMES={names}; '
                  f'exec "$@" {moves}')
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", script, "bash", "setpriv", "--pdeathsig", "KILL",
                 *self.command(*self.serving())], stdin=subprocess.DEVNULL, stderr=log,
                stdout=subprocess.DEVNULL, env=clean_environment(),
                pass_fds=[held.fileno() for _, held in self.sockets])


def listening(kind=socket.SOCK_STREAM):
    """Above the numbers that are handed over."""
    made = socket.socket(socket.AF_INET, kind)
    made.bind(("127.0.0.1", 0))
    if kind == socket.SOCK_STREAM:
        made.listen(100)
    high = socket.socket(fileno=fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, 100))
    made.close()
    return high


def test_a_restart_on_a_socket_that_is_handed_over_refuses_no_connection(tmp_path):
    public, admin = listening(), listening()
    service = HandedOver(tmp_path, [("admin", admin), ("public", public)], rate__live=100000)
    service.port, service.admin_port = (held.getsockname()[1] for held in (public, admin))
    told, ending = [], threading.Event()

    def ask():
        while not ending.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=PATIENCE)
            try:
                connection.request("GET", "/v1/openapi.yaml", headers={"Connection": "close"})
                told.append(connection.getresponse().status)
            except OSError as error:
                told.append(repr(error))
            finally:
                connection.close()

    asking = [threading.Thread(target=ask) for _ in range(4)]
    # Nothing else can listen there: what it serves on is what it was handed.
    service.settings["service.listen"] = f"127.0.0.1:{service.port}"
    try:
        service.start()
        assert service.monitor("/livez")[0] == 200
        for thread in asking:
            thread.start()
        for _ in range(2):
            before = len(told)
            eventually(lambda: len(told) > before + 20, "it answers")
            assert service.stop() == 0
            service.start()
        before = len(told)
        eventually(lambda: len(told) > before + 20, "it answers again")
    finally:
        ending.set()
        for thread in asking:
            if thread.is_alive():
                thread.join()
        service.discard()
    assert set(told) == {200}, [each for each in told if each != 200]


def test_a_socket_that_does_not_listen_is_no_socket_to_serve_on(tmp_path):
    service = HandedOver(tmp_path, [("public", listening(socket.SOCK_DGRAM))])
    try:
        with pytest.raises(NotStarted, match="the socket 'public' .* is not a listening TCP socket"):
            service.start()
    finally:
        service.discard()


def test_sockets_for_another_process_are_left_alone(tmp_path):
    public = listening()
    service = Service(tmp_path, describe=False,
                      environment={"LISTEN_PID": "1", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "public"})
    try:
        service.start()
        Client(service).get("/v1/openapi.yaml").expect(200)
        assert service.stop() == 0
    finally:
        service.discard()
        public.close()
