"""Nodes of one deployment, each with the clients and the administration that a Service has."""

import contextlib
import threading

import stores  # finds tests/support
from client import BINARY, Administration, Client, Description, Refused, eventually
from nodes import Deployment, Node


class FleetNode(Node):
    description = None

    @property
    def public_url(self):
        return f"http://{self.address}:{self.port}"

    def client(self, key):
        return Client(self, key)

    def describe_self(self):
        self.description = Description(Client(self).get("/v1/openapi.yaml").expect(200).body)

    def metric(self, name):
        """A counter of this node, since it was started."""
        _, text = self.ask("/metrics")
        (line,) = [line for line in text.splitlines() if line.split(" ")[0] == "constancia_" + name]
        return float(line.split()[1])


class Fleet(Administration, Deployment):
    """`count` nodes on a database of their own; the shared cluster's unless another is given."""

    node_class = FleetNode

    def __init__(self, directory, count=2, cluster=None, **settings):
        self.secrets = set()
        self.cluster = cluster or stores.cluster()
        self.database, more = (cluster.create_database(), {}) if cluster else stores.create_database()
        given = {name.replace("__", "."): str(value) for name, value in settings.items()}
        # A server of its own may hang, one that tests share may be busy.
        patience = 2 if cluster else 30
        super().__init__(directory, BINARY, {
            "store.url": self.cluster.url(self.database, connect_timeout=patience),
            "seal.interval": "1s", **more, **given})
        for _ in range(count):
            self.add()

    def __enter__(self):
        with contextlib.ExitStack() as ending:
            ending.callback(self.close)
            for node in self.nodes:
                node.start()
            self.nodes[0].describe_self()
            for node in self.nodes[1:]:
                node.description = self.nodes[0].description
            ending.pop_all()
        return self

    def __exit__(self, kind, *failure):
        codes = []
        try:
            if kind is None:
                codes = [node.stop() for node in self.nodes if node.alive()]
        finally:
            self.close()
            with contextlib.suppress(Exception):  # its server may be what the test killed
                self.cluster.drop_database(self.database)
        assert set(codes) <= {0}, codes

    # ---- administration, at any node ----

    def admin(self, *arguments):
        return next(node for node in self.nodes if node.alive()).admin(*arguments)

    def entry(self):
        return self.nodes[0]

    def clients(self, key):
        """One for each node."""
        return [node.client(key) for node in self.nodes]

    # ---- the store ----

    def query(self, sql):
        return self.cluster.primary.query(sql, self.database)

    def rows(self, sql):
        return self.cluster.primary.rows(sql, self.database)

    def number(self, sql):
        return self.cluster.primary.number(sql, self.database)

    def check(self):
        def valid():
            try:
                return self.admin("store", "check")["valid"] is True
            except Refused as refusal:  # by a connection that was cut before
                assert "temporarily_unavailable" in str(refusal), refusal
                return False
        eventually(valid, "the store is searched")


def at_once(tasks):
    """Runs functions side by side, as near to the same moment as can be; their results in order."""
    results, barrier = [None] * len(tasks), threading.Barrier(len(tasks))

    def run(number):
        barrier.wait()
        try:
            results[number] = tasks[number]()
        except BaseException as error:
            results[number] = error
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def register_everywhere(fleet, key, each, threads=4, register=None):
    """The same number of registrations by each thread at each node, all answers."""
    def work(node, thread):
        client = node.client(key)
        try:
            return [(register or Client.register)(client, {"n": n}, f"{node.name}-{thread}-{n}")
                    for n in range(each)]
        finally:
            client.close()
    lists = at_once([lambda node=node, thread=thread: work(node, thread)
                     for node in fleet.nodes for thread in range(threads)])
    return [answer for answers in lists for answer in answers]


def gapless(events):
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    times = [event["received_at"] for event in events]
    assert times == sorted(times)

