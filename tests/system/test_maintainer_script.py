"""What an upgrade of the package does with a running service when the schema differs: debian/constancia.postinst with
programs of its own in place of systemd's and of the new package's. tests/package has whole packages."""

import json
import os
import pathlib
import subprocess

import pytest

pytestmark = pytest.mark.sqlite  # scripts know no store
ROOT = pathlib.Path(__file__).resolve().parents[2]
CONSTANCIA = """#!/bin/sh
case "$*" in
"version --json") echo '{"version":"9","schema":"018-new"}' ;;
"config check "*) ;;
"store migrate --dry-run --json "*) [ "$FROM_THE_UNIT" = yes ] && cat "$STORE" ;;
*) exit 2 ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
case "$*" in
"show --property=MainPID --value constancia.service") echo "$RUNNING" ;;
esac
"""


@pytest.fixture
def machine(tmp_path):
    """Runs the script, with the answer of the store (None: it is in use), and returns its words and whether it restarted
    the service."""
    script = (ROOT / "debian/constancia.postinst").read_text(encoding="utf-8")
    for real, own in (("/usr/bin/constancia", "constancia"), ("/run/constancia-upgrade", "upgrade"),
                      ("/run/systemd/system", "systemd")):
        assert real in script
        script = script.replace(real, str(tmp_path / own))
    for name, text in (("postinst", script), ("constancia", CONSTANCIA), ("systemctl", SYSTEMCTL),
                       ("deb-systemd-invoke", '#!/bin/sh\necho "$*" >>"$INVOKED"\n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "systemd").mkdir()

    def upgraded(answer, before="017-old", runs=True):
        (tmp_path / "upgrade").mkdir()
        (tmp_path / "upgrade/before").write_text(f'{{"version":"8","schema":"{before}"}}\n')
        (tmp_path / "store").write_text(json.dumps(answer, separators=(",", ":")) if answer else "")
        invoked = tmp_path / "invoked"
        invoked.write_text("")
        # The settings of the unit are in the environment of the running program alone.
        with subprocess.Popen(["sleep", "600"], env={
                **os.environ, "FROM_THE_UNIT": "yes", "STORE": str(tmp_path / "store")}) as service:
            done = subprocess.run([tmp_path / "postinst", "configure", "0.1"], capture_output=True, text=True,
                                  check=True, env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "INVOKED": str(invoked),
                                                   "RUNNING": str(service.pid if runs else 0)})
            service.kill()
        assert not (tmp_path / "upgrade").exists()
        return done.stderr, invoked.read_text().splitlines() == ["try-restart constancia.service"]
    return upgraded


def due(*kinds):
    return {"applied": False, "steps": [f"{number:03}-step" for number, _ in enumerate(kinds, 18)], "kinds": [*kinds]}


def test_the_same_schema_restarts_the_service(machine):
    assert machine(due(), before="018-new") == ("", True)


def test_a_store_that_another_node_has_migrated_restarts_it_too(machine):
    assert machine(due()) == ("", True)


def test_rolling_steps_are_applied_while_nodes_serve(machine):
    words, restarted = machine(due("rolling", "rolling"))
    assert not restarted and "may keep serving" in words and "systemctl restart constancia" in words, words
    assert "Stop all nodes" not in words and "017-old -> 018-new" in words


@pytest.mark.parametrize("answer, runs", [(due("rolling", "stop"), True), (due("stop"), True), (None, True),
                                          (due("rolling"), False)])
def test_for_others_and_where_it_is_not_known_all_nodes_stop(machine, answer, runs):
    words, restarted = machine(answer, runs=runs)
    assert not restarted and "Stop all nodes" in words and "017-old -> 018-new" in words, words
