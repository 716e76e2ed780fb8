"""Turns the numbered SQL files of each engine's folder into C tables of (name, text)."""
import json
import os
import sys

output, *inputs = sys.argv[1:]
engines = {"sqlite": [], "postgres": []}
for path in sorted(inputs, key=os.path.basename):
    engines[os.path.basename(os.path.dirname(path))].append(path)
with open(output, "w", encoding="utf-8") as out:
    out.write('#include "store/schema.h"\n')
    for engine, paths in engines.items():
        out.write(f"\nstatic const struct schema_step {engine}_steps[] = {{\n")
        for path in paths:
            lines = open(path, encoding="utf-8").read().splitlines(keepends=True)
            text = "\n\t ".join(json.dumps(line, ensure_ascii=False) for line in lines)
            out.write(f'\t{{"{os.path.basename(path)[:-4]}",\n\t {text}}},\n')
        out.write("};\n")
    tables = ", ".join(f".{engine} = {{{engine}_steps, {len(paths)}}}"
                       for engine, paths in engines.items())
    out.write(f"\nconst struct db_schemas store_schemas = {{{tables}}};\n")
