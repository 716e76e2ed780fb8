"""What the last stage of a Containerfile does, done in a bare Debian without a container engine, and what the
container would start.

usage: container.py ROOT CONTAINERFILE PACKAGE
"""
import json
import re
import shutil
import sys

from chroot import Chroot, Serving, Verdicts, loopback_alone

verdict = Verdicts()
# What debian:13-slim has in /etc/dpkg/dpkg.cfg.d/docker.
SLIM = """path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/man/*
"""


def instructions(path):
    """Of the last stage: (instruction, rest), continued lines joined."""
    text = re.sub(r"\\\n", " ", open(path, encoding="utf-8").read())
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    last = max(number for number, line in enumerate(lines) if line[0] == "FROM")
    return lines[last:]


def main():
    root = Chroot(sys.argv[1])
    package = sys.argv[3]
    root.path("/etc/dpkg/dpkg.cfg.d/docker").write_text(SLIM)
    environment, user, start, health = {}, None, {}, None
    for name, rest in instructions(sys.argv[2]):
        if name == "COPY":
            root.path("/tmp/package").mkdir()
            shutil.copy(package, root.path("/tmp/package"))
        elif name == "RUN":
            code, words = root.run("sh", "-c", rest, environment=environment)
            verdict(code == 0, f"RUN {rest[:60]}…", words)
        elif name == "ENV":
            key, value = rest.split("=", 1)
            environment[key] = value
        elif name == "USER":
            user = rest
        elif name in ("ENTRYPOINT", "CMD"):
            start[name] = json.loads(rest)
        elif name == "HEALTHCHECK":
            health = json.loads(rest[rest.index("CMD ") + 4:])
    code, words = root.run("id", "-u", "constancia")
    verdict(words.strip() == "900" and root.stat("/var/lib/constancia") == "constancia:constancia 700",
            "the user is 900, and the volume is its", words)
    documents = root.path("/usr/share/doc/constancia")
    verdict(all((documents / name).is_file() for name in (
        "constancia.cdx.json", "copyright", "docs/operate/production.md", "examples/nginx.conf", "examples/constancia.conf")),
            "bill of materials, examples and pages are there, in a slim image, too",
            list(documents.rglob("*")) if documents.exists() else "")
    verdict(not root.path("/usr/share/doc/curl/NEWS.Debian.gz").exists() and
            not root.path("/usr/share/man/man1/curl.1.gz").exists(), "those of other packages are left out")
    verdict(not root.path("/usr/bin/systemctl").exists(), "no systemd in the image")
    loopback_alone()
    # As an operator's environment would have it.
    environment["CONSTANCIA_TSA_URL"] = "embedded:"
    config = start["CMD"][1:]
    code, words = root.run(*start["ENTRYPOINT"], "init", *config, user=user, environment=environment)
    verdict(code == 0, "init", words)
    serving = Serving(root, start["ENTRYPOINT"] + start["CMD"], user, environment)
    with serving:
        code, words = root.run(*health, user=user)
        verdict(code == 0, "the health check passes", words)
        shutil.move(root.path("/bin/sh").resolve(), root.path("/tmp/shell"))
        code, words = root.run(*start["ENTRYPOINT"], "account", "list", "--json", *config, user=user,
                               environment=environment)
        verdict(code == 0, "administration works inside, without a shell", words)
    verdict(serving.code == 0, "SIGTERM ends it with 0", serving.log.read_text()[-2000:])
    code, words = root.run(*health, user=user)
    verdict(code != 0, "the health check fails when nothing serves", words)
    sys.exit(1 if verdict.failed else 0)


main()
