"""Ratings and payments as INSERT statements: ``python events.py 5000 | dovetail sql``.

Ratings change while payments come, some accounts have none, and now and then one pays again and again.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator

START = dt.datetime.fromisoformat("2026-01-31 13:00:00")
ACCOUNTS = range(10, 60)
AT_ONCE = 250


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """About ``count`` payments, in the order of their time, and last a row of each table long after them."""
    chance = random.Random(seed)
    number = 0
    while number < count:
        payments, ratings = [], []
        for _ in range(min(AT_ONCE, count - number)):
            account, at = chance.choice(ACCOUNTS), START + dt.timedelta(seconds=number)
            amount = round(10 ** chance.uniform(0, 4.5))
            times = chance.randint(6, 9) if chance.random() < 0.01 else 1
            payments += [f"({1_000 * number + time}, {account}, {amount}, '{at}')" for time in range(times)]
            if chance.random() < 0.1:
                rating = chance.choice(("low", "low", "medium", "high"))
                # The time of a rating is no other one's: of two versions of one moment either might be the last.
                ratings.append(f"({chance.choice(ACCOUNTS)}, '{rating}', '{at}')")
            number += 1
        yield f"INSERT INTO payments VALUES {', '.join(payments)}"
        if ratings:
            yield f"INSERT INTO ratings VALUES {', '.join(ratings)}"
    end = START + dt.timedelta(seconds=number, minutes=10)
    yield f"INSERT INTO payments VALUES (0, 0, 1, '{end}')"
    yield f"INSERT INTO ratings VALUES (0, 'low', '{end}')"


if __name__ == "__main__":
    for statement in statements(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000):
        print(f"{statement};")
