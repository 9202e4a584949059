"""Nothing that a user calls or reads reaches the engine as it is written: it knows more functions than the dialects,
and more tables than the catalog.

The calls, operators and tables of a query are marked before it is bound. What translates one builds another in its
place, so a mark that is left in a tree of the engine is of a place that nobody has translated.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.written.join_words import refuse_join_words
from dovetail.sql.bind.written.qualifiers import unqualified
from dovetail.sql.bind.written.unread import refuse_unread

_AS_WRITTEN = "as written"
_KEPT = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Exists, exp.DataType, exp.Lambda)
"""Names, values, and what holds a query or an expression that is translated by itself."""


def as_written(query: exp.Query) -> exp.Query:
    """A copy of the query in which each call, operator and table knows that the user wrote it. Raises SqlError for
    parts that are not read, and for databases that there are not.
    """
    refuse_unread(query)
    refuse_join_words(query)
    made = unqualified(query).copy()
    for node in made.walk():
        if _is_looked_up(node):
            node.meta[_AS_WRITTEN] = True
    return made


def _is_looked_up(node: exp.Expr) -> bool:
    if isinstance(node, exp.Table):
        return not isinstance(node.this, exp.Values)
    return isinstance(node, exp.Condition | exp.Func | exp.Interval) and not isinstance(node, _KEPT)


def refuse_untranslated(tree: exp.Expr, where: str) -> None:
    """Raises Unsupported for what is still as the user wrote it in a tree of the engine."""
    for node in tree.walk():
        if node.meta.get(_AS_WRITTEN):
            what = f"{node.sql(dialect='clickhouse')} is not allowed here"
            raise Unsupported(
                what,
                where=where,
                fix="compute it in a subquery, SELECT f(x) AS y FROM .., and name y here; or write the value itself",
            )
