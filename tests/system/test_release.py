"""What `make release` refuses, its source and checksums, and the tree of packages for apt as apt reads it: a changed
file, another key and an expired index are refused. tests/package/release builds everything."""

import contextlib
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading

import pytest

from program import BINARY

pytestmark = pytest.mark.sqlite
ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMITTED = 1700000000  # the time of the commit
FILES = ["meson.build", "debian", "scripts/release", "scripts/apt-repository", "tests/support/roots.sh"]
CONTROL = """Package: constancia
Version: {version}
Architecture: amd64
Maintainer: Tests <tests@constancia.invalid>
Description: stands for the package
"""


def run(*words, code=0, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False, **options)
    assert done.returncode == code, (words, done.returncode, done.stdout)
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def programs():
    missing = [name for name in ("git", "gpg", "apt-ftparchive", "apt-get", "xz") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def keys():
    """Fingerprints of two keys, and the environment in which gpg finds them. The path of a socket has to be short."""
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        environment = {**os.environ, "GNUPGHOME": home}
        for name in ("first", "second"):
            run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key",
                f"{name} <{name}@constancia.invalid>", "ed25519", "sign", "never", env=environment)
        listed = run("gpg", "--batch", "--list-keys", "--with-colons", env=environment).splitlines()
        yield [line.split(":")[9] for line in listed if line.startswith("fpr:")], environment
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False, stdout=subprocess.DEVNULL)


class Tree:
    """A small project of its own, in git, that releases itself."""

    def __init__(self, place):
        self.place, self.output = place, place.parent / "output"
        for name in FILES:
            source, target = ROOT / name, place / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        (place / ".gitignore").write_text("ignored\n")
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("first")

    def git(self, *words):
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{who}_NAME": "Tests", f"GIT_{who}_EMAIL": "tests@constancia.invalid",
                            f"GIT_{who}_DATE": f"{COMMITTED} +0000"}
        return run("git", "-C", self.place, *words, env=environment)

    def commit(self, why):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", why)

    def release(self, *words, code=0, output=None, **environment):
        return run(self.place / "scripts/release", "--output", output or self.output, *words, code=code,
                   env={**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
                        "GIT_CONFIG_VALUE_0": "*", **environment})

    def source(self, *words, **options):
        return self.release("--parts", "source", *words, **options)


@pytest.fixture(name="tree")
def new_tree(tmp_path):
    return Tree(tmp_path / "tree")


def files(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_wrong_usage_is_refused(tree):
    assert "--key FINGERPRINT or --unsigned is required" in tree.release(code=2)
    assert "exclude each other" in tree.release("--unsigned", "--key", "A" * 40, code=2)
    assert "40 hexadecimal digits, got 'me@example.org'" in tree.release("--key", "me@example.org", code=2)
    assert "no part 'everything'" in tree.release("--unsigned", "--parts", "everything", code=2)
    assert "no option --publish" in tree.release("--unsigned", "--publish", code=2)
    assert "--key needs a value" in tree.release("--key", code=2)
    assert "no release" in tree.source("--unsigned", "--reuse", tree.place, code=2)
    assert "--dirty" in tree.release("--help")
    assert not tree.output.exists()


def test_only_an_earlier_release_is_replaced(tree):
    tree.output.mkdir()
    (tree.output / "letter").write_text("kept")
    assert "is not replaced" in tree.source("--unsigned", code=2)
    assert files(tree.output) == {"letter": b"kept"}
    (tree.output / "letter").unlink()
    tree.source("--unsigned")
    (tree.output / "stale").write_text("of an earlier one")
    tree.source("--unsigned")
    assert "stale" not in files(tree.output)
    unfinished = tree.output.with_name("output.new")
    unfinished.mkdir()
    (unfinished / "letter").write_text("kept")
    assert "is not replaced" in tree.source("--unsigned", code=2)
    assert files(unfinished) == {"letter": b"kept"}
    (unfinished / "release.json").write_text("an interrupted run")
    tree.source("--unsigned")
    assert not unfinished.exists()


def test_only_what_is_committed_is_released(tree):
    (tree.place / "new.c").write_text("int new;\n")
    (tree.place / "ignored").write_text("not in git\n")
    told = tree.source("--unsigned", code=1)
    assert "?? new.c" in told and "not committed" in told and not tree.output.exists()
    before = tree.git("status", "--porcelain")
    tree.source("--unsigned", "--dirty")
    assert tree.git("status", "--porcelain") == before, "the index of the working tree stays"
    about = json.loads((tree.output / "release.json").read_text())
    assert about["modified"] and about["commit"] == tree.git("rev-parse", "HEAD").strip()
    assert "new.c" in names_in(tree) and "ignored" not in names_in(tree)


def names_in(tree):
    with tarfile.open(next(tree.output.glob("*.tar.gz"))) as archive:
        return {member.name.partition("/")[2] for member in archive}


def test_versions_and_tags_agree(tree):
    changelog, build = tree.place / "debian/changelog", tree.place / "meson.build"
    build.write_text(re.sub(r"version: '.*'", "version: '1.2.3'", build.read_text(), count=1))
    tree.commit("a version in one place")
    assert "meson.build has version 1.2.3, debian/changelog " in tree.source("--unsigned", code=1)
    changelog.write_text(re.sub(r"\(.*\) \w+", "(1.2.3) trixie", changelog.read_text(), count=1))
    tree.commit("and in the other")
    tree.git("tag", "v1.2.3")
    tree.source("--unsigned")
    assert (tree.output / "constancia-1.2.3.tar.gz").exists()
    tree.git("commit", "--quiet", "--allow-empty", "--message", "a later commit")
    assert "the tag v1.2.3 is on another commit" in tree.source("--unsigned", code=1)


def test_two_runs_give_the_same_bytes(tree, tmp_path):
    tree.source("--unsigned")
    again = tmp_path / "again"
    for path in tree.place.rglob("*"):
        if ".git" not in path.parts and path.is_file():
            os.utime(path, (1, 1))
    run("sh", "-c", 'umask 077; exec "$@"', "sh", tree.place / "scripts/release", "--unsigned", "--parts", "source",
        "--output", again, env={**os.environ, "TZ": "Pacific/Kiritimati", "LANG": "C", "GIT_CONFIG_COUNT": "1",
                                "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"})
    assert files(tree.output) == files(again)
    with tarfile.open(next(again.glob("*.tar.gz"))) as archive:
        assert {member.mtime for member in archive} == {COMMITTED}
        assert {member.mode & 0o022 for member in archive} == {0}
    assert json.loads((again / "release.json").read_text())["source_date_epoch"] == COMMITTED


def test_configuration_of_the_machine_changes_no_byte(tree, tmp_path):
    """Conversions, attributes and options that a user or a machine has configured, and objects that git replaces."""
    tree.source("--unsigned")
    committed = files(tree.output)
    tree.git("config", "core.autocrlf", "true")
    (tmp_path / "attributes").write_text("meson.build export-ignore\n* text eol=crlf\n")
    tree.git("config", "core.attributesFile", tmp_path / "attributes")
    tree.git("config", "tar.tar.gz.command", "cat")
    again = tmp_path / "again"
    tree.source("--unsigned", output=again, GZIP="-1", XZ_OPT="-0", TAR_OPTIONS="--mode=777")
    assert files(again) == committed
    first = tree.git("rev-parse", "HEAD").strip()
    tree.git("checkout", "--quiet", "-b", "other")
    (tree.place / "new.c").write_text("int new;\n")
    tree.commit("another")
    tree.git("replace", first, "HEAD")
    tree.git("reset", "--quiet", "--hard", "main")
    told = tree.source("--unsigned", output=tmp_path / "replaced", code=1)  # the files are those of the replacement
    assert "new.c" in told and "not committed" in told


def test_changes_that_git_conceals_are_refused(tree):
    for option in ("assume-unchanged", "skip-worktree"):
        tree.git("update-index", f"--{option}", "scripts/apt-repository")
        told = tree.source("--unsigned", code=1)
        assert "git does not report changes" in told and "scripts/apt-repository" in told
        tree.git("update-index", f"--no-{option}", "scripts/apt-repository")
    (tree.place / "new.c").write_text("int new;\n")
    tree.git("config", "status.showUntrackedFiles", "no")
    assert "?? new.c" in tree.source("--unsigned", code=1)
    (tree.place / "new.c").unlink()
    attributes = tree.place / ".git/info/attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text("meson.build export-ignore\n")
    assert "info/attributes changes what is archived" in tree.source("--unsigned", code=1)
    attributes.unlink()
    tree.source("--unsigned")


def with_client(output):
    """Adds a part to an output, and to its checksums."""
    client = output / "clients/client.whl"
    client.parent.mkdir()
    client.write_text("a client")
    with open(output / "SHA256SUMS", "a", encoding="utf-8") as sums:
        sums.write(f"{hashlib.sha256(client.read_bytes()).hexdigest()}  clients/client.whl\n")
    return client


def test_parts_that_were_changed_are_not_reused(tree, keys, tmp_path):
    (key, other), environment = keys
    again = {"output": tmp_path / "again", "GNUPGHOME": environment["GNUPGHOME"]}
    tree.source("--unsigned")
    client = with_client(tree.output)
    client.write_text("something else")
    told = tree.source("--unsigned", "--dirty", "--reuse", tree.output, code=1, **again)
    assert "is not what its SHA256SUMS says" in told and "clients/client.whl" in told
    client.write_text("a client")
    client.with_name("more").write_text("something else")
    told = tree.source("--unsigned", "--reuse", tree.output, code=1, **again)
    assert "has files that its SHA256SUMS does not have" in told and "clients/more" in told
    client.with_name("more").unlink()
    tree.source("--key", key, "--reuse", tree.output, **again)
    tree.source("--key", other, "--reuse", again["output"], output=tmp_path / "third", GNUPGHOME=again["GNUPGHOME"])
    with open(again["output"] / "SHA256SUMS", "a", encoding="utf-8") as sums:
        sums.write(f"{hashlib.sha256(b'').hexdigest()}  clients/empty\n")
    (again["output"] / "clients/empty").touch()
    told = tree.source("--key", key, "--reuse", again["output"], code=1, output=tmp_path / "third",
                       GNUPGHOME=again["GNUPGHOME"])
    assert "gpg cannot verify" in told


def test_parts_of_another_commit_are_refused(tree, tmp_path):
    tree.source("--unsigned")
    digest = next(tree.output.glob("*.tar.gz")).read_bytes()
    with_client(tree.output)
    again = tmp_path / "again"
    tree.source("--unsigned", "--reuse", tree.output, output=again)
    assert (again / "clients/client.whl").read_text() == "a client"
    assert "clients/client.whl" in (again / "SHA256SUMS").read_text()
    assert next(again.glob("*.tar.gz")).read_bytes() == digest
    former = tree.git("rev-parse", "HEAD").strip()
    tree.git("commit", "--quiet", "--allow-empty", "--message", "another")
    told = tree.source("--unsigned", "--reuse", tree.output, output=tmp_path / "mixed", code=1)
    assert f"was made of another commit, {former}" in told and not (tmp_path / "mixed").exists()


def test_checksums_cover_everything_and_are_signed(tree, keys):
    (key, _), environment = keys
    tree.source("--key", key, GNUPGHOME=environment["GNUPGHOME"])
    listed = dict(reversed(line.split("  ")) for line in (tree.output / "SHA256SUMS").read_text().splitlines())
    found = files(tree.output)
    assert set(listed) == set(found) - {"SHA256SUMS", "SHA256SUMS.asc"}
    assert all(hashlib.sha256(found[name]).hexdigest() == digest for name, digest in listed.items())
    run("gpg", "--batch", "--verify", tree.output / "SHA256SUMS.asc", tree.output / "SHA256SUMS", env=environment)
    with open(tree.output / "release.json", "a", encoding="utf-8") as file:
        file.write(" ")
    assert "release.json: FAILED" in run("sha256sum", "--check", "SHA256SUMS", code=1, cwd=tree.output,
                                         env={**os.environ, "LC_ALL": "C"})


def test_a_key_that_cannot_sign_is_found_first(tree, keys):
    told = tree.source("--key", "0123456789" * 4, code=1, GNUPGHOME=keys[1]["GNUPGHOME"])
    assert "gpg cannot sign with 0123456789" in told and not tree.output.exists()


def test_a_key_that_has_expired_signs_nothing(tree, pool, tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        environment = {**os.environ, "GNUPGHOME": home}
        run("gpg", "--batch", "--quiet", "--passphrase", "", "--faked-system-time", "20200101T000000",
            "--quick-generate-key", "old <old@constancia.invalid>", "ed25519", "sign", "1d", env=environment)
        listed = run("gpg", "--batch", "--list-keys", "--with-colons", env=environment).splitlines()
        key = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
        assert f"gpg cannot sign with {key}" in tree.source("--key", key, code=1, GNUPGHOME=home)
        assert not tree.output.exists()
        told = run(ROOT / "scripts/apt-repository", pool.place, "--key", key, code=1, env=environment)
        assert "gpg did not sign" in told and not (pool.place / "dists").exists()
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False, stdout=subprocess.DEVNULL)


def test_a_signed_release_has_a_signed_tag(tree, keys):
    (key, _), environment = keys
    home = {"GNUPGHOME": environment["GNUPGHOME"]}
    for name, pattern, text in (("debian/changelog", r"\(.*\) \w+", "(1.2.3) trixie"),
                                ("meson.build", r"version: '.*'", "version: '1.2.3'")):
        file = tree.place / name
        file.write_text(re.sub(pattern, text, file.read_text(), count=1))
    tree.commit("a version")
    assert "there is no tag v1.2.3" in tree.source("--key", key, code=1, **home)
    tree.git("tag", "v1.2.3")
    assert "git cannot verify the tag v1.2.3" in tree.source("--key", key, code=1, **home)
    tree.git("tag", "--delete", "v1.2.3")
    run("git", "-C", tree.place, "-c", f"user.signingKey={key}", "tag", "--sign", "--message", "1.2.3", "v1.2.3",
        env={**environment, "GIT_COMMITTER_NAME": "Tests", "GIT_COMMITTER_EMAIL": "tests@constancia.invalid",
             "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"})
    assert "the tag v1.2.3 is signed by first <first@constancia.invalid>" in tree.source("--key", key, **home)


# ---- the bill of materials of an image ----

def layer(**contents):
    """A compressed layer of an image with files, whose names have __ for a slash."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in contents.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


def oci_archive(path, *layers):
    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}"}

    blobs = {}
    manifest = blob(json.dumps({"layers": [blob(data) for data in layers]}).encode())
    blobs["index.json"] = json.dumps({"manifests": [manifest]}).encode()
    with tarfile.open(path, "w") as tar:
        for name, data in blobs.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def test_an_image_consists_of_its_packages(tmp_path):
    status = "Package: {}\nStatus: {}\nArchitecture: amd64\nVersion: {}\n{}\n"
    base = status.format("libc6", "install ok installed", "2.41-1", "Source: glibc\n")
    oci_archive(tmp_path / "image.tar", layer(var__lib__dpkg__status=base), layer(
        var__lib__dpkg__status=base + status.format("constancia", "install ok installed", "1.0+deb13",
                                                    "Source: constancia (1.0)\n") +
        status.format("gone", "deinstall ok config-files", "1", ""),
        usr__share__doc__constancia__copyright="Format: 1.0\n\nFiles: *\nLicense: Apache-2.0\n"))
    words = ROOT / "scripts/sbom", "--version", "1.0", "--image", tmp_path / "image.tar"
    bill = json.loads(run(*words, env={**os.environ, "SOURCE_DATE_EPOCH": str(COMMITTED)}))
    ours, libc = bill["components"]
    assert ours["purl"] == "pkg:deb/debian/constancia@1.0%2Bdeb13?arch=amd64"
    assert ours["licenses"] == [{"license": {"name": "Apache-2.0"}}]
    assert {"name": "debian:source-version", "value": "1.0"} in ours["properties"]
    assert libc["name"] == "libc6" and {"name": "debian:source", "value": "glibc"} in libc["properties"]
    assert bill["metadata"]["component"]["type"] == "container"
    oci_archive(tmp_path / "empty.tar", layer(etc__passwd="root"))
    assert "no Debian packages" in run(*words[:-1], tmp_path / "empty.tar", code=1)


def test_the_tools_consist_of_less_than_the_service():
    build = pathlib.Path(BINARY).resolve().parent
    words = ROOT / "scripts/sbom", "--version", "1.0", "--name"
    programs = build / "loaded-tools.so", build / "constancia-tools"
    bill = json.loads(run(*words, "constancia-tools", *programs))
    assert bill["metadata"]["component"]["purl"] == "pkg:deb/constancia/constancia-tools@1.0"
    names = {each["name"].removesuffix("t64") for each in bill["components"]}
    assert {"libcurl4", "libssl3", "ca-certificates"} <= names
    assert not {"libpq5", "libmicrohttpd12", "fonts-noto-core"} & names
    assert "one of constancia, constancia-tools" in run(*words, "constancia-tool", *programs, code=2)


# ---- the tree for apt ----

class Pool:
    """Packages of two releases of Debian, and an HTTP server of their tree."""

    def __init__(self, place, environment):
        self.place, self.environment = place, environment
        for suite, number in (("bookworm", 12), ("trixie", 13)):
            self.add(suite, f"1.0.0+deb{number}")
        self.index = functools.partial(run, ROOT / "scripts/apt-repository", place, env=environment)

    def add(self, suite, version):
        with tempfile.TemporaryDirectory() as tree:
            control = pathlib.Path(tree, "DEBIAN/control")
            control.parent.mkdir()
            control.parent.chmod(0o755)
            control.write_text(CONTROL.format(version=version))
            path = self.place / f"pool/{suite}/constancia/constancia_{version}_amd64.deb"
            path.parent.mkdir(parents=True, exist_ok=True)
            run("dpkg-deb", "--root-owner-group", "--build", tree, path)
        return path

    def export(self, key):
        return run("gpg", "--batch", "--armor", "--export", key, env=self.environment)


class Client:
    """apt with directories of its own."""

    def __init__(self, place, url, keyring, suite="trixie"):
        self.place = place
        for name in ("etc/apt/apt.conf.d", "etc/apt/preferences.d", "etc/apt/sources.list.d", "lists/partial",
                     "cache/archives/partial", "var"):
            (place / name).mkdir(parents=True, exist_ok=True)
        (place / "status").write_text("")
        (place / "keyring.asc").write_text(keyring)
        (place / "etc/apt/sources.list.d/constancia.sources").write_text(
            f"Types: deb\nURIs: {url}\nSuites: {suite}\nComponents: main\nSigned-By: {place}/keyring.asc\n")
        (place / "apt.conf").write_text(
            f'Dir "{place}/";\nDir::State "{place}/var";\nDir::State::lists "{place}/lists";\n'
            f'Dir::State::status "{place}/status";\nDir::Cache "{place}/cache";\nDir::Etc "{place}/etc/apt";\n'
            'APT::Architecture "amd64";\nAPT::Architectures { "amd64"; };\nAPT::Sandbox::User "root";\n'
            'Acquire::http::Proxy "DIRECT";\nAcquire::Languages "none";\nAcquire::Retries "0";\n')

    def apt(self, *words, code=0):
        return run("apt-get", *words, code=code, cwd=self.place,
                   env={"PATH": os.environ["PATH"], "APT_CONFIG": str(self.place / "apt.conf"), "LC_ALL": "C"})

    def update(self):
        """Updates the lists; any warning is a failure."""
        return self.apt("update", "--error-on=any")

    def refuses(self, reason):
        told = self.apt("update", "--error-on=any", code=100)
        assert reason in told, told
        self.apt("download", "constancia", code=100)
        assert not list(self.place.glob("*.deb"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def send_head(self):
        """Two indexes that are written within one second have the same time: the second one must be sent, too."""
        del self.headers["If-Modified-Since"]
        return super().send_head()


@contextlib.contextmanager
def served(place):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=place))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(name="pool")
def new_pool(tmp_path, keys):
    return Pool(tmp_path / "apt", keys[1])


def test_apt_reads_the_tree(pool, keys, tmp_path):
    pool.index("--key", keys[0][0])
    keyring = (pool.place / "constancia-archive-keyring.asc").read_text()
    with served(pool.place) as url:
        for suite, version in (("bookworm", "1.0.0+deb12"), ("trixie", "1.0.0+deb13")):
            client = Client(tmp_path / suite, url, keyring, suite)
            client.update()
            client.apt("download", "constancia")
            assert [path.name for path in client.place.glob("*.deb")] == [f"constancia_{version}_amd64.deb"]
        newer = pool.add("trixie", "1.1.0+deb13")
        pool.index("--key", keys[0][0])
        client.update()
        client.apt("download", "constancia")
        assert (client.place / newer.name).read_bytes() == newer.read_bytes()


def changed(path):
    """Replaces the last letter of a file by another."""
    data = bytearray(path.read_bytes())
    at = max(number for number, byte in enumerate(data) if chr(byte).isalnum())
    data[at] ^= 1
    path.write_bytes(data)


def test_apt_refuses_what_was_changed(pool, keys, tmp_path):
    pool.index("--key", keys[0][0])
    keyring = pool.export(keys[0][0])
    main = pool.place / "dists/trixie/main/binary-amd64"
    with served(pool.place) as url:
        client = Client(tmp_path / "package", url, keyring)
        client.update()
        changed(pool.place / "pool/trixie/constancia/constancia_1.0.0+deb13_amd64.deb")
        assert "Hash Sum mismatch" in client.apt("download", "constancia", code=100)
        for path in [*main.glob("Packages*"), *(main / "by-hash/SHA256").iterdir()]:
            changed(path)
        Client(tmp_path / "index", url, keyring).refuses("Hash Sum mismatch")
        release = pool.place / "dists/trixie/InRelease"
        release.write_text(release.read_text().replace("Origin: Constancia", "Origin: constancia"))
        Client(tmp_path / "release", url, keyring).refuses("is not signed")


def test_apt_refuses_another_key_no_signature_and_an_expired_index(pool, keys, tmp_path):
    first, second = keys[0]
    with served(pool.place) as url:
        pool.index("--key", second)
        Client(tmp_path / "key", url, pool.export(first)).refuses("is not signed")
        pool.index("--unsigned")
        assert not (pool.place / "constancia-archive-keyring.asc").exists()
        Client(tmp_path / "unsigned", url, pool.export(first)).refuses("is not signed")
        pool.index("--key", first, "--date", COMMITTED, "--valid", "7")
        Client(tmp_path / "expired", url, pool.export(first)).refuses("is expired")


def test_two_keys_sign_during_a_change(pool, keys, tmp_path):
    pool.index("--key", keys[0][0], "--key", keys[0][1])
    with served(pool.place) as url:
        for number, key in enumerate(keys[0]):
            Client(tmp_path / str(number), url, pool.export(key)).update()
        Client(tmp_path / "both", url, (pool.place / "constancia-archive-keyring.asc").read_text()).update()


def test_the_same_pool_gives_the_same_indexes(pool, tmp_path):
    pool.index("--unsigned", "--date", COMMITTED)
    shutil.copytree(pool.place / "pool", tmp_path / "again/pool")
    run(ROOT / "scripts/apt-repository", tmp_path / "again", "--unsigned", "--date", COMMITTED,
        env={**os.environ, "TZ": "Pacific/Kiritimati"})
    assert files(pool.place) == files(tmp_path / "again")
    assert "Date: Tue, 14 Nov 2023 22:13:20 +0000" in (pool.place / "dists/trixie/Release").read_text()


def test_a_tree_that_cannot_be_indexed(pool, tmp_path):
    def refused(code, *words):
        return run(ROOT / "scripts/apt-repository", *words, code=code, env=pool.environment)

    assert "has no pool" in refused(2, tmp_path, "--unsigned")
    assert "is required" in refused(2, pool.place)
    assert "exclude each other" in refused(2, pool.place, "--unsigned", "--key", "A" * 40)
    assert "must be a number of days, got 'week'" in refused(2, pool.place, "--unsigned", "--valid", "week")
    pool.index("--unsigned")
    before = files(pool.place / "dists")
    assert "gpg did not sign" in refused(1, pool.place, "--key", "0123456789" * 4)
    (pool.place / "pool/sid").mkdir()
    assert "pool/sid has no packages" in refused(1, pool.place, "--unsigned")
    assert files(pool.place / "dists") == before, "the former indexes stay"
