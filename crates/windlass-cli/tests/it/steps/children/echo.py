"""Writes every column back unchanged, except those that its arguments name."""

import sys
from handler import serve


def result(item):
    kept = {name: value for name, value in item["record"].items() if name not in sys.argv[1:]}
    return {"key": item["key"], "update": kept}


serve(lambda batch: {"results": [result(item) for item in batch["items"]]})
