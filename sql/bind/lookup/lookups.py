"""Right sides of joins that are looked up, and dict_get in expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.schema import Kind
from dovetail.changelog.wording import counted
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.clauses import event_time, is_process_time
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.from_clause.join_method import direct_joins
from dovetail.sql.bind.lookup.lookup_tables import attribute, attribute_defaults, is_mutable, of_dictionary, of_stream
from dovetail.sql.bind.resolve import resolved
from dovetail.sql.bind.scope import HIDDEN_TABLE, Scope, Visible, place_of
from dovetail.sql.bind.written.qualifiers import is_cte
from dovetail.sql.expressions.dict_functions import DictCall, dict_calls
from dovetail.sql.expressions.expression import Expr, structure
from dovetail.sql.plan.nodes import Cover, LookupJoin, LookupTable
from dovetail.sql.query_settings import QuerySettings
from dovetail.sql.relations import HasRows, Relations, Stream, with_rows
from dovetail.sql.syntax.calls import dotted_name
from dovetail.sql.syntax.statements import CreateDictionary, CreateIndex, CreateView
from dovetail.sql.system_tables import DATABASE, is_of_system


@dataclass(frozen=True)
class Lookups:
    """``stream`` tells the topic of a relation that a FROM item names; ``named`` makes an alias unique."""

    catalog: Relations
    settings: QuerySettings
    stream: Callable[[HasRows, exp.Expr], Stream]
    named: Callable[[str], str]

    # -- JOIN --

    def table(self, written: exp.Expr, ctes: Mapping[str, exp.Query]) -> LookupTable | None:
        """The right side of a join as a table to look up; None where it is joined as a stream."""
        if not isinstance(written, exp.Table) or isinstance(written.this, exp.Anonymous):
            return None
        if is_cte(written, ctes) or written.db == DATABASE or is_of_system(dotted_name(written)):
            return None
        place = place_of(written, "JOIN")
        definition = self._definition(written.name, place)
        if isinstance(definition, CreateDictionary):
            if event_time(written) is not None:
                raise Unsupported(
                    f'"{definition.name}" is looked up: of its rows before now nothing is known',
                    where=place,
                    fix="FOR SYSTEM_TIME AS OF PROCTIME(), or a TABLE with a PRIMARY KEY and a WATERMARK",
                )
            return of_dictionary(definition, self.named(written.alias or written.name))
        if event_time(written) is not None:
            return None
        cover = Cover.INDEXED if is_process_time(written) else Cover.PREFIX if direct_joins(self.settings) else None
        return None if cover is None else self._rows_of(written, definition, cover, place)

    def _rows_of(self, written: exp.Table, definition: HasRows, cover: Cover, place: str) -> LookupTable | None:
        index = definition.name if isinstance(definition, CreateIndex) else ""
        if isinstance(definition, CreateIndex):
            definition = self._definition(definition.stream, place)
        if cover == Cover.PREFIX and not is_mutable(definition):
            return None
        if isinstance(definition, CreateView) and not definition.materialized:
            raise Unsupported(
                f'"{written.name}" is a view that is not materialized: it has no rows to look up',
                where=place,
                fix=f"CREATE MATERIALIZED VIEW {written.name} AS ..",
            )
        stream = self.stream(definition, written)
        unfit = stream.schema.kind == Kind.APPEND or bool(stream.schema.version)
        if unfit and cover == Cover.PREFIX and direct_joins(self.settings) == "yes":
            return None
        alias = self.named(written.alias or written.name)
        return of_stream(stream, self.catalog.indexes(definition.name), alias, cover, place, index)

    def _definition(self, name: str, place: str) -> HasRows:
        try:
            return with_rows(self.catalog.get(name).definition, place)
        except UnknownName as fault:
            raise UnknownName(fault.what, where=place, fix=fault.fix) from None

    # -- dict_get --

    def within(self, from_item: FromItem, expression: exp.Expr, clause: str) -> tuple[FromItem, exp.Expr]:
        """The item with the lookups that dict_get and its kin ask for, and the expression over their columns."""
        root = exp.Paren(this=expression.copy())
        for node in dict_calls(root):
            place = place_of(node, clause)
            call = DictCall.of(node, place)
            definition = self._dictionary(call, place)
            from_item, table = _with_lookup(from_item, definition, call, self.named, clause)
            node.replace(call.value(table, definition.primary_key[0]))
        return from_item, root.this

    def _dictionary(self, call: DictCall, place: str) -> CreateDictionary:
        """The dictionary that a call names, which has the key and the attributes of the call."""
        definition = self._definition(call.dictionary, place)
        if not isinstance(definition, CreateDictionary) or not definition.primary_key:
            raise Unsupported(
                f'"{call.dictionary}" is no dictionary with a primary key',
                where=place,
                fix="CREATE DICTIONARY .. PRIMARY KEY ..; a stream is joined",
            )
        key = ", ".join(definition.primary_key)
        if len(definition.primary_key) != len(call.keys):
            shown = key if len(definition.primary_key) == 1 else f"({key})"
            raise SqlError(
                f'the key of "{definition.name}" is ({key}), and {call.function} is given '
                f"{counted(len(call.keys), 'value')}",
                where=place,
                fix=f"{call.function}('{definition.name}', .., {shown})",
            )
        for name in call.attributes:
            attribute(definition, name, place)
        return definition


def _with_lookup(
    from_item: FromItem, definition: CreateDictionary, call: DictCall, named: Callable[[str], str], clause: str
) -> tuple[FromItem, str]:
    """The item with the lookup of a call, and the table that answers it; the same keys are asked once."""
    keys = [resolved(key, from_item.scope, clause) for key in call.keys]
    looked_up = (definition.name, *map(structure, keys))
    if looked_up in from_item.looked_up:
        return from_item, from_item.looked_up[looked_up]
    table = of_dictionary(definition, named(definition.name))
    columns = [table.internal(name) for name in definition.primary_key]
    defaults = attribute_defaults(definition)
    node = LookupJoin(
        from_item.node,
        table,
        JoinKind.LEFT,
        on=tuple(_equal(key, table.column(column)) for column, key in zip(columns, keys, strict=True)),
        padding=tuple((table.internal(name), value) for name, value in defaults.items()),
        place=place_of(call.keys[0], clause),
    )
    shown = f"{HIDDEN_TABLE}{len(from_item.looked_up)}"
    kinds = table.schema
    visible = [
        Visible(shown, name, internal, kinds.field(internal).type, starred=False, bare=False)
        for internal, name in table.columns
    ]
    return FromItem(node, from_item.scope + Scope(tuple(visible)), {**from_item.looked_up, looked_up: shown}), shown


def _equal(key: exp.Expr, column: Expr) -> Expr:
    return Expr.condition(exp.EQ(this=exp.Paren(this=key.copy()), expression=column.tree.copy()))
