"""What the writers of a sharded store wait for, on a server that distributes nothing: transactions of earlier
holders of the writer lock that still commit, and those that have committed and do not end; and urgent commits that
do not end."""

import contextlib
import os
import subprocess

import pytest

from client import eventually
from console import new_visitor
from fleet import Fleet
from postgres import programs
from program import Refused

pytestmark = pytest.mark.postgresql
COMMIT_LOCK = 4841921623072  # of src/db/citus/writer_lock.c


@pytest.fixture
def fleet(tmp_path):
    with Fleet(tmp_path, count=1, store__sharded="true", store__commit_timeout="2s") as made:
        yield made


@contextlib.contextmanager
def earlier_holder(fleet, sql):
    """A session of the service's role with the lock under which a writer commits."""
    locks = f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {COMMIT_LOCK & 0xffffffff}"
    eventually(lambda: fleet.number(locks) == 0, "no writer commits")
    command = [os.path.join(programs(), "psql"), "-XAtq", "-f", "-", fleet.cluster.url(fleet.database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          text=True) as session:
        try:
            session.stdin.write(sql)
            session.stdin.flush()
            eventually(lambda: fleet.number(f"{locks} AND pid NOT IN (SELECT pid FROM pg_stat_activity WHERE "
                                            "application_name = 'constancia')"), "it is locked")
            yield
        finally:
            session.kill()


def succeeds(fleet):
    with contextlib.suppress(Refused):
        return fleet.new_account()
    return None


def test_a_transaction_that_has_committed_stops_no_writer(fleet):
    """It has no number any more, but its locks: its back end waits for another server."""
    with earlier_holder(fleet, f"SELECT pg_advisory_lock_shared({COMMIT_LOCK});\n"):
        fleet.new_account()


def test_a_transaction_that_still_commits_is_cancelled(fleet):
    """Whoever began it may have ended."""
    with earlier_holder(fleet, f"SELECT pg_current_xact_id(), pg_advisory_xact_lock_shared({COMMIT_LOCK}), "
                               "pg_sleep(1200);\n"):
        eventually(lambda: succeeds(fleet), "an account is made")


def test_a_transaction_that_may_still_commit_stops_writers(fleet):
    with earlier_holder(fleet, f"BEGIN; SELECT pg_current_xact_id(), pg_advisory_xact_lock_shared({COMMIT_LOCK});\n"):
        with pytest.raises(Refused, match="temporarily_unavailable"):
            fleet.new_account()
    eventually(lambda: succeeds(fleet), "an account is made")


def test_an_urgent_commit_that_does_not_end_stops_no_other(fleet):
    """The server of its account hangs; the next one uses another connection."""
    stuck, other = (fleet.new_channel() for _ in range(2))
    fleet.query("CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1200); "
                "RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER hang AFTER INSERT ON acts DEFERRABLE INITIALLY "
                "DEFERRED FOR EACH ROW WHEN (NEW.account = "
                f"{fleet.number(account_of(stuck))}) EXECUTE FUNCTION hang()")
    with pytest.raises(Refused, match="unknown_outcome|temporarily_unavailable"):
        fleet.admin("key", "revoke", stuck.live_key["key_id"], "--reason", "stolen")
    fleet.admin("key", "revoke", other.live_key["key_id"], "--reason", "stolen")
    fleet.query("DROP TRIGGER hang ON acts")
    fleet.admin("key", "revoke", stuck.live_key["key_id"], "--reason", "stolen")


def account_of(channel):
    return f"SELECT account FROM accounts WHERE account_id = '{channel.account_id}'"


def test_a_user_signs_out_without_the_account(fleet):
    """The session is not of an account, whose server may hang."""
    (node,) = fleet.nodes
    visitor = new_visitor(node, fleet.new_account())
    visitor.get("/console/sessions")
    holder = fleet.cluster.primary.session("BEGIN; LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE;\n", fleet.database)
    try:
        eventually(lambda: fleet.number("SELECT count(*) FROM pg_locks WHERE granted AND mode = 'AccessExclusiveLock' "
                                        "AND relation = 'accounts'::regclass"), "it is locked")
        assert visitor.send("/console/leave").status == 303
    finally:
        holder.communicate("ROLLBACK;\n")
    assert visitor.get("/console/").location == "/console/sign-in"
