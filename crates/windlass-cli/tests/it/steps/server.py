"""An HTTP service that raises amounts, and fails in the ways that the query of its URL names.

It appends every request to requests.jsonl when it arrives, and every answer to answers.jsonl before it is sent, both
in its working folder. It prints its port; an argument sets the port. In the query, colons separate the parts of a
value, and commas separate keys.
"""

import hashlib
import json
import os
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

state = threading.Condition()
arrived = 0  # Requests so far.
flying = 0  # Requests without an answer yet.
most = 0  # The maximum of those.
seen = Counter()  # Requests per Idempotency-Key.


def note(name, **fields):
    with open(name, "a") as file:
        file.write(json.dumps(fields) + "\n")


class Drop(Exception):
    """The connection ends without an answer."""


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # Keeps connections alive.
    disable_nagle_algorithm = True  # Without this, an answer waits 40 ms for its second half.

    def do_POST(self):
        global flying
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.batch = json.loads(text or "{}")
        self.items = self.batch.get("items", [])
        self.keys = {str(item["key"]) for item in self.items}
        self.errors = {}  # Of items, by their keys.
        self.arrive()
        try:
            try:
                reply = self.behave()
            finally:
                with state:  # Before the answer, because the client may send the next request at once.
                    flying -= 1
            self.answer(*reply)
        except (Drop, ConnectionError):
            self.close_connection = True

    do_GET = do_POST

    def arrive(self):
        global arrived, flying, most
        with state:
            arrived, flying = arrived + 1, flying + 1
            most = max(most, flying)
            self.number = arrived
            self.key = self.headers.get("Idempotency-Key")
            seen[self.key] += 1
            self.time = seen[self.key]
            headers = {name.lower(): value for name, value in self.headers.items()}
            note("requests.jsonl", number=arrived, at=time.monotonic(), flying=flying,
                 client=self.client_address[1], method=self.command, path=self.path,
                 headers=headers, batch=self.batch)  # fmt: skip
            state.notify_all()

    def answer(self, status, content=None, headers=()):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        body = b"" if content is None else body
        with state:
            note("answers.jsonl", number=self.number, at=time.monotonic(), status=status)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass  # The notes say more.

    def behave(self):
        """Uses the first behaviour that gives an answer, or else raises all amounts."""
        for name, value in parse_qsl(urlsplit(self.path).query):
            answer = getattr(self, name)(*value.split(":"))
            if answer:
                return answer
        return 200, {"results": [self.result(item) for item in self.items]}

    def has(self, keys):
        return bool(self.keys & set(keys.split(",")))

    def always(self, status):
        return int(status), {"reason": "always so"}

    def during(self, file, status, *retry_after):
        """This status for every request while the file exists."""
        headers = [("Retry-After", seconds) for seconds in retry_after]
        return (int(status), {"reason": "down"}, headers) if os.path.exists(file) else None

    def repeat(self, status, before):
        """This status for every request, with the Authorization header after this number of bytes."""
        return int(status), b"x" * int(before) + b" " + self.headers["Authorization"].encode()

    def blame(self, keys):
        """These items fail permanently, with errors that contain the Authorization header."""
        secret = self.headers.get("Authorization")
        error = {"message": f"no: {secret}", "context": {"headers": [secret], secret: 1}}
        self.errors.update({key: error for key in keys.split(",")})

    def reject(self, status, keys):
        """This status for every batch with one of these keys."""
        return (int(status), {"reason": "unwelcome"}) if self.has(keys) else None

    def first(self, status, times, *retry_after):
        """This status for the first requests of every batch, this number of times."""
        headers = [("Retry-After", seconds) for seconds in retry_after]
        early = self.items and self.time <= int(times)
        return (int(status), {"reason": "busy"}, headers) if early else None

    def chance(self, percent, status):
        """This status for this percentage of calls."""
        digest = hashlib.sha256(str(self.number).encode()).digest()
        unlucky = int.from_bytes(digest[:4], "big") % 100 < int(percent)
        return (int(status), {"reason": "bad luck"}) if unlucky else None

    def wait(self, file):
        """No answer to a batch with items while the file exists."""
        while self.items and os.path.exists(file):
            time.sleep(0.01)

    def halt(self, file):
        """No answer to any request while the file exists."""
        while os.path.exists(file):
            time.sleep(0.01)

    def linger(self, seconds):
        """Every batch with items takes this long."""
        time.sleep(float(seconds) if self.items else 0)

    def stick(self, number, file):
        """No answer from this request on while the file exists."""
        if self.number >= int(number):
            self.wait(file)

    def gather(self, number):
        """No answer until this number of requests has arrived. Then waits for further ones, if the client may send them."""
        with state:
            state.wait_for(lambda: most >= int(number) or not self.items)
        time.sleep(0.03)

    def redirect(self, status):
        headers = [("Location", "/elsewhere")]
        return int(status), {"reason": "moved"}, headers

    def rubbish(self, keys):
        return (200, b"<html>Please sign in</html>") if self.has(keys) else None

    def silent(self, keys):
        while self.has(keys):
            time.sleep(3600)

    def drop(self, keys):
        if self.has(keys):
            raise Drop

    def bare(self, status):
        return int(status), None

    def failures(self, attempts, keys):
        """The form of AWS Lambda: these keys fail until this number of tries."""
        lost = [item for item in self.items if str(item["key"]) in keys.split(",")]
        lost = [item for item in lost if item["attempt"] <= int(attempts)]
        names = [{"itemIdentifier": str(item["key"])} for item in lost]
        return 200, {"batchItemFailures": names}

    def refuse(self, file, keys):
        """These items fail permanently while the file exists."""
        if os.path.exists(file):
            error = {"message": "refused", "retryable": False}
            self.errors.update({key: error for key in keys.split(",")})

    def later(self, keys):
        """These items fail the first time."""
        error = {"message": "not now", "retryable": True}
        early = {str(item["key"]) for item in self.items if item["attempt"] == 1}
        self.errors.update({key: error for key in early & set(keys.split(","))})

    def result(self, item):
        error = self.errors.get(str(item["key"]))
        return {"key": item["key"], "error": error} if error else raised(item)


def raised(item):
    """Computed from the record in the batch, so that applying it twice is visible."""
    return {"key": item["key"], "update": {"amount": item["record"]["amount"] + 1}}


class Server(ThreadingHTTPServer):
    request_queue_size = 128


server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Service)
print(server.server_address[1], flush=True)
server.serve_forever()
