"""Many connections that register at the same moment, from one thread. Their events form one large transaction,
and the write-ahead log of the embedded store grows fast."""

import contextlib
import http.client
import json
import socket

TEXT_SIZE = 15_500


class Burst:
    """Connections to a service's port; `http.connections_per_address` must allow their number."""

    SETTINGS = {"http.connections_per_address": "2000"}

    def __init__(self, port, key, count, patience=60):
        self.key, self.port = key, port
        self.connections = []
        with contextlib.suppress(OSError):
            while len(self.connections) < count:
                self.connections.append(socket.create_connection(("127.0.0.1", port), patience))

    def send(self, bodies):
        """Sends one request on each connection; there must be at least as many connections. Raises OSError."""
        for connection, body in zip(self.connections, bodies):
            connection.sendall(b"POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                               b"Content-Type: application/json\r\nAuthorization: Bearer %s\r\n"
                               b"Content-Length: %d\r\n\r\n" % (self.key.encode(), len(body))
                               + body)

    def answers(self, count):
        """Yields the responses of the first connections: (status, body), or None for a broken connection."""
        for connection in self.connections[:count]:
            try:
                response = http.client.HTTPResponse(connection)
                response.begin()
                yield response.status, response.read()
            except (OSError, http.client.HTTPException):
                yield None

    def close(self):
        for connection in self.connections:
            connection.close()
