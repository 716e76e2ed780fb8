#!/usr/bin/python3 -B
"""Makes the files of the corpus out of base/ and keys/, as cases.json says: each case is the same to the byte wherever and
whenever it is made. Forged signatures and timestamps are by RSA PKCS#1 v1.5, which draws nothing at random."""

import base64
import datetime
import functools
import gzip
import hashlib
import io
import json
import pathlib
import re
import struct
import subprocess
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
from cryptography import x509  # noqa: E402
from cryptography.hazmat.primitives import hashes, serialization  # noqa: E402
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding  # noqa: E402

import tlog  # noqa: E402
from timestamp_authority import elements, integer, object_identifier, tlv  # noqa: E402

SIGNATURE, ASIC, MANIFEST = "META-INF/signature001.p7s", "META-INF/ASiCManifest001.xml", "manifest.json"
DATA, SIGNED_DATA = "1.2.840.113549.1.7.1", "1.2.840.113549.1.7.2"
CONTENT_TYPE, MESSAGE_DIGEST, SIGNING_TIME = (f"1.2.840.113549.1.9.{last}" for last in (3, 4, 5))
SIGNING_CERTIFICATE, STAMP = "1.2.840.113549.1.9.16.2.47", "1.2.840.113549.1.9.16.2.14"
TST_INFO, OCSP_FORMAT = "1.2.840.113549.1.9.16.1.4", "1.3.6.1.5.5.7.16.2"
DIGESTS = {"sha256": "2.16.840.1.101.3.4.2.1", "sha384": "2.16.840.1.101.3.4.2.2", "sha1": "1.3.14.3.2.26"}
CONTAINED = {"evidence.zip": "live.zip", "content-part-001.zip": "part.zip", "report-en.pdf": "report-en.pdf",
             "report-es.pdf": "report-es.pdf"}


# ---- the corpus ----

@functools.lru_cache(maxsize=None)
def base(name):
    if name == "container.asice":  # too large to be kept beside what is inside
        return container(b"", {"base": "record.ers"}, [{"name": each, "base": source} for each, source in CONTAINED.items()])
    return (HERE / "base" / name).read_bytes()


@functools.lru_cache(maxsize=None)
def key(name):
    return serialization.load_pem_private_key((HERE / "keys" / f"{name}.key").read_bytes(), None)


@functools.lru_cache(maxsize=None)
def certificate(name):
    return x509.load_pem_x509_certificate((HERE / "keys" / f"{name}.pem").read_bytes())


def der_of(of):
    return of.public_bytes(serialization.Encoding.DER)


def began():
    return moment(json.loads((HERE / "world.json").read_text())["made"])


def moment(text):
    """A time, or so many seconds after the base files were made."""
    if isinstance(text, str):
        return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ")
    return began() + datetime.timedelta(seconds=text)


def stated(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def load_cases():
    return json.loads((HERE / "cases.json").read_text())


def make_file(given):
    """The bytes of a file that a case describes: {"base", "edits"}."""
    content = base(given["base"]) if given.get("base") else b""
    for name, *arguments in given.get("edits", []):
        content = EDITS[name](content, *arguments)
    return content


EDITS = {}


def edit(function):
    EDITS[function.__name__] = function
    return function


# ---- CMS ----

def sequence(*parts):
    return tlv(0x30, b"".join(parts))


def set_of(*parts, tag=0x31):
    return tlv(tag, b"".join(sorted(parts)))


def octets(data):
    return tlv(0x04, data)


def attribute(kind, *values):
    return sequence(object_identifier(kind), set_of(*values))


def algorithm(digest):
    return sequence(object_identifier(DIGESTS[digest]))


def issuer_and_serial(of):
    return sequence(of.issuer.public_bytes(), integer(of.serial_number))


def reference(of):
    """ESSCertIDv2, by SHA-256."""
    names = sequence(tlv(0xa4, of.issuer.public_bytes()))
    return sequence(sequence(sequence(octets(hashlib.sha256(der_of(of)).digest()),
                                      sequence(names, integer(of.serial_number)))))


def sign_bytes(by, data, digest):
    algorithm_ = {"sha256": hashes.SHA256, "sha384": hashes.SHA384, "sha1": hashes.SHA1}[digest]()
    if isinstance(key(by), ec.EllipticCurvePrivateKey):
        return sequence(object_identifier("1.2.840.10045.4.3.2")), key(by).sign(data, ec.ECDSA(algorithm_))
    return sequence(object_identifier("1.2.840.113549.1.1.1"), b"\5\0"), \
        key(by).sign(data, padding.PKCS1v15(), algorithm_)


def signed_data(by, content, *, kind=DATA, attached=False, inside=(), others=(), crls=(), more=(), bad_digest=False,
                version=None, unsigned=None, digest="sha256", names=None, shown=None):
    """A SignedData. `inside`: names of certificates; `others`: choices in DER; `more`: signed attributes; `bad_digest`: of
    another content; `names`: whom the reference to the certificate names; `shown`: another certificate of the same key."""
    own, crls = certificate(shown or by), [revocation_data(each) for each in crls]
    attributes = [attribute(CONTENT_TYPE, object_identifier(kind)),
                  attribute(MESSAGE_DIGEST, octets(hashlib.new(digest, content + b"x" * bad_digest).digest())), *more]
    if names != "":
        attributes.append(attribute(SIGNING_CERTIFICATE, reference(certificate(names) if names else own)))
    signed = set_of(*attributes)
    how, value = sign_bytes(by, signed, digest)
    after = b"" if unsigned is None else tlv(0xa1, unsigned(value))
    signer = sequence(integer(1), issuer_and_serial(own), algorithm(digest), b"\xa0" + signed[1:], how, octets(value), after)
    inside = [der_of(certificate(name)) for name in inside] + list(others)
    if version is None:
        version = 5 if any(each[0] == 0xa1 for each in crls) else 3 if kind != DATA else 1
    return sequence(object_identifier(SIGNED_DATA), tlv(0xa0, sequence(
        integer(version), tlv(0x31, algorithm(digest)),
        sequence(object_identifier(kind), tlv(0xa0, octets(content)) if attached else b""),
        set_of(*inside, tag=0xa0) if inside else b"", set_of(*crls, tag=0xa1) if crls else b"", set_of(signer))))


def revocation_data(name):
    """A file's, or ARCHIVE#N: as that archive's signature has it inside."""
    archive, _, number = name.partition("#")
    if not number:
        return base(name)
    (_, _, inside), = elements(dict(unpack(base(archive)))[SIGNATURE])
    (_, _, body), = elements(list(elements(inside))[1][2])
    return [each[1] for each in elements(next(each[2] for each in elements(body) if each[0] == 0xa1))][int(number)]


# What each key's certificates are, from its own to the one below the root.
PATHS = {"signer": ("signer", "issuer"), "one": ("one", "time"), "two": ("two", "root-two"),
         "self-signed": ("self-signed",), "other-signer": ("other-signer", "other-issuer"),
         "other-time": ("other-time", "other-root"), "issuer": ("issuer",), "time": ("time",),
         "below-tls": ("below-tls", "issuer-tls"), "below-1024": ("below-1024", "issuer-1024"),
         "below-sha-1": ("below-sha-1", "issuer-sha-1"), "below-named": ("below-named", "issuer-named"),
         "below-no-sign": ("below-no-sign", "issuer-no-sign"), "below-leaf": ("below-leaf", "plain", "issuer"),
         "below-too-deep": ("below-too-deep", "issuer-too-deep", "issuer-short"),
         "time-below-mail": ("time-below-mail", "issuer-for-mail")}


def path_of(name):
    return PATHS.get(name, (name, "time" if name.startswith("time-") else "issuer"))


def token(imprint, time, by="one", *, tsa=None, extension=None, critical=False, digest="sha256", inside=None,
          attribute_certificate=False, accuracy=True, imprint_digest="sha256", serial=None, policy="2.25.1", **more):
    """A timestamp. `tsa`: whose name it states; `extension`: whether it has an unknown one."""
    end = b""
    if tsa:
        end += tlv(0xa0, tlv(0xa4, certificate(tsa).subject.public_bytes()))
    if extension or critical:
        end += tlv(0xa1, sequence(object_identifier("2.25.3"), tlv(0x01, b"\xff") if critical else b"", octets(b"\5\0")))
    number = serial or int.from_bytes(hashlib.sha256(imprint + str(time).encode() + by.encode()).digest()[:7], "big")
    text = time.strftime("%Y%m%d%H%M%S") + (f".{time.microsecond:06}".rstrip("0") if time.microsecond else "")
    info = sequence(integer(1), object_identifier(policy), sequence(algorithm(imprint_digest), octets(imprint)),
                    integer(number), tlv(0x18, text.encode() + b"Z"), sequence(integer(1)) if accuracy else b"", end)
    others = []
    if attribute_certificate:
        # An AttributeCertificateV2 without content: readers know it by its tag alone.
        others.append(tlv(0xa2, sequence(integer(1)) + sequence(object_identifier("1.2.840.113549.1.1.11"), b"\5\0") +
                          tlv(0x03, b"\0" * 33)))
    return signed_data(by, info, kind=TST_INFO, attached=True, inside=path_of(by) if inside is None else inside,
                       others=others, digest=digest, version=more.pop("version", 4 if others else None), **more)


# ---- ZIP ----

def unpack(data):
    """Of a file without a fault: pairs of name and content."""
    count, size, offset = struct.unpack("<HII", data[-12:-2])
    found, at = [], offset
    for _ in range(count):
        length, name_size, where = struct.unpack("<I", data[at + 24:at + 28])[0], \
            struct.unpack("<H", data[at + 28:at + 30])[0], struct.unpack("<I", data[at + 42:at + 46])[0]
        name = data[at + 46:at + 46 + name_size].decode()
        found.append((name, data[where + 30 + name_size:where + 30 + name_size + length]))
        at += 46 + name_size
    return found


def pack(files, *, time=0, date=0x21, flags=0, method=0, made=0x030A, attributes=0x81A40000, extra=b"", comment=b"",
         crc=None, needed=10):
    """As the format has it, but for what is given."""
    out, directory = io.BytesIO(), b""
    for name, content in files:
        raw, sum_ = name.encode(), zlib.crc32(content) if crc is None else crc
        stored = zlib.compress(content, 9)[2:-4] if method else content
        common = struct.pack("<HHHHHIIIHH", needed, flags, method, time, date, sum_, len(stored), len(content), len(raw),
                             len(extra))
        directory += b"PK\1\2" + struct.pack("<H", made) + common + struct.pack(
            "<HHHII", 0, 0, 0, attributes, out.tell()) + raw + extra
        out.write(b"PK\3\4" + common + raw + extra + stored)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(files), len(files), len(directory), out.tell(), len(comment))
    return out.getvalue() + directory + end + comment


def place(files, name):
    return next(at for at, each in enumerate(files) if each[0] == name)


def replaced(data, name, content):
    files = unpack(data)
    files[place(files, name)] = (name, content)
    return pack(files)


# ---- what damages any file ----

@edit
def flip(data, at, bit):
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:]


@edit
def cut(data, size):
    return data[:size]


@edit
def append(data, more):
    return data + bytes.fromhex(more)


@edit
def prepend(data, more):
    return bytes.fromhex(more) + data


@edit
def insert(data, at, more):
    return data[:at] + bytes.fromhex(more) + data[at:]


@edit
def remove(data, at, size):
    return data[:at] + data[at + size:]


@edit
def text(data, old, new):
    """The first occurrence replaced."""
    if old.encode() not in data:
        raise ValueError(f"no {old}")
    return data.replace(old.encode(), new.encode(), 1)


@edit
def twice(data):
    return data + data


@edit
def behind(data, name):
    return data + base(name)


@edit
def instead(data, content):
    return base64.b64decode(content)


# ---- what damages a ZIP ----

@edit
def drop(data, name):
    return pack([each for each in unpack(data) if each[0] != name])


@edit
def double(data, name):
    files = unpack(data)
    return pack([*files, files[place(files, name)]])


@edit
def exchange(data, one, other):
    files = unpack(data)
    a, b = place(files, one), place(files, other)
    files[a], files[b] = files[b], files[a]
    return pack(files)


@edit
def exchange_contents(data, one, other):
    files = dict(unpack(data))
    files[one], files[other] = files[other], files[one]
    return pack(list(files.items()))


@edit
def rename(data, name, new):
    return pack([(new if each == name else each, content) for each, content in unpack(data)])


@edit
def add(data, name, content, at=None):
    files = unpack(data)
    files.insert(len(files) if at is None else at, (name, content.encode()))
    return pack(files)


@edit
def put(data, name, content):
    return replaced(data, name, content.encode())


@edit
def foreign(data, name, other):
    """The entry as another base file has it."""
    return replaced(data, name, dict(unpack(base(other)))[name])


@edit
def flip_in(data, name, at, bit):
    return replaced(data, name, flip(dict(unpack(data))[name], at, bit))


@edit
def cut_in(data, name, size):
    return replaced(data, name, dict(unpack(data))[name][:size])


@edit
def repack(data, **shape):
    return pack(unpack(data), **{name: bytes.fromhex(value) if isinstance(value, str) else value
                                 for name, value in shape.items()})


EDITS["repack"] = lambda data, shape: repack(data, **shape)


@edit
def reverse(data):
    return pack(unpack(data)[::-1])


# ---- documents ----

def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def zipped(data):
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def stream(name):
    return f"{name}/{name}-000001.ndjson.gz"


def read_lines(files, name):
    found = dict(files).get(stream(name))
    return [json.loads(line) for line in gzip.decompress(found).splitlines()] if found else []


def write_lines(values):
    return zipped(b"".join(canonical(value) + b"\n" for value in values))


def assign(value, path, new):
    for step in path[:-1]:
        value = value[step]
    if new == ["-"]:
        del value[path[-1]]
    else:
        value[path[-1]] = new


@edit
def change(data, name, path, new):
    """A member of a document, or of a line of a stream (the path begins with its number then); ["-"]: without it."""
    content = dict(unpack(data))[name]
    if name.endswith(".gz"):
        lines = [json.loads(line) for line in gzip.decompress(content).splitlines()]
        assign(lines, path, new)
        return replaced(data, name, write_lines(lines))
    value = json.loads(content)
    assign(value, path, new)
    return replaced(data, name, canonical(value))


@edit
def order(data, name, numbers):
    """The lines of a stream in another order; some may be missing or be there twice."""
    lines = gzip.decompress(dict(unpack(data))[name]).splitlines(keepends=True)
    return replaced(data, name, zipped(b"".join(lines[number] for number in numbers)))


@edit
def loose(data, name):
    """The same document, not in its canonical form."""
    content = dict(unpack(data))[name]
    if name.endswith(".gz"):
        lines = [json.loads(line) for line in gzip.decompress(content).splitlines()]
        return replaced(data, name, zipped(b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
    return replaced(data, name, json.dumps(json.loads(content)).encode())


@edit
def in_stream(data, name, old, new):
    """A text in a stream, of the same lines otherwise."""
    content = gzip.decompress(dict(unpack(data))[name])
    if old.encode() not in content:
        raise ValueError(f"no {old}")
    return replaced(data, name, zipped(content.replace(old.encode(), new.encode())))


@edit
def members_behind(data, name):
    """A second member after that of a gzip file."""
    content = dict(unpack(data))[name]
    return replaced(data, name, content + zipped(b""))


# ---- signing an archive ----

def digest_of(data):
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


@edit
def resum(data):
    """The digests in manifest.json and the ASiCManifest, as the entries are now."""
    files = unpack(data)
    manifest = json.loads(dict(files)[MANIFEST])
    listed = [each for each in files if each[0] not in ("mimetype", MANIFEST) and not each[0].startswith("META-INF/")]
    manifest["files"] = [{"path": name, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
                         for name, content in listed]
    return reasic(replaced(data, MANIFEST, canonical(manifest)))


@edit
def reasic(data):
    """The ASiCManifest alone."""
    files = unpack(data)
    listed = [(MANIFEST, dict(files)[MANIFEST])] + [
        each for each in files if each[0] not in ("mimetype", MANIFEST) and not each[0].startswith("META-INF/")]
    asic = ('<?xml version="1.0" encoding="UTF-8"?>\n<asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#"'
            ' xmlns:ds="http://www.w3.org/2000/09/xmldsig#">\n<asic:SigReference URI="META-INF/signature001.p7s"'
            ' MimeType="application/x-pkcs7-signature"/>\n')
    for name, content in listed:
        asic += (f'<asic:DataObjectReference URI="{name}"><ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>'
                 f"<ds:DigestValue>{digest_of(content)}</ds:DigestValue></asic:DataObjectReference>\n")
    return replaced(data, ASIC, (asic + "</asic:ASiCManifest>\n").encode())


def utc_time(time):
    return tlv(0x17, time.strftime("%y%m%d%H%M%SZ").encode())


def stamp_of(value, time, options):
    """The unsigned attributes with timestamps over a signature's value: one, unless `count` says otherwise."""
    over = hashlib.sha256(value if not options.pop("elsewhere", None) else b"elsewhere").digest()
    count = options.pop("count", 1)
    return b"".join(sorted(attribute(STAMP, token(over, time + datetime.timedelta(seconds=each), **options))
                           for each in range(count)))


@edit
def sign(data, by="signer", options=None):
    """A new signature over the ASiCManifest. Of `options`: `time` of its timestamp (None: as the manifest's issued_at, and a
    second later), `stamp` what token() takes (False: no timestamp), `signing_time`, `crls` names of files, and what
    signed_data() takes."""
    options = dict(options or {})
    files = dict(unpack(data))
    issued = moment(json.loads(files[MANIFEST])["issued_at"])
    time = options.pop("time", None)
    time = issued.replace(microsecond=0) + datetime.timedelta(seconds=1) if time is None else moment(time)
    stamp = options.pop("stamp", {})
    stated_time = options.pop("signing_time", None)
    more = [] if stated_time is False else [attribute(SIGNING_TIME, utc_time(moment(stated_time) if stated_time else issued))]
    options.setdefault("inside", path_of(by))
    unsigned = None if stamp is False else lambda value: stamp_of(value, time, dict(stamp))
    return replaced(data, SIGNATURE, signed_data(by, files[ASIC], more=more, unsigned=unsigned, **options))


def parsed(der):
    return list(elements(der))


@edit
def signature_part(data, what):
    """The genuine signature, with a part of it taken out or altered: "crls", "timestamp", "certificates", "crl N"."""
    whole = dict(unpack(data))[SIGNATURE]
    (_, _, inside), = elements(whole)
    kind, rest = parsed(inside)
    (_, _, body), = elements(rest[2])
    parts = [each[1] for each in parsed(body)]
    if what == "timestamp":
        (_, _, signer), = elements(parsed(parts[-1])[0][2])
        kept = [each[1] for each in parsed(signer) if each[0] != 0xa1]
        parts[-1] = tlv(0x31, sequence(*kept))
    elif what == "certificates":
        parts = [each for each in parts if each[0] != 0xa0]
    else:
        at = next(at for at, each in enumerate(parts) if each[0] == 0xa1)
        listed = [each[1] for each in parsed(parsed(parts[at])[0][2])]
        if what == "crls":
            listed = []
        elif what == "crls empty":
            listed = None
        elif what == "crls twice":
            listed.append(listed[0])
        elif what.startswith("flip "):
            number = int(what[5:])
            listed[number] = flip(listed[number], len(listed[number]) // 2, 0)
        elif what.startswith("add "):
            listed.append(base(what[4:]))
        else:
            del listed[int(what)]
        parts[at] = b"" if listed == [] else set_of(*(listed or []), tag=0xa1)
        parts[0] = integer(5 if listed and any(each[0] == 0xa1 for each in listed) else 1)
    return replaced(data, SIGNATURE, sequence(kind[1], tlv(0xa0, sequence(*parts))))


# ---- a service of its own history: whoever has its keys ----

def join(a, b):
    return hashlib.sha256(b"".join(sorted((a, b)))).digest()


def root_of(level):
    while len(level) > 1:
        level = [join(*level[at:at + 2]) if at + 1 < len(level) else level[at] for at in range(0, len(level), 2)]
    return level[0]


def make_events(genesis, config, given):
    """Records and chain hashes, from event 1 on."""
    first, records, before = given["first"], [], hashlib.sha256(genesis).digest()
    for number, (seconds, name) in enumerate(given["events"]):
        records.append(canonical({
            **first, "client_ref": name, "config_hash": hashlib.sha256(config).hexdigest(), "hash": hashlib.sha256(
                name.encode()).hexdigest(), "event_id": f"evt_x3efwrvv13q9jfq1l{number + 1}" + "x" * given.get("padding", 0),
            "modality": "content",
            "previous_chain_hash": before.hex(), "received_at": stated(moment(seconds)), "sequence": number + 1}))
        before = hashlib.sha256(records[-1]).digest()
    return records


def make_seal(given, hashes_, genesis, segment, number, before_seal, before_token):
    first, last = segment
    chain_before = hashes_[first - 2] if first > 1 else hashlib.sha256(genesis).digest()
    seal = {"chain": "live", "chain_hash_before": chain_before.hex(), "chain_hash_last": hashes_[last - 1].hex(),
            "channel_id": given["first"]["channel_id"],
            "clock": {"max_error_us": 1000, "source": "ntp_adjtime", "synchronized": True}, "count": last - first + 1,
            "first_sequence": first, "last_sequence": last, "previous_seal_hash": before_seal and before_seal.hex(),
            "previous_token_hash": before_token and before_token.hex(), "segment_id": f"seg_x3efwrvv13q9jfq1n{number}", "v": 1}
    return {**seal, **given.get("lies", {}).get(str(number), {})}


def make_rounds(given, genesis, records):
    """Lines of rounds and seals. A round covers a segment of the chain, or others' (None)."""
    hashes_ = [hashlib.sha256(record).digest() for record in records]
    rounds, seals, before_seal, before_token = [], [], None, None
    for number, each in enumerate(given["rounds"]):
        top, path = hashlib.sha256(f"another chain's {number}".encode()).digest(), []
        if each.get("covers"):
            seal = make_seal(given, hashes_, genesis, each["covers"], len(seals) + 1, before_seal, before_token)
            before_seal = hashlib.sha256(canonical(seal)).digest()
            first, last = each["covers"]
            path = [top] if each.get("shared") else []
            top = root_of([*hashes_[first - 1:last], before_seal])
            for sibling in path:
                top = join(top, sibling)
            seals.append({"path": [sibling.hex() for sibling in path], "round_id": f"rnd_{number + 1}", "seal": seal})
        time = moment(each["at"])
        made = [token(top, time, by, **each.get("token", {})) for by in each.get("by", ["one", "two"])]
        rounds.append({"gen_time": stated(time), "root": top.hex(), "round_id": f"rnd_{number + 1}", "tokens": [
            {"authority": by, "certificates": [], "gen_time": stated(time), "kind": "non_qualified", "renewal": None,
             "request": None, "revocations": [], "token": base64.b64encode(der).decode()}
            for by, der in zip(each.get("by", ["one", "two"]), made)]})
        before_token = hashlib.sha256(made[0]).digest()
    return rounds, seals


def wanted_rounds(given, rounds, seals):
    wanted = set()
    for seal in seals:
        at = int(seal["round_id"][4:]) - 1
        wanted |= {at, at - 1} - {-1}
    return [rounds[at] for at in sorted(wanted - set(given.get("omit", [])))]


def earlier_seals(given, seals):
    """The lines of history/: `earlier` are the numbers of the segments, from 1 on, and `altered` their members."""
    lines = []
    for number in given["earlier"]:
        seal = {**seals[number - 1]["seal"], **given.get("altered", {}).get(str(number), {})}
        lines.append(canonical(seal))
    return lines


# ---- the log of segments ----

ORIGIN, OTHER_ORIGIN = "log.example/segments", "other.example/segments"


def log_key(origin, kind=tlog.ED25519):
    seed = hashlib.sha256(f"the corpus: {origin}".encode()).digest()
    return tlog.Key(origin, kind, ed25519.Ed25519PrivateKey.from_private_bytes(seed))


def strange_leaf(number, history_=""):
    return tlog.leaf_hash(f"another chain's segment {number}{history_}".encode())


def entry_of(seal, tag):
    return canonical({**{name: seal[name] for name in ("chain_hash_last", "first_sequence", "last_sequence")},
                      "seal_hash": hashlib.sha256(canonical(seal)).hexdigest(), "tag": tag, "v": 1})


def note_of(given, size, root, number=0):
    """A checkpoint, signed by its log and cosigned by a witness."""
    origin = OTHER_ORIGIN if number in given.get("others", []) else ORIGIN
    text_ = tlog.checkpoint_text(origin, size, root) + given.get("extension", "")
    witness = log_key("witness.example", tlog.COSIGNATURE)
    lines = [log_key(given.get("signer", origin)).sign(text_), witness.cosign(text_, int(began().timestamp()) + 300)]
    return f"{text_}\n{''.join(lines)}"


def make_huge_log(given, seal, tag):
    """A log of so many entries that nothing holds it, with the given `index` and `size`: the path of one segment, whose hashes
    are invented, and the root to which it leads."""
    index, size = given["huge"]
    node, last, root, path = index, size - 1, tlog.leaf_hash(entry_of(seal, tag)), []
    while last:
        sibling = strange_leaf(len(path))
        if node & 1:
            root = tlog.node_hash(sibling, root)
        elif node < last:
            root = tlog.node_hash(root, sibling)
        path += [sibling] if node & 1 or node < last else []
        node, last = node >> 1, last >> 1
    return [{"consistency": [], "note": note_of(given, size, root)}], \
        [{"index": index, "path": [one.hex() for one in path], "size": size}]


def make_log(given, channel, seals, wanted):
    """Lines of checkpoints/ and log/. Of `given`: `between`, how many entries of other chains are before each segment's in
    turn, and at the end; `size_every`, of how many segments a checkpoint is (1); `older`, how many segments are older than the log;
    `more_sizes` of checkpoints;
    `others`, the checkpoints of another log; `fork`: the last checkpoint is of another history; `tag` in entries, `signer`,
    `extension` of notes; `huge` as make_huge_log() takes it."""
    tag, between = given.get("tag", tlog.tag_of(channel)), given.get("between", [3])
    if "huge" in given:
        return make_huge_log(given, wanted[0]["seal"], tag)
    leaves, indexes, sizes = [], {}, []
    for number, each in enumerate(seals[given.get("older", 0):], 1):
        leaves += [strange_leaf(len(leaves) + more) for more in range(between[number % len(between)])]
        indexes[each["seal"]["segment_id"]] = len(leaves)
        leaves.append(tlog.leaf_hash(entry_of(each["seal"], tag)))
        sizes += [len(leaves)] if number % given.get("size_every", 1) == 0 else []
    leaves += [strange_leaf(len(leaves) + more) for more in range(between[0])]
    forked = [strange_leaf(0, " of another history"), *leaves[1:]] if given.get("fork") else leaves
    places, used = [], set()
    for each in wanted:
        index = indexes.get(each["seal"]["segment_id"])
        size = None if index is None else next((one for one in sizes if one > index), len(leaves))
        path = [] if index is None else tlog.inclusion(leaves[:size], index)
        places.append({"index": index, "path": [one.hex() for one in path], "size": size})
        used |= {size} - {None}
    checkpoints = []
    sizes = sorted(used | {len(leaves)} | set(given.get("more_sizes", [])))
    for number, (size, after) in enumerate(zip(sizes, sizes[1:] + [0])):
        of = leaves[:size] if after else forked
        proof = tlog.consistency(forked[:after] if after == len(leaves) else leaves[:after], size) if after else []
        checkpoints.append({"consistency": [one.hex() for one in proof], "note": note_of(given, size, tlog.root(of), number)})
    return checkpoints, places


@edit
def log_of(data, given):
    """The log of another archive, as the last streams."""
    files, other = unpack(data), dict(unpack(make_file(given)))
    found = [(stream(name), other[stream(name)]) for name in ("checkpoints", "log")]
    return pack([*files[:-3], *found, *files[-3:]])


@edit
def history(data, given):
    """An archive of another history of the same channel: `events` [seconds, reference], `rounds`
    {"at", "by", "covers", "shared", "token"}, the certified `range`, `issued`, `signer`, `sign`, `lies` about seals,
    `omit` rounds, `padding` letters more in each event's identifier, the `version` of the format,
    `earlier` segments whose seals are in history/, what of these is `altered`, and
    `log` as make_log() takes it."""
    files = dict(unpack(base("live.zip")))
    genesis, config = files["genesis.json"], files["config/config-000001.json"]
    given = {**given, "first": read_lines(files.items(), "events")[0]}
    records = make_events(genesis, config, given)
    rounds, seals = make_rounds(given, genesis, records)
    first, last = given.get("range", [1, len(records)])
    earlier = earlier_seals(given, seals) if "earlier" in given else []
    every = seals
    seals = [seal for seal in seals if seal["seal"]["last_sequence"] >= first and seal["seal"]["first_sequence"] <= last]
    hashes_ = [hashlib.sha256(record).hexdigest() for record in records]
    covered = range(seals[0]["seal"]["first_sequence"], seals[-1]["seal"]["last_sequence"] + 1)
    leaves = [{"chain_hash": hashes_[number - 1], "sequence": number} for number in covered if not first <= number <= last]
    manifest = {**json.loads(files[MANIFEST]), "v": given.get("version", 2), "content_parts": [], "event_count": last - first + 1,
                "certification_id": given.get("certification", "CERT-2026-0000099"),
                "first_chain_hash": hashes_[first - 1], "last_chain_hash": hashes_[last - 1],
                "frozen_range": {"first_sequence": first, "last_sequence": last},
                "issued_at": stated(moment(given.get("issued", given["rounds"][-1]["at"] + 10))),
                "previous_chain_hash": hashes_[first - 2] if first > 1 else hashlib.sha256(genesis).hexdigest(),
                "requested_range": given.get("requested", {"from": None, "seq_from": first, "seq_to": last, "to": None})}
    made = [("mimetype", files["mimetype"]), ("README.txt", files["README.txt"]), ("LEEME.txt", files["LEEME.txt"]),
            ("genesis.json", genesis), ("config/config-000001.json", config),
            (stream("events"), zipped(b"".join(record + b"\n" for record in records[first - 1:last])))]
    if leaves:
        made.append((stream("leaves"), write_lines(leaves)))
    made += [(stream("seals"), write_lines(seals)), (stream("rounds"), write_lines(wanted_rounds(given, rounds, seals))),
             *[(stream("history"), zipped(b"".join(line + b"\n" for line in earlier)))] * bool(earlier),
             (MANIFEST, canonical(manifest)), (ASIC, b""), (SIGNATURE, b"")]
    if "log" in given:  # from version 3 on; the base files are of version 2
        made[-3] = (MANIFEST, canonical({**manifest, "v": 3}))
        checkpoints, places = make_log(given["log"], manifest["channel_id"], every, seals)
        at = len(made) - 3 - bool(earlier)
        made[at:at] = [(stream("checkpoints"), write_lines(checkpoints)), (stream("log"), write_lines(places))]
    return sign(resum(pack(made)), given.get("signer", "signer"), given.get("sign"))


def large_segment(count, size):
    """A genuine archive of one segment, whose events have `size` bytes and more. It is small when it is packed."""
    return history(None, {"events": [[0, f"order-{number}"] for number in range(count)], "padding": size,
                          "rounds": [{"at": 10, "covers": [1, count]}]})


def large_log(count, size):
    """A genuine archive of one segment, with that number of checkpoints that no segment needs. Each has `size` bytes and more.
    It is small when it is packed."""
    return history(None, {"events": [[0, "a"]], "rounds": [{"at": 10, "covers": [1, 1]}],
                          "log": {"between": [count], "more_sizes": list(range(count)), "extension": "x" * size + "\n"}})


def first_event(data):
    """The receipt of an archive's first event."""
    files = dict(unpack(data))
    line = gzip.decompress(files[stream("events")]).split(b"\n", 1)[0]
    return {**json.loads(line), "mode": json.loads(files[MANIFEST])["mode"], "chain_hash": hashlib.sha256(line).hexdigest()}


@edit
def token_of(data, number, which, options):
    """A round's token recreated by token()."""
    lines = read_lines(unpack(data), "rounds")
    given = lines[number]["tokens"][which]
    options = dict(options)
    time = moment(options.pop("time", given["gen_time"]))
    imprint = bytes.fromhex(options.pop("imprint", lines[number]["root"]))
    made = token(imprint, time, **{"by": ("one", "two")[which], **options})
    given.update(token=base64.b64encode(made).decode(), certificates=[], revocations=[], request=None)
    return without_unnamed(replaced(data, stream("rounds"), write_lines(lines)))


def without_unnamed(data):
    """Of validation/, what tokens still name."""
    files = unpack(data)
    named = {name for line in read_lines(files, "rounds") for each in line["tokens"]
             for name in each["certificates"] + each["revocations"]}
    kept = [line for line in read_lines(files, "validation") if line["sha256"] in named]
    if stream("validation") not in dict(files):
        return data
    if not kept:
        return drop(data, stream("validation"))
    return replaced(data, stream("validation"), write_lines(kept))


# ---- reports ----

CONTENTS = re.compile(rb"/ByteRange \[(\d+) (\d+) (\d+) (\d+) *\] /Contents <([0-9a-f]+)>")


@edit
def report(data, by="signer", texts=(), options=None):
    """The report of level B-T with other texts of the same length, and signed again."""
    options = dict(options or {})
    end = [match.end() for match in re.finditer(rb"%%EOF\n", data)][1]
    data = data[:end]
    for old, new in texts:
        assert len(old) == len(new) and old.encode() in data, old
        data = data.replace(old.encode(), new.encode())
    found = CONTENTS.search(data)
    begin, size = found.start(5) - 1, found.end(5) - found.start(5)
    covered = data[:begin] + data[found.end(5) + 1:]
    stamp, time = options.pop("stamp", {}), moment(options.pop("time", 1))
    options.setdefault("inside", path_of(by))
    unsigned = None if stamp is False else lambda value: stamp_of(value, time, dict(stamp))
    made = signed_data(by, covered, unsigned=unsigned, **options).hex().encode()
    return data[:begin + 1] + made.ljust(size, b"0") + data[begin + 1 + size:]


@edit
def revision(data, number):
    """A report up to its update of that number: 0 is before the signature."""
    return data[:[match.end() for match in re.finditer(rb"%%EOF\n", data)][number]]


# ---- evidence records and containers ----

@edit
def record(data, files, options=None):
    """An evidence record over files, which anybody gets from an authority."""
    options = dict(options or {})
    digests = sorted(hashlib.sha256(make_file(each)).digest() for each in files)
    lists = [digests] if len(digests) > 1 else []
    for sibling in options.pop("siblings", []):
        lists = lists or [digests]
        lists.append([bytes.fromhex(sibling)])
    top = digests[0]
    if lists:
        top = hashlib.sha256(b"".join(sorted(lists[0]))).digest() if len(lists[0]) > 1 else lists[0][0]
        for each in lists[1:]:
            top = hashlib.sha256(b"".join(sorted([*each, top]))).digest()
    time = moment(options.pop("time", 60))
    tree = tlv(0xa2, b"".join(sequence(*map(octets, each)) for each in lists)) if lists else b""
    archive = sequence(tlv(0xa0, algorithm("sha256")[2:]), tree, token(top, time, **options))
    return sequence(integer(1), sequence(algorithm("sha256")), sequence(sequence(archive)))


@edit
def container(data, record_, files):
    """As `constancia bundle` makes it: files are {"name", "base", "edits"}."""
    named = sorted((each["name"], make_file(each)) for each in files)
    text_ = ('<?xml version="1.0" encoding="UTF-8"?>\n<asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#"'
             ' xmlns:ds="http://www.w3.org/2000/09/xmldsig#">\n<asic:SigReference URI="META-INF/evidencerecord001.ers"/>\n')
    for name, content in named:
        text_ += (f'<asic:DataObjectReference URI="{name}"><ds:DigestMethod Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>'
                  f"<ds:DigestValue>{digest_of(content)}</ds:DigestValue></asic:DataObjectReference>\n")
    return pack([("mimetype", b"application/vnd.etsi.asic-e+zip"), *named,
                 ("META-INF/ASiCEvidenceRecordManifest001.xml", (text_ + "</asic:ASiCManifest>\n").encode()),
                 ("META-INF/evidencerecord001.ers", make_file(record_))])


# ---- asking ----

def write(given, directory):
    """The files of a case; paths of what is to be judged, and of what is trusted and which receipts there are."""
    paths = []
    for each in given["files"]:
        paths.append(directory / each["name"])
        paths[-1].write_bytes(make_file(each))
    trust, receipts = None, None
    if given["trust"]:
        trust = directory / "trust.pem"
        names = [given["trust"]] if isinstance(given["trust"], str) else given["trust"]
        trust.write_bytes(b"".join((HERE / ("base" if name.endswith(".pem") else "keys") /
                                    (name if name.endswith(".pem") else f"{name}.pem")).read_bytes() for name in names))
    if "receipts" in given:
        receipts = directory / given["receipts"]["name"]
        receipts.write_bytes(make_file(given["receipts"]))
    return paths, trust, receipts


def verify(program, given, directory):
    """Writes the files of a case. What `constancia verify` says of them: its status and its JSON; and write()'s answer."""
    paths, trust, receipts = written = write(given, directory)
    asked = ["--at", given["at"], *(["--trust", trust] if trust else []), *(["--receipt", receipts] if receipts else []),
             *(["--signer", hashlib.sha256(der_of(certificate(given["signer"]))).hexdigest()] if "signer" in given else [])]
    done = subprocess.run([program, "verify", *paths, "--json", *asked], capture_output=True, check=False)
    return done.returncode, json.loads(done.stdout), written


# ---- receipts ----

@edit
def receipt(data, number, members):
    """One of the receipts alone, with other members."""
    return json.dumps({**json.loads(data)[number], **members}).encode()


def main():
    """usage: forge.py CASE DIRECTORY: writes the files of a case."""
    if len(sys.argv) != 3:
        sys.exit(main.__doc__)
    directory = pathlib.Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    for case in load_cases():
        if case["name"] == sys.argv[1]:
            write(case, directory)
            return
    sys.exit("no such case")


if __name__ == "__main__":
    main()
