"""Shared by the handlers of the tests: the loop, and the notes that a test reads afterwards."""

import json
import os
import sys


def note(name, text):
    """Appends a line in one write, so that lines of two processes never mix."""
    file = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, (text.rstrip("\n") + "\n").encode())
    os.close(file)


def raised(item):
    """Computed from the record in the batch, so that applying it twice is visible."""
    return {"key": item["key"], "update": {"amount": item["record"]["amount"] + 1}}


def serve(answer):
    """Answers batches until standard input ends. Notes its start, its end and each batch."""
    note("started", str(os.getpid()))
    for line in sys.stdin.buffer:
        note("batches.jsonl", line.decode())
        print(json.dumps(answer(json.loads(line))), flush=True)
    note("ended", str(os.getpid()))
