"""A browser's side of the console without a browser: cookies, forms and where they lead."""

import html
import http.client
import re
import urllib.parse


class Visitor:
    """Keeps cookies, fills in forms as they stand on pages, follows no redirect by itself."""

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
        """What every form of this page carries: that it was made for this session, and which account it shows; without
        its number, with which the same would be done once alone."""
        return {"token": self.token(), "in_account": re.search(r'name="in_account" value="([^"]+)"', self.body)[1]}

    def send(self, action, /, **fields):
        """The form of this page that leads there; hidden fields as they stand."""
        form = re.search(rf'<form[^>]* action="{re.escape(action)}".*?</form>', self.body, re.S)[0]
        own = {name: html.unescape(value) for name, value in
               re.findall(r'<input type="hidden" name="([a-z_]+)" value="([^"]*)">', form)}
        return self.post(action, {**own, **fields}, **{"Sec-Fetch-Site": "same-origin"})

    def links(self):
        return {html.unescape(link) for link in re.findall(r' href="(/console[^"]*)"', self.body)}

    def forms(self):
        """Where each form leads, and what its fields are as they stand."""
        for method, action, inner in re.findall(
                r'<form method="(get|post)" action="([^"]+)".*?>(.*?)</form>', self.body, re.S):
            fields = dict(re.findall(r'<input [^>]*name="([a-z_]+)"[^>]*value="([^"]*)"', inner))
            for name, options in re.findall(r'<select name="([a-z_]+)".*?>(.*?)</select>', inner, re.S):
                fields[name] = re.search(r'value="([^"]*)"', options)[1]
            yield method, action, {name: html.unescape(value) for name, value in fields.items()}

    def other_sessions(self):
        """What the page of sessions lists beside this one."""
        rows = re.findall("<tr>.*?</tr>", self.get("/console/sessions").body, re.S)
        return [found[1] for row in rows if 'class="tag"' not in row
                and (found := re.search(r'name="session" value="(ses_[^"]+)"', row))]

    def text(self):
        return html.unescape(re.sub(r"<[^>]+>", " ", self.body))

    def enter(self, url):
        """By a link; the page that it leads to."""
        place = urllib.parse.urlsplit(url)
        self.get(f"{place.path}?{place.query}")
        assert self.status == 200
        self.send("/console/enter")
        return self.follow()


def invited(service, account_id, email, role="owner"):
    service.admin("user", "invite", "--account", account_id, "--email", email, "--role", role)
    return email


def signed_in(service, email, language="en"):
    return Visitor(service, language).enter(service.admin("user", "link", email)["url"])
