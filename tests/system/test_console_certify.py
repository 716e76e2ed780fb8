"""Requesting a certification without a key: the estimate is shown first, and exactly that is requested and charged."""

import datetime
import html
import re
import subprocess

import pytest

from client import eventually
from console import new_developer, shown

FEE = 5
NEW = "/console/certifications/new"
ASK = "/console/certifications/request"


@pytest.fixture(scope="module")
def charging(start):
    return start(certification__fee=FEE, certification__open_per_account=3, seal__interval="1s")


def prepared(service, credits=40, events=6, **flags):
    channel = service.new_channel(account_id=service.new_account(credits=credits), **flags)
    for number in range(events):
        channel.live.register({"number": number}).expect(201)
    return channel


def balance(service, channel):
    return service.admin("account", "show", channel.account_id)["balance"]


def listed(service, channel, mode="live"):
    return service.admin("certification", "list", "--channel", channel.id, "--mode", mode)["data"]


def figures(visitor):
    found = re.findall(r"<dt>([^<]+)</dt><dd>([^<]*)</dd>", visitor.body.split('<dl class="figures">')[1])
    return {name: html.unescape(value).replace("\u202f", " ").replace("\xa0", " ") for name, value in found}


def test_a_certification_is_shown_and_then_asked_for(charging):
    channel = prepared(charging)
    developer = new_developer(charging, channel.account_id)
    assert f"{NEW}?channel={channel.id}" in developer.get(f"/console/channels/{channel.id}").links()
    assert any(link.startswith(NEW) for link in developer.get("/console/certifications").links())
    assert ASK not in developer.get(f"{NEW}?channel={channel.id}").body, "nothing was chosen yet"
    developer.get(f"{NEW}?channel={channel.id}&mode=live&seq_from=2&seq_to=5")
    assert figures(developer) == {"Events": "4", "Fee": "5 credits", "Declared content": "48 bytes"}
    assert "The certification cannot be requested" not in shown(developer)
    assert balance(charging, channel) == 34 and not listed(charging, channel), "looking costs nothing"
    developer.send(ASK)
    made, = listed(charging, channel)
    page = f"/console/certifications/{made['certification_id']}"
    assert developer.location == f"{page}?done=certification_request"
    assert (made["first_sequence"], made["last_sequence"], made["fee"]) == (2, 5, FEE)
    assert balance(charging, channel) == 34 - FEE
    assert "was requested" in shown(developer.follow())
    eventually(lambda: charging.admin("certification", "show", made["certification_id"])["status"] == "completed",
               "it is made")
    act, = charging.admin("audit", "list", "--account", channel.account_id, "--operation", "certification request")["data"]
    assert act["email"] and act["made"] == {"certification_id": made["certification_id"]}
    assert act["arguments"]["channel"] == channel.id and act["arguments"]["seq_to"] == 5
    used = charging.admin("usage", "--channel", channel.id, "--by", "channel,key")["data"]
    assert [one["certifications_requested"] for one in used if not one["key_id"]] == [1], "without a key"
    channel.close()


def scanned(svg, folder):
    """Returns the text that a scanner reads from the picture."""
    side = int(re.search(r'viewBox="-4 -4 (\d+) \1"', svg)[1])
    rows = [[255] * side for _ in range(side)]
    for column, row, run in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z", svg):
        rows[int(row) + 4][int(column) + 4:int(column) + 4 + int(run)] = [0] * int(run)
    scale = 6
    pixels = b"".join(bytes(shade for shade in row for _ in range(scale)) * scale for row in rows)
    picture = folder / "code.pgm"
    picture.write_bytes(b"P5 %d %d 255\n" % (side * scale, side * scale) + pixels)
    return subprocess.run(["zbarimg", "--quiet", "--raw", "--nodbus", picture], check=True, capture_output=True,
                          text=True).stdout.strip()


def test_the_verification_link_is_there_to_be_scanned(charging, tmp_path):
    channel = prepared(charging, events=0)
    channel.test.register({"number": 1}).expect(201)
    made = channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
    developer = new_developer(charging, channel.account_id)
    page = f"/console/certifications/{made}"
    eventually(lambda: charging.admin("certification", "show", made)["status"] == "completed", "it is made")
    developer.get(page)
    code = charging.admin("certification", "show", made)["verification_code"]
    link = f"{charging.public_url}/verify/{code}"
    picture = re.search(r'<svg class="qr".*?</svg>', developer.body, re.S)[0]
    assert scanned(picture, tmp_path) == link and link in shown(developer)
    assert not re.search(r"\s(style|on\w+)=", picture)
    channel.close()


def test_a_double_post_makes_one(charging):
    channel = prepared(charging)
    developer = new_developer(charging, channel.account_id)
    developer.get(f"{NEW}?channel={channel.id}&seq_from=1&seq_to=6")
    page = developer.body
    developer.send(ASK)
    first = developer.location
    developer.body = page
    developer.send(ASK)
    assert developer.location == first, "the same one"
    assert len(listed(charging, channel)) == 1 and balance(charging, channel) == 34 - FEE
    acts = charging.admin("audit", "list", "--account", channel.account_id, "--operation", "certification request")
    assert len(acts["data"]) == 1
    developer.get(f"{NEW}?channel={channel.id}&seq_from=1&seq_to=6").send(ASK)
    assert developer.location != first, "another page asks for another one"
    assert len(listed(charging, channel)) == 2 and balance(charging, channel) == 34 - 2 * FEE
    channel.close()


def days_around_today():
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return today - datetime.timedelta(1), today + datetime.timedelta(1)


@pytest.mark.usefixtures("one_day")
def test_days_are_the_period_of_what_was_shown(charging):
    channel = prepared(charging, events=3)
    developer = new_developer(charging, channel.account_id)
    first, last = days_around_today()
    path = f"{NEW}?channel={channel.id}&from={first}&to={last}"
    developer.get(path)
    assert figures(developer)["Events"] == "3" and 'type="date"' in developer.body
    developer.send(ASK)
    made, = listed(charging, channel)
    assert (made["first_sequence"], made["last_sequence"]) == (1, 3)
    record = channel.live.get(f"/v1/certifications/{made['certification_id']}").expect(200).json["range"]
    assert record["from"] == f"{first}T00:00:00.000000Z" and record["seq_from"] is None
    assert record["to"] < f"{last + datetime.timedelta(1)}T00:00:00.000000Z"
    assert (made["from"], made["to"]) == (record["from"], record["to"])
    assert f"from {first.day} {first:%B %Y}, 00:00:00 UTC , before" in shown(developer.follow())
    developer.get(f"{NEW}?channel={channel.id}&from=2020-01-01&to=2020-01-02")
    assert "contains no events" in shown(developer) and ASK not in developer.body
    channel.close()


@pytest.mark.usefixtures("one_day")
@pytest.mark.parametrize("days", [0, 1])
def test_days_that_are_not_over_end_when_they_are_shown(charging, days):
    channel = prepared(charging, events=3)
    developer = new_developer(charging, channel.account_id)
    first, last = days_around_today()
    developer.get(f"{NEW}?channel={channel.id}&from={first}&to={last - datetime.timedelta(days)}")
    assert "Received: from" in shown(developer)
    later = channel.live.register({"number": 3}).expect(201).json
    developer.send(ASK)
    made, = listed(charging, channel)
    assert made["last_sequence"] == 3 and made["to"] < later["received_at"]
    channel.close()


@pytest.mark.usefixtures("one_day")
def test_what_is_not_what_was_shown_is_shown_first(charging):
    channel = prepared(charging, events=3)
    developer = new_developer(charging, channel.account_id)
    first, last = days_around_today()
    developer.get(f"{NEW}?channel={channel.id}&from={first}&to={last}&language=es")
    developer.send(ASK, expected_last=2)
    assert developer.status == 400 and not listed(charging, channel)
    assert "which differ from those shown" in shown(developer) and figures(developer)["Events"] == "3"
    assert f'name="from" maxlength="10" placeholder="2026-01-01" aria-describedby="days_note" value="{first}"' in developer.body
    assert f'value="{last - datetime.timedelta(1)}"' in developer.body and 'value="es" selected' in developer.body
    developer.send(ASK)
    assert developer.status == 303 and [one["last_sequence"] for one in listed(charging, channel)] == [3]
    # A range of sequence numbers is not affected by later events.
    developer.get(f"{NEW}?channel={channel.id}&seq_from=1&seq_to=2")
    channel.live.register({"number": 4}).expect(201)
    developer.send(ASK)
    assert developer.status == 303 and len(listed(charging, channel)) == 2
    channel.close()


def test_the_fee_that_was_shown_is_the_one_that_is_taken(start):
    service = start(certification__fee=FEE)
    channel = prepared(service, events=2)
    developer = new_developer(service, channel.account_id)
    path = f"{NEW}?channel={channel.id}&seq_from=1&seq_to=2"
    developer.get(path)
    assert service.stop() == 0
    service.settings["certification.fee"] = FEE + 2
    service.start()
    developer.send(ASK)
    assert developer.status == 400 and "The fee is now 7 credits; 5 were shown." in shown(developer)
    assert figures(developer)["Fee"] == "7 credits" and not listed(service, channel)
    assert balance(service, channel) == 38
    developer.send(ASK)
    assert developer.status == 303 and balance(service, channel) == 38 - 7
    refused = service.run("certification", "request", channel.id, "--seq-from", 1, "--seq-to", 2, "--expected-fee", 6)
    assert refused.returncode == 1 and "now 7 credits; 6 were shown" in refused.stderr and balance(service, channel) == 31
    channel.close()


def test_all_events_of_a_channel_are_a_step_away(charging):
    channel = prepared(charging, events=4)
    developer = new_developer(charging, channel.account_id)
    all_of_it = f"{NEW}?channel={channel.id}&mode=live&seq_from=1&seq_to=4"
    assert all_of_it in developer.get(f"/console/channels/{channel.id}").links()
    assert f"/console/events?channel={channel.id}" in developer.links()
    assert figures(developer.get(all_of_it))["Events"] == "4" and ASK in developer.body
    reader = new_developer(charging, channel.account_id, "reader")
    assert all_of_it not in reader.get(f"/console/channels/{channel.id}").links()
    empty = charging.new_channel(account_id=channel.account_id)
    developer.get(f"/console/channels/{empty.id}")
    assert not any("seq_from" in link for link in developer.links()), "there are none"
    empty.close()
    channel.close()


def test_what_has_not_had_its_turn_is_not_tried_again(start):
    service = start()
    channel = service.new_channel(credits=5)
    channel.test.register({"number": 1}).expect(201)
    made = channel.test.certify(seq_from=1, seq_to=1).expect(202).json["certification_id"]
    eventually(lambda: service.admin("certification", "show", made)["status"] == "completed", "it is made")
    assert service.stop() == 0
    service.store.change("UPDATE certifications SET status = 'processing', attempts = 0, lease = NULL, "
                         "next_attempt_at = next_attempt_at + 86400000000 * 365")
    service.start()
    developer = new_developer(service, channel.account_id)
    page = f"/console/certifications/{made}"
    assert "Waiting in the queue." in shown(developer.get(page)) and "/retry" not in developer.body
    assert service.stop() == 0
    service.store.change("UPDATE certifications SET last_error = '26: nothing came', attempts = 1")
    service.start()
    assert f'action="{page}/retry"' in developer.get(page).body
    channel.close()


def test_what_has_failed_is_asked_for_anew(start):
    """With the same channel, mode and events, at the present price."""
    service = start()
    channel = service.new_channel(credits=5)
    for number in range(3):
        channel.test.register({"number": number}).expect(201)
    made = channel.test.certified(seq_from=2, seq_to=3)["certification_id"]
    assert service.stop() == 0
    service.store.change("UPDATE certifications SET status = 'failed', incident_id = 'inc_x', last_error = '26: no'")
    service.start()
    page = f"/console/certifications/{made}"
    link = f"{NEW}?channel={channel.id}&mode=test&seq_from=2&seq_to=3"
    assert link not in new_developer(service, channel.account_id, "reader").get(page).links()
    developer = new_developer(service, channel.account_id, language="es")
    assert link in developer.get(page).links() and "otra certificación de los mismos eventos" in shown(developer)
    developer.get(link)
    assert developer.status == 200 and 'name="seq_from" inputmode="numeric" maxlength="15" autocomplete="off" ' \
        'value="2"' in developer.body
    developer.send(ASK)
    again = re.search("CERT-[0-9A-Z-]+", developer.location)[0]
    told = service.admin("certification", "show", again)
    assert again != made and (told["first_sequence"], told["last_sequence"], told["mode"]) == (2, 3, "test")
    channel.close()


@pytest.mark.parametrize("query, words", [
    ("seq_from=1", "exactly one pair"), ("seq_from=3&seq_to=2", "must not be greater"),
    ("seq_from=1&seq_to=99", "last event of the chain, which is 2"), ("from=2020-02-31&to=2020-03-01", "“From”"),
    ("seq_from=x&seq_to=2", "“First event”"), ("from=2020-01-01&to=2020-01-02&seq_from=1&seq_to=2", "exactly one pair"),
    ("from=<b>&to=9999-12-31", "“From”"), ("seq_from=-1&seq_to=999999999999999999999", "“First event”")])
def test_a_range_that_means_nothing_is_told(charging, query, words):
    channel = prepared(charging, events=2)
    developer = new_developer(charging, channel.account_id)
    developer.get(f"{NEW}?channel={channel.id}&{query}")
    assert developer.status == 200 and 'role="alert"' in developer.body and words in shown(developer)
    assert ASK not in developer.body and "<b>" not in developer.body and "\x01" not in developer.body
    channel.close()


def test_what_hinders_it_is_told_before_and_behind(charging):
    channel = prepared(charging, credits=4, events=2)
    developer = new_developer(charging, channel.account_id)
    path = f"{NEW}?channel={channel.id}&seq_from=1&seq_to=2"
    assert "The balance does not cover the issuance fee." in shown(developer.get(path)) and ASK not in developer.body
    spanish = new_developer(charging, channel.account_id, language="es")
    assert "El saldo no cubre la tarifa de emisión." in shown(spanish.get(path))
    estimate = charging.admin("certification", "estimate", channel.id, "--seq-from", 1, "--seq-to", 2)
    assert estimate["hindered_by"]["code"] == "insufficient_balance"
    assert (estimate["event_count"], estimate["fee"]) == (2, FEE)
    charging.admin("credits", "add", channel.account_id, 10)
    form = developer.get(path)
    charging.admin("credits", "add", channel.account_id, -10)
    form.send(ASK)
    assert developer.status == 402 and 'role="alert"' in developer.body
    assert "does not cover" in shown(developer) and not listed(charging, channel)
    charging.admin("credits", "add", channel.account_id, 10)
    charging.admin("channel", "suspend", channel.id)
    assert "is suspended" in shown(developer.get(path))
    fields = {**developer.own_fields(), "channel": channel.id, "seq_from": 1, "seq_to": 2}
    developer.post(ASK, fields, **{"Sec-Fetch-Site": "same-origin"})
    assert developer.status == 403 and not listed(charging, channel)
    assert "is suspended" in shown(developer) and 'id="said"' in developer.body and 'id="seq_to"' in developer.body
    channel.close()


@pytest.mark.usefixtures("one_day")
def test_a_quota_that_is_used_up_is_told_on_the_page(charging):
    channel = prepared(charging, credits=0, events=0)
    channel.test.register({"number": 1}).expect(201)
    developer = new_developer(charging, channel.account_id)
    page = developer.get(f"{NEW}?channel={channel.id}&mode=test&seq_from=1&seq_to=1").body
    for _ in range(20):
        channel.test.certified(seq_from=1, seq_to=1)
    developer.body = page
    developer.send(ASK)
    assert developer.status == 429 and 'id="said"' in developer.body and "daily test quota" in shown(developer)
    assert re.search(r'id="seq_to"[^>]* value="1"', developer.body) and 'value="test" selected' in developer.body
    channel.close()


def test_a_service_that_is_quiet_says_so_on_the_page(start):
    service = start()
    channel = prepared(service, events=2)
    developer = new_developer(service, channel.account_id)
    developer.get(f"{NEW}?channel={channel.id}&seq_from=1&seq_to=2")
    service.admin("store", "quiet", "--reason", "a drill")
    eventually(lambda: service.metric("quiet") == 1, "the store is a read-only copy")
    with pytest.raises(AssertionError):
        developer.send(ASK)  # a visitor expects no 5xx
    assert developer.status == 503 and 'id="said"' in developer.body
    assert re.search(r'id="seq_to"[^>]* value="2"', developer.body), "the form is still shown"
    told, = service.logged(lambda line: line.get("event") == "request_failed")
    assert told["incident_id"].startswith("inc_") and told["code"] == "temporarily_unavailable"
    service.admin("store", "wake", "--reason", "it is over")
    channel.close()


def test_test_ones_cost_nothing_and_are_as_many_as_a_day_has(charging):
    channel = prepared(charging, credits=0, events=0)
    channel.test.register({"number": 1}).expect(201)
    developer = new_developer(charging, channel.account_id, language="es")
    path = f"{NEW}?channel={channel.id}&mode=test&seq_from=1&seq_to=1"
    developer.get(path)
    assert figures(developer)["Tarifa"] == "0 créditos"
    for _ in range(25):
        assert charging.admin("certification", "estimate", channel.id, "--mode", "test", "--seq-from", 1,
                              "--seq-to", 1)["hindered_by"] is None, "looking uses no quota up"
    developer.send(ASK, language="es")
    assert developer.location.startswith("/console/certifications/CERT-TEST-")
    channel.close()


def test_the_content_of_a_part_of_a_day_is_told_in_proportion(charging):
    channel = prepared(charging, events=2)
    channel.live.register({"number": 1, "text": "x" * 1000}).expect(201)
    whole = charging.admin("certification", "estimate", channel.id, "--seq-from", 1, "--seq-to", 3)
    part = charging.admin("certification", "estimate", channel.id, "--seq-from", 1, "--seq-to", 1)
    assert whole["content_exact"] and whole["content_bytes"] > 1000
    assert not part["content_exact"] and part["content_bytes"] == whole["content_bytes"] // 3
    bare = prepared(charging, events=0, modality="hash_only")
    bare.live.register_hash("a" * 64).expect(201)
    none = charging.admin("certification", "estimate", bare.id, "--seq-from", 1, "--seq-to", 1)
    assert (none["content_bytes"], none["content_exact"]) == (0, True)
    bare.close()
    channel.close()


def test_the_command_line_asks_once(charging):
    channel = prepared(charging, events=2)
    ask = ("certification", "request", channel.id, "--seq-from", 1, "--seq-to", 2, "--language", "es",
           "--idempotency-key", "once")
    made = charging.admin(*ask)
    assert made["status"] == "processing" and made["range"]["seq_to"] == 2
    assert charging.admin(*ask)["certification_id"] == made["certification_id"]
    assert balance(charging, channel) == 38 - FEE
    channel.close()


@pytest.mark.parametrize("role, may", [("owner", True), ("developer", True), ("accountant", False), ("reader", False)])
def test_who_may_ask(charging, role, may):
    channel = prepared(charging, events=1)
    visitor = new_developer(charging, channel.account_id, role)
    path = f"{NEW}?channel={channel.id}&seq_from=1&seq_to=1"
    assert visitor.get(path).status == (200 if may else 403)
    assert any(link.startswith(NEW) for link in visitor.get("/console/certifications").links()) is may
    carried = visitor.get("/console/sessions").own_fields()
    visitor.post(ASK, {**carried, "channel": channel.id, "seq_from": 1, "seq_to": 1}, **{"Sec-Fetch-Site": "same-origin"})
    assert visitor.status == (303 if may else 403) and len(listed(charging, channel)) == may
    channel.close()


def test_another_accounts_channel_is_not_there(charging):
    channel = prepared(charging, events=1)
    stranger = new_developer(charging, charging.new_account(credits=5), "owner")
    assert stranger.get(f"{NEW}?channel={channel.id}&seq_from=1&seq_to=1").status == 404
    carried = stranger.get("/console/sessions").own_fields()
    stranger.post(ASK, {**carried, "channel": channel.id, "seq_from": 1, "seq_to": 1}, **{"Sec-Fetch-Site": "same-origin"})
    assert stranger.status == 404 and not listed(charging, channel)
    channel.close()
