"""The scripts that check wording and the source map find what they are for, and the pages for developers name
files that exist.

usage: writing.py SOURCE_DIRECTORY
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FAULT = 1

WORDS = ("limit\tsource\t0.5\nlimit\tdocuments\t0.5\n"
         "word\tanew|is told\tagain, is notified\n"
         "word\tapart\tquarantined\n"
         "allow\t*\ttells? \\w+ apart\tordinary English\n"
         "allow\tsrc/foreign.c\t.*\ta quotation\n")
# Each file, and the lines on which check-words reports a word.
PLANTED = {
    "src/comment.c": ("/* The caller is\n * told when the table is read anew. */\nint anew;\n", [1, 2]),
    "src/string.c": ('static const char *const text = "it begins "\n\t"anew";\n'
                     'int is_told(void) { return "anew"[0]; }\n', [2]),
    "src/foreign.c": ("/* anew */\n", []),
    "src/distance.c": ("/* A digest tells them apart. It stands apart. */\n#include <anew.h>\n", [1]),
    "tests/names.py": ('"""Begins anew."""\nanew = "anew"  # it is told\nprint(f"{anew} runs")\n', [1, 2]),
    "scripts/shell": ("#!/bin/sh\n# begins anew\n", [2]),
    "src/console/texts.txt": ("[form.anew]\nen: Start anew\nes: Empezar anew\n", [2]),
    "docs/page.md": ("# Page\n\nIt is\ntold in `anew`, in src/anew.c and ANEW.\n\n```sh\nanew\n```\n", [3, 4]),
    "man/page.1": (".It Cm anew Ar FILE\nIs told.\n", [1, 2]),
    "tests/corpus/sample.py": ("# anew\n", []),
}


def run(*words):
    return subprocess.run([sys.executable, "-B", *map(str, words)], capture_output=True, text=True, check=False)


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def faults_of_words(source, root):
    check = [source / "scripts/check-words", "--root", root, "--words", root / "words.txt"]
    write(root, {name: text for name, (text, _) in PLANTED.items()} | {"words.txt": WORDS})
    done = run(*check, "--list")
    expected = {f"{name}:{line}" for name, (_, lines) in PLANTED.items() for line in lines}
    reported = {":".join(line.split(":")[:2]) for line in done.stdout.splitlines() if ": write " in line}
    yield from (f"check-words does not report {place}" for place in sorted(expected - reported))
    yield from (f"check-words reports {place}" for place in sorted(reported - expected))
    if done.returncode != FAULT:
        yield f"check-words exits with {done.returncode} above the limits: {done.stdout}{done.stderr}"
    for limits, code in (((1e6, 1e6), 0), ((0, 1e6), FAULT), ((1e6, 0), FAULT)):
        done = run(*check, "--limit-source", limits[0], "--limit-documents", limits[1])
        if done.returncode != code:
            yield f"check-words exits with {done.returncode} for the limits {limits}, not {code}"
    done = run(*check, "--files", root / "src/foreign.c")
    if done.returncode:
        yield f"check-words --files judges other files: {done.stdout}{done.stderr}"


def faults_of_map(source, root):
    script = [source / "scripts/source-map", "--root", root]
    write(root, {
        "docs/develop/architecture.md": "| folder | holds | may use |\n|---|---|---|\n| `low` | the parts | all |\n",
        "src/low/part.h": "/* Reads parts, e.g. small ones. Thread\n * safe. */\n",
        "src/low/part.c": "#include \"low/part.h\"\n",
        "src/low/alone.c": "#include \"low/part.h\"\n",
        "src/low/made.py": '#!/usr/bin/python3\n"""Makes a part."""\n',
    })
    # FOLDERS names folders that this tree does not have; everything else has to be right.
    run(*script)
    page = root / "docs/develop/source-map/low.md"
    text = page.read_text(encoding="utf-8")
    for wanted in ("\nThe parts.\n", "| `part.h`, `part.c` | Reads parts, e.g. small ones. |\n",
                   "| `made.py` | Makes a part. |\n"):
        if wanted not in text:
            yield f"source-map does not write: {wanted}"
    if run(*script, "--missing").stdout.split() != ["src/low/alone.c"]:
        yield "source-map --missing does not list the one file without a comment"

    def check():
        return [line for line in run(*script, "--check").stdout.splitlines() if "source-map/low.md" in line]
    if check():
        yield f"source-map --check finds a fault in a page that is up to date: {check()}"
    page.write_text("".join(line for line in text.splitlines(True) if "made.py" not in line), encoding="utf-8")
    if not any("lacks: | `made.py`" in line for line in check()):
        yield "source-map --check does not find a missing row"
    page.write_text(text + "| `gone.c` | Is gone. |\n", encoding="utf-8")
    if not any("out of date: | `gone.c`" in line for line in check()):
        yield "source-map --check does not find a row of a file that is gone"
    page.unlink()
    if not check():
        yield "source-map --check does not find a missing page"


def faults_of_paths(source):
    """Paths in code spans of the pages that say where something is."""
    path = re.compile(r"`((?:bench|clients|debian|dist|docs|fuzz|man|scripts|src|tests)/[\w./*-]+)`")
    for page in (source / "CONTRIBUTING.md", source / "SECURITY.md", *sorted((source / "docs/develop").glob("*.md"))):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for name in sorted(set(path.findall(text))):
            if not re.search(r"[A-Z]{4}", name) and not any(source.glob(name)):
                yield f"{page.relative_to(source)}: there is no {name}"


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    found = []
    for faults in (faults_of_words, faults_of_map):
        with tempfile.TemporaryDirectory() as directory:
            found += faults(source, pathlib.Path(directory).resolve())
    found += faults_of_paths(source)
    print("\n".join(found) or "both scripts find what was planted, and all paths exist")
    return FAULT if found else 0


sys.exit(main())
