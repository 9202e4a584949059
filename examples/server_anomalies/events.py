"""Measurements of interfaces as INSERT statements: ``python events.py 5000 | dovetail sql``.

Now and then an interface carries more than it can for a minute, and now and then one turns out to be faster.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator

START = dt.datetime.fromisoformat("2026-01-31 13:00:00")
HOSTS = [f"db{number}" for number in range(1, 6)]
EVERY_S = 10


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """About ``count`` rows: a minute of all hosts at a time."""
    chance = random.Random(seed)
    interfaces = ", ".join(f"('{host}', 'eth0', 1000)" for host in HOSTS)
    yield f"INSERT INTO interfaces VALUES {interfaces}"
    minutes = -(-count // (2 * len(HOSTS) * 60 // EVERY_S))
    for minute in range(minutes):
        traffic, tcp = [], []
        hot = {host for host in HOSTS if chance.random() < 0.1}
        for second in range(0, 60, EVERY_S):
            at = START + dt.timedelta(minutes=minute, seconds=second)
            for host in HOSTS:
                traffic.append(f"('{host}', 'eth0', {chance.randint(800, 999) if host in hot else 300}, '{at}')")
                tcp.append(f"('{host}', 'eth0', {chance.randint(0, 9)}, {chance.randint(1, 80)}, '{at}')")
        yield f"INSERT INTO traffic VALUES {', '.join(traffic)}"
        yield f"INSERT INTO tcp VALUES {', '.join(tcp)}"
    yield "UPDATE interfaces SET capacity = 10000 WHERE host = 'db1'"


if __name__ == "__main__":
    for statement in statements(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000):
        print(f"{statement};")
