"""Accounts are served round-robin: the queue of one does not keep the others waiting. Counted, not timed."""

import contextlib
import json
import re
import socket
import threading

import pytest

import s3_server
import timestamp_authority
from client import Client, Service, eventually
from postgres import Cluster, Failed

pytestmark = pytest.mark.both_stores

GREEDY = 1400  # registrations that wait; more than a batch has
CERTIFICATIONS = 14


class Raw:
    """A registration that is sent now and whose answer is read later."""

    def __init__(self, service, key, ref):
        body = json.dumps({"client_ref": ref, "hash": "0" * 64, "hash_alg": "sha-256"}).encode()
        self.socket = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        self.socket.sendall(
            b"POST /v1/events HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + key.encode() + b"\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def answer(self):
        text = b""
        while piece := self.socket.recv(65536):
            text += piece
        self.socket.close()
        head, _, body = text.partition(b"\r\n\r\n")
        assert re.match(rb"HTTP/1.1 201 ", head), text[:500]
        return json.loads(body)


@pytest.mark.postgresql
def test_a_backlog_of_registrations_is_passed(start):
    """All of them go to one sequencer: what waits of the one does not fill the next batch before
    the other has a place in it."""
    with Cluster(standbys=0) as cluster:
        database = cluster.create_database()
        service = start(store__url=cluster.url(database), store__require_replicas=0,
                        http__deadline="300s", store__commit_timeout="60s",
                        http__connections=3000, http__connections_per_address=3000)
        channels = [service.new_channel("hash_only", credits=10000) for _ in range(5)]
        first = channels[0]
        # Account numbers are given in order, and their remainder by four says which sequencer's.
        lone = channels[4]
        for channel in (first, lone):
            channel.live.register_hash("0" * 64, "before").expect(201)

        def hold():
            with contextlib.suppress(Failed):  # it is cancelled
                cluster.primary.query("BEGIN; LOCK TABLE events IN EXCLUSIVE MODE;"
                                      " SELECT pg_sleep(300)", database, 400)
        holder = threading.Thread(target=hold)
        holder.start()
        sleeping = ("SELECT {} FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        eventually(lambda: cluster.primary.number(sleeping.format("count(*)")), "it is held")
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        sent = [Raw(service, first.live.key, "under way")]
        eventually(lambda: cluster.primary.number(waiting), "a batch is under way")
        sent += [Raw(service, first.live.key, f"greedy-{n}") for n in range(GREEDY)]
        eventually(lambda: service.metric("registration_queue_length") == GREEDY, "they wait")
        late = Raw(service, lone.live.key, "lone")
        eventually(lambda: service.metric("registration_queue_length") == GREEDY + 1, "it, too")
        cluster.primary.query(sleeping.format("pg_cancel_backend(pid)"))
        received = late.answer()["received_at"]
        earlier = [one for one in sent if one.answer()["received_at"] < received]
        holder.join()
        assert len(earlier) <= 1, "only what was under way when it came"


@pytest.mark.sqlite
def test_a_backlog_of_certifications_is_passed(tmp_path_factory):
    """However many an account has, another's is among the next that the issuers take."""
    authority = timestamp_authority.Server(timestamp_authority.Certificates(
        str(tmp_path_factory.mktemp("authority"))), mode="error")
    threading.Thread(target=authority.serve_forever, daemon=True).start()
    service = Service(tmp_path_factory.mktemp("service"), rate__live=100000, seal__interval="200ms",
                      tsa__url=authority.url, tsa__roots=authority.roots,
                      tsa__allow_networks="127.0.0.0/8")
    with contextlib.ExitStack() as ending:
        ending.callback(authority.server_close)
        ending.callback(authority.shutdown)
        ending.callback(service.discard)
        service.start()
        greedy, lone = service.new_channel(credits=10000), service.new_channel(credits=10000)
        for channel in (greedy, lone):
            for n in range(3):
                channel.live.register({"n": n}).expect(201)
        # Nothing is issued before all of them wait.
        accepted = [greedy.live.certify(seq_from=1, seq_to=3).expect(202).json
                    for _ in range(CERTIFICATIONS)]
        mine = lone.live.certify(seq_from=1, seq_to=3).expect(202).json
        authority.mode = "good"
        mine = lone.live.settled(mine["certification_id"])
        done = [greedy.live.settled(one["certification_id"]) for one in accepted]
        assert {one["status"] for one in [mine, *done]} == {"completed"}
        before = [one for one in done if one["completed_at"] < mine["completed_at"]]
        assert len(before) <= 5, "as many as were under way, and few more"


@pytest.mark.sqlite
def test_downloads_that_hang_leave_room_for_others(tmp_path_factory):
    """One account's content does not come: the others' does."""
    server = s3_server.Server(tmp_path_factory.mktemp("s3"))
    chosen = {**server.settings("constancia"), "content__timeout": "60s"}
    secret = chosen.pop("content__secret_key")
    service = Service(tmp_path_factory.mktemp("service"), rate__live=100000, http__deadline="300s",
                      **chosen, environment={"CONSTANCIA_CONTENT_SECRET_KEY": secret})
    with contextlib.ExitStack() as ending:
        ending.callback(service.discard)
        ending.callback(server.stop)
        service.start()
        channels = [service.new_channel(), service.new_channel()]
        events = [one.live.register_file(b"x" * 100000).expect(201).json for one in channels]
        channels[0].live.content(events[0]["event_id"]).expect(200)
        stuck = [target for method, target, _ in server.requests if method == "GET"][-1]
        server.misbehave("stall", method="GET", target=re.escape(stuck.split("?")[0]), times=10**6)
        over = []

        def read():
            with Client(service, channels[0].live_key["key"]) as client:
                over.append(client.content(events[0]["event_id"]).status)
        readers = [threading.Thread(target=read, daemon=True) for _ in range(60)]
        for reader in readers:
            reader.start()
        eventually(lambda: service.metric("http_connections") >= len(readers), "they have come")
        eventually(lambda: server.faults[0].met >= 16, "many hang")
        for _ in range(20):
            channels[1].live.content(events[1]["event_id"]).expect(200)
            channels[1].live.register_file(b"y" * 50000).expect(201)
        assert not over, "they hang still"
        server.stopping.set()
        for reader in readers:
            reader.join()
