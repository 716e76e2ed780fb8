"""Two archives of one channel are of one history: shown by the seal documents between them, given as a bridge or
carried by an archive. The documents are checked by their published form alone."""

import gzip
import io
import json
import urllib.parse
import zipfile

import pytest

import check_archive
import evidence
from client import Client, Service, eventually, form, run
from test_evidence import text_of, verify

pytestmark = pytest.mark.both_stores

SEGMENTS = 7
TARGET = "/v1/channel/seals"


def sealed_channel(service, segments=SEGMENTS, events=2):
    """A channel with that many segments, each of `events` events or more."""
    channel = service.new_channel("hash_only", credits=1000)
    for _ in range(segments):
        for _ in range(events):
            made = channel.live.register_hash("0" * 64).expect(201).json
        channel.live.sealed(made["event_id"])
    return channel


@pytest.fixture(scope="module", params=["usual", "small"])
def small(request):
    return request.param == "small"


@pytest.fixture(scope="module")
def service(small, tmp_path_factory):
    environment = {"TORTURE_SIZES": "seals_at_once=2,seals_whole=1,archive_history=2"} if small else {}
    running = Service(tmp_path_factory.mktemp("service"), seal__interval="200ms", rate__live=100000, rate__test=100000,
                      environment=environment)
    running.start()
    yield running
    running.discard()


@pytest.fixture(scope="module")
def channel(service):
    made = sealed_channel(service)
    made.documents = documents(made.live)
    made.events = made.live.walk("/v1/events", 500)
    made.trust = service.data / "trust.pem"
    return made


def seals(client, **query):
    """The lines of an answer."""
    names = {"start": "from"}
    query = {names.get(name, name): value for name, value in query.items()}
    answer = client.get(TARGET, query=query).expect(200)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.body == b"" or answer.body.endswith(b"\n")
    return answer.body.splitlines()


def documents(client, **query):
    """The documents of an answer, which are canonical, complete and in order."""
    found, before = [], None
    for line in seals(client, **query):
        seal = json.loads(line)
        assert evidence.canonical(seal) == line
        assert seal["last_sequence"] - seal["first_sequence"] + 1 == seal["count"]
        if before:
            last = json.loads(before)
            assert seal["first_sequence"] == last["last_sequence"] + 1
            assert seal["previous_seal_hash"] == evidence.sha256(before)
            assert seal["chain_hash_before"] == last["chain_hash_last"]
        found.append(seal)
        before = line
    return found


def test_the_seal_documents_of_a_chain_follow_each_other(channel):
    found = channel.documents
    assert len(found) >= SEGMENTS
    assert found[0]["first_sequence"] == 1 and found[0]["previous_seal_hash"] is None
    assert found[-1]["last_sequence"] == len(channel.events)
    hashes = {event["sequence"]: event["chain_hash"] for event in channel.events}
    assert all(seal["chain_hash_last"] == hashes[seal["last_sequence"]] for seal in found)
    assert {seal["channel_id"] for seal in found} == {channel.id}


def test_a_range_is_covered_by_whole_segments(channel):
    whole = channel.documents
    last = len(channel.events)
    for first, end in ((1, 1), (1, last), (2, 5), (last, last), (4, 10 ** 14)):
        expected = [seal for seal in whole if seal["last_sequence"] >= first and seal["first_sequence"] <= end]
        assert documents(channel.live, start=first, to=end) == expected
    assert documents(channel.live, start=5) == [seal for seal in whole if seal["last_sequence"] >= 5]
    assert documents(channel.live, to=5) == [seal for seal in whole if seal["first_sequence"] <= 5]
    assert seals(channel.live, start=last + 1) == []


def test_a_range_by_time_has_the_segments_of_its_events(channel):
    at = {event["sequence"]: event["received_at"] for event in channel.events}
    for first, end in ((1, 3), (3, 6), (2, len(at))):
        expected = [seal for seal in channel.documents
                    if seal["last_sequence"] >= first and seal["first_sequence"] < end]
        assert documents(channel.live, start=at[first], to=at[end]) == expected
        assert documents(channel.live, start=first, to=at[end]) == expected
    assert seals(channel.live, start="2999-01-01T00:00:00Z") == []
    assert seals(channel.live, to="2001-01-01T00:00:00Z") == []
    assert seals(channel.live, start=at[2], to=at[2]) == []


@pytest.mark.parametrize("query,named", [
    ("from=0", "from"), ("from=-1", "from"), ("to=1.5", "to"), ("from=yesterday", "from"), ("to=2026-01-01", "to"),
    ("from=1000000000000000", "from"), ("from=", "from"), ("from=2&to=1", "from"), ("from=1&from=2", "from"),
    ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from"), ("before=1", "before")])
def test_what_is_no_position_is_refused_by_its_name(channel, query, named):
    for client in (channel.live, channel.test):
        answer = client.get(f"{TARGET}?{query}").expect(400)
        assert answer.json["code"] == "validation_error" and named in answer.json["message"]


def test_a_test_chain_and_a_chain_without_events_have_none(service, channel):
    channel.test.register_hash("0" * 64).expect(201)
    assert seals(channel.test) == seals(channel.test, start=1, to=1) == []
    empty = service.new_channel()
    assert seals(empty.live) == []
    empty.close()


def test_a_head_has_the_length_and_a_key_is_required(service, channel):
    answer = channel.live.call("HEAD", TARGET).expect(200)
    assert int(answer.headers["Content-Length"]) == len(channel.live.get(TARGET).body)
    other = sealed_channel(service, 1)
    assert {seal["channel_id"] for seal in documents(other.live)} == {other.id}
    other.close()


# ---- bridges ----

class Archives:
    """Two archives of one channel without a common event, and the seal documents between them."""

    def __init__(self, channel, directory):
        self.channel, self.directory = channel, directory
        whole = channel.documents
        self.first, self.second = whole[1], whole[5]
        self.between = whole[2:5]
        self.paths = [self.save(f"archive-{seal['first_sequence']}.zip", seal) for seal in (self.first, self.second)]
        self.lines = seals(channel.live, start=self.between[0]["first_sequence"],
                           to=self.between[-1]["last_sequence"])
        assert len(self.lines) == len(self.between)

    def save(self, name, seal, **more):
        record = self.channel.live.certified(seq_from=seal["first_sequence"], seq_to=seal["last_sequence"], **more)
        path = self.directory / name
        path.write_bytes(self.channel.live.download(record["evidence_url"]).expect(200).body)
        return path

    def bridge(self, lines, name="bridge.ndjson"):
        path = self.directory / name
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        return path

    def verify(self, *bridges, expected=0, paths=None):
        options = [option for bridge in bridges for option in ("--bridge", bridge)]
        return verify(*(paths or self.paths), trust=self.channel.trust, expected=expected, options=options)


@pytest.fixture(scope="module")
def archives(channel, tmp_path_factory):
    return Archives(channel, tmp_path_factory.mktemp("archives"))


def codes(result, member="findings"):
    return [finding["code"] for finding in result[member]]


def history(archives, result):
    (found,) = result["histories"]
    assert found["channel_id"] == archives.channel.id and found["mode"] == "live"
    return found


def test_without_a_bridge_nothing_shows_one_history(archives):
    result = archives.verify()
    assert "history.not_connected" in codes(result, "warnings")
    assert "are of one history" in json.dumps(result["warnings"])
    assert history(archives, result) == {
        "archives": 2, "bridges": 0, "channel_id": archives.channel.id, "mode": "live", "one_history": False,
        "first_sequence": archives.first["first_sequence"], "last_sequence": archives.second["last_sequence"]}
    assert result["checked"]["bridge_segments"] == 0


def test_a_bridge_leads_from_one_archive_to_the_next(archives):
    for lines in (archives.lines, seals(archives.channel.live)):
        result = archives.verify(archives.bridge(lines))
        assert "history.not_connected" not in codes(result, "warnings")
        assert history(archives, result)["one_history"] and history(archives, result)["bridges"] == 1
        assert result["checked"]["bridge_segments"] == len(lines)
    for reverse in (False, True):
        parts = [archives.bridge(archives.lines[:1], "a.ndjson"), archives.bridge(archives.lines[1:], "b.ndjson")]
        result = archives.verify(*sorted(parts, reverse=reverse), paths=archives.paths[::-1 if reverse else 1])
        assert history(archives, result)["one_history"] and history(archives, result)["bridges"] == 2
    done = run("verify", *archives.paths, "--trust", archives.channel.trust, "--bridge",
               archives.bridge(archives.lines), "--lang", "es")
    assert done.returncode == 0 and f"una sola historia del canal {archives.channel.id}" in done.stdout
    done = run("verify", *archives.paths, "--trust", archives.channel.trust, "--bridge",
               archives.bridge(archives.lines))
    assert done.returncode == 0 and f"one history of channel {archives.channel.id}" in done.stdout


def forged(lines, change):
    """The documents with a change in the first one, each of which continues the one before it."""
    made, before = [], None
    for line in lines:
        seal = json.loads(line)
        if before is None:
            change(seal)
        else:
            seal["previous_seal_hash"] = evidence.sha256(before)
        before = evidence.canonical(seal)
        made.append(before)
    return made


def other_hash(member):
    return lambda seal: seal.update({member: "ab" * 32})


@pytest.mark.parametrize("change,code", [
    (lambda lines: lines[:-1], "bridge.not_leading"),
    (lambda lines: lines[1:], "bridge.not_leading"),
    (lambda lines: [lines[0], lines[2]], "bridge.broken"),
    (lambda lines: lines[::-1], "bridge.broken"),
    (lambda lines: [lines[0], lines[0]], "bridge.broken"),
    (lambda lines: [], "bridge.empty"),
    (lambda lines: [b"{}"], "bridge.malformed"),
    (lambda lines: [b"x" * 100000], "bridge.malformed"),
    (lambda lines: [lines[0] + b" ", *lines[1:]], "bridge.malformed"),
    (lambda lines: [lines[0], b"", *lines[1:]], "bridge.malformed"),
    (lambda lines: lines[:1] + forged(lines[1:], other_hash("chain_hash_before")), "bridge.broken"),
    (lambda lines: forged(lines, other_hash("previous_seal_hash")), "history.seals"),
    (lambda lines: forged(lines, other_hash("chain_hash_before")), "history.differs"),
    (lambda lines: forged(lines, lambda seal: seal.update(segment_id="seg_x")), "history.seals"),
])
def test_a_bridge_that_does_not_lead_is_wrong(archives, change, code):
    result = archives.verify(archives.bridge(change(archives.lines)), expected=1)
    assert code in codes(result), result["findings"]
    assert not any(found["one_history"] for found in result["histories"])


def test_a_bridge_of_another_chain_is_wrong(service, archives):
    other = sealed_channel(service, 2)
    lines = seals(other.live)
    result = archives.verify(archives.bridge(lines), expected=1)
    assert codes(result) == ["bridge.of_another"]
    result = archives.verify(archives.bridge(archives.lines + lines), expected=1)
    assert codes(result) == ["bridge.chain"]
    other.close()


def test_a_file_that_cannot_be_read_leaves_it_open(archives, tmp_path):
    for path in (tmp_path / "missing", tmp_path):
        assert codes(archives.verify(path, expected=2)) == ["file.not_readable"]
    first = archives.bridge(archives.lines[:1])
    result = archives.verify(first, tmp_path / "missing", expected=2)
    assert codes(result) == ["file.not_readable", "bridge.not_leading"]
    result = archives.verify(first, expected=2, paths=[tmp_path / "missing.zip"])
    assert codes(result) == ["file.not_readable", "bridge.of_another"]


def test_archives_that_touch_need_no_bridge(archives):
    next_one = archives.save("next.zip", archives.between[0])
    result = archives.verify(paths=[archives.paths[0], next_one])
    assert history(archives, result)["one_history"]
    assert codes(archives.verify(archives.bridge(archives.lines), paths=[archives.paths[0], next_one])) == []


def test_a_bridge_of_a_fork_differs_from_that_of_the_other(archives):
    """Two bridges that meet where no archive is."""
    two = [archives.bridge(archives.lines[:2], "a.ndjson"),
           archives.bridge(forged(archives.lines[2:], other_hash("previous_seal_hash")), "b.ndjson")]
    assert "bridge.differs" in codes(archives.verify(*two, expected=1))


# ---- in the archive ----

def lines_of(path):
    with zipfile.ZipFile(path) as opened:
        names = [name for name in opened.namelist() if name.startswith("history/")]
        return names, gzip.decompress(b"".join(map(opened.read, names))).splitlines() if names else []


def test_an_archive_carries_the_history_if_asked(archives):
    path = archives.save("history.zip", archives.second, seal_history=True)
    names, lines = lines_of(path)
    assert names == ["history/history-000001.ndjson.gz"]
    assert lines == seals(archives.channel.live, to=archives.between[-1]["last_sequence"])
    assert lines_of(archives.paths[1]) == ([], [])
    result = archives.verify(paths=[path, archives.paths[0]])
    assert history(archives, result)["one_history"] and history(archives, result)["first_sequence"] == 1
    assert result["checked"]["bridge_segments"] == len(lines)
    assert archives.verify(paths=[path])["histories"] == []
    assert check_archive.check([str(path), "--trust", str(archives.channel.trust)]).startswith("valid: ")
    assert check_archive.check([str(path), "--trust", str(archives.channel.trust), "--beside",
                                str(archives.paths[0])]).startswith("valid: ")


HISTORY_SENTENCES = (  # with and without the history, in English and Spanish
    (True, "en", "The archive has the seals of all segments from the first one of the channel"),
    (True, "es", "El archivo contiene los sellos de todos los segmentos desde el primero del canal"),
    (False, "en", "The archive does not have the seals of the segments before its own"),
    (False, "es", "El archivo no contiene los sellos de los segmentos anteriores a los suyos"))
PAGE_SENTENCES = (
    (True, "en", "That the archive has the seals of all segments from the first one of the channel"),
    (True, "es", "Que el archivo contiene los sellos de todos los segmentos desde el primero del canal"),
    (False, "en", "it does not have the seals of the segments before its own"),
    (False, "es", "no contiene los sellos de los segmentos anteriores a los suyos"))


@pytest.mark.parametrize("place, wanted, has_history", (("first", False, True), ("second", False, False), ("second", True, True)))
def test_report_page_and_verifier_say_whether_the_history_is_there(service, archives, tmp_path, place, wanted, has_history):
    client = archives.channel.live
    seal = archives.channel.documents[0] if place == "first" else archives.second
    record = client.certified(seq_from=seal["first_sequence"], seq_to=seal["last_sequence"],
                              **({"seal_history": True} if wanted else {}))
    path = tmp_path / "evidence.zip"
    path.write_bytes(client.download(record["evidence_url"]).expect(200).body)
    (file,) = archives.verify(paths=[path])["files"]
    assert file["seal_history"] is has_history
    texts = {}
    for report in record["reports"]:
        (language,) = report["languages"]
        pdf = tmp_path / f"{language}.pdf"
        pdf.write_bytes(client.download(report["url"]).expect(200).body)
        texts[language] = text_of(pdf)
        (file,) = verify(pdf, trust=archives.channel.trust, expected=0)["files"]
        assert file["seal_history"] is None
    for which, language, sentence in HISTORY_SENTENCES:
        assert (sentence in texts[language]) is (which is has_history), sentence
    anyone = Client(service)
    kind, body = form(("file", path.read_bytes(), "evidence.zip"))
    for which, language, sentence in PAGE_SENTENCES:
        page = anyone.post("/verify", body, headers={"Content-Type": kind, "Accept": "text/html",
                                                     "Accept-Language": language}).expect(200).body.decode()
        assert (sentence in page) is (which is has_history), sentence
    anyone.close()


def test_the_first_archive_of_a_chain_and_a_test_archive_have_no_history(archives, tmp_path):
    path = archives.save("first.zip", archives.channel.documents[0], seal_history=True)
    assert lines_of(path) == ([], [])
    client = archives.channel.test
    client.register_hash("0" * 64).expect(201)
    record = client.certified(seq_from=1, seq_to=1, seal_history=True)
    test = tmp_path / "test.zip"
    test.write_bytes(client.download(record["evidence_url"]).expect(200).body)
    assert lines_of(test) == ([], [])


@pytest.mark.parametrize("value", [0, 1, "true", [], {}])
def test_the_option_is_true_or_false(channel, value):
    answer = channel.live.certify(seq_from=1, seq_to=1, seal_history=value).expect(400)
    assert "seal_history" in answer.json["message"]


def test_a_key_is_for_the_same_option(channel):
    channel.test.register_hash("0" * 64).expect(201)
    def asked(client, **more):
        return client.certify(seq_from=1, seq_to=1, headers={"Idempotency-Key": "history"}, **more)
    for client in (channel.live, channel.test):
        first = asked(client, seal_history=True).expect(202)
        again = asked(client, seal_history=True).expect(202)
        assert again.json["certification_id"] == first.json["certification_id"]
        assert again.headers["Idempotent-Replayed"] == "true"
        for more in ({}, {"seal_history": False}, {"seal_history": None}):
            answer = asked(client, **more).expect(409)
            assert "seal_history" in answer.json["message"]
        client.settled(first.json["certification_id"])
