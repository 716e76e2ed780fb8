#!/usr/bin/python3 -B
"""Runs the tests of the checker itself, test_*.py in this folder: rules on small histories made by hand, the generator,
the shrinker and the campaign, without the service.

usage: check_rules.py [ARGUMENT OF PYTEST…]
"""

import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent / "support"), str(HERE.parent / "torture")]
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", str(HERE), *(sys.argv[1:] or [str(HERE)])]))
