"""What the compiler of pages refuses, and that it says where and why.

usage: compiler.py COMPILER
"""
import importlib
import pathlib
import re
import sys
import tempfile

TEXTS = "[a.text]\nen: A text\nes: Un texto\n[a.code]\nen: `x`\nes: `x`\n[a.value]\nen: {n} x\nes: {n} y\n"
USES = "<p>{{t a.text}}{{t a.code}}{{t a.value n=x}}</p>\n"

# A page, and what is said of it.
REFUSED = [
    ("<p onclick=\"x\">", "the attribute onclick is not allowed"),
    ("<p style=\"color: red\">", "the attribute style is not allowed"),
    ("<p style=\"{{x}}\">", "the attribute style is not allowed"),
    ("<meta http-equiv=\"refresh\">", "the attribute http-equiv is not allowed"),
    ("<a href={{x}}></a>", "must be in double quotes"),
    ("<a href='{{x}}'></a>", "must be in double quotes"),
    ("<a href=\"{{x}}\"></a>", "at the beginning of an address"),
    ("<a href=\"https://{{x}}/\"></a>", "at the beginning of an address"),
    ("<a href=\"//{{x}}/\"></a>", "at the beginning of an address"),
    ("<a href=\"/{{x}}\"></a>", "at the beginning of an address"),
    ("<a href=\"/{{x}}/{{y}}\"></a>", "at the beginning of an address"),
    ("<a href=\"/{{x}}/example.com\"></a>", "at the beginning of an address"),
    ("<a href=\"/\t/{{x}}/\"></a>", "at the beginning of an address"),
    ("<a href=\"/\n/{{x}}/\"></a>", "at the beginning of an address"),
    ("<a href=\"/\\{{x}}/\"></a>", "at the beginning of an address"),
    ("<a href=\"/&sol;{{x}}/\"></a>", "at the beginning of an address"),
    ("<form method=\"post\" action=\"/./{{x}}\"></form>", "at the beginning of an address"),
    ("<a href=\"/\t/example.com\"></a>", "'\\t' in href"),
    ("<a href=\"/\n/example.com\"></a>", "'\\n' in href"),
    ("<a href=\" //example.com\"></a>", "' ' in href"),
    ("<a href=\"/\\example.com\"></a>", "'\\\\' in href"),
    ("<img src=\"/&#47;example.com\">", "'&' in src"),
    ("<a href=\"/a/{{x}}?b=c&d={{y}}\"></a>", "'&' in href"),
    ("<form method=\"post\" action=\"/a/{{x}}/\t\"></form>", "'\\t' in action"),
    ("<a href=\"javascript:{{x}}\"></a>", "at the beginning of an address"),
    ("<a href=\"javascript:x\"></a>", "refers to another site"),
    ("<a href=\"https://example.com/\"></a>", "refers to another site"),
    ("<a href=\"//example.com\"></a>", "refers to another site"),
    ("<img src=\"data:x\">", "refers to another site"),
    ("<form method=\"post\" action=\"https://example.com/\"></form>", "refers to another site"),
    ("<a href=\"/a{{x}}\"></a>", "a complete part of its path"),
    ("<a href=\"/a/{{x}}b\"></a>", "a complete part of its path"),
    ("<a href=\"/a/{{x}}{{x}}\"></a>", "a complete part of its path"),
    ("<a href=\"/a?{{x}}\"></a>", "a complete part of its path"),
    ("<a href=\"/a?b={{x}}c\"></a>", "a complete part of its path"),
    ("<a href=\"/a/{{time x}}\"></a>", "'time' in an address"),
    ("<a href=\"/a{{local x}}\"></a>", "'local' must be the complete address"),
    ("<a href=\"{{local x}}a\"></a>", "a complete part of its path"),
    ("<a href=\"/{{t a.text}}\"></a>", "a text in an address"),
    ("<a href=\"/a{{#if x}}b{{/if}}\"></a>", "a block within an address"),
    ("<a href=\"/{{word a x}}\"></a>", "a word in an address"),
    ("<p title=\"{{local x}}\"></p>", "'local' requires a complete address"),
    ("<p>{{local x}}</p>", "'local' requires a complete address"),
    ("<p title=\"{{t a.code}}\"></p>", "contains `code`"),
    ("<p accesskey=\"{{x}}\"></p>", "in the attribute accesskey"),
    ("<input type=\"{{x}}\">", "in the attribute type"),
    ("<form method=\"{{x}}\"></form>", "in the attribute method"),
    ("<p {{x}}></p>", "in a tag must be in a double-quoted attribute"),
    ("<p {{x}}=\"y\"></p>", "in a tag must be in a double-quoted attribute"),
    ("<{{x}}>", "is not an allowed element"),
    ("<p>{{#if x}}</p><p>{{/if}}</p>", None),
    ("<p>{{#if x}}</p>{{/if}}", "must be complete elements"),
    ("<p{{#if x}}>{{/if}}", "must be complete elements"),
    ("<p title=\"{{#if x}}\" class=\"{{/if}}\"></p>", "must be complete elements"),
    ("<div>{{#each x}}<b>{{/each}}</b></div>", "must be complete elements"),
    ("<script>x</script>", "script must be in a file"),
    ("<script src=\"/a.js\">x</script>", "script must be in a file"),
    ("<script src=\"/{{x}}\"></script>", "a value in <script>"),
    ("<script src=\"/a.js\">{{x}}</script>", "a value in <script>"),
    ("<link href=\"/{{x}}\">", "a value in <link>"),
    ("<meta content=\"{{x}}\">", "a value in <meta>"),
    ("<style>p {}</style>", "is not an allowed element"),
    ("<iframe src=\"/\"></iframe>", "is not an allowed element"),
    ("<object></object>", "is not an allowed element"),
    ("<base href=\"/\">", "is not an allowed element"),
    ("<svg></svg>", "is not an allowed element"),
    ("<P></P>", "is not an allowed element"),
    ("<p>a < b</p>", "is not an allowed element"),
    ("<!-- {{x}} -->", "a comment is not closed or contains a value"),
    ("<!-- x", "a comment is not closed or contains a value"),
    ("{{x}}", "outside of any element"),
    ("<p>", "<p> is not closed"),
    ("<p></b>", "</b> closes <p>"),
    ("</p>", "</p> closes nothing"),
    ("<p title=\"a\"class=\"b\"></p>", "a space is missing before class"),
    ("<p class=\"a\" class=\"b\"></p>", "class twice"),
    ("<p{{#if x}} class=\"a\"{{/if}} class=\"b\"></p>", "class twice"),
    ("<p title=\"a><b></b></p>", "is a quote missing?"),
    ("<p id=\"a\"></p><p id=\"a\"></p>", "the id a already exists"),
    ("<form action=\"/x\"></form>", "a form requires method"),
    ("<form method=\"post\"><form method=\"post\"></form></form>", "a form inside a form"),
    ("<p>{{}}</p>", "is empty"),
    ("<p>{{x</p>", "unbalanced"),
    ("<p>x}}</p>", "unbalanced"),
    ("<p>{{X}}</p>", "is not a valid name of a value"),
    ("<p>{{x..y}}</p>", "is not a valid name of a value"),
    ("<p>{{raw x}}</p>", "is not a type of a value"),
    ("<p>{{money x}}</p>", "requires 2 value(s)"),
    ("<p>{{t a.none}}</p>", "there is no text a.none"),
    ("<p>{{t a.value}}</p>", "the text a.value needs n"),
    ("<p>{{t a.text n=x}}</p>", "the text a.text needs no values"),
    ("<p>{{t a.value n=json:x}}</p>", "'json' in a text"),
    ("<p>{{word none x}}</p>", "there are no texts none"),
    ("<p>{{word a x}}</p>", "a word must not contain values"),
    ("<p>{{#if x}}", "is closed by nothing"),
    ("<p>{{#if x}}{{/each}}</p>", "is closed by"),
    ("<p>{{/if}}</p>", "closes nothing"),
    ("<p>{{else}}</p>", "closes nothing"),
    ("<p>{{#if x = y}}{{/if}}</p>", "{{#if path}}"),
    ("<p>{{> none}}</p>", "there is no"),
    ("<p>{{> ../page}}</p>", "there is no"),
    ("<p>{{> loop}}</p>", "too many nested parts"),
    ("<p>{{> takes}}</p>", "$name has no value"),
    ("<p>{{> takes name=\"x}}</p>", "is not name=value"),
    ("<p>{{slot x}}</p>", "a slot must be in a layout"),
    ("<p>{{layout takes}}</p>", None),
    ("{{layout whole}}{{#fill none}}x{{/fill}}", "the page does not fill 'title'"),
    ("{{layout whole}}{{#fill title}}x{{/fill}}{{#fill none}}x{{/fill}}", "no slot uses the fill 'none'"),
    ("<option>{{picture x}}</option>", "a picture must be in an element"),
    ("<p title=\"{{picture x}}\"></p>", "a picture must be in an element"),
    ("<p>" + "{{#each x}}" * 9 + "{{/each}}" * 9 + "</p>", "more than 8 nested blocks"),
]

TEXTS_REFUSED = [
    ("[b]\n", "is not a valid name of a text"),
    ("[a.text]\nen: x\nes: y\n", "already exists"),
    ("[b.c]\nen: x\n", "lacks 'es:'"),
    ("[b.c]\nes: x\n", "lacks 'en:'"),
    ("[b.c]\nen: x\nen: y\n", "occurs twice"),
    ("[b.c]\nen: x\nes: y\n", "is not used"),
    ("[b.c]\nen: {x}\nes: y\n", "the same values in both languages"),
    ("[b.c]\nen: {X}\nes: {X}\n", "a value must be written as {name}"),
    ("[b.c]\nen: `x\nes: y\n", "is not closed"),
    ("[b.c]\nen: {n}\nen one: {n}\nes: {n}\n", "'one' in only one language"),
    ("[b.c]\nen: x\nen one: x\nes: x\nes one: x\n", "but no value {n}"),
    ("what?\n", "expected [name]"),
]


def compile_page(compiler, page, texts=TEXTS):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "texts.txt").write_text(texts, encoding="utf-8")
        (folder / "page.html").write_text(page, encoding="utf-8")
        (folder / "uses.html").write_text(USES, encoding="utf-8")
        (folder / "loop.html").write_text("{{partial}}{{> loop}}", encoding="utf-8")
        (folder / "takes.html").write_text("{{partial}}<b>$name</b>", encoding="utf-8")
        (folder / "whole.html").write_text("{{partial}}<p>{{slot title}}{{slot content}}</p>", encoding="utf-8")
        try:
            compiler.main([str(folder / "o.c"), str(folder / "o.h"), str(folder / "texts.txt"),
                           *map(str, folder.glob("*.html"))])
        except compiler.Refused as refused:
            return str(refused)
        return ""


def main():
    failed = 0
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
    compiler = importlib.import_module(pathlib.Path(sys.argv[1]).stem)
    cases = [(page, TEXTS, said) for page, said in REFUSED if said]
    cases += [("<p></p>", TEXTS + texts, said) for texts, said in TEXTS_REFUSED]
    for page, texts, said in cases:
        message = compile_page(compiler, page, texts)
        where = re.match(r"\S+/(?:page|loop|takes|whole|texts)\.(?:html|txt)(?::\d+)?: ", message)
        if said not in message or not where:
            print(f"{page!r} {texts[len(TEXTS):]!r}: not '{said}': {message}")
            failed += 1
    message = compile_page(compiler, '<p><a href="/a/{{x}}?b={{y}}&amp;c=%20#d">{{x}}</a><a href="/?b={{x}}">y</a></p>')
    failed += message != ""
    print(f"{len(cases) + 1 - failed} passed, {failed} failed {message}")
    return 1 if failed else 0


sys.exit(main())
