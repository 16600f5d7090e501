"""Raises every amount by one. Ignores signals and the end of its input, so it must be killed."""

import signal
import time
from handler import raised, serve

for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
    signal.signal(ignored, signal.SIG_IGN)
serve(lambda batch: {"results": [raised(item) for item in batch["items"]]})
while True:
    time.sleep(3600)
