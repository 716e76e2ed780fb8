"""Transparency logs for tests: an implementation of its own of what src/tlog does, from the specifications (RFC 6962;
C2SP signed-note, tlog-checkpoint, tlog-cosignature, tlog-tiles, tlog-proof). Needs python3-cryptography."""

import base64
import hashlib
import json
import struct
import urllib.error
import urllib.request

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

WIDTH = 256
ED25519, COSIGNATURE = 1, 4


def sha256(data):
    return hashlib.sha256(data).digest()


# ---- trees ----

def leaf_hash(entry):
    return sha256(b"\0" + entry)


def node_hash(left, right):
    return sha256(b"\1" + left + right)


def split(count):
    """The largest power of two below it."""
    return 1 << (count - 1).bit_length() - 1


def root(leaves):
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return leaves[0]
    half = split(len(leaves))
    return node_hash(root(leaves[:half]), root(leaves[half:]))


def inclusion(leaves, index):
    """The proof, from the leaf upwards (RFC 6962, section 2.1.1)."""
    if len(leaves) == 1:
        return []
    half = split(len(leaves))
    if index < half:
        return inclusion(leaves[:half], index) + [root(leaves[half:])]
    return inclusion(leaves[half:], index - half) + [root(leaves[:half])]


def consistency(leaves, old_size, is_whole=True):
    """The proof that the tree begins with one of `old_size` leaves (section 2.1.2)."""
    if old_size in (0, len(leaves)):
        return [] if is_whole else [root(leaves)]
    half = split(len(leaves))
    if old_size <= half:
        return consistency(leaves[:half], old_size, is_whole) + [root(leaves[half:])]
    return consistency(leaves[half:], old_size - half, False) + [root(leaves[:half])]


def root_of_path(leaf, index, size, path):
    """The root to which an inclusion proof leads; None: it has another number of hashes."""
    path = list(path)
    result = _climb(leaf, index, size, path)
    return result if not path else None


def _climb(leaf, index, size, path):
    if size == 1:
        return leaf
    half = split(size)
    if index < half:
        below = _climb(leaf, index, half, path)
        return node_hash(below, path.pop(0)) if below and path else None
    below = _climb(leaf, index - half, size - half, path)
    return node_hash(path.pop(0), below) if below and path else None


def is_consistent(old_size, old_root, size, new_root, path):
    """Whether the proof shows that the tree begins with the old one (RFC 9162, section 2.1.4.2)."""
    if old_size > size:
        return False
    if old_size == size:
        return not path and old_root == new_root
    if old_size == 0:
        return not path
    if not path:
        return False
    path = list(path) if old_size & (old_size - 1) else [old_root, *path]
    node, last = old_size - 1, size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old, new = path[0], path[0]
    for item in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old, new = node_hash(item, old), node_hash(item, new)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, item)
        node, last = node >> 1, last >> 1
    return last == 0 and (old, new) == (old_root, new_root)


# ---- keys and notes ----

def key_id(name, kind, public):
    return sha256(name.encode() + b"\n" + bytes([kind]) + public)[:4]


def vkey_of(name, kind, public):
    return f"{name}+{key_id(name, kind, public).hex()}+{base64.b64encode(bytes([kind]) + public).decode()}"


class Key:
    """A key that signs notes (ED25519) or cosigns checkpoints (COSIGNATURE)."""

    def __init__(self, name, kind, private=None):
        self.name, self.kind = name, kind
        self.private = private or ed25519.Ed25519PrivateKey.generate()
        self.public = self.private.public_key().public_bytes(serialization.Encoding.Raw,
                                                             serialization.PublicFormat.Raw)

    @classmethod
    def load(cls, name, kind, pem):
        return cls(name, kind, serialization.load_pem_private_key(pem, None))

    @property
    def id(self):
        return key_id(self.name, self.kind, self.public)

    @property
    def vkey(self):
        return vkey_of(self.name, self.kind, self.public)

    def private_bytes(self):
        return self.private.private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw,
                                          serialization.NoEncryption())

    def line(self, signature):
        return f"— {self.name} {base64.b64encode(self.id + signature).decode()}\n"

    def sign(self, text):
        return self.line(self.private.sign(text.encode()))

    def cosign(self, text, time):
        message = f"cosignature/v1\ntime {time}\n{text}"
        return self.line(struct.pack(">Q", time) + self.private.sign(message.encode()))


def parse_vkey(vkey):
    """(name, id, kind, public key)"""
    name, key_id, rest = vkey.split("+", 2)
    data = base64.b64decode(rest, validate=True)
    assert sha256(name.encode() + b"\n" + data)[:4].hex() == key_id
    return name, bytes.fromhex(key_id), data[0], data[1:]


def parse_note(note):
    """(text, [(name, id, signature)])"""
    text, _, lines = note.rpartition("\n\n")
    signatures = []
    if not lines.endswith("\n"):
        raise ValueError("no signature line at the end")
    for line in lines[:-1].split("\n"):
        dash, name, data = line.split(" ")
        if dash != "—":
            raise ValueError("a signature line without its mark")
        data = base64.b64decode(data, validate=True)
        signatures.append((name, data[:4], data[4:]))
    return text + "\n", signatures


def verify_note(note, vkey):
    """The times of the key's cosignatures, [None] for a signature without one; []: it has none. A false one raises
    InvalidSignature."""
    name, key_id, kind, public = parse_vkey(vkey)
    text, signatures = parse_note(note)
    times = []
    for signer, signer_id, signature in signatures:
        if (signer, signer_id) != (name, key_id):
            continue
        message, time = text, None
        if kind == COSIGNATURE:
            (time,), signature = struct.unpack(">Q", signature[:8]), signature[8:]
            message = f"cosignature/v1\ntime {time}\n{text}"
        ed25519.Ed25519PublicKey.from_public_bytes(public).verify(signature, message.encode())
        times.append(time)
    return times


def checkpoint_text(origin, size, root_hash):
    return f"{origin}\n{size}\n{base64.b64encode(root_hash).decode()}\n"


def parse_checkpoint(text):
    """(origin, size, root)"""
    origin, size, root_hash = text.split("\n")[:3]
    if not origin or size != str(int(size)) or int(size) < 0:
        raise ValueError("an origin or a size")
    return origin, int(size), base64.b64decode(root_hash, validate=True)


# ---- the log of a service ----

def tile_index(number):
    elements = [f"{number % 1000:03}"]
    while number >= 1000:
        number //= 1000
        elements.insert(0, f"x{number % 1000:03}")
    return "/".join(elements)


def tile_path(level, index, width):
    return f"tile/{level}/{tile_index(index)}" + (f".p/{width}" if width < WIDTH else "")


def tag_of(channel_id, chain="live"):
    return sha256(f"constancia-tag/1\n{channel_id}\n{chain}".encode()).hex()


# ---- proofs of entries ----

def parse_proof(text):
    """(extra data or None, index, path, note) of a tlog-proof."""
    head, _, note = text.partition("\n\n")
    first, *lines = head.split("\n")
    if first != "c2sp.org/tlog-proof@v1":
        raise ValueError("the first line")
    extra = base64.b64decode(lines.pop(0)[6:], validate=True) if lines[0].startswith("extra ") else None
    index = lines.pop(0)
    if not index.startswith("index ") or index[6:] != str(int(index[6:])) or int(index[6:]) < 0:
        raise ValueError("the index")
    path = [base64.b64decode(line, validate=True) for line in lines]
    if any(len(item) != 32 for item in path):
        raise ValueError("the path")
    return extra, int(index[6:]), path, note


def segment_entry(seal_line):
    """The entry of the segment with that seal document."""
    seal = json.loads(seal_line)
    entry = {"chain_hash_last": seal["chain_hash_last"], "first_sequence": seal["first_sequence"],
             "last_sequence": seal["last_sequence"], "seal_hash": sha256(seal_line).hex(),
             "tag": tag_of(seal["channel_id"], seal["chain"]), "v": 1}
    return json.dumps(entry, separators=(",", ":"), sort_keys=True).encode()


def logged_event(text):
    """(record of the event, entry, note) of the proof that an event is in the log; ValueError."""
    extra, index, path, note = parse_proof(text)
    *lines, end = extra.split(b"\n")
    seal, *records = lines
    if end or not records:
        raise ValueError("the lines")
    last = None
    for record in records:
        if last and json.loads(record)["previous_chain_hash"] != last:
            raise ValueError("the chain")
        last = sha256(record).hex()
    entry = segment_entry(seal)
    if last != json.loads(entry)["chain_hash_last"]:
        raise ValueError("the end of the segment")
    _, size, expected = parse_checkpoint(parse_note(note)[0])
    if root_of_path(leaf_hash(entry), index, size, path) != expected:
        raise ValueError("the root")
    return records[0], entry, note


class RemoteLog:
    """Reads a log at an address, and checks all of it against its tiles."""

    def __init__(self, url):
        self.url = url.rstrip("/")

    def get(self, path):
        with urllib.request.urlopen(f"{self.url}/{path}", timeout=60) as answer:
            return answer.read()

    def status(self, path):
        try:
            with urllib.request.urlopen(f"{self.url}/{path}", timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def note(self):
        return self.get("checkpoint").decode()

    def entries(self, size):
        """The first `size` entries, as bytes; checked against the tiles of level 0."""
        found = []
        for index in range((size + WIDTH - 1) // WIDTH):
            width = min(WIDTH, size - index * WIDTH)
            bundle = self.get(tile_path("entries", index, width))
            tile = self.get(tile_path(0, index, width))
            assert len(tile) == 32 * width
            for place in range(width):
                (length,) = struct.unpack(">H", bundle[:2])
                entry, bundle = bundle[2:2 + length], bundle[2 + length:]
                assert leaf_hash(entry) == tile[32 * place:32 * place + 32]
                found.append(entry)
            assert not bundle
        return found

    def check(self):
        """(note, entries as objects) of the whole log; the upper tiles are recomputed, too."""
        note = self.note()
        _, size, expected = parse_checkpoint(parse_note(note)[0])
        entries = self.entries(size)
        hashes = [leaf_hash(entry) for entry in entries]
        assert root(hashes) == expected
        level, nodes = 0, hashes
        while len(nodes) >= WIDTH:
            nodes = [root(nodes[at:at + WIDTH]) for at in range(0, len(nodes) // WIDTH * WIDTH, WIDTH)]
            level += 1
            for index in range((len(nodes) + WIDTH - 1) // WIDTH):
                part = nodes[index * WIDTH:(index + 1) * WIDTH]
                assert self.get(tile_path(level, index, len(part))) == b"".join(part)
        parsed = [json.loads(entry) for entry in entries]
        for entry, text in zip(parsed, entries):
            assert json.dumps(entry, separators=(",", ":"), sort_keys=True).encode() == text
            assert set(entry) == {"chain_hash_last", "first_sequence", "last_sequence", "seal_hash", "tag", "v"}
        return note, parsed


__all__ = ["InvalidSignature", "Key", "RemoteLog", "checkpoint_text", "consistency", "inclusion", "is_consistent", "leaf_hash",
           "logged_event", "node_hash", "parse_checkpoint", "parse_note", "parse_proof", "parse_vkey", "root", "root_of_path", "sha256", "tag_of",
           "tile_path", "verify_note"]
