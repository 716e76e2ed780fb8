"""Checks the place of each value, and compiles a tree into operations for template.c."""
import re

from compiler.html import ADDRESSES, HtmlReader
from compiler.refused import Refused

# Attributes in which a value is only text.
TEXT_ATTRIBUTES = set("alt class colspan datetime for form id label lang list max maxlength min "
                      "minlength name pattern placeholder rowspan scope step title value width height".split())
SCOPES_MAX = 8  # nested {{#each}} and {{#with}}


class Compiler(HtmlReader):
    """Compiles nodes into operations of template.h: tuples, with nested lists for blocks."""

    def __init__(self, texts):
        self.texts = texts
        self.groups = set()
        self.pictures = set()

    def compile(self, nodes, path):
        self.begin()
        self.walk(nodes)
        self.ends(path)
        return joined(self.out)

    def walk(self, nodes):
        for node in nodes:
            getattr(self, "draw_" + node.kind)(node)

    # ---- values and texts ----

    def stands(self, node, what):
        """Returns the place: "text", "field", "attribute" or "address"."""
        place = self.place
        if place.state == "text":
            within = place.open[-1] if place.open else ""
            if within in ("", "script", "html", "head"):
                raise Refused(f"{node.where}: {what} in <{within}>" if within else
                              f"{node.where}: {what} outside of any element")
            return "field" if within == "textarea" else "text"
        if place.state != "quoted":
            raise Refused(f"{node.where}: {what} in a tag must be in a double-quoted attribute")
        name = place.attribute
        if place.element in ("meta", "script", "link"):
            raise Refused(f"{node.where}: {what} in <{place.element}>")
        if name in ADDRESSES:
            if what != "a value":
                raise Refused(f"{node.where}: {what} in an address")
            return "address"
        if name in TEXT_ATTRIBUTES or name.startswith(("aria-", "data-")):
            place.value += "\0"
            return "attribute"
        raise Refused(f"{node.where}: {what} in the attribute {name}")

    def draw_value(self, node):
        place = self.stands(node, "a value")
        if place == "address":
            place = self.address(node)
        elif node.type == "local":
            raise Refused(f"{node.where}: 'local' requires a complete address")
        self.out.append(("value", node.type, place, node.paths))

    def address(self, node):
        before = self.place.value
        self.place.value += "\0"
        if node.type == "local":
            if before:
                raise Refused(f"{node.where}: 'local' must be the complete address")
            return "local"
        if node.type != "text":
            raise Refused(f"{node.where}: '{node.type}' in an address")
        if not re.match(r"/[a-z0-9?]", before):  # "/" and an empty value or "/" would be another site
            raise Refused(f"{node.where}: a value at the beginning of an address; it must follow a path "
                          "that begins with '/' and a name")
        if not before.endswith("=" if "?" in before else "/"):
            raise Refused(f"{node.where}: a value in an address must be a complete part of its path or of its query")
        return "address"

    def draw_text(self, node):
        place = self.stands(node, "a text")
        text = self.texts.get(node.name)
        if not text:
            raise Refused(f"{node.where}: there is no text {node.name}")
        text.used = True
        if set(node.values) != text.places():
            raise Refused(f"{node.where}: the text {node.name} needs {', '.join(sorted(text.places())) or 'no values'}")
        for value in node.values.values():
            if value.type in ("local", "hash", "json"):
                raise Refused(f"{node.where}: '{value.type}' in a text")
        if place != "text" and any("`" in words for words in text.forms.values()):
            raise Refused(f"{node.where}: the text {node.name} contains `code`, which is allowed only in an element")
        self.out.append(("text", node.name, place, node.values))

    def draw_word(self, node):
        place = self.stands(node, "a word")
        self.use_group(node.group, node.where)
        self.out.append(("word", node.group, place, node.path))

    def use_group(self, group, where):
        found = [text for name, text in self.texts.items() if name.rsplit(".", 1)[0] == group]
        if not found:
            raise Refused(f"{where}: there are no texts {group}.…")
        for text in found:
            if text.places() or any("`" in words for words in text.forms.values()):
                raise Refused(f"{text.where}: a word must not contain values or `code`")
            text.used = True
        self.groups.add(group)

    def draw_picture(self, node):
        if self.stands(node, "a picture") != "text" or {"title", "option", "button"} & set(self.place.open):
            raise Refused(f"{node.where}: a picture must be in an element")
        self.pictures.add(node.name)
        self.out.append(("picture", node.name))

    # ---- blocks ----

    def branch(self, nodes, node):
        """Returns the operations of a branch and the attributes written; it must end in the state in which it began."""
        before = self.place.copy()
        if before.attribute in ADDRESSES:
            raise Refused(f"{node.where}: a block within an address")
        outer, self.out = self.out, []
        self.branches += 1
        self.walk(nodes)
        self.branches -= 1
        if not before.same(self.place):
            raise Refused(f"{node.where}: the contents of {{{{#{node.kind}}}}} must be complete elements, "
                          "complete attributes, or text")
        drawn, self.out = joined(self.out), outer
        written, self.place = self.place.written, before
        return drawn, written

    def draw_block(self, node, *operation):
        then, written = self.branch(node.then, node)
        otherwise, others = self.branch(node.otherwise, node)
        self.place.written = tuple(dict.fromkeys(written + others))
        if self.place.state == "quoted":
            self.place.value += "\0"
        self.out.append((*operation, then, otherwise))

    def scoped(self, node):
        self.scopes += 1
        if self.scopes > SCOPES_MAX:
            raise Refused(f"{node.where}: more than {SCOPES_MAX} nested blocks")
        self.draw_block(node, node.kind, node.path)
        self.scopes -= 1

    draw_each = draw_with = scoped

    def draw_if(self, node):
        self.draw_block(node, "if", node.path, node.negated, node.equals, node.other)

    def draw_layout(self, node):
        raise Refused(f"{node.where}: a layout must be at the beginning of a page")

    def draw_slot(self, node):
        raise Refused(f"{node.where}: a slot must be in a layout")


def joined(operations):
    """Merges adjacent literals."""
    result = []
    for operation in operations:
        if operation[0] == "literal" and result and result[-1][0] == "literal":
            result[-1] = ("literal", result[-1][1] + operation[1])
        elif operation != ("literal", ""):
            result.append(operation)
    return result
