"""The page of the documentation that lists what histories are made of: operations, faults and rules."""

import pathlib

import faults
import faults_postgresql  # noqa: F401 - registers the faults
import rules  # noqa: F401 - registers the rules
import script
from history import RULES

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/develop/histories-rules.md"
HEAD = """# Rules and faults of histories

This page is for developers. It lists what [histories](histories.md) are checked for, which faults they have and what
their clients do. `tests/histories/histories.py --document` writes it, and a test compares it with the code.
"""


def sentence_of(kind):
    """Returns the first sentence of a docstring."""
    text = " ".join((kind.__doc__ or "").split())
    return text.partition(". ")[0].rstrip(".") + "." if text else ""


def faults_with_places():
    for name, kind in sorted(faults.KINDS.items()):
        yield name, sentence_of(kind) + (f" Only on {', '.join(kind.stores)}." if kind.stores else "")


def operations_with_weights():
    for name, weight in script.WEIGHTS.items():
        yield name, f"weight {weight}. {sentence_of(getattr(script.Generator, name))}".strip()


TABLES = {
    # In the order of their files, whichever was imported first.
    "Rules": lambda: ((one.name, one.sentence) for one in sorted(RULES, key=lambda one: one.check.__module__)),
    "Faults": faults_with_places,
    "Operations": operations_with_weights,
}


def page():
    """Returns the whole page."""
    parts = [HEAD]
    for title, rows in TABLES.items():
        parts.append(f"\n## {title}\n\n| name | meaning |\n|---|---|\n" + "".join(
            f"| `{name}` | {text.replace('|', chr(92) + '|')} |\n" for name, text in rows()))
    return "".join(parts)
