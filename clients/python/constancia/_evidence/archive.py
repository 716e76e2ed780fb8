"""An evidence archive: its entries, its manifest and what is signed (sections 3, 4.1, 4.2, 6 and 7)."""

from __future__ import annotations

import base64
from typing import Any, BinaryIO, Dict, Iterator, List, Optional, Tuple

from . import cms, forms
from .cms import Signed, Token
from .forms import document, later, members, require, sha256, text_of, time_of
from .zips import Zip

ENTRIES_MAX = 20000
MANIFEST_MAX, DOCUMENT_MAX, SIGNATURE_MAX, TOKEN_MAX = 16777215, 32768, 8519679, 131072
STREAMS = ("events", "leaves", "seals", "rounds", "validation", "renewals", "checkpoints", "log", "history")
STREAMS_OF_VERSION = {1: 4, 2: 6, 3: 9}
ASIC, SIGNATURE = "META-INF/ASiCManifest001.xml", "META-INF/signature001.p7s"

GENESIS = {"chain": forms.IS_CHAIN, "channel_id": forms.is_text, "created_at": forms.is_time,
           "v": forms.integer(1, 1)}
CONFIG = {"channel_id": forms.is_text, "declarant": forms.is_text,
          "description": forms.or_null(forms.is_text), "modality": forms.one_of("content", "hash_only"),
          "name": forms.is_text, "sealed_at": forms.is_time,
          "supplementary_info": forms.or_null(forms.is_text), "v": forms.integer(1, 1),
          "version": forms.integer()}
MANIFEST = {"certification_id": forms.is_text, "channel_id": forms.is_text, "config_versions": forms.is_list,
            "content_parts": forms.is_list, "event_count": forms.integer(), "files": forms.is_list,
            "first_chain_hash": forms.is_hash, "frozen_range": forms.is_object, "issued_at": forms.is_time,
            "last_chain_hash": forms.is_hash, "mode": forms.IS_CHAIN, "previous_chain_hash": forms.is_hash,
            "requested_range": forms.is_object, "service": forms.is_object, "v": forms.integer(1, 3),
            "verification_code": forms.is_text}
SERVICE = {"name": forms.is_text, "prefix": forms.is_text, "verification_url": forms.is_text}
RANGE = {"first_sequence": forms.integer(), "last_sequence": forms.integer()}
REQUESTED = {"from": forms.or_null(forms.is_time), "seq_from": forms.or_null(forms.integer()),
             "seq_to": forms.or_null(forms.integer()), "to": forms.or_null(forms.is_time)}
FILE = {"path": forms.is_text, "sha256": forms.is_hash, "size": forms.integer(0)}
VERSION = {"hash": forms.is_hash, "version": forms.integer()}
PART = {"bytes": forms.integer(1, 10**9), "first_sequence": forms.integer(),
        "last_sequence": forms.integer(), "name": forms.is_text, "sha256": forms.is_hash}


class NotArchive(Exception):
    """Another kind of file was given, which may be right."""


class Archive:
    """An archive whose entries are as its manifest says, and its manifest as the ASiCManifest does.
    The signature over this is judged by `check_signature`, the events by `chain`."""

    def __init__(self, source: BinaryIO, where: str) -> None:
        self.zip = Zip(source, where, ENTRIES_MAX)
        if next(iter(self.zip.entries)) == "part.json":
            raise NotArchive(f"{where} is a content part: pass it as one, with its archive")
        self.manifest = self._manifest()
        self.mode: str = self.manifest["mode"]
        self.channel_id: str = self.manifest["channel_id"]
        self.first: int = self.manifest["frozen_range"]["first_sequence"]
        self.last: int = self.manifest["frozen_range"]["last_sequence"]
        self.stamped_at: Optional[str] = None  # the time of the signature's timestamp
        self._check_entries()
        self._check_files()
        self._check_ranges()
        self._check_parts()
        self._check_genesis()
        self.configs = dict(self._configs())

    def _manifest(self) -> Dict[str, Any]:
        where = "manifest.json"
        manifest = document(self.zip.read(where, MANIFEST_MAX), MANIFEST, where, MANIFEST_MAX)
        members(manifest["service"], SERVICE, where)
        members(manifest["frozen_range"], RANGE, where)
        members(manifest["requested_range"], REQUESTED, where)
        for one in manifest["files"]:
            members(one, FILE, where)
        for one in manifest["config_versions"]:
            members(one, VERSION, where)
        for one in manifest["content_parts"]:
            members(one, PART, where)
        return manifest

    def _check_entries(self) -> None:
        """Section 3: these entries, in this order."""
        names = list(self.zip.entries)
        expected = ["mimetype", "README.txt", "LEEME.txt", "genesis.json"]
        if self.manifest["v"] > 2 and "signers.p7m" in self.zip.entries:
            expected.append("signers.p7m")
        versions = [one["version"] for one in self.manifest["config_versions"]]
        require(versions == sorted(set(versions)), "manifest.json", "the order of configurations")
        expected += [f"config/config-{version:06}.json" for version in versions]
        for stream in STREAMS:
            expected += self.zip.streams(stream)
        expected += ["manifest.json", ASIC, SIGNATURE]
        require(names == expected, self.zip.where, "other entries, or in another order")
        unused = STREAMS[1 if self.mode == "test" else STREAMS_OF_VERSION[self.manifest["v"]]:]
        require(not any(self.zip.streams(stream) for stream in unused), self.zip.where,
                "a stream that this archive does not have")
        self.has_log = bool(self.zip.streams("checkpoints"))
        require(self.has_log == bool(self.zip.streams("log")), self.zip.where, "checkpoints or places in the log alone")
        require(self.zip.read("mimetype", 64) == b"application/vnd.etsi.asic-e+zip", "mimetype",
                "its content")

    def _check_files(self) -> None:
        """Every entry against the manifest, and the ASiCManifest byte by byte."""
        names = list(self.zip.entries)[1:-3]
        found = [{"path": name, "sha256": self.zip.digest(name), "size": self.zip.entries[name].size}
                 for name in names]
        require(found == self.manifest["files"], "manifest.json", "the digests of the files")
        lines = ['<?xml version="1.0" encoding="UTF-8"?>',
                 '<asic:ASiCManifest xmlns:asic="http://uri.etsi.org/02918/v1.2.1#"'
                 ' xmlns:ds="http://www.w3.org/2000/09/xmldsig#">',
                 f'<asic:SigReference URI="{SIGNATURE}" MimeType="application/x-pkcs7-signature"/>']
        for name in ["manifest.json", *names]:
            digest = base64.b64encode(bytes.fromhex(self.zip.digest(name))).decode()
            lines.append(f'<asic:DataObjectReference URI="{name}"><ds:DigestMethod'
                         ' Algorithm="http://www.w3.org/2001/04/xmlenc#sha256"/>'
                         f"<ds:DigestValue>{digest}</ds:DigestValue></asic:DataObjectReference>")
        lines += ["</asic:ASiCManifest>", ""]
        self.asic = self.zip.read(ASIC, MANIFEST_MAX)
        require(self.asic == "\n".join(lines).encode(), ASIC, "other bytes")

    def _check_ranges(self) -> None:
        where, asked = "manifest.json", self.manifest["requested_range"]
        require(self.first <= self.last and self.manifest["event_count"] == self.last - self.first + 1,
                where, "its range")
        times, numbers = (asked["from"], asked["to"]), (asked["seq_from"], asked["seq_to"])
        require(times == (None, None) and numbers == (self.first, self.last)
                or numbers == (None, None) and None not in times and times[0] < times[1], where,
                "the range that was asked for")

    def _check_parts(self) -> None:
        where, after = "content_parts", self.first - 1
        require(len(self.manifest["content_parts"]) <= 10000, where, "too many")
        for number, part in enumerate(self.manifest["content_parts"], 1):
            require(part["name"] == f"content-part-{number:03}.zip", where, "a name")
            require(after < part["first_sequence"] <= part["last_sequence"] <= self.last, where, "a range")
            after = part["last_sequence"]

    def _check_genesis(self) -> None:
        where = "genesis.json"
        genesis = document(self.zip.read(where, DOCUMENT_MAX), GENESIS, where, DOCUMENT_MAX)
        require((genesis["chain"], genesis["channel_id"]) == (self.mode, self.channel_id), where,
                "another chain's")
        self.genesis_hash = self.zip.digest(where)
        require(self.first > 1 or self.manifest["previous_chain_hash"] == self.genesis_hash, where,
                "event 1 does not build on it")

    def _configs(self) -> Iterator[Tuple[int, Tuple[str, str]]]:
        """Returns for each version its hash and its modality."""
        for listed in self.manifest["config_versions"]:
            name = f"config/config-{listed['version']:06}.json"
            data = self.zip.read(name, DOCUMENT_MAX)
            config = document(data, CONFIG, name, DOCUMENT_MAX)
            require((config["channel_id"], config["version"], sha256(data))
                    == (self.channel_id, listed["version"], listed["hash"]), name, "another one")
            yield listed["version"], (listed["hash"], config["modality"])

    def check_signature(self) -> List[Signed]:
        """Checks what the signature and its timestamp are over, and their times. Returns both, for
        their values to be checked."""
        issued_at = self.manifest["issued_at"]
        self.signed = Signed(self.zip.read(SIGNATURE, SIGNATURE_MAX), SIGNATURE, self.asic, cms.DATA)
        require(self.signed.digest == "sha256", SIGNATURE, "another digest than SHA-256")
        require(self.signed.version == (5 if self.signed.has_other_revocations else 1), SIGNATURE,
                "the version of its SignedData")
        require(self.signed.signing_time() == time_of(issued_at).replace(microsecond=0), SIGNATURE,
                "its signing-time is not issued_at")
        stamp = self.signed.timestamp()
        if stamp is None:
            require(self.mode == "test", SIGNATURE, "it has no timestamp")
            return [self.signed]
        require(len(stamp) <= TOKEN_MAX, SIGNATURE, "the size of its timestamp")
        token = Token(stamp, "the signature's timestamp")
        require(token.imprint == sha256(self.signed.value), SIGNATURE, "its timestamp is over another one")
        self.stamped_at = text_of(token.time)
        require(issued_at <= later(self.stamped_at), SIGNATURE, "issued_at is after its timestamp")
        return [self.signed, token.signed]

    def latest(self) -> str:
        """Returns the latest time that anything in the archive may have."""
        times = [self.manifest["issued_at"], *([self.stamped_at] if self.stamped_at else [])]
        return later(min(times))
