"""Generates the example requests from an OpenAPI description. A new operation gets its examples
automatically."""
import dataclasses
import re
import urllib.parse

METHODS = ("get", "post", "put", "patch", "delete")


@dataclasses.dataclass
class File:
    """A file to upload, by its name in the working directory."""
    name: str


@dataclasses.dataclass
class Request:
    title: str  # distinguishes it from other examples of the operation; may be ""
    method: str
    target: str  # path and query, after the address of the installation
    secured: bool
    headers: dict
    json: object = None
    form: dict = None  # text or File, by field
    saves: str = None  # file for the response body; None: text, which is printed


def resolve(document, node):
    while isinstance(node, dict) and "$ref" in node:
        found = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        node = found
    return node


def sample(document, schema, name):
    """Returns a sample value for the schema, from its examples, constants and types."""
    schema = resolve(document, schema)
    for key in ("example", "const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    for key in ("oneOf", "anyOf", "allOf"):
        if schema.get(key):
            return sample(document, schema[key][0], name)
    types = schema.get("type", "object")
    kind = types if isinstance(types, str) else types[0]
    if kind == "object":
        return {each: sample(document, member, each)
                for each, member in schema.get("properties", {}).items()
                if each in schema.get("required", ())}
    if kind == "array":
        return [sample(document, schema.get("items", {}), name)]
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    if schema.get("format") == "binary":
        return File("document.pdf")
    if schema.get("format") == "date-time":
        return "2026-01-31T09:30:00Z"
    hexadecimal = re.fullmatch(r"\^\[0-9A?-?F?a-f\]\{(\d+)\}\$", schema.get("pattern", ""))
    return "0" * int(hexadecimal[1]) if hexadecimal else name.upper()


def example_of(document, described, name):
    """Returns the example of a parameter."""
    if "example" in described:
        return described["example"]
    for example in described.get("examples", {}).values():
        return resolve(document, example)["value"]
    return sample(document, described["schema"], name)


def target_of(document, path, item, operation, values):
    server = (operation.get("servers") or item.get("servers") or document["servers"])[0]["url"]
    query = []
    for parameter in parameters_of(document, item, operation):
        name = parameter["name"]
        told = "example" in parameter or "examples" in parameter
        value = values[name] if name in values else example_of(document, parameter, name)
        if parameter["in"] == "path":
            path = path.replace("{" + name + "}", urllib.parse.quote(str(value), safe=""))
        elif parameter["in"] == "query" and (parameter.get("required") or told or name in values):
            query.append((name, value))
    target = server.replace("{public_url}", "") + path.partition("#")[0]
    return target + ("?" + urllib.parse.urlencode(query) if query else "")


def parameters_of(document, item, operation):
    return [resolve(document, each)
            for each in item.get("parameters", []) + operation.get("parameters", [])]


def bodies_of(document, operation):
    """Returns (title, media type, value) of each example body, as JSON where that is possible."""
    body = resolve(document, operation.get("requestBody", {}))
    described = sorted(body.get("content", {}).items(), key=lambda pair: pair[0] != "application/json")
    for media_type, content in described[:1]:
        if "example" in content:
            return [("", media_type, content["example"])]
        if content.get("examples"):
            examples = [resolve(document, each) for each in content["examples"].values()]
            return [(each.get("summary", ""), media_type, each["value"]) for each in examples]
        return [("", media_type, sample(document, content["schema"], "body"))]
    return [("", None, None)]


def answer_types(document, operation):
    """Returns the media types of successful responses."""
    for status, response in sorted(operation["responses"].items()):
        if status.startswith("2"):
            return list(resolve(document, response).get("content", {}))
    return []


def is_text(media_type):
    return media_type.startswith("text/") or media_type.endswith(("json", "yaml"))


def binary_fields(document, operation, media_type):
    content = resolve(document, operation["requestBody"])["content"][media_type]
    properties = resolve(document, content["schema"]).get("properties", {})
    return {name for name, schema in properties.items()
            if resolve(document, schema).get("format") == "binary"}


def requests_of(document, path, method, item, values=None):
    """Returns the example requests of an operation; `values` override the examples of parameters."""
    operation = item[method]
    target = target_of(document, path, item, operation, values or {})
    types = answer_types(document, operation)
    headers = {each["name"]: str(example_of(document, each, each["name"]))
               for each in parameters_of(document, item, operation)
               if each["in"] == "header" and each.get("required")}
    if "application/json" in types and "text/html" in types:
        headers["Accept"] = "application/json"
    saves = None
    if types and not all(map(is_text, types)):
        saves = urllib.parse.unquote(target.partition("?")[0].rpartition("/")[2])
    made = []
    for title, media_type, value in bodies_of(document, operation):
        request = Request(title, method.upper(), target,
                          bool(operation.get("security", document.get("security"))), dict(headers),
                          saves=saves)
        if media_type == "multipart/form-data":
            files = binary_fields(document, operation, media_type)
            request.form = {name: File(each) if name in files and isinstance(each, str) else each
                            for name, each in value.items()}
        elif media_type:
            request.json = value
            request.headers["Content-Type"] = media_type
        made.append(request)
    return made


def operations_of(document):
    """Yields (path, method, item) of each operation."""
    for path, item in document.get("paths", {}).items():
        for method in item:
            if method in METHODS:
                yield path, method, item
