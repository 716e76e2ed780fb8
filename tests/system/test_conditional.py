"""Data that a client has already is not sent again, and an interrupted download is resumed:
If-None-Match, If-Range and Range on content, downloads and evidence records."""

import hashlib

import pytest

from test_http import raw

pytestmark = pytest.mark.both_stores

BROKEN = ["x", '"', 'W/', 'W/"', "W/x", '"a" "b"', ",", ",,", '"unclosed', "\xff\xfe", '""',
          "*,*", "* *", '"' + "a" * 3000 + '"', "," * 3000]


class Stored:
    """A thing that is served: how it is fetched, and what the whole answer has."""

    def __init__(self, fetch, kind, language=None):
        self.fetch, self.kind, self.language = fetch, kind, language
        self.whole = fetch("GET", {}).expect(200)
        self.tag = f'"{hashlib.sha256(self.whole.body).hexdigest()}"'

    def get(self, **headers):
        return self.fetch("GET", {name.replace("_", "-"): value
                                  for name, value in headers.items()})


def by_key(client, target, kind):
    return Stored(lambda method, headers: client.call(method, target, headers=headers), kind)


@pytest.fixture(scope="module")
def stored(service):
    channel = service.new_channel()
    live = channel.live
    small = live.register({"a": "x" * 100}).expect(201).json["event_id"]
    large = live.register({"a": "x" * 100000}).expect(201).json["event_id"]
    file = live.register_file(bytes(range(256)) * 5000, name="ñ.bin").expect(201).json["event_id"]
    done = live.certified(seq_from=1, seq_to=3)
    assert done["status"] == "completed"

    def link(url, kind, language=None):
        return Stored(lambda method, headers: live.download(url, method, headers), kind, language)
    things = {
        "small": by_key(live, f"/v1/events/{small}/content", "application/json"),
        "large": by_key(live, f"/v1/events/{large}/content", "application/json"),
        "file": by_key(live, f"/v1/events/{file}/content", "application/octet-stream"),
        "record": by_key(live, f"/v1/events/{small}/evidence-record", "application/octet-stream"),
        "archive": link(done["evidence_url"], "application/zip", "en, es"),
        "part": link(done["content_parts"][0]["url"], "application/zip"),
        **{report["languages"][0]: link(report["url"], "application/pdf", report["languages"][0])
           for report in done["reports"]},
    }
    yield things
    channel.close()


THINGS = pytest.mark.parametrize("name", ["small", "large", "file", "record", "archive", "part",
                                          "es", "en"])


@THINGS
def test_the_tag_is_the_digest_of_the_whole(stored, name):
    thing = stored[name]
    for answer in (thing.whole, thing.fetch("HEAD", {}).expect(200),
                   thing.get(Range="bytes=1-2").expect(206)):
        assert answer.headers.get_all("ETag") == [thing.tag]
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert answer.headers["Content-Type"] == thing.kind
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Disposition"] == thing.whole.headers["Content-Disposition"]


@THINGS
def test_what_the_client_has_is_not_sent_again(stored, name):
    thing = stored[name]
    for value in (thing.tag, f"W/{thing.tag}", "*", f'"other", {thing.tag}',
                  f'"a,b",,W/{thing.tag} ', f" , {thing.tag}, broken"):
        for method in ("GET", "HEAD"):
            answer = thing.fetch(method, {"If-None-Match": value}).expect(304)
            assert answer.body == b"" and answer.headers["ETag"] == thing.tag, value
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.headers["Vary"] == "Accept-Language"
            assert answer.headers["Content-Type"] is None
            assert answer.headers["Content-Length"] in (None, str(len(thing.whole.body)))
    # It comes before any range, even one that there is not.
    thing.get(If_None_Match=thing.tag, Range="bytes=0-0").expect(304)
    thing.get(If_None_Match="*", Range="bytes=99999999-", If_Range='"x"').expect(304)


@THINGS
def test_anything_else_is_sent_whole_and_nothing_broken_is_a_fault(stored, name):
    thing = stored[name]
    values = ['"other"', thing.tag[1:-1], thing.tag[:-1], thing.tag.upper(), f"w/{thing.tag}",
              f'broken, {thing.tag}', f'"x" {thing.tag}', *BROKEN]
    for value in values:
        answer = thing.get(If_None_Match=value.encode("latin-1"))
        assert answer.status == 200 and answer.body == thing.whole.body, (value, answer.status)


@THINGS
def test_a_part_is_of_what_the_client_began_to_fetch_or_it_gets_the_whole(stored, name):
    thing = stored[name]
    body = thing.whole.body
    size = len(body)
    for value, start, end in (("bytes=0-0", 0, 1), ("bytes=7-", 7, size),
                              ("bytes=-5", size - 5, size), (f"bytes=3-{size + 9}", 3, size)):
        for more in ({}, {"If_Range": thing.tag}, {"If_None_Match": '"other"'}):
            answer = thing.get(Range=value, **more).expect(206)
            assert answer.body == body[start:end]
            assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{size}"
            assert answer.headers["Content-Length"] == str(end - start)
    for condition in (f"W/{thing.tag}", '"other"', "*", f"{thing.tag}, {thing.tag}", "",
                      "Wed, 21 Oct 2026 07:28:00 GMT", "Wed, 21 Oct 2037 07:28:00 GMT", *BROKEN):
        answer = thing.get(Range="bytes=1-2", If_Range=condition.encode("latin-1")).expect(200)
        assert answer.body == body and answer.headers["Content-Range"] is None, condition
        # A range that there is not is none either, when the condition fails.
        thing.get(Range=f"bytes={size}-", If_Range=condition.encode("latin-1")).expect(200)
    assert thing.get(If_Range=thing.tag).expect(200).body == body
    beyond = thing.get(Range=f"bytes={size}-", If_Range=thing.tag).expect(416, "validation_error")
    assert beyond.headers["Content-Range"] == f"bytes */{size}"
    assert beyond.headers["Content-Type"] == "application/json"


@THINGS
def test_head_knows_no_ranges(stored, name):
    thing = stored[name]
    answer = thing.fetch("HEAD", {"Range": "bytes=1-2"}).expect(200)
    assert answer.headers["Content-Length"] == str(len(thing.whole.body))
    thing.fetch("HEAD", {"Range": "bytes=99999999-"}).expect(200)


@THINGS
def test_the_language_is_that_of_what_is_sent(stored, name):
    thing = stored[name]
    for asked in ("en", "es"):
        for more in ({}, {"Range": "bytes=0-9"}, {"If_None_Match": thing.tag}):
            answer = thing.get(Accept_Language=asked, **more)
            assert answer.headers.get_all("Content-Language") == [thing.language or asked]
        beyond = thing.get(Accept_Language=asked, Range="bytes=99999999-").expect(416)
        assert beyond.headers["Content-Language"] == asked


def test_several_lines_are_one_list(service, stored):
    key = service.new_channel()
    event = key.live.register({"a": 1}).expect(201).json
    tag = f'"{event["hash"]}"'
    for lines, status in ((f'If-None-Match: "a"\nIf-None-Match: {tag}\n', 304),
                          (f'If-None-Match: {tag}\nIf-None-Match: x\n', 304),
                          ('If-None-Match: "a"\nIf-None-Match: "b"\n', 200),
                          ('If-None-Match: "a"\n' * 90, 200),
                          (f"Range: bytes=0-0\nIf-Range: {tag}\n", 206),
                          (f'Range: bytes=0-0\nIf-Range: {tag}\nIf-Range: {tag}\n', 200)):
        answer = raw(service, f"GET /v1/events/{event['event_id']}/content HTTP/1.1\nHost: x\n"
                     f"Connection: close\nAuthorization: Bearer {key.live.key}\n{lines}\n")
        assert answer.status == status, (lines[:80], answer)
    key.close()


def test_what_is_not_there_is_not_found_whatever_the_client_has(service, stored):
    channel = service.new_channel("hash_only")
    event = channel.live.register_hash("0" * 64).expect(201).json
    for target in (f"/v1/events/{event['event_id']}/content", "/v1/events/evt_none/content",
                   "/v1/downloads/CERT-2026-0000001/a.pdf?expires=1&mac=2"):
        for headers in ({"If-None-Match": "*"}, {"Range": "bytes=0-0"}):
            channel.live.get(target, headers=headers).expect(404, "not_found")
    channel.close()
