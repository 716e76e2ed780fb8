"""TCP ports for the tests that no other process takes while this one lives.

They are below the range from which the kernel assigns ports to outgoing connections. Each is reserved by an
abstract Unix socket with its number, so that concurrent test runs, and a server that is restarted on its port,
do not collide.
"""

import random
import socket

FIRST, LAST = 20000, 32000  # the kernel's own range starts at 32768

_random = random.SystemRandom()
_reservations = []


def _is_free(port, address):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def reserve_port(address="127.0.0.1"):
    while True:
        port = _random.randrange(FIRST, LAST)
        reservation = socket.socket(socket.AF_UNIX)
        try:
            reservation.bind(f"\0constancia-test-port-{port}")
        except OSError:
            reservation.close()
            continue
        if _is_free(port, address):
            _reservations.append(reservation)
            return port
        reservation.close()
