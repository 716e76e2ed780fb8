"""Tests of the documentation: the page of rules and faults is what the code says."""

import document
from fault import KINDS
from history import RULES


def test_the_page_is_up_to_date():
    assert document.PAGE.read_text(encoding="utf-8") == document.page(), "histories.py --document writes it"


def test_everything_is_on_the_page():
    text = document.page()
    for name in [*(one.name for one in RULES), *KINDS]:
        assert f"\n| `{name}` | " in text, name


def test_every_fault_says_what_it_is():
    for name, kind in KINDS.items():
        assert document.sentence_of(kind).endswith("."), name
