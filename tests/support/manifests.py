"""Kubernetes manifests, read as a cluster reads them, and their pods as containers of containers.py: one process for
each container, with volumes from ConfigMaps, a Secret's directory, claims and empty directories."""

import pathlib
import urllib.error
import urllib.request

import yaml

from containers import Addresses, Container, image


def load(*files):
    """Returns the objects of the files: {(kind, name): object}; an object of several files has to be the same."""
    found = {}
    for file in files:
        for each in yaml.safe_load_all(pathlib.Path(file).read_text()):
            if each:
                key = each["kind"], each["metadata"]["name"]
                assert found.setdefault(key, each) == each, f"{key} differs"
    return found


def one(objects, kind):
    """Returns the only object of a kind."""
    (found,) = [each for (of, _), each in objects.items() if of == kind]
    return found


class Cluster:
    """Runs pods; `secret` is the directory of the Secret's files."""

    def __init__(self, objects, place, secret, replace, extra):
        self.objects, self.place, self.secret = objects, pathlib.Path(place), secret
        self.replace, self.extra = replace, extra
        self.addresses, self.count, self.pods = Addresses(), 0, []

    def claim(self, name):
        assert ("PersistentVolumeClaim", name) in self.objects, f"no claim {name}"
        return self.directory(f"claim-{name}")

    def directory(self, name):
        path = self.place / name
        path.mkdir(exist_ok=True)
        return path

    def mounts(self, spec, container, claims):
        found = {}
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        for mount in container["volumeMounts"]:
            path, name = mount["mountPath"], mount["name"]
            if name in claims:
                found[path] = self.claim(claims[name])
                continue
            volume = volumes[name]
            if "configMap" in volume:
                for key, text in self.objects["ConfigMap", volume["configMap"]["name"]]["data"].items():
                    source = self.directory("maps") / f"{self.count}-{key}"
                    source.write_text(text)
                    found[f"{path}/{key}"] = source
            elif "secret" in volume:
                found[path] = self.secret
            elif "persistentVolumeClaim" in volume:
                found[path] = self.claim(volume["persistentVolumeClaim"]["claimName"])
            else:
                assert "emptyDir" in volume, volume
                found[path] = self.directory(f"e{self.count}-{name}")
        return found

    def container(self, spec, container, claims, name):
        self.count += 1
        base = image()
        environment = {**base["environment"], **{each["name"]: each["value"] for each in container["env"]}}
        command = container.get("command", base["entrypoint"]) + container.get("args", [])
        return Container(name, self.place / f"c{self.count}", self.addresses, command=command,
                         environment=environment, mounts=self.mounts(spec, container, claims),
                         extra=self.extra, replace=self.replace)

    def job(self, name):
        """Runs the Job to its end."""
        spec = self.objects["Job", name]["spec"]["template"]["spec"]
        for container in spec["containers"]:
            self.container(spec, container, {}, name).run()

    def pod(self, workload, number):
        """Starts the pod of that number and blocks until its probes pass."""
        spec = workload["spec"]["template"]["spec"]
        name = f"{workload['metadata']['name']}-{number}"
        claims = {each["metadata"]["name"]: f"{each['metadata']['name']}-{name}"
                  for each in workload["spec"].get("volumeClaimTemplates", [])}
        for container in spec.get("initContainers", []):
            self.container(spec, container, claims, name).run()
        (container,) = spec["containers"]
        pod = self.container(spec, container, claims, name).start()
        self.pods.append(pod)
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            pod.wait(lambda probe=probe: passes(pod, container, container[probe]), f"passes its {probe}")
        return pod

    def end(self, pod, workload):
        """Ends a pod as a cluster does; returns the exit status."""
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        pod.run(container["lifecycle"]["preStop"]["exec"]["command"])
        return pod.stop()

    def kill(self):
        for pod in self.pods:
            pod.kill()


def port_of(container, name):
    """Returns the number of a container's port by its name."""
    (port,) = [each["containerPort"] for each in container["ports"] if each["name"] == name]
    return port


def passes(pod, container, probe):
    get = probe["httpGet"]
    try:
        url = f"http://{pod.address}:{port_of(container, get['port'])}{get['path']}"
        with urllib.request.urlopen(url, timeout=probe["timeoutSeconds"]):
            return True
    except (OSError, urllib.error.HTTPError):
        return False
