"""The tree of packages that a release has, as apt of a clean Debian uses it over HTTP.

usage: repository.py ROOT TREES SUITE ARCHIVES

ROOT is a bare system of SUITE. TREES has the tree as it is released, others that differ from it in one way, and a
keyring of another key. Fetched packages are kept in ARCHIVES.
"""
import functools
import http.server
import pathlib
import re
import shutil
import sys
import threading

from chroot import Chroot, Serving, Verdicts, loopback_alone

verdict = Verdicts()
KEYRING = "/etc/apt/keyrings/constancia.asc"
SOURCES = "Types: deb deb-src\nURIs: {url}\nSuites: {suite}\nComponents: main\nSigned-By: {keyring}\n"
CONFIG = "/etc/constancia/constancia.conf"


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Repository:
    """A web server of one tree after the other."""

    def __init__(self, trees):
        self.trees, self.tree = pathlib.Path(trees), "released"
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(self.handler))
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def handler(self, *words):
        return Handler(*words, directory=self.trees / self.tree)


class Apt:
    def __init__(self, root, repository, suite):
        self.root, self.repository = root, repository
        root.path(KEYRING).parent.mkdir(exist_ok=True)
        root.path("/etc/apt/sources.list.d/constancia.sources").write_text(
            SOURCES.format(url=repository.url, suite=suite, keyring=KEYRING))
        root.path("/etc/apt/apt.conf.d/98here").write_text(
            'Acquire::http::Proxy::127.0.0.1 "DIRECT";\nAPT::Keep-Downloaded-Packages "true";\n')
        self.trust(repository.trees / "released/constancia-archive-keyring.asc")

    def trust(self, keyring):
        shutil.copy(keyring, self.root.path(KEYRING))
        self.root.path(KEYRING).chmod(0o644)

    def __call__(self, *words):
        return self.root.run("apt-get", "--assume-yes", "-q", "--no-install-recommends", *words)

    def update(self, tree):
        """Reads the lists of a tree with nothing known of it before; any warning is a failure."""
        self.repository.tree = tree
        for path in self.root.path("/var/lib/apt/lists").glob("127.0.0.1*"):
            path.unlink()
        return self("update", "--error-on=any", "-o", "Dir::Etc::sourcelist=/etc/apt/sources.list.d/constancia.sources",
                    "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0")


def version(root):
    return root.run("dpkg-query", "-W", "-f", "${Version}", "constancia")[1]


def judge_installation(root, apt, suite):
    code, words = apt("update")
    if not verdict(code == 0, f"{suite}: apt reads the tree and Debian's", words):
        sys.exit(1)
    apt.update("older")
    code, words = apt("install", "constancia")
    verdict(code == 0 and version(root) == "0.0.1", "apt installs an older version", words)
    code, words = apt.update("released")
    verdict(code == 0, "apt reads the newer tree without a warning", words)
    code, words = apt("upgrade")
    number = {"bookworm": 12, "trixie": 13}[suite]
    verdict(code == 0 and version(root).endswith(f"+deb{number}"), f"apt upgrades it to {version(root)}", words)
    code, words = root.run("constancia", "version")
    verdict(code == 0 and version(root).startswith(words.split()[1]), f"the program says {words.strip()}", words)
    code, words = root.run("apt-cache", "policy", "constancia")
    verdict(re.search(rf"\*\*\* .*\n +500 {apt.repository.url}", words), "apt knows that it is of this tree", words)
    code, words = apt("source", "--download-only", "constancia")
    found = sorted(path.name for path in root.path("/").glob("constancia_*"))
    verdict(code == 0 and len(found) == 2 and not [name for name in found if "+deb" in name],
            f"the source package: {' '.join(found)}", words)


def judge_refusals(root, apt):
    apt("clean")
    apt.update("package")
    code, words = apt("install", "--reinstall", "--download-only", "constancia")
    verdict(code == 100 and re.search("Hash Sum mismatch|unexpected size", words),
            "a changed package is refused", words)
    for tree, what, reason in (
            ("index", "a changed index is refused", "Hash Sum mismatch"),
            ("release", "a changed Release file is refused", "is not signed"),
            ("key", "a tree signed by another key is refused", "is not signed"),
            ("unsigned", "a tree without a signature is refused", "is not signed")):
        code, words = apt.update(tree)
        verdict(code == 100 and reason in words, what, words)
        code, words = apt("install", "--reinstall", "--download-only", "constancia")
        verdict(code == 100 or "is not possible" in words, "and nothing is installed from it", words)


def judge_change_of_key(apt):
    code, words = apt.update("both")
    verdict(code == 0, "a tree that both keys sign is read with the former key", words)
    apt.trust(apt.repository.trees / "other.asc")
    code, words = apt.update("both")
    verdict(code == 0, "and with the later one", words)
    code, words = apt.update("key")
    verdict(code == 0, "the later key alone is read after the change", words)
    code, words = apt.update("released")
    verdict(code == 100, "the former key alone is refused then", words)


def judge_service(root):
    loopback_alone()
    environment, user = {"CONSTANCIA_TSA_URL": "embedded:"}, "constancia:constancia"
    code, words = root.run("constancia", "init", "--config", CONFIG, user=user, environment=environment)
    verdict(code == 0, "init", words)
    with Serving(root, ["constancia", "serve", "--config", CONFIG], user, environment) as serving:
        verdict(True, "what was installed serves")
    verdict(serving.code == 0, "and ends with 0", serving.log.read_text()[-2000:])


def main():
    place, trees, suite, archives = sys.argv[1:]
    root, repository = Chroot(place), Repository(trees)
    apt = Apt(root, repository, suite)
    judge_installation(root, apt, suite)
    for path in root.path("/var/cache/apt/archives").glob("*.deb"):
        if not path.name.startswith("constancia") and not pathlib.Path(archives, path.name).exists():
            shutil.copy(path, archives)
    judge_refusals(root, apt)
    judge_change_of_key(apt)
    judge_service(root)
    sys.exit(1 if verdict.failed else 0)


main()
