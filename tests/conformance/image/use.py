"""Uses an unpacked image as an engine would: usage: use.py ROOT CONTAINERFILE

Its processes see the image's root read-only, with a volume at /var/lib/constancia, settings at /etc/constancia and an
empty /tmp; they are the user 900, have no capability and cannot gain one; /bin/sh is not there. On the embedded store,
then on PostgreSQL with a standby: init, serve, health check, registration, certification, verification, backup, and the
end by SIGTERM. Prints a line for each verdict, and "done" at the end.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import journey  # noqa: E402
import postgres  # noqa: E402
from containers import image  # noqa: E402
from ports import reserve_port  # noqa: E402
from program import PATIENCE, eventually  # noqa: E402

ENTER = """set -e
root=$1 volume=$2 settings=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$volume" "$root/var/lib/constancia"
mount --bind "$settings" "$root/etc/constancia"
mount --bind /dev/null "$root/bin/dash"
exec /usr/sbin/chroot --userspec=900:900 --groups= "$root" /usr/bin/setpriv --no-new-privs -- "$@"
"""
CONFIG = ("--config", "/etc/constancia/constancia.conf")


def verdict(good, what, words=""):
    print(f"{'ok   ' if good else 'FAIL '} {what}", flush=True)
    if not good:
        print("\n".join(f"      {line}" for line in str(words).splitlines()[-30:]))
    return good


class Container:
    def __init__(self, root, place, settings):
        self.root, self.volume, self.settings = root, place / "volume", place / "settings"
        self.volume.mkdir()
        self.settings.mkdir()
        os.chown(self.volume, 900, 900)
        self.volume.chmod(0o700)
        self.port, self.admin_port = reserve_port(), reserve_port()
        (self.settings / "constancia.conf").write_text(settings)
        self.base, self.log, self.process = image(), place / "log", None
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **self.base["environment"],
                            "CONSTANCIA_SERVICE_LISTEN": f"127.0.0.1:{self.port}",
                            "CONSTANCIA_SERVICE_ADMIN_LISTEN": f"127.0.0.1:{self.admin_port}",
                            "CONSTANCIA_SERVICE_PUBLIC_URL": f"http://127.0.0.1:{self.port}"}

    def entered(self, command):
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--", "bash", "-c", ENTER, "enter", self.root,
                self.volume, self.settings, *map(str, command)]

    def run(self, *command):
        """Returns exit status and output of a command in it."""
        done = subprocess.run(self.entered(command), env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=600, check=False)
        return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr

    def admin(self, *words):
        code, text = self.run("constancia", *words, "--json", *CONFIG)
        if code:
            raise RuntimeError(f"{words}: {code}: {text}")
        return json.loads(text)

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.entered([*self.base["entrypoint"], *self.base["cmd"]]),
                                            env=self.environment, stdout=log, stderr=log)

    def healthy(self):
        """Returns whether the image's own health check passes, on the port of this test."""
        command = [word.replace(":8081", f":{self.admin_port}") for word in self.base["healthcheck"]]
        return self.run(*command)[0] == 0

    def stop(self):
        """Sends SIGTERM to the first process of the container; returns the exit status."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        os.kill(int(children[0]), 15)
        return self.process.wait(PATIENCE)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def status_of(container):
    """Returns what the kernel says of the served process."""
    child = pathlib.Path(f"/proc/{container.process.pid}/task/{container.process.pid}/children").read_text().split()[0]
    lines = pathlib.Path(f"/proc/{child}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def use(container, name, place):
    code, words = container.run("constancia", "init", *CONFIG)
    if not verdict(code == 0, f"{name}: init", words):
        return
    verdict(not container.healthy(), f"{name}: the health check fails while nothing serves")
    container.start()
    eventually(container.healthy, "the health check passes", pause=0.5)
    verdict(True, f"{name}: the health check passes")
    found = status_of(container)
    verdict(found["Uid"].split()[0] == "900" and int(found["CapEff"], 16) == 0 and found["NoNewPrivs"] == "1",
            f"{name}: the user 900, without capabilities", found)
    client = journey.Client("127.0.0.1", container.port, journey.new_key(container.admin))
    eventually(lambda: client.ask("POST", "/v1/events", {"client_ref": "first", "payload": {}})[0] in (200, 201),
               "registration begins")
    archive = container.volume / "evidence.zip"
    archive.write_bytes(client.download(client.certified()["evidence_url"]))
    os.chown(archive, 900, 900)
    code, words = container.run("constancia", "verify", "--trust", "/var/lib/constancia/trust.pem",
                                "/var/lib/constancia/evidence.zip")
    verdict(code == 0, f"{name}: a registered event is certified and verified", words)
    code, words = container.run("constancia", "store", "backup", "/var/lib/constancia/backup", *CONFIG)
    kept = sorted(path.name for path in (container.volume / "backup").glob("*"))
    verdict(code == 0 and "backup.json" in kept, f"{name}: a backup: {' '.join(kept)}", words)
    code = container.stop()
    verdict(code == 0, f"{name}: SIGTERM ends it with 0", f"{code}\n{container.log.read_text()[-3000:]}")
    words = container.log.read_text()
    verdict("sandbox_disabled" not in words and "verification_disabled" not in words, f"{name}: the sandboxes work",
            words)


# Where the user 900 may write in the image: directories of everybody and of the package, which are read-only in use
# unless a volume is there.
SHARED = {"/tmp", "/var/tmp", "/run/lock", "/var/lib/constancia", "/var/backups/constancia"}


def writable(root):
    """Returns the files that the user 900 could write to, or that belong to that user, but for its volume."""
    found = []
    for path in pathlib.Path(root).rglob("*"):
        name = "/" + str(path.relative_to(root))
        if not path.is_symlink() and name not in SHARED and not name.startswith(("/dev/", "/proc/", "/sys/")):
            status = path.lstat()
            if status.st_mode & 0o002 or status.st_uid == 900 or (status.st_gid == 900 and status.st_mode & 0o020):
                found.append(name)
    return found


LEFTOVERS = ("etc/constancia/*.pem", "etc/ssh/ssh_host_*", "root/.*history", "etc/apt/auth.conf*", "etc/ssl/private/*",
             "src", "out", "tmp/*", "var/lib/constancia/*")


def same_text(*paths):
    """Returns whether the files exist, are not empty, and have the same text."""
    texts = {path.read_text(errors="replace").strip() if path.is_file() else "" for path in paths}
    return len(texts) == 1 and texts != {""}


def judge_contents(root):
    """What the build leaves in the layers: nothing of this machine, nothing to write to, no identity."""
    place = pathlib.Path(root)
    words = writable(root)
    verdict(not words, "nothing in the image can be written to by its user, but for such directories", words)
    kept = [name for name in ("/etc/hostname", "/etc/resolv.conf") if same_text(pathlib.Path(name), place / name[1:])]
    verdict(not kept, "no name and no resolver of the machine that built it", kept)
    machine = place / "etc/machine-id"
    verdict(not machine.exists() or machine.read_text().strip() in ("", "uninitialized"), "no machine has its identity",
            machine)
    secrets = [str(path) for pattern in LEFTOVERS for path in place.glob(pattern)
               if not path.is_dir() or any(path.iterdir())]
    verdict(not secrets, "no keys, credentials and sources are left in it", secrets)
    sources = "".join(path.read_text() for path in place.glob("etc/apt/sources.list.d/*"))
    verdict("@" not in sources, "no credentials of a mirror are in its package sources", sources)


def settings(**more):
    lines = ["[tsa]", "url = embedded:", "[seal]", "interval = 1s", "[evidence]", "interval = 1s",
             *more.get("store", [])]
    return "\n".join(lines) + "\n"


def used(root, name, text):
    place = pathlib.Path(tempfile.mkdtemp(prefix="constancia-"))
    place.chmod(0o755)
    container = Container(root, place, text)
    try:
        use(container, name, place)
    finally:
        container.kill()
        shutil.rmtree(place, ignore_errors=True)


def main():
    root = sys.argv[1]
    judge_contents(root)
    place = pathlib.Path(tempfile.mkdtemp(prefix="constancia-"))
    container = Container(root, place, settings())
    for program in ("pg_dump", "pg_restore", "curl"):
        code, words = container.run(program, "--version")
        verdict(code == 0, f"{program}: {words.strip().splitlines()[0]}", words)
    code, words = container.run("touch", "/etc/written")
    written = container.run("touch", "/var/lib/constancia/written")[0]
    verdict(code != 0 and "Read-only" in words and written == 0, "the root is read-only, the volume is not", words)
    shutil.rmtree(place)
    used(root, "embedded store", settings())
    with contextlib.ExitStack() as ending:
        cluster = ending.enter_context(postgres.Cluster(standbys=1))
        url = cluster.url(cluster.create_database())
        used(root, "PostgreSQL", settings(store=["[store]", f"url = {url}"]))
    print("done")


main()
