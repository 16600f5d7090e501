"""The same handler as an HTTP service: writes every name in upper case, and sends one mail.

Every POST is a batch, every response its results. The mail is an effect outside the database, and a
batch may come more than once. So the service remembers the idempotency keys of the mails it sent.
It does not remember its answers: a record that another writer changed comes again under the
same key, and the answer must fit the record as it is now.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# In memory, so that the example is short. A real service has a table with a unique index.
sent = set()
lock = threading.Lock()


def handle(item, dry_run):
    record = item["record"]
    name = record["name"]
    if not name:
        error = {"message": "no name", "retryable": False, "context": {"town": record["town"]}}
        return {"key": item["key"], "error": error}
    if name == name.upper():
        return {"key": item["key"], "skip": True}
    if not dry_run:
        once(item["idempotencyKey"], lambda: send_mail(record))
    return {"key": item["key"], "update": {"name": name.upper()}}


def once(key, effect):
    """Keeps the key only after the effect: one that fails is tried again under the same key."""
    with lock:  # The same item may be in two requests at once, when the first one was too slow.
        if key not in sent:
            effect()
            sent.add(key)


def send_mail(record):
    print(f"a mail to {record['name']} in {record['town']}", flush=True)


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Keeps connections alive.
    disable_nagle_algorithm = True  # Without this, an answer waits 40 ms for its second half.

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            batch = json.loads(body)
            results = [handle(item, batch["dryRun"]) for item in batch["items"]]
        except (ValueError, KeyError, TypeError) as error:
            self.answer(400, {"error": f"not a batch: {error!r}"})
        else:
            self.answer(200, {"results": results})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, *_):
        pass  # A line for every batch would hide the mails.


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
server = ThreadingHTTPServer(("127.0.0.1", port), Service)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
