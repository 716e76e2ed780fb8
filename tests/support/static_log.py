"""Logs of segments that a test writes file by file, in a directory and at an address: right ones, and any that a
service must not have.

    log = StaticLog(directory)          .key, .vkey, .entries (bytes), .url
    log.add(TAG, 1, 3)                  an entry; log.entries may be changed at will
    log.write()                         all tiles and entries, and a signed checkpoint of all entries
    log.write(size=5, key=other)        of the first five; signed by another key
    log.close()
"""

import functools
import hashlib
import http.server
import json
import shutil
import struct
import threading

from tlog import ED25519, WIDTH, Key, checkpoint_text, leaf_hash, root, tile_path

ORIGIN = "log.example/segments"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def entry_text(tag, first, last, chain_hash_last=None):
    entry = {"chain_hash_last": chain_hash_last or digest(f"{tag} {last}"), "first_sequence": first,
             "last_sequence": last, "seal_hash": digest(f"seal {tag} {first} {last}"), "tag": tag, "v": 1}
    return json.dumps(entry, separators=(",", ":"), sort_keys=True).encode()


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        self.server.requests.append(self.path)
        if self.headers["Cache-Control"] == "no-cache":
            self.server.no_cache.append(self.path)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients that read no more


class StaticLog:
    def __init__(self, directory, origin=ORIGIN, key=None):
        self.directory = directory
        self.key = key or Key(origin, ED25519)
        self.entries = []
        self.directory.mkdir(parents=True, exist_ok=True)
        self._server = None

    @property
    def vkey(self):
        return self.key.vkey

    @property
    def url(self):
        """The address: of the directory as it is at each request."""
        if not self._server:
            handler = functools.partial(Handler, directory=str(self.directory))
            self._server = Server(("127.0.0.1", 0), handler)
            self._server.requests, self._server.no_cache = [], []
            threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def requests(self):
        return self._server.requests

    @property
    def no_cache(self):
        """The requests that no cache may answer with what it has."""
        return self._server.no_cache

    def close(self):
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def add(self, tag, first, last, chain_hash_last=None):
        self.entries.append(entry_text(tag, first, last, chain_hash_last))

    def fill(self, count, channels=7):
        """Adds entries of other channels, of one event each."""
        last = {}
        for number in range(count):
            tag = digest(f"other {number % channels}")
            last[tag] = last.get(tag, 0) + 1
            self.add(tag, last[tag], last[tag])

    def path(self, level, index, width):
        return self.directory / tile_path(level, index, width)

    def file(self, kind, index, width):
        """The file of the checkpoint, of a tile of level 0 or of a bundle of entries."""
        if kind == "checkpoint":
            return self.directory / kind
        return self.path(0 if kind == "tile" else kind, index, width)

    def _put(self, level, index, width, content):
        file = self.path(level, index, width)
        if file.is_dir():
            file.rmdir()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def checkpoint(self, size=None, key=None, cosigners=(), time=0):
        """The note; `cosigners` are keys of witnesses."""
        size = len(self.entries) if size is None else size
        text = checkpoint_text(self.key.name, size, root([leaf_hash(entry) for entry in self.entries[:size]]))
        return text + "\n" + (key or self.key).sign(text) + "".join(one.cosign(text, time) for one in cosigners)

    def write(self, size=None, key=None, cosigners=(), time=0):
        shutil.rmtree(self.directory / "tile", ignore_errors=True)
        entries = self.entries[:size]
        for index in range((len(entries) + WIDTH - 1) // WIDTH):
            bundle = entries[index * WIDTH:(index + 1) * WIDTH]
            self._put("entries", index, len(bundle), b"".join(struct.pack(">H", len(one)) + one for one in bundle))
        level, nodes = 0, [leaf_hash(entry) for entry in entries]
        while nodes:
            for index in range((len(nodes) + WIDTH - 1) // WIDTH):
                tile = nodes[index * WIDTH:(index + 1) * WIDTH]
                self._put(level, index, len(tile), b"".join(tile))
            nodes = [root(nodes[at:at + WIDTH]) for at in range(0, len(nodes) // WIDTH * WIDTH, WIDTH)]
            level += 1
        (self.directory / "checkpoint").write_text(self.checkpoint(size, key, cosigners, time), encoding="utf-8")
