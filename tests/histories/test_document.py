"""Tests of the documentation: the pages of rules, faults and operations are what the code says."""

import document
from fault import KINDS
from history import RULES


def test_the_pages_are_up_to_date():
    for name in document.PAGES:
        assert (document.DIRECTORY / name).read_text(encoding="utf-8") == document.page(name), \
            "histories.py --document writes it"


def test_everything_is_on_a_page():
    text = "".join(map(document.page, document.PAGES))
    for name in [*(one.name for one in RULES), *KINDS]:
        assert f"\n| `{name}` | " in text, name


def test_every_fault_says_what_it_is():
    for name, kind in KINDS.items():
        assert document.sentence_of(kind).endswith("."), name
