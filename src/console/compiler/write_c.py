"""Writes operations as arrays of C."""
import pathlib
import re


def quoted(data):
    """A string of C; octal escapes, since they have an end."""
    out = []
    for byte in data.encode() if isinstance(data, str) else data:
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def escaped(text):
    return re.sub("[<>&\"']", lambda match: f"&#{ord(match[0])};", text)


class Writer:
    """Operations as arrays of struct template_op."""

    def __init__(self, texts):
        self.texts = texts
        self.forms = {}  # (name, kind of place, order of values): name of the array

    def text(self, name, place, order):
        """The array of a text's forms: literals as they stand there, values as bytes 1, 2, …"""
        key = (name, place == "text", order)
        if key not in self.forms:
            self.forms[key] = f"text_{len(self.forms)}"
        return self.forms[key]

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
        return quoted(out)

    def arrays(self):
        for (name, in_element, order), array in self.forms.items():
            text = self.texts[name]
            rows = []
            for language in ("en", "es"):
                words = text.forms[language]
                one = text.forms.get(f"{language} one", words)
                rows.append(f"{{{self.form(words, in_element, order)}, {self.form(one, in_element, order)}}}")
            plural = order.index("n") + 1 if "en one" in text.forms else 0
            yield f"static const struct template_text {array} = {{{{{', '.join(rows)}}}, {plural}}};\n"

    def operations(self, operations):
        """Rows of the array; those of a block follow it."""
        rows = []
        for operation in operations:
            rows += getattr(self, "row_" + operation[0])(*operation[1:])
        return rows

    @staticmethod
    def row_literal(text):
        return [f".kind = TEMPLATE_LITERAL, .text = {quoted(text)}, .size = {len(text.encode())}"]

    @staticmethod
    def row_value(kind, place, paths):
        second = f", .other = {quoted(paths[1])}" if len(paths) > 1 else ""
        return [f".kind = TEMPLATE_VALUE, .type = TEMPLATE_{kind.upper()}, .place = TEMPLATE_IN_{place.upper()}, "
                f".text = {quoted(paths[0])}{second}"]

    def row_text(self, name, place, values):
        order = tuple(sorted(values))
        rows = [f".kind = TEMPLATE_TEXT_WITH, .place = TEMPLATE_IN_{place.upper()}, "
                f".words = &{self.text(name, place, order)}, .then = {len(order)}"]
        for value in order:
            rows += self.row_value(values[value].type, place, values[value].paths)
        return rows

    @staticmethod
    def row_word(group, place, path):
        return [f".kind = TEMPLATE_WORD, .place = TEMPLATE_IN_{place.upper()}, .text = {quoted(path)}, "
                f".other = {quoted(group)}"]

    @staticmethod
    def row_picture(name):
        return [f".kind = TEMPLATE_PICTURE, .text = {quoted(name)}"]

    def block(self, row, then, otherwise):
        inner, other = self.operations(then), self.operations(otherwise)
        return [f"{row}, .then = {len(inner)}, .otherwise = {len(other)}"] + inner + other

    def row_each(self, path, then, otherwise):
        return self.block(f".kind = TEMPLATE_EACH, .text = {quoted(path)}", then, otherwise)

    def row_with(self, path, then, otherwise):
        return self.block(f".kind = TEMPLATE_WITH, .text = {quoted(path)}", then, otherwise)

    def row_if(self, path, negated, equals, other, then, otherwise):
        row = f".kind = TEMPLATE_IF, .text = {quoted(path)}, .negated = {str(bool(negated)).lower()}"
        if equals is not None:
            row += f", .equals = {quoted(equals)}"
        if other is not None:
            row += f", .other = {quoted(other)}"
        return self.block(row, then, otherwise)


def write(output, header, pages, compiler, texts):
    writer = Writer(texts)
    arrays = {name: writer.operations(operations) for name, operations in pages.items()}
    guard = re.sub(r"\W", "_", pathlib.Path(header).name).upper()
    with open(header, "w", encoding="utf-8") as out:
        out.write(f'#ifndef {guard}\n#define {guard}\n\n#include "console/template.h"\n\n')
        for name in pages:
            out.write(f"extern const struct template page_{name};\n")
        out.write("/* All of them, and the names of the pictures in them; closed by NULL. */\n"
                  "extern const struct template *const all_pages[];\nextern const char *const all_pictures[];\n"
                  "/* What words are looked up in. */\nextern const struct template_words all_words;\n\n#endif\n")
    with open(output, "w", encoding="utf-8") as out:
        out.write(f'#include "{pathlib.Path(header).name}"\n\n')
        out.writelines(writer.arrays())
        for name, rows in arrays.items():
            out.write(f"static const struct template_op ops_{name}[] = {{\n")
            out.writelines(f"\t{{{row}}},\n" for row in rows)
            out.write("\t{.kind = TEMPLATE_END},\n};\n"
                      f"const struct template page_{name} = {{{quoted(name)}, ops_{name}, {len(rows)}}};\n")
        out.write("const struct template *const all_pages[] = {" +
                  "".join(f"&page_{name}, " for name in pages) + "NULL};\n")
        out.write("const char *const all_pictures[] = {" +
                  "".join(f"{quoted(name)}, " for name in sorted(compiler.pictures)) + "NULL};\n")
        words = sorted(name for name in texts if name.rsplit(".", 1)[0] in compiler.groups)
        out.write("static const struct template_word words[] = {\n")
        for name in words:
            forms = texts[name].forms
            out.write(f'\t{{{quoted(name)}, {{{quoted(forms["en"])}, {quoted(forms["es"])}}}}},\n')
        out.write(f"\t{{NULL, {{NULL, NULL}}}},\n}};\nconst struct template_words all_words = {{words, {len(words)}}};\n")
