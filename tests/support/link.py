"""A TCP proxy in front of one server, for a connection that a test delays, stalls, half-closes or cuts.

    link = Link(("127.0.0.1", server.port))
    …connect to link.port…
    link.stall()
    link.join()
"""

import contextlib
import socket
import struct
import threading
import time

CHUNK = 64 << 10
ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


def abort(connection):
    """Closes it with a reset, in both of its directions."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)  # wakes the thread that receives from it
    connection.close()


class Link:
    """`port` accepts connections at `address`. All methods may be called at any time."""

    def __init__(self, server, address="127.0.0.1"):
        self.server = server
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.pairs = []  # (client, server) of each connection
        self.delay = 0.0  # seconds for each chunk
        self.refusing = self.stalled = self.closed = False
        self.changed = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    def close(self):
        self.closed = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.reset()
        self.join()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            if self.refusing:
                raise OSError
            server = socket.create_connection(self.server, 5)
        except OSError:
            abort(client)
            return
        for one in (client, server):
            one.settimeout(None)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.changed:
            if self.refusing or self.closed:
                abort(client)
                abort(server)
                return
            self.pairs.append((client, server))
        back = threading.Thread(target=self.forward, args=(server, client), daemon=True)
        back.start()
        self.forward(client, server)
        back.join()
        with self.changed:
            self.pairs.remove((client, server))
        client.close()
        server.close()

    def forward(self, source, target):
        """Forwards what arrives until the end of the stream, which it forwards too."""
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if self.delay:
                    time.sleep(self.delay)
                self.await_end_of_stall()
                target.sendall(data)
        self.await_end_of_stall()
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def await_end_of_stall(self):
        with self.changed:
            self.changed.wait_for(lambda: not self.stalled or self.closed)

    # ---- failures ----

    def stall(self):
        """Forwards nothing, no end of a stream either; connections are accepted and stay open."""
        with self.changed:
            self.stalled = True

    def reset(self):
        """Closes all connections with a reset."""
        with self.changed:
            pairs = list(self.pairs)
        for pair in pairs:
            for one in pair:
                abort(one)

    def cut(self):
        """Closes all connections and refuses new ones."""
        with self.changed:
            self.refusing = True
        self.reset()

    def half_close(self, toward_server):
        """Ends one direction of each connection; the other one stays."""
        with self.changed:
            pairs = list(self.pairs)
        for pair in pairs:
            with contextlib.suppress(OSError):
                pair[toward_server].shutdown(socket.SHUT_WR)

    def join(self):
        """Ends every failure. What was stalled is forwarded."""
        with self.changed:
            self.refusing = self.stalled = False
            self.delay = 0.0
            self.changed.notify_all()
