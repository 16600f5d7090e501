"""Fails every item with an error that contains control characters, and prints them to standard error."""

import json
import sys

from handler import serve

with open("controls.json") as file:
    CONTROLS = json.load(file)


def answer(batch):
    error = {"message": f"bad {CONTROLS}", "context": {CONTROLS: CONTROLS}}
    if batch["items"]:
        print(f"said {CONTROLS}", file=sys.stderr, flush=True)
    if "die" in sys.argv and batch["items"]:
        sys.exit(1)
    return {"results": [{"key": item["key"], "error": error} for item in batch["items"]]}


sys.stdin.reconfigure(newline="\n")
if "hopeless" in sys.argv:
    sys.exit(f"hopeless {CONTROLS}")
serve(answer)
