"""The operations of a script: each method of Interface resolves a step, requests it once, and records the answer.

A step refers to other steps by number ("of"), to keys, channels and accounts by name, and to times and sequences
by their place among the events that are known when it runs, so that a script means the same in each run."""

import concurrent.futures
import contextlib
import dataclasses
import datetime
import hashlib
import http.client
import json
import os
import socket
import threading
import time
import urllib.parse

from declarations import Declaration
from history import NO_ANSWER, Operation
from operations_backups import BackupOperations

REQUEST_SECONDS = 8  # how long a client waits for an answer
READING = ("show", "list", "history", "overview", "usage", "check", "estimate", "deliveries", "attempts", "proof")
RETRY_PAUSE = 0.05  # after no answer
USE_PAUSE = 0.4  # between two uses of a key that was revoked
KEPT_HEADERS = ("Idempotent-Replayed", "Retry-After", "Content-Type")


class Skipped(Exception):
    """The step refers to something that does not exist in this run."""


def moment(seconds):
    """Returns a wall-clock time as requests state it."""
    time_of = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return time_of.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def shifted(text, microseconds):
    time_of = datetime.datetime.fromisoformat(text) + datetime.timedelta(microseconds=microseconds)
    return time_of.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def chain_of(key):
    """Returns the chain of a key's name: "a0/1/live/0" writes to "a0/1/live"."""
    return key.rsplit("/", 1)[0]


def document_of(operation, answer):
    """Returns the JSON document of an answer. A client that was too slow, or one of too many, is answered before its
    request is read: without a body."""
    return json.loads(answer) if answer or operation.status not in (408, 429) else {}


class Interface(BackupOperations):
    """One client's connections: one to each node."""

    def __init__(self, run, name, home=0):
        self.run, self.name, self.home = run, name, home
        self.connections = {}

    def close(self):
        for connection in self.connections.values():
            connection.close()

    def perform(self, step, closing=False):
        """Runs a step. Returns its operation, None if it was skipped."""
        operation = Operation(self.run.next_number(), self.name, step["op"], {}, 0.0, closing=closing,
                              step=step.get("id"), node=step.get("node", self.home) % len(self.run.world.nodes))
        operation.invoked = self.run.clock()
        try:
            getattr(self, step["op"])(step, operation)
        except Skipped:
            return None
        self.run.record(operation)
        if operation.status in (NO_ANSWER, 503):
            self.home += 1
            time.sleep(RETRY_PAUSE)
        return operation

    # ---- requests ----

    def secret(self, name):
        return self.named("secret of " + name)

    def named(self, name):
        if name not in self.run.names:
            raise Skipped
        return self.run.names[name]

    def exchange(self, operation, method, path, key=None, body=None, headers=None):
        """Requests once; sets the status and headers. Returns the body, None if no whole answer came."""
        operation.node = operation.node % len(self.run.world.nodes)
        node = self.run.world.nodes[operation.node]
        headers = dict(headers or {})
        if key:
            headers["Authorization"] = "Bearer " + self.secret(key)
            operation.arguments["key"] = key
            operation.arguments["chain"] = chain_of(key)
        connection = self.connections.get(operation.node)
        if not connection:
            connection = http.client.HTTPConnection(node.address, node.port, timeout=REQUEST_SECONDS)
            self.connections[operation.node] = connection
        operation.invoked = self.run.clock()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            del self.connections[operation.node]
            return None
        operation.completed = self.run.clock()
        operation.status = response.status
        operation.headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        return answer

    def ask(self, operation, method, path, key, body=None, **more):
        """An exchange whose answer is a JSON document."""
        if isinstance(body, dict):
            body, more["headers"] = json.dumps(body), {"Content-Type": "application/json", **more.get("headers", {})}
        answer = self.exchange(operation, method, "/v1" + path, key, body, **more)
        if answer is not None:
            operation.answer = document_of(operation, answer)

    def take(self, operation, path, key=None):
        """An exchange whose answer is a file, which is summarised if it is not an error."""
        answer = self.exchange(operation, "GET", path, key)
        if answer is None:
            return None
        if operation.good:
            operation.answer = {"sha256": hashlib.sha256(answer).hexdigest(), "bytes": len(answer)}
        else:
            operation.answer = document_of(operation, answer)
        return answer

    # ---- events ----

    def send(self, operation, key, declaration):
        operation.kind = "register"
        operation.arguments = {"client_ref": declaration.client_ref, "identity": declaration.identity(),
                               "form": declaration.spec["form"], "spec": declaration.spec}
        self.ask(operation, "POST", "/events", key, declaration.body,
                 headers={"Content-Type": declaration.content_type})
        if operation.good:
            self.run.learn(operation.arguments["chain"], operation.answer)

    def register(self, step, operation):
        self.send(operation, step["key"], Declaration(step["client_ref"], step["content"]))

    def batch(self, step, operation):
        """Registers several declarations in one request. Each is recorded as a registration of its own."""
        declarations = [Declaration(one["client_ref"], one["content"]) for one in step["steps"]]
        body = b"\n".join(declaration.body for declaration in declarations)
        answer = self.exchange(operation, "POST", "/v1/events/batch", step["key"], body,
                               {"Content-Type": "application/x-ndjson"})
        lines = [json.loads(line) for line in answer.splitlines()] if answer and operation.good else []
        refused = document_of(operation, answer) if answer is not None and not operation.good else None
        for place, declaration in enumerate(declarations):
            one = operation if place == 0 else dataclasses.replace(operation, number=self.run.next_number())
            one.kind = "register"
            one.arguments = {"key": step["key"], "chain": chain_of(step["key"]), "client_ref": declaration.client_ref,
                             "identity": declaration.identity(), "form": declaration.spec["form"],
                             "spec": declaration.spec}
            one.answer = refused
            if lines:
                self.take_line(one, lines[place])
            if place:
                self.run.record(one)

    def take_line(self, operation, line):
        """Makes the answer of a registration of the line of a batch."""
        operation.status = line.pop("http_status")
        operation.headers = {"Idempotent-Replayed": "true"} if operation.status == 200 else {}
        if operation.good:
            self.run.learn(operation.arguments["chain"], line)
        else:
            del line["client_ref"]
            if wait := line.pop("retry_after"):
                operation.headers["Retry-After"] = str(wait)
        operation.answer = line

    def at_once(self, step, operation):
        """Takes its steps at the same time, as many clients of one key do: "apart" on different nodes, as when a
        network or a proxy repeats a request."""
        mine, *others = step["steps"]
        operation.kind = mine["op"]
        with contextlib.ExitStack() as stack:
            interfaces = [stack.enter_context(contextlib.closing(Interface(
                self.run, f"{self.name}.{number}", operation.node + (number if step.get("apart") else 0))))
                for number in range(1, len(step["steps"]))]
            threads = stack.enter_context(concurrent.futures.ThreadPoolExecutor(len(others)))
            taken = [threads.submit(interface.perform, other) for interface, other in zip(interfaces, others)]
            getattr(self, mine["op"])(mine, operation)
            for one in taken:
                one.result()

    def revoke_in_use(self, step, _):
        """Revokes a key while it is used, and uses it on, more often than every two seconds, until it must have no
        effect."""
        use = {"op": "balance", "key": step["key"], "node": step["node"]}
        for _ in range(step["before"]):
            self.perform(use)
        self.perform({"op": "at_once", "steps": [*step["steps"], use, use]})
        for _ in range(step["after"]):
            if not self.run.stopping:
                time.sleep(USE_PAUSE)
                self.perform(use)
        raise Skipped

    def of_step(self, step):
        """Returns the step that this one refers to."""
        if step["of"] not in self.run.steps:
            raise Skipped
        return self.run.steps[step["of"]]

    def repeat(self, step, operation):
        first = self.of_step(step)
        self.send(operation, step.get("key", first["key"]), Declaration(first["client_ref"], first["content"]))

    def contradict(self, step, operation):
        first = self.of_step(step)
        self.send(operation, first["key"], Declaration(first["client_ref"], step["content"]))

    def answer_of(self, step):
        """Returns the good answer to the step that this one refers to."""
        done = self.run.results.get(step["of"])
        if not done or not done.good:
            raise Skipped
        return done

    def get_event(self, step, operation):
        first = self.answer_of(step)
        event_id = first.answer["event_id"]
        operation.arguments = {"event_id": event_id, "of_chain": first.arguments["chain"]}
        self.ask(operation, "GET", "/events/" + event_id, step.get("key", first.arguments["key"]))

    def get_content(self, step, operation):
        first = self.answer_of(step)
        event_id = first.answer["event_id"]
        operation.arguments = {"event_id": event_id, "of_chain": first.arguments["chain"],
                               "digest": first.arguments["identity"][0], "form": first.arguments["form"]}
        self.take(operation, f"/v1/events/{event_id}/content", step.get("key", first.arguments["key"]))

    # ---- lists ----

    def resolve_time(self, mark, chain):
        """Returns the time of ["event", place among the known ones from 0 to 1, microseconds] or ["now", seconds]."""
        if mark[0] == "now":
            return moment(time.time() + mark[1])
        known = self.run.known_of(chain)
        if not known:
            raise Skipped
        return shifted(known[min(int(mark[1] * len(known)), len(known) - 1)]["received_at"], mark[2])

    def resolve_sequence(self, place, chain):
        known = self.run.known_of(chain)
        if not known:
            raise Skipped
        return max(1, round(place * max(event["sequence"] for event in known)))

    def resolve_filters(self, step, chain):
        filters = {}
        for name, value in step.get("filters", {}).items():
            if name in ("from", "to"):
                value = self.resolve_time(value, chain)
            elif name in ("seq_from", "seq_to"):
                value = self.resolve_sequence(value, chain)
            elif name == "client_ref":
                value = self.of_step({"of": value})["client_ref"]
            filters[name] = value
        if "from" in filters and "to" in filters and filters["from"] > filters["to"]:
            filters["from"], filters["to"] = filters["to"], filters["from"]
        return filters

    def page(self, operation, path, key, query):
        self.ask(operation, "GET", f"{path}?{urllib.parse.urlencode(query)}", key)

    def list(self, step, operation):
        filters = self.resolve_filters(step, chain_of(step["key"]))
        operation.arguments = {"filters": filters, "order": step["order"], "limit": step["limit"], "page": 0,
                               "walk": operation.number}
        self.page(operation, "/events", step["key"], {**filters, "order": step["order"], "limit": step["limit"]})

    def list_next(self, step, operation):
        """Continues the walk of a list step: from its last page that was answered."""
        first = self.answer_of(step)
        last = self.run.last_page(first.arguments["walk"])
        if not last.answer.get("next_cursor"):
            raise Skipped
        operation.kind = first.kind
        operation.arguments = {**first.arguments, "page": last.arguments["page"] + 1,
                               "of_chain": first.arguments["chain"]}
        path = "/events" if first.kind == "list" else "/certifications"
        query = {**first.arguments["filters"], "limit": first.arguments["limit"], "cursor": last.answer["next_cursor"]}
        if first.kind == "list":
            query["order"] = first.arguments["order"]
        self.page(operation, path, step.get("key", first.arguments["key"]), query)

    def certifications(self, step, operation):
        filters = step.get("filters", {})
        operation.arguments = {"filters": filters, "limit": step["limit"], "page": 0, "walk": operation.number}
        self.page(operation, "/certifications", step["key"], {**filters, "limit": step["limit"]})

    def balance(self, step, operation):
        operation.arguments = {"account": step["key"].split("/")[0]}
        self.ask(operation, "GET", "/account/balance", step["key"])

    def channel(self, step, operation):
        self.ask(operation, "GET", "/channel", step["key"])

    def payment_notice(self, step, operation):
        """Has the payment provider send a notice again, as it may at any time."""
        provider = self.run.world.provider
        sent = list(provider.sent) if provider else ()
        if not sent:
            raise Skipped
        event, _ = sent[int(step["place"] * (len(sent) - 1))]
        operation.arguments = {"type": event["type"]}
        if provider.deliver(event) == 200:
            operation.completed, operation.status, operation.answer = self.run.clock(), 200, {}

    def topup_back(self, step, _):
        """Gives a purchase back that the payment provider was paid for, and has it send a notice again."""
        account = step["account"]
        listed = self.perform({"op": "admin", "words": "purchase list",
                               "arguments": {"account": {"$": account}, "limit": 1000}})
        paid = [one["sale_id"] for one in listed.answer["data"]
                if one["provider"] != "manual" and one["state"] == "paid"] if listed and listed.good else ()
        if not paid:
            raise Skipped
        sale_id = paid[int(step["place"] * (len(paid) - 1))]
        name = f"{account}/{sale_id}"
        self.run.names[name] = sale_id
        self.perform({"op": "admin", "words": step["words"], "arguments": {"sale": {"$": name}}})
        self.perform({"op": "payment_notice", "place": step["place"]})
        raise Skipped

    # ---- certifications ----

    def certify(self, step, operation):
        """By sequence (places from 0 to 1) or by time; the range of another step where the step has "of"."""
        chain = chain_of(step["key"])
        if "of" in step:
            asked = dict(self.answer_of(step).arguments["range"])
        elif "seq_from" in step:
            asked = {name: self.resolve_sequence(step[name], chain) for name in ("seq_from", "seq_to")}
        else:
            asked = {name: self.resolve_time(step[name], chain) for name in ("from", "to")}
        if list(asked.values()) != sorted(asked.values()):
            asked = dict(zip(asked, reversed(asked.values())))
        operation.arguments = {"range": asked, "idempotency_key": step.get("idempotency_key")}
        headers = {"Idempotency-Key": step["idempotency_key"]} if "idempotency_key" in step else {}
        self.ask(operation, "POST", "/certifications", step["key"], asked, headers=headers)

    def certification(self, step, operation):
        first = self.answer_of(step)
        name = first.answer["certification_id"]
        operation.arguments = {"certification_id": name, "of_chain": first.arguments["chain"]}
        self.ask(operation, "GET", "/certifications/" + name, step.get("key", first.arguments["key"]))
        if operation.good and operation.answer["status"] == "completed":
            self.run.completed[operation.answer["certification_id"]] = operation.answer

    def completed(self, step):
        """Returns the record of a certification that is completed. Reads it for `wait` seconds until it is."""
        record, end = self.answer_of(step).answer, time.monotonic() + step.get("wait", 0)
        if record["status"] == "completed":
            return record
        name, pause = record["certification_id"], 0.05
        while name not in self.run.completed and time.monotonic() < end and not self.run.stopping:
            time.sleep(pause)
            pause *= 2
            self.perform({"op": "certification", "of": step["of"]})
        if name not in self.run.completed:
            raise Skipped
        return self.run.completed[name]

    def verify(self, step, operation):
        """Looks up the code of a certification, or the digest of a file, without a key."""
        record = self.completed(step)
        digests = {report["languages"][0]: report["sha256"] for report in record["reports"]}
        digests["evidence"] = self.run.evidence.get(record["certification_id"])
        if step["by"] == "code":
            value = record["verification_code"]
        else:
            value = digests.get(step["by"])
        if not value:
            raise Skipped
        operation.arguments = {"certification_id": record["certification_id"], "by": step["by"], "value": value}
        query = urllib.parse.urlencode({"code" if step["by"] == "code" else "sha256": value})
        answer = self.exchange(operation, "GET", "/verify?" + query, headers={"Accept": "application/json"})
        if answer is not None:
            operation.answer = json.loads(answer)

    def download(self, step, operation):
        """A file of a certification that is completed."""
        record = self.completed(step)
        files = {"evidence": record.get("evidence_url"),
                 **{report["languages"][0]: report["url"] for report in record.get("reports", [])},
                 **{part["name"]: part["url"] for part in record.get("content_parts", [])}}
        if not files.get(step["file"]):
            raise Skipped
        digests = {report["languages"][0]: report["sha256"] for report in record["reports"]}
        digests |= {part["name"]: part["sha256"] for part in record["content_parts"]}
        operation.arguments = {"certification_id": record["certification_id"], "file": step["file"],
                               "sha256": digests.get(step["file"])}
        address = urllib.parse.urlsplit(files[step["file"]])
        content = self.take(operation, f"{address.path}?{address.query}")
        if operation.good and step["file"] == "evidence":
            self.run.evidence[record["certification_id"]] = operation.answer["sha256"]
        return content

    # ---- operators ----

    def admin(self, step, operation):
        """A command, by the administration socket of a node. {"$": NAME} stands for the identifier of that name."""
        operation.kind = step["words"]
        given = dict(step["arguments"])
        if not step["words"].endswith(READING) and not given.get("dry_run"):
            given.setdefault("reason", f"#{operation.number}")  # by which its effects are recognised
        operation.arguments = {name: value["$"] if isinstance(value, dict) else value
                               for name, value in given.items()}
        arguments = {name: self.named(value["$"]) if isinstance(value, dict) else value
                     for name, value in given.items()}
        node = self.run.world.nodes[operation.node]
        request = json.dumps({"arguments": arguments, "operation": step["words"]}).encode() + b"\n"
        operation.invoked = self.run.clock()
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(step.get("seconds", 2 * REQUEST_SECONDS))
                connection.connect(os.path.join(node.data, "admin.sock"))
                connection.sendall(request)
                line = connection.makefile("rb").readline()
        except OSError:
            return
        if not line.endswith(b"\n"):
            return
        told = json.loads(line)
        operation.completed = self.run.clock()
        operation.answer = told.get("result", told.get("error"))
        unavailable = told.get("error", {}).get("code") in ("temporarily_unavailable", "internal")
        operation.status = 200 if "result" in told else 503 if unavailable else 400
        if operation.good and "binds" in step:
            self.run.bind(step["binds"], operation.answer, step["words"])


class Client(threading.Thread):
    """Runs its steps one after the other."""

    def __init__(self, run, name, steps, home):
        super().__init__(name=name, daemon=True)
        self.run_, self.steps = run, steps
        self.interface = Interface(run, name, home)
        self.error = None

    def run(self):
        try:
            for step in self.steps:
                time.sleep(step.get("pause", 0))
                if self.run_.stopping:
                    break
                self.run_.begun[step.get("id")] = self.run_.clock()
                done = self.interface.perform(step)
                for _ in range(step.get("retries", 0)):
                    if not done or done.status not in (NO_ANSWER, 503) or self.run_.stopping:
                        break
                    done = self.interface.perform(step)
                if done and "id" in step:
                    self.run_.results[step["id"]] = done
        except Exception as error:  # noqa: BLE001 - whatever it is, the run must not pass
            self.error = error
        self.interface.close()
