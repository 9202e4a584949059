"""What a streaming SELECT cannot have yet, refused by the name of its clause."""

from __future__ import annotations

from sqlglot import exp

from changelog.errors import Unsupported
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
            "FOR SYSTEM_TIME AS OF (temporal join) is not supported in this release",
            where=place,
            fix="join the stream without it",
        )
    if table.args.get("sample") or table.args.get("pivots"):
        raise Unsupported(
            "SAMPLE and PIVOT are not supported in FROM", where=place, fix="FROM a stream, a subquery or table(x)"
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
