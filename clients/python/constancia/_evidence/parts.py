"""Content parts (section 9) against the events of their archive."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, Optional

from . import forms
from .archive import Archive
from .forms import document, require
from .zips import Zip, split

ENTRIES_MAX, BYTES_MAX, LINE_MAX = 60000, 10**9, 512
HEAD = {"certification_id": forms.is_text, "channel_id": forms.is_text, "number": forms.integer(1, 10000),
        "v": forms.integer(1, 1)}
ITEM = {"entry": forms.is_text, "event_id": forms.is_text, "hash": forms.is_hash,
        "sequence": forms.integer()}
EVENT_MAX = 262144


def check_part(archive: Archive, path: "os.PathLike[str]", sha256: str) -> Optional[str]:
    """Checks a content part of the archive. Returns its name, or None where the manifest does not list it."""
    listed = {part["sha256"]: (number, part)
              for number, part in enumerate(archive.manifest["content_parts"], 1)}
    if sha256 not in listed:
        check_other_part(archive, path)
        return None
    number, part = listed[sha256]
    where = part["name"]
    with open(path, "rb") as source:
        content = Zip(source, where, ENTRIES_MAX)
        require(content.size == part["bytes"], where, "its size")
        head = document(content.read("part.json", LINE_MAX), HEAD, where, LINE_MAX)
        require((head["certification_id"], head["channel_id"], head["number"])
                == (archive.manifest["certification_id"], archive.channel_id, number), where, "part.json")
        names = list(content.entries)
        require(len(names) > 2 and names[0] == "part.json" and names[-1] == "index.ndjson", where,
                "its entries")
        index = split(content.pieces("index.ndjson"), "index.ndjson", LINE_MAX, ENTRIES_MAX)
        events = events_of_content(archive, part)
        for name in names[1:-1]:
            check_entry(content, name, next(index, b""), next(events, None))
        require(next(index, None) is None, where, "a line of its index too many")
        require(next(events, None) is None, where, "content of an event is missing")
    return str(where)


def check_other_part(archive: Archive, path: "os.PathLike[str]") -> None:
    """Checks that a part which the manifest does not list is one of another certification."""
    where = os.path.basename(path)
    with open(path, "rb") as source:
        content = Zip(source, where, ENTRIES_MAX)
        for name in content.entries:
            content.digest(name)
        head = document(content.read("part.json", LINE_MAX), HEAD, where, LINE_MAX)
        require(head["certification_id"] != archive.manifest["certification_id"], where,
                "the archive does not list it")


def check_entry(content: Zip, name: str, line: bytes, event: Optional[Dict[str, Any]]) -> None:
    item = document(line, ITEM, name, LINE_MAX)
    require(event is not None, name, "content of no event")
    assert event is not None
    require(re.fullmatch(rf"content/{item['sequence']:012}\.(json|bin)", name) and item["entry"] == name,
            name, "its name")
    require((item["sequence"], item["event_id"], item["hash"])
            == (event["sequence"], event["event_id"], event["hash"]), name, "another event's")
    require(content.digest(name) == item["hash"], name, "its digest")


def events_of_content(archive: Archive, part: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Returns the events of modality content in the range of a part. They were checked before."""
    skip = part["first_sequence"] - archive.first
    for line in archive.zip.lines("events", skip):
        event: Dict[str, Any] = forms.parsed(line, "events", EVENT_MAX)
        if event["sequence"] > part["last_sequence"]:
            return
        if event["modality"] == "content":
            yield event
