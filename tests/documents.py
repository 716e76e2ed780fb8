"""Checks the documentation: every relative link and anchor leads somewhere, each page begins with a
paragraph, no page but a reference exceeds 20 KB, and the paths below docs/ that the sources name exist.

usage: documents.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

PAGE_BYTES_MAX = 20 * 1024
REFERENCES = ("docs/verify/evidence-format.md", "docs/verify/findings.md", "docs/develop/source-map")
HISTORY = ("CHANGELOG.md",)
NAMING = ("src", "dist", "debian", "scripts", "tests", "bench", "fuzz", "man", "clients", "Makefile", "Containerfile",
          "meson.build")
TEXTS = {".c", ".h", ".cc", ".def", ".py", ".sh", ".build", ".txt", ".yml", ".yaml", ".json", ".md", ".html", ".ts",
         ".mjs", ".js", ".css", ".in", ".1", ".sql", ".toml", ""}
SKIPPED = {"node_modules", "build", "__pycache__", "fixtures"}
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2 *$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
PATH = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|yaml|py|sh|mjs|go|c|php|java)\b(#[\w-]+)?")


def slug(title):
    """Returns the anchor that GitHub makes of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def anchors(text):
    found, count = set(), {}
    for title in re.findall(r"^#{1,6} (.+?)#*$", FENCE.sub("", text), re.M):
        anchor = slug(title)
        number = count.get(anchor, 0)
        count[anchor] = number + 1
        found.add(f"{anchor}-{number}" if number else anchor)
    return found | set(re.findall(r'<a (?:id|name)="([\w-]+)"', text))


def pages(root):
    named = [root / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
    return [page for page in named if page.exists()] + sorted((root / "docs").rglob("*.md"))


def wrong_links(root, texts):
    for page, text in texts.items():
        place = page.relative_to(root)
        for link in LINK.findall(FENCE.sub("", text)):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z][a-z+.-]*:", link):
                continue
            goal = (page.parent / path).resolve() if path else page
            if not goal.exists():
                yield f"{place}: {link} does not exist"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal.read_text(encoding="utf-8")):
                yield f"{place}: {link}: the page has no such heading"


def wrong_pages(root, texts):
    for page, text in texts.items():
        place = str(page.relative_to(root))
        if not re.match(r"# [^\n]+\n\n(?![#|>`\-*]|\d+\. )\S", text):
            yield f"{place} does not begin with a title and a paragraph"
        size = len(text.encode())
        if size > PAGE_BYTES_MAX and not place.startswith(REFERENCES + HISTORY):
            yield f"{place} has {size} bytes, more than {PAGE_BYTES_MAX}"


def sources(root):
    for name in NAMING:
        place = root / name
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file() and path.suffix in TEXTS and not SKIPPED & set(path.relative_to(root).parts):
                yield path


def wrong_paths(root):
    for path in sources(root):
        if path.name == "writing.py":  # it plants pages in a tree of its own
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for match in PATH.finditer(text):
            name, _, anchor = match[0].partition("#")
            goal = root / name
            number = text.count("\n", 0, match.start()) + 1
            if not goal.exists():
                yield f"{path.relative_to(root)}:{number}: {name} does not exist"
            elif anchor and anchor not in anchors(goal.read_text(encoding="utf-8")):
                yield f"{path.relative_to(root)}:{number}: {match[0]}: the page has no such heading"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    texts = {page: page.read_text(encoding="utf-8") for page in pages(root)}
    found = [*wrong_links(root, texts), *wrong_pages(root, texts), *wrong_paths(root)]
    print("\n".join(found))
    print(f"{len(texts)} pages, {len(found)} failed")
    return 1 if found else 0


sys.exit(main())
