"""Appends `TYPE:MARK` to the trace of each record, as a command, or as a service with the argument `serve PORT`.

A record whose column `bad` is 1 fails for good. A few others fail at their first attempt, so that they are deferred. As a
command it dies now and then.
"""

import json
import os
import random
import sys
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def outcome(batch, item):
    record, key = item["record"], item["key"]
    token = f"{batch['jobType']}:{batch['params']['mark']}"
    if record["bad"]:
        return {"key": key, "error": {"message": "the record is bad", "retryable": False}}
    if item["attempt"] == 1 and zlib.crc32(f"{token}/{key}".encode()) % 40 == 0:
        return {"key": key, "error": {"message": "not at the first attempt", "retryable": True}}
    result = {"key": key, "update": {"trace": f"{record['trace']} {token}"}}
    if batch["jobType"] == "CALL":
        rows = [{"token": token, "item": key}]
        result["insert"] = {"table": "inserted", "rows": rows}
    return result


def answer(text):
    batch = json.loads(text)
    if batch["items"]:
        time.sleep(0.03)
    return json.dumps({"results": [outcome(batch, item) for item in batch["items"]]})


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        body = answer(self.rfile.read(int(self.headers["Content-Length"]))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if sys.argv[1:2] == ["serve"]:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Service).serve_forever()
else:
    for line in sys.stdin:
        if random.random() < 0.02:
            os._exit(3)
        print(answer(line), flush=True)
