"""Reads an embedded store while its service, which locks it, may be running."""

import contextlib
import os
import shutil
import sqlite3
import tempfile


def rows(path, sql):
    """Returns rows of a copy: the store's state at some moment of the call. The file is written only by a
    checkpoint of the log; in that case it is copied again."""
    with tempfile.TemporaryDirectory() as directory:
        copy = os.path.join(directory, "copy.db")
        while True:
            before = os.stat(path)
            shutil.copy(path, copy)
            if os.path.exists(path + "-wal"):
                shutil.copy(path + "-wal", copy + "-wal")
            after = os.stat(path)
            if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size):
                break
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            return list(connection.execute(sql))
