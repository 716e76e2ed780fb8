"""Services for the tests: one for all, with rates that do not limit a test, and others with
settings of their own, started on demand. `stores.py` says on which store."""

import contextlib
import os
import re
import sys
import time

import pytest

import stores
from browser import browse, browsers  # pylint: disable=unused-import
from client import Client, Description, Service

# Bytecode of these files is kept only where scripts/test says: not in the tree, and not by what the tests start.
sys.pycache_prefix = os.environ.get("CONSTANCIA_TEST_BYTECODE")
sys.dont_write_bytecode = sys.pycache_prefix is None


def pytest_collection_modifyitems(config, items):
    """What is about the other store is left out. Workers take large files first, so that none works for long when the
    others have ended."""
    others = {"sqlite": "postgresql", "postgresql": "sqlite"}[stores.KIND]
    left_out = [item for item in items if item.get_closest_marker(others)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (-item.path.stat().st_size, item.path))
    if not stores.offered():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=stores.distributed.MISSING))


def pytest_configure(config):
    config.addinivalue_line("markers", "sqlite: is about the embedded store, or about nothing that a store does")
    config.addinivalue_line("markers", "postgresql: is about PostgreSQL")
    config.addinivalue_line("markers", "both_stores: `make test` runs it on PostgreSQL, too: statements, order, "
                                       "locks, transactions and their failures differ by engine")
    config.addinivalue_line("markers", "thorough: only `make test-all` runs it; a case like it runs in `make test`, or it "
                                       "is slow and about one language alone")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """What a worker process saw, when the tests are shared out among several."""
    seen = getattr(node, "workeroutput", {})
    Description.named.update(seen.get("named", ()))
    Description.judged.update(seen.get("judged", ()))


def pytest_sessionfinish(session, exitstatus):
    """At the end of the whole suite every operation that is described was judged once. scripts/test says which suites
    have some of the tests only."""
    stores.close()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput.update(named=sorted(Description.named),
                                           judged=sorted(Description.judged))
    elif exitstatus == 0 and session.testscollected > 500 and stores.offered() and \
            not os.environ.get("CONSTANCIA_TEST_SOME") and "both_stores" not in session.config.option.markexpr:
        missing = Description.named - Description.judged
        if missing or not Description.named:
            print(f"\nno answer of these operations was judged: {sorted(missing)}")
            session.exitstatus = 1


def judge_log(service):
    """What the tests left in the log of their service: JSON lines, no failure of the service's own,
    and no secret."""
    text = service.log.read_text()
    lines = service.log_lines()
    assert lines, "it says something"
    for line in lines:
        assert isinstance(line, dict)
        assert {"level", "time"} <= set(line) or {"level", "ts"} <= set(line), line
        assert line["level"] != "error", line
    for secret in service.secrets:
        assert secret not in text
        assert secret[9:-6] not in text, "nor a part of one"
    assert "PRIVATE KEY" not in text and "mac=" not in text
    assert not re.search(r"svc_(live|test)_[0-9A-Za-z]{30,}", text)


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    running = Service(tmp_path_factory.mktemp("service"), rate__live=100000, rate__test=100000,
                      seal__interval="1s", http__connections_per_address=1000)
    with contextlib.ExitStack() as ending:
        ending.callback(running.discard)
        running.start()
        yield running
        assert running.stop() == 0
        judge_log(running)
        # A test must not damage the service that many use: a later test would report the damage.
        report = running.admin("store", "check")
        assert report["valid"], report


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts services with settings (section__key=value) that end with the module. Those that seal once an
    hour have had the round that a start begins with: what is registered from then on stays pending."""
    running = []
    with contextlib.ExitStack() as ending:
        def start_one(**settings):
            settings.setdefault("rate__live", 100000)
            settings.setdefault("rate__test", 100000)
            one = Service(tmp_path_factory.mktemp("service"), **settings)
            ending.callback(one.discard)
            running.append(one)
            one.start()
            if settings.get("seal__interval") == "1h":
                one.acts_sealed()
            return one
        yield start_one
        codes = [one.stop() for one in running]
        assert set(codes) <= {0, None}, codes


@pytest.fixture
def one_day():
    """The day, by UTC, which does not end soon: for what is counted by days."""
    left = 86400 - time.time() % 86400
    if left < 300:
        time.sleep(left + 1)


@pytest.fixture
def channel(service):
    """A content channel of a fresh account with 1000 credits."""
    made = service.new_channel()
    yield made
    made.close()


@pytest.fixture
def hash_channel(service):
    made = service.new_channel("hash_only")
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(service):
    """A content channel for the tests of a module that do not mind each other's events."""
    made = service.new_channel(credits=1000000)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared_hash(service):
    made = service.new_channel("hash_only", credits=1000000)
    yield made
    made.close()


@pytest.fixture
def anyone(service):
    """A client without a key."""
    client = Client(service)
    yield client
    client.close()
