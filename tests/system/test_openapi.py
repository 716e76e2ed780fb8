"""The service's own description of its interface: valid, complete, and implemented."""

import jsonschema
import pytest

import client as names
from client import Client, Description, run

PATHS = {
    "/events": {"get", "post"}, "/events/{event_id}": {"get"},
    "/events/{event_id}/content": {"get"}, "/events/{event_id}/evidence-record": {"get"},
    "/channel": {"get"}, "/account/balance": {"get"},
    "/certifications": {"get", "post"},
    "/certifications/{certification_id}": {"get"},
}
ANY = {"400", "408", "413", "429", "431", "500", "503"}  # whatever the operation
COMMON = {"401", "403", *ANY}
STATUSES = {
    ("/events", "post"): {"201", "200", "400", "402", "409", "413", "422"},
    ("/events", "get"): {"200", "400"}, ("/events/{event_id}", "get"): {"200", "404"},
    ("/events/{event_id}/content", "get"): {"200", "206", "304", "404", "416"},
    ("/events/{event_id}/evidence-record", "get"): {"200", "206", "304", "404", "416"},
    ("/channel", "get"): {"200"},
    ("/account/balance", "get"): {"200"}, ("/certifications", "post"): {"202", "400", "402", "409"},
    ("/certifications", "get"): {"200", "400"},
    ("/certifications/{certification_id}", "get"): {"200", "404"},
}
RECORDS = {
    "Event": names.EVENT, "EventTimestamp": names.TIMESTAMP, "Channel": names.CHANNEL,
    "ChannelConfig": names.CONFIG, "Certification": names.CERTIFICATION,
    "CertificationRange": names.RANGE, "CertificationReport": names.REPORT,
    "ContentPart": names.PART, "AccountBalance": names.BALANCE, "Error": names.ERROR,
}
EARLY, LATE = "2000-01-01T00:00:00.000000Z", "2100-01-01T00:00:00.000000Z"


@pytest.fixture(scope="module")
def description(service):
    return service.description


@pytest.fixture(scope="module")
def notices(service):
    return Description(Client(service).get("/v1/webhooks.yaml").expect(200).body)


def walk(node, place="#"):
    if isinstance(node, dict):
        for name, value in node.items():
            yield place, name, value
            yield from walk(value, f"{place}/{name}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from walk(value, f"{place}/{number}")


def test_it_is_served_without_a_key_as_yaml(service):
    answer = Client(service).get("/v1/openapi.yaml").expect(200)
    assert answer.headers.get_content_type() in ("application/yaml", "application/openapi+yaml",
                                                 "text/yaml")


def test_it_has_the_structure_of_openapi_3_1(description):
    document = description.document
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["title"] and document["info"]["version"] == "1.0-draft"
    identifiers = []
    for path, item in document["paths"].items():
        assert path.startswith("/")
        for method, operation in item.items():
            if method not in ("get", "post", "put", "delete", "patch", "head", "options"):
                assert method in ("parameters", "summary", "description", "servers"), method
                continue
            identifiers.append(operation["operationId"])
            assert operation["responses"]
            places = {name[1:-1] for name in path.split("/") if name.startswith("{")}
            parameters = [description.resolve(each) for each in
                          item.get("parameters", []) + operation.get("parameters", [])]
            assert {each["name"] for each in parameters if each["in"] == "path"} == places, path
            for each in parameters:
                assert each["in"] in ("path", "query", "header") and "schema" in each
                assert each["in"] != "path" or each["required"] is True
            for status, response in operation["responses"].items():
                assert status == "default" or len(status) == 3
                assert description.resolve(response)["description"]
    assert len(identifiers) == len(set(identifiers))


def test_that_of_notices_is_served_beside_it_and_says_the_same_of_what_both_name(service, notices):
    answer = Client(service).get("/v1/webhooks.yaml").expect(200)
    assert answer.headers.get_content_type() == "application/yaml"
    assert "paths" not in notices.document and "webhooks" not in service.description.document
    common = service.description.document["components"]["schemas"]
    shared = set(common) & set(notices.document["components"]["schemas"])
    assert {"Time", "Mode"} <= shared
    for name in shared:
        assert notices.document["components"]["schemas"][name] == common[name], name


@pytest.mark.parametrize("which", ["description", "notices"])
def test_every_reference_leads_somewhere_and_every_schema_is_a_schema(which, request):
    description = request.getfixturevalue(which)
    references = [value for _, name, value in walk(description.document) if name == "$ref"]
    assert references
    for reference in references:
        assert reference.startswith("#/")
        description.resolver.resolve(reference)
    for place, name, value in walk(description.document):
        if name == "schema":
            jsonschema.Draft202012Validator.check_schema(value)
    for schema in description.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_operation_and_status_of_the_interface_is_described(description):
    paths = description.document["paths"]
    for path, methods in PATHS.items():
        assert methods <= set(paths[path]), path
        for method in methods:
            described = set(paths[path][method]["responses"])
            wanted = STATUSES[path, method] | COMMON
            assert wanted <= described, (path, method, wanted - described)


def test_a_body_that_has_an_operation_of_its_own_is_answered_like_the_others(description):
    paths = description.document["paths"]
    own = [path for path in paths if "#" in path]
    assert own == ["/events#file"]
    for path in own:
        plain = paths[path.partition("#")[0]]
        assert set(paths[path]) <= set(plain)
        for method, operation in paths[path].items():
            for part in ("tags", "parameters", "responses"):
                assert operation[part] == plain[method][part], (path, part)
            assert not set(operation["requestBody"]["content"]) & \
                set(plain[method]["requestBody"]["content"])


def test_what_any_operation_can_answer_is_described_of_each(description):
    for path, item in description.document["paths"].items():
        for method in {"get", "post"} & set(item):
            described = set(item[method]["responses"])
            assert ANY <= described, (path, method, ANY - described)
            if item[method].get("security") != []:
                assert COMMON <= described, (path, method, COMMON - described)


def test_every_record_has_exactly_the_members_of_the_interface(description):
    schemas = description.document["components"]["schemas"]
    for name, members in RECORDS.items():
        schema = schemas[name]
        assert set(schema["properties"]) - {"proof"} == members, name
    assert set(schemas["Event"]["properties"]["status"]["enum"]) == \
        {"registered", "unpaid", "test"}
    kinds = description.resolve(schemas["EventTimestamp"])["properties"]["type"]["enum"]
    assert set(kinds) == {"individual", "batch", "pending", "simulated"}
    assert set(schemas["Certification"]["properties"]["status"]["enum"]) == \
        {"processing", "completed", "failed"}
    codes = description.resolve(schemas["Error"]["properties"]["code"])
    assert codes["type"] == "string" and "enum" not in codes, "a client takes codes of later versions"
    codes = codes["x-extensible-enum"]
    assert set(codes) == set(names.STATUSES)


def test_a_schema_refuses_what_is_not_the_record(description, shared):
    """The judge itself: a schema that accepts everything would prove nothing."""
    event = shared.live.register().expect(201).json
    schemas = description.document["components"]["schemas"]
    validator = description.validator(schemas["Event"])
    validator.validate(event)
    for name, wrong in (("sequence", "1"), ("received_at", 5),
                        ("received_at", "2026-01-31T08:30:00.123Z"), ("status", "paid"),
                        ("hash", None), ("timestamp", None), ("config_version", "1")):
        assert list(validator.iter_errors({**event, name: wrong})), name
    for name in names.EVENT - {"occurred_at", "hash_alg", "timestamp"}:
        missing = {key: value for key, value in event.items() if key != name}
        assert list(validator.iter_errors(missing)), name


RANGES = [
    ({"seq_from": 1, "seq_to": 1}, True), ({"from": EARLY, "to": LATE}, True),
    ({"from": EARLY, "to": LATE, "seq_from": None, "seq_to": None}, True),
    ({"from": None, "to": None, "seq_from": 1, "seq_to": 1}, True),
    ({}, False), ({"from": EARLY}, False), ({"to": LATE}, False), ({"seq_from": 1}, False),
    ({"seq_to": 1}, False), ({"from": EARLY, "seq_to": 1}, False),
    ({"from": EARLY, "to": None}, False), ({"seq_from": 1, "seq_to": None}, False),
    ({"from": None, "to": None, "seq_from": None, "seq_to": None}, False),
    ({"from": EARLY, "to": LATE, "seq_from": 1, "seq_to": 1}, False),
    ({"from": EARLY, "to": LATE, "seq_from": 1}, False),
    ({"from": EARLY, "seq_from": 1, "seq_to": 1}, False),
    ({"seq_from": 0, "seq_to": 1}, False), ({"seq_from": 1, "seq_to": 1, "more": 1}, False),
]


@pytest.mark.parametrize("body,taken", RANGES, ids=[str(body) for body, _ in RANGES])
def test_what_a_certification_asks_for_is_described_as_it_is_taken(description, shared, body, taken):
    shared.live.register().expect(201)
    schema = description.document["components"]["schemas"]["CertificationRequest"]
    assert description.validator(schema).is_valid(body) == taken
    answer = shared.live.post("/v1/certifications", body)
    assert answer.status == (202 if taken else 400), answer


REFERENCES = ["a", "\u00f1" * 127, " ", "\u00a0", "\u2028", "\U0001f600", "a\nb", "a\x00", "\x1f",
              "\x7f", "\x80", "\x9f", "", "x" * 255, "x" * 256]


@pytest.mark.parametrize("reference", REFERENCES, ids=ascii)
def test_a_reference_is_described_as_it_is_taken(description, shared, reference):
    schema = description.document["components"]["schemas"]["ClientRef"]
    answer = shared.live.register({}, reference)
    assert answer.status in (200, 201, 400), answer
    assert description.validator(schema).is_valid(reference) == (answer.status != 400)


def test_the_program_tells_its_version():
    done = run("version")
    assert done.returncode == 0 and done.stdout.strip()


@pytest.mark.parametrize("name", ["Event", "EventTimestamp", "ChannelConfig", "CertificationRange", "Certification",
                                  "Verification", "FileIssued", "IssuedDocument"])
def test_a_record_requires_every_member_because_all_are_always_sent(description, name):
    schema = description.document["components"]["schemas"][name]
    assert set(schema["required"]) == set(schema["properties"])


def test_what_may_be_null_is_described_in_the_one_form_that_the_overlay_knows(description):
    for place, name, value in walk(description.document["components"]["schemas"]):
        if name != "type" or "/CertificationRequest" in place:  # whose conditions name null alone
            continue
        assert value != "null" and (not isinstance(value, list) or value[1:] == ["null"]), place
