"""deploy/kubernetes without a cluster: the processes of the manifests with their commands, settings, volumes and
probes, up to a verified certification; and what the manifests promise of security and availability. Whether they are
valid and follow from the chart is for tests/conformance/charts."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import yaml

import stores  # finds tests/support
import journey
import manifests
import postgres
import s3_server
from pki import Pki
from program import ROOT, eventually

DEPLOY = ROOT / "deploy/kubernetes"
CONFIG = ("--config", "/etc/constancia/constancia.conf")
TOPOLOGIES = ("embedded", "nodes")
SECRETS = "/run/secrets/constancia/"

pytestmark = pytest.mark.sqlite  # the manifests choose the store


def objects_of(topology):
    return manifests.load(DEPLOY / f"{topology}-init.yaml", DEPLOY / f"{topology}.yaml")


def workload_of(objects):
    return next(each for (kind, _), each in objects.items() if kind in ("StatefulSet", "Deployment"))


def pod_specs(objects):
    return [each["spec"]["template"]["spec"] for (kind, _), each in objects.items()
            if kind in ("StatefulSet", "Deployment", "Job")]


@pytest.fixture
def place():
    """A directory whose path is short enough for sockets."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="constancia-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def authority(place):
    directory = place / "authority"
    directory.mkdir()
    process = subprocess.Popen([sys.executable, "-B", ROOT / "tests/support/timestamp_authority.py", "--directory",
                                directory, "--port-file", place / "port"])
    eventually(lambda: (place / "port").exists() and (place / "port").read_text(), "the authority serves")
    yield directory, int((place / "port").read_text())
    process.kill()
    process.wait()


def secret_of(place, authority, **more):
    """The files of the Secret, with the mode and group bits that a cluster gives them."""
    directory = place / "secret"
    directory.mkdir()
    pki = Pki(place / "pki")
    signer = pki.signer("report")
    files = {"report-key.pem": signer["signer.key"], "report-chain.pem": signer["signer.chain"],
             "tsa-roots.pem": authority / "root.pem"}
    for name, path in files.items():
        (directory / name).write_bytes(pathlib.Path(path).read_bytes())
    for name, text in more.items():
        (directory / name.replace("__", ".")).write_text(text)
    for path in directory.iterdir():
        path.chmod(0o440)
    return directory, pki


def replace_authority(port):
    return {r"https://tsa\.example\.net/tsr": f"http://127.0.0.1:{port}/"}


FAST = {"CONSTANCIA_SEAL_INTERVAL": "1s", "CONSTANCIA_EVIDENCE_INTERVAL": "1s",
        "CONSTANCIA_TSA_ALLOW_NETWORKS": "127.0.0.0/8"}


def admin(pod):
    return lambda *words: json.loads(pod.run(["/usr/bin/constancia", *words, "--json", *CONFIG]))


def trust_of(pod):
    return pathlib.Path(pod.paths["/var/lib/constancia"]) / "trust.pem"


# ---- running ----

def test_the_embedded_store_is_created_served_and_kept(place, authority):
    directory, port = authority
    objects = objects_of("embedded")
    secret, _ = secret_of(place, directory)
    cluster = manifests.Cluster(objects, place, secret, replace_authority(port), FAST)
    try:
        cluster.job("constancia-init")
        workload = workload_of(objects)
        assert workload["kind"] == "StatefulSet" and workload["spec"]["replicas"] == 1
        pod = cluster.pod(workload, 0)
        client = journey.Client(pod.address, 8080, journey.new_key(admin(pod)))
        event = client.register()
        journey.verify(client, place, trust_of(pod))
        assert cluster.end(pod, workload) == 0
        cluster.job("constancia-init")  # an existing store is not changed
        pod = cluster.pod(workload, 0)
        assert client.json("GET", f"/v1/events/{event['event_id']}")["hash"] == event["hash"]
        assert cluster.end(pod, workload) == 0
    finally:
        cluster.kill()


@pytest.fixture
def database():
    with postgres.Cluster(standbys=1) as cluster:
        yield cluster


@pytest.fixture
def content(place):
    (place / "s3").mkdir()
    server = s3_server.Server(place / "s3", bucket="constancia", region="eu-1")
    server.access_key = "constancia"
    yield server
    server.shutdown()


def test_nodes_share_a_store_and_are_replaced_one_by_one(place, authority, database, content):
    directory, port = authority
    objects = objects_of("nodes")
    secret, _ = secret_of(place, directory, s3=content.secret_key + "\n",
                          pg_service__conf="[constancia]\npassword=unused\n")
    name = database.create_database("constancia")
    assert name == "constancia"
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in database.servers)
    replace = {**replace_authority(port), r"db1\.example\.net,db2\.example\.net": hosts,
               r"sslmode=verify-full&sslrootcert=[^&]+": "sslmode=disable",
               r"https://s3\.example\.net": content.endpoint}
    cluster = manifests.Cluster(objects, place, secret, replace,
                                {**FAST, "CONSTANCIA_CONTENT_ALLOW_NETWORKS": "127.0.0.0/8"})
    try:
        cluster.job("constancia-init")
        workload = workload_of(objects)
        assert workload["kind"] == "Deployment" and workload["spec"]["replicas"] > 2
        first, second = cluster.pod(workload, 0), cluster.pod(workload, 1)
        key = journey.new_key(admin(first))
        event = journey.Client(first.address, 8080, key).register()
        journey.verify(journey.Client(second.address, 8080, key), place, trust_of(second))
        # A surge: the new pod is ready before an old one ends, and begins with an empty directory.
        third = cluster.pod(workload, 2)
        assert cluster.end(first, workload) == 0
        client = journey.Client(third.address, 8080, key)
        assert client.json("GET", f"/v1/events/{event['event_id']}")["hash"] == event["hash"]
        assert client.register()["sequence"] == 2
        assert cluster.end(second, workload) == 0 and cluster.end(third, workload) == 0
    finally:
        cluster.kill()


# ---- what they promise ----

@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_each_pod_keeps_the_restricted_profile(topology):
    specs = pod_specs(objects_of(topology))
    assert len(specs) == 2
    for spec in specs:
        assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 900
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
            assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"]
            assert {each["mountPath"] for each in container["volumeMounts"]} == {
                "/var/lib/constancia", "/tmp", "/etc/constancia", SECRETS.rstrip("/")}
        assert all(set(volume) <= {"name", "emptyDir", "configMap", "secret", "persistentVolumeClaim"}
                   for volume in spec["volumes"])
        modes = [volume["secret"]["defaultMode"] for volume in spec["volumes"] if "secret" in volume]
        assert modes == [0o440]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_selectors_ports_and_volumes_belong_together(topology):
    objects = objects_of(topology)
    workload = workload_of(objects)
    template = workload["spec"]["template"]
    labels = template["metadata"]["labels"]
    (container,) = template["spec"]["containers"]
    job = objects["Job", "constancia-init"]["spec"]["template"]

    def selected(selector, by=labels):
        return selector.items() <= by.items()
    assert selected(workload["spec"]["selector"]["matchLabels"])
    services = [each for (kind, _), each in objects.items() if kind == "Service"]
    for service in services:
        assert selected(service["spec"]["selector"]) and not selected(
            service["spec"]["selector"], job["metadata"]["labels"])
        assert [manifests.port_of(container, port["targetPort"]) for port in service["spec"]["ports"]] == [8080]
    policy = manifests.one(objects, "NetworkPolicy")
    for by in (labels, job["metadata"]["labels"]):
        assert selected(policy["spec"]["podSelector"]["matchLabels"], by)
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    admitted = {rule["ports"][0]["port"]: rule["from"] for rule in policy["spec"]["ingress"]}
    assert set(admitted) == {"http", "admin"} and admitted["http"] != admitted["admin"]
    for rule in policy["spec"]["egress"][1:]:
        assert rule["to"][0]["ipBlock"]["except"] == ["169.254.0.0/16"]
        assert {"fe80::/10", "fd00:ec2::254/128"} <= set(rule["to"][1]["ipBlock"]["except"])
    assert all(rule.get("ports") for rule in (*policy["spec"]["ingress"], *policy["spec"]["egress"]))
    assert all(rule["from"] for rule in policy["spec"]["ingress"])
    if topology == "nodes":
        budget = manifests.one(objects, "PodDisruptionBudget")
        assert selected(budget["spec"]["selector"]["matchLabels"]) and budget["spec"]["maxUnavailable"] == 1
        assert workload["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    else:
        claim = manifests.one(objects, "PersistentVolumeClaim")
        assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert workload["spec"]["serviceName"] in [service["metadata"]["name"] for service in services]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_probe_ends_a_pod_that_waits_or_drains(topology):
    """What a standby or the store decides is asked by the readiness probe alone, and a drain has its time."""
    spec = workload_of(objects_of(topology))["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    asked = {name: container[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")}
    assert asked == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    (_, seconds) = container["lifecycle"]["preStop"]["exec"]["command"]
    forced = re.search(r"#define FORCED_EXIT_S (\d+)", (ROOT / "src/cli/node.c").read_text())
    assert spec["terminationGracePeriodSeconds"] > int(seconds) + int(forced[1])


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_no_secret_is_a_setting_or_in_the_environment(topology):
    objects = objects_of(topology)
    settings = objects["ConfigMap", "constancia"]["data"]["constancia.conf"]
    for line in settings.splitlines():
        name, _, value = line.partition(" = ")
        if re.search("password|secret|token$|stripe_key", name):
            assert value.startswith("credential:"), line
        if name in ("key", "chain", "roots"):
            assert value.startswith(SECRETS), line
    assert not re.search(r"//[^/@]*:[^/@]*@", settings)
    for spec in pod_specs(objects):
        for container in spec["containers"]:
            assert all("value" in each and "valueFrom" not in each for each in container["env"])


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_values_give_the_settings(topology):
    values = yaml.safe_load((DEPLOY / f"{topology}.values.yaml").read_text())
    settings = objects_of(topology)["ConfigMap", "constancia"]["data"]["constancia.conf"]
    for section, entries in values["settings"].items():
        part = settings.partition(f"[{section}]\n")[2].partition("\n\n")[0]
        assert [f"{key} = {entries[key]}" for key in sorted(entries)] == part.strip().splitlines()
