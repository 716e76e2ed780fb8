"""A Debian in a directory: what runs in it, and what is said of it."""
import ctypes
import pathlib
import signal
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE = 60
CLONE_NEWNET = 0x40000000


class Verdicts:
    failed = 0

    def __call__(self, good, what, words=""):
        print(f"{'ok   ' if good else 'FAIL '} {what}", flush=True)
        if not good:
            self.failed += 1
            for line in str(words).splitlines()[-40:]:
                print(f"      {line}", flush=True)
        return good


class Chroot:
    def __init__(self, place):
        self.place = pathlib.Path(place)
        subprocess.run(["mount", "-t", "proc", "proc", self.place / "proc"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", self.place / "run"], check=True)

    def words(self, command, user):
        return ["chroot", *([f"--userspec={user}"] if user else []), str(self.place), *map(str, command)]

    def environment(self, more):
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", **(more or {})}

    def run(self, *command, user=None, environment=None, text=None):
        done = subprocess.run(self.words(command, user), env=self.environment(environment), check=False,
                              input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=900)
        return done.returncode, done.stdout

    def path(self, name):
        return self.place / str(name).lstrip("/")

    def stat(self, name):
        """Owner, group and mode, by the names of this system."""
        code, text = self.run("stat", "-c", "%U:%G %a", name)
        return text.strip() if code == 0 else None


class Serving:
    """A service in a chroot, until the block ends; `code` is what it ended with."""

    def __init__(self, root, command, user, environment=None, ready="http://127.0.0.1:8081/readyz"):
        self.root, self.command, self.user, self.ready = root, command, user, ready
        self.more, self.code, self.log = environment, None, root.path("/tmp/service.log")

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.root.words(self.command, self.user), stdout=log, stderr=log,
                                            env=self.root.environment(self.more))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(self.ready, timeout=5):
                    return self
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError("it does not serve:\n" + self.log.read_text()[-3000:])

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.code = self.process.wait(timeout=PATIENCE)


def loopback_alone():
    """From here on this process and its children have a network of their own."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
