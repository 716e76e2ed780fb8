"""The steps of a script that concern an account: money, limits, states, keys, endpoints of notices. A part of
script.Generator."""

# What a client does next, and how often, in addition to script.WEIGHTS.
ACCOUNT_WEIGHTS = {
    "undo": 15, "purchase_create": 1.5, "purchase_pay": 2, "purchase_again": 0.5, "payment_notice": 1, "topup_back": 0.8,
    "purchase_cancel": 0.4, "purchase_back": 0.8, "pack_create": 0.2, "pack_switch": 0.2,
    "topup_set": 0.4, "topup_switch": 0.4, "topup_spur": 0.4, "threshold_create": 0.4,
    "threshold_delete": 0.15, "limit_delete": 0.3, "credits_take": 0.6,
    "credits_revert": 0.2, "account_suspend": 0.15, "account_disable": 0.1, "channel_suspend": 0.2,
    "account_set": 0.2, "key_expire": 0.25, "webhook_create": 0.25, "webhook_rotate": 0.4, "webhook_update": 0.3,
    "webhook_disable": 0.25, "webhook_delete": 0.1, "webhook_test": 0.5, "webhook_replay": 0.3,
    "certification_request": 0.8, "user_invite": 4, "cursor_trespass": 1.5, "account_show": 1,
}

# How the payment provider deals with its next charges (tests/support/payment_provider.py).
BEHAVIOURS = ("pay", "pay", "pay", "decline", "authenticate", "expired", "no_method", "process", "lose", "lose",
              "lose_decline", "cut", "error_after", "unavailable", "rate", "conflict", "garbage")

ROLES = ("owner", "developer", "accountant", "reader")

NOTICE_TYPES = ("balance.low", "balance.exhausted", "events.unpaid_limit_reached", "consumption.limit_reached",
                "certification.completed,certification.failed", "recharge.auto_completed,recharge.auto_failed")


class AccountSteps:
    def shop(self):
        """The provider of payments, and packs for all accounts."""
        chosen = self.random
        self.undos = []  # [(steps of a client, a step that ends what one of them began)]
        self.sales, self.packs, self.topups = {}, [], set()
        self.paid, self.deleted = [], set()  # names of sales and of endpoints
        if chosen.random() < 0.6:
            self.script["provider"] = {"behaviours": chosen.choices(BEHAVIOURS, k=chosen.choice((0, 5, 20))),
                                       "notices": chosen.choice(("send", "send", "twice"))}
        for _ in range(chosen.choice((1, 2))):
            self.script["setup"].append(self.pack_create(None))

    def account_shop(self, name):
        """What an account buys with."""
        chosen, setup = self.random, self.script["setup"]
        self.sales[name] = []
        if chosen.random() < 0.7:
            setup.append(self.command("account billing", account={"$": name}, country="ES", customer="cus_" + name,
                                      payment_method="pm_card", tax_rate=chosen.choice(("0", "21"))))
        if chosen.random() < 0.5:
            setup.append(self.set_topup(name, chosen.choice((1, 5, 20))))

    def some_account(self):
        return self.chain().split("/")[0]

    def earlier_command(self, *words, account=None):
        """Returns an earlier command of this kind that creates something, or None."""
        found = [step for step in self.script["setup"] + self.made if step["op"] == "admin" and step["words"] in words
                 and "binds" in step and (account is None or step["arguments"].get("account") == {"$": account})]
        return self.random.choice(found) if found else None

    def undo(self, steps):
        """Ends a suspension or the like that the same client began. Most are short, since a suspended account does
        nothing else; some are long enough to be in force at every node."""
        found = next((one for one in self.undos if one[0] is steps), None)
        if not found:
            return None
        self.undos.remove(found)
        pause = self.random.choice((0, 0, 0.3, 2.5))
        return {**found[1], "pause": pause} if pause else found[1]

    # ---- money ----

    def pack_create(self, _):
        chosen, name = self.random, f"pack{self.number('pack')}"
        own = {"account": {"$": self.some_account()}} if self.chains and chosen.random() < 0.3 else {}
        self.packs.append((name, own))
        return self.command("pack create", name, name=name, credits=chosen.choice((1, 3, 10, 40)),
                            price=chosen.choice(("1.00", "9.99", "10.00")), currency="EUR", **own)

    def some_pack(self, account):
        return self.random.choice([name for name, own in self.packs if own in ({}, {"account": {"$": account}})])

    def pack_switch(self, steps):
        name = self.random.choice(self.packs)[0]
        self.undos.append((steps, self.command("pack offer", pack={"$": name})))
        return self.command("pack withdraw", pack={"$": name})

    def purchase_create(self, _):
        account = self.some_account()
        self.sales[account].append(f"{account}/sale{self.number('sale')}")
        return self.command("purchase create", self.sales[account][-1], account={"$": account},
                            pack={"$": self.some_pack(account)})

    def of_sale(self, *verbs, last=6):
        sales = self.sales[self.some_account()][-last:]
        return self.command("purchase " + self.random.choice(verbs), sale={"$": self.random.choice(sales)}) \
            if sales else None

    def purchase_pay(self, _):
        step = self.of_sale("pay", last=3)
        if step:
            self.paid.append(step["arguments"]["sale"]["$"])
        return step

    def purchase_again(self, _):
        return self.of_sale("pay", "show", last=10)

    def payment_notice(self, _):
        return {"op": "payment_notice", "place": round(self.random.random(), 3)} if "provider" in self.script else None

    def topup_back(self, _):
        return {"op": "topup_back", "account": self.some_account(), "place": round(self.random.random(), 3),
                "words": self.random.choice(("purchase refund", "purchase revert"))} if "provider" in self.script \
            else None

    def purchase_cancel(self, _):
        return self.of_sale("cancel")

    def purchase_back(self, _):
        """Gives a purchase back that was paid, most often."""
        if not self.paid or self.random.random() < 0.2:
            return self.of_sale("refund", "revert")
        sale = self.paid.pop(self.random.randrange(len(self.paid)))
        return self.command("purchase " + self.random.choice(("refund", "revert")), sale={"$": sale})

    def set_topup(self, account, threshold):
        self.topups.add(account)
        return self.command("topup set", account={"$": account}, threshold=threshold,
                            pack={"$": self.some_pack(account)}, daily_max=self.random.choice((1, 3, 1000)))

    def topup_set(self, _):
        return self.set_topup(self.some_account(), self.random.choice((1, 5, 20)))

    def topup_switch(self, steps):
        account = self.some_account()
        if account not in self.topups:
            return None
        self.undos.append((steps, self.command("topup on", account={"$": account})))
        return self.command("topup off", account={"$": account})

    def topup_spur(self, _):
        """Takes so much that a top-up may be due, or turns a failed one on."""
        account = self.some_account()
        if account in self.topups and self.random.random() < 0.6:
            return self.command("topup on", account={"$": account})
        return self.command("credits add", account={"$": account}, credits=-self.random.choice((20, 60)))

    def credits_take(self, _):
        return self.command("credits add", account={"$": self.some_account()},
                            credits=-self.random.choice((1, 3, 10, 500)))

    def credits_revert(self, _):
        return self.command("credits add", account={"$": self.some_account()}, revert=True,
                            credits=-self.random.choice((1, 10, 30)))

    def account_show(self, _):
        return self.command("account show", account={"$": self.some_account()})

    # ---- thresholds and limits ----

    def threshold_create(self, _):
        account = self.some_account()
        return self.command("threshold create", f"{account}/low{self.number('threshold')}",
                            account={"$": account}, credits=self.random.choice((0, 1, 3, 10, 30)))

    def threshold_delete(self, _):
        first = self.earlier_command("threshold create", account=self.some_account())
        return self.command("threshold delete", threshold={"$": first["binds"]}) if first else None

    def limit_delete(self, _):
        first = self.earlier_command("limit create")
        return self.command("limit delete", limit={"$": first["binds"]}) if first else None

    def account_set(self, _):
        return self.command("account set", account={"$": self.some_account()},
                            unpaid_limit=self.random.choice((0, 2, 10, 100)))

    # ---- states ----

    def with_undo(self, steps, words, back, **arguments):
        self.undos.append((steps, self.command(back, **arguments)))
        return self.command(words, **arguments)

    def account_suspend(self, steps):
        return self.with_undo(steps, "account suspend", "account resume", account={"$": self.some_account()})

    def account_disable(self, steps):
        return self.with_undo(steps, "account disable", "account enable", account={"$": self.some_account()})

    def channel_suspend(self, steps):
        return self.with_undo(steps, "channel suspend", "channel resume", channel={"$": self.chain().rsplit("/", 1)[0]})

    def key_expire(self, steps):
        keys = self.chains[self.chain()]["keys"]
        if len(keys) < 2:
            return None
        key = {"$": keys[self.random.randrange(len(keys) - 1)]}
        self.undos.append((steps, self.command("key expire", key=key, at="never")))
        return self.command("key expire", key=key, at=self.random.choice(("1s", "1s", "2s", "1h")))

    # ---- endpoints ----

    def receiver(self, *answers):
        self.script["receivers"].append(list(answers))
        return {"$": f"receiver {len(self.script['receivers']) - 1}"}

    def types(self, absent=0.6):
        return {} if self.random.random() < absent else {"types": self.random.choice(NOTICE_TYPES)}

    def webhook_create(self, _):
        account, url = self.some_account(), self.receiver(*self.random.choice(((), (500,))))
        return self.command("webhook create", f"{account}/webhook{url['$'].split()[1]}", account={"$": account},
                            url=url, **self.types())

    def of_endpoint(self, words, **arguments):
        first = self.earlier_command("webhook create", account=self.some_account())
        if not first or (first["binds"] in self.deleted and self.random.random() < 0.9):
            return None
        return self.command(words, endpoint={"$": first["binds"]}, **arguments)

    def webhook_rotate(self, _):
        step = self.of_endpoint("webhook rotate", **({"end_previous": True} if self.random.random() < 0.5 else {}))
        return step and {**step, "binds": step["arguments"]["endpoint"]["$"]}

    def webhook_update(self, _):
        if self.random.random() < 0.5:
            return self.of_endpoint("webhook update", types=self.random.choice(("all", *NOTICE_TYPES)))
        return self.of_endpoint("webhook update", url=self.receiver())

    def webhook_disable(self, steps):
        step = self.of_endpoint("webhook disable")
        if step:
            self.undos.append((steps, self.command("webhook enable", **step["arguments"])))
        return step

    def webhook_delete(self, _):
        step = self.of_endpoint("webhook delete")
        if step:
            self.deleted.add(step["arguments"]["endpoint"]["$"])
        return step

    def webhook_test(self, _):
        return self.of_endpoint("webhook test")

    def webhook_replay(self, _):
        return self.of_endpoint("webhook replay", missed=True)

    # ---- others ----

    def certification_request(self, _):
        chain, chosen = self.chain(), self.random
        channel, mode = chain.rsplit("/", 1)
        first = chosen.choice((1, 1, 2))
        return self.command("certification request", channel={"$": channel}, mode=mode, seq_from=first,
                            seq_to=first + chosen.choice((0, 2, 10)),
                            **({"idempotency_key": f"o{chosen.randrange(4)}"} if chosen.random() < 0.4 else {}))

    def user_invite(self, _):
        """Invites a new user of the console, or now and then one that was invited before."""
        if not self.script["mail"] or self.script["previous"]:
            return None
        chosen, invited = self.random, [step for step in self.made if step.get("words") == "user invite"]
        email = f"u{self.number('user')}@example.org"
        if chosen.random() < 0.2 and invited:
            email = chosen.choice(invited[-10:])["arguments"]["email"]
        return self.command("user invite", account={"$": self.some_account()}, email=email, role=chosen.choice(ROLES),
                            language=chosen.choice(("en", "es")))

    def cursor_trespass(self, steps):
        """Continues a list with a key of another chain."""
        first = self.earlier("list", "certifications", of=steps)
        others = [chain for chain in self.chains if first and chain != first["key"].rsplit("/", 1)[0]]
        if not others:
            return None
        return {"op": "list_next", "of": first["id"], "key": self.some_key(self.random.choice(others))}


__all__ = ["ACCOUNT_WEIGHTS", "AccountSteps"]
