"""Small histories made by hand, for the tests of rules: a builder whose calls are what clients were answered.

    history = Building()
    first = history.event("r0")
    history.register(first)
    history.close(first)
    assert not violated(history, "gapless")
"""

import hashlib

import rules  # noqa: F401 - registers the rules
from history import FOREVER, NO_ANSWER, RULES, Fault, History, Operation

CHAIN, KEY = "a0/0/live", "a0/0/live/0"
CHAIN_OF_OTHERS, KEY_OF_OTHERS = "a1/0/live", "a1/0/live/0"
WALL = 1_790_000_000  # seconds of the wall clock at the start of a history


def time_of(seconds):
    """Returns a wall-clock time of a history as the service states it."""
    from operations import moment
    return moment(WALL + seconds)


def event(client_ref="r0", sequence=1, *, at=1.0, digest=None, chain=CHAIN, **members):
    """Returns an Event as the service answers it, registered at that time of the history."""
    name = f"{chain} {client_ref} {sequence}"
    return {"event_id": "evt_" + hashlib.sha256(name.encode()).hexdigest()[:20], "client_ref": client_ref,
            "channel_id": chain.rsplit("/", 1)[0], "mode": chain.rsplit("/", 1)[1], "sequence": sequence,
            "hash": digest or hashlib.sha256(client_ref.encode()).hexdigest(), "hash_alg": "sha-256",
            "chain_hash": hashlib.sha256(f"chain {name}".encode()).hexdigest(), "received_at": time_of(at),
            "occurred_at": None, "status": "registered", "timestamp": {"status": "pending"}, "proof": None, **members}


def operation(kind, arguments=None, *, invoked=0.0, completed=None, status=200, answer=None, client="client 0",
              closing=False, headers=None, number=0, **more):
    """Returns an operation; one with the status 0 was never answered."""
    if completed is None:
        completed = FOREVER if status == NO_ANSWER else invoked + 0.1
    return Operation(number, client, kind, dict(arguments or {}), invoked, completed, status, answer,
                     dict(headers or {}), closing=closing, **more)


class Building:
    """Collects operations. Each call takes a tenth of a second of the history unless it says when it was."""

    def __init__(self, facts=None, script=None):
        self.operations, self.faults, self.deliveries, self.ends = [], [], [], []
        self.facts = {"receivers": [], "names": {}, "wall": WALL, "wall_error": 0.01, "unresolved": [],
                      "clock_moved": False, **(facts or {})}
        self.script = {"version": 1, "seed": 1, "store": "sqlite", "nodes": 1, "sizes": {}, "settings": {},
                       "receivers": [], "setup": [], "clients": [], "faults": [], **(script or {})}
        self.now = 0.0

    def add(self, kind, arguments=None, **more):
        """Adds an operation, after all that were added before unless `invoked` says otherwise."""
        more.setdefault("invoked", self.now)
        one = operation(kind, arguments, number=len(self.operations) + 1, **more)
        self.operations.append(one)
        self.now = max(self.now, one.invoked + 0.2, one.completed + 0.1 if one.completed != FOREVER else 0)
        return one

    def register(self, registered, *, key=KEY, status=201, identity=None, form="json", **more):
        """Adds a registration: `registered` is its Event, or a client_ref where the answer was no Event."""
        is_event = isinstance(registered, dict)
        client_ref = registered["client_ref"] if is_event else registered
        digest = registered["hash"] if is_event else hashlib.sha256(client_ref.encode()).hexdigest()
        arguments = {"client_ref": client_ref, "key": key, "chain": key.rsplit("/", 1)[0], "form": form,
                     "identity": identity or [digest, "sha-256", None], "spec": {"form": form, "seed": 1, "size": 1}}
        if status == 200:
            more.setdefault("headers", {"Idempotent-Replayed": "true"})
        return self.add("register", arguments, status=status if is_event or status != 201 else NO_ANSWER,
                        answer=registered if is_event else None, **more)

    def list(self, *events, key=KEY, order="asc", limit=50, filters=None, page=0, walk=None, more_follow=False,
             **more):
        """Adds a page of a list."""
        number = len(self.operations) + 1
        arguments = {"key": key, "chain": key.rsplit("/", 1)[0], "order": order, "limit": limit,
                     "filters": filters or {}, "page": page, "walk": walk or number}
        return self.add("list", arguments, answer={"data": list(events), "has_more": more_follow,
                                                   "next_cursor": "more" if more_follow else None}, **more)

    def close(self, *events, key=KEY):
        """Adds the lists of a chain that are read in the end, in both orders."""
        self.list(*events, key=key, limit=500, closing=True, client="closing")
        self.list(*reversed(events), key=key, order="desc", limit=499, closing=True, client="closing")

    def fault(self, name, begun, ended, **details):
        self.faults.append(Fault(name, begun, ended, details))

    def history(self):
        return History(self.script, self.operations, self.faults, self.deliveries, self.ends, self.facts)


def violated(building, *names):
    """Returns the violations of a history; of these rules alone, where they are named."""
    history = building.history() if isinstance(building, Building) else building
    unknown = set(names) - {one.name for one in RULES}
    assert not unknown, f"no rule is called {unknown}"
    return [text for one in RULES if not names or one.name in names for text in one.violations(history)]
