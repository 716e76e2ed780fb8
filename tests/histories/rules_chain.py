from history import rule, lasting, FOREVER

@rule("x")
def gapless(history):
    for chain, events in history.final.items():
        got=[e["sequence"] for e in events]
        if got != list(range(1,len(got)+1)):
            yield f"{chain}: {got[:20]}"
