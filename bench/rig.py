"""What the benchmarks share: the service as they start it, its keys, load on it, certifications and
their verification, and the ceiling, the same HTTP library doing nothing."""

import contextlib
import http.client
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path += [os.path.join(ROOT, "tests", part) for part in ("support", "system")]
import postgres  # noqa: E402
from program import DevService, NotStarted  # noqa: E402

CHANNELS_PER_ACCOUNT = 10
CREDITS = 1_000_000_000
PAYLOAD_BYTES = 200
START_PATIENCE = 600  # a start checks the whole store, which takes long when it is large


def tool(options, name):
    return os.path.join(options.build, "bench", name)


def run_json(command, good=(0,)):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in good:
        sys.exit(f"bench: {' '.join(command)}: exit {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def load_command(options, port, connections, keys=None, seconds=None, requests=None, rate=None):
    command = [tool(options, "bench-load"), "--url", f"http://127.0.0.1:{port}/v1/events",
               "--connections", str(connections), "--payload-bytes", str(PAYLOAD_BYTES), "--json"]
    command += ["--keys-file", keys] if keys else []
    command += ["--rate", str(rate)] if rate else []
    return command + (["--requests", str(requests)] if requests else ["--seconds", str(seconds)])


def load(*what, **more):
    """What load_command takes."""
    result = run_json(load_command(*what, **more))
    if set(result["status"]) != {"201"}:
        sys.exit(f"bench: not every request was answered 201: {result}")
    return result


def processor_seconds(parents):
    """Seconds of processor time that these processes and their children took; of theirs, ended ones' too."""
    found = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{int(name)}/stat", encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
            times = [int(field) for field in fields[11:15]]
            if int(name) in parents:
                found[int(name)] = sum(times)
            elif int(fields[1]) in parents:
                found[int(name)] = times[0] + times[1]
    return sum(found.values()) / os.sysconf("SC_CLK_TCK")


class Service(DevService):
    def __init__(self, options, data, settings=None):
        super().__init__(data, data + ".log",
                         {"rate.live": "1000000", "service.admin_listen": "",
                          "http.connections_per_address": "2048", **(settings or {})},
                         binary=os.path.join(options.build, "constancia"))

    def start(self, seconds=START_PATIENCE):
        """Seconds until it serves."""
        start = time.monotonic()
        try:
            super().start(seconds)
        except NotStarted as error:
            sys.exit(f"bench: {error}")
        return time.monotonic() - start

    def make_keys(self, path, channels, **of_account):
        """A file with one live key for each of `count` new channels; `of_account`: arguments of `account create`."""
        with open(path, "w", encoding="utf-8") as file:
            for i in range(channels):
                if i % CHANNELS_PER_ACCOUNT == 0:
                    account = self.ask_socket("account create", name=f"bench {channels} {i}",
                                         credits=CREDITS, **of_account)["account_id"]
                channel = self.ask_socket("channel create", account=account, name=f"bench {i}",
                                     declarant="Bench", modality="content")["channel_id"]
                key = self.ask_socket("key create", channel=channel, mode="live")["key"]
                file.write(key + "\n")

    def api(self, method, path, key, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        headers = {"Authorization": "Bearer " + key}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, "/v1" + path, body and json.dumps(body), headers)
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        if response.status not in (200, 201, 202):
            sys.exit(f"bench: {method} {path}: {response.status} {answer}")
        return answer

    def processes(self):
        """The service and the processes that it started."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def memory(self):
        """KiB, of all processes together: resident, peak since forget_peak, and without files."""
        total = {"resident_kib": 0, "peak_kib": 0, "anonymous_kib": 0}
        names = {"VmRSS": "resident_kib", "VmHWM": "peak_kib", "Anonymous": "anonymous_kib"}
        for process in self.processes():
            for kind in ("status", "smaps_rollup"):
                with open(f"/proc/{process}/{kind}", encoding="utf-8") as file:
                    for line in file:
                        name = line.split(":")[0]
                        if name in names:
                            total[names[name]] += int(line.split()[1])
        return total

    def forget_peak(self):
        for process in self.processes():
            with open(f"/proc/{process}/clear_refs", "w", encoding="ascii") as file:
                file.write("5")


class Beside:
    """One of the programs here that answer without doing anything, until it is stopped."""

    def __init__(self, options, name, *words):
        self.process = subprocess.Popen([tool(options, name), *words], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)


def ceiling(options):
    return Beside(options, "bench-ceiling", "--threads", str(options.ceiling_threads))


def loaded(options, program, connections, keys=None):
    """What load says, with the processor time of the program and its processes for a request. `program` has a
    process and a port."""
    before = processor_seconds({program.process.pid})
    run = load(options, program.port, connections, keys, options.seconds)
    spent = processor_seconds({program.process.pid}) - before
    return {**run, "cpu_us": spent * 1e6 / run["requests"]}


class NaiveChain:
    """What a user would write instead of the service (naive.sql), in a database of its own; pgbench
    does by statements what its clients would."""

    def __init__(self, cluster, directory):
        self.port, self.database = cluster.primary.port, cluster.create_database()
        with open(os.path.join(ROOT, "bench", "naive.sql"), encoding="utf-8") as file:
            cluster.primary.query(f"SET ROLE {postgres.ROLE};\n{file.read()}", self.database)
        self.script = os.path.join(directory, "naive.pgbench")
        with open(self.script, "w", encoding="ascii") as file:
            file.write("\\set chain random(1, 16)\n"
                       "SELECT naive_register(:chain, gen_random_uuid()::text, "
                       f"'{{\"pad\":\"{'x' * (PAYLOAD_BYTES - 10)}\"}}');\n")

    def load(self, clients, seconds):
        """pgbench's time begins before it connects, which takes many clients longer than they are measured: a first
        run shows how long, and the second one is longer by that. What is reported is without it."""
        connecting, = self.pgbench(clients, ["-t", "1"], r"initial connection time = ([\d.]+) ms")
        duration = max(1, round(seconds)) + math.ceil(connecting / 1000)
        rate, events, latency_ms = self.pgbench(
            clients, ["-T", str(duration)], r"tps = ([\d.]+) \(without", r"actually processed: (\d+)",
            r"latency average = ([\d.]+) ms")
        return {"rate": rate, "events": events, "average_us": latency_ms * 1000}

    def pgbench(self, clients, options, *figures):
        """The figures of its report, each of them an expression with one group."""
        done = subprocess.run(
            [os.path.join(postgres.programs(), "pgbench"), "-n", "-M", "prepared", "-c", str(clients),
             "-j", str(min(clients, os.cpu_count())), *options, "-f", self.script, "-h", "127.0.0.1",
             "-p", str(self.port), "-U", postgres.ROLE, self.database],
            capture_output=True, text=True, check=False)
        told = [re.search(figure, done.stdout) for figure in figures]
        if done.returncode or None in told:
            sys.exit(f"bench: pgbench: {done.stdout}{done.stderr}")
        return [float(match[1]) for match in told]


def wait_sealed(service, key, sequence):
    start = time.monotonic()
    while time.monotonic() < start + 900:
        event = service.api("GET", f"/events?seq_from={sequence}&seq_to={sequence}", key)
        if event["data"][0]["timestamp"]["type"] == "batch":
            return
        time.sleep(0.5)
    sys.exit("bench: the events were not sealed within 15 minutes")


def download(certification, directory):
    files = [(f"report-{report['languages'][0]}.pdf", report["url"])
             for report in certification["reports"]]
    files += [("evidence.zip", certification["evidence_url"])]
    files += [(part["name"], part["url"]) for part in certification["content_parts"]]
    paths = []
    for name, url in files:
        path = os.path.join(directory, name)
        with urllib.request.urlopen(url) as response, open(path, "wb") as file:
            shutil.copyfileobj(response, file, 1 << 20)
        paths.append(path)
    return paths


def verify(options, paths, trust):
    start = time.monotonic()
    process = subprocess.Popen([os.path.join(options.build, "constancia"), "verify", "--json",
                                "--trust", trust, *paths], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {"seconds": time.monotonic() - start, "exit": process.returncode,
            "peak_kib": usage.ru_maxrss}


def certified(service, key, count):
    """A completed certification of the first `count` events."""
    now = service.api("POST", "/certifications", key, {"seq_from": 1, "seq_to": count})
    while now["status"] == "processing":
        time.sleep(0.05)
        now = service.api("GET", "/certifications/" + now["certification_id"], key)
    if now["status"] != "completed":
        sys.exit(f"bench: certification of {count} events failed: {now}")
    return now


def make_directory(options):
    """Servers run as a user of their own, who must get through."""
    directory = tempfile.mkdtemp(prefix="bench-data-", dir=options.data or options.build)
    os.chmod(directory, 0o711)
    return directory
