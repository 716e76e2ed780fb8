"""An S3 service for the tests over plain HTTP, which is strict and can be made to misbehave.

It verifies AWS Signature Version 4 (headers and presigned queries), payload hashes and checksums with an
independent implementation, keeps objects below a directory, and serves the operations that the content store
uses. `misbehave` schedules faults. Tests in other languages send the members of a Fault as JSON to
/_control/misbehave, {"seconds"} to /_control/age, {} to /_control/behave, which removes faults and requests,
and get the state from /_control/state.

usage: s3_server.py PROGRAM [ARGUMENT…]: runs the program with a new service. {url} in an argument becomes the
address of a content store in it, {endpoint} that of the service. CONSTANCIA_CONTENT_ACCESS_KEY, _SECRET_KEY
and _ALLOW_NETWORKS are in the environment.
"""

import base64
import datetime
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import re
import secrets
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.sax.saxutils
import xml.etree.ElementTree

CHUNK = 64 * 1024
SPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
EMPTY = hashlib.sha256(b"").hexdigest()


class Refusal(Exception):
    def __init__(self, status, code, message="refused"):
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message


class Gone(Exception):
    """The connection was closed."""


# ---- signatures ----

def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


def canonical_query(pairs):
    return "&".join(f"{name}={value}" for name, value in
                    sorted((quote(name), quote(value)) for name, value in pairs))


def signature(secret, scope, stamp, canonical):
    day, region, service, last = scope.split("/")
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, last):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = "\n".join(("AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def canonical_request(method, path, pairs, headers, signed, payload):
    lines = [f"{name}:{' '.join(','.join(headers.get_all(name, [])).split())}\n" for name in signed]
    return "\n".join((method, quote(urllib.parse.unquote(path), "/"), canonical_query(pairs),
                      "".join(lines), ";".join(signed), payload))


# ---- faults ----

class Fault:
    """A fault for the next `times` requests of a method whose target matches, after `skip` of them."""

    def __init__(self, kind, method=None, target="", times=1, skip=0, **more):
        self.kind = kind
        self.method = method
        self.target = re.compile(target)
        self.times = times
        self.skip = skip
        self.more = more
        self.met = 0  # number of affected requests

    def takes(self, method, target):
        if (self.method and method != self.method) or not self.target.search(target):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.met >= self.times:
            return False
        self.met += 1
        return True


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, directory, *, bucket="evidence", region="eu-test-1", page=1000,
                 minimum_part=5 << 20, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.directory = pathlib.Path(directory)
        self.bucket = bucket
        self.region = region
        self.page = page
        self.minimum_part = minimum_part
        self.access_key = "ACCESS" + secrets.token_hex(7).upper()
        self.secret_key = secrets.token_hex(8) + "/+=" + secrets.token_hex(8)
        self.lock = threading.Lock()
        self.objects = {}  # key: dict(path, size, etag, sha256, changed, meta)
        self.uploads = {}  # id: dict(key, started, parts, meta)
        self.faults = []
        self.requests = []  # [method, target, status]; 0: no response
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def url(self, prefix="", **more):
        query = {"endpoint": self.endpoint, "region": self.region, **more}
        return f"s3://{self.bucket}/{prefix}?{urllib.parse.urlencode(query)}"

    def settings(self, prefix="", **more):
        """Returns the settings of a service."""
        return {"content__url": self.url(prefix, **more), "content__access_key": self.access_key,
                "content__secret_key": self.secret_key, "content__allow_networks": "127.0.0.0/8"}

    def environment(self):
        return {"CONSTANCIA_CONTENT_ACCESS_KEY": self.access_key,
                "CONSTANCIA_CONTENT_SECRET_KEY": self.secret_key,
                "CONSTANCIA_CONTENT_ALLOW_NETWORKS": "127.0.0.0/8"}

    def misbehave(self, kind, **more):
        fault = Fault(kind, **more)
        with self.lock:
            self.faults.append(fault)
        return fault

    def behave(self):
        with self.lock:
            self.faults.clear()
            self.requests.clear()

    def fault_for(self, method, target):
        with self.lock:
            for fault in self.faults:
                if fault.takes(method, target):
                    return fault
        return None

    def age(self, seconds):
        """Makes all objects and uploads older."""
        with self.lock:
            for entry in self.objects.values():
                entry["changed"] -= seconds
            for upload in self.uploads.values():
                upload["started"] -= seconds

    def stop(self):
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        kind = sys.exc_info()[0]
        if not issubclass(kind, (Gone, ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def time_text(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%S.000Z")


def element(name, *content):
    return f"<{name}>{''.join(content)}</{name}>"


def text(name, value):
    return element(name, xml.sax.saxutils.escape(str(value)))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    # ---- one request ----

    def begin(self):
        split = urllib.parse.urlsplit(self.path)
        self.pairs = urllib.parse.parse_qsl(split.query, keep_blank_values=True)
        self.query = dict(self.pairs)
        self.raw_path = split.path
        parts = split.path.split("/", 2)
        self.bucket = parts[1]
        self.key = urllib.parse.unquote(parts[2]) if len(parts) > 2 else ""
        self.left = int(self.headers.get("Content-Length", 0))
        self.payload = None

    def handle_any(self):
        server = self.server
        self.begin()
        self.record = [self.command, self.path, 0]
        if self.bucket == "_control":
            self.control()
            return
        self.fault = server.fault_for(self.command, self.path)
        with server.lock:
            server.requests.append(self.record)
        try:
            self.harm_before()
            self.check_signature()
            if self.bucket != server.bucket:
                raise Refusal(404, "NoSuchBucket")
            self.operate()
        except Refusal as refusal:
            self.refuse(refusal)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

    def control(self):
        wanted = json.loads(self.rfile.read(self.left) or b"{}")
        self.left = 0
        state = {}
        if self.key == "misbehave":
            self.server.misbehave(**wanted)
        elif self.key == "behave":
            self.server.behave()
        elif self.key == "age":
            self.server.age(wanted["seconds"])
        else:
            with self.server.lock:
                state = {"objects": sorted(self.server.objects),
                         "uploads": len(self.server.uploads),
                         "requests": self.server.requests[:]}
        self.answer(200, json.dumps(state).encode())

    def harm_before(self):
        kind = self.fault.kind if self.fault else None
        if kind == "status":
            raise Refusal(self.fault.more["status"], self.fault.more.get("code", "SlowDown"))
        if kind == "stall":
            self.hold()
        if kind == "cut":
            self.reset()
        if kind == "cut-upload":
            self.rfile.read(min(self.left, CHUNK))
            self.reset()

    def harm_after(self):
        """Injects the fault after the operation, instead of its response."""
        kind = self.fault.kind if self.fault else None
        if kind == "lose-answer":
            self.reset()
        if kind == "error-inside":
            self.answer(200, self.error_text(Refusal(500, "InternalError")).encode(),
                        {"Content-Type": "application/xml"})
            return True
        if kind == "garbage":
            self.answer(200, b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>")
            return True
        return False

    def hold(self):
        self.server.stopping.wait(60)
        raise Gone

    def reset(self):
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise Gone

    def answer(self, status, body=b"", headers=()):
        self.drain()
        self.record[2] = status
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def drain(self):
        while self.left:
            part = self.rfile.read(min(self.left, CHUNK))
            if not part:
                raise Gone
            self.left -= len(part)

    @staticmethod
    def error_text(refusal):
        return ('<?xml version="1.0" encoding="UTF-8"?>\n' +
                element("Error", text("Code", refusal.code), text("Message", refusal.message)))

    def refuse(self, refusal):
        self.answer(refusal.status, self.error_text(refusal).encode(),
                    {"Content-Type": "application/xml"})

    def document(self, root, *content):
        if self.harm_after():
            return
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{SPACE}">' +
                "".join(content) + f"</{root}>")
        self.answer(200, body.encode(), {"Content-Type": "application/xml"})

    # ---- authentication ----

    def check_signature(self):
        if "X-Amz-Signature" in self.query:
            self.check_presigned()
        else:
            self.check_authorization()

    def check_authorization(self):
        server = self.server
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), ?SignedHeaders=([^,]+), ?"
                             r"Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not match:
            raise Refusal(403, "AccessDenied", "no usable Authorization")
        key, scope, signed, given = match.groups()
        signed = signed.split(";")
        wanted = {"host", *(name.lower() for name in self.headers if name.lower().startswith("x-amz-"))}
        if not wanted <= set(signed) or signed != sorted(signed):
            raise Refusal(403, "AccessDenied", "headers that are not signed")
        if not all(name in self.headers for name in signed):
            raise Refusal(400, "AccessDenied", "headers that are signed and not there")
        stamp = self.headers.get("x-amz-date", "")
        self.check_scope(key, scope, stamp)
        self.payload = self.headers.get("x-amz-content-sha256")
        if not re.fullmatch("[0-9a-f]{64}", self.payload or ""):
            raise Refusal(400, "InvalidRequest", "the payload's hash is missing")
        canonical = canonical_request(self.command, self.raw_path, self.pairs, self.headers, signed,
                                      self.payload)
        if not hmac.compare_digest(signature(server.secret_key, scope, stamp, canonical), given):
            raise Refusal(403, "SignatureDoesNotMatch")

    def check_presigned(self):
        server = self.server
        credential, stamp = self.query.get("X-Amz-Credential", ""), self.query.get("X-Amz-Date", "")
        key, _, scope = credential.partition("/")
        began = self.check_scope(key, scope, stamp, presigned=True)
        lifetime = int(self.query["X-Amz-Expires"])
        if not 0 < lifetime <= 7 * 86400:
            raise Refusal(400, "AuthorizationQueryParametersError")
        if time.time() > began + lifetime:
            raise Refusal(403, "AccessDenied", "Request has expired")
        pairs = [pair for pair in self.pairs if pair[0] != "X-Amz-Signature"]
        signed = self.query["X-Amz-SignedHeaders"].split(";")
        canonical = canonical_request(self.command, self.raw_path, pairs, self.headers, signed,
                                      "UNSIGNED-PAYLOAD")
        if not hmac.compare_digest(signature(server.secret_key, scope, stamp, canonical),
                                   self.query["X-Amz-Signature"]):
            raise Refusal(403, "SignatureDoesNotMatch")

    def check_scope(self, key, scope, stamp, presigned=False):
        server = self.server
        if key != server.access_key:
            raise Refusal(403, "InvalidAccessKeyId")
        try:
            began = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(
                tzinfo=datetime.timezone.utc).timestamp()
        except ValueError:
            raise Refusal(403, "AccessDenied", "no usable date") from None
        if scope != f"{stamp[:8]}/{server.region}/s3/aws4_request":
            raise Refusal(400, "AuthorizationHeaderMalformed", "another scope")
        if not presigned and abs(time.time() - began) > 900:
            raise Refusal(403, "RequestTimeTooSkewed")
        return began

    # ---- operations ----

    def operate(self):
        names = set(self.query)
        operation = {
            ("PUT", True, False): self.put_object,
            ("PUT", True, True): self.put_part,
            ("GET", True, False): self.get_object,
            ("HEAD", True, False): self.get_object,
            ("DELETE", True, False): self.delete_object,
            ("DELETE", True, True): self.abort_upload,
            ("POST", True, True): self.complete_upload,
            ("HEAD", False, False): lambda: self.answer(200),
        }.get((self.command, bool(self.key), "uploadId" in names))
        if self.command == "POST" and names == {"uploads"} and self.key:
            operation = self.create_upload
        if self.command == "GET" and not self.key:
            operation = self.list_uploads if "uploads" in names else self.list_objects
        if operation is None:
            raise Refusal(501, "NotImplemented")
        operation()

    def receive(self):
        """Writes the body into a file and checks both hashes; returns path, size, SHA-256 and MD5."""
        descriptor, path = tempfile.mkstemp(dir=self.server.directory)
        sha256, md5, size = hashlib.sha256(), hashlib.md5(), 0
        with os.fdopen(descriptor, "wb") as file:
            while self.left:
                part = self.rfile.read(min(self.left, CHUNK))
                if not part:
                    os.unlink(path)
                    raise Gone
                self.left -= len(part)
                size += len(part)
                sha256.update(part)
                md5.update(part)
                file.write(part)
        checksum = self.headers.get("x-amz-checksum-sha256")
        if sha256.hexdigest() != self.payload:
            os.unlink(path)
            raise Refusal(400, "XAmzContentSHA256Mismatch")
        if checksum and base64.b64decode(checksum) != sha256.digest():
            os.unlink(path)
            raise Refusal(400, "BadDigest")
        return path, size, sha256.digest(), md5.hexdigest()

    def checksum_headers(self, digest, etag):
        if self.fault and self.fault.kind == "lie-checksum":
            digest = hashlib.sha256(digest).digest()
        return {"ETag": f'"{etag}"', "x-amz-checksum-sha256": base64.b64encode(digest).decode()}

    def body_bytes(self):
        data = self.rfile.read(self.left)
        self.left = 0
        if hashlib.sha256(data).hexdigest() != self.payload:
            raise Refusal(400, "XAmzContentSHA256Mismatch")
        return data

    def meta(self):
        return {name.lower(): value for name, value in self.headers.items()
                if name.lower().startswith("x-amz-meta-")}

    def keep(self, key, path, size, etag, meta):
        with self.server.lock:
            old = self.server.objects.get(key)
            self.server.objects[key] = {"path": path, "size": size, "etag": etag,
                                        "changed": int(time.time()), "meta": meta}
        if old:
            os.unlink(old["path"])

    def put_object(self):
        path, size, digest, md5 = self.receive()
        if self.fault and self.fault.kind == "error-inside":
            os.unlink(path)  # reported as failed, and really failed
        else:
            self.keep(self.key, path, size, md5, self.meta())
        if not self.harm_after():
            self.answer(200, b"", self.checksum_headers(digest, md5))

    def delete_object(self):
        with self.server.lock:
            old = self.server.objects.pop(self.key, None)
        if old:
            os.unlink(old["path"])
        if not self.harm_after():
            self.answer(204)

    def wanted_range(self, size):
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not match or (self.fault and self.fault.kind == "no-range"):
            return None
        first = int(match[1])
        last = min(int(match[2]) if match[2] else size - 1, size - 1)
        if first >= size or last < first:
            raise Refusal(416, "InvalidRange")
        return first, last

    def get_object(self):
        kind = self.fault.kind if self.fault else None
        with self.server.lock:
            entry = self.server.objects.get(self.key)
            file = open(entry["path"], "rb") if entry else None
        if not file:
            raise Refusal(404, "NoSuchKey")
        with file:
            etag = f'"{entry["etag"]}"' if kind != "lie-etag" else '"0000"'
            if self.headers.get("If-Match", etag) != etag:
                raise Refusal(412, "PreconditionFailed")
            size = entry["size"]
            part = self.wanted_range(size)
            first, last = part or (0, size - 1)
            headers = {"ETag": etag, **entry["meta"]}
            for name in ("content-type", "content-disposition"):
                if f"response-{name}" in self.query:
                    headers[name.title()] = self.query[f"response-{name}"]
            if kind == "stall-later" and first > 0:
                self.hold()
            if kind == "shift" and part:
                first, last = first + 1, last
            if kind == "shorten" and part:
                last -= 1
            if part:
                headers["Content-Range"] = f"bytes {first}-{last}/{size}"
            if kind == "hide-shift":
                headers["Content-Range"] = f"bytes {first - 1}-{last - 1}/{size}"
            if kind == "lie-size":
                size = last = size + 1
            if self.harm_after():
                return
            self.send_file(file, first, last - first + 1, 206 if part else 200, headers)

    def send_file(self, file, first, length, status, headers):
        kind = self.fault.kind if self.fault else None
        self.record[2] = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command == "HEAD":
            return
        file.seek(first)
        sent = 0
        while sent < length:
            part = file.read(min(CHUNK, length - sent))
            if kind == "alter":
                part = bytes((part[0] ^ 1,)) + part[1:]
            if kind in ("cut-body", "stall-body") and sent + len(part) == length:
                self.wfile.write(part[:len(part) // 2])
                self.wfile.flush()
                self.record[2] = 0
                self.reset() if kind == "cut-body" else self.hold()
            self.wfile.write(part)
            sent += len(part)

    # ---- uploads in parts ----

    def create_upload(self):
        upload_id = "up/" + secrets.token_urlsafe(24) + "+="
        if self.fault and self.fault.kind in ("error-inside", "garbage"):
            self.harm_after()
            return
        with self.server.lock:
            self.server.uploads[upload_id] = {"key": self.key, "started": int(time.time()),
                                              "parts": {}, "meta": self.meta()}
        self.document("InitiateMultipartUploadResult", text("Bucket", self.bucket),
                      text("Key", self.key), text("UploadId", upload_id))

    def find_upload(self):
        upload = self.server.uploads.get(self.query["uploadId"])
        if not upload or upload["key"] != self.key:
            raise Refusal(404, "NoSuchUpload")
        return upload

    def put_part(self):
        with self.server.lock:
            upload = self.find_upload()
        path, size, digest, md5 = self.receive()
        with self.server.lock:
            old = upload["parts"].get(int(self.query["partNumber"]))
            upload["parts"][int(self.query["partNumber"])] = (path, size, digest, md5)
        if old:
            os.unlink(old[0])
        if not self.harm_after():
            self.answer(200, b"", self.checksum_headers(digest, md5))

    def complete_upload(self):
        wanted = xml.etree.ElementTree.fromstring(self.body_bytes())
        with self.server.lock:
            upload = self.find_upload()
        if self.fault and self.fault.kind == "error-inside":
            self.harm_after()
            return
        parts = []
        for part in wanted.findall(f"{{{SPACE}}}Part"):
            number = int(part.find(f"{{{SPACE}}}PartNumber").text)
            path, size, digest, md5 = upload["parts"].get(number) or (None, 0, b"", "")
            if part.find(f"{{{SPACE}}}ETag").text != f'"{md5}"' or \
                    base64.b64decode(part.find(f"{{{SPACE}}}ChecksumSHA256").text) != digest:
                raise Refusal(400, "InvalidPart")
            parts.append((number, path, size, md5))
        if [part[0] for part in parts] != sorted({part[0] for part in parts}) or not parts:
            raise Refusal(400, "InvalidPartOrder")
        if any(part[2] < self.server.minimum_part for part in parts[:-1]):
            raise Refusal(400, "EntityTooSmall")
        etag = hashlib.md5(b"".join(bytes.fromhex(part[3]) for part in parts)).hexdigest()
        etag = f"{etag}-{len(parts)}"
        descriptor, path = tempfile.mkstemp(dir=self.server.directory)
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                with open(part[1], "rb") as source:
                    while data := source.read(CHUNK * 16):
                        file.write(data)
        with self.server.lock:
            self.server.uploads.pop(self.query["uploadId"], None)
        for part in upload["parts"].values():
            os.unlink(part[0])
        self.keep(self.key, path, sum(part[2] for part in parts), etag, upload["meta"])
        self.document("CompleteMultipartUploadResult", text("Key", self.key),
                      text("ETag", f'"{etag}"'))

    def abort_upload(self):
        with self.server.lock:
            upload = self.find_upload()
            del self.server.uploads[self.query["uploadId"]]
        for part in upload["parts"].values():
            os.unlink(part[0])
        self.answer(204)

    # ---- lists ----

    def list_objects(self):
        if self.query.get("list-type") != "2":
            raise Refusal(501, "NotImplemented")
        prefix = self.query.get("prefix", "")
        after = base64.b64decode(self.query.get("continuation-token", "")).decode()
        most = min(int(self.query.get("max-keys", 1000)), self.server.page)
        with self.server.lock:
            found = sorted((key, entry["size"], entry["etag"], entry["changed"])
                           for key, entry in self.server.objects.items()
                           if key.startswith(prefix) and key > after)
        content = [text("Name", self.bucket), text("Prefix", prefix),
                   text("IsTruncated", str(len(found) > most).lower())]
        if len(found) > most:
            last = after if self.fault and self.fault.kind == "circle" else found[most - 1][0]
            content.append(text("NextContinuationToken", base64.b64encode(last.encode()).decode()))
        for key, size, etag, changed in found[:most]:
            content.append(element("Contents", text("Key", quote(key)),
                                   text("LastModified", time_text(changed)),
                                   text("ETag", f'"{etag}"'), text("Size", size)))
        self.document("ListBucketResult", *content)

    def list_uploads(self):
        prefix = self.query.get("prefix", "")
        after = (self.query.get("key-marker", ""), self.query.get("upload-id-marker", "~"))
        most = min(int(self.query.get("max-uploads", 1000)), self.server.page)
        with self.server.lock:
            found = sorted((upload["key"], upload_id, upload["started"])
                           for upload_id, upload in self.server.uploads.items()
                           if upload["key"].startswith(prefix)
                           and (upload["key"], upload_id) > after)
        content = [text("Bucket", self.bucket), text("IsTruncated", str(len(found) > most).lower())]
        if len(found) > most:
            content.append(text("NextKeyMarker", quote(found[most - 1][0])))
            content.append(text("NextUploadIdMarker", found[most - 1][1]))
        for key, upload_id, started in found[:most]:
            content.append(element("Upload", text("Key", quote(key)), text("UploadId", upload_id),
                                   text("Initiated", time_text(started))))
        self.document("ListMultipartUploadsResult", *content)


def main():
    with tempfile.TemporaryDirectory(prefix="s3-server-") as directory:
        server = Server(directory, page=7)
        arguments = [argument.replace("{url}", server.url("contract/tests"))
                     .replace("{endpoint}", server.endpoint) for argument in sys.argv[1:]]
        code = subprocess.call(arguments, env={**os.environ, **server.environment()})
        server.stop()
        return code


if __name__ == "__main__":
    sys.exit(main())
