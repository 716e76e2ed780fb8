"""What the offline verifier finds, by its table: each entry is sound, the sources use it with the severities that
it has, and docs/verify/findings.md and docs/openapi.yaml list all of them.

usage: findings.py [--write] SOURCE_DIRECTORY

With --write both lists are rewritten from the table.
"""
import pathlib
import re
import sys

WORD = r'"(?:[^"\\]|\\.)*"|PRI[du]64'
SENTENCE = rf"(?:(?:{WORD}) ?)+"
ENTRY = re.compile(rf'^VERIFY_FINDING\(([A-Z_]+), ("[^"]*"), ([A-Z |]+), ({SENTENCE}), ({SENTENCE})\)$', re.M)
CODE = re.compile(r"[a-z]+\.[a-z]+(_[a-z]+)*")
PLACE = re.compile(r"%(?:\.\*)?[a-z]*(?:PRI[du]64|[a-z])")
SEVERITIES = ("WRONG", "UNCHECKED", "UNESTABLISHED", "WARNING")
USED = re.compile(r"\bverify_add(?:_cause)?\(\s*[^,]+,((?:[^,()]|\([^()]*\))*),(?:[^;]*?)\bFINDING_([A-Z_]+)")
# How the sources record one of a severity that they do not write out.
ALWAYS = {r"\b(?:chain_wrong_at|wrong_event|wrong)\([^;]*?": "WRONG", r'\bsay\(judging, "findings"[^;]*?': "WRONG",
          r'\bsay\(judging, "warnings"[^;]*?': "WARNING",
          r"\bleave_out\([^;]*?": "UNCHECKED"}
LISTS = {"docs/verify/findings.md": ("<!-- codes -->\n", "<!-- end of codes -->\n"),
         "docs/openapi.yaml": ("          x-extensible-enum: # findings\n", "          # end of findings\n")}


def joined(sentence):
    """The literals of a sentence as one text, with the names of the macros between them."""
    return "".join(word[1:-1] if word.startswith('"') else word for word in re.findall(WORD, sentence))


def read(root):
    text = (root / "src/verify/verify_finding.def").read_text(encoding="utf-8")
    return [(name, code[1:-1], severities.split(" | "), joined(english), joined(spanish))
            for name, code, severities, english, spanish in ENTRY.findall(text)]


def unread(root, entries):
    text = (root / "src/verify/verify_finding.def").read_text(encoding="utf-8")
    return len(re.findall(r"^VERIFY_FINDING\(", text, re.M)) - len(entries)


def faults_of_table(entries):
    for at, what in ((0, "name"), (1, "code")):
        values = [entry[at] for entry in entries]
        yield from (f"the {what} {value} is there more than once" for value in set(values) if values.count(value) > 1)
    for name, code, severities, english, spanish in entries:
        if not CODE.fullmatch(code) or code.replace(".", "_").upper() != name:
            yield f"{name}: the code {code} is not its name with a point after the first word"
        if not set(severities) <= set(SEVERITIES):
            yield f"{name}: no severities: {severities}"
        if PLACE.findall(english) != PLACE.findall(spanish):
            yield f"{name}: its sentences have different places"
        if english == spanish:
            yield f"{name}: both sentences are the same"


def faults_of_sources(root, entries):
    can_be = {name: set(severities) for name, _, severities, _, _ in entries}
    text = "\n".join(path.read_text(encoding="utf-8") for pattern in ("verify/verify*.c", "issue/file_origin.c")
                     for path in sorted((root / "src").glob(pattern)))
    for name in sorted(set(re.findall(r"\bFINDING_([A-Z_]+?)(?:_E[NS])?\b", text)) ^ set(can_be)):
        if name not in ("COUNT", "NONE", "TEXT_SIZE"):
            yield f"FINDING_{name} is not in both, the table and the sources"
    for severity, name in USED.findall(text):
        given = set(re.findall(r"VERIFY_([A-Z]+)", severity))
        if not given <= can_be.get(name, set()):
            yield f"{name} is found as {given}, and the table has {can_be.get(name)}"
    for how, severity in ALWAYS.items():
        for name in re.findall(how + r"\bFINDING_([A-Z_]+)", text):
            if severity not in can_be.get(name, set()):
                yield f"{name} is found as {severity}, and the table has {can_be.get(name)}"


def listed(entries):
    """What each document has between its marks."""
    meanings = [(code, ", ".join(one.lower() for one in severities), PLACE.sub("…", english).replace("|", "\\|"))
                for _, code, severities, english, _ in entries]
    return {"docs/verify/findings.md": "| code | severity | English |\n|---|---|---|\n" +
                                "".join(f"| `{code}` | {severity} | {text} |\n" for code, severity, text in meanings),
            "docs/openapi.yaml": "".join(f"            - {code}\n" for code, _, _ in meanings)}


def split(root, name):
    text = (root / name).read_text(encoding="utf-8")
    begin, end = LISTS[name]
    before, _, rest = text.partition(begin)
    inside, _, after = rest.partition(end)
    return before + begin, inside, end + after


def faults(root):
    entries = read(root)
    if unread(root, entries):
        yield f"{unread(root, entries)} entries of verify_finding.def cannot be read"
    yield from faults_of_table(entries)
    yield from faults_of_sources(root, entries)
    for name, wanted in listed(entries).items():
        if split(root, name)[1] != wanted:
            yield f"{name} does not list what verify_finding.def has: run tests/findings.py --write"
    version = re.search(r"#define FINDINGS_VERSION (\d+)", (root / "src/verify/verify_finding.h").read_text())[1]
    if f"`findings_version` is {version}" not in (root / "docs/verify/findings.md").read_text(encoding="utf-8"):
        yield f"docs/verify/findings.md does not say that `findings_version` is {version}"


def main():
    root = pathlib.Path(sys.argv[-1])
    if "--write" in sys.argv:
        for name, wanted in listed(read(root)).items():
            before, _, after = split(root, name)
            (root / name).write_text(before + wanted + after, encoding="utf-8")
    found = list(faults(root))
    print("\n".join(found) or "the findings are listed as they are")
    return 1 if found else 0


sys.exit(main())
