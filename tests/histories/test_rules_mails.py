"""Each rule of rules_mails.py holds for a right history, made by hand, and is violated by one in which a single thing
is wrong."""

import copy

import pytest
from builders import Building, violated

RULES_OF_MAILS = ("no_mail_waits", "repeated_mails_are_identical", "mails_reach_their_recipient",
                  "invited_users_are_listed", "invitations_are_sent_once", "failed_topups_are_mailed",
                  "disabled_endpoints_are_mailed")
NAMES = {"a0": "acc_0", "a1": "acc_1", "a0/webhook0": "whk_0"}
USER, OWNER = "u0@example.org", "a0@example.org"


def mail(number, at, to, subject, text):
    return {"id": f"<eml_{number}@example.org>", "to": [to], "subject": subject, "text": text, "at": at,
            "sha256": f"{number}" * 64}


def invitation(number=0, at=9.0, to=USER, account="acc_0"):
    return mail(number, at, to, "S: you have been invited to its console",
                f"You have access to the console of S for a0 (account {account}).")


def failed_topup(number=1):
    return mail(number, 9.0, OWNER, "S: the automatic top-up failed and has been turned off",
                "The automatic top-up of account acc_0 failed.\n\nPack: pck_0\nPurchase: sal_0\n")


def disabled_endpoint(number=2):
    return mail(number, 9.0, OWNER, "S: notices to your endpoint whk_0 have stopped",
                "Notices to the webhook endpoint whk_0 of account acc_0 could not be delivered.")


class Mailed:
    """A history with an invitation that was repeated, one without an answer that was lost, a top-up that failed, and an
    endpoint that was disabled."""

    def __init__(self):
        self.building = made = Building(facts={"names": dict(NAMES), "mails_given_up": []},
                                        script={"settings": {"webhook.schedule": "1s"}})
        made.facts["mails"] = self.mails = [invitation(), invitation(at=10.0), failed_topup(), disabled_endpoint()]
        for name in ("a0", "a1"):
            made.add("account create", {"name": name, "email": f"{name}@example.org", "credits": 0}, client="setup",
                     answer={"account_id": NAMES[name]})
        made.add("webhook create", {"account": "a0", "url": "receiver 0", "name": "a0/webhook0"}, client="setup",
                 answer={"endpoint_id": "whk_0", "types": None, "secret": "x", "secret_version": 1, "created_at": ""})
        self.invite = made.add("user invite", {"account": "a0", "email": USER, "role": "owner"},
                               answer={"mailed": True})
        made.add("user invite", {"account": "a0", "email": "u1@example.org", "role": "owner"}, status=0)
        self.user = {"email": USER, "role": "owner"}
        self.users = self.closing("user list", "a0", [self.user])
        self.closing("user list", "a1", [])
        self.endpoint = {"endpoint_id": "whk_0", "enabled": False, "disabled_by": "failures"}
        self.closing("webhook list", "a0", [self.endpoint])
        self.closing("credits list", "a0", [])
        self.topup = {"notice_id": "ntc_0", "type": "recharge.auto_failed", "deliveries": [
            {"endpoint_id": "whk_0", "status": "failed", "attempts": 2}]}
        self.notices = [self.topup | {"notice_id": f"ntc_{number}", "type": "recharge.auto_failed" if number == 0 else
                                      "balance.low", "deliveries": copy.deepcopy(self.topup["deliveries"])}
                        for number in range(5)]
        self.closing("notice list", "a0", self.notices)
        for one in self.notices:
            body = ('{"type": "%s", "data": {"recharge_id": "sal_0", "pack_id": "pck_0"}}' % one["type"])
            made.add("notice show", {"notice": one["notice_id"]}, closing=True,
                     answer={"notice_id": one["notice_id"], "account_id": "acc_0", "body": body})
        self.waking = made.add("store wake", {"dry_run": True}, closing=True, answer={"due": {"mails": 0}})

    def closing(self, words, account, data):
        return self.building.add(words, {"account": account}, closing=True, answer={"data": data, "has_more": False})

    def found(self):
        return violated(self.building, *RULES_OF_MAILS)


def test_a_right_history_violates_nothing():
    assert not Mailed().found()


def test_an_unanswered_invitation_may_have_been_made():
    made = Mailed()
    made.users.answer["data"].append({"email": "u1@example.org", "role": "owner"})
    assert [text for text in made.found() if text.startswith("invitations_are_sent_once") and "u1@" in text]
    made.mails.append(invitation(7, to="u1@example.org"))
    assert not made.found()


WRONG = {
    "a mail waits": lambda made: made.waking.answer["due"].update(mails=1),
    "a mail was given up": lambda made: made.building.facts["mails_given_up"].append("mail_failed"),
    "an invitation is lost": lambda made: made.mails.__delitem__(slice(0, 2)),
    "an invitation was sent twice": lambda made: made.mails.append(invitation(7)),
    "a repetition differs": lambda made: made.mails[1].update(sha256="9" * 64),
    "a repetition has another recipient": lambda made: made.mails[1].update(to=[OWNER]),
    "a mail has two recipients": lambda made: made.mails[2]["to"].append(USER),
    "a mail has the recipient of another account": lambda made: made.mails[2].update(to=["a1@example.org"]),
    "an invitation has a stranger as recipient": lambda made: made.mails.append(invitation(7, to="x@example.org")),
    "an invitation is to another account": lambda made: made.mails.append(invitation(7, account="acc_1")),
    "an invitation is of an unknown account": lambda made: made.mails.append(invitation(7, account="acc_9")),
    "an invitation comes before its request": lambda made: made.mails[0].update(at=0.1),
    "an invitation was refused": lambda made: setattr(made.invite, "status", 400),
    "a mail is of no kind": lambda made: made.mails[2].update(subject="S: hello"),
    "a user is not listed": lambda made: made.users.answer["data"].clear(),
    "a user has another role": lambda made: made.user.update(role="reader"),
    "a user was not invited": lambda made: made.users.answer["data"].append(
        {"email": "x@example.org", "role": "owner"}),
    "a failed top-up is not mailed": lambda made: made.mails.pop(2),
    "a failed top-up is mailed twice": lambda made: made.mails.append(failed_topup(7)),
    "a failed top-up is mailed of another purchase": lambda made: made.mails[2].update(
        text=made.mails[2]["text"].replace("sal_0", "sal_1")),
    "a disabled endpoint is not mailed": lambda made: made.mails.pop(3),
    "a disabled endpoint is mailed of another account": lambda made: made.mails[3].update(
        text=made.mails[3]["text"].replace("acc_0", "acc_1"), to=["a1@example.org"]),
    "an endpoint is mailed too early": lambda made: made.notices[4]["deliveries"][0].update(status="delivered"),
    "an endpoint is mailed too often": lambda made: made.mails.append(disabled_endpoint(7)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_noticed(wrong):
    made = Mailed()
    WRONG[wrong](made)
    assert made.found()
