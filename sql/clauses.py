"""What a streaming SELECT cannot have yet, refused by the name of its clause."""

from __future__ import annotations

from sqlglot import exp

from changelog.errors import Unsupported
from sql.functions import function_name
from sql.scope import place_of

_CLAUSES = {
    "group": ("GROUP BY", "aggregate the content of the view: SELECT .. FROM table(view) GROUP BY .."),
    "having": ("HAVING", "filter the content of the view: FROM table(view)"),
    "distinct": ("DISTINCT", "write the rows to a stream with a PRIMARY KEY"),
    "order": ("ORDER BY", "order the content of the view: FROM table(view) ORDER BY .."),
    "limit": ("LIMIT", "ask the content of the view: FROM table(view) LIMIT .."),
    "offset": ("OFFSET", "ask the content of the view: FROM table(view)"),
    "qualify": ("QUALIFY", "ask the content of the view: FROM table(view)"),
    "windows": ("WINDOW", "ask the content of the view: FROM table(view)"),
    "prewhere": ("PREWHERE", "write WHERE"),
    "laterals": ("LATERAL", "join with an equality"),
}


def refuse_clauses(query: exp.Query) -> exp.Select:
    """The query as a SELECT of which every clause is supported."""
    if isinstance(query, exp.Subquery):
        return refuse_clauses(query.this)
    if not isinstance(query, exp.Select):
        raise Unsupported(
            f"{type(query).__name__.upper()} of streams is not supported in this release",
            fix="one materialized view for each SELECT, both INTO one stream",
        )
    for name, (clause, fix) in _CLAUSES.items():
        found = query.args.get(name)
        if found:
            where = place_of(found, clause) if isinstance(found, exp.Expr) else f"in {clause}"
            raise Unsupported(f"{clause} over streams is not supported in this release", where=where, fix=fix)
    return query


def refuse_table(table: exp.Expr) -> None:
    """A FROM item of a form that is not supported."""
    place = place_of(table, "FROM")
    if not isinstance(table, exp.Table | exp.Subquery):
        raise Unsupported(
            f"{type(table).__name__} in FROM is not supported", where=place, fix="FROM a stream, a subquery or table(x)"
        )
    if table.args.get("joins"):
        raise Unsupported("a join in brackets is not supported", where=place, fix="write the joins one after another")
    if table.args.get("version"):
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF is for the right side of a join: a TABLE, view, index or dictionary by its name",
            where=place,
            fix="FROM stream JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON ..",
        )
    if table.args.get("sample") or table.args.get("pivots"):
        raise Unsupported(
            "SAMPLE and PIVOT are not supported in FROM", where=place, fix="FROM a stream, a subquery or table(x)"
        )


def refuse_lookup(join: exp.Join, place: str) -> None:
    """A lookup join is INNER or LEFT: the right side emits nothing."""
    side = (join.side or ("OUTER" if join.kind.upper() == "OUTER" else "")).upper()
    if side not in ("", "LEFT"):
        raise Unsupported(
            f"{side} JOIN with what is looked up is not supported, INNER and LEFT are: the right side is asked, not "
            "streamed, so its unmatched rows never become known",
            where=place,
            fix="INNER JOIN or LEFT JOIN with the stream on the left",
        )
    if join.method.upper() == "ASOF":
        raise Unsupported(
            "ASOF JOIN with what is looked up is not supported: a lookup asks by equality",
            where=place,
            fix="leave ASOF out, or join the stream of its versions",
        )


def is_process_time(table: exp.Table, place: str) -> bool:
    """Whether FOR SYSTEM_TIME AS OF PROCTIME() stands after the table; raises Unsupported for another time."""
    version = table.args.get("version")
    if version is None:
        return False
    time = version.expression
    if isinstance(time, exp.Func) and function_name(time) == "proctime":
        return True
    raise Unsupported(
        "FOR SYSTEM_TIME AS OF a column (event-time temporal join) is not supported in this release",
        where=place,
        fix="FOR SYSTEM_TIME AS OF PROCTIME(), or ASOF JOIN",
    )


def refuse_join_method(join: exp.Join, place: str) -> None:
    method, kind = join.method.upper(), join.kind.upper()
    if method in ("LATEST", "ANY"):
        raise Unsupported(
            f"{method} JOIN is not supported in this release",
            where=place,
            fix="ASOF JOIN with keep_versions, or JOIN changelog(stream, key)",
        )
    if kind in ("SEMI", "ANTI"):
        fix = (
            "INNER JOIN with a stream that is unique by the key"
            if kind == "SEMI"
            else "LEFT JOIN, with WHERE r.key IS NULL"
        )
        raise Unsupported(f"{kind} JOIN is not supported in this release", where=place, fix=fix)
    if join.args.get("match_condition"):
        raise Unsupported(
            "MATCH_CONDITION is not supported", where=place, fix="write the inequality of ASOF JOIN in ON"
        )
