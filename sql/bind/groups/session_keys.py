"""Sessions are those of groups: the keys of GROUP BY, save the bounds of the sessions, tell whose rows follow others.

FROM session(s, ts, 5s) WHERE v > 0 GROUP BY upper(k), window_start, window_end

Sessions    by __s0, of the rows with v > 0
Map         __s0 = upper(k)

A row that WHERE leaves out is in no session. What WHERE says of the bounds is asked of the sessions that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dovetail.changelog.errors import Unsupported
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.maps import filtered, identity
from dovetail.sql.plan.nodes import Aggregate, Map, Node, Sessions

KEY = "__s"
"""What the names of computed keys begin with."""

_GROUPED = (
    "GROUP BY k, window_start, window_end, for each k its own sessions; without k those of all rows. Join what comes "
    "out: FROM (SELECT k, window_start, window_end, count() AS n FROM session(s, ts, 5s) GROUP BY k, window_start, "
    "window_end) AS x JOIN r ON x.k = r.k"
)


def refuse_ungrouped(node: Node) -> None:
    """Raises Unsupported for sessions whose rows are read, or joined, as they are."""
    for sessions in _ungrouped(node):
        raise refused_rows(sessions.place)


def refused_rows(place: str) -> Unsupported:
    return Unsupported(
        "the rows of SESSION are read by groups: a session is one of the rows of a group", where=place, fix=_GROUPED
    )


def refused_bounds(place: str) -> Unsupported:
    return Unsupported(
        "groups of SESSION are by the session: GROUP BY has neither window_start nor window_end",
        where=place,
        fix="GROUP BY .., window_start, window_end",
    )


def _ungrouped(node: Node) -> Iterator[Sessions]:
    if isinstance(node, Sessions):
        yield node
    elif not isinstance(node, Aggregate):
        for below in node.inputs:
            yield from _ungrouped(below)


def with_keys(node: Node, keys: Sequence[Expr]) -> Node:
    """``node``, the rows that are grouped by ``keys``: if they are of sessions, those that the keys tell apart."""
    conditions: list[Expr] = []
    below = node
    while isinstance(below, Map) and below.columns == identity(below.input):
        conditions += split(below.where)
        below = below.input
    if not isinstance(below, Sessions):
        refuse_ungrouped(node)
        return node
    bounds = {below.start, below.end}
    if not any(bounds & set(key.columns) for key in keys):
        raise refused_bounds(below.place)
    about_rows = [term for term in conditions if not bounds & set(term.columns)]
    about_sessions = [term for term in conditions if bounds & set(term.columns)]
    return filtered(_by(below, filtered(below.input, about_rows), keys), about_sessions)


def _by(sessions: Sessions, rows: Node, keys: Sequence[Expr]) -> Sessions:
    """``sessions`` of ``rows`` by those of ``keys`` that are about these."""
    known = set(rows.schema.names)
    own = [key for key in dict.fromkeys(keys) if set(key.columns) <= known]
    computed = {f"{KEY}{number}": key for number, key in enumerate(own) if key.plain is None}
    names = {key: name for name, key in computed.items()}
    if computed:
        rows = Map(rows, (*identity(rows), *computed.items()))
    return replace(sessions, input=rows, keys=tuple(names.get(key) or key.plain or "" for key in own))
