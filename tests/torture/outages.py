#!/usr/bin/env python3
"""Has everything around a busy node die, freeze and return, one after another and two at a time,
and holds the node to its deadlines and to what it said.

    outages.py [--minutes N] [--seed N] [--gateway PROGRAM] [--keep]

Around the node are a PostgreSQL primary and its synchronous standby, an S3 service (Versity's
gateway), a timestamp authority, a mail server and a receiver of notices, each a process of its own.
First each one dies and each one freezes; then two at a time, chosen at random, until the minutes
are over. Meanwhile clients register JSON of all sizes, files and digests, certify, and read; and
endpoints that do not listen are disabled repeatedly, which calls for an e-mail each time.

Throughout: the public pages are answered 200 within the deadline, whatever is away; a digest is
registered within it unless the store or its standby is away or was so a moment ago, and is then
answered 201 or 503 within it all the same; nothing is answered 500. After each outage, once all has
returned: registration, certification, its notice and the e-mails work again without intervention.
In the end: every receipt is valid and unchanged, in chains without gaps; every content is there; every
certification is completed, its archive verifies, its notice arrived; so did the notice of every
threshold that the balance fell below, and an e-mail for each time that an endpoint was disabled,
some of them while the mail server was away; `store check` finds nothing; the node was never
restarted and ends with 0.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

from service import (BINARY, ROOT, Client, Report, declare_file, declare_hash, declare_json,
                     lasting)

from nodes import Deployment
from program import NotStarted, Refused
from ports import reserve_port
from postgres import Cluster, Failed, eventually

SUPPORT = os.path.join(ROOT, "tests", "support")
DEADLINE = 5.0        # http.deadline
SLACK = 5.0           # for the way there and back on a busy machine
RECOVERY = 40.0       # after the store has returned, until a digest must be registered again
HELD = (4.0, 15.0)    # seconds that an outage lasts
PATIENCE = 600        # until work that waited is done, by few threads, with its pauses
PAGES = ("/docs/errors", "/v1/openapi.yaml", "/v1/webhooks.yaml", "/verify", "/assets/verify.css")
CREDITS = 10_000_000
THRESHOLD_STEP = 15_000  # credits of the owner between two thresholds
DEAD_ENDPOINTS = 6
SCHEDULE = ",".join(["4s"] * 20)  # longer than any outage


# ---- the surroundings of the node ----

class Part:
    """A process of its own, always at the same port."""

    def __init__(self, name, port, command, environment=None):
        self.name, self.port, self.command = name, port, command
        self.environment = {**os.environ, **(environment or {})}
        self.process = None

    def start(self):
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *self.command],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=self.environment)
        eventually(self.listens, f"{self.name} listens")
        return self

    def listens(self):
        try:
            http.client.HTTPConnection("127.0.0.1", self.port, timeout=5).connect()
            return True
        except OSError:
            return False

    def kill(self):
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)


class Outage:
    """A part that is away, and how it returns."""

    def __init__(self, part, kind):
        self.part, self.kind = part, kind

    def __str__(self):
        return f"{self.part.name} {self.kind}"

    def begin(self):
        self.part.kill() if self.kind == "dies" else self.part.freeze()

    def end(self):
        self.part.start() if self.kind == "dies" else self.part.thaw()


# ---- those who use the node ----

class User(threading.Thread):
    """Does one thing again and again, until the end."""

    def __init__(self, torture, seed, pause):
        super().__init__(daemon=True)
        self.torture, self.random, self.pause = torture, random.Random(seed), pause
        self.client = Client(torture.node.port, timeout=120)
        self.error = None
        self.slowest = 0.0
        self.answers = {}  # status: how many

    def run(self):
        try:
            while not self.torture.stopping:
                self.act()
                time.sleep(self.pause)
        except Exception as error:  # a thread that ends in silence would be a test that tests less
            self.error = f"{type(self).__name__}: {type(error).__name__}: {error}"

    def timed(self, what, ask):
        """The answer, which must come within the deadline."""
        start = time.monotonic()
        answer = ask()
        took = time.monotonic() - start
        self.slowest = max(self.slowest, took)
        self.answers[answer[0]] = self.answers.get(answer[0], 0) + 1
        self.torture.report.check(took <= DEADLINE + SLACK,
                                  f"{self.torture.now}: {what}: {answer[0]} after {took:.1f} s")
        return answer


class PageReader(User):
    def act(self):
        for page in PAGES:
            status, _, _ = self.timed(page, lambda: self.read(page))
            self.torture.report.check(status == 200, f"{self.torture.now}: {page}: {status}")
        self.timed("a verification code", lambda: self.read("/verify/SVC-2026-0000-0000"))

    def read(self, page):
        connection = http.client.HTTPConnection("127.0.0.1", self.torture.node.port, timeout=120)
        try:
            connection.request("GET", page)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()


class Registrant(User):
    """Registers with one key, each declaration until it is acknowledged."""

    def __init__(self, torture, seed, pause, key, bounded):
        super().__init__(torture, seed, pause)
        self.key, self.bounded = key, bounded
        self.sent, self.receipts = {}, {}
        self.lock = threading.Lock()

    def declaration(self):
        client_ref = f"{id(self):x}-{len(self.sent)}-{self.random.getrandbits(32):08x}"
        if self.bounded:
            return declare_hash(client_ref, client_ref)
        kind = self.random.random()
        if kind < 0.15:
            return declare_file(client_ref, self.random.randbytes(self.random.randint(0, 300_000)))
        size = self.random.randint(17_000, 60_000) if kind < 0.3 else self.random.randint(1, 500)
        return declare_json(client_ref, client_ref + "x" * size)

    def act(self):
        declaration = self.declaration()
        self.sent[declaration.client_ref] = declaration
        while not self.ask(declaration) and not self.torture.stopping:
            time.sleep(0.2)

    def ask(self, declaration):
        asked_at = time.monotonic()
        status, _, body = self.timed(
            f"registration of {declaration.content_type.split(';')[0]}",
            lambda: self.client.register(self.key, declaration))
        report = self.torture.report
        report.check(status in (200, 201, 503),
                     f"{self.torture.now}: registration: {status} {body[:200]}")
        if self.bounded and self.torture.store_was_well_since(asked_at):
            report.check(status in (200, 201),
                         f"{self.torture.now}: refused while the store is well: {body[:300]}")
        if status in (200, 201):
            with self.lock:
                self.receipts[declaration.client_ref] = json.loads(body)
            return True
        return False


class Reader(User):
    """Reads events, content and lists of another's chain."""

    def __init__(self, torture, seed, pause, registrant):
        super().__init__(torture, seed, pause)
        self.registrant = registrant

    def act(self):
        with self.registrant.lock:
            some = list(self.registrant.receipts.values())[-50:]
        if not some:
            return
        event = self.random.choice(some)
        paths = [f"/events/{event['event_id']}", "/events?limit=20", "/account/balance", "/channel"]
        if not self.registrant.bounded:
            paths.append(f"/events/{event['event_id']}/content")
        for path in paths:
            status, _, body = self.timed(path.split("?")[0], lambda: self.client.request(
                "GET", path, self.registrant.key))
            self.torture.report.check(status in (200, 503),
                                      f"{self.torture.now}: {path}: {status} {body[:200]}")


class Certifier(User):
    """Asks for one after another, a few at a time, as a busy machine makes them."""

    PENDING_MAX = 3

    def __init__(self, torture, seed, pause, registrant):
        super().__init__(torture, seed, pause)
        self.registrant = registrant
        self.accepted = []

    def act(self):
        with self.registrant.lock:
            last = max((event["sequence"] for event in self.registrant.receipts.values()),
                       default=0)
        if not last or len(set(self.accepted) - self.torture.told()) >= self.PENDING_MAX:
            return
        self.client.close()  # it may have been idle for longer than a server keeps it
        first = max(1, last - self.random.randint(0, 40))
        body = json.dumps({"seq_from": first, "seq_to": last})
        status, _, text = self.timed("POST /certifications", lambda: self.client.request(
            "POST", "/certifications", self.registrant.key, body))
        self.torture.report.check(status in (202, 503, 429),
                                  f"{self.torture.now}: certification: {status} {text[:200]}")
        if status == 202:
            self.accepted.append(json.loads(text)["certification_id"])


class DeadEndpoint:
    """Of an account of its own; nothing listens there."""

    def __init__(self, torture, name, waiting_max):
        self.node, self.address, self.waiting_max = torture.node, f"{name}@example.org", waiting_max
        self.account = torture.make_account(name)
        for credits in range(100, 110):
            self.node.admin("threshold", "create", "--account", self.account,
                          "--credits", CREDITS - credits)
        self.endpoint = self.node.admin("webhook", "create", "--account", self.account, "--url",
                                      f"http://127.0.0.1:{reserve_port()}/hook")["endpoint_id"]
        self.disabled_at = set()

    def keep(self):
        shown = self.node.admin("webhook", "show", self.endpoint)
        if not shown["enabled"]:
            self.disabled_at.add(shown["disabled_at"])
            self.node.admin("webhook", "enable", self.endpoint)
        if shown["waiting"] < self.waiting_max:
            self.cross_thresholds()

    def cross_thresholds(self):
        """Below all of them, which is a notice each; the next time, above them."""
        balance = self.node.admin("account", "show", self.account)["balance"]
        self.node.admin("credits", "add", self.account, -200 if balance > CREDITS - 100 else 200)


class Administrator(User):
    """Causes notices for dead endpoints, and enables those that were disabled. The first gets more
    notices than it gets tries."""

    def __init__(self, torture, seed, pause):
        super().__init__(torture, seed, pause)
        self.endpoints = [DeadEndpoint(torture, f"dead{number}", 10 if number else sys.maxsize)
                          for number in range(DEAD_ENDPOINTS)]

    def act(self):
        for endpoint in self.endpoints:
            try:
                endpoint.keep()
            except Refused:
                self.answers["refused"] = self.answers.get("refused", 0) + 1
            else:
                self.answers["done"] = self.answers.get("done", 0) + 1

    def disabled(self):
        return sum(len(endpoint.disabled_at) for endpoint in self.endpoints)


# ---- the whole ----

class Torture:
    def __init__(self, options, directory):
        self.random = random.Random(options.seed)
        self.options, self.directory = options, directory
        self.report = Report()
        self.stopping = False
        self.now = "before the first outage"
        self.counts = {}
        self.store_outages = 0
        self.store_returned = time.monotonic() - RECOVERY
        self.cluster = Cluster(standbys=1)
        self.deployment = self.node = None
        self.parts, self.users = [], []

    def path(self, name):
        return os.path.join(self.directory, name)

    def lines(self, name):
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return [json.loads(line) for line in file if line.endswith("\n")]
        except FileNotFoundError:
            return []

    # ---- before ----

    def prepare(self):
        self.cluster.start()
        self.database = self.cluster.create_database()
        settings = {"store.url": self.cluster.url(self.database, connect_timeout=2),
                    "store.commit_timeout": "2s", "http.deadline": f"{DEADLINE:.0f}s",
                    "seal.interval": "2s", "webhook.schedule": SCHEDULE, "webhook.timeout": "3s",
                    "webhook.allow_http": "true", "webhook.allow_networks": "127.0.0.0/8",
                    "mail.schedule": SCHEDULE, "content.timeout": "2s"}
        settings |= self.start_gateway() | self.start_authority() | self.start_mail()
        self.deployment = Deployment(self.directory, BINARY, settings)
        self.node = self.deployment.add()
        self.node.start()
        self.process = self.node.process.pid
        self.make_users()

    def start_gateway(self):
        port, secret = reserve_port(), "a/secret+of=outages"
        for name in ("objects/evidence", "attributes"):
            os.makedirs(self.path(name))
        part = Part("S3 service", port,
                    [self.options.gateway, "--port", f"127.0.0.1:{port}", "--region", "eu-test-1",
                     "posix", "--sidecar", self.path("attributes"), self.path("objects")],
                    {"ROOT_ACCESS_KEY": "outages", "ROOT_SECRET_KEY": secret})
        self.parts.append(part.start())
        query = urllib.parse.urlencode({"endpoint": f"http://127.0.0.1:{port}",
                                        "region": "eu-test-1"})
        return {"content.url": f"s3://evidence/node?{query}", "content.access_key": "outages",
                "content.secret_key": secret, "content.allow_networks": "127.0.0.0/8"}

    def start_authority(self):
        port = reserve_port()
        self.parts.append(Part("authority", port, [
            sys.executable, os.path.join(SUPPORT, "timestamp_authority.py"),
            "--directory", self.path("authority"), "--port", str(port)]).start())
        return {"tsa.url": f"http://127.0.0.1:{port}/", "tsa.allow_networks": "127.0.0.0/8",
                "tsa.roots": self.path("authority/root.pem"), "tsa.timeout": "3s"}

    def start_mail(self):
        port = reserve_port()
        self.parts.append(Part("mail server", port, [
            sys.executable, os.path.join(SUPPORT, "mail_server.py"), str(port),
            self.path("mails")]).start())
        return {"mail.url": f"smtp://127.0.0.1:{port}", "mail.from": "notices@example.org",
                "mail.require_tls": "false", "mail.allow_networks": "127.0.0.0/8"}

    def start_receiver(self, account):
        port = reserve_port()
        endpoint = self.node.admin("webhook", "create", "--account", account,
                                 "--url", f"http://127.0.0.1:{port}/hook")
        self.parts.append(Part("receiver", port, [
            sys.executable, os.path.join(SUPPORT, "webhook_receiver.py"), str(port),
            self.path("notices"), endpoint["secret"]]).start())

    def make_account(self, name):
        return self.node.admin("account", "create", "--name", name, "--credits", CREDITS,
                             "--email", f"{name}@example.org")["account_id"]

    def make_key(self, account, modality):
        channel = self.node.admin("channel", "create", "--account", account, "--name", modality,
                                "--declarant", "Outages", "--modality", modality)
        return self.node.admin("key", "create", "--channel", channel["channel_id"],
                             "--mode", "live")["key"]

    def make_users(self):
        account = self.make_account("owner")
        self.start_receiver(account)
        self.thresholds = {}  # id: credits
        for number in range(1, 21):
            credits = CREDITS - number * THRESHOLD_STEP
            made = self.node.admin("threshold", "create", "--account", account, "--credits", credits)
            self.thresholds[made["threshold_id"]] = credits
        seed = lambda: self.random.getrandbits(64)  # noqa: E731
        content = [Registrant(self, seed(), 0.05, self.make_key(account, "content"), False)
                   for _ in range(3)]
        digests = [Registrant(self, seed(), 0.02, self.make_key(account, "hash_only"), True)
                   for _ in range(3)]
        self.registrants = content + digests
        self.certifiers = [Certifier(self, seed(), 4, content[0]),
                           Certifier(self, seed(), 4, digests[0])]
        self.administrator = Administrator(self, seed(), 2)
        self.users = [*self.registrants, *self.certifiers, PageReader(self, seed(), 0.3),
                      Reader(self, seed(), 0.2, content[0]), Reader(self, seed(), 0.2, digests[0]),
                      self.administrator]
        for user in self.users:
            user.start()

    # ---- outages ----

    def store_was_well_since(self, moment):
        """The store and its standby were stopped, and had been so for a while."""
        return (self.store_outages == 0 and self.store_returned + RECOVERY <= moment)

    def choose(self):
        places = {part.name: part for part in self.parts}
        places |= {"primary": self.cluster.primary, "standby": self.cluster.standby}
        self.cluster.primary.name_here, self.cluster.standby.name_here = "primary", "standby"
        kinds = ("dies", "freezes")
        for name, part in places.items():
            for kind in kinds:
                yield [self.outage(name, part, kind)]
        while True:
            names = self.random.sample(sorted(places), 2)
            yield [self.outage(name, places[name], self.random.choice(kinds)) for name in names]

    @staticmethod
    def outage(name, part, kind):
        made = Outage(part, kind)
        made.name = name
        made.of_store = name in ("primary", "standby")
        return made

    def begin(self, outage):
        if outage.of_store:
            self.store_outages += 1
        outage.begin()

    def end(self, outage):
        outage.end()
        if outage.of_store:
            self.store_returned = time.monotonic()
            self.store_outages -= 1

    def run_outages(self, outages):
        self.now = " and ".join(f"{outage.name} {outage.kind}" for outage in outages)
        self.counts[self.now] = self.counts.get(self.now, 0) + 1
        start = time.monotonic()
        disabled = self.administrator.disabled()
        for outage in outages:
            self.begin(outage)
            if [outage.name for outage in outages] == ["mail server"]:
                self.eventually(lambda: self.administrator.disabled() > disabled,
                                "an e-mail is called for")
            time.sleep(self.random.uniform(*HELD))
        for outage in self.random.sample(outages, len(outages)):
            self.end(outage)
            time.sleep(self.random.uniform(0, 2))
        self.now += ", returned"
        returned = time.monotonic()
        self.recover()
        print(f"{self.now}: away {returned - start:.0f} s, "
              f"all well {time.monotonic() - returned:.1f} s later; "
              f"{len(self.lines('mails'))} e-mails", flush=True)

    def eventually(self, question, what):
        """A check, not the end of everything, when it fails."""
        try:
            eventually(question, what, PATIENCE, 0.3)
            self.report.check(True, "")
        except Failed as failure:
            self.report.check(False, f"{self.now}: {failure}\n{self.node.log_tail(10)}")

    def recover(self):
        """Until the node is ready, registers content, certifies it and has sent the notice."""
        self.cluster.primary.wait_for_standbys()
        try:
            self.node.wait("/readyz", PATIENCE)
            before = {id(user): len(user.receipts) for user in self.registrants}
            eventually(lambda: all(len(user.receipts) > before[id(user)]
                                   for user in self.registrants if user.is_alive()),
                       "every client is acknowledged again", PATIENCE)
            certification = self.certify_once()
            eventually(lambda: self.state(certification) == "completed",
                       "a certification is completed", PATIENCE, 0.3)
            eventually(lambda: certification in self.told(), "its notice arrives", PATIENCE, 0.3)
            self.report.check(True, "")
        except (Failed, NotStarted) as failure:
            self.report.check(False, f"{self.now}: {failure}\n{self.node.log_tail(10)}")
        self.wait_for_mails()
        self.report.check(self.node.alive() and self.node.process.pid == self.process,
                          f"{self.now}: the node ended\n{self.node.log_tail()}")
        for user in self.users:
            if user.error:
                self.report.check(False, f"{self.now}: {user.error}")
                user.error = None

    def certify_once(self):
        registrant, client = self.registrants[0], Client(self.node.port, 120)
        with registrant.lock:
            last = max(event["sequence"] for event in registrant.receipts.values())
        body = json.dumps({"seq_from": max(1, last - 5), "seq_to": last})
        answer = []

        def ask():
            status, _, text = client.request("POST", "/certifications", registrant.key, body)
            answer[:] = [json.loads(text).get("certification_id")]
            return status == 202
        eventually(ask, "a certification is accepted", PATIENCE, 0.5)
        self.certifiers[0].accepted.append(answer[0])
        return answer[0]

    def state(self, certification, key=None):
        status, record = Client(self.node.port, 120).get(f"/certifications/{certification}",
                                                         key or self.registrants[0].key)
        return record["status"] if status == 200 else None

    def told(self):
        return {line["data"]["certification_id"] for line in self.lines("notices")
                if line["type"] == "certification.completed"}

    def wait_for_mails(self):
        """An e-mail for each time that an endpoint was seen disabled; copies count once."""
        owed = {endpoint.address: len(endpoint.disabled_at)
                for endpoint in self.administrator.endpoints}

        def arrived():
            got = {address: set() for address in owed}
            for line in self.lines("mails"):
                got[line["to"][0]].add(line["id"])
            return all(len(got[address]) >= owed[address] for address in owed)
        self.eventually(arrived, "e-mails arrive")

    # ---- in the end ----

    def check_registrant(self, registrant):
        client = Client(self.node.port, 120)
        events = client.events(registrant.key)
        self.report.check([event["sequence"] for event in events] ==
                          list(range(1, len(events) + 1)), "a chain has a gap")
        by_ref = {event["client_ref"]: event for event in events}
        for client_ref, receipt in registrant.receipts.items():
            found = by_ref.get(client_ref)
            self.report.check(found is not None and lasting(found) == lasting(receipt),
                              f"acknowledged and lost or changed: {receipt} is {found}")
        unknown = set(by_ref) - set(registrant.sent)
        self.report.check(not unknown, f"no client sent {list(unknown)[:3]}")
        if not registrant.bounded:
            for event in self.random.sample(events, min(300, len(events))):
                status, _, body = client.request("GET", f"/events/{event['event_id']}/content",
                                                 registrant.key)
                good = status == 200 and body == registrant.sent[event["client_ref"]].content
                self.report.check(good, f"content of {event['event_id']}: {status}")

    def check_certifier(self, certifier):
        key = certifier.registrant.key
        for certification in certifier.accepted:
            try:
                eventually(lambda: self.state(certification, key) not in (None, "processing"),
                           f"{certification} ends", PATIENCE, 0.2)
            except Failed as failure:
                self.report.check(False, str(failure))
                continue
            self.report.check(self.state(certification, key) == "completed",
                              f"{certification} is {self.state(certification, key)}")
        eventually(lambda: set(certifier.accepted) <= self.told(), "every notice arrives", PATIENCE)
        self.report.check(True, "")
        for certification in self.random.sample(certifier.accepted,
                                                min(10, len(certifier.accepted))):
            self.verify(certification, key)

    def verify(self, certification, key):
        client = Client(self.node.port, 120)
        _, record = client.get(f"/certifications/{certification}", key)
        address = urllib.parse.urlsplit(record["evidence_url"])
        connection = http.client.HTTPConnection("127.0.0.1", self.node.port, timeout=120)
        connection.request("GET", f"{address.path}?{address.query}")
        archive = self.path(certification + ".zip")
        with open(archive, "wb") as file:
            shutil.copyfileobj(connection.getresponse(), file)
        connection.close()
        trust = os.path.join(self.node.data, "trust.pem")
        done = subprocess.run([BINARY, "verify", archive, "--trust", trust], capture_output=True,
                              text=True, check=False)
        self.report.check(done.returncode == 0, f"{certification}: {done.stdout[-600:]}")

    def check_thresholds(self):
        """The owner was notified of each threshold that the balance fell below."""
        _, account = Client(self.node.port, 120).get("/account/balance", self.registrants[0].key)
        crossed = {threshold for threshold, credits in self.thresholds.items()
                   if account["balance"] <= credits}
        self.eventually(lambda: crossed <= {line["data"]["threshold_id"]
                                            for line in self.lines("notices")
                                            if line["type"] == "balance.low"},
                        "the notice of every threshold arrives")
        print(f"{len(crossed)} thresholds crossed")

    def check_mails(self):
        """Each that the store ever held was sent and arrived; some had to wait for the server."""
        self.wait_for_mails()

        def states():
            return dict(self.cluster.primary.rows("SELECT mail_id, state FROM mails",
                                                  self.database))
        self.eventually(lambda: "waiting" not in states().values(), "no e-mail waits")
        ids = " ".join(line["id"] for line in self.lines("mails"))
        for mail_id, state in states().items():
            self.report.check(state == "sent" and mail_id in ids, f"e-mail {mail_id} is {state}")
        with open(self.node.log, encoding="utf-8") as log:
            delayed = sum('"event":"mail_delayed"' in line for line in log)
        print(f"{len(states())} e-mails called for, {delayed} times one had to wait")
        if self.options.minutes >= 20:
            self.report.check(delayed > 0, "no e-mail was called for without a mail server")

    def check_everything(self):
        for registrant in self.registrants:
            self.check_registrant(registrant)
        for certifier in self.certifiers:
            self.check_certifier(certifier)
        notices = self.lines("notices")
        self.report.check(not any(line["problems"] for line in notices),
                          "a notice is not as it must be")
        self.check_thresholds()
        self.check_mails()
        checked = self.node.admin("store", "check")
        self.report.check(True, "")
        print("store check:", json.dumps(checked)[:300])
        self.report.check(self.node.stop() == 0, "SIGTERM: exit status is not 0")

    def end_users(self):
        self.stopping = True
        for user in self.users:
            user.join(120)
            self.report.check(not user.is_alive(), f"{type(user).__name__} hangs")
            self.report.check(not user.error, user.error or "")
            answers = ", ".join(f"{status} {n}" for status, n in sorted(user.answers.items()))
            print(f"{type(user).__name__}: {answers}; slowest {user.slowest:.1f} s")

    def run(self):
        self.prepare()
        end = time.monotonic() + self.options.minutes * 60
        for outages in self.choose():
            if time.monotonic() > end:
                break
            self.run_outages(outages)
        self.now = "in the end"
        self.end_users()
        self.check_everything()
        for name, count in sorted(self.counts.items()):
            print(f"{count} x {name}")
        print(f"{sum(len(user.receipts) for user in self.registrants)} events acknowledged, "
              f"{sum(len(user.accepted) for user in self.certifiers)} certifications, "
              f"{len(self.lines('notices'))} notices taken, {len(self.lines('mails'))} e-mails, "
              f"endpoints disabled {self.administrator.disabled()} times")

    def close(self):
        if self.deployment:
            self.deployment.close()
        for part in self.parts:
            part.kill()
        self.cluster.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    parser.add_argument("--gateway", help="versitygw; fetched with Go when not given")
    parser.add_argument("--keep", action="store_true", help="leave the directory with the logs")
    options = parser.parse_args()
    if not options.gateway:
        tools = os.path.join(os.path.dirname(BINARY), "conformance", "tools")
        options.gateway = subprocess.run([os.path.join(SUPPORT, "versitygw"), tools], check=True,
                                         stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"seed {options.seed}, {options.minutes:g} minutes", flush=True)
    directory = tempfile.mkdtemp(prefix="constancia-outages-")
    torture = Torture(options, directory)
    try:
        torture.run()
    except (NotStarted, Refused, Failed, OSError, http.client.HTTPException,
            AssertionError) as error:
        torture.report.check(False, f"{torture.now}: {type(error).__name__}: {error}")
    finally:
        torture.stopping = True
        torture.close()
    if options.keep or torture.report.failed:
        print("kept:", directory)
    else:
        shutil.rmtree(directory)
    return torture.report.end()


if __name__ == "__main__":
    sys.exit(main())
