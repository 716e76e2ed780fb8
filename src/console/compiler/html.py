"""Parses the HTML of a page, and refuses elements and attributes that pages must not contain."""
import re

from compiler.refused import Refused

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
ELEMENTS = VOID - {"area", "source", "track"} | set(
    "a abbr article aside b bdi body button caption code colgroup dd del details div dl dt em fieldset "
    "figcaption figure footer form h1 h2 h3 h4 head header hgroup html i ins kbd label legend li main mark nav "
    "ol optgroup option output p pre progress s samp script search section select small span strong sub "
    "summary sup table tbody td textarea tfoot th thead time title tr u ul var".split())
ADDRESSES = {"href", "src", "action", "formaction"}
# Attributes that browsers interpret in unsafe ways; refused even as literals.
NEVER = {"style", "srcdoc", "http-equiv", "ping", "srcset", "background", "target"}


def check_address(name, value, where):
    """A browser drops tabs and line feeds, takes "\\" for "/", and reads character references."""
    odd = re.search(r"[^A-Za-z0-9/?=&;#%:,@._~+\0-]", value) or re.search(r"&(?!amp;)", value)
    if odd:
        raise Refused(f"{where}: {odd[0]!r} in {name}; write it as %20, in hexadecimal, and '&' as &amp;")
    if value.startswith("//") or not re.match(r"[/#\0]|\Z", value):
        raise Refused(f"{where}: {name} refers to another site; addresses must begin with '/'")


class Place:
    """The state of the HTML parser."""

    def __init__(self):
        self.state = "text"  # text, tag, name, equals, quoted
        self.element = ""    # element of the current tag
        self.attribute = ""
        self.value = ""      # value of the attribute so far; a placeholder is "\0"
        self.written = ()    # attributes of the tag so far
        self.open = ()       # open elements
        self.closing = False

    def copy(self):
        other = Place()
        other.__dict__.update(self.__dict__)
        return other

    def same(self, other):
        if (self.state, self.attribute, self.open) != (other.state, other.attribute, other.open):
            return False
        return self.state == "text" or self.element == other.element


class HtmlReader:
    """Parses the HTML in the literals of a page, and emits them as operations."""

    def begin(self):
        self.place, self.out = Place(), []
        self.scopes = self.branches = 0  # number of enclosing blocks
        self.ids = set()

    def ends(self, path):
        if self.place.state != "text" or self.place.open:
            left = self.place.open[-1] if self.place.open else self.place.element
            raise Refused(f"{path}: <{left}> is not closed")

    def draw_literal(self, node):
        path, line = node.where.rsplit(":", 1)
        text, start, at = node.text, 0, 0
        while at < len(text):
            where = f"{path}:{int(line) + text.count(chr(10), 0, at)}"
            if self.place.state == "text" and text.startswith("<!--", at):
                end = text.find("-->", at)
                if end < 0:
                    raise Refused(f"{where}: a comment is not closed or contains a value")
                self.emit(text[start:at])
                start = at = end + 3
                continue
            self.inserted = []
            verbatim = self.verbatim()
            end = self.step(text, at, where)
            if self.inserted or self.verbatim() != verbatim:
                self.emit(text[start:end], verbatim)
                self.out += self.inserted
                start = end
            at = end
        self.emit(text[start:])

    def verbatim(self):
        """Returns whether white space is significant."""
        return bool({"pre", "textarea"} & set(self.place.open)) or self.place.state == "quoted"

    def emit(self, text, verbatim=None):
        if not (self.verbatim() if verbatim is None else verbatim):
            text = re.sub(r"\s*\n\s*", "\n", text)
        self.out.append(("literal", text))

    def step(self, text, at, where):
        """Parses one HTML token; returns its end."""
        place = self.place
        if place.state == "text":
            return self.step_text(text[at:], at, where)
        if place.state == "tag":
            return self.step_tag(text, at, where)
        end = text.find('"', at)
        piece = text[at:end if end >= 0 else len(text)]
        if "<" in piece:
            raise Refused(f"{where}: '<' in the value of {place.attribute}: is a quote missing?")
        if place.attribute in ADDRESSES and place.value.endswith("\0") and piece[:1] not in ("", "/", "?", "&", "#"):
            raise Refused(f"{where}: a value in an address must be a complete part of its path or of its query")
        place.value += piece
        if end < 0:
            return len(text)
        self.attribute_ends(where)
        return end + 1

    def step_text(self, rest, at, where):
        place = self.place
        if rest[0] != "<":
            end = rest.find("<") if "<" in rest else len(rest)
            if place.open and place.open[-1] == "script" and rest[:end].strip():
                raise Refused(f"{where}: script must be in a file")
            return at + end
        if rest.startswith("<!DOCTYPE html>"):
            return at + len("<!DOCTYPE html>")
        tag = re.match(r"<(/?)([a-z][a-z0-9]*)(?=[\s>]|\Z)", rest)
        if not tag or tag[2] not in ELEMENTS:
            raise Refused(f"{where}: '{rest[:12].splitlines()[0]}' is not an allowed element; write &lt; for '<'")
        place.state, place.element, place.closing = "tag", tag[2], bool(tag[1])
        place.written, place.attribute, place.method = (), "", ""
        return at + tag.end()

    def step_tag(self, text, at, where):
        place = self.place
        space = re.compile(r"\s+").match(text, at)
        if space:
            return space.end()
        if text[at] == ">":
            self.tag_ends(where)
            return at + 1
        name = re.compile(r"[a-z][a-z0-9-]*").match(text, at)
        if not name or place.closing:
            raise Refused(f"{where}: '{text[at]}' in <{place.element}>; attributes are lower-case")
        if not text[at - 1:at].isspace() and at:
            raise Refused(f"{where}: a space is missing before {name[0]}")
        if name[0] in place.written:
            raise Refused(f"{where}: {name[0]} twice in <{place.element}>")
        if name[0] in NEVER or name[0].startswith("on"):
            raise Refused(f"{where}: the attribute {name[0]} is not allowed")
        place.written += (name[0],)
        if text.startswith('="', name.end()):
            place.state, place.attribute, place.value = "quoted", name[0], ""
            return name.end() + 2
        if text.startswith("=", name.end()):
            raise Refused(f"{where}: the value of {name[0]} must be in double quotes")
        return name.end()

    def attribute_ends(self, where):
        place = self.place
        name, value = place.attribute, place.value
        if name in ADDRESSES:
            check_address(name, value, where)
        if name == "id" and "\0" not in value and not self.scopes and not self.branches:
            if value in self.ids:
                raise Refused(f"{where}: the id {value} already exists")
            self.ids.add(value)
        if name == "method":
            place.method = value
        place.state, place.attribute, place.value = "tag", "", ""

    def tag_ends(self, where):
        place = self.place
        name = place.element
        place.state = "text"
        if not place.closing:
            self.opened(name, where)
            return
        if not place.open or place.open[-1] != name:
            raise Refused(f"{where}: </{name}> closes " + (f"<{place.open[-1]}>" if place.open else "nothing"))
        place.open = place.open[:-1]

    def opened(self, name, where):
        place = self.place
        if name == "script" and "src" not in place.written:
            raise Refused(f"{where}: script must be in a file")
        if name == "form":
            if "form" in place.open:
                raise Refused(f"{where}: a form inside a form")
            if place.method not in ("get", "post"):
                raise Refused(f'{where}: a form requires method="get" or method="post"')
            if place.method == "post":
                self.inserted = [("literal", '<input type="hidden" name="token" value="'),
                                 ("value", "text", "attribute", ["@token"]), ("literal", '">'),
                                 ("literal", '<input type="hidden" name="in_account" value="'),
                                 ("value", "text", "attribute", ["@account.account_id"]), ("literal", '">'),
                                 ("literal", '<input type="hidden" name="form_number" value="'),
                                 ("value", "text", "attribute", ["@form_number"]), ("literal", '">')]
        if name == "textarea":
            self.inserted = [("literal", "\n")]  # browsers ignore the first line feed
        if name not in VOID:
            place.open += (name,)
