"""CREATE TABLE, SOURCE and INDEX: streams under RisingWave rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from dovetail.changelog.encodings.settings import KEY_ENCODE, OPTION
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.schema import Column, Kind, RecordPart
from dovetail.sql.syntax.cursor import Cursor, is_name
from dovetail.sql.syntax.grammar.columns import Elements, elements_of_stream, primary_key, watermark
from dovetail.sql.syntax.grammar.hints import flink, ksql
from dovetail.sql.syntax.grammar.hints.filled_forms import Declaration, written
from dovetail.sql.syntax.grammar.hints.pasted_queries import refuse_query_of
from dovetail.sql.syntax.grammar.queries import select
from dovetail.sql.syntax.grammar.settings import assignments, with_clause
from dovetail.sql.syntax.grammar.streams import check, check_version, text_of
from dovetail.sql.syntax.record_columns import include
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.statements import DATAGEN, CreateIndex, CreateStream, CreateTableAs, Index, Setting


def create_table(cursor: Cursor, or_replace: bool, source: bool) -> CreateStream | CreateTableAs:
    """What follows CREATE TABLE or CREATE SOURCE. A source without a primary key is append-only."""
    cursor.clause = "CREATE SOURCE" if source else "CREATE TABLE"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    start, name = cursor.offset, cursor.path("the name of a table")
    if not source and (filled := _table_as(cursor, name, if_not_exists, start)) is not None:
        if or_replace:
            cursor.fail("a table that a query fills is not replaced", fix=f"DROP TABLE {written(name)} before")
        return filled
    append_only = bool(cursor.accept("APPEND ONLY"))
    found = elements_of_stream(cursor, Rules.RISINGWAVE)
    settings: dict[str, Setting] = {}
    while not cursor.done:
        append_only = bool(cursor.accept("APPEND ONLY")) or append_only
        if not source and cursor.at("WITH"):
            clause = cursor.clause
            given = with_clause(cursor)
            cursor.clause = clause
            append_only = _appends(given, found) or append_only
            settings.update(_as_here(cursor, name, found, given, start))
        else:
            _option(cursor, found, settings)
    _type_key(found, settings)
    generated = settings.get("connector") == DATAGEN
    append_only = append_only or ((source or generated) and not found.primary_key)
    kind = Kind.APPEND if append_only else Kind.UPSERT if found.primary_key else Kind.CHANGELOG
    event_time = found.watermark.column if found.watermark else None
    version = text_of(settings.get("version_column"))
    check_version(cursor, found, kind, version, start)
    check(cursor, found, kind, start, event_time, settings, version)
    return CreateStream(
        name=name,
        columns=tuple(found.columns),
        kind=kind,
        rules=Rules.RISINGWAVE,
        primary_key=found.primary_key if kind == Kind.UPSERT else (),
        sort_key=() if kind == Kind.UPSERT else found.primary_key,
        mutable=not append_only and not source,
        external="connector" in settings and not generated,
        source=source,
        append_only=append_only,
        topic=text_of(settings.get("topic", settings.get("kafka.topic"))),
        brokers=text_of(settings.get("properties.bootstrap.server", settings.get("kafka.brokers"))),
        event_time=event_time,
        watermark=found.watermark,
        settings=settings,
        if_not_exists=if_not_exists,
        or_replace=or_replace,
        included=tuple(found.included),
        of_schema=found.of_schema,
    )


def _table_as(cursor: Cursor, name: str, if_not_exists: bool, start: int) -> CreateTableAs | None:
    """``[(columns)] AS SELECT ..``; None, with nothing read, for a table that is declared. Raises Unsupported for a
    query that goes on forever, as ksqlDB has it.
    """
    index = cursor.index
    columns = _column_names(cursor) if _names_only(cursor) else ()
    if not (cursor.at("AS") and cursor.word(1) in ("SELECT", "WITH", "VALUES", "(")):
        cursor.index = index
        refuse_query_of(cursor, "table", name, start)
        return None
    words = [token.text.upper() for token in cursor.tokens[cursor.index :]]
    if "EMIT" in words:
        refuse_query_of(cursor, "table", name, start)
    cursor.accept("AS")
    return CreateTableAs(name, select(cursor), columns, if_not_exists)


def _names_only(cursor: Cursor) -> bool:
    """Whether brackets follow that hold names and commas, and AS behind them."""
    words = [token.text.upper() for token in cursor.tokens[cursor.index :]]
    if words[:1] != ["("] or ")" not in words:
        return False
    end = words.index(")")
    return words[end + 1 : end + 2] == ["AS"] and all(word == "," for word in words[2:end:2])


def _type_key(found: Elements, settings: dict[str, Setting]) -> None:
    """The included key is a text where keys are (``KEY ENCODE TEXT``), else bytes. One that is the primary key is a
    column like any other, whose values are the keys of records.
    """
    encode = settings.get(KEY_ENCODE)
    kind = pa.string() if encode == "text" else pa.binary()
    for one in [one for one in found.included if one.part is RecordPart.KEY]:
        if found.primary_key == (one.name,) and encode in (None, "bytes", "text"):
            found.included.remove(one)
            found.columns.append(Column(one.name, kind))
            settings[KEY_ENCODE] = encode or "bytes"
        else:
            found.included[found.included.index(one)] = replace(one, type=kind)


def _appends(given: Mapping[str, Setting], found: Elements) -> bool:
    """A table of Flink without a primary key has a row for each record."""
    return flink.is_of_flink(given) and not found.primary_key


def _as_here(
    cursor: Cursor, name: str, found: Elements, given: Mapping[str, Setting], start: int
) -> Mapping[str, Setting]:
    """The settings of WITH, those of other systems in our words. Raises Unsupported with a table that there is."""
    topic = str(given.get(ksql.TOPIC, given.get("topic", name)))
    brokers = str(given.get("properties.bootstrap.servers", given.get("properties.bootstrap.server", "")))
    table = Declaration(name, found, topic, brokers)
    if ksql.TOPIC in given:
        return ksql.settings_of_table(cursor, table, given, start)
    return flink.settings_of_flink(cursor, table, given, start) if flink.is_of_flink(given) else given


def _option(cursor: Cursor, found: Elements, settings: dict[str, Setting]) -> None:
    if cursor.at("PRIMARY KEY"):
        primary_key(cursor, found)
    elif cursor.at("WATERMARK"):
        watermark(cursor, found)
    elif cursor.at("WITH"):
        settings.update(with_clause(cursor))
    elif cursor.accept("INCLUDE"):
        found.included.append(include(cursor, found.names))
    elif _format(cursor, settings):
        pass
    elif cursor.accept("ON CONFLICT"):
        _conflict(cursor, settings)
    elif not cursor.done and not cursor.at("APPEND ONLY"):
        cursor.fail_expecting(
            "APPEND ONLY", "PRIMARY KEY", "WATERMARK", "INCLUDE", "WITH", "FORMAT", "ENCODE", "KEY ENCODE"
        )


def _conflict(cursor: Cursor, settings: dict[str, Setting]) -> None:
    """DO UPDATE FULL: a later record replaces an earlier one, what a primary key means in any case; WITH VERSION COLUMN
    (v): one of a greater or an equal version does.
    """
    start = cursor.offset
    if not cursor.accept("DO UPDATE FULL", "OVERWRITE"):
        cursor.fail(
            "of two records of a primary key one stands as a whole: the later one, or that of the greater version",
            fix="ON CONFLICT DO UPDATE FULL, which is the default; ON CONFLICT DO UPDATE FULL WITH VERSION COLUMN (v)",
            kind=Unsupported,
            offset=start,
        )
    if not cursor.accept("WITH VERSION COLUMN"):
        return
    cursor.expect("(")
    settings["version_column"] = cursor.name("a column")
    if cursor.at(","):
        cursor.fail(
            "one column is the version of a record",
            fix="WITH VERSION COLUMN (v), where v orders the records as these columns would",
            kind=Unsupported,
        )
    cursor.expect(")")


def _format(cursor: Cursor, settings: dict[str, Setting]) -> bool:
    """How records are written: FORMAT, ENCODE, KEY ENCODE; False where none of these comes next."""
    if cursor.accept("FORMAT"):
        settings["format"] = cursor.name("a format").lower()
    elif cursor.accept("KEY ENCODE"):
        settings[KEY_ENCODE] = cursor.name("an encoding of keys").lower()
    elif cursor.accept("ENCODE"):
        settings["encode"] = cursor.name("an encoding").lower()
        if cursor.accept("("):
            given = {} if cursor.at(")") else assignments(cursor)
            cursor.expect(")")
            settings.update({OPTION + name: value for name, value in given.items()})
    else:
        return False
    return True


def create_index(cursor: Cursor) -> CreateIndex:
    """What follows CREATE INDEX: ``[IF NOT EXISTS] i ON stream (a, b) [INCLUDE (c)] [DISTRIBUTED BY (a)]``."""
    cursor.clause = "CREATE INDEX"
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    if cursor.at("ON") and cursor.word(1) != "ON":
        cursor.fail("an index has a name", fix=_named_index(cursor))
    name = cursor.name("the name of an index")
    cursor.expect("ON")
    stream = cursor.path("the name of a table")
    if cursor.at("USING"):
        cursor.fail("there is one kind of index", fix=_of_one_kind(cursor, name, stream), kind=Unsupported)
    columns = cursor.wrapped(lambda: _indexed_column(cursor))
    storing = _column_names(cursor) if cursor.accept("INCLUDE", "STORING") else ()
    if cursor.accept("DISTRIBUTED BY"):
        # How rows lie on machines, which the join key decides here.
        _column_names(cursor)
    return CreateIndex(Index(name, columns, storing), stream, if_not_exists)


def _indexed_column(cursor: Cursor) -> str:
    """A column, and how its values would be put in order, which lookups by equality do not ask."""
    name = cursor.name("a column")
    cursor.accept("ASC", "DESC")
    cursor.accept("NULLS FIRST", "NULLS LAST")
    return name


def _named_index(cursor: Cursor) -> str:
    """``ON t (a)`` with a name that tells what it is of."""
    words = [token.text for token in cursor.tokens[cursor.index + 1 :] if is_name(token)]
    rest = cursor.script[cursor.offset : int(cursor.tokens[-1].end) + 1]
    return f"CREATE INDEX {written('_by_'.join(words[:2]) or 'by_name')} {' '.join(rest.split())}"


def _of_one_kind(cursor: Cursor, name: str, stream: str) -> str:
    rest = cursor.script[cursor.tokens[cursor.index].start : int(cursor.tokens[-1].end) + 1]
    columns = rest[rest.index("(") :] if "(" in rest else "(..)"
    return f"CREATE INDEX {written(name)} ON {written(stream)} {columns}"


def _column_names(cursor: Cursor) -> tuple[str, ...]:
    return cursor.wrapped(lambda: cursor.name("a column"))
