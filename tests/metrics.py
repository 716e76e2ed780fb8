"""The documentation names exactly the metrics that there are, and says of each what the page does;
dashboards and alert rules name no others.

usage: metrics.py [--write] SOURCE_DIRECTORY

With --write the table of the page is rewritten from metrics.def.
"""
import pathlib
import re
import sys

ENTRY = re.compile(r'^([A-Z_]+)\([a-z_]+, "([a-z_]+)", "([a-z]+)",'
                   r'(?: (?:1|1e6),)? "([^"]+)"\)$', re.M)
ROW = re.compile(r"^\| `((?:constancia|process)_[a-z_]+)` \| ([a-z]+) \| (.+) \|$", re.M)
NAMED = re.compile(r"\bconstancia_[a-z_]+")
SERIES_OF_A_HISTOGRAM = re.compile("_(bucket|count|sum)$")
PAGE = "docs/operate/metrics.md"


def read(root):
    text = (root / "src/service/metrics.def").read_text(encoding="utf-8")
    entries = [(name if macro == "PROCESS" else f"constancia_{name}", kind, meaning)
               for macro, name, kind, meaning in ENTRY.findall(text)]
    return entries, len(re.findall(r"^[A-Z_]+\(", text, re.M)) - len(entries)


def write(root, entries):
    page = root / PAGE
    rest = ROW.sub("", page.read_text(encoding="utf-8")).rstrip() + "\n"
    page.write_text(rest + "".join(f"| `{name}` | {kind} | {meaning} |\n" for name, kind, meaning in entries),
                    encoding="utf-8")


def faults(root):
    entries, unread = read(root)
    if unread:
        yield f"{unread} entries of metrics.def cannot be read"
    names = [name for name, _, _ in entries]
    yield from (f"{name} is there more than once" for name in set(names) if names.count(name) > 1)
    for name, kind, _ in entries:
        if name.endswith("_total") != (kind == "counter"):
            yield f"{name} is called {kind}, which its end contradicts"
    rows = ROW.findall((root / PAGE).read_text(encoding="utf-8"))
    yield from (f"{PAGE} lacks, or says otherwise: {entry}" for entry in entries
                if entry not in rows)
    yield from (f"{PAGE}, but not metrics.def: {row}" for row in rows
                if row not in entries)
    for path in [*sorted(root.glob("docs/**/*.md")), *sorted(root.glob("dist/*/*.json")),
                 *sorted(root.glob("dist/*/*.yml"))]:
        for name in NAMED.findall(path.read_text(encoding="utf-8")):
            if SERIES_OF_A_HISTOGRAM.sub("", name) not in names and name not in names:
                yield f"{path}: there is no {name}"


def main():
    root = pathlib.Path(sys.argv[-1])
    if "--write" in sys.argv:
        write(root, read(root)[0])
    found = list(faults(root))
    print("\n".join(found))
    print(f"{len(found)} failed")
    return 1 if found else 0


sys.exit(main())
