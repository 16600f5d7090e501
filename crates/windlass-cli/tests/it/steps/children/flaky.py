"""Raises every amount by one, but fails the percentage of tries that its argument gives.

Item and try determine which ones, so that every run has the same failures.
"""

import hashlib
import sys
from handler import raised, serve

PERCENT = int(sys.argv[1])


def result(item):
    digest = hashlib.sha256(f"{item['key']}, try {item['attempt']}".encode()).digest()
    if int.from_bytes(digest[:4], "big") % 100 < PERCENT:
        return {"key": item["key"], "error": {"message": "not now", "retryable": True}}
    return raised(item)


serve(lambda batch: {"results": [result(item) for item in batch["items"]]})
