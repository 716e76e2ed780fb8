"""Runs a program with the addresses of two empty databases on a PostgreSQL of its own.

usage: on_postgres.py PROGRAM
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from postgres import Cluster  # noqa: E402

with Cluster(standbys=0) as cluster:
    # No test is about a server that is slow to accept, as one on a busy machine is.
    urls = [cluster.url(cluster.create_database(), connect_timeout=60) for _ in range(2)]
    code = subprocess.run([*sys.argv[1:], *urls], check=False).returncode
sys.exit(code)
