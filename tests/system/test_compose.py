"""deploy/compose.yaml without an engine: its commands, settings, secrets, health checks and order with a real
PostgreSQL primary, a synchronous standby and Caddy, from the empty volumes to a verified certification. The image
itself is for tests/conformance/image."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import yaml

import stores  # noqa: F401  finds tests/support
import compose
import containers
import journey
from program import ROOT, eventually

pytestmark = pytest.mark.sqlite  # it has servers of its own
DEPLOY = ROOT / "deploy"
CONFIG = ("--config", "/etc/constancia/constancia.conf")
FAST = {"CONSTANCIA_SEAL_INTERVAL": "1s", "CONSTANCIA_EVIDENCE_INTERVAL": "1s"}
NO_SYNC = ["-c", "fsync=off"]


@pytest.fixture
def place():
    """A directory whose path is short enough for sockets, and which the servers' user can enter."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="constancia-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def deployed(place):
    """A copy of deploy/ with its secrets and its .env as the page says."""
    copy = place / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns("secrets", ".env", "helm", "kubernetes"))
    subprocess.run([copy / "make-secrets"], check=True, capture_output=True)
    shutil.copy(copy / "example.env", copy / ".env")
    return copy


def privileged_port():
    return os.geteuid() == 0 or int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80


def adapt_caddy(container):
    """Binds Caddy to its address alone, and to higher ports where it may not have those of the Web."""
    file = pathlib.Path(container.paths["/etc/caddy/Caddyfile"])
    more = f"{{\n\tdefault_bind {container.address}\n"
    if not privileged_port():
        more += "\thttp_port 8080\n\thttps_port 8443\n"
    text = file.read_text()
    assert text.count("\n{\n") == 1
    file.write_text(text.replace("\n{\n", f"\n{more}"))


def adapt_service(container):
    container.environment.update(FAST)


@pytest.fixture
def composition(deployed, place):
    variables = {**compose.dotenv((deployed / ".env").read_text()), "FRONT_SUBNET": "127.0.0.0/8",
                 "BACK_SUBNET": "127.0.0.0/8"}
    found = compose.Composition(deployed / "compose.yaml", variables, place,
                                {"caddy": adapt_caddy, "constancia": adapt_service})
    yield found
    found.kill()


def admin(container):
    return lambda *words: json.loads(container.run(["/usr/bin/constancia", *words, "--json", *CONFIG]))


def through_caddy(composition, place, key=None):
    caddy = composition.running["caddy"]
    root = pathlib.Path(caddy.paths["/data"]) / "caddy/pki/authorities/local/root.crt"
    eventually(root.exists, "Caddy has an authority")
    return journey.Client(caddy.address, 443 if privileged_port() else 8443, key, "localhost", root)


def rows(container, sql):
    return container.run(["psql", "-XAtq", "-h", "/tmp", "-U", "postgres", "-d", "postgres", "-c", sql]).strip()


def test_the_composition_serves_from_empty_volumes_and_survives_a_fail_over(composition, place):
    composition.run("init")
    composition.up("caddy")
    composition.healthy("caddy")
    service, first, second = (composition.running[name] for name in ("constancia", "db1", "db2"))
    assert rows(first, "SELECT application_name, sync_state FROM pg_stat_replication") == "db2|quorum"
    client = through_caddy(composition, place, journey.new_key(admin(service)))
    before = client.register()
    journey.verify(client, place, pathlib.Path(service.paths["/var/lib/constancia"]) / "trust.pem")
    # The primary is lost with its volume: the standby is promoted and copied.
    first.kill()
    second.run(["psql", "-XAtq", "-h", "/tmp", "-U", "postgres", "-d", "postgres", "-c", "SELECT pg_promote()"])
    shutil.rmtree(first.paths["/var/lib/postgresql/data"])
    del composition.running["db1"]
    again = composition.up("db1")
    composition.healthy("db1")
    assert rows(again, "SELECT pg_is_in_recovery()") == "t"
    eventually(lambda: client.ask("POST", "/v1/events", {"client_ref": "after", "payload": {}})[0] in (200, 201),
               "registration resumes")
    assert client.json("GET", f"/v1/events/{before['event_id']}")["hash"] == before["hash"]
    assert composition.healthy("constancia")
    codes = composition.down()
    assert codes["constancia"] == 0 and codes["caddy"] == 0, codes


def promote(container):
    container.run(["psql", "-XAtq", "-h", "/tmp", "-U", "postgres", "-c", "SELECT pg_promote()"])


def restarted(composition, name, reason):
    """Ends a server, and starts it again: it waits for the reason, and ends when it is asked to."""
    composition.running.pop(name).kill()
    container = composition.up(name)
    eventually(lambda: reason in container.tail(), f"{name} says why it waits")
    assert not container.passes(["pg_isready", "--quiet", "--host=127.0.0.1"])
    assert container.stop() == 0
    return container


def test_a_server_of_the_database_replaces_no_data(composition):
    """A lost volume while the other server is a standby, and a primary that comes back after its successor."""
    composition.up("db1")
    composition.up("db2")
    composition.healthy("db2")
    first, second = composition.running["db1"], composition.running["db2"]
    eventually(lambda: rows(first, "SELECT sync_state FROM pg_stat_replication") == "quorum", "the standby streams")
    data = pathlib.Path(first.paths["/var/lib/postgresql/data"])
    first.kill()
    lost = data.with_name("lost")
    shutil.move(data, lost)
    data.mkdir()
    shutil.copystat(lost, data)
    restarted(composition, "db1", "the other one is a standby: promote it")
    assert not (data / "main").exists()
    shutil.rmtree(data)
    shutil.move(lost, data)
    promote(second)
    restarted(composition, "db1", "the other server is the primary by now")
    shutil.rmtree(data)
    composition.running.pop("db1", None)
    composition.up("db1")
    composition.healthy("db1")
    assert rows(composition.running["db1"], "SELECT pg_is_in_recovery()") == "t"


def test_each_container_is_confined_and_no_secret_is_in_its_environment(deployed):
    variables = compose.dotenv((deployed / ".env").read_text())
    document = compose.interpolate(yaml.safe_load((deployed / "compose.yaml").read_text()), variables)
    held = [path.read_text().strip() for path in (deployed / "secrets").iterdir()]
    assert len(held) == len(document["secrets"]) == 4
    for name, service in document["services"].items():
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert not [secret for secret in held if secret in json.dumps(service)], name
        assert "healthcheck" in service or name in ("init", "s3"), name
        for mount in service["volumes"]:
            source = mount.split(":")[0]
            assert (deployed / source).exists() if source.startswith(".") else source in document["volumes"], mount
    for service in ("init", "constancia"):
        assert "user" not in document["services"][service]  # the image's: 900
    assert (deployed / "secrets").stat().st_mode & 0o777 == 0o700
    # A word of a command is in the list of processes.
    assert not re.search(r"psql.*(\\\n.*)*\bcat ", (deployed / "postgresql/server").read_text())


def test_no_secret_is_in_a_layer_of_the_image(deployed):
    """podman reads .containerignore, docker .dockerignore; docker looks for a Dockerfile unless it is given a name."""
    ignored = (ROOT / ".containerignore").read_text()
    assert {"deploy/.env", "deploy/secrets", ".git"} <= set(ignored.split())
    assert (ROOT / ".dockerignore").read_text() == ignored
    document = yaml.safe_load((deployed / "compose.yaml").read_text())
    for name in ("init", "constancia"):
        assert document["services"][name]["build"] == {"context": "..", "dockerfile": "Containerfile"}


def test_the_example_has_every_variable(deployed):
    used = set(re.findall(r"\$\{(\w+)", (deployed / "compose.yaml").read_text()))
    shown = set(re.findall(r"(?m)^#?([A-Z][A-Z0-9_]+)=", (deployed / "example.env").read_text()))
    assert used == shown - {"COMPOSE_PROFILES"}


def test_existing_secrets_stay(deployed):
    before = {path.name: path.read_bytes() for path in (deployed / "secrets").iterdir()}
    (deployed / "secrets").chmod(0o755)
    subprocess.run([deployed / "make-secrets"], check=True, capture_output=True)
    assert (deployed / "secrets").stat().st_mode & 0o777 == 0o700
    assert {path.name: path.read_bytes() for path in (deployed / "secrets").iterdir()} == before
    assert before["pg_service.conf"] == b"[constancia]\npassword=" + before["database"] + b"\n"


def test_every_health_check_is_the_image_s(deployed):
    """An image in OCI format has none: whatever runs it names the command."""
    wanted = containers.image()["healthcheck"]
    lines = (deployed / "constancia.container").read_text().splitlines()
    assert json.loads(next(line for line in lines if line.startswith("HealthCmd=")).partition("=")[2]) == wanted
    document = yaml.safe_load((deployed / "compose.yaml").read_text())
    kind, *command = document["services"]["constancia"]["healthcheck"]["test"]
    assert kind == "CMD" and command == [*wanted[:-1], wanted[-1].replace("/livez", "/readyz")]
