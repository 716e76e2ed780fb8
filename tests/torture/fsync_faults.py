#!/usr/bin/env python3
"""Makes every fsync and fdatasync fail in turn while events are registered.

    fsync_faults.py [--last N] [--events N]

Run N injects EIO into the Nth such call of every thread, and a second time into every call from
the Nth on, until a run passes without having met a fault. The service may end or answer 503. Once
a sync of the store has failed, the same process acknowledges nothing any more: a later sync that
succeeds says nothing about what the failed one lost. What was acknowledged must be there when the
service is started again, and its store must be sound.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time

from service import (Client, NotStarted, Refused, Report, Service, declare_file, declare_hash,
                     declare_json, lasting)

CALLS = "fsync,fdatasync,syncfs"


class Run:
    def __init__(self, options, template, directory, keys, when, report):
        self.options, self.keys, self.when, self.report = options, keys, when, report
        self.data = os.path.join(directory, "data")
        self.trace = os.path.join(directory, "trace")
        shutil.copytree(template, self.data, symlinks=True,
                        ignore=lambda _, names: [n for n in names if n.endswith(".sock")])
        self.receipts = []  # (key, declaration, body)
        self.asked = []     # when each receipt was asked for, in seconds of the wall clock
        self.ready = 0      # when the service was
        self.refused = 0
        self.wrong = []

    def register(self, port, number):
        client = Client(port, timeout=20)
        try:
            for i in range(self.options.events):
                ref = f"{number}-{i}"
                key = self.keys["hash_only" if i % 3 == 2 else "content"]
                declaration = (declare_json(ref, ref), declare_file(ref, ref.encode() * 1000),
                               declare_hash(ref, ref))[i % 3]
                asked = time.time()
                status, _, body = client.register(key, declaration)
                if status == 201:
                    self.asked.append(asked)
                    self.receipts.append((key, declaration, body))
                elif status == 503:
                    self.refused += 1
                else:
                    self.wrong.append((status, body))
        except (OSError, http.client.HTTPException):
            pass  # the service ended
        client.close()

    def faulty(self):
        """Registers under faults; says how the service took it."""
        wrap = ["strace", "-f", "-qq", "-y", "-ttt", "-o", self.trace, "-e", "trace=" + CALLS,
                "-e", "signal=none", "-e", f"inject={CALLS}:error=EIO:when={self.when}"]
        service = Service(self.data, {"seal.interval": "500ms"}, wrap=wrap)
        try:
            service.start(20)
        except NotStarted as error:
            service.kill()
            return str(error).split("\n")[0]
        self.ready = time.time()
        threads = [threading.Thread(target=self.register, args=(service.port, i))
                   for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(0.7)  # a sealing round
        outcome = "continued" if service.alive() else f"ended with {service.process.returncode}"
        service.kill()
        return outcome

    def faults(self):
        """(time, path) of every fault that was met."""
        met, paths = [], {}
        with open(self.trace, encoding="utf-8", errors="replace") as file:
            for line in file:
                thread, moment, call = line.split(maxsplit=2)
                path = re.search(r"\(\d+<([^>]*)>", call)
                if path:
                    paths[thread] = path[1]
                if "INJECTED" in call:
                    met.append((float(moment), paths.get(thread, "")))
        return met

    def check(self, faults):
        where = f"when={self.when}: "
        # One that failed while starting was made good by writing again what it covered.
        store = [moment for moment, path in faults
                 if moment > self.ready and "constancia.db" in os.path.basename(path)]
        late = sum(bool(store) and asked > store[0] for asked in self.asked)
        self.report.check(late == 0, f"{where}{late} acknowledged after a failed sync of the store")
        self.report.check(not self.wrong, where + f"answered {self.wrong[:1]}")
        service = Service(self.data, {"seal.interval": "500ms"})
        try:
            service.start()
        except NotStarted as error:
            self.report.check(False, where + f"restart: {error}")
            service.kill()
            return
        client = Client(service.port)
        lost = []
        for key, declaration, body in self.receipts:
            event_id = json.loads(body)["event_id"]
            status, event = client.get("/events/" + event_id, key)
            if status != 200 or lasting(event) != lasting(body):
                lost.append((declaration.client_ref, status))
                continue
            if declaration.content is not None:
                status, _, content = client.request("GET", f"/events/{event_id}/content", key)
                if status != 200 or content != declaration.content:
                    lost.append((declaration.client_ref, "content", status))
        self.report.check(not lost, where + f"{len(lost)} of {len(self.receipts)} acknowledged "
                                            f"and lost: {lost[:3]}")
        for key in self.keys.values():
            events = client.events(key)
            self.report.check([e["sequence"] for e in events] == list(range(1, len(events) + 1)),
                              where + "the sequence has a gap")
        status, _, body = client.register(self.keys["content"], declare_json("after", "after"))
        self.report.check(status == 201, where + f"registering after restart: {status} {body}")
        client.close()
        try:
            service.admin("store", "check")
            self.report.check(True, "")
        except (Refused, ValueError) as error:
            self.report.check(False, where + f"store check: {error}")
        service.kill()


def prepare(directory):
    """A data directory to start each run from, and its keys."""
    template = os.path.join(directory, "template")
    service = Service(template)
    ready = service.start().ready
    service.stop()
    return template, {name: channel["live_key"] for name, channel in ready["channels"].items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--last", type=int, default=60, help="highest N tried")
    parser.add_argument("--events", type=int, default=15, help="for each of two clients")
    options = parser.parse_args()
    if not shutil.which("strace"):
        print("SKIPPED: strace is not installed")
        return 77
    report = Report()
    directory = tempfile.mkdtemp(prefix="constancia-fsync-")
    template, keys = prepare(directory)
    for number in range(1, options.last + 1):
        met = 0
        for when in (f"{number}", f"{number}+"):
            place = os.path.join(directory, when)
            os.mkdir(place)
            run = Run(options, template, place, keys, when, report)
            outcome = run.faulty()
            faults = run.faults()
            met += len(faults)
            run.check(faults)
            print(f"when={when}: {len(faults)} faults met, {len(run.receipts)} acknowledged, "
                  f"{run.refused} answered 503, service {outcome}", flush=True)
            if not report.failed:
                shutil.rmtree(place)
        if met == 0:
            break
    report.check(number > 1, "no fault was ever met")
    if report.failed:
        print("kept:", directory)
    else:
        shutil.rmtree(directory)
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
