"""The sizes that tests draw (tests/support/sizes.py) are those that the sources read (src/base/tuned.h).

usage: tuned.py SOURCE_DIRECTORY
"""
import pathlib
import re
import sys

READ = re.compile(r'\btuned(?:_up_to)?\(\s*"(\w+)"')


def main():
    root = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(root / "tests/support"))
    import sizes

    read = {name for path in (root / "src").rglob("*.c") for name in READ.findall(path.read_text())}
    drawn = sizes.least().keys()
    found = [f"src reads {name}, which is never drawn" for name in sorted(read - drawn)]
    found += [f"{name} is drawn, and src does not read it" for name in sorted(drawn - read)]
    found += [f"draws of seed {seed} differ" for seed in range(3) if sizes.draw(seed) != sizes.draw(seed)]
    print("\n".join(found))
    print(f"{len(drawn | read) - len(found)} passed, {len(found)} failed")
    return 1 if found else 0


sys.exit(main())
