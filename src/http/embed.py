"""Converts files to C arrays with their SHA-256. Arguments: output, then pairs of name and file."""
import hashlib
import sys

output, *pairs = sys.argv[1:]
with open(output, "w", encoding="utf-8") as out:
    out.write('#include "http/embedded.h"\n\n')
    for name, path in zip(pairs[::2], pairs[1::2]):
        data = open(path, "rb").read()
        out.write(f"static const char {name}[] = {{\n")
        for start in range(0, len(data), 20):
            row = ", ".join(str(b if b < 128 else b - 256) for b in data[start:start + 20])
            out.write(f"\t{row},\n")
        out.write("\t0};\n")
        out.write(f"const struct slice embedded_{name} = {{{name}, {len(data)}}};\n")
        digest = ", ".join(str(b) for b in hashlib.sha256(data).digest())
        out.write(f"const struct sha256 embedded_{name}_digest = {{{{{digest}}}}};\n")
