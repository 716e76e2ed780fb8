"""The programs that the reference shows work unchanged; those in further languages run in
tests/conformance/examples."""

import html
import http.server
import json
import pathlib
import re
import sys
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/conformance/examples"))

import walk  # noqa: E402
from walk import examples, languages  # noqa: E402

# What no document says of itself, in one that has nothing but an operation.
MINIMAL = {
    "servers": [{"url": "{public_url}/v1"}],
    "security": [{"bearer": []}],
    "paths": {"/new/{new_id}": {"put": {
        "operationId": "putNew",
        "parameters": [
            {"name": "new_id", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "X-Wanted", "in": "header", "required": True, "schema": {"enum": ["this"]}},
            {"name": "shown", "in": "query", "schema": {"type": "string"}, "example": "a b"},
            {"name": "hidden", "in": "query", "schema": {"type": "string"}}],
        "requestBody": {"content": {"application/json": {"schema": {
            "type": "object", "required": ["text", "count"], "properties": {
                "text": {"const": "it's \"quoted\" \\ `so` $HOME"},
                "count": {"type": "integer", "minimum": 3}, "other": {"type": "string"}}}}}},
        "responses": {"200": {"description": "", "content": {"application/json": {}}}},
    }}},
}


@pytest.fixture(scope="module")
def sealing(start):
    return start(seal__interval="1s", evidence__interval="1s")


@pytest.mark.parametrize("language", ["curl", "python", "typescript"])
def test_the_examples_of_every_operation_work(sealing, tmp_path, language):
    content, digests = sealing.new_channel(), sealing.new_channel("hash_only")
    walked = walk.Walk(language, sealing.public_url, (content.live.key, digests.live.key, content.test.key), tmp_path)
    assert walked.all() > 15


@pytest.mark.parametrize("language", [key for key, *_ in languages.LANGUAGES])
def test_the_page_shows_the_programs_that_are_run(anyone, service, language):
    page = anyone.get("/docs/reference").expect(200).body.decode()
    shown = [html.unescape(each) for each in re.findall(
        f'<div class="example {language}"><h5>.*?</h5>\n<pre tabindex="0"><code>(.*?)</code></pre>',
        page, re.S)]
    write = next(write for key, _, _, write in languages.LANGUAGES if key == language)
    made = [write(request) for path, method, item in examples.operations_of(service.description.document)
            for request in examples.requests_of(service.description.document, path, method, item)]
    assert len(made) > 15 and sorted(shown) == sorted(made)


@pytest.mark.parametrize("language", [key for key, *_ in languages.LANGUAGES])
def test_a_new_operation_gets_its_example_from_the_description_alone(language):
    (path, method, item), = examples.operations_of(MINIMAL)
    request, = examples.requests_of(MINIMAL, path, method, item)
    assert request.target == "/v1/new/NEW_ID?shown=a+b" and request.secured
    assert request.headers == {"X-Wanted": "this", "Content-Type": "application/json"}
    assert request.json == {"text": "it's \"quoted\" \\ `so` $HOME", "count": 3}
    write = next(write for key, _, _, write in languages.LANGUAGES if key == language)
    program = write(request)
    assert request.target.removeprefix("/v1") in program and request.target not in program
    assert "PUT" in program and "X-Wanted" in program


class Recorder(http.server.BaseHTTPRequestHandler):
    def do_PUT(self):
        self.server.seen.append((self.path, self.headers["X-Wanted"], json.loads(
            self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("language", ["curl", "python", "typescript"])
def test_what_has_a_meaning_in_the_language_is_sent_as_it_is(tmp_path, language):
    server = http.server.HTTPServer(("127.0.0.1", 0), Recorder)
    server.seen = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (path, method, item), = examples.operations_of(MINIMAL)
    request, = examples.requests_of(MINIMAL, path, method, item)
    walked = walk.Walk(language, f"http://127.0.0.1:{server.server_port}", ("", "", ""), tmp_path)
    code, printed, complaint = walked.run(request, "key")
    server.shutdown()
    server.server_close()
    assert code == 0, printed + complaint
    assert server.seen == [(request.target, "this", request.json)]
