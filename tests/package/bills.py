"""Bills of materials against CycloneDX's schema: usage: bills.py BILL…

Prints what each is about."""
import json
import pathlib
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main():
    if len(sys.argv) < 2:
        sys.exit("there are no bills of materials")
    for name in sys.argv[1:]:
        text = pathlib.Path(name).read_text(encoding="utf-8")
        fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
        if fault:
            sys.exit(f"{name} is not as the schema says: {fault}")
        bill = json.loads(text)
        about = bill["metadata"]["component"]
        print(f"{about['purl']}: {len(bill['components'])} components")


main()
