"""The alert rules and the dashboard: Prometheus takes them, they ask for what there is, and lead to
what to do."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from program import ROOT

RULES = ROOT / "dist/prometheus/alerts.yml"
DASHBOARD = ROOT / "dist/grafana/constancia.json"
RUNBOOKS = ROOT / "docs/operate/runbooks"
METRIC = re.compile(r"\b(?:constancia|process)_[a-z_]+")
# What Grafana puts in before it asks.
FILLED = {"$__rate_interval": "5m", "$job": "constancia", "$instance": ".*"}


def promtool(*words):
    program = shutil.which("promtool")
    assert program, "promtool is missing: the Debian package prometheus"
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True,
                          cwd=RULES.parent, check=False)
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    return done.stdout


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"]
            for rule in group["rules"]]


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def expressions():
    """Of the dashboard, as Prometheus gets them."""
    found = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    for name, value in FILLED.items():
        found = [text.replace(name, value) for text in found]
    return found


@pytest.fixture(scope="module")
def told(service):
    """The names that /metrics has, those of the parts of a histogram among them."""
    _, text = service.monitor("/metrics")
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    return set(kinds) | {f"{name}_{part}" for name, kind in kinds.items() if kind == "histogram"
                         for part in ("bucket", "sum", "count")}


def test_prometheus_takes_the_rules_and_they_fire_when_they_should():
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES)
    assert "SUCCESS" in promtool("test", "rules", RULES.parent / "alerts.test.yml")


def tried(rule):
    """Whether the cases have the alert firing, and silent where what it asks for is there."""
    name, asked = rule["alert"], set(METRIC.findall(rule["expr"])) or {"up"}
    fires = silent = False
    for case in yaml.safe_load((RULES.parent / "alerts.test.yml").read_text())["tests"]:
        there = {re.match(r"\w+", each["series"])[0] for each in case["input_series"]}
        if not asked & there:
            continue
        for one in case.get("alert_rule_test", ()):
            if one["alertname"] == name:
                fires, silent = fires or bool(one["exp_alerts"]), silent or not one["exp_alerts"]
        for one in case.get("promql_expr_test", ()):
            selected = re.search(r'alertname="(\w+)"', one["expr"])
            if selected and selected[1] != name:
                continue
            told = f'alertname="{name}"' in str(one["exp_samples"]) or (selected and one["exp_samples"])
            fires, silent = fires or bool(told), silent or not told
    return fires, silent


def test_each_alert_is_tried_as_firing_and_as_silent():
    assert {rule["alert"]: tried(rule) for rule in rules()} == {
        rule["alert"]: (True, True) for rule in rules()}


def test_the_dashboard_is_one_and_prometheus_can_read_what_it_asks(tmp_path):
    record = json.loads(DASHBOARD.read_text())
    assert record["schemaVersion"] >= 36 and record["uid"] and record["title"]
    variables = {each["name"]: each for each in record["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    identifiers = [panel["id"] for panel in panels()]
    assert len(set(identifiers)) == len(identifiers)
    for panel in panels():
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}" and panel["targets"], panel["title"]
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24, panel["title"]
    recorded = [{"record": f"asked:{number}", "expr": text}
                for number, text in enumerate(expressions())]
    assert len(recorded) > 30 and "$" not in str(recorded)
    file = tmp_path / "asked.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "asked", "rules": recorded}]}))
    assert f"{len(recorded)} rules found" in promtool("check", "rules", file)


def test_what_they_ask_for_is_there(told):
    for text in [rule["expr"] for rule in rules()] + expressions():
        names = set(METRIC.findall(text))
        assert names and names <= told or "up{" in text, (text, names - told)


def test_every_alert_names_a_runbook_that_names_it():
    pages = {path: path.read_text(encoding="utf-8") for path in RUNBOOKS.glob("*.md")}
    names = set()
    for rule in rules():
        page = ROOT / rule["annotations"]["runbook"]
        assert page in pages, rule
        assert f"`{rule['alert']}`" in pages[page], rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        names.add(rule["alert"])
    assert len(names) == len(rules()), "each has a name of its own"
    assert set(re.findall(r"`(Constancia[A-Z]\w+)`", "".join(pages.values()))) == names, "and none is made up"
