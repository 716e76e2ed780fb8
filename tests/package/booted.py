"""A Debian in a directory that systemd boots: processes, mounts, host name, network and control groups of its own.
Needs root, unshare, nsenter and a kernel with control groups of version 2. Its network is a link to another network
namespace, the world outside; so packages are fetched before the start."""
import os
import pathlib
import signal
import subprocess
import time

PATIENCE = 300
SHUT_DOWN = signal.SIGRTMIN + 3  # systemd(1): halt
HIERARCHY = pathlib.Path("/sys/fs/cgroup")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
# $1: the root; $2: the directory of its control groups on this machine.
START = r"""
set -e
root=$1 groups=$2
echo $$ >"$groups/cgroup.procs"
exec unshare --mount --pid --fork --kill-child=SIGKILL --uts --ipc --net --cgroup -- bash -ec '
	root=$0
	mount --make-rprivate /
	mount --bind "$root" "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	for name in """ + " ".join(DEVICES) + r"""; do
		touch "$root/dev/$name"
		mount --bind "/dev/$name" "$root/dev/$name"
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	for number in 0:stdin 1:stdout 2:stderr; do ln -s "fd/${number%:*}" "$root/dev/${number#*:}"; done
	ip link set lo up
	cd "$root"
	pivot_root . mnt
	umount -l /mnt
	exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=1
' "$root"
"""


class Unavailable(Exception):
    """This machine cannot boot one."""


def unified_hierarchy():
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        device, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(place)
    raise Unavailable("no control groups of version 2 are mounted")


class Booted:
    """`with Booted(root) as machine: machine.shell("…")`. At the end it is shut down."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.log = self.root.parent / f"{self.root.name}.boot.log"

    def __enter__(self):
        self.groups = unified_hierarchy() / f"constancia-{os.getpid()}-{self.root.name}"
        self.groups.mkdir(exist_ok=True)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["bash", "-c", START, "boot", str(self.root), str(self.groups)],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self.first = self._first_process()
            self._await_start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _first_process(self):
        """Its process 1, by the number that it has on this machine."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            for child in children:
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                    return int(child)
            time.sleep(0.05)
        raise Unavailable(self.log.read_text(errors="replace")[-2000:] or "systemd does not start")

    def _await_start(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            code, text = self.shell("systemctl is-system-running")
            if text.strip() in ("running", "degraded"):
                return
            time.sleep(0.2)
        raise Unavailable(f"systemd does not finish its start: {text}\n{self.log.read_text(errors='replace')[-2000:]}")

    def link(self, namespace, outside, inside):
        """Connects it to a network namespace; the addresses have a prefix length."""
        name = f"cs{os.getpid()}"
        for words in (["link", "add", name, "netns", namespace, "type", "veth", "peer", "name", "eth0", "netns",
                       str(self.first)],
                      ["-n", namespace, "address", "add", outside, "dev", name],
                      ["-n", namespace, "link", "set", name, "up"]):
            subprocess.run(["ip", *words], check=True)
        for words in (["address", "add", inside, "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run(["nsenter", f"--target={self.first}", "--net", "ip", *words], check=True)

    def words(self, command, user=None):
        enter = ["nsenter", f"--target={self.first}", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup",
                 "--root", "--wdns=/root"]
        return [*enter, *(["runuser", "-u", user, "--"] if user else []), *map(str, command)]

    def run(self, *command, user=None, text=None, timeout=900):
        """Exit status and everything that it prints."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                       "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive", "USER": "root"}
        done = subprocess.run(self.words(command, user), env=environment, check=False, input=text, text=True,
                              stdin=None if text is not None else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout

    def shell(self, script, user=None, timeout=900):
        return self.run("bash", "-ec", script, user=user, timeout=timeout)

    def path(self, name):
        return self.root / str(name).lstrip("/")

    def __exit__(self, *_):
        if hasattr(self, "first") and self.process.poll() is None:
            os.kill(self.first, SHUT_DOWN)
        try:
            self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for directory in sorted(self.groups.glob("**/"), key=lambda path: -len(path.parts)):
            if directory.is_dir():
                try:
                    directory.rmdir()
                except OSError:  # of a process that ends at this moment
                    pass
