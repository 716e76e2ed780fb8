"""Checks where each value stands, and makes of a tree what template.c draws."""
import re

from compiler.html import ADDRESSES, HtmlReader
from compiler.refused import Refused

# Of which a value can be no more than text.
TEXT_ATTRIBUTES = set("alt class colspan datetime for form id label lang list max maxlength min "
                      "minlength name pattern placeholder rowspan scope step title value width height".split())
SCOPES_MAX = 8  # {{#each}} and {{#with}} within each other


class Compiler(HtmlReader):
    """Nodes into operations, as template.h has them: tuples, those of blocks with lists in them."""

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

    # ---- what is drawn ----

    def stands(self, node, what):
        """Where: "text", "field", "attribute" or "address"."""
        place = self.place
        if place.state == "text":
            within = place.open[-1] if place.open else ""
            if within in ("", "script", "html", "head"):
                raise Refused(f"{node.where}: {what} in <{within}>" if within else
                              f"{node.where}: {what} outside of any element")
            return "field" if within == "textarea" else "text"
        if place.state != "quoted":
            raise Refused(f"{node.where}: {what} in a tag stands in a double-quoted attribute")
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
            raise Refused(f"{node.where}: 'local' is for a whole address")
        self.out.append(("value", node.type, place, node.paths))

    def address(self, node):
        before = self.place.value
        self.place.value += "\0"
        if node.type == "local":
            if before:
                raise Refused(f"{node.where}: 'local' is a whole address")
            return "local"
        if node.type != "text":
            raise Refused(f"{node.where}: '{node.type}' in an address")
        if not re.match(r"/[a-z0-9?]", before):  # behind "/" alone, nothing or a "/" would begin another site's
            raise Refused(f"{node.where}: a value at the beginning of an address; it stands behind a path "
                          "that begins with '/' and a name")
        if not before.endswith("=" if "?" in before else "/"):
            raise Refused(f"{node.where}: a value of an address is a whole part of its path, or of its query")
        return "address"

    def draw_text(self, node):
        place = self.stands(node, "a text")
        text = self.texts.get(node.name)
        if not text:
            raise Refused(f"{node.where}: there is no text {node.name}")
        text.used = True
        if set(node.values) != text.places():
            raise Refused(f"{node.where}: the text {node.name} takes {', '.join(sorted(text.places())) or 'no values'}")
        for value in node.values.values():
            if value.type in ("local", "hash", "json"):
                raise Refused(f"{node.where}: '{value.type}' in a text")
        if place != "text" and any("`" in words for words in text.forms.values()):
            raise Refused(f"{node.where}: the text {node.name} has `code`, which stands in an element alone")
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
                raise Refused(f"{text.where}: a word has neither values nor `code`")
            text.used = True
        self.groups.add(group)

    def draw_picture(self, node):
        if self.stands(node, "a picture") != "text" or {"title", "option", "button"} & set(self.place.open):
            raise Refused(f"{node.where}: a picture stands in an element")
        self.pictures.add(node.name)
        self.out.append(("picture", node.name))

    # ---- blocks ----

    def branch(self, nodes, node):
        """The operations of a branch, and the attributes behind it; it must end as it began."""
        before = self.place.copy()
        if before.attribute in ADDRESSES:
            raise Refused(f"{node.where}: a block within an address")
        outer, self.out = self.out, []
        self.branches += 1
        self.walk(nodes)
        self.branches -= 1
        if not before.same(self.place):
            raise Refused(f"{node.where}: what is in {{{{#{node.kind}}}}} does not end as it began: it is whole "
                          "elements, whole attributes, or text")
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
            raise Refused(f"{node.where}: more than {SCOPES_MAX} blocks within each other")
        self.draw_block(node, node.kind, node.path)
        self.scopes -= 1

    draw_each = draw_with = scoped

    def draw_if(self, node):
        self.draw_block(node, "if", node.path, node.negated, node.equals, node.other)

    def draw_layout(self, node):
        raise Refused(f"{node.where}: a layout stands at the beginning of a page, and in a page alone")

    def draw_slot(self, node):
        raise Refused(f"{node.where}: a slot stands in a layout")


def joined(operations):
    """Literals side by side are one."""
    result = []
    for operation in operations:
        if operation[0] == "literal" and result and result[-1][0] == "literal":
            result[-1] = ("literal", result[-1][1] + operation[1])
        elif operation != ("literal", ""):
            result.append(operation)
    return result
