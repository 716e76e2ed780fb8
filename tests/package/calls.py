"""Which system calls a service makes at work: each must be one that the unit lets it make.

usage: calls.py UNIT DIRECTORY      (CONSTANCIA names the program; strace and systemd-analyze)
"""
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "system"), str(ROOT / "tests" / "support")]

import stores  # noqa: E402
from chroot import Verdicts  # noqa: E402
from client import Service, form  # noqa: E402

verdict = Verdicts()


def groups():
    """systemd's groups of calls, as its own program lists them."""
    told = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], check=True, capture_output=True,
                          text=True).stdout
    found, name = {}, None
    for line in told.splitlines():
        if line.startswith("@"):
            name = line.strip()
            found[name] = []
        elif name and re.fullmatch(r"\s+@?\w[\w-]*", line):
            found[name].append(line.strip())
    return found


def expand(word, known):
    if not word.startswith("@"):
        return {word}
    return set().union(*(expand(each, known) for each in known[word]))


def allowed(unit, known):
    """As systemd.exec(5) reads the lines: the first says that it is a list of what is allowed."""
    calls = set()
    lines = re.findall(r"^SystemCallFilter=(~?)(.*)$", unit, re.M)
    assert lines and not lines[0][0]
    for without, words in lines:
        named = set().union(*(expand(word, known) for word in words.split()))
        calls = calls - named if without else calls | named
    return calls


class Traced(Service):
    """With every call of its processes in `trace`. It has no rights, as in the unit: of root libraries ask more."""

    def __init__(self, directory, **settings):
        super().__init__(directory, describe=False, **settings)
        self.trace = directory / "trace"
        self.wrap = ["strace", "-D", "-f", "-qq", "-e", "signal=none", "-u", "nobody", "-o", str(self.trace)]
        build = pathlib.Path(self.binary).parent
        for name in ("constancia", "constancia-renderer", "constancia-trusted-list"):
            shutil.copy(build / name, directory)  # readable for this user alone
        self.binary = str(directory / "constancia")
        shutil.chown(directory, "nobody", "nogroup")

    def made(self):
        """From the start of the program itself on: {call: a line with it}."""
        calls, begun = {}, False
        for line in self.trace.read_text(errors="replace").splitlines():
            begun = begun or re.search(rf'execve\("{re.escape(self.binary)}"', line)
            match = re.match(r"\d+ +([a-z_0-9]+)\(", line) if begun else None
            if match:
                calls.setdefault(match[1], line)
        return calls


def work(service):
    """Everything that it does for those who call it, and for who runs it; True when all went well."""
    content, digests = service.new_channel(), service.new_channel("hash_only")
    event = content.live.register({"n": 1}).expect(201).json
    content.live.register_file(b"a file").expect(201)
    digests.live.register_hash("0" * 64).expect(201)
    content.live.sealed(event["event_id"])
    record = content.live.certified(seq_from=1, seq_to=2)
    archive = content.live.download(record["evidence_url"]).expect(200).body
    content_type, body = form(("file", archive, "evidence.zip"))
    told = content.live.post("/verify", body, headers={"Content-Type": content_type, "Accept": "application/json"})
    service.process.send_signal(1)  # reload
    backup = service.run("store", "backup", str(service.data.parent / "backup"))
    for channel in (content, digests):
        channel.close()
    return record["status"] == "completed" and told.status == 200 and backup.returncode == 0


def main():
    unit, directory = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"), pathlib.Path(sys.argv[2])
    may = allowed(unit, groups())
    service = Traced(directory, seal__interval="1s")
    try:
        service.start()
        verdict(work(service), "a service under strace registers, certifies, verifies and backs up", service.log_tail())
        verdict(service.stop() == 0, "it ends with 0", service.log_tail())
    finally:
        service.discard()
        stores.close()
    made = service.made()
    trace = service.trace.read_text(errors="replace")
    drawn = all(re.search(rf'execve.*\["{name}"', trace) for name in ("renderer", "constancia-verifier"))
    verdict(len(made) > 60 and drawn,
            f"the trace has {len(made)} different calls, and the processes that draw and check", sorted(made))
    outside = {call: line for call, line in made.items() if call not in may}
    verdict(not outside, "each of them is in the unit's SystemCallFilter=", "\n".join(outside.values()))
    sys.exit(1 if verdict.failed else 0)


main()
