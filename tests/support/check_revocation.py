"""Determines whether certificates were revoked, from CRLs and OCSP responses: the second verifier's part for
section 4.8 of docs/verify/evidence-format.md, with the openssl command only."""

import datetime
import functools
import re
import subprocess
import tempfile

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.S)
EXCLUDES_COMPROMISE = {"unspecified", "affiliationchanged", "superseded", "cessationofoperation"}
PATH_MAX = 8
NEVER = datetime.datetime.max


def openssl(*words, **files):
    """Runs openssl; {NAME} in the words stands for a file with that content. Returns success and output."""
    with tempfile.TemporaryDirectory() as directory:
        for name, content in files.items():
            with open(f"{directory}/{name}", "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        done = subprocess.run(["openssl", *(word.format(**{name: f"{directory}/{name}"
                                                          for name in files}) for word in words)],
                              capture_output=True, check=False)
    return done.returncode == 0, (done.stdout + done.stderr).decode("utf-8", "replace")


def time_of(text):
    return datetime.datetime.strptime(" ".join(text.replace(" GMT", "").split()),
                                      "%b %d %H:%M:%S %Y")


@functools.lru_cache(maxsize=None)
def facts_of(certificate):
    """Returns subject, issuer, serial number, end and text of a certificate (PEM)."""
    _, text = openssl("x509", "-in", "{it}", "-noout", "-text", "-subject", "-issuer", "-serial",
                      "-enddate", it=certificate)
    found = {name: re.search(rf"^{name}=(.*)$", text, re.M)[1]
             for name in ("subject", "issuer", "serial", "notAfter")}
    return {**found, "notAfter": time_of(found["notAfter"]), "text": text}


@functools.lru_cache(maxsize=None)
def issued(issuer, certificate):
    if facts_of(issuer)["subject"] != facts_of(certificate)["issuer"]:
        return False
    return openssl("verify", "-partial_chain", "-no_check_time", "-CAfile", "{issuer}", "{it}",
                   issuer=issuer, it=certificate)[0]


def path_of(token, others):
    """Returns the authority's certificate and its issuers as PEM, from a token (DER) and `others`."""
    with tempfile.NamedTemporaryFile() as signer, tempfile.NamedTemporaryFile() as inside:
        openssl("cms", "-verify", "-noverify", "-inform", "DER", "-in", "{it}", "-signer",
                signer.name, "-certsout", inside.name, "-out", "/dev/null", it=token)
        path = PEM.findall(signer.read().decode())
        known = PEM.findall(others) + PEM.findall(inside.read().decode())
    while len(path) < PATH_MAX and not issued(path[-1], path[-1]):
        above = [each for each in known if issued(each, path[-1])]
        if not above:
            break
        path.append(above[0])
    return path


# ---- statements of one object about one certificate: (issued, until, revoked or None, reason), or None ----

def points_of(text):
    return set(re.findall(r"URI:(\S+)", "".join(re.findall(
        r"X509v3 (?:CRL|Issuing) Distribution Point.*?(?=\n {8,16}X509v3|\n    Signature|\Z)", text, re.S))))


@functools.lru_cache(maxsize=None)
def by_list(der, certificate, issuer):
    good, text = openssl("crl", "-inform", "DER", "-in", "{it}", "-CAfile", "{issuer}", "-noout",
                         "-text", it=der, issuer=issuer)
    if not good or "verify OK" not in text or "Delta CRL" in text or "Indirect CRL" in text \
            or "Only Some Reasons" in text:
        return None
    scope = points_of(text.partition("Issuing Distribution Point")[2] and text)
    if scope and not scope & points_of(facts_of(certificate)["text"]):
        return None
    updates = [time_of(re.search(rf"{name} Update: (.*)", text)[1]) for name in ("Last", "Next")]
    for entry in re.split(r"\n    Serial Number: ", text.partition("Revoked Certificates:")[2])[1:]:
        if int(entry.split("\n")[0], 16) != int(facts_of(certificate)["serial"], 16):
            continue
        times = [time_of(each) for each in re.findall(
            r"(?:Revocation Date:|Invalidity Date: *\n) *(\w{3} .*GMT)", entry)]
        reason = re.search(r"CRL Reason Code: *\n *(.*)", entry)
        return (*updates, min(times), reason and reason[1].replace(" ", "").lower())
    return (*updates, None, None)


@functools.lru_cache(maxsize=None)
def by_answer(der, certificate, issuer):
    """Also returns the responder if a CRL must show that it was not revoked."""
    for digest in ("-sha1", "-sha256"):
        _, text = openssl("ocsp", "-respin", "{it}", digest, "-issuer", "{issuer}", "-cert", "{of}",
                          "-CAfile", "{issuer}", "-partial_chain", "-no_check_time", "-resp_text",
                          "-validity_period", "1000000000", it=der, issuer=issuer, of=certificate)
        said = re.search(r"^\S*of: (good|revoked)\n((?:\t.*\n?)*)", text, re.M)
        if said and "Response verify OK" in text:
            break
    else:
        return None
    lines = {name: value for name, value in re.findall(r"\t([\w ]+): (.*)", said[2])}
    responder = next((each for each in PEM.findall(text)
                      if "OCSP Signing" in facts_of(each)["text"]), None)
    if responder and "OCSP No Check" in facts_of(responder)["text"]:
        responder = None
    revoked = time_of(lines["Revocation Time"]) if said[1] == "revoked" else None
    return (time_of(lines["This Update"]),
            time_of(lines["Next Update"]) if "Next Update" in lines else None, revoked,
            lines.get("Reason", "").replace(" ", "").lower() or None, responder)


# ---- judging ----

def state_by(said, certificate, moment):
    """Returns the state and the time of a revocation."""
    begun, until, revoked, reason = said[:4]
    if revoked and (revoked <= moment or reason not in EXCLUDES_COMPROMISE):
        return ("revoked", revoked)
    in_time = begun >= moment or (until and until >= moment)
    return ("good" if in_time and begun <= facts_of(certificate)["notAfter"] else "open", NEVER)


def state_of(certificate, issuer, objects, moment, crls_only=False):
    """Returns the state of a certificate from the objects: (kind, DER) each."""
    found = set()
    for kind, der in objects:
        said = None
        if kind == "crl":
            said = by_list(der, certificate, issuer)
        elif not crls_only:
            said = by_answer(der, certificate, issuer)
            if said and said[4] and state_of(said[4], issuer, objects, moment, True)[0] != "good":
                said = None
        if said:
            found.add(state_by(said, certificate, moment))
    return next((each for word in ("revoked", "good") for each in sorted(found) if each[0] == word),
                ("open", NEVER))


def states_of(path, objects, moment):
    """Returns the state of each certificate of a path below the root."""
    ends = issued(path[-1], path[-1])
    return [state_of(certificate, path[at + 1], objects, moment) if at + 1 < len(path)
            else ("open", NEVER)
            for at, certificate in enumerate(path) if not (ends and at + 1 == len(path))]


def judge(token, others, objects, moment, renewed):
    """Returns "revoked", "good" or "open" for a token that is covered since `renewed` (None: not covered), and
    whether all objects are needed."""
    path = path_of(token, others)
    found = states_of(path, objects, moment)

    def words(states_):
        return [word for word, _ in states_]

    needed = all(words(states_of(path, objects[:at] + objects[at + 1:], moment)) != words(found)
                 for at in range(len(objects)))
    revoked = [when for word, when in found if word == "revoked"]
    if revoked:
        return ("open" if renewed and min(revoked) > renewed else "revoked"), needed
    return ("open" if "open" in words(found) else "good"), needed
