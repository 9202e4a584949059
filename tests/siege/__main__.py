"""``python -m tests.siege [--requests n] [--statements n] [--records n]``: exit code 0 if the server stood."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.siege.run import Size, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.siege", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--statements", type=int, default=5_000)
    parser.add_argument("--records", type=int, default=20_000, help="of each format")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started_s = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="dovetail-siege-") as name:
        size = Size(options.requests, options.statements, options.records, options.seed)
        account = run(Path(name), size, say)
    for line in account.wrong[:50]:
        print(line)
    for what in sorted(account.opened):
        print("opened", *what)
    slow = max(account.health_s)
    say(f"{dict(account.answers)}; {len(account.wrong)} wrong; health within {slow:.2f} s; ended {account.ended}")
    return 1 if account.wrong or account.opened or account.ended is not None or slow > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
