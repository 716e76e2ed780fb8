"""Writes README.txt and LEEME.txt of archives as C arrays. Arguments: output, README.txt, LEEME.txt, check.sh. The line
@CHECK@ is replaced by the contents of check.sh."""
import sys

output, readme, leeme, check = sys.argv[1:]
commands = open(check, encoding="utf-8").read()
with open(output, "w", encoding="utf-8") as out:
    out.write('#include "archive/archive_lines.h"\n')
    for name, path in (("archive_readme", readme), ("archive_leeme", leeme)):
        data = open(path, encoding="utf-8").read().replace("@CHECK@\n", commands).encode() + b"\0"
        out.write(f"const char {name}[] = {{\n")
        for start in range(0, len(data), 20):
            out.write("\t" + ", ".join(str(b if b < 128 else b - 256) for b in data[start:start + 20]) + ",\n")
        out.write("};\n")
