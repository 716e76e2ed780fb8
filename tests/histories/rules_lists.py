"""Rules about lists: walks over pages with cursors, while events arrive."""

import functools

from history import FOREVER, rule

FILTERS = {
    "from": lambda event, value: event["received_at"] >= value,
    "to": lambda event, value: event["received_at"] < value,
    "seq_from": lambda event, value: event["sequence"] >= value,
    "seq_to": lambda event, value: event["sequence"] <= value,
    "client_ref": lambda event, value: event["client_ref"] == value,
    "status": lambda event, value: event["status"] == value,
}
CHANGING = {"status"}  # an event may match at one time and not at another


def walks(history, kind):
    """Returns the pages of each walk that were answered, in order; a page that was asked for twice counts once.
    Without walks that may have shown what was lost."""
    found = {}
    for one in history.of(kind):
        if one.good:
            found.setdefault(one.arguments["walk"], {}).setdefault(one.arguments["page"], one)
    return [[pages[number] for number in sorted(pages)] for pages in found.values()
            if not any(map(history.may_be_lost, pages.values()))]


def whole(pages):
    return not pages[-1].answer["has_more"]


def matches(event, filters):
    return all(FILTERS[name](event, value) for name, value in filters.items() if name not in CHANGING)


@functools.lru_cache(maxsize=1)
def by_ref(history):
    return {(chain, event["client_ref"]): [event] for chain, events in history.final.items() for event in events}


def matching(history, chain, filters):
    """Returns the events that a chain has in the end and that match, in order."""
    if "client_ref" in filters:  # many lists are of one event, and a chain may be long
        candidates = by_ref(history).get((chain, filters["client_ref"]), [])
    else:
        candidates = history.final[chain]
    return [event for event in candidates if matches(event, filters)]


@rule("The events of a list match its filters.")
def lists_match_their_filters(history):
    for one in history.of("list"):
        if one.good:
            for event in one.answer["data"]:
                if not all(FILTERS[name](event, value) for name, value in one.arguments["filters"].items()):
                    yield f"{str(one)[:300]}: {event}"


@rule("A list of the events that are registered shows in the end each one that was so before.")
def registered_events_are_listed(history):
    for pages in walks(history, "list"):
        first, chain = pages[0], pages[0].arguments["chain"]
        if first.closing and first.arguments["filters"] == {"status": "registered"} and whole(pages):
            shown = {event["event_id"] for page in pages for event in page.answer["data"]}
            missing = [event["sequence"] for event in history.final.get(chain, ())
                       if event["status"] == "registered" and event["event_id"] not in shown]
            if missing:
                yield f"{str(first)[:300]}, {len(pages)} pages: without {missing[:20]}"


@rule("A page has at most as many events as were asked for, and all of them if more follow.")
def pages_are_full(history):
    for one in history.of("list", "certifications"):
        if one.good:
            data, limit = one.answer["data"], one.arguments["limit"]
            short = one.answer["has_more"] and len(data) < limit and not one.arguments["filters"].keys() & CHANGING
            if len(data) > limit or short or bool(one.answer["next_cursor"]) != one.answer["has_more"]:
                yield f"{str(one)[:300]}: {len(data)} events, has_more {one.answer['has_more']}"


@rule("The pages of a walk show sequences in its order, each once; without a filter that changes, without a gap.")
def walks_are_in_order(history):
    for pages in walks(history, "list"):
        sequences = [event["sequence"] for page in pages for event in page.answer["data"]]
        step = 1 if pages[0].arguments["order"] == "asc" else -1
        changing = pages[0].arguments["filters"].keys() & CHANGING
        for before, after in zip(sequences, sequences[1:]):
            if (after - before) * step < 1 or (after != before + step and not changing):
                yield f"{str(pages[0])[:300]}: {before} is followed by {after}"
                break


@rule("A walk to its end shows every event that matches and was acknowledged before its last page was requested; "
      "one from the newest, before its first page was.")
def walks_show_everything(history):
    for pages in walks(history, "list"):
        chain, filters = pages[0].arguments["chain"], pages[0].arguments["filters"]
        if not whole(pages) or filters.keys() & CHANGING or chain not in history.final:
            continue
        shown = {event["sequence"] for page in pages for event in page.answer["data"]}
        asked = (pages[-1] if pages[0].arguments["order"] == "asc" else pages[0]).invoked
        acknowledged = history.acknowledged.get(chain, {})
        for event in matching(history, chain, filters):
            told = acknowledged.get(event["event_id"], FOREVER)
            if told < asked and event["sequence"] not in shown:
                yield (f"{str(pages[0])[:300]}, {len(pages)} pages, the last at {pages[-1].invoked:.3f}: "
                       f"without sequence {event['sequence']}, acknowledged at {told:.3f}")
                break


@functools.lru_cache(maxsize=1)
def first_seen(history):
    """Returns {(event_id, status): when an answer first stated it}."""
    found = {}
    for one, _, event in history.sightings:
        place = (event["event_id"], event["status"])
        found[place] = min(found.get(place, FOREVER), one.completed)
    return found


@rule("A walk by status to its end shows every event that had the status when it began and keeps it.")
def walks_by_status_show_everything(history):
    for pages in walks(history, "list"):
        chain, filters = pages[0].arguments["chain"], pages[0].arguments["filters"]
        if not whole(pages) or filters.keys() != {"status"} or chain not in history.final:
            continue
        shown, status = {event["sequence"] for page in pages for event in page.answer["data"]}, filters["status"]
        for event in history.final[chain]:
            since = first_seen(history).get((event["event_id"], status), FOREVER)
            if event["status"] == status and since < pages[0].invoked and event["sequence"] not in shown:
                yield f"{str(pages[0])[:300]}: without sequence {event['sequence']}, {status} since {since:.3f}"
                break


@rule("A walk begins with the first event that matches: the lowest sequence, or no lower one than the newest "
      "acknowledged.")
def walks_begin_at_the_end(history):
    for pages in walks(history, "list"):
        first = pages[0]
        chain, filters = first.arguments["chain"], first.arguments["filters"]
        if first.arguments["page"] or filters.keys() & CHANGING or chain not in history.final:
            continue
        acknowledged = history.acknowledged.get(chain, {})
        every = matching(history, chain, filters)
        due = [event["sequence"] for event in every
               if acknowledged.get(event["event_id"], FOREVER) < first.invoked]
        shown = [event["sequence"] for event in first.answer["data"]]
        if first.arguments["order"] == "asc":  # the first one may have been registered without an answer
            wrong = due and (not shown or shown[0] != every[0]["sequence"])
        else:
            wrong = due and (not shown or shown[0] < max(due))
        if wrong:
            yield f"{str(first)[:300]}: begins with {shown[:2]}, acknowledged were {min(due)} to {max(due)}"


@rule("A walk over certifications shows the newest first, each once, and all that were accepted before it began.")
def certifications_are_listed(history):
    accepted = {}
    for one in history.of("certify"):
        if one.good:
            times = accepted.setdefault(one.arguments["chain"], {})
            name = one.answer["certification_id"]
            times[name] = min(times.get(name, FOREVER), one.completed)
    for pages in walks(history, "certifications"):
        shown = [item["certification_id"] for page in pages for item in page.answer["data"]]
        due = {name for name, told in accepted.get(pages[0].arguments["chain"], {}).items()
               if told < pages[0].invoked}
        if len(shown) != len(set(shown)) or (whole(pages) and not due <= set(shown)):
            yield f"{str(pages[0])[:200]}: {shown}, without {sorted(due - set(shown))}"
        if shown != sorted(shown, reverse=True):  # by their numbers: two requests at one time may pass each other
            yield f"{str(pages[0])[:200]}: {shown}"


@functools.lru_cache(maxsize=1)
def owners(history):
    """Returns {event_id: its chain}."""
    return {event["event_id"]: chain for chain, events in history.final.items() for event in events}


@rule("An event is seen by the keys of its chain alone.")
def nothing_is_seen_by_others(history):
    of_event = owners(history)
    for one, chain, event in history.sightings:
        if of_event.get(event["event_id"], chain) != chain:
            yield f"{str(one)[:300]}: {event['event_id']} belongs to {of_event[event['event_id']]}"
    for one in history.of("get_event", "get_content", "certification"):
        if one.arguments["chain"] != one.arguments["of_chain"] and one.good:
            yield str(one)
