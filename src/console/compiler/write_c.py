"""Writes operations as C arrays."""
import pathlib
import re


def quoted(data):
    """Returns a C string literal, with octal escapes, because their length is fixed."""
    out = []
    for byte in data.encode() if isinstance(data, str) else data:
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def escaped(text):
    return re.sub("[<>&\"']", lambda match: f"&#{ord(match[0])};", text)


class Strings:
    """A table of unique strings, referenced by offset; offset 0 is not used."""

    def __init__(self):
        self.places = {}
        self.size = 1

    def place(self, data):
        data = data.encode() if isinstance(data, str) else data
        assert b"\0" not in data
        if data not in self.places:
            self.places[data] = self.size
            self.size += len(data) + 1
        return self.places[data]

    def lines(self):
        yield 'static const char strings[] = "\\000"\n'
        for data in self.places:
            yield f"\t{quoted(data + bytes(1))}\n"
        yield "\t;\n"


class Writer:
    """Converts operations into arrays of struct template_op."""

    def __init__(self, texts):
        self.texts = texts
        self.strings = Strings()
        self.forms = {}  # (name, kind of place, order of values): index of the text

    def text(self, name, place, order):
        """Returns the index of the text's forms for the place, with placeholders as bytes 1, 2, …"""
        return self.forms.setdefault((name, place == "text", order), len(self.forms))

    def form(self, words, in_element, order):
        out = b""
        code = False
        for piece in re.split(r"(\{[a-z][a-z0-9_]*\}|`)", words):
            if piece == "`":
                code = not code
                out += b"<code>" if code else b"</code>"
            elif piece.startswith("{"):
                out += bytes([order.index(piece[1:-1]) + 1])
            else:
                out += escaped(piece).encode()
        assert in_element or not re.search(rb"<", out)
        return self.strings.place(out)

    def text_row(self, name, in_element, order):
        text = self.texts[name]
        rows = []
        for language in ("en", "es"):
            words = text.forms[language]
            one = text.forms.get(f"{language} one", words)
            rows.append(f"{{{self.form(words, in_element, order)}, {self.form(one, in_element, order)}}}")
        plural = order.index("n") + 1 if "en one" in text.forms else 0
        return f"{{{', '.join(rows)}}}, {plural}"

    def text_rows(self):
        return [self.text_row(*key) for key in self.forms]

    def word_row(self, name):
        forms = self.texts[name].forms
        english, spanish = (self.strings.place(forms[language]) for language in ("en", "es"))
        return f"{self.strings.place(name)}, {{{english}, {spanish}}}"

    def operations(self, operations):
        """Returns the rows of the array; the rows of a block follow it."""
        rows = []
        for operation in operations:
            rows += getattr(self, "row_" + operation[0])(*operation[1:])
        return rows

    def row_literal(self, text):
        return [f".kind = TEMPLATE_LITERAL, .text = {self.strings.place(text)}, .size = {len(text.encode())}"]

    def row_value(self, kind, place, paths):
        second = f", .other = {self.strings.place(paths[1])}" if len(paths) > 1 else ""
        return [f".kind = TEMPLATE_VALUE, .type = TEMPLATE_{kind.upper()}, .place = TEMPLATE_IN_{place.upper()}, "
                f".text = {self.strings.place(paths[0])}{second}"]

    def row_text(self, name, place, values):
        order = tuple(sorted(values))
        rows = [f".kind = TEMPLATE_TEXT_WITH, .place = TEMPLATE_IN_{place.upper()}, "
                f".words = {self.text(name, place, order)}, .then = {len(order)}"]
        for value in order:
            rows += self.row_value(values[value].type, place, values[value].paths)
        return rows

    def row_word(self, group, place, path):
        return [f".kind = TEMPLATE_WORD, .place = TEMPLATE_IN_{place.upper()}, .text = {self.strings.place(path)}, "
                f".other = {self.strings.place(group)}"]

    def row_picture(self, name):
        return [f".kind = TEMPLATE_PICTURE, .text = {self.strings.place(name)}"]

    def block(self, row, then, otherwise):
        inner, other = self.operations(then), self.operations(otherwise)
        return [f"{row}, .then = {len(inner)}, .otherwise = {len(other)}"] + inner + other

    def row_each(self, path, then, otherwise):
        return self.block(f".kind = TEMPLATE_EACH, .text = {self.strings.place(path)}", then, otherwise)

    def row_with(self, path, then, otherwise):
        return self.block(f".kind = TEMPLATE_WITH, .text = {self.strings.place(path)}", then, otherwise)

    def row_if(self, path, negated, equals, other, then, otherwise):
        row = f".kind = TEMPLATE_IF, .text = {self.strings.place(path)}, .negated = {str(bool(negated)).lower()}"
        if equals is not None:
            row += f", .equals = {self.strings.place(equals)}"
        if other is not None:
            row += f", .other = {self.strings.place(other)}"
        return self.block(row, then, otherwise)


def write_array(out, type_name, name, rows):
    out.write(f"static const struct {type_name} {name}[] = {{\n")
    out.writelines(f"\t{{{row}}},\n" for row in rows)
    out.write("};\n")


def write(output, header, pages, compiler, texts):
    writer = Writer(texts)
    arrays = {name: writer.operations(operations) for name, operations in pages.items()}
    text_rows = writer.text_rows()
    words = sorted(name for name in texts if name.rsplit(".", 1)[0] in compiler.groups)
    word_rows = [writer.word_row(name) for name in words]
    guard = re.sub(r"\W", "_", pathlib.Path(header).name).upper()
    with open(header, "w", encoding="utf-8") as out:
        out.write(f'#ifndef {guard}\n#define {guard}\n\n#include "console/template.h"\n\n')
        for name in pages:
            out.write(f"extern const struct template page_{name};\n")
        out.write("/* All pages, and the names of their pictures; NULL-terminated. */\n"
                  "extern const struct template *const all_pages[];\nextern const char *const all_pictures[];\n"
                  "/* The table for word lookups. */\nextern const struct template_words all_words;\n\n#endif\n")
    with open(output, "w", encoding="utf-8") as out:
        out.write(f'#include "{pathlib.Path(header).name}"\n\n')
        out.writelines(writer.strings.lines())
        write_array(out, "template_text", "texts", text_rows + [".plural = 0"])
        for name, rows in arrays.items():
            write_array(out, "template_op", f"ops_{name}", rows + [".kind = TEMPLATE_END"])
            out.write(f"const struct template page_{name} = "
                      f"{{{quoted(name)}, strings, texts, ops_{name}, {len(rows)}}};\n")
        out.write("const struct template *const all_pages[] = {" +
                  "".join(f"&page_{name}, " for name in pages) + "NULL};\n")
        out.write("const char *const all_pictures[] = {" +
                  "".join(f"{quoted(name)}, " for name in sorted(compiler.pictures)) + "NULL};\n")
        write_array(out, "template_word", "words", word_rows + [".name = 0"])
        out.write(f"const struct template_words all_words = {{strings, words, {len(words)}}};\n")
