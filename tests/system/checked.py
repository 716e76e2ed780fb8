"""The verifier's results for files, as JSON, checked against the interface's description of POST /verify."""

import functools
import pathlib

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def close(node):
    """No other members than those described: more may come, but not without a word about them."""
    if isinstance(node, dict):
        if "properties" in node:
            node["additionalProperties"] = False
        for each in node.values():
            close(each)
    elif isinstance(node, list):
        for each in node:
            close(each)


@functools.cache
def described(of_service=False):
    """The description of POST /verify's answer; without what a service adds it is that of `verify --json`."""
    document = yaml.load((ROOT / "docs" / "openapi.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    schemas = document["components"]["schemas"]
    if not of_service:
        for name in ("certification_id", "origin"):
            schemas["CheckedFile"]["required"].remove(name)
            del schemas["CheckedFile"]["properties"][name]
    for name in ("FileVerification", "FileVerdict", "FileFinding", "CheckedFile", "FileParty", "FileEvidenceRecord",
                 "FileDelay"):
        close(schemas[name])
    return document


def check_described(result, of_service=False):
    document = described(of_service)
    jsonschema.Draft202012Validator({"$ref": "#/components/schemas/FileVerification"},
                                    resolver=jsonschema.RefResolver("", document)).validate(result)
    codes = document["components"]["schemas"]["FileFinding"]["properties"]["code"]["x-extensible-enum"]
    for finding in result["findings"] + result["warnings"]:
        assert finding["code"] in codes
        assert (finding["severity"] == "warning") == (finding in result["warnings"])
        assert finding["what"] != finding["what_es"]
        if finding["detail"] is not None:
            assert finding["what"].endswith(f": {finding['detail']}")
            assert finding["what_es"].endswith(f": {finding['detail']}")
