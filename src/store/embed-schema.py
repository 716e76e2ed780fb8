"""Turns numbered SQL files into a C table of (name, text)."""
import json
import os
import sys

output, *inputs = sys.argv[1:]
with open(output, "w", encoding="utf-8") as out:
    out.write('#include "store/schema.h"\n\nconst struct schema_step schema_steps[] = {\n')
    for path in inputs:
        lines = open(path, encoding="utf-8").read().splitlines(keepends=True)
        text = "\n\t ".join(json.dumps(line, ensure_ascii=False) for line in lines)
        out.write(f'\t{{"{os.path.basename(path)[:-4]}",\n\t {text}}},\n')
    out.write("};\nconst unsigned schema_step_count = %d;\n" % len(inputs))
