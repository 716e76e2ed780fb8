"""Arrows only point downwards: what each folder of src may include from the others, and which of its
headers the others may include. And each test of tests/unit lies where what it tests does.

usage: layers.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

MAY_INCLUDE = {
    "base": set(),
    "net": {"base"},
    "db": {"base"},
    "ledger": {"base"},
    "tlog": {"base"},
    "store": {"base", "db", "ledger", "tlog"},
    "content": {"base", "net"},
    "seal": {"base", "net", "tlog"},
    "witness": {"base", "net", "tlog", "seal"},
    "payment": {"base", "net"},
    "archive": {"base", "ledger", "seal", "tlog"},
    "report": {"base", "ledger", "seal", "archive"},
    "tools": {"base", "net", "archive"},
    "monitor": {"base", "net", "tlog", "archive"},
    "trustlist": {"base"},
    "verify": {"base", "ledger", "tlog", "seal", "archive", "report", "trustlist"},
    "service": {"base", "net", "db", "ledger", "tlog", "store", "content", "seal", "payment"},
    "evidence": {"base", "net", "tlog", "store", "seal", "archive", "verify", "service"},
    "issue": {"base", "tlog", "store", "seal", "archive", "report", "verify", "service", "evidence"},
    "admin": {"base", "net", "db", "ledger", "tlog", "store", "content", "seal", "service", "evidence", "issue"},
    "jobs": {"base", "net", "store", "seal", "service", "evidence", "issue", "admin"},
    "console": {"base", "net", "ledger", "store", "service", "evidence", "issue", "admin"},
    "http": {"base", "net", "tlog", "store", "payment", "service", "evidence", "issue", "admin", "console"},
    "cli": {"base", "net", "ledger", "tlog", "store", "content", "seal", "payment", "archive", "report", "tools",
            "monitor", "trustlist", "verify", "witness", "service", "evidence", "issue", "admin", "jobs", "http"},
}
# A folder's other headers are its own.
PUBLIC = {
    "base": {"arena.h", "base64.h", "budget.h", "buf.h", "child.h", "clock.h", "confine.h", "csv.h", "digest.h",
             "durable.h", "epoch.h", "error.h", "fair_queue.h", "file.h", "for_each.h", "ini.h", "json.h",
             "json_file.h", "json_reader.h", "json_scan.h", "log.h", "log_throttle.h", "members.h", "must_check.h",
             "notify.h", "pem.h", "percent.h", "rate.h", "schedule.h", "setting.h", "spool.h", "thread.h",
             "tuned.h", "url_mask.h", "utf8.h", "validation_object.h"},
    "net": {"address.h", "http.h", "http_multi.h", "listen.h", "mail.h", "origin.h"},
    "db": {"append_run.h", "db.h", "schema.h"},
    "ledger": {"bounds.h", "ledger.h", "purchase_rules.h", "receipt_statement.h", "record.h", "topup_rules.h"},
    "tlog": {"batch_tree.h", "checkpoint.h", "entry.h", "entry_proof.h", "frontier.h", "merkle.h", "note.h",
             "policy.h", "tiles.h", "witness_request.h"},
    "store": {"store.h", "accounts/accounts.h", "audit/audit_log.h", "certifications/certifications.h",
              "certifications/idempotency.h", "certifications/link_secrets.h", "check/inspect.h",
              "events/digest_index.h", "events/ref_index.h", "events/segments.h", "events/validation_records.h", "evidence/evidence.h",
              "evidence/public_keys.h", "evidence/signer_records.h", "evidence/timestamp_root_records.h", "money/packs.h", "money/purchases.h",
              "money/topup.h", "nodes/leases.h", "nodes/read_only_copy.h", "nodes/servers.h", "nodes/store_state.h",
              "nodes/sweeps.h", "nodes/unverified_clock.h", "notices/deliveries.h", "notices/mails.h",
              "notices/notices.h", "notices/replay.h", "notices/test_notices.h", "notices/webhooks.h", "people/console_users.h",
              "people/ownership.h", "schema/store_schemas.h", "tlog/log_checkpoints.h", "tlog/log_records.h",
              "usage/overview.h", "usage/request_records.h", "usage/totals.h", "usage/usage.h"},
    "content": {"composite.h", "content.h", "content_settings.def"},
    "seal": {"authority.h", "authority_settings.def", "authority_settings.h", "clock_state.h", "cms.h",
             "ed25519.h", "evidence_record.h", "evidence_tree.h", "level.h", "receipt_signer.h", "revocation_client.h",
             "revocation_token.h",
             "round_tree.h", "segment.h", "signer.h", "signer_log.h", "signing_request.h", "timestamp.h", "tree.h", "trust.h",
             "validation_set.h"},
    "witness": {"witness.h", "witness_server.h"},
    "payment": {"payment.h", "payment_settings.def"},
    "archive": {"archive.h", "archive_lines.h", "bundle.h", "logged_event.h", "receipt.h", "signer_list.h", "xml_text.h",
                "zip_shape.h"},
    "report": {"pdf_check.h", "pdf_sign.h", "renderer.h", "report.h"},
    "tools": {"api.h", "fault_proxy.h", "json_items.h", "notice_feed.h", "receipt_file.h", "remote_certification.h", "remote_registration.h"},
    "monitor": {"log_audit.h", "log_export.h", "log_proof.h", "log_watch.h"},
    "trustlist": {"trusted_list.h"},
    "verify": {"extract.h", "verifier.h", "verify.h"},
    "service": {"authority_failures.h", "clock_start.h", "event_body.h", "history.h", "interface.h", "keys.h",
                "list.h", "mailing.h", "notice_sample.h", "metrics.def", "purchase.h", "quarantine.h", "read_only.h", "registrar.h",
                "registration_clock.h", "request_sampler.h", "service.h", "settings.def", "settings.h", "sweep.h", "user_auth.h", "watch.h",
                "webhook.h"},
    "evidence": {"audit_proof.h", "check_segment.h", "check_stamp.h", "event_proof.h", "evidence_chain.h",
                 "log_publisher.h", "renewal.h", "seal_round.h", "signer_listing.h", "signers.h", "stored_segment.h",
                 "timestamp_roots.h", "token_renewals.h"},
    "issue": {"certify.h", "check_file.h", "issue_attempt.h", "links.h", "verification.h", "verification_code.h"},
    "admin": {"admin.h", "admin_socket.h", "backup_series.h", "permission_check.h", "readiness.h", "reload_audit.h",
              "webauthn_party.h"},
    "jobs": {"jobs.h"},
    "console": {"console.h"},
    "http": {"request_log.h", "server.h"},
    "cli": set(),
}


def headers_of_others(root):
    """(where, folder, folder of the header, header) of each include."""
    for path in sorted(root.glob("src/**/*")):
        if path.suffix not in (".c", ".h", ".cc"):
            continue
        folder = path.relative_to(root / "src").parts[0]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*["<](?:\.\./)*([a-z]+)/([a-z0-9_./]+)[">]', line)
            if match and match[1] in MAY_INCLUDE and match[1] != folder:
                yield f"{path}:{number}", folder, match[1], match[2]


def faults(root):
    used = {folder: set() for folder in MAY_INCLUDE}
    for where, folder, other, header in headers_of_others(root):
        used.setdefault(other, set()).add(header)
        if other not in MAY_INCLUDE[folder]:
            yield f"{where}: {folder} may not include {other}/{header}"
        elif header not in PUBLIC[other]:
            yield f"{where}: {other}/{header} is private to its folder"
    for folder, public in PUBLIC.items():
        for header in sorted(public - used[folder]):
            yield f"src/{folder}/{header} is public, but no other folder includes it"


def beneath(folder, arrows):
    """All that the arrows lead to from there."""
    found = set()
    waiting = [folder]
    while waiting:
        for other in arrows[waiting.pop()] - found:
            found.add(other)
            waiting.append(other)
    return found


def wrong_arrows(root):
    """The picture has an arrow for each include that no longer way of arrows stands for already."""
    includes = {folder: set() for folder in MAY_INCLUDE}
    for _, folder, other, _ in headers_of_others(root):
        includes[folder].add(other)
    needed = {(folder, other) for folder, others in includes.items() for other in others
              if not any(other in beneath(step, includes) for step in others - {other})}
    page = root / "docs/develop/architecture.md"
    picture = re.search(r"```mermaid\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    drawn = set()
    for line in picture[1].splitlines()[1:] if picture else ():
        arrow = re.fullmatch(r"\s*(\w+) --> (\w+(?: & \w+)*)", line)
        if arrow:
            drawn |= {(arrow[1], other) for other in arrow[2].split(" & ")}
        else:
            yield f"{page}: '{line.strip()}' in the picture is not understood"
    for folder, other in sorted(needed - drawn):
        yield f"{page}: the picture lacks {folder} --> {other}"
    for folder, other in sorted(drawn - needed):
        yield f"{page}: the picture has {folder} --> {other}, which is not so, or follows from others"


def wrong_rows(root):
    """The page's table says of each folder what MAY_INCLUDE says, in an order that has what it may
    use above it."""
    page = root / "docs/develop/architecture.md"
    above = []
    text = page.read_text(encoding="utf-8")
    for folder, words in re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", text, re.M):
        listed, _, but = words.partition("all above")
        said = {name for name in listed.split(", ") if name and name != "nothing"}
        if words.startswith("all above"):
            said = set(above) - set(but.removeprefix(" but ").split(", "))
        if said != MAY_INCLUDE.get(folder) or not said <= set(above):
            yield f"{page}: the table says that {folder} may use: {words}"
        above.append(folder)
    for folder in sorted(MAY_INCLUDE.keys() - set(above)):
        yield f"{page}: the table lacks {folder}"


def folders_of_src(path, fixtures):
    """The folders that a test includes from, directly or by a header of tests/unit; `fixtures` maps the names of
    these to their paths."""
    found = set()
    for folder, header in re.findall(r'#include "(?:([a-z]+)/)?([a-z0-9_./]+)"',
                                     path.read_text(encoding="utf-8")):
        if folder:
            found.add(folder)
        elif header in fixtures:
            found |= folders_of_src(fixtures[header], {})
    return found


# A test may use folders above the one that it tests to set things up: the database below the store, and the operations
# and documents of a whole service.
SETS_UP = {"service": {"db", "issue", "admin"}, "evidence": {"db", "issue", "admin"}}


def misplaced_tests(root):
    unit = root / "tests" / "unit"
    fixtures = {path.name: path for path in unit.rglob("*.h")}
    for path in sorted(unit.rglob("*")):
        place = path.relative_to(unit)
        if path.is_dir() and any(path.rglob("*.c")) and not (root / "src" / place).is_dir():
            yield f"{path}: there is no src/{place}"
        if path.suffix != ".c" or "\nint main(" not in path.read_text(encoding="utf-8"):
            continue
        folder, included = place.parts[0], folders_of_src(path, fixtures)
        above = folders_of_src(path, {}) - MAY_INCLUDE[folder] - {folder} - SETS_UP.get(folder, {"db"})
        if above:
            yield f"{path}: {', '.join(sorted(above))} is above src/{folder}"
        if folder not in included:
            for other in sorted(included):
                if included - {other} <= MAY_INCLUDE[other]:
                    yield f"{path}: is about src/{other}, as it includes nothing above"


def main():
    root = pathlib.Path(sys.argv[1])
    folders = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    found = [f"src/{name} has no list of what it may include" for name in folders ^ MAY_INCLUDE.keys()]
    found += faults(root)
    found += wrong_arrows(root)
    found += wrong_rows(root)
    found += misplaced_tests(root)
    print("\n".join(found))
    print(f"{len(folders) - bool(found)} passed, {len(found)} failed")
    return 1 if found else 0


sys.exit(main())
