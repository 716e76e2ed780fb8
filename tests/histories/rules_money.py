"""Rules about balances, purchases, top-ups and limits. account_model.py says what they know of an account."""

import functools
from collections import Counter

from account_model import accounts, final_list, number_of, possible_values
from declarations import Declaration
from history import FOREVER, rule

COUNTED = ("events", "unpaid_events", "content_bytes", "credits", "fees", "refunds", "events_certified",
           "certifications_requested", "certifications_completed", "certifications_failed")
COLUMNS = {"events": "events", "settlement": "settlements", "purchase": "purchases", "refund": "returns",
           "revert": "returns", "fee": "fees", "fee_refund": "fee_refunds", "adjustment": "adjustments"}
BACK = {"refunded": "refund", "reverted": "revert"}


def code_of(one):
    return one.answer.get("code") if isinstance(one.answer, dict) and one.status >= 400 else None


def every_complete(history):
    return [account for account in accounts(history) if account.complete]


# ---- the ledger ----


@rule("An account's balance is the sum of its movements, each of which states the balance after it.")
def movements_add_up(history):
    for account in accounts(history):
        balance, last = 0, 0
        for one in account.movements:
            balance += one["credits"]
            if one["balance"] != balance or one["number"] <= last:
                yield f"{account.name}: movement {one} after the balance {balance - one['credits']}"
                return
            last = one["number"]


@rule("In the end the balance less the unpaid events is what was paid, less one credit for each live event.")
def balance_is_paid_less_registered(history):
    for account in every_complete(history):
        live = sum(len(history.final[chain]) for chain in account.live)
        other = sum(one["credits"] for one in account.movements if one["kind"] not in ("events", "settlement"))
        unpaid = sum(event["status"] == "unpaid" for chain in account.live for event in history.final[chain])
        balance = account.movements[-1]["balance"] if account.movements else 0
        if balance - unpaid != other - live:
            yield f"{account.name}: balance {balance}, {unpaid} unpaid, {other} credits, {live} live events"


@rule("A live event is paid for by exactly one movement: the one of its run, or a settlement.")
def each_event_is_paid_once(history):
    for account in every_complete(history):
        ids = {event["channel_id"]: (chain, len(history.final[chain])) for chain in account.live
               for event in history.final[chain][:1]}
        seen = Counter()
        for one in account.movements:
            if one["kind"] != "events":
                continue
            chain, length = ids.get(one["channel_id"], (None, 0))
            if one["last_sequence"] > length:
                yield f"{account.name}: {one} is for events that {chain} does not have"
            if one["last_sequence"] - one["first_sequence"] + 1 != -one["credits"]:
                yield f"{account.name}: {one} does not take one credit each"
            seen.update((one["channel_id"], number)
                        for number in range(one["first_sequence"], one["last_sequence"] + 1))
        for place, count in seen.items():
            if count > 1:
                yield f"{account.name}: {place} was paid for {count} times"
        statuses = {(event["channel_id"], event["sequence"]): event["status"] for chain in account.live
                    for event in history.final[chain]}
        settled = sum(status == "registered" and place not in seen for place, status in statuses.items())
        taken = -sum(one["credits"] for one in account.movements if one["kind"] == "settlement")
        if settled != taken:
            yield f"{account.name}: {settled} events were settled with {taken} credits"
        for place, status in statuses.items():
            if place in seen and status != "registered":
                yield f"{account.name}: {place} is paid for and {status}"


@rule("The status that an acknowledgment states is the one by which the event was charged.")
def status_is_as_charged(history):
    for account in every_complete(history):
        for one in history.of("register"):
            if one.status == 201 and one.arguments["chain"] in account.live:
                place = (one.answer["channel_id"], one.answer["sequence"])
                if (place in account.paid) != (one.answer["status"] == "registered"):
                    yield f"{one} but its movement says otherwise"


@rule("Unpaid events are settled oldest first.")
def oldest_is_settled_first(history):
    for account in every_complete(history):
        settled, open_ones = [], []
        for chain in account.live:
            for event in history.final[chain]:
                place = (event["channel_id"], event["sequence"])
                if place not in account.paid:
                    (open_ones if event["status"] == "unpaid" else settled).append(place)
        oldest = min(open_ones, key=lambda place: account.acked.get(place, FOREVER), default=None)
        for place in settled:
            if any(place[0] == one[0] and place[1] > one[1] for one in open_ones):
                yield f"{account.name}: {place} was settled before an older event of its chain"
            if oldest and account.acked.get(oldest, FOREVER) < account.invoked[place]:
                yield f"{account.name}: {place} was settled, the older {oldest} was not"


@rule("Movements are made in an order that their causes allow: none before its cause was requested, none after "
      "one that was requested when it had been acknowledged.")
def movements_follow_their_causes(history):
    for account in every_complete(history):
        latest, holder = 0.0, None
        for state in account.states:
            if state.possible > latest:
                latest, holder = state.possible, state
            if state.certain < latest:
                yield (f"{account.name}: {state.cause}, acknowledged at {state.certain:.3f}, follows {holder.cause}, "
                       f"requested at {holder.possible:.3f}")


@rule("Each acknowledged command that moves credits is one movement, each refused one none, and each movement has "
      "its command.")
def commands_move_credits_once(history):
    for account in accounts(history):
        if not account.was_read("credits list"):
            continue
        made = Counter(one["reference"] for one in account.movements if one["kind"] in ("adjustment", "revert")
                       and number_of(one["reference"]) is not None)
        for one in account.of("credits add"):
            count = made.pop(one.arguments["reason"], 0)
            if count > 1 or (one.good and count != 1) or (one.refused and count):
                yield f"{one}: {count} movements"
        for reason, count in made.items():
            yield f"{account.name}: {count} movements with the reason {reason}, which no command gave"
        for one in account.movements:
            command = account.by_number.get(number_of(one["reference"]))
            if command and one["kind"] in ("adjustment", "revert") and command.arguments["credits"] != one["credits"]:
                yield f"{command}: moved {one}"


@rule("A balance that was answered is one that the account had at that time, and `operational` says whether nothing "
      "is unpaid and the balance is not negative.")
def balances_are_of_their_time(history):
    for account in every_complete(history):
        for one in balance_answers(history, account):
            balance, unpaid = one.answer["balance"], one.answer["unpaid_events"]
            if one.answer["operational"] != (balance >= 0 and unpaid == 0):
                yield f"{one}: operational"
            if not account.may_have_been(one, lambda had, least, most: had == balance and least <= unpaid <= most):
                near = [(state.number, state.balance, state.settled)
                        for state in account.possible_states(one.invoked, one.completed)]
                yield (f"{one}; possible were (movement, balance, settled) {near[:8]} and "
                       f"{account.unpaid_bounds(one.invoked, one.completed)} events registered unpaid")


def balance_answers(history, account):
    found = [one for one in history.of("balance") if one.good and one.arguments["account"] == account.name]
    found += [one for one in account.of("account show", "credits add", "purchase pay", "purchase revert")
              if one.good and "balance" in one.answer]
    return [one for one in found if not history.may_be_lost(one)]


@rule("Two balances that one client reads one after the other are of states in that order.")
def balances_do_not_go_back(history):
    for account in every_complete(history):
        place = {}
        for one in sorted(balance_answers(history, account), key=lambda one: one.invoked):
            before = max((number for completed, number in place.values() if completed <= one.invoked), default=0)
            balance, unpaid = one.answer["balance"], one.answer["unpaid_events"]
            least, most = account.unpaid_bounds(one.invoked, one.completed)
            fitting = [number for number, state in enumerate(account.states)
                       if state.balance == balance and least <= unpaid + state.settled <= most and
                       account.possible[number] <= one.completed and number >= before]
            if not fitting:
                yield f"{one}: an answer before it was of state {before} or a later one"
                return
            place[one.number] = (one.completed, fitting[0])


@rule("The last answers agree: balance, unpaid events, and the lists of events and movements.")
def last_answers_agree(history):
    for account in every_complete(history):
        unpaid = sum(event["status"] == "unpaid" for chain in account.live for event in history.final[chain])
        balance = account.movements[-1]["balance"] if account.movements else 0
        for one in account.of("account show", closing=True)[-1:]:
            if one.good and (one.answer["balance"], one.answer["unpaid_events"]) != (balance, unpaid):
                yield f"{one}, but the lists say {balance} and {unpaid} unpaid"


# ---- refusals ----


@rule("No answer states more unpaid events than a limit that may have been in force.")
def unpaid_stays_within_the_limit(history):
    for account in accounts(history):
        for one in balance_answers(history, account):
            if one.answer["unpaid_events"] > max(account.unpaid_limits(0.0, one.completed)):
                yield str(one)


@rule("A registration is refused for the limit of unpaid events only when that limit may have been reached, and no "
      "unpaid event is accepted when it certainly was.")
def unpaid_limit_refuses_rightly(history):
    for account in every_complete(history):
        for one in history.of("register"):
            if one.arguments.get("chain") not in account.live:
                continue
            limits = account.unpaid_limits(one.invoked, one.completed)
            if one.status == 402 and not history.may_be_lost(one) and not account.may_have_been(
                    one, lambda had, _, most: had <= 0 and most >= min(limits)):
                yield f"{one}: it cannot have been reached; limits {limits}"
            if one.status == 201 and one.answer["status"] == "unpaid" and not account.may_have_been(
                    one, lambda had, least, _: had <= 0 and least <= max(limits)):
                yield f"{one}: it was certainly reached; limits {limits}"


def fee_of(history):
    return int(history.script["settings"].get("certification.fee", 0))


@rule("A live certification is refused for the balance only when the account may have been short of credits, and "
      "accepted only when it may have been operational and able to pay the fee.")
def certifications_need_a_balance(history):
    fee = fee_of(history)
    for account in every_complete(history):
        for one in history.of("certify"):
            if one.arguments.get("chain") not in account.live:
                continue
            code = one.answer.get("code") if one.answer else None
            if one.refused and history.may_be_lost(one):
                continue
            if code == "account_not_operational":
                right = account.may_have_been(one, lambda had, _, most: had < 0 or most > 0)
            elif code == "insufficient_balance":
                right = account.may_have_been(one, lambda had, least, most: had < fee)
            elif one.status == 202 and "Idempotent-Replayed" not in one.headers:
                right = account.may_have_been(one, lambda had, least, most: had >= fee and least == 0)
            else:
                continue
            if not right:
                yield str(one)


class Limit:
    """A consumption limit, as far as commands say."""

    def __init__(self, history, create):
        self.create, self.id, arguments = create, create.answer["limit_id"], create.arguments
        self.channel = arguments.get("channel") or arguments["key"].rsplit("/", 2)[0]
        self.key = arguments.get("key")
        self.period, self.max, self.block = arguments["period"], arguments["max"], arguments["action"] == "block"
        names = {name for name, value in history.facts.get("names", {}).items() if value == self.id}
        self.deletes = [one for one in history.of("limit delete")
                        if one.arguments["limit"] in names and not one.refused]

    def certain(self, start, end):
        """Whether it existed throughout a time."""
        return self.create.completed <= start and not any(one.invoked <= end for one in self.deletes)

    def possible(self, start, end):
        return self.create.invoked <= end and not any(one.good and one.completed <= start for one in self.deletes)

    def key_of(self, event):
        return event["received_at"][:10 if self.period == "day" else 7]


def limits_of(history):
    return [Limit(history, one) for one in history.of("limit create") if one.good]


def placed(history, limit):
    """Returns (place within its period, event, its first request, its acknowledgment) of the limit's live events.
    For a limit of a key: of those that its key certainly registered."""
    chain = limit.channel + "/live"
    keys = {}
    for one in history.of("register"):
        if one.status == 201 and one.arguments["chain"] == chain:
            keys[one.answer["sequence"]] = one
    count = Counter()
    for event in history.final.get(chain, ()):
        first = keys.get(event["sequence"])
        if limit.key and (not first or first.arguments["key"] != limit.key):
            continue
        count[limit.key_of(event)] += 1
        sent = history.registrations.get(chain, {}).get(event["client_ref"], ())
        yield (count[limit.key_of(event)], event, min((one.invoked for one in sent), default=0.0),
               first.completed if first else FOREVER)


@rule("A limit that blocks lets no more events of its channel or key pass in a period than it allows.")
def blocking_limits_hold(history):
    for limit in limits_of(history):
        if limit.block:
            for place, event, start, end in placed(history, limit):
                if place > limit.max and end < FOREVER and limit.certain(start, end):
                    yield f"{limit.create}: {event['event_id']} is number {place} of {limit.key_of(event)}"


@rule("A registration is refused for a limit only when a blocking limit may have been reached.")
def limits_refuse_rightly(history):
    limits = [limit for limit in limits_of(history) if limit.block]
    unknown = [one for one in history.of("limit create") if not one.good and not one.refused]
    for one in history.of("register"):
        if one.status != 422 or history.may_be_lost(one) or any(create.invoked <= one.completed for create in unknown):
            continue
        chain, key = one.arguments["chain"], one.arguments["key"]
        if not any(limit.possible(one.invoked, one.completed) and limit.channel + "/live" == chain
                   and limit.key in (None, key) and most_events(history, limit, one.completed) >= limit.max
                   for limit in limits):
            yield str(one)


def most_events(history, limit, end):
    """Returns how many live events a limit may have counted by a time."""
    chain = limit.channel + "/live"
    refs = {one.arguments["client_ref"] for one in history.of("register") if one.arguments.get("chain") == chain
            and one.invoked <= end and limit.key in (None, one.arguments["key"])}
    return sum(event["client_ref"] in refs for event in history.final.get(chain, ()))


TEST_CERTIFICATIONS, TEST_EVENTS, TEST_BYTES = 20, 10_000, 100_000_000  # of an account on a day


@rule("A key is refused for its rate only when it, or all keys of its account, may have made as many requests as "
      "the bucket holds.")
def rates_refuse_rightly(history):
    settings = history.script["settings"]
    for one in history.operations:
        if code_of(one) != "rate_limited" or "key" not in one.arguments:
            continue
        account, mode = owner_and_mode(one)
        capacity = {"live": 4 * int(settings.get("rate.live", 1_000_000)),
                    "test": int(settings.get("rate.test", 1_000_000))}[mode]
        before = [other for other in history.operations if other.invoked <= one.completed]
        made = sum(other.arguments.get("key") == one.arguments["key"] for other in before)
        of_account = sum(str(other.arguments.get("key")).startswith(account + "/") for other in before)
        if made < capacity and of_account < 4 * capacity:
            yield f"{one}: {made} requests, capacity {capacity}"


@rule("A test certification is refused for the quota of its account only when that may be used up.")
def quotas_refuse_rightly(history):
    asked = history.of("certify", "certification request")
    for one in asked:
        if code_of(one) == "test_quota_exceeded":
            account, mode = owner_and_mode(one)
            before = sum(not other.refused and other.invoked <= one.completed and
                         owner_and_mode(other) == (account, "test") for other in asked)
            if mode != "test" or before < TEST_CERTIFICATIONS:
                yield f"{one}: {before} were requested"


@rule("A test registration is refused for the quota of its account only when that may be used up, and a day has no "
      "more test events than that.")
def test_events_have_a_quota(history):
    asked = [one for one in history.of("register") if one.arguments["chain"].endswith("/test")]
    for one in asked:
        if code_of(one) == "test_quota_exceeded":
            account, _ = owner_and_mode(one)
            before = [other for other in asked if not other.refused and other.invoked <= one.completed
                      and owner_and_mode(other)[0] == account]
            size = sum(size_of(other) for other in [*before, one])
            if len(before) < TEST_EVENTS and size <= TEST_BYTES:
                yield f"{one}: {len(before)} of {size} bytes were requested"
    if not history.facts.get("clock_moved"):
        days = Counter((chain.split("/")[0], event["received_at"][:10]) for chain, events in history.final.items()
                       if chain.endswith("/test") for event in events)
        for place, count in days.items():
            if count > TEST_EVENTS:
                yield f"{place}: {count} test events"


def owner_and_mode(one):
    """Returns the account of a request and the mode of its chain."""
    chain = one.arguments.get("chain") or f"{one.arguments['channel']}/{one.arguments['mode']}"
    return chain.split("/")[0], chain.rsplit("/", 1)[1]


# ---- purchases ----


def was_paid(purchase):
    return purchase["paid_at"] is not None


@rule("A purchase adds its credits once when it is paid, takes them back once when it is refunded or reverted, and "
      "is otherwise no movement.")
def purchases_move_credits_once(history):
    for account in accounts(history):
        if not account.was_read("credits list") or not account.was_read("purchase list"):
            continue
        found = {}
        for one in account.movements:
            if one["kind"] in ("purchase", "refund", "revert") and str(one["reference"]).startswith("sal_"):
                found.setdefault(one["reference"], []).append((one["kind"], one["credits"]))
        for sale in account.list("purchase list"):
            expected = [("purchase", sale["credits"])] if was_paid(sale) else []
            if sale["state"] in BACK and was_paid(sale):
                expected.append((BACK[sale["state"]], -sale["credits"]))
            if found.pop(sale["sale_id"], []) != expected:
                yield f"{account.name}: {sale} should have moved {expected}"
            if was_paid(sale) != (sale["state"] in ("paid", *BACK)):
                yield f"{account.name}: {sale}: state and time of payment disagree"
        for sale_id, moved in found.items():
            yield f"{account.name}: {moved} for {sale_id}, which is not listed"


def cents(amount):
    return round(100 * float(amount))


@rule("Purchases are those that were requested, each once, with the credits and the price of their pack, and those "
      "of the top-up.")
def purchases_were_requested(history):
    packs = {one["pack_id"]: one for one in final_list(history, "pack list")}
    for account in accounts(history):
        if not account.was_read("purchase list"):
            continue
        listed = {one["sale_id"]: one for one in account.list("purchase list")}
        requested = account.of("purchase create")
        answered = [one.answer["sale_id"] for one in requested if one.good]
        own = {sale for sale, one in listed.items() if not one["automatic"]}
        if len(set(answered)) != len(answered) or not set(answered) <= own:
            yield f"{account.name}: purchases {sorted(answered)} were acknowledged, {sorted(own)} are listed"
        if len(own) > sum(not one.refused for one in requested):
            yield f"{account.name}: {len(own)} purchases are listed, {len(requested)} were requested"
        if len(own) != len(listed) and not account.of("topup set"):
            yield f"{account.name}: automatic purchases without a top-up: {sorted(set(listed) - own)}"
        for sale in listed.values():
            pack = packs.get(sale["pack_id"])
            if cents(sale["total"]) != cents(sale["amount"]) + cents(sale["tax"]):
                yield f"{account.name}: {sale}: its total is not its amount and its tax"
            if pack and (pack["credits"], pack["price"], pack["currency"]) != \
                    (sale["credits"], sale["amount"], sale["currency"]):
                yield f"{account.name}: {sale} of {pack}"


@rule("What was acknowledged of a purchase stays: a paid one was paid, a canceled one is not paid by an operator, a "
      "refunded or reverted one stays so.")
def purchases_keep_their_state(history):
    for account in accounts(history):
        listed = {one["sale_id"]: one for one in account.list("purchase list")}
        for one in account.of("purchase pay", "purchase cancel", "purchase refund", "purchase revert"):
            sale = listed.get(one.answer["sale_id"]) if one.good else None
            if not sale:
                continue
            state = one.answer["state"]
            if (state == "paid" and not was_paid(sale)) or (state in BACK and sale["state"] != state):
                yield f"{one}, but in the end {sale}"
            if state == "canceled" and sale["state"] != "canceled" and sale["sale_id"] not in account.charged:
                yield f"{one}, but in the end {sale}"


@rule("The payment provider charges a purchase once, with its total, and only one that is listed and paid.")
def sales_are_charged_once(history):
    listed = {one["sale_id"]: one for account in accounts(history) for one in account.list("purchase list")}
    if not all(account.was_read("purchase list") for account in accounts(history)):
        return
    for sale_id, count in Counter(one["sale"] for one in history.facts.get("charges", ())).items():
        if count > 1:
            yield f"{sale_id} was charged {count} times"
        if sale_id not in listed or listed[sale_id]["state"] not in ("paid", *BACK):
            yield f"{sale_id} was charged: {listed.get(sale_id)}"
    charged = {one["sale"] for one in history.facts.get("charges", ())}
    for sale in listed.values():
        if sale["automatic"] and was_paid(sale) and sale["sale_id"] not in charged:
            yield f"{sale} was paid, but not charged"
    for charge in history.facts.get("charges", ()):
        sale = listed.get(charge["sale"])
        if sale and charge["amount"] != cents(sale["total"]):
            yield f"{sale} was charged {charge['amount']}"
    for sale_id, count in Counter(history.facts.get("refunds", ())).items():
        if count > 1 or listed[sale_id]["state"] != "refunded":
            yield f"{sale_id} was refunded {count} times by the provider: {listed[sale_id]}"


# ---- top-up ----


def topup_writes(account, name):
    return [(one, one.arguments[name]) for one in account.of("topup set")]


@rule("The automatic top-up buys only after the balance was below its threshold, one purchase at a time.")
def topup_buys_below_its_threshold(history):
    for account in every_complete(history):
        thresholds = [value for _, value in topup_writes(account, "threshold")]
        bought = {one["sale_id"] for one in account.list("purchase list") if one["automatic"]}
        lowest = FOREVER
        for state in account.states:
            if state.cause and state.cause["kind"] == "purchase" and state.cause["reference"] in bought:
                if not thresholds or lowest >= max(thresholds):
                    yield (f"{account.name}: {state.cause} was bought with a balance of at least {lowest}, "
                           f"thresholds {thresholds}")
                lowest = FOREVER
            lowest = min(lowest, state.balance)


@rule("The automatic top-up buys at most as often in a day as its settings ever allowed.")
def topup_keeps_its_daily_maximum(history):
    if history.facts.get("clock_moved"):
        return
    for account in accounts(history):
        most = max((value for _, value in topup_writes(account, "daily_max")), default=0)
        days = Counter(one["created_at"][:10] for one in account.list("purchase list")
                       if one["automatic"] and one["state"] != "rejected")
        for day, count in days.items():
            if count > most:
                yield f"{account.name}: {count} automatic purchases on {day}, at most {most} were allowed"


# ---- totals ----


@functools.cache
def size_of_declared(**spec):
    return len(Declaration("", spec).content or b"")


def size_of(one):
    """Returns the bytes of the content that a registration declares."""
    return size_of_declared(**one.arguments["spec"])


def content_sizes(history, chain):
    """Returns {(client_ref, digest): bytes of the content} of what was sent to a chain."""
    found = {}
    for ref, sent in history.registrations.get(chain, {}).items():
        for one in sent:
            place = (ref, one.arguments["identity"][0])
            if "spec" in one.arguments and place not in found:
                found[place] = size_of(one)
    return found


@rule("Usage counts the events of each chain and key, those without credits, and the bytes of their contents.")
def usage_counts_events(history):
    for account in every_complete(history):
        if not account.was_read("usage"):
            continue
        totals, by_key, unpaid_ones = {}, {}, set(account.unpaid)
        for row in account.list("usage"):
            place = (row["channel_id"], row["mode"])
            totals.setdefault(place, Counter()).update({name: row[name] for name in COUNTED})
            by_key[row["key_id"]] = row["events"]
        for chain in account.chains:
            events, sizes = history.final[chain], content_sizes(history, chain)
            if not events:
                continue
            total = totals.get((events[0]["channel_id"], events[0]["mode"]), Counter())
            unpaid = sum((event["channel_id"], event["sequence"]) in unpaid_ones for event in events) \
                if chain.endswith("/live") else 0
            size = sum(sizes.get((event["client_ref"], event["hash"]), 0) for event in events)
            if (total["events"], total["unpaid_events"], total["content_bytes"]) != (len(events), unpaid, size):
                yield f"{chain}: {dict(total)}, but {len(events)} events, {unpaid} unpaid, {size} bytes"
            items = certifications_by_chain(history, account, chain)
            count = sum(item["event_count"] or 0 for item in items if item["status"] == "completed")
            if total["events_certified"] != count:
                yield f"{chain}: {dict(total)}, but {count} events were certified"
            certified = Counter(item["status"] for item in items)
            if [total["certifications_" + name] for name in ("requested", "completed", "failed")] != \
                    [certified.total(), certified["completed"], certified["failed"]]:
                yield f"{chain}: {dict(total)}, but of its certifications {dict(certified)}"
            paid = len(events) - unpaid if chain.endswith("/live") else 0
            if total["credits"] != paid + total["fees"] - total["refunds"]:
                yield f"{chain}: {dict(total)}, but {paid} events were paid"
        yield from usage_of_keys(history, account, by_key)


def usage_of_keys(history, account, by_key):
    certain, possible = Counter(), {}
    for one in history.of("register"):
        key = account.names.get(one.arguments.get("key"))
        if one.status == 201:
            certain[key] += 1
        if not one.refused:
            possible.setdefault(key, set()).add((one.arguments.get("chain"), one.arguments["client_ref"]))
    for key, events in by_key.items():
        if not certain[key] <= events <= len(possible.get(key, ())) and key in account.names.values():
            yield f"{account.name}: {key} has {events} events; acknowledged {certain[key]}"


def certifications_of(history, account):
    """Returns {certification_id: (chain, certification)} as listed in the end."""
    found = {}
    for one in history.of("certifications", closing=True):
        if one.good and one.arguments["chain"].split("/")[0] == account.name and not one.arguments["filters"]:
            found |= {item["certification_id"]: (one.arguments["chain"], item) for item in one.answer["data"]}
    return found


def certifications_by_chain(history, account, chain):
    return [item for place, item in certifications_of(history, account).values() if place == chain]


@rule("The balances by day are those of the movements.")
def history_is_of_the_movements(history):
    for account in accounts(history):
        if not account.was_read("credits list") or not account.was_read("credits history") or not account.movements:
            continue
        expected, found = Counter(), Counter()
        for one in account.movements:
            expected[COLUMNS[one["kind"]]] += one["credits"]
        days = account.list("credits history")
        for day in days:
            found.update({name: day[name] for name in set(COLUMNS.values())})
        last = max(days, key=lambda day: day["day"])["balance"] if days else None
        # Days before that of the account's creation, to which the clock may have been set back, are not listed.
        listed = days and min(one["at"] for one in account.movements) >= days[0]["day"]
        if (listed and (+expected != +found or -expected != -found)) or last != account.movements[-1]["balance"]:
            yield f"{account.name}: {dict(found)} with the last balance {last}, but the movements are {dict(expected)}"
        unpaid = sum(event["status"] == "unpaid" for chain in account.live for event in history.final[chain])
        if days and account.complete and max(days, key=lambda day: day["day"])["unpaid_events"] != unpaid:
            yield f"{account.name}: {days[-1]}, but {unpaid} events are unpaid"


@rule("A live certification costs its fee once, and a failed one is refunded once.")
def fees_are_charged_once(history):
    fee = fee_of(history)
    for account in every_complete(history):
        moved = {}
        for one in account.movements:
            if one["kind"] in ("fee", "fee_refund"):
                moved.setdefault(one["reference"], []).append((one["kind"], one["credits"]))
        for name, (chain, item) in certifications_of(history, account).items():
            expected = [("fee", -fee)] if fee and chain.endswith("/live") else []
            if expected and item["status"] == "failed":
                expected.append(("fee_refund", fee))
            if moved.pop(name, []) != expected:
                yield f"{account.name}: {name} ({chain}, {item['status']}) should have moved {expected}"
        for name, other in moved.items():
            yield f"{account.name}: {other} for {name}, which is not listed"


__all__ = ["certifications_of", "limits_of", "most_events", "placed", "possible_values"]
