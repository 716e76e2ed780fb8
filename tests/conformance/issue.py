#!/usr/bin/env python3
"""Has a running service issue the evidence that the validators judge.

usage: issue.py PROGRAM READY_FILE DIRECTORY [CASE]

Declares JSON with texts that are hard to print or parse, files and bare digests, on
live and test chains, and writes what is handed over for each certification to DIRECTORY/CASE:
report-en.pdf, report-es.pdf, evidence.zip, the content parts, certification.json. With CASE,
one small certification of that name.
"""

import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile

PATIENCE_S = 120
HOSTILE = [
    "Núria Peña — «señal» ‰ ½ ǆ",
    "مرحبا بالعالم، هذا تصريح",
    "שלום עולם (1) [2] {3}",
    "漢字かな交じり文・한국어·简体中文",
    "भारत में हिन्दी, ไทย, Ελληνικά, Кириллица",
    "👩‍👩‍👧‍👦 🇪🇸 ☃️ ✅ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "Z̵̨̛͓a̶̢͖̎l̷͚̈́g̵̛̙o̶̞͒ e\u0301\u0301\u0301\u0301\u0301\u0301",
    "<script>alert('x')</script> &amp; ]]> <?xml?> <!--",
    "%PDF-1.7 endobj endstream (\\) >> << /Contents trailer xref",
    "\u202egnp.exe\u202c \u200bzero\u200bwidth\ufeff \u2028 line \u2066iso\u2069",
    "'; DROP TABLE event; -- \" ` $(true) %s %n ../../etc/passwd",
    "W" * 200,
    "ffi ﬁ Ǆ ß İı ſ ſt Å Å \U000e0041 \ue000 \uffff \U0010ffff",
    "𓀀𓁐 ᚠᛇᚻ ꧁꧂ 𐍈 ꙮ ﷽",
    " leading, trailing and   inner spaces ",
]
# What JSON can carry and a client_ref cannot.
CONTROLS = "\u0000\u0001\b\t\n\f\r\u001b[31m\u007f\u0085"
NUMBERS = [0, -0.0, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740991, 0.1 + 0.2]


class Issuer:
    def __init__(self, program, ready_file, directory):
        self.recorded = []
        self.program = program
        self.ready = json.loads(pathlib.Path(ready_file).read_text())
        self.directory = pathlib.Path(directory)
        self.count = 0

    def admin(self, *arguments):
        done = subprocess.run([self.program, *arguments, "--json", "--data",
                               self.ready["data_dir"]], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(arguments[:2])}: {done.stderr or done.stdout}")
        return json.loads(done.stdout)

    def channel(self, account, modality, **texts):
        """Answers the channel's id, its live and its test key."""
        flags = [text for name, value in texts.items()
                 for text in (f"--{name.replace('_', '-')}", value)]
        made = self.admin("channel", "create", "--account", account, "--modality", modality,
                          *flags)["channel_id"]
        return (made, *(self.admin("key", "create", "--channel", made, "--mode", mode)["key"]
                        for mode in ("live", "test")))

    def call(self, key, path, body=None, content_type="application/json"):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        request = urllib.request.Request(self.ready["base_url"] + path, body, {
            "Authorization": f"Bearer {key}", "Content-Type": content_type})
        for _ in range(PATIENCE_S):
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as refusal:
                text = refusal.read().decode()
                if refusal.code != 429:
                    sys.exit(f"{path}: {refusal.code} {text}\n{body[:200] if body else ''}")
                time.sleep(int(refusal.headers.get("Retry-After", "1")))
        sys.exit(f"{path}: still refused")

    def reference(self, text=""):
        self.count += 1
        return f"{self.count} {text}".encode()[:255].decode(errors="ignore")

    def declare(self, key, payload, reference="", occurred_at=None):
        body = {"client_ref": self.reference(reference), "payload": payload}
        if occurred_at:
            body["occurred_at"] = occurred_at
        return self.call(key, "/events", body)["sequence"]

    def declare_file(self, key, name, content):
        boundary = "boundary-of-conformance"
        body = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"client_ref\"\r\n\r\n"
                f"{self.reference('file')}\r\n--{boundary}\r\nContent-Disposition: form-data; "
                f"name=\"file\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n"
                "\r\n").encode() + content + f"\r\n--{boundary}--\r\n".encode()
        return self.call(key, "/events", body,
                         f"multipart/form-data; boundary={boundary}")["sequence"]

    def declare_hash(self, key, text, algorithm):
        digest = hashlib.new(algorithm.replace("-", ""), text.encode()).hexdigest()
        return self.call(key, "/events", {"client_ref": self.reference(text), "hash": digest,
                                          "hash_alg": algorithm})["sequence"]

    def declare_hostile(self, key):
        for text in HOSTILE:
            self.declare(key, {text: text, "numbers": NUMBERS, "controls": CONTROLS}, text,
                         "0001-01-01T00:00:00Z" if "PDF" in text
                         else "2026-01-31T23:59:59.999999+14:00")
        self.declare_file(key, "niño ☃ (1).pdf", b"%PDF-1.4\n" + bytes(range(256)) * 40)
        return self.declare_file(key, "empty.bin", b"")

    def certify(self, key, case, first, last):
        accepted = self.call(key, "/certifications", {"seq_from": first, "seq_to": last})
        path = f"/certifications/{accepted['certification_id']}"
        for _ in range(PATIENCE_S * 5):
            issued = self.call(key, path)
            if issued["status"] != "processing":
                break
            time.sleep(0.2)
        if issued["status"] != "completed":
            sys.exit(f"{case}: {json.dumps(issued)}")
        to = self.directory / case
        to.mkdir(parents=True)
        (to / "certification.json").write_text(json.dumps(issued, indent=1))
        files = [(f"report-{'-'.join(r['languages'])}.pdf", r["url"]) for r in issued["reports"]]
        files += [("evidence.zip", issued["evidence_url"])]
        files += [(part["name"], part["url"]) for part in issued["content_parts"]]
        for name, url in files:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                (to / name).write_bytes(answer.read())
        self.recorded.append((key, path, to / "record.ers"))
        print(f"issued {case}: events {first} to {last}, {', '.join(name for name, _ in files)}",
              flush=True)

    def fetch_records(self):
        """The evidence records of live certifications, which are made soon after these, and those of
        the first event of each."""
        for key, path, to in self.recorded:
            for _ in range(PATIENCE_S * 5):
                issued = self.call(key, path)
                if issued["mode"] == "test" or issued["evidence_record_sha256"]:
                    break
                time.sleep(0.2)
            if issued["mode"] == "test":
                continue
            self.fetch(key, issued["evidence_record_url"], to)
            with zipfile.ZipFile(to.with_name("evidence.zip")) as archive:
                events = gzip.decompress(archive.read("events/events-000001.ndjson.gz"))
            event = json.loads(events.splitlines()[0])["event_id"]
            self.fetch(key, f"{self.ready['base_url']}/events/{event}/evidence-record",
                       to.with_name("event.ers"))

    def fetch(self, key, url, to):
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            to.write_bytes(answer.read())


def issue_one(issuer, case):
    channel = issuer.ready["channels"]["content"]
    for text in HOSTILE[:3]:
        last = issuer.declare(channel["live_key"], {"text": text}, text)
    issuer.certify(channel["live_key"], case, 1, last)


def issue_all(issuer):
    account = issuer.admin("account", "create", "--name", "Conformance", "--credits", "10000",
                           "--rate", "1000")["account_id"]
    plain = issuer.channel(account, "content", name="Delivery notes", declarant="Example S.L.")
    hostile = issuer.channel(account, "content", name=HOSTILE[0], declarant=HOSTILE[3],
                             description="\n".join(HOSTILE), supplementary_info=HOSTILE[7])
    bare = issuer.channel(account, "hash_only", name=HOSTILE[1], declarant=HOSTILE[8])

    # A plain chain in several segments, certified in the middle of one.
    for i in range(4):
        issuer.declare(plain[1], {"order": i})
    issuer.certify(plain[1], "live-first", 1, 2)
    for i in range(60):
        last = issuer.declare(plain[1], {"order": i}, "later")
    issuer.certify(plain[1], "live-middle", 3, last - 7)

    # Everything hostile, under two versions of the configuration.
    issuer.declare_hostile(hostile[1])
    issuer.admin("channel", "configure", hostile[0], "--name", HOSTILE[5], "--declarant",
                 HOSTILE[12])
    last = issuer.declare_hostile(hostile[1])
    issuer.certify(hostile[1], "live-hostile", 1, last)
    last = issuer.declare_hostile(hostile[2])
    issuer.certify(hostile[2], "test-hostile", 1, last)

    # A channel that keeps no content.
    for text in HOSTILE:
        issuer.declare_hash(bare[1], text, "sha-256")
        last = issuer.declare_hash(bare[1], text, "sha-512")
    issuer.certify(bare[1], "live-hash-only", 1, last)

    # More events than a report lists.
    for i in range(640):
        last = issuer.declare(plain[1], {"order": i})
    issuer.certify(plain[1], "live-long", 1, last)


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    issuer = Issuer(*sys.argv[1:4])
    if len(sys.argv) == 5:
        issue_one(issuer, sys.argv[4])
    else:
        issue_all(issuer)
    issuer.fetch_records()


main()
