#!/usr/bin/env python3
"""usage: alter.py CASE DIRECTORY: what every validator has to refuse.

Writes to DIRECTORY the report and the archive of CASE with one character changed each, and to
DIRECTORY/structure the report without its structure tree.
"""

import pathlib
import re
import sys
import zipfile


def main():
    case, to = map(pathlib.Path, sys.argv[1:])
    report = (case / "report-en.pdf").read_bytes()
    bare = report.replace(b"/StructTreeRoot", b"/StrxctTreeRoot")
    assert bare != report
    (to / "structure").mkdir(parents=True)
    (to / "structure" / "report-en.pdf").write_bytes(bare)
    # Inside the longest stream: a report that cannot be parsed would be refused for that.
    at = max((match.span(1) for match in re.finditer(rb"stream\r?\n(.*?)endstream", report, re.S)),
             key=lambda span: span[1] - span[0])
    at = (at[0] + at[1]) // 2
    (to / "report-en.pdf").write_bytes(report[:at] + bytes([report[at] ^ 1]) + report[at + 1:])
    with zipfile.ZipFile(case / "evidence.zip") as archive, \
            zipfile.ZipFile(to / "evidence.zip", "w") as altered:
        for entry in archive.infolist():
            content = archive.read(entry)
            if entry.filename == "genesis.json":
                content = content.replace(b'"v":1', b'"v":0')
                assert content != archive.read(entry)
            altered.writestr(entry, content)


main()
