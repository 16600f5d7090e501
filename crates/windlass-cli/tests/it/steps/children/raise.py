"""Raises every amount by one. An argument is the number of seconds that each batch takes."""

import sys
import time
from handler import raised, serve

pace = float(sys.argv[1]) if len(sys.argv) > 1 else 0


def answer(batch):
    if batch["items"]:
        print(f"raising {len(batch['items'])} accounts", file=sys.stderr, flush=True)
        time.sleep(pace)
    return {"results": [raised(item) for item in batch["items"]]}


serve(answer)
