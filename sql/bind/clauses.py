"""What a streaming SELECT cannot have yet, refused by the name of its clause."""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.scope import place_of
from dovetail.sql.syntax.calls import function_name
from dovetail.sql.syntax.rules import Rules

_CLAUSES = {
    "order": ("ORDER BY", "order the content of the view: FROM table(view) ORDER BY .."),
    "limit": (
        "LIMIT without ORDER BY",
        "ORDER BY k LIMIT 5; or ask the content of the view: FROM table(view) LIMIT 5; LIMIT 5 ends a SELECT by itself",
    ),
    "offset": ("OFFSET without LIMIT", "ORDER BY k LIMIT 5 OFFSET 5; or ask the content of the view: FROM table(view)"),
    "laterals": ("LATERAL", "join with an equality"),
}


def out_of_brackets(query: exp.Query, rules: Rules) -> exp.Query:
    """What stands in the brackets around a query. Raises Unsupported for a clause behind them that is not supported."""
    while isinstance(query, exp.Subquery):
        refuse_clauses(query, rules)
        query = query.this
    return query


def refuse_clauses(query: exp.Query, rules: Rules) -> None:
    """Also those of a UNION, which are about all of its rows, though the parser may find them at its last SELECT.

    A view is a set: under RisingWave rules ORDER BY alone is read, and says nothing.
    """
    _refuse_first_rows(query)
    if isinstance(query, exp.SetOperation | exp.Subquery):
        order_by_names(query)
    if isinstance(query, exp.SetOperation) and isinstance(query.expression, exp.Select):
        _refuse_first_rows(query.expression)
    for name, (clause, fix) in _CLAUSES.items():
        found = query.args.get(name)
        if found and not (name == "order" and rules == Rules.RISINGWAVE):
            where = place_of(found, clause) if isinstance(found, exp.Expr) else f"in {clause}"
            raise Unsupported(f"{clause} over streams is not supported in this release", where=where, fix=fix)


def _refuse_first_rows(query: exp.Query) -> None:
    order, limit = query.args.get("order"), query.args.get("limit")
    if order is not None and limit is not None:
        raise Unsupported(
            "ORDER BY and LIMIT behind a UNION, or behind brackets, are not supported over streams",
            where=place_of(order, "ORDER BY"),
            fix="SELECT * FROM (SELECT .. UNION ALL SELECT ..) AS u ORDER BY .. LIMIT ..",
        )


def order_by_names(query: exp.Query) -> None:
    """Let ORDER BY behind a UNION, or behind brackets, name columns as they are. Raises Unsupported for a term that is
    neither a name nor a position.
    """
    order = query.args.get("order")
    for term in () if order is None else order.expressions:
        if isinstance(term.this, exp.Column) and not term.this.table:
            term.this.this.set("quoted", True)
        elif not isinstance(term.this, exp.Literal) or term.this.is_string:
            raise Unsupported(
                "ORDER BY behind a UNION, or behind brackets, takes names and positions of columns",
                where=place_of(term, "ORDER BY"),
                fix="SELECT * FROM (SELECT .. UNION ALL SELECT ..) AS u ORDER BY ..",
            )


def refuse_table(table: exp.Expr) -> None:
    """A FROM item of a form that is not supported."""
    place = place_of(table, "FROM")
    if isinstance(table, exp.Final):
        raise Unsupported(
            "FINAL is not needed: a keyed stream is read as the current row of each key",
            where=place,
            fix="leave FINAL out",
        )
    if table.args.get("version"):
        if (moment := moment_of(table)) is not None:
            raise past_refused(f"{table.name} AS OF {moment.sql()}", place)
        raise Unsupported(
            "FOR SYSTEM_TIME AS OF is for the right side of a join: a TABLE, view, index or dictionary by its name",
            where=place,
            fix="FROM stream JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON ..",
        )


def refuse_lookup(join: exp.Join, place: str) -> None:
    """A lookup join is INNER or LEFT, or asks of the left rows, SEMI or ANTI: the right side emits nothing."""
    side = join.side.upper()
    if side not in ("", "LEFT"):
        raise Unsupported(
            f"{side} JOIN with what is looked up is not supported, INNER and LEFT are: the right side is asked, not "
            "streamed, so its unmatched rows never become known",
            where=place,
            fix="INNER JOIN or LEFT JOIN with the stream on the left",
        )
    method = join.method.upper()
    if method in ("ASOF", "LATEST"):
        raise Unsupported(
            f"{method} JOIN with what is looked up is not supported: a lookup asks by equality",
            where=place,
            fix=f"leave {method} out, or join the stream of its versions",
        )


def is_process_time(table: exp.Expr) -> bool:
    """Whether FOR SYSTEM_TIME AS OF PROCTIME() stands after the table."""
    version = table.args.get("version")
    time = None if version is None else version.expression
    return isinstance(time, exp.Func) and function_name(time) == "proctime"


def event_time(table: exp.Expr) -> exp.Expr | None:
    """The time of the left row that stands after FOR SYSTEM_TIME AS OF; None where none does."""
    version = table.args.get("version")
    return None if version is None or is_process_time(table) else version.expression


def moment_of(table: exp.Expr) -> exp.Expr | None:
    """The moment that stands after AS OF, which no row says; None where none does."""
    time = event_time(table)
    return None if time is None or time.find(exp.Column) else time


def past_refused(what: str, place: str) -> Unsupported:
    """The error for what a streaming query is to read of the past."""
    return Unsupported(
        f"{what} is for queries that are answered at once, and this one goes on with streams",
        where=place,
        fix="read nothing else in it than table(x), x AS OF a moment, changes(x, ..), and dictionaries",
    )


def refuse_join_method(join: exp.Join, place: str) -> None:
    method = join.method.upper()
    if method == "ANY":
        raise Unsupported(
            "ANY JOIN is not supported: which of several rows it takes would be left to chance",
            where=place,
            fix="LATEST JOIN takes the row inserted last",
        )
    if method in ("ASOF", "LATEST") and event_time(join.this) is not None:
        raise Unsupported(
            f"{method} and FOR SYSTEM_TIME AS OF do not go together: each chooses the right row",
            where=place,
            fix=f"leave one of them out: JOIN r FOR SYSTEM_TIME AS OF l.time, or {method} JOIN r",
        )
    refuse_match_condition(join, place)


def refuse_match_condition(join: exp.Join, place: str) -> None:
    if join.args.get("match_condition"):
        raise Unsupported(
            "MATCH_CONDITION is not supported", where=place, fix="write the inequality of ASOF JOIN in ON"
        )
