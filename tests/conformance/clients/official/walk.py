"""Walks through the interface with our own client, as it was installed from its package.

usage: walk.py BASE_URL CONTENT_KEY DIGEST_KEY FOLDER
"""

import pathlib
import sys

import constancia

url, content, digests, folder = sys.argv[1:]
assert "site-packages" in constancia.__file__, "that is not the installed one"
assert pathlib.Path(constancia.__file__).with_name("py.typed").exists()

receipts = pathlib.Path(folder, "receipts.ndjson")
receipts.parent.mkdir(parents=True, exist_ok=True)
with constancia.Client(url, content, receipts=receipts) as client:
    first = client.register("json", {"total": "49.90"})
    again = client.register("json", {"total": "49.90"})
    assert again.replayed and again.event_id == first.event_id
    file = client.register_file("file", __file__)
    assert file.hash == constancia.digest(__file__)
    assert [one.client_ref for one in client.events(page_size=1)] == ["json", "file"]
    done = client.wait(client.certify(seq_from=1, seq_to=2), timeout=300)
    files = client.save(done, folder)
    report = next(path for path in files if path.suffix == ".pdf")
    assert client.verify_file(report).verification.valid
    archive = next(path for path in files if path.suffix == ".zip" and "content" not in path.name)
    check = client.verify_archive(archive, receipts=receipts, program=False)
    assert check.verdict == "origin_not_established" and check.receipts.compared == 3
with constancia.Client(url, digests) as client:
    client.register_digest("digest", file.hash)
    try:
        client.register_digest("digest", first.hash)
        raise AssertionError("a conflict is refused")
    except constancia.Conflict as refused:
        assert refused.code == "client_ref_conflict"
