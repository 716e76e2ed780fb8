"""Converts the numbered SQL files of each engine's folder to C tables of (name, statements). Statements
are separate, because a server that distributes tables refuses some of them together with others."""
import glob
import json
import os
import re
import sys

# Comments, strings, names, bodies between $tags$: a semicolon in them does not end a statement.
WHOLE = re.compile(r"--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|(\$\w*\$).*?\1|;|[^-;'\"$]+|.", re.S)


def statements(text):
    if re.search(r"/\*|\bTRIGGER\b", text, re.I):
        raise SystemExit("a schema step must not contain /* */ comments or triggers: it cannot be split into statements")
    found = [""]
    for match in WHOLE.finditer(text):
        found[-1] += match[0]
        if match[0] == ";":
            found.append("")
    # Comments and white space alone are not a statement.
    return [one.strip() for one in found if re.sub(r"--[^\n]*", "", one).strip()]


def literal(statement):
    return "\n\t  ".join(json.dumps(line, ensure_ascii=False)
                        for line in statement.splitlines(keepends=True))


def main(output, depfile, folder):
    engines = {engine: sorted(glob.glob(f"{folder}/{engine}/[0-9][0-9][0-9]-*.sql")) for engine in ("sqlite", "postgres")}
    with open(depfile, "w", encoding="utf-8") as out:
        read = [part for engine, paths in engines.items() for part in (f"{folder}/{engine}", *paths)]
        out.write(" ".join([f"{output}:", *(path.replace(" ", "\\ ") for path in read)]) + "\n")
    with open(output, "w", encoding="utf-8") as out:
        out.write('#include <stddef.h>\n\n#include "store/schema/store_schemas.h"\n')
        for engine, paths in engines.items():
            out.write(f"\nstatic const struct schema_step {engine}_steps[] = {{\n")
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    texts = [*map(literal, statements(file.read())), "NULL"]
                out.write(f'\t{{"{os.path.basename(path)[:-4]}",\n'
                          f"\t (const char *const[]){{\n\t  " + ",\n\t  ".join(texts) + "}},\n")
            out.write("};\n")
        out.write("\nstatic const struct schema_table tables[] = {\n"
                  "#define BY_ACCOUNT(table) {#table, true},\n#define ON_NONE(table) {#table, false},\n"
                  '#include "store/schema/distribution.def"\n\t{NULL, false},\n};\n')
        engines = ", ".join(f".{engine} = {{{engine}_steps, {len(paths)}}}"
                           for engine, paths in engines.items())
        out.write(f"\nconst struct db_schemas store_schemas = {{{engines}, .tables = tables, .arrivals = &event_arrivals, .fill = store_fill}};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
