"""Places to keep data in that forget, at a power cut, what was not synced.

`Forgetful` is the file system of `forgetful/`, mounted. `Disk` is ext4, xfs or btrfs on a loop
device over one file of such a file system, which so is a disk that loses and reorders what was
written since the last flush. Both are used alike:

    with open_place("ext4", seed=1) as place:
        …                                    # processes work below place.directory
        place.cut(percent, seed, processes)  # they are gone, and what they had not synced
        …                                    # of which `percent` survived by chance

What was reported as done before `cut` was called has to be there afterwards.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from service import BINARY, kill_groups

TOOLS = os.path.join(os.path.dirname(BINARY), "tests", "torture", "forgetful")
SYNCFS_ATTRIBUTE = "user.forgetful.syncfs"
FILE_SYSTEMS = ("forgetful", "ext4", "xfs", "btrfs")
PATIENCE = 120


class Unusable(Exception):
    """This machine cannot mount such a file system, and why."""


class Broken(Exception):
    """A tool or a mount did not do what was asked."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    if done.returncode:
        raise Broken(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def environment(fault=None):
    """What a program needs that is to work in such a place."""
    variables = {"LD_PRELOAD": os.path.join(TOOLS, "libplanted.so")}
    return {**variables, "FORGETFUL_FAULT": fault} if fault else variables


def wrap(fault=None, steps=None):
    """The words before its command, with which it also ends when this process does, and is stopped
    at `steps` (log_steps.LogSteps)."""
    variables = environment(fault)
    if steps:
        variables = steps.environment(variables)
    return ["setpriv", "--pdeathsig", "KILL", "env",
            *(f"{name}={value}" for name, value in variables.items())]


def unmount_when_told_to_end():
    """SIGTERM and SIGINT end this process as an error does, even where they were ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))


def wait(processes):
    for process in processes:
        process.wait(PATIENCE)


class Loss:
    """What cuts took, added up."""

    def __init__(self, figures=(0, 0, 0, 0, 0)):
        self.figures = list(figures)

    def add(self, other):
        self.figures = [a + b for a, b in zip(self.figures, other.figures)]

    def __str__(self):
        kept, torn, lost, names_kept, names_lost = self.figures
        return (f"of unsynced pages {lost} lost, {torn} torn, {kept} kept; "
                f"of unsynced names {names_lost} lost, {names_kept} kept")


class Forgetful:
    """The file system that forgets."""

    kind = "forgetful"

    def __init__(self, seed, sector=512, write_back_in=32):
        if not os.path.exists("/dev/fuse"):
            raise Unusable("there is no /dev/fuse")
        if os.geteuid() != 0:
            raise Unusable("only root can mount for all users")
        self.mountpoint = tempfile.mkdtemp(prefix="constancia-forgetful-")
        self.process = subprocess.Popen(
            [os.path.join(TOOLS, "forgetful"), self.mountpoint, str(sector), str(seed),
             str(write_back_in)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)
        if self.process.stdout.readline() != "mounted\n":
            reason = self.process.communicate()[1].strip()
            os.rmdir(self.mountpoint)
            raise Unusable(f"/dev/fuse cannot be used: {reason}")
        self.loss = Loss()

    @property
    def directory(self):
        return self.mountpoint

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    def order(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise Broken(f"forgetful ended: {self.process.stderr.read()[-3000:]}")
        return answer

    def fail_power_in(self, syncs):
        """The power begins to fail in the Nth sync from now; then only `cut` helps."""
        self.order(f"freeze {syncs}")

    def power_failed(self):
        return self.order("status").startswith("failing")

    def fail_sync_in(self, syncs):
        """The Nth sync from now fails once and loses what it should have kept."""
        self.order(f"fail {syncs}")

    def sync(self):
        """Makes durable all that is there."""
        os.setxattr(self.directory, SYNCFS_ATTRIBUTE, b"")

    def cut(self, percent, seed, processes):
        self.order("freeze 0")
        kill_groups(processes)
        self.order("off")  # no process hangs in a request, and none runs that would see the answer
        wait(processes)
        self.forget(percent, seed)

    def forget(self, percent, seed):
        self.loss.add(Loss(map(int, self.order(f"cut {percent} {seed}").split())))

    def empty(self):
        for name in os.listdir(self.directory):
            shutil.rmtree(os.path.join(self.directory, name))
        self.sync()

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
        subprocess.run(["umount", "-l", self.mountpoint], capture_output=True, check=False)
        os.rmdir(self.mountpoint)


class Disk:
    """A file system of the kernel on a disk that forgets. Its sectors, of 4096 bytes, are not torn.

    At a cut the disk's state is taken at once. What the old mount still writes goes to a disk that
    no process sees any more, until it is unmounted and the state that was taken is mounted again."""

    MAKE = {
        "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard"],
        "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
        "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
    }

    def __init__(self, kind, seed, size=768 << 20):
        if not shutil.which(self.MAKE[kind][0]):
            raise Unusable(f"{self.MAKE[kind][0]} is not installed")
        self.kind, self.size = kind, size
        self.below = Forgetful(seed, sector=4096)
        self.directory = tempfile.mkdtemp(prefix=f"constancia-{kind}-")
        self.image = os.path.join(self.below.directory, "disk")
        self.device = None
        self.mounted = False
        try:
            self.empty()
        except Broken as error:
            self.close()
            raise Unusable(f"{kind} on a loop device: {error}") from error

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    @property
    def loss(self):
        return self.below.loss

    def attach(self):
        self.device = run("losetup", "--find", "--show", "--sector-size", "4096",
                          "--direct-io=on", self.image)

    def mount(self):
        run("mount", "-t", self.kind, self.device, self.directory)
        self.mounted = True

    def detach(self):
        """A killed process may hold a file for a moment yet."""
        if self.mounted:
            for _ in range(100):
                try:
                    run("umount", self.directory)
                    break
                except Broken as error:
                    if "busy" not in str(error):
                        raise
                    time.sleep(0.05)
            self.mounted = False
        if self.device:
            run("losetup", "--detach", self.device)
            self.device = None

    def empty(self):
        self.detach()
        with open(self.image, "wb") as image:
            image.truncate(self.size)
        self.below.sync()  # the disk itself is there whatever is cut
        self.attach()
        run(*self.MAKE[self.kind], self.device)
        self.mount()
        os.sync()

    def fail_power_in(self, syncs):
        self.below.fail_power_in(syncs)

    def power_failed(self):
        return self.below.power_failed()

    def fail_sync_in(self, syncs):
        """Of the disk, which keeps what it held: were it lost, the file system's journal
    might be, too, without a report. What the file system makes of the failure is its
        own affair."""
        self.below.order(f"refuse {syncs}")

    def cut(self, percent, seed, processes):
        self.below.forget(percent, seed)
        kill_groups(processes)
        wait(processes)
        self.detach()
        self.attach()
        self.mount()

    def close(self):
        try:
            self.detach()
        finally:
            self.below.close()
            os.rmdir(self.directory)


def open_place(kind, seed):
    return Forgetful(seed) if kind == "forgetful" else Disk(kind, seed)
