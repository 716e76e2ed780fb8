"""The package's life in a bare Debian: installed, upgraded, used, removed, purged.

usage: life.py ROOT PACKAGE OLDER_PACKAGES
"""
import hashlib
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request

from chroot import Chroot, Serving, Verdicts, loopback_alone

CONFIG = "/etc/constancia/constancia.conf"
SHIPPED = "1bba8926d457434a97e2c3b1b1ecbf9690ae1d655c7ad0aeca6a88b100b96dfa"
SETTINGS = """# The operator's own words.
[service]
name = Package
[tsa]
url = embedded:
[seal]
interval = 1s
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >>/tmp/asked
case "$*" in *is-enabled*) echo enabled ;; *MainPID*) cat /tmp/running 2>/dev/null || echo 0 ;; esac
exit 0
"""
verdict = Verdicts()


def install(root, *packages):
    """By apt, which finds what is needed."""
    for package in packages:
        shutil.copy(package, root.path("/tmp"))
    return root.run("apt-get", "install", "--yes", "--no-install-recommends", "--allow-downgrades",
                    *(f"/tmp/{pathlib.Path(package).name}" for package in packages))


def with_systemd(root, present):
    """A stand-in that records what it is asked for, in the place of systemctl."""
    place, aside = root.path("/usr/bin/systemctl"), root.path("/tmp/systemctl")
    if not present:
        shutil.rmtree(root.path("/run/systemd"), ignore_errors=True)
        if aside.exists():
            shutil.move(aside, place)
        return
    root.path("/run/systemd/system").mkdir(parents=True)
    shutil.move(place, aside)
    place.write_text(SYSTEMCTL)
    place.chmod(0o755)
    root.path("/tmp/asked").unlink(missing_ok=True)


def asked(root):
    path = root.path("/tmp/asked")
    return path.read_text().splitlines() if path.exists() else []


def name_of(root):
    return re.search(r'^PRETTY_NAME="(.*)"$', root.path("/etc/os-release").read_text(), re.MULTILINE)[1]


def judge_first_installation(root, package):
    with_systemd(root, False)
    root.run("apt-get", "update")
    code, words = install(root, package)
    if not verdict(code == 0, f"apt installs it in a bare {name_of(root)}", words):
        sys.exit(1)
    for name, wanted in (("/var/lib/constancia", "constancia:constancia 700"),
                         ("/var/backups/constancia", "constancia:constancia 700"),
                         ("/etc/constancia", "root:constancia 750"), (CONFIG, "root:constancia 640"),
                         ("/usr/bin/constancia", "root:root 755"),
                         ("/usr/libexec/constancia/constancia-renderer", "root:root 755")):
        found = root.stat(name)
        verdict(found == wanted, f"{name} is {wanted}", found)
    code, words = root.run("getent", "passwd", "constancia")
    verdict(re.fullmatch(r"constancia:[^:]*:\d{3}:\d{3}:[^:]*:/var/lib/constancia:/usr/sbin/nologin\n", words),
            "the user has no shell and is a system's", words)
    enabled = list(root.path("/etc/systemd").rglob("constancia*"))
    verdict(not enabled, "the unit is not enabled", enabled)
    shipped = hashlib.sha256(root.path(CONFIG).read_bytes()).hexdigest()
    verdict(shipped == SHIPPED, "the settings file is that of every version, so no upgrade asks about it", shipped)
    code, words = root.run("constancia", "config", "check", user="constancia:constancia")
    verdict(code == 1 and "tsa.url" in words, "what the operator has to set is named", words)
    code, words = root.run("constancia", "account", "list", user="nobody:nogroup")
    verdict(code == 2 and f"{CONFIG}: Permission denied" in words and "sudo -u constancia" in words,
            "another user may not read the settings, and reads who may", words)


def judge_unit(root):
    units = ("constancia.service", "constancia-backup.service", "constancia-backup.timer")
    code, words = root.run("systemd-analyze", "verify", "--man=no", *units)
    verdict(code == 0 and "constancia" not in words, "systemd-analyze verify: nothing to say", words)
    for unit in units[:2]:
        code, words = root.run("systemd-analyze", "security", "--offline=yes", "--no-pager", "--threshold=20", unit)
        verdict(code == 0, "systemd-analyze security: " + (words.strip().splitlines() or ["nothing"])[-1], words)
    drop_in = [path for path in (root.path("/lib"), root.path("/usr/lib"))
               if (path / "systemd/system/constancia.service.d/backup.conf").exists()]
    verdict(drop_in, "the drop-in lets the service write backups")


def judge_backups(root):
    """The unit's own command, as its user: twice."""
    unit = next(path / "systemd/system/constancia-backup.service" for path in (root.path("/usr/lib"), root.path("/lib"))
                if (path / "systemd/system/constancia-backup.service").exists())
    command = re.search(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)[1].split()
    user = "constancia:constancia"
    before = root.path(CONFIG).read_text()
    code, words = root.run(*command, user=user)
    verdict(code == 2 and "backup.directory" in words, "without backup.directory the backup fails and says so", words)
    root.path(CONFIG).write_text(before + "[backup]\ndirectory = /var/backups/constancia\n")
    for kind in ("full", "incremental"):
        code, words = root.run(*command, "--json", user=user)
        verdict(code == 0 and json.loads(words)["kind"] == kind, f"the unit's command makes a backup: {kind}", words)
    code, words = root.run("constancia", "store", "backup-verify", "--config", CONFIG, user=user)
    verdict(code == 0, "the backup is verified", words)
    root.path(CONFIG).write_text(before)


def upgraded_while_running(root, package, older, settings, environment, groups="constancia"):
    """With a process that passes for a service: what was printed, and how it was to be restarted."""
    root.path(CONFIG).write_text(settings)
    install(root, older / "constancia_0.0.1.deb")
    with_systemd(root, True)
    process = subprocess.Popen(["chroot", "--userspec=constancia:constancia", f"--groups={groups}", root.place,
                                "sleep", "900"], env=root.environment(environment))
    root.path("/tmp/running").write_text(f"{process.pid}\n")
    try:
        code, words = install(root, package)
    finally:
        process.kill()
        process.wait()
        root.path("/tmp/running").unlink()
    calls = asked(root)
    with_systemd(root, False)
    return words, code == 0 and [call for call in calls if re.search(r"\b(re)?start\b", call)]


def judge_settings(root, package, older):
    words, started = upgraded_while_running(root, package, older, SETTINGS, {})
    verdict(started == ["try-restart constancia.service"], "valid settings: the running service restarts",
            f"{words}\n{started}")
    words, started = upgraded_while_running(root, package, older, SETTINGS + "[rate]\nlive = many\n", {})
    verdict(started == [] and "rate.live" in words and "was not restarted" in words,
            "settings that are refused: it is left running, and the upgrade names what to correct", f"{words}\n{started}")
    without, secret = SETTINGS.replace("url = embedded:\n", ""), "/run/credentials/constancia.service"
    words, started = upgraded_while_running(root, package, older, without, {})
    verdict(started == [] and "tsa.url" in words, "so where one is missing", f"{words}\n{started}")
    root.path(secret).mkdir(parents=True)
    root.path(secret + "/mail").write_text("a secret\n")
    words, started = upgraded_while_running(
        root, package, older,
        without + "[mail]\nurl = smtps://mail.example.org\nfrom = a@example.org\nuser = a\n"
        "password = credential:mail\n",
        {"CONSTANCIA_TSA_URL": "embedded:", "CREDENTIALS_DIRECTORY": secret, "NOTIFY_SOCKET": "/nowhere"})
    verdict(started == ["try-restart constancia.service"],
            "what the running one has from its environment and as a credential counts", f"{words}\n{started}")
    held, wanted = "/etc/constancia/roots.pem", SETTINGS + "[webhook]\nroots = /etc/constancia/roots.pem\n"
    shutil.copy(root.path("/etc/ssl/certs/ca-certificates.crt"), root.path(held))
    root.run("chgrp", "4242", held)
    root.path(held).chmod(0o640)
    words, started = upgraded_while_running(root, package, older, wanted, {})
    verdict(started == [] and "webhook.roots" in words, "a file that the running one may not read is none to it",
            f"{words}\n{started}")
    words, started = upgraded_while_running(root, package, older, wanted, {}, "4242")
    verdict(started == ["try-restart constancia.service"], "one that it may read by a group of its own is",
            f"{words}\n{started}")
    root.path(held).unlink()
    root.path(CONFIG).write_text(SETTINGS)


def judge_kinds_of_steps(root, package, older):
    """Newer versions while a service runs: what their programs say of the steps that are due decides."""
    for version, what, wanted, hint in (
            ("9.0.1", "rolling steps: nothing stops, and this node restarts after the migration", [],
             "Nodes of the former version may keep serving"),
            ("9.0.2", "a stop step among them: all nodes stop", [], "Stop all nodes"),
            ("9.0.3", "another node has migrated the store: the service restarts", ["try-restart constancia.service"], "")):
        words, started = upgraded_while_running(root, older / f"constancia_{version}.deb", older, SETTINGS, {})
        verdict(started == wanted and hint in words and ("constancia migrate" in words) == bool(hint), what,
                f"{words}\n{started}")
        if version == "9.0.1":
            verdict("Stop all nodes" not in words and "systemctl restart constancia" in words, "and it says so", words)
    install(root, package)


def judge_upgrades(root, package, older):
    root.path(CONFIG).write_text(SETTINGS)
    with_systemd(root, True)
    code, words = install(root, package)
    calls = asked(root)
    verdict(code == 0 and "try-restart constancia.service" in calls, "an upgrade of the same schema restarts it",
            f"{words}\n{calls}")
    verdict(any("daemon-reload" in call for call in calls[:calls.index("try-restart constancia.service")])
            if "try-restart constancia.service" in calls else False, "after systemd has read the new unit", calls)
    verdict(root.path(CONFIG).read_text() == SETTINGS and root.stat(CONFIG) == "root:constancia 640",
            "it keeps the operator's settings", root.stat(CONFIG))
    with_systemd(root, False)
    install(root, older / "constancia_0.0.2.deb")
    with_systemd(root, True)
    code, words = install(root, package)
    calls = asked(root)
    verdict(code == 0 and not [call for call in calls if re.search(r"\b(re)?start\b", call)],
            "an upgrade that needs a migration starts nothing", f"{words}\n{calls}")
    verdict("-- constancia migrate\n" in words and "001-initial ->" in words, "and says what to do", words)
    with_systemd(root, False)


def request(url, body=None, key=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    asking = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, headers)
    with urllib.request.urlopen(asking, timeout=30) as answer:
        return answer.read()


def administer(root, *words):
    code, text = root.run("constancia", *words, "--json")
    if code:
        raise RuntimeError(text)
    return json.loads(text)


def judge_a_round(root, package, older):
    """As the unit would run it: register, certify, verify; and meanwhile comes a package of another schema."""
    user = "constancia:constancia"
    code, words = root.run("constancia", "init", user=user)
    verdict(code == 0, "init as the service's user", words)
    serving = Serving(root, ["constancia", "serve", "--config", CONFIG], user)
    with serving:
        account = administer(root, "account", "create", "--name", "Package", "--credits", "10")
        channel = administer(root, "channel", "create", "--account", account["account_id"], "--name", "Orders",
                             "--declarant", "Package", "--modality", "content")
        key = administer(root, "key", "create", "--channel", channel["channel_id"], "--mode", "live")["key"]
        base = "http://127.0.0.1:8080/v1"
        code, words = root.run("constancia", "config", "check", "--config", CONFIG, user=user)
        verdict(code == 0, "config check reports nothing while the service runs, as an upgrade requires", words)
        code, words = install(root, older / "constancia_0.0.2.deb")
        verdict(code == 0 and root.run("constancia", "serve")[1].startswith('{"version":"0.0.2"'),
                "programs of another schema come while it runs", words)
        event = json.loads(request(base + "/events", {"client_ref": "1", "payload": {"n": 1}}, key))
        asked_for = json.loads(request(base + "/certifications", {"seq_from": 1, "seq_to": 1}, key))
        end = time.monotonic() + 60
        while asked_for["status"] == "processing" and time.monotonic() < end:
            time.sleep(0.2)
            asked_for = json.loads(request(f"{base}/certifications/{asked_for['certification_id']}", key=key))
        install(root, package)
        if not verdict(asked_for["status"] == "completed", "an event is registered and certified, "
                       "with the programs that it was started with", asked_for):
            return
        root.path("/tmp/evidence.zip").write_bytes(request(asked_for["evidence_url"]))
        for report in asked_for["reports"]:
            name = "-".join(report["languages"])
            root.path(f"/tmp/report-{name}.pdf").write_bytes(request(report["url"]))
        root.path("/tmp/receipt.json").write_text(json.dumps(event))
        shutil.copy(root.path("/var/lib/constancia/trust.pem"), root.path("/tmp/trust.pem"))
        reports = [f"/tmp/{path.name}" for path in root.path("/tmp").glob("report-*.pdf")]
    verdict(serving.code == 0, "SIGTERM ends it with 0", serving.log.read_text()[-2000:])
    code, words = root.run("constancia", "verify", "/tmp/evidence.zip", *reports, "--trust", "/tmp/trust.pem",
                           "--receipt", "/tmp/receipt.json", user="nobody")
    verdict(code == 0 and len(reports) >= 2, f"anybody verifies the archive and {len(reports)} reports", words)
    wrong = [str(path) for path in root.path("/var/lib/constancia").rglob("*")
             if root.stat(path.relative_to(root.place).as_posix().join(["/", ""])).split(":")[0] != "constancia"]
    verdict(not wrong, "all that is kept is the service's user's", wrong)


def judge_another_schema(root):
    store = sqlite3.connect(root.path("/var/lib/constancia/constancia.db"))
    with store:
        newest = store.execute("SELECT value FROM settings WHERE name = 'schema'").fetchone()[0]
        store.execute("UPDATE settings SET value = '001-initial' WHERE name = 'schema'")
    store.close()
    code, words = root.run("constancia", "serve", "--config", CONFIG, user="constancia:constancia")
    verdict(code != 0 and re.search("constancia (store )?migrate", words), "serve refuses an older schema and says the command", words)
    store = sqlite3.connect(root.path("/var/lib/constancia/constancia.db"))
    with store:
        store.execute("UPDATE settings SET value = ? WHERE name = 'schema'", (newest,))
    store.close()
    for path in root.path("/var/lib/constancia").glob("constancia.db*"):
        shutil.chown(path, *(int(part) for part in root.run("stat", "-c", "%u:%g", "/var/lib/constancia")[1]
                             .split(":")))


def kept(root):
    """What is below the data directory, with digests."""
    place = root.path("/var/lib/constancia")
    return {str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(place.rglob("*")) if path.is_file()}


def judge_the_end(root, package):
    own = root.path("/etc/constancia/report-key.pem")
    own.write_text("the operator's own")
    before = kept(root)
    with_systemd(root, True)
    code, words = root.run("apt-get", "remove", "--yes", "constancia")
    verdict(code == 0 and any(re.search(r"\bstop\b.*constancia.service", call) for call in asked(root)),
            "a removal stops the service", f"{words}\n{asked(root)}")
    with_systemd(root, False)
    verdict(root.path(CONFIG).read_text() == SETTINGS and kept(root) == before and
            not root.path("/usr/bin/constancia").exists(), "and keeps settings and data")
    verdict(root.stat("/var/lib/constancia") == "constancia:constancia 700", "as they were",
            root.stat("/var/lib/constancia"))
    code, words = root.run("dpkg", "--purge", "constancia")
    verdict(code == 0 and before and kept(root) == before, "a purge deletes no evidence", words)
    verdict("rm -r /var/lib/constancia" in words, "and says how that is done", words)
    verdict(not root.path(CONFIG).exists() and own.exists(),
            "the package's settings are gone, the operator's own files are not")
    shutil.rmtree(root.path("/var/lib/constancia"))
    own.unlink()
    install(root, package)
    code, words = root.run("dpkg", "--purge", "constancia")
    left = [str(path) for name in ("etc", "var/lib", "usr", "lib") for path in root.path(name).rglob("*constancia*")
            if "/dpkg/" not in str(path)]
    verdict(code == 0 and not left, "a purge of what was never used leaves nothing", f"{words}\n{left}")


def judge_tools(root, package):
    """The package with the tools alone, on a machine that never had the service, and the service in its place."""
    package = pathlib.Path(package)
    code, words = install(root, package.with_name(package.name.replace("constancia_", "constancia-tools_")))
    if not verdict(code == 0, "apt installs the tools alone", words):
        return
    code, words = root.run("constancia", "--help")
    verdict(code == 0 and "register FILE..." in words and "serve" not in words, "they have no service", words)
    code, words = root.run("constancia", "register", "/etc/os-release", "--json")
    verdict(code == 2 and "CONSTANCIA_URL" in words, "register says what it needs", words)
    code, words = root.run("env", "CONSTANCIA_URL=http://127.0.0.1:9", "CONSTANCIA_KEY=svc_test_x", "constancia", "events",
                           "tail", "--json")
    verdict(code == 2 and "not be loaded" not in words and "onnect" in words, "libcurl is loaded", words)
    code, words = root.run("constancia", "verify", "/etc/os-release")
    verdict(code != 0 and "NOT" in words, "the verifier works", words)
    for name in ("share/man/man1/constancia.1.gz", "share/bash-completion/completions/constancia.bash",
                 "share/fish/vendor_completions.d/constancia.fish", "share/zsh/vendor-completions/_constancia",
                 "share/doc/constancia-tools/copyright", "share/doc/constancia-tools/constancia-tools.cdx.json"):
        verdict(root.path(f"/usr/{name}").exists(), f"/usr/{name} is there")
    verdict(not root.path("/etc/constancia").exists() and not root.path("/usr/libexec/constancia").exists(),
            "and nothing of the service")
    code, words = install(root, package)
    verdict(code == 0 and "serve" in root.run("constancia", "--help")[1] and
            root.run("dpkg-query", "--show", "--showformat=${Status}", "constancia-tools")[1] != "install ok installed",
            "the service takes the place of the tools", words)
    code, words = root.run("dpkg", "--purge", "constancia")
    verdict(code == 0 and not root.path("/usr/bin/constancia").exists(), "and leaves nothing of them", words)


def main():
    root = Chroot(sys.argv[1])
    package, older = sys.argv[2], pathlib.Path(sys.argv[3])
    judge_first_installation(root, older / "constancia_0.0.1.deb")
    judge_unit(root)
    judge_upgrades(root, package, older)
    judge_settings(root, package, older)
    judge_kinds_of_steps(root, package, older)
    loopback_alone()
    judge_a_round(root, package, older)
    judge_backups(root)
    judge_another_schema(root)
    judge_the_end(root, package)
    judge_tools(root, package)
    sys.exit(1 if verdict.failed else 0)


main()
