"""SESSION over rows that are all there, as DuckDB computes it: gaps are found, and the islands between them numbered.

The keys are filled in when GROUP BY is known, as ``sql.bind.groups.session_keys`` does over streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.from_clause.sessions import SessionCall
from dovetail.sql.bind.from_clause.windows import END, START
from dovetail.sql.bind.groups.session_keys import refused_bounds, refused_rows
from dovetail.sql.expressions.engine import parsed
from dovetail.sql.expressions.evaluate import quoted
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.plan.time_text import in_units, per_unit

_PLACE = "place of sessions"
"""The note on a FROM item in sessions: where it is written."""


def sessions_of(rows: exp.Select, call: SessionCall, alias: str, kind: pa.DataType) -> exp.Subquery:
    """``rows`` under their alias, each with the bounds of its session among all of them."""
    if call.longest_ms is not None:
        raise Unsupported(
            "SESSION with a longest session is not supported over table(x)",
            where=call.place,
            fix="leave it out, or ask the content of a view: FROM table(view)",
        )
    name, time = quoted(alias), f"{quoted(alias)}.{quoted(call.time.name)}"
    gap = in_units(call.gap_ms, kind) * per_unit(kind)
    before = f"lag(epoch_us({time})) OVER (ORDER BY {time})"
    begins = f"CASE WHEN epoch_us({time}) - {before} < {gap} THEN 0 ELSE 1 END"
    marked = f"SELECT {name}.*, {begins} AS __begins FROM rows AS {name} WHERE {time} IS NOT NULL"
    numbered = f"SELECT {name}.*, sum({name}.__begins) OVER (ORDER BY {time}) AS __number FROM ({marked}) AS {name}"
    whole = f"OVER (PARTITION BY {name}.__number)"
    bounds = f"min({time}) {whole} AS {START}, max({time}) {whole} + to_microseconds({gap}) AS {END}"
    sessions = parsed(f"SELECT {name}.* EXCLUDE (__begins, __number), {bounds} FROM ({numbered}) AS {name}")
    source = next(table for table in sessions.find_all(exp.Table) if table.name == "rows")
    source.replace(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True))))
    found = exp.Subquery(this=sessions, alias=exp.TableAlias(this=exp.to_identifier(alias)))
    found.meta[_PLACE] = call.place
    return found


def fill_in(select: exp.Select, keys: Sequence[exp.Expr], grouped: bool) -> None:
    """The sessions in FROM are those of ``keys``, of the rows that WHERE leaves. Raises Unsupported where there are
    sessions, and no groups of them.
    """
    source = select.args.get("from_") or select.args.get("from")
    items = [] if source is None else [source.this, *(join.this for join in select.args.get("joins") or ())]
    places = [item.meta[_PLACE] for item in items if _PLACE in item.meta]
    if not places:
        return
    if len(items) > 1 or not grouped:
        raise refused_rows(places[0])
    own = [key for key in keys if not _is_of_bounds(key)]
    if len(own) == len(keys):
        raise refused_bounds(places[0])
    for window, rows in _windows(items[0].this):
        window.set("partition_by", [*(key.copy() for key in own), *(window.args.get("partition_by") or ())])
        if rows is not None:
            _move_conditions(select, rows)


def _is_of_bounds(tree: exp.Expr) -> bool:
    return any(column.name in (START, END) for column in tree.find_all(exp.Column))


def _windows(sessions: exp.Expr) -> Iterator[tuple[exp.Window, exp.Select | None]]:
    """Every window function, with the SELECT of the rows themselves where it stands in that."""
    select: exp.Expr | None = sessions
    for depth in range(3):
        assert isinstance(select, exp.Select)
        for item in select.expressions:
            for window in item.find_all(exp.Window):
                yield window, select if depth == 2 else None
        select = select.args["from_"].this.this


def _move_conditions(select: exp.Select, rows: exp.Select) -> None:
    """What WHERE says of the rows is asked before they are in sessions."""
    where = select.args.get("where")
    if where is None:
        return
    terms = conjuncts(where.this)
    about_rows = [term.copy() for term in terms if not _is_of_bounds(term)]
    about_sessions = [term.copy() for term in terms if _is_of_bounds(term)]
    rows.where(*about_rows, copy=False)
    select.set("where", exp.Where(this=exp.and_(*about_sessions)) if about_sessions else None)
