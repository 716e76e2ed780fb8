"""A substitute payment provider that implements the part of Stripe's interface that the service uses, and that
can also misbehave. For tests only; needs only Python's standard library.

    provider = PaymentProvider()               listens on 127.0.0.1; .url, .key, .secret
    provider.script("lose", "pay")             results of the next charges, in order; then .behaviour
    provider.charges                           all charges, each a Charge
    provider.close()

It keeps its state: payments, the response to each idempotency key (the same response for the same request, an
error for another one, 409 while the first one is in progress), and all charges, so that a test can check that
a customer was charged exactly once.

Results of a charge:
    pay             succeed
    decline         be declined (insufficient_funds)
    authenticate    require the customer to authenticate
    expired         fail because the card has expired
    no_method       fail because the payment method does not exist
    process         be accepted; finish_processing() settles it
    lose            succeed, and close the connection without a response
    lose_decline    be declined, and close the connection without a response
    cut             close the connection before any effect
    stall           succeed, and respond only after .stall_seconds
    error           return 500 before any effect; the key keeps that response
    error_after     succeed, and return 500; the key keeps that response
    unavailable     return 503 without checking the key
    rate            return 429 with Retry-After: 1, without checking the key
    conflict        return 409 as if the key were in use
    garbage         succeed, and return a body that is not JSON

Notices: with .webhook_url set, each event is sent there at once (notices = "send"), kept in .held
until deliver() (notices = "hold"), or both sent twice (notices = "twice"). deliver() accepts an invalid
signature, an invalid time, and another body.
"""

import dataclasses
import hashlib
import hmac
import http.client
import http.server
import json
import secrets
import threading
import time
import urllib.parse

DECLINES = {
    "decline": ("card_declined", "insufficient_funds"),
    "lose_decline": ("card_declined", "generic_decline"),
    "authenticate": ("authentication_required", "authentication_required"),
    "expired": ("expired_card", None),
}


@dataclasses.dataclass(frozen=True)
class Charge:
    intent: str
    sale_code: str
    key: str  # empty if it was paid on a page
    amount: int
    currency: str


class Cut(Exception):
    """The connection is closed without a response."""


class PaymentProvider(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port=0):
        self.key = "sk_test_" + secrets.token_hex(12)
        self.secret = "whsec_" + secrets.token_hex(12)
        self.behaviour = "pay"
        self.stall_seconds = 3600
        self.page_behaviours = []  # results of the next payment pages: unavailable, cut; then pages are created
        self.webhook_url = None
        self.notices = "send"
        self.charges = []
        self.refunds = []
        self.requests = []   # (method, path, key) of all requests
        self.intents = {}
        self.sessions = {}
        self.held = []       # events
        self.sent = []       # (event, status or None)
        self.versions = set()
        self._answers = {}   # idempotency key: (fingerprint, status, body) or (fingerprint, None, None)
        self._script = []
        self._lock = threading.RLock()
        self._closing = threading.Event()
        super().__init__(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def settings(self):
        """Returns the settings of a service that uses it, for client.Service."""
        return {"payment__provider": "stripe", "payment__stripe_url": self.url,
                "payment__stripe_key": self.key, "payment__stripe_webhook_secret": self.secret,
                "payment__allow_networks": "127.0.0.0/8"}

    def close(self):
        self._closing.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # clients that were killed

    def script(self, *behaviours):
        with self._lock:
            self._script += behaviours

    def charges_for(self, sale_code):
        with self._lock:
            return [charge for charge in self.charges if charge.sale_code == sale_code]

    # ---- payments ----

    def recover(self):
        """Discards the rest of the script."""
        with self._lock:
            self._script.clear()

    def next_behaviour(self):
        with self._lock:
            return self._script.pop(0) if self._script else self.behaviour

    def make_intent(self, form, key):
        intent = {
            "id": "pi_" + secrets.token_hex(12), "object": "payment_intent",
            "amount": int(form["amount"]), "amount_received": 0, "currency": form["currency"],
            "customer": form.get("customer"), "payment_method": form.get("payment_method"),
            "description": form.get("description"), "created": int(time.time()),
            "status": "requires_confirmation", "last_payment_error": None, "livemode": False,
            "metadata": {name[len("metadata["):-1]: value for name, value in form.items()
                         if name.startswith("metadata[")},
        }
        with self._lock:
            self.intents[intent["id"]] = intent
        return intent

    def pay(self, intent, key):
        with self._lock:
            assert intent["status"] != "succeeded"
            intent["status"] = "succeeded"
            intent["amount_received"] = intent["amount"]
            self.charges.append(Charge(intent["id"], intent["metadata"].get("sale_code", ""), key,
                                       intent["amount"], intent["currency"]))
        self.tell("payment_intent.succeeded", intent)

    def decline(self, intent, behaviour):
        code, decline_code = DECLINES[behaviour]
        fault = {"type": "card_error", "code": code, "message": "Declined by the script."}
        if decline_code:
            fault["decline_code"] = decline_code
        with self._lock:
            intent["status"] = "requires_payment_method"
            intent["last_payment_error"] = dict(fault)
        self.tell("payment_intent.payment_failed", intent)
        return 402, {"error": {**fault, "payment_intent": dict(intent)}}

    def finish_processing(self, intent_id, succeeds=True):
        intent = self.intents[intent_id]
        assert intent["status"] == "processing"
        if succeeds:
            self.pay(intent, intent["metadata"].get("attempt", ""))
        else:
            self.decline(intent, "decline")

    def pay_page(self, session_id):
        """The customer pays on the page."""
        session = self.sessions[session_id]
        assert session["payment_status"] == "unpaid"
        session["payment_status"] = "paid"
        intent = self.make_intent(session["intent_form"], "")
        self.pay(intent, "")
        return intent

    def give_back(self, intent_id):
        """A refund that is made at the provider, or on request."""
        intent = self.intents[intent_id]
        with self._lock:
            self.refunds.append(intent_id)
        self.tell("charge.refunded", {
            "id": "ch_" + intent_id[3:], "object": "charge", "payment_intent": intent_id,
            "amount": intent["amount"], "amount_refunded": intent["amount"], "refunded": True,
            "currency": intent["currency"], "metadata": dict(intent["metadata"])})

    def lose_dispute(self, intent_id, amount=None):
        """Of the whole payment, or a part of it."""
        intent = self.intents[intent_id]
        self.tell("charge.dispute.closed", {
            "id": "dp_" + intent_id[3:], "object": "dispute", "payment_intent": intent_id,
            "amount": amount or intent["amount"], "currency": intent["currency"], "status": "lost",
            "metadata": {}})

    # ---- notices ----

    def tell(self, kind, thing):
        event = {"id": "evt_" + secrets.token_hex(12), "object": "event", "type": kind,
                 "created": int(time.time()), "livemode": False,
                 "data": {"object": json.loads(json.dumps(thing))}}
        with self._lock:
            how = self.notices
            if how == "hold" or not self.webhook_url:
                self.held.append(event)
                return
        for _ in range(2 if how == "twice" else 1):
            threading.Thread(target=self.deliver, args=(event,), daemon=True).start()

    def sign(self, body, signed_at=None, secret=None):
        signed_at = int(time.time()) if signed_at is None else signed_at
        mac = hmac.new((secret or self.secret).encode(), f"{signed_at}.".encode() + body,
                       hashlib.sha256).hexdigest()
        return f"t={signed_at},v1={mac}"

    def deliver(self, event, *, signed_at=None, secret=None, signature=None, body=None):
        """Sends one event; returns the status of the response, None without one."""
        body = json.dumps(event).encode() if body is None else body
        headers = {"Content-Type": "application/json",
                   "Stripe-Signature": self.sign(body, signed_at, secret)
                   if signature is None else signature}
        parts = urllib.parse.urlsplit(self.webhook_url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        try:
            connection.request("POST", parts.path, body, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            status = None
        finally:
            connection.close()
        with self._lock:
            self.sent.append((event, status))
        return status

    def deliver_held(self, reverse=False):
        """Delivers all held events; each must be accepted."""
        with self._lock:
            events, self.held = self.held, []
        for event in reversed(events) if reverse else events:
            assert self.deliver(event) == 200, event

    # ---- the interface ----

    def answer_once(self, key, fingerprint, act):
        """Runs `act`, which returns (status, body), once per key."""
        with self._lock:
            known = self._answers.get(key)
            if known is None:
                self._answers[key] = (fingerprint, None, None)
        if known:
            if known[0] != fingerprint:
                return 400, fault("idempotency_error", "The key was used for another request."), {}
            if known[1] is None:
                return 409, fault("idempotency_error", "The key is in use.",
                                  code="idempotency_key_in_use"), {}
            return known[1], known[2], {"Idempotent-Replayed": "true"}
        try:
            status, body = act()
        except Cut:
            raise
        except BaseException:
            with self._lock:
                del self._answers[key]
            raise
        self.keep(key, status, body)
        return status, body, {}

    def keep(self, key, status, body):
        with self._lock:
            fingerprint = self._answers[key][0]
            self._answers[key] = (fingerprint, status, json.loads(json.dumps(body)))

    def charge(self, form, key, behaviour):
        """Returns status and body; the response kept for the key may differ from the one sent."""
        if behaviour == "no_method":
            return 400, fault("invalid_request_error", "No such PaymentMethod.",
                              code="resource_missing", param="payment_method")
        if behaviour == "error":
            return 500, fault("api_error", "By the script.")
        intent = self.make_intent(form, key)
        if behaviour == "process":
            intent["status"] = "processing"
            return 200, dict(intent)
        if behaviour in DECLINES:
            return self.decline(intent, behaviour)
        self.pay(intent, key)
        if behaviour == "error_after":
            return 500, fault("api_error", "By the script.")
        return 200, dict(intent)

    def create_intent(self, form, key, fingerprint):
        behaviour = self.next_behaviour() if key not in self._answers else "pay"
        if behaviour == "cut":
            raise Cut()
        if behaviour == "unavailable":
            return 503, fault("api_error", "By the script."), {}
        if behaviour == "rate":
            return 429, fault("rate_limit_error", "By the script."), {"Retry-After": "1"}
        if behaviour == "conflict":
            return 409, fault("idempotency_error", "By the script.",
                              code="idempotency_key_in_use"), {}
        answer = self.answer_once(key, fingerprint, lambda: self.charge(form, key, behaviour))
        if behaviour in ("lose", "lose_decline"):
            raise Cut()
        if behaviour == "stall":
            self._closing.wait(self.stall_seconds)
        if behaviour == "garbage":
            return 200, None, {}
        return answer

    def list_intents(self, query):
        with self._lock:
            found = [intent for intent in self.intents.values()
                     if intent["customer"] == query["customer"] and
                     intent["created"] >= int(query["created[gte]"])]
        found.reverse()
        if "starting_after" in query:
            ids = [intent["id"] for intent in found]
            found = found[ids.index(query["starting_after"]) + 1:]
        limit = int(query.get("limit", 10))
        return 200, {"object": "list", "url": "/v1/payment_intents",
                     "has_more": len(found) > limit, "data": found[:limit]}, {}

    def create_session(self, form):
        session_id = "cs_" + secrets.token_hex(12)
        prefix = "payment_intent_data[metadata]["
        intent_form = {
            "amount": form["line_items[0][price_data][unit_amount]"],
            "currency": form["line_items[0][price_data][currency]"],
            "customer": form.get("customer"),
            **{f"metadata[{name[len(prefix):-1]}]": value for name, value in form.items()
               if name.startswith(prefix)}}
        session = {"id": session_id, "object": "checkout.session", "payment_status": "unpaid",
                   "url": f"{self.url}/pay/{session_id}", "intent_form": intent_form}
        self.sessions[session_id] = session
        return 200, {name: value for name, value in session.items() if name != "intent_form"}

    def make_page(self, form, key, fingerprint):
        behaviour = self.page_behaviours.pop(0) if self.page_behaviours else None
        if behaviour == "cut":
            raise Cut()
        if behaviour == "unavailable":
            return 503, fault("api_error", "By the script."), {}
        return self.answer_once(key, fingerprint, lambda: self.create_session(form))

    def refund(self, form):
        intent = self.intents.get(form["payment_intent"])
        if not intent or intent["status"] != "succeeded":
            return 400, fault("invalid_request_error", "No such charge.", code="resource_missing",
                              param="payment_intent")
        if form["payment_intent"] in self.refunds:
            return 400, fault("invalid_request_error", "Refunded already.",
                              code="charge_already_refunded")
        self.give_back(form["payment_intent"])
        return 200, {"id": "re_" + secrets.token_hex(12), "object": "refund",
                     "status": "succeeded", "payment_intent": form["payment_intent"]}


def fault(kind, message, **more):
    return {"error": {"type": kind, "message": message, **more}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.act()

    def do_POST(self):
        self.act()

    def act(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        key = self.headers.get("Idempotency-Key", "")
        self.server.requests.append((self.command, path, key))
        self.server.versions.add(self.headers.get("Stripe-Version"))
        try:
            if self.headers.get("Authorization") != f"Bearer {self.server.key}":
                self.answer(401, fault("invalid_request_error", "Invalid API key."), {})
            else:
                self.answer(*self.route(path, dict(urllib.parse.parse_qsl(query)), body, key))
        except Cut:
            self.close_connection = True

    def route(self, path, query, body, key):
        server = self.server
        form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=bool(body)))
        fingerprint = (path, hashlib.sha256(body).hexdigest())
        if self.command == "GET" and path == "/v1/payment_intents":
            return server.list_intents(query)
        if self.command == "GET" and path.startswith("/v1/payment_intents/"):
            intent = server.intents.get(path.rpartition("/")[2])
            return (200, intent, {}) if intent else \
                (404, fault("invalid_request_error", "No such payment.", code="resource_missing"), {})
        if self.command == "POST" and not key:
            return 400, fault("invalid_request_error", "The tests want a key."), {}
        if self.command == "POST" and path == "/v1/payment_intents":
            return server.create_intent(form, key, fingerprint)
        if self.command == "POST" and path == "/v1/checkout/sessions":
            return server.make_page(form, key, fingerprint)
        if self.command == "POST" and path == "/v1/refunds":
            return server.answer_once(key, fingerprint, lambda: server.refund(form))
        return 404, fault("invalid_request_error", "No such path."), {}

    def answer(self, status, body, headers):
        data = b"<html>" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
