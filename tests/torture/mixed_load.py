"""What happens alongside registrations while the power is cut: certifications, administration,
backups, and registrations in bulk, each in a thread of its own, and what of it was acknowledged and
so has to last."""

import hashlib
import http.client
import json
import os
import random
import threading
import time

from machine import Ended, Refused
from service import Client, declare_json

from burst import Burst

CERTIFIED_MAX = 200  # events
BULK = 600  # events at a time, which are more than the memory of a transaction holds
BULK_TEXT_SIZE = 15_000  # of each: it travels in the transaction


class Companion(threading.Thread):
    """Acts again and again until the machine ends."""

    def __init__(self, machine, report, seed):
        super().__init__(daemon=True)
        self.machine, self.report = machine, report
        self.random = random.Random(seed)

    def run(self):
        try:
            while self.machine.on:
                self.act()
        except (Ended, Refused, OSError, http.client.HTTPException):
            pass  # ended, or without a service to talk to


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Certifications:
    """Of one chain."""

    def __init__(self, chain):
        self.chain = chain
        self.accepted = []   # certification_id
        self.completed = {}  # certification_id: {what: digest}

    def fetch(self, client, certification):
        """{what: digest} of the files of a completed one."""
        urls = {"evidence": certification["evidence_url"]}
        for report in certification["reports"]:
            urls["report " + " ".join(report["languages"])] = report["url"]
        files = {}
        for what, url in urls.items():
            status, _, body = client.request("GET", url[url.index("/v1/") + 3:], self.chain.key)
            files[what] = (status, digest(body))
        return files

    def check(self, client, report, where, certification_id):
        """It is there, not failed, and once completed with the same files."""
        status, found = client.get("/certifications/" + certification_id, self.chain.key)
        before = self.completed.get(certification_id)
        good = ("completed",) if before else ("processing", "completed")
        if report.check(status == 200 and found["status"] in good,
                        f"{where}: certification {certification_id}: {status} {found}") and before:
            now = self.fetch(client, found)
            report.check(now == before, f"{where}: files of {certification_id} were {before}, "
                                        f"are {now}")

    def finish(self, client, report, where):
        """All that were accepted are completed in the end."""
        end = time.monotonic() + 120
        waiting = [one for one in self.accepted if one not in self.completed]
        while waiting and time.monotonic() < end:
            _, found = client.get("/certifications/" + waiting[0], self.chain.key)
            if found["status"] == "processing":
                time.sleep(0.05)
            else:
                self.check(client, report, where, waiting.pop(0))
        report.check(not waiting, f"{where}: accepted and never completed: {waiting}")


class Certifier(Companion):
    def __init__(self, machine, report, seed, certifications):
        super().__init__(machine, report, seed)
        self.certifications = certifications

    def act(self):
        client = Client(self.machine.port)
        try:
            self.certify(client, self.certifications.chain)
        finally:
            client.close()
        time.sleep(0.02)

    def certify(self, client, chain):
        last = max((event["sequence"] for event in list(chain.receipts.values())), default=0)
        if not last:
            return
        first = self.random.randint(max(1, last - CERTIFIED_MAX), last)
        body = json.dumps({"seq_from": first, "seq_to": last}).encode()
        status, _, answer = client.request("POST", "/certifications", chain.key, body)
        self.report.check(status in (202, 503) or self.machine.disk_failed,
                          f"certification: {status} {answer}")
        if status == 202 and self.machine.on:
            certification_id = json.loads(answer)["certification_id"]
            self.certifications.accepted.append(certification_id)
            self.follow(client, certification_id)

    def follow(self, client, certification_id):
        while self.machine.on:
            status, found = client.get("/certifications/" + certification_id,
                                       self.certifications.chain.key)
            if status == 200 and found["status"] == "completed":
                files = self.certifications.fetch(client, found)
                if self.machine.on and all(status == 200 for status, _ in files.values()):
                    self.certifications.completed[certification_id] = files
                return
            time.sleep(0.02)


class Administered:
    """An account of its own, and what was changed about it."""

    def __init__(self, machine):
        self.account = machine.admin("account", "create", "--name", "administered")["account_id"]
        self.channel = machine.admin("channel", "create", "--account", self.account, "--name",
                                   "administered", "--declarant", "Torture", "--modality",
                                   "content")["channel_id"]
        self.keys, self.limits, self.reasons, self.versions = [], [], [], {}

    def check(self, machine, client, report, where):
        for key in self.keys:
            status, answer = client.get("/account/balance", key)
            report.check(status == 200, f"{where}: a key that was made: {status} {answer}")
        limits = [limit["limit_id"] for limit in
                  machine.admin("limit", "list", "--channel", self.channel, "--limit", 1000)["data"]]
        report.check(set(self.limits) <= set(limits), f"{where}: limits were {self.limits}, "
                                                      f"are {limits}")
        entries = machine.admin("credits", "list", self.account, "--limit", 1000)["data"]
        missing = set(self.reasons) - {entry["reference"] for entry in entries}
        report.check(not missing, f"{where}: credits that were added: {missing}")
        balance = machine.admin("account", "show", self.account)["balance"]
        report.check(balance == sum(entry["credits"] for entry in entries),
                     f"{where}: balance {balance} of {entries}")
        sealed = {version["version"]: version["description"] for version in
                  machine.admin("channel", "show", self.channel, "--limit",
                                1000)["config_versions"]}
        report.check(self.versions.items() <= sealed.items(),
                     f"{where}: sealed were {self.versions}, are {sealed}")


class Administrator(Companion):
    def __init__(self, machine, report, seed, administered):
        super().__init__(machine, report, seed)
        self.administered = administered

    def act(self):
        facts, cli, name = self.administered, self.machine.admin, f"{self.random.getrandbits(48):x}"
        kind = self.random.randrange(4)
        if kind == 0:
            facts.keys.append(cli("key", "create", "--channel", facts.channel, "--mode", "live",
                                  "--name", name)["key"])
        elif kind == 1:
            facts.limits.append(cli("limit", "create", "--channel", facts.channel, "--period",
                                    "day", "--max", 1000, "--action", "warn")["limit_id"])
        elif kind == 2:
            cli("credits", "add", facts.account, self.random.randint(1, 9), "--reason", name)
            facts.reasons.append(name)
        else:
            told = cli("channel", "configure", facts.channel, "--description", name)
            facts.versions[told["config_version"]] = name
        time.sleep(0.02)


def digests(directory):
    """{path: digest} of all files below."""
    found = {}
    for path, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                found[os.path.relpath(os.path.join(path, name), directory)] = digest(file.read())
    return found


class Backup:
    """One that exited 0; `receipts` were given before it began: {chain's name: client_refs}."""

    def __init__(self, directory, receipts):
        self.directory, self.receipts = directory, receipts
        self.files = digests(directory)

    def check(self, report, where):
        now = digests(self.directory)
        report.check(now == self.files, f"{where}: backup {self.directory}: was {self.files}, "
                                        f"is {now}")


class Copier(Companion):
    """One backup."""

    def __init__(self, machine, report, seed, chains, backups):
        super().__init__(machine, report, seed)
        self.chains, self.backups = chains, backups

    def run(self):
        try:
            self.act()
        except (Ended, Refused):
            pass

    def act(self):
        directory = os.path.join(self.machine.place.directory,
                                 f"backup-{self.random.getrandbits(48):x}")
        receipts = {chain.name: list(chain.receipts) for chain in self.chains}
        self.machine.admin("store", "backup", directory)
        backup = Backup(directory, receipts)
        if self.machine.on:
            self.backups.append(backup)


class Bulk(Companion):
    """Registers many large texts at once."""

    def __init__(self, machine, report, seed, chain):
        super().__init__(machine, report, seed)
        self.chain = chain
        self.burst = Burst(machine.port, chain.key, BULK)

    def run(self):
        super().run()
        self.burst.close()

    def act(self):
        refs = [f"bulk-{self.random.getrandbits(48):012x}" for _ in range(BULK)]
        declared = [declare_json(ref, ref.ljust(BULK_TEXT_SIZE, "x")) for ref in refs]
        with self.chain.lock:
            self.chain.sent.update(zip(refs, declared))
        self.burst.send([declaration.body for declaration in declared])
        for declaration, answer in zip(declared, self.burst.answers(BULK)):
            if answer and answer[0] == 201:
                self.chain.acknowledge(declaration, answer[1])
            elif self.report.check(not answer or answer[0] == 503 or not self.machine.on,
                                   f"{self.chain.name}: in bulk: {answer}") and not answer:
                raise ConnectionError
