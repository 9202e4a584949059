"""What leaves a query: its columns, its key, and whether rows of one key must meet before they are written."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.changelog.encodings.settings import DEBEZIUM
from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.formats.json_types import converter
from dovetail.changelog.schema import ARRIVAL, JSON, TIME, RecordFormat
from dovetail.changelog.wording import type_words
from dovetail.sql.engines import Engine
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.column_names import DELTA_COLUMN, output_names
from dovetail.sql.plan.nodes import HIDDEN, Cut, Map, Node, Output
from dovetail.sql.plan.properties import walk
from dovetail.sql.query_settings import QuerySettings

KEY = "__key"
"""What the names of hidden columns of the Kafka key begin with."""

Columns = tuple[tuple[str, Expr], ...]


@dataclass(frozen=True)
class _Key:
    """``columns`` are names among the output columns and ``hidden``; ``sources`` the expressions that they hold."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    sources: tuple[Expr, ...]
    hidden: Columns = ()
    unique: bool = False


def output(name: str, topic: str, node: Node, columns: Columns, marked: bool, settings: QuerySettings) -> Output:
    """The root of the plan over ``node``, of which the rules have run."""
    updating = node.retracts
    looked_up = node.engine == Engine.FAUST
    if updating and settings["output"] == "append":
        raise Unsupported(
            "the rows of this query can be taken back, so it has no append form",
            where="SETTINGS output",
            fix="SETTINGS output = 'changelog', or an INNER JOIN of append streams",
        )
    key = _key(node, columns, updating)
    form = settings.text("output_format")
    if form == "upsert" and not (key.unique and key.columns):
        raise Unsupported(
            "upserts need a key that no two rows share, and the selected columns hold none",
            where="SETTINGS output_format",
            fix="select the primary keys of both sides, or use output_format = 'changelog'",
        )
    if form == "upsert":
        _refuse_padded(node, key)
    for column, expr in columns:
        _refuse_unwritable(column, expr)
    return Output(
        name=name,
        topic=topic,
        input=node,
        columns=columns,
        hidden=key.hidden,
        key=key.columns,
        key_names=key.names,
        updating=updating,
        exchanged=updating and not looked_up and not _together(node, key.sources),
        marked=marked,
        unique=key.unique,
        format=form,
        value_format=RecordFormat(envelope=DEBEZIUM) if form == DEBEZIUM else JSON,
    )


def _refuse_padded(node: Node, key: _Key) -> None:
    """A record without its whole key is no upsert: whoever reads it would reject it."""
    without = node.nullable
    for column, source in zip(key.columns, key.sources, strict=True):
        if source.plain in without:
            raise Unsupported(
                f'upserts need a key without NULLs, and "{column}" is NULL where an outer join finds no match, or in '
                "the group of the rows that have none",
                where="SETTINGS output_format",
                fix="use output_format = 'changelog', an INNER JOIN, or join by the other side's whole primary key; "
                "group by columns that are NOT NULL",
            )


def _refuse_unwritable(column: str, expr: Expr) -> None:
    if column in (DELTA_COLUMN, DELTA, ARRIVAL) or column.startswith(KEY):
        raise SqlError(f'the name "{column}" is reserved', where="in SELECT", fix="give the column another name: AS x")
    if column == TIME and not pa.types.is_timestamp(expr.type):
        raise SqlError(
            f"{TIME} is a time, not {type_words(expr.type)}",
            where="in SELECT",
            fix="give the column another name: AS x",
        )
    try:
        converter(expr.type)
    except TypeError:
        kind = type_words(expr.type)
        raise SqlError(
            f'the column "{column}" is of type {kind}, which has no form in JSON',
            where="in SELECT",
            fix="write CAST(x AS string), or date_diff('second', a, b) for the time between two columns",
        ) from None


def _key(node: Node, columns: Columns, updating: bool) -> _Key:
    """The shortest unique key among the selected columns; else the join key, hidden where it is not selected; else
    all.
    """
    shown = {expr.plain: name for name, expr in reversed(columns) if expr.plain is not None}
    equal_columns = node.equal_columns
    for candidate in node.unique_keys:
        found = [_selected(column, shown, equal_columns) for column in candidate]
        selected = tuple(dict.fromkeys(name for name in found if name is not None))
        if all(found):
            names = tuple(shown[name] for name in selected)
            return _Key(names, names, tuple(node.column(name) for name in selected), unique=True)
    sources = _complete(node.bucket_key)
    if sources is not None:
        return _with_hidden(sources, columns, node)
    names = tuple(name for name, _ in columns) if updating else ()
    return _Key(names, names, tuple(expr for _, expr in columns) if updating else ())


def _complete(cut: Cut | None) -> tuple[Expr, ...] | None:
    """The expressions by which rows were cut, if the columns of all of them have come so far."""
    known = tuple(source for source in cut or () if source is not None)
    return None if cut is None or len(known) < len(cut) else known


def _selected(column: str, shown: Mapping[str, str], equal_columns: Mapping[str, Set[str]]) -> str | None:
    """The column that is selected as ``column``, or stands for it."""
    return next((name for name in (column, *sorted(equal_columns.get(column, ()))) if name in shown), None)


def _with_hidden(sources: tuple[Expr, ...], selected: Columns, node: Node) -> _Key:
    by_source = {expr.structure: name for name, expr in reversed(selected)}
    columns: list[str] = []
    names: list[tuple[str, str]] = []
    hidden = []
    for position, source in enumerate(sources):
        if (name := by_source.get(source.structure)) is not None:
            columns.append(name)
            names.append((name, ""))
            continue
        first = min(source.columns, key=lambda name: name.startswith(HIDDEN))
        hidden.append((f"{KEY}{position}", source.held_as(node.schema.field(first).type)))
        columns.append(f"{KEY}{position}")
        table, _, name = _origin(node, first).rpartition(".")
        names.append((name.lstrip("_"), table))
    return _Key(tuple(columns), tuple(output_names(names)), sources, tuple(hidden))


def _origin(node: Node, column: str) -> str:
    """The column that a hidden one is computed from, if it is one alone; else itself."""
    if not column.startswith(HIDDEN):
        return column
    computed = (dict(below.columns).get(column) for below in walk(node) if isinstance(below, Map))
    read = next((expr.columns for expr in computed if expr is not None and expr.plain != column), ())
    return read[0] if len(read) == 1 else column


def together(made: Output, key: tuple[str, ...]) -> bool:
    """Whether rows that agree in the output columns ``key`` come out of one bucket, or of one partition."""
    sources = dict(made.columns)
    return _together(made.input, tuple(sources[name] for name in key))


def _together(node: Node, sources: tuple[Expr, ...]) -> bool:
    """Whether rows of one key come out of one bucket: the key holds what they were cut by."""
    cut = node.bucket_key
    if cut is None:
        return False
    equal_columns = node.equal_columns
    in_key = {source.structure for source in sources}
    plain = {source.plain for source in sources}
    return all(
        source is not None and (source.structure in in_key or plain & equal_columns.get(source.plain or "", set()))
        for source in cut
    )
