"""SETTINGS max_fan_out_action = 'dead_letter': each side of each join gets a budget of rows for a key, and records
beyond it become dead letters.

What is refused must be a record of a topic, so that it can be put back; and one record must be one row, of one side, so
that it is refused as a whole. Other joins are refused here rather than run without a budget.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Join, Keyed, Map, MultiwayJoin, Node, Scan, rebuilt
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.query_plan import QueryPlan

_WHERE = "SETTINGS max_fan_out_action"
_WARN = "max_fan_out_action = 'warn' keeps all rows, and says in the log which key has too many"


def row_budgets(plan: QueryPlan) -> QueryPlan:
    """Raises SqlError without a budget, Unsupported for a join whose rows can have none."""
    if plan.settings["max_fan_out_action"] != "dead_letter":
        return plan
    most = plan.settings.number("max_fan_out")
    if most is None:
        raise SqlError("there is no budget to go by", where=_WHERE, fix="SETTINGS max_fan_out = 1000 beside it")
    if not any(isinstance(node, Join | MultiwayJoin) for node in walk(plan.rows)):
        raise Unsupported("no join of this query keeps rows by key", where=_WHERE, fix="leave it out")
    _refuse_topics_read_twice(plan.rows)
    return plan.with_rows(_budgeted(plan.rows, most))


def _budgeted(node: Node, most: int) -> Node:
    made = rebuilt(node, lambda below: _budgeted(below, most))
    if isinstance(made, Join):
        if not isinstance(made.method, Bidirectional) or not made.keys:
            raise Unsupported(
                f"the join {made.method.operator} has no budget of rows for a key",
                where=_WHERE,
                fix=f"JOIN .. ON with an equality, of rows that stay until they are taken back; or {_WARN}",
            )
        _refuse_other_than_records(made.left, made.right)
        return replace(made, max_rows_per_key=most)
    if isinstance(made, MultiwayJoin):
        _refuse_other_than_records(*made.inputs)
        return replace(made, chain=replace(made.chain, max_rows_per_key=most))
    return made


def _refuse_other_than_records(*sides: Node) -> None:
    """Each row of a side must be a record."""
    for side in sides:
        node = side
        while isinstance(node, Map):
            node = node.input
        if isinstance(node, Keyed):
            raise Unsupported(
                "the rows of a keyed stream that is filtered, or joined by other columns than those of its PRIMARY KEY,"
                " move between keys: a record could not be left out without its former row",
                where=_WHERE,
                fix=f"join by columns of its PRIMARY KEY; or {_WARN}",
            )
        if not isinstance(node, Scan):
            raise Unsupported(
                f"one side of a join is not the records of a stream, but what {type(node).__name__} makes of them: no"
                " single record could be left out",
                where=_WHERE,
                fix=f"make that side a materialized view, and join the view; or {_WARN}",
            )
        if node.stream.kind is Kind.CHANGELOG_KV:
            raise Unsupported(
                f'"{node.stream.name}" is of kind changelog_kv: which row a -1 takes back is not told by records alone',
                where=_WHERE,
                fix=f"declare it with mode = 'changelog', or as a MUTABLE STREAM; or {_WARN}",
            )


def _refuse_topics_read_twice(rows: Node) -> None:
    read = Counter(node.topic for node in walk(rows) if isinstance(node, Scan))
    for topic, times in read.items():
        if times > 1:
            raise Unsupported(
                f"the topic {topic} is read {times} times: a record could be refused on one side and stand on another",
                where=_WHERE,
                fix=f"read it once, or a view of it on the other side; or {_WARN}",
            )
