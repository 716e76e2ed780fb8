"""The pages of the documentation that list what histories are made of: operations, faults and rules."""

import pathlib

import faults
import faults_postgresql  # noqa: F401 - registers the faults
import rules  # noqa: F401 - registers the rules
import script
from history import RULES

DIRECTORY = pathlib.Path(__file__).resolve().parents[2] / "docs/develop"
HEAD = """# {title} of histories

This page is for developers. It lists {what}. `tests/histories/histories.py --document` writes it, and a test compares
it with the code. [histories.md](histories.md) explains them.
"""


def sentence_of(kind):
    """Returns the first sentence of a docstring."""
    text = " ".join((kind.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""


def faults_with_places():
    for name, kind in sorted(faults.KINDS.items()):
        yield name, sentence_of(kind) + (f" Only on {', '.join(kind.stores)}." if kind.stores else "")


def operations_with_weights():
    for name, weight in {**script.WEIGHTS, **script.BACKUP_WEIGHTS}.items():
        yield name, f"weight {weight}. {sentence_of(getattr(script.Generator, name))}".strip()


TABLES = {
    # In the order of their files, whichever was imported first.
    "Rules": lambda: ((one.name, one.sentence) for one in sorted(RULES, key=lambda one: one.check.__module__)),
    "Faults": faults_with_places,
    "Operations": operations_with_weights,
}


# file: (title, what it lists, tables)
PAGES = {
    "histories-rules.md": ("Rules", "what every history is checked for", ("Rules",)),
    "histories-faults.md": ("Faults and operations", "the faults of histories and what their clients do",
                            ("Faults", "Operations")),
}


def page(name):
    """Returns a whole page."""
    title, what, tables = PAGES[name]
    parts = [HEAD.format(title=title, what=what)]
    for table in tables:
        parts.append(f"\n## {table}\n\n| name | meaning |\n|---|---|\n" + "".join(
            f"| `{row}` | {text.replace('|', chr(92) + '|')} |\n" for row, text in TABLES[table]()))
    return "".join(parts)


def write():
    for name in PAGES:
        (DIRECTORY / name).write_text(page(name), encoding="utf-8")
