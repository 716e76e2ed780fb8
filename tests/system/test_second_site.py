"""A second site, as docs/operate/second-site.md has it: every command of the page is run, while clients register."""

import json
import pathlib
import re
import subprocess

import pytest

from client import BINARY, eventually
from postgres import Failed
from program import clean_environment
from sites import Registering, Sites, blocks, by_host, register, server_settings

pytestmark = pytest.mark.postgresql
REASON = "site A lost"


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    with Sites(tmp_path_factory.mktemp("sites")) as running:
        yield running


def host_blocks(title, count):
    found = blocks(title)
    assert len(found) == count, "whatever is shown is run"
    return found


def commands(block, host):
    """Its commands on one host, one by one."""
    return [line for name, text in by_host(block) if name == host for line in text.splitlines()]


def everything_is_there(client, receipts):
    """Each acknowledged event, unchanged and in its place."""
    listed = {event["event_id"]: event for event in client.walk("/v1/events", 500)}
    events = sorted(listed.values(), key=lambda event: event["sequence"])
    assert [event["sequence"] for event in events] == list(range(1, len(events) + 1))
    for receipt in receipts:
        assert listed[receipt["event_id"]]["chain_hash"] == receipt["chain_hash"], receipt
    return len(events)


def verified(sites, node, client, last, receipts):
    """The verifier's answer for a certification of the whole chain, and for these receipts."""
    issued = client.certified(seq_from=1, seq_to=last)
    assert issued["status"] == "completed", issued
    archive, lines = sites.scratch / f"{issued['certification_id']}.zip", sites.scratch / "receipts.ndjson"
    archive.write_bytes(client.download(issued["evidence_url"]).expect(200).body)
    lines.write_text("".join(json.dumps(receipt) + "\n" for receipt in receipts), encoding="utf-8")
    return subprocess.run([BINARY, "verify", archive, "--trust", f"{node.data}/trust.pem", "--receipt", lines],
                          env=clean_environment(), capture_output=True, text=True, check=False)


def fail_over(sites, start=True):
    """Does the section's steps after site A was destroyed; its machines are fenced when they return."""
    fence, promotion, progress, node = host_blocks("Fail-over", 4)
    sites.stop_replication()
    sites.run_block(fence)
    assert sites.run_block(promotion) == ["t\n"]
    (until,) = sites.run_block(progress)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:.]+\+00\n", until), until
    eventually(lambda: sites.streaming(sites.b1) == {"b2"}, "b2 follows")
    check, begin = commands(node, "node-b")
    said = sites.run("node-b", check, good=(0, 1))
    if start:
        sites.run("node-b", begin)
        sites.point_at(sites.node_b)
    return said, begin, until.strip()


def come_back(sites, rollback=False):
    """Does the sections Return and Planned switch-over."""
    rewind, copy = host_blocks("Return", 2)
    assert "Done!" in "".join(sites.run_block(rewind))
    eventually(lambda: sites.streaming(sites.b1) == {"a1", "b2"} and sites.streaming(sites.a1) == {"a2"},
               "site A follows")
    sites.run_block(copy)
    sites.replicate("b", "a")
    stop, ends, rest, promotion, start = host_blocks("Planned switch-over", 5)
    sites.run_block(stop)
    ended, received = sites.run_block(ends)
    assert position(received) > position(ended), (ended, received)
    sites.stop_replication()
    sites.run_block(rest)
    sites.run_block(promotion)
    eventually(lambda: sites.streaming(sites.a1) == {"a2", "b1"} and sites.streaming(sites.b1) == {"b2"},
               "site B follows")
    unmask, begin = commands(start, "node-a")
    sites.run("node-a", unmask)
    if rollback:
        refused(sites, "node-a", begin)
        accept, _ = lost_commands()
        sites.run("node-a", accept)
    sites.run("node-a", begin)
    sites.point_at(sites.node_a)
    sites.replicate("a", "b")


def position(text):
    high, low = re.search(r"([0-9A-F]+)/([0-9A-F]+)", text).groups()
    return int(high, 16) << 32 | int(low, 16)


def lost_commands():
    """The commands by which a loss is accepted."""
    return commands(host_blocks("Lost events", 2)[0], "node-b")


def refused(sites, host, begin):
    """A start that notices lost rounds."""
    said = sites.run(host, begin, good=(1,))
    assert "this node has seen" in said, said


def copy_signer_log(sites):
    (copy,) = [block for block in blocks("Setup") if "signer.log" in block]
    sites.run_block(copy)


def signer_log(node):
    return pathlib.Path(node.data, "signer/signer.log").read_text(encoding="utf-8").replace(" ", "")


def lag(sites):
    (block,) = host_blocks("What is lost", 1)
    return sites.run_block(block)[0]


def test_synchronous_loses_nothing_and_comes_back(sites):
    channel = sites.node_a.new_channel(credits=1000000)
    clients = Registering(sites, channel, "synchronous")
    clients.more()
    assert re.search(r"a2 +\| quorum", lag(sites)) and re.search(r"b1 +\| quorum", lag(sites))

    # Without B, site A fences itself.
    sites.between["a1"].cut()
    eventually(lambda: not sites.node_a.is_ready(), "it is not ready")
    clients.all_refused()  # what was committed before has been answered
    before = len(clients.receipts)
    clients.all_refused()
    assert len(clients.receipts) == before
    sites.between["a1"].join()
    clients.more()
    copy_signer_log(sites)

    # The newest files have not arrived yet.
    sites.stop_replication()
    clients.more(30)
    sites.destroy_site_a()
    receipts = list(clients.receipts)
    said, *_ = fail_over(sites)
    eventually(lambda: sites.node_b.metric("sweep_refused") == 0, "the bucket of B is this installation's")
    live = sites.client(channel.live_key["key"])
    missing = re.findall(r"event (\S+): object (\S+) is missing", said)
    assert missing, said
    assert {event for event, _ in missing} <= {receipt["event_id"] for receipt in receipts} | all_of(live)
    live.content(missing[0][0]).expect(500)
    sequence = live.event(missing[0][0])["sequence"]
    waiting = live.certify(seq_from=sequence, seq_to=sequence).expect(202).json["certification_id"]
    everything_is_there(live, receipts)
    copy, check = commands(host_blocks("Missing content", 1)[0], "node-b")
    sites.run("node-b", copy)
    assert "is missing" not in sites.run("node-b", check)
    live.content(missing[0][0]).expect(200)
    assert live.settled(waiting)["status"] == "completed"
    clients.more()

    come_back(sites)
    clients.more()
    receipts = clients.stop()
    last = everything_is_there(live, receipts)
    done = verified(sites, sites.node_a, live, last, receipts)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sites.node_a.admin("store", "check")["valid"]
    assert sites.node_a.metric("sweep_refused") == 0
    live.close()


def all_of(client):
    return {event["event_id"] for event in client.walk("/v1/events", 500)}


@pytest.mark.thorough  # the other case runs in `make test`
def test_asynchronous_says_what_was_lost(sites):
    change = host_blocks("Mode change", 1)[0]
    sites.run_block(change)
    channel = sites.node_a.new_channel(credits=1000000)
    live = sites.client(channel.live_key["key"])
    clients = Registering(sites, channel, "asynchronous")
    clients.more()
    eventually(lambda: "async" in lag(sites), "B is asynchronous")

    # B falls behind, and A acknowledges what is lost.
    sites.between["a1"].cut()
    kept = list(clients.receipts)
    clients.more(30)
    final = clients.stop()
    live.sealed(final[-1]["event_id"])
    rounds = sites.a1.number("SELECT MAX(round) FROM seal_rounds", "constancia")
    eventually(lambda: f'"round":{rounds}' in signer_log(sites.node_a), "the node has seen the round")
    copy_signer_log(sites)
    issued = verified(sites, sites.node_a, live, len(final), final)
    assert issued.returncode == 0, issued.stdout + issued.stderr
    sites.destroy_site_a()

    said, begin, until = fail_over(sites, start=False)
    assert "this node has seen" in said, said
    refused(sites, "node-b", begin)
    accept, begin = lost_commands()
    assert REASON in accept
    sites.run("node-b", accept)
    sites.run("node-b", begin)
    sites.point_at(sites.node_b)
    listed = {event["event_id"]: event["chain_hash"] for event in live.walk("/v1/events", 500)}
    lost = [receipt for receipt in final if listed.get(receipt["event_id"]) != receipt["chain_hash"]]
    assert len(lost) >= 30 and not {receipt["event_id"] for receipt in kept[:10]} & {r["event_id"] for r in lost}

    # What the disk of a1 still has is the list of them.
    compare = host_blocks("Lost events", 2)[1]
    for host, text in by_host(compare):
        since = f"(timestamptz '{until}' - interval '1 minute')"
        sites.run(host, text.replace("timestamptz '2026-11-29 10:15'", since))
    a, b = (set((sites.scratch / f"events-of-{site}").read_text(encoding="utf-8").splitlines()) for site in "ab")
    assert {line.split("|")[3] for line in a - b} >= {receipt["chain_hash"] for receipt in lost}
    with pytest.raises(Failed):
        sites.a1.query("SELECT 1")

    # The clients repeat what they have receipts for; their old receipts do not match.
    for receipt in lost:
        again = register(live, receipt["client_ref"], int(receipt["client_ref"].split("-")[-1]) % 4 == 0)
        assert again.expect(201).json["chain_hash"] != receipt["chain_hash"]
    last = everything_is_there(live, kept[:10])
    done = verified(sites, sites.node_b, live, last, lost)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "differs from the acknowledged event" in done.stdout

    clients = Registering(sites, channel, "later")
    clients.more()
    come_back(sites, rollback=True)
    clients.more()
    later = clients.stop()
    everything_is_there(live, kept[:10] + later)
    assert sites.node_a.admin("store", "check")["valid"]
    assert sites.node_a.metric("sweep_refused") == 0
    live.close()


def test_the_page_names_every_command_once():
    """No section has commands that no test runs."""
    run = {"What is lost": 1, "Setup": 2, "Fail-over": 4, "Missing content": 1, "Lost events": 2, "Return": 2,
           "Planned switch-over": 5, "Mode change": 1}
    assert {title: len(blocks(title)) for title in run} == run
    with open(Sites.page, encoding="utf-8") as page:
        assert len(re.findall(r"^ *```sh$", page.read(), re.MULTILINE)) == sum(run.values())
    for mode in ("synchronous", "asynchronous"):
        assert all("wal_log_hints" in text and len(text.splitlines()) == 6 for text in server_settings(mode).values())
