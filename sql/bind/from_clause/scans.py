"""The topic of a stream or a view as an item of FROM: its columns, its watermark, and where reading begins."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dovetail.changelog.schema import SEQUENCE, TIME, Kind
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.functions.growth import read_relation
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.nodes import Scan
from dovetail.sql.query_settings import QuerySettings, seek_offsets
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.watermarks import as_set


def scanned(stream: Stream, alias: str, settings: QuerySettings, dialect: Dialect, *, seeks: bool) -> FromItem:
    """The rows of a topic; ``seeks``: the query says itself where in time they start."""
    read_relation()
    stream = replace(stream, watermark=as_set(stream.watermark, settings))
    declared = [column.name for column in stream.schema.readable]
    reserved = [name for name in (TIME, SEQUENCE) if name not in declared]
    columns = tuple((f"{alias}.{name}", name) for name in declared + reserved)
    scan = Scan(
        alias,
        stream.schema,
        stream.topic,
        stream.rules,
        columns,
        trusted=stream.trusted,
        watermark=stream.watermark if stream.schema.kind == Kind.APPEND else None,
        stated=stream.watermark,
        upstream_watermarks=tuple(
            replace(one, idle_ms=settings.duration_ms("idle_timeout")) for one in stream.upstream_watermarks
        ),
    )
    node = _started(scan, settings, seeks)
    starred = [*declared, TIME] if stream.timed and TIME not in declared else declared
    return FromItem.of(node, alias, starred, dialect, hidden=reserved)


def _started(scan: Scan, settings: QuerySettings, seeks: bool) -> Scan:
    """Where reading begins: append streams of Timeplus rules have no history unless it is asked for."""
    if scan.stream.kind != Kind.APPEND or scan.rules != Rules.TIMEPLUS or scan.trusted:
        return scan
    seek = settings.text("seek_to")
    if seek in ("", "latest"):
        return replace(scan, latest=not seeks or seek == "latest")
    return replace(scan, seek=seek_offsets(seek))


def filters_time(select: exp.Select) -> bool:
    """Whether WHERE says where in time to start: then history is read."""
    where = select.args.get("where")
    bounds = where.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.EQ) if where is not None else ()
    return any(column.name == TIME for bound in bounds for column in bound.find_all(exp.Column))
