"""Parses a page and its parts into a tree."""
import re

from compiler.refused import Refused
from compiler.texts import TEXT_NAME

TYPES = {"text": 1, "number": 1, "credits": 1, "money": 2, "bytes": 1, "duration": 1, "time": 1, "date": 1,
         "hash": 1, "json": 1, "local": 1}
PARTS_MAX = 16  # nested partials
NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
PATH = re.compile(r"@?[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)*\Z|\.\Z")


class Node:
    def __init__(self, kind, where, **members):
        self.kind, self.where = kind, where
        self.__dict__.update(members)


class Source:
    """The file of a page, split into literals and {{…}} tags with their positions."""

    def __init__(self, path, arguments=None):
        text = path.read_text(encoding="utf-8")
        for name, value in (arguments or {}).items():
            text = re.sub(rf"\${name}\b", value, text)
        left = re.search(r"\$[a-z_]+", text)
        if left:
            raise Refused(f"{path}:{text.count(chr(10), 0, left.start()) + 1}: {left[0]} has no value")
        self.pieces = []
        at = 0
        for match in re.finditer(r"\{\{(.*?)\}\}", text, re.S):
            self.add("literal", text, at, match.start(), path)
            self.add("tag", text, match.start(1), match.end(1), path)
            at = match.end()
        self.add("literal", text, at, len(text), path)
        for kind, piece, where in self.pieces:
            if kind == "literal" and ("{{" in piece or "}}" in piece):
                raise Refused(f"{where}: unbalanced {{{{ or }}}}")

    def add(self, kind, text, start, end, path):
        if kind == "tag" or end > start:
            self.pieces.append((kind, text[start:end], f"{path}:{text.count(chr(10), 0, start) + 1}"))


class Parser:
    """Parses lexical units into nodes. Inserts partials and the layout, so that each is checked where it is used."""

    def __init__(self, folder):
        self.folder = folder
        self.pieces = iter(())  # lexical units of the current file

    def page(self, path):
        fills = {}
        nodes = self.parse(path, {}, fills, 0)
        layout = [node for node in nodes if node.kind == "layout"]
        body = [node for node in nodes if node.kind != "layout"]
        if not layout:
            return body
        fills["content"] = body
        used = set()
        whole = self.fill(self.parse(self.find(layout[0].name, layout[0].where), {}, None, 1), fills, used)
        for name in fills.keys() - used:
            raise Refused(f"{path}: no slot uses the fill '{name}'")
        return whole

    def fill(self, nodes, fills, used):
        result = []
        for node in nodes:
            if node.kind == "slot":
                if node.name not in fills:
                    raise Refused(f"{node.where}: the page does not fill '{node.name}'")
                used.add(node.name)
                result += fills[node.name]
                continue
            for branch in ("then", "otherwise"):
                if hasattr(node, branch):
                    setattr(node, branch, self.fill(getattr(node, branch), fills, used))
            result.append(node)
        return result

    def find(self, name, where):
        path = self.folder / f"{name}.html"
        if not NAME.match(name) or not path.is_file():
            raise Refused(f"{where}: there is no {path}")
        return path

    def parse(self, path, arguments, fills, depth):
        if depth > PARTS_MAX:
            raise Refused(f"{path}: too many nested parts")
        outer = self.pieces
        self.pieces = iter(Source(path, arguments).pieces)
        nodes, end, where = self.block(fills, depth)
        if end:
            raise Refused(f"{where}: {{{{{end}}}}} closes nothing")
        self.pieces = outer
        return nodes

    def block(self, fills, depth):
        """Parses up to {{else}}, {{/…}} or the end of the file; returns (nodes, that tag or None, position)."""
        nodes, where = [], "?"
        for kind, piece, where in self.pieces:
            if kind == "literal":
                nodes.append(Node("literal", where, text=piece))
                continue
            words = piece.split()
            if not words:
                raise Refused(f"{where}: {{{{}}}} is empty")
            if words == ["else"] or words[0].startswith("/"):
                return nodes, words[0], where
            nodes += self.tag(words, where, fills, depth)
        return nodes, None, where

    def tag(self, words, where, fills, depth):
        head = words[0]
        if head == "partial":
            return []
        if head in ("layout", "slot") and len(words) == 2 and NAME.match(words[1]):
            return [Node(head, where, name=words[1])]
        if head == "#fill" and len(words) == 2:
            if fills is None:
                raise Refused(f"{where}: only a page can fill a slot")
            fills[words[1]] = self.closed("fill", where, fills, depth)[0]
            return []
        if head in ("#each", "#with") and len(words) == 2:
            then, otherwise = self.closed(head[1:], where, fills, depth)
            return [Node(head[1:], where, path=checked_path(words[1], where), then=then, otherwise=otherwise)]
        if head == "#if":
            return [self.condition(words[1:], where, fills, depth)]
        if head == ">":
            return self.partial(words[1:], where, depth)
        if head == "t":
            return [self.text(words[1:], where)]
        if head == "word" and len(words) == 3:
            return [Node("word", where, group=words[1], path=checked_path(words[2], where))]
        if head == "picture" and len(words) == 2 and NAME.match(words[1]):
            return [Node("picture", where, name=words[1])]
        return [self.value(words, where)]

    def closed(self, name, where, fills, depth):
        then, end, _ = self.block(fills, depth)
        otherwise = []
        if end == "else" and name != "fill":
            otherwise, end, _ = self.block(fills, depth)
        if end != f"/{name}":
            raise Refused(f"{where}: {{{{#{name}}}}} is closed by {f'{{{{{end}}}}}' if end else 'nothing'}")
        return then, otherwise

    def condition(self, words, where, fills, depth):
        negated = words[:1] == ["not"]
        words = words[negated:]
        node = Node("if", where, negated=negated, equals=None, other=None)
        if len(words) == 3 and words[1] == "==":
            literal = re.fullmatch(r'"([^"]*)"', words[2])
            if literal:
                node.equals = literal[1]
            else:
                node.other = checked_path(words[2], where)
        elif len(words) != 1:
            raise Refused(f'{where}: {{{{#if path}}}}, {{{{#if not path}}}}, {{{{#if path == "word"}}}} or '
                          "{{#if path == path}}")
        node.path = checked_path(words[0], where)
        node.then, node.otherwise = self.closed("if", where, fills, depth)
        return node

    def partial(self, words, where, depth):
        if not words:
            raise Refused(f"{where}: {{{{> name}}}}")
        arguments = {}
        for word in words[1:]:
            match = re.fullmatch(r"([a-z_]+)=([A-Za-z0-9_.@-]+)", word)
            if not match:
                raise Refused(f"{where}: '{word}' is not name=value with letters, digits and _ . @ -")
            arguments[match[1]] = match[2]
        return self.parse(self.find(words[0], where), arguments, None, depth + 1)

    @staticmethod
    def text(words, where):
        if not words or not TEXT_NAME.match(words[0]):
            raise Refused(f"{where}: {{{{t name.of.text}}}}")
        values = {}
        for word in words[1:]:
            match = re.fullmatch(r"([a-z][a-z0-9_]*)=(?:([a-z]+):)?([^:,]+)(?:,([^:,]+))?", word)
            if not match:
                raise Refused(f"{where}: '{word}' is not name=path or name=type:path")
            paths = [match[3]] + ([match[4]] if match[4] else [])
            values[match[1]] = Parser.value([match[2] or "text", *paths], where)
        return Node("text", where, name=words[0], values=values)

    @staticmethod
    def value(words, where):
        kind, paths = (words[0], words[1:]) if len(words) > 1 else ("text", words)
        if kind not in TYPES:
            raise Refused(f"{where}: '{kind}' is not a type of a value; types are {', '.join(sorted(TYPES))}")
        if len(paths) != TYPES[kind]:
            raise Refused(f"{where}: '{kind}' requires {TYPES[kind]} value(s)")
        return Node("value", where, type=kind, paths=[checked_path(path, where) for path in paths])


def checked_path(path, where):
    if not PATH.match(path):
        raise Refused(f"{where}: '{path}' is not a valid name of a value")
    return path
