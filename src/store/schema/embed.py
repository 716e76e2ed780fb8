"""Converts the numbered SQL files of each engine's folder to C tables of (name, statements, kind). Statements
are separate, because a server that distributes tables refuses some of them together with others. A file begins
with its kind (db/schema.h): `-- Kind: stop` or `-- Kind: rolling`. A rolling step has only statements that
take locks for a moment and that programs which do not know the step ignore."""
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


def kind_of(text, path):
    match = re.match(r"-- Kind: (stop|rolling)\n", text)
    if not match:
        raise SystemExit(f"{path}: the first line must be '-- Kind: stop' or '-- Kind: rolling'")
    return match[1]


NAME, CONSTANT = r"\w+", r"(?:-?\d+|'[^']*'|NULL)"
COLUMN = re.compile(rf"ALTER TABLE {NAME} ADD COLUMN {NAME} (?:BIGINT|BLOB|BYTEA|TEXT(?: COLLATE \"C\")?)"
                    rf"(?: (?:NOT NULL )?DEFAULT {CONSTANT})?")
TABLE = re.compile(rf"CREATE TABLE ({NAME}) \((.*)\)(?: WITHOUT ROWID)?", re.S)
INDEX = re.compile(rf"CREATE (?:UNIQUE )?INDEX {NAME} ON ({NAME}) ?\(.*\).*", re.S)


def check_rolling(found, path):
    """Refuses what an older program may notice, and what may lock an existing table for long."""
    created = set()
    for statement in found:
        bare = " ".join(re.sub(r"--[^\n]*", "", statement).rstrip(";").split())
        table, index = TABLE.fullmatch(bare), INDEX.fullmatch(bare)
        if table and not re.search(r"\bREFERENCES\b", table[2], re.I):
            created.add(table[1])
        elif not (COLUMN.fullmatch(bare) or bare == "SELECT 1" or index and index[1] in created):
            raise SystemExit(f"{path}: a rolling step must not have this statement: {bare}")


def read_step(path):
    """The statements and the kind of a file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found, kind = statements(text), kind_of(text, path)
    if kind == "rolling":
        check_rolling(found, path)
    return found, kind


def literal(statement):
    return "\n\t  ".join(json.dumps(line, ensure_ascii=False)
                        for line in statement.splitlines(keepends=True))


def main(output, depfile, *folders):
    engines = {engine: sorted((path for folder in folders for path in
                               glob.glob(f"{folder}/{engine}/[0-9][0-9][0-9]-*.sql")), key=os.path.basename)
               for engine in ("sqlite", "postgres")}
    with open(depfile, "w", encoding="utf-8") as out:
        read = [f"{folder}/{engine}" for folder in folders for engine in engines]
        read += [path for paths in engines.values() for path in paths]
        out.write(" ".join([f"{output}:", *(path.replace(" ", "\\ ") for path in read)]) + "\n")
    kinds = {}
    with open(output, "w", encoding="utf-8") as out:
        out.write('#include <stddef.h>\n\n#include "store/schema/store_schemas.h"\n')
        for engine, paths in engines.items():
            out.write(f"\nstatic const struct schema_step {engine}_steps[] = {{\n")
            for path in paths:
                found, kind = read_step(path)
                texts = [*map(literal, found), "NULL"]
                kinds.setdefault(os.path.basename(path), set()).add(kind)
                out.write(f'\t{{"{os.path.basename(path)[:-4]}",\n'
                          f"\t (const char *const[]){{\n\t  " + ",\n\t  ".join(texts) + f"}}, {json.dumps(kind == 'rolling')}}},\n")
            out.write("};\n")
        for name, both in kinds.items():
            if len(both) > 1:
                raise SystemExit(f"{name}: the engines have different kinds")
        out.write("\nstatic const struct schema_table tables[] = {\n"
                  "#define BY_ACCOUNT(table) {#table, true},\n#define ON_NONE(table) {#table, false},\n"
                  '#include "store/schema/distribution.def"\n\t{NULL, false},\n};\n')
        engines = ", ".join(f".{engine} = {{{engine}_steps, {len(paths)}}}"
                           for engine, paths in engines.items())
        out.write(f"\nconst struct db_schemas store_schemas = {{{engines}, .tables = tables, .arrivals = &event_arrivals, .fill = store_fill}};\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
