#!/usr/bin/env python3
"""Fetches the evidence record of a certification once it has COUNT archive timestamps.

usage: fetch_record.py READY_FILE CASE_DIRECTORY COUNT OUTPUT
"""

import json
import pathlib
import sys
import time
import urllib.request

PATIENCE_S = 300
TOKEN = bytes.fromhex("06092a864886f70d010702")  # id-signedData, once in each


def main():
    ready = json.loads(pathlib.Path(sys.argv[1]).read_text())
    issued = json.loads((pathlib.Path(sys.argv[2]) / "certification.json").read_text())
    wanted, output = int(sys.argv[3]), pathlib.Path(sys.argv[4])
    key = ready["channels"]["content"]["live_key"]
    request = urllib.request.Request(
        f"{ready['base_url']}/certifications/{issued['certification_id']}/evidence-record",
        headers={"Authorization": f"Bearer {key}"})
    for _ in range(PATIENCE_S):
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            record = answer.read()
        if record.count(TOKEN) == wanted:
            output.write_bytes(record)
            return 0
        time.sleep(1)
    return f"{record.count(TOKEN)} archive timestamps, not {wanted}"


sys.exit(main())
