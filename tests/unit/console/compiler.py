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
    ("<p onclick=\"x\">", "no page has the attribute onclick"),
    ("<p style=\"color: red\">", "no page has the attribute style"),
    ("<p style=\"{{x}}\">", "no page has the attribute style"),
    ("<meta http-equiv=\"refresh\">", "no page has the attribute http-equiv"),
    ("<a href={{x}}></a>", "must stand in double quotes"),
    ("<a href='{{x}}'></a>", "must stand in double quotes"),
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
    ("<a href=\"javascript:x\"></a>", "leads out of this site"),
    ("<a href=\"https://example.com/\"></a>", "leads out of this site"),
    ("<a href=\"//example.com\"></a>", "leads out of this site"),
    ("<img src=\"data:x\">", "leads out of this site"),
    ("<form method=\"post\" action=\"https://example.com/\"></form>", "leads out of this site"),
    ("<a href=\"/a{{x}}\"></a>", "a whole part of its path"),
    ("<a href=\"/a/{{x}}b\"></a>", "a whole part of its path"),
    ("<a href=\"/a/{{x}}{{x}}\"></a>", "a whole part of its path"),
    ("<a href=\"/a?{{x}}\"></a>", "a whole part of its path"),
    ("<a href=\"/a?b={{x}}c\"></a>", "a whole part of its path"),
    ("<a href=\"/a/{{time x}}\"></a>", "'time' in an address"),
    ("<a href=\"/a{{local x}}\"></a>", "'local' is a whole address"),
    ("<a href=\"{{local x}}a\"></a>", "a whole part of its path"),
    ("<a href=\"/{{t a.text}}\"></a>", "a text in an address"),
    ("<a href=\"/a{{#if x}}b{{/if}}\"></a>", "a block within an address"),
    ("<a href=\"/{{word a x}}\"></a>", "a word in an address"),
    ("<p title=\"{{local x}}\"></p>", "'local' is for a whole address"),
    ("<p>{{local x}}</p>", "'local' is for a whole address"),
    ("<p title=\"{{t a.code}}\"></p>", "has `code`"),
    ("<p accesskey=\"{{x}}\"></p>", "in the attribute accesskey"),
    ("<input type=\"{{x}}\">", "in the attribute type"),
    ("<form method=\"{{x}}\"></form>", "in the attribute method"),
    ("<p {{x}}></p>", "in a tag stands in a double-quoted attribute"),
    ("<p {{x}}=\"y\"></p>", "in a tag stands in a double-quoted attribute"),
    ("<{{x}}>", "is no element of a page"),
    ("<p>{{#if x}}</p><p>{{/if}}</p>", None),
    ("<p>{{#if x}}</p>{{/if}}", "does not end as it began"),
    ("<p{{#if x}}>{{/if}}", "does not end as it began"),
    ("<p title=\"{{#if x}}\" class=\"{{/if}}\"></p>", "does not end as it began"),
    ("<div>{{#each x}}<b>{{/each}}</b></div>", "does not end as it began"),
    ("<script>x</script>", "script stands in a file"),
    ("<script src=\"/a.js\">x</script>", "script stands in a file"),
    ("<script src=\"/{{x}}\"></script>", "a value in <script>"),
    ("<script src=\"/a.js\">{{x}}</script>", "a value in <script>"),
    ("<link href=\"/{{x}}\">", "a value in <link>"),
    ("<meta content=\"{{x}}\">", "a value in <meta>"),
    ("<style>p {}</style>", "is no element of a page"),
    ("<iframe src=\"/\"></iframe>", "is no element of a page"),
    ("<object></object>", "is no element of a page"),
    ("<base href=\"/\">", "is no element of a page"),
    ("<svg></svg>", "is no element of a page"),
    ("<P></P>", "is no element of a page"),
    ("<p>a < b</p>", "is no element of a page"),
    ("<!-- {{x}} -->", "a comment that is not closed, or has a value in it"),
    ("<!-- x", "a comment that is not closed, or has a value in it"),
    ("{{x}}", "outside of any element"),
    ("<p>", "<p> is not closed"),
    ("<p></b>", "</b> closes <p>"),
    ("</p>", "</p> closes nothing"),
    ("<p title=\"a\"class=\"b\"></p>", "a space before class"),
    ("<p class=\"a\" class=\"b\"></p>", "class twice"),
    ("<p{{#if x}} class=\"a\"{{/if}} class=\"b\"></p>", "class twice"),
    ("<p title=\"a><b></b></p>", "is a quote missing?"),
    ("<p id=\"a\"></p><p id=\"a\"></p>", "the id a is there already"),
    ("<form action=\"/x\"></form>", "a form says method"),
    ("<form method=\"post\"><form method=\"post\"></form></form>", "a form in a form"),
    ("<p>{{}}</p>", "says nothing"),
    ("<p>{{x</p>", "not closed or not opened"),
    ("<p>x}}</p>", "not closed or not opened"),
    ("<p>{{X}}</p>", "is no name of a value"),
    ("<p>{{x..y}}</p>", "is no name of a value"),
    ("<p>{{raw x}}</p>", "is no type of a value"),
    ("<p>{{money x}}</p>", "takes 2 value(s)"),
    ("<p>{{t a.none}}</p>", "there is no text a.none"),
    ("<p>{{t a.value}}</p>", "the text a.value takes n"),
    ("<p>{{t a.text n=x}}</p>", "the text a.text takes no values"),
    ("<p>{{t a.value n=json:x}}</p>", "'json' in a text"),
    ("<p>{{word none x}}</p>", "there are no texts none"),
    ("<p>{{word a x}}</p>", "a word has neither values nor"),
    ("<p>{{#if x}}", "is closed by nothing"),
    ("<p>{{#if x}}{{/each}}</p>", "is closed by"),
    ("<p>{{/if}}</p>", "closes nothing"),
    ("<p>{{else}}</p>", "closes nothing"),
    ("<p>{{#if x = y}}{{/if}}</p>", "{{#if path}}"),
    ("<p>{{> none}}</p>", "there is no"),
    ("<p>{{> ../page}}</p>", "there is no"),
    ("<p>{{> loop}}</p>", "without an end"),
    ("<p>{{> takes}}</p>", "$name was not given"),
    ("<p>{{> takes name=\"x}}</p>", "is not name=value"),
    ("<p>{{slot x}}</p>", "a slot stands in a layout"),
    ("<p>{{layout takes}}</p>", None),
    ("{{layout whole}}{{#fill none}}x{{/fill}}", "the page fills no 'title'"),
    ("{{layout whole}}{{#fill title}}x{{/fill}}{{#fill none}}x{{/fill}}", "nothing takes what fills 'none'"),
    ("<option>{{picture x}}</option>", "a picture stands in an element"),
    ("<p title=\"{{picture x}}\"></p>", "a picture stands in an element"),
    ("<p>" + "{{#each x}}" * 9 + "{{/each}}" * 9 + "</p>", "more than 8 blocks"),
]

TEXTS_REFUSED = [
    ("[b]\n", "is no name of a text"),
    ("[a.text]\nen: x\nes: y\n", "is there already"),
    ("[b.c]\nen: x\n", "lacks 'es:'"),
    ("[b.c]\nes: x\n", "lacks 'en:'"),
    ("[b.c]\nen: x\nen: y\n", "stands twice"),
    ("[b.c]\nen: x\nes: y\n", "is used nowhere"),
    ("[b.c]\nen: {x}\nes: y\n", "the same values in both languages"),
    ("[b.c]\nen: {X}\nes: {X}\n", "a value is written {name}"),
    ("[b.c]\nen: `x\nes: y\n", "is not closed"),
    ("[b.c]\nen: {n}\nen one: {n}\nes: {n}\n", "'one' in a single language"),
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
