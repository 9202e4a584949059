"""LIMIT of a streaming SELECT: not which rows stand, but after how many changes the query ends."""

from __future__ import annotations

from sqlglot import exp

from dovetail.sql.bind.partitions.first_rows import limit_by, row_count


def without_ending_limit(query: exp.Query) -> tuple[exp.Query, int | None]:
    """The query without its plain LIMIT, and the number that this gives; None where it has none.

    With ORDER BY, BY or OFFSET a LIMIT is about the rows that stand, and stays. That of a UNION is about all of its
    rows, though the parser may find it at its last SELECT. Raises Unsupported for what is no whole number.
    """
    made = query.copy()
    last = made.expression if isinstance(made, exp.SetOperation) else None
    ends = [made, last] if isinstance(last, exp.Select) else [made]
    limited = [part for part in ends if part.args.get("limit") is not None]
    ranked = any(part.args.get(clause) is not None for part in ends for clause in ("order", "offset"))
    if len(limited) != 1 or ranked or limit_by(limited[0]):
        return query, None
    count = row_count(limited[0], "limit", 0)
    limited[0].set("limit", None)
    return made, count
