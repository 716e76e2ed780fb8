"""A Prometheus and an Alertmanager with the rules and the example that are shipped (dist/prometheus). A minute lasts
three seconds, the mail server is one of the tests, everything else is as shipped. For tests only."""

import json
import pathlib
import re
import shutil
import subprocess
import urllib.request

import yaml

from mail_server import MailServer
from ports import reserve_port
from program import PATIENCE, Program, ROOT

SHIPPED = ROOT / "dist/prometheus"
SECONDS = {"s": 1, "m": 3, "h": 20, "d": 60}
LONGEST = 36  # seconds
PACE = 1  # seconds between two scrapes and between two evaluations


def seconds(duration):
    """Returns how long a duration of the rules lasts here."""
    number, unit = re.fullmatch(r"(\d+)([smhd])", duration).groups()
    return min(int(number) * SECONDS[unit], LONGEST)


def quick_rules():
    """Returns the rules with short waits and with short rates."""
    record = yaml.safe_load((SHIPPED / "alerts.yml").read_text())
    for rule in record["groups"][0]["rules"]:
        for name in ("for", "keep_firing_for"):
            if name in rule:
                rule[name] = f"{seconds(rule[name])}s"
        rule["expr"] = rule["expr"].replace("[5m]", f"[{seconds('5m')}s]")
    return record


class Web(Program):
    """A program with an HTTP interface of its own."""

    name = None

    def __init__(self, place):
        place.mkdir()
        super().__init__(place / "log", {})
        self.place, self.port = place, reserve_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def __repr__(self):
        return self.name

    def chosen(self):
        return []

    def command(self, *words):
        found = shutil.which(self.name)
        assert found, f"{self.name} is missing: scripts/packages.txt names its package"
        return [found, *map(str, words)]

    def ask(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
            return answer.read()

    def is_ready(self):
        try:
            return self.ask("/-/ready") is not None
        except OSError:
            return False


class Alertmanager(Web):
    name = "prometheus-alertmanager"

    def __init__(self, place):
        super().__init__(place)
        self.mail = MailServer()
        text = (SHIPPED / "alertmanager.yml").read_text()
        for old, new in ((r"localhost:25", f"127.0.0.1:{self.mail.port}"), (r"group_wait: 1m", "group_wait: 10s"),
                         (r"group_interval: 5m", "group_interval: 10s")):
            text, times = re.subn(old, new, text)
            assert times == 1, old
        self.configuration = place / "alertmanager.yml"
        self.configuration.write_text(text)

    def serving(self):
        return [f"--config.file={self.configuration}", f"--storage.path={self.place}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address="]

    def alerts(self):
        """All that fire, inhibited ones included."""
        return json.loads(self.ask("/api/v2/alerts"))

    def pages(self):
        """What those on call were paged for: (installation, name) of each alert in a message to them."""
        found = set()
        for message in list(self.mail.messages):
            if "on-call@example.org" in message["To"] and "FIRING" in message["Subject"]:
                text = message.get_body(("html", "plain")).get_content()
                installation = (re.findall(r"installation = ([\w-]+)", text) or [""])[0]
                found |= {(installation, name) for name in re.findall(r"alertname = (Constancia\w+)", text)}
        return found


class Prometheus(Web):
    name = "prometheus"

    def __init__(self, place, alertmanager, scrapes, docs=None):
        super().__init__(place)
        (place / "alerts.yml").write_text(yaml.safe_dump(quick_rules()))
        self.configuration = place / "prometheus.yml"
        self.configuration.write_text(yaml.safe_dump({
            "global": {"scrape_interval": f"{PACE}s", "scrape_timeout": f"{PACE}s", "evaluation_interval": f"{PACE}s",
                       **({"external_labels": {"docs_of_constancia": docs}} if docs else {})},
            "rule_files": ["alerts.yml"],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager.port}"]}]}]},
            "scrape_configs": scrapes}))

    def serving(self):
        return [f"--config.file={self.configuration}", f"--storage.tsdb.path={self.place}/data",
                f"--web.listen-address=127.0.0.1:{self.port}"]

    def firing(self):
        alerts = json.loads(self.ask("/api/v1/alerts"))["data"]["alerts"]
        return [alert for alert in alerts if alert["state"] == "firing"]


class Watching:
    """Both, in front of these scrape configurations."""

    def __init__(self, place, scrapes, docs=None):
        self.alertmanager = Alertmanager(pathlib.Path(place, "alertmanager"))
        self.prometheus = Prometheus(pathlib.Path(place, "prometheus"), self.alertmanager, scrapes, docs)

    def __enter__(self):
        try:
            self.alertmanager.start()
            self.prometheus.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *failure):
        self.close()

    def close(self):
        self.prometheus.kill()
        self.alertmanager.kill()
        self.alertmanager.mail.close()

    def firing(self, **labels):
        """The names of the alerts of those labels that fire and have come to Alertmanager."""
        here = {alert["labels"]["alertname"] for alert in self.prometheus.firing()
                if labels.items() <= alert["labels"].items()}
        return here & {alert["labels"]["alertname"] for alert in self.alertmanager.alerts()
                       if labels.items() <= alert["labels"].items()}

    def sent(self, **labels):
        """The names of the alerts of those labels that nothing inhibits."""
        return {alert["labels"]["alertname"] for alert in self.alertmanager.alerts()
                if labels.items() <= alert["labels"].items() and alert["status"]["state"] == "active"}

    def criticals(self, **labels):
        """The names of the critical alerts of those labels that nothing inhibits; one for each alert, in order."""
        return sorted(alert["labels"]["alertname"] for alert in self.alertmanager.alerts()
                      if alert["labels"]["severity"] == "critical" and labels.items() <= alert["labels"].items()
                      and alert["status"]["state"] == "active")


def amtool(*words):
    program = shutil.which("amtool")
    assert program, "amtool is missing: the Debian package prometheus-alertmanager"
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE)

