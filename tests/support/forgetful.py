"""A disk that keeps only synced data, without a file system of its own: forgetful.c, preloaded into a service,
records what successful syncs covered, and `cut` restores exactly that."""

import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).with_name("forgetful.c")


def build(directory):
    """The library to preload."""
    library = pathlib.Path(directory) / "forgetful.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    return library


class Disk:
    """`root` is the directory of the service's files. Only the directory's own name is durable."""

    def __init__(self, directory, library):
        self.directory = pathlib.Path(directory)
        self.library = library
        self.root = self.directory / "disk"
        self.state = self.directory / "synced"
        self.root.mkdir(parents=True)
        self.state.mkdir()

    def environment(self):
        asan = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": str(self.library), "FORGETFUL_ROOT": str(self.root),
                "FORGETFUL_STATE": str(self.state),
                "ASAN_OPTIONS": f"{asan}:verify_asan_link_order=0"}

    def plan(self, what, part, number=1):
        """fail, lie, kill: applies to the sync of that number of a path that contains `part`; full: to writes
        there."""
        partial = self.state / "plan.partial"
        partial.write_text(f"{what} {number} {part}")
        partial.rename(self.state / "plan")

    def planned(self):
        """Returns whether the planned fault is still pending."""
        return (self.state / "plan").exists()

    def forget_plan(self):
        (self.state / "plan").unlink(missing_ok=True)

    def cut(self, survives=None):
        """Simulates a power failure: everything that no sync covered is lost. No process may use the disk.
        `survives`: (end of a path, offset) of a file whose bytes from there on survive unsynced, as when a disk
        writes out of order."""
        self.forget_plan()
        lucky = self._read_unsynced(*survives) if survives else {}
        directories, top = {}, None
        for path in self.state.glob("*.entries"):
            first, *lines = path.read_text().splitlines()
            key = path.name.removesuffix(".entries")
            directories[key] = lines
            if first == str(self.root):
                top = key
        kept = self.directory / "kept"
        kept.mkdir(mode=0o700)
        self._rebuild(directories, top, kept)
        for path, (offset, content) in lucky.items():
            synced = (kept / path).read_bytes()[:offset]
            (kept / path).write_bytes(synced.ljust(offset, b"\0") + content)
        shutil.rmtree(self.root)
        shutil.rmtree(self.state)
        self.state.mkdir()
        kept.rename(self.root)
        subprocess.run([sys.executable, "-B", __file__, self.root], check=True,
                       env={**os.environ, **self.environment()})

    def _read_unsynced(self, ending, offset):
        return {path.relative_to(self.root): (offset, path.read_bytes()[offset:])
                for path in self.root.rglob("*") if path.is_file() and str(path).endswith(ending)}

    def _rebuild(self, directories, key, place):
        for line in directories.get(key, ()):
            name, entry, kind = line.split("\t")
            if kind == "d":
                (place / name).mkdir(mode=0o700)
                self._rebuild(directories, entry, place / name)
            elif kind == "f":
                image = self.state / (entry + ".image")
                (place / name).touch(mode=0o600)
                if image.exists():
                    (place / name).write_bytes(image.read_bytes())


def sync_all(root):
    """Makes the present files durable: writes and syncs them under forgetful.c."""
    for directory, _, files in os.walk(root):
        for name in files:
            path = pathlib.Path(directory, name)
            content = path.read_bytes()
            with open(path, "r+b", buffering=0) as file:
                if content:
                    file.write(content)
                os.fsync(file)
        descriptor = os.open(directory, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


if __name__ == "__main__":
    sync_all(sys.argv[1])
