"""Orders and their parts as statements: ``python events.py 1000 | dovetail sql``.

Parts come in any order, a receipt before its order too; customers move, parcels arrive, some orders are cancelled.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator

START = dt.datetime.fromisoformat("2026-01-31 13:00:00")
COUNTRIES = ("NO", "SE", "DK")
AT_ONCE = 250


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """``count`` orders, and what belongs to them."""
    chance = random.Random(seed)
    customers = range(100, 150)
    rows = ", ".join(f"({number}, 'customer {number}', '{chance.choice(COUNTRIES)}')" for number in customers)
    yield f"INSERT INTO customers VALUES {rows}"
    for first in range(0, count, AT_ONCE):
        numbers = range(1_000 + first, 1_000 + min(first + AT_ONCE, count))
        orders, receipts, parcels = [], [], []
        for number in numbers:
            total, at = chance.randint(1, 90), START + dt.timedelta(seconds=number)
            orders.append(f"({number}, {chance.randint(100, 155)}, 'product {chance.randint(1, 9)}', {total}, '{at}')")
            paid = chance.choice(((total,), (total // 2, total - total // 2), (total // 2,), ()))
            receipts += [f"({10 * number + part}, {number}, {amount})" for part, amount in enumerate(paid)]
            if chance.random() < 0.7:
                parcels.append(f"({number}, 'DHL', 'on its way')")
        parts = [("receipts", receipts), ("orders", orders), ("parcels", parcels)]
        yield from (f"INSERT INTO {table} VALUES {', '.join(rows)}" for table, rows in parts if rows)
        yield f"UPDATE parcels SET state = 'delivered' WHERE order_id % 3 = 0 AND order_id < {numbers[-1]}"
        yield f"UPDATE customers SET country = 'FI' WHERE id = {chance.choice(customers)}"
        yield f"DELETE FROM orders WHERE id = {chance.choice(numbers)}"


if __name__ == "__main__":
    for statement in statements(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000):
        print(f"{statement};")
