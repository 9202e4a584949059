"""The clock that streaming queries compare times with: a generated table of one row, made with the first of them.

Its ticks are records like any others, so a batch that is run again meets the times that it met before.
"""

from __future__ import annotations

from functools import cache

from dovetail.sql.syntax.statements import CreateStream

CLOCK = "dovetail_clock"
TIME_OF_CLOCK = "now"
"""The column that has the time. It never falls."""
CLOCK_TABLE = f"""
CREATE TABLE IF NOT EXISTS {CLOCK} (id int, {TIME_OF_CLOCK} timestamptz DEFAULT now(), PRIMARY KEY (id))
WITH (connector = 'datagen', fields.id.max = 0, datagen.rows.per.second = 1, shards = 1)
""".strip()


@cache
def clock() -> CreateStream:
    """Its definition."""
    from dovetail.sql.syntax.parse import parse_one  # noqa: PLC0415 - the grammar is for who plans such a query

    made = parse_one(CLOCK_TABLE)
    assert isinstance(made, CreateStream)
    return made
