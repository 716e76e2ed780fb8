"""Generates the reference, one HTML page, from the descriptions of the API and of its notices.

usage: make.py OUTPUT.html OPENAPI.yaml WEBHOOKS.yaml [STYLE.css…]
With styles, the page embeds them and is a self-contained file for reading from disk. Without, it is the page
that the service serves.
"""
import html
import re
import sys

import markdown
import yaml

import examples
import languages

# Documented once, because every response has them.
COMMON_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-Request-Id",
                  "Content-Language", "Vary", "Cache-Control")
HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Reference · {title}</title>
{style}</head>
<body>
"""
SERVED = """<link rel="icon" href="/favicon.ico" sizes="32x32">
<link rel="icon" href="/assets/mark.svg" type="image/svg+xml">
<link rel="stylesheet" href="/assets/verify.css">
<link rel="stylesheet" href="/assets/reference.css">
"""
HOW_TO_RUN = """<p>Examples read the base address of the interface, which ends in <code>/v1</code>, and the key from the
environment, so that programs contain no key. They need only the language's standard library.</p>
<pre tabindex="0"><code>export CONSTANCIA_URL=https://register.example.org/v1
export CONSTANCIA_KEY=svc_test_…</code></pre>
<table><caption>How to run the examples</caption>
<thead><tr><th scope="col">Language</th><th scope="col">Command</th></tr></thead>
<tbody>
<tr><th scope="row">curl 7.76 or later</th><td><code>sh example.sh</code></td></tr>
<tr><th scope="row">Python 3.8 or later</th><td><code>python3 example.py</code></td></tr>
<tr><th scope="row">TypeScript: Node 18 or later</th><td><code>npx tsx example.mts</code>; without type annotations
also <code>node example.mjs</code></td></tr>
<tr><th scope="row">Java 17 or later</th><td><code>java Example.java</code></td></tr>
<tr><th scope="row">Go 1.19 or later</th><td><code>go run example.go</code></td></tr>
<tr><th scope="row">PHP 8 or later</th><td><code>php example.php</code></td></tr>
<tr><th scope="row">C#: .NET 5 or later, or Mono 6</th><td><code>dotnet run</code>, or
<code>mcs -r:System.Net.Http Example.cs &amp;&amp; mono Example.exe</code></td></tr>
</tbody></table>
"""


def text(words):
    return html.escape(words)


def prose(words):
    return markdown.markdown(words or "", extensions=["tables"], output_format="html")


def phrase(words):
    """Renders text for a table cell, without the enclosing paragraph."""
    made = prose(words)
    return made[3:-4] if made.count("<p>") == 1 and made.startswith("<p>") and made.endswith("</p>") else made


def code(words):
    return f"<code>{text(str(words))}</code>"


def table(caption, columns, rows):
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "".join(f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) +
                   "</tr>\n" for first, *rest in rows)
    return (f"<table><caption>{caption}</caption>\n<thead><tr>{head}</tr></thead>\n"
            f"<tbody>\n{body}</tbody></table>\n")


# ---- schemas ----

def link_to(reference):
    name = reference.rpartition("/")[2]
    return f'<a href="#schema-{name}">{name}</a>'


def bounds_of(schema):
    found = []
    if "format" in schema:
        found.append(text(schema["format"]))
    if "contentEncoding" in schema:
        found.append(text(schema["contentEncoding"]))
    for key, words in (("minimum", "at least"), ("maximum", "at most"), ("minLength", "minimum length"),
                       ("maxLength", "maximum length")):
        if key in schema:
            found.append(f"{words} {schema[key]}")
    if "default" in schema:
        found.append("default " + code(schema["default"]))
    if "pattern" in schema:
        found.append(code(schema["pattern"]))
    return found


def type_of(schema):
    """Returns a short description of a schema."""
    if "$ref" in schema:
        return link_to(schema["$ref"])
    for key, glue in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        if key in schema:
            return glue.join(type_of(each) for each in schema[key])
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return ", ".join("null" if each is None else code(each) for each in schema["enum"])
    types = schema.get("type", "any")
    words = " or ".join([types] if isinstance(types, str) else types)
    if "items" in schema:
        words = words.replace("array", "list of " + type_of(schema["items"]))
    return ", ".join([words, *bounds_of(schema)])


def member_rows(document, schema):
    for part in schema.get("allOf", ()):
        yield from member_rows(document, examples.resolve(document, part))
    for name, member in schema.get("properties", {}).items():
        always = "" if name in schema.get("required", ()) else " <small>optional</small>"
        yield code(name) + always, type_of(member), phrase(member.get("description", ""))


def schema_section(document, name, schema):
    rows = list(member_rows(document, schema))
    body = "" if rows else f"<p>{type_of(schema)}</p>\n"
    return (f'<section id="schema-{name}">\n<h3>{name}</h3>\n' + prose(schema.get("description", "")) + body +
            table("Members", ("Name", "Type", "Meaning"), rows) + "</section>\n")


# ---- operations ----

def parameter_rows(document, item, operation):
    for parameter in examples.parameters_of(document, item, operation):
        always = "" if parameter.get("required") else " <small>optional</small>"
        yield (code(parameter["name"]) + always, parameter["in"], type_of(parameter["schema"]),
               phrase(parameter.get("description", "")))


def content_of(content):
    """Describes a body; the media type is omitted for JSON only."""
    if list(content) == ["application/json"]:
        return type_of(content["application/json"]["schema"])
    return "<br>".join(f"{code(media_type)}: {type_of(each['schema'])}" if "schema" in each else code(media_type)
                       for media_type, each in content.items())


def answer_rows(document, operation):
    for status, response in operation["responses"].items():
        response = examples.resolve(document, response)
        own = [code(name) for name in response.get("headers", {}) if name not in COMMON_HEADERS]
        headers = f"<br>Additional headers: {', '.join(own)}" if own else ""
        yield (code(status), phrase(response["description"]) + headers,
               content_of(response.get("content", {})) or "no body")


def program(request):
    title = f"<p>{text(request.title)}</p>\n" if request.title else ""
    made = "".join(
        f'<div class="example {key}"><h5>{text(name)}</h5>\n'
        f'<pre tabindex="0"><code>{text(write(request))}</code></pre></div>\n'
        for key, name, _, write in languages.LANGUAGES)
    return title + made


def operation_section(document, path, method, item):
    operation = item[method]
    target = examples.target_of(document, path, item, operation, {
        each["name"]: "{" + each["name"] + "}" for each in
        examples.parameters_of(document, item, operation)}).partition("?")[0]
    target = target.replace("%7B", "{").replace("%7D", "}")
    body = examples.resolve(document, operation.get("requestBody", {}))
    key = "" if operation.get("security", True) else "<p>Requires no key.</p>\n"
    return (f'<section id="{operation["operationId"]}">\n<h3>{text(operation["summary"])}</h3>\n'
            f'<p class="call"><code>{method.upper()} {text(target)}</code></p>\n' + key +
            prose(operation.get("description", "")) +
            table("Parameters", ("Name", "Location", "Type", "Meaning"),
                  list(parameter_rows(document, item, operation))) +
            (f'<p>Body: {content_of(body["content"])}</p>\n' if body else "") +
            table("Responses", ("Status", "Meaning", "Body"), list(answer_rows(document, operation))) +
            "<h4>Examples</h4>\n" +
            "".join(map(program, examples.requests_of(document, path, method, item))) + "</section>\n")


def notice_section(document, name, item):
    operation = item["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    data = [part["properties"]["data"] for part in body["allOf"] if "data" in part.get("properties", {})]
    return (f'<section id="{operation["operationId"]}">\n<h3>{text(operation["summary"])}</h3>\n'
            f'<p class="call">{code(name)}</p>\n' + prose(operation.get("description", "")) +
            f'<p>Body: {type_of(body["allOf"][0])}, its <code>data</code> {type_of(data[0])}</p>\n</section>\n')


# ---- the page ----

def contents(interface, notices):
    """Returns the table of contents."""
    made = '<nav aria-label="Contents">\n<ul>\n'
    for tag in interface["tags"]:
        made += f'<li><a href="#{tag["name"]}">{tag["name"].capitalize()}</a>\n<ul>\n'
        for path, method, item in examples.operations_of(interface):
            if tag["name"] in item[method]["tags"]:
                made += (f'<li><a href="#{item[method]["operationId"]}">{text(item[method]["summary"])}'
                         "</a></li>\n")
        made += "</ul></li>\n"
    made += '<li><a href="#notices">Notices</a>\n<ul>\n'
    for name, item in notices["webhooks"].items():
        made += f'<li><a href="#{item["post"]["operationId"]}">{text(item["post"]["summary"])}</a></li>\n'
    return made + '</ul></li>\n<li><a href="#records">Records</a></li>\n</ul>\n</nav>\n'


def choice():
    """Returns radio buttons that select the language of the examples, with CSS only."""
    made = "".join(
        f'<label for="in-{key}"><input type="radio" name="language" id="in-{key}"'
        f'{" checked" if key == "curl" else ""}>{text(name)}</label>\n'
        for key, name, _, _ in languages.LANGUAGES)
    return f'<fieldset class="choice">\n<legend>Examples in</legend>\n{made}</fieldset>\n'


def keys_section(interface):
    made = '<section id="keys">\n<h2>Keys and headers</h2>\n<ul>\n'
    for scheme in interface["components"]["securitySchemes"].values():
        made += f'<li>{phrase(scheme.get("description", ""))}{code(scheme["name"]) if "name" in scheme else ""}</li>\n'
    rows = [(code(name), phrase(header.get("description", "")))
            for name, header in interface["components"]["headers"].items() if name in COMMON_HEADERS]
    return made + "</ul>\n" + table("Headers of every response", ("Header", "Meaning"), rows) + "</section>\n"


def notices_part(notices):
    made = f'<h2 id="notices">Notices</h2>\n{prose(notices["info"]["summary"])}'
    rows = [(code(each["name"]), phrase(each.get("description", "")))
            for each in notices["components"]["parameters"].values()]
    made += table("Headers of every notice", ("Header", "Meaning"), rows)
    return made + "".join(notice_section(notices, name, item) for name, item in notices["webhooks"].items())


def records_part(interface, notices):
    made = '<h2 id="records">Records</h2>\n'
    for document in (interface, notices):
        for name, schema in document["components"]["schemas"].items():
            if document is interface or name not in interface["components"]["schemas"]:
                made += schema_section(document, name, schema)
    return made


def page(interface, notices, styles):
    title = interface["info"]["title"]
    inside = "".join(re.sub(r"@font-face \{.*?\}\n", "", style) for style in styles)
    made = HEAD.format(title=text(title), style=f"<style>\n{inside}</style>\n" if styles else SERVED)
    made += "<header>\n<p>" + (text(title) if styles else '<a href="/docs">Documentation</a>') + "</p>\n</header>\n"
    made += f'<main>\n<h1>Reference</h1>\n<p class="note">Version {text(interface["info"]["version"])}</p>\n'
    made += contents(interface, notices)
    made += '<section id="introduction">\n<h2>Introduction</h2>\n' + prose(interface["info"]["description"]) + "</section>\n"
    made += keys_section(interface)
    made += f'<section id="examples">\n<h2>Examples</h2>\n{HOW_TO_RUN}</section>\n' + choice()
    for tag in interface["tags"]:
        made += f'<h2 id="{tag["name"]}">{tag["name"].capitalize()}</h2>\n{prose(tag["description"])}\n'
        made += "".join(operation_section(interface, path, method, item)
                        for path, method, item in examples.operations_of(interface)
                        if tag["name"] in item[method]["tags"])
    return made + notices_part(notices) + records_part(interface, notices) + "</main>\n</body>\n</html>\n"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    output, openapi, webhooks, *style_paths = sys.argv[1:]
    made = page(yaml.safe_load(read(openapi)), yaml.safe_load(read(webhooks)), [read(path) for path in style_paths])
    with open(output, "w", encoding="utf-8") as out:
        out.write(made)
