"""Services for the tests: one for all, with rates that do not stand in the way, and others with
settings of their own, started on demand. `stores.py` says on which store."""

import contextlib
import sys

import pytest

import stores
from client import Client, Service

sys.dont_write_bytecode = True


def pytest_collection_modifyitems(config, items):
    """What is about the other store is left out; what looks at everything that happened comes
    last."""
    others = {"sqlite": "postgresql", "postgresql": "sqlite"}[stores.KIND]
    left_out = [item for item in items if item.get_closest_marker(others)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_configure(config):
    config.addinivalue_line("markers", "last: looks at what all the other tests left behind")
    config.addinivalue_line("markers", "sqlite: is about the embedded store")
    config.addinivalue_line("markers", "postgresql: is about PostgreSQL")


def pytest_sessionfinish():
    stores.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    running = Service(tmp_path_factory.mktemp("service"), rate__live=100000, rate__test=100000,
                      seal__interval="1s", http__connections_per_address=1000)
    with contextlib.ExitStack() as ending:
        ending.callback(running.discard)
        running.start()
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """Starts services with settings (section__key=value) that end with the module."""
    running = []
    with contextlib.ExitStack() as ending:
        def start_one(**settings):
            settings.setdefault("rate__live", 100000)
            settings.setdefault("rate__test", 100000)
            one = Service(tmp_path_factory.mktemp("service"), **settings)
            ending.callback(one.discard)
            running.append(one)
            return one.start()
        yield start_one
        codes = [one.stop() for one in running]
        assert set(codes) <= {0, None}, codes


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
