"""Rules about notices: each has its cause and each cause its notice, each reaches the endpoints of its account, with
one identifier, one body and the right signature."""

import bisect
import datetime
import hashlib
import hmac
import json
from collections import Counter

from account_model import accounts, possible_values
from history import FOREVER, rule
from operations import shifted
from rules_access import EFFECT
from rules_money import certifications_of, limits_of, most_events, placed

UNDER_WAY = 5  # seconds that a delivery may take
ATTEMPTS = 5  # consecutive notices that fail until an endpoint is disabled


def bodies(history):
    """Returns {notice_id: the answer of notice show}."""
    return {one.answer["notice_id"]: one.answer for one in history.of("notice show", closing=True) if one.good}


def notices_of(history, account, *types):
    """Returns the envelopes of an account's notices of these types."""
    shown = bodies(history)
    return [json.loads(shown[one["notice_id"]]["body"]) for one in account.list("notice list")
            if one["notice_id"] in shown and (not types or one["type"] in types)]


def readable(history):
    """Returns the accounts whose notices were all read in the end."""
    shown = bodies(history)
    return [account for account in accounts(history) if account.was_read("notice list") and account.complete
            and all(one["notice_id"] in shown for one in account.list("notice list"))]


# ---- endpoints ----


class Endpoint:
    def __init__(self, history, create):
        self.create, self.id = create, create.answer["endpoint_id"]
        self.account = create.arguments["account"]
        self.types = create.answer["types"]
        names = history.facts.get("names", {})
        self.commands = [one for one in history.of("webhook update", "webhook disable", "webhook delete",
                                                   "webhook rotate", "webhook test", "webhook replay")
                         if names.get(one.arguments["endpoint"]) == self.id]
        self.receivers = {int(one.arguments["url"].split()[1]) for one in [create, *self.commands]
                          if "url" in one.arguments}
        self.secrets = [(create, create.answer["secret"], 1)]
        self.unknown = []  # rotations whose secret is unknown
        for one in self.commands:
            if one.kind == "webhook rotate" and one.good:
                self.secrets.append((one, one.answer["secret"], one.answer["secret_version"]))
            elif one.kind == "webhook rotate" and not one.refused:
                self.unknown.append(one)

    @property
    def lasting(self):
        """Whether nothing but its creation decides what it receives."""
        return not any(one.kind in ("webhook update", "webhook disable", "webhook delete") and not one.refused
                       for one in self.commands)

    def certain_secret(self, start):
        """Returns the newest secret's version and rotation that certainly signed from a time on."""
        done = [(version, one, secret) for one, secret, version in self.secrets if one.completed <= start]
        return max(done, key=lambda found: found[0], default=None)


def endpoints(history):
    return [Endpoint(history, one) for one in history.of("webhook create") if one.good]


def by_receiver(history):
    """Returns {receiver: account}."""
    found = {}
    for one in history.of("webhook create", "webhook update"):
        if "url" in one.arguments:
            name = one.arguments.get("account") or one.arguments["endpoint"].split("/")[0]
            found[int(one.arguments["url"].split()[1])] = name
    return found


def certified(history):
    """Returns {certification_id: when its first request was made}, of those that one request certainly made."""
    found = {}
    for one in history.of("certify", "certification request"):
        if one.good and "Idempotent-Replayed" not in one.headers and not one.arguments.get("idempotency_key"):
            found[one.answer["certification_id"]] = one.invoked
    return found


def begun(history, notice):
    """Returns a time before which a notice cannot have arisen; 0: unknown."""
    return certified(history).get(notice["data"].get("certification_id"), 0.0)


@rule("A notice that arrives is one of the receiver's account, with its one identifier and its one body.")
def notices_arrive_as_they_are(history):
    shown, owners = bodies(history), by_receiver(history)
    ids = {account.id: account.name for account in accounts(history)}
    if len(readable(history)) != len(accounts(history)):
        return
    for one in history.deliveries:
        record, receiver = one["record"], one["receiver"]
        if one["id"] != record["id"]:
            yield f"receiver {receiver}: header {one['id']}, body {record['id']}"
        if record["id"].startswith("tst_"):
            continue
        notice = shown.get(record["id"])
        if not notice:
            yield f"receiver {receiver}: {record} is no notice of any account"
        elif ids.get(notice["account_id"]) != owners.get(receiver):
            yield f"receiver {receiver} of {owners.get(receiver)}: {record} of {ids.get(notice['account_id'])}"
        elif notice["body"] != one["body"]:
            yield f"receiver {receiver}: {one['body']}, but it is {notice['body']}"


@rule("A notice reaches every endpoint of its account that subscribes to it, existed before its cause and lasts.")
def notices_reach_their_endpoints(history):
    attempts = len(history.script["settings"].get("webhook.schedule", "").split(",")) + 1
    taken = {(one["receiver"], one["record"]["id"]) for one in history.deliveries if 200 <= one["status"] < 300}
    readable_names = {account.name: account for account in readable(history)}
    for endpoint in endpoints(history):
        account = readable_names.get(endpoint.account)
        if not account or not endpoint.lasting:
            continue
        states = {one["notice_id"]: state for one in account.list("notice list") for state in one["deliveries"]
                  if state["endpoint_id"] == endpoint.id}
        failed = sum(state["status"] == "failed" and state["attempts"] >= attempts for state in states.values())
        for notice in notices_of(history, account):
            after = endpoint.create.client == "setup" or begun(history, notice) >= endpoint.create.completed
            if not after or (endpoint.types and notice["type"] not in endpoint.types):
                continue
            state = states.get(notice["id"], {"status": "missed"})
            arrived = any((receiver, notice["id"]) in taken for receiver in endpoint.receivers)
            if state["status"] == "failed" and state["attempts"] >= attempts and not arrived:
                continue
            if state["status"] in ("missed", "waiting") and failed >= ATTEMPTS:  # the endpoint was disabled
                continue
            if state["status"] != "delivered" or not arrived:
                yield f"{endpoint.id} of {endpoint.account}: {notice} {'arrived' if arrived else 'never came'}: {state}"


@rule("What is listed as delivered was acknowledged by a receiver.")
def delivered_means_acknowledged(history):
    taken = {(one["receiver"], one["record"]["id"]) for one in history.deliveries if 200 <= one["status"] < 300}
    found = {one.id: one for one in endpoints(history)}
    for account in accounts(history):
        for notice in account.list("notice list"):
            for state in notice["deliveries"]:
                endpoint = found.get(state["endpoint_id"])
                if endpoint and state["status"] == "delivered" and not any(
                        (receiver, notice["notice_id"]) in taken for receiver in endpoint.receivers):
                    yield f"{account.name}: {notice['notice_id']} at {state}"


def failures(account, endpoint, attempts):
    """Returns how many notices have used up their retries at an endpoint."""
    return sum(state["endpoint_id"] == endpoint.id and state["status"] == "failed" and state["attempts"] >= attempts
               for notice in account.list("notice list") for state in notice["deliveries"])


def may_have_been_disabled(history, account, endpoint, start, end):
    """Returns whether an endpoint may not have been enabled, by a command or since notices failed."""
    names = history.facts.get("names", {})
    writes = [(None, False)] + [(one, one.kind != "webhook enable") for one in
                                history.of("webhook disable", "webhook enable", "webhook delete")
                                if names.get(one.arguments["endpoint"]) == endpoint.id]
    attempts = len(history.script["settings"].get("webhook.schedule", "").split(",")) + 1
    refused = sum(one["receiver"] in endpoint.receivers and not 200 <= one["status"] < 300
                  for one in history.deliveries)
    replayed = any(one.kind == "webhook replay" and not one.refused for one in endpoint.commands) and (
        refused >= ATTEMPTS * attempts or history.faulty(0.0, FOREVER, "receivers"))
    return replayed or True in possible_values(writes, start, end, EFFECT) or \
        failures(account, endpoint, attempts) >= ATTEMPTS


def since_when(history):
    """Returns {notice_id: when it certainly had arisen}, of notices of certifications that were seen to have ended."""
    ended = {}
    for one in history.of("certification"):
        if one.good and one.answer["status"] != "processing":
            name = one.answer["certification_id"]
            ended[name] = min(one.completed, ended.get(name, FOREVER))
    found = {}
    for name, shown in bodies(history).items():
        found[name] = ended.get(json.loads(shown["body"])["data"].get("certification_id"), FOREVER)
    return found


@rule("A notice is missed only by an endpoint that was disabled, was created later, or subscribed to its type later.")
def notices_are_missed_rightly(history):
    if history.facts.get("clock_moved") or "wall" not in history.facts:
        return
    found, arisen = {one.id: one for one in endpoints(history)}, since_when(history)
    for account in accounts(history):
        for notice in account.list("notice list"):
            # It arises with its transaction, which may commit long after the time that it states.
            start = datetime.datetime.fromisoformat(notice["created_at"]).timestamp() - history.facts["wall"] - EFFECT
            end = arisen.get(notice["notice_id"], FOREVER)
            for state in notice["deliveries"]:
                endpoint = found.get(state["endpoint_id"])
                if state["status"] != "missed" or not endpoint:
                    continue
                since = endpoint.create.answer["created_at"]
                if endpoint.create.client != "setup":
                    since = shifted(since, int(EFFECT * 1e6))
                types = [(None, ",".join(endpoint.types or ["all"]))] + [
                    (one, one.arguments["types"]) for one in endpoint.commands if "types" in one.arguments]
                subscribed = all(given == "all" or notice["type"] in given.split(",")
                                 for given in possible_values(types, start, end, EFFECT))
                if subscribed and notice["created_at"] >= since and \
                        not may_have_been_disabled(history, account, endpoint, start, end):
                    yield f"{account.name}: {notice['notice_id']} of {notice['created_at']}: {state}; {endpoint.create}"


@rule("An endpoint is disabled in the end only by a command that may have come last, or by notices that failed.")
def endpoints_are_disabled_rightly(history):
    attempts = len(history.script["settings"].get("webhook.schedule", "").split(",")) + 1
    names, found = history.facts.get("names", {}), {one.id: one for one in endpoints(history)}
    for account in accounts(history):
        for listed in account.list("webhook list"):
            endpoint = found.get(listed["endpoint_id"])
            if not endpoint or listed["enabled"] or any(one.kind == "webhook replay" and not one.refused
                                                        for one in endpoint.commands):
                continue
            enabled = max((one.invoked for one in history.of("webhook enable") if one.good and
                           names.get(one.arguments["endpoint"]) == endpoint.id), default=0.0)
            by_command = any(one.kind == "webhook disable" and not one.refused and
                             (not one.good or one.completed >= enabled) for one in endpoint.commands)
            if not by_command and failures(account, endpoint, attempts) < ATTEMPTS:
                yield f"{account.name}: {listed}, enabled at {enabled:.3f}"


@rule("An endpoint that was deleted receives nothing any more, once what was under way is over.")
def deleted_endpoints_receive_nothing(history):
    calm = max((fault.ended for fault in history.faults), default=0.0)
    for endpoint in endpoints(history):
        deleted = min((one.completed for one in endpoint.commands if one.kind == "webhook delete" and one.good and
                       not history.may_be_lost(one)), default=FOREVER)
        for one in history.deliveries:
            if one["receiver"] in endpoint.receivers and one["at"] > max(deleted, calm) + UNDER_WAY:
                yield f"{endpoint.id}, deleted at {deleted:.3f}, received {one['record']} at {one['at']:.3f}"


@rule("In the end no notice waits for an endpoint that is enabled.")
def no_notice_waits(history):
    for account in accounts(history):
        enabled = {one["endpoint_id"] for one in account.list("webhook list") if one["enabled"]}
        for notice in account.list("notice list"):
            for state in notice["deliveries"]:
                if state["status"] == "waiting" and state["endpoint_id"] in enabled:
                    yield f"{account.name}: {notice['notice_id']} {notice['type']}: {state}"


@rule("An endpoint receives only the types to which it subscribes, unless they were replayed.")
def only_subscribed_types_are_sent(history):
    owners = {receiver: one for one in endpoints(history) for receiver in one.receivers}
    replayed = {(state["endpoint_id"], notice["notice_id"]) for account in accounts(history)
                for notice in account.list("notice list") for state in notice["deliveries"] if state["replayed_at"]}
    for one in history.deliveries:
        endpoint, record = owners.get(one["receiver"]), one["record"]
        if endpoint and endpoint.lasting and endpoint.types and record["type"] not in endpoint.types and \
                record["type"] != "webhook.test" and (endpoint.id, record["id"]) not in replayed:
            yield f"{endpoint.id}, for {endpoint.types}, received {record}"


@rule("Without a fault a notice is sent as often as its attempts are listed.")
def attempts_are_counted(history):
    if history.faults:
        return
    sent = Counter((one["receiver"], one["record"]["id"]) for one in history.deliveries)
    found = {one.id: one for one in endpoints(history)}
    for account in accounts(history):
        for notice in account.list("notice list"):
            for state in notice["deliveries"]:
                endpoint = found.get(state["endpoint_id"])
                if not endpoint or not endpoint.lasting or state["replayed_at"]:
                    continue
                count = sum(sent[receiver, notice["notice_id"]] for receiver in endpoint.receivers)
                if count > state["attempts"]:
                    yield f"{account.name}: {notice['notice_id']} was sent {count} times: {state}"


def signature(secret, one):
    text = one["timestamp"].encode() + b"." + one["body"].encode()
    return "v1=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()


@rule("A delivery is signed with secrets of its endpoint, and with the newest one if its cause came after that.")
def signatures_are_right(history):
    owners = {receiver: one for one in endpoints(history) for receiver in one.receivers}
    for one in history.deliveries:
        endpoint = owners.get(one["receiver"])
        if not endpoint:
            continue
        given = (one["signature"] or "").split(",")
        right = {signature(secret, one) for made, secret, _ in endpoint.secrets if made.invoked <= one["at"]}
        unknown = [made for made in endpoint.unknown if made.invoked <= one["at"]]
        wrong = [text for text in given if text not in right]
        if len(given) > 2 or len(set(given)) != len(given) or len(wrong) > len(unknown):
            yield f"{endpoint.id}: {len(given)} signatures, {len(wrong)} of no known secret, of {one['record']}"
        start = begun(history, one["record"])
        newest = endpoint.certain_secret(start) if start and not unknown else None
        if newest and max(version for made, _, version in endpoint.secrets if made.invoked <= one["at"]) == newest[0]:
            if given[0] != signature(newest[2], one):
                yield f"{endpoint.id}: {one['record']} is not signed with version {newest[0]} first"
            former = [signature(secret, one) for _, secret, version in endpoint.secrets if version == newest[0] - 1]
            if not set(given[1:]) <= set(former):
                yield f"{endpoint.id}: {one['record']} is also signed with a secret that had ended"


@rule("A test delivery is sent once, only to the endpoint for which it was requested, once for each request.")
def tests_are_sent_once(history):
    for endpoint in endpoints(history):
        sent = [one for one in history.deliveries if one["record"]["type"] == "webhook.test"
                and one["record"]["data"]["endpoint_id"] == endpoint.id]
        requested = [one for one in endpoint.commands if one.kind == "webhook test" and not one.refused]
        if len(sent) > len(requested) or len({one["record"]["id"] for one in sent}) != len(sent):
            yield f"{endpoint.id}: {len(requested)} tests were requested, {len(sent)} were sent"
        for one in sent:
            if one["receiver"] not in endpoint.receivers:
                yield f"{endpoint.id}: its test {one['record']['id']} went to receiver {one['receiver']}"
        for one in requested:
            if one.good and one.answer["delivered"] and not any(
                    found["record"]["id"] == one.answer["notice_id"] and one.invoked <= found["at"] <= one.completed and
                    200 <= found["status"] < 300 for found in sent):
                yield f"{one}: nothing arrived"


# ---- causes ----


@rule("Each certification that ended has one notice with its outcome, and no other has one.")
def certifications_send_one_notice(history):
    for account in readable(history):
        found = {}
        for notice in notices_of(history, account, "certification.completed", "certification.failed"):
            found.setdefault(notice["data"]["certification_id"], []).append(notice)
        for name, (chain, item) in certifications_of(history, account).items():
            sent = found.pop(name, [])
            expected = [] if item["status"] == "processing" else ["certification." + item["status"]]
            if [one["type"] for one in sent] != expected:
                yield f"{account.name}: {name} of {chain} is {item['status']}; notices {sent}"
            for one in sent:
                if (one["mode"], one["data"]["event_count"], one["data"].get("verification_code")) != \
                        (item["mode"], item["event_count"], item["verification_code"]):
                    yield f"{account.name}: {one} of {item}"
        for name, sent in found.items():
            yield f"{account.name}: {sent} of {name}, which is not listed"


def crossings(account, credits):
    """Returns [(place of the state, balance)] of the downward crossings of a threshold."""
    found = []
    for place, state in enumerate(account.states[1:], 1):
        if account.states[place - 1].balance > credits >= state.balance:
            found.append((place, credits if state.cause["kind"] == "events" else state.balance))
    return found


@rule("balance.low is sent once for each time the balance falls from above a threshold to it or below, with the "
      "balance right after that.")
def thresholds_send_one_notice(history):
    for account in readable(history):
        found = {}
        for notice in notices_of(history, account, "balance.low"):
            data = notice["data"]
            found.setdefault(data["threshold_id"], Counter())[data["balance"]] += 1
        for one in account.of("threshold create"):
            if one.good:
                yield from check_threshold(history, account, one, found.pop(one.answer["threshold_id"], Counter()))
        if found and not any(not one.good and not one.refused for one in account.of("threshold create")):
            yield f"{account.name}: notices of {found}, which no command created"


def check_threshold(history, account, create, found):
    deletes = [one for one in account.of("threshold delete") if not one.refused and
               account.names.get(one.arguments["threshold"]) == create.answer["threshold_id"]]
    first = bisect.bisect_right(account.certain, create.invoked) - 1
    surely = bisect.bisect_right(account.possible, create.completed) - 1
    until = min((bisect.bisect_right(account.certain, one.invoked) - 1 for one in deletes), default=FOREVER)
    last = min((bisect.bisect_right(account.possible, one.completed) - 1 for one in deletes if one.good),
               default=FOREVER)
    all_of_them = crossings(account, create.arguments["credits"])
    possible = Counter(balance for place, balance in all_of_them if first < place <= last)
    certain = Counter(balance for place, balance in all_of_them if surely < place <= until)
    if found - possible or certain - found:
        yield (f"{create}: notices with {sorted(found.elements())}; possible were {sorted(possible.elements())}, "
               f"certain {sorted(certain.elements())}")


@rule("In the end a threshold is armed exactly if the balance is above it.")
def thresholds_are_armed(history):
    for account in accounts(history):
        if account.was_read("credits list"):
            balance = account.movements[-1]["balance"] if account.movements else 0
            for one in account.list("threshold list"):
                if one["armed"] != (balance > one["credits"]):
                    yield f"{account.name}: {one}, balance {balance}"


def settlements(account):
    """Returns [(events settled so far, balance after it)]."""
    return [(state.settled, state.balance) for before, state in zip(account.states, account.states[1:])
            if state.settled > before.settled]


@rule("balance.exhausted is sent once for each time the first event is registered as unpaid.")
def exhaustions_send_one_notice(history):
    for account in readable(history):
        found = notices_of(history, account, "balance.exhausted")
        total = len(account.unpaid)
        emptied = [(settled, balance) for settled, balance in settlements(account) if settled < total]
        least = (total > 0) + len({settled for settled, balance in emptied if balance > 0})
        most = (total > 0) + len({settled for settled, _ in emptied})
        if not least <= len(found) <= most:
            yield f"{account.name}: {len(found)} notices, at least {least} and at most {most} exhaustions"
        channels = {place[0] for place in account.unpaid}
        for one in found:
            if one["data"]["channel_id"] not in channels:
                yield f"{account.name}: {one} names a channel without unpaid events"


def limits_reached(account, limit):
    """Returns how often the unpaid events certainly were as many as their limit. A settlement that leaves credits
    settled them all."""
    if not limit:
        return 0
    count, before = 0, 0
    for settled, balance in settlements(account):
        count += balance > 0 and settled - before >= limit
        before = settled
    return count + (len(account.unpaid) - before >= limit)


@rule("events.unpaid_limit_reached is sent when the limit of unpaid events is reached, once each time.")
def unpaid_limits_send_notices(history):
    for account in readable(history):
        found = notices_of(history, account, "events.unpaid_limit_reached")
        limits = account.unpaid_limits(0.0, FOREVER)
        changed = any("unpaid_limit" in one.arguments for one in account.of("account set"))
        for one in found:
            data = one["data"]
            if not data["unpaid_limit"] == data["unpaid_events"] == data["unpaid_credits"] or \
                    (not changed and data["unpaid_limit"] not in limits):
                yield f"{account.name}: {one}, limits {limits}"
        if len(found) > len(settlements(account)) + 1 and not changed:
            yield f"{account.name}: {len(found)} notices with {len(settlements(account))} settlements"
        refused = [one for one in history.of("register")
                   if one.status == 402 and one.arguments["chain"] in account.live]
        if refused and not found and not changed and min(limits) > 0:
            yield f"{refused[0]}, but no notice"
        due = 0 if changed else limits_reached(account, max(limits))
        if len(found) < due:
            yield f"{account.name}: {len(found)} notices, but a limit of {limits} was reached {due} times"
        if len(account.unpaid) >= min(limits) > 0 and not settlements(account) and not found and not changed:
            yield f"{account.name}: {len(account.unpaid)} events are unpaid, limits {limits}, no notice"


@rule("consumption.limit_reached is sent once for each limit and period in which its maximum is reached.")
def limits_send_one_notice(history):
    found = {}
    if len(readable(history)) != len(accounts(history)):
        return
    for account in readable(history):
        for one in notices_of(history, account, "consumption.limit_reached"):
            found.setdefault((one["data"]["limit_id"], one["data"]["period_key"]), []).append((account, one["data"]))
    names = history.facts.get("names", {})
    for (limit_id, period), sent in found.items():
        if len(sent) > 1:
            yield f"{limit_id}: {len(sent)} notices of {period}"
    limits = {one.id: one for one in limits_of(history)}
    for limit in limits.values():
        due = {limit.key_of(event) for place, event, start, end in placed(history, limit)
               if place >= limit.max and end < FOREVER and limit.certain(start, end)}
        for period in due - {period for limit_id, period in found if limit_id == limit.id}:
            yield f"{limit.create}: no notice of {period}"
    unknown = any(not one.good and not one.refused for one in history.of("limit create"))
    for (limit_id, period), sent in found.items():
        limit, (account, data) = limits.get(limit_id), sent[0]
        if not limit:
            if not unknown:
                yield f"{data}: no such limit was created"
            continue
        expected = {"scope": "key" if limit.key else "channel", "channel_id": names.get(limit.channel),
                    "key_id": names.get(limit.key), "period": limit.period, "max_events": limit.max,
                    "action": "block" if limit.block else "warn"}
        if {name: data[name] for name in expected} != expected or limit.channel.split("/")[0] != account.name:
            yield f"{account.name}: {data}, but it is {expected}"
        if most_events(history, limit, FOREVER) < limit.max:
            yield f"{account.name}: {data}, but only {most_events(history, limit, FOREVER)} events can count"


@rule("Each automatic purchase that ended has one notice of the top-up, which states what was bought and the balance "
      "after it; a failure turns the top-up off.")
def topups_send_one_notice(history):
    for account in readable(history):
        sent = notices_of(history, account, "recharge.auto_completed", "recharge.auto_failed")
        sales = {one["sale_id"]: one for one in account.list("purchase list")}
        after = {state.cause["reference"]: state.balance for state in account.states
                 if state.cause and state.cause["kind"] == "purchase"}
        by_sale = {}
        for one in sent:
            data = one["data"]
            by_sale.setdefault(data["recharge_id"], []).append(one["type"])
            sale = sales.get(data["recharge_id"])
            if data["recharge_id"] is None:
                if one["type"] != "recharge.auto_failed" or data["credits"] is not None:
                    yield f"{account.name}: {one}"
                continue
            if not sale or not sale["automatic"] or (data["pack_id"], data["credits"], data["amount"]) != \
                    (sale["pack_id"], sale["credits"], sale["amount"]):
                yield f"{account.name}: {one} of {sale}"
            elif one["type"] == "recharge.auto_completed" and after.get(data["recharge_id"]) != data["balance"]:
                yield f"{account.name}: {one}, but the balance was {after.get(data['recharge_id'])}"
        for sale_id, sale in sales.items():
            if not sale["automatic"]:
                continue
            count = len(by_sale.get(sale_id, ()))
            over = sale["payment"] and sale["payment"]["state"] == "over" and sale["provider"] != "manual"
            most, least = (0, 0) if sale["state"] == "rejected" else (1, int(bool(over)))
            if not least <= count <= most:
                yield f"{account.name}: {sale} has the notices {by_sale.get(sale_id)}"
        reasons = [one["data"]["reason"] for one in sent if one["type"] == "recharge.auto_failed"]  # newest first
        for one in account.of("topup show", closing=True):
            if one.good and one.answer["reason"] and reasons[:1] != [one.answer["reason"]]:
                yield f"{one}, but the notices state {reasons}"
        on = sum(not one.refused for one in account.of("topup set", "topup on"))
        failures = sum(one["type"] == "recharge.auto_failed" for one in sent)
        if failures > on:
            yield f"{account.name}: {failures} failures of a top-up that was turned on {on} times"
