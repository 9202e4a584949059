"""Impressions and clicks as INSERT statements: ``python events.py 5000 | dovetail sql``.

Some clicks come twice, some after more than ten minutes, some for what nobody was shown.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator

START = dt.datetime.fromisoformat("2026-01-31 13:00:00")
AT_ONCE = 250


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """About ``count`` rows, in the order of their time."""
    chance = random.Random(seed)
    for first in range(0, count, AT_ONCE):
        impressions, clicks = [], []
        for number in range(first, min(first + AT_ONCE, count)):
            ad, user = chance.randint(1, 20), chance.randint(100, 400)
            shown = START + dt.timedelta(seconds=number)
            impressions.append(f"({1_000 + number}, {ad}, {user}, '{shown}')")
            if chance.random() < 0.02 * ad:
                ad = ad if chance.random() < 0.95 else ad + 1
                delays = [chance.choice((3, 40, 599, 601, 900)) for _ in range(chance.choice((1, 1, 1, 2)))]
                clicks += [(shown + dt.timedelta(seconds=delay), ad, user) for delay in delays]
        yield f"INSERT INTO impressions VALUES {', '.join(impressions)}"
        if clicks:
            rows = ", ".join(f"({ad}, {user}, '{at}')" for at, ad, user in sorted(clicks))
            yield f"INSERT INTO clicks VALUES {rows}"


if __name__ == "__main__":
    for statement in statements(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000):
        print(f"{statement};")
