"""``dedup(s, k, ..)`` in FROM, of Timeplus: of the rows of each key the one that arrived first.

FROM dedup(s, k, upper(c)) AS d

FROM (SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY k, upper(c) ORDER BY _tp_sn) = 1) AS d

The keys are remembered for as long as the query runs, so a time and a number of keys, after which Timeplus forgets
them, have no meaning here.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.bind.scope import place_of
from dovetail.sql.bind.written.rows_before import over_arrival
from dovetail.sql.syntax.calls import function_name

_FORM = "dedup(s, k): the first row of each k, however long ago it came"


def deduplicated(query: exp.Query) -> exp.Query:
    """The query with a subquery in the place of each such item. Raises SqlError for other arguments."""
    for table in list(query.find_all(exp.Table)):
        if function_name(table.this) == "dedup":
            table.replace(_first_rows(table))
        elif isinstance(table.this, exp.Anonymous) and any(map(_is_dedup, table.this.find_all(exp.Anonymous))):
            raise Unsupported(
                f"dedup() in {function_name(table.this)}() is not supported",
                where=place_of(table, "FROM"),
                fix="give it a name: WITH d AS (SELECT * FROM dedup(s, k)) SELECT .. FROM tumble(d, at, 5s)",
            )
    return query


def _is_dedup(call: exp.Expr) -> bool:
    return function_name(call) == "dedup"


def _first_rows(table: exp.Table) -> exp.Subquery:
    place = place_of(table, "FROM")
    other = next((name for name, part in table.args.items() if part and name not in ("this", "alias", "joins")), "")
    if other:
        raise Unsupported(f"dedup() is read as it is, without {other.upper()}", where=place, fix="leave it out")
    source, *keys = table.this.expressions or [exp.Null()]
    if not keys:
        raise SqlError("dedup takes a stream and the keys of its rows", where=place, fix=_FORM)
    forgotten = next((key for key in keys if key.find(exp.Column) is None), None)
    if forgotten is not None:
        raise Unsupported(
            f"dedup forgets no key, after {forgotten.sql(dialect='clickhouse')} or so many: a row would come again",
            where=place,
            fix=f"{_FORM}; once a minute: dedup(s, k, to_start_of_minute(_tp_time))",
        )
    item, name = _item(source, place)
    rows = exp.select("*").from_(item)
    first = exp.EQ(this=over_arrival(exp.RowNumber(), keys), expression=exp.Literal.number(1))
    rows.set("qualify", exp.Qualify(this=first))
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name))
    return exp.Subquery(this=rows, alias=alias.copy(), joins=[join.copy() for join in table.args.get("joins") or ()])


def _item(source: exp.Expr, place: str) -> tuple[exp.Table, str]:
    """What is read, as an item of FROM, and what it is called."""
    if isinstance(source, exp.Column):
        schema, database = source.args.get("table"), source.args.get("db")
        return exp.Table(this=source.this.copy(), db=schema, catalog=database), source.name
    if isinstance(source, exp.Anonymous) and source.expressions and not _is_dedup(source):
        return exp.Table(this=source.copy()), source.expressions[0].name
    raise SqlError("dedup takes the name of a stream", where=place, fix=_FORM)
