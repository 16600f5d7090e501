"""A command that changes nothing: what is measured is the way to it and back."""

import json
import sys


def handle(item):
    return {"key": item["key"]}


for line in sys.stdin.buffer:
    batch = json.loads(line)
    print(json.dumps({"results": [handle(item) for item in batch["items"]]}), flush=True)
