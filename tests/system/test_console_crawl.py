"""Every link of the console followed and every form of it sent, as each role: nothing breaks, no link is dead,
nothing of another account is shown, and no page and no form of the program's tables is left out."""

import pathlib
import re

import pytest

from client import Client, eventually
from crawl import Walker
from hooks import Receiver

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROLES = ("owner", "developer", "accountant", "reader")
# What is not to be reached here: the page of a payment provider (test_console_money.py has one, and one that it did not
# make), and forms that appear where a passkey was shown or is needed (test_console_passkeys.py, test_console_account.py).
ELSEWHERE = {"/money/purchases/{sale}/pay", "/money/purchases/{sale}/page", "/passkeys/leave", "/account/passkeys"}
MARK = "zanzibar"  # in every name, text and address of the other account


# ---- what there is, by the program's own tables ----

def tables():
    """Paths without /console: of pages, of forms, of exports."""
    found = {"page": set(), "form": set(), "export": set()}
    for file in sorted((ROOT / "src/console").glob("*_tables.c")):
        text = file.read_text()
        names = dict(re.findall(r'#define (\w+)\s+"([^"]*)"', text))
        for kind, rows in re.findall(r"const struct console_(\w+) \w+\[\] = \{(.*?)\n\};", text, re.S):
            for path in re.findall(r'\.path =((?:\s*(?:"[^"]*"|\w+))+),', rows):
                parts = re.findall(r'"([^"]*)"|(\w+)', path)
                found[kind].add("".join(names[name] if name else literal for literal, name in parts))
    return found


def left_out(reached, patterns):
    """Patterns that no path is of. A path is of the one with the fewest places."""
    matched = set()
    for path in reached:
        fitting = [one for one in patterns
                   if re.fullmatch("/console" + re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(one)), path)]
        matched |= set(sorted(fitting, key=lambda one: one.count("{"))[:1])
    return patterns - matched


def asked_for(request, *names):
    """The values of these parameters in the tests of the module that are to run."""
    calls = [item.callspec.params for item in request.session.items
             if item.path == request.path and hasattr(item, "callspec")]
    return sorted({tuple(call[name] for name in names) for call in calls if set(names) <= set(call)})


# ---- two accounts with something on every page ----

class Filled:
    """An account whose every text has the mark."""

    def __init__(self, service, receiver, mark):
        self.service, self.mark = service, mark
        self.account = service.ask_socket("account create", name=f"{mark} Co", credits=1000)["account_id"]
        for role, name in (*((role, role) for role in ROLES), ("owner", "second-owner"), ("reader", "guest")):
            self.own("user invite", email=self.email(name), role=role)
        self.pay()
        self.hook(receiver)
        self.register()

    def email(self, name):
        return f"{name}@{self.mark}.example.org"

    def own(self, operation, **arguments):
        return self.service.ask_socket(operation, account=self.account, **arguments)

    def pay(self):
        self.own("account billing", country="ES")
        pack = self.own("pack create", name=f"{self.mark} pack", credits=5, price="1.00", currency="EUR")["pack_id"]
        sales = [self.own("purchase create", pack=pack)["sale_id"] for _ in range(2)]
        self.service.ask_socket("purchase pay", sale=sales[0])
        self.own("threshold create", credits=500)
        self.own("account billing", payment_method="pm_card", customer="cus_one")
        self.own("topup set", threshold=1, pack=pack)

    def hook(self, receiver):
        for url in (f"{receiver.url}/{self.mark}", f"http://127.0.0.1:9/{self.mark}"):
            self.service.secrets.add(self.own("webhook create", url=url)["secret"])
        for credits in (-600, 600):
            self.own("credits add", credits=credits)

    def register(self):
        channel = self.own("channel create", name="A channel", declarant=self.mark, modality="content")["channel_id"]
        self.service.ask_socket("channel configure", channel=channel, name=f"{self.mark} channel")
        self.service.ask_socket("limit create", channel=channel, period="day", max=1000, action="warn")
        for mode in ("live", "test"):
            key = self.service.ask_socket("key create", channel=channel, mode=mode, name=self.mark)["key"]
            self.service.secrets.add(key)
            with Client(self.service, key) as client:
                for number in range(3):
                    client.register({"of": self.mark, "number": number}, f"{self.mark}-{number}").expect(201)
                client.register_file(self.mark.encode(), f"{self.mark}-file", f"{self.mark}.txt").expect(201)
                if mode == "test":
                    self.certifications = [client.certify(seq_from=1, seq_to=last).expect(202).json["certification_id"]
                                           for last in (1, 2, 3)]

    def are_certified(self):
        shown = (self.service.ask_socket("certification show", certification=one) for one in self.certifications)
        return all(one["status"] == "completed" for one in shown)


@pytest.fixture(scope="module")
def world(start, request):
    """A service with an account for each role and language that is walked, and one of others."""
    service = start(seal__interval="1s")
    with Receiver() as receiver:
        filled = {(role, language): Filled(service, receiver, f"own{role}{language}")
                  for role, language in asked_for(request, "role", "language")}
        filled["other"] = Filled(service, receiver, MARK)
        for one in filled.values():
            eventually(one.are_certified, "the certifications are made", 300)
        assert service.stop() == 0
        for one in filled.values():  # one that waits, and one that failed
            service.store.change("UPDATE certifications SET status = 'failed', incident_id = 'inc_x', last_error = 'no'"
                                 f" WHERE certification_id = '{one.certifications[1]}'")
            service.store.change("UPDATE certifications SET status = 'processing', last_error = '26: no', next_attempt_at = next_attempt_at "
                                 f"+ 86400000000 WHERE certification_id = '{one.certifications[2]}'")
            for role in ROLES:
                email = one.email(role)
                service.store.change(f"INSERT INTO passkeys (credential_id, passkey_id, user_id, algorithm, public_key, sign_count, "
                                     f"name, made_at, used_at) SELECT '{email}', 'psk_' || substr(user_id, 5), user_id, "
                                     f"-7, 'x', 0, '{one.mark} <b>', 1, NULL FROM users WHERE email = '{email}'")
        service.start()
        yield service, filled, Walker(service, filled["other"], "owner", "en").walk()
        assert not [line for line in service.log_lines() if line["level"] == "error"]


# ---- the crawl ----

def walks():
    """The owner reaches every page and every form: in both languages, and once for the statements of both stores. The
    others take a language each."""
    for at, role in enumerate(ROLES):
        for language in ("en", "es"):
            if role == "owner":
                marks = pytest.mark.both_stores if language == "en" else ()
            else:
                marks = pytest.mark.thorough if language == ("en", "es")[at % 2] else ()
            yield pytest.param(role, language, marks=marks)


@pytest.mark.parametrize("role, language", walks())
def test_every_link_and_every_form(world, role, language):
    service, filled, other = world
    walker = Walker(service, filled[role, language], role, language, other).walk()
    everything = walker if role == "owner" else Walker(service, filled[role, language], "owner", language, other).walk()
    walker.ask_for_others()
    walker.send_others()
    walker.ask_hostile()
    walker.send_empty_and_hostile()
    keep_out(walker, everything)
    walker.act()
    if role == "owner":
        there = tables()
        assert left_out(walker.reached, there["page"]) | left_out(walker.done, there["form"]) == ELSEWHERE
        assert left_out(walker.reached, {path + end for path in there["export"] for end in (".csv", ".json")}) == set()


def keep_out(walker, owner):
    """What the owner's pages lead to and the role's do not is refused to it."""
    paths = {path for path, _ in walker.links}
    for (path, _), links in owner.links.items():
        if path not in paths and path.startswith("/console"):
            walker.get(links[-1])
            walker.look(links[-1])
            assert walker.status == 403, (links[-1], walker.status)
    actions = {kind[1] for kind in walker.forms}
    for kind, instances in owner.forms.items():
        form = instances[-1][1]
        if kind[1] not in actions and form.method == "post":
            walker.submit(form, {**walker.plausible(form), **walker.own()})
            assert walker.status == 403, (form.action, walker.status)


@pytest.mark.parametrize("script, language", [(True, "en"), (False, "es")])
def test_a_browser_has_nothing_to_complain_of(world, browse, script, language):
    service, _, other = world
    other.get("/console/").send("/console/language", language=language)
    browser = browse(language, script)
    browser.open(service.ask_socket("user link", user=other.email)["url"])
    browser.click("main button")
    browser.wait_for("nav")
    assert len(other.shown) > 20
    for link in other.shown:
        browser.open(service.public_url + link)
        assert browser.has("nav") and browser.complaints() == [], link
    if script:
        browser.run("const one = document.createElement('script'); one.textContent = '1'; document.body.append(one)")
        eventually(browser.complaints, "it tells what the policy refuses")


def test_a_page_that_nobody_reaches_is_told():
    paths = {"/", "/users", "/channels/{channel}", "/channels/new"}
    assert left_out({"/console/", "/console/users", "/console/channels/chn_1"}, paths) == {"/channels/new"}
    assert left_out({"/console/", "/console/users", "/console/channels/new"}, paths) == {"/channels/{channel}"}
    found = tables()
    assert "/" in found["page"] and "/webhooks/{endpoint}/notices/{notice}/replay" in found["form"]
    assert "/acts" in found["export"] and all(found.values())
