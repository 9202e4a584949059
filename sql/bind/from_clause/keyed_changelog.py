"""``changelog(x, keys)`` in FROM: each row takes the place of the one before it of its key.

An append stream is read as upserts. What has one row at most for each key already is read as it is, so is any changelog
without keys. ``changelog(x, k, true)`` drops rows whose version, else ``_tp_time``, is less than that of the row that
stands. The rows of a subquery, CTE or plain view are those that come out of it: a record that its
WHERE leaves out replaces nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import TIME, Kind, StreamSchema
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.plan.nodes import Join, Keyed, LookupJoin, Node, Scan, Static, rebuilt
from dovetail.sql.plan.properties import source_of, walk
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.calls import function_name


@dataclass(frozen=True)
class ChangelogCall:
    """``changelog(name, keys.. [, late_rows_dropped])``; ``of_content``: of ``table(name)``, what it holds now."""

    name: str
    keys: tuple[str, ...] = ()
    late_rows_dropped: bool = False
    of_content: bool = False

    @staticmethod
    def of(call: exp.Expr) -> ChangelogCall:
        read, *others = call.expressions
        dropped = isinstance(others[-1], exp.Boolean) and bool(others.pop().this) if others else False
        of_content = function_name(read) == "table"
        named = read.expressions[0] if of_content else read
        return ChangelogCall(named.name, tuple(key.name for key in others), dropped, of_content)


def is_changelog_by(schema: StreamSchema, call: ChangelogCall, place: str) -> bool:
    """Whether a stream that is a changelog has one row at most for each key of ``call``, or it names none.

    Raises Unsupported for other keys: of rows that share one the last is not known.
    """
    if call.keys:
        _check_keys(call.name, call.keys, {column.name for column in schema.columns}, place)
    if schema.kind is Kind.APPEND or call.late_rows_dropped:
        return False
    if call.keys and not (schema.primary_key and set(schema.primary_key) <= set(call.keys)):
        raise _is_changelog(call.name, place)
    return True


def keyed(stream: Stream, call: ChangelogCall, place: str) -> Stream:
    """A stream as upserts by the keys of ``call``, or else by its own."""
    schema = stream.schema
    keys = call.keys or schema.primary_key
    if schema.kind not in (Kind.APPEND, Kind.UPSERT) or (schema.primary_key and set(keys) != set(schema.primary_key)):
        raise _is_changelog(call.name, place)
    _check_keys(call.name, keys, {column.name for column in schema.columns}, place)
    version = schema.version or (TIME if call.late_rows_dropped else "")
    return replace(stream, schema=replace(schema, kind=Kind.UPSERT, primary_key=keys, version=version))


def keyed_rows(item: FromItem, call: ChangelogCall, place: str) -> FromItem:
    """The rows of a CTE or plain view, which gives ``item``."""
    name = call.name
    if isinstance(item.node, Static):
        raise Unsupported(
            f'"{name}" is read once and does not change, so it has no changelog', where=place, fix=f"write FROM {name}"
        )
    if call.late_rows_dropped:
        raise Unsupported(
            f'"{name}" is no stream of versions, so none of its rows is late', where=place, fix=f"changelog({name}, k)"
        )
    columns = {column.name: column.internal for column in item.scope.columns}
    if call.keys:
        _check_keys(name, call.keys, columns, place)
    if item.node.updates:
        by = {columns.get(key) for key in call.keys}
        if not by or any(set(unique) <= by for unique in item.node.unique_keys):
            return item
        if not any(isinstance(below, Join | LookupJoin) for below in walk(item.node)):
            raise _is_changelog(name, place)
    if source_of(item.node) is None:
        raise Unsupported(
            f'changelog({name}) takes the last row of each key, and the rows that "{name}" computes have no order',
            where=place,
            fix=f"CREATE MATERIALIZED VIEW rows_of_{name} AS SELECT ..: its topic has an order, FROM changelog(rows_of_"
            f"{name}, key); or write FROM {name}, where EXPLAIN says that it is a Changelog",
        )
    _check_keys(name, call.keys, columns, place)
    return replace(item, node=Keyed(_from_the_start(item.node), tuple(columns[key] for key in call.keys)))


def keyed_content(item: FromItem, call: ChangelogCall, place: str) -> FromItem:
    """Rows that are all there, in an order: the last of each key."""
    columns = {column.name: column.internal for column in item.scope.columns}
    if call.late_rows_dropped:
        raise Unsupported(
            f'which rows of "{call.name}" were late is not known of what it holds now',
            where=place,
            fix=f"changelog(table({call.name}), k)",
        )
    if not call.keys and item.node.unique_keys:
        return item
    _check_keys(call.name, call.keys, columns, place)
    return replace(item, node=Keyed(item.node, tuple(columns[key] for key in call.keys)))


def _from_the_start(node: Node) -> Node:
    """``node`` with all the rows of its stream: as of any upserts, none is late and history is their content."""
    if isinstance(node, Scan):
        return replace(node, latest=False, seek="", watermark=None)
    return rebuilt(node, _from_the_start)


def _is_changelog(name: str, place: str) -> Unsupported:
    return Unsupported(f'"{name}" is a changelog already', where=place, fix=f"write FROM {name}")


def _check_keys(name: str, keys: Sequence[str], columns: Collection[str], place: str) -> None:
    if not keys:
        raise Unsupported(f"changelog({name}) needs the columns of its key", where=place, fix=f"changelog({name}, key)")
    for key in keys:
        if key not in columns:
            raise UnknownName(
                f'"{name}" has no column "{key}"', where=place, fix=f"there are: {', '.join(sorted(columns))}"
            )
