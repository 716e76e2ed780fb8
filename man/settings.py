"""Fills the list of settings into constancia.conf(5).

usage: settings.py SETTINGS.DEF TEMPLATE OUTPUT DEPENDENCIES

Writes to DEPENDENCIES, as a rule of make, which tables of components were included.
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
INCLUDE = re.compile(r'^#include "(.+)"$')

ENTRY = re.compile(r'^SETTING\((\w+), (\w+), (\w+), "(.*?)", "(.*)"\)$')
KINDS = {"TEXT": "text", "SECRET": "secret", "LIST": "list", "SECRET_LIST": "list of secrets",
         "INTEGER": "number", "DURATION": "duration", "BOOLEAN": "boolean"}


def escape(text):
    text = text.replace("\\", "\\e").replace("…", "...")
    return "\\&" + text if text[:1] in (".", "'") else text


included = set()


def lines_of(path):
    """The lines of a table, with those of the tables of components that it includes."""
    for line in open(path, encoding="utf-8"):
        match = INCLUDE.match(line)
        if match:
            included.add(SOURCE / match[1])
            yield from lines_of(SOURCE / match[1])
        else:
            yield line.strip()


def reloading(path):
    return set(re.findall(r'^RELOADS\((\w+), (\w+)\)$', "\n".join(lines_of(path)), re.MULTILINE))


def settings(path, reloads):
    section = None
    for line in lines_of(path):
        match = ENTRY.match(line)
        if not match:
            if line.startswith("SETTING"):
                sys.exit(f"settings.py: not understood: {line}")
            continue
        name, key, kind, default, comment = match.groups()
        if name != section:
            if section:
                yield ".El"
            section = name
            yield f".Ss [{name}]"
            yield ".Bl -tag -width indent"
        shown = f'default \\(lq{escape(default)}\\(rq' if default else "empty by default"
        yield f".It Li {key}"
        yield f"({KINDS[kind]}, {shown})"
        yield escape(comment)
        if (name, key) not in reloads:
            yield "A change needs a restart."
    yield ".El"


def main():
    definition, template, output, dependencies = sys.argv[1:]
    text = open(template, encoding="utf-8").read()
    text = text.replace("@SETTINGS@", "\n".join(settings(definition, reloading(definition))))
    with open(output, "w", encoding="utf-8") as out:
        out.write(text)
    with open(dependencies, "w", encoding="utf-8") as out:
        out.write(f"{output}: {' '.join(map(str, sorted(included)))}\n")


main()
