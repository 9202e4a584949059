"""What is told of a stream that makes its own rows: it is no view, and has no plan.

What reads its statement is imported where there is one: a command that looks at what runs has no use for it.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dovetail.changelog.errors import DovetailError
from dovetail.sql.catalog import Query

_MOST = 1000


def generator_of(query: Query) -> dict[str, Any]:
    """``generates``: whether it does; if so, rows a second as declared, and how many rows in all, None: no end."""
    if not query.generates:
        return {"generates": False}
    rate, count = declared(query.sql)
    return {"generates": True, "rate_per_s": rate, "rows_at_most": count}


@lru_cache(_MOST)
def declared(sql: str) -> tuple[float | None, int | None]:
    """Rows a second, and how many rows in all, None: no end. Asked every few seconds, and the same as long as the text
    is.
    """
    from dovetail.sql.datagen.row_generator import RowGenerator
    from dovetail.sql.syntax.parse import parse_one
    from dovetail.sql.syntax.statements import CreateStream

    try:
        statement = parse_one(sql)
        assert isinstance(statement, CreateStream)
        generator = RowGenerator.of(statement)
    except DovetailError:
        # Its query says what is wrong with it.
        return None, None
    return generator.rate, None if generator.last is None else generator.last + 1
