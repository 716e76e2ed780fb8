"""Rules about who may do and see what: keys, suspensions, disabled accounts, other chains; and about configurations
and the audit log, which say what operators did."""

import hashlib
import json
import re
from collections import Counter

from account_model import accounts, final_list, lasts, possible_values
from history import FOREVER, rule
from rules_money import code_of
from rules_nodes import touches

EFFECT = 2  # seconds within which a revocation or a suspension takes effect on every node
SOON = re.compile(r"(\d+)([smhd])")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def answered(one):
    return one.status not in (0, 408, 429) and one.status < 500


def with_key(history):
    return [one for one in history.operations if "key" in one.arguments and "chain" in one.arguments and answered(one)]


def switches(history, kind, on, off):
    """Returns {name: writes} of a state that two commands switch; False before."""
    found = {}
    for words, value in ((on, True), (off, False)):
        for one in history.of(words):
            found.setdefault(one.arguments[kind], [(None, False)]).append((one, value))
    return found


def states_at(writes, name, one):
    return possible_values(writes.get(name, [(None, False)]), one.invoked, one.completed, EFFECT)


def owners(one):
    """Returns the account and the channel of a request with a key."""
    channel = one.arguments["chain"].rsplit("/", 1)[0]
    return channel.split("/")[0], channel


# ---- keys and states ----


@rule("A revoked key is refused from two seconds after the acknowledgment on, on every node.")
def revoked_keys_are_refused(history):
    since = {one.arguments["key"]: one for one in reversed(history.of("key revoke")) if lasts(one)}
    for one in with_key(history):
        revoke = since.get(one.arguments["key"])
        late = revoke and one.invoked >= revoke.completed + EFFECT
        # A node that reads from a demoted primary does not reach the one that the revocation is on.
        if late and one.status not in (401, 403) and not touches(one, history.facts.get("split", ()), after=EFFECT):
            yield f"{one}, but {revoke}"


def expiries(history, key):
    """Returns (operation or None, seconds from its invocation or None: never) of a key."""
    found = [(None, None)]
    for one in history.of("key expire"):
        if one.arguments["key"] == key:
            soon = SOON.fullmatch(one.arguments["at"])
            found.append((one, soon and int(soon[1]) * UNITS[soon[2]]))
    return found


@rule("A key is refused as revoked only after its revocation was requested, and as invalid only once it may have "
      "expired.")
def keys_are_refused_rightly(history):
    revokes = {}
    for one in history.of("key revoke"):
        if not one.refused:
            revokes[one.arguments["key"]] = min(one.invoked, revokes.get(one.arguments["key"], FOREVER))
    for one in with_key(history):
        key = one.arguments["key"]
        if one.status != 401 or history.may_be_lost(one):
            continue
        if code_of(one) == "revoked_key":
            if revokes.get(key, FOREVER) > one.completed:
                yield str(one)
        elif not history.facts.get("clock_moved") and not any(
                made and not made.refused and seconds is not None and made.invoked + seconds <= one.completed + 0.001
                for made, seconds in expiries(history, key)):
            yield str(one)


@rule("An expired key is refused from two seconds after its time on.")
def expired_keys_are_refused(history):
    if history.facts.get("clock_moved"):
        return
    for one in with_key(history):
        writes = expiries(history, one.arguments["key"])
        ends = possible_values([(made, made and (seconds is not None) and made.completed + seconds)
                                for made, seconds in writes], one.invoked, one.completed, EFFECT)
        if all(end and end + EFFECT < one.invoked for end in ends) and one.status not in (401, 403):
            yield f"{one}: it expired at {ends}"


@rule("A suspended account or channel registers and certifies nothing from two seconds after the acknowledgment on, "
      "and a disabled account is refused everything, on every node.")
def suspensions_hold(history):
    suspended = switches(history, "account", "account suspend", "account resume") | \
        switches(history, "channel", "channel suspend", "channel resume")
    disabled = switches(history, "account", "account disable", "account enable")
    for one in with_key(history):
        if not one.good or history.may_be_lost(one):
            continue
        account, channel = owners(one)
        if states_at(disabled, account, one) == {True}:
            yield f"{one}: the account is disabled"
        if one.kind in ("register", "certify") and {True} in (states_at(suspended, account, one),
                                                              states_at(suspended, channel, one)):
            yield f"{one}: it is suspended"
    for one in history.of("certification request"):
        channel = one.arguments["channel"]
        account = channel.split("/")[0]
        if one.good and {True} in (states_at(suspended, account, one), states_at(suspended, channel, one),
                                   states_at(disabled, account, one)):
            yield f"{one}: it is suspended or disabled"


@rule("A request is refused for a suspension or a disabled account only while there may be one.")
def suspensions_refuse_rightly(history):
    suspended = switches(history, "account", "account suspend", "account resume") | \
        switches(history, "channel", "channel suspend", "channel resume")
    disabled = switches(history, "account", "account disable", "account enable")
    for one in with_key(history):
        account, channel = owners(one)
        code = None if history.may_be_lost(one) else code_of(one)
        if code == "suspended" and True not in states_at(suspended, account, one) | states_at(suspended, channel, one):
            yield str(one)
        if code == "suspended" and one.kind not in ("register", "certify"):
            yield f"{one}: reading stays possible"
        if code == "account_disabled" and True not in states_at(disabled, account, one):
            yield str(one)


# What makes and removes things, their identifier, and the list that shows them.
THINGS = (("limit create", "limit delete", "limit_id", "limit list"),
          ("threshold create", "threshold delete", "threshold_id", "threshold list"),
          ("webhook create", "webhook delete", "endpoint_id", "webhook list"),
          ("key create", None, "key_id", "key list"), ("purchase create", None, "sale_id", "purchase list"))


@rule("What was created is listed until its deletion was requested, what was deleted is not, and a revoked key is "
      "listed as revoked.")
def lists_show_what_was_made(history):
    names, by_id = history.facts.get("names", {}), {account.id: account for account in accounts(history)}
    for create, delete, member, words in THINGS:
        if not all(account.was_read(words) for account in by_id.values()):
            continue
        listed = {one[member]: one for account in by_id.values() for one in account.list(words)}
        made = {one.answer[member] for one in history.of(create) if one.good}
        if words != "purchase list" and all(one.good or one.refused for one in history.of(create)):
            for name in listed.keys() - made:
                yield f"{listed[name]}, which no command created"
        deletes = {}
        for one in history.of(delete) if delete else ():
            thing = next(one.arguments[kind] for kind in ("limit", "threshold", "endpoint") if kind in one.arguments)
            if not one.refused:
                deletes.setdefault(names.get(thing), []).append(one)
        for one in history.of(create):
            if not one.good:
                continue
            removed = deletes.get(one.answer[member], ())
            if one.answer[member] not in listed and not removed:
                yield f"{one} is not listed"
            if one.answer[member] in listed and any(other.good for other in removed):
                yield f"{one} is listed, but {removed[0]}"
        if words == "key list":
            for one in history.of("key revoke"):
                if lasts(one) and listed.get(names.get(one.arguments["key"]), {}).get("state") != "revoked":
                    yield f"{one}: {listed.get(names.get(one.arguments['key']))}"
            revoked = {names.get(one.arguments["key"]) for one in history.of("key revoke") if not one.refused}
            for name, key in listed.items():
                if key["state"] == "revoked" and name not in revoked:
                    yield f"{key}, which no command revoked"


# What a list shows as it was created.
LASTING = (("limit create", "limit_id", "limit list", ("scope", "key_id", "period", "max_events", "action")),
           ("threshold create", "threshold_id", "threshold list", ("account_id", "credits")),
           ("webhook create", "endpoint_id", "webhook list", ("account_id", "created_at")),
           ("key create", "key_id", "key list", ("channel_id", "mode", "name", "last_four", "created_at")))


@rule("A limit, a threshold, an endpoint and a key are listed as they were created, an endpoint with an address and "
      "types that it was given.")
def things_are_as_they_were_made(history):
    names = history.facts.get("names", {})
    for create, member, words, kept in LASTING:
        listed = {one[member]: one for account in accounts(history) for one in account.list(words)}
        for one in history.of(create):
            held = listed.get(one.answer[member]) if one.good else None
            if held and [held[name] for name in kept] != [one.answer[name] for name in kept]:
                yield f"{one}: {held}"
            if held and words == "webhook list":
                updates = [other for other in history.of("webhook update") if not other.refused and
                           names.get(other.arguments["endpoint"]) == one.answer[member]]
                urls = {names.get(other.arguments["url"]) for other in [one, *updates] if "url" in other.arguments}
                first = one.answer["types"] and sorted(one.answer["types"])
                types = [first, *(types_of(other) for other in updates if "types" in other.arguments)]
                if held["url"] not in urls or (held["types"] and sorted(held["types"])) not in types:
                    yield f"{one}: {held}, given were {urls} and {types}"


def types_of(one):
    """Returns the types that a command gives to an endpoint; None: all."""
    given = one.arguments["types"]
    return None if given == "all" else sorted(given.split(","))


@rule("A limit of a channel counts the live events of the present period.")
def limits_count_events(history):
    for account in accounts(history):
        for limit in account.list("limit list"):
            chains = [events for chain, events in history.final.items() if chain.endswith("/live") and events
                      and events[0]["channel_id"] == limit["channel_id"]]
            if limit["scope"] != "channel" or not chains or not account.complete:
                continue
            days = {event["received_at"][:10] for event in chains[0]}
            known = "wall" in history.facts and not history.facts.get("clock_moved")
            if known and len(days) == 1 and limit["used"] != len(chains[0]) and \
                    history.wall_text(history.operations[-1].invoked)[:10] in days:
                yield f"{limit}, but its channel has {len(chains[0])} live events"


# ---- others' data ----


@rule("What belongs to another chain is not found, and another chain's cursor is refused.")
def others_are_not_found(history):
    for one in with_key(history):
        if one.arguments.get("of_chain", one.arguments["chain"]) == one.arguments["chain"]:
            continue
        expected = (400,) if one.kind in ("list", "certifications") else (404,)
        if one.status not in (*expected, 401, 403):
            yield str(one)


def items_of(one):
    if not one.good or not isinstance(one.answer, dict):
        return []
    return one.answer["data"] if one.kind in ("list", "certifications") else [one.answer]


@rule("Every event, certification, channel and balance that a key sees is of its own chain and account.")
def keys_see_their_own(history):
    names = history.facts.get("names", {})
    for one in with_key(history):
        if one.kind not in ("register", "get_event", "list", "certify", "certification", "certifications", "channel"):
            continue
        channel, mode = one.arguments["chain"].rsplit("/", 1)
        for item in items_of(one):
            if item.get("channel_id") != names.get(channel) or item.get("mode", mode) != mode:
                yield f"{one}: {item}"


@rule("No identifier of an event, a certification, a notice, a purchase or an audit record is in two accounts or "
      "chains.")
def identifiers_are_of_one(history):
    holders = {}
    for chain, events in history.final.items():
        for event in events:
            holders.setdefault(event["event_id"], set()).add(chain)
    for one in history.of("certifications", closing=True):
        for item in items_of(one):
            holders.setdefault(item["certification_id"], set()).add(one.arguments["chain"])
    for account in accounts(history):
        for words, member in (("notice list", "notice_id"), ("purchase list", "sale_id"), ("audit list", "act_id")):
            for item in account.list(words):
                holders.setdefault(item[member], set()).add(account.name)
                if item.get("account_id") != account.id:
                    yield f"{account.name}: {words} has {item[member]} of {item.get('account_id')}"
    for name, found in holders.items():
        if len(found) > 1:
            yield f"{name} is in {sorted(found)}"


# ---- configurations ----


def channel_answers(history):
    """Returns (operation, channel, its versions)."""
    found = []
    for one in history.of("channel"):
        if one.good and not history.may_be_lost(one):
            found.append((one, one.arguments["chain"].rsplit("/", 1)[0], one.answer["config_versions"]))
    return found


@rule("The versions of a configuration are numbered without gaps, never change, and are never fewer than before.")
def configurations_only_grow(history):
    known, counts = {}, {}
    for one, channel, versions in sorted(channel_answers(history), key=lambda found: found[0].completed):
        if [version["version"] for version in versions] != list(range(1, len(versions) + 1)):
            yield f"{one}: {[version['version'] for version in versions]}"
        if one.answer["current_config"] != versions[-1]:
            yield f"{one}: the current one is not the last one"
        for version in versions:
            if known.setdefault((channel, version["version"]), version) != version:
                yield f"{one}: version {version}, before {known[channel, version['version']]}"
        before = max((count for completed, count in counts.get(channel, ()) if completed <= one.invoked), default=0)
        if len(versions) < before:
            yield f"{one}: {len(versions)} versions, before {before}"
        counts.setdefault(channel, []).append((one.completed, len(versions)))


def final_versions(history):
    """Returns {channel: its versions as read last}."""
    found = {}
    for one, channel, versions in channel_answers(history):
        if one.closing:
            found[channel] = versions
    return found


@rule("Each acknowledged change of a configuration is one version, and each version has its command.")
def versions_have_their_commands(history):
    for channel, versions in final_versions(history).items():
        commands = [one for one in history.of("channel configure") if one.arguments["channel"] == channel]
        found = Counter(version["declarant"] for version in versions[1:])
        for one in commands:
            count = found.pop(one.arguments.get("declarant"), 0)
            if (one.good and count != 1) or (one.refused and count) or count > 1:
                yield f"{one}: {count} versions"
        for declarant in found:
            yield f"{channel}: no command made the version of {declarant}"


def version_times(history, channel, versions):
    """Returns {version: (when it was requested, when it was acknowledged)}."""
    commands = {one.arguments.get("declarant"): one for one in history.of("channel configure")
                if one.arguments["channel"] == channel and not one.refused}
    found = {1: (0.0, 0.0)}
    for version in versions[1:]:
        one = commands.get(version["declarant"])
        found[version["version"]] = (one.invoked, one.completed if one.good else FOREVER) if one else (0.0, FOREVER)
    return found


@rule("An event states a configuration that was in force while it was being registered.")
def events_state_their_configuration(history):
    for channel, versions in final_versions(history).items():
        times = version_times(history, channel, versions)
        for mode in ("live", "test"):
            chain = f"{channel}/{mode}"
            acked = history.acknowledged.get(chain, {})
            for event in history.final.get(chain, ()):
                sent = history.registrations.get(chain, {}).get(event["client_ref"], ())
                start = min((one.invoked for one in sent), default=0.0)
                end, version = acked.get(event["event_id"], FOREVER), event["config_version"]
                later = min((done for number, (_, done) in times.items() if number > version), default=FOREVER)
                if version not in times or times[version][0] > end or later < start:
                    yield (f"{chain}: {event['event_id']} [{start:.3f}, {end:.3f}] states version {version}: "
                           f"{times.get(version)}, a later one since {later:.3f}")


@rule("The configuration that events state never decreases along a chain.")
def configurations_follow_the_chain(history):
    for chain, events in history.final.items():
        for before, event in zip(events, events[1:]):
            if event["config_version"] < before["config_version"]:
                yield f"{chain}: {before['event_id']} {before['config_version']}, {event['event_id']} after it " \
                      f"{event['config_version']}"


# ---- the audit log ----

# Urgent acts, and what undoes them.
SWITCHES = {"account suspend": "account resume", "account disable": "account enable",
            "channel suspend": "channel resume", "key revoke": None, "webhook disable": "webhook enable"}

OUTSIDE = ("webhook test", "store backup")  # commands whose effect is outside the store


def audited(history):
    """Returns the audit records of all lists, and whether every list was read to its end."""
    acts = final_list(history, "audit list")
    for account in accounts(history):
        acts = acts + account.list("audit list")
    return acts, all(account.was_read("audit list") for account in accounts(history))


@rule("Each acknowledged command is in the audit log once, with its arguments, even if it changed nothing; a refused "
      "one is not, and none is there that was not requested.")
def acts_are_recorded_once(history):
    acts, whole = audited(history)
    if not whole:
        return
    found = {}
    for act in acts:
        found.setdefault(act["reason"], []).append(act)
    commands = {one.arguments["reason"]: one for one in history.operations if "reason" in one.arguments}
    unknown_accounts = any(not one.good and not one.refused for one in history.of("account create"))
    # What works outside the store is done even if it cannot be recorded; the log of the service says so.
    unwritten = any("audit_record_not_written" in line for _, line in history.facts.get("errors", ()))
    for reason, one in commands.items():
        many = found.pop(reason, [])
        if len(many) > 1 or (one.refused and many and one.kind not in OUTSIDE):  # those are recorded beforehand
            yield f"{one}: {len(many)} acts"
        elif (lasts(one) and not many and not unknown_accounts and not one.arguments.get("idempotency_key")
              and not (one.kind in OUTSIDE and unwritten)):
            yield f"{one}: no act"
        for act in many:
            if act["operation"] != one.kind or not same_arguments(history, act, one):
                yield f"{one}: {act}"
    for reason, many in found.items():
        if any(act["via"] == "socket" for act in many):
            yield f"no command has requested {many[0]}"


def same_arguments(history, act, one):
    """Whether an audit record states what the command gave; names of things stand for their identifiers."""
    names = history.facts.get("names", {})
    given = {name: names.get(value, value) if isinstance(value, str) else value
             for name, value in one.arguments.items()}
    return all(name in ("url", "name", "reason") or given.get(name) == value
               for name, value in (act["arguments"] or {}).items())


@rule("The audit records of an account, and those of the installation, are numbered without gaps in each of their "
      "two chains.")
def acts_are_numbered(history):
    lists = {account.name: account.list("audit list") for account in accounts(history)
             if account.was_read("audit list")}
    for name, acts in {**lists, "installation": final_list(history, "audit list")}.items():
        for urgent in (False, True):
            numbers = sorted(act["number"] for act in acts if act["urgent"] == urgent)
            if numbers != list(range(1, len(numbers) + 1)):
                yield f"{name}: {'urgent ' if urgent else ''}{numbers}"


@rule("The chain_hash of an audit record is the digest of the record before it and of its own content.")
def acts_are_chained(history):
    lists = [account.list("audit list") for account in accounts(history) if account.was_read("audit list")]
    for acts in [*lists, final_list(history, "audit list")]:
        before = {False: bytes(32), True: bytes(32)}
        for act in sorted(acts, key=lambda one: one["number"]):
            text = json.dumps({name: value for name, value in act.items() if name not in ("chain_hash", "seal")},
                              sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            found = hashlib.sha256(before[act["urgent"]] + hashlib.sha256(text.encode()).digest())
            if found.hexdigest() != act["chain_hash"]:
                yield f"{act}: its digest is {found.hexdigest()}"
                break
            before[act["urgent"]] = found.digest()
