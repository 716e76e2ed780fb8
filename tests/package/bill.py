"""A bill of materials against CycloneDX's schema, and against what the dynamic linker really loads.

usage: bill.py PACKAGE BILL PROGRAM...
"""
import json
import re
import subprocess
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


# What no program names: loaded at its first use, compiled in or read; and what another package alone consists of.
HAS = {"constancia": ["libssl3", "libsqlite3-0", "libcurl4", "libpq5", "fonts-noto-core", "ca-certificates"],
       "constancia-tools": ["libssl3", "libcurl4", "ca-certificates"]}
LACKS = {"constancia": [], "constancia-tools": ["libsqlite3-0", "libpq5", "fonts-noto-core"]}


def main():
    package = sys.argv[1]
    text = open(sys.argv[2], encoding="utf-8").read()
    fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    if fault:
        sys.exit(f"not as the schema says: {fault}")
    bill = json.loads(text)
    named = {each["name"]: each for each in bill["components"]}
    # In another way than the one it was made: the names that the programs themselves ask for.
    for program in sys.argv[3:]:
        dynamic = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True)
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic.stdout):
            cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
            path = re.search(rf"^\s+{re.escape(library)} .*=> (\S+)$", cache, re.M)[1]
            owner = ""
            for name in (path, "/usr" + path, path.removeprefix("/usr")):
                done = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
                owner = owner or done.stdout.split(":")[0]
            if owner not in named:
                sys.exit(f"{library}, of {owner or path}, is missing")
    for name, each in named.items():
        version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
        if version.stdout and version.stdout != each["version"]:
            sys.exit(f"{name} is {version.stdout}, not {each['version']}")
    about = bill["metadata"]["component"]
    if about["name"] != package or not about["purl"].startswith(f"pkg:deb/constancia/{package}@"):
        sys.exit(f"it is about {about['purl']}, not about {package}")
    known = {name.removesuffix("t64") for name in named}  # as Debian 13 calls some libraries
    for name in HAS[package]:
        if name not in known:
            sys.exit(f"{name} is missing")
    for name in LACKS[package]:
        if name in known:
            sys.exit(f"{name} is no part of it")
    without = [name for name, each in named.items() if "licenses" not in each]
    print(f"{package}: {len(named)} packages, {len(named) - len(without)} with licences, as the schema says")


main()
