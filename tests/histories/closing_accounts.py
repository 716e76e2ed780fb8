"""What the end of a run does and reads of each account: suspensions are ended, payments and certifications come to
their ends, and then the lists of its operator are read."""

import time

PATIENCE = 150  # seconds; the lease of a payment whose node was killed lasts 75
LISTS = (("credits list", "before", "number"), ("notice list", "before", "number"), ("audit list", "after", "act_id"),
         ("purchase list", "after", "sale_id"), ("limit list", "after", "limit_id"),
         ("threshold list", "after", "threshold_id"), ("webhook list", "after", "endpoint_id"),
         ("key list", "after", "key_id"), ("usage", "after", "row"), ("credits history", "after", "day"))
PAGE = 1000


def made(run, words):
    """Returns the names of what such commands made."""
    return [one.arguments["name"] for one in run.operations if one.kind == words and one.good]


class ClosingAccounts:
    def __init__(self, closing):
        self.closing, self.run = closing, closing.run

    def command(self, words, binds=None, **arguments):
        step = {"op": "admin", "words": words, "arguments": arguments}
        return self.closing.until_answered({**step, "binds": binds} if binds else step)

    def walk(self, words, cursor, member, **arguments):
        """Reads all pages of a list of the operator."""
        items, more = [], {}
        while True:
            page = self.command(words, limit=PAGE, **arguments, **more)
            if not page or not page.good:
                return items
            items += page.answer["data"]
            if not page.answer.get("has_more"):
                return items
            more = {cursor: items[-1][member]}

    # ---- before anything is read ----

    def end_states(self):
        """What was suspended works again, and what the service does on its own stops."""
        for name in made(self.run, "account create"):
            self.command("account enable", account={"$": name})
            self.command("account resume", account={"$": name})
            self.command("topup off", account={"$": name})
        for name in made(self.run, "channel create"):
            self.command("channel resume", channel={"$": name})
        for name in sorted({one.arguments["endpoint"] for one in self.run.operations if "endpoint" in one.arguments}):
            self.command("webhook enable", endpoint={"$": name})
        self.add_keys()

    def add_keys(self):
        """Gives a key to each chain that has none left."""
        for channel, mode in sorted({(one.arguments["channel"], one.arguments["mode"]) for one in self.run.operations
                                     if one.kind == "key create"}):
            if f"{channel}/{mode}" not in dict(self.closing.keys()):
                name = f"{channel}/{mode}/closing"
                self.command("key create", name, channel={"$": channel}, mode=mode, name=name)

    # ---- until nothing moves ----

    def settle(self):
        provider = self.run.world.provider
        if provider:
            provider.recover()
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if provider:
                settle_payments(provider)
            accounts = made(self.run, "account create")
            if not any(self.moves(name) for name in accounts):
                return
            time.sleep(0.2)

    def moves(self, account):
        purchases = self.walk("purchase list", "after", "sale_id", account={"$": account})
        if any(one["payment"] and one["payment"]["state"] != "over" and one["provider"] != "manual"
               for one in purchases):
            return True
        return any(self.certifies(channel) for channel in made(self.run, "channel create")
                   if channel.split("/")[0] == account)

    def certifies(self, channel):
        done = self.command("certification list", channel={"$": channel}, status="processing", limit=1)
        return bool(done and done.good and done.answer["data"])

    # ---- lists ----

    def read(self):
        for name in made(self.run, "account create"):
            account = {"$": name}
            self.command("account show", account=account)
            self.command("topup show", account=account)
            if self.run.world.services.mail:
                self.command("user list", account=account)
            for words, cursor, member in LISTS:
                found = self.walk(words, cursor, member, account=account)
                if words == "notice list":
                    for notice in found:
                        self.command("notice show", notice=notice["notice_id"])
        self.walk("audit list", "after", "act_id", installation=True)
        self.walk("pack list", "after", "pack_id")


def settle_payments(provider):
    """What the provider left open is paid; what the service did not take is sent again."""
    for intent in list(provider.intents.values()):
        if intent["status"] == "processing":
            provider.finish_processing(intent["id"])
    for event, status in list(provider.sent):
        if status != 200 and not any(sent is event and status == 200 for sent, status in list(provider.sent)):
            provider.deliver(event)


def charges(provider):
    """Returns what the provider charged and gave back, for the facts of a history."""
    if not provider:
        return {}
    codes = {name: intent["metadata"].get("sale_code") for name, intent in list(provider.intents.items())}
    return {"charges": [{"sale": one.sale_code, "amount": one.amount, "currency": one.currency, "key": one.key}
                        for one in provider.charges],
            "refunds": [codes.get(name) for name in provider.refunds]}
