"""Generates a program for a request in each language, using only the standard library. The programs read the base
address of the interface, which ends in /v1, and the key from the environment (CONSTANCIA_URL, CONSTANCIA_KEY), and
print status and body, or write the body to a file. If the status is not 2xx, they print the Error record and fail."""
import json
import textwrap

from examples import File


def quoted(text):
    """Returns a string literal for languages that accept JSON strings."""
    return json.dumps(text, ensure_ascii=False)


def pretty(value):
    return json.dumps(value, indent=2, ensure_ascii=False)


def indent(text, spaces):
    """Indents all lines except the first."""
    return text.replace("\n", "\n" + " " * spaces)


def literal(value, words, arrow, brackets, string):
    """Returns a literal of a language; `words` are its true, false and null."""
    if value is True or value is False or value is None:
        return words[value]
    if isinstance(value, dict):
        inner = [f"{string(name)}{arrow} {literal(each, words, arrow, brackets, string)}"
                 for name, each in value.items()]
        if not inner:
            return brackets[2]
        return brackets[0] + "\n    " + indent(",\n".join(inner), 4) + ",\n" + brackets[1]
    if isinstance(value, list):
        return "[" + ", ".join(literal(each, words, arrow, brackets, string) for each in value) + "]"
    return string(value) if isinstance(value, str) else repr(value)


BASE = "/v1"


def below_base(request):
    """Returns the target after the base address; None: the page is next to it, not below."""
    return request.target.removeprefix(BASE) if request.target.startswith(f"{BASE}/") else None


# ---- curl ----

def shell(text):
    return "'" + text.replace("'", "'\\''") + "'"


def curl(request):
    words = ["curl -sS --fail-with-body"]
    if request.method not in ("GET", "POST") or (request.method == "POST" and request.json is None
                                                 and not request.form):
        words[0] += f" -X {request.method}"
    if request.saves:
        words[0] += f" -o {shell(request.saves)}"
    below = below_base(request)
    words[0] += f' "${{CONSTANCIA_URL%{BASE}}}{request.target}"' if below is None else f' "$CONSTANCIA_URL{below}"'
    if request.secured:
        words.append('-H "Authorization: Bearer $CONSTANCIA_KEY"')
    words += [f"-H {shell(f'{name}: {value}')}" for name, value in request.headers.items()]
    if request.json is not None:
        words.append(f"-d {shell(pretty(request.json))}")
    for name, value in (request.form or {}).items():
        words.append(f"-F {shell(f'{name}=@{value.name}' if isinstance(value, File) else f'{name}={value}')}")
    return " \\\n  ".join(words) + "\n"


# ---- Python ----

def python_literal(value):
    return literal(value, {True: "True", False: "False", None: "None"}, ":", ("{", "}", "{}"), quoted)


PYTHON_FORM = '''boundary = uuid.uuid4().hex


def field(name, content, more=""):
    head = f'--{boundary}\\r\\nContent-Disposition: form-data; name="{name}"{more}\\r\\n\\r\\n'
    return head.encode() + content + b"\\r\\n"


'''


def python_form(form):
    lines, opened = [], None
    for name, value in form.items():
        if isinstance(value, File):
            opened = value.name
            more = quoted(f'; filename="{value.name}"')
            lines.append(f"body += field({quoted(name)}, file.read(), {more})")
        else:
            lines.append(f"body += field({quoted(name)}, {quoted(str(value))}.encode())")
    text = 'body = b""\n'
    for line in lines:
        if "file.read()" in line:
            text += f'with open({quoted(opened)}, "rb") as file:\n    {line}\n'
        else:
            text += line + "\n"
    return PYTHON_FORM + text + 'body += f"--{boundary}--\\r\\n".encode()\n\n'


def python(request):
    modules = ["os", "sys", "urllib.error", "urllib.request"]
    headers, data, before = [], None, ""
    if request.secured:
        headers.append('"Authorization": "Bearer " + os.environ["CONSTANCIA_KEY"],')
    headers += [f"{quoted(name)}: {quoted(value)}," for name, value in request.headers.items()]
    if request.json is not None:
        modules.append("json")
        data = f"json.dumps({indent(python_literal(request.json), 4)}).encode()"
    if request.form:
        modules.append("uuid")
        before = python_form(request.form)
        headers.append('"Content-Type": f"multipart/form-data; boundary={boundary}",')
        data = "body"
    below = below_base(request)
    if below is None:
        modules.append("urllib.parse")
        address = f'urllib.parse.urljoin(os.environ["CONSTANCIA_URL"], {quoted(request.target[1:])}),'
    else:
        address = f'os.environ["CONSTANCIA_URL"] + {quoted(below)},'
    call = [address, f"method={quoted(request.method)},"]
    if headers:
        call.append("headers={\n    " + "\n    ".join(headers) + "\n},")
    if data:
        call.append(f"data={data},")
    result = (f'with open({quoted(request.saves)}, "wb") as file:\n            file.write(answer.read())'
              if request.saves else "print(answer.status, answer.read().decode())")
    return ("".join(f"import {name}\n" for name in sorted(modules)) + "\n" + before +
            "request = urllib.request.Request(\n" + textwrap.indent("\n".join(call), "    ") + "\n)\n"
            "try:\n    with urllib.request.urlopen(request) as answer:\n        " + result +
            '\nexcept urllib.error.HTTPError as refusal:\n'
            '    sys.exit(f"{refusal.code} {refusal.read().decode()}")\n')


# ---- TypeScript ----

def typescript(request):
    imports, before, options = [], "", []
    if request.method != "GET":
        options.append(f"method: {quoted(request.method)},")
    headers = ["Authorization: `Bearer ${process.env.CONSTANCIA_KEY}`,"] if request.secured else []
    headers += [f"{quoted(name)}: {quoted(value)}," for name, value in request.headers.items()]
    if headers:
        options.append("headers: {\n  " + "\n  ".join(headers) + "\n},")
    if request.json is not None:
        options.append(f"body: JSON.stringify({pretty(request.json)}),")
    if request.form:
        before = "const form = new FormData();\n"
        for name, value in request.form.items():
            if isinstance(value, File):
                imports.append("readFileSync")
                before += (f"form.append({quoted(name)}, new Blob([readFileSync({quoted(value.name)})]), "
                           f"{quoted(value.name)});\n")
            else:
                before += f"form.append({quoted(name)}, {quoted(str(value))});\n"
        options.append("body: form,")
    if request.saves:
        imports.append("writeFileSync")
        result = f"writeFileSync({quoted(request.saves)}, Buffer.from(await answer.arrayBuffer()));\n"
    else:
        result = "console.log(answer.status, await answer.text());\n"
    inner = "".join(textwrap.indent(each, "  ") + "\n" for each in options)
    below = below_base(request)
    address = (f"new URL({quoted(request.target[1:])}, process.env.CONSTANCIA_URL)" if below is None
               else f"process.env.CONSTANCIA_URL + {quoted(below)}")
    return ((f'import {{ {", ".join(imports)} }} from "node:fs";\n\n' if imports else "") + before +
            f"const answer = await fetch({address}" +
            (f", {{\n{inner}}}" if inner else "") + ");\n"
            "if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);\n" + result +
            ("" if imports else "export {};\n"))


# ---- Java ----

def java_block(text):
    return '"""\n' + text.replace("\\", "\\\\").replace('"""', '\\"""') + '"""'


JAVA_FORM = '''    static final String BOUNDARY = UUID.randomUUID().toString();

    static BodyPublisher field(String name, BodyPublisher content, String more) {
        var head = "--" + BOUNDARY + "\\r\\nContent-Disposition: form-data; name=\\"" + name + "\\"" + more
            + "\\r\\n\\r\\n";
        return BodyPublishers.concat(BodyPublishers.ofString(head), content, BodyPublishers.ofString("\\r\\n"));
    }

'''


def java_form(form):
    parts = []
    for name, value in form.items():
        if isinstance(value, File):
            more = quoted(f'; filename="{value.name}"')
            parts.append(f"field({quoted(name)}, BodyPublishers.ofFile(Path.of({quoted(value.name)})), {more})")
        else:
            parts.append(f'field({quoted(name)}, BodyPublishers.ofString({quoted(str(value))}), "")')
    parts.append('BodyPublishers.ofString("--" + BOUNDARY + "--\\r\\n")')
    return "BodyPublishers.concat(\n    " + ",\n    ".join(parts) + ")"


def java(request):
    imports = {"java.net.URI", "java.net.http.HttpClient", "java.net.http.HttpRequest",
               "java.net.http.HttpResponse.BodyHandlers"}
    calls, members, publisher = [], "", "BodyPublishers.noBody()"
    if request.secured:
        calls.append('.header("Authorization", "Bearer " + System.getenv("CONSTANCIA_KEY"))')
    calls += [f".header({quoted(name)}, {quoted(value)})" for name, value in request.headers.items()]
    if request.json is not None:
        publisher = f"BodyPublishers.ofString({java_block(pretty(request.json))})"
    if request.form:
        imports |= {"java.net.http.HttpRequest.BodyPublisher", "java.nio.file.Path", "java.util.UUID"}
        members, publisher = JAVA_FORM, java_form(request.form)
        calls.append('.header("Content-Type", "multipart/form-data; boundary=" + BOUNDARY)')
    if request.method != "GET":
        imports.add("java.net.http.HttpRequest.BodyPublishers")
        calls.append(f".method({quoted(request.method)}, {publisher})")
    if request.saves:
        imports |= {"java.nio.file.Files", "java.nio.file.Path"}
        handler, text = "ofByteArray", "new String(answer.body())"
        result = f"Files.write(Path.of({quoted(request.saves)}), answer.body());"
    else:
        handler, text = "ofString", "answer.body()"
        result = 'System.out.println(answer.statusCode() + " " + answer.body());'
    below = below_base(request)
    address = (f'URI.create(System.getenv("CONSTANCIA_URL")).resolve({quoted(request.target[1:])})' if below is None
               else f'URI.create(System.getenv("CONSTANCIA_URL") + {quoted(below)})')
    body = (f"var uri = {address};\n"
            "var request = HttpRequest.newBuilder(uri)\n    " +
            "".join(indent(call, 4) + "\n    " for call in calls) + ".build();\n"
            f"var answer = HttpClient.newHttpClient().send(request, BodyHandlers.{handler}());\n"
            "if (answer.statusCode() >= 300) {\n"
            f'    System.err.println(answer.statusCode() + " " + {text});\n'
            "    System.exit(1);\n}\n" + result + "\n")
    return ("".join(f"import {name};\n" for name in sorted(imports)) +
            "\npublic class Example {\n" + members +
            "    public static void main(String[] arguments) throws Exception {\n" +
            textwrap.indent(body, " " * 8) + "    }\n}\n")


# ---- Go ----

def go_raw(text):
    return "`" + text.replace("`", '` + "`" + `') + "`"


GO_CHECK = "if err != nil {\n\tlog.Fatal(err)\n}\n"


def go_form(form):
    text = "var body bytes.Buffer\nform := multipart.NewWriter(&body)\n"
    for name, value in form.items():
        if isinstance(value, File):
            text += (f"content, err := os.ReadFile({quoted(value.name)})\n" + GO_CHECK +
                     f"part, err := form.CreateFormFile({quoted(name)}, {quoted(value.name)})\n" +
                     GO_CHECK + "if _, err := part.Write(content); err != nil {\n\tlog.Fatal(err)\n}\n")
        else:
            text += (f"if err := form.WriteField({quoted(name)}, {quoted(str(value))}); err != nil "
                     "{\n\tlog.Fatal(err)\n}\n")
    return text + "if err := form.Close(); err != nil {\n\tlog.Fatal(err)\n}\n\n"


def go(request):
    imports = {"fmt", "io", "log", "net/http", "os"}
    text, reader = "", "nil"
    if request.form:
        imports |= {"bytes", "mime/multipart"}
        text, reader = go_form(request.form), "&body"
    if request.json is not None:
        imports.add("strings")
        text += f"body := {go_raw(pretty(request.json))}\n"
        reader = "strings.NewReader(body)"
    below = below_base(request)
    if below is None:
        imports.add("strings")
        address = f'strings.TrimSuffix(os.Getenv("CONSTANCIA_URL"), {quoted(BASE)})+{quoted(request.target)}'
    else:
        address = f'os.Getenv("CONSTANCIA_URL")+{quoted(below)}'
    text += f"request, err := http.NewRequest({quoted(request.method)}, {address}, {reader})\n" + GO_CHECK
    if request.secured:
        text += 'request.Header.Set("Authorization", "Bearer "+os.Getenv("CONSTANCIA_KEY"))\n'
    for name, value in request.headers.items():
        text += f"request.Header.Set({quoted(name)}, {quoted(value)})\n"
    if request.form:
        text += 'request.Header.Set("Content-Type", form.FormDataContentType())\n'
    text += ("answer, err := http.DefaultClient.Do(request)\n" + GO_CHECK + "defer answer.Body.Close()\n"
             "result, err := io.ReadAll(answer.Body)\n" + GO_CHECK +
             'if answer.StatusCode >= 300 {\n\tlog.Fatalf("%s %s", answer.Status, result)\n}\n')
    if request.saves:
        imports.discard("fmt")
        text += f"if err := os.WriteFile({quoted(request.saves)}, result, 0o644); err != nil {{\n\tlog.Fatal(err)\n}}\n"
    else:
        text += "fmt.Println(answer.StatusCode, string(result))\n"
    return ("package main\n\nimport (\n" + "".join(f'\t"{name}"\n' for name in sorted(imports)) +
            ")\n\nfunc main() {\n" + textwrap.indent(text, "\t") + "}\n")


# ---- PHP ----

def php_string(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def php_literal(value):
    return literal(value, {True: "true", False: "false", None: "null"}, " =>",
                   ("[", "]", "new stdClass"), php_string)


PHP_FORM = '''$boundary = bin2hex(random_bytes(16));

function field(string $name, string $content, string $more = ''): string
{
    global $boundary;
    return "--$boundary\\r\\nContent-Disposition: form-data; name=\\"$name\\"$more\\r\\n\\r\\n$content\\r\\n";
}

'''


def php_form(form):
    parts = []
    for name, value in form.items():
        if isinstance(value, File):
            more = php_string(f'; filename="{value.name}"')
            parts.append(f"field({php_string(name)}, file_get_contents({php_string(value.name)}), {more})")
        else:
            parts.append(f"field({php_string(name)}, {php_string(str(value))})")
    return PHP_FORM + "$body = " + "\n    . ".join(parts) + '\n    . "--$boundary--\\r\\n";\n'


def php(request):
    before, content = "", None
    headers = ["'Authorization: Bearer ' . getenv('CONSTANCIA_KEY'),"] if request.secured else []
    headers += [php_string(f"{name}: {value}") + "," for name, value in request.headers.items()]
    if request.json is not None:
        content = f"json_encode({php_literal(request.json)})"
    if request.form:
        before, content = php_form(request.form), "$body"
        headers.append("\"Content-Type: multipart/form-data; boundary=$boundary\",")
    options = [f"'method' => {php_string(request.method)},"]
    if headers:
        options.append("'header' => [\n    " + "\n    ".join(headers) + "\n],")
    if content:
        options.append(f"'content' => {content},")
    options.append("'ignore_errors' => true, // to read the body of errors")
    below = below_base(request)
    address = (f"dirname(getenv('CONSTANCIA_URL')) . {php_string(request.target)}" if below is None
               else f"getenv('CONSTANCIA_URL') . {php_string(below)}")
    result = (f"file_put_contents({php_string(request.saves)}, $answer);\n" if request.saves
              else 'echo "$status $answer\\n";\n')
    return ("<?php\n" + before + "$context = stream_context_create(['http' => [\n" +
            textwrap.indent("\n".join(options), "    ") + "\n]]);\n"
            f"$answer = file_get_contents({address}, false, $context);\n"
            "$status = $answer === false ? 0 : (int) explode(' ', $http_response_header[0])[1];\n"
            "if ($status < 200 || $status >= 300) {\n"
            '    fwrite(STDERR, "$status $answer\\n");\n    exit(1);\n}\n' + result)


# ---- C# ----

def verbatim(text):
    return '@"' + text.replace('"', '""') + '"'


def csharp_form(form):
    text = "var form = new MultipartFormDataContent();\n"
    for name, value in form.items():
        if isinstance(value, File):
            text += (f"form.Add(new ByteArrayContent(File.ReadAllBytes({quoted(value.name)})), {quoted(name)}, "
                     f"{quoted(value.name)});\n")
        else:
            text += f"form.Add(new StringContent({quoted(str(value))}), {quoted(name)});\n"
    return text + "request.Content = form;\n"


def csharp(request):
    imports = {"System", "System.Net.Http", "System.Threading.Tasks"}
    below, address = below_base(request), 'Environment.GetEnvironmentVariable("CONSTANCIA_URL")'
    address = (f"new Uri(new Uri({address}), {quoted(request.target[1:])})" if below is None
               else f"{address} + {quoted(below)}")
    text = (f"var request = new HttpRequestMessage(new HttpMethod({quoted(request.method)}),\n"
            f"    {address});\n")
    if request.secured:
        text += ('request.Headers.Add("Authorization",\n'
                 '    "Bearer " + Environment.GetEnvironmentVariable("CONSTANCIA_KEY"));\n')
    for name, value in request.headers.items():
        if name != "Content-Type":
            text += f"request.Headers.Add({quoted(name)}, {quoted(value)});\n"
    if request.json is not None:
        imports.add("System.Text")
        text += (f"request.Content = new StringContent({verbatim(pretty(request.json))}, Encoding.UTF8, "
                 f"{quoted(request.headers['Content-Type'])});\n")
    if request.form:
        imports.add("System.IO")
        text += csharp_form(request.form)
    text += ("var answer = await new HttpClient().SendAsync(request);\n"
             "if (!answer.IsSuccessStatusCode)\n{\n"
             '    Console.Error.WriteLine((int)answer.StatusCode + " " + '
             "await answer.Content.ReadAsStringAsync());\n    return 1;\n}\n")
    if request.saves:
        imports.add("System.IO")
        text += f"File.WriteAllBytes({quoted(request.saves)}, await answer.Content.ReadAsByteArrayAsync());\n"
    else:
        text += ('Console.WriteLine((int)answer.StatusCode + " " + '
                 "await answer.Content.ReadAsStringAsync());\n")
    text += "return 0;\n"
    return ("".join(f"using {name};\n" for name in sorted(imports)) +
            "\nclass Example\n{\n    static int Main() => Send().GetAwaiter().GetResult();\n\n"
            "    static async Task<int> Send()\n    {\n" +
            textwrap.indent(text, " " * 8) + "    }\n}\n")


# CSS class in the page, name, file name, generator.
LANGUAGES = [
    ("curl", "curl", "example.sh", curl),
    ("python", "Python", "example.py", python),
    ("typescript", "TypeScript", "example.mts", typescript),
    ("java", "Java", "Example.java", java),
    ("go", "Go", "example.go", go),
    ("php", "PHP", "example.php", php),
    ("csharp", "C#", "Example.cs", csharp),
]
