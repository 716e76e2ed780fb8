"""Walks through the interface with the client that openapi-generator made for Python.

usage: walk.py BASE_URL CONTENT_KEY DIGEST_KEY LATER_URL
"""

import datetime
import hashlib
import json
import sys
import time
import urllib.parse

import constancia_api as api

PATIENCE_S = 300
WHEN = datetime.datetime(2026, 1, 31, 8, 30, 0, 123456, datetime.timezone.utc)
FILE = bytes(range(256)) * 64


def client(key, host=sys.argv[1]):
    return api.ApiClient(api.Configuration(host=host, access_token=key))


def public_pages():
    """Outside of /v1; the addresses in the description are those of an installation like this one."""
    return api.PublicApi(api.ApiClient(api.Configuration(
        host=sys.argv[1].removesuffix("/v1"), ignore_operation_servers=True)))


def register(events):
    payload = api.EventPayload(client_ref="json", payload={"total": "1210.00", "lines": [1, {}]},
                               occurred_at=WHEN)
    first = events.register_event_with_http_info(api.EventDeclaration(payload))
    assert first.status_code == 201 and first.data.sequence == 1
    assert first.data.occurred_at == WHEN and first.data.received_at.tzinfo
    again = events.register_event_with_http_info(api.EventDeclaration(payload))
    assert again.status_code == 200 and again.headers["Idempotent-Replayed"] == "true"
    assert again.data == first.data

    file = events.register_file("file", ("scan.bin", FILE), occurred_at=WHEN)
    assert file.hash == hashlib.sha256(FILE).hexdigest() and file.occurred_at == WHEN
    assert events.get_event_content(file.event_id) == FILE
    assert json.loads(events.get_event_content(first.data.event_id)) == payload.payload
    proof = events.get_event(first.data.event_id).proof
    assert len(proof.previous_chain_hash) == 64


def register_digest(events):
    digest = hashlib.sha512(FILE).hexdigest()
    event = events.register_event(api.EventDeclaration(
        api.EventHash(client_ref="digest", hash=digest, hash_alg="sha-512")))
    assert (event.hash, event.hash_alg, event.modality) == (digest, "sha-512", "hash_only")
    kept = json.loads(event.to_json())  # as a receipt: with the members that are null
    assert kept["occurred_at"] is None and kept["timestamp"]["sealed_at"] is None, kept


def list_all(events):
    references, cursor = [], None
    while True:
        page = events.list_events(limit=1, cursor=cursor)
        references += [event.client_ref for event in page.data]
        assert page.has_more == (page.next_cursor is not None)
        if not page.has_more:
            break
        cursor = page.next_cursor
    assert references == ["json", "file"], references


def certify(certifications):
    wanted = api.CertificationRequest(seq_from=1, seq_to=2)
    accepted = certifications.request_certification(wanted)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = certifications.get_certification(accepted.certification_id)
        if now.status != "processing":
            break
        assert time.monotonic() < deadline, now
        time.sleep(0.5)
    assert now.status == "completed" and now.event_count == 2, now
    listed = certifications.list_certifications(status="completed").data
    assert [each.certification_id for each in listed] == [now.certification_id]
    return now


def download(public, certification):
    for report in certification.reports:
        link = urllib.parse.urlsplit(report.url)
        query = urllib.parse.parse_qs(link.query)
        content = public.download(*link.path.split("/")[-2:], expires=int(query["expires"][0]),
                                  mac=query["mac"][0])
        assert content.startswith(b"%PDF-")
        assert hashlib.sha256(content).hexdigest() == report.sha256
    assert public.list_signers().data


def verify(pages, certification):
    found = pages.verify_code(certification.verification_code)
    assert found.certification_id == certification.certification_id and found.documents
    found = pages.verify(sha256=certification.reports[0].sha256)
    assert found.certification_id == certification.certification_id
    not_found("not_found", pages.verify_code, "SVC-2026-AAAA-AAAA")


def not_found(code, ask, identifier):
    try:
        ask(identifier)
    except api.exceptions.NotFoundException as refusal:
        assert refusal.status == 404 and refusal.data.code == code and refusal.data.message
    else:
        raise AssertionError("found what is not there")


def read_errors(events, digests):
    not_found("not_found", events.get_event, "evt_none")
    later = api.EventsApi(client(None, sys.argv[4]))
    not_found("code_of_a_later_version", later.get_event, "evt_none")
    try:
        digests.register_event(api.EventDeclaration(
            api.EventHash(client_ref="digest", hash="0" * 64, hash_alg="sha-256")))
    except api.exceptions.ConflictException as refusal:
        assert refusal.data.code == "client_ref_conflict"
    else:
        raise AssertionError("another declaration was taken")


content, digests = client(sys.argv[2]), api.EventsApi(client(sys.argv[3]))
events = api.EventsApi(content)
register(events)
register_digest(digests)
list_all(events)
certification = certify(api.CertificationsApi(content))
download(api.PublicApi(content), certification)
verify(public_pages(), certification)
read_errors(events, digests)
balance = api.AccountApi(content).get_balance()
assert balance.operational and api.AccountApi(content).get_channel().current_config.version == 1
