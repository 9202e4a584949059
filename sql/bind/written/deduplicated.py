"""``dedup(s, k, ..)`` in FROM, of Timeplus: of the rows of each key the first, as ``LIMIT 1 BY`` has it.

FROM dedup(s, k, upper(c)) AS d      FROM (SELECT * FROM s LIMIT 1 BY k, upper(c)) AS d

The keys are remembered for as long as the query runs, so a time and a number of keys, after which Timeplus forgets
them, have no meaning here.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.sql.bind.from_clause.windows import as_table
from dovetail.sql.bind.scope import place_of
from dovetail.sql.syntax.calls import function_name

_FORM = "dedup(s, k): the first row of each k, however long ago it came"


def deduplicated(query: exp.Query) -> exp.Query:
    """The query with a subquery in the place of each such item. Raises SqlError for other arguments."""
    for table in list(query.find_all(exp.Table)):
        if function_name(table.this) == "dedup":
            table.replace(_first_rows(table))
    return query


def _first_rows(table: exp.Table) -> exp.Subquery:
    place = place_of(table, "FROM")
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
    rows = exp.select("*").from_(as_table(source, "dedup", place, _FORM))
    rows.set("limit", exp.Limit(expression=exp.Literal.number(1), expressions=[key.copy() for key in keys]))
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(source.name or "dedup"))
    return exp.Subquery(this=rows, alias=alias.copy())
