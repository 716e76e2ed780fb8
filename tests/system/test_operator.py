"""A real deployment under one certification authority that publishes: `serve` with a key in a token
or a file, and two timestamp authorities. From the first event to evidence of the highest level, over
the change to the next key; and with a key that cannot be used."""

import collections
import contextlib
import ctypes
import itertools
import json
import math
import os
import shlex
import shutil
import struct
import subprocess
import sys
import threading
import time

import pytest

import stores
import timestamp_authority
from client import BINARY, Administration, NotStarted, eventually, run
from fleet import FleetNode
from nodes import Deployment
from operators import check
from pki import DAY, as_next, token_environment
from program import ROOT
from publisher import Publisher

SECOND_VERIFIER = ROOT / "tests/support/check_archive.py"
HELD = ["pkcs11", "pkcs12", "encrypted"]


class World:
    """The surroundings: the authorities that issue certificates and answer for them, and those that give time."""

    def __init__(self, directory, **more):
        self.publisher = Publisher(directory, **more)
        self.pki = self.publisher.pki
        self.pki.add_issuer("time", "An issuer of timestamps")
        self.authorities = []
        for name in ("clock-1", "clock-2"):
            self.add_authority(name)

    def add_authority(self, name, **more):
        authority = timestamp_authority.Server(timestamp_authority.Certificates(
            str(self.pki.timestamps(name, "time", **more))))
        threading.Thread(target=authority.serve_forever, daemon=True).start()
        self.authorities.append(authority)
        return authority

    def close(self):
        for server in self.authorities:
            server.shutdown()
            server.server_close()
        self.publisher.close()

    def settings(self):
        return {"tsa.url": ",".join(server.url for server in self.authorities[:2]),
                "tsa.roots": str(self.pki.root), "tsa.tokens": "2", "tsa.timeout": "30s",
                "tsa.allow_networks": "127.0.0.0/8", "revocation.allow_networks": "127.0.0.0/8",
                "revocation.timeout": "30s", "certification.level": "LTA"}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("world"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in token_environment(made.pki).items():
            patch.setenv(name, value)
        yield made
    made.close()


class Deployed(Administration, Deployment):
    """One node, on the store that is tested."""

    node_class = FleetNode

    def __init__(self, directory, world, signer):
        self.secrets = set()
        self.store = stores.make(directory / "node1")
        super().__init__(directory, BINARY, {**self.store.settings(), **world.settings(), **signer,
                                             "seal.interval": "1s"})

    def prepare(self):
        """As `init` does it."""
        self.node = self.add()
        self.node.settings["service.public_url"] = self.node.public_url
        return self.node

    def start(self):
        self.prepare().start()
        self.node.describe_self()
        return self

    def admin(self, *words):
        return self.node.admin(*words)

    def entry(self):
        return self.node

    def change(self, settings, of="signer."):
        self.node.settings = {**{name: value for name, value in self.node.settings.items()
                                 if not name.startswith(of)}, **settings}

    def ready(self):
        status, text = self.node.ask("/readyz")
        assert status == 200, text
        return " ".join(json.loads(text)["warnings"])


@contextlib.contextmanager
def deployed(directory, world, signer):
    deployment = Deployed(directory, world, signer)
    with contextlib.ExitStack() as ending:
        ending.callback(deployment.store.discard)
        ending.callback(deployment.close)
        yield deployment


def certify(channel, first, last, directory):
    """The archive and the reports of a live certification."""
    record = channel.live.certified(seq_from=first, seq_to=last)
    assert record["status"] == "completed", record
    directory.mkdir()
    files = {"evidence.zip": record["evidence_url"],
             **{f"report-{n}.pdf": report["url"] for n, report in enumerate(record["reports"])}}
    for name, url in files.items():
        (directory / name).write_bytes(channel.live.download(url).expect(200).body)
    return [directory / name for name in files]


def judged(files, world, signer):
    """By a verifier that has the authority's root alone."""
    done = run("verify", "--json", "--trust", world.pki.root, *files)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["trusted"], done.stdout + done.stderr
    assert {each["sha256"] for each in told["signers"]} == {world.pki.sha256(signer)}
    # Either may be asked for what is over a signature; a round has both.
    assert {each["sha256"] for each in told["authorities"]} == {
        world.pki.sha256(name) for name in ("clock-1", "clock-2")}
    assert min(not_revoked(files[0], world)) >= 1
    assert {each["level"] for each in told["signatures"]
            if each["path"].endswith(".pdf")} == {"B-LTA"}, told["signatures"]


def both_verify(archive, world):
    """What `constancia verify` says of it; the second verifier agrees."""
    done = run("verify", "--json", "--trust", world.pki.root, archive)
    second = subprocess.run([sys.executable, "-B", str(SECOND_VERIFIER), "--trust",
                             str(world.pki.root), str(archive)], capture_output=True, text=True,
                            check=False)
    assert (done.returncode == 0) == (second.returncode == 0), done.stdout + second.stderr
    return json.loads(done.stdout)


def not_revoked(archive, world):
    """Of how many timestamps of each authority it is shown."""
    told = both_verify(archive, world)
    assert told["valid"], told
    return {each["not_revoked"] for each in told["authorities"]}


@contextlib.contextmanager
def hanging(publisher):
    """What it was asked since then."""
    before = len(publisher.asked)
    publisher.answers.clear()
    try:
        yield lambda: publisher.asked[before:]
    finally:
        publisher.answers.set()


@pytest.mark.parametrize("held", HELD)
def test_from_the_first_event_over_the_next_key(tmp_path, world, held):
    first, second = f"{held}-1", f"{held}-2"
    signers = world.pki.signer(first, held), world.pki.signer(second, held)
    with deployed(tmp_path, world, {**signers[0], **as_next(signers[1])}) as service:
        assert service.start().node.run("config", "check").returncode == 0
        channel = service.new_channel()
        for n in range(3):
            channel.live.register({"n": n}).expect(201)
        before = certify(channel, 1, 2, tmp_path / "before")
        judged(before, world, first)
        assert ("POST", "/ocsp/issuer") in world.publisher.asked
        assert ("GET", "/root.crl") in world.publisher.asked
        service.admin("signer", "rotate", "--reason", "as every year")
        after = certify(channel, 3, 3, tmp_path / "after")
        judged(after, world, second)
        judged(before, world, first)
        assert service.node.stop() == 0
        # What was next is now the present one, at leisure.
        service.change(signers[1])
        service.node.start()
        channel.live.register({"n": 3}).expect(201)
        judged(certify(channel, 4, 4, tmp_path / "later"), world, second)
        assert [item["sha256"] for item in service.admin("signer", "list")["data"]] == [
            world.pki.sha256(name) for name in (first, second)]
        # What the node itself says is to be trusted is enough, too.
        done = run("verify", "--trust", tmp_path / "node1" / "trust.pem", *before, *after)
        assert done.returncode == 0, done.stdout + done.stderr
        assert service.node.stop() == 0
        said = service.node.log_tail(10000) + service.node.run("config", "print").stdout
        assert (tmp_path / "node1.log").stat().st_size > 0 and "correct horse" not in said


def test_evidence_lasts_whomever_one_trusts(tmp_path, world):
    """Roots come and go, and an issuer may become one. What is inside stays what it is."""
    with deployed(tmp_path, world, world.pki.signer("worldwide")) as service:
        channel = service.start().new_channel()
        channel.live.register({"n": 1}).expect(201)
        files = certify(channel, 1, 1, tmp_path / "lasting")
        judged(files, world, "worldwide")
        assert service.node.stop() == 0
    trusted = {}
    for kind, name in (("signer", "issuer"), ("timestamps", "time")):
        both = tmp_path / f"{name}-both.pem"
        twin = world.pki.twin(name)
        both.write_bytes(twin.read_bytes() + world.pki.root.read_bytes())
        trusted[kind] = (world.pki.root, twin, both)
    for signer, timestamps in itertools.product(trusted["signer"], trusted["timestamps"]):
        done = run("verify", "--json", "--trust-signer", signer, "--trust-timestamps", timestamps,
                   *files)
        told = json.loads(done.stdout)
        assert done.returncode == 0 and told["trusted"], (signer, timestamps, done.stdout)
        assert {each["level"] for each in told["signatures"]} == {"B-LT", "B-LTA"}, told


@contextlib.contextmanager
def opened(path):
    """How often a file was opened since."""
    library = ctypes.CDLL(None, use_errno=True)
    watch = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    # What is the same as the one before is reported once: openings are between closings.
    opening, closing = 0x20, 0x10
    assert library.inotify_add_watch(watch, os.fsencode(path), opening | closing) >= 0

    def times():
        seen = b""
        with contextlib.suppress(BlockingIOError):
            while events := os.read(watch, 65536):
                seen += events
        return sum(mask & opening > 0 for _, mask, _, _ in struct.iter_unpack("iIII", seen))
    try:
        yield times
    finally:
        os.close(watch)


@pytest.mark.parametrize("held, why, setting", [("pkcs11", "rejected the PIN", "signer.key"),
                                                ("pkcs12", "wrong passphrase", "signer.passphrase_file"),
                                                ("encrypted", "wrong passphrase", "signer.passphrase_file")])
def test_another_passphrase_is_refused_plainly(tmp_path, world, held, why, setting):
    signer = world.pki.signer(f"{held}-locked", held)
    wrong = tmp_path / "wrong"
    wrong.write_text("correct donkey\n")
    wrong.chmod(0o600)
    with deployed(tmp_path, world, {**signer, "signer.passphrase_file": str(wrong)}) as service:
        with pytest.raises(NotStarted, match=why):
            service.prepare()
        service.settings |= signer
        service.start()
        assert service.node.stop() == 0
        service.change({**signer, "signer.passphrase_file": str(wrong)})
        with opened(wrong) as times:
            code = 3 if held == "pkcs11" else 1  # which the unit does not restart
            with pytest.raises(NotStarted, match=f"ended with {code}:(.|\n)*{why}"):
                service.node.start()
            assert times() == 1, "each time a token is logged in to is one less that it allows"
        unit = (ROOT / "dist/constancia.service").read_text(encoding="utf-8")
        assert "\nRestart=always\n" in unit and "\nRestartPreventExitStatus=3\n" in unit
        done = service.node.run("config", "check")
        assert done.returncode == 1 and why in done.stderr and f"{setting}: " in done.stderr
        assert "donkey" not in service.node.log_tail() + done.stderr


@pytest.fixture(scope="module")
def there(world):
    return world.pki.signer("there", "pkcs11")


@pytest.mark.parametrize("change, why", [
    (("token=constancia", "token=elsewhere"), "no token matches the pkcs11: URI"),
    (("object=there", "object=nowhere"), "has no key that matches the pkcs11: URI"),
    (("libsofthsm2.so", "libabsent.so"), "the module cannot be loaded"),
])
def test_a_token_that_is_not_there_is_refused_plainly(tmp_path, world, there, change, why):
    changed = {**there, "signer.key": there["signer.key"].replace(*change)}
    with deployed(tmp_path, world, changed) as service:
        with pytest.raises(NotStarted, match=why):
            service.prepare()


def test_a_publisher_that_hangs_holds_up_nobodys_certifications(tmp_path, world):
    """Each place is waited for once, for revocation.timeout at most, and then left alone for longer
    and longer: what is issued meanwhile has the level that is available."""
    with deployed(tmp_path, world, world.pki.signer("patient")) as service, \
            hanging(world.publisher) as asked:
        service.settings |= {"certification.level": "", "revocation.timeout": "500ms"}
        begun = time.monotonic()
        node = service.start().node
        tenants = [service.new_channel() for _ in range(8)]
        for channel in tenants:
            channel.live.register({"n": 1}).expect(201)
        for channel in tenants:
            assert channel.live.certified(seq_from=1, seq_to=1)["status"] == "completed"
        def lines():
            found = told(node, "signature_level_missed")
            return found if len({line["certification_id"] for line in found}) >= len(tenants) else None
        lacking = eventually(lines, "the log tells of each")
        assert len({line["certification_id"] for line in lacking}) == len(tenants)
        assert {line["signature_level"] for line in lacking} == {"B-T"}
        archive, *_ = certify(tenants[0], 1, 1, tmp_path / "silent")
        assert not_revoked(archive, world) == {0}
        # 5 s pass after the first attempt, then twice as many each time; two may try side by side.
        most = 2 * (2 + math.log2(1 + (time.monotonic() - begun) / 5))
        places = collections.Counter(path for _, path in asked())
        assert places and max(places.values()) <= most, (places, most)
        assert node.stop() == 0


def test_a_list_that_is_too_large_for_a_signature(tmp_path, world):
    """It is available, and does not fit: what is issued has the level that is left, or waits."""
    with deployed(tmp_path, world, world.pki.signer("copious")) as service, \
            contextlib.ExitStack() as ending:
        ending.callback(setattr, world.pki, "padding", 0)
        world.pki.padding = 9 << 20
        service.settings |= {"certification.level": ""}
        node = service.start().node
        channel = service.new_channel()
        channel.live.register({"n": 1}).expect(201)
        files = certify(channel, 1, 1, tmp_path / "below")
        lacking = node.logged(lambda line: line["event"] == "signature_level_missed")
        assert all("a signature holds at most 8388608" in line["cause"] for line in lacking), lacking
        done = run("verify", "--json", "--trust", world.pki.root, *files)
        result = json.loads(done.stdout)
        assert done.returncode == 0 and result["trusted"], done.stdout + done.stderr
        assert {each["level"] for each in result["signatures"]} == {"B-T"}, result["signatures"]
        assert node.stop() == 0
        service.change({"certification.level": "LTA"}, of="certification.level")
        node.start()
        waiting = channel.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
        eventually(lambda: any("is unavailable: " in json.dumps(line) for line in node.log_lines()),
                   "it is not issued", patience=300)
        assert channel.live.certification(waiting)["status"] == "processing"
        world.pki.padding = 0
        assert node.stop() == 0
        node.start()  # with nothing kept
        assert channel.live.settled(waiting)["status"] == "completed"
        assert node.stop() == 0


def test_an_authority_that_was_revoked_after_it_had_given_time(tmp_path, tmp_path_factory):
    """Where its key may be compromised, a second authority's timestamp is needed in addition to its own;
    where it was only replaced, what it gave before stays what it was."""
    own = World(tmp_path_factory.mktemp("revoked"))
    with contextlib.ExitStack() as ending:
        ending.callback(own.close)
        service = ending.enter_context(deployed(tmp_path, own, own.pki.signer("lasting")))
        node = service.start().node
        alone = {**own.settings(), "tsa.tokens": "1"}
        both, first, replaced = (service.new_channel() for _ in range(3))
        both.live.sealed(both.live.register({"n": 1}).expect(201).json["event_id"])
        for channel, authority in ((first, own.authorities[0]), (replaced, own.authorities[1])):
            service.acts_sealed()  # else they make a round of the next authority
            assert node.stop() == 0
            service.change({**alone, "tsa.url": authority.url}, of="tsa.")
            node.start()
            channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
        time.sleep(2)  # its times are before those of the revocations, in whole seconds
        own.pki.revoke("clock-1", "time")
        own.pki.revoke("clock-2", "time", reason="superseded")
        assert node.stop() == 0
        # Who answers nothing new but what was asked for now.
        service.change({**alone, "tsa.url": own.add_authority("clock-3").url}, of="tsa.")
        node.start()
        (archive, *_) = certify(replaced, 1, 1, tmp_path / "replaced")
        told = both_verify(archive, own)
        # The round before its own was of the other one, and covers none of its events.
        assert told["valid"] and [each["what"].split(":")[-1].strip() for each in told["warnings"]
                                  if "was revoked" in each["what"]] == [
                                      "no timestamp proves the time of the round"], told
        (archive, *_) = certify(both, 1, 1, tmp_path / "both")
        told = both_verify(archive, own)
        assert told["valid"] and any("was revoked as of" in each["what"] and "clock-1" in each["what"]
                                     for each in told["warnings"]), told
        waiting = first.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
        eventually(lambda: any("were revoked" in json.dumps(line) for line in node.log_lines()),
                   "it is not issued", patience=300)
        assert first.live.certification(waiting)["status"] == "processing"
        assert node.stop() == 0


def not_revoked_of(archive, roots):
    """Of how many timestamps of each authority it is shown, by the authority's SHA-256."""
    done = run("verify", "--json", "--trust", roots, archive)
    assert done.returncode == 0, done.stdout + done.stderr
    return {each["sha256"]: each["not_revoked"] for each in json.loads(done.stdout)["authorities"]}


def delayed(node, certification_id):
    return eventually(lambda: [line for line in node.log_lines()
                               if line["event"] == "certification_delayed" and
                               line["certification_id"] == certification_id and
                               "revocation data of" in line["cause"]], "it waits")


def left_open(node, certification_id):
    return [line["cause"] for line in node.log_lines()
            if line["event"] == "timestamp_revocation_unknown" and
            line["certification_id"] == certification_id]


def test_an_authority_that_publishes_no_more_is_not_waited_for_in_vain(tmp_path, tmp_path_factory):
    """Where another timestamp of the round is good, not at all; else for an hour."""
    own, other = (World(tmp_path_factory.mktemp(name)) for name in ("own", "other"))
    clocks = own.authorities[0], other.authorities[0]
    roots = tmp_path / "roots.pem"
    roots.write_bytes(own.pki.root.read_bytes() + other.pki.root.read_bytes())
    with contextlib.ExitStack() as ending:
        ending.callback(own.close)
        ending.callback(other.close)
        service = ending.enter_context(deployed(tmp_path, own, {
            **own.pki.signer("steady"), "tsa.roots": str(roots),
            "tsa.url": ",".join(clock.url for clock in clocks)}))
        node = service.start().node
        both, alone = (service.new_channel() for _ in range(2))
        both.live.sealed(both.live.register({"n": 1}).expect(201).json["event_id"])
        settings = {**own.settings(), "tsa.roots": str(roots), "tsa.tokens": "1"}
        assert node.stop() == 0
        service.change({**settings, "tsa.url": clocks[1].url}, of="tsa.")
        node.start()
        alone.live.sealed(alone.live.register({"n": 1}).expect(201).json["event_id"])
        assert node.stop() == 0
        other.publisher.lost = True
        service.change({**settings, "tsa.url": clocks[0].url}, of="tsa.")
        node.start()
        waiting = alone.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
        delayed(node, waiting)
        archive, *_ = certify(both, 1, 1, tmp_path / "both")
        shown = not_revoked_of(archive, roots)
        assert shown[own.pki.sha256("clock-1")] >= 1 and shown[other.pki.sha256("clock-1")] == 0
        assert alone.live.certification(waiting)["status"] == "processing"
        assert node.stop() == 0
        service.store.change("UPDATE certifications SET requested_at = requested_at - 3600000000")
        node.start()
        assert alone.live.settled(waiting)["status"] == "completed"
        eventually(lambda: any("HTTP status 404" in cause for cause in left_open(node, waiting)),
                   "the log tells what was left open")
        assert node.stop() == 0


def test_rounds_of_before_certificates_were_kept_are_certified(tmp_path, world):
    """A certificate of an unknown issuer cannot be checked: what is above is left open."""
    with deployed(tmp_path, world, world.pki.signer("steadfast")) as service:
        node = service.start().node
        channel = service.new_channel()
        channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
        assert node.stop() == 0
        service.store.change("DELETE FROM token_validation")
        node.start()
        archive, *_ = certify(channel, 1, 1, tmp_path / "before")
        assert not_revoked(archive, world) == {0}
        assert node.stop() == 0


def test_a_token_that_goes_away_stops_certifications_alone(tmp_path, world):
    signer = world.pki.signer("travelling", "pkcs11")
    tokens = world.pki.path("tokens")
    away = tokens.with_name("away")
    with deployed(tmp_path, world, signer) as service, contextlib.ExitStack() as ending:
        node = service.start().node
        channel = service.new_channel()
        event = channel.live.register({"n": 1}).expect(201).json
        certify(channel, 1, 1, tmp_path / "before")
        assert "certifications wait" not in service.ready()
        tokens.rename(away)
        ending.callback(lambda: away.exists() and away.rename(tokens))
        tokens.mkdir()
        ending.callback(lambda: away.exists() and shutil.rmtree(tokens))
        waiting = channel.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
        eventually(lambda: "certifications wait: the signing key: no token matches the pkcs11: URI" in
                   service.ready(), "it says so")
        assert node.metric("signer_can_sign") == 0 and node.metric("signer_ready") == 1
        (line,) = node.logged(lambda line: line["event"] == "signing_key_failed")
        assert line["level"] == "error" and "no token matches the pkcs11: URI" in line["cause"]
        # Registration does not notice, and its events are sealed.
        event = channel.live.register({"n": 2}).expect(201).json
        channel.live.sealed(event["event_id"])
        assert channel.live.certification(waiting)["status"] == "processing"
        tokens.rmdir()
        away.rename(tokens)
        eventually(lambda: "certifications wait" not in service.ready(), "it signs again")
        assert node.metric("signer_can_sign") == 1
        assert channel.live.settled(waiting)["status"] == "completed"
        node.logged(lambda line: line["event"] == "signing_key_recovered")
        assert node.stop() == 0


def test_without_its_token_it_ends_at_once_and_starts_when_it_is_back(tmp_path, world):
    signer = world.pki.signer("forgotten", "pkcs11")
    tokens = world.pki.path("tokens")
    away = tokens.with_name("away")
    with deployed(tmp_path, world, signer) as service, contextlib.ExitStack() as ending:
        node = service.start().node
        tokens.rename(away)
        ending.callback(lambda: away.exists() and away.rename(tokens))
        assert node.stop() == 0, "nothing waits for it"
        with pytest.raises(NotStarted, match="ended with 1:(.|\n)*does not list its tokens|no token matches"):
            node.start()
        assert check(node).returncode == 1
        away.rename(tokens)
        node.start()
        assert node.stop() == 0


# ---- authorities ----

def told(node, event):
    return [line for line in node.log_lines() if line["event"] == event]


def test_the_end_of_an_authority_s_certificate_is_told_before(tmp_path, world):
    ending = world.add_authority("ending", ends=20 * DAY)
    signer = world.pki.signer("lasting")
    with deployed(tmp_path, world, {**signer, "tsa.url": ending.url, "tsa.tokens": "1"}) as service:
        node = service.start().node
        channel = service.new_channel()
        channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
        eventually(lambda: "the certificate of a timestamp authority (CN=ending" in
                   service.ready(), "it is reported")
        (line,) = eventually(lambda: told(node, "certificate_expiring"), "so does the log")
        assert "CN=ending" in line["subject"] and line["level"] == "warning"
        until = node.metric("authority_expires_timestamp_seconds")
        assert abs(until - time.time() - 20 * DAY) < 3600
        # The level of its timestamps is reported once it has given one.
        levels = eventually(lambda: len(told(node, "validation_data")) == 2 and
                            told(node, "validation_data"), "the levels are logged")
        assert {line["of"]: line["signature_level"] for line in levels} == {"signer": "LTA",
                                                                            ending.url: "LTA"}
        assert node.stop() == 0
        service.change({"signer.warn_before": "10d"}, of="signer.warn")
        node.start()
        channel.live.sealed(channel.live.register({"n": 2}).expect(201).json["event_id"])
        eventually(lambda: node.metric("authority_expires_timestamp_seconds"), "it is seen")
        assert "timestamp authority" not in service.ready(), "ten days before is soon enough"
        assert node.stop() == 0


def command_of(page, word):
    """The one command of a page of docs/ that begins so."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (line,) = [line.strip() for line in text.splitlines()
               if line.strip().startswith(f"constancia {word}")]
    return shlex.split(line)[1:]


def test_a_change_of_authority(tmp_path, world, tmp_path_factory):
    other = World(tmp_path_factory.mktemp("other"), name="Another operator's root")
    seals = Publisher(tmp_path_factory.mktemp("seals"), name="A root of seals alone")
    signer = seals.pki.signer("steady")
    with contextlib.ExitStack() as ending:
        ending.callback(other.close)
        ending.callback(seals.close)
        service = ending.enter_context(deployed(tmp_path, world, signer))
        node = service.start().node
        channel = service.new_channel()
        channel.live.register({"n": 1}).expect(201)
        before = certify(channel, 1, 1, tmp_path / "before")
        assert node.stop() == 0
        # The new one first, then the former one, which is used while that is silent.
        new, former = other.authorities[0], world.authorities[0]
        new.mode = "error"
        service.change({"tsa.url": f"{new.url},{former.url}",
                        "tsa.roots": f"{other.pki.root},{world.pki.root}",
                        "tsa.allow_networks": "127.0.0.0/8", "tsa.timeout": "30s"}, of="tsa.")
        assert node.run("config", "check").returncode == 0
        node.start()
        event = channel.live.register({"n": 2}).expect(201).json
        channel.live.sealed(event["event_id"])
        new.mode = "good"
        assert node.stop() == 0
        # It alone.
        service.change({"tsa.url": new.url, "tsa.roots": str(other.pki.root),
                        "tsa.allow_networks": "127.0.0.0/8", "tsa.timeout": "30s"}, of="tsa.")
        node.start()
        channel.live.register({"n": 3}).expect(201)
        after = certify(channel, 1, 3, tmp_path / "after")
        words = command_of("operate/runbooks/change-of-authority.md", "verify")
        for files in (before, after):
            shutil.copy(tmp_path / "node1" / "trust.pem", files[0].parent)
            done = run(*words, cwd=files[0].parent)
            assert done.returncode == 0, done.stdout + done.stderr
            done = run("verify", "--trust", tmp_path / "node1" / "trust.pem", *files)
            assert done.returncode == 0, done.stdout + done.stderr
        # Each root is needed.
        short = tmp_path / "short.pem"
        short.write_bytes(seals.pki.root.read_bytes() + world.pki.root.read_bytes())
        assert run("verify", "--trust", short, *before).returncode == 0
        assert run("verify", "--trust", short, *after).returncode != 0
        assert node.stop() == 0
