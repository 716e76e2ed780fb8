#!/usr/bin/env python3
"""Whether the service frames requests as others do: no request that it takes may end elsewhere for a proxy in
front of it that takes it as well, or the rest of one client's request becomes another's.

    compare.py [--program FILE] [--streams N] [--seed TEXT] [--stream N] [--known FILE]

Sends generated streams of requests (streams.py) to the service, to nginx and to HAProxy as proxies of a server that
writes down what reaches it, and has llhttp read them. For each stream and each of the others: the first requests that both
take must have the same method and bodies of the same size, one by one, until one of the two refuses. A reader that is wrong
on purpose is among the others; when it is not found, the run has failed.

Prints each difference with its stream's number (--stream shows one), then a table. Exit status 1: there are differences;
2: it could not run. It needs httptools (PyPI, with llhttp), nginx and HAProxy.
"""

import argparse
import asyncio
import collections
import contextlib
import itertools
import json
import pathlib
import re
import socket
import sys
import tempfile

import httptools

TOP = pathlib.Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path += [str(TOP / "tests" / part) for part in ("support", "system")]
from ports import reserve_port  # noqa: E402
from program import DevService, Program  # noqa: E402
from streams import Stream  # noqa: E402

AT_ONCE = 32
QUIET_SECONDS = 0.3     # a longer wait brings no answer
LONGEST_SECONDS = 10
NGINX = """
daemon off; master_process off; pid {place}/nginx.pid; error_log {place}/nginx.log; worker_rlimit_nofile 4096;
events {{ worker_connections 1024; }}
http {{
	access_log off; client_max_body_size 0; large_client_header_buffers 8 32k;
	{paths}
	upstream recorder {{ server 127.0.0.1:{recorder}; keepalive 8; }}
	server {{
		listen 127.0.0.1:{port} backlog=1024;
		location / {{
			proxy_pass http://recorder; proxy_http_version 1.1; proxy_set_header Connection "";
			proxy_set_header X-Client $remote_addr; proxy_set_header X-Party nginx;
		}}
	}}
}}
"""
HAPROXY = """
global
	maxconn 1024
defaults
	mode http
	timeout connect 10s
	timeout client 10s
	timeout server 10s
	timeout http-request 10s
frontend front
	bind 127.0.0.1:{port}
	http-request set-header X-Client %[src]
	http-request set-header X-Party haproxy
	default_backend recorder
backend recorder
	server recorder 127.0.0.1:{recorder}
"""


def address_of(index):
    """Each stream has an address of its own, by which everybody knows it."""
    return f"127.{1 + index // 62500}.{index // 250 % 250}.{1 + index % 250}"


# ---- the readers ----

class Reader:
    """llhttp's reading of a stream: (method, size of the body) of each request that is whole."""

    def __init__(self):
        self.requests, self.size = [], 0
        self.parser = httptools.HttpRequestParser(self)

    def on_message_begin(self):
        self.size = 0

    def on_body(self, data):
        self.size += len(data)

    def on_message_complete(self):
        self.requests.append((self.parser.get_method().decode("latin-1"), self.size))

    def read(self, data):
        with contextlib.suppress(httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.parser.feed_data(data)
        return self.requests


def read_wrongly(data):
    """One that trusts the last Content-Length and has never heard of chunks."""
    found = []
    while data:
        head, end, data = data.partition(b"\r\n\r\n")
        method = re.match(rb"\s*([A-Z]+) ", head)
        if not end or not method:
            break
        size = int((re.findall(rb"(?i)content-length:\s*(\d{1,9})", head) or [b"0"])[-1])
        found.append((method[1].decode(), min(size, len(data))))
        data = data[size:]
    return found


class Recorder:
    """The server behind the proxies."""

    def __init__(self):
        self.found = collections.defaultdict(list)  # by party and address
        self.server, self.writers = None, set()

    async def start(self, port):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", port, backlog=1024)

    async def end(self):
        self.server.close()
        for writer in self.writers:
            writer.close()
        await self.server.wait_closed()
        await asyncio.sleep(0.1)

    async def serve(self, reader, writer):
        self.writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                line, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                fields = {name.strip().lower(): value.strip() for name, _, value in (field.partition(b":") for field in lines)}
                size = await self.read_body(reader, fields)
                key = fields[b"x-party"].decode(), fields[b"x-client"].decode()
                self.found[key].append((line.split(b" ")[0].decode("latin-1"), size))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    @staticmethod
    async def read_body(reader, fields):
        """How long it is. Proxies frame well, so that nothing is doubted here."""
        if b"transfer-encoding" not in fields:
            return len(await reader.readexactly(int(fields.get(b"content-length", 0))))
        size = 0
        while part := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            size += part
            await reader.readexactly(part + 2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            continue
        return size


# ---- those who are asked by network ----

async def tell(port, address, data):
    """All that is answered until the connection ends, or nothing more comes."""
    answers = bytearray()
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)), LONGEST_SECONDS)
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            writer.write(data)
            while piece := await asyncio.wait_for(reader.read(65536), QUIET_SECONDS):
                answers += piece
        writer.close()
    return bytes(answers)


class Party(Program):
    """A proxy, started with the configuration that it is given."""

    def __init__(self, place, name, text, command):
        super().__init__(place / f"{name}.out", {})
        self.port = reserve_port()
        self.file, self.words = place / f"{name}.conf", command
        self.text = text

    def configure(self, **values):
        self.file.write_text(self.text.format(port=self.port, place=self.file.parent, **values))

    def command(self, *words):
        return list(words)

    def serving(self):
        return [*self.words, str(self.file)]

    def is_ready(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


def log_lines(path):
    """Of the service's log: (method, size of the body) by the id of each request with a checked key: what is wrong with
    a head is said before."""
    found = {}
    for line in pathlib.Path(path).read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if entry.get("event") == "request" and entry["key_id"]:
                found[entry["request_id"]] = entry["method"], entry["bytes_in"]
    return found


ANSWER = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)+)\r\n")
FORBIDDEN = {400, 408, 413, 414, 431, 501, 505}  # returned before the key is checked: the head was not understood


def taken(answers, lines):
    """What the service took of a stream, until it refuses. What has no line in the log, as requests without a key may, has
    None for what is not known of it; so has the body of what was answered before it had come, where the connection ends."""
    found = []
    for status, head in ANSWER.findall(answers):
        fields = dict(field.lower().split(b": ", 1) for field in head.split(b"\r\n") if b": " in field)
        method, size = lines.get(fields.get(b"x-request-id", b"").decode(), (None, None))
        if int(status) < 200:
            continue
        if not method and int(status) in FORBIDDEN:
            break
        found.append((method, None if fields.get(b"connection") == b"close" and int(status) >= 400 else size))
    return found


# ---- the comparison ----

def difference(ours, theirs):
    """Of what both take, the place of the first request that they see differently; None: there is none."""
    for place, (mine, other) in enumerate(zip(ours, theirs)):
        if (mine[0] not in (None, "other") and mine[0] != other[0]) or mine[1] not in (None, other[1]):
            return place
    return None


async def ask_all(options, service, proxies):
    answers, turns = {}, asyncio.Semaphore(AT_ONCE)

    async def one(index):
        async with turns:
            data, address = Stream(options.seed, index, options.key).bytes, address_of(index)
            told = await asyncio.gather(tell(service.port, address, data),
                                        *(tell(proxy.port, address, data) for proxy in proxies))
            answers[index] = told[0]
            if sys.stderr.isatty() and index % 500 == 0:
                print(f"\r{index} of {options.streams}", end="", file=sys.stderr)

    chosen = [options.stream] if options.stream is not None else range(options.streams)
    await asyncio.gather(*map(one, chosen))
    return answers


def judge(options, answers, lines, recorder):
    parties = ("llhttp", "nginx", "haproxy", "wrong on purpose")
    table = {name: collections.Counter() for name in parties}
    for index, told in sorted(answers.items()):
        data, address = Stream(options.seed, index, options.key).bytes, address_of(index)
        ours = taken(told, lines)
        theirs = {"llhttp": Reader().read(data), "nginx": recorder.found["nginx", address],
                  "haproxy": recorder.found["haproxy", address], "wrong on purpose": read_wrongly(data)}
        if options.stream is not None:
            print(data, "\nthis service:", ours, "\n", theirs, "\n", told)
        for name in parties:
            place = difference(ours, theirs[name])
            table[name]["requests"] += len(theirs[name])
            table[name]["both"] += min(len(ours), len(theirs[name]))
            table[name]["different"] += place is not None
            if place is not None and name != "wrong on purpose":
                print(f"stream {index}: request {place + 1}: here {ours[place]}, {name} {theirs[name][place]}: {data[:300]!r}")
        table["llhttp"]["ours"] += len(ours)
    return table


def key_of(service):
    account = service.ask_socket("account create", name="framing")["account_id"]
    channel = service.ask_socket("channel create", account=account, name="framing", declarant="framing", modality="hash_only")["channel_id"]
    return service.ask_socket("key create", channel=channel, mode="test")["key"].encode()


def run(options):
    with tempfile.TemporaryDirectory(prefix="constancia-framing-") as place:
        place = pathlib.Path(place)
        place.chmod(0o755)
        recorder, port = Recorder(), reserve_port()
        paths = " ".join(f"{kind}_temp_path {place}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        nginx = Party(place, "nginx", NGINX, ["nginx", "-p", str(place), "-e", str(place / "nginx.log"), "-c"])
        haproxy = Party(place, "haproxy", HAPROXY, ["haproxy", "-db", "-f"])
        nginx.configure(recorder=port, paths=paths)
        haproxy.configure(recorder=port)
        service = DevService(str(place / "data"), str(place / "service.log"),
                             {"log.requests": "all", "rate.live": "1000000", "rate.test": "1000000"},
                             **({"binary": options.program} if options.program else {}))
        with contextlib.ExitStack() as stack:
            for party in (nginx, haproxy, service):
                party.start()
                stack.callback(party.stop)

            async def ask():
                await recorder.start(port)
                answers = await ask_all(options, service, (nginx, haproxy))
                await recorder.end()
                return answers

            options.key = key_of(service)
            answers = asyncio.run(ask())
        return judge(options, answers, log_lines(service.log), recorder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", help="the service; without it, CONSTANCIA or build/constancia")
    parser.add_argument("--streams", type=int, default=12000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--stream", type=int, help="this one alone, and everything about it")
    options = parser.parse_args()
    table = run(options)
    print(f"{options.streams} streams; the service took {table['llhttp']['ours']} requests")
    print(f"{'':18}{'takes':>9}{'both take':>11}{'different':>11}")
    for name, row in table.items():
        print(f"{name:18}{row['requests']:9}{row['both']:11}{row['different']:11}")
    if options.stream is not None:
        return 0
    blind = [name for name, row in table.items() if row["both"] < options.streams // 4]
    if blind or not table["wrong on purpose"]["different"]:
        print(f"compared too little to say anything: {blind or 'the one that is wrong was not found'}")
        return 1
    return int(any(row["different"] for name, row in table.items() if name != "wrong on purpose"))


if __name__ == "__main__":
    sys.exit(main())
