"""A TCP proxy in front of one server that delivers everything a set time later, in both directions, as a long line
does: the delay does not limit the rate.

    link = DelayedLink(("127.0.0.1", server.port))
    link.delay = 0.01  # seconds in each direction
    …connect to link.port…
"""

import collections
import contextlib
import socket
import threading
import time

CHUNK = 64 << 10
BACKLOG = 4096  # chunks on the line of each direction


class DelayedLink:
    def __init__(self, server, address="127.0.0.1"):
        self.server = server
        self.delay = 0.0
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                try:
                    server = socket.create_connection(self.server, 5)
                except OSError:
                    client.close()
                    continue
                for one in (client, server):
                    one.settimeout(None)
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for pair in ((client, server), (server, client)):
                    Direction(self, *pair)


class Direction:
    """Receives in one thread and sends in another one, when each chunk is due."""

    def __init__(self, link, source, target):
        self.link, self.source, self.target = link, source, target
        self.line = collections.deque()
        self.changed = threading.Condition()
        for work in (self.receive, self.send):
            threading.Thread(target=work, daemon=True).start()

    def receive(self):
        data = b" "
        while data:
            try:
                data = self.source.recv(CHUNK)
            except OSError:
                data = b""
            with self.changed:
                self.changed.wait_for(lambda: len(self.line) < BACKLOG)
                self.line.append((time.monotonic() + self.link.delay, data))
                self.changed.notify_all()

    def send(self):
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.line)
                due, data = self.line.popleft()
                self.changed.notify_all()
            time.sleep(max(0.0, due - time.monotonic()))
            with contextlib.suppress(OSError):
                if data:
                    self.target.sendall(data)
                    continue
                self.target.shutdown(socket.SHUT_WR)
            return
