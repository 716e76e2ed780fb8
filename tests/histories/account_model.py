"""An account as its history shows it: the lists of its end, and which states were possible at a time.

The order of an account's movements is known in the end (`credits list`); when each was made is known only between
bounds. A movement was possibly made once its cause was requested, and certainly once its cause was acknowledged. An
answer is right if one state between the last certain and the last possible one explains it."""

import bisect
import dataclasses

from history import FOREVER

GROWTH = ("purchase", "adjustment", "fee_refund")  # movements that a settlement may follow


def number_of(reason):
    """Returns the number of the operation that gave this reason, None if none did."""
    return int(reason[1:]) if reason and reason.startswith("#") and reason[1:].isdigit() else None


def lasts(one):
    """Whether an operation was acknowledged for good. A revocation that no standby has confirmed says so: a promoted
    standby may not have it."""
    return one.good and not (isinstance(one.answer, dict) and one.answer.get("replicated") is False)


def possible_values(writes, start, end, delay=0):
    """Returns the values that a setting may have had for a request between start and end. `writes`: (operation or
    None for the initial value, value). A write is over once a later one was acknowledged `delay` seconds before."""
    open_writes = [(one, value) for one, value in writes if one is None or (not one.refused and one.invoked <= end)]
    done = [one for one, _ in open_writes if one is not None and lasts(one) and one.completed + delay <= start]
    last = max((one.invoked for one in done), default=None)
    return {value for one, value in open_writes
            if last is None or (one is not None and one.completed >= last)}


@dataclasses.dataclass
class State:
    """After a movement, and the settlement that belongs to it."""

    balance: int
    settled: int  # events, since the beginning
    number: int  # of the last movement
    possible: float = 0.0
    certain: float = FOREVER
    cause: dict | None = None  # the movement


class Account:
    def __init__(self, history, name):
        self.history, self.name = history, name
        self.names = history.facts.get("names", {})
        self.id = self.names.get(name)
        self.address = next((one.arguments.get("email") for one in history.of("account create")
                             if one.arguments["name"] == name), None)
        self._lists = {}
        self.movements = list(reversed(self.list("credits list")))
        self.chains = [chain for chain in history.final if chain.split("/")[0] == name]
        self.live = [chain for chain in self.chains if chain.endswith("/live")]
        self._find_times()
        self._find_paid()
        self._find_states()

    # ---- what was read in the end ----

    def list(self, words):
        """Returns all items of a list of the operator, as read last."""
        return final_list(self.history, words, self.name)

    @property
    def complete(self):
        """Whether everything of the account was read in the end."""
        keys = {one.arguments["name"].rsplit("/", 1)[0] for one in self.history.of("key create")
                if not one.refused and one.arguments["name"].split("/")[0] == self.name}
        return self.was_read("credits list") and keys <= set(self.chains)

    def was_read(self, words):
        walk = self.history.walks.get((words, self.name))
        return bool(walk) and walk[-1].good and not walk[-1].answer.get("has_more")

    def of(self, *kinds, **more):
        """Returns the operator's commands with this account, or something of it, among their arguments."""
        return [one for one in self.history.of(*kinds, **more) if self.concerns(one)]

    def concerns(self, one):
        for name in ("account", "channel", "key", "sale", "endpoint", "threshold"):
            if isinstance(one.arguments.get(name), str):
                return one.arguments[name].split("/")[0] == self.name
        return False

    # ---- events ----

    def _find_times(self):
        """Finds since when each live event possibly and certainly existed."""
        self.invoked, self.acked = {}, {}
        for chain in self.live:
            by_ref = self.history.registrations.get(chain, {})
            for event in self.history.final[chain]:
                place = (event["channel_id"], event["sequence"])
                sent = by_ref.get(event["client_ref"], ())
                self.invoked[place] = min((one.invoked for one in sent), default=0.0)
        for one, chain, event in self.history.sightings:
            place = (event["channel_id"], event["sequence"])
            if chain.endswith("/live") and place in self.invoked:
                self.acked[place] = min(self.acked.get(place, FOREVER), one.completed)

    def _find_paid(self):
        """Finds the events that were paid when they were registered, and when the others possibly and certainly
        existed."""
        self.paid = {(one["channel_id"], sequence) for one in self.movements if one["kind"] == "events"
                     for sequence in range(one["first_sequence"], one["last_sequence"] + 1)}
        unpaid = [place for place in self.invoked if place not in self.paid]
        self.unpaid = unpaid
        self.unpaid_invoked = sorted(self.invoked[place] for place in unpaid)
        self.unpaid_acked = sorted(self.acked.get(place, FOREVER) for place in unpaid)

    def unpaid_bounds(self, start, end):
        """Returns the least and the greatest number of events registered without credits so far."""
        return bisect.bisect_right(self.unpaid_acked, start), bisect.bisect_right(self.unpaid_invoked, end)

    # ---- movements ----

    def _find_states(self):
        self.by_number = {one.number: one for one in self.history.operations}
        self.states = [State(0, 0, 0, 0.0, 0.0)]
        for one in self.movements:
            last = self.states[-1]
            if one["kind"] == "settlement" and last.cause and last.cause["kind"] in GROWTH:
                last.balance, last.number, last.settled = one["balance"], one["number"], last.settled - one["credits"]
                continue
            possible, certain = self.bounds_of(one)
            self.states.append(State(one["balance"], last.settled, one["number"], possible, certain, one))
        self.possible = [state.possible for state in self.states]
        self.certain = [state.certain for state in self.states]
        for place in range(1, len(self.states)):
            self.possible[place] = max(self.possible[place], self.possible[place - 1])
        for place in reversed(range(len(self.states) - 1)):
            self.certain[place] = min(self.certain[place], self.certain[place + 1])

    def bounds_of(self, movement):
        """Returns since when a movement possibly and certainly existed."""
        kind, reference = movement["kind"], movement["reference"]
        if kind == "events":
            places = [(movement["channel_id"], sequence)
                      for sequence in range(movement["first_sequence"], movement["last_sequence"] + 1)]
            return (max(self.invoked.get(place, 0.0) for place in places),
                    min(self.acked.get(place, FOREVER) for place in places))
        causes = self.causes_of(kind, reference)
        if causes is None:
            return 0.0, FOREVER
        return (min((one.invoked for one in causes if not one.refused), default=0.0),
                min((one.completed for one in causes if one.good), default=FOREVER))

    def causes_of(self, kind, reference):
        """Returns the operations that may have caused a movement; None: the service may have made it."""
        number = number_of(reference)
        if number is not None:
            return [self.by_number[number]] if number in self.by_number else None
        if reference == "initial credits":
            return [one for one in self.history.of("account create") if one.arguments["name"] == self.name]
        if kind == "purchase" and reference not in self.charged:
            return self.of_sale(reference, "purchase pay")
        if kind in ("refund", "revert") and reference not in self.charged:
            return self.of_sale(reference, "purchase " + kind)
        return None

    @property
    def charged(self):
        return {one["sale"] for one in self.history.facts.get("charges", ())}

    def of_sale(self, sale_id, *kinds):
        return [one for one in self.history.of(*kinds) if self.names.get(one.arguments["sale"]) == sale_id]

    def possible_states(self, start, end):
        """Returns the states that a request between start and end may have seen."""
        first = bisect.bisect_right(self.certain, start) - 1
        last = bisect.bisect_right(self.possible, end) - 1
        return self.states[max(first, 0):last + 1]

    def may_have_been(self, one, condition):
        """Whether a state with (balance, least and greatest number of unpaid events) satisfied a condition at some
        time during an operation."""
        least, most = self.unpaid_bounds(one.invoked, one.completed)
        return any(most - state.settled >= 0 and
                   condition(state.balance, max(0, least - state.settled), most - state.settled)
                   for state in self.possible_states(one.invoked, one.completed))

    def unpaid_limits(self, start, end):
        """Returns the limits of unpaid events that may have been in force."""
        writes = [(one, one.arguments["unpaid_limit"]) for one in self.history.of("account create")
                  if one.arguments["name"] == self.name and "unpaid_limit" in one.arguments]
        writes += [(one, one.arguments["unpaid_limit"]) for one in self.of("account set")
                   if "unpaid_limit" in one.arguments]
        return possible_values(writes, start, end) or {100}


def final_list(history, words, account=None):
    return [item for page in history.walks.get((words, account), ()) if page.good for item in page.answer["data"]]


def accounts(history):
    """Returns the accounts of a history."""
    if "accounts" not in history.__dict__:
        history.__dict__["accounts"] = [Account(history, one.arguments["name"])
                                        for one in history.of("account create") if one.good]
    return history.__dict__["accounts"]


def account_of(history, name):
    return next((one for one in accounts(history) if one.name == name), None)


__all__ = ["Account", "account_of", "accounts", "final_list", "lasts", "number_of", "possible_values"]
