"""Answers in the form of AWS Lambda for queues. Its arguments are keys that always fail. Every other multiple of
seven fails once.
"""

import sys
from handler import serve

always = {int(key) for key in sys.argv[1:]}


def fails(item):
    return item["key"] in always or item["key"] % 7 == 0 and item["attempt"] == 1


def answer(batch):
    failed = [{"itemIdentifier": str(item["key"])} for item in batch["items"] if fails(item)]
    return {"batchItemFailures": failed}


serve(answer)
