"""Events by the command line and in the console: what they show, to whom, and harmlessly."""

import hashlib
import html
import json
import re
import secrets
import threading
import time

import pytest

import stores
import timestamp_authority
from client import eventually, fresh
from console import invited, signed_in


@pytest.fixture(scope="module")
def filled(service):
    """12 live events, the last 2 of them unpaid, and 3 test events."""
    channel = service.new_channel(credits=10)
    channel.events = [channel.live.register({"n": n}).expect(201).json for n in range(6)]
    time.sleep(0.01)
    channel.events += [channel.live.register({"n": n}).expect(201).json for n in range(6, 12)]
    channel.test_events = [channel.test.register({"n": n}).expect(201).json for n in range(3)]
    yield channel
    channel.close()


def listed(service, channel, *flags):
    return service.admin("event", "list", "--channel", channel.id, *flags)


def sequences(page):
    return [row["sequence"] for row in page["data"]]


# ---- the operations ----

def test_the_list_is_that_of_the_interface(service, filled):
    filled.live.sealed(filled.events[-1]["event_id"])
    page = filled.live.get("/v1/events").expect(200).json["data"]
    assert listed(service, filled, "--ascending")["data"] == page
    assert listed(service, filled)["data"] == page[::-1], "newest first"
    assert sequences(listed(service, filled, "--mode", "test")) == [3, 2, 1]


def test_filters_of_the_list(service, filled):
    seventh = filled.events[6]
    for flags, expected in (
            (("--from", "3", "--to", "5"), [5, 4, 3]), (("--from", "12"), [12]), (("--to", "1"), [1]),
            (("--from", "13"), []), (("--since", seventh["received_at"]), list(range(12, 6, -1))),
            (("--until", seventh["received_at"]), list(range(6, 0, -1))), (("--since", "1h"), list(range(12, 0, -1))),
            (("--until", "1h"), []), (("--status", "unpaid"), [12, 11]),
            (("--status", "registered", "--ascending"), list(range(1, 11))), (("--status", "test"), []),
            (("--client-ref", seventh["client_ref"]), [7]), (("--client-ref", fresh()), []),
            (("--client-ref", seventh["client_ref"], "--to", "6"), []),
            (("--hash", seventh["hash"]), [7]), (("--hash", seventh["hash"].upper(), "--from", "7"), [7]),
            (("--hash", seventh["hash"], "--to", "6"), []), (("--hash", "0" * 128), [])):
        assert sequences(listed(service, filled, *flags)) == expected, flags
    assert sequences(listed(service, filled, "--mode", "test", "--status", "test")) == [3, 2, 1]


@pytest.mark.parametrize("order", [(), ("--ascending",)])
def test_a_walk_through_pages_gives_every_event_once(service, filled, order):
    seen, place = [], ()
    while True:
        page = listed(service, filled, "--limit", "5", *order, *place)
        seen += sequences(page)
        if not page["has_more"]:
            break
        place = ("--after", page["data"][-1]["event_id"])
    assert seen == (list(range(1, 13)) if order else list(range(12, 0, -1)))


def test_what_the_list_refuses(service, filled):
    for flags, said in ((("--from", "5", "--to", "4"), "--from"), (("--from", "0"), "--from"), (("--limit", "0"), "--limit"),
                        (("--since", "1h", "--until", "2h"), "--since"), (("--status", "sealed"), "--status"),
                        (("--after", filled.test_events[0]["event_id"]), "no event"),
                        (("--after", "evt_nothing"), "no event"), (("--hash", "0" * 63), "--hash"),
                        (("--hash", "x" * 64), "--hash")):
        refused = service.run("event", "list", "--channel", filled.id, *flags)
        assert refused.returncode != 0 and said in refused.stderr, (flags, refused)


def test_one_is_shown_with_what_proves_it(service, filled):
    first = filled.live.sealed(filled.events[0]["event_id"])
    asked = filled.live.event(first["event_id"])
    shown = service.admin("event", "show", first["event_id"])
    proof = asked.pop("proof")
    assert shown["receipt"] == asked and shown["proof"] == proof
    assert hashlib.sha256(shown["record"].encode()).hexdigest() == asked["chain_hash"]
    assert shown["content"] == {"kind": "json", "file_name": None, "bytes": len('{"n":0}')}
    assert shown["seal"]["state"] == "sealed" and shown["seal"]["waits_for"] is None
    last = service.admin("event", "show", filled.test_events[0]["event_id"])
    registered = {name: value for name, value in filled.test_events[0].items() if name != "receipt"}
    assert last["receipt"] == registered and last["seal"]["state"] == "simulated"
    for wrong in ("evt_nothing", first["event_id"] + "zz", "evt_" + "0" * 16 + "l1"):
        refused = service.run("event", "show", wrong)
        assert refused.returncode != 0 and f"no event '{wrong}'" in refused.stderr


def test_the_command_line_lists_for_people(service, filled):
    told = service.run("event", "list", "--channel", filled.id, "--limit", "2")
    assert told.stdout.startswith("EVENT ID") and f"--after {filled.events[10]['event_id']}" in told.stdout
    assert "--client-ref" in service.run("event", "list", "--help").stdout


# ---- the pages ----

HOSTILE = "<script>alert(1)</script> \"'&amp; \u202edrow"


def visitor(service, account, role="developer", language="en"):
    return signed_in(service, invited(service, account, f"{secrets.token_hex(6)}@example.org", role), language)


def page_of(event):
    return f"/console/events/{event['event_id']}"


def test_the_page_lists_and_filters(service, filled):
    reader = visitor(service, filled.account_id, "reader")
    seventh = filled.events[6]
    for query, expected in (
            ("", range(12, 0, -1)), ("&mode=test", [3, 2, 1]), ("&status=unpaid", [12, 11]), ("&from=3&to=5", [5, 4, 3]),
            (f"&since={seventh['received_at']}", range(12, 6, -1)), (f"&client_ref={seventh['client_ref']}", [7]),
            (f"&hash={seventh['hash']}", [7]), (f"&hash={seventh['hash'].upper()}", [7]),
            ("&until=1h", []), (f"&after={filled.events[9]['event_id']}", range(9, 0, -1))):
        reader.get(f"/console/events?channel={filled.id}{query}")
        shown = re.findall(r'<th scope="row"><a href="/console/events/evt_[0-9a-z]+">(\d+)</a>', reader.body)
        assert [int(number) for number in shown] == list(expected), query
    assert reader.get(f"/console/events?channel={filled.id}&from=5&to=4").status == 400
    assert reader.get(f"/console/events?channel={filled.id}&hash=123").status == 400
    reader.get(f"/console/events?channel={filled.id}&hash={'0' * 64}")
    assert "No event of this selection has this digest." in reader.body
    assert "/console/events" in reader.get(f"/console/channels/{filled.id}").body
    assert visitor(service, filled.account_id, "accountant").get("/console/events").status == 403


def test_long_lists_go_on(service, channel):
    for n in range(52):
        channel.test.register({"n": n}).expect(201)
    reader = visitor(service, channel.account_id, "reader")
    reader.get(f"/console/events?channel={channel.id}&mode=test&client_ref=")
    (older,) = [link for link in reader.links() if "after=" in link]
    first = set(re.findall(r"/console/events/(evt_[0-9a-z]+)", reader.body))
    second = set(re.findall(r"/console/events/(evt_[0-9a-z]+)", reader.get(older).body))
    assert len(first) == 50 and len(second) == 2 and not first & second


def test_one_event_with_its_receipt_content_and_hashes(service, filled, tmp_path):
    reader = visitor(service, filled.account_id, "reader")
    event = filled.live.sealed(filled.events[1]["event_id"])
    reader.get(page_of(event))
    proof = filled.live.event(event["event_id"])["proof"]
    shown = [html.unescape(text) for text in re.findall(r'<code class="hash">([^<]+)</code>', reader.body)]
    for digest in (event["hash"], event["chain_hash"], proof["previous_chain_hash"], proof["config_hash"],
                   proof["round"]["root"]):
        assert digest in shown
    assert '"n": 1' in reader.text() and event["client_ref"] in reader.text()
    assert f"constancia verify {event['event_id']}.ers" in reader.text() and "<svg role=\"img\"" in reader.body
    for name, digest in (("content", event["hash"]), ("record", event["chain_hash"])):
        reader.get(f"{page_of(event)}/{name}")
        assert reader.status == 200 and reader.headers["content-disposition"].startswith("attachment")
        assert reader.headers["x-content-type-options"] == "nosniff"
        assert hashlib.sha256(reader.body.encode()).hexdigest() == digest
    (tmp_path / "event.ers").write_bytes(reader.get(f"{page_of(event)}/evidence-record").content)
    (tmp_path / "event.json").write_bytes(reader.get(f"{page_of(event)}/record").content)
    verified = service.run("verify", tmp_path / "event.ers", tmp_path / "event.json", "--json")
    assert verified.returncode == 2, verified
    assert json.loads(verified.stdout)["verdict"]["code"] == "existence_only"
    assert "no probative value" in reader.get(page_of(filled.test_events[0])).text()
    assert reader.get(f"{page_of(filled.test_events[0])}/evidence-record").status == 404


def test_hostile_content_names_and_references_are_harmless(service, channel):
    reader = visitor(service, channel.account_id, "reader")
    event = channel.test.register({"text": HOSTILE}, client_ref=HOSTILE.replace("\u202e", "")).expect(201).json
    file = channel.test.register_file(b"<script>alert(1)</script>", name='<b>x\u202e.html').expect(201).json
    for one in (event, file):
        reader.get(page_of(one))
        assert reader.status == 200 and "<script>alert" not in reader.body and "<b>" not in reader.body
        outside = re.sub(r'data-one="[^"]*"', "", reader.body)
        assert "\u202e" not in outside
    reader.get(f"{page_of(file)}/content")
    assert reader.headers["content-type"] == "application/octet-stream"
    assert reader.headers["content-disposition"].startswith("attachment") and "sandbox" in \
        reader.headers["content-security-policy"]
    assert "%3Cscript" not in reader.body and reader.body == "<script>alert(1)</script>"
    assert "alert(1)" in reader.get(f"/console/events?channel={channel.id}&mode=test").text()
    assert "<script>alert" not in reader.body


def test_a_digest_alone_has_no_content(service, hash_channel):
    event = hash_channel.live.register_hash(hashlib.sha256(b"x").hexdigest()).expect(201).json
    reader = visitor(service, hash_channel.account_id, "reader")
    assert "never sent to the service" in reader.get(page_of(event)).text()
    assert reader.get(f"{page_of(event)}/content").status == 404


def damage(service, change):
    """The log reports content that does not match the hash of the receipt."""
    before = len(service.log_lines())
    change()
    return lambda: [(line["level"], line["event_id"], line["state"]) for line in service.log_lines()[before:]
                    if line["event"] == "content_damaged"]


def test_what_is_not_sealed_waits_and_a_content_that_is_lost_is_told(start):
    service = start(seal__interval="1h")
    channel = service.new_channel()
    event = channel.live.register_file(b"a file", name="file.txt").expect(201).json
    reader = visitor(service, channel.account_id, "reader")
    assert "next sealing round" in reader.get(page_of(event)).text()
    assert "Timestamp pending" in reader.body
    assert reader.get(f"{page_of(event)}/evidence-record").status == 404
    assert reader.get(f"{page_of(event)}/content").body == "a file"
    (object_file,) = [one for one in service.data.glob("content/event/**/*") if one.is_file()]
    for change, state, told in ((lambda: object_file.write_bytes(b"a lie!"), "altered",
                                 "does not match the declared digest"),
                                (object_file.unlink, "missing", "no longer available")):
        said = damage(service, change)
        page = reader.get(page_of(event))
        assert page.status == 200 and "This page does not check the content" in page.text() and "a lie" not in page.body
        assert not said(), "a page does not check quarantined content"
        assert reader.get(f"{page_of(event)}/content").status == 404 and "a lie" not in reader.body
        assert told in reader.text()
        eventually(lambda: said() == [("error", event["event_id"], state)], "the operator is reported")
    channel.close()


def test_content_that_is_altered_in_the_store_is_told(start):
    service = start()
    channel = service.new_channel()
    event = channel.live.register({"n": 1}).expect(201).json
    other = channel.live.register({"n": 2}).expect(201).json
    assert service.stop() == 0
    service.store.change(f"UPDATE {stores.EVENTS} SET content = {stores.blob(b'{}')} "
                         "WHERE content IS NOT NULL")
    service.start()
    reader = visitor(service, channel.account_id, "reader")
    said = damage(service, lambda: None)
    assert "does not match the hash" in reader.get(page_of(event)).text() and '"n": 1' not in reader.text()
    eventually(lambda: said() == [("error", event["event_id"], "altered")], "the operator is reported")
    for _ in range(3):
        assert reader.get(f"{page_of(event)}/content").status == 404
    reader.get(page_of(other))
    eventually(lambda: said()[-1] == ("error", other["event_id"], "altered"), "so is the other")
    assert len(said()) == 2, "who looks again and again fills no log"
    channel.close()


def test_events_of_another_account_are_not_there(service, filled):
    strange = visitor(service, service.new_account(credits=5))
    for path in ("", "/content", "/record", "/evidence-record"):
        assert strange.get(page_of(filled.events[0]) + path).status == 404
        assert filled.events[0]["hash"] not in strange.body
    assert strange.get(f"/console/events?channel={filled.id}").status == 404
    accountant = visitor(service, filled.account_id, "accountant")
    for path in ("", "/content", "/record", "/evidence-record"):
        assert accountant.get(page_of(filled.events[0]) + path).status == 403


def test_addresses_that_are_none_have_pages(service, filled):
    reader = visitor(service, filled.account_id, "reader")
    for event, status in (("%zz", 404), ("%ff", 404), ("%00", 404), ("%2e%2e", 400), ("e" * 4000, 400), ("", 404)):
        reader.get(f"/console/events/{event}/content")
        assert reader.status == status and reader.headers["content-type"].startswith("text/html"), event


def test_in_spanish(service, filled):
    account = filled.account_id
    lector = visitor(service, account, "reader", "es")
    lector.get(page_of(filled.events[0]), **{"Accept-Language": "es"})
    if "Acuse de recibo" not in lector.text():
        lector.send("/console/language", language="es")
        lector.get(page_of(filled.events[0]))
    assert "Acuse de recibo" in lector.text() and "Descargar el contenido" in lector.text()


# ---- verified in the browser ----

def checks(browser, count=5):
    browser.click("#verify_now button")
    browser.until(lambda: len(browser.texts("ol.checks li[class]")) == count, "all checks are shown")
    return browser.run("return Object.fromEntries([...document.querySelectorAll('[data-check]')]"
                       ".map(line => [line.dataset.check, line.className]))")


def open_browser(service, account, browse, language="en", script=True):
    browser = browse(language, script)
    browser.open(service.admin("user", "link", invited(service, account, f"{secrets.token_hex(6)}@example.org",
                                                       "reader"))["url"])
    browser.click("main button")
    browser.until(lambda: browser.url().endswith("/console/"), "the console is open")
    return browser


# In the bytes of the token, after the place at which these begin: its own identifier among the signed attributes.
FLIP = """const bytes = Uint8Array.from(atob(one.proof.round.token), letter => letter.charCodeAt(0));
    const text = Array.from(bytes, byte => byte.toString(16).padStart(2, "0")).join("");
    %s; one.proof.round.token = btoa(String.fromCharCode(...bytes))"""
ALTERED = {
    "content": ("window.fetch = async () => new Response('{\"n\":2}')", {"content": "bad"}),
    "content is lost": ("window.fetch = async () => new Response('', {status: 404})", {"content": "bad"}),
    "content is out of reach": ("window.fetch = async () => { throw new TypeError('net') }", {"content": "unread"}),
    "the service fails": ("window.fetch = async () => new Response('', {status: 503})", {"content": "unread"}),
    "hash": ("one.receipt.hash = other(one.receipt.hash)", {"content": "bad", "record": "bad"}),
    "kind": ("one.content.kind = 'digest'", {}),
    "modality": ("one.receipt.modality = 'hash_only'; one.content.kind = 'digest'", {"record": "bad"}),
    "record": ("one.record = one.record.replace('\"sequence\":', '\"sequence\": ')", {"chain": "bad"}),
    "chain_hash": ("one.receipt.chain_hash = other(one.receipt.chain_hash)", {"chain": "bad", "path": "bad"}),
    "previous": ("one.proof.previous_chain_hash = other(one.proof.previous_chain_hash)", {"chain": "bad"}),
    "path": ("one.proof.path.push([one.receipt.hash])", {"path": "bad"}),
    "root": ("one.proof.round.root = other(one.proof.round.root)", {"path": "bad", "token": "bad"}),
    "token": ("one.proof.round.token = one.proof.round.token.slice(0, 200)", {"token": "bad"}),
    "time": ("one.receipt.timestamp.sealed_at = '2001-01-01T00:00:00.000000Z'", {"token": "bad"}),
    "time of the round": ("one.proof.round.sealed_at = '2001-01-01T00:00:00.000000Z'", {"token": "bad"}),
    "both times": ("one.receipt.timestamp.sealed_at = one.proof.round.sealed_at = '2001-01-01T00:00:00.000000Z'",
                   {"token": "bad"}),
    "what was signed": (FLIP % "bytes[text.indexOf('06092a864886f70d010904') / 2 + 20] ^= 1", {"token": "bad"}),
    # The imprint's algorithm and value follow the policy: the byte behind both is of the serial number.
    "the token's content": (FLIP % "bytes[text.indexOf(one.proof.round.root) / 2 + 34] ^= 1", {"token": "bad"}),
    "BER": (FLIP % "bytes[1] = 0x80", {"token": "unread"}),
}


def test_verify_now_tells_what_is_wrong_at_its_step(service, filled, browse):
    event = filled.live.sealed(filled.events[1]["event_id"])
    browser = open_browser(service, filled.account_id, browse)
    browser.open(service.public_url + page_of(event))
    good = {"content": "good", "record": "good", "chain": "good", "path": "good", "token": "part"}
    assert checks(browser) == good, browser.text("#verify")
    assert "the signature and the authority are not checked here" in browser.text("#verify_now")
    assert browser.has("#verify a[href='/verify']")
    for what, (change, wrong) in ALTERED.items():
        browser.open(service.public_url + page_of(event))
        browser.run("""const place = document.getElementById("verify_now"), one = JSON.parse(place.dataset.one);
            const other = hash => (hash[0] === "0" ? "1" : "0") + hash.slice(1);
            %s; place.dataset.one = JSON.stringify(one);""" % change)
        assert checks(browser) == {**good, **wrong}, what
        assert "undefined" not in browser.text("#verify_now"), what
    browser.emulate(390, "dark", 844)
    browser.open(service.public_url + page_of(event))
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.open(service.public_url + page_of(filled.test_events[0]))
    told = checks(browser)
    assert told["path"] == told["token"] == "none" and told["content"] == told["chain"] == "good"


def test_why_an_authority_fails_is_the_operators(start, tmp_path):
    server = timestamp_authority.Server(timestamp_authority.Certificates(str(tmp_path / "one")), mode="error")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    service = start(tsa__url=server.url, tsa__kind="non_qualified", tsa__roots=server.roots, seal__interval="200ms",
                    tsa__allow_networks="127.0.0.0/8", tsa__policy="2.25.1")
    channel = service.new_channel()
    event = channel.live.register({"n": 1}).expect(201).json
    eventually(lambda: "fails: HTTP 500" in
               service.admin("event", "show", event["event_id"])["seal"]["waits_for"], "the operator sees the reason")
    page = visitor(service, channel.account_id).get(page_of(event))
    assert "next sealing round" in page.text() and "HTTP 500" not in page.body and "fails" not in page.body
    channel.close()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("mode,state", [("good", "part"), ("ber", "unread")])
def test_the_second_authority_is_shown_and_looked_at_too(start, tmp_path, browse, mode, state):
    servers = [timestamp_authority.Server(timestamp_authority.Certificates(str(tmp_path / name)), mode=mode)
               for name in ("one", "other")]
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    service = start(tsa__url=",".join(server.url for server in servers), tsa__kind="non_qualified", tsa__tokens=2,
                    tsa__roots=",".join(server.roots for server in servers), tsa__allow_networks="127.0.0.0/8",
                    tsa__policy="2.25.1", seal__interval="200ms")
    channel = service.new_channel()
    event = channel.live.sealed(channel.live.register({"n": 1}).expect(201).json["event_id"])
    second = service.admin("event", "show", event["event_id"])["seal"]["second"]
    assert second["authority"] == event["proof"]["round"]["authority"] == "CN=Timestamp good,O=Stand-in"
    assert second["token"] != event["proof"]["round"]["token"]
    browser = open_browser(service, channel.account_id, browse)
    browser.open(service.public_url + page_of(event))
    boxes = browser.run("return [...document.querySelectorAll('figure.proof g')].map(box => "
                        "[...box.querySelectorAll('text, title')].map(text => text.textContent))")
    assert [(name, title.split(" · ")[0], value) for name, title, value in boxes] == [
        (second["authority"], "Timestamp", second["authority"]),
        (second["authority"], "Second timestamp", second["authority"])]
    assert browser.texts("section dd").count(second["authority"]) == 2
    good = {"content": "good", "record": "good", "chain": "good", "path": "good", "token": state, "second": state}
    assert checks(browser, 6) == good
    browser.run("""const place = document.getElementById("verify_now"), one = JSON.parse(place.dataset.one);
        one.seal.second.sealed_at = "2001-01-01T00:00:00.000000Z"; place.dataset.one = JSON.stringify(one);""")
    browser.click("#verify_now button")
    if mode != "ber":
        browser.wait_for("[data-check=second].bad")
    channel.close()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_long_reference_breaks_no_word_beside_it_and_paper_has_all_of_the_content(service, channel, browse):
    event = channel.live.register({f"line {n}": n for n in range(100)}, client_ref="W" * 255).expect(201).json
    service.admin("channel", "configure", channel.id, "--name", "Deliveries")
    browser = open_browser(service, channel.account_id, browse)
    for width in (1280, 720):
        browser.emulate(width, "light")
        browser.open(f"{service.public_url}/console/events?channel={channel.id}")
        assert "Deliveries" in browser.text("main table caption"), "on paper the filter is left out"
        assert browser.run("""const cell = document.querySelector("main table td:nth-child(4)"), range = new Range();
            range.selectNodeContents(cell); return range.getClientRects().length""") == 1, "the state is on one line"
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), width
    browser.open(service.public_url + page_of(event))
    seen = """const part = document.querySelector(arguments[0]);
        return part !== null && getComputedStyle(part).display !== "none" && part.scrollHeight - part.clientHeight"""
    assert browser.run(seen, "pre.content") > 0, "on a screen it is scrolled"
    browser.ask("POST", f"{browser.session}/goog/cdp/execute",
                {"cmd": "Emulation.setEmulatedMedia", "params": {"media": "print"}})
    assert browser.run(seen, "pre.content") == 0
    for left_out in ("button.copy", "#verify_now button", "[data-check]", "a.button"):
        assert browser.has(left_out) and browser.run(seen, left_out) is False, left_out


def test_without_script_the_page_says_how(service, filled, browse):
    event = filled.live.sealed(filled.events[1]["event_id"])
    browser = open_browser(service, filled.account_id, browse, "es", script=False)
    browser.open(service.public_url + page_of(event))
    assert f"constancia verify {event['event_id']}.ers" in browser.text("#verify")
    assert not browser.text("#verify_now")
