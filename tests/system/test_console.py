"""The console over HTTP: who can sign in and how, what a request must prove, and whose objects are shown."""

import http.client
import json
import re
import urllib.parse

import pytest

from client import eventually
from console import Visitor, invited, make_stale, new_address, signed_in
from mail_server import MailServer


@pytest.fixture
def account(service):
    return service.new_account(credits=10)


@pytest.fixture
def owner(service, account):
    return signed_in(service, invited(service, account, new_address()))


POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; "
          "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")


def test_a_stranger_is_led_to_the_sign_in_page(service):
    visitor = Visitor(service)
    assert visitor.get("/console").location == "/console/"
    for path in ("/console/", "/console/users", "/console/acts.csv", "/console/nothing"):
        assert visitor.get(path).status == 303 and visitor.location == "/console/sign-in"
    visitor.follow()
    assert "The console does not use passwords" in visitor.text()
    assert visitor.headers["content-security-policy"] == POLICY
    assert visitor.headers["cache-control"] == "no-store"
    assert visitor.headers["referrer-policy"] == "same-origin"
    assert visitor.headers["x-content-type-options"] == "nosniff"
    assert visitor.headers["cross-origin-opener-policy"] == "same-origin"
    own = service.public_url.replace("127.0.0.1", "localhost")  # passkeys work at this address
    assert not re.search(r"<script(?! src=\"/)|<style| style=| on[a-z]+=|https?://", visitor.body.replace(own, ""))
    assert "La consola no" not in visitor.text() and 'lang="en"' in visitor.body
    assert "La consola no usa contraseñas" in Visitor(service, "es").get("/console/sign-in").text()


def test_cookies_over_https_have_the_prefix(start):
    service = start(service__public_url="https://console.example.org")
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    connection.request("GET", "/console/sign-in")
    cookie = connection.getresponse().getheader("Set-Cookie")
    connection.close()
    assert re.fullmatch(r"__Host-constancia-browser=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Lax; Secure; "
                        r"Max-Age=1800", cookie)


def test_the_cookie_of_a_session_over_https_has_the_prefix(start):
    service = start(service__public_url="https://console.example.org")
    visitor = Visitor(service)
    visitor.connects_to = "127.0.0.1", service.port
    url = service.admin("user", "link", invited(service, service.new_account(), new_address()))["url"]
    visitor.get(url.removeprefix("https://console.example.org")).send("/console/enter")
    (given,) = [text for text in visitor.set_cookies if text.startswith("__Host-constancia=")]
    assert re.fullmatch(r"__Host-constancia=[0-9a-f]{64}; Path=/; HttpOnly; SameSite=Lax; Secure", given)
    assert visitor.follow().status == 200
    visitor.cookies = {name.removeprefix("__Host-"): value for name, value in visitor.cookies.items()}
    assert visitor.get("/console/").location == "/console/sign-in", "without the prefix it is none"


def test_a_link_opens_the_console_by_its_button_alone_and_once(service, account):
    url = service.admin("user", "link", invited(service, account, new_address()))["url"]
    path = url.removeprefix(service.public_url)
    for _ in range(2):  # as a program that reads mails does
        scanner = Visitor(service).get(path)
        assert scanner.status == 200 and "This extra step" in scanner.text()
        assert "constancia" not in scanner.cookies
    visitor = Visitor(service)
    visitor.enter(url)
    assert visitor.status == 200 and "Overview" in visitor.text()
    assert "constancia-browser" not in visitor.cookies
    again = Visitor(service).get(path)
    again.send("/console/enter")
    assert again.status == 403 and "The link has already been used" in again.text()
    assert "constancia" not in again.cookies


@pytest.mark.parametrize("link", ["", "0" * 64, "x", "0" * 63, "é" * 64, "'\"><script>alert(1)</script>"])
def test_a_link_that_never_was(service, link):
    visitor = Visitor(service).get("/console/enter")
    token = visitor.token()
    visitor.post("/console/enter", {"token": token, "link": link})
    assert visitor.status == 403 and "requested from another browser" in visitor.text()
    assert "<script>alert" not in visitor.body


@pytest.fixture(scope="module")
def server():
    one = MailServer()
    yield one
    one.close()


@pytest.fixture(scope="module")
def mailing(start, server):
    return start(**server.settings())


def mailed_link(server, address):
    def look():
        sent = [message.get_content() for message in server.messages if address in str(message["To"])]
        return re.findall(r"\S+/console/enter\?link=[0-9a-f]{64}", "".join(sent))
    return eventually(look, "the mail has arrived")[-1]


def test_a_link_is_mailed_for_the_browser_that_asked(mailing, server):
    email = invited(mailing, mailing.new_account(credits=5), new_address())
    visitor = Visitor(mailing).get("/console/sessions").follow()
    visitor.send("/console/sign-in", email=email)
    assert visitor.location == "/console/sent"
    assert "Check your e-mail" in visitor.follow().text()
    url = mailed_link(server, email)
    path = url.removeprefix(mailing.public_url)
    other = Visitor(mailing).get(path)
    other.send("/console/enter")
    assert other.status == 403 and "requested from another browser" in other.text()
    visitor.get(path)
    visitor.send("/console/enter")
    assert visitor.location == "/console/sessions", "where one was going"
    assert "current session" in visitor.follow().text()
    visitor.get(path)
    visitor.send("/console/enter")
    assert visitor.status == 403


def test_nobody_is_told_whether_an_address_is_known(mailing, server):
    known = invited(mailing, mailing.new_account(credits=5), new_address())
    answers = []
    for email in (known, new_address()):
        visitor = Visitor(mailing).get("/console/sign-in")
        visitor.send("/console/sign-in", email=email)
        first = (visitor.status, visitor.location, sorted(visitor.headers))
        visitor.follow()
        answers.append((first, re.sub(r'value="[0-9a-f]{64}"', "", visitor.body)))
    assert answers[0] == answers[1]
    visitor = Visitor(mailing).get("/console/sign-in")
    visitor.send("/console/sign-in", email="<nobody>")
    assert visitor.status == 400 and "&lt;nobody&gt;" in visitor.body and 'role="alert"' in visitor.body


def test_signing_in_is_limited_by_address(start):
    service = start(rate__live=50)
    visitor = Visitor(service).get("/console/sign-in")
    for _ in range(100):  # there is one a second
        visitor.post("/console/sign-in", {"token": "x"})
        if visitor.status == 429:
            break
    assert visitor.status == 429 and visitor.get("/console/sign-in").status == 200


def test_where_no_mail_is_sent_the_page_says_so(service):
    visitor = Visitor(service).get("/console/sign-in")
    visitor.send("/console/sign-in", email="a@example.org")
    assert visitor.status == 400 and "does not send e-mail" in visitor.text()


def test_what_is_dangerous_asks_for_a_fresh_sign_in_and_goes_on(start, server):
    service = start(**server.settings())
    email, guest = invited(service, service.new_account(credits=5), new_address()), new_address()
    visitor = signed_in(service, email)
    make_stale(service, email)
    assert "You will be asked to sign in again" in visitor.get("/console/users").text()
    visitor.send("/console/users/invite", email=guest, role="developer", language="es")
    assert visitor.location == "/console/again"
    assert f"A link is sent to {email}" in visitor.follow().text()
    assert guest not in visitor.get("/console/users").text(), "nothing was done"
    visitor.send("/console/users/invite", email=guest, role="developer", language="es")
    visitor.follow().send("/console/again")
    assert visitor.location == "/console/sent"
    visitor.get(mailed_link(server, email).removeprefix(service.public_url))
    visitor.send("/console/enter")
    assert visitor.location == "/console/users"
    visitor.follow()
    assert f'value="{guest}"' in visitor.body and '<option value="developer" selected>' in visitor.body
    visitor.send("/console/users/invite", email=guest, role="developer", language="es")
    assert visitor.location == "/console/users?done=user_invite"
    assert guest in visitor.follow().text()
    assert f'value="{guest}"' not in visitor.get("/console/users").body.split('id="invite_email"')[1][:200]


def post_twisted(owner, **changes):
    """Returns the form for signing out as another page could send it."""
    owner.get("/console/")
    fields = {"token": owner.token()}
    headers = {"Sec-Fetch-Site": "same-origin"}
    for name, value in changes.items():
        if name == "token":
            fields["token"] = value
        elif value is None:
            headers.pop(name.replace("_", "-"), None)
        else:
            headers[name.replace("_", "-")] = value
    return owner.post("/console/leave", fields, **headers)


@pytest.mark.parametrize("changes", [
    {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}, {"Sec_Fetch_Site": "none"},
    {"Sec_Fetch_Site": None, "Origin": "https://evil.example"}, {"Sec_Fetch_Site": None, "Origin": "null"},
    {"token": ""}, {"token": "0" * 64}, {"token": "é"},
    {"Sec_Fetch_Site": None, "token": "0" * 64}])
def test_what_another_page_sends_is_refused(owner, changes):
    post_twisted(owner, **changes)
    assert owner.status == 403 and "Nothing was done" in owner.text()
    assert owner.get("/console/").status == 200


def test_a_token_is_of_one_session(service, account, owner):
    other = signed_in(service, invited(service, account, new_address()))
    other.get("/console/")
    post_twisted(owner, token=other.token())
    assert owner.status == 403
    # The same for a browser that has not signed in, even where its cookie was planted.
    stranger = Visitor(service).get("/console/sign-in")
    post_twisted(owner, token=stranger.token())
    assert owner.status == 403
    owner.cookies.update(stranger.cookies)
    post_twisted(owner, token=stranger.token())
    assert owner.status == 403 and owner.get("/console/").status == 200


@pytest.mark.parametrize("changes", [
    {}, {"Sec_Fetch_Site": None}, {"Sec_Fetch_Site": None, "Origin": "public"}])
def test_what_the_console_itself_sends_is_done(service, owner, changes):
    if changes.get("Origin"):
        changes = {**changes, "Origin": service.public_url}
    post_twisted(owner, **changes)
    assert owner.status == 303 and owner.location == "/console/sign-in?done=left"
    assert "You are signed out." in owner.follow().text()
    assert owner.get("/console/").location == "/console/sign-in"


def test_forms_that_are_none(owner):
    owner.get("/console/")
    token = owner.token()
    for body, type_, status in (
            (f"token={token}", "text/plain", 400), (f"token={token}", "", 400),
            (f"token={token}", "multipart/form-data; boundary=x", 400),
            (json.dumps({"token": token}), "application/json", 400),
            ("token=%zz", "application/x-www-form-urlencoded", 400),
            ("token=%00", "application/x-www-form-urlencoded", 400),
            ("token=%ff", "application/x-www-form-urlencoded", 400),
            ("&".join(["a=1"] * 65), "application/x-www-form-urlencoded", 400),
            ("", "application/x-www-form-urlencoded", 403)):
        owner.ask("POST", "/console/leave", body, **{"Content-Type": type_})
        assert owner.status == status, (body, type_, owner.text())
    owner.ask("POST", "/console/leave", "a" * (256 * 1024 + 1),
              **{"Content-Type": "application/x-www-form-urlencoded"})
    assert owner.status == 413
    assert owner.get("/console/").status == 200


def test_methods_and_paths(owner):
    for method, path, status, allow in (
            ("GET", "/console/users/invite", 405, "POST"), ("POST", "/console/users", 405, "GET, HEAD"),
            ("PUT", "/console/users", 405, "GET, HEAD, POST"), ("DELETE", "/console/", 405, "GET, HEAD, POST"),
            ("GET", "/console/nothing", 404, None), ("POST", "/console/nothing", 404, None),
            ("GET", "/console/users/", 404, None), ("GET", "/console//", 404, None),
            ("GET", "/console/%00", 404, None), ("GET", "/console/%ff", 404, None),
            ("GET", "/console/../v1", 404, None), ("GET", "/consoles", 404, None)):
        owner.ask(method, path)
        assert (owner.status, owner.headers.get("allow")) == (status, allow), (method, path)
        assert "<h1>" in owner.body or path == "/consoles"
    owner.ask("HEAD", "/console/users")
    assert owner.status == 200 and not owner.body
    for query in ("?a=%zz", "?a=%00", "?" + "&".join(["a=1"] * 65)):
        assert owner.get("/console/" + query).status == 400


def test_language_and_account_are_changed_in_place(service, account):
    email = invited(service, account, new_address())
    second = service.new_account(credits=77)
    invited(service, second, email, "reader")
    visitor = signed_in(service, email)
    visitor.get("/console/sessions?x=1")
    visitor.send("/console/language", language="es")
    assert visitor.location == "/console/sessions?x=1"
    assert "Sus sesiones de consola abiertas" in visitor.follow().text()
    # The session belongs to the user from now on, wherever they sign in.
    assert "Resumen" in signed_in(service, email).text()
    shown = visitor.get("/console/").text()
    other = second if " 10 créditos" in shown else account
    visitor.send("/console/account", account=other)
    assert visitor.location == "/console/"
    assert (" 77 créditos" if other == second else " 10 créditos") in visitor.follow().text()
    for strange in (service.new_account(credits=5), "acc_nobody", ""):
        visitor.get("/console/")
        visitor.send("/console/account", account=strange)
        assert visitor.status == 404
    for next_page in ("https://evil.example/", "//evil.example", "/console/../v1", "/verify", "/console\\x",
                      "/consolex", "/console/a b", "/console/\r\nX: y"):
        visitor.get("/console/")
        visitor.send("/console/language", language="es", next=next_page)
        assert visitor.location == "/console/", next_page


def test_what_was_done_is_said_once_and_by_no_link(owner):
    assert "The user was invited." not in owner.get("/console/?done=user_invite").text()
    owner.get("/console/users").send("/console/users/invite", email=new_address(), role="reader", language="en")
    done = owner.location
    assert done == "/console/users?done=user_invite"
    assert "The user was removed." not in owner.get("/console/users?done=user_remove").text()
    assert "The user was invited." in owner.get(done).text()
    assert "The user was invited." not in owner.get(done).text()
    owner.cookies["constancia-done"] = "money"
    assert "money" not in owner.get("/console/users?done=money").body.split('id="messages"')[1].split("</div>")[0]


def test_users_are_invited_changed_and_removed(service, account, owner):
    email = new_address()
    owner.get("/console/users")
    owner.send("/console/users/invite", email=email.upper(), role="reader", language="es")
    assert owner.location == "/console/users?done=user_invite"
    assert email in owner.follow().text()
    reader = signed_in(service, email)
    assert "Lectura" in reader.text() or "Reader" in reader.text()
    assert "/console/users" not in reader.body
    assert reader.get("/console/users").status == 403
    owner.get("/console/users")
    owner.send("/console/users/role", user=email, role="accountant")
    assert owner.location == "/console/users?done=user_role"
    assert reader.get("/console/").location == "/console/sign-in"
    owner.follow()
    owner.send("/console/users/remove", user=email)
    assert owner.location == "/console/users?done=user_remove"
    assert email not in owner.follow().text()


def test_what_cannot_be_done_is_said_where_it_was_typed(service, owner):
    owner.get("/console/users")
    owner.send("/console/users/invite", email="no address <b>", role="reader")
    assert owner.status == 400 and 'value="no address &lt;b&gt;"' in owner.body
    assert re.search(r'<option value="reader" selected>', owner.body) and 'role="alert"' in owner.body
    # The last owner remains an owner.
    me = re.search(r'name="user" value="([^"]+)"', owner.get("/console/users").body)[1]
    owner.send("/console/users/role", user=me, role="reader")
    assert owner.status == 400 and 'role="alert"' in owner.body
    owner.get("/console/users")
    owner.send("/console/users/role", user=new_address(), role="reader")
    assert owner.status == 404 and 'role="alert"' in owner.body
    owner.get("/console/users")
    owner.send("/console/users/invite", email=new_address(), role="reader", nonsense="x")
    assert owner.status == 400


def test_sessions_are_listed_and_ended(service, account):
    email = invited(service, account, new_address())
    here, there = signed_in(service, email), signed_in(service, email)
    here.get("/console/sessions")
    assert here.body.count('name="session"') == 2 and "current session" in here.text()
    (listed,) = here.other_sessions()
    here.send("/console/sessions/end", session=listed)
    assert here.status == 303 and there.get("/console/").location == "/console/sign-in"
    assert here.get("/console/").status == 200, "that one alone"
    own = re.search(r'name="session" value="(ses_[^"]+)"', here.get("/console/sessions").body)[1]
    assert own != listed
    here.send("/console/sessions/end", session=own)
    assert here.get("/console/").location == "/console/sign-in"


def test_things_of_another_account_are_not_there(service, account, owner):
    stranger = signed_in(service, invited(service, service.new_account(credits=5), new_address()))
    theirs = re.search(r'name="session" value="(ses_[^"]+)"', stranger.get("/console/sessions").body)[1]
    owner.get("/console/sessions")
    owner.send("/console/sessions/end", session=theirs)
    first = owner.body.replace(theirs, "ses_none")
    assert owner.status == 404
    owner.get("/console/sessions")
    owner.send("/console/sessions/end", session="ses_none")
    assert owner.status == 404
    said = [re.search(r'role="alert".*?</div>', page, re.S)[0] for page in (first, owner.body)]
    assert said[0] == said[1] and stranger.get("/console/").status == 200


def test_the_record_of_acts_is_shown_filtered_and_exported(service, account, owner):
    service.admin("account", "set", account, "--name", "=cmd|'/c calc'!A0 <script>alert(1)</script>")
    owner.get("/console/acts")
    assert "account set" in owner.text() and "user invite" in owner.text()
    assert "<script>alert" not in owner.body
    owner.get("/console/acts?operation=account+set")
    assert "account set" in owner.text() and "user invite" not in re.sub(r"<form.*?</form>", "", owner.body,
                                                                         flags=re.S)
    listed = service.acts_sealed("--account", account)  # from then on they do not change
    assert json.loads(owner.get("/console/acts.json").body) == listed
    assert owner.headers["content-disposition"] == 'attachment; filename="acts.json"'
    rows = owner.get("/console/acts.csv").body.splitlines()
    assert rows[0].startswith("at,operation,act_id") and len(rows) == 1 + len(listed)
    assert owner.headers["content-type"] == "text/csv; charset=utf-8"
    assert owner.get("/console/acts?since=yesterday").status == 400
    assert owner.get("/console/acts.csv?since=yesterday").status == 400


@pytest.mark.usefixtures("one_day")
def test_the_overview_has_real_figures(service, owner, account):
    channel = service.new_channel(account_id=account)
    for number in range(3):
        channel.live.register({"number": number}).expect(201)
    service.admin("webhook", "create", "--account", account, "--url", "http://127.0.0.1:9/hook")
    text = owner.get("/console/").text()
    figures = [" ".join(part.split()) for part in
               re.findall(r"<div>(<dt>.*?)</div>", owner.body, re.S)]
    assert "7 credits" in figures[0]
    assert re.search(r"Events today</dt><dd>3</dd>", figures[2])
    assert "http://127.0.0.1:9/hook" in text
    channel.close()


def test_the_overview_asks_for_what_was_used_once(service, owner, account):
    def asked(operation):
        return sum(line.get("event") == "administration" and line["operation"] == operation
                   for line in service.log_lines())

    def told():
        """Returns the log once it has all earlier requests."""
        shown = asked("account show")
        service.admin("account", "show", account)
        eventually(lambda: asked("account show") > shown, "the log has it")
        return asked("usage")
    before = told()
    owner.get("/console/")
    assert owner.status == 200 and told() == before + 1


@pytest.mark.usefixtures("one_day")
def test_the_overview_is_plotted_with_the_figures_behind(service, owner, account):
    channel = service.new_channel(account_id=account)
    event = [channel.live.register({"number": number}).expect(201).json for number in range(3)][-1]
    channel.live.sealed(event["event_id"])
    service.admin("limit", "create", "--channel", channel.id, "--period", "day", "--max", 4, "--action",
                  "warn")

    def plotted():
        found = re.findall(r"<figcaption>(.*?)</figcaption>", owner.get("/console/").body)
        return found if len(found) >= 3 else None
    titles = eventually(plotted, "the events are counted")
    assert titles == ["Live events by day and channel", "Credits at the end of each day", "Use of limits"]
    assert owner.body.count("<svg") == owner.body.count('role="img"') == len(titles)
    tables = re.findall(r"<details><summary>Data as a table</summary>(.*?)</details>",
                        owner.body, re.S)
    assert len(tables) == len(titles)
    today = re.search(r"<tr><th scope=\"row\">.*?</tr>", tables[0])[0]  # the last day comes first
    cells = r'<td data-label="(.*?)">(.*?)</td>'
    assert [value for _, value in re.findall(cells, today)] == ["3"]
    assert re.findall(cells, tables[2]) == [("Used", "3"), ("Maximum", "4")]
    assert " style=" not in owner.body and "<style" not in owner.body
    channel.close()


def test_no_log_has_what_a_link_or_a_cookie_carries(start):
    service = start(log__requests="all")
    account = service.new_account(credits=5)
    url = service.admin("user", "link", invited(service, account, new_address()))["url"]
    visitor = Visitor(service)
    visitor.enter(url)
    lines = service.logged(lambda line: line["event"] == "request" and
                           line.get("route") in ("/console/enter", "/console/{*}"), 3)
    assert lines
    text = service.log.read_text()
    assert url.rpartition("=")[2] not in text
    assert visitor.cookies.pop("constancia-language") == "en"
    for cookie in visitor.cookies.values():
        assert cookie not in text
    assert url.rpartition("=")[2] not in service.monitor("/metrics")[1]


def money_to_walk(service, account, channel):
    """Makes a pack, a purchase, an alert, a top-up and a certification."""
    service.admin("account", "billing", account, "--country", "ES")
    pack = service.admin("pack", "create", "--account", account, "--name", "Own", "--credits", "5", "--price", "1.00",
                         "--currency", "EUR")["pack_id"]
    service.admin("threshold", "create", "--account", account, "--credits", "5")
    service.admin("topup", "set", "--account", account, "--threshold", "1", "--pack", pack)
    channel.live.register({"number": 1}).expect(201)
    return (service.admin("purchase", "create", "--account", account, "--pack", pack)["sale_id"],
            channel.live.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"])


@pytest.mark.parametrize("role", ["owner", "developer", "accountant", "reader"])
def test_a_walk_along_every_link_and_form(service, role):
    """No request fails, and no object of another account is shown."""
    account, other = service.new_account(credits=20), service.new_account(credits=9)
    channel = service.new_channel(account_id=account)
    foreign = service.new_channel(account_id=other)
    hidden = invited(service, other, new_address())
    service.admin("account", "set", other, "--name", "The others")
    sale, certification = money_to_walk(service, account, channel)
    hidden_sale, hidden_certification = money_to_walk(service, other, foreign)
    service.admin("limit", "create", "--channel", channel.id, "--period", "day", "--max", 9, "--action", "warn")
    endpoint = service.admin("webhook", "create", "--account", account, "--url", "http://127.0.0.1:9/walk")
    invited(service, account, new_address())
    email = invited(service, account, "z" + new_address(), role)  # listed last, unlike the remover
    visitor = signed_in(service, email)
    waiting, seen, forms = ["/console/"], set(), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        visitor.get(path)
        assert visitor.status in (200, 303), (path, visitor.text())
        for strange in (other, hidden, "The others", foreign.id, hidden_sale, hidden_certification):
            assert strange not in visitor.body, path
        waiting += [link.partition("#")[0] for link in visitor.links()]
        for method, action, fields in visitor.forms():
            if ((method, action) in forms or action in ("/console/leave", "/console/users/leave") or
                    action.endswith("/delete")):
                continue
            forms.add((method, action))
            if method == "get":
                visitor.get(f"{action}?{urllib.parse.urlencode(fields)}")
            else:
                visitor.post(action, fields, **{"Sec-Fetch-Site": "same-origin"})
            assert visitor.status in (200, 303, 400, 403), (action, visitor.text())
            if visitor.get("/console/").status == 303:  # that ended the session
                visitor = signed_in(service, email)
            visitor.get(path)
    wanted = {"/console/", "/console/sessions"} | ({"/console/users", "/console/acts"} if role == "owner" else set())
    work = {"/console/keys", "/console/webhooks", f"/console/channels/{channel.id}",
            f"/console/webhooks/{endpoint['endpoint_id']}"}
    wanted |= {"/console/channels", "/console/limits"} | (work if role != "accountant" else set())
    assert wanted <= seen and (("post", "/console/users/remove") in forms) is (role == "owner")
    for path in work - seen:
        assert role == "accountant" and visitor.get(path).status == 403, path
    money = {"/console/money", "/console/money/purchases", "/console/money/movements", "/console/money/history",
             "/console/usage", f"/console/money/purchases/{sale}", "/console/money/purchases.csv?state="}
    evidence = {"/console/certifications", f"/console/certifications/{certification}"}
    for paths, allowed in ((money, role != "developer"), (evidence, role != "accountant")):
        assert (paths <= seen) is allowed and (allowed or not paths & seen)
        for path in paths - seen:
            assert visitor.get(path).status == 403, path
    assert (("post", "/console/money/buy") in forms) is (role in ("owner", "accountant"))
    for path in {"/console/users", "/console/acts", "/console/acts.csv", "/console/acts.json"} - seen:
        assert visitor.get(path).status == (403 if role != "owner" else 200), path
    channel.close()
    foreign.close()
