"""Pages as a browser's parser takes them: every element closed in order and where it is allowed, so that no
parser repairs anything; with the links and the forms of a page."""

import html.parser
import re

VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}
# A paragraph ends where one of these begins, whatever its end tag says.
BLOCKS = {"article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure", "footer", "form", "h1",
          "h2", "h3", "h4", "header", "hr", "main", "nav", "ol", "p", "pre", "section", "table", "ul"}
PARENTS = {"li": {"ul", "ol"}, "tr": {"thead", "tbody", "tfoot"}, "td": {"tr"}, "th": {"tr"}, "tbody": {"table"},
           "thead": {"table"}, "caption": {"table"}, "dt": {"dl", "div"}, "dd": {"dl", "div"}, "option": {"select"},
           "summary": {"details"}, "legend": {"fieldset"}, "figcaption": {"figure"}}
NOT_WITHIN = {"a": {"a", "button"}, "button": {"a", "button"}, "form": {"form"}, "label": {"label"},
              "input": {"button", "a"}, "select": {"button", "a"}}
POINTERS = ("for", "aria-describedby", "aria-labelledby", "aria-controls")


class Field:
    """What a form sends under one name: the current value, and those that may be chosen."""

    def __init__(self, name, kind, value="", told=()):
        self.name, self.kind, self.value, self.told = name, kind, value, dict(told)
        self.options = []


class Form:
    def __init__(self, told):
        self.method, self.action = told.get("method", "get"), told.get("action")
        self.hidden = "hidden" in told  # until a script finds that it can fill it in
        self.fields = []

    def values(self):
        """As a visitor sends it who touches nothing."""
        return {field.name: field.value for field in self.fields}

    def field(self, kind, told):
        name, value = told.get("name"), told.get("value") or ""
        known = next((field for field in self.fields if field.name == name), None)
        if not name:
            return None
        if not known:
            known = Field(name, kind, value, told)
            self.fields.append(known)
        elif "checked" in told:
            known.value = value
        if kind in ("checkbox", "radio", "submit"):
            known.options.append(value)
        return known


class Page(html.parser.HTMLParser):
    """Raises AssertionError at what a parser would have to repair, and at what no page of ours has."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.forms, self.labels = [], [], [], [], []
        self.pointers, self.headings, self.language, self.title = [], 0, None, ""
        self.form = self.select = self.area = None
        self.controls, self.inside = [], []
        assert text.lstrip().startswith("<!DOCTYPE html>"), text[:40]
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"
        twice = [one for one in self.ids if self.ids.count(one) > 1]
        assert not twice, f"repeated ids: {twice}"
        assert self.headings == 1 and self.title.strip(), f"{self.headings} h1, title '{self.title}'"
        for name, target in self.pointers:
            assert target in self.ids, f"{name}={target} points at nothing"
        for told in self.controls:
            assert told.get("aria-label") or told.get("id") in self.labels, f"{told} has no label"

    def check_place(self, tag, told):
        assert not set(self.open) & NOT_WITHIN.get(tag, set()), f"{tag} in {self.open}"
        assert not (tag in BLOCKS and "p" in self.open), f"{tag} in a paragraph"
        assert tag not in PARENTS or self.open[-1] in PARENTS[tag], f"{tag} in {self.open[-1]}"
        assert not any(name.startswith("on") or name in ("style", "srcdoc") for name in told), told
        assert tag != "style" and (tag != "script" or told.get("src", "").startswith("/assets/")), (tag, told)

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        assert len(told) == len(attributes), f"twice in {self.get_starttag_text()}"
        try:
            self.check_place(tag, told)
        except AssertionError as error:
            raise AssertionError(f"{self.getpos()}: {error}") from None
        if tag not in VOID:
            self.open.append(tag)
        if "id" in told:
            self.ids.append(told["id"])
        for name in POINTERS:
            self.pointers += [(name, target) for target in (told.get(name) or "").split()]
        self.links += [told[name] for name in ("href", "src") if told.get(name)]
        self.headings += tag == "h1"
        if tag == "html":
            self.language = told.get("lang")
        elif tag == "label":
            self.labels.append(told.get("for"))
        else:
            self.take_control(tag, told)

    def take_control(self, tag, told):
        kind = told.get("type", "text") if tag == "input" else "submit" if tag == "button" else tag
        if tag == "form":
            self.form = Form(told)
            self.forms.append(self.form)
        elif tag == "option" and self.select:
            self.select.options.append(told.get("value"))
            if "selected" in told or len(self.select.options) == 1:
                self.select.value = told.get("value")
        elif tag in ("input", "select", "textarea", "button") and self.form:
            field = self.form.field(kind, told)
            if tag == "select":
                self.select = field
            if tag == "textarea":
                self.area = field
        if tag in ("input", "select", "textarea") and kind != "hidden" and "label" not in self.open:
            self.controls.append(told)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"{self.getpos()}: </{tag}> in {self.open}"
        self.open.pop()
        if tag == "form":
            self.form = None
        elif tag == "select":
            self.select = None
        elif tag == "textarea":
            self.area = None

    def handle_data(self, data):
        if self.area:
            self.area.value += data.removeprefix("\n") if not self.area.value else data
        elif self.open and self.open[-1] == "title" and "svg" not in self.open:
            self.title += data


IDENTIFIER = re.compile(r"\b(?:[a-z]{3,4}_[0-9a-z]{16,}|CERT-(?:TEST-)?\d{4}-\d{7,})\b")
