"""``changelog(x, keys)`` in FROM: each row takes the place of the one before it of its key.

A stream is read as upserts. The rows of a subquery, CTE or plain view are those that come out of it: a record that its
WHERE leaves out replaces nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.plan.nodes import Join, Keyed, LookupJoin, Node, Scan, Static, rebuilt
from dovetail.sql.plan.properties import source_of, walk
from dovetail.sql.relations import Stream


def keyed(stream: Stream, keys: Sequence[str], place: str) -> Stream:
    """``changelog(stream, keys)``"""
    name = stream.schema.name
    if stream.schema.kind != Kind.APPEND:
        raise _is_changelog(name, place)
    _check_keys(name, keys, {column.name for column in stream.schema.columns}, place)
    return replace(stream, schema=replace(stream.schema, kind=Kind.UPSERT, primary_key=tuple(keys)))


def keyed_rows(item: FromItem, name: str, keys: Sequence[str], place: str) -> FromItem:
    """``changelog(name, keys)`` of a CTE or plain view, which gives ``item``."""
    if isinstance(item.node, Static):
        raise Unsupported(
            f'"{name}" is read once and does not change, so it has no changelog', where=place, fix=f"write FROM {name}"
        )
    joins = any(isinstance(below, Join | LookupJoin) for below in walk(item.node))
    if item.node.updates and not joins:
        raise _is_changelog(name, place)
    if source_of(item.node) is None:
        raise Unsupported(
            f'changelog({name}) takes the last row of each key, and the rows that "{name}" computes have no order',
            where=place,
            fix=f"CREATE MATERIALIZED VIEW rows_of_{name} AS SELECT ..: its topic has an order, FROM changelog(rows_of_"
            f"{name}, key); or write FROM {name}, where EXPLAIN says that it is a Changelog",
        )
    columns = {column.name: column.internal for column in item.scope.columns}
    _check_keys(name, keys, columns, place)
    return replace(item, node=Keyed(_from_the_start(item.node), tuple(columns[key] for key in keys)))


def keyed_content(item: FromItem, name: str, keys: Sequence[str], place: str) -> FromItem:
    """``changelog(name, keys)`` of rows that are all there, in an order: the last of each key."""
    columns = {column.name: column.internal for column in item.scope.columns}
    _check_keys(name, keys, columns, place)
    return replace(item, node=Keyed(item.node, tuple(columns[key] for key in keys)))


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
