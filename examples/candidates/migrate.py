"""Gives candidates what their documents lack and their original publications have.

A line with a batch comes in, a line with its results goes out, until standard input ends. Windlass
writes the document back under the candidate's version: if somebody changes it meanwhile, the
candidate comes again as it is then, so nothing of theirs is overwritten.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import originals

# What a candidate has of its original.
FIELDS = ["title", "channel", "language"]


def handle(item):
    key, document = item["key"], item["record"]["document"]
    if all(field in document for field in FIELDS):
        return {"key": key, "skip": True}
    try:
        original = place.get(key)
        if original is None:
            return failed(key, "it has no original", retryable=False)
        missing = {field: original[field] for field in FIELDS if field not in document}
    except KeyError as error:
        return failed(key, f"its original has no {error.args[0]}", retryable=False)
    except Exception as error:  # The place may be away for a while.
        return failed(key, f"its original cannot be read: {error}", retryable=True)
    return {"key": key, "update": {"document": document | missing}}


def failed(key, message, retryable):
    return {"key": key, "error": {"message": message, "retryable": retryable}}


place = originals.connect()
# An original takes its time to come, so several are on their way.
with ThreadPoolExecutor(16) as fetchers:
    for line in sys.stdin.buffer:
        batch = json.loads(line)
        print(json.dumps({"results": list(fetchers.map(handle, batch["items"]))}), flush=True)
