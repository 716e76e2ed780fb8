"""Rules about chains: what a receipt promises, one event for each client_ref, order, times, and contents."""

import functools
import hashlib
import json

from history import FOREVER, lasting, rule

FREQUENT = ("300ms", "1s", "5s")  # seal.interval of rounds that are waited for in the end
AHEAD = 0.05  # seconds by which a time may follow an answer: each event of a chain has a time of its own


def receipts(history):
    """Returns (operation, chain, event) for each acknowledged registration."""
    return [(one, one.arguments["chain"], one.answer) for one in history.of("register") if one.good]


def final_by(history, member):
    return {chain: {event[member]: event for event in events} for chain, events in history.final.items()}


@rule("The sequences of a chain are 1, 2, 3 and so on, without a gap.")
def gapless(history):
    for chain, events in history.final.items():
        sequences = [event["sequence"] for event in events]
        if sequences != list(range(1, len(events) + 1)):
            odd = next((place for place, sequence in enumerate(sequences) if sequence != place + 1), None)
            yield f"{chain}: place {odd} has {sequences[odd - 1:odd + 3] if odd else sequences[:3]}"


@rule("A chain has at most one event for a client_ref, and no event_id occurs twice.")
def one_event_for_a_ref(history):
    for member in ("client_ref", "event_id"):
        for chain, events in history.final.items():
            seen = {}
            for event in events:
                if event[member] in seen:
                    yield f"{chain}: {member} {event[member]} at {seen[event[member]]} and {event['sequence']}"
                seen[event[member]] = event["sequence"]


@rule("An acknowledged event is in its chain in the end, exactly as its receipt says.")
def receipts_hold(history):
    final = final_by(history, "client_ref")
    for one, chain, event in receipts(history):
        held = final.get(chain, {}).get(event["client_ref"])
        if chain in final and (held is None or lasting(held) != lasting(event)):
            yield f"{one}; in the end {held}"


@rule("Every answer that shows an event shows the same, except for its status and its timestamp.")
def events_are_the_same_everywhere(history):
    final = final_by(history, "event_id")
    for one, chain, event in history.sightings:
        held = final.get(chain, {}).get(event["event_id"])
        if chain in final and (held is None or lasting(held) != lasting(event)):
            yield f"{one}: {lasting(event)}; in the end {held}"


@rule("Every event was sent by a client, with this digest, this algorithm and this time.")
def nothing_that_was_not_sent(history):
    for chain, events in history.final.items():
        sent = history.registrations.get(chain, {})
        for event in events:
            identity = [event["hash"], event["hash_alg"], event["occurred_at"]]
            if identity not in [one.arguments["identity"] for one in sent.get(event["client_ref"], ())]:
                yield f"{chain}: {event}"


@rule("The answer to a registration names its client_ref, its channel's mode and its digest.")
def receipts_answer_the_request(history):
    for one, chain, event in receipts(history):
        wanted = [one.arguments["client_ref"], chain.split("/")[2], *one.arguments["identity"]]
        got = [event[name] for name in ("client_ref", "mode", "hash", "hash_alg", "occurred_at")]
        if wanted != got:
            yield f"{one}: {wanted}"


# What may happen to one client_ref, as a state machine: a registration of a declaration when none is there makes the
# event (201); the same one afterwards is a repetition (200); another one is a conflict (409); any other refusal
# happens only where the client_ref is free, since a repetition precedes all limits. Without an answer, or with 5xx,
# it did the one or nothing, at any time after its invocation.
ANYWAY = (401, 403, 408, 429)  # come before the lookup of the client_ref


def possible(state, one):
    """Returns the states in which the client_ref may be after this operation took effect; none: it could not."""
    identity = tuple(map(str, one.arguments["identity"]))
    if one.status == 201:
        return [identity] if state is None else []
    if one.status == 200:
        return [state] if state == identity else []
    if one.status == 409:
        return [state] if state not in (None, identity) else []
    if one.status in ANYWAY:
        return [state]
    if one.refused:
        return [state] if state is None else []
    return [state, identity] if state is None else [state]


def linearizable(operations, last):
    """Returns whether the operations have an order, which respects real time, that the state machine allows and
    that ends in `last`."""
    many = sorted(operations, key=lambda one: one.invoked)
    ends = [one.completed if one.good or one.refused else FOREVER for one in many]

    @functools.cache
    def search(left, state):
        if all(ends[place] == FOREVER for place in left) and state == last:
            return True  # what has no answer may never happen
        first_end = min((ends[place] for place in left), default=FOREVER)
        for place in left:
            if many[place].invoked > first_end:
                continue
            for after in possible(state, many[place]):
                if search(left - {place}, after):
                    return True
        return False
    return search(frozenset(range(len(many))), None)


@rule("The answers about one client_ref are those of requests that took effect one at a time, each between its "
      "invocation and its completion.")
def refs_are_linearizable(history):
    for chain, refs in history.registrations.items():
        if chain not in history.final:
            continue
        final = {event["client_ref"]: (event["hash"], event["hash_alg"], str(event["occurred_at"]))
                 for event in history.final[chain]}
        for client_ref, every in refs.items():
            operations = [one for one in every if not (one.refused and history.may_be_lost(one))]
            if len(operations) <= 12 and not linearizable(operations, final.get(client_ref)):
                told = "; ".join(f"{str(one)[:260]}" for one in operations)
                yield f"{chain}: {client_ref}: {told}; in the end {final.get(client_ref)}"


@rule("A repetition is marked as one, and a first registration is not.")
def repetitions_are_marked(history):
    for one in history.of("register"):
        if one.good and (one.status == 200) != (one.headers.get("Idempotent-Replayed") == "true"):
            yield str(one)


@rule("An event that was acknowledged before another one was sent precedes it in the chain.")
def real_time_order(history):
    for chain, events in history.final.items():
        sent = history.registrations.get(chain, {})
        latest = (0.0, None)  # invocation of an event with a lower sequence
        for event in events:
            operations = sent.get(event["client_ref"], ())
            told = min((one.completed for one in operations if one.good), default=FOREVER)
            if told < latest[0]:
                yield (f"{chain}: sequence {event['sequence']} was acknowledged at {told:.4f}, "
                       f"sequence {latest[1]} was sent at {latest[0]:.4f}")
            if operations:
                latest = max(latest, (operations[0].invoked, event["sequence"]))


@rule("No event's time lies before that of its predecessor.")
def times_never_decrease(history):
    for chain, events in history.final.items():
        for before, after in zip(events, events[1:]):
            if after["received_at"] < before["received_at"]:
                yield (f"{chain}: {before['sequence']} at {before['received_at']}, "
                       f"{after['sequence']} at {after['received_at']}")


@rule("An acknowledged event is found by its identifier from its acknowledgment on.")
def acknowledged_is_found(history):
    for one in history.of("get_event"):
        told = history.acknowledged.get(one.arguments["of_chain"], {}).get(one.arguments["event_id"], FOREVER)
        own = one.arguments["chain"] == one.arguments["of_chain"]
        if own and one.status == 404 and told < one.invoked and not history.may_be_lost(one):
            yield str(one)


@rule("The status of an event changes from unpaid to registered and its timestamp from pending to batch, never back.")
def states_go_forward(history):
    later = {}
    for one, chain, event in history.sightings:
        place = (chain, event["event_id"])
        state = (event["status"] != "unpaid", event["timestamp"]["type"] != "pending")
        later.setdefault(place, []).append((one, state))
    for (chain, event_id), seen in later.items():
        for part, name in ((0, "status"), (1, "timestamp")):
            told = [one.completed for one, state in seen if state[part]]
            for one, state in seen:
                if not state[part] and min(told, default=FOREVER) < one.invoked:
                    yield f"{chain}: {event_id}: the {name} returned to its former value in {str(one)[:300]}"


@rule("A content has the digest that was declared; an event of digests alone has none.")
def contents_equal_their_digests(history):
    for one in history.of("get_content"):
        if one.arguments["chain"] != one.arguments["of_chain"]:
            continue
        only_digest = one.arguments["form"] == "hash"
        wrong = one.status == 200 and (only_digest or one.answer["sha256"] != one.arguments["digest"])
        told = history.shown.get((one.arguments["of_chain"], one.arguments["event_id"]), FOREVER)
        if wrong or (one.status == 404 and not only_digest and told < one.invoked and not history.may_be_lost(one)):
            yield str(one)


@rule("Every live event is sealed in the end, where rounds are frequent.")
def live_events_are_sealed(history):
    if history.facts.get("clock_moved") or history.script["settings"].get("seal.interval") not in FREQUENT:
        return
    for chain, events in history.final.items():
        pending = [event["sequence"] for event in events if event["timestamp"]["type"] == "pending"]
        if pending and chain.endswith("/live"):
            yield f"{chain}: {len(pending)} of {len(events)} events are pending: {pending[:20]}"


@rule("No two events of a chain share a chain_hash, and a test event is never sealed.")
def chain_hashes_differ(history):
    for chain, events in history.final.items():
        if len({event["chain_hash"] for event in events}) != len(events):
            yield f"{chain}: a chain_hash occurs twice"
        mode = chain.split("/")[2]
        for event in events:
            kinds = ("simulated",) if mode == "test" else ("pending", "batch")
            if event["timestamp"]["type"] not in kinds or (event["status"] == "test") != (mode == "test"):
                yield f"{chain}: {event}"


@rule("received_at lies within the request, except where a clock moved it.")
def received_within_the_request(history):
    if history.facts.get("clock_moved") or "wall" not in history.facts:
        return
    for one, chain, event in receipts(history):
        if one.status != 201:
            continue
        sent = history.wall_text(one.invoked - history.facts["wall_error"])
        told = history.wall_text(one.completed + history.facts["wall_error"] + AHEAD)
        if not sent <= event["received_at"] <= told:
            yield f"{one}: sent at {sent}, answered at {told}"


@rule("An answer about one event or one certification is about the one that was asked for.")
def answers_are_about_what_was_asked(history):
    for kind, member in (("get_event", "event_id"), ("certification", "certification_id")):
        for one in history.of(kind):
            if one.good and one.answer[member] != one.arguments[member]:
                yield str(one)


def config_hashes(history):
    """Returns {(channel_id, version): digest of the configuration}, as the answers to operators state."""
    return {(one.answer["channel_id"], version["version"]): version["config_hash"] for one in history.operations
            if one.good and one.kind.startswith("channel ") and "config_versions" in one.answer
            for version in one.answer["config_versions"]}


def record_of(event, previous, config_hash):
    """Returns the record of an event, whose digest is its chain_hash (docs/verify/evidence-format.md)."""
    members = {name: event[name] for name in ("channel_id", "client_ref", "config_version", "event_id", "hash",
                                              "hash_alg", "modality", "occurred_at", "received_at", "sequence")}
    return members | {"chain": event["mode"], "config_hash": config_hash, "previous_chain_hash": previous, "v": 1}


def digest_of(record):
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@rule("The chain_hash of an event is the digest of its record, which names the event before it and the "
      "configuration, and a proof names the same ones.")
def chain_hashes_are_of_the_records(history):
    configs, final = config_hashes(history), final_by(history, "event_id")
    before = {}  # chain_hash of the event before, by event
    for chain, events in history.final.items():
        before.update((later["event_id"], earlier["chain_hash"]) for earlier, later in zip(events, events[1:]))
    for one, chain, event in history.sightings:
        proof = event.get("proof")
        if not proof:
            continue
        name = event["event_id"]
        if before.setdefault(name, proof["previous_chain_hash"]) != proof["previous_chain_hash"]:
            yield f"{str(one)[:300]}: {proof['previous_chain_hash']}, but the event before has {before[name]}"
        place = (event["channel_id"], event["config_version"])
        if configs.setdefault(place, proof["config_hash"]) != proof["config_hash"]:
            yield f"{str(one)[:300]}: {proof['config_hash']}, but its configuration has {configs[place]}"
    for chain, events in final.items():
        for name, event in events.items():
            config = configs.get((event["channel_id"], event["config_version"]))
            if name in before and config and digest_of(record_of(event, before[name], config)) != event["chain_hash"]:
                yield f"{chain}: {event} after {before[name]}"


@rule("The proof of a sealed event is of the segment and the time that its timestamp states.")
def proofs_are_of_their_segment(history):
    for one in history.of("get_event"):
        event = one.answer if one.good else {}
        segment = (event.get("proof") or {}).get("segment")
        if not segment:
            continue
        stamp, sealed = event["timestamp"], event["proof"]["round"]["sealed_at"]
        if (segment["segment_id"], sealed) != (stamp["reference"], stamp["sealed_at"]) or \
                not segment["first_sequence"] <= event["sequence"] <= segment["last_sequence"]:
            yield f"{str(one)[:300]}: {stamp}, but {segment} of {sealed}"


@rule("The seal of an event names its segment and its time; two events of one segment have the same time.")
def seals_agree(history):
    times = {}
    for one, chain, event in history.sightings:
        stamp = event["timestamp"]
        if stamp["type"] == "batch":
            place = (chain, stamp["reference"])
            if times.setdefault(place, stamp["sealed_at"]) != stamp["sealed_at"] or not stamp["sealed_at"]:
                yield f"{place}: {times[place]} and {stamp['sealed_at']} in {str(one)[:200]}"


@rule("Each segment covers events that follow each other.")
def segments_are_runs(history):
    for chain, events in history.final.items():
        references = [event["timestamp"]["reference"] for event in events]
        runs = [one for place, one in enumerate(references) if one and (not place or references[place - 1] != one)]
        if len(runs) != len(set(runs)):
            yield f"{chain}: {runs}"
