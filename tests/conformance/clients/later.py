"""Stands for a later version of the interface: whatever is asked of it is not found, for a reason
that has a code and a member of its own. Writes its address to standard output and serves."""

import http.server
import json

RECORD = {"code": "code_of_a_later_version", "message": "Told later.", "doc_url": None,
          "incident_id": None, "member_of_a_later_version": {"a": 1}}


class Later(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps(RECORD).encode()
        self.send_response(404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Later)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
