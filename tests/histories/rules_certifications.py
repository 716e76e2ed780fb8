"""Rules about certifications: closed ranges, complete archives, files that never change."""

import functools
from collections import Counter

from history import FOREVER, rule
from operations import shifted
from rules_chain import digest_of
from rules_nodes import CLOCK_BOUND


KEY_KEPT_US = 24 * 3600 * 1_000_000  # how long an Idempotency-Key stands for a certification


@functools.lru_cache(maxsize=1)
def requests(history):
    """Returns {certification_id: the operations that were answered with it}."""
    found = {}
    for one in history.of("certify", "certification request"):
        if one.good:
            found.setdefault(one.answer["certification_id"], []).append(one)
    return found


@functools.lru_cache(maxsize=1)
def records(history):
    """Returns {certification_id: (chain, its record in the end)}."""
    found = {}
    for one in history.of("certification", closing=True):
        if one.good:
            found[one.answer["certification_id"]] = (one.arguments["chain"], one.answer)
    return found


@functools.lru_cache(maxsize=1)
def archives(history):
    """Returns {certification_id: the download of its archive in the end}."""
    return {one.arguments["certification_id"]: one for one in history.of("download", closing=True)
            if one.good and "events" in one.answer}


def request_of(one):
    """Returns the chain, the range and the Idempotency-Key of a request, by a key or by an operator."""
    given = one.arguments
    if one.kind == "certify":
        return given["chain"], given["range"], given["idempotency_key"]
    asked = {name: given[name] for name in ("seq_from", "seq_to", "from", "to") if name in given}
    return f"{given['channel']}/{given['mode']}", asked, given.get("idempotency_key")


def named_events(history, chain, record):
    """Returns the events of the chain in the range of a certification, as requested."""
    asked = record["range"]
    if asked["seq_from"] is not None:
        return [event for event in history.final[chain] if asked["seq_from"] <= event["sequence"] <= asked["seq_to"]]
    return [event for event in history.final[chain] if asked["from"] <= event["received_at"] < asked["to"]]


def requested_events(history, chain, record):
    """Returns the events that a certification must hold. A range by time that ends later than the request was closed
    by it: where the clock was set back, the times of the chain are later than the request, and the number of events
    says where."""
    found, end = named_events(history, chain, record), record["range"]["to"]
    if end is None or end <= record["requested_at"]:
        return found
    if history.facts.get("clock_moved"):
        return found[:record["event_count"]]
    return [event for event in found if event["received_at"] < record["requested_at"]]


@rule("A certified range is closed: the chain has in the end as many events in it as were certified.")
def ranges_are_closed(history):
    for name, (chain, record) in records(history).items():
        if chain in history.final and record["event_count"] is not None:
            events = requested_events(history, chain, record)
            if len(events) != record["event_count"]:
                yield (f"{name} of {chain}: {record['range']}, requested at {record['requested_at']}: "
                       f"{record['event_count']} events certified, {len(events)} in the chain")


@rule("An event that was acknowledged before the request for a range that it is in is certified.")
def earlier_events_are_certified(history):
    for name, (chain, record) in records(history).items():
        if chain in history.final and record["event_count"] is not None and name in requests(history):
            invoked = min(one.invoked for one in requests(history)[name])
            acknowledged = history.acknowledged.get(chain, {})
            earlier = sum(acknowledged.get(event["event_id"], FOREVER) < invoked
                          for event in named_events(history, chain, record))
            if earlier > record["event_count"]:
                yield (f"{name} of {chain}: {record['range']}, requested at {record['requested_at']}: "
                       f"{record['event_count']} events certified, {earlier} were acknowledged before")


@rule("Every receipt in a certified range is certified: the archive holds exactly these events, as the receipts say.")
def archives_are_complete(history):
    for name, download in archives(history).items():
        chain, record = records(history)[name]
        if chain not in history.final:
            continue
        wanted = [facts(event) for event in requested_events(history, chain, record)]
        held = [facts(event) for event in download.answer["events"]]
        if wanted != held:
            odd = next((pair for pair in zip(wanted, held) if pair[0] != pair[1]), "one is longer")
            yield f"{name} of {chain}: {len(wanted)} events, {len(held)} in the archive; {odd}"
        manifest = download.answer["manifest"]
        if (manifest["certification_id"], manifest["channel_id"], manifest["mode"], manifest["event_count"]) != \
                (name, record["channel_id"], record["mode"], len(held)):
            yield f"{name} of {chain}: {str(manifest)[:300]}"


def facts(event):
    """Returns what a receipt and a record in an archive both state; the record's digest is the chain_hash."""
    kept = [event[name] for name in ("event_id", "client_ref", "sequence", "received_at", "hash", "hash_alg",
                                     "config_version", "occurred_at")]
    return [*kept, event["chain_hash"] if "chain_hash" in event else digest_of(event)]


@rule("Two certifications of one closed range hold the same number of events.")
def same_range_same_events(history):
    counts = {}
    for name, (chain, record) in records(history).items():
        asked = record["range"]
        if asked["to"] is not None and asked["to"] > record["requested_at"]:
            continue
        place = (chain, *asked.values())
        count = record["event_count"]
        if count is not None and counts.setdefault(place, count) != count:
            yield f"{name}: {place}: {counts[place]} and {count}"


@rule("An accepted certification names the range that was requested, and its events exist.")
def ranges_are_as_requested(history):
    for name, operations in requests(history).items():
        for one in operations:
            asked = {member: value for member, value in one.answer["range"].items() if value is not None}
            if asked != request_of(one)[1]:
                yield f"{name}: {one}"


@rule("A certification of events that were acknowledged before is not refused as one of no events.")
def existing_events_can_be_certified(history):
    for one in history.of("certify"):
        if one.status != 400 or one.arguments["chain"] not in history.final or history.may_be_lost(one):
            continue
        asked, chain = one.arguments["range"], one.arguments["chain"]
        told = history.acknowledged.get(chain, {})
        known = [event for event in history.final[chain] if told.get(event["event_id"], FOREVER) < one.invoked]
        if "seq_to" in asked:
            exists = any(event["sequence"] >= asked["seq_to"] for event in known)
        else:
            exists = any(asked["from"] <= event["received_at"] < asked["to"] for event in known)
            exists &= not history.facts.get("clock_moved")
        if exists and asked:
            yield f"{one}: {len(known)} events were acknowledged"


@rule("One Idempotency-Key of a chain stands for one certification, and each key of its own makes its own.")
def idempotency_keys_hold(history):
    made = {}
    for one in history.of("certify", "certification request"):
        chain, _, key = request_of(one)
        if one.good and key:
            place = (chain, key)
            first = made.setdefault(place, one)
            if one.answer["requested_at"] >= shifted(first.answer["requested_at"], KEY_KEPT_US):
                first = made[place] = one
            if first.answer["certification_id"] != one.answer["certification_id"]:
                yield f"{place}: {str(first)[:300]} and {str(one)[:300]}"
    for name, operations in requests(history).items():
        fresh = [one for one in operations if one.headers.get("Idempotent-Replayed") != "true"
                 and one.kind == "certify"]
        keys = {request_of(one)[2] for one in operations}
        if len(fresh) > 1 or len(keys) > 1 or (None in keys and len(operations) > 1):
            yield f"{name}: {[str(one)[:200] for one in operations]}"


@rule("An accepted certification exists in the end, and it has ended.")
def accepted_certifications_end(history):
    for name, operations in requests(history).items():
        found = records(history).get(name)
        if not found or found[1]["status"] == "processing":
            yield f"{name}: {found and found[1]}; {operations[0]}"


@rule("An accepted certification is of the chain for which it was requested, and is listed there in the end.")
def accepted_certifications_are_listed(history):
    listed, read = {}, set()
    for one in history.of("certifications", closing=True):
        if one.good and not one.arguments["filters"]:
            listed.setdefault(one.arguments["chain"], set()).update(item["certification_id"]
                                                                   for item in one.answer["data"])
            if not one.answer["has_more"]:
                read.add(one.arguments["chain"])
    for name, operations in requests(history).items():
        for one in operations:
            chain = request_of(one)[0]
            if chain in read and name not in listed[chain]:
                yield f"{one} is not listed"


@rule("Each certification that a chain lists was requested, and no request made two.")
def certifications_were_requested(history):
    listed = {}
    for one in history.of("certifications", closing=True):
        if one.good and not one.arguments["filters"]:
            listed.setdefault(one.arguments["chain"], set()).update(item["certification_id"]
                                                                   for item in one.answer["data"])
    unknown = Counter(request_of(one)[0] for one in history.of("certify", "certification request")
                      if not one.good and not one.refused)
    for chain, names in listed.items():
        more = names - requests(history).keys()
        if len(more) > unknown[chain]:
            yield f"{chain}: {sorted(more)} were answered to no request, and {unknown[chain]} requests have no answer"


@rule("The number of events that a certification states is the same in every answer.")
def counts_never_change(history):
    found = {}
    for one in history.of("certify", "certification request", "certification", "certifications"):
        for item in (one.answer["data"] if one.kind == "certifications" else [one.answer]) if one.good else ():
            count, name = item.get("event_count"), item["certification_id"]
            if count is not None and found.setdefault(name, count) != count:
                yield f"{name}: {found[name]}, but {str(one)[:300]} states {count}"


@rule("Every event of a completed live certification is sealed, not before it was received.")
def certified_events_are_sealed(history):
    moved = history.facts.get("clock_moved") or history.faulty(0.0, FOREVER, "authority")
    for name, (chain, record) in records(history).items():
        if record["status"] != "completed" or not chain.endswith("/live") or chain not in history.final:
            continue
        for event in requested_events(history, chain, record):
            sealed = event["timestamp"]["sealed_at"]
            if not sealed or (not moved and sealed < shifted(event["received_at"], -int(CLOCK_BOUND * 1e6))):
                yield f"{name}: {event}"


@rule("A certification is completed; it fails only once it was processed for certification.give_up_after.")
def certifications_complete(history):
    after = {"24h": 86_400, "1s": 1}[history.script["settings"].get("certification.give_up_after", "24h")]
    for name, (chain, record) in records(history).items():
        if record["status"] == "failed" and \
                record["completed_at"] < shifted(record["requested_at"], after * 1_000_000):
            yield f"{name} of {chain}: {record}"


@rule("What a certification says does not change, except for links, and nothing once it has ended.")
def certifications_go_forward(history):
    seen = {}
    for one in history.of("certification"):
        if one.good and one.arguments["chain"] == one.arguments["of_chain"] and not history.may_be_lost(one):
            seen.setdefault(one.answer["certification_id"], []).append(one)
    for name, operations in seen.items():
        for one in operations:
            for other in operations:
                if one.completed < other.invoked and one.answer["status"] != "processing" and \
                        fixed(one.answer) != fixed(other.answer):
                    yield f"{name}: {str(one)[:400]} then {str(other)[:400]}"
                    break


@rule("Anyone finds a completed certification by its code and by the digests of its files.")
def codes_are_found(history):
    told = {}
    for one in history.of("certification"):
        if one.good and one.answer["status"] == "completed":
            found = told.setdefault(one.answer["certification_id"], (FOREVER, one.answer))
            told[one.answer["certification_id"]] = (min(found[0], one.completed), one.answer)
    for one in history.of("verify"):
        since, record = told.get(one.arguments["certification_id"], (FOREVER, None))
        if one.refused and one.status not in (408, 429) and since < one.invoked and not history.may_be_lost(one):
            yield str(one)
        if not one.good or not record:
            continue
        digests = {report["sha256"] for report in record["reports"]} | {
            part["sha256"] for part in record["content_parts"]}
        names = ("certification_id", "verification_code", "mode", "status", "event_count")
        if any(one.answer[name] != record[name] for name in names if name in one.answer) or \
                not digests <= {document["sha256"] for document in one.answer["documents"]}:
            yield f"{one}: {record}"


def fixed(record):
    kept = {name: record[name] for name in ("status", "completed_at", "requested_at", "range", "event_count",
                                            "config_versions_in_range", "verification_code")}
    return {**kept, "reports": [report["sha256"] for report in record["reports"]],
            "parts": [[part[name] for name in ("name", "sha256", "bytes")] for part in record["content_parts"]]}


@rule("The configuration versions of a certification are those of its events.")
def versions_in_range(history):
    for name, (chain, record) in records(history).items():
        if record["status"] == "completed" and chain in history.final:
            versions = sorted({event["config_version"] for event in requested_events(history, chain, record)})
            if sorted(record["config_versions_in_range"]) != versions:
                yield f"{name}: {record['config_versions_in_range']}, its events have {versions}"


@rule("A file is the same at each download, and has the digest that the certification states.")
def files_equal_their_digests(history):
    seen = {}
    for one in history.of("download"):
        if one.good:
            place = (one.arguments["certification_id"], one.arguments["file"])
            digest = seen.setdefault(place, one.arguments["sha256"] or one.answer["sha256"])
            if digest != one.answer["sha256"]:
                yield f"{place}: {digest}, {one}"


@rule("A file of a completed certification can be downloaded.")
def files_are_there(history):
    for one in history.of("download"):
        if one.status == 404 and not history.may_be_lost(one):
            yield str(one)


LEVELS = ("B-B", "B-T", "B-LT", "B-LTA")


@rule("The signature of a live archive has at least the level that certification.level demands, at most B-LT, "
      "whatever was not available in between.")
def archives_have_their_level(history):
    least = "B-" + history.script["settings"].get("certification.level", "B")
    least = "B-LT" if least == "B-LTA" else least  # only reports have that
    for name, download in archives(history).items():
        levels = download.answer.get("levels")
        if levels is None or download.answer["verified"] != 0 or not records(history)[name][0].endswith("/live"):
            continue
        if not levels or any(LEVELS.index(level) < LEVELS.index(least) for level in levels):
            yield f"{name}: {levels}, demanded is {least}: {download.answer['verdict'][-600:]}"


@rule("The verifier finds every archive valid with the published roots.")
def archives_verify(history):
    for name, download in archives(history).items():
        if download.answer["verified"] != 0:
            yield f"{name}: exit {download.answer['verified']}: {download.answer['verdict'][-600:]}"
