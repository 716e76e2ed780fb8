"""Rules about answers in general, and about the processes that give them."""

from history import rule


@rule("No answer says that the service itself is at fault: 500.")
def no_internal_errors(history):
    for one in history.operations:
        if one.status == 500 or (isinstance(one.answer, dict) and one.answer.get("code") == "internal"):
            yield str(one)


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
