"""A visitor of the console who follows every link, sends every form, and checks each answer."""

import itertools
import re
import urllib.parse

from console import Visitor
from markup import IDENTIFIER, Page

HOSTILE = ("<script>alert(1)</script>\"'&amp;{{x}}\u202e%0d%0a", "\0\x1b\r\n\u2028", b"\xff\xfe<", "9" * 300,
           "-1", "../../../etc/passwd", "javascript:alert(1)")
SAME = {"Sec-Fetch-Site": "same-origin"}
OWN = ("token", "in_account", "form_number")
OF_NO_ACCOUNT = tuple(f"/console/{one}" for one in ("language", "account", "again", "leave"))  # but of the session
INSTANCES = 3  # of pages and forms that differ in identifiers and queries alone; a certification of each state
# What is typed by the name of a field; a number where it asks for one.
PLAUSIBLE = {"url": "http://127.0.0.1:9/crawl", "country": "ES", "at": "30d", "expires": "30d", "since": "",
             "until": ""}
# What is sent late, in this order: what ends something, what takes it away, what ends the visit.
LATE = (r"/end$|cancel|suspend|disable", r"delete|revoke|remove", r"/leave$")


def kind_of(link):
    """Links that differ in identifiers and in what they ask for alone are of one kind."""
    parts = urllib.parse.urlsplit(link)
    names = sorted({name for name, value in urllib.parse.parse_qsl(parts.query) if value})
    return IDENTIFIER.sub("{}", parts.path), tuple(names)


def kind_of_form(form):
    return form.method, *kind_of(form.action), tuple(field.name for field in form.fields)


def is_identifier(field):
    return any(IDENTIFIER.fullmatch(value or "") for value in (field.value, *field.options))


class Walker(Visitor):
    numbers = itertools.count()

    def __init__(self, service, filled, role, language, other=None):
        """`other`: the walker through the account of which nothing may appear here."""
        super().__init__(service, language)
        self.filled, self.role, self.other = filled, role, other
        self.email = filled.email(role)
        self.identifiers = set()
        self.links, self.forms = {}, {}  # by kind: addresses; (address, form)
        self.reached, self.done = set(), set()  # paths that links led to; of forms that did what they do
        self.shown = []  # addresses of pages
        self.known = None, {}  # a session, and the fields of its own
        self.come_in()

    def come_in(self):
        self.cookies.clear()
        self.enter(self.service.ask_socket("user link", user=self.email)["url"])
        self.speak()

    def is_out(self):
        return 'action="/console/sign-in"' in self.body

    def speak(self):
        """There and back, so that the page is in the user's language."""
        for language in ({"en": "es", "es": "en"}[self.language], self.language):
            self.get("/console/").send("/console/language", language=language, next="/console/users")
            assert self.location == "/console/users" and f'lang="{language}"' in self.follow().body

    # ---- looking ----

    def look(self, sent=""):
        """The answer as a page, None where it is none. It may repeat what was sent, nothing else of another."""
        assert self.status < 500, (sent, self.status)
        assert "<script>alert" not in self.body, sent
        found = set(IDENTIFIER.findall(self.body))
        if self.other:
            body = self.body.replace(self.other.email, "") if self.other.email in sent else self.body
            assert self.other.filled.mark not in body, (sent, self.text())
            told = (found & self.other.identifiers) - set(IDENTIFIER.findall(urllib.parse.unquote(sent)))
            assert not told, (sent, told)
        if not self.headers.get("content-type", "").startswith("text/html"):
            return None
        self.body.encode()  # in UTF-8, as it says
        self.identifiers |= found
        try:
            page = Page(self.body)
        except AssertionError as error:
            raise AssertionError(f"{sent}: {error}") from None
        assert page.language == self.language or not sent.startswith("/console"), sent
        return page

    def fetch(self, link):
        """Where the link leads in the end; its page."""
        self.get(link)
        for _ in range(3):
            if self.status != 303:
                break
            self.get(self.location.removeprefix(self.service.public_url))
        return self.look(link)

    def take(self, link, page):
        """Notes what a page leads to; new links."""
        new = []
        for form in page.forms:
            instances = self.forms.setdefault(kind_of_form(form), [])
            if len(instances) < INSTANCES:
                instances.append((link, form))
        for target in page.links:
            path, _, anchor = target.partition("#")
            if not path:
                assert anchor in page.ids, f"{link} has no #{anchor}"
                continue
            assert re.match(r"/(?!/)", path), f"{link} leads to {target}"
            instances = self.links.setdefault(kind_of(path), [])
            if path not in instances and len(instances) < INSTANCES:
                instances.append(path)
                new.append(path)
        return new

    def walk(self, start="/console/"):
        """Follows every link from there; each must lead somewhere."""
        waiting = [start]
        while waiting:
            link = waiting.pop(0)
            page = self.fetch(link)
            assert self.status == 200, f"{self.role}: {link} answers {self.status}: {self.text()[:2000]}"
            assert not self.is_out(), f"{link} ends the visit"
            self.reached.add(urllib.parse.urlsplit(link).path)
            if page and link.startswith("/console"):
                self.shown.append(link)
                waiting += self.take(link, page)
        return self

    # ---- sending ----

    def submit(self, form, values):
        """What the form answers; the page, where it is one."""
        if form.method == "get":
            values = {name: value for name, value in values.items() if name not in OWN}
            self.get(f"{form.action}?{urllib.parse.urlencode(values)}")
        else:
            self.post(form.action, values, **SAME)
        return self.look(f"{form.action} {urllib.parse.unquote(urllib.parse.urlencode(values))}")

    def own(self):
        """The token and the account that every form of the user has."""
        if self.known[0] != self.cookies["constancia"]:
            self.get("/console/")
            self.known = self.cookies["constancia"], self.own_fields()
        return self.known[1]

    def plausible(self, form, button=0):
        """What a user might type, and the button that they press."""
        values, buttons = {}, [field for field in form.fields if field.kind == "submit"]
        for field in form.fields:
            if field in buttons and field is not buttons[button]:
                continue
            if field.kind in ("hidden", "select") or field.value:
                values[field.name] = field.value
            elif field.kind == "checkbox" or field.kind == "submit":
                values[field.name] = field.options[0]
            elif field.kind == "email":
                values[field.name] = f"new{next(self.numbers)}@example.org"
            elif field.kind == "number" or field.told.get("inputmode") == "numeric":
                values[field.name] = "1"
            elif form.method == "get" or field.kind in ("date", "datetime-local"):
                values[field.name] = ""
            else:
                values[field.name] = PLAUSIBLE.get(field.name, "Something")
        return values

    def every_form(self):
        return [form for instances in self.forms.values() for _, form in instances[-1:]]

    def send_empty_and_hostile(self):
        """With nothing in the fields, without them, and with what no field should have."""
        for form in self.every_form():
            names = [field.name for field in form.fields if field.name not in OWN]
            if not names:
                continue
            self.submit(form, {**self.own(), **dict.fromkeys(names, "")})
            self.submit(form, self.own())
            for text in HOSTILE:
                self.submit(form, {**self.own(), **dict.fromkeys(names, text)})

    def ask_hostile(self):
        """Addresses with what none should have, in each place of the path and of the query."""
        for links in list(self.links.values()):
            parts = urllib.parse.urlsplit(links[-1])
            names = {name for name, _ in urllib.parse.parse_qsl(parts.query, keep_blank_values=True)}
            for text in HOSTILE:
                if parts.path.startswith("/console"):
                    query = urllib.parse.urlencode(dict.fromkeys((*names, "done", "before", "after"), text))
                    self.get(f"{parts.path}?{query}")
                    self.look(f"{parts.path}?{query}")
                if IDENTIFIER.search(parts.path):
                    path = IDENTIFIER.sub(lambda _: urllib.parse.quote(text, safe=""), parts.path)
                    self.get(path)
                    assert 400 <= self.status < 500, path
                    self.look(path)

    # ---- another's ----

    def others(self, value):
        """An identifier of the same kind that is of the other account."""
        prefix = re.match(r"[a-z]+_|CERT-", value)[0]
        return next(one for one in sorted(self.other.identifiers) if one.startswith(prefix))

    def ask_for_others(self):
        """Each address that the other account's owner has, and each of ours with an identifier of theirs."""
        for links in self.other.links.values():
            for link in links:
                if link.startswith("/console"):
                    self.get(link)
                    self.look(link)
                    if IDENTIFIER.search(urllib.parse.urlsplit(link).path):
                        assert self.status in (403, 404), (link, self.status)
        for links in list(self.links.values()):
            for found in IDENTIFIER.finditer(links[-1]):
                link = links[-1][:found.start()] + self.others(found[0]) + links[-1][found.end():]
                self.get(link)
                self.look(link)
                if "?" not in links[-1][:found.start()]:
                    assert self.status in (403, 404), (link, self.status)

    def send_others(self):
        """Forms with the other owner's identifiers: all of them at once, and each in one field of ours."""
        for form in self.other.every_form():
            his = [value for name, value in form.values().items() if name not in OWN]
            if form.method == "post" and IDENTIFIER.search(f"{form.action} {his}"):
                self.submit(form, {**form.values(), **self.own()})
                assert self.status >= 400, (form.action, self.status)
        for form in self.every_form():
            values = {**self.plausible(form), **self.own()}
            for field in form.fields if form.action not in OF_NO_ACCOUNT else ():
                twisted = self.others(values[field.name] or field.options[-1]) if is_identifier(field) else \
                    self.other.email if field.name == "user" else None
                if twisted:
                    self.submit(form, {**values, field.name: twisted})
                    assert form.method == "get" or self.status >= 400, (form.action, field.name, self.status)
        self.post("/console/account", {**self.own(), "account": self.others("acc_")}, **SAME)
        assert self.status >= 400
        self.look(f"/console/account {self.others('acc_')}")

    # ---- doing ----

    def act(self):
        """Each form used as intended, also those that appear meanwhile."""
        sent = set()
        while True:
            left = sorted(([bool(re.search(late, kind[1])) for late in reversed(LATE)], kind)
                          for kind in self.forms if kind not in sent)
            if not left:
                break
            kind = left[0][-1]
            sent.add(kind)
            # The user's own role and session remain unchanged while there is another's.
            instances = [form for _, form in self.forms[kind]]
            form = next((one for one in instances if self.email not in one.values().values()), instances[0])
            if not form.hidden:
                self.do(form)

    def do(self, form):
        if form.action == "/console/language":
            self.speak()
            return
        for button in range(max(1, sum(field.kind == "submit" for field in form.fields))):
            page = self.submit(form, {**self.plausible(form, button), **self.own()})
            link = form.action
            if self.status == 303:
                link = self.location
                page = self.fetch(link)
            assert self.status == 200, f"{self.role}: {form.action} answers {self.status}: {self.text()[:2000]}"
            if self.is_out():
                if form.action != "/console/users/leave":  # then the user has no account any more, and it was the last
                    self.come_in()
            elif page:
                for new in self.take(link, page):
                    self.walk(new)
        self.done.add(urllib.parse.urlsplit(form.action).path)
