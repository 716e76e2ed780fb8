"""scripts/install-dependencies in a bare Debian: what it installs is neither started nor enabled, what the machine
had stays, and without apt-get it names what is missing.

usage: groups.py ROOT TREE"""
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from chroot import Chroot, Verdicts

SERVERS = "haproxy nginx postgresql"
PACKAGES = f"[run]\njq\n[test] run\n{SERVERS}\n[conformance] test\ncaddy\n"
POLICY = "#!/bin/sh\n# the machine's own\nexit 0\n"
INSTALL = "/src/scripts/install-dependencies"


def boot_links(root):
    links = [path for place in ("etc/systemd/system", *(f"etc/rc{level}.d" for level in "2345S"))
             for path in root.path(place).rglob("*") if path.is_symlink()]
    return {str(path.relative_to(root.place)) for path in links
            if path.name.startswith("S") or path.parent.name.endswith((".wants", ".requires"))}


def running():
    """The names of all processes: this program has a namespace of its own."""
    return {path.read_text().strip() for path in pathlib.Path("/proc").glob("[0-9]*/comm")}


def every_package(text, architecture):
    lines = [line.partition("#")[0] for line in text.splitlines() if not line.startswith("[")]
    names = [name.partition("/") for line in lines for name in line.split()]
    return [name for name, _, only in names if only in ("", architecture)]


def main():
    root, tree = Chroot(sys.argv[1]), pathlib.Path(sys.argv[2])
    verdict = Verdicts()
    subprocess.run(["mount", "-t", "proc", "proc", "/proc"], check=True)
    shutil.copytree(tree / "scripts", root.path("/src/scripts"))
    shutil.copy(tree / "meson.build", root.path("/src/meson.build"))
    names = root.path("/src/scripts/packages.txt")
    theirs = names.read_text()
    names.write_text(PACKAGES)
    policy = root.path("/usr/sbin/policy-rc.d")
    policy.write_text(POLICY)
    policy.chmod(0o755)
    mine = root.path("/etc/systemd/system/multi-user.target.wants/mine.service")
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.symlink_to("/etc/systemd/system/mine.service")
    before = boot_links(root)

    code, words = root.run(INSTALL, "test")
    verdict(code == 0, "a group is installed, with the group that it contains", words)
    there = root.run("dpkg-query", "-W", "-f", "${db:Status-Status}\n", "jq", *SERVERS.split())[1].split()
    verdict(there == ["installed"] * 4, "every package of it is there", there)
    left = boot_links(root)
    verdict(left == before, "nothing starts at boot that did not before", left ^ before)
    started = running() & {"haproxy", "nginx", "postgres"}
    verdict(not started, "no service runs", started)
    verdict(policy.read_text() == POLICY, "the machine's policy for starts is there again", policy.read_text())
    start = time.monotonic()
    code, words = root.run(INSTALL, "test")
    verdict(code == 0 and not words, f"a second time it does nothing, in {time.monotonic() - start:.2f} s", words)

    packages = every_package(theirs, root.run("dpkg", "--print-architecture")[1].strip())
    code, words = root.run("apt-get", "install", "--simulate", "--no-install-recommends", *packages)
    verdict(code == 0, f"there are all {len(packages)} packages of the groups, and they go together", words)

    policy.unlink()
    done = subprocess.Popen(root.words([INSTALL, "conformance"], None), env=root.environment(None),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not policy.exists() and done.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    seen = policy.exists()
    done.send_signal(signal.SIGTERM)
    done.wait(300)
    verdict(seen and not policy.exists(), "an installation that is interrupted leaves no policy")

    code, words = root.run(INSTALL, "nothing")
    verdict(code != 0 and "nothing" in words, "a group that does not exist is refused", words)
    names.write_text(theirs)
    root.path("/usr/bin/apt-get").rename(root.path("/usr/bin/apt-get.away"))
    code, words = root.run(INSTALL, "run")
    verdict(code == 1 and all(name in words for name in (" meson", " libfido2 >= 1.12.0", " openssl >= 3.0", " sqlite3", " xmlsec1-openssl"))
            and "cmocka" not in words and "libisal" not in words,
            "without apt-get the tools and libraries that are missing are named", words)
    return 1 if verdict.failed else 0


sys.exit(main())
