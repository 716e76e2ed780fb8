"""Fills the list of settings into constancia.conf(5).

usage: settings.py SETTINGS.DEF TEMPLATE SETTINGS_RELOAD.DEF OUTPUT
"""
import re
import sys

ENTRY = re.compile(r'^SETTING\((\w+), (\w+), (\w+), "(.*?)", "(.*)"\)$')
KINDS = {"TEXT": "text", "SECRET": "secret", "LIST": "list", "INTEGER": "number", "DURATION": "duration",
         "BOOLEAN": "boolean"}


def escape(text):
    text = text.replace("\\", "\\e").replace("…", "...")
    return "\\&" + text if text[:1] in (".", "'") else text


def reloading(path):
    return set(re.findall(r'^RELOADS\((\w+), (\w+)\)$', open(path, encoding="utf-8").read(), re.MULTILINE))


def settings(path, reloads):
    section = None
    for line in open(path, encoding="utf-8"):
        match = ENTRY.match(line.strip())
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
    definition, template, reloads, output = sys.argv[1:]
    text = open(template, encoding="utf-8").read()
    text = text.replace("@SETTINGS@", "\n".join(settings(definition, reloading(reloads))))
    with open(output, "w", encoding="utf-8") as out:
        out.write(text)


main()
