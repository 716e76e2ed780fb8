"""Turns the console's pages, HTML files, into C arrays that template.c draws.

usage: compile_templates.py [--words NAME]... OUTPUT.c OUTPUT.h TEXTS PAGE.html...

Every file is a page, except files whose first line is {{partial}}, which are parts of pages. TEXTS contains
all texts in English and Spanish. docs/develop/console-pages.md describes the format of pages and texts. The compiler
refuses, with file and line, every construct in which a value could be more than text. A value may occur in an
element, in a double-quoted attribute that contains text, or as one part of an address that begins with "/".
"""
import pathlib
import sys

from compiler.compile import Compiler
from compiler.parser import NAME, Parser
from compiler.refused import Refused
from compiler.texts import read_texts
from compiler.write_c import write


def main(arguments):
    groups = []
    while arguments[:1] == ["--words"]:
        groups.append(arguments[1])
        arguments = arguments[2:]
    output, header, text_file, *files = arguments
    texts = read_texts(pathlib.Path(text_file))
    compiler = Compiler(texts)
    for group in groups:
        compiler.use_group(group, "--words")
    pages = {}
    for file in map(pathlib.Path, sorted(files)):
        if not NAME.match(file.stem):
            raise Refused(f"{file}: the name of a page must consist of lower-case letters, digits and _")
        if file.read_text(encoding="utf-8").startswith("{{partial}}"):
            continue
        pages[file.stem] = compiler.compile(Parser(file.parent).page(file), file)
    for name, text in texts.items():
        if not text.used:
            raise Refused(f"{text.where}: the text {name} is not used")
    write(output, header, pages, compiler, texts)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Refused as refused:
        sys.exit(str(refused))
