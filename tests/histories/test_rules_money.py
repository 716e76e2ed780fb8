"""Each rule of rules_money.py, rules_notices.py and rules_access.py holds for a right history, made by hand, and is
violated by one in which a single thing is wrong."""

import copy
import datetime as dt
import hashlib
import hmac
import json

import builders
import rules_access
import rules_money
import rules_notices
from history import RULES, Fault, History, Operation

MINE = {rules_access.__name__, rules_money.__name__, rules_notices.__name__}
DAY = "2026-01-02"
MANY = 300.0  # when the last of it was read


def stamp(seconds):
    return f"{DAY}T00:{int(seconds) // 60:02}:{int(seconds) % 60:02}.000000Z"


class Made:
    """A service that answers at once, and the history of what was requested of it: one account `a0` with the channel
    `a0/0`, a live key, an endpoint and a threshold of one credit."""

    def __init__(self, credits=2, unpaid_limit=2, settings=None):
        self.time, self.operations, self.deliveries = 0.0, [], []
        self.facts = {"names": {}, "charges": [], "refunds": []}
        self.settings = {"webhook.schedule": "1s,1s", "certification.fee": "0", **(settings or {})}
        self.balance, self.unpaid, self.events, self.movements = 0, [], [], []
        self.acts, self.notices, self.sales, self.certifications = [], [], {}, []
        self.versions, self.limits, self.count = [], {}, 0
        self.unpaid_limit = unpaid_limit
        create = self.command("account create", "setup", name="a0", credits=credits, unpaid_limit=unpaid_limit)
        create.answer = {"account_id": self.name("a0", "acc_0")}
        self.move("adjustment", credits, "initial credits")
        self.endpoint = {"endpoint_id": self.name("a0/webhook0", "whk_0"), "account_id": "acc_0", "types": None,
                         "url": self.name("receiver 0", "http://127.0.0.1:1/hook"), "created_at": stamp(0)}
        self.command("webhook create", "setup", account="a0", url="receiver 0").answer = {
            **self.endpoint, "secret": "whsec_0", "secret_version": 1}
        self.secret = "whsec_0"
        self.command("threshold create", "setup", account="a0", credits=1).answer = {
            "threshold_id": self.name("a0/threshold1", "thr_0"), "account_id": "acc_0", "credits": 1}
        self.command("channel create", "setup", account="a0", name="a0/0", modality="content", declarant="A").answer = {
            "channel_id": self.name("a0/0", "chn_0")}
        self.version("A")
        self.keys = []
        self.key("a0/0/live/0")
        self.key("a0/0/live/1")
        self.command("pack create", "setup", name="pack0", credits=3, price="1.00", currency="EUR").answer = {
            "pack_id": self.name("pack0", "pck_0")}

    def name(self, name, identifier):
        self.facts["names"][name] = identifier
        return identifier

    # ---- operations ----

    def operation(self, kind, arguments, status=200, answer=None, client="client 0", closing=False):
        self.time += 0.01
        one = Operation(len(self.operations) + 1, client, kind, arguments, self.time, self.time + 0.005, status, answer,
                        closing=closing)
        self.operations.append(one)
        return one

    def command(self, words, client="client 0", status=200, **arguments):
        one = self.operation(words, {**arguments, "reason": f"#{len(self.operations) + 1}"}, status, {}, client)
        if status == 200:
            urgent = words in rules_access.SWITCHES
            names = self.facts["names"]
            self.acts.append({"number": sum(act["urgent"] == urgent for act in self.acts) + 1, "urgent": urgent,
                              "act_id": f"act_{len(self.acts)}", "operation": words, "reason": one.arguments["reason"],
                              "via": "socket", "account_id": "acc_0", "arguments": {
                                  name: names.get(value, value) for name, value in arguments.items()}})
        return one

    def key(self, name):
        channel, mode, _ = name.rsplit("/", 2)
        key = {"key_id": self.name(name, "key_" + name[-1]), "channel_id": "chn_0", "mode": mode, "name": name,
               "last_four": "abcd", "created_at": stamp(0)}
        self.keys.append(key)
        self.command("key create", "setup", channel=channel, mode=mode, name=name).answer = key

    def ask(self, kind, key="a0/0/live/0", status=200, answer=None, closing=False, **arguments):
        return self.operation(kind, {**arguments, "key": key, "chain": key.rsplit("/", 1)[0]}, status, answer,
                              closing=closing)

    # ---- money ----

    def move(self, kind, credits, reference=None, **more):
        before, self.balance = self.balance, self.balance + credits
        self.movements.append({"number": len(self.movements) + 1, "kind": kind, "credits": credits,
                               "balance": self.balance, "reference": reference, "channel_id": None,
                               "at": stamp(self.time), **more})
        if credits > 0 and self.balance > 0 and self.unpaid:
            settled = self.unpaid[:self.balance]
            for event in settled:
                event["status"] = "registered"
            del self.unpaid[:len(settled)]
            self.move("settlement", -len(settled), reference)
        if before > 1 >= self.balance and kind != "settlement":
            self.notify("balance.low", threshold_id="thr_0", threshold=1, balance=self.balance)
        return self.balance

    def standing(self):
        return {"balance": self.balance, "unpaid_events": len(self.unpaid),
                "operational": self.balance >= 0 and not self.unpaid}

    def add(self, credits):
        one = self.command("credits add", account="a0", credits=credits)
        self.move("adjustment", credits, one.arguments["reason"])
        one.answer = self.standing()
        return one

    def register(self, key="a0/0/live/0"):
        number = len(self.events) + 1
        event = {"event_id": f"evt_{number}", "channel_id": "chn_0", "client_ref": f"r{number}", "sequence": number,
                 "received_at": stamp(self.time), "hash": "00", "status": "registered", "mode": "live",
                 "config_version": len(self.versions)}
        one = self.ask("register", key, 201, dict(event), client_ref=f"r{number}", identity=["00", "sha-256", None])
        self.events.append(event)
        self.count_limits(key)
        if self.balance > 0:
            self.move("events", -1, channel_id="chn_0", first_sequence=number, last_sequence=number)
        else:
            self.unpaid.append(event)
            event["status"] = one.answer["status"] = "unpaid"
            if len(self.unpaid) == 1:
                self.notify("balance.exhausted", channel_id="chn_0")
            if len(self.unpaid) == self.unpaid_limit:
                self.notify("events.unpaid_limit_reached", **dict.fromkeys(
                    ("unpaid_limit", "unpaid_events", "unpaid_credits"), self.unpaid_limit))
        return one

    def limit(self, most, action="block"):
        one = self.command("limit create", channel="a0/0", period="day", max=most, action=action)
        one.answer = {"limit_id": self.name("limit0", "lim_0"), "scope": "channel", "key_id": None, "period": "day",
                      "max_events": most, "action": action, "channel_id": "chn_0"}
        self.limits["lim_0"] = one.answer

    def count_limits(self, _):
        for limit in self.limits.values():
            if len(self.events) == limit["max_events"]:
                self.notify("consumption.limit_reached", **limit, period_key=DAY)

    def sale(self, automatic=False):
        sale = {"sale_id": f"sal_{len(self.sales)}", "account_id": "acc_0", "pack_id": "pck_0", "credits": 3,
                "amount": "1.00", "currency": "EUR", "total": "1.00", "tax": "0.00", "state": "pending",
                "automatic": automatic, "provider": "stripe", "payment": None, "created_at": stamp(self.time),
                "paid_at": None}
        self.sales[sale["sale_id"]] = sale
        if not automatic:
            self.name(f"a0/sale{len(self.sales) - 1}", sale["sale_id"])
            self.command("purchase create", account="a0", pack="pack0").answer = dict(sale)
        return sale

    def pay(self, sale):
        sale["state"], sale["paid_at"] = "paid", stamp(self.time)
        if not sale["automatic"]:
            one = self.command("purchase pay", sale=f"a0/sale{sale['sale_id'][4:]}")
            self.move("purchase", 3, sale["sale_id"])
            one.answer = {**sale, **self.standing()}

    def top_up(self):
        """As the service does by itself."""
        sale = self.sale(automatic=True)
        sale["payment"] = {"action": "charge", "state": "over"}
        self.pay(sale)
        self.facts["charges"].append({"sale": sale["sale_id"], "amount": 100, "currency": "eur", "key": "k"})
        self.move("purchase", 3, sale["sale_id"])
        self.notify("recharge.auto_completed", recharge_id=sale["sale_id"], pack_id="pck_0", credits=3, amount="1.00",
                    currency="EUR", threshold=2, balance=self.balance)

    # ---- others ----

    def version(self, declarant):
        if self.versions:
            self.command("channel configure", channel="a0/0", declarant=declarant)
        self.versions.append({"version": len(self.versions) + 1, "declarant": declarant})

    def channel(self, closing=False):
        self.ask("channel", answer={"channel_id": "chn_0", "config_versions": list(self.versions),
                                    "current_config": self.versions[-1]}, closing=closing)

    def certify(self, fee=0):
        name = f"CERT-2026-{len(self.certifications) + 1:07}"
        item = {"certification_id": name, "channel_id": "chn_0", "mode": "live", "status": "completed",
                "event_count": 1, "verification_code": "SVC-1"}
        self.ask("certify", status=202, answer={**item, "status": "processing"}, range={"seq_from": 1, "seq_to": 1})
        self.certifications.append(item)
        if fee:
            self.move("fee", -fee, name)
        self.notify("certification.completed", certification_id=name, channel_id="chn_0", status="completed",
                    event_count=1, verification_code="SVC-1")

    def notify(self, kind, **data):
        record = {"id": f"ntc_{len(self.notices)}", "type": kind, "created_at": stamp(self.time), "mode": "live",
                  "data": data}
        self.notices.append((record, json.dumps(record)))
        self.deliver(record)

    def deliver(self, record):
        body = json.dumps(record)
        mac = hmac.new(self.secret.encode(), b"1." + body.encode(), hashlib.sha256).hexdigest()
        self.deliveries.append({"receiver": 0, "at": self.time + 0.004, "status": 200, "record": record, "body": body,
                                "id": record["id"], "timestamp": "1", "signature": "v1=" + mac})

    def send_test(self):
        one = self.command("webhook test", endpoint="a0/webhook0")
        record = {"id": f"tst_{one.number}", "type": "webhook.test", "created_at": stamp(self.time), "mode": "live",
                  "data": {"endpoint_id": "whk_0", "message": "test"}}
        self.deliver(record)
        one.answer = {"notice_id": record["id"], "delivered": True}

    def rotate(self):
        one = self.command("webhook rotate", endpoint="a0/webhook0")
        self.secret = "whsec_1"
        one.answer = {"endpoint_id": "whk_0", "secret": self.secret, "secret_version": 2}

    # ---- the end ----

    def listed(self, words, items, **arguments):
        return self.operation(words, {"limit": 1000, **arguments}, 200, {"data": items, "has_more": False}, "closing",
                              True)

    def history(self):
        """Reads everything and returns the history."""
        self.time = MANY
        self.ask("list", closing=True, order="asc", filters={}, walk=0, page=0,
                 answer={"data": copy.deepcopy(self.events), "has_more": False})
        self.ask("certifications", closing=True, filters={}, walk=1, page=0,
                 answer={"data": self.certifications, "has_more": False})
        self.ask("balance", closing=True, answer=self.standing(), account="a0")
        self.channel(closing=True)
        self.operation("account show", {"account": "a0"}, 200, self.standing(), "closing", True)
        self.listed("credits list", self.movements[::-1], account="a0")
        self.listed("purchase list", list(self.sales.values()), account="a0")
        self.listed("notice list", [self.view(record) for record, _ in self.notices], account="a0")
        for record, body in self.notices:
            self.operation("notice show", {"notice": record["id"]}, 200, {**self.view(record), "body": body}, "closing",
                           True)
        self.listed("webhook list", [{"enabled": True, **self.endpoint}], account="a0")
        paid = sum(-one["credits"] for one in self.movements if one["kind"] == "events")
        self.listed("threshold list", [{"threshold_id": "thr_0", "account_id": "acc_0", "credits": 1,
                                       "armed": self.balance > 1}], account="a0")
        self.listed("limit list", [{**limit, "used": len(self.events)} for limit in self.limits.values()],
                    account="a0")
        self.listed("key list", [{**key, "state": "revoked" if any(
            one.kind == "key revoke" and one.arguments["key"] == key["name"] and
            "replicated" not in one.answer for one in self.operations) else "valid"} for key in self.keys],
                    account="a0")
        day = dict.fromkeys(rules_money.COLUMNS.values(), 0)
        for one in self.movements:
            day[rules_money.COLUMNS[one["kind"]]] += one["credits"]
        day |= {"day": DAY, "balance": self.balance, "unpaid_events": len(self.unpaid)}
        self.listed("credits history", [day], account="a0")
        fees = sum(-one["credits"] for one in self.movements if one["kind"] == "fee")
        self.listed("usage", [{"channel_id": "chn_0", "key_id": "key_0", "mode": "live", "events": len(self.events),
                               "unpaid_events": len(self.events) - paid, "content_bytes": 0, "credits": paid + fees,
                               "fees": fees, "refunds": 0, "certifications_failed": 0,
                               "events_certified": len(self.certifications),
                               "certifications_requested": len(self.certifications),
                               "certifications_completed": len(self.certifications)}], account="a0")
        self.listed("pack list", [{"pack_id": "pck_0", "credits": 3, "price": "1.00", "currency": "EUR"}])
        self.listed("audit list", chained(self.acts)[::-1], account="a0")
        self.listed("audit list", [], installation=True)
        return History({"settings": self.settings}, self.operations, [], self.deliveries, [], self.facts)

    @staticmethod
    def view(record):
        return {"notice_id": record["id"], "type": record["type"], "account_id": "acc_0",
                "created_at": record["created_at"], "deliveries": [
            {"endpoint_id": "whk_0", "status": "delivered", "attempts": 1, "replayed_at": None}]}


def chained(acts):
    """Returns the acts with their digests."""
    before, found = {False: bytes(32), True: bytes(32)}, []
    for act in acts:
        text = json.dumps(act, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(before[act["urgent"]] + hashlib.sha256(text.encode()).digest())
        before[act["urgent"]] = digest.digest()
        found.append({**act, "chain_hash": digest.hexdigest(), "seal": None})
    return found


def busy(**options):
    """A service with something of everything."""
    made = Made(**options)
    made.limit(6, "warn")
    made.channel()
    made.register()
    made.certify()
    made.version("B")
    made.send_test()
    made.register()
    made.ask("balance", answer=made.standing(), account="a0")
    made.register()
    made.register()
    made.ask("register", status=402, answer={"code": "unpaid_limit_exceeded"}, client_ref="x", identity=["0", "", None])
    made.ask("certify", status=402, answer={"code": "account_not_operational"}, range={})
    made.add(5)
    made.pay(made.sale())
    made.rotate()
    made.certify()
    made.register()
    made.register()
    made.channel()
    return made


def violated(history):
    """Returns the names of the rules of these files that a history violates."""
    return {one.name for one in RULES if one.check.__module__ in MINE and one.violations(history)}


def found(made):
    return violated(made.history())


def check(name, made):
    """Checks that a rule sees what is wrong."""
    names = found(made) if isinstance(made, Made) else violated(made)
    assert name in names, f"{name} is not among {sorted(names)}"


def test_right_histories_violate_nothing():
    quiet = Made()
    quiet.register()
    for made in (quiet, busy(), with_top_up(), with_fee(), suspended(), limited()):
        history = made.history()
        texts = [text for one in RULES if one.check.__module__ in MINE for text in one.violations(history)]
        assert not texts, texts


def with_top_up():
    made = Made(credits=2)
    made.command("topup set", account="a0", threshold=2, pack="pack0", daily_max=1)
    made.register()
    made.top_up()
    return made


def with_fee():
    made = Made(credits=5, settings={"certification.fee": "2"})
    made.register()
    made.certify(2)
    return made


def suspended():
    made = Made(credits=9)
    made.register()
    made.command("channel suspend", channel="a0/0").answer = {}
    made.time += 3
    made.ask("register", status=403, answer={"code": "suspended"}, client_ref="s", identity=["0", "", None])
    made.command("key revoke", key="a0/0/live/1").answer = {}
    made.time += 3
    made.ask("balance", "a0/0/live/1", 401, {"code": "revoked_key"}, account="a0")
    made.ask("get_event", status=404, answer={"code": "not_found"}, of_chain="a1/0/live")
    return made


def limited():
    made = Made(credits=9)
    made.limit(2)
    made.register()
    made.register()
    made.ask("register", status=422, answer={"code": "limit_blocked"}, client_ref="x", identity=["0", "", None])
    return made


# ---- money ----


def test_movements_add_up():
    made = busy()
    made.movements[3]["balance"] += 1
    check("movements_add_up", made)


def test_balance_is_paid_less_registered():
    made = busy()
    made.movements[-1]["balance"] -= 1
    check("balance_is_paid_less_registered", made)


def test_each_event_is_paid_once():
    made = busy()
    made.movements.append({**made.movements[-1], "number": 99, "balance": made.balance - 1})
    check("each_event_is_paid_once", made)


def test_status_is_as_charged():
    made = Made()
    made.register().answer["status"] = "unpaid"
    check("status_is_as_charged", made)


def test_oldest_is_settled_first():
    made = Made(credits=0, unpaid_limit=9)
    made.register()
    made.register()
    made.add(1)
    made.events[0]["status"], made.events[1]["status"] = "unpaid", "registered"
    check("oldest_is_settled_first", made)


def test_movements_follow_their_causes():
    made = Made()
    made.register()
    made.add(5)
    one, other = made.movements[-2:]
    made.movements[-2:] = [{**other, "number": 2, "balance": 7}, {**one, "number": 3, "balance": 6}]
    check("movements_follow_their_causes", made)


def test_commands_move_credits_once():
    made = busy()
    made.add(5)
    made.movements.pop()
    check("commands_move_credits_once", made)
    made = busy()
    made.add(5)
    made.move("adjustment", 5, made.movements[-1]["reference"])
    check("commands_move_credits_once", made)


def test_balances_are_of_their_time():
    made = busy()
    made.ask("balance", answer={**made.standing(), "balance": made.balance - 1}, account="a0")
    check("balances_are_of_their_time", made)


def test_a_stale_balance_is_seen():
    made = Made()
    made.register()
    stale = made.standing()
    made.add(3)
    made.ask("balance", answer=stale, account="a0")
    check("balances_are_of_their_time", made)


def test_balances_do_not_go_back():
    made = Made(credits=0)
    lost = made.command("credits add", account="a0", credits=1)
    before = made.standing()
    made.move("adjustment", 1, lost.arguments["reason"])
    lost.status, lost.completed = 0, float("inf")
    made.ask("balance", answer=made.standing(), account="a0")
    made.ask("balance", answer=before, account="a0")
    check("balances_do_not_go_back", made)


def test_last_answers_agree():
    made = busy()
    made.events[-1]["status"] = "unpaid"
    check("last_answers_agree", made)


def test_unpaid_stays_within_the_limit():
    made = Made(credits=0, unpaid_limit=2)
    made.unpaid_limit = 9
    for _ in range(3):
        made.register()
    check("unpaid_stays_within_the_limit", made)


def test_unpaid_limit_refuses_rightly():
    made = Made(credits=5)
    made.ask("register", status=402, answer={"code": "unpaid_limit_exceeded"}, client_ref="x", identity=["0", "", None])
    check("unpaid_limit_refuses_rightly", made)
    made = Made(credits=0, unpaid_limit=2)
    for _ in range(4):
        made.register()
    check("unpaid_limit_refuses_rightly", made)


def test_certifications_need_a_balance():
    made = Made()
    made.ask("certify", status=402, answer={"code": "account_not_operational"}, range={})
    check("certifications_need_a_balance", made)
    made = Made(credits=0)
    made.register()
    made.certify()
    check("certifications_need_a_balance", made)


def test_blocking_limits_hold():
    made = limited()
    made.register()
    check("blocking_limits_hold", made)


def test_limits_refuse_rightly():
    made = Made()
    made.limit(5)
    made.ask("register", status=422, answer={"code": "limit_blocked"}, client_ref="x", identity=["0", "", None])
    check("limits_refuse_rightly", made)


def test_rates_refuse_rightly():
    made = Made()
    made.ask("balance", status=429, answer={"code": "rate_limited"}, account="a0")
    check("rates_refuse_rightly", made)


def test_quotas_refuse_rightly():
    for count in (19, 20):
        made = Made()
        for _ in range(count):
            made.ask("certify", "a0/0/test/0", 0, range={}, idempotency_key=None)
        made.ask("certify", "a0/0/test/0", 429, answer={"code": "test_quota_exceeded"}, range={}, idempotency_key=None)
        assert ("quotas_refuse_rightly" in found(made)) == (count == 19)


def test_test_events_have_a_quota(monkeypatch):
    monkeypatch.setattr(rules_money, "TEST_EVENTS", 3)
    spec = {"form": "json", "seed": 1, "size": 9}
    for count in (2, 3):
        made = Made()
        for number in range(count):
            made.ask("register", "a0/0/test/0", 0, client_ref=str(number), identity=[], spec=spec)
        made.ask("register", "a0/0/test/0", 429, answer={"code": "test_quota_exceeded"}, client_ref="x", identity=[],
                 spec=spec)
        assert ("test_events_have_a_quota" in found(made)) == (count == 2)
    for count in (3, 4):
        building = builders.Building()
        building.close(*(builders.event(f"r{number}", number, chain="a0/0/test") for number in range(1, count + 1)),
                       key="a0/0/test/0")
        assert bool(builders.violated(building, "test_events_have_a_quota")) == (count == 4)


def test_purchases_move_credits_once():
    made = busy()
    made.move("purchase", 3, "sal_0")
    check("purchases_move_credits_once", made)
    made = Made()
    made.pay(made.sale())
    made.movements.pop()
    check("purchases_move_credits_once", made)


def test_purchases_were_requested():
    made = busy()
    made.sales["sal_0"]["total"] = "1.21"
    check("purchases_were_requested", made)
    made = busy()
    made.sales["sal_9"] = {**made.sales["sal_0"], "sale_id": "sal_9", "state": "pending", "paid_at": None}
    check("purchases_were_requested", made)
    made = busy()
    made.sales["sal_0"]["amount"] = "2.00"
    check("purchases_were_requested", made)


def test_purchases_keep_their_state():
    made = busy()
    made.sales["sal_0"] |= {"state": "pending", "paid_at": None}
    check("purchases_keep_their_state", made)


def test_sales_are_charged_once():
    made = with_top_up()
    made.facts["charges"].clear()
    check("sales_are_charged_once", made)
    made = with_top_up()
    made.facts["charges"] *= 2
    check("sales_are_charged_once", made)
    made = with_top_up()
    made.facts["charges"][0]["amount"] = 99
    check("sales_are_charged_once", made)


def test_topup_buys_below_its_threshold():
    made = with_top_up()
    made.top_up()
    check("topup_buys_below_its_threshold", made)


def test_topup_keeps_its_daily_maximum():
    made = with_top_up()
    made.register()
    made.register()
    made.register()
    made.top_up()
    check("topup_keeps_its_daily_maximum", made)


def test_usage_counts_events():
    history = busy().history()
    history.walks["usage", "a0"][0].answer["data"][0]["events"] += 1
    check("usage_counts_events", history)
    history = busy().history()
    history.walks["usage", "a0"][0].answer["data"][0]["events_certified"] += 1
    check("usage_counts_events", history)


def test_history_is_of_the_movements():
    history = busy().history()
    history.walks["credits history", "a0"][0].answer["data"][0]["purchases"] += 1
    check("history_is_of_the_movements", history)
    history = busy().history()
    history.walks["credits history", "a0"][0].answer["data"][0]["unpaid_events"] += 1
    check("history_is_of_the_movements", history)
    made = busy()
    made.movements[0]["at"] = "2026-01-01T23:59:59.000000Z"  # of a day before the first that is listed
    history = made.history()
    history.walks["credits history", "a0"][0].answer["data"][0]["purchases"] += 1
    assert "history_is_of_the_movements" not in violated(history)


def test_fees_are_charged_once():
    made = with_fee()
    made.move("fee", -2, "CERT-2026-0000001")
    check("fees_are_charged_once", made)
    made = with_fee()
    made.certifications[0]["status"] = "failed"
    check("fees_are_charged_once", made)


# ---- notices ----


def missed(made):
    """Returns the history in which the last notice never came and is listed as missed."""
    made.deliveries.pop()
    made.facts["wall"] = dt.datetime.fromisoformat(stamp(0)).timestamp()
    history = made.history()
    state = history.walks["notice list", "a0"][0].answer["data"][-1]["deliveries"][0]
    state["status"], state["attempts"] = "missed", 0
    return history


def test_notices_are_missed_rightly():
    check("notices_are_missed_rightly", missed(busy()))
    made = busy()
    made.command("webhook update", status=0, endpoint="a0/webhook0", types="balance.low")
    assert "notices_are_missed_rightly" not in violated(missed(made))
    made = busy()
    made.command("webhook disable", endpoint="a0/webhook0").answer = {}
    assert "notices_are_missed_rightly" not in violated(missed(copy.deepcopy(made)))
    made.command("webhook enable", endpoint="a0/webhook0").answer = {}
    made.time += 10
    made.certify()  # it is long enabled again
    name = made.certifications[-1]["certification_id"]
    made.ask("certification", answer=made.certifications[-1], of_chain="a0/0/live", certification_id=name)
    made.time += 10
    made.command("webhook disable", endpoint="a0/webhook0").answer = {}
    check("notices_are_missed_rightly", missed(copy.deepcopy(made)))
    made.operations = [one for one in made.operations if one.kind != "certification"]
    assert "notices_are_missed_rightly" not in violated(missed(made))  # it may have arisen only then
    made = busy()
    made.endpoint["created_at"] = stamp(200)
    made.operations[1].answer["created_at"] = stamp(200)
    assert "notices_are_missed_rightly" not in violated(missed(made))


def test_endpoints_are_disabled_rightly():
    made = busy()
    made.endpoint["enabled"] = False
    check("endpoints_are_disabled_rightly", copy.deepcopy(made))
    made.command("webhook disable", status=0, endpoint="a0/webhook0")
    made.command("webhook enable", endpoint="a0/webhook0").answer = {}
    assert "endpoints_are_disabled_rightly" not in found(copy.deepcopy(made))  # it may take effect late
    made.operations[-2].status, made.operations[-2].answer = 200, {}
    check("endpoints_are_disabled_rightly", made)


def test_deleted_endpoints_receive_nothing():
    made = busy()
    made.command("webhook delete", endpoint="a0/webhook0").answer = {}
    made.time += 1
    made.deliver(made.notices[0][0])  # it was under way
    assert "deleted_endpoints_receive_nothing" not in found(copy.deepcopy(made))
    made.time += 10
    made.deliver(made.notices[0][0])
    history = made.history()
    check("deleted_endpoints_receive_nothing", history)
    history.faults.append(Fault("freeze", 0.0, made.time, {}))  # it may have been under way for long
    assert "deleted_endpoints_receive_nothing" not in violated(history)


def test_each_unpaid_limit_sends_a_notice():
    made = Made(credits=0)
    for _ in range(2):
        made.register()
        made.register()  # the limit
        made.add(5)
        for _ in range(3):
            made.register()
    assert "unpaid_limits_send_notices" not in found(copy.deepcopy(made))
    place = [record["type"] for record, _ in made.notices].index("events.unpaid_limit_reached")
    del made.notices[place]
    check("unpaid_limits_send_notices", made)


def test_notices_arrive_as_they_are():
    made = busy()
    made.deliveries[0]["body"] += " "
    check("notices_arrive_as_they_are", made)
    made = busy()
    made.deliver({**made.notices[0][0], "id": "ntc_99"})
    check("notices_arrive_as_they_are", made)
    made = busy()
    made.command("account create", "setup", name="a1").answer = {"account_id": made.name("a1", "acc_1")}
    made.command("webhook create", "setup", account="a1", url="receiver 1").answer = {
        "endpoint_id": "whk_1", "secret": "whsec_0", "types": None, "secret_version": 1}
    made.deliveries[0]["receiver"] = 1
    for words in ("credits list", "notice list"):
        made.listed(words, [], account="a1")
    check("notices_arrive_as_they_are", made)


def test_notices_reach_their_endpoints():
    made = busy()
    del made.deliveries[0]
    check("notices_reach_their_endpoints", made)


def test_delivered_means_acknowledged():
    made = busy()
    made.deliveries[0]["status"] = 500
    check("delivered_means_acknowledged", made)


def test_no_notice_waits():
    history = busy().history()
    history.walks["notice list", "a0"][0].answer["data"][0]["deliveries"][0]["status"] = "waiting"
    check("no_notice_waits", history)


def test_only_subscribed_types_are_sent():
    made = busy()
    made.operations[1].answer["types"] = ["balance.exhausted"]
    check("only_subscribed_types_are_sent", made)


def test_attempts_are_counted():
    made = busy()
    made.deliver(made.notices[0][0])
    check("attempts_are_counted", made)
    history = made.history()
    history.faults = [Fault("kill", 0.0, 1.0, {})]
    assert "attempts_are_counted" not in violated(history)


def test_signatures_are_right():
    made = busy()
    made.deliveries[0]["signature"] = "v1=00"
    check("signatures_are_right", made)
    made = busy()
    made.secret = "whsec_0"
    made.certify()
    check("signatures_are_right", made)


def test_tests_are_sent_once():
    made = busy()
    made.deliver({**next(one["record"] for one in made.deliveries if one["id"].startswith("tst_")), "id": "tst_99"})
    check("tests_are_sent_once", made)


def test_thresholds_are_armed():
    history = busy().history()
    one = history.walks["threshold list", "a0"][0].answer["data"][0]
    one["armed"] = not one["armed"]
    check("thresholds_are_armed", history)


def drop(made, kind):
    """Returns the service without its notices of a type."""
    made.notices = [one for one in made.notices if one[0]["type"] != kind]
    made.deliveries = [one for one in made.deliveries if one["record"]["type"] != kind]
    return made


def again(made, kind):
    """Returns the service with a second notice like the first of its type."""
    made.notify(kind, **next(record["data"] for record, _ in made.notices if record["type"] == kind))
    return made


def test_causes_send_one_notice():
    for name, kind in (("thresholds_send_one_notice", "balance.low"),
                       ("exhaustions_send_one_notice", "balance.exhausted"),
                       ("unpaid_limits_send_notices", "events.unpaid_limit_reached"),
                       ("limits_send_one_notice", "consumption.limit_reached")):
        check(name, drop(busy(), kind))
        check(name, again(again(busy(), kind), kind))


def test_certifications_send_one_notice():
    check("certifications_send_one_notice", drop(busy(), "certification.completed"))
    check("certifications_send_one_notice", again(busy(), "certification.completed"))
    made = busy()
    made.certifications[0]["status"] = "failed"
    check("certifications_send_one_notice", made)


def test_topups_send_one_notice():
    check("topups_send_one_notice", drop(with_top_up(), "recharge.auto_completed"))
    check("topups_send_one_notice", again(with_top_up(), "recharge.auto_completed"))
    made = with_top_up()
    made.operation("topup show", {"account": "a0"}, 200, {"reason": "payment_failed"}, closing=True)
    check("topups_send_one_notice", made)


# ---- access ----


def test_revoked_keys_are_refused():
    made = suspended()
    made.ask("balance", "a0/0/live/1", answer=made.standing(), account="a0")
    check("revoked_keys_are_refused", made)


def test_keys_are_refused_rightly():
    made = busy()
    made.ask("balance", status=401, answer={"code": "revoked_key"}, account="a0")
    check("keys_are_refused_rightly", made)


def test_an_unreplicated_revocation_may_be_lost():
    made = busy()
    made.command("key revoke", key="a0/0/live/1").answer = {"replicated": False}
    made.time += 3
    made.ask("balance", "a0/0/live/1", answer=made.standing(), account="a0")
    made.acts.pop()
    assert not found(made)


def test_expired_keys_are_refused():
    made = busy()
    made.command("key expire", key="a0/0/live/1", at="1s").answer = {}
    made.time += 2
    made.ask("balance", "a0/0/live/1", answer=made.standing(), account="a0")
    assert "expired_keys_are_refused" not in found(copy.deepcopy(made))
    made.time += 4
    made.ask("balance", "a0/0/live/1", answer=made.standing(), account="a0")
    check("expired_keys_are_refused", made)


def test_suspensions_hold():
    made = suspended()
    made.register()
    check("suspensions_hold", made)
    made = busy()
    made.command("account disable", account="a0").answer = {}
    made.ask("balance", answer=made.standing(), account="a0")  # within two seconds
    made.command("account enable", account="a0").answer = {}
    assert "suspensions_hold" not in found(copy.deepcopy(made))
    made.command("account disable", account="a0").answer = {}
    made.time += 3
    made.ask("balance", answer=made.standing(), account="a0")
    check("suspensions_hold", made)


def test_suspensions_refuse_rightly():
    made = busy()
    made.ask("register", status=403, answer={"code": "suspended"}, client_ref="s", identity=["0", "", None])
    check("suspensions_refuse_rightly", made)
    made = suspended()
    made.ask("balance", status=403, answer={"code": "suspended"}, account="a0")
    check("suspensions_refuse_rightly", made)


def test_lists_show_what_was_made():
    made = limited()
    made.limits.clear()
    check("lists_show_what_was_made", made)
    made = limited()
    made.command("limit delete", limit="limit0").answer = {}
    check("lists_show_what_was_made", made)
    made = limited()
    made.keys.append({**made.keys[0], "key_id": "key_9"})
    check("lists_show_what_was_made", made)
    history = busy().history()
    history.walks["key list", "a0"][0].answer["data"][0]["state"] = "revoked"
    check("lists_show_what_was_made", history)


def test_things_are_as_they_were_made():
    for words, member, value in (("key list", "mode", "test"), ("limit list", "max_events", 7),
                                 ("threshold list", "credits", 2), ("webhook list", "url", "http://127.0.0.1:2/"),
                                 ("webhook list", "types", ["balance.low"])):
        history = busy().history()
        history.walks[words, "a0"][0].answer["data"][0][member] = value
        check("things_are_as_they_were_made", history)
    made = busy()
    made.command("webhook update", status=0, endpoint="a0/webhook0", types="balance.low,balance.exhausted")
    made.endpoint["types"] = ["balance.exhausted", "balance.low"]  # it may have been done
    assert "things_are_as_they_were_made" not in found(made)


def test_limits_count_events():
    history = busy().history()
    history.facts["wall"] = dt.datetime.fromisoformat(stamp(0)).timestamp()
    assert "limits_count_events" not in violated(history)
    history.walks["limit list", "a0"][0].answer["data"][0]["used"] += 1
    check("limits_count_events", history)


def test_others_are_not_found():
    made = busy()
    made.ask("get_event", answer=made.events[0], of_chain="a1/0/live")
    check("others_are_not_found", made)
    made = busy()
    made.ask("list", answer={"data": []}, of_chain="a1/0/live", order="asc", filters={}, walk=3, page=1)
    check("others_are_not_found", made)


def test_keys_see_their_own():
    made = busy()
    made.ask("get_event", answer={**made.events[0], "channel_id": "chn_9"})
    check("keys_see_their_own", made)


def test_identifiers_are_of_one():
    made = busy()
    made.acts[0]["account_id"] = "acc_9"
    check("identifiers_are_of_one", made)


def test_configurations_only_grow():
    made = busy()
    made.versions[0] = {"version": 1, "declarant": "Z"}
    check("configurations_only_grow", made)
    made = busy()
    made.versions.pop()
    check("configurations_only_grow", made)


def test_versions_have_their_commands():
    made = busy()
    made.versions.append({"version": 3, "declarant": "C"})
    check("versions_have_their_commands", made)


def test_events_state_their_configuration():
    made = busy()
    made.events[-1]["config_version"] = 1
    check("events_state_their_configuration", made)
    made = busy()
    made.events[0]["config_version"] = 2
    check("events_state_their_configuration", made)


def test_configurations_follow_the_chain():
    made = busy()
    made.events[-1]["config_version"] = 1
    check("configurations_follow_the_chain", made)


def test_acts_are_recorded_once():
    made = busy()
    made.acts.pop(3)
    check("acts_are_recorded_once", made)
    made = busy()
    made.acts.append({**made.acts[3], "act_id": "act_99", "number": 99})
    check("acts_are_recorded_once", made)
    made = busy()
    made.acts.append({**made.acts[3], "act_id": "act_99", "number": 99, "reason": None})
    check("acts_are_recorded_once", made)


def test_acts_are_chained():
    for change in ({"actor": "x"}, {"chain_hash": "0"}):
        history = busy().history()
        history.walks["audit list", "a0"][0].answer["data"][5] |= change
        check("acts_are_chained", history)


def test_an_urgent_act_is_recorded_even_if_another_one_was_before():
    made = busy()
    for _ in range(2):
        made.command("account suspend", account="a0").answer = {}
        made.command("account resume", account="a0").answer = {}
    assert "acts_are_recorded_once" not in found(copy.deepcopy(made))
    del made.acts[-2]
    check("acts_are_recorded_once", made)


def test_acts_are_numbered():
    made = busy()
    made.acts[3]["number"] = 99
    check("acts_are_numbered", made)


def test_every_rule_has_a_test():
    """By name: test_NAME, or within a test of several."""
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    names = [one.name for one in RULES if one.check.__module__ in MINE]
    assert not [name for name in names if f'"{name}"' not in text]
