"""Every form of the console sent in a real browser, by filling in fields and pressing buttons: in both languages, with
and without script. A form of the program's tables that was not sent fails the test."""

import re

import pytest

from browser import WAYS
from client import ROOT, eventually
from console import Visitor
from hooks import Receiver
from mail_server import MailServer
from money import bill, new_pack
from payment_provider import PaymentProvider
from test_console_crawl import Filled, asked_for, left_out, tables

# Of the authenticator, which answers to a script alone.
PROVIDERS = {"/money/purchases/{sale}/page"}  # of a provider that made none: the last test
SCRIPTED = {"/passkey", "/passkey/challenge", "/passkeys/add", "/passkeys/remove", "/account/passkeys"}


def texts():
    """What pages say, by name and language; up to a value that is part of it."""
    found, name = {}, None
    for line in (ROOT / "src/console/texts.txt").read_text().splitlines():
        if line.startswith("["):
            name = line.strip("[]")
        elif re.match(r"(en|es): ", line):
            found[line[:2], name] = line[4:].partition("{")[0].replace("`", "").strip()
    return found


def session_forms():
    """Those of signing in and of the session, which are in no table of pages."""
    return set(re.findall(r'\{"(/[a-z/-]+)", true, ', (ROOT / "src/console/sign_in_pages.c").read_text()))


class Hand:
    """Somebody at a browser."""

    words = texts()

    def __init__(self, service, mail, browser, filled, language):
        self.service, self.mail, self.browser, self.filled = service, mail, browser, filled
        self.language, self.done = language, set()
        self.base = service.public_url.replace("127.0.0.1", "localhost")  # passkeys are of names

    def open(self, page):
        self.browser.open(f"{self.base}/console{page}")

    def says(self, name, selector="main"):
        words = self.words[self.language, name]
        try:
            self.browser.expect(selector, words)
        except AssertionError:
            raise AssertionError(f"{self.browser.url()} does not say '{words}': {self.browser.text('main')[:1500]}") from None

    def fill(self, form, name, value):
        field = f"{form} [name='{name}']"
        kind = self.browser.run("const e = document.querySelector(arguments[0]);"
                                "return e.tagName === 'SELECT' ? 'select' : e.type", field)
        if kind == "select":
            self.browser.choose(field, value)
        elif kind == "checkbox":
            for one in value:
                self.browser.click(f"{field}[value='{one}']")
        else:
            self.browser.clear(field)
            self.browser.type(field, value)

    def press(self, action, /, button="button", within="", **fields):
        """The form of this page that leads there: its fields by their names, then its button."""
        form = f"form[method=post][action='/console{action}']{within}"
        assert self.browser.has(form), f"{self.browser.url()} has no {form}: {self.browser.text('body')[:1500]}"
        for name, value in fields.items():
            self.fill(form, name, value)
        asks = self.browser.scripted and self.browser.has(f"{form}[data-confirm]")
        self.browser.click(f"{form} {button}")
        if asks:
            self.browser.accept()
        self.done.add(f"/console{action}")

    def act(self, page, action, says, /, *, selector="#messages", **how):
        self.open(page)
        for closed in ("details.change:not([open]) summary",) if page.startswith("/keys") else ():
            self.browser.click(closed)
        self.press(action, **how)
        self.says(says, selector)

    def mailed(self, email):
        """The last link that was sent there, once there is one more than before."""
        def links():
            return [found for message in list(self.mail.messages) if email in str(message["To"])
                    for found in re.findall(r"\S+/console/enter\?link=[0-9a-f]{64}", message.get_content())]
        return links

    def enter(self, link):
        self.browser.open(link.replace("127.0.0.1", "localhost"))
        self.press("/enter")
        self.browser.wait_for("form[action='/console/leave']")

    def come_in(self, email):
        links = self.mailed(email)
        before = len(links())
        self.open("/sign-in")
        self.press("/sign-in", email=email)
        self.says("sent.title", "h1")
        self.enter(eventually(lambda: links()[before:], "the link has arrived")[-1])
        if self.browser.run("return document.documentElement.lang") != self.language:
            self.press("/language")
            self.browser.wait_for(f"html[lang={self.language}]")

    def change_account(self):
        """To that of the walk. The page before is the same one: it is marked, so that both can be distinguished."""
        self.open("/")
        self.browser.run("document.documentElement.dataset.before = 1")
        self.press("/account", account=self.filled.account)
        self.browser.wait_for("html:not([data-before])")
        self.says("overview.title", "h1")

    def identifier(self, selector, pattern):
        links = " ".join(self.browser.run("return [...document.querySelectorAll(arguments[0])].map(e => e.href)", selector))
        return re.search(pattern, links)[0]


# ---- what there is to act on ----

@pytest.fixture(scope="module")
def world(start, request):
    mail = MailServer()
    service = start(seal__interval="1s", **mail.settings())
    with Receiver() as receiver:
        filled = {walk: Filled(service, receiver, f"acts{walk[0]}{'with' if walk[1] else 'without'}")
                  for walk in asked_for(request, "language", "script")}
        for one in filled.values():
            eventually(one.are_certified, "the certifications are made", 300)
        assert service.stop() == 0
        for one in filled.values():  # one that waits for its next attempt
            service.store.change("UPDATE certifications SET status = 'processing', last_error = '26: no', next_attempt_at = next_attempt_at "
                                 f"+ 86400000000 WHERE certification_id = '{one.certifications[2]}'")
        service.start()
        yield service, mail, filled
    mail.close()


# ---- the acts, section by section ----

def work_on_channels(hand):
    hand.act("/channels", "/channels/open", "done.channel_create", name="Señas & <b>", declarant="Anna",
             modality="content", description="What it is for")
    hand.open("/channels")
    own = hand.identifier("tbody th a", r"chn_\w+")
    page = f"/channels/{own}"
    hand.act(page, f"{page}/seal", "done.channel_configure", description="Something else")
    hand.act(page, f"{page}/suspend", "done.channel_suspend")
    hand.act(page, f"{page}/resume", "done.channel_resume")
    hand.act(f"/keys?channel={own}", "/keys/make", "keys.made", selector="main", channel=own, mode="live",
             name="Till")
    hand.service.secrets.add(hand.browser.text(".secret code"))
    hand.act("/limits", "/limits/set", "done.limit_create", within=":has([name=channel])", period="day", max="5",
             action="warn")
    hand.act("/limits", "/limits/delete", "done.limit_delete")
    hand.act(f"/keys?channel={own}", "/keys/expire", "done.key_expire", at="30d")
    hand.act(f"/keys?channel={own}", "/keys/revoke", "done.key_revoke", reason="lost")
    hand.act("/try", "/try/send", "try.programs", selector="main", client_ref="typed by hand", content='{"by":"hand"}')


def work_on_webhooks(hand):
    hand.act("/webhooks", "/webhooks/make", "webhooks.secret_title", selector="h1", url="https://example.org/hook",
             types=("all", "balance.low"))
    hand.service.secrets.add(hand.browser.text(".secret code"))
    made = hand.identifier("main a.button", r"whk_\w+")
    page = f"/webhooks/{made}"
    hand.act(page, f"{page}/change", "done.webhook_update", url="https://example.org/another")
    hand.act(page, f"{page}/disable", "done.webhook_disable")
    hand.act(page, f"{page}/enable", "done.webhook_enable")
    hand.act(page, f"{page}/rotate", "webhooks.secret_title", selector="h1")
    hand.service.secrets.add(hand.browser.text(".secret code"))
    hand.act(page, f"{page}/replay", "webhooks.replayed_title", selector="h1", button="[name=missed]")
    hand.act(page, f"{page}/delete", "done.webhook_delete")
    endpoints = hand.filled.own("webhook list")["data"]
    served = next(f"/webhooks/{one['endpoint_id']}" for one in endpoints if ":9/" not in one["url"])
    hand.act(served, f"{served}/test", "webhooks.tested_well", selector="main")
    hand.open(f"{served}?status=delivered")
    delivery = f"{served}/notices/{hand.identifier('tbody th a', r'ntc_[0-9a-z]+')}"
    hand.act(delivery, f"{delivery}/replay", "done.webhook_replay")


def work_on_money(hand):
    hand.act("/money", "/money/billing", "done.account_billing", country="FR")
    hand.act("/money", "/money/buy", "done.purchase_create")
    sale = re.search(r"/money/purchases/\w+", hand.browser.url())[0]
    hand.act(sale, f"{sale}/cancel", "done.purchase_cancel")
    hand.act("/money", "/money/topup/set", "done.topup_set", threshold="7", daily_max="2")
    hand.act("/money", "/money/topup/off", "done.topup_off")
    hand.act("/money", "/money/topup/on", "done.topup_on")
    hand.act("/money", "/money/thresholds/create", "done.threshold_create", credits="3")
    hand.act("/money", "/money/thresholds/delete", "done.threshold_delete")


def work_on_certifications(hand):
    channel = next(one["channel_id"] for one in hand.filled.own("channel list")["data"] if one["test_events"])
    hand.open(f"/certifications/new?channel={channel}&mode=test")
    form = "form[method=get][action='/console/certifications/new']"
    for name, value in (("seq_from", "1"), ("seq_to", "2"), ("language", hand.language)):
        hand.fill(form, name, value)
    hand.browser.click(f"{form} button")
    hand.says("certify.found")
    hand.press("/certifications/request")
    hand.says("done.certification_request", "#messages")
    waiting = f"/certifications/{hand.filled.certifications[2]}"
    hand.act(waiting, f"{waiting}/retry", "done.certification_retry")


def work_on_users(hand):
    guest = f"invited@{hand.filled.mark}.example.org"
    hand.act("/users", "/users/invite", "done.user_invite", email=guest, role="accountant", language="es")
    of_guest = f":has([value='{guest}'])"
    hand.act("/users", "/users/role", "done.user_role", within=of_guest, role="developer")
    hand.act("/users", "/users/remove", "done.user_remove", within=of_guest)
    hand.act("/account", "/account/set", "done.account_set", name=f"{hand.filled.mark} & Sons", language=hand.language)
    # Another session of the same user, begun elsewhere, and another account.
    hand.filled.service.admin("user", "invite", "--account", hand.service.new_account(), "--role", "reader", "--email",
                              hand.filled.email("owner"))
    hand.change_account()


def work_with_a_passkey(hand):
    hand.browser.add_authenticator()
    hand.open("/passkeys")
    hand.browser.wait_for("form[data-passkey]:not([hidden])")
    hand.press("/passkeys/add", name="Laptop")
    hand.says("done.passkey_add", "#messages")
    hand.done.add("/console/passkey/challenge")  # its script has asked for one
    hand.press("/leave")
    hand.says("done.left", "#messages")
    hand.browser.wait_for("form[data-passkey]:not([hidden])")
    hand.press("/passkey")
    hand.browser.wait_for("form[action='/console/leave']")
    hand.change_account()
    for _ in range(2):  # asks for passkeys, and does not any more
        hand.act("/account", "/account/passkeys", "done.account_set")
    hand.act("/passkeys", "/passkeys/remove", "sign_in.title", selector="h1")  # the session was begun with it


def come_and_go(hand):
    """Sign in afresh, end the session, come as others, and leave the account."""
    owner = hand.filled.email("owner")
    links = hand.mailed(owner)
    before = len(links())
    hand.open("/again")
    hand.press("/again")
    hand.says("sent.title", "h1")
    hand.enter(eventually(lambda: links()[before:], "the link has arrived")[-1])
    developer = hand.filled.email("developer")
    Visitor(hand.service).enter(hand.service.ask_socket("user link", user=developer)["url"])
    hand.act("/sessions", "/sessions/end", "done.session_end", within=f":has([aria-label*='{developer}'])")
    hand.open("/")
    hand.press("/leave")
    hand.says("done.left", "#messages")
    hand.come_in(hand.filled.email("reader"))
    hand.act("/sessions", "/users/leave", "sign_in.title", selector="h1")
    hand.filled.service.ask_socket("account set", account=hand.filled.account, passkeys="required")
    hand.come_in(hand.filled.email("guest"))
    hand.act("/passkeys", "/passkeys/leave", "sign_in.title", selector="h1")


@pytest.mark.parametrize("language, script", WAYS)
def test_every_act_is_done_in_a_browser(world, browse, language, script):
    service, mail, filled = world
    browser = browse(language, script)
    hand = Hand(service, mail, browser, filled[language, script], language)
    hand.come_in(hand.filled.email("owner"))
    work_on_channels(hand)
    work_on_webhooks(hand)
    work_on_money(hand)
    work_on_certifications(hand)
    work_on_users(hand)
    if script:
        work_with_a_passkey(hand)
        hand.come_in(hand.filled.email("owner"))
    come_and_go(hand)
    hand.open("/sign-in")
    hand.press("/language")
    left = left_out(hand.done, tables()["form"] | session_forms())
    assert left == PROVIDERS | (set() if script else SCRIPTED)


@pytest.fixture(scope="module")
def billed(start):
    """A service with a payment provider, an account that may buy, and an owner of it."""
    provider = PaymentProvider()
    service = start(**provider.settings(), payment__return_url="https://example.org/paid")
    service.secrets |= {provider.key, provider.secret}
    account = service.new_account(credits=1)
    bill(service, account)
    new_pack(service)
    for language in ("en", "es"):
        service.admin("user", "invite", "--account", account, "--email", f"{language}@example.org", "--role", "owner",
                      "--language", language)
    yield service, provider
    provider.close()


@pytest.mark.parametrize("language, script", WAYS)
def test_a_payment_page_is_asked_for_again_in_a_browser(billed, browse, language, script):
    service, provider = billed
    browser = browse(language, script)
    hand = Hand(service, None, browser, None, language)
    hand.enter(service.ask_socket("user link", user=f"{language}@example.org")["url"])
    provider.page_behaviours.append("unavailable")
    hand.act("/money", "/money/buy", "done.purchase_create")
    sale = re.search(r"/money/purchases/\w+", browser.url())[0]
    hand.act(sale, f"{sale}/page", "done.purchase_page")
    assert browser.has(f"a[href$='{sale}/pay']")
    assert not PROVIDERS & left_out(hand.done, tables()["form"])
