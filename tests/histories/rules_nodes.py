"""Rules about several nodes on one store and about its standby: what was acknowledged at one node holds at every
node, and nothing is acknowledged that no standby holds."""

import datetime

from history import FOREVER, rule

REVOKING = ("key revoke", "account suspend", "account disable", "channel suspend", "webhook disable", "user role",
            "user remove", "user leave", "session end", "passkey remove")  # done without a standby, and said so
WRITING = ("create", "add", "configure", "request", "set", "delete", "resume", "enable", "expire", "invite")
EFFECT_SECONDS = 2.0  # until a command is in force at every node
CLOCK_BOUND = 5.0  # seal.clock_bound
CLOCK_SLACK = 3.0  # longest time that a query of the store's clock takes without a fault
STALLING = ("storelink", "nodecutoff", "primaryfrozen", "freeze", "primarykilled", "primaryreplaced", "primarydemoted")


def within(one, intervals):
    """Returns whether the whole operation lies within one of the intervals."""
    return any(start < one.invoked and one.completed < end for start, end in intervals)


def touches(one, intervals, before=0.0, after=0.0):
    return any(start - before <= one.completed and one.invoked <= end + after for start, end in intervals)


def of_keys(history):
    """Returns {name of a key: operations with it} of those that were answered."""
    found = {}
    for one in history.operations:
        if "key" in one.arguments and "chain" in one.arguments and one.status:
            found.setdefault(one.arguments["key"], []).append(one)
    return found


# ---- the standby ----

@rule("While no standby can confirm a commit, no registration, certification or command is acknowledged, neither as "
      "new nor as repeated.")
def nothing_without_a_standby(history):
    for one in history.operations:
        acknowledges = one.kind in ("register", "certify") or one.kind.split()[-1] in WRITING
        if one.good and acknowledges and one.kind not in REVOKING and within(one, history.facts.get("fences", ())):
            yield str(one)


@rule("A revocation that no standby holds says so.")
def revocations_say_that_they_are_not_replicated(history):
    for one in history.of(*REVOKING):
        if one.good and within(one, history.facts.get("fences", ())) and one.answer.get("replicated") is not False:
            yield str(one)


# ---- reads at any node ----

@rule("An accepted certification is found by its identifier, at every node, from its acknowledgment on.")
def accepted_certifications_are_found(history):
    told = {}
    for one in history.of("certify"):
        if one.good:
            name = one.answer["certification_id"]
            told[name] = min(told.get(name, FOREVER), one.completed)
    for one in history.of("certification"):
        own = one.arguments["chain"] == one.arguments["of_chain"]
        since = told.get(one.arguments["certification_id"], FOREVER)
        if own and one.status == 404 and since < one.invoked and not history.may_be_lost(one):
            yield str(one)


@rule("A configuration of a channel is in force at every node two seconds after its acknowledgment.")
def configurations_are_in_force_everywhere(history):
    versions = {}
    for one in history.of("channel configure"):
        if one.good and not history.may_be_lost(one):
            versions.setdefault(one.arguments["channel"], []).append((one.completed, one.answer["config_version"]))
    for one in history.of("register", "channel"):
        if not one.good or one.status == 200 and one.kind == "register" or history.may_be_lost(one):
            continue
        answer = one.answer
        given = answer["config_version"] if one.kind == "register" else answer["current_config"]["version"]
        channel = one.arguments["chain"].rsplit("/", 1)[0]
        least = max((version for at, version in versions.get(channel, ()) if at + EFFECT_SECONDS < one.invoked),
                    default=0)
        if given < least:
            yield f"version {least} is in force, but {one}"


# ---- keys ----

@rule("A key that was created is accepted at every node until its end is requested.")
def keys_work_until_they_are_revoked(history):
    created = {one.arguments["name"]: one.completed for one in history.of("key create")
               if one.good and "expires" not in one.arguments}
    ended = {}
    for one in history.operations:
        if one.kind.startswith("key ") and one.kind != "key create" and "key" in one.arguments:
            name = one.arguments["key"]
            ended[name] = min(ended.get(name, FOREVER), one.invoked)
    for name, operations in of_keys(history).items():
        for one in operations:
            if one.status == 401 and created.get(name, FOREVER) < one.invoked and \
                    one.completed < ended.get(name, FOREVER) and not history.may_be_lost(one):
                yield str(one)


# ---- clocks of nodes ----

def behind(history, one):
    """Returns the least number of seconds by which the clock of the operation's node may have been behind."""
    covered, least = False, FOREVER
    for node, seconds, start, end in history.facts.get("clocks", ()):
        if node == one.node and start <= one.completed and one.invoked <= end:
            least = min(least, seconds)
            covered |= start <= one.invoked and one.completed <= end
    return least if covered else min(least, 0)


@rule("A node whose clock is ahead of the store's by more than seal.clock_bound registers no live event.")
def clocks_ahead_are_refused(history):
    if any(fault.name in STALLING for fault in history.faults):
        return  # the store's clock, asked for before a stall, may seem later than it is
    ahead = [(node, start, end) for node, seconds, start, end in history.facts.get("clocks", ())
             if -seconds > CLOCK_BOUND + CLOCK_SLACK]
    for one in history.of("register"):
        if one.status == 201 and one.arguments["chain"].endswith("/live") and any(
                one.node == node and start < one.invoked and one.completed < end for node, start, end in ahead):
            yield str(one)


@rule("A node registers no live event whose time is ahead of its clock by more than seal.clock_bound.")
def clocks_behind_are_refused(history):
    if "wall" not in history.facts or (history.facts.get("clock_moved") and "clocks" not in history.facts):
        return
    for one in history.of("register"):
        if one.status != 201 or not one.arguments["chain"].endswith("/live"):
            continue
        latest = history.facts["wall"] + one.completed - behind(history, one) + CLOCK_BOUND
        received = datetime.datetime.fromisoformat(one.answer["received_at"]).timestamp()
        if received > latest + history.facts.get("wall_error", 0.1):
            yield f"{one}: the node's clock was {latest - CLOCK_BOUND}"
