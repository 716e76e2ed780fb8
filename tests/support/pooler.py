"""Simulates a connection pooler for PostgreSQL: a proxy in front of one server that resets all session
settings of the client after each transaction."""

import contextlib
import socket
import struct
import threading

RESET = b"Q" + struct.pack("!I", 4 + 10) + b"RESET ALL\0"


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def read_message(connection):
    head = read_exactly(connection, 5)
    return head + read_exactly(connection, struct.unpack("!I", head[1:])[0] - 4)


class Pooler:
    """`port` accepts connections without TLS."""

    def __init__(self, port):
        self.server = ("127.0.0.1", port)
        self.resets = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.listener.close()

    def listen(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, contextlib.suppress(OSError, EOFError):
            with socket.create_connection(self.server) as server:
                self.begin(client, server)
                while True:
                    self.exchange(client, server)

    def begin(self, client, server):
        head = read_exactly(client, 4)
        server.sendall(head + read_exactly(client, struct.unpack("!I", head)[0] - 4))
        self.answer(client, server)

    @staticmethod
    def answer(client, server):
        """Forwards responses up to the end of the exchange; returns whether a transaction is open then."""
        while True:
            message = read_message(server)
            client.sendall(message)
            if message[:1] == b"Z":
                return message[5:] != b"I"

    def exchange(self, client, server):
        """Forwards the client's messages up to a sync, with the responses to earlier ones."""
        done = threading.Event()
        outcome = []

        def carry():
            with contextlib.suppress(OSError, EOFError):
                outcome.append(self.answer(client, server))
            done.set()
        threading.Thread(target=carry, daemon=True).start()
        try:
            while True:
                message = read_message(client)
                server.sendall(message)
                if message[:1] in b"SQ":
                    break
        except (OSError, EOFError):
            server.shutdown(socket.SHUT_RDWR)
            raise
        done.wait()
        if outcome == [False]:
            server.sendall(RESET)
            while read_message(server)[:1] != b"Z":
                pass
            self.resets += 1
        elif not outcome:
            raise EOFError
