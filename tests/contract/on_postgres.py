"""Runs a program with the addresses of two empty databases on a new PostgreSQL server.

usage: on_postgres.py PROGRAM
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from postgres import Cluster  # noqa: E402

with Cluster(standbys=0) as cluster:
    # A long timeout, because a server on a busy machine may be slow to accept connections.
    urls = [cluster.url(cluster.create_database(), connect_timeout=60) for _ in range(2)]
    code = subprocess.run([*sys.argv[1:], *urls], check=False).returncode
sys.exit(code)
