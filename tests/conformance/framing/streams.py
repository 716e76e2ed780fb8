"""Streams of bytes that a client may send on one connection: requests by the grammar of RFC 9112, and such as are
damaged where parsers have differed. A stream is known by its number and the seed alone."""

import random

TAKEN_WITH_BODY = ((b"POST", b"/v1/events"), (b"POST", b"/v1/certifications"), (b"GET", b"/v1/channel"))
TAKEN = ((b"GET", b"/v1/channel"), (b"HEAD", b"/v1/events"), (b"GET", b"/v1/events/x"))
METHODS = (b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH")
TARGETS = (b"http://127.0.0.1/v1/events", b"*", b"/", b"//", b"/%00", b"/v1/events?a=b&c", b"/" + b"a" * 300, b"/v1/events#a",
           b"v1/events", b"http:///v1/events", b"a:80", b"/v1/events?\x80")
FIELDS = (b"Accept: */*", b"Accept-Language: es", b"User-Agent: x", b"Cookie: a=b; c=d", b"Content-Type: application/json",
          b"Idempotency-Key: k", b"X-A:", b"X-B: \t b \t", b"TE: trailers", b"Connection: keep-alive")
LENGTHS = (b"%d", b" %d", b"\t%d ", b"0%d", b"+%d", b"-%d", b"%d, %d", b"%d,%d", b"%d\x00", b"\x00%d", b"0x%d", b"%d\x0b",
           b"\x0c%d", b"%d;", b'"%d"', b"%d.0", b"%de0", b"%d\r\n ", b"\r\n %d", b"\r\n\t%d", b"%d\r", b"", b" ", b"1%d",
           b"18446744073709551616", b"18446744073709551%d", b"99999999999999999999%d", b"%d %d", b"%d_0")
CODINGS = (b"chunked", b" chunked", b"\tchunked\t ", b"Chunked", b"CHUNKED", b"chunked, chunked", b"identity", b"chunked, identity",
           b"identity, chunked", b"gzip, chunked", b"chunked, gzip", b"xchunked", b"chunkedx", b"chunked;a=b", b'"chunked"',
           b"\r\n chunked", b"\r\n\tchunked", b"chunked\r\n ", b"chunked\x00", b"\x00chunked", b"chunked\x0b", b"\x0cchunked",
           b"chunked,", b",chunked", b"chu\r\n nked", b"", b"chun ked", b"trailers, chunked", b"\xc2\xa0chunked")
NAMES = (b"Content-Length", b"content-length", b"CONTENT-LENGTH", b"Content-Length ", b"Content-Length\t", b" Content-Length",
         b"Content_Length", b"Content-Length\x00", b"\x00Content-Length", b"Content-Lengt\xe8", b"Content-Length:", b"X\r\nContent-Length",
         b":Content-Length", b"Content-Length-X", b"Content Length", b"Content-Length\x0b", b"Content-Length\r")
ENDS = (b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n ", b" \r\n", b"\x00\r\n", b"\x85", b"\x0b")
SIZES = (b"%x", b"%X", b"0%x", b"000000000000%x", b"0x%x", b"+%x", b"-%x", b" %x", b"%x ", b"%x\t", b"%x;a", b"%x;a=b", b'%x;a="b"',
         b'%x;a="\r\n"', b"%x ;a", b"%x\x00", b"%xg", b"%x_", b"1000000000000000%x", b"ffffffffffffffff%x", b"%x\x0b", b"",
         b"%x;\n", b"%x;a\r", b"%x,%x")
VERSIONS = (b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/1.10",
            b"HTTP/01.1", b"http/1.1", b"HTTP/1.1 ", b"", b"HTTP/1", b"HTTP/1.1\x00", b"XTTP/1.1", b"HTTP/0.9")
BEFORE = (b"", b"", b"", b"", b"\r\n", b"\n", b"\r\n\r\n", b"\r", b" ", b"\x00", b"\r\n \r\n")
SEPARATORS = (b" ", b" ", b" ", b" ", b"  ", b"\t", b" \t", b"\x0b", b"\r", b"\xa0", b"")
LAST = b"GET /v1/last HTTP/1.1\r\nHost: a\r\n%bConnection: close\r\n\r\n"
INNER = b"GET /v1/inner HTTP/1.1\r\nHost: a\r\n\r\n"  # in a body it is no request


def number(form, value):
    return form % ((value,) * form.count(b"%"))


class Stream:
    def __init__(self, seed, index, key):
        self.random = random.Random(f"{seed} {index}")
        self.key = b"Authorization: Bearer " + key + b"\r\n"
        self.odds = self.random.choice((0, 0.03, 0.1, 0.3))
        count = self.random.choice((1, 1, 2, 3))
        self.bytes = b"".join(self.message() for _ in range(count)) + LAST % self.key
        for _ in range(self.random.choice((0, 0, 0, 1, 2)) if self.odds else 0):
            self.bytes = self.damage(self.bytes)

    def odd(self):
        return self.random.random() < self.odds

    def some(self, usual, all_of):
        return self.random.choice(all_of) if self.odd() else usual

    def end(self):
        return self.some(b"\r\n", ENDS)

    def body(self):
        return self.random.choice((b"", b"{}", INNER, b"x" * 10, INNER + INNER, b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"))

    def field(self, name, value):
        """A line of the head; between name and value is what is usual most of the time."""
        return name + self.some(b": ", (b":", b" : ", b":\t", b": \r\n ", b"", b"::", b" ")) + value + self.end()

    def length_field(self, size):
        name = self.some(b"Content-Length", NAMES)
        return self.field(name, number(self.some(b"%d", LENGTHS), size))

    def coding_field(self):
        name = self.some(b"Transfer-Encoding", [name.replace(b"Content", b"Transfer").replace(b"Length", b"Encoding")
                                                for name in NAMES])
        return self.field(name, self.some(b"chunked", CODINGS))

    def chunks(self, body):
        parts = []
        step = max(1, len(body) // self.random.choice((1, 1, 2, 3)))
        for at in range(0, len(body), step):
            part = body[at:at + step]
            parts.append(number(self.some(b"%x", SIZES), len(part) + (1 if self.odd() and self.odd() else 0)) + self.end()
                         + part + self.end())
        trailer = self.some(b"", (b"A: b\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b" A: b\r\n",
                                  b": b\r\n", b"A\r\n", b"Host: b\r\n"))
        return b"".join(parts) + self.some(b"0", (b"00", b"0;a", b"0 ", b"-0", b"0x0", b"")) + self.end() + trailer + self.end()

    def framing(self):
        """The lines that frame a body, and the body."""
        body = self.body()
        kind = self.random.choice(("none", "length", "chunked", "length", "chunked"))
        if self.odd():
            kind = self.random.choice(("both", "two lengths", "two codings", "short", "long", "bare"))
        if kind == "none":
            return [], b""
        if kind == "bare":
            return [], body
        if kind == "chunked":
            return [self.coding_field()], self.chunks(body)
        if kind == "two codings":
            return [self.coding_field(), self.coding_field()], self.chunks(body)
        if kind == "both":
            encoded = self.chunks(body)
            return [self.coding_field(), self.length_field(self.random.choice((len(encoded), len(body), 0)))], encoded
        if kind == "two lengths":
            return [self.length_field(len(body)), self.length_field(self.random.choice((len(body), 0, 3)))], body
        size = {"length": len(body), "short": max(0, len(body) - 1), "long": len(body) + 1}[kind]
        return [self.length_field(size)], body

    def message(self):
        lines, body = self.framing()
        method, target = self.random.choice(TAKEN_WITH_BODY if lines else TAKEN)
        method = self.some(method, METHODS)
        method = self.some(method, (method.lower(), b"G\x00T", b"", b"X" * 40, b"GET,", b"\xc3\xa9"))
        line = (method + self.some(b" ", SEPARATORS) + self.some(target, TARGETS) + self.some(b" ", SEPARATORS)
                + self.some(b"HTTP/1.1", VERSIONS))
        host = self.some([b"Host: a\r\n"], ([], [b"Host: a\r\n", b"Host: a\r\n"], [b"Host: a\r\n", b"Host: b\r\n"], [b"Host: a b\r\n"],
                                           [b"Host:\r\n"], [b"Host : a\r\n"], [b"Host: a, b\r\n"], [b"Host: a/b\r\n"]))
        more = [self.field(*field.split(b": ", 1)) if b": " in field else field + self.end()
                for field in self.random.sample(FIELDS, self.random.choice((0, 1, 2)))]
        if self.odd():
            more.append(self.random.choice((b"Connection: close\r\n", b"Expect: 100-continue\r\n", b"Upgrade: h2c\r\n",
                                            b"Connection: upgrade\r\n", b"Expect: x\r\n", b" folded\r\n", b"\tfolded\r\n",
                                            b":\r\n", b"\x00\r\n", b"A B: c\r\n", b"A\r\n", b"A: \x7f\r\n", b"A: b\rC: d\r\n",
                                            b"Connection: Content-Length\r\n", b"Trailer: Content-Length\r\n")))
        fields = host + lines + more
        self.random.shuffle(fields)
        fields.insert(self.random.choice((0, len(fields))), self.key)
        return self.some(b"", BEFORE) + line + self.end() + b"".join(fields) + self.end() + body

    def damage(self, data):
        """One byte, or a few, changed, removed, put in, or said twice."""
        at = self.random.randrange(len(data))
        kind = self.random.randrange(5)
        if kind == 0:
            return data[:at] + bytes([self.random.randrange(256)]) + data[at + 1:]
        if kind == 1:
            return data[:at] + data[at + self.random.choice((1, 1, 2, 5)):]
        if kind == 2:
            return data[:at] + self.random.choice((b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\t", b",")) + data[at:]
        lines = data.split(b"\r\n")
        line = self.random.randrange(len(lines))
        if kind == 3:
            lines.insert(line, lines[line])
        else:
            other = self.random.randrange(len(lines))
            lines[line], lines[other] = lines[other], lines[line]
        return b"\r\n".join(lines)
