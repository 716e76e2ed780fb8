"""Tests of the proxy (support/link.py) that cuts and delays connections between parts of a history."""

import contextlib
import socket
import threading
import time

import pytest
from link import Link

PATIENCE = 60  # seconds until a test fails, on a machine under any load


class Echo:
    """A server that sends back what it receives, until the end of the stream."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.ended = threading.Semaphore(0)  # one for each end of a stream
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            while data := connection.recv(1 << 16):
                connection.sendall(data)
            self.ended.release()
            connection.sendall(b"goodbye")

    def has_ended(self, seconds=PATIENCE):
        return self.ended.acquire(timeout=seconds)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def server():
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def link(server):
    link = Link(("127.0.0.1", server.port))
    yield link
    link.close()


def connect(link):
    return socket.create_connection(("127.0.0.1", link.port), PATIENCE)


def receive(connection, size):
    """Returns what arrives, at most `size` bytes; less at the end of the stream."""
    data = b""
    while len(data) < size and (chunk := connection.recv(size - len(data))):
        data += chunk
    return data


def says(connection, data=b"hello"):
    connection.sendall(data)
    return receive(connection, len(data)) == data


def is_silent(connection, seconds=0.2):
    connection.settimeout(seconds)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE)
    return False


def ends(connection):
    """Waits for the end of the connection, a reset or the end of the stream; ignores what arrives before."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


def refuses(link):
    """Returns whether a new connection ends; the reset may arrive within the connect."""
    with contextlib.suppress(ConnectionError), connect(link) as connection:
        return ends(connection)
    return True


def test_data_passes_unchanged(link):
    data = bytes(range(256)) * 4096  # more than the sockets buffer
    with connect(link) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,), daemon=True)
        sender.start()
        assert receive(connection, len(data)) == data
        sender.join()


def test_the_end_of_a_stream_passes_in_its_direction(link, server):
    with connect(link) as connection:
        assert says(connection)
        connection.shutdown(socket.SHUT_WR)
        assert server.has_ended()
        assert receive(connection, 100) == b"goodbye"


def test_a_delay_is_kept_for_each_direction_until_the_join(link):
    with connect(link) as connection:
        link.delay = 0.2
        begun = time.monotonic()
        assert says(connection)
        assert time.monotonic() - begun >= 0.4
        link.join()
        assert link.delay == 0.0
        assert says(connection)


def test_a_stall_forwards_nothing_until_the_join(link, server):
    with connect(link) as old:
        assert says(old)
        link.stall()
        with connect(link) as new:
            for one in (old, new):
                one.sendall(b"late")
            assert is_silent(old)
            assert is_silent(new)
            link.join()
            assert receive(old, 4) == receive(new, 4) == b"late"
            assert says(old)
            assert says(new)


def test_a_stall_holds_back_the_end_of_a_stream(link, server):
    with connect(link) as connection:
        assert says(connection)
        link.stall()
        connection.shutdown(socket.SHUT_WR)
        assert not server.has_ended(0.2)
        link.join()
        assert server.has_ended()
        assert receive(connection, 100) == b"goodbye"


@pytest.mark.parametrize("stalled", [False, True], ids=["running", "stalled"])
def test_a_cut_ends_connections_and_refuses_new_ones_until_the_join(link, stalled):
    with connect(link) as connection:
        assert says(connection)
        if stalled:
            link.stall()
        link.cut()
        assert ends(connection)
    assert refuses(link)
    link.join()
    with connect(link) as connection:
        assert says(connection)


def test_a_reset_refuses_no_new_connection(link):
    with connect(link) as connection:
        assert says(connection)
        link.reset()
        assert ends(connection)
    with connect(link) as connection:
        assert says(connection)


def test_half_close_ends_one_direction(link, server):
    with connect(link) as connection:
        assert says(connection)
        link.half_close(toward_server=True)
        assert server.has_ended()
        assert receive(connection, 100) == b"goodbye"


def test_half_close_toward_the_client_leaves_the_other_direction(link, server):
    with connect(link) as connection:
        assert says(connection)
        link.half_close(toward_server=False)
        assert connection.recv(1) == b""
        connection.shutdown(socket.SHUT_WR)
        assert server.has_ended()  # the stream toward the server was still open


def test_without_a_server_connections_are_reset(server):
    server.close()
    link = Link(("127.0.0.1", server.port))
    assert refuses(link)
    link.close()


def test_close_ends_what_is_stalled(server):
    link = Link(("127.0.0.1", server.port))
    with connect(link) as connection:
        assert says(connection)
        link.stall()
        connection.sendall(b"late")
        link.close()
        assert ends(connection)
    with pytest.raises(ConnectionError):
        connect(link)
