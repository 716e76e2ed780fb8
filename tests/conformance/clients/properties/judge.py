"""What words say of the interface and schemas cannot, for the property tester (SCHEMATHESIS_HOOKS).

The environment tells of the key that is used: CONSTANCIA_MODALITY (content, hash_only) and
CONSTANCIA_MODE (live, test).
"""

import datetime
import os

import schemathesis
from schemathesis.generation import GenerationMode

MODALITY = os.environ["CONSTANCIA_MODALITY"]
LIVE = os.environ["CONSTANCIA_MODE"] == "live"
SAFE_INTEGER = 2 ** 53 - 1


@schemathesis.hook
def before_load_schema(context, schema):
    """The description is that of every key; this is what it says of this one."""
    if LIVE:  # "Ignored with a live key": whatever value it has
        header = schema["components"]["parameters"]["TestScenario"]
        header["schema"] = {"type": "string"}
    else:  # a refusal that is asked for says nothing about the request or the service
        scenarios = schema["components"]["parameters"]["TestScenario"]["schema"]
        forced = ("temporarily_unavailable", "suspended", "account_disabled")
        scenarios["enum"] = [one for one in scenarios["enum"] if one not in forced]
    declaration = schema["components"]["schemas"]["EventDeclaration"]
    declared = "EventPayload" if MODALITY == "content" else "EventHash"
    declaration["oneOf"] = [{"$ref": f"#/components/schemas/{declared}"}]
    examples = schema["paths"]["/events"]["post"]["requestBody"]["content"]["application/json"]
    examples["examples"].pop("hash" if MODALITY == "content" else "payload")
    if MODALITY != "content":
        del schema["paths"]["/events#file"]


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def time_of(text):
    return datetime.datetime.fromisoformat(text.upper().replace("Z", "+00:00"))


def listed(query):
    """Cursors are the service's to make, and its answers' to hand on. A range is in order, and a digest as long as its
    algorithm's."""
    if "cursor" in query:
        return False
    if "hash_alg" in query and len(query.get("hash", "")) != {"sha-256": 64, "sha-512": 128}[query["hash_alg"]]:
        return False
    for first, last, order in (("from", "to", time_of), ("seq_from", "seq_to", int)):
        if first in query and last in query and order(query[first]) > order(query[last]):
            return False
    return True


def places(query):
    """A place in a chain is a sequence number or a time, and a range is in order."""
    try:
        found = [int(text) if text.isdigit() else time_of(text) for text in query.values()]
        moments = [one.timestamp() if isinstance(one, datetime.datetime) else one for one in found]
    except (OverflowError, ValueError):
        return False
    return len(found) < 2 or type(found[0]) is not type(found[1]) or (
        moments == sorted(moments, reverse=next(iter(query)) == "to"))


def declared(body):
    """`client_ref` has 255 bytes at most, not characters; integers in a payload are safe ones; a
    digest is as long as its algorithm's."""
    if len(str(body.get("client_ref", "")).encode(errors="replace")) > 255:
        return False
    if MODALITY != "content":
        return len(body["hash"]) == {"sha-256": 64, "sha-512": 128}[body["hash_alg"]]
    return all(abs(each) <= SAFE_INTEGER for each in numbers(body.get("payload", {})))


def said_in_a_form(body):
    """There everything is text: `true` is as good a `client_ref` as "true"."""
    return not isinstance(body, dict) or isinstance(body.get("client_ref", ""), (str, dict, list))


@schemathesis.serializer("application/x-ndjson")
def lines(_context, value):
    """A text is sent as it is."""
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


@schemathesis.hook
def filter_case(context, case):
    """Leaves out what is taken for valid because no schema can say that it is not."""
    if not case.meta:
        return True
    if case.meta.generation.mode != GenerationMode.POSITIVE:
        return case.operation.label != "POST /events#file" or said_in_a_form(case.body)
    if case.operation.label in ("GET /events", "GET /certifications", "GET /notices"):
        return listed(case.query or {})
    if case.operation.label == "GET /channel/seals":
        return places(case.query or {})
    if case.operation.label == "POST /verify":  # `minLength` of a file breaks a generated client
        return not isinstance(case.body, dict) or case.body.get("file") not in ("", b"")
    if case.operation.label == "GET /verify":  # one thing is looked up at a time
        return not {"code", "sha256"} <= set(case.query or {})
    if case.operation.label in ("POST /events", "POST /events#file") and isinstance(case.body, dict):
        return declared(case.body)
    return True
