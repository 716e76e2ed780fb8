#!/usr/bin/env python3
"""usage: alter.py CASE DIRECTORY, or alter.py CONTAINER FILE: what every validator has to refuse.

Writes to DIRECTORY the report and the archive of CASE with one character changed each, and to
DIRECTORY/structure the report without its structure tree. Writes to FILE a container of documents
and their evidence record with one more byte in a report: as a ZIP it has no fault.
"""

import pathlib
import re
import sys
import zipfile


def rewrite(source, to, name, alter):
    """A ZIP with another content of one entry."""
    with zipfile.ZipFile(source) as whole, zipfile.ZipFile(to, "w") as altered:
        for entry in whole.infolist():
            content = whole.read(entry)
            if entry.filename == name:
                content = alter(content)
                assert content != whole.read(entry)
            altered.writestr(entry, content)


def flip(document):
    """One bit inside the longest stream: one that cannot be parsed would be refused for that."""
    at = max((match.span(1) for match in re.finditer(rb"stream\r?\n(.*?)endstream", document, re.S)),
             key=lambda span: span[1] - span[0])
    at = (at[0] + at[1]) // 2
    return document[:at] + bytes([document[at] ^ 1]) + document[at + 1:]


def main():
    case, to = map(pathlib.Path, sys.argv[1:])
    if case.is_file():
        rewrite(case, to, "report-en.pdf", lambda content: content + b"\n")
        return
    report = (case / "report-en.pdf").read_bytes()
    bare = report.replace(b"/StructTreeRoot", b"/StrxctTreeRoot")
    assert bare != report
    (to / "structure").mkdir(parents=True)
    (to / "structure" / "report-en.pdf").write_bytes(bare)
    (to / "report-en.pdf").write_bytes(flip(report))
    rewrite(case / "evidence.zip", to / "evidence.zip", "genesis.json",
            lambda content: content.replace(b'"v":1', b'"v":0'))


main()
