#!/usr/bin/env python3
"""Runs the service on a small disk until it is full.

    full_disk.py [--megabytes N]

A full disk is answered with 503 temporarily_unavailable, reads continue, nothing acknowledged is
lost, /readyz says that there is no space, and once there is room again the service takes events
again automatically. Mounts a tmpfs in a mount namespace of its own, for which it must be root;
otherwise it says SKIPPED and exits 77.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from service import (Client, NotStarted, Refused, Report, Service, declare_file, declare_hash,
                     declare_json, lasting)

INSIDE = "CONSTANCIA_FULL_DISK"


class FullDisk:
    def __init__(self, directory):
        self.disk = directory
        self.balloon = os.path.join(directory, "balloon")
        self.service = Service(os.path.join(directory, "data"), {
            "seal.interval": "1s", "service.admin_listen": "127.0.0.1:0"})
        # What the tests themselves write must find room.
        log = os.path.join(tempfile.gettempdir(), f"full-disk-{os.getpid()}.log")
        self.service.log = self.service.printed = log
        self.service.ready_file = self.service.log + ".ready"
        self.report = Report()
        self.receipts = []
        self.number = 0

    def room(self):
        status = os.statvfs(self.disk)
        return status.f_bavail * status.f_frsize

    def fill(self):
        """Leaves no byte."""
        with open(self.balloon, "ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    def empty(self):
        os.unlink(self.balloon)

    def declaration(self, kind):
        self.number += 1
        ref = f"{kind}-{self.number}"
        if kind == "file":
            return self.keys["content"], declare_file(ref, random.randbytes(500_000))
        if kind == "hash_only":
            return self.keys["hash_only"], declare_hash(ref, ref)
        size = 30_000 if kind == "large" else 50
        return self.keys["content"], declare_json(ref, ref + "x" * size)

    def register(self, client, kind):
        key, declaration = self.declaration(kind)
        status, headers, body = client.register(key, declaration)
        if status == 201:
            self.receipts.append((key, declaration, body))
        return status, headers, body

    def until_refused(self, client, kind):
        for _ in range(100_000):
            status, headers, body = self.register(client, kind)
            if status != 201:
                break
        answer = json.loads(body)
        self.report.check(status == 503 and answer["code"] == "temporarily_unavailable",
                          f"full disk: {kind} answered {status} {body}")
        self.report.check(int(headers.get("Retry-After", 0)) > 0, f"full disk: {kind}: Retry-After")
        self.report.check(answer.get("incident_id") is not None, f"full disk: {kind}: incident_id")
        text = body.decode().lower()
        self.report.check("sqlite" not in text and "/" not in answer["message"],
                          f"full disk: {kind}: the inside shows: {text}")

    def check_receipts(self, client, when):
        lost = []
        for key, declaration, body in self.receipts:
            event_id = json.loads(body)["event_id"]
            status, event = client.get("/events/" + event_id, key)
            if status != 200 or lasting(event) != lasting(body):
                lost.append((declaration.client_ref, status))
        for key, declaration, body in random.sample(self.receipts, min(30, len(self.receipts))):
            if declaration.content is not None:
                event_id = json.loads(body)["event_id"]
                status, _, content = client.request("GET", f"/events/{event_id}/content", key)
                if content != declaration.content:
                    lost.append((declaration.client_ref, "content", status))
        self.report.check(not lost, f"{when}: {len(lost)} of {len(self.receipts)} receipts: "
                                    f"{lost[:3]}")

    def recovers(self, client, when):
        start = time.monotonic()
        left = ["json", "large", "file", "hash_only"]
        while left and time.monotonic() < start + 20:
            status, _, _ = self.register(client, left[0])
            if status == 201:
                left.pop(0)
            else:
                time.sleep(0.1)
        if self.report.check(not left, f"{when}: {left} refused with {self.room()} bytes free"):
            print(f"{when}: takes everything again after {time.monotonic() - start:.1f} s")

    def ready(self):
        """Whether /readyz says so, and why not."""
        try:
            with urllib.request.urlopen(self.service.ready["operator_url"] + "/readyz") as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def tells(self, when):
        told = self.ready()
        self.report.check(not told["ready"] and "the store's disk is full" in str(told["reasons"]),
                          f"{when}: /readyz says {told}")

    def is_ready_by_itself(self, when):
        """A node that is called not ready is given no registration that would show it."""
        end = time.monotonic() + 30
        while not self.ready()["ready"] and time.monotonic() < end:
            time.sleep(0.5)
        self.report.check(self.ready()["ready"], f"{when}: /readyz says {self.ready()}")

    def check_store(self, when):
        try:
            self.service.admin("store", "check")
            self.report.check(True, "")
        except (Refused, ValueError) as error:
            self.report.check(False, f"{when}: store check: {error}")

    def run(self):
        channels = self.service.start().ready["channels"]
        self.keys = {name: channel["live_key"] for name, channel in channels.items()}
        client = Client(self.service.port)
        for kind in ("json", "large", "file", "hash_only") * 5:
            self.register(client, kind)
        self.report.check(len(self.receipts) == 20, "registering with room")
        for turn in (1, 2):
            when = f"full disk, time {turn}"
            process = self.service.process.pid
            self.fill()
            for kind in ("file", "large", "json", "hash_only"):
                self.until_refused(client, kind)
            self.check_receipts(client, when)
            self.tells(when)
            time.sleep(2.5)  # sealing rounds meet the full disk as well
            self.report.check(self.service.alive(), f"{when}: the service ended\n"
                                                    f"{self.service.log_tail()}")
            self.empty()
            if turn == 1:
                self.is_ready_by_itself(when)
            self.recovers(client, when)
            self.is_ready_by_itself(when)
            self.report.check(self.service.alive() and self.service.process.pid == process,
                              f"{when}: not the same process")
            self.check_receipts(client, when + ", room again")
            self.check_store(when + ", room again")
        client.close()
        self.killed_while_full()

    def killed_while_full(self):
        self.fill()
        self.service.kill()
        try:
            self.service.start()
            print("started on a full disk")
        except NotStarted as error:
            print("on a full disk:", error)
            self.report.check(self.service.log_tail(3).strip() != "", "no word about the full disk")
        self.service.kill()
        self.empty()
        self.service.start()
        client = Client(self.service.port)
        self.recovers(client, "killed while full")
        self.check_receipts(client, "killed while full")
        self.report.check(self.service.stop() == 0, "SIGTERM: exit status is not 0")
        self.check_store("killed while full")


def inside(megabytes):
    directory = tempfile.mkdtemp(prefix="constancia-full-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory],
                   check=True)
    disk = FullDisk(directory)
    try:
        disk.run()
    except (NotStarted, OSError, http.client.HTTPException, AssertionError) as error:
        disk.report.check(False, f"{type(error).__name__}: {error}\n{disk.service.log_tail()}")
    finally:
        disk.service.kill()
        subprocess.run(["umount", "-l", directory], check=True)
        shutil.rmtree(directory)
    for file in (disk.service.log, disk.service.ready_file):
        if os.path.exists(file):
            os.unlink(file)
    return disk.report.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    if INSIDE in os.environ:
        return inside(options.megabytes)
    again = ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv]
    allowed = os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    if not allowed:
        print("SKIPPED: a small disk can only be mounted by root")
        return 77
    return subprocess.run(again, env={**os.environ, INSIDE: "1"}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
