"""Disks for the data of a world: a directory, a small file system that can be full, and those of
tests/torture/forgetting.py, which forget at a power cut what was not synced."""

import contextlib
import ctypes
import os
import subprocess
import tempfile

import forgetting

CLONE_NEWNS = 0x20000
SMALL_BYTES = 192 << 20


def isolate_mounts():
    """Gives this process mounts of its own, which so end with it, however it ends. Must be called before threads
    are started."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and libc.unshare(CLONE_NEWNS) == 0:
        subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False)


class Plain:
    """A directory."""

    kind = "plain"

    def __init__(self, directory):
        self.directory = directory

    def environment(self):
        return {}

    def sync(self):
        """Makes durable what is there."""

    def gave_up(self):
        """Returns whether the file system became read-only after an error."""
        return False

    # What other disks can do has no effect on this one.

    def limit(self, room):
        pass

    def unlimit(self):
        pass

    def fail_sync_in(self, syncs):
        pass

    def fail_power_in(self, syncs):
        pass

    def power_failed(self):
        return False

    def close(self):
        pass


class Small(Plain):
    """A file system in memory, which another file can fill."""

    kind = "small"

    def __init__(self):
        super().__init__(tempfile.mkdtemp(prefix="constancia-small-"))
        self.balloon = os.path.join(self.directory, "balloon")
        try:
            forgetting.run("mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "none", self.directory)
        except forgetting.Broken as error:
            os.rmdir(self.directory)
            raise forgetting.Unusable(str(error)) from error

    def limit(self, room):
        """Leaves that many bytes, less what others take meanwhile."""
        with open(self.balloon, "ab") as file:
            status = os.statvfs(self.directory)
            wanted = status.f_bavail * status.f_frsize - room
            if wanted > 0:
                with contextlib.suppress(OSError):  # less is left by now
                    os.posix_fallocate(file.fileno(), file.tell(), wanted)

    def unlimit(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.balloon)

    def close(self):
        subprocess.run(["umount", "-l", self.directory], capture_output=True, check=False)
        os.rmdir(self.directory)


class Forgetting:
    """A place of forgetting.py, which forgets."""

    def __init__(self, kind, seed):
        self.place = forgetting.open_place(kind, seed)
        self.kind, self.directory = kind, self.place.directory
        self.fail_power_in, self.power_failed = self.place.fail_power_in, self.place.power_failed
        self.fail_sync_in, self.cut = self.place.fail_sync_in, self.place.cut

    def environment(self):
        return forgetting.environment()

    def sync(self):
        if self.kind == "forgetful":
            self.place.sync()
        else:
            os.sync()

    def gave_up(self):
        """Asks only the kernel: the file system itself may hang while the power fails."""
        if self.kind == "forgetful":
            return False
        with open("/proc/self/mounts", encoding="utf-8") as file:
            options = [line.split()[3].split(",") for line in file if line.split()[1] == self.directory]
        return any({"ro", "emergency_ro"} & set(one) for one in options)

    def close(self):
        self.place.close()


def open_disk(kind, seed, directory):
    """Returns a disk of the kind; where this machine has none, says so and returns a directory."""
    try:
        if kind == "small":
            return Small()
        if kind != "plain" and not os.path.exists(os.path.join(forgetting.TOOLS, "forgetful")):
            raise forgetting.Unusable("the tools of tests/torture/forgetful are not built")
        if kind != "plain":
            return Forgetting(kind, seed)
    except (forgetting.Unusable, OSError) as error:
        print(f"plain disk instead of {kind}: {error}", flush=True)
    place = os.path.join(directory, "disk")
    os.makedirs(place, exist_ok=True)
    return Plain(place)
