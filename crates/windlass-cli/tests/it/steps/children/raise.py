"""Raises every amount by one. An argument is the number of seconds that each batch takes."""

import os
import sys
import time
from handler import raised, serve

pace = float(sys.argv[1]) if len(sys.argv) > 1 else 0


def answer(batch):
    if batch["items"]:
        print(f"raising {len(batch['items'])} accounts", file=sys.stderr, flush=True)
        # A test ends the delay by creating this file.
        time.sleep(0 if os.path.exists("hurry") else pace)
    return {"results": [raised(item) for item in batch["items"]]}


serve(answer)
