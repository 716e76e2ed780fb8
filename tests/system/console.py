"""Browses the console without a browser: cookies, forms and links."""

import html
import http.client
import re
import secrets
import urllib.parse


class Visitor:
    """Keeps cookies, fills in forms as the pages contain them, and follows redirects only on request."""

    def __init__(self, service, language="en", address=None):
        self.service, self.language, self.address = service, language, address
        host = urllib.parse.urlsplit(service.public_url)
        self.connects_to = host.hostname, host.port
        self.cookies, self.set_cookies = {}, []
        self.status, self.headers, self.content, self.body = None, {}, b"", ""

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(*self.connects_to, timeout=60)
        sent = {"Accept-Language": self.language, "User-Agent": "a visitor", **headers}
        if self.cookies and "Cookie" not in sent:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        self.status, self.content = answer.status, answer.read()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.body = self.content.decode(errors="surrogateescape")
        self.set_cookies = answer.headers.get_all("Set-Cookie", [])
        for text in self.set_cookies:
            self.take_cookie(text)
        connection.close()
        assert self.status < 500, (method, path, self.status, self.body)
        return self

    def take_cookie(self, text):
        pair, *attributes = text.split("; ")
        name, _, value = pair.partition("=")
        assert {"Path=/", "HttpOnly", "SameSite=Lax"} <= set(attributes), text
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, fields, **headers):
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        return self.ask("POST", path, urllib.parse.urlencode(fields), **headers)

    def follow(self):
        assert self.status == 303, (self.status, self.text())
        return self.get(self.headers["location"])

    @property
    def location(self):
        return self.headers.get("location")

    def token(self):
        return re.search(r'name="token" value="([0-9a-f]{64})"', self.body)[1]

    def own_fields(self):
        """Returns the fields that every form of this page has: its session and the account that it shows. Without the
        form's number, which would prevent a repetition."""
        return {"token": self.token(), "in_account": re.search(r'name="in_account" value="([^"]+)"', self.body)[1]}

    def send(self, action, /, **fields):
        """Sends the form of this page with that target; hidden fields are unchanged."""
        form = re.search(rf'<form[^>]* action="{re.escape(action)}".*?</form>', self.body, re.S)[0]
        own = {name: html.unescape(value) for name, value in
               re.findall(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">', form)}
        return self.post(action, {**own, **fields}, **{"Sec-Fetch-Site": "same-origin"})

    def links(self):
        return {html.unescape(link) for link in re.findall(r' href="(/console[^"]*)"', self.body)}

    def forms(self):
        """Returns the target of each form, and its fields as the page contains them."""
        for method, action, inner in re.findall(
                r'<form method="(get|post)" action="([^"]+)".*?>(.*?)</form>', self.body, re.S):
            fields = dict(re.findall(r'<input [^>]*name="([a-z_]+)"[^>]*value="([^"]*)"', inner))
            for name, options in re.findall(r'<select name="([a-z_]+)".*?>(.*?)</select>', inner, re.S):
                fields[name] = re.search(r'value="([^"]*)"', options)[1]
            yield method, action, {name: html.unescape(value) for name, value in fields.items()}

    def other_sessions(self):
        """Returns the sessions on the page of sessions other than this one."""
        rows = re.findall("<tr>.*?</tr>", self.get("/console/sessions").body, re.S)
        return [found[1] for row in rows if 'class="tag"' not in row
                and (found := re.search(r'name="session" value="(ses_[^"]+)"', row))]

    def text(self):
        return html.unescape(re.sub(r"<[^>]+>", " ", self.body))

    def enter(self, url):
        """Signs in by a link and returns the page after it."""
        place = urllib.parse.urlsplit(url)
        self.get(f"{place.path}?{place.query}")
        assert self.status == 200
        self.send("/console/enter")
        return self.follow()


def invited(service, account_id, email, role="owner"):
    service.admin("user", "invite", "--account", account_id, "--email", email, "--role", role)
    return email


def new_address():
    return f"{secrets.token_hex(6)}@example.org"


def signed_in(service, email, language="en"):
    return Visitor(service, language).enter(service.admin("user", "link", email)["url"])


def new_visitor(service, account_id, role="owner", language="en"):
    """Signs a new user of the account in."""
    return signed_in(service, invited(service, account_id, new_address(), role), language)


def new_developer(service, account_id, role="developer", language="en"):
    """Signs a new user of the account in, who then chooses the language on a page."""
    visitor = new_visitor(service, account_id, role)
    if language != "en":
        visitor.send("/console/language", language=language)
    return visitor


def shown(visitor):
    """Returns the text of the page with single spaces."""
    return " ".join(visitor.text().split())


def make_stale(service, email):
    """Makes the user's sign-in eleven minutes old."""
    assert service.stop() == 0
    service.store.change("UPDATE sessions SET signed_in_at = signed_in_at - 660000000 WHERE user_id = "
                         f"(SELECT user_id FROM users WHERE email = '{email}')")
    service.start()
