"""One cause, one page: a real Prometheus evaluates the rules that are shipped, and a real Alertmanager with the example
that is shipped inhibits what only follows from another alert."""

import collections
import contextlib
import http.server
import re
import threading
import time

import pytest
import yaml

from alerting import SHIPPED, Watching, amtool
from client import eventually
from fleet import Fleet
from postgres import Cluster
from program import ROOT

DOCS = "https://docs.example.org/constancia"
PAGE = ROOT / "docs/operate/alerts.md"


def rules():
    return {rule["alert"]: rule for group in yaml.safe_load((SHIPPED / "alerts.yml").read_text())["groups"]
            for rule in group["rules"]}


def matched(matchers):
    """The names of the alerts that matchers such as `alertname =~ "Constancia(A|B)"` select, whatever others require."""
    one = matchers[0]
    pattern = re.fullmatch(r'alertname =~? "?([\w()|]+)"?', one)[1]
    return {name for name in rules() if re.fullmatch(pattern, name)}, pattern


def inhibitions():
    """(causes, consequences, the labels that they have in common) of each rule of the example."""
    record = yaml.safe_load((SHIPPED / "alertmanager.yml").read_text())
    return [(matched(rule["source_matchers"]), matched(rule["target_matchers"]), rule["equal"])
            for rule in record["inhibit_rules"]]


# ---- the files ----

@pytest.mark.sqlite
def test_alertmanager_takes_the_example():
    done = amtool("check-config", SHIPPED / "alertmanager.yml")
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


def minutes(duration):
    number, unit = re.fullmatch(r"(\d+)([mh])", duration).groups()
    return int(number) * {"m": 1, "h": 60}[unit]


def stays(rule):
    """How many minutes it fires after its cause is over."""
    return minutes(rule.get("keep_firing_for", "0m")) + (5 if "[5m]" in rule["expr"] else 0)


@pytest.mark.sqlite
def test_a_cause_fires_no_later_than_its_consequences_and_longer():
    """Else a page goes out before the cause is known, or when it is over."""
    known = rules()
    for (causes, wanted), (consequences, others), equal in inhibitions():
        assert causes and consequences and equal[:2] == ["job", "installation"]
        for names, pattern in ((causes, wanted), (consequences, others)):
            assert len(names) == pattern.count("|") + 1, (pattern, "names an alert that there is not")
        for cause in map(known.get, causes):
            assert cause["labels"]["severity"] == "critical", "a ticket never hides a page"
            for consequence in map(known.get, consequences):
                if consequence["labels"]["severity"] == "critical":
                    assert minutes(cause["for"]) <= minutes(consequence["for"]), (cause, consequence)
                    if stays(consequence):
                        assert stays(cause) > stays(consequence), (cause, consequence)


@pytest.mark.sqlite
def test_each_runbook_has_an_absolute_address():
    """With the files of the package, where nothing else is configured; test_alerts.py has promtool fill it in."""
    for name, rule in rules().items():
        told = rule["annotations"]
        assert told["runbook_url"] == (
            "{{ with $externalLabels.docs_of_constancia }}{{ . }}{{ else }}file:///usr/share/doc/constancia/docs{{ end }}"
            + told["runbook"].removeprefix("docs")), name


@pytest.mark.sqlite
def test_the_page_has_the_causes_and_consequences_of_the_example():
    table = {}
    for row in re.findall(r"^\| `(Constancia\w+)` \| (.+?) \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.M):
        table[row[0]] = set(re.findall(r"`(\w+)`", row[2]))
    of = collections.defaultdict(set)
    for (causes, _), (consequences, _), _ in inhibitions():
        for cause in causes:
            of[cause] |= {name.removeprefix("Constancia") for name in consequences}
    assert table == of


# ---- all causes at once, of one installation each ----

WELL = {"ready": 1, "store_ready": 1, "content_ready": 1, "signer_ready": 1, "signer_can_sign": 1,
        "store_replicas": 1, "store_replicas_required": 1, "clock_synchronized": 1, "clock_ahead_seconds": 0,
        "oldest_pending_event_timestamp_seconds": 0, "batch_failures_total": 0, "ref_index_damaged": 0,
        "evidence_lost": 0, "unbalanced_accounts": 0, 'disk_free_ratio{directory="store"}': 0.5,
        'signer_chain_complete{signer="key"}': 1, 'signer_chain_revoked{signer="key"}': 0,
        'authority_fails{authority="tsa.example.org",number="1"}': 0,
        **{f'readiness_findings{{kind="{kind}"}}': 0 for kind in ("space", "registration", "shard", "watch", "store")}}
LONG_AGO = 1000  # seconds, also since the time of the first scrape
NOT_READY = {"ready": 0}
REFUSING = {**NOT_READY, "store_ready": 0, "batch_failures_total": "grows",
            'readiness_findings{kind="store"}': 1, 'readiness_findings{kind="registration"}': 1}
ERRORS = {"errors": "grow"}
DOWN = None

Case = collections.namedtuple("Case", "first second pages inhibited tickets", defaults=[set(), []])
# What the first and the second node report, where it is not well; the pages; some of what would be paged without
# inhibition, or is a ticket less; some tickets.
CASES = {
    "well": Case({}, {}, []),
    "standby": Case({**REFUSING, **ERRORS, "store_replicas": 0, "content_ready": 0},
                    {**REFUSING, **ERRORS, "store_replicas": 0}, ["StandbyMissing"],
                    {"StoreFails", "NotReady", "BatchesFail", "ServerErrors", "RegistrationStuck"}),
    "store": Case({**REFUSING, **ERRORS, "content_ready": 0}, {**REFUSING, **ERRORS}, ["StoreFails"],
                  {"NotReady", "BatchesFail", "ServerErrors", "RegistrationStuck"}),
    "service": Case(DOWN, DOWN, ["ServiceDown"], {"Down"}),
    "node": Case(DOWN, {}, ["Down"]),
    "clock": Case({**NOT_READY, **ERRORS, "clock_ahead_seconds": 30, "clock_synchronized": 0}, {}, ["ClockAhead"],
                  {"NotReady", "ServerErrors", "ClockNotSynchronized"}),
    "signer": Case({**NOT_READY, **ERRORS, "signer_ready": 0, "signer_can_sign": 0}, {}, ["SignerSilent"],
                   {"NotReady", "ServerErrors"}),
    "key": Case({"signer_can_sign": 0}, {"signer_can_sign": 0}, ["KeyDoesNotSign"]),
    "authority": Case({"oldest_pending_event_timestamp_seconds": "long ago",
                       'authority_fails{authority="tsa.example.org",number="1"}': 1},
                      {"oldest_pending_event_timestamp_seconds": "long ago"}, ["SealingStuck"], {"AuthorityFails"}),
    "content": Case({"content_ready": 0, **ERRORS}, {"content_ready": 0, **ERRORS}, ["ContentFails"], {"ServerErrors"}),
    "disk": Case({**REFUSING, **ERRORS, 'readiness_findings{kind="space"}': 1, 'disk_free_ratio{directory="store"}': 0},
                 {**REFUSING, 'readiness_findings{kind="space"}': 1}, ["NoSpace"],
                 {"StoreFails", "NotReady", "BatchesFail", "ServerErrors", "DiskNearlyFull"}),
    "disk-of-the-server-and-of-a-node": Case({**REFUSING, 'readiness_findings{kind="space"}': 1},
                                             {**REFUSING, 'readiness_findings{kind="space"}': 1,
                                              'disk_free_ratio{directory="signer"}': 0}, ["NoSpace"],
                                             {"StoreFails", "NotReady"}, ["DiskNearlyFull"]),
    "shard": Case({'readiness_findings{kind="shard"}': 1, "batch_failures_total": "grows", **ERRORS},
                  {'readiness_findings{kind="shard"}': 1, "batch_failures_total": "grows", **ERRORS}, ["ShardFails"],
                  {"BatchesFail", "ServerErrors"}),
    "frozen": Case({'readiness_findings{kind="registration"}': 1, **ERRORS}, {}, ["RegistrationStuck"],
                   {"ServerErrors"}),
    "batches": Case({"batch_failures_total": "grows", **ERRORS}, {}, ["BatchesFail"], {"ServerErrors"}),
    "index": Case({"ref_index_damaged": 3, **ERRORS}, {}, ["RefIndexNotRepaired"], {"ServerErrors", "RefIndexDamaged"}),
    "read-only": Case({**NOT_READY, **ERRORS}, {}, ["NotReady"], {"ServerErrors"}),
    "revoked": Case({'signer_chain_complete{signer="key"}': 0, 'signer_chain_revoked{signer="key"}': 1},
                    {'signer_chain_complete{signer="key"}': 0, 'signer_chain_revoked{signer="key"}': 1},
                    ["ChainRevoked"], {"ChainIncomplete"}),
    "evidence": Case({"evidence_lost": 2, "evidence_due_since_timestamp_seconds": 1}, {"evidence_lost": 2},
                     ["EvidenceLost"], {"EvidenceLate"}),
    "balances": Case({"unbalanced_accounts": 1}, {"unbalanced_accounts": 1}, ["BalancesDiffer"]),
    "monitoring": Case({'readiness_findings{kind="watch"}': 1}, {}, []),
    "errors": Case(ERRORS, {}, ["ServerErrors"]),
    # Two causes at once are two pages, whatever one of them explains elsewhere.
    "two-nodes": Case({**NOT_READY, "clock_ahead_seconds": 30}, NOT_READY, ["ClockAhead", "NotReady"]),
    "store-of-one-node": Case({**REFUSING, **ERRORS, "content_ready": 0}, {}, ["NotReady"],
                              {"BatchesFail", "ServerErrors", "RegistrationStuck"}),
    "store-of-one-node-and-content": Case({**REFUSING, "content_ready": 0}, {"content_ready": 0},
                                          ["ContentFails", "NotReady"]),
    "store-of-one-node-and-other": Case(REFUSING, {'readiness_findings{kind="registration"}': 1},
                                        ["NotReady", "RegistrationStuck"]),
    "clock-and-authorities": Case({**NOT_READY, "clock_ahead_seconds": 30,
                                   "oldest_pending_event_timestamp_seconds": "long ago"},
                                  {"oldest_pending_event_timestamp_seconds": "long ago"},
                                  ["ClockAhead", "SealingStuck"]),
    "clocks": Case({**NOT_READY, "clock_ahead_seconds": 30, "oldest_pending_event_timestamp_seconds": "long ago"},
                   {**NOT_READY, "clock_ahead_seconds": 30}, ["ClockAhead", "ClockAhead"], {"NotReady"}),
    "signer-and-key": Case({**NOT_READY, "signer_ready": 0, "signer_can_sign": 0}, {"signer_can_sign": 0},
                           ["KeyDoesNotSign", "SignerSilent"]),
    "standby-and-key": Case({**REFUSING, "store_replicas": 0, "signer_can_sign": 0}, {},
                            ["KeyDoesNotSign", "StandbyMissing"]),
}


class Exporter(http.server.BaseHTTPRequestHandler):
    """The metrics of both nodes of all cases, with what Prometheus says of a target: `up` and its labels."""

    scrapes = 0

    def do_GET(self):
        Exporter.scrapes += 1
        text = "".join(self.metrics(f'job="constancia",installation="{name}",instance="node{number}"', node)
                       for name, case in CASES.items() for number, node in enumerate((case.first, case.second), 1))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def metrics(self, labels, node):
        if node is DOWN:
            return f"up{{{labels}}} 0\n"
        lines = [f"up{{{labels}}} 1"]
        for status, value in ((201, 10 * self.scrapes), (503, self.scrapes if "errors" in node else 0)):
            lines.append(f'constancia_http_requests_total{{{labels},status="{status}"}} {value}')
        for name, value in {**WELL, **node}.items():
            value = {"grows": self.scrapes, "long ago": time.time() - LONG_AGO}.get(value, value)
            name, _, more = name.partition("{")
            more = "," + more.rstrip("}") if more else ""
            if name != "errors":
                lines.append(f"constancia_{name}{{{labels}{more}}} {value}")
        return "\n".join(lines) + "\n"

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def watching(tmp_path_factory):
    """All cases, each as an installation of two nodes."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scrapes = [{"job_name": "cases", "honor_labels": True,
                "static_configs": [{"targets": [f"127.0.0.1:{server.server_address[1]}"]}]}]
    with Watching(tmp_path_factory.mktemp("watching"), scrapes, DOCS) as both:
        yield both
    server.shutdown()
    server.server_close()


def named(names):
    return {f"Constancia{name}" for name in names}


@pytest.mark.sqlite
@pytest.mark.parametrize("name", CASES)
def test_a_cause_is_one_page(watching, name):
    case = CASES[name]
    fire = named(case.pages) | named(case.inhibited)
    eventually(lambda: fire <= watching.firing(installation=name), f"{fire} fire")
    eventually(lambda: watching.criticals(installation=name) == [f"Constancia{each}" for each in case.pages],
               "each cause is a page, and nothing else is")
    eventually(lambda: named(case.tickets) <= watching.sent(installation=name), "what is no consequence is sent")
    silent = {alert["labels"]["alertname"] for alert in watching.alertmanager.alerts()
              if alert["labels"]["installation"] == name and alert["status"]["state"] != "active"}
    assert named(case.inhibited) <= silent


@pytest.mark.sqlite
def test_alerts_lead_to_the_documentation_of_the_operator(watching):
    (alert,) = eventually(lambda: [alert for alert in watching.alertmanager.alerts()
                                   if alert["labels"]["installation"] == "content" and
                                   alert["labels"]["alertname"] == "ConstanciaContentFails"], "it fires")
    assert alert["annotations"]["runbook_url"] == f"{DOCS}/operate/runbooks/content-store.md"


@pytest.mark.sqlite
def test_mail_goes_out_for_each_cause_and_nothing_else(watching):
    """In the end: those on call read of each cause, and of nothing that only follows from one."""
    wanted = {(name, f"Constancia{page}") for name, case in CASES.items() for page in case.pages}
    eventually(lambda: watching.alertmanager.pages() >= wanted, "all pages were sent")
    assert watching.alertmanager.pages() == wanted


# ---- a real service ----

@pytest.mark.postgresql
def test_a_standby_that_is_lost_is_one_page(tmp_path):
    """Two nodes and clients that continue; the standby is stopped and started."""
    with Cluster(standbys=1) as cluster, Fleet(tmp_path / "fleet", cluster=cluster) as fleet, \
            contextlib.ExitStack() as ending:
        channel, stopping, answers = fleet.new_channel(), threading.Event(), collections.Counter()

        def declare(node):
            client = node.client(channel.test_key["key"])
            while not stopping.wait(0.2):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    answers[client.register().status] += 1
        scrapes = [{"job_name": "constancia",
                    "static_configs": [{"targets": [f"127.0.0.1:{node.admin_port}" for node in fleet.nodes]}]}]
        threads = [threading.Thread(target=declare, args=(node,)) for node in fleet.nodes]
        ending.callback(lambda: [thread.join() for thread in threads])
        ending.callback(stopping.set)
        for thread in threads:
            thread.start()
        with Watching(tmp_path, scrapes) as both:
            eventually(lambda: answers[201] > 10, "registrations are answered")
            eventually(lambda: both.criticals() == [], "nothing is wrong")
            cluster.standby.stop("immediate")
            eventually(lambda: {"ConstanciaStandbyMissing", "ConstanciaNotReady", "ConstanciaStoreFails",
                                "ConstanciaServerErrors"} <= both.firing(), "the consequences fire, too")
            eventually(lambda: both.criticals() == ["ConstanciaStandbyMissing"], "one of them is a page")
            eventually(both.alertmanager.pages, "it is sent")
            cluster.standby.start()
            cluster.primary.wait_for_standbys()
            eventually(lambda: not any(alert["labels"]["severity"] == "critical" for alert in both.prometheus.firing()),
                       "nothing fires any more", patience=300)
            assert both.alertmanager.pages() == {("", "ConstanciaStandbyMissing")}
            assert answers[503], "clients noticed"
