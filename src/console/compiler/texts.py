"""Reads texts.txt: texts in both languages."""
import re

from compiler.refused import Refused

TEXT_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+\Z")


class Text:
    """A text in both languages, with placeholders of values."""

    def __init__(self, where):
        self.where = where
        self.forms = {}  # "en", "es", and "en one", "es one" for a value `n` of 1
        self.used = False

    def places(self):
        found = set()
        for words in self.forms.values():
            found |= set(re.findall(r"\{([a-z][a-z0-9_]*)\}", words))
        return found


def read_texts(path):
    texts = {}
    current = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        section = re.fullmatch(r"\[(.+)\]", line)
        form = re.fullmatch(r"(en|es|en one|es one): (.*\S)", line)
        if section:
            name = section[1]
            if not TEXT_NAME.match(name):
                raise Refused(f"{where}: '{name}' is not a valid name of a text, such as events.title")
            if name in texts:
                raise Refused(f"{where}: the text {name} already exists ({texts[name].where})")
            current = texts[name] = Text(where)
        elif form and current:
            if form[1] in current.forms:
                raise Refused(f"{where}: '{form[1]}' occurs twice")
            current.forms[form[1]] = form[2]
        else:
            raise Refused(f"{where}: expected [name], 'en: …', 'es: …', 'en one: …' or 'es one: …'")
    for name, text in texts.items():
        check_text(name, text)
    return texts


def check_text(name, text):
    for form in ("en", "es"):
        if form not in text.forms:
            raise Refused(f"{text.where}: the text {name} lacks '{form}:'")
    if ("en one" in text.forms) != ("es one" in text.forms):
        raise Refused(f"{text.where}: the text {name} has 'one' in only one language")
    if "en one" in text.forms and "n" not in text.places():
        raise Refused(f"{text.where}: the text {name} has a form for one, but no value {{n}}")
    for form, words in text.forms.items():
        rest = re.sub(r"\{[a-z][a-z0-9_]*\}", "", words)
        if "{" in rest or "}" in rest:
            raise Refused(f"{text.where}: the text {name}: a value must be written as {{name}}")
        if rest.count("`") % 2:
            raise Refused(f"{text.where}: the text {name}: a ` is not closed")
        own = set(re.findall(r"\{([a-z][a-z0-9_]*)\}", words))
        if own != text.places() and not form.endswith("one"):
            raise Refused(f"{text.where}: the text {name} does not have the same values in both languages")
