"""A call that another thread can end: what AsyncClient's cancellation and time limits rest on."""

from __future__ import annotations

import contextlib
import contextvars
import socket
import threading
import time
from typing import Optional

from .errors import ConstanciaError


class CallEnded(ConstanciaError):
    """The caller gave the call up. It is never seen outside this package."""


class Call:
    """Has at most one connection at a time, and knows whether it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._socket: Optional[socket.socket] = None

    def end(self) -> None:
        """Ends the call from another thread: its connection is shut down, its pauses are over, and it
        sends no further request."""
        with self._lock:
            self._ended.set()
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # Not that of ssl, which takes the session from under the other thread.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def check(self) -> None:
        """Raises CallEnded if it was."""
        if self._ended.is_set():
            raise CallEnded("the call was ended")

    def hold(self, connected: Optional[socket.socket]) -> None:
        """Names the connection that the call uses from here on; None: none."""
        with self._lock:
            self._socket = connected
        if connected is not None:
            self.check()

    def sleep(self, seconds: float) -> None:
        """Pauses, not beyond the end of the call."""
        if self._ended.wait(seconds):
            self.check()


CURRENT: "contextvars.ContextVar[Optional[Call]]" = contextvars.ContextVar("call", default=None)


def sleep(seconds: float) -> None:
    """Pauses the current call."""
    call = CURRENT.get()
    if call:
        call.sleep(seconds)
    else:
        time.sleep(seconds)
