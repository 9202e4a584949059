"""``python -m tests.chaos [--minutes n | --kills n] [--seed s]``: its exit code is 0 where nothing differed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long processes are killed")
    parser.add_argument("--kills", type=int, default=0, help="how many, instead of for how long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None, help="where the stack keeps its files and logs")
    options = parser.parse_args()
    started_s = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started_s:7.1f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="dovetail-chaos-") as name:
        account = run(
            options.folder or Path(name),
            options.seed,
            lambda done: (
                done.kills.total() >= options.kills
                if options.kills
                else time.monotonic() - started_s > 60 * options.minutes
            ),
            say,
        )
    print(account)
    return 1 if account.differences else 0


if __name__ == "__main__":
    sys.exit(main())
