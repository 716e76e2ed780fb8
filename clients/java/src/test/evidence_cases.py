#!/usr/bin/python3 -B
"""Writes the archives of the corpus (tests/corpus/evidence) for VerifyTest: evidence_cases.py FOLDER

cases.json there has for each case its name, its files, and the code that is stated. large.zip is an archive of 150,000
events, in two streams, and large.ndjson has a receipt of each. segment.zip has one segment of 280 MB; forged.zip is the
same, whose segment leads to no round. other.json has a receipt that differs from their first event.
"""
import hashlib
import json
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tests/corpus/evidence"))
import forge  # noqa: E402

COUNT, LINES_MAX = 150_000, 100_000
SEGMENT = 7_000, 40_000  # events, and the bytes of each


def write_cases(folder):
    found = []
    for number, case in enumerate(one for one in forge.load_cases() if one["kind"] == "archive"):
        directory = folder / str(number)
        directory.mkdir()
        paths, trust, receipts = forge.write(case, directory)
        found.append({"name": case["name"], "code": case["code"], "finding": case.get("finding"),
                      "paths": list(map(str, paths)), "trust": trust and str(trust), "at": case["at"],
                      "receipts": receipts and str(receipts),
                      "signer": hashlib.sha256(forge.der_of(forge.certificate(case["signer"]))).hexdigest()
                      if "signer" in case else None})
    (folder / "cases.json").write_text(json.dumps(found), encoding="utf-8")


def write_large(folder):
    files = dict(forge.unpack(forge.base("test.zip")))
    name = "events/events-000001.ndjson.gz"
    first = json.loads(zlib.decompress(files[name], 31).split(b"\n")[0])
    lines, hashes, previous = [], [], first["previous_chain_hash"]
    with open(folder / "large.ndjson", "w", encoding="utf-8") as receipts:
        for sequence in range(1, COUNT + 1):
            event = {**first, "sequence": sequence, "event_id": f"evt_{sequence}", "client_ref": f"order-{sequence}",
                     "previous_chain_hash": previous}
            line = forge.canonical(event)
            previous = hashlib.sha256(line).hexdigest()
            lines.append(line + b"\n")
            hashes.append(previous)
            receipts.write(json.dumps({**event, "mode": "test", "chain_hash": previous}) + "\n")
    manifest = json.loads(files["manifest.json"])
    manifest.update(event_count=COUNT, first_chain_hash=hashes[0], last_chain_hash=hashes[-1],
                    frozen_range={"first_sequence": 1, "last_sequence": COUNT},
                    requested_range={"from": None, "seq_from": 1, "seq_to": COUNT, "to": None})
    made = {}
    for entry, content in files.items():
        if entry == name:
            for at in range(0, COUNT, LINES_MAX):
                made[f"events/events-{at // LINES_MAX + 1:06}.ndjson.gz"] = forge.zipped(
                    b"".join(lines[at:at + LINES_MAX]))
        else:
            made[entry] = forge.canonical(manifest) if entry == "manifest.json" else content
    data = forge.sign(forge.reasic(forge.resum(forge.pack(made.items()))))
    (folder / "large.zip").write_bytes(data)


def write_segment(folder):
    data = forge.large_segment(*SEGMENT)
    forged = forge.change(data, forge.stream("seals"), [0, "path"], ["0" * 64])
    (folder / "segment.zip").write_bytes(data)
    (folder / "forged.zip").write_bytes(forge.sign(forge.reasic(forge.resum(forged))))
    (folder / "other.json").write_text(json.dumps({**forge.first_event(data), "client_ref": "other"}))


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True)
    write_cases(folder)
    write_large(folder)
    write_segment(folder)


main()
