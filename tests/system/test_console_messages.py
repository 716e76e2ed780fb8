"""What the console says of bad values: in the terms of its forms, never in those of a command line."""

import re
import uuid

import pytest

from client import run
from console import invited, signed_in

PAGES = ["/console/users", "/console/channels", "/console/keys", "/console/limits", "/console/webhooks",
         "/console/money"]
BAD = ["a\u0007b", "", "-5", "x" * 5000]


def owner_of(service, language):
    account = service.new_account(credits=20)
    channel = service.new_channel(account_id=account)
    service.admin("webhook", "create", "--account", account, "--url", "http://127.0.0.1:9/messages")
    service.admin("pack", "create", "--account", account, "--name", "Own", "--credits", "5", "--price", "1.00",
                  "--currency", "EUR")
    email = invited(service, account, f"{uuid.uuid4().hex[:12]}@example.org")
    return signed_in(service, email, language), PAGES + [f"/console/channels/{channel.id}"]


def said(visitor):
    return " ".join(re.findall(r'role="alert"[^>]*>(.*?)</', visitor.body, re.S))


@pytest.mark.parametrize("language", ["en", "es"])
def test_no_message_speaks_of_a_command_line(service, language):
    visitor, pages = owner_of(service, language)
    named = 0
    for page in pages:
        visitor.get(page)
        assert visitor.status == 200
        for method, action, fields in list(visitor.forms()):
            own = {name: value for name, value in fields.items() if name in ("token", "in_account", "form_number")}
            for name in fields.keys() - own.keys():
                for value in BAD if method == "post" else []:
                    visitor.post(action, {**fields, name: value}, **{"Sec-Fetch-Site": "same-origin"})
                    assert visitor.status in (200, 303, 400, 404, 409), (action, name, value)
                    assert not re.search(r"--[a-z]|--help|[\x01\x02]|user role|audit list", visitor.text()), (
                        action, name, said(visitor))
                    named += bool(re.search("[“«]", said(visitor)))
    assert named > 10
    for query in ("since=x", "until=x"):
        visitor.get(f"/console/acts?{query}")
        assert visitor.status == 400 and re.search("[“«]", visitor.text()) and "--" not in visitor.text()


def test_the_command_line_has_its_own_words(service):
    for words, said_then in ((("limit", "create", "--channel", "chan_x", "--period", "day", "--max", "x", "--action",
                               "warn"), "--max must be an integer"),
                             (("limit", "create", "--period", "day", "--max", "1", "--action", "warn"),
                              "either --channel or --key"),
                             (("channel", "show", "a b"), "CHANNEL must be an identifier"),
                             (("webhook", "replay", "--endpoint", "ep_x"), "NOTICE, --missed or --failed"),
                             (("account", "set", "acc_1", "--unpaid-limit", "-1"), "--unpaid-limit must be")):
        refused = run(*words, *service.chosen())
        assert refused.returncode == 2 and said_then in refused.stderr, refused.stderr
