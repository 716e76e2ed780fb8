"""Arrows only point downwards: what each folder of src may include from the others.

usage: layers.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

MAY_INCLUDE = {
    "base": set(),
    "net": {"base"},
    "ledger": {"base"},
    "db": {"base"},
    "store": {"base", "db", "ledger"},
    "content": {"base", "net"},
    "seal": {"base", "net"},
    "payment": {"base", "net"},
    "proof": {"base", "ledger", "content", "seal"},
    "service": {"base", "db", "payment", "net", "ledger", "store", "content", "seal", "proof"},
    "jobs": {"base", "payment", "net", "ledger", "store", "content", "seal", "proof", "service"},
    "http": {"base", "payment", "net", "ledger", "store", "content", "service"},
    "cli": {"base", "db", "payment", "net", "ledger", "store", "content", "seal", "proof", "service", "jobs", "http"},
}
# The engine's own headers stay inside the store, but for those who wait on a commit of their own.
PRIVATE = {"store/internal.h", "store/read_event.h", "store/register_batch.h", "store/fan_out.h", "store/files.h", "net/transfer.h", "store/client_refs.h", "store/schema.h", "store/money.h", "ledger/notice.h",
           "payment/provider.h", "payment/stripe.h"}


def faults(root):
    for path in sorted(root.glob("src/*/*.[ch]")):
        folder = path.parent.name
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = re.match(r'\s*#include "(([a-z]+)/[a-z0-9_./]+)"', line)
            if not match or match[2] == folder:
                continue
            if match[2] not in MAY_INCLUDE[folder]:
                yield f"{path}:{number}: {folder} may not include {match[1]}"
            elif match[1] in PRIVATE:
                yield f"{path}:{number}: {match[1]} is private to its folder"


def main():
    root = pathlib.Path(sys.argv[1])
    folders = {path.name for path in (root / "src").iterdir() if path.is_dir()}
    found = list(faults(root))
    found += [f"src/{name} has no list of what it may include" for name in folders - MAY_INCLUDE.keys()]
    print("\n".join(found))
    print(f"{len(folders) - bool(found)} passed, {len(found)} failed")
    return 1 if found else 0


sys.exit(main())
