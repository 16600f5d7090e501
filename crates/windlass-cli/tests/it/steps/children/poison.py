"""Raises every amount by one, unless one of the batch's keys is poison.

Each argument is a way to fail and the keys that cause it: `exits=13,14`. While the file `broken` exists, every batch
with items fails.
"""

import os
import signal
import sys
import time
from handler import raised, serve

MEGABYTE = 1 << 20

ways = {}
for argument in sys.argv[1:]:
    way, _, keys = argument.partition("=")
    ways.update({int(key): way for key in keys.split(",") if key})


def answer(batch):
    if batch["items"] and os.path.exists("broken"):
        sys.exit("everything is broken")
    for item in batch["items"]:
        fail = FAIL.get(ways.get(item["key"]))
        if fail:
            say(f"account {item['key']} is poison\n")
            return fail(batch["items"], item["key"])
    return {"results": [result(item) for item in batch["items"]]}


def result(item):
    """Two of the ways fail only the item itself."""
    slow(item)
    key, way = item["key"], ways.get(item["key"])
    if way not in ("refuses", "delays"):
        return raised(item)
    error = {"message": f"account {key} is poison", "context": {"account": key}}
    return {"key": key, "error": {**error, "retryable": way == "delays"}}


def slow(item):
    """Some work that succeeds."""
    if ways.get(item["key"]) == "slow":
        time.sleep(6)


def say(text):
    sys.stderr.write(text)
    sys.stderr.flush()


def others(items, key):
    return [raised(item) for item in items if item["key"] != key]


def exits(items, key):
    os._exit(3)


def killed(items, key):
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(items, key):
    while True:
        time.sleep(3600)


def rubbish(items, key):
    print("this is no answer", flush=True)
    hangs(items, key)


def resultless(items, key):
    return {"outcome": "all is well"}


def wrong(items, key):
    return {"results": others(items, key) + [{"key": -key}]}


def more(items, key):
    return {"results": [raised(item) for item in items] + [{"key": -key}]}


def twice(items, key):
    return {"results": [raised(item) for item in items] + [{"key": key}]}


def missing(items, key):
    return {"results": others(items, key)}


def misspelt(items, key):
    return {"results": others(items, key) + [{"key": key, "updates": {"amount": 0}}]}


def floods(items, key):
    """100 MB of lines on standard error, and then a correct answer."""
    line = "poison " * 100 + "\n"
    for _ in range(100):
        say(line * (MEGABYTE // len(line)))
    return {"results": [raised(item) for item in items]}


def gushes(items, key):
    """The same without a line break."""
    for _ in range(100):
        say("poison " * (MEGABYTE // 7))
    return {"results": [raised(item) for item in items]}


FAIL = {
    "exits": exits, "killed": killed, "hangs": hangs, "rubbish": rubbish, "resultless": resultless,
    "wrong": wrong, "more": more, "twice": twice, "missing": missing, "floods": floods,
    "gushes": gushes, "misspelt": misspelt,
}  # fmt: skip

serve(answer)
