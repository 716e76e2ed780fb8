"""Declares orders and a contract, has them certified, and verifies the evidence with the receipts.

usage: python3 orders.py ORDERS.ndjson CONTRACT FOLDER ROOTS.pem
CONSTANCIA_URL and CONSTANCIA_KEY: the interface and a live key. Run it again after any failure: nothing is done twice."""
import json
import os
import sys

from constancia import Client, Declaration

orders, contract, folder, roots = sys.argv[1:]
receipts = os.path.join(folder, "receipts.ndjson")
with Client(os.environ["CONSTANCIA_URL"], os.environ["CONSTANCIA_KEY"], receipts=receipts) as client:
    with open(orders, encoding="utf-8") as lines:
        events = [client.register_file(f"contract of {os.path.basename(orders)}", contract)]
        for outcome in client.register_many(Declaration(f"order {one['number']}", one) for one in map(json.loads, lines)):
            events.append(outcome.event or sys.exit(f"{outcome.client_ref}: {outcome.error}"))
    first, last = min(one.sequence for one in events), max(one.sequence for one in events)
    asked = client.certify(seq_from=first, seq_to=last, idempotency_key=f"orders-{first}-{last}")
    files = client.save(client.wait(asked), folder)
    archive, *parts = [path for path in files if path.suffix == ".zip"]
    check = client.verify_archive(archive, parts=parts, receipts=receipts, trust=roots)
print(check.verdict, check.receipts.compared, "receipts", *check.findings)
sys.exit(check.verdict != "valid")
