"""Rules about e-mails: each has its cause and each cause its mail, each goes to its recipient alone, and repeats of one
are identical."""

import re
from collections import Counter

from account_model import accounts, final_list
from history import rule
from rules_notices import ATTEMPTS, endpoints, failures, notices_of, readable

KINDS = (("invitation", ("you have been invited", "le han invitado")),
         ("topup_failed", ("automatic top-up failed", "la recarga automática ha fallado")),
         ("endpoint_disabled", ("have stopped", "se han detenido")))
MENTIONS = {"account": re.compile(r"\bacc_\w+"), "endpoint": re.compile(r"\bwhk_\w+"),
            "pack": re.compile(r"(?m)^(?:Pack|Paquete): (\S+)"), "sale": re.compile(r"(?m)^(?:Purchase|Compra): (\S+)")}


def kind_of(mail):
    return next((kind for kind, phrases in KINDS if any(phrase in mail["subject"] for phrase in phrases)), None)


def mentioned(mail, what):
    """Returns what the text of a mail names, None if it names none."""
    found = MENTIONS[what].search(mail["text"])
    return found and found[found.re.groups]


def mails(history, *kinds):
    """Returns the first delivery of each mail of these kinds."""
    found = {}
    for mail in history.facts.get("mails", ()):
        if not kinds or kind_of(mail) in kinds:
            found.setdefault(mail["id"], mail)
    return list(found.values())


def waiting(history):
    """Returns how many mails waited at last; None: unknown."""
    read = [one for one in history.of("store wake", closing=True) if one.good]
    return read[-1].answer["due"]["mails"] if read else None


def all_sent(history):
    """Returns whether every mail certainly has been sent or given up."""
    return "mails" in history.facts and waiting(history) == 0 and not history.facts.get("mails_given_up")


def forgets(history):
    """Returns whether the cause of a mail may have been lost after the mail was sent."""
    return bool(history.facts.get("lost") or history.facts.get("split"))


@rule("In the end no mail waits, and none was given up.")
def no_mail_waits(history):
    if waiting(history) and not history.facts.get("clock_moved"):  # then the lease of one may last much longer
        yield f"{waiting(history)} mails wait"
    yield from history.facts.get("mails_given_up", ())


@rule("A mail that is sent again is identical: the same bytes to the same recipient.")
def repeated_mails_are_identical(history):
    first = {}
    for mail in history.facts.get("mails", ()):
        before = first.setdefault(mail["id"], mail)
        if (before["to"], before["sha256"]) != (mail["to"], mail["sha256"]):
            yield f"{before} and {mail}"


@rule("Each mail is of a known kind, concerns one account, and goes to one recipient: the address of this account, or "
      "that of the user who was invited.")
def mails_reach_their_recipient(history):
    addresses = {account.id: account.address for account in accounts(history)}
    invited = {one.arguments["email"] for one in history.of("user invite")}
    for mail in mails(history):
        account = mentioned(mail, "account")
        if not kind_of(mail) or len(mail["to"]) != 1 or account not in addresses:
            yield str(mail)
        elif kind_of(mail) == "invitation":
            if not set(mail["to"]) <= invited:
                yield f"{mail}, invited were {sorted(invited)}"
        elif mail["to"] != [addresses[account]]:
            yield f"{mail}, but the address of the account is {addresses[account]}"


# ---- causes ----


def invitations(history):
    """Returns {(account, address): the requests to invite it that may have had an effect}."""
    found = {}
    for one in history.of("user invite"):
        if not one.refused:
            found.setdefault((one.arguments["account"], one.arguments["email"]), []).append(one)
    return found


@rule("An acknowledged invitation makes a user of the account, once; a user of an account was invited to it.")
def invited_users_are_listed(history):
    asked = invitations(history)
    for (name, email), many in asked.items():
        good = [one for one in many if one.good]
        if len(good) > 1:
            yield f"{good[0]} and {good[1]}"
    for account in accounts(history):
        if not account.was_read("user list"):
            continue
        listed = {one["email"]: one for one in final_list(history, "user list", account.name)}
        for (name, email), many in asked.items():
            if name == account.name and any(one.good for one in many) and email not in listed:
                yield f"{many[0]} is not listed"
        for email, user in listed.items():
            roles = {one.arguments["role"] for one in asked.get((account.name, email), ())}
            if user["role"] not in roles:
                yield f"{account.name}: {user}, invited as {sorted(roles)}"


@rule("Each user of an account was sent one invitation to it, after that was requested, and no other was sent.")
def invitations_are_sent_once(history):
    names, asked = {account.id: account.name for account in accounts(history)}, invitations(history)
    sent = {}
    for mail in mails(history, "invitation"):
        sent.setdefault((names.get(mentioned(mail, "account")), *mail["to"]), []).append(mail)
    for place, many in sent.items():
        first = min((one.invoked for one in asked.get(place, ())), default=None)
        if first is None or min(mail["at"] for mail in many) < first:
            yield f"{place}: {many[0]}, requested at {first}"
        if len(many) > 1 and not forgets(history):
            yield f"{place}: {len(many)} mails: {many}"
    for account in accounts(history):
        if not account.was_read("user list") or not all_sent(history):
            continue
        listed = {(account.name, one["email"]) for one in final_list(history, "user list", account.name)}
        for place in listed - sent.keys():
            yield f"{place}: no invitation was sent; {[str(one) for one in asked.get(place, ())]}"
        for place in {place for place in sent if place[0] == account.name} - listed:
            if not forgets(history):
                yield f"{place} is no user: {sent[place][0]}"


@rule("Each failure of a top-up has one mail, of the same purchase and pack as its notice, and no mail is without one.")
def failed_topups_are_mailed(history):
    for account in readable(history):
        noticed = Counter((one["data"]["recharge_id"], one["data"]["pack_id"])
                          for one in notices_of(history, account, "recharge.auto_failed"))
        mailed = Counter((mentioned(mail, "sale"), mentioned(mail, "pack")) for mail in mails(history, "topup_failed")
                         if mentioned(mail, "account") == account.id)
        if all_sent(history) and account.address and noticed - mailed:
            yield f"{account.name}: {dict(noticed - mailed)} were not mailed"
        if mailed - noticed and not forgets(history):
            yield f"{account.name}: mails of {dict(mailed - noticed)} without a failure"


@rule("An endpoint is mailed as disabled if it is listed as disabled by failures, and only after notices have failed "
      "at it.")
def disabled_endpoints_are_mailed(history):
    attempts = len(history.script["settings"].get("webhook.schedule", "").split(",")) + 1
    found = {one.id: one for one in endpoints(history)}
    mailed = {}
    for mail in mails(history, "endpoint_disabled"):
        mailed.setdefault(mentioned(mail, "endpoint"), []).append(mail)
    for account in readable(history):
        for listed in account.list("webhook list"):
            name, endpoint = listed["endpoint_id"], found.get(listed["endpoint_id"])
            many = mailed.get(name, [])
            if listed["disabled_by"] == "failures" and account.address and not many and all_sent(history):
                yield f"{account.name}: {listed} was not mailed"
            if any(mentioned(mail, "account") != account.id for mail in many):
                yield f"{account.name}: {listed}, mailed {many}"
            replayed = not endpoint or any(one.kind == "webhook replay" and not one.refused
                                           for one in endpoint.commands)
            if many and not replayed and not forgets(history) and \
                    failures(account, endpoint, attempts) < ATTEMPTS * len(many):
                yield (f"{account.name}: {listed}, mailed {len(many)} times, "
                       f"{failures(account, endpoint, attempts)} notices failed")
