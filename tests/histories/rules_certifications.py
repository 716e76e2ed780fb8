"""Rules about certifications: closed ranges, complete archives, files that never change."""

import functools

from history import FOREVER, rule


@functools.lru_cache(maxsize=1)
def requests(history):
    """Returns {certification_id: the operations that were answered with it}."""
    found = {}
    for one in history.of("certify"):
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


def requested_events(history, chain, record):
    """Returns the events of the chain that the range of a certification names."""
    asked = record["range"]
    if asked["seq_from"] is not None:
        return [event for event in history.final[chain] if asked["seq_from"] <= event["sequence"] <= asked["seq_to"]]
    end = min(asked["to"], record["requested_at"])
    return [event for event in history.final[chain] if asked["from"] <= event["received_at"] < end]


@rule("A certified range is closed: the chain has in the end as many events in it as were certified.")
def ranges_are_closed(history):
    for name, (chain, record) in records(history).items():
        if chain in history.final and record["event_count"] is not None:
            events = requested_events(history, chain, record)
            if len(events) != record["event_count"]:
                yield (f"{name} of {chain}: {record['range']}, requested at {record['requested_at']}: "
                       f"{record['event_count']} events certified, {len(events)} in the chain")


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


def facts(event):
    return [event[name] for name in ("event_id", "client_ref", "sequence", "received_at", "hash", "hash_alg",
                                     "config_version", "occurred_at")]


@rule("Two certifications of one closed range hold the same number of events.")
def same_range_same_events(history):
    counts = {}
    for name, (chain, record) in records(history).items():
        asked = record["range"]
        if asked["to"] is not None and asked["to"] > record["requested_at"]:
            continue
        place = (chain, *asked.values())
        if record["event_count"] is not None and counts.setdefault(place, record["event_count"]) != record["event_count"]:
            yield f"{name}: {place}: {counts[place]} and {record['event_count']}"


@rule("An accepted certification names the range that was requested, and its events exist.")
def ranges_are_as_requested(history):
    for name, operations in requests(history).items():
        for one in operations:
            asked = {member: value for member, value in one.answer["range"].items() if value is not None}
            if asked != one.arguments["range"]:
                yield f"{name}: {one}"


@rule("A certification of events that were acknowledged before is not refused as one of no events.")
def existing_events_can_be_certified(history):
    for one in history.of("certify"):
        if one.status != 400 or one.arguments["chain"] not in history.final:
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
    for one in history.of("certify"):
        key = one.arguments["idempotency_key"]
        if one.good and key:
            place = (one.arguments["chain"], key)
            first = made.setdefault(place, one)
            if first.answer["certification_id"] != one.answer["certification_id"]:
                yield f"{place}: {str(first)[:300]} and {str(one)[:300]}"
    for name, operations in requests(history).items():
        fresh = [one for one in operations if one.headers.get("Idempotent-Replayed") != "true"]
        if len(fresh) > 1 or len({one.arguments["idempotency_key"] for one in operations}) > 1:
            yield f"{name}: {[str(one)[:200] for one in operations]}"


@rule("An accepted certification exists in the end, and it has ended.")
def accepted_certifications_end(history):
    for name, operations in requests(history).items():
        found = records(history).get(name)
        if not found or found[1]["status"] == "processing":
            yield f"{name}: {found and found[1]}; {operations[0]}"


@rule("A certification is completed, never failed, as nothing here fails for good.")
def certifications_complete(history):
    for name, (chain, record) in records(history).items():
        if record["status"] == "failed":
            yield f"{name} of {chain}: {record}"


@rule("What a certification says does not change, except for links, and nothing once it has ended.")
def certifications_go_forward(history):
    seen = {}
    for one in history.of("certification"):
        if one.good and one.arguments["chain"] == one.arguments["of_chain"]:
            seen.setdefault(one.answer["certification_id"], []).append(one)
    for name, operations in seen.items():
        for one in operations:
            for other in operations:
                if one.completed < other.invoked and one.answer["status"] != "processing" and \
                        fixed(one.answer) != fixed(other.answer):
                    yield f"{name}: {str(one)[:400]} then {str(other)[:400]}"
                    break


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
        if one.status == 404:
            yield str(one)


@rule("The verifier finds every archive valid with the published roots.")
def archives_verify(history):
    for name, download in archives(history).items():
        if download.answer["verified"] != 0:
            yield f"{name}: exit {download.answer['verified']}: {download.answer['verdict'][-600:]}"
