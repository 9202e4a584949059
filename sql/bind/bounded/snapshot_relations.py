"""The relations that a bounded query reads: their content, by name, with the columns that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import TIME
from dovetail.changelog.suggest import suggestion
from dovetail.sql.bind.bounded.snapshot_items import SnapshotItem, columns_in, content_schema, renamed_relation
from dovetail.sql.bind.scope import place_of
from dovetail.sql.relations import Stream, with_rows
from dovetail.sql.syntax.statements import CreateDictionary, CreateFunction, CreateStream, CreateView
from dovetail.sql.system_tables import DATABASE, DEAD_LETTERS, SYSTEM_TABLES


@dataclass(frozen=True)
class SnapshotRelations:
    """``view`` tells the stream that a materialized view writes; ``read``: relation -> its columns."""

    view: Callable[[CreateView], Stream]
    read: dict[str, pa.Schema] = field(default_factory=dict)

    def item(self, table: exp.Table, definition: object, name: str, alias: str, keys: Sequence[str]) -> SnapshotItem:
        """A relation of the catalog, in the place of ``table``; ``keys`` are those of ``changelog(x, k)``."""
        if isinstance(definition, CreateDictionary):
            self.read[name] = pa.schema([pa.field(column.name, column.type) for column in definition.columns])
            renamed_relation(table, name, alias, [])
            return SnapshotItem(alias, columns_in(self.read[name]))
        stream = self._stream(definition, table)
        self.read[name] = content_schema(stream)
        renamed_relation(table, name, alias, keys)
        columns = columns_in(self.read[name])
        declared = {column.name for column in stream.schema.readable}
        starred = [(name, kind) for name, kind in columns if name in declared or (name == TIME and stream.timed)]
        key = definition.schema.primary_key if isinstance(definition, CreateStream) else ()
        return SnapshotItem(alias, starred, [column for column in columns if column not in starred], key)

    def system(self, table: exp.Table, alias: str) -> SnapshotItem:
        name = f"{DATABASE}.{table.name}"
        schema = SYSTEM_TABLES.get(name)
        if schema is None:
            raise UnknownName(
                f'there is no "{name}"', where=place_of(table, "FROM"), fix=suggestion(name, SYSTEM_TABLES)
            )
        self.read[name] = schema
        renamed_relation(table, name, alias, [])
        return SnapshotItem(alias, columns_in(schema))

    def letters(self, table: exp.Table, topic: str, alias: str) -> SnapshotItem:
        """The dead letters of a query, by the name of their topic."""
        self.read[topic] = DEAD_LETTERS
        renamed_relation(table, topic, alias, [])
        return SnapshotItem(alias, columns_in(DEAD_LETTERS))

    def _stream(self, definition: object, table: exp.Expr) -> Stream:
        if isinstance(definition, CreateStream):
            return Stream.declared(definition)
        if isinstance(definition, CreateView):
            return self.view(definition)
        if isinstance(definition, CreateFunction):
            with_rows(definition, place_of(table, "FROM"))
        raise Unsupported(
            f"{table.sql()} has no rows to read here",
            where=place_of(table, "FROM"),
            fix="table(x) of a stream or a view",
        )
