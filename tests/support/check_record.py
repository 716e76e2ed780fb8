#!/usr/bin/env python3
"""A second, independent verifier of evidence records (RFC 4998).

Written from docs/verify/evidence-format.md and the RFC, with the standard library and the openssl command.

usage: check_record.py [--trust ROOTS.pem] [--at SECONDS] RECORD DATA
Exit status 0: valid; 1: not valid, with the reason on standard error.
"""

import argparse
import calendar
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import time

SEQUENCE, SET, BOOLEAN, INTEGER, OCTETS, OBJECT, TIME = 0x30, 0x31, 0x01, 0x02, 0x04, 0x06, 0x18
EXTENSIONS = 0xa1
ALGORITHMS = {
    bytes.fromhex("608648016503040201"): "sha256",
    bytes.fromhex("608648016503040202"): "sha384",
    bytes.fromhex("608648016503040203"): "sha512",
}


class Invalid(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Invalid(what)


class Element:
    """A DER element: its tag, its content and all of its bytes."""

    def __init__(self, data):
        require(len(data) >= 2, "an element is cut")
        self.tag, first = data[0], data[1]
        start, size = 2, first
        if first >= 0x80:
            start += first & 0x7f
            require(0x81 <= first <= 0x84 and len(data) >= start, "no length of DER")
            size = int.from_bytes(data[2:start], "big")
            require(size >= 0x80 and data[2] != 0, "a length is not the shortest")
        require(len(data) >= start + size, "an element is cut")
        self.content, self.whole = data[start:start + size], data[:start + size]

    def expect(self, tag):
        require(self.tag == tag, f"tag {self.tag:#x} where {tag:#x} belongs")
        return self

    def children(self):
        found, rest = [], self.content
        while rest:
            found.append(Element(rest))
            rest = rest[len(found[-1].whole):]
        return found


def algorithm(element):
    parts = element.children()
    require(1 <= len(parts) <= 2 and parts[0].tag == OBJECT and parts[0].content in ALGORITHMS,
            "a digest algorithm that is not accepted")
    require(len(parts) == 1 or parts[1].whole == b"\5\0", "parameters of a digest algorithm")
    return ALGORITHMS[parts[0].content]


def digest(name, data):
    return hashlib.new(name, data).digest()


class Stamp:
    """An ArchiveTimeStamp."""

    def __init__(self, element):
        parts = element.expect(SEQUENCE).children()
        self.algorithm, self.lists = None, []
        if parts and parts[0].tag == 0xa0:
            self.algorithm = algorithm(parts.pop(0))
        if parts and parts[0].tag == 0xa2:
            self.lists = [[each.expect(OCTETS).content for each in part.expect(SEQUENCE).children()]
                          for part in parts.pop(0).children()]
            require(self.lists and all(self.lists), "no list, or one without a hash")
        require(len(parts) == 1, "something else in an archive timestamp")
        self.token = parts[0].expect(SEQUENCE).whole
        self.imprint_algorithm, self.imprint, self.seconds = self.read_info()
        self.algorithm = self.algorithm or self.imprint_algorithm
        require(self.algorithm == self.imprint_algorithm, "the imprint is by another algorithm")

    def read_info(self):
        """Reads the TSTInfo: the imprint and the time."""
        signed = Element(Element(self.token).children()[1].content)
        info = Element(Element(signed.children()[2].children()[1].content).content)
        parts = Element(info.whole).children()
        for extension in [each for part in parts[5:] if part.tag == EXTENSIONS
                          for each in part.children()]:
            require(extension.children()[1].tag != BOOLEAN, "a critical extension of a TSTInfo")
        imprint = parts[2].children()
        given = re.fullmatch(r"(\d{14})(\.\d+)?Z", parts[4].expect(TIME).content.decode())
        seconds = calendar.timegm(time.strptime(given[1], "%Y%m%d%H%M%S")) + float(given[2] or 0)
        return algorithm(imprint[0]), imprint[1].expect(OCTETS).content, seconds

    def check(self, leaf, where):
        # A first list of one hash is accepted as that hash, or hashed again.
        starts = [leaf]
        if self.lists:
            require(leaf in self.lists[0], f"{where} does not cover what it has to")
            again = digest(self.algorithm, b"".join(sorted(self.lists[0])))
            starts = [again] if len(self.lists[0]) > 1 else [leaf, again]
        require(all(len(each) == len(leaf) for hashes in self.lists for each in hashes),
                f"{where}: a hash's length")
        require(self.imprint in [self.climb(start) for start in starts],
                f"{where} does not cover what it has to")

    def climb(self, node):
        for hashes in self.lists[1:]:
            node = digest(self.algorithm, b"".join(sorted(hashes + [node])))
        return node

    def check_token(self, trust, seconds, where):
        """Verifies with OpenSSL as of its own time and as of `seconds`."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(self.token)
            file.flush()
            command = ["openssl", "ts", "-verify", "-token_in", "-digest", self.imprint.hex()]
            # `openssl ts` supports neither certificates other than X.509 nor OCSP responses.
            if subprocess.run(["openssl", "ts", "-reply", "-token_in", "-in", file.name, "-text"],
                              capture_output=True, check=False).returncode != 0:
                command = ["openssl", "cms", "-verify", "-cades", "-inform", "DER", "-purpose",
                           "timestampsign", "-out", "/dev/null"]
            for judged in (self.seconds, max(seconds, self.seconds)):
                done = subprocess.run(
                    command + ["-in", file.name, "-CAfile", trust, "-attime", str(int(judged))],
                    capture_output=True, text=True, check=False)
                require(done.returncode == 0, f"{where}: {done.stderr}")


class Record:
    def __init__(self, der):
        whole = Element(der)
        require(whole.tag == SEQUENCE and whole.whole == der, "no DER sequence, or bytes after it")
        parts = whole.children()
        require(parts[0].whole == b"\2\1\1", "not version 1")
        self.algorithms = [algorithm(each) for each in parts[1].expect(SEQUENCE).children()]
        require(len(parts) == 3 or (len(parts) == 4 and parts[2].tag == 0xa0), "other members")
        self.encoded = [chain.expect(SEQUENCE).whole
                        for chain in parts[-1].expect(SEQUENCE).children()]
        self.chains = [[Stamp(each) for each in Element(chain).children()]
                       for chain in self.encoded]
        used = {stamp.algorithm for chain in self.chains for stamp in chain}
        require(self.chains and all(self.chains), "no archive timestamp")
        require(set(self.algorithms) == used and len(self.algorithms) == len(used),
                "digestAlgorithms are not those of the chains")

    def chain_leaf(self, number, name, data):
        if number == 0:
            return digest(name, data)
        content = b"".join(self.encoded[:number])
        size = len(content)
        length = bytes([size]) if size < 0x80 else \
            bytes([0x80 + (size.bit_length() + 7) // 8]) + size.to_bytes(
                (size.bit_length() + 7) // 8, "big")
        return digest(name, digest(name, data) + digest(name, bytes([SEQUENCE]) + length + content))

    def verify(self, data, trust=None, at=None):
        """Returns the times of the archive timestamps, oldest first; raises Invalid with the error."""
        stamps = []
        for number, chain in enumerate(self.chains):
            leaf = self.chain_leaf(number, chain[0].algorithm, data)
            for place, stamp in enumerate(chain):
                where = f"archive timestamp {place + 1} of chain {number + 1}"
                require(stamp.algorithm == chain[0].algorithm, f"{where}: another algorithm")
                stamp.check(leaf, where)
                leaf = digest(stamp.algorithm, stamp.token)
                stamps.append((stamp, where))
        times = [stamp.seconds for stamp, _ in stamps]
        require(times == sorted(times), "the times do not ascend")
        judged = times[1:] + [time.time() if at is None else at]
        for (stamp, where), seconds in zip(stamps, judged):
            if trust:
                stamp.check_token(trust, seconds, where)
        return times


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--trust")
    parser.add_argument("--at", type=float)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    options = parser.parse_args()
    try:
        record = Record(options.record.read_bytes())
        times = record.verify(options.data.read_bytes(), options.trust, options.at)
    except (Invalid, IndexError, TypeError, ValueError) as reason:
        print(f"not valid: {reason}", file=sys.stderr)
        return 1
    for seconds in times:
        print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
