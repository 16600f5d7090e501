"""Answers with every kind of result, by key from 1 to 10, in reverse order."""

from handler import raised, serve


def result(item):
    key = item["key"]
    hello = {"table": "greetings", "rows": [{"account": key, "words": f"hello {key}"}]}
    again = {"table": "greetings", "rows": [{"account": key, "words": w} for w in ("a", "b")]}
    error = {"message": f"no such town as {key}", "context": {"town": "Ys", "seen": item["attempt"]}}
    return {
        1: raised(item),
        2: {"key": key, "insert": hello},
        3: {**raised(item), "insert": [hello, again]},
        4: {"key": key, "skip": True},
        5: {"key": key, "error": error},
        6: {"key": key, "error": {**error, "retryable": True}},
        7: {"key": key},
        # The first try fails, the second is right.
        8: raised(item) if item["attempt"] > 1 else {"key": key, "error": {**error, "retryable": True}},
        9: {"key": key, "error": "a message alone"},
        # A contradiction.
        10: {**raised(item), "skip": True},
    }[key]


serve(lambda batch: {"results": [result(item) for item in reversed(batch["items"])]})
