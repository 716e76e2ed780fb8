"""A client that guesses verification codes has ten guesses a minute; one with a code, or a file, is not affected."""

import itertools
import time

import pytest

from client import Client, form

JSON = {"Accept": "application/json"}
HTML = {"Accept": "text/html"}
LETTERS = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
addresses = (f"198.51.100.{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def guarded(start):
    return start(seal__interval="1s", service__trusted_proxies="127.0.0.0/8")


@pytest.fixture(scope="module")
def record(guarded):
    channel = guarded.new_channel("hash_only")
    channel.test.register_hash("0" * 64).expect(201)
    return channel.test.certified(seq_from=1, seq_to=1)


@pytest.fixture
def anyone(guarded):
    """Asks from an address of its own, as a proxy in front reports it."""
    with Client(guarded) as client:
        address = next(addresses)

        def ask(target, accept=JSON, **more):
            return client.get(target, headers={**accept, "X-Forwarded-For": address}, **more)
        ask.address = address
        ask.client = client
        yield ask


def guesses(prefix="SVC-2026-AAAA"):
    return (f"{prefix}-{''.join(letters)}" for letters in itertools.product(LETTERS, repeat=4))


def use_up(ask, ways=("/verify/{}",), count=60):
    """The answers to that number of guesses, and how many more than ten may have come through meanwhile."""
    started = time.monotonic()
    answers = [ask(ways[place % len(ways)].format(code))
               for place, code in enumerate(itertools.islice(guesses(), count))]
    return answers, int((time.monotonic() - started) / 6) + 1


@pytest.mark.parametrize("ways", [("/verify/{}",), ("/verify?code={}",), ("/verify/{}", "/verify?code={}")])
def test_an_address_has_ten_wrong_codes_a_minute(guarded, record, anyone, ways):
    answers, more = use_up(anyone, ways)
    missing = [answer for answer in answers if answer.status == 404]
    assert 10 <= len(missing) <= 10 + more
    refused = [answer for answer in answers if answer.status == 429]
    assert len(missing) + len(refused) == len(answers)
    answer = refused[0].expect(429, "rate_limited")
    assert 1 <= int(answer.headers["Retry-After"]) <= 6
    assert answer.headers["RateLimit-Limit"] == "10" and answer.headers["RateLimit-Remaining"] == "0"
    assert "wrong verification codes from this address" in answer.message


def test_a_page_says_so_in_both_languages(anyone):
    use_up(anyone, count=12)
    for language, words in (("en", "wrong verification codes from this address"),
                            ("es", "códigos de verificación erróneos desde esta dirección")):
        page = anyone("/verify/SVC-2026-ZZZZ-ZZZZ", HTML, language=language).expect(429)
        assert page.headers.get_content_type() == "text/html" and page.headers["Retry-After"]
        assert words in page.body.decode()


def test_a_code_that_exists_costs_nothing(record, anyone):
    for _ in range(15):
        for target in (f"/verify/{record['verification_code']}",
                       f"/verify?code={record['verification_code'].lower()}"):
            assert anyone(target).expect(200).json["certification_id"] == record["certification_id"]
    missing = sum(answer.status == 404 for answer in use_up(anyone, count=10)[0])
    assert missing == 10


def test_nothing_is_said_of_a_right_code_after_too_many_wrong_ones(guarded, record, anyone):
    use_up(anyone, count=14)
    anyone(f"/verify/{record['verification_code']}").expect(429, "rate_limited")
    other = {**JSON, "X-Forwarded-For": next(addresses)}
    anyone.client.get(f"/verify/{record['verification_code']}", headers=other).expect(200)
    # What the client wrote in front of what the proxy saw is not believed.
    forged = {**JSON, "X-Forwarded-For": f"203.0.113.9, {anyone.address}"}
    anyone.client.get(f"/verify/{record['verification_code']}", headers=forged) \
        .expect(429, "rate_limited")


def test_all_else_goes_on(guarded, record, anyone):
    use_up(anyone, count=14)
    own = {"X-Forwarded-For": anyone.address}
    anyone("/verify", HTML).expect(200)
    digest = record["reports"][0]["sha256"]
    anyone(f"/verify?sha256={digest}").expect(200)
    anyone("/verify?sha256=" + "0" * 64).expect(404)
    anyone("/verify/nothing").expect(404)
    report = anyone.client.download(record["reports"][0]["url"], headers=own).expect(200).body
    content_type, body = form(("file", "r.pdf", "application/pdf", report))
    anyone.client.post("/verify", body, headers={"Content-Type": content_type, **JSON, **own}).expect(200)
    anyone("/v1/signers").expect(200)
    anyone("/console/sign-in", HTML).expect(200)


def test_what_cannot_be_a_code_costs_nothing(anyone):
    for _ in range(4):
        for target in ("/verify/x", "/verify/CERT-2026-0000001", "/verify?code=", "/verify?code=%22%3E",
                       "/verify?sha256=" + "0" * 64):
            anyone(target).expect(404, "not_found")
    assert all(answer.status == 404 for answer in use_up(anyone, count=10)[0])


def test_no_other_way_asks_for_a_code(guarded, record):
    """/verify takes files by POST, and looks for them by their digest alone."""
    code = record["verification_code"]
    anyone = Client(guarded)
    anyone.post(f"/verify?code={code}", b"", headers=JSON).expect(400, "validation_error")
    anyone.post("/verify", f"code={code}".encode(),
                headers={"Content-Type": "application/x-www-form-urlencoded", **JSON}).expect(400)
    for target in (f"/v1/certifications?code={code}", f"/v1/certifications/{code}"):
        assert anyone.get(target).status == 401
    for target in (f"/v1/downloads/{code}/evidence.zip", f"/v1/verify/{code}", f"/v1/verifications/{code}"):
        anyone.get(target).expect(404, "not_found")


def test_a_setting_of_0_lifts_the_bound(start):
    service = start(rate__wrong_codes=0)
    anyone = Client(service)
    for code in itertools.islice(guesses(), 30):
        anyone.get(f"/verify/{code}", headers=JSON).expect(404, "not_found")
