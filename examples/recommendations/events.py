"""Products and what users do with them as statements: ``python events.py 5000 | dovetail sql``.

Prices and categories change on the way; one product is withdrawn.
"""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections.abc import Iterator

START = dt.datetime.fromisoformat("2026-01-31 13:00:00")
CATEGORIES = ("pens", "ink", "paper", "books")
PRODUCTS = range(10, 40)
AT_ONCE = 250


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """``count`` actions, in the order of their time, of users who prefer some products."""
    chance = random.Random(seed)
    products = ", ".join(f"({number}, '{chance.choice(CATEGORIES)}', {chance.randint(1, 90)})" for number in PRODUCTS)
    yield f"INSERT INTO products VALUES {products}"
    for first in range(0, count, AT_ONCE):
        actions = []
        for number in range(first, min(first + AT_ONCE, count)):
            user = chance.randint(200, 230)
            product = PRODUCTS[(user + chance.randint(0, 4)) % len(PRODUCTS)]
            kind = "purchase" if chance.random() < 0.3 else "view"
            actions.append(f"({user}, {product}, '{kind}', '{START + dt.timedelta(seconds=number)}')")
        yield f"INSERT INTO actions VALUES {', '.join(actions)}"
        changed = chance.choice(PRODUCTS)
        category = chance.choice(CATEGORIES)
        yield f"UPDATE products SET price = price + 1, category = '{category}' WHERE id = {changed}"
    yield f"DELETE FROM products WHERE id = {PRODUCTS[0]}"


if __name__ == "__main__":
    for statement in statements(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000):
        print(f"{statement};")
