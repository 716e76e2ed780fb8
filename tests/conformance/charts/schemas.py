"""Makes schemas of one file each, as kubeconform needs them: usage: schemas.py DIRECTORY OUTPUT

DIRECTORY has schemas that refer to _definitions.json. Each one of OUTPUT has the definitions that it needs.
"""
import json
import pathlib
import sys


def names_in(node):
    """Returns the names of the definitions that a schema refers to."""
    if isinstance(node, dict):
        own = {node["$ref"].rpartition("/")[2]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(names_in, node.values()))
    return set().union(*map(names_in, node)) if isinstance(node, list) else set()


def local(node):
    """Returns a schema whose references are to its own definitions."""
    if isinstance(node, dict):
        return {key: "#/definitions/" + value.rpartition("/")[2] if key == "$ref" and isinstance(value, str)
                else local(value) for key, value in node.items()}
    return [local(each) for each in node] if isinstance(node, list) else node


def main():
    source, output = map(pathlib.Path, sys.argv[1:])
    definitions = json.loads((source / "_definitions.json").read_text())["$defs"]
    output.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*-v*.json"):
        schema = json.loads(file.read_text())
        needed, rest = {}, names_in(schema)
        while rest:
            name = rest.pop()
            needed[name] = definitions[name]
            rest |= names_in(definitions[name]) - needed.keys()
        (output / file.name).write_text(json.dumps({**local(schema), "definitions": local(needed)}))


main()
