"""By hand: ``python -m tests.changelog.fuzz --count 20000 [--seed 7] [--only avro]``."""

from __future__ import annotations

import argparse
import sys

from tests.changelog.fuzz.child import Fault, Rounds, faults
from tests.changelog.fuzz.streams import GROUPS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.changelog.fuzz")
    parser.add_argument("--count", type=int, default=20_000, help="mutated records of each stream")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=[*GROUPS], default=[*GROUPS], help="these formats")
    options = parser.parse_args()
    found = [fault for group in options.only for fault in _printed(Rounds(group, options.seed, options.count))]
    print(f"{len(found)} faults")
    return min(len(found), 1)


def _printed(rounds: Rounds) -> list[Fault]:
    found = faults(rounds)
    print(rounds.group, *found, sep="\n  ", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
