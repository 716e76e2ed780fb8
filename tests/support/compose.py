"""A composition (deploy/compose.yaml), read as an engine reads it, and its services as containers of containers.py."""

import pathlib
import re

import yaml

from containers import Addresses, Container, image

IMAGE_USERS = {"postgres": "postgres"}
OURS = "constancia"


def dotenv(text):
    """The variables of an .env file."""
    lines = [line.strip() for line in text.splitlines()]
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def interpolate(node, variables):
    """Replaces ${NAME}, ${NAME:-default} and ${NAME:?error} in all values."""
    if isinstance(node, dict):
        return {key: interpolate(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [interpolate(value, variables) for value in node]

    def put(match):
        value = variables.get(match["name"], "")
        if not value and match["how"] == ":?":
            raise ValueError(f"{match['name']} is not set: {match['rest']}")
        return value or (match["rest"] or "" if match["how"] == ":-" else "")
    if not isinstance(node, str):
        return node
    return re.sub(r"\$\{(?P<name>\w+)(?:(?P<how>:-|:\?)(?P<rest>[^}]*))?\}", put, node)


class Composition:
    def __init__(self, file, variables, place, adapt=None):
        self.file, self.place = pathlib.Path(file), pathlib.Path(place)
        self.document = interpolate(yaml.safe_load(self.file.read_text()), variables)
        self.services = self.document["services"]
        self.addresses, self.running, self.adapt = Addresses(), {}, adapt or {}
        self.hosts = {name: self.addresses.of(name) for name in self.services}
        self.started = 0

    def mounts(self, service):
        """Returns {path in the container: path here}: secrets, volumes, files of the composition, temporary ones."""
        found = {}
        for secret in service.get("secrets", []):
            found[f"/run/secrets/{secret}"] = self.file.parent / self.document["secrets"][secret]["file"]
        for mount in service.get("volumes", []):
            source, target = mount.split(":")[:2]
            if source.startswith("."):
                found[target] = self.file.parent / source
            else:
                assert source in self.document["volumes"], f"no volume {source}"
                found[target] = self.directory(f"v-{source}")
        for target in service.get("tmpfs", []):
            found[target] = self.directory(f"t{self.started}")
        return found

    def directory(self, name):
        path = self.place / name
        path.mkdir(exist_ok=True)
        path.chmod(0o755)
        return path

    def container(self, name):
        """Returns the service's container, not started."""
        service, found = self.services[name], image()
        self.started += 1
        ours = OURS in service["image"]
        environment = {key: str(value) for key, value in
                       {**(found["environment"] if ours else {}), **service.get("environment", {})}.items()}
        command = service.get("entrypoint", found["entrypoint"] if ours else []) + \
            service.get("command", found["cmd"] if ours else [])
        mounts = self.mounts(service)
        directory = self.secrets(service, f"s{self.started}") if service.get("secrets") else None
        container = Container(name, self.place / f"c{self.started}", self.addresses, command=command,
                              environment=environment, hosts=self.hosts, user=service.get("user"),
                              mounts={**{path: source for path, source in mounts.items()
                                         if not path.startswith("/run/secrets/")},
                                      **({"/run/secrets": directory} if directory else {})})
        return container

    def secrets(self, service, name):
        """A directory with the service's secrets."""
        directory = self.directory(name)
        for secret in service["secrets"]:
            source = self.file.parent / self.document["secrets"][secret]["file"]
            (directory / secret).write_bytes(source.read_bytes())
        return directory

    def up(self, name):
        """Starts the service after those that it depends on."""
        if name in self.running:
            return self.running[name]
        service = self.services[name]
        for needed, how in service.get("depends_on", {}).items():
            self.up(needed)
            assert how["condition"] == "service_healthy"
            self.healthy(needed)
        container = self.running[name] = self.container(name)
        if name in self.adapt:
            self.adapt[name](container)
        return container.start()

    def healthy(self, name):
        """Blocks until its health check passes."""
        kind, *command = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return self.running[name].wait(lambda: self.running[name].passes(command), "is healthy")

    def run(self, name):
        """Runs a service that ends, as `compose run --rm`."""
        for needed in self.services[name].get("depends_on", {}):
            self.up(needed)
            self.healthy(needed)
        return self.container(name).run()

    def down(self):
        """Stops each after those that depend on it; returns their exit statuses."""
        codes = {}
        while self.running:
            needed = {name for other in self.running for name in self.services[other].get("depends_on", {})}
            for name in set(self.running) - needed:
                codes[name] = self.running.pop(name).stop(self.services[name].get("stop_signal", "SIGTERM"))
        return codes

    def kill(self):
        for container in self.running.values():
            container.kill()
