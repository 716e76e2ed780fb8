"""Draws a script from a seed: the constants and settings of the program, accounts with their channels and keys, what
each client does step by step, and the faults. A script is one JSON document, so that it can be kept, cut and run
again."""

import random

import declarations
import faults
import sizes
from script_accounts import ACCOUNT_WEIGHTS, AccountSteps

SECONDS = 6  # about how long the clients of a run take without faults
PAUSES = (0, 0, 0, 0.001, 0.005, 0.02, 0.1)

# What a client does next, and how often. A name ending in "…" is a method of Generator.
WEIGHTS = {
    "register": 30, "repeat": 8, "contradict": 3, "race": 3, "get_event": 6, "get_content": 4, "trespass": 2,
    "list": 6, "list_next": 14, "certify_by_sequence": 1.5, "certify_by_time": 2.5, "certify_again": 1,
    "certify_at_once": 0.5,
    "certification": 8, "download": 4, "verify": 1.5, "certifications": 2, "balance": 4, "channel": 1,
    "configure": 1.5, "key_create": 0.7, "key_revoke": 0.4, "credits_add": 2, "limit_create": 0.5,
    "twice": 3, "crowd": 2, **ACCOUNT_WEIGHTS,
}

# Steps on a series of backups are added to a script that is drawn, so that the others are the same with and without.
BACKUP_WEIGHTS = {"backup": 6, "backup_list": 2, "backup_verify": 2}


class Generator(AccountSteps):
    def __init__(self, seed, store, nodes, previous):
        self.random = random.Random(seed)
        self.script = {"version": 1, "seed": seed, "store": store, "nodes": nodes, "previous": previous,
                       "sizes": self.sizes(seed),
                       "settings": {}, "receivers": [], "setup": [], "clients": [], "faults": []}
        self.chains = {}  # of each chain: the modality and the names of its keys
        self.made = []    # steps so far, of all clients
        self.limited = []  # chains for which a limit was made
        self.counts = {}

    # ---- the whole ----

    def sizes(self, seed):
        """Draws the constants of the program: usual ones, some that are small, or those of the index smallest."""
        kind = self.random.random()
        return {} if kind < 0.2 else sizes.draw(seed, smallest=kind > 0.8)

    def draw(self):
        chosen = self.random
        self.surroundings()
        self.settings()
        self.shop()
        for number in range(chosen.choice((1, 2, 2, 3))):
            self.account(f"a{number}")
        self.weights = self.mixture()
        clients = chosen.choice((2, 4, 8, 12))
        length = chosen.choice((40, 80, 160)) * 8 // clients
        if chosen.random() < 0.5:  # all of them at one chain
            self.favourite = chosen.choice(list(self.chains))
        self.script["clients"] = [[] for _ in range(clients)]
        for _ in range(length):
            for steps in self.script["clients"]:
                steps.append(self.step(steps))
        self.script["faults"] = faults.draw(chosen, self.script, SECONDS)
        if "certification.give_up_after" in self.script["settings"] and chosen.random() < 0.5:
            self.script["faults"] += [{"fault": "authority", "at": 0.5, "for": 4.0, "authority": number,
                                       "mode": "silent"} for number in range(self.script["authorities"])]
        self.add_backups()
        return self.script

    favourite = None

    def mixture(self):
        """Returns how often each kind of step is drawn: some kinds often, some hardly ever, so that the work of a run
        differs from that of the next. A run with many certifications takes long."""
        return {name: weight * self.random.choice((0.02, 0.3, 1, 1, 1 if name.startswith("certify") else 3))
                for name, weight in WEIGHTS.items()} | {name: WEIGHTS[name] for name in ("register", "undo")}

    def surroundings(self):
        """The disk of the data (disks.py), and services outside (services.py); 0 authorities: the embedded one."""
        chosen = self.random
        disks = ("plain", "plain", "small", "forgetful", "forgetful", "ext4") if self.script["store"] == "sqlite" else (
            "plain",)
        self.script |= {"disk": chosen.choice(disks), "authorities": chosen.choice((0, 0, 1, 2)), "revocation": None,
                        "content": chosen.choice(("file", "file", "s3")), "mail": chosen.random() < 0.4}
        if self.script["authorities"]:
            self.script["revocation"] = chosen.choice((None, "authorities", "all"))

    def settings(self):
        chosen = self.random
        self.script["settings"] = {
            "seal.interval": chosen.choice(("300ms", "1s", "5s", "60s")),
            "http.loops": str(chosen.choice((1, 2))),
            # Not every authority outside publishes revocation data.
            "certification.level": chosen.choice(
                ("T", "LT", "LT", "LTA") if self.script["revocation"] else
                ("B", "T") if self.script["authorities"] else ("B", "T", "LT")),
            "certification.fee": str(chosen.choice((0, 0, 3))),
            # So short that endpoints are disabled, which is mailed.
            "webhook.schedule": "200ms,300ms" if self.script["mail"] and chosen.random() < 0.5 else "1s,1s,2s,2s,5s",
        }
        if chosen.random() < 0.2:  # so that an outage of an authority is too long for some
            self.script["settings"]["certification.give_up_after"] = "1s"
        if chosen.random() < 0.15:  # so that some requests come too fast
            self.script["settings"] |= {"rate.live": "25", "rate.test": "100"}

    def command(self, words, binds=None, **arguments):
        step = {"op": "admin", "words": words, "arguments": arguments}
        return {**step, "binds": binds} if binds else step

    def account(self, name):
        chosen, setup = self.random, self.script["setup"]
        setup.append(self.command("account create", name, name=name, credits=chosen.choice((0, 20, 100, 10_000)),
                                  unpaid_limit=chosen.choice((0, 5, 100)),
                                  **({"email": f"{name}@example.org"} if self.script["mail"] else {})))
        for answers in ([], [500] * (200 if self.script["mail"] else 2), [404])[:chosen.choice((0, 1, 1, 3))]:
            self.script["receivers"].append(answers)
            receiver = len(self.script["receivers"]) - 1
            setup.append(self.command("webhook create", f"{name}/webhook{receiver}", account={"$": name},
                                      url={"$": f"receiver {receiver}"}))
        for credits in chosen.sample((0, 5, 15, 50), chosen.choice((0, 1, 2))):
            setup.append(self.command("threshold create", f"{name}/threshold{credits}", account={"$": name},
                                      credits=credits))
        for number in range(chosen.choice((1, 2, 3))):
            modality = chosen.choice(("content", "content", "hash_only"))
            channel = f"{name}/{number}"
            setup.append(self.command("channel create", channel, account={"$": name}, name=channel,
                                      declarant="Histories", modality=modality))
            for mode in chosen.choice((("live",), ("live",), ("live", "test"))):
                chain = f"{channel}/{mode}"
                self.chains[chain] = {"modality": modality, "keys": []}
                for _ in range(chosen.choice((1, 2))):
                    setup.append(self.key(chain))
        self.account_shop(name)

    def key(self, chain):
        keys = self.chains[chain]["keys"]
        keys.append(f"{chain}/{self.number('key ' + chain)}")
        channel, mode = chain.rsplit("/", 1)
        return self.command("key create", keys[-1], channel={"$": channel}, mode=mode, name=keys[-1])

    def number(self, kind):
        self.counts[kind] = self.counts.get(kind, -1) + 1
        return self.counts[kind]

    # ---- a step ----

    def step(self, steps):
        while True:
            name = self.random.choices(list(self.weights), self.weights.values())[0]
            step = getattr(self, name)(steps)
            if step:
                break
        step["id"] = self.number("step")
        pause = self.random.choice(PAUSES)
        if pause:
            step.setdefault("pause", pause)
        self.made.append(step)
        return step

    def chain(self):
        if self.favourite and self.random.random() < 0.8:
            return self.favourite
        return self.random.choice(list(self.chains))

    def some_key(self, chain=None):
        return self.random.choice(self.chains[chain or self.chain()]["keys"])

    def earlier(self, *ops, of=None):
        """Returns an earlier step of one of these kinds, most often a recent one."""
        found = [step for step in (self.made if of is None else of) if step["op"] in ops]
        if not found:
            return None
        return self.random.choice(found[-30:] if self.random.random() < 0.7 else found)

    def register(self, _):
        chain = self.chain()
        return {"op": "register", "key": self.some_key(chain), "client_ref": f"r{self.number('ref')}",
                "content": declarations.draw(self.random, self.chains[chain]["modality"]),
                "retries": self.random.choice((0, 0, 2, 5))}

    def twice(self, steps):
        """Takes a step on two nodes at the same time."""
        if self.script["nodes"] < 2:
            return None
        step = self.register(steps) if self.random.random() < 0.7 else self.certify_by_sequence(steps)
        return {"op": "at_once", "apart": True, "steps": [step, dict(step)]}

    def crowd(self, _):
        """Registers several declarations of a chain at the same time, so that they are in one batch of the service, or
        in one request: each under a client_ref of its own, or under one that another has, with the same content or
        another."""
        chain, steps = self.chain(), []
        if self.limited and self.random.random() < 0.4:  # so that a limit is reached in the middle of a batch
            chain = self.random.choice(self.limited[-2:])
        for _ in range(self.random.choice((2, 4, 8, 16))):
            step = {"op": "register", "key": self.some_key(chain), "client_ref": f"r{self.number('ref')}",
                    "content": declarations.draw(self.random, self.chains[chain]["modality"])}
            if steps and self.random.random() < 0.4:
                same = self.random.choice(steps)
                step["client_ref"] = same["client_ref"]
                if self.random.random() < 0.5:
                    step["content"] = same["content"]
            steps.append(step)
        if self.random.random() < 0.5 and all(step["content"]["form"] != "file" for step in steps):
            return {"op": "batch", "key": steps[0]["key"], "steps": steps}
        return {"op": "at_once", "steps": steps}

    def repeat(self, _):
        first = self.earlier("register")
        if not first:
            return None
        return {"op": "repeat", "of": first["id"], "key": self.some_key(first["key"].rsplit("/", 1)[0])}

    def race(self, _):
        """Registers under a client_ref that another client is about to use, with the same content or another."""
        first = self.earlier("register", of=self.made[-12:])
        if not first:
            return None
        content = first["content"]
        if self.random.random() < 0.5:
            content = declarations.draw(self.random, self.chains[first["key"].rsplit("/", 1)[0]]["modality"])
        return {"op": "register", "key": first["key"], "client_ref": first["client_ref"], "content": content}

    def contradict(self, _):
        first = self.earlier("register")
        if not first:
            return None
        modality = self.chains[first["key"].rsplit("/", 1)[0]]["modality"]
        return {"op": "contradict", "of": first["id"], "content": declarations.draw(self.random, modality)}

    def get_event(self, steps):
        return self.referring(steps, "get_event", "register", "repeat")

    def get_content(self, steps):
        """Reads a content, most often of an event that has one."""
        first = self.earlier("register", of=steps if self.random.random() < 0.7 else None)
        if not first or (first["content"]["form"] == "hash" and self.random.random() < 0.9):
            return None
        return {"op": "get_content", "of": first["id"]}

    def referring(self, steps, op, *ops, **more):
        """Refers to an earlier step: most often of the same client, since that one is certainly over."""
        first = self.earlier(*ops, of=steps if self.random.random() < 0.7 else None)
        return {"op": op, "of": first["id"], **more} if first else None

    def trespass(self, steps):
        """Asks for what belongs to another chain, often to the other mode of the same channel."""
        op = self.random.choice(("get_event", "get_content", "certification"))
        found = "certify" if op == "certification" else "register"
        step = self.referring(steps, op, found, key=self.some_key())
        if step and self.random.random() < 0.5:
            channel, mode = self.made[step["of"]]["key"].rsplit("/", 2)[:2]
            other = f"{channel}/{'test' if mode == 'live' else 'live'}"
            if other in self.chains:
                step["key"] = self.some_key(other)
        return step

    def list(self, _):
        chosen, filters = self.random, {}
        kind = chosen.random()
        if 0.4 <= kind < 0.55:
            filters = {"from": self.time_mark(), "to": self.time_mark()}
        elif kind < 0.65:
            filters = {"seq_from": round(chosen.random(), 2)}
        elif kind < 0.73:
            filters = {"status": chosen.choice(("registered", "unpaid", "test"))}
        elif kind < 0.85 and (first := self.earlier("register")):
            return {"op": "list", "key": first["key"], "filters": {"client_ref": first["id"]}, "order": "asc",
                    "limit": 50}
        if kind < 0.4:
            filters = {}
        return {"op": "list", "key": self.some_key(), "filters": filters, "order": chosen.choice(("asc", "desc")),
                "limit": chosen.choice((1, 2, 2, 3, 3, 7, 7, 50, 500))}

    def time_mark(self):
        chosen = self.random
        if chosen.random() < 0.2:
            return ["now", chosen.choice((-1, 0, 0, 2))]
        return ["event", round(chosen.random(), 3), chosen.choice((0, 0, 1, -1, 1000))]

    def list_next(self, steps):
        """Continues a list, most often one that has more pages."""
        if self.random.random() < 0.8:
            steps = [step for step in steps if step.get("limit", 50) <= 7]
        first = self.earlier("list", "certifications", of=steps)
        return {"op": "list_next", "of": first["id"]} if first else None

    def certify_by_sequence(self, _):
        chosen = self.random
        return {"op": "certify", "key": self.some_key(), "seq_from": chosen.choice((0, 0, round(chosen.random(), 2))),
                "seq_to": chosen.choice((1, 1, round(chosen.random(), 2))), **self.idempotency()}

    def certify_by_time(self, _):
        end = ["now", self.random.choice((0, 0, 0.001, 60))] if self.random.random() < 0.6 else self.time_mark()
        return {"op": "certify", "key": self.some_key(), "from": self.time_mark(), "to": end, **self.idempotency()}

    def idempotency(self):
        chosen = self.random.random()
        return {"idempotency_key": f"i{self.random.randrange(6)}"} if chosen < 0.3 else {}

    def certify_again(self, _):
        first = self.earlier("certify")
        if not first:
            return None
        again = {"op": "certify", "key": first["key"], "of": first["id"]}
        if "idempotency_key" in first and self.random.random() < 0.8:
            again["idempotency_key"] = first["idempotency_key"]
        return again

    def certify_at_once(self, steps):
        """Requests one certification several times at the same time, as clients do that do not wait for an answer."""
        step = self.certify_by_time(steps) if self.random.random() < 0.5 else self.certify_by_sequence(steps)
        step["idempotency_key"] = f"i{self.random.randrange(6)}"
        return {"op": "at_once", "steps": [dict(step) for _ in range(self.random.choice((2, 4)))]}

    def certification(self, steps):
        return self.referring(steps, "certification", "certify")

    def download(self, steps):
        """Waits that long for the certification to be completed."""
        return self.referring(steps, "download", "certify", file=self.random.choice(("es", "en", "evidence")),
                              wait=self.random.choice((0, 0.5, 3)))

    def verify(self, steps):
        return self.referring(steps, "verify", "certify", by=self.random.choice(("code", "es", "evidence")))

    def certifications(self, _):
        return {"op": "certifications", "key": self.some_key(), "limit": self.random.choice((1, 2, 50))}

    def balance(self, _):
        return {"op": "balance", "key": self.some_key()}

    def channel(self, _):
        return {"op": "channel", "key": self.some_key()}

    # ---- operators ----

    def configure(self, _):
        channel = self.chain().rsplit("/", 1)[0]
        return self.command("channel configure", channel={"$": channel}, declarant=f"D{self.number('declarant')}")

    def key_create(self, _):
        return self.key(self.chain())

    def key_revoke(self, _):
        chain = self.chain()
        if len(self.chains[chain]["keys"]) < 2:
            return None
        key = self.chains[chain]["keys"].pop()
        revoke = self.command("key revoke", key={"$": key})
        if self.random.random() < 0.3:
            return revoke
        return {"op": "revoke_in_use", "key": key, "node": self.random.randrange(self.script["nodes"]),
                "before": self.random.choice((0, 1)), "after": 7, "steps": [revoke]}

    def credits_add(self, _):
        account = self.chain().split("/")[0]
        return self.command("credits add", account={"$": account}, credits=self.random.choice((1, 5, 20, 100)))

    def limit_create(self, _):
        chain = self.chain()
        of = {"channel": {"$": chain.rsplit("/", 1)[0]}} if chain.endswith("/test") or self.random.random() < 0.5 \
            else {"key": {"$": self.some_key(chain)}}
        self.limited.append(chain)
        return self.command("limit create", f"limit{self.number('limit')}", **of, period=self.random.choice(
            ("day", "month")), max=self.random.choice((5, 10, 40, 200)), action=self.random.choice(("warn", "block")))

    # ---- backups ----

    def add_backups(self):
        """Gives half of the scripts a series of backups, with increments and rotations. Earlier versions have none."""
        chosen = self.random = random.Random(f"backups {self.script['seed']}")
        self.script["backups"] = (self.script["store"] == "sqlite" and not self.script["previous"]
                                  and chosen.random() < 0.5)
        if not self.script["backups"]:
            return
        self.script["settings"] |= {"backup.keep": chosen.choice(("1", "2", "3")),
                                    "backup.full_every": chosen.choice(("1", "2", "3", "5"))}
        for _ in range(chosen.choice((2, 6, 20))):
            name = chosen.choices(list(BACKUP_WEIGHTS), BACKUP_WEIGHTS.values())[0]
            steps = chosen.choice(self.script["clients"])
            steps.insert(chosen.randrange(len(steps) + 1), {**getattr(self, name)(steps), "id": self.number("step")})
        self.script["faults"] += faults.draw_in_backups(chosen, self.script) if chosen.random() < 0.6 else []

    def backup(self, _):
        """Makes the next backup of the series, now and then without the contents."""
        return self.command("store backup", **({"no_content": True} if self.random.random() < 0.25 else {}))

    def backup_list(self, _):
        """Lists the series, without the service."""
        return {"op": "backup_list"}

    def backup_verify(self, _):
        """Verifies the newest backup, without the service."""
        return {"op": "backup_verify"}


def draw(seed, store="sqlite", nodes=1, previous=None):
    """`previous`: a program of an earlier version, with which the nodes begin."""
    return Generator(seed, store, nodes, previous).draw()
