"""A handler in Python: writes every name in upper case.

A line with a batch comes in, a line with its results goes out, until standard input ends.
Standard output is for answers only. Print what people should see to sys.stderr.
"""

import json
import sys


def handle(item):
    record = item["record"]
    name = record["name"]
    if not name:
        error = {"message": "no name", "retryable": False, "context": {"town": record["town"]}}
        return {"key": item["key"], "error": error}
    if name == name.upper():
        return {"key": item["key"], "skip": True}
    return {"key": item["key"], "update": {"name": name.upper()}}


# Bytes, because JSON is UTF-8 whatever the machine's locale says.
for line in sys.stdin.buffer:
    batch = json.loads(line)
    answer = {"results": [handle(item) for item in batch["items"]]}
    # Windlass waits for the line: do not leave it in a buffer.
    print(json.dumps(answer), flush=True)
