"""Rules about answers in general, and about the processes that give them."""

from account_model import accounts
from history import rule


@rule("No answer says that the service itself is at fault: 500.")
def no_internal_errors(history):
    for one in history.operations:
        if one.status == 500 or (isinstance(one.answer, dict) and one.answer.get("code") == "internal"):
            yield str(one)


# With which statuses a right request may be refused. Rules about keys, states, money and limits say when. 408: a client
# may have been too slow; 429: rates have a rule; 409 and 404: only where the request may be wrong.
WITH_A_KEY = {401, 403, 408, 429}
REFUSALS = {"register": {402, 409, 422}, "get_event": {404}, "get_content": {404}, "list": set(), "channel": set(),
            "balance": set(), "certify": {400, 402, 409}, "certification": {404}, "certifications": set()}


@rule("A request that is right is never refused as a wrong one.")
def right_requests_are_not_refused(history):
    for one in history.operations:
        if one.kind not in REFUSALS or not one.refused:
            continue
        own = one.arguments.get("of_chain", one.arguments.get("chain")) == one.arguments.get("chain")
        if one.status not in WITH_A_KEY | REFUSALS[one.kind] and (own or one.kind not in ("list", "certifications")):
            yield str(one)


# Commands that are right whatever the state of the account is.
ALWAYS_RIGHT = ("account suspend", "account resume", "account disable", "account enable", "account set",
                "account show", "channel suspend", "channel resume", "key create", "credits list",
                "notice list", "audit list", "purchase list", "limit list", "threshold list", "webhook list",
                "key list", "usage", "credits history", "pack list", "store backup")


@rule("A command that is right whatever the state of an account is never refused.")
def right_commands_are_not_refused(history):
    for one in history.operations:
        if one.refused and (one.kind in ALWAYS_RIGHT or one.kind == "credits add" and one.arguments["credits"] > 0):
            yield str(one)


@rule("The service's own check counts the events and certifications that its lists show.")
def store_check_counts(history):
    found = [one for one in history.of("store check", closing=True) if one.good]
    made = accounts(history)
    if not found or not all(account.complete for account in made):
        return
    certifications = {item["certification_id"] for one in history.of("certifications", closing=True) if one.good
                      for item in one.answer["data"]}
    counts = (sum(map(len, history.final.values())), len(certifications))
    if (found[-1].answer["events"], found[-1].answer["certifications"]) != counts:
        yield f"{found[-1]}, but the lists show {counts[0]} events and {counts[1]} certifications"


@rule("A refusal to be repeated later says when: 429 and 503 carry Retry-After.")
def refusals_say_when(history):
    for one in history.operations:
        if one.status in (429, 503) and "chain" in one.arguments and "Retry-After" not in one.headers:
            yield str(one)


@rule("No process ends that was not to end, and one that is stopped exits with 0.")
def processes_live(history):
    for end in history.ends:
        yield f"{end['process']} ended with {end['status']}: {end['log'][-1500:]}"


@rule("A request that had no answer or 5xx is answered in the end, when nothing is wrong any more.")
def everything_is_answered(history):
    for text in history.facts.get("unresolved", ()):
        yield text


@rule("The service's own check of its store finds nothing.")
def store_check_passes(history):
    for one in history.of("store check"):
        if not one.good and one.status != 503 and one.status != 0:
            yield str(one)
        elif one.good and one.answer.get("problems"):
            yield str(one)
