"""WEBHOOK_SECRET=whsec_… python3 verify.py TIMESTAMP SIGNATURE < body"""
import hashlib
import hmac
import os
import sys
import time


def verify(secret, timestamp, signature, body, tolerance=300):
    """timestamp and signature: the headers X-SVC-Timestamp and X-SVC-Signature; body: the raw bytes
    of the request, before any JSON parser has seen them."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 18):
        return False
    if not abs(time.time() - int(timestamp)) <= tolerance:
        return False
    expected = "v1=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body,
                                hashlib.sha256).hexdigest()
    # After a rotation there are two signatures; one of them must be good.
    return any(hmac.compare_digest(expected.encode(), given.strip().encode(errors="replace"))
               for given in signature.split(","))


if __name__ == "__main__":
    good = verify(os.environ["WEBHOOK_SECRET"], sys.argv[1], sys.argv[2], sys.stdin.buffer.read())
    print("valid" if good else "invalid")
    sys.exit(0 if good else 1)
